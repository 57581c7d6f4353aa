"""The paper's names and ours, and which backbones can be had here."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tapword import registry
from tapword.backbones.base import Backbone
from tapword.errors import InputError, TapwordError

BACKBONES = {
    "wav2vec2_base": "W2V-B",
    "wav2vec2_large": "W2V-L",
    "emformer_base": "Emf-B",
    "hubert_base": "HB-B",
    "hubert_large": "HB-L",
    "hubert_xlarge": "HB-XL",
}
# Encoders that come with a package, where the paper's need a download.
STAND_INS = ("speech_embedding", "wakehubert_tiny", "moonshine_tiny", "moonshine_base")

# Paper's name -> the right rule, and what the paper's code very likely ran.
LEARNERS = {
    "FT": ("finetune", "finetune:vocabulary={words}"),
    "PRCP": ("perceptron", "perceptron"),
    "SNB": ("snb", "snb:variant=reference"),
    "SOvR": ("sovr", "sovr"),
    "NCM": ("ncm", "ncm"),
    "CBCL": ("cbcl", "cbcl:variant=reference"),
    "SLDA": ("slda", "slda:variant=reference"),
    "SQDA": ("sqda", "sqda:enough=0"),
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
# R = 1 is the average.
ORDERS = ("avg", "tap:R=2", "tap:R=3", "tap:R=4", "tap", "tap:R=6")


def learner(name: str, exact: bool, words: Sequence[str]) -> str:
    """Our learner for one of the paper's, with its arguments.

    Parameters
    ----------
    name
        Key of `LEARNERS`.
    exact
        The right rule, instead of what the paper's code very likely ran.
    words
        Of the data set: the reference gives the softmax layer its outputs ahead of the words.

    Examples
    --------
    >>> learner("SLDA", exact=False, words=["go"]), learner("SLDA", exact=True, words=["go"])
    ('slda:variant=reference', 'slda')
    """
    right, reference = LEARNERS[name]
    if exact or ("{words}" in reference and set(",+") & set("".join(words))):
        return right
    return reference.format(words="+".join(words))


def split_specs(given: Sequence[str]) -> list[str]:
    """Take names apart that commas separate; commas inside a part's arguments stay.

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
    """Backbones to run.

    Attributes
    ----------
    usable
        Made and tried.
    lacking
        Name -> why it cannot be had here.
    random
        For the comparison with random weights: name -> the backbone without training.
    """

    usable: list[Backbone]
    lacking: dict[str, str]
    random: dict[str, Backbone]


def find_backbones(
    asked: Sequence[str],
    weights: str | None,
    untrained: bool,
    progress: Callable[[str, int, int], None] | None = None,
) -> Backbones:
    """Make backbones and try each on a second of silence.

    Parameters
    ----------
    asked
        Names with arguments; none: the paper's six and the stand-ins.
    weights
        "random" for those that can be had without training; None: as named.
    untrained
        Make the untrained ones of `Backbones.random` too.
    progress
        Called with (what, done, all).
    """
    if weights not in (None, "pretrained", "random"):
        raise InputError(f"--weights must be pretrained or random, got {weights!r}")
    specs = list(asked) or [*BACKBONES, *STAND_INS]
    made = {spec: _make(spec, weights) for spec in specs}
    usable, lacking = [], {}
    for done, (spec, backbone) in enumerate(made.items(), start=1):
        if progress:
            progress("looking for weights", done, len(made))
        try:
            backbone.frames(np.zeros(backbone.sample_rate, dtype=np.float32))
            usable.append(backbone)
        except TapwordError as error:
            lacking[spec] = " ".join(str(error).split())
    random: dict[str, Backbone] = {}
    if untrained:
        # Large networks take hours without a GPU: by default those of the paper's table alone.
        names = specs if asked else [spec for spec in specs if spec.startswith("wav2vec2_")]
        for name in dict.fromkeys(untrained_name(spec) for spec in names if trains(spec)):
            backbone = _make(name, "random")
            try:
                backbone.frames(np.zeros(backbone.sample_rate, dtype=np.float32))
                random[name] = backbone
            except TapwordError as error:
                reason = " ".join(str(error).split())
                if lacking.get(name) != reason:
                    lacking[f"{name}, untrained"] = reason
    if not usable and not random:
        reasons = "; ".join(lacking.values())
        raise InputError(f"none of the backbones can be had here: {reasons}")
    return Backbones(usable, lacking, random)


def trains(spec: str) -> bool:
    """Tell whether a backbone can be had with random weights."""
    cls = registry.classes("backbones").get(spec.partition(":")[0])
    parameter = cls.parameters().get("weights") if cls else None
    return parameter is not None and parameter.default == "pretrained"


def untrained_name(spec: str) -> str:
    """Name a backbone without saying where its weights come from.

    Examples
    --------
    >>> untrained_name("hubert_base:layer=6,weights=random"), untrained_name("logmel")
    ('hubert_base:layer=6', 'logmel')
    """
    name, _, rest = spec.partition(":")
    kept = [item for item in rest.split(",") if item and not item.startswith("weights=")]
    return ":".join([name, ",".join(kept)] if kept else [name])


def _make(spec: str, weights: str | None) -> Backbone:
    if weights and trains(spec) and "weights=" not in spec:
        spec += f"{',' if ':' in spec else ':'}weights={weights}"
    return registry.build("backbones", spec)
