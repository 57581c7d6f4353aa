"""Candidates in, events out: one event per utterance.

Words are decided window by window. Several segments overlap a phrase, and the best of them is the
event. Of a word inside a phrase and the phrase, the phrase is the event.
"""

import itertools
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tapword.audio.files import SAMPLE_RATE
from tapword.errors import InputError
from tapword.spotter.thresholds import Scores, confidences, decide
from tapword.support.checks import in_range

# At most one event in this time, by default.
REFRACTORY_S = 0.4
# A word that scores this much higher in the next window was cut off in the one before
# (docs/listening.md has the effect).
RISE_SCORE = 0.15
# A phrase that ends this much later than one it contains is an event of its own. A choice, about
# the length of a word.
BEYOND_S = 0.3
# A word that shares this much sound with a phrase, or half of its own, is part of it: in running
# speech neither has exact ends. A choice.
SHARED_S = 0.2


class Event(NamedTuple):
    """A word that was recognised: its time in seconds since the stream's start, and its score.

    `confidence` says how sure that makes us, from 50 to 100; None where thresholds are unavailable.
    """

    word: str
    start_s: float
    end_s: float
    score: float
    confidence: int | None = None


class Candidate(NamedTuple):
    """A segment of the stream that was scored.

    Attributes
    ----------
    centre
        Of its sound, in samples since the stream's start.
    start_s, end_s
        Start and end of its event.
    scores
        Of the words that are searched in it, and their negatives.
    phrase
        Whether it was searched for phrases.
    over
        Whether, for a phrase, some segments that end later were worse.
    """

    centre: int
    start_s: float
    end_s: float
    scores: Scores
    phrase: bool = False
    over: bool = False


class Decider:
    """Candidates in order -> events, at most one per utterance.

    Parameters
    ----------
    refractory_s
        At most one event in this time, and for one centre; phrases and words separately.
    """

    def __init__(self, refractory_s: float = REFRACTORY_S):
        if not in_range(refractory_s, 0, sys.float_info.max):
            raise InputError(f"the refractory time must be 0 s or more, got {refractory_s!r}")
        self.refractory_s = refractory_s
        self._last: Candidate | None = None
        self._word: str | None = None
        # The phrase that is being said, and the last one, to the end of its last segment.
        self._rising: Event | None = None
        self.phrase: Event | None = None

    def __call__(self, candidate: Candidate, thresholds: Mapping[str, float]) -> Event | None:
        """Return the event of a candidate at these thresholds, if it is one.

        A phrase is returned once no later segment is better.
        """
        if candidate.phrase:
            word = decide(candidate.scores, thresholds)
            event = None if word is None else _event(candidate, word, thresholds)
            return self._phrase_event(candidate, event)
        word = (
            None if self.in_refractory(candidate.centre) else decide(candidate.scores, thresholds)
        )
        if word is None:
            return None
        repeats = self._repeats(candidate, word)
        self._last, self._word = candidate, word
        event = _event(candidate, word, thresholds)
        inside = self.phrase is not None and _contains(self.phrase, event)
        return None if repeats or inside else event

    def in_refractory(self, centre: int) -> bool:
        """Whether a sound comes too soon after the last event to be one."""
        if self._last is None:
            return False
        apart = centre - self._last.centre
        return apart <= 0 or apart < self.refractory_s * SAMPLE_RATE

    @property
    def rising(self) -> bool:
        """Whether a phrase is being said, which may still get better."""
        return self._rising is not None

    def finalize(self) -> Event | None:
        """Return the phrase that was being said, if there is one: it will not get better."""
        event, self._rising = self._rising, None
        self.phrase = event or self.phrase
        return event

    def _repeats(self, candidate: Candidate, word: str) -> bool:
        """Whether a candidate is the last event's utterance in another window.

        Two utterances need at least as much sound as there is between their centres.
        """
        last = self._last
        if last is None or candidate.start_s >= last.end_s or candidate.end_s <= last.start_s:
            return False
        sound_s = max(candidate.end_s, last.end_s) - min(candidate.start_s, last.start_s)
        if sound_s * SAMPLE_RATE < candidate.centre - last.centre:
            return True
        rise = candidate.scores.words[word] - last.scores.words.get(word, math.inf)
        return word == self._word and rise >= RISE_SCORE

    def _phrase_event(self, candidate: Candidate, event: Event | None) -> Event | None:
        before = self._rising
        if event is None or before is None or not _same(before, event):
            event_before, last = self.finalize(), self.phrase
            if event is not None:
                if last is None or _is_new(event, last, self.refractory_s):
                    self._rising = event
                else:
                    self.phrase = last._replace(end_s=max(last.end_s, event.end_s))
            # One event at a time: if both are due, the second follows in the next step.
            return event_before or (self.finalize() if candidate.over else None)
        if event.score > before.score:
            self._rising = event
            return self.finalize() if candidate.over else None
        return self.finalize()


def _event(candidate: Candidate, word: str, thresholds: Mapping[str, float]) -> Event:
    scores = candidate.scores
    sure = confidences(scores.of([word]), thresholds).get(word)
    return Event(word, candidate.start_s, candidate.end_s, scores.words[word], sure)


def _is_new(event: Event, last: Event, refractory_s: float) -> bool:
    """Whether a phrase differs from the last one: said later, or a longer one around it."""
    longer = event.word != last.word and event.end_s >= last.end_s + BEYOND_S
    return longer or not _same(last, event, refractory_s)


def _middle_s(event: Event) -> float:
    return (event.start_s + event.end_s) / 2


def _same(a: Event, b: Event, refractory_s: float = 0.0) -> bool:
    """Whether two events are one utterance: one contains the other's middle, or comes too soon."""
    return (
        a.start_s <= _middle_s(b) <= a.end_s
        or b.start_s <= _middle_s(a) <= b.end_s
        or abs(_middle_s(a) - _middle_s(b)) < refractory_s
    )


class Overlaps:
    """Events in, events out, without words inside a phrase.

    Examples
    --------
    >>> overlaps = Overlaps()
    >>> overlaps.add(Event("turn", 0.4, 0.7, 0.6), phrase=False)
    >>> overlaps.pop_ready(now_s=1.2, longest_s=1.5)
    []
    >>> overlaps.add(Event("turn on the lights", 0.4, 1.8, 0.5), phrase=True)
    >>> [event.word for event in overlaps.pop_ready(now_s=1.9, longest_s=1.5)]
    ['turn on the lights']
    """

    def __init__(self) -> None:
        self._words: list[Event] = []
        self._phrases: list[Event] = []

    def add(self, event: Event, phrase: bool) -> None:
        """Add an event of a phrase or another word."""
        (self._phrases if phrase else self._words).append(event)
        if phrase:
            self.suppress(event)

    def suppress(self, phrase: Event | None) -> None:
        """Drop the words inside a phrase, to the end that is known so far."""
        if phrase is not None:
            self._words = [word for word in self._words if not _contains(phrase, word)]

    def pop_ready(self, now_s: float = math.inf, longest_s: float = 0.0) -> list[Event]:
        """Return the events that no phrase of this length can contain any more, in order."""
        ready = [word for word in self._words if now_s >= word.end_s + longest_s]
        self._words = [word for word in self._words if word not in ready]
        ready, self._phrases = self._phrases + ready, []
        return sorted(ready, key=lambda event: event.start_s)


def _contains(phrase: Event, word: Event) -> bool:
    shared_s = min(phrase.end_s, word.end_s) - max(phrase.start_s, word.start_s)
    return shared_s >= min(SHARED_S, (word.end_s - word.start_s) / 2)


def replay(
    candidates: Iterable[Candidate],
    thresholds: Mapping[str, float],
    refractory_s: float = REFRACTORY_S,
) -> list[Event]:
    """Return the events that a detector with these thresholds would have returned.

    One difference: a detector may return a word before the phrase that contains it. Here only the
    phrase remains.
    """
    decide, overlaps = Decider(refractory_s), Overlaps()
    for candidate in candidates:
        event = decide(candidate, thresholds)
        if event is not None:
            overlaps.add(event, candidate.phrase)
        if candidate.phrase:
            overlaps.suppress(decide.phrase)
    if (event := decide.finalize()) is not None:
        overlaps.add(event, phrase=True)
    return overlaps.pop_ready()


def independent(
    candidates: Sequence[Candidate], refractory_s: float = REFRACTORY_S
) -> list[list[Candidate]]:
    """Split candidates, in order, into groups that share no sound and no refractory time.

    `replay` of a group returns the events that it has in all of them.
    """
    begins = [min(one.start_s, one.centre / SAMPLE_RATE) for one in candidates]
    # Candidates of phrases and at offsets come late, so each begin counts for those before.
    begins = list(itertools.accumulate(reversed(begins), min))[::-1]
    groups: list[list[Candidate]] = []
    end_s = -math.inf
    for candidate, begin_s in zip(candidates, begins, strict=True):
        if begin_s - end_s > refractory_s:
            groups.append([])
        groups[-1].append(candidate)
        end_s = max(end_s, candidate.end_s, candidate.centre / SAMPLE_RATE)
    return groups
