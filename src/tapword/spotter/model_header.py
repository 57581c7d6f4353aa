"""The header of a model file, validated before anything uses it.

| key | meaning |
|---|---|
| format, version | number of this layout, and the tapword that wrote it |
| generation, revision | counter and identifier of this version of the file |
| words, negatives | word -> samples taught as it, and as not it |
| synthetic | word -> clips of it that a voice spoke |
| voices | word -> names of these voices |
| rows | [word, whether negative] of each row of the arrays, if there are negatives |
| sensitivity, sensitivities | from 0 to 1, of all words; word -> its own |
| lengths | word -> its `vocabulary.Length`; samples of other words are 1 s |
| backbones, poolings, learner | parts with their arguments, backbones with their weights' hash |
| align, augment, whitening | how clips are prepared, and hashes of the whitenings |
| dim | numbers per vector |
| checksum | of the arrays |

A file is data: it names parts of tapword and gives them numbers within bounds, and nothing else.
Paths of weights and numbers of threads never come from it.
"""

import json
import math
import re
from typing import Any

from tapword import registry
from tapword.backbones.base import Backbone
from tapword.errors import InputError, ModelFileError
from tapword.learners.base import Learner, Row
from tapword.registry import MAX_WHOLE
from tapword.spotter.vocabulary import LONGEST_S, SENSITIVITY, clean_word
from tapword.support.atomic_files import PathLike

# Format 3 has synthetic clips, and is written only where there are any.
FORMAT = 3
# Files are sealed from this format on; some of format 1 are not.
SEALED = 2
# Far more than any model has: numbers per vector (the square root of a covariance of 1,280 numbers
# has 819,840), backbones, characters of a text.
MAX_DIM, MAX_PARTS, MAX_TEXT = 2**24, 16, 1000
# Logarithm of the longest sample in seconds, with a margin for rounding.
MAX_LOG_LENGTH = math.log(LONGEST_S) + 0.01
# Characters of a file's content in a message.
MAX_EXCERPT = 300


def excerpt(value: Any) -> str:
    r"""Quote a file's content in a message: bounded, and without control characters.

    Examples
    --------
    >>> print(excerpt("lamp" + chr(27)))
    'lamp\x1b'
    """
    try:
        text = repr(value)
    except RecursionError:
        return "..."
    return text if len(text) <= MAX_EXCERPT else f"{text[:MAX_EXCERPT]}..."


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make the dict of a JSON object; refuse duplicate names."""
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a name comes twice")
    return result


def parse(path: PathLike, text: str) -> dict[str, Any]:
    """Read a header's JSON; refuse formats of later versions."""
    try:
        header = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged: its header is not JSON ({error})") from error
    if not isinstance(header, dict) or not _whole(header.get("format"), 1):
        raise ModelFileError(f"{path} is damaged: its header has no format number")
    if header["format"] > FORMAT:
        raise ModelFileError(
            f"{path} was written by tapword {excerpt(header.get('version', '?'))} in format "
            f"{header['format']}; this tapword reads up to {FORMAT}: "
            "upgrade with pip install -U tapword"
        )
    return header


def format_for(header: dict[str, Any]) -> int:
    """Format to write a header in: the oldest that has what it needs."""
    return FORMAT if header.get("synthetic") else SEALED


def validate(path: PathLike, header: dict[str, Any]) -> dict[str, Any]:
    """Return a header with today's keys; refuse what tapword would not have written."""

    def require(valid: bool, problem: str) -> None:
        if not valid:
            raise ModelFileError(f"{path} is damaged: {problem}")

    require(_is_table(header.get("words"), least=0), "its header has no list of words")
    try:
        if header["format"] == 1:
            header = _from_format_1(header)
        for word in header["words"]:
            if clean_word(word) != word:
                raise InputError(f"the word {excerpt(word)} is not spelled as tapword spells it")
    except InputError as error:
        raise ModelFileError(f"{path} is damaged: {error}") from error
    absent: dict[str, Any] = {"negatives": {}, "synthetic": {}, "rows": None, "dim": None}
    absent |= {"voices": {}, "sensitivity": SENSITIVITY, "sensitivities": {}, "lengths": {}}
    # Earlier versions kept thresholds of scores that no longer exist.
    header = absent | {key: header[key] for key in header if key != "calibrated"}
    words = header["words"]
    for key in ("negatives", "synthetic", "voices", "sensitivities", "lengths"):
        of_words = isinstance(header[key], dict) and header[key].keys() <= words.keys()
        require(of_words, f"its {key} are not of its words: {excerpt(header[key])}")
    require(_is_table(header["negatives"]), "its negatives are not counts of its words")
    require(_is_table(header["synthetic"]), "its synthetic clips are not counts of its words")
    for names in header["voices"].values():
        require(_are_names(names), f"voices {excerpt(names)}")
    clips = {word: n + header["synthetic"].get(word, 0) for word, n in words.items()}
    require(all(clips.values()), "it has a word without samples")
    header["rows"] = _rows(path, header["rows"])
    revision = header.get("revision")
    numbered = _whole(header.get("generation", 0)) and isinstance(revision, str) and revision != ""
    require(numbered, "its header has no generation or revision")
    dim = header["dim"]
    require(dim is None or _whole(dim, 1, MAX_DIM), f"vectors of {excerpt(dim)} numbers")
    for value in (header["sensitivity"], *header["sensitivities"].values()):
        problem = f"a sensitivity of {excerpt(value)}, which must be from 0 to 1"
        require(_is_number(value) and value <= 1, problem)
    for word, pair in header["lengths"].items():
        is_pair = isinstance(pair, list) and len(pair) == 2 and all(map(_is_number, pair))
        # The squares of n numbers from 0 to the longest are no larger.
        largest = MAX_LOG_LENGTH, clips[word] * MAX_LOG_LENGTH**2 / 4 + 0.01
        bounded = is_pair and pair[0] <= largest[0] and pair[1] <= largest[1]
        require(bounded, f"samples of length {excerpt(pair)}")
    for parts in (header.get("backbones"), header.get("poolings"), [header.get("learner")]):
        counted = isinstance(parts, list) and 1 <= len(parts) <= MAX_PARTS
        if not counted or not all(map(_is_part, parts or ())):
            raise ModelFileError(
                f"{path} names parts that cannot be made: {excerpt(parts)} should be 1 to "
                f"{MAX_PARTS} names with arguments"
            )
    by_word = {"words", "negatives", "synthetic", "voices", "rows", "sensitivities", "lengths"}
    for key in header.keys() - by_word:
        _check_plain(path, [key, header[key]])
    return header


def _is_number(value: Any) -> bool:
    """Whether this is a number from 0 on, within bounds."""
    return type(value) in (int, float) and 0 <= value <= MAX_WHOLE


def make_learner(path: PathLike, header: dict[str, Any]) -> Learner:
    """Make a header's learner, not taught yet."""
    return _make(path, "learners", header["learner"])


def make_parts(path: PathLike, kind: str, header: dict[str, Any]) -> list[Any]:
    """Make a header's backbones or poolings, without opening weights.

    A backbone whose weights are at a path on this machine must be given instead.
    """
    made = [_make(path, kind, stored) for stored in header[kind]]
    for part, stored in zip(made, header[kind], strict=True):
        if isinstance(part, Backbone):
            here = part.machine_arguments
            if part.located_by is not None or stored["arguments"].keys() & set(here):
                raise ModelFileError(_ask_for(path, header, made))
    return made


def is_stored(stored: dict[str, Any], one: Backbone) -> bool:
    """Whether a header's backbone is this one, on whatever device; old files may name one."""
    # Arguments added after the file was written have their defaults.
    defaults = {name: parameter.default for name, parameter in one.parameters().items()}
    arguments = registry.plain(defaults) | stored["arguments"]
    for name in one.machine_arguments:
        arguments.pop(name, None)
    given = registry.store(one, skip=one.machine_arguments)
    return given == {"name": stored["name"], "arguments": arguments}


def taught_with(header: dict[str, Any]) -> str:
    """Name a header's backbones with their arguments."""
    return registry.describe("backbones", *header["backbones"])[:MAX_EXCERPT]


def _ask_for(path: PathLike, header: dict[str, Any], backbones: list[Backbone]) -> str:
    """Explain which backbones to give, and how."""
    wanted = []
    for one in backbones:
        stored = registry.store(one, skip=one.machine_arguments)
        defaults = {name: parameter.default for name, parameter in one.parameters().items()}
        kept = {k: v for k, v in stored["arguments"].items() if v != defaults[k]}
        place = {one.located_by: "..."} if one.located_by else {}
        wanted.append(registry.describe("backbones", {"name": one.name, "arguments": place | kept}))
    return (
        f"{path} was taught with {taught_with(header)}; paths of weights and devices never come "
        f"from a file: give the backbone with Spotter.load(path, backbones={wanted}), "
        f"or on the command line with {' '.join(f'--backbone {one}' for one in wanted)}"
    )


def _make(path: PathLike, kind: str, stored: dict[str, Any]) -> Any:
    try:
        return registry.restore(kind, stored)
    except (ArithmeticError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(
            f"{path} names parts that cannot be made: {str(error)[:MAX_EXCERPT]}"
        ) from error


def _from_format_1(header: dict[str, Any]) -> dict[str, Any]:
    """Convert a header to today's keys and spelling of words.

    Negatives were among the words, with a sign, and words had any spelling.
    """
    sign = "¬"
    counts: dict[Row, int] = {}
    for word, count in header["words"].items():
        row = Row(clean_word(word.removeprefix(sign)), word.startswith(sign))
        if row in counts:
            raise InputError(f"two of its words are spelled {row.word!r}")
        counts[row] = count
    return header | {
        "words": {row.word: n for row, n in counts.items() if not row.negative},
        "negatives": {row.word: n for row, n in counts.items() if row.negative},
        "rows": list(counts),
        "augment": header.get("copies", False),
        "whitening": header.get("prior") or [],
    }


def _rows(path: PathLike, rows: Any) -> list[Row] | None:
    if rows is None:
        return None
    try:
        return [Row(str(word), bool(negative)) for word, negative in rows]
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"{path} is damaged: its negatives are not of its words") from error


def _check_plain(path: PathLike, value: Any) -> None:
    """Refuse unprintable text and too large numbers at any depth."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str):
            if len(value) > MAX_TEXT or not value.isprintable():
                raise ModelFileError(f"{path} is damaged: its header says {excerpt(value)}")
        elif isinstance(value, int | float) and not abs(value) <= MAX_WHOLE:
            raise ModelFileError(f"{path} is damaged: its header has a number beyond 2^53")


def _whole(value: Any, minimum: int = 0, maximum: int = MAX_WHOLE) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum


def _is_table(value: Any, least: int = 1) -> bool:
    """Whether this is word -> count."""
    return isinstance(value, dict) and all(_whole(count, least) for count in value.values())


def _are_names(names: Any) -> bool:
    """Whether these are names of parts."""
    return (
        isinstance(names, list)
        and 1 <= len(names) <= MAX_PARTS
        and all(isinstance(n, str) and re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", n) for n in names)
    )


def _is_part(part: Any) -> bool:
    return (
        isinstance(part, dict)
        and isinstance(part.get("name"), str)
        and isinstance(part.get("arguments"), dict)
        and re.fullmatch("[0-9a-f]{0,64}", str(part.get("weights_sha256", ""))) is not None
    )
