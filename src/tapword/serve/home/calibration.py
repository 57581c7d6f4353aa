"""Calibrate the words of a home by the sound of one of its satellites."""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

from tapword.errors import InputError, TapwordError
from tapword.listening import calibration
from tapword.listening.calibration import Calibration, Calibrator
from tapword.serve.home.model import HomeModel
from tapword.serve.studio.history import History
from tapword.serve.studio.sockets import error_message
from tapword.serve.wyoming.audio import ConvertedChunk

log = logging.getLogger("tapword.serve.home")

# It ends by itself after this much sound, or after this long: meanwhile the satellite is deaf.
ENOUGH_SOUND_S, MOST_S = 600.0, 3600.0


class RunningCalibration:
    """One calibration, from its start to its result. It holds scores, no sound.

    Parameters
    ----------
    model
        What is calibrated.
    history
        Of the page that started it, which can undo it.
    changed
        Called when the model changed, from any thread.

    Attributes
    ----------
    result
        None while it runs; then what a page shows of it, ready for JSON.
    """

    def __init__(self, model: HomeModel, history: History, changed: Callable[[], None]):
        self.result: dict[str, Any] | None = None
        self._model = model
        self._history = history
        self._changed = changed
        # Fails now if the model cannot be calibrated.
        self._calibrator = Calibrator(model.spotter)
        self._lock = threading.Lock()

    @property
    def running(self) -> bool:
        """Whether it has no result yet."""
        return self.result is None

    def push(self, chunks: Sequence[ConvertedChunk]) -> None:
        """Score the next chunks; end where there were enough."""
        with self._lock:
            if not self.running:
                return
            try:
                self._push(chunks)
            except TapwordError as error:
                self.result = error_message(error)
            except Exception as error:
                # The satellite is answered all the same.
                log.exception("a calibration failed")
                self.result = {"error": f"unexpected error: {type(error).__name__}: {error}"}
            ended = not self.running
        if ended:
            self._changed()

    def _push(self, chunks: Sequence[ConvertedChunk]) -> None:
        calibrator = self._calibrator
        for chunk in chunks:
            if chunk.lost_s is not None:
                calibrator.gap(chunk.lost_s)
            calibrator.push(chunk.audio)
        if calibrator.sound_s >= ENOUGH_SOUND_S or calibrator.length_s >= MOST_S:
            self._end()

    def finish(self) -> None:
        """Set the sensitivities; refuse while there was too little sound."""
        with self._lock:
            if self.running:
                self._end()
        self._changed()

    def _end(self) -> None:
        self._calibrator.end_recording()
        found = self._calibrator.result()
        self._model.calibrate(found, self._calibrator.spotter, self._history)
        self.result = _shown(found)

    def state(self) -> dict[str, Any]:
        """Give what a page shows of it, ready for JSON."""
        return {
            "sound_s": self._calibrator.sound_s,
            "needed_s": calibration.MIN_SOUND_S,
            "result": self.result,
        }


def _shown(found: Calibration) -> dict[str, Any]:
    return {
        "minutes": round(60 * found.sound_hours, 1),
        "words": [
            {
                "word": word,
                "before": round(found.before[word], 2),
                "after": round(found.after[word], 2),
                "alarms_before": found.alarms_before[word],
                "alarms_after": found.alarms_after[word],
            }
            for word in found.after
        ],
    }


def require_none_running(calibrations: Sequence[RunningCalibration | None]) -> None:
    """Refuse a calibration while another runs: the last one would replace its sensitivities."""
    if any(one is not None and one.running for one in calibrations):
        raise InputError(
            "another satellite is being calibrated: finish or cancel that first",
            code="calibration_runs",
        )
