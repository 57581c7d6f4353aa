"""A long stream with clips of words at known times, built block by block."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tapword.audio import files as audio
from tapword.audio.endpoint import examine
from tapword.audio.files import SAMPLE_RATE
from tapword.errors import InputError
from tapword.support.atomic_files import PathLike

# Minimum time between two clips.
MIN_GAP_S = 3.0
# Gaps are drawn uniformly between these multiples of their mean.
SPREAD = 0.5, 1.5
# Length of the cross-fade between a clip and the sound around it; also in samples.
FADE_S = 0.01
_FADE = round(FADE_S * SAMPLE_RATE)


@dataclass(frozen=True)
class PlacedClip:
    """A clip in the stream, the end of its speech, and after listening, whether it was a hit."""

    word: str
    file: str
    start_s: float
    end_s: float
    speech_end_s: float
    hit: bool = False


class StreamMix:
    """Recordings without the words, with clips of the words inserted at seeded times.

    Parameters
    ----------
    negatives
        Sound files of any length and sample rate, played in order.
    positives
        (file, word) of each clip; inserted in a seeded order, as loud as recorded.
    seed
        Fixes the order and times of the clips.
    every_s
        Mean time between clips, at least 3 s; None: so that all of them fit.
    noise
        Sound files, repeated in order, added to everything.
    snr_db
        Signal-to-noise ratio of a clip's speech. Between clips, the level of the noise is
        interpolated.
    """

    def __init__(
        self,
        negatives: Sequence[PathLike],
        positives: Sequence[tuple[PathLike, str]],
        *,
        seed: int = 0,
        every_s: float | None = None,
        noise: Sequence[PathLike] = (),
        snr_db: float | None = None,
    ):
        if not negatives or not positives:
            raise InputError("a stream needs a recording without the words, and clips of the words")
        if bool(noise) != (snr_db is not None):
            raise InputError("noise and its signal-to-noise ratio go together")
        if every_s is not None and not every_s >= MIN_GAP_S:
            raise InputError(f"every_s must be at least {MIN_GAP_S:g} s, got {every_s!r}")
        if seed < 0:
            raise InputError(f"seed must be at least 0, got {seed}")
        self.snr_db = snr_db
        # Seconds of all negatives, from their headers.
        self.total_s = sum(map(audio.length_s, negatives))
        rng = np.random.default_rng(seed)
        self._positives = [positives[index] for index in rng.permutation(len(positives))]
        gaps = rng.uniform(*SPREAD, len(positives) + 1)
        gaps *= self.total_s / gaps.sum() if every_s is None else every_s
        self._gaps = np.round(np.maximum(gaps, MIN_GAP_S) * SAMPLE_RATE).astype(int)
        self._noise = SampleReader(_looped([(path, _level(path)) for path in noise]))
        self._negatives = SampleReader(
            itertools.chain.from_iterable(audio.blocks(path) for path in negatives)
        )
        # Inserted clips, (file, reason) of unreadable ones, and samples, all so far.
        self.placed: list[PlacedClip] = []
        self.unreadable: list[tuple[str, str]] = []
        self.samples = 0

    @property
    def negative_s(self) -> float:
        """Seconds of negatives so far."""
        return self._negatives.n_read / SAMPLE_RATE

    def __iter__(self) -> Iterator[np.ndarray]:
        """Yield blocks (n,) float32 of any length, once."""
        before: float | None = None
        fall = np.linspace(1, 0, _FADE, dtype=np.float32)
        for (path, word), gap in zip(self._positives, self._gaps, strict=False):
            try:
                clip = audio.read(path)
            except InputError as error:
                self.unreadable.append((Path(path).name, str(error)))
                continue
            end_s, level = _speech(clip)
            before = level if before is None else before
            done = 0
            for part in self._negatives.parts(gap - _FADE):
                share = (done + np.arange(len(part), dtype=np.float32)) / np.float32(gap)
                yield self._add_noise(part, before + (level - before) * share)
                done += len(part)
            out, back = self._negatives.read(_FADE), self._negatives.read(_FADE)
            if len(back) < _FADE:
                yield self._add_noise(np.concatenate([out, back]), before)
                return
            clip[:_FADE] = out * fall + clip[:_FADE] * fall[::-1]
            clip[-_FADE:] = clip[-_FADE:] * fall + back * fall[::-1]
            start_s, clip_s = self.samples / SAMPLE_RATE, len(clip) / SAMPLE_RATE
            place = PlacedClip(word, Path(path).name, start_s, start_s + clip_s, start_s + end_s)
            self.placed.append(place)
            yield self._add_noise(clip, level)
            before = level
        for part in self._negatives.parts(None):
            yield self._add_noise(part, before or 0.0)

    def _add_noise(self, sound: np.ndarray, level: np.ndarray | float) -> np.ndarray:
        """Add noise to (n,) at `snr_db` below the level, (n,) or one for all."""
        self.samples += len(sound)
        if self.snr_db is None:
            return sound
        factor = np.float32(10 ** (-self.snr_db / 20)) * np.asarray(level, dtype=np.float32)
        # Clip at full scale, as a microphone does.
        return np.clip(sound + self._noise.read(len(sound)) * factor, -1, 1)


class SampleReader:
    """Read any number of samples from an iterator of blocks."""

    def __init__(self, blocks: Iterator[np.ndarray]):
        self._blocks = blocks
        self._rest = np.zeros(0, dtype=np.float32)
        self.n_read = 0

    def parts(self, n: int | None) -> Iterator[np.ndarray]:
        """Yield the next n samples, or all, in parts; fewer at the end."""
        while n is None or n > 0:
            if not len(self._rest):
                self._rest = next(self._blocks, self._rest)
                if not len(self._rest):
                    return
            part, self._rest = self._rest[:n], self._rest[len(self._rest[:n]) :]
            self.n_read += len(part)
            n = None if n is None else n - len(part)
            yield part

    def read(self, n: int) -> np.ndarray:
        """Read the next samples: (n,), or fewer at the end."""
        return np.concatenate([np.zeros(0, dtype=np.float32), *self.parts(n)])


def _looped(files: Sequence[tuple[PathLike, float]]) -> Iterator[np.ndarray]:
    """Blocks of files, repeated, each file scaled to a mean power of 1."""
    for path, level in itertools.cycle(files):
        for block in audio.blocks(path):
            yield block / np.float32(level)


def _level(path: PathLike) -> float:
    """Root mean square of a file."""
    power, count = 0.0, 0
    for block in audio.blocks(path):
        power += float(np.square(block, dtype=np.float64).sum())
        count += len(block)
    if not power:
        raise InputError(f"{path} is silent and cannot be added as noise")
    return float(np.sqrt(power / count))


def _speech(clip: np.ndarray) -> tuple[float, float]:
    """End of a clip's speech in seconds, and its level; of the whole clip without clear speech."""
    take = examine(clip)
    end_s = take.end_s or len(clip) / SAMPLE_RATE
    first, last = (round(s * SAMPLE_RATE) for s in (take.start_s, end_s))
    return end_s, float(np.sqrt(np.square(clip[first:last], dtype=np.float64).mean()))
