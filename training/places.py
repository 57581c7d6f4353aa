"""Words and windows of recordings, and their vectors as a detector makes them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tapword.audio import files
from tapword.audio.align import MARGIN_S, cut
from tapword.audio.files import SAMPLE_RATE
from tapword.listening.frames import FrameBuffer
from tapword.spotter.encoder import CLIPS_AT_ONCE
from tapword.spotter.spotter import Spotter
from tapword.spotter.vocabulary import CLIP_S

# Seconds of a recording that pass the network at once.
PIECE_S = 40


class Place(NamedTuple):
    """A part of a recording (n,): its first sample, which may be before it, and its length."""

    sound: np.ndarray
    start: int
    length: int

    @property
    def clip(self) -> np.ndarray:
        """Its samples, with silence beyond the recording's ends."""
        return cut(self.sound, self.start + self.length // 2, self.length)


def place(sound: np.ndarray, start_s: float, end_s: float) -> Place:
    """Place a segment with the margin of clips."""
    middle = round((start_s + end_s) / 2 * SAMPLE_RATE)
    length = round((end_s - start_s + 2 * MARGIN_S) * SAMPLE_RATE)
    return Place(sound, middle - length // 2, length)


def recordings(
    paths: Sequence[Path], campaigns: Path | None = None, apart: Sequence[str] = ()
) -> list[np.ndarray]:
    """Read recordings (n,), without the campaigns of phone calls that are also in those `apart`.

    `campaigns` is a file that says which recorded message lies where, and its campaign.
    """
    sounds = [np.concatenate(list(files.blocks(path))) for path in paths]
    if campaigns is None:
        return sounds
    known = json.loads(campaigns.read_text("utf-8"))
    names = {Path(one).name for one in apart}
    tested = {one["campaign"] for one in known if one["file"] in names}
    result = []
    for path, sound in zip(paths, sounds, strict=True):
        for one in known:
            if one["file"] == path.name and one["campaign"] not in tested:
                start, end = (round(one[key] * SAMPLE_RATE) for key in ("start_s", "end_s"))
                result.append(sound[start:end])
    return result


def encode(spotter: Spotter, parts: Sequence[np.ndarray | Place]) -> np.ndarray:
    """Vectors (n, D) of prepared clips, and of places in recordings as a detector has them.

    These are from the recording's frames if the spotter's backbone streams; otherwise from clips.
    """
    backbone = spotter.encoder.backbones[0]
    vectors: dict[int, np.ndarray] = {}
    clips: dict[int, np.ndarray] = {}
    recordings: dict[int, dict[int, Place]] = {}
    for row, part in enumerate(parts):
        if isinstance(part, Place) and backbone.streams:
            recordings.setdefault(id(part.sound), {})[row] = part
        else:
            clips[row] = part.clip if isinstance(part, Place) else part
    rows = list(clips)
    for first in range(0, len(rows), CLIPS_AT_ONCE):
        some = rows[first : first + CLIPS_AT_ONCE]
        encoded = spotter.encoder.encode([clips[row] for row in some]).vectors
        vectors |= dict(zip(some, encoded, strict=True))
    for places in recordings.values():
        vectors |= dict(zip(places, pooled(spotter, list(places.values())), strict=True))
    return np.stack([vectors[row] for row in range(len(parts))])


def pooled(spotter: Spotter, places: Sequence[Place]) -> np.ndarray:
    """Vectors (n, D) of places in one recording, from its frames."""
    [backbone], sound = spotter.encoder.backbones, places[0].sound
    hop, piece = backbone.hop, PIECE_S * SAMPLE_RATE
    assert hop is not None
    sound = np.pad(sound, (0, -len(sound) % hop + backbone.latency * hop))
    buffer = FrameBuffer(backbone, len(sound) // hop)
    for start in range(0, len(sound), piece):
        buffer.extend(sound[start : start + piece])
    found = []
    for one in places:
        if one.length <= CLIP_S * SAMPLE_RATE:
            frames = buffer.window(one.start)
        else:
            frames = buffer.cut((one.start + hop // 2) // hop, -(-one.length // hop))
        found.append(spotter.encoder.pool_first([frames])[0])
    return np.stack(found)
