"""Presets: size of the device -> parts.

docs/results/sizes.md has the accuracy and state of each, docs/choices.md how they were chosen.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tapword.errors import InputError


class Preset(NamedTuple):
    """Parts of a spotter, each with its arguments; one pooling for each backbone."""

    backbones: tuple[str, ...]
    poolings: tuple[str, ...]
    learner: str
    align: bool = True
    augment: bool = True


# The presets' learner for other backbones and poolings, which have no whitening.
UNWHITENED = "cosine:prior=diagonal,covariance=full"
# For a backbone that no preset names: the paper's.
POOLING = "tap"

_LEARNER = "cosine:prior=shipped,covariance=full"

PRESETS = {
    "small": Preset(("ear_s",), ("attentive",), _LEARNER),
    "medium": Preset(("tapword_ear", "moonshine_tiny"), ("attentive", "tap:R=2"), _LEARNER),
    "large": Preset(("tapword_ear", "moonshine_base"), ("attentive", "tap:R=2"), _LEARNER),
}
DEFAULT = "small"
# Parts of other backbones when they are named alone: the preset small until 0.2, and blocks and
# poolings of Google's network.
EARLIER = Preset(("tapword_ear",), ("attentive",), _LEARNER)
EMBEDDING = Preset(
    ("speech_embedding:layers=b64+emb+emb",),
    ("blocks:poolings=tap:R=2+tap:R=2+middle",),
    _LEARNER,
)


def preset(name: str) -> Preset:
    """Parts of a preset by its name.

    Examples
    --------
    >>> preset("small").learner
    'cosine:prior=shipped,covariance=full'
    >>> preset("huge")
    Traceback (most recent call last):
    ...
    tapword.errors.InputError: no size named 'huge'; known: small, medium, large
    """
    if name not in PRESETS:
        raise InputError(f"no size named {name!r}; known: {', '.join(PRESETS)}")
    return PRESETS[name]


def fill_in(
    backbones: Sequence[Any] | None, poolings: Sequence[Any] | None, learner: Any | None
) -> Preset:
    """Return the named parts, and the default preset's for the others.

    The preset's pooling belongs to its backbone, which may be named without arguments. With another
    pooling, the backbone's own arguments are left out. Another backbone gets the paper's pooling,
    except `tapword_ear` and `speech_embedding`, which have their own. Clips are prepared as in the
    preset if backbone and pooling belong together.

    Parameters
    ----------
    backbones, poolings, learner
        Names with arguments or parts; None if not named.

    Examples
    --------
    >>> fill_in(["ear_s"], None, None) == preset("small")
    True
    >>> fill_in(["tapword_ear"], None, None) == EARLIER
    True
    >>> fill_in(["speech_embedding"], None, None) == EMBEDDING
    True
    >>> fill_in(None, ["avg"], "slda")[:3]
    (('ear_s',), ('avg',), 'slda')
    """
    default = PRESETS[DEFAULT].backbones
    for own in (PRESETS[DEFAULT], EARLIER, EMBEDDING):
        named = default if backbones is None else tuple(backbones)
        its_backbone = named in (_bare(own.backbones), own.backbones)
        all_named = (tuple(backbones or ()), tuple(poolings or ())) == (own.backbones, own.poolings)
        if (poolings is None and its_backbone) or all_named:
            return own._replace(learner=learner or own.learner)
    return Preset(
        _bare(default) if backbones is None else tuple(backbones),
        (POOLING,) if poolings is None else tuple(poolings),
        learner or UNWHITENED,
        align=False,
        augment=False,
    )


def _bare(backbones: Sequence[str]) -> tuple[str, ...]:
    return tuple(spec.partition(":")[0] for spec in backbones)
