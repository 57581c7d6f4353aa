"""The paper's names and ours, and the backbones available here."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tapword import registry
from tapword.backbones.base import Backbone
from tapword.errors import InputError, TapwordError, how_to_install
from tapword.research.runner import Progress

BACKBONES = {
    "wav2vec2_base": "W2V-B",
    "wav2vec2_large": "W2V-L",
    "emformer_base": "Emf-B",
    "hubert_base": "HB-B",
    "hubert_large": "HB-L",
    "hubert_xlarge": "HB-XL",
}
# Encoders whose weights come with a Python package; the paper's have to be downloaded.
STAND_INS = ("speech_embedding", "wakehubert_tiny", "moonshine_tiny", "moonshine_base")
# Extra of the smallest of them, and backbones that need no other package.
SMALLEST, SHIPPED = "speech-embedding", ("ear_s", "logmel")

# The paper's name -> the correct rule, and what the paper's code most likely ran. Neither has our
# fixes for few samples, which plain `snb` and `sqda` have.
LEARNERS = {
    "FT": ("finetune", "finetune:vocabulary={words}"),
    "PRCP": ("perceptron", "perceptron"),
    "SNB": ("snb:enough=0", "snb:variant=reference"),
    "SOvR": ("sovr", "sovr"),
    "NCM": ("ncm", "ncm"),
    "CBCL": ("cbcl", "cbcl:variant=reference"),
    "SLDA": ("slda", "slda:variant=reference"),
    "SQDA": ("sqda:enough=0", "sqda:variant=reference"),
    "iCaRL": ("icarl", "icarl:vocabulary={words}"),
}
POOLINGS = {
    "AVG": "avg",
    "MAX": "max",
    "MIX (50%)": "mix",
    "STOCH": "stochastic",
    "L2": "lp",
    "L3": "lp:p=3",
    "RAP (10%)": "rap",
    "AVGMAX": "avgmax",
    "iSQRT-COV": "isqrt_cov",
    "TSDP": "tsdp",
    "TSTP": "tstp",
    "TAP": "tap",
}
LONG_POOLINGS = {
    "AVG": "avg",
    "MAX": "max",
    "RAP 5%": "rap:share=0.05",
    "RAP 10%": "rap",
    "RAP 20%": "rap:share=0.2",
    "MAXW_2": "maxw",
    "MAXW_5": "maxw:l=5",
    "MAXW_10": "maxw:l=10",
    "FLAT": "flat",
    "TAP (R=2)": "tap:R=2",
    "TAP (R=3)": "tap:R=3",
    "TAP (R=4)": "tap:R=4",
    "TAP (R=5)": "tap",
    "TAP (R=6)": "tap:R=6",
}
# The highest moment of TAP from 1, which is the average, to 6.
MOMENTS = ("avg", "tap:R=2", "tap:R=3", "tap:R=4", "tap", "tap:R=6")


def learner(name: str, exact: bool, words: Sequence[str]) -> str:
    """Our learner for one of the paper's: the correct rule (`exact`), or what its code likely ran.

    The paper's softmax layers know all `words` of the data set from the start.

    Examples
    --------
    >>> learner("SLDA", exact=False, words=["go"]), learner("SLDA", exact=True, words=["go"])
    ('slda:variant=reference', 'slda')
    """
    right, reference = LEARNERS[name]
    if exact or ("{words}" in reference and set(",+") & set("".join(words))):
        return right
    return reference.format(words="+".join(words))


def paper_name(backbone: Backbone) -> str | None:
    """Name of a backbone in the paper; None where the paper does not use it."""
    return BACKBONES.get(backbone.name)


def paper_label(backbone: Backbone | None = None, among: int = len(BACKBONES)) -> str:
    """Which of the paper's figures we compare with: the same backbone's, or their mean."""
    return (backbone and paper_name(backbone)) or f"mean of {among}"


def split_specs(given: Sequence[str]) -> list[str]:
    """Split names at commas, except at those inside a part's arguments.

    Examples
    --------
    >>> split_specs(["logmel:pad_s=1,x=2,speech_embedding", "moonshine_tiny"])
    ['logmel:pad_s=1,x=2', 'speech_embedding', 'moonshine_tiny']
    """
    found: list[str] = []
    for piece in (piece.strip() for text in given for piece in text.split(",")):
        if "=" in piece.partition(":")[0] and found:
            found[-1] += f",{piece}"
        elif piece:
            found.append(piece)
    return list(dict.fromkeys(found))


class Backbones(NamedTuple):
    """Backbones to run, and name -> reason for those that are unavailable here.

    `untrained` maps trained names to the same networks with random weights.
    """

    usable: list[Backbone]
    unavailable: dict[str, str]
    untrained: dict[str, Backbone]


def find_backbones(
    given: Sequence[str | Backbone] = (),
    weights: str | None = None,
    untrained: bool = False,
    progress: Progress | None = None,
) -> Backbones:
    """Make backbones, or the paper's six and the stand-ins, and try each on a second of silence.

    `weights` ("random" or "pretrained") applies to backbones that have both. With `untrained`, the
    same networks with random weights are added.
    """
    if weights not in (None, "pretrained", "random"):
        raise InputError(f"--weights must be pretrained or random, got {weights!r}")
    chosen = [_make(one, weights) for one in given or [*BACKBONES, *STAND_INS]]
    found = Backbones([], {}, {})
    for done, backbone in enumerate(chosen, start=1):
        if progress:
            progress("looking for weights", done, len(chosen))
        reason = _why_unavailable(backbone)
        if reason:
            found.unavailable[backbone.spec] = reason
        else:
            found.usable.append(backbone)
    # Large networks take hours without a GPU: unless named, those of the paper's table 5 alone.
    for one in chosen if untrained else ():
        name, random = trained_name(one), _with_weights(one, "random")
        table5 = given or one.name.startswith("wav2vec2_")
        if random is None or name in found.untrained or not table5:
            continue
        reason = _why_unavailable(random)
        if not reason:
            found.untrained[name] = random
        elif found.unavailable.get(one.spec) != reason:
            found.unavailable[f"{name}, untrained"] = reason
    if not found.usable and not found.untrained and not given:
        raise InputError(
            f"no backbone for this table is installed; install one with: {how_to_install(SMALLEST)}"
            f"; or run what is installed: --backbones {','.join(SHIPPED)}"
        )
    if not found.usable and not found.untrained:
        reasons = "; ".join(found.unavailable.values())
        raise InputError(f"none of the backbones is available here: {reasons}")
    return found


def trained_name(backbone: Backbone) -> str:
    """Name with arguments of a backbone, as if it were trained.

    Examples
    --------
    >>> trained_name(registry.build("backbones", "hubert_base:layer=6,weights=random"))
    'hubert_base:layer=6'
    """
    return (_with_weights(backbone, "pretrained") or backbone).spec


def _with_weights(backbone: Backbone, weights: str) -> Backbone | None:
    """Make the same network with other weights; None where it has no random ones."""
    parameter = backbone.parameters().get("weights")
    if parameter is None or parameter.default != "pretrained":
        return None
    return type(backbone)(**backbone.arguments() | {"weights": weights})


def _make(given: str | Backbone, weights: str | None) -> Backbone:
    backbone: Backbone = registry.make("backbones", given)
    if weights is None or (isinstance(given, str) and "weights=" in given):
        return backbone
    return _with_weights(backbone, weights) or backbone


def _why_unavailable(backbone: Backbone) -> str:
    """Why a backbone gives no frames here, in one line; "" where it does."""
    try:
        backbone.frames(np.zeros(backbone.sample_rate, dtype=np.float32))
    except TapwordError as error:
        return " ".join(str(error).split())
    return ""
