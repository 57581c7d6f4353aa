"""The header of a model file: what it may say, judged before anything acts on it.

| key | what |
|---|---|
| format, version | number of this layout, and the tapword that wrote it |
| generation, revision | which writing of the file this is, for people and for programs |
| words, negatives | word -> how many samples were taught as it, and as not it |
| rows | [word, whether negative] of each row of the arrays, where there are negatives |
| sensitivity, sensitivities | from 0 to 1, of all words; word -> its own |
| lengths | word -> its `lengths.Length`; words that are not named have samples of 1 s |
| backbones, poolings, learner | parts with their arguments, backbones with their weights' hash |
| align, augment, whitening | what is done to clips, and hashes of what whitens their vectors |
| dim | numbers per vector |
| checksum | of the arrays |

A file is data: it names parts of tapword and gives them numbers within bounds, and nothing else.
Where weights lie, on the disk or on a hub, and how many threads run never come from it.
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
from tapword.spotter.lengths import LONGEST_S
from tapword.spotter.thresholds import SENSITIVITY
from tapword.spotter.words import clean_word
from tapword.support.atomic_files import PathLike

FORMAT = 2
# From here on files are sealed; those of format 1 from before that have no seal.
SEALED = 2
# Far more than any model has: numbers per vector (the square root of a covariance of 1,280 numbers
# has 819,840), backbones, characters of a text.
MOST_DIM, MOST_PARTS, MOST_TEXT = 2**24, 16, 1000
# Logarithm of the longest sample, with room for rounding.
MOST_LENGTH = math.log(LONGEST_S) + 0.01
# What a message shows of what a file says.
SHOWN = 300


def shown(value: Any) -> str:
    r"""Write what a file says into a message: not too much, and nothing a terminal obeys.

    Examples
    --------
    >>> print(shown("lamp" + chr(27)))
    'lamp\x1b'
    """
    try:
        text = repr(value)
    except RecursionError:
        return "..."
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make the dict of a JSON object; refuse a name that comes twice, of which one would go."""
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a name comes twice")
    return result


def parse(path: PathLike, text: str) -> dict[str, Any]:
    """Read a header's JSON; refuse formats of later versions, which nothing else is known of."""
    try:
        header = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged: its header is not JSON ({error})") from error
    if not isinstance(header, dict) or not _whole(header.get("format"), 1):
        raise ModelFileError(f"{path} is damaged: its header has no format number")
    if header["format"] > FORMAT:
        raise ModelFileError(
            f"{path} was written by tapword {shown(header.get('version', '?'))} in format "
            f"{header['format']}; this tapword reads up to {FORMAT}: "
            "upgrade with pip install -U tapword"
        )
    return header


def judge(path: PathLike, header: dict[str, Any]) -> dict[str, Any]:
    """Give a header today's names; refuse what tapword would not have written."""
    if not _is_table(header.get("words")):
        raise ModelFileError(f"{path} is damaged: its header has no list of words")
    try:
        if header["format"] == 1:
            header = _from_format_1(header)
        absent: dict[str, Any] = {"negatives": {}, "rows": None, "dim": None}
        absent |= {"sensitivity": SENSITIVITY, "sensitivities": {}, "lengths": {}}
        # Earlier versions kept thresholds, of scores that are no more.
        header = absent | {key: header[key] for key in header if key != "calibrated"}
        for word in header["words"]:
            if clean_word(word) != word:
                raise InputError(f"the word {shown(word)} is not spelled as tapword spells it")
    except InputError as error:
        raise ModelFileError(f"{path} is damaged: {error}") from error
    negatives = header["negatives"]
    if not _is_table(negatives) or not negatives.keys() <= header["words"].keys():
        raise ModelFileError(f"{path} is damaged: its negatives are not of its words")
    header["rows"] = _rows(path, header["rows"])
    revision = header.get("revision")
    if not _whole(header.get("generation", 0)) or not isinstance(revision, str) or not revision:
        raise ModelFileError(f"{path} is damaged: its header does not say which writing it is")
    if header["dim"] is not None and not _whole(header["dim"], 1, MOST_DIM):
        raise ModelFileError(f"{path} is damaged: vectors of {shown(header['dim'])} numbers")
    own = header["sensitivities"]
    if not isinstance(own, dict) or not own.keys() <= header["words"].keys():
        raise ModelFileError(
            f"{path} is damaged: sensitivities that are not of its words: {shown(own)}"
        )
    for value in (header["sensitivity"], *own.values()):
        if type(value) not in (int, float) or not 0 <= value <= 1:
            raise ModelFileError(
                f"{path} is damaged: a sensitivity of {shown(value)}, which goes from 0 to 1"
            )
    lengths = header["lengths"]
    if not isinstance(lengths, dict) or not lengths.keys() <= header["words"].keys():
        raise ModelFileError(f"{path} is damaged: lengths that are not of its words")
    for word, pair in lengths.items():
        right = isinstance(pair, list) and len(pair) == 2 and all(map(_is_length, pair))
        # So many numbers between 0 and the longest are spread no wider.
        most = MOST_LENGTH, header["words"][word] * MOST_LENGTH**2 / 4 + 0.01
        if not right or pair[0] > most[0] or pair[1] > most[1]:
            raise ModelFileError(f"{path} is damaged: samples of length {shown(pair)}")
    for parts in (header.get("backbones"), header.get("poolings"), [header.get("learner")]):
        if (
            not isinstance(parts, list)
            or not 1 <= len(parts) <= MOST_PARTS
            or not all(map(_is_part, parts))
        ):
            raise ModelFileError(
                f"{path} names parts that cannot be made: {shown(parts)} should be 1 to "
                f"{MOST_PARTS} names with arguments"
            )
    for key in header.keys() - {"words", "negatives", "rows", "sensitivities", "lengths"}:
        _check_plain(path, [key, header[key]])
    return header


def _is_length(value: Any) -> bool:
    """Whether a number can be of the lengths of samples."""
    return type(value) in (int, float) and 0 <= value <= MAX_WHOLE


def make_learner(path: PathLike, header: dict[str, Any]) -> Learner:
    """Make a header's learner, which has learned nothing yet."""
    return _make(path, "learners", header["learner"])


def make_parts(path: PathLike, kind: str, header: dict[str, Any]) -> list[Any]:
    """Make a header's backbones or poolings; no weights are looked for.

    A backbone whose weights lie where only this machine knows must be given instead.
    """
    made = [_make(path, kind, stored) for stored in header[kind]]
    for part, stored in zip(made, header[kind], strict=True):
        if isinstance(part, Backbone):
            here = part.machine_arguments
            if part.located_by is not None or stored["arguments"].keys() & set(here):
                raise ModelFileError(_ask_for(path, header, made))
    return made


def is_stored(stored: dict[str, Any], one: Backbone) -> bool:
    """Whether a header's backbone is this one, wherever it runs; old files may say where."""
    # An argument that was added since the file was written has its default.
    defaults = {name: parameter.default for name, parameter in one.parameters().items()}
    arguments = registry.plain(defaults) | stored["arguments"]
    for name in one.machine_arguments:
        arguments.pop(name, None)
    given = registry.store(one, skip=one.machine_arguments)
    return given == {"name": stored["name"], "arguments": arguments}


def taught_with(header: dict[str, Any]) -> str:
    """Name a header's backbones with their arguments."""
    return registry.describe("backbones", *header["backbones"])[:SHOWN]


def _ask_for(path: PathLike, header: dict[str, Any], backbones: list[Backbone]) -> str:
    """Say which backbones to give, and how."""
    wanted = []
    for one in backbones:
        stored = registry.store(one, skip=one.machine_arguments)
        defaults = {name: parameter.default for name, parameter in one.parameters().items()}
        kept = {k: v for k, v in stored["arguments"].items() if v != defaults[k]}
        place = {one.located_by: "..."} if one.located_by else {}
        wanted.append(registry.describe("backbones", {"name": one.name, "arguments": place | kept}))
    return (
        f"{path} was taught with {taught_with(header)}; where weights lie and how they run "
        f"never comes from a file: give the backbone with Spotter.load(path, backbones={wanted}), "
        f"or on the command line with {' '.join(f'--backbone {one}' for one in wanted)}"
    )


def _make(path: PathLike, kind: str, stored: dict[str, Any]) -> Any:
    try:
        return registry.restore(kind, stored)
    except (ArithmeticError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(
            f"{path} names parts that cannot be made: {str(error)[:SHOWN]}"
        ) from error


def _from_format_1(header: dict[str, Any]) -> dict[str, Any]:
    """Bring a header of before to today's names and spelling of words.

    Negatives stood among the words, with a sign; words were stored as they were given.
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
    """Refuse text that cannot be shown and numbers without end, however deep they lie."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str):
            if len(value) > MOST_TEXT or not value.isprintable():
                raise ModelFileError(f"{path} is damaged: its header says {shown(value)}")
        elif isinstance(value, int | float) and not abs(value) <= MAX_WHOLE:
            raise ModelFileError(f"{path} is damaged: its header has a number beyond 2^53")


def _whole(value: Any, minimum: int = 0, maximum: int = MAX_WHOLE) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum


def _is_table(value: Any) -> bool:
    """Whether this is word -> count."""
    return isinstance(value, dict) and all(_whole(count, 1) for count in value.values())


def _is_part(part: Any) -> bool:
    return (
        isinstance(part, dict)
        and isinstance(part.get("name"), str)
        and isinstance(part.get("arguments"), dict)
        and re.fullmatch("[0-9a-f]{0,64}", str(part.get("weights_sha256", ""))) is not None
    )
