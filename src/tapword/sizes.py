"""Spotters chosen for you: how much the device can hold -> which parts.

docs/results.md has the accuracy, state and cost of each, and how they were chosen.
"""

from typing import NamedTuple

from tapword.errors import InputError


class Size(NamedTuple):
    """Parts of a spotter, each with its arguments; one pooling for each backbone."""

    backbones: tuple[str, ...]
    poolings: tuple[str, ...]
    learner: str
    align: bool
    copies: bool


_SMALL = "speech_embedding:layers=b64+emb+emb", "blocks:poolings=tap:R=2+tap:R=2+middle"
_LEARNER = "cosine:prior=shipped,covariance=full"

SIZES = {
    "small": Size(_SMALL[:1], _SMALL[1:], _LEARNER, True, True),
    "medium": Size((_SMALL[0], "moonshine_tiny"), (_SMALL[1], "tap:R=2"), _LEARNER, True, True),
    "large": Size((_SMALL[0], "moonshine_base"), (_SMALL[1], "tap:R=2"), _LEARNER, True, True),
}
DEFAULT = "small"


def size(name: str) -> Size:
    """Parts of a size by its name.

    Examples
    --------
    >>> size("small").learner
    'cosine:prior=shipped,covariance=full'
    >>> size("huge")
    Traceback (most recent call last):
    ...
    tapword.errors.InputError: no size named 'huge'; known: small, medium, large
    """
    if name not in SIZES:
        raise InputError(f"no size named {name!r}; known: {', '.join(SIZES)}")
    return SIZES[name]
