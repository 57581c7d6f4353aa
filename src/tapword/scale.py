"""The same extraction and statistics on a Ray cluster.

Clips travel as paths and parts as JSON; each worker process makes its backbones once. Statistics
are added up in a tree, always in the order of the clips, so it does not matter how many workers
there are and which is first. No worker keeps a result: a batch whose worker died is done again.
"""

import contextlib
import itertools
import logging
import os
import socket
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from tapword import features, workers
from tapword.backbones.base import Backbone
from tapword.datasets.base import Dataset
from tapword.errors import InputError, MissingExtra, TapwordError
from tapword.poolings.base import Pooling
from tapword.spotter import Spotter
from tapword.vectors import PLAIN, Hearing

# Clips of one task: few at first, so that a small folder keeps every core busy; then a share of
# those already given out, until a statistic weighs less than the vectors behind it.
FEWEST, MOST, SHARE = 64, 2048, 1 / 32
# Statistics that one task adds up, and tasks in flight for each core.
FAN, AHEAD = 16, 4
# How often a batch is tried again after a worker or a machine has died.
RETRIES = 5
CONNECT_S = 5.0


class Lesson(NamedTuple):
    """What clips teach: how many there were, and a function that teaches them to a spotter."""

    clips: int
    teach: Callable[[Spotter], None]


@contextlib.contextmanager
def cluster(address: str | None = None, cpus: int | None = None) -> Iterator["Cluster"]:
    """Connect to a cluster, or start one on this machine and stop it at the end.

    Parameters
    ----------
    address
        "HOST:PORT" as `ray start --head` prints it, or "auto" on one of its machines; None: this
        machine. A program that is connected already keeps its connection.
    cpus
        Worker processes on this machine, where a cluster is started; None: one per core.
    """
    try:
        import ray
    except ImportError as error:
        raise MissingExtra("the ray engine", "ray", "ray") from error
    if address not in (None, "auto"):
        _require_reachable(address)
    if ray.is_initialized():
        yield Cluster()
        return
    options: dict[str, Any] = {"address": address}
    if address is None:
        options = {"address": "local", "num_cpus": cpus, "include_dashboard": False}
        # A cluster of our own tells nobody that it runs.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray.init(**options, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError) as error:
        where = f"the Ray cluster at {address}" if address else "a Ray cluster on this machine"
        raise TapwordError(
            f"cannot use {where}: {_first_line(error)}; run this on one of the cluster's machines "
            "with the same versions of Python and ray, or leave out --address"
        ) from error
    try:
        yield Cluster()
    finally:
        ray.shutdown()


class Cluster:
    """Workers of the cluster that this program is connected to; made by `cluster`."""

    def store(
        self,
        dataset: Dataset,
        split: str,
        backbone: Backbone,
        poolings: Sequence[Pooling],
        cache: features.Cache,
        jobs: int = 1,
        strict: bool = False,
        progress: Callable[[int, int], None] | None = None,
        hearing: Hearing = PLAIN,
    ) -> list[features.Stored]:
        """Put a split's vectors into the cache of this machine: `features.store` on the cluster.

        Workers send vectors, this process writes them; `jobs` is not used.
        """
        places = features.find(dataset, split, backbone, poolings, cache, hearing)
        shards = places[0].shards
        parts = workers.pack(hearing, datasets=[dataset], backbones=[backbone], poolings=poolings)
        extract = _task(workers.extract)
        total, done = sum(map(len, shards)), 0

        def start(number: int) -> tuple[int, list[int], Any]:
            missing = [i for i, place in enumerate(places) if not place.has(number, strict)]
            paths = [str(clip.path) for clip in shards[number]]
            learning = split == "train"
            return (
                number,
                missing,
                extract.remote(parts, missing, paths, learning, strict) if missing else None,
            )

        for number, missing, result in self._in_order(start, range(len(shards))):
            if missing:
                made, kept, error = _get(result, shards[number][0].path)
                if error:
                    raise InputError(error)
                for i, vectors in zip(missing, made, strict=True):
                    cache.put(places[i].key, number, vectors, kept)
            done += len(shards[number])
            if progress:
                progress(done, total)
        return places

    @contextlib.contextmanager
    def listen(
        self,
        spotter: Spotter,
        clips: Iterable[tuple[Path, str]],
        skip_bad: bool = False,
        skipped: Callable[[str], None] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[Lesson]:
        """Hear clips and make a lesson of them, which stays good inside the `with`.

        A learner that merges is taught on the workers. For any other the workers extract, and the
        lesson teaches their vectors, kept in a temporary file, in the order of the clips.

        Parameters
        ----------
        spotter
            Whose parts; it is not taught here.
        clips
            Paths with their words; walked as workers get free, never listed.
        skip_bad
            Leave out clips that cannot be used, instead of raising at the first.
        skipped
            Called with the message of each clip left out.
        progress
            Called with the number of clips heard so far.
        """
        batches = self._batches(spotter, clips, skip_bad, skipped, progress)
        with tempfile.TemporaryFile() as file:
            yield _merged(batches, spotter) if spotter.learner.mergeable else _kept(batches, file)

    def _batches(
        self,
        spotter: Spotter,
        clips: Iterable[tuple[Path, str]],
        skip_bad: bool,
        skipped: Callable[[str], None] | None,
        progress: Callable[[int], None] | None,
    ) -> Iterator[tuple[list[str], Any]]:
        """Words of the clips that were used and the promise of what they taught, in order."""
        import ray

        parts = workers.pack(
            spotter.front.hearing,
            backbones=spotter.backbones,
            poolings=spotter.poolings,
            learners=[spotter.learner],
        )
        priors = ray.put([(one.about, one.mean, one.maps, one.within) for one in spotter.priors])
        learn, listen = (_task(f, num_returns=2) for f in (workers.learn, workers.listen))
        done = 0

        def start(batch: list[tuple[Path, str]]) -> tuple[list[tuple[Path, str]], Any, Any]:
            paths = [str(path) for path, _ in batch]
            if not spotter.learner.mergeable:
                return batch, *listen.remote(parts, priors, paths, skip_bad)
            words = [word for _, word in batch]
            return batch, *learn.remote(parts, priors, paths, words, skip_bad)

        for batch, heard, result in self._in_order(start, _cut(clips)):
            kept, bad, error = _get(heard, batch[0][0])
            if error:
                raise InputError(error)
            if skipped:
                for message in bad:
                    skipped(message)
            yield [batch[index][1] for index in kept], result
            done += len(batch)
            if progress:
                progress(done)

    def _in_order(self, start: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Give what `start` made of each item, in order, with a bounded number under way."""
        import ray

        under_way: deque[Any] = deque()
        for item in items:
            under_way.append(start(item))
            # Asked each time: a cluster may grow and shrink.
            if len(under_way) >= AHEAD * ray.cluster_resources().get("CPU", 1):
                yield under_way.popleft()
        yield from under_way


def _merged(batches: Iterator[tuple[list[str], Any]], spotter: Spotter) -> Lesson:
    """Add up statistics: `FAN` at a time on the workers, their sums here."""
    total, merge = workers.fresh(spotter.learner), _task(workers.merge)
    parts = workers.pack(learners=[total])
    clips = 0
    sums: deque[Any] = deque()
    while group := list(itertools.islice(batches, FAN)):
        clips += sum(len(words) for words, _ in group)
        sums.append(merge.remote(parts, *(state for _, state in group)))
        if len(sums) > 1:
            workers.add(total, _get(sums.popleft()))
    for state in sums:
        workers.add(total, _get(state))
    return Lesson(clips, lambda taught: taught.learner.merge(total))


def _kept(batches: Iterator[tuple[list[str], Any]], file: IO[bytes]) -> Lesson:
    """Write vectors to a file, to be taught in order."""
    taught = []
    for words, result in batches:
        if words:
            np.save(file, _get(result))
            taught.append(words)

    def teach(spotter: Spotter) -> None:
        file.seek(0)
        for words in taught:
            spotter.learn_vectors(np.load(file, allow_pickle=False), words)

    return Lesson(sum(map(len, taught)), teach)


def _cut(clips: Iterable[tuple[Path, str]]) -> Iterator[list[tuple[Path, str]]]:
    """Cut clips into tasks, by their number alone: the same whatever the cluster."""
    given, clips = 0, iter(clips)
    while True:
        size = min(MOST, max(FEWEST, int(given * SHARE) // workers.BATCH * workers.BATCH))
        batch = list(itertools.islice(clips, size))
        if not batch:
            return
        given += len(batch)
        yield batch


def _task(function: Callable[..., Any], **options: Any) -> Any:
    import ray

    return ray.remote(function).options(num_cpus=1, max_retries=RETRIES, **options)


def _get(reference: Any, first: Path | None = None) -> Any:
    """Wait for a result; `first` is the clip that its batch begins with."""
    import ray

    try:
        return ray.get(reference)
    except ray.exceptions.RayError as error:
        batch = f" on the clips from {first} on" if first else ""
        raise TapwordError(
            f"the cluster failed{batch}, tried {RETRIES + 1} times where a worker died: "
            f"{_first_line(error)}"
        ) from error


def _first_line(error: BaseException) -> str:
    cause = getattr(error, "cause", None) or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(cause).__name__


def _require_reachable(address: str) -> None:
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or "/" in host:
        raise InputError(
            f"--address wants HOST:PORT, as `ray start --head` prints it, or auto; got {address!r}"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"no Ray cluster answers at {address} ({error}); start one there with: ray start "
            f"--head --port={port}, or leave out --address to use this machine alone"
        ) from error
