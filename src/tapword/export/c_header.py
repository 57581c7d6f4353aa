"""A spotter as one C99 header that goes on learning; the backbone's network stays outside."""

from importlib import resources
from typing import Any, NamedTuple

import numpy as np

from tapword import rejection
from tapword.backbones import logmel
from tapword.backbones.speech_embedding import SpeechEmbedding
from tapword.errors import InputError
from tapword.export import onnx_front
from tapword.export.c_parts import DEVIATION, LARGEST, MIDDLE, MOMENT, pooling_of, rule_of
from tapword.export.c_tables import Tables
from tapword.export.onnx_file import require_words, thresholds
from tapword.learners.ncm import Ncm
from tapword.priors.prior import weights
from tapword.spotter import Spotter
from tapword.vectors import block_poolings
from tapword.version import __version__

# Longest recording that is aligned, in steps of 10 ms, and room for a word's name.
MAX_STEPS, NAME_BYTES = 300, 64
# False alarms an hour, of all words together, that the thresholds allow; as `Spotter.thresholds`.
_FALSE_ALARMS_PER_HOUR = 0.5


class Header(NamedTuple):
    """A header's text and what it takes on the device.

    Attributes
    ----------
    text
        Content of the file.
    flash_bytes
        Of the constant tables; code comes on top.
    ram_bytes
        Of the one structure that a program declares.
    """

    text: str
    flash_bytes: int
    ram_bytes: int


def build(spotter: Spotter, max_words: int = 50) -> Header:
    """Write a spotter as it is taught now.

    Parameters
    ----------
    spotter
        With words; one backbone (speech_embedding or logmel), and a learner whose state is the
        shared statistic: cosine, slda, ridge or ncm.
    max_words
        Words that the device has room for, rejected ones included.
    """
    require_words(spotter)
    if len(spotter.backbones) != 1:
        raise InputError(f"a C header takes one backbone, the model has {len(spotter.backbones)}")
    [backbone] = spotter.backbones
    learner = spotter.learner
    if max_words < len(learner.words):
        raise InputError(
            f"max_words must be at least {len(learner.words)}, the words taught (rejected sounds "
            f"count too); got {max_words}"
        )
    rule = rule_of(learner)
    poolings = [pooling_of(part) for part in block_poolings(spotter.poolings[0], backbone)]
    room = max([NAME_BYTES, *(len(word.encode()) + 1 for word in learner.words)])
    settings = rule | _settings(spotter, poolings) | {"MAX_WORDS": max_words, "NAME_BYTES": room}
    tables = Tables()
    tables.add("tapword_widths", backbone.dims, np.uint16, shared=True)
    tables.add("tapword_poolings", poolings, np.uint16)
    _add_mel(tables)
    _add_taught(tables, spotter, room)
    settings |= _add_prior(tables, spotter)
    outside = "Nothing is outside: the one block's frames are what tapword_log_mel gives."
    if isinstance(backbone, SpeechEmbedding):
        widths = ", ".join(f"block {i}: {width} numbers" for i, width in enumerate(backbone.dims))
        outside = _template("outside.txt").rstrip().replace("@blocks@", widths)
    rules = ["ncm.h"] if isinstance(learner, Ncm) else ["solve.h", f"{learner.name}.h"]
    ram = _ram(settings)
    text = _template("frame.h")
    for key, value in {
        "version": __version__,
        # The parts are named by whoever made the model: no name may end the comment.
        "parts": f"{spotter.front!r} -> {learner.spec}".replace("*/", "* /"),
        "outside": outside,
        "flash": tables.bytes,
        "ram": ram,
        "settings": "\n".join(f"#define TAPWORD_{key} {value}" for key, value in settings.items()),
        "interface": _template("interface.h"),
        "tables": tables.text(),
        "code": "\n".join(map(_template, ["audio.h", "vector.h", "statistic.h", *rules])),
    }.items():
        text = text.replace(f"@{key}@", str(value), 1)
    return Header(text, tables.bytes, ram)


def _settings(spotter: Spotter, poolings: list[tuple[int, int]]) -> dict[str, Any]:
    """Give what the C code is told by #define, beside the rule's own."""
    learner, [backbone] = spotter.learner, spotter.backbones
    state, pad = learner.state(), onnx_front.padding(backbone)
    common = rejection.threshold(
        [prior.sha256 for prior in spotter.priors], _FALSE_ALARMS_PER_HOUR / len(spotter.words)
    )
    return {
        "ALIGN": int(spotter.align),
        "PAD": pad,
        "CLIP": onnx_front.CLIP,
        "MEL_FRAMES": 1 + (onnx_front.CLIP + 2 * pad - logmel.WINDOW) // logmel.STEP,
        "BANDS": logmel.BANDS,
        "FLOOR": f"{logmel.FLOOR}f",
        "MAX_STEPS": MAX_STEPS,
        "BLOCKS": len(backbone.dims),
        "MOMENT": MOMENT,
        "DEVIATION": DEVIATION,
        "LARGEST": LARGEST,
        "MIDDLE": MIDDLE,
        "MOMENTS": max([1, *(order for kind, order in poolings if kind in (MOMENT, DEVIATION))]),
        "DIM": learner.dim,
        "WORDS": len(learner.words),
        "SAMPLES": int(state["n_scatter"][0]),
        "SCATTER": len(state["scatter"]) if "scatter" in state else 0,
        "THRESHOLD": "(-FLT_MAX)" if common is None else f"{common:.9g}f",
    }


def _add_prior(tables: Tables, spotter: Spotter) -> dict[str, Any]:
    if not spotter.priors:
        return {"PRIOR": 0}
    [prior], [weight] = spotter.priors, weights(spotter.priors)
    groups, block = prior.about["groups"], prior.about["block"]
    tables.add("tapword_groups", groups, np.uint16)
    tables.add("tapword_prior_mean", prior.mean)
    tables.add("tapword_maps", prior.maps.view(np.uint16), np.uint16)
    return {
        "PRIOR": 1,
        "PRIOR_BLOCK": block,
        "PRIOR_WEIGHT": f"{np.float32(weight):.9g}f",
        "GROUPS": len(groups),
    }


def _add_mel(tables: Tables) -> None:
    window, bands = logmel._tables(logmel.BANDS, logmel.LOW_HZ, logmel.HIGH_HZ)
    angles = 2 * np.pi * np.arange(logmel.FFT // 2) / logmel.FFT
    tables.add("tapword_window", window)
    tables.add("tapword_turn", [np.cos(angles), np.sin(angles)])
    rows = [np.flatnonzero(row) for row in bands.toarray()]
    tables.add("tapword_band_starts", [row[0] for row in rows], np.uint16)
    tables.add("tapword_band_lengths", [row[-1] - row[0] + 1 for row in rows], np.uint16)
    dense = zip(bands.toarray(), rows, strict=True)
    tables.add(
        "tapword_band_weights", np.concatenate([row[at[0] : at[-1] + 1] for row, at in dense])
    )


def _add_taught(tables: Tables, spotter: Spotter, room: int) -> None:
    state, limits = spotter.learner.state(), thresholds(spotter)
    lowest = -np.finfo(np.float32).max
    tables.add_names("tapword_taught_names", list(spotter.learner.words), room)
    tables.add("tapword_taught_counts", state["counts"], np.uint32)
    tables.add(
        "tapword_taught_thresholds", [limits.get(word, lowest) for word in spotter.learner.words]
    )
    tables.add("tapword_taught_means", state["means"])
    if "scatter" in state:
        tables.add("tapword_taught_scatter", state["scatter"])


def _ram(settings: dict[str, Any]) -> int:
    """Bytes of the structure in interface.h, where a double is aligned to 8 bytes."""
    dim, words, scatter = settings["DIM"], settings["MAX_WORDS"], settings["SCATTER"]
    work = max(2 * (settings["MAX_STEPS"] + 1), 512, settings["FACTOR"] if scatter else 0)
    doubles = work + (3 * dim + 2 * words if scatter else 0)
    floats = words * (2 + dim) + (words * dim + scatter if scatter else 0)
    size = 8 * doubles + 4 * (3 + floats) + words * settings["NAME_BYTES"]
    return -(-size // 8) * 8


def _template(name: str) -> str:
    return resources.files("tapword.export").joinpath("c", name).read_text("utf-8")
