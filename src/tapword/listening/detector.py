"""Chunks in, events out: find words in an audio stream."""

import math
from collections.abc import Callable, Mapping

import numpy as np
import soxr

from tapword.audio.align import HOP, MARGIN_S
from tapword.audio.files import SAMPLE_RATE, as_float, check_peak, check_rate
from tapword.errors import InputError
from tapword.listening.decider import REFRACTORY_S, Candidate, Decider, Event, Overlaps
from tapword.listening.frames import FrameBuffer, lag
from tapword.listening.phrases import Phrases, kept_hops
from tapword.listening.segmenter import SEARCH, Search, Segmenter, Window, check_gap
from tapword.spotter.spotter import Spotter
from tapword.spotter.thresholds import FALSE_ALARMS_PER_HOUR, Scores, is_close
from tapword.spotter.thresholds import check_rate as check_alarm_rate
from tapword.spotter.vocabulary import CLIP_S
from tapword.support.checks import in_range
from tapword.support.threads import one_blas_thread

# A score this close to its threshold may be a word off centre: windows at offsets are scored too
# (docs/listening.md has the effect).
CLOSE_SCORE = 0.2
# A segment is scored as a clip if the stream's frames bring a phrase this close to its threshold:
# they include neighbouring sound, a clip does not. A choice.
SEGMENT_SCORE = 0.1
# A word waits for a phrase that may contain it: until this much silence was searched, or this long
# after the end of the longest phrase. Choices: a segment is scored at most 0.42 s after its end.
SILENCE_S, LATE_S = 0.2, 0.5
# Longer chunks are split, so memory stays bounded.
PIECE_SAMPLES = 10 * SAMPLE_RATE


class Detector:
    """Find the words of a spotter in a stream.

    Parameters
    ----------
    spotter
        Whose words; what it learns between two chunks counts at once. No other thread may change it
        during a call.
    false_alarms_per_hour, thresholds
        Acceptable false alarms: fewer false alarms mean more missed words. And word -> score from
        which it counts as said, in place of the one that follows from the rate.
    sensitivities
        Word -> sensitivity, and None -> that of all other words, in place of the spotter's own.
    refractory_s
        At most one event in this time; phrases and words separately.
    observe
        Called with every candidate. An observer makes the detector score every window in full, also
        in the refractory time and at offsets from a word.
    search
        Where words are searched in the stream.
    sample_rate
        Samples per second of the chunks; other rates than 16 kHz are resampled.

    Attributes
    ----------
    scores
        Word -> score of the last window or segment scored for it; empty at first, in silence and in
        noise.
    resets
        How often `reset` was called; an observer learns by it that a new stream began.

    Examples
    --------
    >>> detector = Detector(Spotter())
    >>> detector(np.zeros(1280, dtype=np.float32))
    []
    """

    def __init__(
        self,
        spotter: Spotter,
        *,
        false_alarms_per_hour: float = FALSE_ALARMS_PER_HOUR,
        thresholds: Mapping[str, float] | None = None,
        sensitivities: Mapping[str | None, float] | None = None,
        refractory_s: float = REFRACTORY_S,
        observe: Callable[[Candidate], None] | None = None,
        search: Search = SEARCH,
        sample_rate: float = SAMPLE_RATE,
    ):
        self.spotter = spotter
        self.false_alarms_per_hour = check_alarm_rate(false_alarms_per_hour)
        self.refractory_s = refractory_s
        self.observe = observe
        self.search = search
        check_rate(sample_rate, "sample_rate")
        self.sample_rate = sample_rate
        self._given = dict(thresholds or {})
        for name, score in self._given.items():
            if not in_range(score, -math.inf, math.inf):
                raise InputError(f"the threshold of {name} must be a number, got {score!r}")
        self._sensitivities = dict(sensitivities or {})
        for word in (*self._given, *self._sensitivities):
            if word is not None:
                spotter.learner.require_taught(word)
        # Fails now if thresholds are unavailable.
        _ = self.thresholds
        if self._sensitivities:
            spotter.scorer.require_thresholds("A sensitivity needs thresholds")
        self.resets = -1
        self.reset()

    def __repr__(self) -> str:
        words = ", ".join(f"{word} from {score:.3f}" for word, score in self.thresholds.items())
        return f"<Detector of {words or 'no words'}, refractory {self.refractory_s:g} s>"

    @property
    def thresholds(self) -> dict[str, float]:
        """Word -> score from which it counts as said."""
        words = self.spotter.words
        # A word may have been forgotten since.
        given = {word: score for word, score in self._given.items() if word in words}
        if len(given) == len(words):
            return given
        known = self.spotter.thresholds(self.false_alarms_per_hour, self._sensitivities)
        return known | given

    def reset(self) -> None:
        """Start a new stream."""
        self.resets += 1
        self._restart_resampler()
        self._segmenter = Segmenter(self.search)
        self._gathered = np.zeros(0, dtype=np.float32)
        self._due: list[Event] = []
        self._samples = 0
        self._begin()

    def gap(self, seconds: float = 0.0) -> None:
        """Note that audio was lost, `seconds` of it if known: the stream is not continuous here."""
        check_gap(seconds)
        self._gathered = np.concatenate([self._gathered, self._drain()])
        self._push_gathered()
        self._segmenter.gap(seconds)
        self._samples += round(seconds * SAMPLE_RATE)
        # Earlier events are still to be returned.
        waiting = self._finalized()
        self._begin()
        self._overlaps = waiting

    def _begin(self) -> None:
        self._frames: FrameBuffer | None = None
        self._decide = Decider(self.refractory_s)
        self._overlaps = Overlaps()
        self._phrases: Phrases | None = None
        self.scores: dict[str, float] = {}

    def __call__(self, chunk: np.ndarray) -> list[Event]:
        """Take the next samples (n,), any n at `sample_rate`, float32 in [-1, 1] or int16.

        Returns the words whose last needed sample was in this chunk, in order.
        """
        samples = _check(chunk)
        if self._resampler is not None:
            samples = self._resampler.resample_chunk(samples)
        return self._process(samples)

    # Once for all that is inside: each step would set the number of threads again.
    @one_blas_thread
    def _process(self, samples: np.ndarray) -> list[Event]:
        """Take the next samples (n,) at 16 kHz."""
        self._follow_backbone()
        if self._follow_phrases():
            self._push_gathered()
        self._gathered = np.concatenate([self._gathered, samples])
        # After an error, samples behind it and events before it are still here for the next call.
        while size := self._next():
            piece, self._gathered = np.split(self._gathered, [size])
            self._push(piece)
        self._gathered = self._gathered.copy()
        return self._take_due()

    def flush(self) -> list[Event]:
        """Push a moment of silence, for words at the very end of a stream."""
        samples = self._segmenter.flush_samples
        if self._phrases is not None:
            samples += self._phrases.step
        silence = np.zeros(samples, dtype=np.float32)
        events = self._process(np.concatenate([self._drain(), silence]))
        self._due += self._finalized().pop_ready()
        return events + self._take_due()

    def _restart_resampler(self) -> None:
        self._resampler: soxr.ResampleStream | None = None
        if self.sample_rate != SAMPLE_RATE:
            self._resampler = soxr.ResampleStream(self.sample_rate, SAMPLE_RATE, 1)

    def _drain(self) -> np.ndarray:
        """Return the samples at 16 kHz that the resampler still holds, and start it again."""
        none = np.zeros(0, dtype=np.float32)
        if self._resampler is None:
            return none
        rest = self._resampler.resample_chunk(none, last=True)
        self._restart_resampler()
        return rest

    def _finalized(self) -> Overlaps:
        """Return the waiting events, with the phrase that was being said."""
        event = self._decide.finalize()
        if event is not None:
            self._overlaps.add(event, phrase=True)
        return self._overlaps

    def _take_due(self) -> list[Event]:
        """Return the events that need not wait any more, without words forgotten since."""
        due, self._due = self._due, []
        known = self.spotter.learner.words
        return [event for event in due if event.word in known]

    def _follow_backbone(self) -> None:
        """Begin to make the stream's frames if candidates are pooled from them, or stop."""
        first = self.spotter.encoder.backbones[0]
        backbone = first if first.streams else None
        if backbone is (None if self._frames is None else self._frames.backbone):
            return
        self._push_gathered()
        self._finalized()
        self._phrases = self._frames = None
        self._segmenter.lag = 0
        if backbone is not None:
            self._frames = FrameBuffer(backbone, kept_hops(backbone))
            self._frames_start = self._samples
            self._segmenter.lag = lag(backbone)

    def _follow_phrases(self) -> bool:
        """Begin or stop searching for phrases if the model changed; say whether it did."""
        if self.spotter.scorer.longest_s <= CLIP_S:
            if self._phrases is None:
                return False
            self._finalized()
            self._phrases = None
        elif self._phrases is None or not self._phrases.serves(self.spotter):
            now = self._samples + len(self._gathered)
            if self._frames is None:
                self._phrases = Phrases(self.spotter, now)
            else:
                skipped = now - self._frames_start
                self._phrases = Phrases(self.spotter, self._frames_start, self._frames, skipped)
        else:
            return False
        return True

    def _push_gathered(self) -> None:
        """Push the samples of an incomplete step, or before a gap, in which nothing is found."""
        if not len(self._gathered):
            return
        gathered, self._gathered = self._gathered, np.zeros(0, dtype=np.float32)
        self._samples += len(gathered)
        self._segmenter.push(gathered)
        if self._frames is not None:
            self._frames.push(gathered)

    def _next(self) -> int:
        """Return how many of the gathered samples to push now: with phrases, up to a search.

        Nothing can be found before a step is complete, so tiny chunks wait for it.
        """
        missing = self._segmenter.missing
        whole = max(0, missing + (len(self._gathered) - missing) // HOP * HOP)
        if self._phrases is not None:
            return min(whole, self._phrases.missing)
        return min(whole, PIECE_SAMPLES if self._frames is None else SAMPLE_RATE)

    def _push(self, piece: np.ndarray) -> None:
        """Push the next samples (n,); events that need not wait any more are due."""
        self._samples += len(piece)
        self._segmenter.push(piece)
        stepped = False
        if self._phrases is not None:
            stepped = len(piece) == self._phrases.missing
            self._phrases.push(piece)
        # Last, because the network may fail: the others are then at the same sample.
        if self._frames is not None:
            self._frames.push(piece)
        for window in self._segmenter.windows():
            self._judge(window)
        if self._phrases is None:
            self._due += self._overlaps.pop_ready()
        elif stepped:
            self._search_phrases(self._phrases)

    def _search_phrases(self, phrases: Phrases) -> None:
        """Search for a phrase that has ended; a word waits while a phrase may contain it."""
        event = self._look_for_phrases(phrases)
        if event is not None:
            self._overlaps.add(event, phrase=True)
        self._overlaps.suppress(self._decide.phrase)
        # Silence ends the wait, unless a phrase is still being said or its end was not searched.
        quiet = self._segmenter.quiet(SILENCE_S + phrases.lag_s)
        if event is not None or (quiet and not self._decide.rising):
            self._due += self._overlaps.pop_ready()
        else:
            longest_s = self.spotter.scorer.longest_s - 2 * MARGIN_S
            self._due += self._overlaps.pop_ready(self._samples / SAMPLE_RATE - LATE_S, longest_s)

    def _judge(self, window: Window) -> None:
        exact = self.observe is not None
        if not window.loud:
            self.scores = {}
            return
        if not exact and self._decide.in_refractory(window.centre):
            return
        words = self.spotter.scorer.short_words
        if not words and self.spotter.words:
            return
        first = None
        if self._frames is not None:
            frames = self._frames.window(window.start - self._frames_start)
            first = self.spotter.encoder.pool_first([frames])[0]
        thresholds = self.thresholds
        limits = None if exact else thresholds
        scores = self.spotter.scorer.score_window(window.clip, limits, first)
        self.scores = dict(scores.words) if scores else {}
        if scores is not None:
            self._decide_on(window, scores.of(words), thresholds)

    def _decide_on(self, window: Window, scores: Scores, thresholds: Mapping[str, float]) -> None:
        candidate = Candidate(window.centre, window.start_s, window.end_s, scores)
        event = self._decide(candidate, thresholds)
        # An observer may use other thresholds, at which it is no word.
        if (
            not window.is_offset
            and (event is None or self.observe is not None)
            and is_close(scores, thresholds, CLOSE_SCORE)
        ):
            self._segmenter.request_offsets(window)
        if event is not None:
            self._overlaps.add(event, phrase=False)
        if self.observe is not None:
            self.observe(candidate)

    def _look_for_phrases(self, phrases: Phrases) -> Event | None:
        """Return a phrase that has ended, if there is one."""
        if self._segmenter.quiet(CLIP_S):
            self.scores = {}
            return self._decide.finalize()
        thresholds = self.thresholds
        segment = phrases.best(thresholds)
        exact = self.observe is not None
        if segment is None or (not exact and segment.margin < -SEGMENT_SCORE):
            return self._decide.finalize()
        scores = self.spotter.scorer.score_window(
            segment.clip,
            None if exact else thresholds,
            None if self._frames is None else segment.vector,
        )
        if scores is None:
            self.scores = {}
            return self._decide.finalize()
        scores = scores.of(segment.words)
        self.scores = self.scores | scores.words
        margin = round(MARGIN_S * SAMPLE_RATE)
        start, end = segment.start + margin, segment.start + len(segment.clip) - margin
        seconds = start / SAMPLE_RATE, end / SAMPLE_RATE
        candidate = Candidate((start + end) // 2, *seconds, scores, True, segment.over)
        event = self._decide(candidate, thresholds)
        if self.observe is not None:
            self.observe(candidate)
        return event


def _check(chunk: np.ndarray) -> np.ndarray:
    if not isinstance(chunk, np.ndarray) or chunk.ndim != 1:
        shape = getattr(chunk, "shape", type(chunk).__name__)
        raise InputError(f"a chunk must be an array of shape (n,), got {shape}")
    if chunk.dtype == np.int16:
        return as_float(chunk)
    if chunk.dtype != np.float32:
        raise InputError(f"a chunk must be float32 or int16 samples, not {chunk.dtype}")
    check_peak(chunk, "the chunk")
    return chunk
