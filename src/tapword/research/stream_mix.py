"""A long stream with words at known places, built a block at a time."""

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

# Least time between two clips.
APART_S = 3.0
# Times between words are drawn uniformly between these multiples of their mean.
SPREAD = 0.5, 1.5
# A clip and the sound around it fade into each other in this time; also in samples.
FADE_S = 0.01
_FADE = round(FADE_S * SAMPLE_RATE)


@dataclass(frozen=True)
class Placed:
    """A clip in the stream, where its speech ends, and, after listening, whether it was heard."""

    word: str
    file: str
    start_s: float
    end_s: float
    speech_end_s: float
    hit: bool = False


class StreamMix:
    """Recordings without the words, opened up at seeded times for clips of the words.

    Parameters
    ----------
    negatives
        Sound files of any length and rate, heard in order.
    positives
        (file, word) of each clip; they come in a seeded order, at the level they were recorded.
    seed
        Fixes where which clip comes.
    every_s
        Mean time between clips; None: as long as lets all of them in. Never less than 3 s.
    noise
        Sound files, one after the other again and again, added to everything.
    snr_db
        Mean power of a clip's speech over mean power of the noise under it; between two clips
        the noise goes over from the level of one to that of the other.
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
            raise InputError("a stream needs a recording without the words, and clips of them")
        if bool(noise) != (snr_db is not None):
            raise InputError("noise and its signal-to-noise ratio go together")
        if every_s is not None and not every_s >= APART_S:
            raise InputError(f"every_s must be at least {APART_S:g} s, got {every_s!r}")
        if seed < 0:
            raise InputError(f"seed must be at least 0, got {seed}")
        self.snr_db = snr_db
        # Seconds of all negatives, as their headers have it.
        self.total_s = sum(map(audio.length_s, negatives))
        rng = np.random.default_rng(seed)
        self._positives = [positives[index] for index in rng.permutation(len(positives))]
        gaps = rng.uniform(*SPREAD, len(positives) + 1)
        gaps *= self.total_s / gaps.sum() if every_s is None else every_s
        self._gaps = np.round(np.maximum(gaps, APART_S) * SAMPLE_RATE).astype(int)
        self._noise = Source(_looped([(path, _level(path)) for path in noise]))
        self._negatives = Source(
            itertools.chain.from_iterable(audio.blocks(path) for path in negatives)
        )
        # Clips put in so far, (file, why) of those that could not be, samples of the stream so far.
        self.placed: list[Placed] = []
        self.unreadable: list[tuple[str, str]] = []
        self.samples = 0

    @property
    def negative_s(self) -> float:
        """Seconds of negatives so far."""
        return self._negatives.taken / SAMPLE_RATE

    def __iter__(self) -> Iterator[np.ndarray]:
        """Give blocks (n,) float32 of any length, once."""
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
            out, back = self._negatives.take(_FADE), self._negatives.take(_FADE)
            if len(back) < _FADE:
                yield self._add_noise(np.concatenate([out, back]), before)
                return
            clip[:_FADE] = out * fall + clip[:_FADE] * fall[::-1]
            clip[-_FADE:] = clip[-_FADE:] * fall + back * fall[::-1]
            start_s, clip_s = self.samples / SAMPLE_RATE, len(clip) / SAMPLE_RATE
            place = Placed(word, Path(path).name, start_s, start_s + clip_s, start_s + end_s)
            self.placed.append(place)
            yield self._add_noise(clip, level)
            before = level
        for part in self._negatives.parts(None):
            yield self._add_noise(part, before or 0.0)

    def _add_noise(self, sound: np.ndarray, level: np.ndarray | float) -> np.ndarray:
        """Add noise to (n,), so far below the level (n,) or one for all."""
        self.samples += len(sound)
        if self.snr_db is None:
            return sound
        factor = np.float32(10 ** (-self.snr_db / 20)) * np.asarray(level, dtype=np.float32)
        # What is louder than full scale is cut off, as a microphone does it.
        return np.clip(sound + self._noise.take(len(sound)) * factor, -1, 1)


class Source:
    """Samples out of blocks, as many at a time as are asked for."""

    def __init__(self, blocks: Iterator[np.ndarray]):
        self._blocks = blocks
        self._rest = np.zeros(0, dtype=np.float32)
        self.taken = 0

    def parts(self, n: int | None) -> Iterator[np.ndarray]:
        """Give the next n samples, or all, in parts; fewer where there are no more."""
        while n is None or n > 0:
            if not len(self._rest):
                self._rest = next(self._blocks, self._rest)
                if not len(self._rest):
                    return
            part, self._rest = self._rest[:n], self._rest[len(self._rest[:n]) :]
            self.taken += len(part)
            n = None if n is None else n - len(part)
            yield part

    def take(self, n: int) -> np.ndarray:
        """Give the next samples: (n,), or fewer where there are no more."""
        return np.concatenate([np.zeros(0, dtype=np.float32), *self.parts(n)])


def _looped(files: Sequence[tuple[PathLike, float]]) -> Iterator[np.ndarray]:
    """Blocks of files over and over, each file brought to a mean power of 1."""
    for path, level in itertools.cycle(files):
        for block in audio.blocks(path):
            yield block / np.float32(level)


def _level(path: PathLike) -> float:
    """Root of the mean power of a whole file."""
    power, count = 0.0, 0
    for block in audio.blocks(path):
        power += float(np.square(block, dtype=np.float64).sum())
        count += len(block)
    if not power:
        raise InputError(f"{path} holds no sound that could be added as noise")
    return float(np.sqrt(power / count))


def _speech(clip: np.ndarray) -> tuple[float, float]:
    """End of a clip's speech in seconds, and its level; of the whole where no speech stands out."""
    take = examine(clip)
    end_s = take.end_s or len(clip) / SAMPLE_RATE
    first, last = (round(s * SAMPLE_RATE) for s in (take.start_s, end_s))
    return end_s, float(np.sqrt(np.square(clip[first:last], dtype=np.float64).mean()))
