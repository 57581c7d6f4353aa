"""What a spotter knows as bytes that C code saves and loads: docs/export.md has the layout."""

import hashlib
import json
import struct
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tapword import registry
from tapword.errors import InputError, ModelFileError
from tapword.learners.base import LARGEST, Learner, Row
from tapword.learners.statistics import SketchStatistics, WordStatistics
from tapword.learners.statistics_learner import CovarianceLearner, StatisticsLearner
from tapword.spotter import presets
from tapword.spotter.model_header import MAX_LOG_LENGTH
from tapword.spotter.spotter import Spotter
from tapword.spotter.vocabulary import MAX_CHARACTERS, Length, Vocabulary, clean_word
from tapword.support import atomic_files
from tapword.support.atomic_files import PathLike

MAGIC, VERSION = b"TAPS", 1
# Magic, version, fingerprint, numbers of a vector and of the scatter, rows, samples behind the
# scatter, sensitivity of words to come.
HEAD = struct.Struct("<4sIQIIIIf")
# Count, sensitivity, length (mean and squares), bytes of the name, which follows, and the means.
ROW = struct.Struct("<IfffI")
SEAL = struct.Struct("<I")
# Begins the name of a word's negatives: TAPWORD_NEGATIVE.
NOT = "¬"
# Samples are counted in 32 bits.
MOST_SAMPLES = 2**32 - 1
# Room for a full covariance of 5,000 numbers, or for 20,000 words of the ear.
MOST_BYTES = 64_000_000
# Longest name of a row in UTF-8, which has at most 4 bytes a character. Longer ones are not read.
MAX_NAME_BYTES = len(NOT.encode()) + 4 * MAX_CHARACTERS
# How much of the covariance a learner may keep; a device, if nobody says otherwise, the first.
FORMS = ("diagonal", "block", "full")
# Backbones of which a new model can be made; the first is the default.
EARS = *presets.preset("small").backbones, *presets.EARLIER.backbones


def new(form: str, ear: str = EARS[0]) -> Spotter:
    """Make a model of an ear without words, with the covariance in a form."""
    return Spotter(ear, learner=f"cosine:prior=shipped,covariance={form}")


def fingerprint(spotter: Spotter) -> int:
    """Give a number of 64 bits for how a spotter hears and learns: states of one fit each other.

    Arguments that have their defaults do not count, so that one that is added later changes none.
    However clips are augmented, their vectors are of the same kind.
    """
    stored = spotter.encoder.stored() | {"learner": registry.store(spotter.learner)}
    parts = {
        "backbones": [
            _bare(one, part) | {"weights": part["weights_sha256"]}
            for one, part in zip(spotter.encoder.backbones, stored["backbones"], strict=True)
        ],
        "poolings": list(map(_bare, spotter.encoder.poolings, stored["poolings"])),
        "learner": _bare(spotter.learner, stored["learner"]),
        "align": stored["align"],
        "whitening": stored["whitening"],
    }
    content = json.dumps(parts, sort_keys=True).encode()
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "little")


def name(row: Row) -> str:
    """Name of a row on the device."""
    if row.word.startswith(NOT):
        raise InputError(f"the word {row.word!r} begins with {NOT}, which means negatives in C")
    return NOT + row.word if row.negative else row.word


def length(spotter: Spotter, row: Row, count: int) -> Length:
    """Lengths of a row's samples, as a statistic of `count` of them.

    Synthetic clips count as fewer samples on the device.
    """
    if row.negative:
        return Length()
    # A learner that was taught directly has words that the vocabulary knows no lengths of.
    one = spotter.vocabulary.words.get(row.word)
    if one is None or one.clips == count:
        return spotter.vocabulary.length_of(row.word)
    return one.length._replace(squares=one.length.squares * count / one.clips)


def arrays(spotter: Spotter) -> dict[str, np.ndarray]:
    """Arrays of the learner's statistic, also of a spotter that was taught nothing."""
    learner = spotter.learner
    if not isinstance(learner, StatisticsLearner):
        raise InputError(f"learner {learner.name} cannot be exported to C")
    statistics = learner.statistics_for(learner.dim or spotter.encoder.dim())
    if isinstance(statistics, SketchStatistics | WordStatistics):
        raise InputError(
            f"learner {learner.spec} cannot be exported to C: a covariance that is lowrank or "
            "kept per word is not written there"
        )
    if max(statistics.n_scatter, statistics.counts.sum()) > MOST_SAMPLES:
        raise InputError(f"a model of more than {MOST_SAMPLES:,} samples cannot be exported to C")
    return statistics.arrays()


def dump(spotter: Spotter) -> bytes:
    """Write what a spotter knows as `tapword_save` does."""
    state, rows, vocabulary = arrays(spotter), spotter.learner.rows, spotter.vocabulary
    scatter = state.get("scatter", np.zeros(0))
    means = state["means"]
    content = HEAD.pack(
        MAGIC,
        VERSION,
        fingerprint(spotter),
        means.shape[1],
        len(scatter),
        len(rows),
        int(state["n_scatter"][0]),
        vocabulary.sensitivity,
    )
    for row, count, mean in zip(rows, state["counts"], means, strict=True):
        text = name(row).encode()
        own = vocabulary.sensitivity_of(row.word)
        content += ROW.pack(int(count), own, *length(spotter, row, int(count)), len(text))
        content += text + mean.astype("<f4").tobytes()
    content += scatter.astype("<f4").tobytes()
    return content + SEAL.pack(zlib.crc32(content))


def read(path: PathLike) -> bytes:
    """Read a state's file, if it is no larger than any state."""
    found = atomic_files.why_not_file(path)
    if found is not None:
        raise ModelFileError(f"no state: {path} {found}")
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror or error}") from error
    if len(content) > MOST_BYTES:
        raise ModelFileError(f"{path}: a device's state has at most {MOST_BYTES:,} bytes")
    return content


def load(path: PathLike, content: bytes, models: Sequence[Spotter] = ()) -> Spotter:
    """Make a spotter that knows what a state knows.

    Parameters
    ----------
    path
        What to call it where it cannot be used.
    content
        What `dump` or `tapword_save` wrote.
    models
        It must be of the parts of one of these, with any form of the covariance; without any, of
        those of `new` with one of `EARS`.
    """
    try:
        return _load(content, models)
    except (InputError, ModelFileError) as error:
        raise ModelFileError(f"{path} cannot be used: {error}") from error


def _load(content: bytes, models: Sequence[Spotter]) -> Spotter:
    least = HEAD.size + SEAL.size
    if len(content) < least or content[:4] != MAGIC:
        raise ModelFileError("it is not the state of a device, or it was cut short")
    # A view, because a slice of bytes is a copy.
    sealed = memoryview(content)[: -SEAL.size]
    [seal] = SEAL.unpack(content[-SEAL.size :])
    if seal != zlib.crc32(sealed):
        raise ModelFileError("it is damaged: its checksum does not match")
    _, version, wanted, dim, n_scatter, n_rows, samples, sensitivity = HEAD.unpack_from(content)
    if version != VERSION:
        raise ModelFileError(
            f"it is in format {version}, this tapword reads {VERSION}: upgrade with "
            "pip install -U tapword"
        )
    made = _like(wanted, models)
    if dim != made.encoder.dim():
        raise ModelFileError(f"it is damaged: vectors of {dim} numbers")
    if n_rows * (ROW.size + 4 * dim) + 4 * n_scatter + least > len(content):
        raise ModelFileError("it is damaged: it announces more than it holds")
    reader = _Reader(sealed, HEAD.size)
    counts: dict[Row, int] = {}
    means = np.zeros((n_rows, dim), dtype=np.float32)
    common, lengths, sensitivities = _share(sensitivity), dict[str, Length](), dict[str, float]()
    for index in range(n_rows):
        count, own, mean, squares, size = reader.numbers(ROW)
        if size > MAX_NAME_BYTES:
            raise ModelFileError(f"it is damaged: a name of {size:,} bytes")
        row = _row(reader.take(size))
        if row in counts:
            raise ModelFileError(
                f"it has {row.word!r} twice: forget one of the two where they were taught"
            )
        counts[row] = count
        most = count * MAX_LOG_LENGTH**2 / 4 + 0.01
        if not (0 <= mean <= MAX_LOG_LENGTH and 0 <= squares <= most):
            raise ModelFileError("it is damaged: samples of a length that none has")
        own = _share(own)
        if not row.negative and own != common:
            sensitivities[row.word] = own
        if not row.negative and (mean, squares) != Length():
            lengths[row.word] = Length(mean, squares)
        means[index] = reader.floats(dim)
    scatter = reader.floats(n_scatter)
    if reader.place != len(sealed):
        raise ModelFileError("it is damaged: it holds more than it announces")
    if not np.isfinite(means).all() or not np.isfinite(scatter).all():
        raise ModelFileError("it is damaged: it contains NaN or infinity")
    squares = np.square(means.astype(np.float64)).sum(axis=1)
    if max(squares.max(initial=0), np.abs(scatter).max(initial=0)) > LARGEST**2:
        raise ModelFileError("it is damaged: its numbers are too large")
    if counts:
        _teach(made.learner, counts, means, scatter, samples)
    words, negatives = made.learner.words, made.learner.negatives
    made.vocabulary = Vocabulary.of(words, negatives, lengths, sensitivities, common)
    return made


def _like(wanted: int, models: Sequence[Spotter]) -> Spotter:
    """Make a spotter that knows nothing, of the parts whose fingerprint this is."""
    for spotter in models or (new(FORMS[0], ear) for ear in EARS):
        for made in _empty(spotter):
            if fingerprint(made) == wanted:
                return made
    reason = "it was saved by a model of other parts, or by an earlier tapword"
    if not models:
        reason += ": give a copy of the model file that its header was exported from, and --replace"
    raise ModelFileError(reason)


def _empty(spotter: Spotter) -> Iterator[Spotter]:
    """Give spotters of the same parts that know nothing, with all forms of the learner."""
    learner, changes = spotter.learner, [dict[str, Any]()]
    if isinstance(learner, CovarianceLearner):
        changes += [{"covariance": form, "max_kb": None} for form in FORMS]
    for change in changes:
        yield spotter.copy(type(learner)(**learner.arguments() | change), Vocabulary())


def _teach(
    learner: Learner,
    counts: dict[Row, int],
    means: np.ndarray,
    scatter: np.ndarray,
    samples: int,
) -> None:
    """Give a learner what a state holds, or refuse it."""
    state: dict[str, np.ndarray] = {
        "means": means,
        "counts": np.array(list(counts.values()), dtype=np.int64),
        "n_scatter": np.array([samples], dtype=np.int64),
    }
    if len(scatter):
        state["scatter"] = scatter
    words, negatives = (
        {row.word: n for row, n in counts.items() if row.negative == negative}
        for negative in (False, True)
    )
    if not negatives.keys() <= words.keys():
        raise ModelFileError("it is damaged: its negatives are not of its words")
    learner.load_state(state, words, negatives, list(counts))


class _Reader:
    """Bytes, taken from front to back."""

    def __init__(self, content: memoryview, place: int):
        self.content = content
        self.place = place

    def take(self, size: int) -> memoryview:
        """Take so many bytes."""
        if size > len(self.content) - self.place:
            raise ModelFileError("it is damaged: it announces more than it holds")
        self.place += size
        return self.content[self.place - size : self.place]

    def numbers(self, layout: struct.Struct) -> tuple[Any, ...]:
        """Take the numbers of a layout."""
        return layout.unpack(self.take(layout.size))

    def floats(self, n: int) -> np.ndarray:
        """Take so many numbers, (n,) float32."""
        return np.frombuffer(self.take(4 * n), dtype="<f4").astype(np.float32)


def _bare(part: registry.Part, stored: dict[str, Any]) -> dict[str, Any]:
    """Name of a part, and those of its arguments that do not have their defaults."""
    defaults = registry.store(type(part)())["arguments"]
    arguments = {k: v for k, v in stored["arguments"].items() if v != defaults[k]}
    return {"name": stored["name"], "arguments": arguments}


def _shown(word: str) -> str:
    """Leave out what joins letters unseen, make every space a plain one: C lets both be."""
    kinds = {letter: unicodedata.category(letter) for letter in word}
    kept = (letter for letter in word if kinds[letter] != "Cf")
    return "".join(" " if kinds[letter] == "Zs" else letter for letter in kept)


def _row(text: memoryview) -> Row:
    try:
        found = str(text, "utf-8")
        return Row(clean_word(_shown(found.removeprefix(NOT))), found.startswith(NOT))
    except UnicodeDecodeError as error:
        raise ModelFileError("it is damaged: a word is not text") from error
    except InputError as error:
        raise ModelFileError(f"it has a word that cannot be one: {error}") from error


def _share(value: float) -> float:
    if not 0 <= value <= 1:
        raise ModelFileError("it is damaged: a sensitivity does not lie between 0 and 1")
    # As a person gave it, before it was a number of 32 bits.
    return round(value, 6)
