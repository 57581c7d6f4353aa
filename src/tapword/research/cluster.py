"""Encoding and teaching on the processes and machines of a Ray cluster.

The main process sends out batches of clips and gathers results. Clips are sent as paths and parts
as JSON; each worker process makes its parts once. Statistics are merged in a tree, in the order of
the clips, so the result does not depend on the number and speed of workers. Workers keep no
results, and the batch of a lost worker is repeated with the same result.
"""

import contextlib
import functools
import itertools
import json
import logging
import os
import socket
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tapword import registry
from tapword.backbones.base import Backbone
from tapword.errors import InputError, MissingExtra, TapwordError
from tapword.learners.base import Learner
from tapword.poolings.base import Pooling
from tapword.research import cache as vector_cache
from tapword.research.cache import Cache, EncodedShard, Stored, encode_shard
from tapword.research.datasets.base import Clip, Dataset
from tapword.spotter.encoder import CLIPS_AT_ONCE, PLAIN, Encoded, Preparation
from tapword.spotter.session import (
    MAX_CLIPS,
    MAX_SCORES,
    Ask,
    Checked,
    ModelFile,
    TeachSession,
    joined,
)
from tapword.spotter.spotter import Spotter
from tapword.spotter.vocabulary import Vocabulary
from tapword.spotter.whitening import Whitening
from tapword.support.atomic_files import PathLike
from tapword.support.issues import Issue
from tapword.support.threads import one_thread
from tapword.version import __version__

ENGINES = ("local", "ray")
# Ray's own variable: whether it may listen beyond this machine's loopback address.
NETWORK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
LOOPBACK = ("127.0.0.1", "::1")
# How long a cluster may take to answer at an address.
CONNECT_S = 5.0

# Word -> number of samples, and the learner's arrays.
State = tuple[dict[str, int], dict[str, np.ndarray]]
# Path of a clip, and its word.
LabelledClip = tuple[str, str]


class Outcome(NamedTuple):
    """What became of a batch.

    Attributes
    ----------
    words
        Words of the clips that were used.
    bad
        A message for each clip that could not be.
    issues
        What may be wrong with clips.
    first
        The first clips of each word, for a review.
    vocabulary
        Count and lengths of each word's clips.
    """

    words: list[str]
    bad: list[str]
    issues: list[Issue]
    first: list[Checked]
    vocabulary: Vocabulary


@dataclass(frozen=True)
class Tasks:
    """How work is split into tasks; benchmarks/scale.py measures the cost of one."""

    # Clips of one task: few at first, so a small folder keeps every core busy, and never so many
    # that repeating a task takes long.
    fewest: int = 64
    most: int = 2048
    # Between the two, a task has this fraction of the clips before it, so a statistic soon takes
    # less space than the vectors of its clips.
    share: float = 1 / 32
    # Statistics that one task merges.
    fan: int = 16
    # Tasks in flight for each core.
    ahead: int = 4
    # Retries of a task after a worker or machine was lost.
    retries: int = 5


class Learned(NamedTuple):
    """What clips teach: how many there were, and a function that teaches them to a spotter."""

    clips: int
    teach: Callable[[Spotter], None]


@contextlib.contextmanager
def open_engine(
    name: str, address: str | None, cpus: int | None = None
) -> Iterator["Cluster | None"]:
    """Open a cluster by the name of its engine; None: only this process."""
    if name not in ENGINES:
        raise InputError(f"no engine named {name!r}; known: {', '.join(ENGINES)}")
    if name == "ray":
        with connect(address, cpus) as cluster:
            yield cluster
    elif address is not None:
        raise InputError(f"--address {address} needs --engine ray")
    else:
        yield None


@contextlib.contextmanager
def connect(address: str | None = None, cpus: int | None = None) -> Iterator["Cluster"]:
    """Connect to a cluster, or start one on this machine and stop it at the end.

    A started cluster listens only on this machine's loopback address, unless the environment has
    RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=1.

    Parameters
    ----------
    address
        "HOST:PORT" as `ray start --head` prints it, or "auto" on one of its machines; None: this
        machine. A program that is already connected keeps its connection.
    cpus
        Worker processes of a started cluster; None: one per core.
    """
    if address not in (None, "auto"):
        _require_reachable(address)
    if address is None:
        # Our own cluster sends no statistics, and nobody else can reach it. Ray reads these when it
        # is imported; on systems other than Linux it uses loopback by default.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault(NETWORK, "0")
    try:
        import ray
    except ImportError as error:
        raise MissingExtra("the ray engine", "ray", "ray") from error
    if ray.is_initialized():
        with contextlib.closing(Cluster()) as cluster:
            yield cluster
        return
    options: dict[str, Any] = {"address": address}
    if address is None:
        options = {"address": "local", "num_cpus": cpus, "include_dashboard": False}
    try:
        ray.init(**options, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError) as error:
        where = f"the Ray cluster at {address}" if address else "a Ray cluster on this machine"
        raise TapwordError(
            f"cannot use {where}: {_first_line(error)}; run this on one of the cluster's machines "
            "with the same versions of Python and ray, or leave out --address"
        ) from error
    try:
        host = ray.util.get_node_ip_address()
        if address is None and os.environ[NETWORK] == "0" and host not in LOOPBACK:
            raise TapwordError(
                f"ray is already imported and would listen at {host}: set {NETWORK}=0 before the "
                "import, or 1 if the network may reach it"
            )
        with contextlib.closing(Cluster()) as cluster:
            yield cluster
    finally:
        ray.shutdown()


class Cluster:
    """The workers of the cluster that `connect` opened."""

    def __init__(self, tasks: Tasks | None = None):
        import ray

        self.tasks = tasks or Tasks()
        self._ray = ray
        self._files = contextlib.ExitStack()

    def close(self) -> None:
        """Let go of the vectors that were kept to be taught."""
        self._files.close()

    def store(
        self,
        dataset: Dataset,
        split: str,
        backbone: Backbone,
        poolings: Sequence[Pooling],
        cache: Cache,
        *,
        strict: bool = False,
        preparation: Preparation = PLAIN,
        **options: Any,
    ) -> list[Stored]:
        """Encode a split on the workers into the cache of this machine.

        Arguments are as for `cache.store`; `jobs` is set by the number of workers.
        """
        parcel = pack(preparation, datasets=[dataset], backbones=[backbone], poolings=poolings)
        task = self._task(returning_errors(encode_split), num_returns=2)

        def on_worker(clips: list[Clip], wanted: list[int]) -> EncodedShard:
            made, kept = task.remote(parcel, wanted, clips, split == "train", strict)
            return self._get(made, clips[0].path), self._get(kept, clips[0].path)

        options |= {"strict": strict, "preparation": preparation}
        options |= {"jobs": self._max_in_flight(), "encode": on_worker}
        return vector_cache.store(dataset, split, backbone, poolings, cache, **options)

    def open_session(self, model: ModelFile, words: Iterable[str], ask: Ask) -> "ClusterSession":
        """Begin to teach words to a model file from clips that the workers check."""
        return ClusterSession.open(model, words, ask, cluster=self)

    def learn(
        self,
        spotter: Spotter,
        clips: Iterable[tuple[PathLike, str]],
        keep_noise: bool = False,
        skipped: Callable[[str], None] | None = None,
        progress: Callable[[int], None] | None = None,
        checked: Callable[[Outcome], None] | None = None,
        split: bool | None = None,
    ) -> Learned:
        """Check and encode clips on the workers, and give what they teach.

        A learner that merges is taught on the workers. For any other the workers encode, and their
        vectors are kept in a temporary file, to be taught in the order of the clips.

        Parameters
        ----------
        spotter
            Whose parts; it is not taught here.
        clips
            Paths with their words; walked as workers get free, never listed.
        keep_noise, skipped, progress, split
            As for `TeachSession.learn_files`.
        checked
            Called with what became of each batch, in order.
        """
        batches = self._batches(spotter, clips, keep_noise, skipped, progress, checked, split)
        merges = spotter.learner.mergeable
        return self._merged(batches, spotter) if merges else self._kept(batches)

    def _batches(
        self,
        spotter: Spotter,
        clips: Iterable[tuple[PathLike, str]],
        keep_noise: bool,
        skipped: Callable[[str], None] | None,
        progress: Callable[[int], None] | None,
        checked: Callable[[Outcome], None] | None,
        split: bool | None,
    ) -> Iterator[tuple[Outcome, Any]]:
        """Give what became of clips, and the promise of what they taught, in order."""
        encoder, done = spotter.encoder, 0
        parcel = pack(
            encoder.preparation,
            backbones=encoder.backbones,
            poolings=encoder.poolings,
            learners=[spotter.learner],
        )
        whitenings = self._ray.put(encoder.whitenings)
        function = learn if spotter.learner.mergeable else encode
        task = self._task(returning_errors(function), num_returns=2)
        rules = keep_noise, skipped is not None, split
        started = (
            (batch, *task.remote(parcel, whitenings, batch, *rules)) for batch in self._cut(clips)
        )
        for batch, promise, result in self._ahead(started):
            outcome = self._get(promise, batch[0][0])
            if skipped:
                for message in outcome.bad:
                    skipped(message)
            if checked:
                checked(outcome)
            yield outcome, result
            done += len(batch)
            if progress:
                progress(done)

    def _merged(self, batches: Iterator[tuple[Outcome, Any]], spotter: Spotter) -> Learned:
        """Add up statistics: some at a time on the workers, their sums here."""
        total, merging = fresh(spotter.learner), self._task(merge)
        parcel = pack(learners=[total])
        waiting = None
        vocabulary = Vocabulary()
        while group := list(itertools.islice(batches, self.tasks.fan)):
            for outcome, _ in group:
                vocabulary = vocabulary.added(outcome.vocabulary)
            # The sum before is added here while the workers make this one.
            made, waiting = waiting, merging.remote(parcel, *(state for _, state in group))
            if made is not None:
                add(total, self._get(made))
        if waiting is not None:
            add(total, self._get(waiting))

        def teach(spotter: Spotter) -> None:
            spotter.learner.merge(total)
            spotter.vocabulary = spotter.vocabulary.added(vocabulary)

        return Learned(sum(vocabulary.counts.values()), teach)

    def _kept(self, batches: Iterator[tuple[Outcome, Any]]) -> Learned:
        """Write vectors to a file, to be taught in order."""
        file = tempfile.TemporaryFile()  # noqa: SIM115
        self._files.callback(file.close)
        taught = []
        for outcome, result in batches:
            if outcome.words:
                encoded = self._get(result)
                np.save(file, encoded.vectors)
                np.save(file, encoded.seconds)
                taught.append(outcome.words)

        def teach(spotter: Spotter) -> None:
            file.seek(0)
            for words in taught:
                vectors, seconds = (np.load(file, allow_pickle=False) for _ in range(2))
                spotter.learn_encoded(Encoded(vectors, seconds), words)

        return Learned(sum(map(len, taught)), teach)

    def _cut(self, clips: Iterable[tuple[PathLike, str]]) -> Iterator[list[LabelledClip]]:
        """Split clips into tasks, the same way on every cluster."""
        given, size = 0, self.tasks.fewest
        # Strings are smaller than paths.
        texts = ((str(path), word) for path, word in clips)
        while batch := list(itertools.islice(texts, size)):
            yield batch
            given += len(batch)
            share = int(given * self.tasks.share) // CLIPS_AT_ONCE * CLIPS_AT_ONCE
            size = min(self.tasks.most, max(self.tasks.fewest, share))

    def _ahead(self, started: Iterable[Any]) -> Iterator[Any]:
        """Yield tasks in order, while more are started."""
        in_flight: deque[Any] = deque()
        for one in started:
            in_flight.append(one)
            # Each time, as a cluster may grow and shrink.
            if len(in_flight) >= self._max_in_flight():
                yield in_flight.popleft()
        yield from in_flight

    def _max_in_flight(self) -> int:
        return int(self.tasks.ahead * self._ray.cluster_resources().get("CPU", 1))

    def _task(self, function: Callable[..., Any], **options: Any) -> Any:
        remote = self._ray.remote(function)
        return remote.options(num_cpus=1, max_retries=self.tasks.retries, **options)

    def _get(self, promise: Any, first: PathLike | None = None) -> Any:
        """Wait for a result; `first` is the first clip of its batch."""
        try:
            result = self._ray.get(promise)
        except self._ray.exceptions.RayError as error:
            batch = f" on the clips from {first} on" if first else ""
            raise TapwordError(
                f"the cluster failed{batch}, tried {self.tasks.retries + 1} times where a worker "
                f"died: {_first_line(error)}"
            ) from error
        if isinstance(result, InputError):
            raise result
        return result


def _first_line(error: BaseException) -> str:
    cause = getattr(error, "cause", None) or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(cause).__name__


def _require_reachable(address: str) -> None:
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or "/" in host:
        raise InputError(
            f"--address must be auto or HOST:PORT, as `ray start --head` prints it; got {address!r}"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"no Ray cluster answers at {address} ({error}); start one there with `ray start "
            f"--head --port={port}`, or leave out --address to use only this machine"
        ) from error


class ClusterSession(TeachSession):
    """A session whose files are checked and encoded by the workers of a cluster.

    A review covers the first clips of each word, if they are few enough to review.
    """

    def __init__(
        self,
        spotter: Spotter,
        latest: int | None = None,
        model: ModelFile | None = None,
        *,
        cluster: Cluster,
    ):
        super().__init__(spotter, latest, model)
        self.cluster = cluster
        self.learned = Learned(0, lambda _: None)

    def check_files(
        self,
        files: Iterable[tuple[PathLike, str]],
        keep_noise: bool = False,
        skipped: Callable[[str], None] | None = None,
        progress: Callable[[int], None] | None = None,
        split: bool | None = None,
    ) -> list[Issue]:
        """Let the workers check sound files, and teach those that can be taught."""
        issues: list[Issue] = []
        reviewed: Counter[str] = Counter()

        def checked(outcome: Outcome) -> None:
            issues.extend(outcome.issues)
            for clip in outcome.first:
                reviewed[clip.word] += 1
                if reviewed[clip.word] <= MAX_CLIPS:
                    self.accepted.append(clip)
            if len(self.accepted) * len(reviewed) > MAX_SCORES:
                # Too many to review: keep none of them, nor of those to come.
                self.accepted = deque(maxlen=0)

        self.learned = self.cluster.learn(
            self.spotter, files, keep_noise, skipped, progress, checked, split
        )
        return joined(issues)

    @property
    def clips(self) -> int:
        """How many clips are taught."""
        return self.learned.clips

    def teach(self, spotter: Spotter) -> None:
        """Teach a spotter what the workers learned."""
        self.learned.teach(spotter)


# In the worker processes.


@dataclass(frozen=True)
class Parcel:
    """Parts by package as JSON, and what a worker must have in common with the main process."""

    parts: str
    weights: tuple[str, ...]
    preparation: Preparation
    version: str = __version__
    host: str = field(default_factory=socket.gethostname)
    folder: str = field(default_factory=os.getcwd)

    @property
    def is_local(self) -> bool:
        """Whether this machine packed it."""
        return socket.gethostname() == self.host


def pack(preparation: Preparation = PLAIN, **parts: Sequence[Any]) -> Parcel:
    """Pack parts by their package.

    Examples
    --------
    >>> unpack(pack(poolings=[registry.build("poolings", "tap:R=3")]))
    {'poolings': [Tap(R=3)]}
    """
    stored = {kind: [registry.store(part) for part in some] for kind, some in parts.items()}
    for backbone in stored.get("backbones", ()):
        # The processes are the parallelism.
        if "threads" in backbone["arguments"]:
            backbone["arguments"]["threads"] = 1
    weights = tuple(map(_weights, parts.get("backbones", ())))
    return Parcel(json.dumps(stored, default=os.fspath), weights, preparation)


@functools.lru_cache(maxsize=4)
def unpack(parcel: Parcel) -> dict[str, list[Any]]:
    """Make the parts of a parcel, once per process; refuse other weights."""
    parts = {
        kind: [registry.restore(kind, stored) for stored in some]
        for kind, some in json.loads(parcel.parts).items()
    }
    for wanted, backbone in zip(parcel.weights, parts.get("backbones", ()), strict=True):
        if _weights(backbone) != wanted:
            raise InputError(
                f"machine {socket.gethostname()} has other weights or another precision: needs "
                f"{wanted}, has {_weights(backbone)}; use the same everywhere, with device=cpu"
            )
    return parts


@contextlib.contextmanager
def in_worker(parcel: Parcel) -> Iterator[dict[str, list[Any]]]:
    """Unpack in a worker process: in the main process's folder, on one core.

    Errors inside the `with` name the machine.
    """
    if parcel.version != __version__:
        raise InputError(
            f"machine {socket.gethostname()} has tapword {__version__}, this one {parcel.version}; "
            "install the same version on every machine"
        )
    # Without that folder, paths must be absolute; a missing clip is reported.
    with contextlib.suppress(OSError):
        os.chdir(parcel.folder)
    one_thread()
    try:
        yield unpack(parcel)
    except TapwordError as error:
        where = "" if parcel.is_local else f"on machine {socket.gethostname()}: "
        raise InputError(f"{where}{error}") from error


def returning_errors(function: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
    """Let a function return its error: Ray prints raised errors that nobody fetches."""

    @functools.wraps(function)
    def answer(*arguments: Any) -> tuple[Any, Any]:
        try:
            return function(*arguments)
        except InputError as error:
            return InputError(str(error)), None

    return answer


def encode_split(
    parcel: Parcel, wanted: list[int], clips: list[Clip], learning: bool, strict: bool
) -> EncodedShard:
    """Encode a shard by the poolings `wanted`; also give the indices of its usable clips."""
    with in_worker(parcel) as parts:
        [dataset], [backbone] = parts["datasets"], parts["backbones"]
        poolings = [parts["poolings"][i] for i in wanted]
        encoded, kept = encode_shard(
            dataset, clips, backbone, poolings, learning, strict, parcel.preparation
        )
        require_readable(parcel, [clip.path for i, clip in enumerate(clips) if i not in set(kept)])
    return encoded, kept


def learn(
    parcel: Parcel,
    whitenings: Sequence[Whitening],
    clips: list[LabelledClip],
    keep_noise: bool,
    skip_bad: bool,
    split: bool | None,
) -> tuple[Outcome, State]:
    """Teach a batch to an empty learner."""
    outcome, encoded = encode(parcel, whitenings, clips, keep_noise, skip_bad, split)
    with in_worker(parcel) as parts:
        learner = fresh(parts["learners"][0])
        if outcome.words:
            learner.learn_many(encoded.vectors, outcome.words)
    return outcome, (learner.words, learner.state())


def encode(
    parcel: Parcel,
    whitenings: Sequence[Whitening],
    clips: list[LabelledClip],
    keep_noise: bool,
    skip_bad: bool,
    split: bool | None = None,
) -> tuple[Outcome, Encoded]:
    """Check a batch and encode what can be taught, to learn from."""
    bad: list[str] = []
    with in_worker(parcel) as parts:
        align, augment = parcel.preparation
        spotter = Spotter(
            parts["backbones"],
            parts["poolings"],
            fresh(parts["learners"][0]),
            align=align,
            augment=augment,
            whitening=whitenings or "none",
        )
        session = TeachSession(spotter)
        skipped = bad.append if skip_bad else None
        issues = session.check_files(clips, keep_noise, skipped, split=split)
        if bad:
            require_readable(parcel, [path for path, _ in clips])
    used = list(session.accepted)
    words = [clip.word for clip in used]
    seen: Counter[str] = Counter()
    first = []
    for clip in used:
        seen[clip.word] += 1
        if seen[clip.word] <= MAX_CLIPS:
            first.append(clip)
    empty = Encoded.one_second(np.empty((0, 0), dtype=np.float32))
    encoded = Encoded.concatenate([clip.encoded for clip in used] or [empty])
    return Outcome(
        words, bad, issues, first, Vocabulary.of_samples(words, encoded.seconds)
    ), encoded


def merge(parcel: Parcel, *states: State) -> State:
    """Merge statistics, in order."""
    with in_worker(parcel) as parts:
        total = fresh(parts["learners"][0])
        for state in states:
            add(total, state)
    return total.words, total.state()


def add(total: Learner, state: State) -> None:
    """Merge a statistic into a learner."""
    words, arrays = state
    part = fresh(total)
    part.load_state(arrays, words)
    total.merge(part)


def fresh(learner: Learner) -> Learner:
    """Make an empty learner with the same arguments."""
    return type(learner)(**learner.arguments())


def require_readable(parcel: Parcel, unused: Sequence[PathLike]) -> None:
    """Refuse another machine without the data: skipping its clips would hide that."""
    for path in () if parcel.is_local else unused:
        if not os.access(path, os.R_OK):
            raise InputError(
                f"{path} is missing: every machine needs the clips at the same path, on shared "
                "storage or as copies"
            )


def _weights(backbone: Backbone) -> str:
    return f"{backbone.name} {backbone.weights_sha256[:12]} {backbone.precision}"
