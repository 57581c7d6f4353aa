"""The page of `make bench`, as Markdown."""

import textwrap
from collections.abc import Iterable, Sequence

HEAD = """
`make bench` runs everything in `benchmarks/` and writes this page; no number is typed by hand.
Alternatives take turns in every round of one run, and tables show medians. Unless stated otherwise,
a time is CPU time on one core, in milliseconds. A floor is the time the machine needs for the same
work without tapword's overhead, measured in every round. A ratio is tapword's time divided by the
floor: the median over rounds, with the middle half in brackets. Ratios are reliable on a busy
machine; times depend on the load.
"""
WIDTH = 108


class Page:
    """Sections of Markdown, in order."""

    def __init__(self) -> None:
        self._parts = ["# Speed\n"]
        self.text(HEAD)

    def content(self) -> str:
        """Return the whole page."""
        return "\n".join(self._parts)

    def section(self, title: str) -> None:
        """Begin a section."""
        self._parts.append(f"## {title}\n")

    def text(self, words: str) -> None:
        """Add a paragraph."""
        filled = textwrap.fill(
            " ".join(words.split()), WIDTH, break_long_words=False, break_on_hyphens=False
        )
        self._parts.append(f"{filled}\n")

    def table(self, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Add a table; floats are shown with three digits."""
        lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        lines += ["| " + " | ".join(map(_shown, row)) + " |" for row in rows]
        self._parts.append("\n".join(lines) + "\n")

    def sizes(self, records: list[dict]) -> None:
        """Show each preset, and its floors."""
        self.text(
            "30 words, clips of 1 s. A clip is learned with three augmented copies: four passes of "
            "the network. The floor of all rows includes onnxruntime alone on the same input. For "
            "learning, it adds one pass over the covariance; for the first prediction afterwards, "
            "one Cholesky factorisation and solve. Files use wall-clock time; their floors are a "
            "plain write with fsync and rename of the same number of bytes, and reading and "
            "hashing them."
        )
        rows: list[Sequence[object]] = []
        for record in records:
            if "missing" in record:
                rows.append((record["size"], record["missing"], "", "", ""))
                continue
            for name in ("learn", "first predict", "later predict", "save", "load"):
                found = record["beside_floor"][name]
                what = f"{name}{_aside(name, record)}"
                times = found["time_ms"], found["floor_ms"]
                rows.append((record["size"], what, *times, _ratio(found)))
        self.table(("size", "what", "ms", "floor ms", "ratio"), rows)
        self.text(
            "Clips to vectors, in batches of 12. Two cores: two threads against one thread in the "
            "same rounds, in wall-clock time. With other programs running, little of a second core "
            "is available."
        )
        self.table(
            (
                "size",
                "D",
                "clips per second, one core",
                "onnxruntime alone",
                "ratio",
                "speedup with two cores",
            ),
            (
                (
                    record["size"],
                    record["dim"],
                    record["one_core"],
                    record["one_core"] * (x := record["beside_floor"]["extract"])["ratio"],
                    _ratio(x),
                    record["two_cores_gain"],
                )
                for record in records
                if "dim" in record
            ),
        )

    def learners(self, floors: list[dict], records: list[dict]) -> None:
        """Show slda and its floors, then every learner."""
        self.text(
            "`slda`, 35 words. The floors are one in-place pass over the packed covariance, one "
            "Cholesky factorisation and solve in float64, and one `ssyrk` of 2,000 samples."
        )
        keys = ("dim", "operation", "time_ms", "floor_ms")
        head = ("D", "what", "ms", "floor ms", "ratio")
        self.table(head, ([*(one[key] for key in keys), _ratio(one)] for one in floors))
        self.text("All learners, 35 words, D = 480, default arguments.")
        times = ("learn_one_ms", "first_predict_ms", "predict_ms")
        columns = ("learner", *times, "bytes", "bytes_per_word")
        rows = [[one.get(key, one.get("refused", "")) for key in columns] for one in records]
        self.table(("learner", "learn", "first predict", "later", "bytes", "bytes per word"), rows)

    def poolings(self, records: list[dict]) -> None:
        """Show every pooling relative to the bare mean."""
        self.text("The floor is numpy's mean over the same frames, (clips, frames, features).")
        for shape in dict.fromkeys(tuple(record["shape"]) for record in records):
            chosen = [record for record in records if tuple(record["shape"]) == shape]
            self.table(
                (str(shape), "ms", "ratio", "output"),
                ([r["pooling"], r["time_ms"], _ratio(r), r["size"]] for r in chosen),
            )

    def streaming(self, records: list[dict]) -> None:
        """Show the cost of listening."""
        self.text(
            "Size small with five words, and openWakeWord 0.4.0 with one of its models, taking "
            "turns on chunks of 80 ms (`benchmarks/streaming.py`)."
        )
        keys = ("scene", "who", "mean_ms", "p95_ms", "max_ms", "load_percent")
        rows = []
        for record in records:
            [other] = [
                one
                for one in records
                if one["scene"] == record["scene"] and one["who"] != record["who"]
            ]
            rows.append([*(record[key] for key in keys), record["mean_ms"] / other["mean_ms"]])
        self.table(
            (
                "audio",
                "program",
                "ms per chunk",
                "95%",
                "longest",
                "% of a core",
                "relative to the other",
            ),
            rows,
        )

    def even(self, records: list[dict]) -> None:
        """Show how evenly listening spreads its time over chunks."""
        self.text(
            "How evenly the time is spread, size small (`benchmarks/even.py`). A chunk's time is "
            "the least of several rounds. In speech, a candidate is scored within the chunk that "
            "completes it, and one between other sounds at four offsets in later chunks too."
        )
        keys = ("words", "sound", "chunk_ms", "mean_ms", "at_share", "largest")
        self.table(
            (
                "knows",
                "audio",
                "ms of audio in a chunk",
                "ms per chunk",
                "99.9% of chunks take at most, x mean",
                "longest, x mean",
                "over 3 x mean",
                "longest, % of the audio",
            ),
            (
                (
                    *(one[key] for key in keys),
                    f"{one['over_percent']:.2f} %",
                    f"{one['largest_percent']:.1f} %",
                )
                for one in records
            ),
        )

    def memory(self, rows: list[tuple[str, float, float]]) -> None:
        """Show the memory of programs."""
        self.text(
            "Resident memory of a process in MB (`benchmarks/memory.py`): ten words of five "
            "samples each, 60 s of words in chunks of 80 ms. openWakeWord listens for one word, "
            "local-wake compares with the same samples. Each runs in its own environment."
        )
        self.table(("program", "peak", "at the end"), rows)

    def busy(self, burners: int, records: list[dict]) -> None:
        """Show how long calls take on a busy machine, and how long without one BLAS thread."""
        self.text(
            f"Wall-clock time of size small with five words, while {burners} other programs keep a "
            "core busy each (`benchmarks/busy.py`). A spotter's calls limit BLAS to one thread, "
            "because its threads wait by spinning. The last columns are the same calls without "
            "this limit, in the same rounds."
        )
        self.table(
            ("what", "ms", "ms without the limit", "times as long"),
            ((one["what"], one["floor_ms"], one["time_ms"], _ratio(one)) for one in records),
        )

    def peers(self, records: list[dict]) -> None:
        """Show other libraries; a ratio above 1 means that they are slower."""
        self.text(
            "Each library runs in its own environment, with one thread. A ratio above 1 means that "
            "the other library takes longer."
        )
        keys = ("what", "ours", "ours_ms", "theirs", "theirs_ms", "ratio")
        rows = [
            [one[key] for key in keys]
            if "ratio" in one
            else (one["what"], f"left out: {one['missing']}", *[""] * 4)
            for one in records
        ]
        self.table(("what", "tapword", "ms", "peer", "ms", "ratio"), rows)

    def steps(self, rows: list[dict]) -> None:
        """Show the steps of processing a large data set."""
        self.text(
            "The steps of a cluster's workers, each on one core, with the demo's clips "
            "(`benchmarks/scale.py`). [Large data sets](scale.md) draws the conclusions, and has "
            "[rates on a GPU](scale.md#on-a-gpu) by `benchmarks/torch_backbones.py`."
        )
        self.table(
            ("step", "per second", "µs each"),
            ((r["step"], r["median"], 1e6 / r["median"]) for r in rows),
        )

    def costs(self, counts: list[dict], sizes: list[dict]) -> None:
        """Show what the presets compute and keep."""
        self.text(
            "[Raspberry Pi](raspberry_pi.md) estimates times on one, by counted instructions."
        )
        states = {one["size"]: one["state_bytes"] for one in sizes if "dim" in one}
        head = ("multiply-adds for 1 s", "weights", "state, 30 words", "peak memory")
        self.table(
            ("size", *head, "ms here"),
            (
                (
                    one["size"],
                    f"{one['multiply_adds'] / 1e6:,.0f} million",
                    _megabytes(one["weight_bytes"]),
                    _megabytes(states[one["size"]]),
                    _megabytes(one["peak_bytes"]),
                    one["here_ms"],
                )
                for one in counts
            ),
        )


def _aside(name: str, record: dict) -> str:
    return f" ({_megabytes(record['file_bytes'])})" if name in ("save", "load") else ""


def _ratio(found: dict) -> str:
    return f"{_shown(found['ratio'])} ({_shown(found['low'])} to {_shown(found['high'])})"


def _megabytes(size: int | None) -> str:
    return "not known" if size is None else f"{size / 1e6:.1f} MB"


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
