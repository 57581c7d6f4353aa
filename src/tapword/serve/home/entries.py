"""Words and near misses of the last day, in memory alone.

An entry holds the vectors of its sound, by which it can be corrected. It holds the sound only where
that was switched on, for two minutes.
"""

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapword.errors import InputError
from tapword.serve.home.model import HomeModel, Vectors
from tapword.serve.studio.history import History, Take
from tapword.serve.studio.model import Outcome

# A vector takes some kB; nobody looks at more entries than this of a day.
MAX_ENTRIES = 300
MAX_AGE_S = 24 * 3600.0
SOUND_S = 120.0


@dataclass(eq=False)
class Entry:
    """A word that was said, or nearly.

    Attributes
    ----------
    number
        Its number; numbers grow.
    satellite
        Number of the satellite.
    at_s
        When, in seconds since 1970.
    vectors
        By which it is corrected.
    confidence
        How sure its score is, from 0 to 100; None where thresholds are unavailable.
    clip
        Its sound (n,) float32, while that is held.
    take
        What it was taught as; None if it was not.
    """

    number: int
    satellite: int
    at_s: float
    word: str
    score: float
    threshold: float
    said: bool
    vectors: Vectors
    confidence: int | None = None
    clip: np.ndarray | None = None
    take: Take | None = None

    def state(self) -> dict[str, Any]:
        """Give what a page shows of it, ready for JSON."""
        take = self.take if self.take is not None and self.take.gone is None else None
        return {
            "id": self.number,
            "satellite": self.satellite,
            "at_s": round(self.at_s, 3),
            "word": self.word,
            "score": round(float(self.score), 3),
            "threshold": round(float(self.threshold), 3),
            "confidence": self.confidence,
            "said": self.said,
            "sound": self.clip is not None,
            "taught": None if take is None else {"word": take.word, "negative": take.negative},
        }


class Entries:
    """The entries of the last day, oldest first.

    Parameters
    ----------
    model
        What they are taught to.
    changed
        Called when they changed, from any thread.
    clock
        Seconds since 1970.
    """

    def __init__(
        self,
        model: HomeModel,
        changed: Callable[[], None],
        clock: Callable[[], float] = time.time,
    ):
        self.model = model
        model.histories.renamed.append(self._rename_word)
        self.clock = clock
        self._changed = changed
        self._lock = threading.Lock()
        self._entries: dict[int, Entry] = {}
        self._numbers = itertools.count(1)
        self._keeps_sound = False

    @property
    def keeps_sound(self) -> bool:
        """Whether new entries hold their sound for two minutes."""
        return self._keeps_sound

    @keeps_sound.setter
    def keeps_sound(self, keeps: bool) -> None:
        self._keeps_sound = keeps
        if not keeps:
            for entry in self.list():
                entry.clip = None
        self._changed()

    def add(
        self,
        satellite: int,
        word: str,
        score: float,
        threshold: float,
        said: bool,
        clip: np.ndarray,
        confidence: int | None = None,
    ) -> Entry:
        """Add what was found in a clip (n,)."""
        vectors = self.model.vectors(clip)
        with self._lock:
            number = next(self._numbers)
            kept = clip if self._keeps_sound else None
            entry = Entry(
                number,
                satellite,
                self.clock(),
                word,
                score,
                threshold,
                said,
                vectors,
                confidence,
                kept,
            )
            self._entries[number] = entry
            while len(self._entries) > MAX_ENTRIES:
                del self._entries[next(iter(self._entries))]
        self._changed()
        return entry

    def list(self) -> list[Entry]:
        """List those of the last day whose word is still in the model."""
        now_s, known = self.clock(), self.model.spotter.words
        with self._lock:
            for entry in list(self._entries.values()):
                if entry.at_s < now_s - SOUND_S:
                    entry.clip = None
                # What is left of a forgotten word must go, too.
                if entry.at_s < now_s - MAX_AGE_S or entry.word not in known:
                    del self._entries[entry.number]
            return list(self._entries.values())

    def find(self, number: int) -> Entry:
        """Find an entry by its number."""
        found = next((entry for entry in self.list() if entry.number == number), None)
        if found is None:
            raise InputError(
                "this entry is gone: entries are held for a day, until the program is restarted",
                code="entry_gone",
            )
        return found

    def last_said(self) -> Entry:
        """Give the last entry of a word that was said."""
        said = [entry for entry in self.list() if entry.said]
        if not said:
            raise InputError("no word was detected yet", code="entry_gone")
        return said[-1]

    def correct(self, number: int, word: str | None, history: History) -> Outcome:
        """Teach an entry as `word`, or as none of the words if it is None."""
        entry = self.find(number)
        if entry.take is not None and entry.take.gone is None:
            raise InputError("this entry was corrected already", code="entry_corrected")
        outcome = self.model.correct(entry.vectors, word, history)
        entry.take = None if outcome.take is None else history.find(outcome.take)
        self._changed()
        return outcome

    def _rename_word(self, old: str, new: str) -> None:
        """Note that a word was renamed."""
        with self._lock:
            for entry in self._entries.values():
                if entry.word == old:
                    entry.word = new
