"""The model file a service follows: read again when somebody taught it more."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tapword import modelfile
from tapword.audio import SAMPLE_RATE
from tapword.detector import Detector
from tapword.errors import ModelFileError, TapwordError
from tapword.spotter import Spotter

log = logging.getLogger("tapword.wyoming")


class Served(NamedTuple):
    """One state of the model; shared by all clients, never changed."""

    spotter: Spotter | None = None
    false_alarms_per_hour: float = 0.5
    thresholds: Mapping[str, float] = {}

    @property
    def words(self) -> list[str]:
        """Words that can be heard."""
        return list(self.spotter.words) if self.spotter else []

    def detector(self) -> Detector | None:
        """Make a detector of these words; None where there are none."""
        if self.spotter is None or not self.spotter.words:
            return None
        return Detector(
            self.spotter,
            false_alarms_per_hour=self.false_alarms_per_hour,
            thresholds={
                word: score for word, score in self.thresholds.items() if word in self.spotter.words
            },
        )


class FollowedModel:
    """A model file, and what it held when it could last be read.

    Parameters
    ----------
    path
        The model file. Where there is none yet, there are no words until it appears.
    false_alarms_per_hour
        As for `Detector`.
    thresholds
        Word -> score from which it counts as said; words may be taught later.

    Attributes
    ----------
    served
        The words in use; replaced as a whole.
    """

    def __init__(
        self,
        path: Path,
        *,
        false_alarms_per_hour: float = 0.5,
        thresholds: Mapping[str, float] | None = None,
    ):
        self.path = path
        self.served = Served(None, false_alarms_per_hour, dict(thresholds or {}))
        self._revision: str | None = None
        # What the file looked like when last looked at, and when last read.
        self._seen = self._read = _signature(path)
        if self._seen is not None:
            self._load()

    def look(self) -> None:
        """Take over what others wrote; where that cannot be read, keep what there is and log it."""
        before, self._seen = self._seen, _signature(self.path)
        # A file that is being copied here changes from look to look until it is whole.
        if self._seen != before or self._seen == self._read:
            return
        self._read = self._seen
        if self._seen is None:
            log.warning("%s is gone; its words stay in use", self.path)
            return
        try:
            if self._load():
                log.info("%s: %s", self.path, ", ".join(self.served.words) or "no words")
        except TapwordError as error:
            log.error("%s; the words from before stay in use", error)

    def _load(self) -> bool:
        """Read the file; say whether it holds something new."""
        revision = modelfile.revision(self.path)
        if revision is not None and revision == self._revision:
            return False
        served = self.served._replace(spotter=self._load_spotter())
        _warm_up(served)
        self.served, self._revision = served, revision
        for word in self.served.thresholds:
            if word not in self.served.words:
                log.warning("no word %r is taught in %s; its threshold waits", word, self.path)
        return True

    def _load_spotter(self) -> Spotter:
        if self.served.spotter is not None:
            try:
                # Backbones are large and stay as they are.
                return Spotter.load(self.path, self.served.spotter.backbones)
            except ModelFileError:
                log.debug("%s has other backbones than before", self.path)
        return Spotter.load(self.path)


def _warm_up(served: Served) -> None:
    """Make what is made on first use, before threads share it; fail now if something is amiss."""
    detector = served.detector()
    if detector is not None:
        silence = np.zeros(SAMPLE_RATE, dtype=np.float32)
        detector.spotter.score_window(silence, dict.fromkeys(detector.thresholds, -np.inf))


def _signature(path: Path) -> tuple[int, ...] | None:
    """Numbers that change whenever a file is written; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
