"""The model a studio teaches: one file, which other pages and programs change too."""

import os
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tapword.errors import InputError, ModelFileError
from tapword.learners.base import Learner
from tapword.learners.statistics_learner import StatisticsLearner
from tapword.listening.detector import Detector
from tapword.serve.studio.word_map import word_map
from tapword.spotter import modelfile
from tapword.spotter.spotter import Spotter
from tapword.spotter.teaching import Lesson
from tapword.spotter.watched import WatchedModel
from tapword.spotter.words import clean_word


class StudioModel(WatchedModel):
    """A watched model, with what pages ask of it.

    Clips are encoded before the file is locked; under the lock their vectors alone are learned.
    `detector` makes the detector of a spotter's words.
    """

    detector: type[Detector] = Detector
    _lesson: Lesson | None = None

    def learn(self, clip: np.ndarray, word: str) -> list[str]:
        """Learn one clip (n,) float32 of a word; say what may be wrong with it."""
        word = clean_word(word)
        encoder, lesson = self.spotter, self._lesson
        vectors = encoder.vectors([clip], learning=True)
        if (
            lesson is None
            or lesson.word != word
            # A word that was forgotten since is not to be warned of.
            or not lesson.spotter.words.keys() <= encoder.words.keys()
            or not _alike(lesson.spotter, encoder)
        ):
            lesson = self._lesson = Lesson(encoder, word)
        warnings = lesson.warnings(vectors[0])
        with self.edit() as spotter:
            if not _alike(spotter, encoder):
                vectors = spotter.vectors([clip], learning=True)
            spotter.learn_vectors(vectors, [word])
        return warnings

    def reject(self, clip: np.ndarray) -> None:
        """Learn that a clip (n,) float32 was none of the words."""
        encoder = self.spotter
        vector, taught = _both(encoder, clip)
        with self.edit() as spotter:
            if not _alike(spotter, encoder):
                vector, taught = _both(spotter, clip)
            if spotter.words:
                spotter.reject_vector(vector, taught)

    def forget(self, word: str) -> None:
        """Remove a word."""
        self._require_words()
        with self.edit() as spotter:
            spotter.forget(word)

    def rename(self, old: str, new: str) -> None:
        """Give a word another name."""
        self._require_words()
        with self.edit() as spotter:
            spotter.rename(old, new)

    def set_sensitivity(self, word: str, value: float) -> None:
        """Hear a word more readily, or less."""
        self._require_words()
        with self.edit() as spotter:
            spotter.set_sensitivity(value, word)

    def open(self) -> BinaryIO:
        """Open the file as it is; it is replaced whole, so what is read stays what it was."""
        self._require_words()
        try:
            return self.path.open("rb")
        except OSError as error:
            raise ModelFileError(f"cannot read {self.path}: {error.strerror}") from error

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
        with self.edit() as ours:
            if add:
                ours.merge(theirs)
            elif modelfile.revision(self.path) not in (seen, None):
                raise ModelFileError(
                    "the model here was changed meanwhile; look at it again before you replace it"
                )
            else:
                ours.replace_by(theirs)

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
            "has_thresholds": spotter.has_thresholds,
            "state_bytes": learner.state_bytes.total,
            "bytes_per_word": learner.state_bytes.per_word,
            "keeps_vectors": learner.keeps_vectors,
            "trace": _trace(learner),
            "mergeable": learner.mergeable,
        }

    def map(self) -> dict[str, Any]:
        """Give the map of the words, and the revision it is of, ready for JSON."""
        revision, spotter = self.revision, self.spotter
        return {"revision": revision, "points": [point._asdict() for point in word_map(spotter)]}


def _trace(learner: Learner) -> str | None:
    """Say what stays of a word that is forgotten while others are taught; None for nothing."""
    if not learner.keeps_trace:
        return None
    # A shared scatter holds how takes differed from their own mean; training changes other words.
    return "differences" if isinstance(learner, StatisticsLearner) else "changes"


def _both(spotter: Spotter, clip: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vectors (D,) of a clip as it is scored and as it is learned."""
    return spotter.vectors([clip])[0], spotter.vectors([clip], learning=True)[0]


def _alike(one: Spotter, other: Spotter) -> bool:
    """Whether the vectors of one spotter will do for another."""
    try:
        one.require_same_parts(other)
    except InputError:
        return False
    return True
