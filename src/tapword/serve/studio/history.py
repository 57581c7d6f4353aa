"""What a page changed, held so that it can take any of it back while it lives.

Of a take the vectors are held, of a forgotten word its statistics; never a recording. A change is
undone in the model file as it is then: what others changed since stays, and where they changed the
same thing, that is said.
"""

import itertools
from dataclasses import dataclass, field
from typing import Any

from tapword.errors import InputError
from tapword.serve.studio.limits import LIMITS, Limits
from tapword.spotter.encoder import Encoded
from tapword.spotter.spotter import Spotter

NOTHING = "there is nothing to undo"
NO_TAKE = "no such take can be taken out"
# Why a take is not in the model.
REMOVED = "this take was removed already"
FORGOTTEN = "the word of this take was forgotten, and the take with it"
ELSEWHERE = (
    "the word of this take was forgotten, renamed or taught anew elsewhere since, so the take "
    "cannot be found in it any more; nothing was changed"
)


@dataclass(eq=False)
class Take:
    """A clip that was learned.

    Attributes
    ----------
    number
        By which its page calls it.
    word
        What it was learned as; where it is a negative, the word that it is not.
    taught
        As it was learned.
    scored
        As it was scored, where it was rejected; None where it is a sample of the word.
    scattered
        As for `Learner.unlearn_one`.
    gone
        None while it is in the model; else why not, in words.
    """

    number: int
    word: str
    taught: Encoded
    scored: Encoded | None = None
    scattered: bool = True
    gone: str | None = None

    @property
    def negative(self) -> bool:
        """Whether it was taught as not the word."""
        return self.scored is not None

    def teach(self, spotter: Spotter) -> None:
        """Learn it, for the first time or again."""
        self.scattered = not spotter.learner.spare
        if self.scored is None:
            spotter.learn_encoded(self.taught, [self.word])
        else:
            self.word = spotter.reject_encoded(self.scored, self.taught)

    def take_out(self, spotter: Spotter) -> None:
        """Unlearn it."""
        if self.gone is not None:
            raise InputError(self.gone)
        spotter.unlearn_encoded(self.taught, [self.word], self.negative, self.scattered)


class Change:
    """Something that can be undone: `undo` in a spotter, then `undone` in the histories."""

    kind = ""

    def undo(self, spotter: Spotter) -> None:
        """Take it back, or refuse to where others changed the same since."""
        raise NotImplementedError

    def undone(self) -> None:
        """Note that it was taken back."""

    def follow(self, old: str, new: str) -> None:
        """Note that a word was renamed."""

    def state(self) -> dict[str, Any]:
        """Give what a page shows of it."""
        raise NotImplementedError


class Taught(Change):
    """A take was learned."""

    def __init__(self, take: Take):
        self.take = take
        self.kind = "reject" if take.negative else "teach"

    def undo(self, spotter: Spotter) -> None:
        """Unlearn it."""
        self.take.take_out(spotter)

    def undone(self) -> None:
        """Note that it is out."""
        self.take.gone = REMOVED

    def state(self) -> dict[str, Any]:
        """Give what a page shows of it."""
        return {"kind": self.kind, "word": self.take.word}


class TakenOut(Taught):
    """A take was unlearned; `part` is its word, where it was the last of it."""

    def __init__(self, take: Take, part: Spotter | None):
        super().__init__(take)
        self.part = part
        self.kind = "remove"

    def undo(self, spotter: Spotter) -> None:
        """Learn it again, with the negatives that went along."""
        if self.part is None:
            self.take.teach(spotter)
        else:
            spotter.merge(self.part)

    def undone(self) -> None:
        """Note that it is in again."""
        self.take.gone = None


@dataclass(eq=False)
class Forgotten(Change):
    """A word was forgotten: what was known of it, and the takes that went along."""

    word: str
    part: Spotter
    takes: list[Take] = field(default_factory=list)
    kind = "forget"

    def undo(self, spotter: Spotter) -> None:
        """Give the word back; where it was taught anew since, it knows both."""
        spotter.merge(self.part)

    def undone(self) -> None:
        """Note that the takes are in again."""
        for take in self.takes:
            take.gone = None

    def state(self) -> dict[str, Any]:
        """Give what a page shows of it."""
        return {"kind": self.kind, "word": self.word}


@dataclass(eq=False)
class Renamed(Change):
    """A word was given another name."""

    old: str
    new: str
    kind = "rename"

    def undo(self, spotter: Spotter) -> None:
        """Give it its name back."""
        spotter.rename(self.new, self.old)

    def follow(self, old: str, new: str) -> None:
        """Note that a word was renamed."""
        if self.new == old:
            self.new = new

    def state(self) -> dict[str, Any]:
        """Give what a page shows of it."""
        return {"kind": self.kind, "word": self.old, "new": self.new}


@dataclass(eq=False)
class Sensed(Change):
    """A sensitivity was moved: of a word, or of all where it is None."""

    word: str | None
    before: tuple[float, dict[str, float]]
    after: tuple[float, dict[str, float]]
    kind = "sensitivity"

    def undo(self, spotter: Spotter) -> None:
        """Move it back, unless somebody else moved it since."""
        whose = "of all words" if self.word is None else f'of "{self.word}"'
        left_alone = f"the sensitivity {whose} was changed elsewhere since; it stays as it is"
        if self.word is None:
            if sensitivities(spotter) != self.after:
                raise InputError(left_alone)
            spotter.vocabulary = spotter.vocabulary.with_sensitivities(*self.before)
            return
        spotter.learner.require_taught(self.word)
        after = self.after[1].get(self.word, self.after[0])
        if spotter.vocabulary.sensitivity_of(self.word) != after:
            raise InputError(left_alone)
        common, own = sensitivities(spotter)
        own.pop(self.word, None)
        if self.word in self.before[1]:
            own[self.word] = self.before[1][self.word]
        spotter.vocabulary = spotter.vocabulary.with_sensitivities(common, own)

    def follow(self, old: str, new: str) -> None:
        """Note that a word was renamed."""
        if self.word == old:
            self.word = new
        for _, own in (self.before, self.after):
            if old in own:
                own[new] = own.pop(old)

    def state(self) -> dict[str, Any]:
        """Give what a page shows of it."""
        return {"kind": self.kind, "word": self.word}


def sensitivities(spotter: Spotter) -> tuple[float, dict[str, float]]:
    """Copy the sensitivity of all words, and those of words that have their own."""
    return spotter.vocabulary.sensitivity, spotter.vocabulary.sensitivities


class History:
    """Changes that one page made, oldest first, and the takes among them by number."""

    def __init__(self, limits: Limits = LIMITS):
        self.limits = limits
        self.changes: list[Change] = []
        self.takes: dict[int, Take] = {}
        self._numbers = itertools.count(1)

    def take(self, word: str, taught: Encoded, scored: Encoded | None = None) -> Take:
        """Make a take, which is not in the history yet."""
        return Take(next(self._numbers), word, taught, scored)

    def add(self, change: Change) -> None:
        """Note a change; the oldest is let go where there are too many."""
        last = self.changes[-1] if self.changes else None
        if isinstance(change, Sensed) and isinstance(last, Sensed) and last.word == change.word:
            # A slider moved step by step is moved back at once.
            last.after = change.after
            return
        self.changes.append(change)
        if isinstance(change, Taught):
            self.takes[change.take.number] = change.take
        del self.changes[: -self.limits.changes]
        while len(self.takes) > self.limits.changes:
            del self.takes[next(iter(self.takes))]

    @property
    def last(self) -> Change:
        """The change that is undone next."""
        if not self.changes:
            raise InputError(NOTHING)
        return self.changes[-1]

    def find(self, number: int) -> Take:
        """Take by its number."""
        if number not in self.takes:
            raise InputError(NO_TAKE)
        return self.takes[number]

    def there(self) -> list[Take]:
        """Give the takes that are in the model."""
        # A copy: another thread may add one meanwhile.
        return [take for take in list(self.takes.values()) if take.gone is None]

    def follow(self, old: str, new: str) -> None:
        """Note that a word was renamed."""
        for take in list(self.takes.values()):
            if take.word == old and take.gone in (None, REMOVED):
                take.word = new
        for change in self.changes:
            change.follow(old, new)

    def state(self) -> dict[str, Any]:
        """Give what a page shows: what is undone next, and the takes that are in the model."""
        return {
            "undo": self.changes[-1].state() if self.changes else None,
            "takes": [
                {"id": take.number, "word": take.word, "negative": take.negative}
                for take in self.there()
            ],
        }


class Histories(dict[str, History]):
    """The histories of the latest pages, by the names that the pages gave themselves."""

    def __init__(self, limits: Limits = LIMITS):
        super().__init__()
        self.limits = limits

    def of(self, page: str) -> History:
        """History of a page; a page without a name has one for this once."""
        if not page:
            return History(self.limits)
        # The page that was last seen is the last to be let go.
        self[page] = self.pop(page) if page in self else History(self.limits)
        while len(self) > self.limits.pages:
            del self[next(iter(self))]
        return self[page]

    def follow(self, old: str, new: str) -> None:
        """Note that a word was renamed."""
        for history in list(self.values()):
            history.follow(old, new)

    def there(self) -> list[Take]:
        """Give the takes of all pages that are in the model."""
        return [take for history in list(self.values()) for take in history.there()]
