"""The undo file: the model before each of the last changes, for `tapword undo`.

It is `NAME.undo` beside the model, readable by its owner alone: a safetensors file with the earlier
model files as arrays of bytes, and a list of steps in its metadata. It is written inside the
model's lock.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import safetensors.numpy

from tapword.errors import ModelFileError
from tapword.support import atomic_files

# Older steps are dropped, whichever limit is reached first.
MAX_STEPS, MAX_DAYS, MAX_MB = 10, 30, 200


class Step(NamedTuple):
    """A change that can be undone.

    Attributes
    ----------
    what
        The change, for people.
    time
        When, in seconds since 1970.
    after
        Revision of the model that the change wrote.
    state
        The model file before, (n,) uint8; empty where there was none.
    """

    what: str
    time: float
    after: str
    state: np.ndarray


def path_of(model: Path) -> Path:
    """Path of a model's undo file."""
    return model.with_name(f"{model.name}.undo")


def read(model: Path) -> list[Step]:
    """Read the steps that are recent enough, oldest first."""
    path = path_of(model)
    why_not = atomic_files.why_not_file(path)
    if why_not == "does not exist":
        return []
    try:
        if why_not is not None or path.stat().st_size > 2e6 * MAX_MB:
            raise ValueError(why_not)
        content = path.read_bytes()
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        states = safetensors.numpy.load(content)
        steps = [
            Step(str(what), float(when), str(after), states[str(number)])
            for number, (what, when, after) in enumerate(
                json.loads(header["__metadata__"]["steps"])
            )
        ]
    except (
        OSError,
        ValueError,
        TypeError,
        KeyError,
        RecursionError,
        safetensors.SafetensorError,
    ) as error:
        raise ModelFileError(
            f"{path} cannot be read, so nothing can be undone: delete it"
        ) from error
    age_s = MAX_DAYS * 24 * 3600
    return [step for step in steps if abs(time.time() - step.time) <= age_s]


def write(model: Path, steps: Sequence[Step]) -> None:
    """Replace the undo file; no steps remove it. Raises `OSError`."""
    if not steps:
        path_of(model).unlink(missing_ok=True)
        return
    listed = json.dumps([(step.what, step.time, step.after) for step in steps])
    states = {str(number): step.state for number, step in enumerate(steps)}
    content = safetensors.numpy.save(states, {"steps": listed})
    atomic_files.atomic_write(path_of(model), content, mode=0o600)


def leading_to(steps: list[Step], revision: str | None) -> list[Step]:
    """Keep the steps that led to a revision of the model; none if another program wrote it."""
    while steps and steps[-1].after != revision:
        steps = steps[:-1]
    return steps


def record(model: Path, what: str, before: str | None, after: str) -> None:
    """Add a step before it is done, and drop those beyond the limits.

    `before` and `after` are the model's revisions; None where there is no file.
    """
    try:
        steps = leading_to(read(model), before)
    except ModelFileError:
        steps = []
    state = np.frombuffer(model.read_bytes() if model.exists() else b"", dtype=np.uint8)
    steps = [*steps, Step(what, time.time(), after, state)][-MAX_STEPS:]
    while sum(step.state.nbytes for step in steps) > 1e6 * MAX_MB:
        steps = steps[1:]
    write(model, steps)


def expire(model: Path) -> None:
    """Drop steps that are too old."""
    try:
        write(model, read(model))
    except ModelFileError:
        path_of(model).unlink()
