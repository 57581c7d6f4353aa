"""What the C code is told of how a stream is listened to: the rules of `tapword.listening`."""

import math
from typing import Any

from tapword.audio.align import MARGIN_S
from tapword.audio.files import SAMPLE_RATE
from tapword.backbones.tapword_ear import HOP
from tapword.export.c.ear import ear_floats
from tapword.export.c.tables import Tables
from tapword.listening.decider import BEYOND_S, REFRACTORY_S, RISE_SCORE, SHARED_S
from tapword.listening.detector import CLOSE_SCORE, LATE_S, SEGMENT_SCORE, SILENCE_S
from tapword.listening.phrases import STEP_S, Grid
from tapword.listening.segmenter import FLOOR, HALF, SEARCH, STEPS_PER_S, Segmenter, steps
from tapword.spotter import lengths
from tapword.spotter.lengths import CLIP_S, LONGEST_S
from tapword.spotter.spotter import Spotter

# The interface, then files of C in their order.
LISTENING = ["listener.h", "segment.h", "decide.h", "phrases.h", "listen.h"]
# Words that wait for a phrase that may hold them: they come this often at most, and a window begins
# half a second before its centre.
WAITING = math.ceil((LONGEST_S + LATE_S + STEP_S + 0.5) / REFRACTORY_S) + 1


def add_listening(tables: Tables, spotter: Spotter, hears: bool) -> dict[str, Any]:
    """Add what a listener needs; give what the C code is told by #define.

    `hears`: whether the ear is in the header. Streams are listened to where it is, and where
    thresholds are known.
    """
    if not hears or not spotter.has_thresholds:
        return {"LISTEN": 0}
    grid = Grid.of(HOP)
    beside = [steps(ms) for ms in SEARCH.offsets_ms]
    tables.add("tapword_stretches", grid.lengths, "uint16")
    return {
        "LISTEN": 1,
        "SAMPLE_RATE": SAMPLE_RATE,
        "CLIP_S": CLIP_S,
        "SEARCH_HALF": HALF,
        "SEARCH_NEAR": steps(SEARCH.near_ms),
        "SEARCH_APART": steps(SEARCH.apart_ms),
        "SEARCH_APART_IN_CROWD": steps(SEARCH.apart_with_neighbours_ms),
        "SEARCH_BESIDE": ", ".join(map(str, beside)),
        "SEARCH_BESIDES": len(beside),
        "SEARCH_FARTHEST": max(beside),
        "SEARCH_ALONE_DB": f"({SEARCH.neighbour_db})",
        "SEARCH_GATE_DB": SEARCH.gate_db,
        "SEARCH_SILENCE_DB": f"({SEARCH.silence_db})",
        "SEARCH_FLOOR": FLOOR,
        "SEARCH_FLOOR_RISE_DB": SEARCH.floor_rise_db_per_s / STEPS_PER_S,
        "SEARCH_LOUD": 10 ** (-SEARCH.extent_db / 10),
        "SEARCH_FLUSH": Segmenter().flush_samples,
        "REFRACTORY_S": REFRACTORY_S,
        "RISE_SCORE": f"{RISE_SCORE}f",
        "CLOSE_SCORE": f"{CLOSE_SCORE}f",
        "WAITING": WAITING,
        "PHRASE_PRIOR": lengths.PRIOR,
        "PHRASE_SPREAD": lengths.SIGMA,
        "PHRASE_REACH": lengths.N_SIGMAS,
        "PHRASE_LEAST_REACH": lengths.MIN_RATIO,
        "PHRASE_LONGEST_S": LONGEST_S,
        "PHRASE_MARGIN_S": MARGIN_S,
        "PHRASE_SILENCE": round(SILENCE_S * STEPS_PER_S),
        "PHRASE_LATE_S": LATE_S,
        "PHRASE_BEYOND_S": BEYOND_S,
        "PHRASE_SHARED_S": SHARED_S,
        "STRETCHES": len(grid.lengths),
        "STRETCH_STEP": grid.step,
        "STRETCH_APART": grid.apart,
        "STRETCH_LEAD": grid.lead,
        "STRETCH_SCORE": f"{SEGMENT_SCORE}f",
        "STRETCH_LONGEST": grid.lengths[-1],
    }


def listener_bytes(settings: dict[str, Any]) -> int:
    """Bytes of the structure in listener.h, where a double is aligned to 8 bytes."""
    half, apart, farthest = (settings[f"SEARCH_{x}"] for x in ("HALF", "APART", "FARTHEST"))
    steps_kept = 2 * half + apart + 2 * farthest
    frames = settings["STRETCH_LONGEST"] + settings["STRETCH_STEP"]
    samples = max(frames * settings["EAR_HOP"], steps_kept * settings["HOP"])
    unclear = 2 * (farthest + 1)
    said = 16 + -(-(8 + settings["NAME_BYTES"]) // 8) * 8
    longs = 4 + 4 + steps_kept + 2 + unclear
    words = ear_floats(settings) + frames * settings["FRAME"] + 4 + 7
    size = 8 * longs + (3 + 2 * settings["WAITING"]) * said + 4 * words
    size += 2 * samples + settings["MAX_WORDS"]
    return -(-size // 8) * 8
