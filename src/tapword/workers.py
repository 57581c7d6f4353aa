"""What runs in the worker processes of a cluster, and the parcels that reach them.

Parts come as JSON and clips as paths. A process makes its backbones once; every function here
gives the same answer each time it is called, so a call whose process died is made again.
"""

import contextlib
import functools
import importlib
import json
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import threadpoolctl

from tapword import audio, features, registry
from tapword.backbones.base import Backbone
from tapword.datasets.base import Clip
from tapword.errors import InputError, TapwordError
from tapword.learners.base import Learner
from tapword.priors.prior import Prior
from tapword.spotter import Spotter
from tapword.vectors import PLAIN, Hearing, block_poolings
from tapword.version import __version__

# Clips that pass a backbone together: as many as on one machine, so that vectors are the same.
BATCH = 32

State = tuple[dict[str, int], dict[str, np.ndarray]]
# What each `Prior` is made of.
Priors = Sequence[tuple[dict[str, Any], np.ndarray, np.ndarray, np.ndarray]]


class Heard(NamedTuple):
    """What became of a batch: clips that were used, messages of those that were not, an error."""

    kept: list[int]
    bad: list[str]
    error: str | None


def pack(hearing: Hearing = PLAIN, **rooms: Sequence[Any]) -> str:
    """Write parts as JSON, with what must be the same where they are made.

    Parameters
    ----------
    hearing
        How clips are heard.
    rooms
        Parts by their room.

    Examples
    --------
    >>> unpack(pack(poolings=[registry.build("poolings", "tap:R=3")]))
    {'poolings': [Tap(R=3)]}
    """
    stored = {room: [registry.store(part) for part in parts] for room, parts in rooms.items()}
    for backbone in stored.get("backbones", ()):
        # One process a core is the parallelism.
        if "threads" in backbone["arguments"]:
            backbone["arguments"]["threads"] = 1
    parcel = {
        "version": __version__,
        "host": socket.gethostname(),
        "folder": os.getcwd(),
        "weights": [_weights(backbone) for backbone in rooms.get("backbones", ())],
        "hearing": hearing._asdict(),
        "rooms": stored,
    }
    return json.dumps(parcel, default=os.fspath)


@functools.lru_cache(maxsize=4)
def unpack(parcel: str) -> dict[str, list[Any]]:
    """Make the parts that `pack` wrote, once in a process; refuse where they would differ."""
    content = json.loads(parcel)
    host = socket.gethostname()
    if content["version"] != __version__:
        raise InputError(
            f"machine {host} has tapword {__version__}, but {content['version']} asks it; "
            "install the same version on every machine"
        )
    rooms = {
        room: [registry.restore(room, stored) for stored in parts]
        for room, parts in content["rooms"].items()
    }
    for wanted, backbone in zip(content["weights"], rooms.get("backbones", ()), strict=True):
        if _weights(backbone) != wanted:
            raise InputError(
                f"machine {host} has other weights or another precision: wanted {wanted}, there "
                f"is {_weights(backbone)}; give every machine the same, with device=cpu"
            )
    return rooms


def settle(parcel: str) -> dict[str, list[Any]]:
    """Unpack in a worker process: in the folder where the command was given, on one core."""
    # Where that folder is missing, paths must be absolute; a clip that is not found says so.
    with contextlib.suppress(OSError):
        os.chdir(json.loads(parcel)["folder"])
    # scipy brings a BLAS of its own, which must be loaded to be limited.
    importlib.import_module("scipy.linalg")
    threadpoolctl.threadpool_limits(1)
    return unpack(parcel)


def extract(
    parcel: str, wanted: list[int], paths: list[str], learning: bool, strict: bool
) -> tuple[list[np.ndarray], np.ndarray, str | None]:
    """Vectors of a shard for the poolings `wanted`, which clips they are of, or an error."""
    try:
        parts = settle(parcel)
        [dataset], [backbone] = parts["datasets"], parts["backbones"]
        fixed = [block_poolings(parts["poolings"][i], backbone) for i in wanted]
        clips = [Clip(Path(path), "", None, "") for path in paths]
        made, kept = features.shard_vectors(
            dataset, clips, backbone, fixed, learning, strict, _hearing(parcel)
        )
        require_seen(parcel, [path for i, path in enumerate(paths) if i not in set(kept)])
        return made, kept, None
    except TapwordError as error:
        return [], np.empty(0, dtype=np.int64), _explain(parcel, error)


def learn(
    parcel: str, priors: Priors, paths: Sequence[str], words: Sequence[str], skip_bad: bool
) -> tuple[Heard, State]:
    """Teach a batch to an empty learner."""
    heard, vectors = listen(parcel, priors, paths, skip_bad)
    if not heard.kept:
        return heard, ({}, {})
    learner = fresh(unpack(parcel)["learners"][0])
    try:
        learner.learn_many(vectors, [words[index] for index in heard.kept])
    except TapwordError as error:
        return Heard([], [], _explain(parcel, error)), ({}, {})
    return heard, (learner.words, learner.state())


def listen(
    parcel: str, priors: Priors, paths: Sequence[str], skip_bad: bool
) -> tuple[Heard, np.ndarray]:
    """Vectors (n, D) of a batch."""
    kept: list[int] = []
    bad: dict[str, str] = {}
    rows: list[np.ndarray] = []
    nothing = np.empty((0, 0), dtype=np.float32)
    try:
        parts = settle(parcel)
        spotter = Spotter(
            parts["backbones"],
            parts["poolings"],
            parts["learners"][0],
            **_hearing(parcel)._asdict(),
            prior=[Prior(*prior) for prior in priors] or "none",
        )
        for start in range(0, len(paths), BATCH):
            sounds = []
            for index, path in enumerate(paths[start : start + BATCH], start):
                try:
                    sounds.append(audio.read(path))
                    kept.append(index)
                except InputError as error:
                    if not skip_bad:
                        raise
                    bad[path] = str(error)
            if sounds:
                rows.append(spotter.vectors(sounds, learning=True))
        require_seen(parcel, list(bad))
    except TapwordError as error:
        return Heard([], [], _explain(parcel, error)), nothing
    return Heard(kept, list(bad.values()), None), np.concatenate(rows) if rows else nothing


def _hearing(parcel: str) -> Hearing:
    return Hearing(**json.loads(parcel)["hearing"])


def merge(parcel: str, *states: State) -> State:
    """Add up statistics, in order."""
    total = fresh(settle(parcel)["learners"][0])
    for state in states:
        add(total, state)
    return total.words, total.state()


def add(total: Learner, state: State) -> None:
    """Add a statistic to a learner."""
    words, arrays = state
    part = fresh(total)
    part.load_state(arrays, words)
    total.merge(part)


def fresh(learner: Learner) -> Learner:
    """Make a learner of the same arguments that was taught nothing."""
    return type(learner)(**learner.arguments())


def require_seen(parcel: str, unused: Sequence[str]) -> None:
    """Refuse another machine that lacks the data: skipping its clips would hide it."""
    host = socket.gethostname()
    for path in unused if host != json.loads(parcel)["host"] else ():
        if not os.access(path, os.R_OK):
            raise InputError(
                f"{path} is not there: every machine must see the clips under the same path, on "
                "shared storage or as copies"
            )


def _explain(parcel: str, error: TapwordError) -> str:
    host = socket.gethostname()
    return str(error) if host == json.loads(parcel)["host"] else f"on machine {host}: {error}"


def _weights(backbone: Backbone) -> str:
    return f"{backbone.name} {backbone.weights_sha256[:12]} {backbone.precision}"
