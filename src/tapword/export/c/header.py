"""A spotter as one C99 header that goes on learning."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from tapword.audio import align, endpoint
from tapword.audio.align import MARGIN_S
from tapword.audio.files import PEAK_LIMIT, SAMPLE_RATE
from tapword.backbones import logmel
from tapword.backbones.base import Backbone
from tapword.backbones.tapword_ear import TapwordEar
from tapword.errors import InputError
from tapword.export import layout
from tapword.export.c import state as states
from tapword.export.c.amalgamation import amalgamate, macros
from tapword.export.c.augment import add_augment
from tapword.export.c.listening import add_listening
from tapword.export.c.network import add_ear
from tapword.export.c.reduced import for_device
from tapword.export.c.tables import Tables, quote
from tapword.learners import base
from tapword.learners.packed import RAISES
from tapword.learners.ridge import MAX_SHRINKAGE
from tapword.learners.statistics_learner import StatisticsLearner
from tapword.poolings.attentive import VARIANCE_FLOOR, WORD, Attentive
from tapword.poolings.base import Pooling
from tapword.poolings.tap import CONSTANT
from tapword.spotter import session, takes
from tapword.spotter.encoder import NOISE_COSINE, block_poolings
from tapword.spotter.model_header import MAX_LOG_LENGTH
from tapword.spotter.spotter import Spotter
from tapword.spotter.thresholds import (
    FALSE_ALARMS_PER_HOUR,
    MAX_EXPONENT,
    MAX_RATE_RATIO,
    UNSURE,
    tail_band,
)
from tapword.spotter.vocabulary import MAX_WORD_BYTES, PHRASE
from tapword.spotter.whitening import weights
from tapword.support.issues import MESSAGES
from tapword.support.linear_algebra import packed_size
from tapword.version import __version__

# Kinds of poolings, as in internal.h.
MOMENT, DEVIATION, LARGEST, MIDDLE, ATTENTION = range(5)
# The comment at the top of a header.
ABOUT = """A model of tapword {version} that keeps learning: C99, no allocation, libm alone.

   {parts}

   #define TAPWORD_IMPLEMENTATION in one file of the program, before it includes this one.

   {outside}

   Constant tables: {flash} bytes. RAM: sizeof(tapword) bytes, and sizeof(tapword_listener) for a
   stream."""
DEFAULT = """Sizes and features of a model: here the ear as shipped, without words. Export has those
   of another model in their place. `make model_header` writes this file."""
OUTSIDE = """The backbone's network is not in here. It runs on the device's ONNX or TFLite runtime,
   from tapword_log_mel (frames, 32), at most TAPWORD_MEL_FRAMES for a clip, to tapword_vector
   (blocks of {widths} numbers per frame). `tapword export MODEL OUT.h --frames FRAMES.onnx` writes
   that network."""

# Pooling -> its kind; its number of moments, frames or heads; and its frames per second if it pools
# longer clips in another way, otherwise 0.
POOLINGS: dict[str, Callable[[Any], tuple[int, int, int]]] = {
    "avg": lambda pooling: (MOMENT, 1, 0),
    "attentive": lambda pooling: (ATTENTION, len(pooling.centers), pooling.frame_rate or 0),
    "max": lambda pooling: (LARGEST, 1, 0),
    "middle": lambda pooling: (MIDDLE, pooling.n, pooling.frame_rate or 0),
    "tap": lambda pooling: (MOMENT, pooling.R, 0),
    "tsdp": lambda pooling: (DEVIATION, 2, 0),
    "tstp": lambda pooling: (MOMENT, 2, 0),
}
# Learner -> macros of its rule in C.
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
    """A header's text, and the bytes of its constant tables; code comes on top."""

    text: str
    flash_bytes: int
    # The file that the device needs as well, if the weights are separate.
    weights: bytes | None


def build(
    spotter: Spotter,
    max_words: int = 50,
    eight_bits: bool = False,
    separate_weights: bool = False,
) -> Header:
    """Write a spotter as it is now.

    Parameters
    ----------
    spotter
        With or without words; one backbone (ear_s, tapword_ear, speech_embedding or logmel), and a
        learner whose state is the shared statistic: cosine, slda, ridge or ncm.
    max_words
        Room for words on the device; negatives of a word count as another.
    eight_bits
        Write the ear with weights and activations in 8 bits, instead of 16 bits and floats.
    separate_weights
        Put these weights and the cohort into a separate file.
    """
    settings, tables = describe(spotter, max_words, eight_bits, separate_weights)
    outside = "Samples in, words out: nothing else is needed."
    if separate_weights:
        outside = "The weights are in a file of their own: see tapword_set_weights."
    if not settings["HAS_BACKBONE"]:
        outside = OUTSIDE.format(widths=", ".join(map(str, spotter.encoder.backbones[0].dims)))
    about = ABOUT.format(
        version=__version__,
        parts=f"{spotter.encoder!r} -> {spotter.learner.spec}",
        outside=outside,
        flash=tables.bytes,
    )
    text = amalgamate(about, settings, tables.text())
    return Header(text, tables.bytes, tables.weights() if separate_weights else None)


def default_model() -> str:
    """Write tapword_model.h as it is among the sources: the ear as shipped, for a small device."""
    settings, _ = describe(for_device(states.new(states.FORMS[0])), 20, True, False)
    return f"/* {DEFAULT} */\n{macros(settings)}"


def describe(
    spotter: Spotter, max_words: int, eight_bits: bool, separate_weights: bool
) -> tuple[dict[str, Any], Tables]:
    """Macros and tables of a spotter; arguments are as for `build`."""
    if len(spotter.encoder.backbones) != 1:
        raise InputError(
            f"a C header takes one backbone, the model has {len(spotter.encoder.backbones)}; words "
            "cannot move to other backbones, so teach them for boards with --size small"
        )
    [backbone] = spotter.encoder.backbones
    learner = spotter.learner
    if max_words < len(learner.rows):
        raise InputError(
            f"max_words must be at least {len(learner.rows)}, the words taught (negatives of a "
            f"word count as one more); got {max_words}"
        )
    settings = _rule(spotter)
    [pooling], aligned = spotter.encoder.poolings, spotter.encoder.preparation.align
    poolings = block_poolings(pooling, backbone, aligned)
    # Longer words may have been taught before there was a limit.
    room = max([MAX_WORD_BYTES, *(len(row.word.encode()) for row in learner.rows)])
    settings |= _settings(spotter) | {"MAX_WORDS": max_words, "WORD_BYTES": room}
    if separate_weights and not eight_bits:
        raise InputError("only weights of 8 bits are written to a file of their own")
    tables = Tables(packed=eight_bits, separate=separate_weights)
    tables.add("tapword_widths", backbone.dims, np.uint16, shared=True)
    settings |= _add_poolings(tables, poolings)
    _add_mel(tables, backbone)
    if isinstance(backbone, TapwordEar):
        settings |= add_ear(tables, backbone, eight_bits)
    elif eight_bits:
        raise InputError("only the networks of ear_s and tapword_ear are written in 8 bits in C")
    _add_taught(tables, spotter, room + len(states.NOT.encode()) + 1)
    settings |= _add_whitening(tables, spotter) | _add_cohort(tables, spotter)
    augment = settings["HAS_EAR"] and spotter.encoder.preparation.augment
    settings |= add_augment(tables, eight_bits) if augment else {"COPIES": 0}
    settings |= add_listening(tables, spotter, bool(settings["HAS_EAR"]))
    tables.finish()
    return settings | tables.settings() | _teaching(), tables


def _rule(spotter: Spotter) -> dict[str, Any]:
    """Macros of a learner's rule."""
    learner, dim = spotter.learner, _dim(spotter)
    if learner.name not in RULES or not isinstance(learner, StatisticsLearner):
        raise InputError(f"learner {learner.name} cannot be exported to C; {', '.join(RULES)} can")
    states.arrays(spotter)
    size = learner.statistics_for(dim).blocks.size
    settings: dict[str, Any] = {name.upper(): int(name == learner.name) for name in RULES}
    settings |= {"BLOCK": size, "FACTOR": packed_size(size), "RAISES": ", ".join(map(repr, RAISES))}
    return settings | {"REFERENCE": 0, "VARIANCES": 0} | RULES[learner.name](learner, dim)


def _pooling(pooling: Pooling) -> tuple[int, int, int]:
    """Kind and numbers of a pooling as the C code knows it."""
    if pooling.name not in POOLINGS:
        known = ", ".join(sorted([*POOLINGS, "blocks"]))
        raise InputError(f"pooling {pooling.name} cannot be exported to C; {known} can")
    return POOLINGS[pooling.name](pooling)


def _settings(spotter: Spotter) -> dict[str, Any]:
    """Macros that no table needs."""
    learner, [backbone] = spotter.learner, spotter.encoder.backbones
    state, fingerprint = states.arrays(spotter), states.fingerprint(spotter)
    return _front_end(backbone) | {
        "SAMPLE_RATE": SAMPLE_RATE,
        "NEGATIVE": quote(states.NOT),
        "ALIGN": int(spotter.encoder.preparation.align),
        "HOP": align.HOP,
        "HALF_WINDOW": align.HALF_WINDOW,
        "SMOOTH": align.SMOOTH,
        "PAUSE": align.PAUSE,
        "SILENCE": layout.SILENCE,
        "DEEPEST": layout.DEEPEST,
        "ABOVE": layout.ABOVE,
        "NOTHING": layout.NOTHING,
        "LEAST": layout.LEAST,
        "CLIP": layout.CLIP,
        "MAX_SOUND": layout.MAX,
        "MARGIN": layout.MARGIN,
        "LONGEST": layout.LONGEST,
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
        "MAX_LENGTH": MAX_LOG_LENGTH,
        "STATE_MAGIC": quote(states.MAGIC),
        "STATE_VERSION": f"{states.VERSION}u",
        "FINGERPRINT_LOW": f"{fingerprint % 2**32:#x}u",
        "FINGERPRINT_HIGH": f"{fingerprint >> 32:#x}u",
    }


def _front_end(backbone: Backbone) -> dict[str, Any]:
    """Macros of a backbone, and of the number of frames it makes of a clip."""
    front, ear = layout.front_end(backbone), isinstance(backbone, TapwordEar)
    settings = {"HAS_EAR": int(ear), "HAS_BACKBONE": int(front.in_c), "BANDS": front.mel[0]}
    if ear:
        return settings | {"FRAME": backbone.dims[0], "FRAMES": -(-layout.LONGEST // front.hop)}
    count = 1 + (layout.LONGEST + 2 * front.before - logmel.WINDOW) // logmel.STEP
    settings |= {"PAD": front.before, "MEL_FRAMES": count}
    return settings | ({"FRAME": backbone.dims[0], "FRAMES": count} if front.in_c else {})


def _dim(spotter: Spotter) -> int:
    """Numbers per vector, of a spotter that was taught nothing too."""
    return spotter.learner.dim or spotter.encoder.dim()


def _add_poolings(tables: Tables, poolings: Sequence[Pooling]) -> dict[str, Any]:
    written = [_pooling(part) for part in poolings]
    heads = [part for part in poolings if isinstance(part, Attentive)]
    # Where the heads of each block begin.
    counts = [len(part.centers) if isinstance(part, Attentive) else 0 for part in poolings]
    starts = np.cumsum([0, *counts[:-1]]).tolist()
    rows = [(*numbers, start) for numbers, start in zip(written, starts, strict=True)]
    tables.add("tapword_poolings", rows, np.uint16)
    settings: dict[str, Any] = {
        "MOMENTS": max([2, *(n for kind, n, _ in written if kind in (MOMENT, DEVIATION))]),
        "HAS_ATTENTION": int(bool(heads)),
    }
    if heads:
        tables.add("tapword_head_centers", [center for part in heads for center in part.centers])
        tables.add("tapword_head_widths", [width for part in heads for width in part.widths])
        settings |= {
            "ATTENTION_WORD": WORD,
            "ATTENTION_MARGIN_S": MARGIN_S,
            "ATTENTION_MIN_VARIANCE": f"{VARIANCE_FLOOR}f",
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
        "SIGNED_SQRT": int(whitening.signed_sqrt),
        "WHITENING_WEIGHT": f"{np.float32(weight):.9g}f",
        "GROUPS": len(groups),
    }


def _add_cohort(tables: Tables, spotter: Spotter) -> dict[str, Any]:
    cohort = spotter.scorer.cohort
    if cohort is None:
        return {"COHORT": 0}
    [whitening] = spotter.encoder.whitenings
    words, phrases = np.asarray(whitening.cohort, dtype=np.int8), whitening.phrases
    levels = [cohort.words.own_scores, cohort.phrases.own_scores]
    # Where clips are not cut around their sound, none is measured as a phrase.
    if phrases is None or not spotter.encoder.preparation.align:
        phrases, levels = words[:0], levels[:1]
    rows, projection = np.concatenate([words, phrases]), whitening.projection
    if projection is not None:
        tables.add_bytes("tapword_projection", projection)
    tables.add_bytes("tapword_cohort", rows)
    tables.add("tapword_cohort_scores", np.concatenate(levels))
    if layout.front_end(spotter.encoder.backbones[0]).in_c:
        tables.add("tapword_noise", spotter.encoder.noise)
    line = whitening.line
    (first, end), (long_first, long_end) = (tail_band(len(one), line) for one in (words, phrases))
    return {
        "COHORT": len(words),
        "LONG_COHORT": len(phrases),
        "MAX_COHORT": max(len(words), len(phrases)),
        "PROJECTION": int(projection is not None),
        "PROJECTED": rows.shape[1],
        "NEAREST": whitening.cohort_nearest,
        "COHORT_WEIGHT": f"{float(whitening.cohort_weight)}f",
        "NOISE_COSINE": NOISE_COSINE,
        "TAIL_FIRST": first,
        "TAIL_END": end,
        "LONG_TAIL_FIRST": long_first,
        "LONG_TAIL_END": long_end,
        "FALSE_ALARMS": FALSE_ALARMS_PER_HOUR,
        "MAX_RATE_RATIO": MAX_RATE_RATIO,
        "TAIL_SHARE": line.share,
        "TAIL_OFFSET": line.offset,
        "TAIL_SLOPE": line.slope,
        "CONFIDENCE_WIDTH": spotter.scorer.confidence_width,
        "CONFIDENCE_MAX_EXPONENT": MAX_EXPONENT,
        "UNSURE": UNSURE,
    }


def _add_mel(tables: Tables, backbone: Backbone) -> None:
    window, bands = logmel.tables(*layout.front_end(backbone).mel)
    angles = 2 * np.pi * np.arange(logmel.FFT // 2) / logmel.FFT
    tables.add("tapword_window", window)
    tables.add("tapword_turn", [np.cos(angles), np.sin(angles)])
    rows = [np.flatnonzero(row) for row in bands]
    tables.add("tapword_band_starts", [row[0] for row in rows], np.uint16)
    tables.add("tapword_band_lengths", [row[-1] - row[0] + 1 for row in rows], np.uint16)
    used = [row[at[0] : at[-1] + 1] for row, at in zip(bands, rows, strict=True)]
    tables.add("tapword_band_weights", np.concatenate(used))


def _add_taught(tables: Tables, spotter: Spotter, name_bytes: int) -> None:
    rows, state = spotter.learner.rows, states.arrays(spotter)
    if not rows:
        return
    tables.add_names("tapword_taught_names", list(map(states.name, rows)), name_bytes)
    tables.add("tapword_taught_counts", state["counts"], np.uint32)
    lengths = [
        states.length(spotter, row, int(count))
        for row, count in zip(rows, state["counts"], strict=True)
    ]
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


def _teaching() -> dict[str, Any]:
    """Macros of teaching by voice: the end-pointer's settings, and codes of issues."""
    settings: dict[str, Any] = {}
    for name, value in asdict(endpoint.SETTINGS).items():
        ends = ("_LOW", "_HIGH") if isinstance(value, tuple) else ("",)
        for end, number in zip(ends, np.atleast_1d(value).tolist(), strict=True):
            settings[f"ENDPOINT_{name.upper()}{end}"] = number
    # A second more, for the chunk in which a recording ends.
    frames = (endpoint.SETTINGS.max_s + 1) * 1000 / endpoint.SETTINGS.hop_ms
    settings["ENDPOINT_FRAMES"] = round(frames)
    settings |= {f"ISSUE_{code.upper()}": number for number, code in enumerate(MESSAGES, 1)}
    return settings | {
        "ISSUES": ", ".join(map(quote, MESSAGES)),
        "OTHER_S": session.OTHER_S,
        "PAUSE_S": session.PAUSE_S,
        "UNLIKE_SCORE": f"{session.UNLIKE_SCORE}f",
        "LESSON_TAKES": session.LATEST,
        "LESSON_FOLDS": session.FOLDS,
        "LESSON_MIN_TAKES": session.MIN_CLIPS,
        "LESSON_CLOSE": session.CLOSE_FRACTION,
        "LESSON_CONFUSED": session.CONFUSED_FRACTION,
        "TAKES_SIMILAR": takes.SIMILAR,
        "TAKES_UNLIKE": takes.UNLIKE,
    }
