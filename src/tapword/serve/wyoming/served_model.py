"""The model that a service serves, read again when it changes."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tapword.audio.files import SAMPLE_RATE
from tapword.backbones.base import Backbone
from tapword.errors import TapwordError
from tapword.serve.wyoming.settings import Clients
from tapword.spotter.spotter import Spotter
from tapword.spotter.watched import WatchedModel

log = logging.getLogger("tapword.serve.wyoming")


class ServedModel(WatchedModel):
    """A watched model whose words are served only if clients can use them.

    Parameters
    ----------
    path, backbones, parts
        As for `WatchedModel`.
    clients
        Settings of each client.

    Attributes
    ----------
    served
        The spotter in use: the last one that clients could use; replaced, never changed.
    """

    def __init__(
        self,
        path: Path,
        clients: Clients | None = None,
        backbones: Sequence[str | Backbone] | None = None,
        parts: dict[str, Any] | None = None,
    ):
        super().__init__(path, parts, backbones)
        self.clients = clients or Clients()
        self._serve(self.spotter)

    def refresh(self) -> bool:
        """Read the file if it changed; where it cannot be used, log why and keep the old words."""
        changed = super().refresh()
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
        if spotter.words:
            # Fail now where a detector would, and compute what is computed on first use before
            # threads share it.
            self.clients.common.detector(spotter)
            silence = np.zeros(SAMPLE_RATE, dtype=np.float32)
            encoded = spotter.encoder.encode([silence])
            spotter.encoder.is_noise(encoded.vectors)
            spotter.score_encoded(encoded)
        self.served = spotter
        for word in self.clients.words():
            if spotter.words and word not in spotter.words:
                log.warning("%r is not in %s; its settings wait until it is", word, self.path)
