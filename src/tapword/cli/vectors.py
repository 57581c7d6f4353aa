"""Read and check the vectors of `evaluate --features`."""

import zipfile
import zlib
from pathlib import Path

import numpy as np

from tapword.errors import InputError
from tapword.research.runner import Split


def read_vectors(path: Path) -> Split:
    """Read train_x (n, D), train_y (n,), test_x and test_y; `words` names integer labels."""
    arrays = _read_arrays(path)
    wanted = ("train_x", "train_y", "test_x", "test_y")
    lacking = [name for name in wanted if name not in arrays]
    if lacking:
        found = ", ".join(arrays) or "nothing"
        raise InputError(f"{path} lacks {', '.join(lacking)}; found: {found}")
    train_x, train_y, test_x, test_y = (arrays[name] for name in wanted)
    for name, X, y in (("train", train_x, train_y), ("test", test_x, test_y)):
        if X.ndim != 2 or y.shape != (len(X),) or not X.size:
            raise InputError(
                f"{path}: {name}_x must be (n, D) and {name}_y (n,); got {X.shape} and {y.shape}"
            )
    if train_x.shape[1] != test_x.shape[1]:
        raise InputError(
            f"{path}: train_x and test_x must have the same number of columns; "
            f"got {train_x.shape} and {test_x.shape}"
        )
    names = arrays.get("words")
    if names is not None and (names.ndim != 1 or names.dtype.kind != "U"):
        raise InputError(
            f"{path}: words must be (K,) of text, got {names.shape} of {names.dtype.name}"
        )
    return Split(
        _numbers(train_x, f"{path}: train_x"),
        _words(train_y, names, f"{path}: train_y"),
        _numbers(test_x, f"{path}: test_x"),
        _words(test_y, names, f"{path}: test_y"),
    )


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    refusal = f"{path} is not an .npz file of plain arrays"
    try:
        # numpy does not close a file that it cannot read.
        with open(path, "rb") as file:
            stored = np.load(file, allow_pickle=False)
            if not isinstance(stored, np.lib.npyio.NpzFile):
                raise InputError(f"{refusal}: it has one unnamed array")
            with stored:
                arrays = {name: stored[name] for name in stored.files}
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except InputError:
        raise
    except (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{refusal}: {error}") from None
    for name, array in arrays.items():
        # numpy returns other members as bytes.
        if not isinstance(array, np.ndarray):
            raise InputError(f"{refusal}: {name} is not an array")
    return arrays


def _numbers(X: np.ndarray, label: str) -> np.ndarray:
    """Convert (n, D) to finite float32."""
    if X.dtype.kind not in "fiu":
        raise InputError(f"{label} must be numbers, not {X.dtype.name}")
    with np.errstate(over="ignore"):
        X = X.astype(np.float32)
    if not np.isfinite(X).all():
        raise InputError(f"{label} contains NaN, infinite or too large numbers")
    return X


def _words(y: np.ndarray, names: np.ndarray | None, label: str) -> list[str]:
    """Words of labels (n,): the labels themselves, or indices of `names`."""
    if names is None:
        if y.dtype.kind not in "biufU":
            raise InputError(f"{label} must be words or numbers, not {y.dtype.name}")
        return [str(item) for item in y]
    if y.dtype.kind not in "iu":
        raise InputError(f"{label} must be integers, as there are words; not {y.dtype.name}")
    wrong = y[(y < 0) | (y >= len(names))]
    if len(wrong):
        raise InputError(f"{label} must be 0 to {len(names) - 1}, indices of words; got {wrong[0]}")
    return [str(names[item]) for item in y]
