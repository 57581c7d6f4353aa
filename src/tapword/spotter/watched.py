"""A model file that other programs may change while this one uses it.

The words that were read stay in use until a complete new file is there.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tapword.backbones.base import Backbone
from tapword.errors import ModelFileError, TapwordError
from tapword.spotter import store
from tapword.spotter.spotter import Spotter


class WatchedModel:
    """A model file, and the spotter it contained when it could last be read.

    Parameters
    ----------
    path
        The model file. Without one there are no words until it appears.
    parts
        Arguments of `Spotter`, if there is no file.
    backbones
        Override where the model's backbones are loaded from, as for `Spotter.load`.

    Attributes
    ----------
    spotter
        Content of the file; replaced, never changed.
    revision
        Revision of the file; None if there was none yet.
    problem
        Why the file cannot be used now, if so.
    """

    def __init__(
        self,
        path: Path,
        parts: dict[str, Any] | None = None,
        backbones: Sequence[str | Backbone] | None = None,
    ):
        self.path = path
        self.parts = parts or {}
        self.backbones = backbones
        self.problem: str | None = None
        self._refreshing = threading.Lock()
        self._seen = _signature(path)
        # Whether the file may still be being copied.
        self._unfinished = False
        self.revision = store.revision(path)
        if self.revision is None:
            self.spotter = Spotter(**self.parts)
        else:
            self.spotter = Spotter.load(path, backbones)

    def refresh(self) -> bool:
        """Load what other programs wrote since; return whether anything changed."""
        with self._refreshing:
            before, self._seen = self._seen, _signature(self.path)
            if self._seen == before and not self._unfinished:
                return False
            known = self.revision, self.problem
            try:
                self._read()
            except Exception as error:
                # No file may stop the watching.
                reason = str(error) if isinstance(error, TapwordError) else repr(error)
                # A file that is being copied changes until it is complete. One that stopped
                # changing and still cannot be read is broken.
                self._unfinished = self._seen != before
                if not self._unfinished:
                    self.problem = f"{reason}; the words from before stay in use"
            return (self.revision, self.problem) != known

    def _read(self) -> None:
        """Read the file, if it is there and new."""
        if self._seen is None:
            gone = f"{self.path} is gone; its words stay in use"
            self.problem = None if self.revision is None else gone
        else:
            revision = store.revision(self.path)
            if revision != self.revision:
                self.spotter, self.revision = self._load(), revision
            self.problem = None
        self._unfinished = False

    def _load(self) -> Spotter:
        try:
            # Backbones are large and rarely change.
            return Spotter.load(self.path, self.spotter.encoder.backbones)
        except ModelFileError:
            return Spotter.load(self.path, self.backbones)

    @contextmanager
    def edit(self) -> Iterator[Spotter]:
        """Change the file under its lock, so nothing that others taught is lost.

        A file that is gone is written again, with the words that are still in use.
        """
        self.refresh()
        if os.path.lexists(self.path):
            with Spotter.edit(self.path, self.spotter.encoder.backbones) as spotter:
                yield spotter
        elif self.revision is None:
            with Spotter.edit(self.path, **self.parts) as spotter:
                yield spotter
        else:
            spotter = self.spotter.copy()
            yield spotter
            spotter.save(self.path)
        self.refresh()


def _signature(path: Path) -> tuple[int, ...] | None:
    """Numbers that change with a file's content or permissions; None without a file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_size, found.st_mode
