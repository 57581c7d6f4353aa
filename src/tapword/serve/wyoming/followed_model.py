"""The words a service serves: a model file, read again when somebody taught it more."""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tapword.audio.files import SAMPLE_RATE
from tapword.backbones.base import Backbone
from tapword.errors import TapwordError
from tapword.listening.detector import Detector
from tapword.serve.wyoming.settings import Clients, Settings
from tapword.spotter.spotter import Spotter
from tapword.spotter.watched import WatchedModel

log = logging.getLogger("tapword.serve.wyoming")


class FollowedModel(WatchedModel):
    """A watched model, and its words as they are served.

    Parameters
    ----------
    path, backbones
        As for `WatchedModel`.
    clients
        How the words are heard for each client.

    Attributes
    ----------
    served
        The spotter in use: the last one that could be; replaced, never changed.
    """

    def __init__(
        self,
        path: Path,
        clients: Clients | None = None,
        backbones: Sequence[str | Backbone] | None = None,
    ):
        super().__init__(path, backbones=backbones)
        self.clients = clients or Clients()
        self._serve(self.spotter)

    def detector(self, spotter: Spotter, settings: Settings) -> Detector | None:
        """Make a detector of a spotter's words; None where there are none."""
        words = spotter.words
        if not words:
            return None
        return Detector(
            spotter,
            false_alarms_per_hour=settings.false_alarms_per_hour,
            thresholds={w: score for w, score in settings.thresholds.items() if w in words},
            sensitivities={
                w: value for w, value in settings.sensitivities.items() if w is None or w in words
            },
            refractory_s=settings.refractory_s,
        )

    def look(self) -> bool:
        """Take over what others wrote; where that cannot be used, keep what there is and log it."""
        changed = super().look()
        if changed and self.problem is not None:
            log.error("%s", self.problem)
        elif changed and self.spotter is not self.served:
            try:
                self._serve(self.spotter)
            except TapwordError as error:
                log.error("%s: %s; the words from before stay in use", self.path, error)
            else:
                log.info("%s: %s", self.path, ", ".join(self.served.words) or "no words")
        return changed

    def _serve(self, spotter: Spotter) -> None:
        if self.detector(spotter, self.clients.common) is not None:
            # Make what is made on first use, before threads share it; fail now if it must.
            silence = np.zeros(SAMPLE_RATE, dtype=np.float32)
            encoded = spotter.encoder.encode([silence])
            spotter.encoder.is_noise(encoded.vectors)
            spotter.score_encoded(encoded)
        self.served = spotter
        for word in self.clients.words():
            if spotter.words and word not in spotter.words:
                log.warning("no word %r is taught in %s; its settings wait", word, self.path)
