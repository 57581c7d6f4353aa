"""Spotters chosen for you: how much the device can hold -> which parts.

docs/results.md has the accuracy and state of each. Which encoders stand side by side, and their
moments, follow trials on the same recordings.
"""

from typing import NamedTuple

from tapword.errors import InputError


class Size(NamedTuple):
    """Parts of a spotter, each with its arguments; one pooling for each backbone."""

    backbones: tuple[str, ...]
    poolings: tuple[str, ...]
    learner: str


SIZES = {
    "small": Size(("speech_embedding",), ("tap",), "ridge"),
    "medium": Size(("speech_embedding", "moonshine_tiny"), ("tap", "tap:R=2"), "ridge"),
    "large": Size(("speech_embedding", "moonshine_base"), ("tap", "tap:R=2"), "ridge"),
}
DEFAULT = "small"


def size(name: str) -> Size:
    """Parts of a size by its name.

    Examples
    --------
    >>> size("small").learner
    'ridge'
    >>> size("huge")
    Traceback (most recent call last):
    ...
    tapword.errors.InputError: no size named 'huge'; known: small, medium, large
    """
    if name not in SIZES:
        raise InputError(f"no size named {name!r}; known: {', '.join(SIZES)}")
    return SIZES[name]
