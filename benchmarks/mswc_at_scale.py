"""Teach a synthetic MSWC on a Ray cluster of one machine, while its workers are killed.

    python benchmarks/mswc_at_scale.py FOLDER [--clips 1000000] [--check 50000] [--json FILE]

FOLDER gets the clips, in MSWC's layout, and one model file for each language. The languages, their
shares of the clips and the number of words are MSWC's; the sounds are noise of 0.1 s. Each language
is one job, as `tapword learn LANGUAGE.tap FOLDER/LANGUAGE/clips --engine ray` runs it. At random
times a worker that is busy gets SIGKILL.

First, --check clips are taught three times: on the cluster, by the same tasks in this process
without Ray, and as `tapword learn` does without a cluster. The first two must be equal bit for bit.
Then --clips clips are taught on the cluster. What was measured and what is extrapolated to a large
cluster are separate tables.
"""

import argparse
import contextlib
import functools
import json
import os
import pickle
import random
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import soundfile
from rich.console import Console
from rich.table import Table

from tapword.audio import files as audio
from tapword.errors import InputError
from tapword.research import cluster as engine
from tapword.research.datasets.base import word_folders
from tapword.spotter.session import ModelFile, TeachSession
from tapword.spotter.spotter import Spotter

# Hours of each language on the dataset card of MLCommons/ml_spoken_words; a clip is one second.
HOURS = {
    **{"ar": 7.6, "as": 0.1, "br": 5.6, "cv": 2.1, "zh-CN": 3.1, "dv": 0.04, "fy-NL": 9.6},
    **{"ka": 1.4, "gn": 1.3, "el": 6.7, "cnh": 0.1, "ha": 1.0, "ia": 4.0, "ga-IE": 3.2, "lv": 4.2},
    **{"lt": 0.46, "mt": 7.3, "or": 0.1, "ro": 4.5, "sah": 3.3, "sl": 3.0, "sk": 1.9},
    **{"rm-sursilv": 4.8, "ta": 0.6, "rm-vallader": 1.2, "vi": 0.1, "cs": 24, "nl": 70, "et": 19},
    **{"eo": 77, "id": 11, "ky": 12, "mn": 12, "pt": 58, "sv-SE": 12, "tt": 30, "tr": 29, "uk": 18},
    **{"eu": 118, "ca": 615, "en": 1957, "fr": 754, "de": 1083, "it": 155, "rw": 422, "fa": 327},
    **{"pl": 130, "ru": 137, "es": 349, "cy": 108},
}
# Of the whole corpus, by its paper (Mazumder et al., 2021).
WORDS, CLIPS = 340_000, 23_400_000
# The card has no words by language: here they grow with the square root of the clips (Heaps' law),
# to this many clips a word at least.
LEAST = 5
# So many clips have all words; fewer clips have fewer words.
ALL_WORDS = 1_000_000
PARTS = {"backbone": "logmel", "pooling": "tap:R=2", "learner": "ridge"}
SOUNDS, SAMPLES = 256, 1600
# The cluster to extrapolate to, and clips per second and core with real clips (docs/scale.md).
NODES, CORES = 32, 16
CORE_RATES = {"size small": 57.0, "size medium": 14.0}
# Clips between two looks at the memory of the main process.
MARK = 50_000


def factor(total: float, amounts: Callable[[float], np.ndarray]) -> float:
    """Factor with which amounts, which grow with it, sum to a total."""
    low, high = 0.0, 1e9
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if amounts(middle).sum() < total else (low, middle)
    return high


def power_law(words: int, clips: int) -> np.ndarray:
    """Clips of each word (words,), proportional to 1 / rank, and at least one."""
    ranks = np.arange(1, words + 1)
    commonest = factor(clips, lambda most: np.maximum(1, most / ranks))
    counts = np.maximum(1, commonest / ranks).astype(int)
    # What rounding down has lost.
    lost = max(0, clips - counts.sum())
    return counts + lost // words + (ranks <= lost % words)


def plan(clips: int) -> dict[str, np.ndarray]:
    """Language -> clips of each of its words."""
    hours = np.array(list(HOURS.values()))
    shares = hours / hours.sum()
    most = shares * CLIPS / LEAST
    heaps = factor(WORDS, lambda scale: np.minimum(scale * np.sqrt(hours), most))
    words = np.minimum(heaps * np.sqrt(hours), most) * min(1.0, clips / ALL_WORDS)
    return {
        language: power_law(n_words, max(n_words, round(clips * share)))
        for language, share, n_words in zip(
            HOURS, shares, np.maximum(1, words.round().astype(int)), strict=True
        )
    }


def name(language: str, rank: int) -> str:
    """Word of a language."""
    return f"{language}{rank:05d}"


def make(folder: Path, planned: dict[str, np.ndarray]) -> None:
    """Write FOLDER/<language>/clips/<word>/<number>.wav; no two files are equal."""
    rng = np.random.default_rng(0)
    envelope = np.hanning(SAMPLES)
    folder.mkdir(parents=True)
    sound = folder / "sound.wav"
    sounds = []
    for _ in range(SOUNDS):
        noise = 0.1 * envelope * rng.standard_normal(SAMPLES)
        soundfile.write(sound, noise, audio.SAMPLE_RATE, subtype="PCM_16")
        sounds.append(sound.read_bytes())
    sound.unlink()
    header = len(sounds[0]) - 2 * SAMPLES
    number = 0
    for language, counts in planned.items():
        for rank, count in enumerate(counts):
            place = folder / language / "clips" / name(language, rank)
            place.mkdir(parents=True)
            for index in range(count):
                data = bytearray(sounds[number % SOUNDS])
                # Its number, as four quiet samples.
                digits = [number // 1000**power % 1000 for power in range(4)]
                data[header : header + 8] = np.array(digits, dtype="<i2").tobytes()
                handle = os.open(f"{place}/{index}.wav", os.O_WRONLY | os.O_CREAT, 0o644)
                os.write(handle, data)
                os.close(handle)
                number += 1


def teach(
    folder: Path, open_session: Callable[..., TeachSession], progress: Callable[[int], None]
) -> dict[str, Spotter]:
    """Teach each language of a folder to a model of its own."""
    taught: dict[str, Spotter] = {}
    before = 0

    def add_up(done: int) -> None:
        progress(before + done)

    for language in sorted(path.name for path in folder.iterdir() if path.is_dir()):
        folders = word_folders(folder / language / "clips")
        clips = ((path, word) for word, place in folders for path in audio.find(place))
        model = folder / f"{language}.tap"
        model.unlink(missing_ok=True)
        words = [word for word, _ in folders]
        session = open_session(ModelFile(model, parts=PARTS), words, lambda issue: True)
        taught[language] = session.learn_files(
            clips, lambda issue: None, keep_noise=True, progress=add_up
        )
        before += session.clips
    return taught


# The cluster, measured.


def note(log: Path, **values: object) -> None:
    """Append one line; lines of several processes do not mix."""
    with log.open("a") as file:
        file.write(json.dumps(values) + "\n")


def measured(function: Callable[..., Any], log: Path) -> Callable[..., Any]:
    """Let a task write down that it began, and what it took, received and returned."""

    @functools.wraps(function)
    def answer(*arguments: Any) -> Any:
        note(log, begun=function.__name__)
        start = time.process_time()
        result = function(*arguments)
        seconds = time.process_time() - start
        sizes = [len(pickle.dumps(one, 5)) for one in (arguments, *result)]
        note(log, ended=function.__name__, seconds=seconds, sizes=sizes)
        return result

    return answer


class MeasuredCluster(engine.Cluster):
    """A cluster whose tasks are counted here, and measured on the workers."""

    def __init__(self, log: Path):
        super().__init__()
        self.log = log
        self.started: Counter[str] = Counter()

    def _task(self, function: Callable[..., Any], **options: Any) -> Any:
        task = super()._task(measured(function, self.log), **options)

        def remote(*arguments: Any) -> Any:
            self.started[function.__name__] += 1
            return task.remote(*arguments)

        return SimpleNamespace(remote=remote)


class OneProcess(engine.Cluster):
    """The same tasks in this process, one after the other, without Ray."""

    def __init__(self, tasks: engine.Tasks | None = None):
        self.tasks = tasks or engine.Tasks()
        self._ray = SimpleNamespace(put=lambda value: value, cluster_resources=dict)
        self._files = contextlib.ExitStack()

    def _task(self, function: Callable[..., Any], **options: Any) -> Any:
        return SimpleNamespace(remote=function)

    def _get(self, promise: Any, first: object = None) -> Any:
        if isinstance(promise, InputError):
            raise promise
        return promise


def family(pid: int) -> Iterator[int]:
    """All processes that descend from one."""
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, file.read_text().split()):
                yield child
                yield from family(child)


def memory(pid: int) -> int:
    """Bytes of a process that it does not share."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return 1024 * int(line.split()[1])
    return 0


class Watch(threading.Thread):
    """Watch the memory of this process and of all it started; kill busy workers at random."""

    def __init__(self, kill_every_s: float):
        super().__init__(daemon=True)
        self.kill_every_s = kill_every_s
        self.killed = 0
        self.cpu_s = 0.0
        self.peaks: Counter[str] = Counter()
        self.over = threading.Event()

    def run(self) -> None:
        """Look every half second."""
        chance = random.Random(0)
        next_kill = time.monotonic() + chance.expovariate(1 / self.kill_every_s)
        while not self.over.wait(0.5):
            busy, total = [], 0
            for pid in [os.getpid(), *family(os.getpid())]:
                try:
                    command, own = Path(f"/proc/{pid}/cmdline").read_bytes(), memory(pid)
                except OSError:
                    continue
                if command.startswith((b"ray::learn", b"ray::merge")):
                    busy.append(pid)
                kind = "a worker" if command.startswith(b"ray::") else "a process of Ray"
                kind = "main process" if pid == os.getpid() else kind
                self.peaks[kind] = max(self.peaks[kind], own)
                total += own
            self.peaks["all processes"] = max(self.peaks["all processes"], total)
            if busy and time.monotonic() > next_kill:
                with contextlib.suppress(OSError):
                    os.kill(chance.choice(busy), signal.SIGKILL)
                    self.killed += 1
                next_kill = time.monotonic() + chance.expovariate(1 / self.kill_every_s)
            self.cpu_s = time.thread_time()

    def __enter__(self) -> "Watch":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()


def on_cluster(
    folder: Path, planned: dict[str, np.ndarray], cpus: int | None, kill_every_s: float
) -> tuple[dict[str, Spotter], dict[str, Any]]:
    """Teach a folder on a cluster; return the models, and what was measured."""
    log = folder / "tasks.jsonl"
    log.unlink(missing_ok=True)
    growth: dict[int, int] = {}

    def progress(done: int) -> None:
        mark = done // MARK * MARK
        if mark not in growth:
            growth[mark] = memory(os.getpid())
            print(f"{done:,} clips after {time.perf_counter() - start:.0f} s", flush=True)

    with engine.connect(cpus=cpus), contextlib.closing(MeasuredCluster(log)) as cluster:
        cpu, start = time.process_time(), time.perf_counter()
        with Watch(kill_every_s) as watch:
            taught = teach(folder, cluster.open_session, progress)
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu - watch.cpu_s
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    begun = Counter(line["begun"] for line in lines if "begun" in line)
    ended = [line for line in lines if "ended" in line]
    clips = sum(sum(spotter.words.values()) for spotter in taught.values())

    def moved(task: str, which: int) -> int:
        return sum(line["sizes"][which] for line in ended if line["ended"] == task)

    return taught, {
        "clips": clips,
        "words": sum(len(spotter.words) for spotter in taught.values()),
        "languages": len(taught),
        "words with a wrong number of clips": miscounted(taught, planned),
        "wall seconds": wall,
        "clips per second": clips / wall,
        "main process, CPU seconds": cpu,
        "workers, CPU seconds": sum(line["seconds"] for line in ended),
        "tasks": cluster.started.total(),
        "workers killed": watch.killed,
        "tasks begun again": begun.total() - cluster.started.total(),
        "bytes of paths, to workers": moved("learn", 0),
        "bytes of what became of clips, to main process": moved("learn", 1),
        "bytes of statistics, between workers": moved("learn", 2),
        "bytes of sums, to main process": moved("merge", 1) + moved("merge", 2),
        **{f"peak bytes of {kind}": peak for kind, peak in watch.peaks.items()},
        "bytes of main process by clips": growth,
        "load average": os.getloadavg(),
    }


def equal(one: Spotter, other: Spotter) -> bool:
    """Whether two models are equal bit for bit."""
    states = one.learner.state(), other.learner.state()
    return (
        one.vocabulary == other.vocabulary
        and list(one.words) == list(other.words)
        and states[0].keys() == states[1].keys()
        and all(states[0][key].tobytes() == states[1][key].tobytes() for key in states[0])
    )


def difference(one: Spotter, other: Spotter) -> float:
    """Greatest difference of two states, relative to the largest number of the array."""
    if list(one.words.items()) != list(other.words.items()):
        return float("inf")
    state = other.learner.state()
    pairs = ((array, state[key]) for key, array in one.learner.state().items())
    return max(float(np.abs(a - b).max() / max(np.abs(a).max(), 1)) for a, b in pairs)


def miscounted(taught: dict[str, Spotter], planned: dict[str, np.ndarray]) -> int:
    """How many words do not have exactly the planned number of clips."""
    return sum(
        taught[language].words.get(name(language, rank)) != count
        for language, counts in planned.items()
        for rank, count in enumerate(counts.tolist())
    )


def check(
    folder: Path, planned: dict[str, np.ndarray], cpus: int | None, kill_every_s: float
) -> dict[str, Any]:
    """Teach a folder with and without a cluster, and compare."""
    there, figures = on_cluster(folder, planned, cpus, kill_every_s)
    start = time.perf_counter()
    here = teach(folder, OneProcess().open_session, lambda done: None)
    figures["one process, same tasks, wall seconds"] = time.perf_counter() - start
    start = time.perf_counter()
    plain = teach(folder, TeachSession.open, lambda done: None)
    figures["tapword learn, wall seconds"] = time.perf_counter() - start
    unequal = [language for language in here if not equal(here[language], there[language])]
    figures["languages unequal to one process"] = unequal
    figures["difference from tapword learn"] = max(
        difference(plain[language], there[language]) for language in plain
    )
    return figures


def extrapolated(figures: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Extend the figures of a run to all of MSWC on a cluster, for each kind of work.

    The workers' work is spread evenly. The main process is one core; what it does grows with the
    clips.
    """
    main_s = CLIPS * figures["main process, CPU seconds"] / figures["clips"]
    moved = sum(value for key, value in figures.items() if key.endswith(", to main process"))
    moved += figures["bytes of paths, to workers"]
    own = figures["clips"] / figures["workers, CPU seconds"]
    found = {}
    for kind, rate in {"clips of 0.1 s, log-mel": own, **CORE_RATES}.items():
        workers_s = CLIPS / (rate * NODES * CORES)
        found[kind] = {
            "clips per second and core": rate,
            "workers, minutes": workers_s / 60,
            "main process, minutes": main_s / 60,
            "in all, minutes": max(workers_s, main_s) / 60,
            "gigabytes through the main process": moved * CLIPS / figures["clips"] / 1e9,
        }
    return found


def show(title: str, figures: dict[str, Any]) -> None:
    """Print figures as a table."""
    table = Table(title, "")
    for key, value in figures.items():
        text = f"{value:,.1f}" if isinstance(value, float) and value > 1 else f"{value}"
        table.add_row(key, f"{value:,}" if isinstance(value, int) else text)
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clips", type=int, default=1_000_000)
    parser.add_argument("--check", type=int, default=50_000)
    parser.add_argument("--cpus", type=int)
    parser.add_argument("--kill-every", type=float, default=15.0, help="mean, in seconds")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = {}
    for part, clips, measure in (
        ("check", options.check, check),
        ("clips", options.clips, lambda *given: on_cluster(*given)[1]),
    ):
        if not clips:
            continue
        folder = options.folder / part
        shutil.rmtree(folder, ignore_errors=True)
        start = time.perf_counter()
        planned = plan(clips)
        make(folder, planned)
        made = {"making files, wall seconds": time.perf_counter() - start}
        results[part] = made | measure(folder, planned, options.cpus, options.kill_every)
        show(f"measured, {clips:,} clips", results[part])
        if options.json:
            options.json.write_text(json.dumps(results, indent=2))
    if "clips" in results:
        for kind, figures in extrapolated(results["clips"]).items():
            show(f"extrapolated, {NODES} nodes of {CORES} cores: {kind}", figures)
    if any(figures["words with a wrong number of clips"] for figures in results.values()):
        raise SystemExit("clips were lost or counted twice")
    if results.get("check", {}).get("languages unequal to one process"):
        raise SystemExit("the cluster's models are not those of one process")


if __name__ == "__main__":
    main()
