"""Spotters in files: save, load, and change what others may be changing too."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, Self

import numpy as np

from tapword import modelfile, registry
from tapword.backbones.base import Backbone
from tapword.errors import InputError, ModelFileError
from tapword.front import Front
from tapword.learners.base import Learner
from tapword.poolings.base import Pooling
from tapword.priors.prior import Prior
from tapword.version import __version__


class Saved:
    """What of a spotter has to do with files.

    Attributes
    ----------
    front, learner
        Its parts.
    calibrated
        Word -> threshold measured on recordings without it.
    """

    front: Front
    learner: Learner
    calibrated: dict[str, float]
    _generation = 0
    _revision: str | None = None

    def __init__(self, *parts: Any, **options: Any):
        raise NotImplementedError

    def require_same_parts(self, other: "Saved") -> None:
        """Refuse another spotter whose vectors or learner are not like this one's."""
        ours, theirs = self._parts(), other._parts()
        for key in ours:
            # However a sample was heard, its vector is one of the same kind.
            if key != "copies" and ours[key] != theirs[key]:
                if key in ("align", "prior"):
                    raise InputError(f"different {key}: {ours[key]} and {theirs[key]}")
                sides = [
                    " + ".join(
                        map(registry.describe, parts if isinstance(parts, list) else [parts])
                    )
                    for parts in (ours[key], theirs[key])
                ]
                hint = ", or their weights differ" if sides[0] == sides[1] else ""
                raise InputError(f"different {key}: {sides[0]} and {sides[1]}{hint}")

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
            "version": __version__,
            "generation": self._generation + 1,
            "dim": self.learner.dim,
            "words": dict(self.learner.words),
            "calibrated": self.calibrated,
        }
        header = modelfile.write(path, header, self.learner.state())
        self._generation, self._revision = header["generation"], header["revision"]

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        backbones: Sequence[str | Backbone] | None = None,
        prior: str | Sequence[Prior] = "shipped",
    ) -> Self:
        """Read a model file.

        Parameters
        ----------
        path
            What `save` wrote.
        backbones
            The model's backbones as they are to be had here, where their weights lie elsewhere or
            they run on another device: names with arguments or `Backbone`s. They must be those the
            model was taught with.
        prior
            The model's prior, where it is not the shipped one.
        """
        header, arrays = modelfile.read(path, _most_bytes)
        try:
            stored = list(header["backbones"])
            spotter = cls(
                [registry.restore("backbones", part) for part in stored]
                if backbones is None
                else list(backbones),
                [registry.restore("poolings", part) for part in header["poolings"]],
                registry.restore("learners", header["learner"]),
                align=bool(header.get("align", False)),
                copies=bool(header.get("copies", False)),
                prior=prior if header.get("prior") else "none",
            )
            spotter._generation = int(header.get("generation", 0))
            spotter.calibrated = _calibrated(header)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
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
        if spotter._parts()["prior"] != (header.get("prior") or []):
            raise ModelFileError(
                f"{path} was taught with another prior than the one at hand; give the one it was "
                "taught with by Spotter.load(path, prior=[...]), or teach anew"
            )
        spotter._require_dim(path, header["dim"])
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
    ) -> Iterator[Self]:
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
                prior = parts.get("prior")
                spotter = cls.load(path, backbones, prior or "shipped")
                if prior not in (None, "none", "shipped") and not spotter.front.priors:
                    raise InputError(f"{path} was taught without a prior; leave it out")
                if parts.keys() - {"prior"}:
                    spotter.require_same_parts(cls(**parts))
            else:
                spotter = cls(**parts)
            yield spotter
            spotter._write(path)

    def _require_dim(self, path: str | os.PathLike[str], taught: Any) -> None:
        """Refuse parts whose vectors are not as long as those the learner was taught."""
        if taught is None or any(type(p).fixed is not Pooling.fixed for p in self.front.poolings):
            return
        dim = self.front.dim()
        if dim != taught:
            raise ModelFileError(
                f"{path} was taught vectors of {taught} numbers, its parts give {dim}: it is "
                "damaged"
            )

    def _parts(self) -> dict[str, Any]:
        return self.front.stored() | {"learner": registry.store(self.learner)}


def _calibrated(header: dict[str, Any]) -> dict[str, float]:
    """Thresholds of taught words."""
    found = {}
    for word, value in (header.get("calibrated") or {}).items():
        if word not in header["words"] or not np.isfinite(float(value)):
            raise InputError(f"a threshold of {value!r} for {word!r}")
        found[word] = float(value)
    return found


def _most_bytes(header: dict[str, Any]) -> int:
    """How many bytes the state of a header's learner can take with its words."""
    try:
        if header["dim"] is None:
            return 0
        learner: Learner = registry.restore("learners", header["learner"])
        fixed, per_word = learner._size(int(header["dim"]))
    except (ArithmeticError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(
            f"a model file names a learner that cannot be made: {error}"
        ) from error
    return fixed + per_word * len(header["words"])


def _unhashed(stored: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in stored.items() if key != "weights_sha256"}
