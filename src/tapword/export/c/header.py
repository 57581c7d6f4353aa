"""A spotter as one C99 header that goes on learning."""

import re
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

from tapword.audio import align
from tapword.audio.align import MARGIN_S
from tapword.audio.files import PEAK_LIMIT
from tapword.backbones import logmel
from tapword.backbones.base import Backbone
from tapword.backbones.tapword_ear import TapwordEar
from tapword.errors import InputError
from tapword.export.c import state as states
from tapword.export.c.copies import add_copies
from tapword.export.c.ear import add_ear, ear_floats
from tapword.export.c.listening import LISTENING, add_listening, listener_bytes
from tapword.export.c.tables import Tables, quote
from tapword.export.onnx import frames
from tapword.learners import base
from tapword.learners.packed import RAISES, packed_size
from tapword.learners.ridge import MAX_SHRINKAGE
from tapword.learners.statistics_learner import StatisticsLearner
from tapword.poolings.attentive import VARIANCE_FLOOR, WORD, Attentive
from tapword.poolings.base import Pooling
from tapword.poolings.tap import CONSTANT
from tapword.spotter.cohort import NEAREST
from tapword.spotter.encoder import NOISE_COSINE, block_poolings
from tapword.spotter.lengths import PHRASE, Length
from tapword.spotter.model_header import MAX_LOG_LENGTH
from tapword.spotter.spotter import Spotter
from tapword.spotter.thresholds import (
    FALSE_ALARMS_PER_HOUR,
    MAX_RATE_RATIO,
    tail_band,
)
from tapword.spotter.whitening import weights
from tapword.version import __version__

# Longest recording that is aligned, in steps of 10 ms: 5 s, a long phrase with a second around it.
MAX_STEPS = 500
# Room for a word's name, unless a longer one is taught already.
NAME_BYTES = 64
# Kinds of poolings in the C code.
MOMENT, DEVIATION, LARGEST, MIDDLE, LOOK = range(5)
# Samples of the longest clip.
LONGEST = frames.MAX + 2 * frames.MARGIN

# Pooling -> its kind; its number, of moments, frames or looks; and of how many frames a second is
# where longer clips are pooled in another way, 0 where they are not.
POOLINGS: dict[str, Callable[[Any], tuple[int, int, int]]] = {
    "avg": lambda pooling: (MOMENT, 1, 0),
    "attentive": lambda pooling: (LOOK, len(pooling.centers), pooling.frame_rate or 0),
    "max": lambda pooling: (LARGEST, 1, 0),
    "middle": lambda pooling: (MIDDLE, pooling.n, pooling.frame_rate or 0),
    "tap": lambda pooling: (MOMENT, pooling.R, 0),
    "tsdp": lambda pooling: (DEVIATION, 2, 0),
    "tstp": lambda pooling: (MOMENT, 2, 0),
}
# Learner -> what its rule in C is told by #define.
RULES: dict[str, Callable[[Any, int], dict[str, Any]]] = {
    "cosine": lambda learner, dim: {
        "STRENGTH": learner.strength * dim,
        "VARIANCES": int(learner.prior == "diagonal"),
    },
    "slda": lambda learner, dim: {
        "EPS": float(learner.eps),
        "STRENGTH": 0.0 if learner.prior == "none" else learner.strength * dim,
        "VARIANCES": int(learner.prior == "diagonal"),
        "REFERENCE": int(learner.variant == "reference"),
    },
    "ridge": lambda learner, dim: {
        "BALANCED": int(learner.balanced),
        "OAS_TIMES": learner.oas_times,
        "MAX_SHRINKAGE": MAX_SHRINKAGE,
        "LAM": float(learner.lam or 0.0),
    },
    "ncm": lambda learner, dim: {},
}


class Header(NamedTuple):
    """A header's text, bytes of its constant tables (code comes on top) and of its structures."""

    text: str
    flash_bytes: int
    ram_bytes: int
    # Of a stream that is listened to; 0 where the header cannot.
    listener_bytes: int
    # What the device needs beside the header, where that was asked for.
    weights: bytes | None


def build(
    spotter: Spotter, max_words: int = 50, eight_bits: bool = False, apart: bool = False
) -> Header:
    """Write a spotter as it is taught now.

    Parameters
    ----------
    spotter
        With words or without; one backbone (tapword_ear, speech_embedding or logmel), and a learner
        whose state is the shared statistic: cosine, slda, ridge or ncm.
    max_words
        Words that the device has room for; negatives of a word count as one more.
    eight_bits
        The ear in weights and activations of 8 bits, instead of 16 and floats.
    apart
        With these weights, and windows of running speech, in a file of their own.
    """
    if len(spotter.encoder.backbones) != 1:
        raise InputError(
            f"a C header takes one backbone, the model has {len(spotter.encoder.backbones)}"
        )
    [backbone] = spotter.encoder.backbones
    learner = spotter.learner
    if max_words < len(learner.rows):
        raise InputError(
            f"max_words must be at least {len(learner.rows)}, the words taught (negatives of a "
            f"word count as one more); got {max_words}"
        )
    files, settings = _rule(spotter)
    [pooling], aligned = spotter.encoder.poolings, spotter.encoder.preparation.align
    poolings = block_poolings(pooling, backbone, aligned)
    room = max([NAME_BYTES, *(len(states.name(row).encode()) + 1 for row in learner.rows)])
    settings |= _settings(spotter) | {"MAX_WORDS": max_words, "NAME_BYTES": room}
    if apart and not eight_bits:
        raise InputError("only weights of 8 bits are written to a file of their own")
    tables = Tables(packed=eight_bits, apart=apart)
    tables.add("tapword_widths", backbone.dims, np.uint16, shared=True)
    settings |= _add_poolings(tables, poolings)
    _add_mel(tables, backbone)
    if isinstance(backbone, TapwordEar):
        settings |= add_ear(tables, backbone, eight_bits)
    elif eight_bits:
        raise InputError("only the network of tapword_ear is written in 8 bits in C")
    _add_taught(tables, spotter, room)
    settings |= _add_whitening(tables, spotter) | _add_background(tables, spotter)
    augment = settings["EAR"] and spotter.encoder.preparation.augment
    settings |= add_copies(tables) if augment else {"COPIES": 0}
    settings |= add_listening(tables, spotter, bool(settings["EAR"]))
    settings |= tables.settings()
    outside = "Nothing is outside: samples in, words out."
    if apart:
        outside = "Outside are the weights: see tapword_weights."
    if not settings["INSIDE"]:
        widths = ", ".join(f"block {i}: {width} numbers" for i, width in enumerate(backbone.dims))
        outside = _template("outside.txt").rstrip().replace("@blocks@", widths)
    ram, listens = _ram(settings), bool(settings["LISTEN"])
    listener = listener_bytes(settings) if listens else 0
    listening = LISTENING if listens else []
    values = {
        "version": __version__,
        # The parts are named by whoever made the model: no name may end the comment.
        "parts": f"{spotter.encoder!r} -> {learner.spec}".replace("*/", "* /"),
        "outside": outside,
        "flash": tables.bytes,
        "ram": ram,
        "listener": f", sizeof(tapword_listener): {listener} bytes" if listens else "",
        "settings": "\n".join(f"#define TAPWORD_{key} {value}" for key, value in settings.items()),
        "interface": "\n".join(map(_template, ["interface.h", *listening[:1]])),
        "types": _template("block.h") if settings["EAR"] else "",
        "tables": tables.text(),
        "code": "\n".join(map(_template, [*_files(settings), *files, *listening[1:]])),
    }
    text = re.sub("@([a-z]+)@", lambda found: str(values[found[1]]), _template("frame.h"))
    return Header(text, tables.bytes, ram, listener, tables.weights() if apart else None)


def _files(settings: dict[str, Any]) -> list[str]:
    """Files of C from samples to what is learned, but for the learner's rule, in their order."""
    inside = settings["INSIDE"]
    wanted = {
        "align.h": True,
        "mel.h": True,
        "clip_mel.h": not settings["EAR"],
        "half.h": settings["EAR"] or settings["WHITENING"],
        "ear.h": settings["EAR"],
        "ear16.h": settings["EAR"] and not settings["EIGHT_BITS"],
        "ear8.h": settings["EAR"] and settings["EIGHT_BITS"],
        "ear_stream.h": settings["EAR"],
        "looks.h": settings["LOOKS"],
        "pool.h": True,
        "whiten.h": True,
        "vector.h": True,
        "copies.h": settings["COPIES"],
        "hear.h": inside,
        "noise.h": inside and settings["WINDOWS"],
        "words.h": True,
        "background.h": settings["WINDOWS"],
        "thresholds.h": True,
        "statistic.h": True,
        "teach.h": inside,
        "state.h": True,
        "weights.h": settings["APART"],
        "errors.h": True,
    }
    return [name for name, needed in wanted.items() if needed]


def _rule(spotter: Spotter) -> tuple[list[str], dict[str, Any]]:
    """Files of a learner's rule in C, and what these are told by #define."""
    learner, dim = spotter.learner, _dim(spotter)
    if learner.name not in RULES or not isinstance(learner, StatisticsLearner):
        raise InputError(f"learner {learner.name} cannot be exported to C; {', '.join(RULES)} can")
    states.arrays(spotter)
    size = learner.statistics_for(dim).blocks.size
    settings = {"BLOCK": size, "FACTOR": packed_size(size), "RAISES": ", ".join(map(repr, RAISES))}
    settings |= {"REFERENCE": 0, "VARIANCES": 0} | RULES[learner.name](learner, dim)
    rule = f"{learner.name}.h"
    return ["solve.h", rule] if learner.keeps_scatter else [rule], settings


def _pooling(pooling: Pooling) -> tuple[int, int, int]:
    """Kind and numbers of a pooling as the C code knows it."""
    if pooling.name not in POOLINGS:
        known = ", ".join(sorted([*POOLINGS, "blocks"]))
        raise InputError(f"pooling {pooling.name} cannot be exported to C; {known} can")
    return POOLINGS[pooling.name](pooling)


def _settings(spotter: Spotter) -> dict[str, Any]:
    """Give what the C code is told by #define, beside what its tables need."""
    learner, [backbone] = spotter.learner, spotter.encoder.backbones
    state, fingerprint = states.arrays(spotter), states.fingerprint(spotter)
    return _hearing(backbone) | {
        "NOT": quote(states.NOT),
        "ALIGN": int(spotter.encoder.preparation.align),
        "HOP": align.HOP,
        "REACH": align.HALF_WINDOW,
        "MAX_STEPS": MAX_STEPS,
        "SMOOTH": align.SMOOTH,
        "PAUSE": align.PAUSE,
        "SILENCE": frames.SILENCE,
        "DEEPEST": frames.DEEPEST,
        "ABOVE": frames.ABOVE,
        "NOTHING": frames.NOTHING,
        "LEAST": frames.LEAST,
        "CLIP": frames.CLIP,
        "MAX_SOUND": frames.MAX,
        "MARGIN": frames.MARGIN,
        "LONGEST": LONGEST,
        "PEAK": f"{PEAK_LIMIT}f",
        "WINDOW": logmel.WINDOW,
        "STEP": logmel.STEP,
        "FFT": logmel.FFT,
        "FFT_BITS": logmel.FFT.bit_length() - 1,
        "FLOOR": f"{logmel.FLOOR}f",
        "CONSTANT": repr(float(CONSTANT)),
        "BLOCKS": len(backbone.dims),
        "DIM": _dim(spotter),
        "LARGEST_SQUARE": repr(base.LARGEST**2),
        "WORDS": len(learner.rows),
        "SAMPLES": int(state["n_scatter"][0]),
        "SCATTER": len(state["scatter"]) if "scatter" in state else 0,
        "SENSITIVITY": f"{spotter.vocabulary.sensitivity}f",
        "PHRASE": PHRASE,
        "MOST_LENGTH": MAX_LOG_LENGTH,
        "STATE_MAGIC": quote(states.MAGIC),
        "STATE_VERSION": f"{states.VERSION}u",
        "FINGERPRINT_LOW": f"{fingerprint % 2**32:#x}u",
        "FINGERPRINT_HIGH": f"{fingerprint >> 32:#x}u",
    }


def _hearing(backbone: Backbone) -> dict[str, Any]:
    """Give what the C code is told of a backbone, and of how many frames it makes of a clip."""
    written = frames.exported(backbone)
    ear = isinstance(backbone, TapwordEar)
    told = {"EAR": int(ear), "INSIDE": int(written.in_c), "BANDS": written.mel[0]}
    if ear:
        return told | {"FRAME": backbone.dims[0], "FRAMES": -(-LONGEST // written.hop)}
    count = 1 + (LONGEST + 2 * written.before - logmel.WINDOW) // logmel.STEP
    told |= {"PAD": written.before, "MEL_FRAMES": count}
    return told | ({"FRAME": backbone.dims[0], "FRAMES": count} if written.in_c else {})


def _dim(spotter: Spotter) -> int:
    """Numbers per vector, of a spotter that was taught nothing too."""
    return spotter.learner.dim or spotter.encoder.dim()


def _add_poolings(tables: Tables, poolings: Sequence[Pooling]) -> dict[str, Any]:
    written = [_pooling(part) for part in poolings]
    looks = [part for part in poolings if isinstance(part, Attentive)]
    # Of each block, where its looks begin.
    counts = [len(part.centers) if isinstance(part, Attentive) else 0 for part in poolings]
    starts = np.cumsum([0, *counts[:-1]]).tolist()
    rows = [(*numbers, start) for numbers, start in zip(written, starts, strict=True)]
    tables.add("tapword_poolings", rows, np.uint16)
    settings: dict[str, Any] = {
        "MOMENT": MOMENT,
        "DEVIATION": DEVIATION,
        "LARGEST": LARGEST,
        "MIDDLE": MIDDLE,
        "LOOK": LOOK,
        "MOMENTS": max([1, *(n for kind, n, _ in written if kind in (MOMENT, DEVIATION))]),
        "LOOKS": len(looks),
    }
    if looks:
        tables.add("tapword_places", [place for part in looks for place in part.centers])
        tables.add("tapword_reaches", [reach for part in looks for reach in part.widths])
        settings |= {
            "LOOK_WORD": WORD,
            "LOOK_MARGIN": MARGIN_S,
            "LOOK_SMALLEST": f"{VARIANCE_FLOOR}f",
        }
    return settings


def _add_whitening(tables: Tables, spotter: Spotter) -> dict[str, Any]:
    if not spotter.encoder.whitenings:
        return {"WHITENING": 0}
    [whitening], [weight] = spotter.encoder.whitenings, weights(spotter.encoder.whitenings)
    groups = whitening.about["groups"]
    tables.add("tapword_groups", groups, np.uint16)
    tables.add("tapword_whitening_mean", whitening.mean)
    tables.add("tapword_maps", whitening.maps.view(np.uint16), np.uint16)
    return {
        "WHITENING": 1,
        "WHITENING_BLOCK": whitening.about["block"],
        "WHITENING_ROOTS": int(whitening.signed_sqrt),
        "WHITENING_WEIGHT": f"{np.float32(weight):.9g}f",
        "GROUPS": len(groups),
    }


def _add_background(tables: Tables, spotter: Spotter) -> dict[str, Any]:
    cohort = spotter.scorer.cohort
    if cohort is None:
        return {"WINDOWS": 0}
    [whitening] = spotter.encoder.whitenings
    words, phrases = np.asarray(whitening.cohort, dtype=np.int8), whitening.phrases
    levels = [cohort.words.own_scores, cohort.phrases.own_scores]
    # Where clips are not cut around their sound, none is measured as a phrase.
    if phrases is None or not spotter.encoder.preparation.align:
        phrases, levels = words[:0], levels[:1]
    rows, sight = np.concatenate([words, phrases]), whitening.projection
    if sight is not None:
        tables.add_bytes("tapword_sight", sight)
    tables.add_bytes("tapword_background", rows)
    tables.add("tapword_background_levels", np.concatenate(levels))
    if frames.exported(spotter.encoder.backbones[0]).in_c:
        tables.add("tapword_noise", spotter.encoder.noise)
    (first, end), (long_first, long_end) = tail_band(len(words)), tail_band(len(phrases))
    offset, slope = whitening.offset_slope
    return {
        "WINDOWS": len(words),
        "LONG_WINDOWS": len(phrases),
        "MOST_WINDOWS": max(len(words), len(phrases)),
        "SIGHT": int(sight is not None),
        "SEEN": rows.shape[1],
        "NEAREST": NEAREST,
        "SHARE": f"{float(whitening.cohort_weight)}f",
        "NOISE_COSINE": NOISE_COSINE,
        "PLACED": first,
        "PLACED_END": end,
        "LONG_PLACED": long_first,
        "LONG_PLACED_END": long_end,
        "FALSE_ALARMS": FALSE_ALARMS_PER_HOUR,
        "SENSITIVITY_REACH": MAX_RATE_RATIO,
        "TAIL_REACH": offset,
        "TAIL_FEWER": slope,
    }


def _add_mel(tables: Tables, backbone: Backbone) -> None:
    window, bands = logmel.tables(*frames.exported(backbone).mel)
    angles = 2 * np.pi * np.arange(logmel.FFT // 2) / logmel.FFT
    tables.add("tapword_window", window)
    tables.add("tapword_turn", [np.cos(angles), np.sin(angles)])
    dense = bands.toarray()
    rows = [np.flatnonzero(row) for row in dense]
    tables.add("tapword_band_starts", [row[0] for row in rows], np.uint16)
    tables.add("tapword_band_lengths", [row[-1] - row[0] + 1 for row in rows], np.uint16)
    used = [row[at[0] : at[-1] + 1] for row, at in zip(dense, rows, strict=True)]
    tables.add("tapword_band_weights", np.concatenate(used))


def _add_taught(tables: Tables, spotter: Spotter, room: int) -> None:
    rows, state = spotter.learner.rows, states.arrays(spotter)
    if not rows:
        return
    tables.add_names("tapword_taught_names", list(map(states.name, rows)), room)
    tables.add("tapword_taught_counts", state["counts"], np.uint32)
    lengths = [Length() if row.negative else spotter.vocabulary.length_of(row.word) for row in rows]
    tables.add("tapword_taught_lengths", lengths)
    own = [spotter.vocabulary.sensitivity_of(row.word) for row in rows]
    tables.add("tapword_taught_sensitivities", own)
    tables.add("tapword_taught_means", state["means"])
    if "scatter" in state:
        tables.add("tapword_taught_scatter", state["scatter"])
    if spotter.has_thresholds:
        tails = spotter.scorer.tails()
        # Negatives are never said.
        places = [0.0 if row.negative else tails[row.word].tail_mean for row in rows]
        tables.add("tapword_taught_tails", places)


def _ram(settings: dict[str, Any]) -> int:
    """Bytes of the structure in interface.h, where a double is aligned to 8 bytes."""
    dim, words, scatter = settings["DIM"], settings["MAX_WORDS"], settings["SCATTER"]
    solving = 3 * dim + settings["FACTOR"] if scatter else 0
    hearing = 2 * settings["FFT"]
    if settings["EAR"]:
        hearing = ear_floats(settings) + settings["EAR_HOP"]
    if settings["INSIDE"]:
        hearing += settings["FRAMES"] * settings["FRAME"]
    windows = settings["MOST_WINDOWS"] if settings["WINDOWS"] else 0
    work = max(3 * (settings["MAX_STEPS"] + 1), -(-hearing // 2), solving, -(-windows // 2))
    doubles = work + (2 * words if scatter else 0)
    floats = words * (5 + dim) + (words * dim + scatter if scatter else 0) + 1
    floats += words if settings["WINDOWS"] else 0
    floats += 2 * dim + words if settings["INSIDE"] else 0
    size = 8 * doubles + 4 * (3 + floats) + words * settings["NAME_BYTES"]
    return -(-size // 8) * 8


def _template(name: str) -> str:
    return resources.files("tapword.export.c").joinpath(name).read_text("utf-8")
