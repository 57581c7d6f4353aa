"""The model of a home: the service detects its words, and the studio teaches them."""

from typing import Any, NamedTuple

import numpy as np

from tapword.errors import InputError
from tapword.listening.calibration import Calibration
from tapword.serve.studio.history import History, SensitivityChanged, sensitivities
from tapword.serve.studio.listener import speech_of
from tapword.serve.studio.model import Outcome, StudioModel, note_taught
from tapword.serve.wyoming.served_model import ServedModel
from tapword.spotter.encoder import Encoded, Encoder
from tapword.spotter.spotter import Spotter, require_same_parts
from tapword.spotter.vocabulary import clean_new_word


class Vectors(NamedTuple):
    """A sound without its audio: encoded as it is scored and as it is learned.

    `parts` are those of the encoder, because others give other vectors.
    """

    parts: dict[str, Any]
    scored: Encoded
    taught: Encoded


class HomeModel(StudioModel, ServedModel):
    """A model that is served and taught; it can also learn from vectors."""

    def vectors(self, clip: np.ndarray) -> Vectors:
        """Encode a clip (n,) of a word in a stream, cut to its speech if there is any."""
        spotter, speech = self.served, speech_of(clip).audio
        return Vectors(
            _parts(spotter.encoder),
            spotter.encode([speech]),
            spotter.encode([speech], learning=True),
        )

    def correct(self, vectors: Vectors, word: str | None, history: History) -> Outcome:
        """Learn a sound as `word`, or as none of the words if it is None."""
        if word is not None:
            word = clean_new_word(word, self.spotter.words)
        with self._changing:
            with self.edit() as spotter:
                if _parts(spotter.encoder) != vectors.parts:
                    raise InputError(
                        "the model was replaced by another kind since: say the word again",
                        code="entry_other_model",
                    )
                if word is None and not spotter.words:
                    return Outcome(None, [])
                scored = vectors.scored if word is None else None
                take = history.take(word or "", vectors.taught, scored)
                take.learn(spotter)
            note_taught(history, take, spotter)
        return Outcome(take.number, [])

    def calibrate(self, found: Calibration, calibrated: Spotter, history: History) -> None:
        """Set the sensitivities found for `calibrated`, of the words that are still there."""
        with self._changing:
            with self.edit() as spotter:
                require_same_parts(spotter, calibrated)
                before = sensitivities(spotter)
                for word, value in found.after.items():
                    if word in spotter.words:
                        spotter.set_sensitivity(value, word)
                after = sensitivities(spotter)
            history.add(SensitivityChanged(None, before, after, "calibrate"))


def _parts(encoder: Encoder) -> dict[str, Any]:
    # However a clip was augmented, its vector is of the same kind.
    return {name: part for name, part in encoder.stored().items() if name != "augment"}
