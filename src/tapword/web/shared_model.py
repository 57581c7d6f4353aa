"""A model file that several tabs and other programs change: whoever changes it, all see it."""

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tapword import modelfile
from tapword.errors import InputError, ModelFileError, TapwordError
from tapword.spotter import Spotter
from tapword.web.word_map import word_map


class SharedModel:
    """The model file behind a studio, and the spotter it holds at this moment.

    Parameters
    ----------
    path
        The model file; made by the first word taught, where there is none.
    parts
        What to make a new spotter of.

    Attributes
    ----------
    spotter
        What the file held when it was last looked at; replaced, never changed.
    revision
        Which writing of the file that was; None where there is no file.
    problem
        Why the file cannot be used now; None where it can.
    """

    def __init__(self, path: Path, parts: dict[str, Any] | None = None):
        self.path = path
        self.parts = parts or {}
        self.revision = modelfile.revision(path)
        self.spotter = Spotter(**self.parts) if self.revision is None else Spotter.load(path)
        self.problem: str | None = None
        self._seen: tuple[int, ...] | None = None
        self._looking = threading.Lock()
        self._state = self._describe()

    def look(self) -> bool:
        """Take over what others wrote since; say whether anything changed."""
        with self._looking:
            seen = _signature(self.path)
            if seen == self._seen:
                return False
            self._seen = seen
            before = (self.revision, self.problem)
            try:
                revision = modelfile.revision(self.path)
                if revision != self.revision or self.problem is not None:
                    self.spotter = self._load() if revision else Spotter(**self.parts)
                self.revision, self.problem = revision, None
            except TapwordError as error:
                self.revision, self.problem = None, str(error)
            if (self.revision, self.problem) == before:
                return False
            self._state = self._describe()
            return True

    def _load(self) -> Spotter:
        try:
            return Spotter.load(self.path, self.spotter.backbones)
        except ModelFileError:
            # Somebody may have put a model of other backbones there.
            return Spotter.load(self.path)

    @contextlib.contextmanager
    def edit(self) -> Iterator[Spotter]:
        """Change the file under its lock, so that nothing others taught is lost."""
        if os.path.lexists(self.path):
            with Spotter.edit(self.path, self.spotter.backbones) as spotter:
                yield spotter
        else:
            with Spotter.edit(self.path, **self.parts) as spotter:
                yield spotter
        self.look()

    def learn(self, audio: np.ndarray, word: str) -> None:
        """Learn one clip (n,) float32 of a word."""
        with self.edit() as spotter:
            spotter.learn(audio, word)

    def reject(self, audio: np.ndarray) -> None:
        """Learn that a clip (n,) float32 was none of the words."""
        with self.edit() as spotter:
            spotter.reject(audio)

    def forget(self, word: str) -> None:
        """Remove a word."""
        self._require_file()
        with self.edit() as spotter:
            spotter.forget(word)

    def rename(self, old: str, new: str) -> None:
        """Give a word another name."""
        self._require_file()
        with self.edit() as spotter:
            spotter.rename(old, new)

    def content(self) -> bytes:
        """Give the file as it is; it is replaced whole, so never half of it."""
        self._require_file()
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise ModelFileError(f"cannot read {self.path}: {error.strerror}") from error

    def upload(self, content: bytes, add: bool, seen: str | None) -> None:
        """Take over a model file from elsewhere.

        Parameters
        ----------
        content
            A model file's bytes. Its backbone must be the one in use: nothing else that it names
            is looked for on this machine.
        add
            Add its words to those here, instead of replacing them.
        seen
            The revision that is to be replaced; another one is refused.
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
                return
            if modelfile.revision(self.path) != seen:
                raise ModelFileError(
                    "the model here was changed meanwhile; look at it again before you replace it"
                )
            for name, value in vars(theirs).items():
                if not name.startswith("_"):
                    setattr(ours, name, value)

    def _require_file(self) -> None:
        if not os.path.lexists(self.path):
            raise InputError("nothing is taught yet, so there is no model file")

    def state(self) -> dict[str, Any]:
        """Everything a page shows of the model, ready for JSON; made once for each change."""
        return self._state

    def _describe(self) -> dict[str, Any]:
        spotter, learner = self.spotter, self.spotter.learner
        size, rejected = learner.state_bytes, spotter.rejected
        return {
            "file": self.path.name,
            "revision": self.revision,
            "problem": self.problem,
            "words": [
                {"word": word, "count": n, "rejected": rejected.get(word, 0)}
                for word, n in spotter.words.items()
            ],
            "state_bytes": size.total,
            "bytes_per_word": size.per_word,
            "keeps_vectors": learner.keeps_vectors,
            "mergeable": learner.mergeable,
            "map": word_map(spotter),
        }


def _signature(path: Path) -> tuple[int, ...] | None:
    """Numbers that change whenever a file is replaced; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
