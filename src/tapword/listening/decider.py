"""Candidates in, events out: what counts as said, once for each utterance.

Words are decided on window by window. A phrase is seen through a row of stretches, one better than
the other, and the best of them is the event. Where a word lies inside a phrase, the phrase is.
"""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tapword.audio.files import SAMPLE_RATE
from tapword.errors import InputError
from tapword.spotter.thresholds import Scores, decide

# One event at most in this time, unless somebody says otherwise.
REFRACTORY_S = 0.4
# A word that scores so much higher in the next window was not whole in the one before
# (docs/listening.md says what that brings).
RISE_SCORE = 0.15
# A phrase that goes on for so long after one that it holds is one of its own: a choice, about a
# word.
BEYOND_S = 0.3
# A word that shares so much sound with a phrase, or half of its own, is part of it: among other
# speech it is not known where exactly either begins and ends. A choice.
SHARED_S = 0.2


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
        Of the words that are looked for in it, and their negatives.
    phrase
        Whether it is a stretch that was looked at for phrases.
    over
        Whether such a stretch was the best of several, some of which end later.
    """

    centre: int
    start_s: float
    end_s: float
    scores: Scores
    phrase: bool = False
    over: bool = False


class Decider:
    """Candidates in order -> events: one an utterance, at most, and the pause after it.

    Parameters
    ----------
    refractory_s
        One event at most in this time, and for one centre; phrases and other words each for
        themselves.
    """

    def __init__(self, refractory_s: float = REFRACTORY_S):
        if not 0 <= refractory_s < math.inf:
            raise InputError(f"the refractory time must be 0 s or more, got {refractory_s!r}")
        self.refractory_s = refractory_s
        self._last: Candidate | None = None
        self._word: str | None = None
        # The phrase that is being said, and the last one, as far as stretches of it reach.
        self._rising: Event | None = None
        self.phrase: Event | None = None

    def __call__(self, candidate: Candidate, thresholds: Mapping[str, float]) -> Event | None:
        """Event of a candidate at these thresholds, if it is one.

        A phrase is given once no later stretch is better.
        """
        if candidate.phrase:
            return self._phrase_event(candidate, decide(candidate.scores, thresholds))
        word = None if self.pausing(candidate.centre) else decide(candidate.scores, thresholds)
        if word is None:
            return None
        repeats = self._repeats(candidate, word)
        self._last, self._word = candidate, word
        event = _event(candidate, word)
        inside = self.phrase is not None and _holds(self.phrase, event)
        return None if repeats or inside else event

    def pausing(self, centre: int) -> bool:
        """Whether a sound comes too soon after the last event to be one."""
        if self._last is None:
            return False
        apart = centre - self._last.centre
        return apart <= 0 or apart < self.refractory_s * SAMPLE_RATE

    def settle(self) -> Event | None:
        """Give the phrase that was being said, if there is one: it will not be better."""
        event, self._rising = self._rising, None
        self.phrase = event or self.phrase
        return event

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

    def _phrase_event(self, candidate: Candidate, word: str | None) -> Event | None:
        event = None if word is None else _event(candidate, word)
        before = self._rising
        if event is None or before is None or not _same(before, event):
            given, last = self.settle(), self.phrase
            if event is not None:
                if last is None or _is_new(event, last, self.refractory_s):
                    self._rising = event
                else:
                    self.phrase = last._replace(end_s=max(last.end_s, event.end_s))
            # One event at a time: if both are due, the second is given in the next step.
            return given or (self.settle() if candidate.over else None)
        if event.score > before.score:
            self._rising = event
            return self.settle() if candidate.over else None
        return self.settle()


def _event(candidate: Candidate, word: str) -> Event:
    return Event(word, candidate.start_s, candidate.end_s, candidate.scores.words[word])


def _is_new(event: Event, last: Event, refractory_s: float) -> bool:
    """Whether a phrase is not the last one again: said later, or a longer one around it."""
    longer = event.word != last.word and event.end_s >= last.end_s + BEYOND_S
    return longer or not _same(last, event, refractory_s)


def _middle_s(event: Event) -> float:
    return (event.start_s + event.end_s) / 2


def _same(a: Event, b: Event, refractory_s: float = 0.0) -> bool:
    """Whether two events are one utterance: one holds the other's middle, or it comes too soon."""
    return (
        a.start_s <= _middle_s(b) <= a.end_s
        or b.start_s <= _middle_s(a) <= b.end_s
        or abs(_middle_s(a) - _middle_s(b)) < refractory_s
    )


class Overlaps:
    """Events in, events out: where a word lies inside a phrase, the phrase alone.

    Examples
    --------
    >>> overlaps = Overlaps()
    >>> overlaps.take(Event("turn", 0.4, 0.7, 0.6), phrase=False)
    >>> overlaps.given(now_s=1.2, longest_s=1.5)
    []
    >>> overlaps.take(Event("turn on the lights", 0.4, 1.8, 0.5), phrase=True)
    >>> [event.word for event in overlaps.given(now_s=1.9, longest_s=1.5)]
    ['turn on the lights']
    """

    def __init__(self) -> None:
        self._words: list[Event] = []
        self._phrases: list[Event] = []

    def take(self, event: Event, phrase: bool) -> None:
        """Take an event in, of a phrase or another word."""
        (self._phrases if phrase else self._words).append(event)
        if phrase:
            self.cover(event)

    def cover(self, phrase: Event | None) -> None:
        """Drop the words that lie inside a phrase, as far as that is known to reach."""
        if phrase is not None:
            self._words = [word for word in self._words if not _holds(phrase, word)]

    def given(self, now_s: float = math.inf, longest_s: float = 0.0) -> list[Event]:
        """Give the events that no phrase of this length can hold any more, in order."""
        ready = [word for word in self._words if now_s >= word.end_s + longest_s]
        self._words = [word for word in self._words if word not in ready]
        ready, self._phrases = self._phrases + ready, []
        return sorted(ready, key=lambda event: event.start_s)


def _holds(phrase: Event, word: Event) -> bool:
    shared_s = min(phrase.end_s, word.end_s) - max(phrase.start_s, word.start_s)
    return shared_s >= min(SHARED_S, (word.end_s - word.start_s) / 2)


def replay(
    candidates: Iterable[Candidate],
    thresholds: Mapping[str, float],
    refractory_s: float = REFRACTORY_S,
) -> list[Event]:
    """Events that a detector with these thresholds would have given.

    But for words that it gives since nothing follows them for a while, and that turn out to lie in
    a phrase: here the phrase alone remains.
    """
    decide, overlaps = Decider(refractory_s), Overlaps()
    for candidate in candidates:
        event = decide(candidate, thresholds)
        if event is not None:
            overlaps.take(event, candidate.phrase)
        if candidate.phrase:
            overlaps.cover(decide.phrase)
    if (event := decide.settle()) is not None:
        overlaps.take(event, phrase=True)
    return overlaps.given()
