"""What a page changed, so that the page can undo it.

It holds the vectors of takes and the statistics of forgotten words, never a recording. A change is
undone in the current model file: later changes by others stay. If they changed the same thing, the
undo is refused.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tapword.errors import InputError
from tapword.serve.studio.limits import LIMITS, ServerLimits
from tapword.spotter.encoder import Encoded
from tapword.spotter.spotter import Spotter
from tapword.voices.base import SpokenBy

# Why a take is not in the model: code -> message.
GONE = {
    "take_removed": "this take was removed already",
    "take_forgotten": "the word of this take was forgotten, and the take with it",
    "take_changed": (
        "the word of this take was forgotten, renamed or taught again elsewhere, so the take "
        "cannot be removed; nothing was changed"
    ),
}


@dataclass(eq=False)
class Take:
    """A clip that was learned.

    Attributes
    ----------
    number
        Its number on its page.
    word
        Word that it was learned as; of a negative, the word that it is not.
    taught
        As it was learned.
    scored
        As it was scored, where it was rejected; None where it is a sample of the word.
    scattered
        As for `Learner.unlearn_one`.
    gone
        None while it is in the model; otherwise why it is not, a key of `GONE`.
    spoken_by
        The voice that spoke it; None where a person did.
    """

    number: int
    word: str
    taught: Encoded
    scored: Encoded | None = None
    scattered: bool = True
    gone: str | None = None
    spoken_by: SpokenBy | None = None

    @property
    def row(self) -> tuple[str, str]:
        """Which part of the model it is in: the word, and what it is to the word."""
        kind = "negative" if self.negative else "synthetic" if self.spoken_by else "sample"
        return self.word, kind

    @property
    def negative(self) -> bool:
        """Whether it was taught as not the word."""
        return self.scored is not None

    def learn(self, spotter: Spotter) -> None:
        """Learn it, for the first time or again."""
        self.scattered = not spotter.learner.forgotten
        if self.scored is None:
            spotter.learn_encoded(self.taught, [self.word], self.spoken_by)
        else:
            self.word = spotter.reject_encoded(self.scored, self.taught)

    def unlearn(self, spotter: Spotter) -> None:
        """Unlearn it."""
        if self.gone is not None:
            raise InputError(GONE[self.gone], code=self.gone)
        words, by = [self.word], self.spoken_by
        spotter.unlearn_encoded(self.taught, words, self.negative, self.scattered, by)


class Change:
    """Something that can be undone: `undo` in a spotter, then `mark_undone` in the histories."""

    kind = ""

    def undo(self, spotter: Spotter) -> None:
        """Undo it, or refuse if others changed the same since."""
        raise NotImplementedError

    def mark_undone(self) -> None:
        """Note that it was undone."""

    def rename_word(self, old: str, new: str) -> None:
        """Note that a word was renamed."""

    def state(self) -> dict[str, Any]:
        """Give what a page shows of it, ready for JSON."""
        raise NotImplementedError


class Taught(Change):
    """A take was learned."""

    def __init__(self, take: Take):
        self.take = take
        self.kind = "reject" if take.negative else "teach"

    def undo(self, spotter: Spotter) -> None:
        """Unlearn it."""
        self.take.unlearn(spotter)

    def mark_undone(self) -> None:
        """Note that it is not in the model."""
        self.take.gone = "take_removed"

    def state(self) -> dict[str, Any]:
        """Give what a page shows of it, ready for JSON."""
        return {"kind": self.kind, "word": self.take.word}


class TakeRemoved(Taught):
    """A take was unlearned; `model` has its word, if it was the last take of that."""

    def __init__(self, take: Take, model: Spotter | None):
        super().__init__(take)
        self.model = model
        self.kind = "remove"

    def undo(self, spotter: Spotter) -> None:
        """Learn it again, with the negatives of its word."""
        if self.model is None:
            self.take.learn(spotter)
        else:
            spotter.merge(self.model)

    def mark_undone(self) -> None:
        """Note that it is in the model again."""
        self.take.gone = None


@dataclass(eq=False)
class Typed(Change):
    """A voice spoke a word: a take for each clip."""

    takes: list[Take]
    kind = "type"

    def undo(self, spotter: Spotter) -> None:
        """Unlearn the clips that are in the model; refuse if others changed them."""
        if any(take.gone == "take_changed" for take in self.takes):
            raise InputError(GONE["take_changed"], code="take_changed")
        for take in self.takes:
            if take.gone is None:
                take.unlearn(spotter)

    def mark_undone(self) -> None:
        """Note that they are not in the model."""
        for take in self.takes:
            take.gone = take.gone or "take_removed"

    def state(self) -> dict[str, Any]:
        """Give what a page shows of it, ready for JSON."""
        return {"kind": self.kind, "word": self.takes[0].word}


@dataclass(eq=False)
class Forgotten(Change):
    """A word was forgotten: a model of it alone, and its takes."""

    word: str
    model: Spotter
    takes: list[Take] = field(default_factory=list)
    kind = "forget"

    def undo(self, spotter: Spotter) -> None:
        """Restore the word; if it was taught again since, merge both."""
        spotter.merge(self.model)

    def mark_undone(self) -> None:
        """Note that the takes are in the model again."""
        for take in self.takes:
            take.gone = None

    def state(self) -> dict[str, Any]:
        """Give what a page shows of it, ready for JSON."""
        return {"kind": self.kind, "word": self.word}


@dataclass(eq=False)
class Renamed(Change):
    """A word was renamed."""

    old: str
    new: str
    kind = "rename"

    def undo(self, spotter: Spotter) -> None:
        """Restore its name."""
        spotter.rename(self.new, self.old)

    def rename_word(self, old: str, new: str) -> None:
        """Note that a word was renamed."""
        if self.new == old:
            self.new = new

    def state(self) -> dict[str, Any]:
        """Give what a page shows of it, ready for JSON."""
        return {"kind": self.kind, "word": self.old, "new": self.new}


@dataclass(eq=False)
class SensitivityChanged(Change):
    """The sensitivity of a word was changed, or of all words if it is None."""

    word: str | None
    before: tuple[float, dict[str, float]]
    after: tuple[float, dict[str, float]]
    kind: str = "sensitivity"

    def undo(self, spotter: Spotter) -> None:
        """Restore it, unless somebody else changed it since."""
        whose = "of all words" if self.word is None else f'of "{self.word}"'
        refusal = InputError(
            f"the sensitivity {whose} was changed elsewhere since, so it was not undone",
            code="sensitivities_changed" if self.word is None else "sensitivity_changed",
            params={"word": self.word},
        )
        if self.word is None:
            if sensitivities(spotter) != self.after:
                raise refusal
            spotter.vocabulary = spotter.vocabulary.with_sensitivities(*self.before)
            return
        spotter.learner.require_taught(self.word)
        after = self.after[1].get(self.word, self.after[0])
        if spotter.vocabulary.sensitivity_of(self.word) != after:
            raise refusal
        common, own = sensitivities(spotter)
        own.pop(self.word, None)
        if self.word in self.before[1]:
            own[self.word] = self.before[1][self.word]
        spotter.vocabulary = spotter.vocabulary.with_sensitivities(common, own)

    def rename_word(self, old: str, new: str) -> None:
        """Note that a word was renamed."""
        if self.word == old:
            self.word = new
        for _, own in (self.before, self.after):
            if old in own:
                own[new] = own.pop(old)

    def state(self) -> dict[str, Any]:
        """Give what a page shows of it, ready for JSON."""
        return {"kind": self.kind, "word": self.word}


def sensitivities(spotter: Spotter) -> tuple[float, dict[str, float]]:
    """Copy the common sensitivity, and those of words that have their own."""
    return spotter.vocabulary.sensitivity, spotter.vocabulary.sensitivities


class History:
    """Changes that one page made, oldest first, and the takes among them by number."""

    def __init__(self, limits: ServerLimits = LIMITS):
        self.limits = limits
        self.changes: list[Change] = []
        self.takes: dict[int, Take] = {}
        self._numbers = itertools.count(1)

    def take(
        self,
        word: str,
        taught: Encoded,
        scored: Encoded | None = None,
        spoken_by: SpokenBy | None = None,
    ) -> Take:
        """Make a take, which is not in the history yet."""
        return Take(next(self._numbers), word, taught, scored, spoken_by=spoken_by)

    def add(self, change: Change) -> None:
        """Add a change; drop the oldest at the limit."""
        last = self.changes[-1] if self.changes else None
        if (
            isinstance(change, SensitivityChanged)
            and isinstance(last, SensitivityChanged)
            and (last.kind, last.word) == (change.kind, change.word)
        ):
            # A slider that moved step by step is restored in one step.
            last.after = change.after
            return
        self.changes.append(change)
        takes = change.takes if isinstance(change, Typed) else []
        for take in [change.take] if isinstance(change, Taught) else takes:
            self.takes[take.number] = take
        del self.changes[: -self.limits.changes]
        while len(self.takes) > self.limits.changes:
            del self.takes[next(iter(self.takes))]

    @property
    def last(self) -> Change:
        """The change that is undone next."""
        if not self.changes:
            raise InputError("there is nothing to undo", code="nothing_to_undo")
        return self.changes[-1]

    def find(self, number: int) -> Take:
        """Find a take by its number."""
        if number not in self.takes:
            raise InputError("this take cannot be removed", code="take_unknown")
        return self.takes[number]

    def in_model(self) -> list[Take]:
        """List takes that are in the model."""
        # A copy: another thread may add one meanwhile.
        return [take for take in list(self.takes.values()) if take.gone is None]

    def rename_word(self, old: str, new: str) -> None:
        """Note that a word was renamed."""
        for take in list(self.takes.values()):
            if take.word == old and take.gone in (None, "take_removed"):
                take.word = new
        for change in self.changes:
            change.rename_word(old, new)

    def state(self) -> dict[str, Any]:
        """Give what a page shows: the change to undo next, and the takes that are in the model."""
        return {
            "undo": self.changes[-1].state() if self.changes else None,
            "takes": [
                {"id": take.number, "word": take.word, "negative": take.negative}
                for take in self.in_model()
            ],
        }


class Histories(dict[str, History]):
    """Histories of the latest pages, by page identifier.

    `renamed` is called with the old and the new name of a word.
    """

    def __init__(self, limits: ServerLimits = LIMITS):
        super().__init__()
        self.limits = limits
        self.renamed: list[Callable[[str, str], None]] = []

    def of(self, page: str) -> History:
        """Give the history of a page; a page without an identifier gets a new one each time."""
        if not page:
            return History(self.limits)
        # The page that was used last is dropped last.
        self[page] = self.pop(page) if page in self else History(self.limits)
        while len(self) > self.limits.pages:
            del self[next(iter(self))]
        return self[page]

    def rename_word(self, old: str, new: str) -> None:
        """Note that a word was renamed."""
        for history in list(self.values()):
            history.rename_word(old, new)
        for told in self.renamed:
            told(old, new)

    def in_model(self) -> list[Take]:
        """List takes of all pages that are in the model."""
        return [take for history in list(self.values()) for take in history.in_model()]
