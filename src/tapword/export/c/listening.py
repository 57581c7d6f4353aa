"""Macros of the listener in C: the rules of `tapword.listening`."""

import math
from typing import Any

from tapword.audio.align import MARGIN_S
from tapword.audio.files import SAMPLE_RATE
from tapword.backbones.tapword_ear import HOP
from tapword.export.c.tables import Tables
from tapword.listening.decider import BEYOND_S, REFRACTORY_S, RISE_SCORE, SHARED_S
from tapword.listening.detector import (
    CLOSE_SCORE,
    LATE_S,
    SEGMENT_SCORE,
    SILENCE_S,
)
from tapword.listening.frames import known_hops, lag
from tapword.listening.phrases import MARGIN_HOPS, STEP_S, Grid
from tapword.listening.segmenter import (
    FLOOR,
    HALF,
    PATIENCE,
    SEARCH,
    STEPS_PER_S,
    Segmenter,
    steps,
)
from tapword.spotter import vocabulary
from tapword.spotter.spotter import Spotter
from tapword.spotter.vocabulary import CLIP_S, LONGEST_S

# Words that wait for a phrase that may hold them: they come this often at most, and a window begins
# half a second before its centre.
WAITING = math.ceil((LONGEST_S + LATE_S + STEP_S + 0.5) / REFRACTORY_S) + 1


def add_listening(tables: Tables, spotter: Spotter, hears: bool) -> dict[str, Any]:
    """Add what a listener needs; give its macros.

    `hears`: whether the ear is in the header. Streams are listened to where it is, and where
    thresholds are known.
    """
    if not hears or not spotter.has_thresholds:
        return {"HAS_LISTENER": 0}
    backbone, grid = spotter.encoder.backbones[0], Grid.of(HOP)
    late, silence_s = 0, SILENCE_S
    if backbone.streams:
        late = lag(backbone)
        silence_s += (backbone.latency - MARGIN_HOPS) * HOP / SAMPLE_RATE
    segmenter, offsets = Segmenter(lag=late), [steps(ms) for ms in SEARCH.offsets_ms]
    tables.add("tapword_segment_hops", grid.lengths, "uint16")
    return {
        "HAS_LISTENER": 1,
        "STREAMS": int(backbone.streams),
        "CLIP_S": CLIP_S,
        "SEARCH_HALF": HALF,
        "SEARCH_NEAR": steps(SEARCH.near_ms),
        "SEARCH_APART": steps(SEARCH.apart_ms),
        "SEARCH_APART_CROWDED": steps(SEARCH.apart_with_neighbours_ms),
        "SEARCH_OFFSETS": ", ".join(map(str, offsets)),
        "SEARCH_OFFSET_COUNT": len(offsets),
        "SEARCH_OFFSET_SPACING": segmenter.spacing,
        "SEARCH_PATIENCE": PATIENCE,
        "SEARCH_MAX_OFFSET": max(offsets),
        "SEARCH_ALONE_DB": SEARCH.neighbour_db,
        "SEARCH_GATE_DB": SEARCH.gate_db,
        "SEARCH_SILENCE_DB": SEARCH.silence_db,
        "SEARCH_FLOOR": FLOOR,
        "SEARCH_FLOOR_RISE_DB": SEARCH.floor_rise_db_per_s / STEPS_PER_S,
        "SEARCH_LOUD": 10 ** (-SEARCH.extent_db / 10),
        "SEARCH_LAG": late,
        "SEARCH_KNOWN": known_hops(HOP),
        "SEARCH_FLUSH": segmenter.flush_samples,
        "REFRACTORY_S": REFRACTORY_S,
        "RISE_SCORE": f"{RISE_SCORE}f",
        "CLOSE_SCORE": f"{CLOSE_SCORE}f",
        "WAITING": WAITING,
        "PHRASE_PRIOR": vocabulary.LENGTH_PRIOR,
        "PHRASE_SPREAD": vocabulary.LENGTH_SIGMA,
        "PHRASE_SIGMAS": vocabulary.N_SIGMAS,
        "PHRASE_MIN_RATIO": vocabulary.MIN_RATIO,
        "PHRASE_LONGEST_S": LONGEST_S,
        "PHRASE_MARGIN_S": MARGIN_S,
        "PHRASE_SILENCE": round(silence_s * STEPS_PER_S),
        "PHRASE_LATE_S": LATE_S,
        "PHRASE_BEYOND_S": BEYOND_S,
        "PHRASE_SHARED_S": SHARED_S,
        "SEGMENTS": len(grid.lengths),
        "SEGMENT_STEP": grid.spacing if backbone.streams else grid.step,
        "SEGMENT_APART": grid.spacing,
        "SEGMENT_MARGIN": MARGIN_HOPS,
        "SEGMENT_LEAD": grid.lead,
        "SEGMENT_SCORE": f"{SEGMENT_SCORE}f",
        "SEGMENT_LONGEST": grid.lengths[-1],
    }
