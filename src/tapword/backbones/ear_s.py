"""tapword's backbone of the preset small: `tapword_ear`, trained in running sound."""

from typing import ClassVar

from tapword.backbones.tapword_ear import LATENCY_FRAMES, TapwordEar


class EarS(TapwordEar):
    """The small ear, 0.84M parameters: 96 numbers every 40 ms, computed once for a stream.

    It was trained on words between other words, in calls, after silence and in noise. So a detector
    uses the frames of the stream itself. Models that were taught with `tapword_ear` keep it.

    Parameters
    ----------
    weights
        Path of weights that `training/ear` made; None takes the shipped ones.
    threads
        Threads the network may use for several clips.

    Examples
    --------
    >>> EarS().dims, EarS().hop, EarS().streams
    ((101,), 640, True)
    """

    streams = True
    # As long as frames lag behind the sound: a word that is taught begins as in a quiet room.
    silence_before: ClassVar[int] = LATENCY_FRAMES
    shipped: ClassVar[str] = "ear_s.safetensors"
