"""What a model file says of itself: JSON under a checksum, believed only where it makes sense."""

import json
import unicodedata
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from tapword.errors import ModelFileError

FORMAT = 1


def metadata(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, str]:
    """Give safetensors' metadata: the header as JSON, and its seal."""
    text = json.dumps(header, ensure_ascii=False, default=_plain)
    return {"tapword": text, "crc32": seal(text, arrays)}


def seal(text: str, arrays: dict[str, np.ndarray]) -> str:
    """Checksum of the header's text and of the arrays' names, types and shapes."""
    table = [f"{name} {arrays[name].dtype} {arrays[name].shape}" for name in sorted(arrays)]
    return f"{zlib.crc32(repr([text, *table]).encode()):08x}"


def parse(path: Path, metadata: dict[str, str] | None) -> dict[str, Any]:
    """Take the header out of safetensors' metadata; refuse what tapword would not have written."""
    if not metadata or "tapword" not in metadata:
        raise ModelFileError(f"{path} is a safetensors file, but not a tapword model")
    try:
        header = json.loads(metadata["tapword"], object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged: its header is not JSON ({error})") from error
    if not isinstance(header, dict) or not _whole(header.get("format"), 1):
        raise ModelFileError(f"{path} is damaged: its header has no format number")
    if header["format"] > FORMAT:
        raise ModelFileError(
            f"{path} was written by tapword {header.get('version', '?')} in format "
            f"{header['format']}; this tapword reads up to {FORMAT}: "
            "upgrade with pip install -U tapword"
        )
    words = header.get("words")
    if not isinstance(words, dict) or not all(
        _shows(word) and _whole(count) for word, count in words.items()
    ):
        raise ModelFileError(f"{path} is damaged: its header has no list of words")
    if not _whole(header.get("generation", 0)) or not isinstance(header.get("revision", ""), str):
        raise ModelFileError(f"{path} is damaged: its header does not say which writing it is")
    for parts in (header.get("backbones"), header.get("poolings"), [header.get("learner")]):
        if not isinstance(parts, list) or not all(map(_is_part, parts)):
            raise ModelFileError(
                f"{path} names parts that cannot be made: {str(parts)[:200]} should be a list of "
                "names with arguments"
            )
    return header


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make the dict of a JSON object; refuse a name that comes twice, of which one would go."""
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a name comes twice")
    return result


def _whole(value: Any, minimum: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and minimum <= value < 2**63


def _shows(word: str) -> bool:
    # Control characters would act on a terminal; halves of a surrogate pair cannot be written.
    return bool(word) and not any(unicodedata.category(letter) in ("Cc", "Cs") for letter in word)


def _is_part(part: Any) -> bool:
    return (
        isinstance(part, dict)
        and isinstance(part.get("name"), str)
        and isinstance(part.get("arguments"), dict)
    )


def _plain(value: Any) -> Any:
    """Write a number of numpy's as Python's own; nothing else is there that JSON lacks."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} cannot be written as JSON")
