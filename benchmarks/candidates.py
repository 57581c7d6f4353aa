"""Candidates of many models in the same recordings: each window is encoded once, for all models.

A `Recording` finds the windows of its sounds like a `Detector`, with those at offsets. For a model
it returns the candidates that a detector's observer gets, but scores them all at once. So twenty
models cost little more than one. `phrase_candidates` does the same for models of phrases.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tapword import Spotter
from tapword.audio.align import MARGIN_S, cut
from tapword.audio.files import SAMPLE_RATE, as_float
from tapword.listening.decider import REFRACTORY_S, Candidate, replay
from tapword.listening.detector import CLOSE_SCORE, SEGMENT_SCORE
from tapword.listening.frames import FrameBuffer, lag
from tapword.listening.phrases import Phrases, kept_hops
from tapword.listening.segmenter import WINDOW, Segmenter
from tapword.spotter.encoder import CLIPS_AT_ONCE, Encoded, Encoder
from tapword.spotter.thresholds import Scores, is_close
from tapword.spotter.vocabulary import CLIP_S

# Samples that a segmenter gets at once.
BLOCK = 10 * SAMPLE_RATE


class Place(NamedTuple):
    """A loud window: in which sound, and its numbers as in `segmenter.Window`.

    `parent` is the row of the window that it is at an offset from.
    """

    sound: int
    begin: int
    centre: int
    start_s: float
    end_s: float
    parent: int | None


class Recording:
    """Sounds one after another, and the windows of a second in them.

    Parameters
    ----------
    encoder
        It encodes every window once, at the latest when a model needs it.
    sounds
        Arrays (n,), int16 or float32 at 16 kHz, with a gap between two.

    Attributes
    ----------
    hours
        Length of all sounds.
    """

    def __init__(self, encoder: Encoder, sounds: Iterable[np.ndarray]):
        self.encoder = encoder
        self.sounds: list[np.ndarray] = []
        self._places: list[Place] = []
        segmenter, start = segmenter_of(encoder), 0
        for sound in sounds:
            self.sounds.append(sound)
            self._find(segmenter, as_samples(sound), start)
            gap = segmenter.flush_samples
            segmenter.gap(REFRACTORY_S)
            start += len(sound) + gap + round(REFRACTORY_S * SAMPLE_RATE)
        self.hours = sum(map(len, self.sounds)) / SAMPLE_RATE / 3600
        self._rows = [row for row, place in enumerate(self._places) if place.parent is None]
        self._known: dict[int, Encoded] = {}
        self._buffers: dict[int, FrameBuffer] = {}
        self._encode(self._rows)
        self.windows = self._encoded(self._rows)

    def _find(self, segmenter: Segmenter, sound: np.ndarray, start: int) -> None:
        rows: dict[int, int] = {}
        silence = np.zeros(segmenter.flush_samples, dtype=np.float32)
        for block in (*np.split(sound, range(BLOCK, len(sound), BLOCK)), silence):
            segmenter.push(block)
            for window in segmenter.windows():
                if not window.loud:
                    continue
                if not window.is_offset:
                    rows[window.centre] = len(self._places)
                    segmenter.request_offsets(window)
                times = window.centre, window.start_s, window.end_s
                parent = rows[window.centre] if window.is_offset else None
                number, begin = len(self.sounds) - 1, window.start - start
                self._places.append(Place(number, begin, *times, parent))

    def _encode(self, rows: Sequence[int]) -> None:
        """Encode the windows that are not known yet."""
        rows = [row for row in rows if row not in self._known]
        if self.encoder.backbones[0].streams:
            for row in rows:
                place = self._places[row]
                cut = self._frames(place.sound).window(place.begin)
                vectors = self.encoder.pool_first([cut])
                self._known[row] = Encoded.one_second(vectors)
            return
        for first in range(0, len(rows), CLIPS_AT_ONCE):
            some = rows[first : first + CLIPS_AT_ONCE]
            encoded = self.encoder.encode([self._clip(self._places[row]) for row in some])
            self._known |= dict(zip(some, encoded, strict=True))

    def _frames(self, sound: int) -> FrameBuffer:
        """Frames of a sound, all of them."""
        if sound not in self._buffers:
            backbone = self.encoder.backbones[0]
            assert backbone.hop is not None
            samples = as_samples(self.sounds[sound])
            # Frames lag behind the sound, and windows reach beyond its end.
            samples = np.pad(samples, (0, WINDOW + backbone.latency * backbone.hop))
            buffer = FrameBuffer(backbone, len(samples) // backbone.hop + 1)
            for start in range(0, len(samples), BLOCK):
                piece = samples[start : start + BLOCK]
                buffer.extend(piece[: len(piece) // backbone.hop * backbone.hop])
            self._buffers[sound] = buffer
        return self._buffers[sound]

    def _clip(self, place: Place) -> np.ndarray:
        first = max(place.begin, 0)
        part = as_samples(self.sounds[place.sound][first : place.begin + WINDOW])
        return cut(part, place.begin + WINDOW // 2 - first, WINDOW)

    def _encoded(self, rows: Sequence[int]) -> Encoded:
        return Encoded.concatenate([self._known[row] for row in rows])

    def candidates(self, spotter: Spotter) -> list[Candidate]:
        """Candidates of a model without phrases, as its detector observes them, in order."""
        thresholds = spotter.thresholds()
        scores = self._scores(spotter, self._rows)
        close = {row for row, one in scores.items() if is_close(one, thresholds, CLOSE_SCORE)}
        beside = [row for row, place in enumerate(self._places) if place.parent in close]
        self._encode(beside)
        scores |= self._scores(spotter, beside)
        return [
            Candidate(place.centre, place.start_s, place.end_s, scores[row])
            for row, place in enumerate(self._places)
            if row in scores
        ]

    def alarms(self, spotter: Spotter) -> int:
        """Count the events of a model without phrases, at its own thresholds."""
        return len(replay(self.candidates(spotter), spotter.thresholds()))

    def _scores(self, spotter: Spotter, rows: Sequence[int]) -> dict[int, Scores]:
        """Score windows; without those that are noise alone."""
        if not rows:
            return {}
        encoded = self._encoded(rows)
        heard = np.flatnonzero(~self.encoder.is_noise(encoded.vectors))
        found = spotter.score_encoded(encoded[heard])
        return {rows[int(row)]: scores for row, scores in zip(heard, found, strict=True)}


def as_samples(sound: np.ndarray) -> np.ndarray:
    """Convert a sound (n,) to float32, if it is int16."""
    return as_float(sound) if sound.dtype == np.int16 else sound


def segmenter_of(encoder: Encoder) -> Segmenter:
    """Make a segmenter as a detector has it."""
    backbone = encoder.backbones[0]
    return Segmenter(lag=lag(backbone) if backbone.streams else 0)


class SharedPhrases(Phrases):
    """Phrases of several models in turn: each segment's vector is made once for all of them."""

    def push(self, sound: np.ndarray) -> None:
        """Take the samples of a step (n,)."""
        super().push(sound)
        self._vectors: dict[int, tuple[list[tuple[int, int]], np.ndarray | None]] = {}

    def make_frames(self) -> None:
        """Push what is new to the backbone, once for each step."""
        if self._buffer.until != self._end:
            super().make_frames()

    def vectors(self, lengths: Sequence[int]) -> tuple[list[tuple[int, int]], np.ndarray | None]:
        """Segments of these lengths that end in the last step, and their vectors."""
        for length in lengths:
            if length not in self._vectors:
                self._vectors[length] = super().vectors([length])
        known = [self._vectors[length] for length in lengths]
        made = [vectors for _, vectors in known if vectors is not None]
        places = [place for found, _ in known for place in found]
        return places, np.concatenate(made) if made else None


def phrase_candidates(
    spotters: Sequence[Spotter], sounds: Iterable[np.ndarray]
) -> list[list[Candidate]]:
    """Candidates of models of phrases alone, as their detectors score them, for each model.

    The models have the same parts.
    """
    found: list[list[Candidate]] = [[] for _ in spotters]
    thresholds = [spotter.thresholds() for spotter in spotters]
    encoder, start, margin = spotters[0].encoder, 0, round(MARGIN_S * SAMPLE_RATE)
    segmenter, backbone = segmenter_of(encoder), encoder.backbones[0]
    for sound in sounds:
        frames = FrameBuffer(backbone, kept_hops(backbone)) if backbone.streams else None
        phrases = SharedPhrases(spotters[0], start, frames)
        silence = np.zeros(segmenter.flush_samples + phrases.step, dtype=np.float32)
        sound = np.concatenate([as_samples(sound), silence])
        for first in range(0, len(sound) - phrases.step + 1, phrases.step):
            piece = sound[first : first + phrases.step]
            segmenter.push(piece)
            phrases.push(piece)
            if frames is not None:
                frames.push(piece)
            for _ in segmenter.windows():
                pass  # the segmenter follows the noise by its windows
            if segmenter.quiet(CLIP_S):
                continue
            for spotter, own, candidates in zip(spotters, thresholds, found, strict=True):
                phrases.spotter = spotter
                segment = phrases.best(own)
                if segment is None or segment.margin < -SEGMENT_SCORE:
                    continue
                vector = None if frames is None else segment.vector
                scores = spotter.scorer.score_window(segment.clip, first=vector)
                if scores is not None:
                    begin = segment.start + margin
                    end = segment.start + len(segment.clip) - margin
                    seconds = begin / SAMPLE_RATE, end / SAMPLE_RATE
                    scores, centre = scores.of(segment.words), (begin + end) // 2
                    candidates.append(Candidate(centre, *seconds, scores, True, segment.over))
        segmenter.gap(REFRACTORY_S)
        start += len(sound) + round(REFRACTORY_S * SAMPLE_RATE)
    return found
