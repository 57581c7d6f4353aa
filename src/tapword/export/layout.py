"""How clips and the input of a backbone are laid out, for every export."""

from typing import NamedTuple

from tapword.audio.align import ABOVE_DB, DEEPEST_DB, LEAST_DB, MARGIN_S, NOTHING_DB
from tapword.audio.files import SAMPLE_RATE
from tapword.backbones import logmel, speech_embedding, tapword_ear
from tapword.backbones.base import Backbone
from tapword.backbones.logmel import Logmel
from tapword.errors import InputError
from tapword.spotter.vocabulary import CLIP_S, MAX_S

# In samples: a clip around a short sound; the margin on either side of a longer sound, and the
# longest sound and clip.
CLIP, MARGIN, MAX = (round(s * SAMPLE_RATE) for s in (CLIP_S, MARGIN_S, MAX_S))
LONGEST = MAX + 2 * MARGIN
# Ratios of power: levels are compared without taking logarithms. Then the power of silence.
DEEPEST, ABOVE, LEAST = (10 ** (db / 10) for db in (-DEEPEST_DB, ABOVE_DB, -LEAST_DB))
NOTHING = 10 ** (NOTHING_DB / 10)
SILENCE = 1e-10


class FrontEnd(NamedTuple):
    """What a backbone is given of a clip.

    Attributes
    ----------
    mel
        Number of its log-mel bands, and their lowest and highest frequency in Hz.
    before, after
        Silence on either side of a clip, in samples.
    hop
        A clip is filled up to whole multiples of this many samples.
    in_c
        Whether C has all of the backbone; the network of others runs elsewhere.
    """

    mel: tuple[int, float, float]
    before: int
    after: int
    hop: int
    in_c: bool


def front_end(backbone: Backbone) -> FrontEnd:
    """Describe the input of a backbone; refuse one that cannot be exported."""
    if isinstance(backbone, tapword_ear.TapwordEar):
        mel = tapword_ear.BANDS, tapword_ear.LOW_HZ, tapword_ear.HIGH_HZ
        after = tapword_ear.LATENCY_FRAMES * tapword_ear.HOP
        return FrontEnd(mel, tapword_ear.OVERLAP, after, tapword_ear.HOP, True)
    mel = logmel.BANDS, logmel.LOW_HZ, logmel.HIGH_HZ
    if isinstance(backbone, Logmel):
        pad = round(backbone.pad_s * backbone.sample_rate)
        return FrontEnd(mel, pad, pad, 1, True)
    if backbone.name == "speech_embedding":
        return FrontEnd(mel, speech_embedding.PAD, speech_embedding.PAD, 1, False)
    raise InputError(
        f"backbone {backbone.name} cannot be exported; ear_s (size small), tapword_ear, "
        "speech_embedding and logmel can"
    )
