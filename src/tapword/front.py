"""Everything before the learner: clips -> vectors, through backbones, poolings and priors."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapword import registry
from tapword.audio import SAMPLE_RATE
from tapword.backbones.base import Backbone
from tapword.errors import InputError
from tapword.poolings.base import Pooling
from tapword.priors import prior as priors_room
from tapword.priors.prior import Prior, join
from tapword.vectors import Hearing, block_poolings, pool_audio

# Parts that are not named where others are.
BACKBONE, POOLING = "speech_embedding", "tap"
# Share of what the other backbones could add to a score at most that the best words reach.
HELP = 0.8
# Whitened vectors this close to white noise's, as a cosine, are noise: recordings of a tap, a bike,
# dishes and a cat come to 0.88 and more; of clips of words, in noise of 10 dB or without, 98 of 100
# stay below 0.7, and in most of the rest no word is to be heard.
NOISE = 0.75


class Front:
    """Backbones side by side, each with its pooling and, where there is one, its prior.

    Parameters
    ----------
    backbone, pooling
        As for `Spotter`.
    hearing
        How clips are heard.
    prior
        "shipped", "none" or `Prior`s, among which one is for each backbone.
    """

    def __init__(
        self,
        backbone: str | Backbone | Sequence[str | Backbone] | None,
        pooling: str | Pooling | Sequence[str | Pooling] | None,
        hearing: Hearing,
        prior: str | Sequence[Prior],
    ):
        backbones, poolings = _several(backbone, BACKBONE), _several(pooling, POOLING)
        if not backbones:
            raise InputError("a spotter needs at least one backbone")
        if len(poolings) == 1:
            poolings *= len(backbones)
        if len(poolings) != len(backbones):
            raise InputError(
                f"got {len(poolings)} poolings for {len(backbones)} backbones: give one for all, "
                "or one for each"
            )
        self.backbones: list[Backbone] = [make("backbones", part, Backbone) for part in backbones]
        self.poolings: list[Pooling] = [make("poolings", part, Pooling) for part in poolings]
        self.hearing = hearing
        self.priors = self._choose(prior)
        self._block_poolings: list[list[Pooling]] | None = None

    def __repr__(self) -> str:
        vector = " | ".join(
            f"{backbone.spec} -> {pooling.spec}" for backbone, pooling in self.sides
        )
        heard = "align -> " * self.hearing.align + "copies -> " * self.hearing.copies
        return f"{heard}{vector}{' -> prior' * bool(self.priors)}"

    @property
    def sides(self) -> list[tuple[Backbone, Pooling]]:
        """Each backbone with its pooling."""
        return list(zip(self.backbones, self.poolings, strict=True))

    def pool(self, clips: Sequence[np.ndarray], learning: bool = False) -> np.ndarray:
        """Pool clips (n,) float32, which are aligned or filled already: (n, D)."""
        sides = [
            pool_audio(backbone, [poolings], clips, learning, learning and self.hearing.copies)[0]
            for backbone, poolings in zip(self.backbones, self._poolings(), strict=True)
        ]
        return join(sides, self.priors)

    def propose(
        self, clip: np.ndarray, weights: np.ndarray, biases: np.ndarray, thresholds: Sequence[float]
    ) -> np.ndarray | None:
        """Linear scores of a clip by the first backbone alone, if no word can be the answer.

        Parameters
        ----------
        clip
            As for `pool`.
        weights, biases, thresholds
            Of the words' scores: (K, D), (K,) and (K,).

        Returns
        -------
        np.ndarray or None
            Shape (K,), scaled to stand for whole scores, -inf for noise; None where the other
            backbones have to be asked, because `HELP` of what they could add lifts a word above its
            threshold.
        """
        factors = priors_room.weights(self.priors)
        x = self._first(clip) * np.float32(factors[0])
        if self.is_noise(x[None])[0]:
            return np.full(len(biases), -np.inf)
        scores = weights[:, : len(x)] @ x + biases
        # Whitened vectors have a known length, so the most that the rest can add is known too.
        squares = zip(factors[1:], self.priors[1:], strict=True)
        length = np.sqrt(sum(factor**2 * len(prior.within) for factor, prior in squares))
        rest = np.linalg.norm(weights[:, len(x) :], axis=1) * length
        if np.any(scores + HELP * rest >= thresholds):
            return None
        own = np.linalg.norm(weights[:, : len(x)], axis=1)
        return scores * np.linalg.norm(weights, axis=1) / np.maximum(own, 1e-12)

    def is_noise(self, X: np.ndarray) -> np.ndarray:
        """Whether vectors are of noise alone, which may lie near a word taught from noisy clips.

        Parameters
        ----------
        X
            Shape (n, D) as `pool` gives them, or the part of the first backbone alone.

        Returns
        -------
        np.ndarray
            Shape (n,), bool; never where vectors are not whitened.
        """
        if not self.priors:
            return np.zeros(len(X), dtype=bool)
        X = X[:, : len(self._noise)]
        return X @ self._noise >= NOISE * np.linalg.norm(X, axis=1)

    @functools.cached_property
    def _noise(self) -> np.ndarray:
        """Direction of noise in the first backbone's whitened vectors."""
        noise = np.random.default_rng(0).standard_normal(SAMPLE_RATE, dtype=np.float32)
        x = self._first(noise * np.float32(0.05))
        return x / np.linalg.norm(x)

    def _first(self, clip: np.ndarray) -> np.ndarray:
        """Whitened vector of a clip by the first backbone."""
        [side] = pool_audio(self.backbones[0], [self._poolings()[0]], [clip], False)
        return self.priors[0](side)[0]

    def dim(self) -> int:
        """Numbers per vector."""
        return sum(sum(priors_room.group_lengths(*side)) for side in self.sides)

    def stored(self) -> dict[str, Any]:
        """Describe the parts for a model file."""
        return {
            "backbones": [
                registry.store(backbone, skip=backbone.machine_arguments)
                | {"weights_sha256": backbone.weights_sha256}
                for backbone in self.backbones
            ],
            "poolings": [registry.store(pooling) for pooling in self.poolings],
            **self.hearing._asdict(),
            "prior": [prior.sha256 for prior in self.priors],
        }

    def _poolings(self) -> list[list[Pooling]]:
        """Pooling of each block of each backbone."""
        if self._block_poolings is None:
            self._block_poolings = list(map(block_poolings, self.poolings, self.backbones))
        return self._block_poolings

    def _choose(self, prior: str | Sequence[Prior]) -> list[Prior]:
        if prior == "none":
            return []
        if isinstance(prior, str):
            if prior != "shipped":
                raise InputError(f"prior must be shipped, none or Priors, got {prior!r}")
            known = [priors_room.shipped(backbone.name) for backbone in self.backbones]
            prior = [one for one in known if one is not None]
        chosen = []
        for backbone, pooling in self.sides:
            found = priors_room.choose(prior, backbone, pooling, self.hearing.align)
            if found is None:
                raise InputError(
                    f"no prior at hand for {backbone.spec} -> {pooling.spec}"
                    f"{' aligned' if self.hearing.align else ''}; the sizes have one, and "
                    "`tapword prior` makes one for `evaluate` and the Python interface"
                )
            chosen.append(found)
        return chosen


def _several(parts: Any, default: str) -> list[Any]:
    """List what was given as one part, several or none."""
    if parts is None:
        return [default]
    return [parts] if isinstance(parts, str | registry.Part) else list(parts)


def make(room: str, value: Any, kind: type) -> Any:
    """Part of a room by its name with arguments, or as it is."""
    if isinstance(value, str):
        return registry.build(room, value)
    if isinstance(value, kind):
        return value
    raise InputError(f"expected a {room[:-1]} or its name, got {value!r}")
