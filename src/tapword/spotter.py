"""Spotter = backbone + pooling + learner; with evaluate.py, the only place the three meet."""

import contextlib
import os
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tapword
from tapword import audio as audio_room
from tapword import modelfile, registry, sizes
from tapword.backbones.base import Backbone
from tapword.errors import InputError, ModelFileError
from tapword.learners.base import Learner
from tapword.poolings.base import Pooling
from tapword.vectors import CLIP_S, block_poolings, pool_audio

Audio = str | os.PathLike[str] | np.ndarray

# Parts that are not named where others are.
BACKBONE, POOLING, LEARNER = "speech_embedding", "tap", "ridge"


class Prediction(NamedTuple):
    """What a spotter heard.

    Attributes
    ----------
    word
        The best word; None where nothing is taught.
    score
        Its score on the learner's own scale; None where nothing is taught.
    probabilities
        Word -> share, over all taught words, best first.
    """

    word: str | None
    score: float | None
    probabilities: dict[str, float]


class Spotter:
    """Teach words from clips, one at a time; recognise them.

    Parameters
    ----------
    backbone
        Name with arguments (`"speech_embedding:layers=b64+emb"`), a `Backbone`, or a list of
        either, whose vectors are put side by side.
    pooling
        Name with arguments (`"tap:R=3"`), a `Pooling`, or a list with one for each backbone.
    learner
        Name with arguments or a `Learner`.
    size
        "small", "medium" or "large" instead of parts; a spotter without any argument is "small".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> spotter = Spotter(backbone="logmel", pooling="avg", learner="ncm")
    >>> low, high = (0.1 * np.sin(np.arange(16000) * pitch) for pitch in (0.1, 0.9))
    >>> spotter.learn(low, "low")
    >>> spotter.learn(high, "high")
    >>> spotter.predict(low + 0.001 * rng.standard_normal(16000)).word
    'low'
    """

    def __init__(
        self,
        backbone: str | Backbone | Sequence[str | Backbone] | None = None,
        pooling: str | Pooling | Sequence[str | Pooling] | None = None,
        learner: str | Learner | None = None,
        size: str | None = None,
    ):
        parts = (backbone, pooling, learner)
        if size is not None and parts != (None, None, None):
            raise InputError(f"give either size={size!r} or parts, not both")
        if parts == (None, None, None):
            backbone, pooling, learner = sizes.size(size or sizes.DEFAULT)
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
        self.backbones: list[Backbone] = [_part("backbones", part, Backbone) for part in backbones]
        self.poolings: list[Pooling] = [_part("poolings", part, Pooling) for part in poolings]
        self.learner: Learner = _part("learners", LEARNER if learner is None else learner, Learner)
        self._block_poolings: list[list[Pooling]] | None = None
        self._generation = 0
        self._revision: str | None = None

    def __repr__(self) -> str:
        sides = zip(self.backbones, self.poolings, strict=True)
        vector = " | ".join(f"{backbone.spec} -> {pooling.spec}" for backbone, pooling in sides)
        return f"<Spotter {vector} -> {self.learner.spec}, {len(self.words)} words>"

    @property
    def words(self) -> dict[str, int]:
        """Word -> how many samples it was taught."""
        return dict(self.learner.words)

    def learn(self, audio: Audio, word: str, sample_rate: int = audio_room.SAMPLE_RATE) -> None:
        """Learn one clip of a word, known or new; the clip is not kept.

        Parameters
        ----------
        audio
            A sound file, or samples of shape (n,): float in [-1, 1] or int16.
        word
            What is said in it.
        sample_rate
            Rate of `audio` where it is an array.
        """
        word = clean_word(word)
        self.learner.learn_one(self.vectors([audio], sample_rate, learning=True)[0], word)

    def learn_many(
        self,
        audios: Sequence[Audio],
        words: Sequence[str],
        sample_rate: int = audio_room.SAMPLE_RATE,
    ) -> None:
        """Learn many clips: equal to `learn` in order, faster; all of them or none."""
        if len(audios) != len(words):
            raise InputError(f"got {len(audios)} clips for {len(words)} words")
        if len(audios):
            self.learn_vectors(self.vectors(audios, sample_rate, learning=True), words)

    def learn_vectors(self, vectors: np.ndarray, words: Sequence[str]) -> None:
        """Learn vectors (n, D) that `vectors` gave."""
        self.learner.learn_many(vectors, [clean_word(word) for word in words])

    def predict(self, audio: Audio, sample_rate: int = audio_room.SAMPLE_RATE) -> Prediction:
        """Say which taught word a clip is; word None where nothing is taught."""
        return self.predict_many([audio], sample_rate)[0]

    def predict_many(
        self, audios: Sequence[Audio], sample_rate: int = audio_room.SAMPLE_RATE
    ) -> list[Prediction]:
        """Predictions of many clips, equal to `predict` one by one."""
        return self.predict_vectors(self.vectors(audios, sample_rate)) if len(audios) else []

    def predict_vectors(self, vectors: np.ndarray) -> list[Prediction]:
        """Predictions of vectors (n, D) that `vectors` gave."""
        scores = self.learner.scores(vectors)
        if not self.learner.words:
            return [Prediction(None, None, {})] * len(scores)
        names = list(self.learner.words)
        result = []
        for row, shares in zip(scores, self.learner.probabilities(scores), strict=True):
            order = np.argsort(-row, kind="stable")
            ranked = {names[index]: float(shares[index]) for index in order}
            result.append(Prediction(names[order[0]], float(row[order[0]]), ranked))
        return result

    def vectors(
        self,
        audios: Sequence[Audio],
        sample_rate: int = audio_room.SAMPLE_RATE,
        learning: bool = False,
    ) -> np.ndarray:
        """Pool clips into vectors (n, D): every block of every backbone, side by side."""
        clips = [audio_room.fill(audio_room.load(audio, sample_rate), CLIP_S) for audio in audios]
        if self._block_poolings is None:
            self._block_poolings = list(map(block_poolings, self.poolings, self.backbones))
        return np.hstack(
            [
                pool_audio(backbone, [poolings], clips, learning)[0]
                for backbone, poolings in zip(self.backbones, self._block_poolings, strict=True)
            ]
        )

    def forget(self, word: str) -> None:
        """Remove a word."""
        self.learner.forget(clean_word(word))

    def rename(self, old: str, new: str) -> None:
        """Give a word another name."""
        self.learner.rename(clean_word(old), clean_word(new))

    def merge(self, other: "Spotter") -> None:
        """Add what another spotter of the same parts was taught."""
        self.require_same_parts(other)
        self.learner.merge(other.learner)

    def require_same_parts(self, other: "Spotter") -> None:
        """Refuse another spotter whose vectors or learner are not like this one's."""
        ours, theirs = self._parts(), other._parts()
        for key in ours:
            if ours[key] != theirs[key]:
                sides = [
                    " + ".join(
                        map(registry.describe, parts if isinstance(parts, list) else [parts])
                    )
                    for parts in (ours[key], theirs[key])
                ]
                hint = ", or their weights differ" if sides[0] == sides[1] else ""
                raise InputError(f"different {key}: {sides[0]} and {sides[1]}{hint}")

    # Files.

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Write the model; refuse where the file holds something this spotter has not seen.

        Parameters
        ----------
        path
            Where to; the file is replaced whole or not at all.
        overwrite
            Replace whatever is there.
        """
        with modelfile.locked(Path(path)):
            found = None if overwrite else modelfile.revision(Path(path))
            if found is not None and found != self._revision:
                raise ModelFileError(
                    f"{path} was changed since this spotter was loaded, or is another model; "
                    "teach through Spotter.edit(path), merge, save elsewhere, or pass "
                    "overwrite=True"
                )
            self._write(Path(path))

    def _write(self, path: Path) -> None:
        for name, array in self.learner.state().items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ModelFileError(
                    f"not saved: {name!r} of learner {self.learner.spec} has become NaN or "
                    "infinite; the file stays as it was"
                )
        header = self._parts() | {
            "version": tapword.__version__,
            "generation": self._generation + 1,
            "dim": self.learner.dim,
            "words": self.words,
        }
        header = modelfile.write(path, header, self.learner.state())
        self._generation, self._revision = header["generation"], header["revision"]

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        backbones: Sequence[str | Backbone] | None = None,
    ) -> "Spotter":
        """Read a model file.

        Parameters
        ----------
        path
            What `save` wrote.
        backbones
            The model's backbones as they are to be had here, where their weights lie elsewhere or
            they run on another device: names with arguments or `Backbone`s. They must be those the
            model was taught with.
        """
        header, arrays = modelfile.read(path)
        try:
            stored = list(header["backbones"])
            spotter = cls(
                [registry.restore("backbones", part) for part in stored]
                if backbones is None
                else list(backbones),
                [registry.restore("poolings", part) for part in header["poolings"]],
                registry.restore("learners", header["learner"]),
            )
            spotter._generation = int(header.get("generation", 0))
        except (KeyError, TypeError, AttributeError, InputError) as error:
            raise ModelFileError(f"{path} names parts that cannot be made: {error}") from error
        for wanted, given in zip_longest(stored, spotter._parts()["backbones"]):
            if wanted == given:
                continue
            if wanted is None or given is None or _unhashed(wanted) != _unhashed(given):
                taught = " + ".join(map(registry.describe, stored))
                raise ModelFileError(f"{path} was taught with another backbone: {taught}")
            raise ModelFileError(
                f"{path} was taught with weights {str(wanted.get('weights_sha256'))[:12]}… of "
                f"{given['name']}, but those at hand are {given['weights_sha256'][:12]}…; give the "
                "matching weights by Spotter.load(path, backbones=[...]) or teach anew"
            )
        try:
            spotter.learner.load_state(arrays, header["words"])
        except InputError as error:
            raise ModelFileError(f"{path} cannot be used: {error}") from error
        spotter._revision = header.get("revision")
        return spotter

    @classmethod
    @contextlib.contextmanager
    def edit(
        cls,
        path: str | os.PathLike[str],
        backbones: Sequence[str | Backbone] | None = None,
        **parts: Any,
    ) -> Iterator["Spotter"]:
        """Change a model file safely: lock, load, let the caller change, write.

        Two programs that teach one file this way lose nothing of each other. On an error the file
        stays as it was.

        Parameters
        ----------
        path
            The model file.
        backbones
            As in `load`.
        parts
            What to make a new spotter of, where there is no file; a file of other parts is refused.
        """
        path = Path(path)
        with modelfile.locked(path):
            if os.path.lexists(path):
                spotter = cls.load(path, backbones)
                if parts:
                    spotter.require_same_parts(cls(**parts))
            else:
                spotter = cls(**parts)
            yield spotter
            spotter._write(path)

    def _parts(self) -> dict[str, Any]:
        return {
            "backbones": [
                registry.store(backbone, skip=backbone.machine_arguments)
                | {"weights_sha256": backbone.weights_sha256}
                for backbone in self.backbones
            ],
            "poolings": [registry.store(pooling) for pooling in self.poolings],
            "learner": registry.store(self.learner),
        }


def load(path: str | os.PathLike[str]) -> Spotter:
    """Read a model file: short for `Spotter.load`."""
    return Spotter.load(path)


def _unhashed(stored: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in stored.items() if key != "weights_sha256"}


def clean_word(word: str) -> str:
    """One spelling for words that look the same; refuse what cannot be shown.

    Examples
    --------
    >>> clean_word(" lamp ")
    'lamp'
    """
    if not isinstance(word, str):
        raise InputError(f"a word must be a string, got {word!r}")
    cleaned = unicodedata.normalize("NFC", word).strip()
    if not cleaned or len(cleaned) > 200 or not cleaned.isprintable():
        raise InputError(f"a word must be 1 to 200 printable characters, got {word[:220]!r}")
    return cleaned


def _several(parts: Any, default: str) -> list[Any]:
    """List what was given as one part, several or none."""
    if parts is None:
        return [default]
    return [parts] if isinstance(parts, str | registry.Part) else list(parts)


def _part(room: str, value: Any, kind: type) -> Any:
    if isinstance(value, str):
        return registry.build(room, value)
    if isinstance(value, kind):
        return value
    raise InputError(f"expected a {room[:-1]} or its name, got {value!r}")
