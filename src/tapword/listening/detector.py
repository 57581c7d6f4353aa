"""Chunks in, events out: words said in a stream of sound. Knows nothing of microphones."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from tapword.audio.files import SAMPLE_RATE, as_float, check_peak
from tapword.errors import InputError
from tapword.listening.segmenter import SEARCH, Search, Segmenter, Window
from tapword.spotter.spotter import Spotter
from tapword.spotter.thresholds import FALSE_ALARMS_PER_HOUR, Scores, check_rate, said

# One event at most in this time, unless somebody says otherwise.
REFRACTORY_S = 0.4
# A score this close to its threshold is nearly a word: windows beside it are looked at too
# (docs/listening.md says what that brings).
CLOSE_SCORE = 0.2
# A word that scores so much higher in the next window was not whole in the one before
# (docs/listening.md says what that brings).
RISE_SCORE = 0.15
# A chunk is heard in pieces no longer than this, so that memory stays bounded.
PIECE_SAMPLES = 10 * SAMPLE_RATE


class Event(NamedTuple):
    """A word that was heard: where in the stream, in seconds since its start, and how surely."""

    word: str
    start_s: float
    end_s: float
    score: float


class Candidate(NamedTuple):
    """A stretch of the stream that was scored.

    Attributes
    ----------
    centre
        Of its sound, in samples since the stream's start.
    start_s, end_s
        What an event of it is said to last.
    scores
        Of the words and their negatives.
    """

    centre: int
    start_s: float
    end_s: float
    scores: Scores


class Decider:
    """Candidates in order -> events: one an utterance, at most, and the pause after it.

    Parameters
    ----------
    refractory_s
        One event at most in this time, and for one centre.
    """

    def __init__(self, refractory_s: float = REFRACTORY_S):
        if not 0 <= refractory_s < math.inf:
            raise InputError(f"the refractory time must be 0 s or more, got {refractory_s!r}")
        self.refractory_s = refractory_s
        self._last: Candidate | None = None
        self._word: str | None = None

    def pausing(self, centre: int) -> bool:
        """Whether a sound comes too soon after the last event to be one."""
        if self._last is None:
            return False
        apart = centre - self._last.centre
        return apart <= 0 or apart < self.refractory_s * SAMPLE_RATE

    def _repeats(self, candidate: Candidate, word: str) -> bool:
        """Whether a candidate is the last event's utterance, seen through another window.

        Two utterances need at least as much sound as lies between their centres.
        """
        last = self._last
        if last is None or candidate.start_s >= last.end_s or candidate.end_s <= last.start_s:
            return False
        sound_s = max(candidate.end_s, last.end_s) - min(candidate.start_s, last.start_s)
        if sound_s * SAMPLE_RATE < candidate.centre - last.centre:
            return True
        rise = candidate.scores.words[word] - last.scores.words.get(word, math.inf)
        return word == self._word and rise >= RISE_SCORE

    def __call__(self, candidate: Candidate, thresholds: Mapping[str, float]) -> Event | None:
        """Event of a candidate at these thresholds, if it is one."""
        word = None if self.pausing(candidate.centre) else said(candidate.scores, thresholds)
        if word is None:
            return None
        repeats = self._repeats(candidate, word)
        self._last, self._word = candidate, word
        if repeats:
            return None
        return Event(word, candidate.start_s, candidate.end_s, candidate.scores.words[word])


def replay(
    candidates: Iterable[Candidate],
    thresholds: Mapping[str, float],
    refractory_s: float = REFRACTORY_S,
) -> list[Event]:
    """Events that a detector with these thresholds would have given."""
    decide = Decider(refractory_s)
    events = (decide(candidate, thresholds) for candidate in candidates)
    return [event for event in events if event is not None]


class Detector:
    """Hear the words of a spotter in a stream.

    Parameters
    ----------
    spotter
        Whose words; what it learns between two chunks is heard at once. It is not to be changed by
        another thread while a chunk is heard.
    false_alarms_per_hour, thresholds
        How many false alarms are acceptable, fewer cost more misses; and word -> score from which
        it counts as said, instead of the one that follows from them.
    sensitivities
        Word -> sensitivity, and None -> that of all other words, instead of the spotter's own.
    refractory_s
        One event at most in this time.
    observe
        Called with every candidate. While somebody observes, every window is scored in full: those
        that come in the pause after an event, and those beside a word, too.
    search
        Where words are looked for in the stream.

    Attributes
    ----------
    scores
        Word -> score of the last window; empty before, in silence and in noise.

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
    ):
        self.spotter = spotter
        self.false_alarms_per_hour = check_rate(false_alarms_per_hour)
        self.refractory_s = refractory_s
        self.observe = observe
        self.search = search
        self._given = dict(thresholds or {})
        self._sensitivities = dict(sensitivities or {})
        for word in (*self._given, *self._sensitivities):
            if word is not None:
                spotter.learner.require_taught(word)
        # Where thresholds cannot be had, this is the moment to say so.
        _ = self.thresholds
        if self._sensitivities:
            spotter.require_thresholds("a sensitivity needs that")
        self.reset()

    def __repr__(self) -> str:
        words = ", ".join(f"{word} from {score:.3f}" for word, score in self.thresholds.items())
        return f"<Detector of {words or 'no words'}, pause {self.refractory_s:g} s>"

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
        """Start anew: nothing that was heard before matters to what comes."""
        self._segmenter = Segmenter(self.search)
        self._begin()

    def gap(self, seconds: float = 0.0) -> None:
        """Note that sound was lost, `seconds` of it if known: what comes does not follow on it."""
        self._segmenter.gap(seconds)
        self._begin()

    def _begin(self) -> None:
        self._decide = Decider(self.refractory_s)
        self.scores: dict[str, float] = {}

    def __call__(self, chunk: np.ndarray) -> list[Event]:
        """Hear the next samples (n,), any n at 16 kHz, float32 in [-1, 1] or int16.

        Events are words whose last needed sample was in this chunk, in order.
        """
        chunk = _check(chunk)
        events: list[Event] = []
        for start in range(0, len(chunk), PIECE_SAMPLES):
            self._segmenter.hear(chunk[start : start + PIECE_SAMPLES])
            for window in self._segmenter.windows():
                event = self._judge(window)
                if event is not None:
                    events.append(event)
        return events

    def flush(self) -> list[Event]:
        """Hear a moment of silence, for words at the very end of a stream."""
        return self(np.zeros(self._segmenter.flush_samples, dtype=np.float32))

    def _judge(self, window: Window) -> Event | None:
        if not window.loud:
            self.scores = {}
            return None
        if self.observe is None and self._decide.pausing(window.centre):
            return None
        thresholds = self.thresholds
        exact = self.observe is not None
        scores = self.spotter.score_window(window.clip, None if exact else thresholds)
        self.scores = dict(scores.words) if scores else {}
        if scores is None:
            return None
        candidate = Candidate(window.centre, window.start_s, window.end_s, scores)
        event = self._decide(candidate, thresholds)
        # An observer may judge by other thresholds, at which it is no word.
        if not window.beside and (event is None or exact) and _nearly(scores, thresholds):
            self._segmenter.look_beside(window)
        if self.observe is not None:
            self.observe(candidate)
        return event


def _nearly(scores: Scores, thresholds: Mapping[str, float]) -> bool:
    """Whether a word comes close to its threshold, or reaches it."""
    return (
        said(scores, {word: score - CLOSE_SCORE for word, score in thresholds.items()}) is not None
    )


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
