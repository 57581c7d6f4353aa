"""The model a studio teaches: one file, which other pages and programs change too."""

import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from tapword.backbones.base import Backbone
from tapword.errors import InputError, ModelFileError
from tapword.learners.base import Learner, Row
from tapword.learners.statistics_learner import StatisticsLearner
from tapword.listening.detector import Detector
from tapword.serve.studio.history import (
    ELSEWHERE,
    FORGOTTEN,
    REMOVED,
    Forgotten,
    Histories,
    History,
    Renamed,
    Sensed,
    Take,
    TakenOut,
    Taught,
    sensitivities,
)
from tapword.serve.studio.limits import LIMITS, Limits
from tapword.serve.studio.word_map import word_map
from tapword.spotter import store
from tapword.spotter.encoder import Encoded
from tapword.spotter.session import LATEST, TeachSession
from tapword.spotter.spotter import Spotter
from tapword.spotter.watched import WatchedModel
from tapword.spotter.words import clean_word
from tapword.support.issues import Issue, message


class Outcome(NamedTuple):
    """What came of a take: its number, if it was learned; what may be wrong with it."""

    take: int | None
    warnings: list[str]


class StudioModel(WatchedModel):
    """A watched model, with what pages ask of it.

    Clips are encoded before the file is locked; under the lock their vectors alone are learned.
    `detector` makes the detector of a spotter's words, and `exports` files of them for other
    programs, by their endings. What a page changes goes into its history,
    where it gives one and the learner can take it back.
    """

    detector: type[Detector] = Detector
    _session: TeachSession | None = None

    def __init__(
        self,
        path: Path,
        parts: dict[str, Any] | None = None,
        backbones: Sequence[str | Backbone] | None = None,
        exports: Mapping[str, Callable[[Spotter], bytes]] | None = None,
        limits: Limits = LIMITS,
    ):
        super().__init__(path, parts, backbones)
        self.exports = dict(exports or {})
        self.histories = Histories(limits)
        # Changes of the file and of the histories go together, one after the other.
        self._changing = threading.RLock()
        self._following = threading.Lock()
        self._known = _Known(self.spotter)

    def learn(
        self, clip: np.ndarray, word: str, history: History | None = None, careful: bool = False
    ) -> Outcome:
        """Learn one clip (n,) float32 of a word; where `careful`, not if it may be none of it."""
        word = clean_word(word)
        encoder = self.spotter
        session = self._session_of(encoder, word)
        checked = session.check(clip, word)
        if careful and checked.severity == "doubt":
            return Outcome(None, _messages(checked.issues))
        session.accept(checked)
        issues = [*checked.issues, *session.review()]
        taught = checked.encoded
        history = history or History()
        with self._changing:
            with self.edit() as spotter:
                if not _alike(spotter, encoder):
                    taught = spotter.encode([clip], learning=True)
                take = history.take(word, taught)
                take.teach(spotter)
            _note(history, take, spotter)
        return Outcome(take.number, _messages(issues))

    def _session_of(self, spotter: Spotter, word: str) -> TeachSession:
        session = self._session
        if (
            session is None
            or any(clip.word != word for clip in session.accepted)
            # Nobody is warned of a word that was forgotten.
            or not session.spotter.words.keys() <= spotter.words.keys()
            or not _alike(session.spotter, spotter)
        ):
            session = self._session = TeachSession(spotter, LATEST)
        session.follow(spotter)
        return session

    def reject(self, clip: np.ndarray, history: History | None = None) -> Outcome:
        """Learn that a clip (n,) float32 was none of the words."""
        encoder = self.spotter
        asked, taught = _both(encoder, clip)
        history = history or History()
        with self._changing:
            with self.edit() as spotter:
                if not spotter.words:
                    return Outcome(None, [])
                if not _alike(spotter, encoder):
                    asked, taught = _both(spotter, clip)
                take = history.take("", taught, asked)
                take.teach(spotter)
            _note(history, take, spotter)
        return Outcome(take.number, [])

    def remove(self, number: int, history: History) -> None:
        """Take a learned take out again."""
        take = history.find(number)
        with self._changing:
            with self.edit() as spotter:
                last = not take.negative and spotter.words.get(take.word) == 1
                part = spotter.part(take.word) if last else None
                take.take_out(spotter)
            take.gone = REMOVED
            history.add(TakenOut(take, part))

    def forget(self, word: str, history: History | None = None) -> None:
        """Remove a word."""
        self._require_words()
        word = clean_word(word)
        with self._changing:
            with self.edit() as spotter:
                gives_back = spotter.learner.mergeable and word in spotter.words
                part = spotter.part(word) if gives_back else None
                spotter.forget(word)
            gone = [take for take in self.histories.there() if take.word == word]
            for take in gone:
                take.gone = FORGOTTEN
            if part is not None and history is not None:
                history.add(Forgotten(word, part, gone))

    def rename(self, old: str, new: str, history: History | None = None) -> None:
        """Give a word another name."""
        self._require_words()
        old, new = clean_word(old), clean_word(new)
        with self._changing:
            with self.edit() as spotter:
                spotter.rename(old, new)
            self.histories.follow(old, new)
            if history is not None and old != new:
                history.add(Renamed(old, new))

    def set_sensitivity(
        self, word: str | None, value: float, history: History | None = None
    ) -> None:
        """Hear a word more readily, or less; all of them where it is None."""
        self._require_words()
        word = None if word is None else clean_word(word)
        with self._changing:
            with self.edit() as spotter:
                before = sensitivities(spotter)
                spotter.set_sensitivity(value, word)
                after = sensitivities(spotter)
            if history is not None:
                history.add(Sensed(word, before, after))

    def undo(self, history: History) -> None:
        """Take back the last change of a page, in the file as it is now.

        A change that cannot be taken back, because others changed the same, is let go.
        """
        with self._changing:
            change = history.last
            try:
                with self.edit() as spotter:
                    change.undo(spotter)
            except InputError:
                history.changes.remove(change)
                raise
            history.changes.remove(change)
            change.undone()
            if isinstance(change, Renamed):
                self.histories.follow(change.new, change.old)

    @contextmanager
    def edit(self) -> Iterator[Spotter]:
        """Change the file under its lock; takes that others removed from it are noted before."""
        before = None
        try:
            with super().edit() as spotter:
                self._follow(spotter)
                before = self._known
                yield spotter
                # Before it is written: whoever looks at the file then finds what is known of it.
                self._known = _Known(spotter)
        except BaseException:
            self._known = before or self._known
            raise

    def look(self) -> bool:
        """Take over what others wrote since; say whether anything changed."""
        changed = super().look()
        if changed:
            self._follow(self.spotter)
        return changed

    def _follow(self, spotter: Spotter) -> None:
        """Note which takes cannot be in the model any more, after what others did to it."""
        with self._following:
            now = _Known(spotter)
            lost = self._known.lost(now)
            self._known = now
        for take in self.histories.there():
            if Row(take.word, take.negative) in lost:
                take.gone = ELSEWHERE

    def open(self) -> BinaryIO:
        """Open the file as it is; it is replaced whole, so what is read stays what it was."""
        self._require_words()
        try:
            return self.path.open("rb")
        except OSError as error:
            raise ModelFileError(f"cannot read {self.path}: {error.strerror}") from error

    def export(self, kind: str) -> bytes:
        """Make a file for other programs of the words as they are taught now."""
        self._require_words()
        return self.exports[kind](self.spotter)

    def upload(self, content: bytes, add: bool, seen: str | None) -> None:
        """Take over a model file from elsewhere: add its words, or replace the revision `seen`.

        Its backbone must be the one in use: nothing else that it names is looked for on this
        machine. A revision that was not seen is not replaced.
        """
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "uploaded.tap"
            path.write_bytes(content)
            try:
                theirs = Spotter.load(path, self.spotter.backbones)
            except ModelFileError as error:
                raise ModelFileError(str(error).replace(str(path), "the uploaded file")) from None
        with self._changing:
            with self.edit() as ours:
                if add:
                    ours.merge(theirs)
                elif store.revision(self.path) not in (seen, None):
                    raise ModelFileError(
                        "the model here was changed meanwhile; look at it again before you "
                        "replace it"
                    )
                else:
                    ours.replace_by(theirs)
            for take in [] if add else self.histories.there():
                take.gone = ELSEWHERE

    def _require_words(self) -> None:
        if self.revision is None and not os.path.lexists(self.path):
            raise InputError("nothing is taught yet, so there is no model file")

    def state(self) -> dict[str, Any]:
        """Everything a page shows of the model but the map, ready for JSON."""
        # Another thread may replace the spotter meanwhile.
        revision, spotter = self.revision, self.spotter
        learner, negatives = spotter.learner, spotter.negatives
        return {
            "file": self.path.name,
            "revision": revision,
            "problem": self.problem,
            "words": [
                {
                    "word": word,
                    "count": n,
                    "negatives": negatives.get(word, 0),
                    "sensitivity": spotter.sensitivity_of(word),
                }
                for word, n in spotter.words.items()
            ],
            "sensitivity": spotter.sensitivity,
            "has_thresholds": spotter.has_thresholds,
            "state_bytes": learner.state_bytes.total,
            "bytes_per_word": learner.state_bytes.per_word,
            "keeps_vectors": learner.keeps_vectors,
            "trace": _trace(learner),
            "mergeable": learner.mergeable,
            "exports": list(self.exports),
        }

    def map(self) -> dict[str, Any]:
        """Give the map of the words, and the revision it is of, ready for JSON."""
        revision, spotter = self.revision, self.spotter
        return {"revision": revision, "points": [point._asdict() for point in word_map(spotter)]}


class _Known:
    """What is known of a model's rows, to tell whether others took samples out of one."""

    def __init__(self, spotter: Spotter):
        self.spotter = spotter
        learner = spotter.learner
        self.counts = {Row(word): n for word, n in learner.words.items()}
        self.counts |= {Row(word, True): n for word, n in learner.negatives.items()}
        self.means: dict[Row, np.ndarray] = {}
        if isinstance(learner, StatisticsLearner) and learner.dim is not None:
            self.means = dict(zip(learner.rows, learner.statistics.means, strict=True))

    def lost(self, now: "_Known") -> set[Row]:
        """Rows of which something is gone: they are not there, or have fewer samples, or others."""
        if not _alike(self.spotter, now.spotter):
            return set(self.counts)
        return {
            row
            for row, count in self.counts.items()
            if now.counts.get(row, 0) < count
            or (
                now.counts[row] == count
                and row in self.means
                and not np.allclose(self.means[row], now.means[row], rtol=1e-4, atol=1e-5)
            )
        }


def _note(history: History, take: Take, spotter: Spotter) -> None:
    """Note a take in a history, where the learner could take it out again."""
    if spotter.learner.mergeable:
        history.add(Taught(take))


def _trace(learner: Learner) -> str | None:
    """Say what stays of a word that is forgotten while others are taught; None for nothing."""
    if not learner.keeps_trace:
        return None
    # A shared scatter holds how takes differed from their own mean; training changes other words.
    return "differences" if isinstance(learner, StatisticsLearner) else "changes"


def _messages(issues: Sequence[Issue]) -> list[str]:
    return list(dict.fromkeys(map(message, issues)))


def _both(spotter: Spotter, clip: np.ndarray) -> tuple[Encoded, Encoded]:
    """Encode a clip as it is scored and as it is learned."""
    return spotter.encode([clip]), spotter.encode([clip], learning=True)


def _alike(one: Spotter, other: Spotter) -> bool:
    """Whether the vectors of one spotter will do for another."""
    try:
        one.require_same_parts(other)
    except InputError:
        return False
    return True
