"""The page that `make bench` writes: records in, Markdown out."""

import textwrap
from collections.abc import Iterable, Sequence

HEAD = """
Written by `make bench`, which runs everything in `benchmarks/`; nothing below is typed in. What is
compared took turns in every round of one run, and medians are shown. Unless it says otherwise a
time is the process's own on one core, in milliseconds. A floor is what the machine needs for the
same work with everything else left out, timed right beside it in every round; a ratio is how many
times as long we take, as median over the rounds, with the middle half of them in brackets. Ratios
stand on a busy machine; a time alone is no better than the load allowed.
"""
WIDTH = 108


class Page:
    """Sections of Markdown, in the order they come."""

    def __init__(self) -> None:
        self._parts = ["# Speed\n"]
        self.text(HEAD)

    def content(self) -> str:
        """Give the whole page."""
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
        """Show what each size does, and its floors."""
        self.text(
            "30 words, clips of 1 s; one is learned with three copies of it, four passes of the "
            "network. Floors: onnxruntime alone on the same input, for all of "
            "these; besides, for learning one pass over the covariance, for the first "
            "prediction after it one Cholesky factorisation and solve. Files go by the clock: a"
            " plain write with fsync and rename of as many bytes, and reading and hashing them."
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
            "Clips into vectors, in batches of 12. Two cores: two threads, by the clock, "
            "against one thread in the same rounds; with other work on the machine there is "
            "little of a second core to be had."
        )
        self.table(
            (
                "size",
                "D",
                "clips a second, one core",
                "onnxruntime alone",
                "ratio",
                "two cores: times as many",
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
        """Show slda beside its floors, then every learner."""
        self.text(
            "`slda`, 35 words. Floors: one in-place pass over the packed covariance; one "
            "Cholesky factorisation and solve in float64; one `ssyrk` of 2,000 samples."
        )
        keys = ("dim", "operation", "time_ms", "floor_ms")
        head = ("D", "what", "ms", "floor ms", "ratio")
        self.table(head, ([*(one[key] for key in keys), _ratio(one)] for one in floors))
        self.text("All of them, 35 words, D = 480, default arguments.")
        times = ("learn_one_ms", "first_predict_ms", "predict_ms")
        columns = ("learner", *times, "bytes", "bytes_per_word")
        rows = [[one.get(key, one.get("refused", "")) for key in columns] for one in records]
        self.table(("learner", "learn", "first predict", "later", "bytes", "more a word"), rows)

    def poolings(self, records: list[dict]) -> None:
        """Show every pooling beside the bare mean."""
        self.text("The floor is numpy's mean over the same frames, (clips, frames, numbers).")
        for shape in dict.fromkeys(tuple(record["shape"]) for record in records):
            chosen = [record for record in records if tuple(record["shape"]) == shape]
            self.table(
                (str(shape), "ms", "ratio", "output"),
                ([r["pooling"], r["time_ms"], _ratio(r), r["size"]] for r in chosen),
            )

    def streaming(self, records: list[dict]) -> None:
        """Show what listening costs."""
        self.text(
            "Size small with five words and openWakeWord 0.4.0 with one of its models, 80 ms of"
            " sound at a time, taking turns (`benchmarks/streaming.py`)."
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
            ("sound", "who", "ms a chunk", "95 %", "longest", "% of a core", "of the other"), rows
        )

    def peers(self, records: list[dict]) -> None:
        """Show the same work by others; above 1 they take longer."""
        self.text(
            "Each in an environment of its own, one thread. A ratio above 1: they take longer."
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
        """Show the parts of working through many clips."""
        self.text(
            "What a cluster's workers do, each step on one core, with the demo's clips "
            "(`benchmarks/scale.py`; [scale.md](scale.md) says what follows). Backbones on a "
            "GPU: `benchmarks/torch_backbones.py`, in [Many clips](scale.md#on-a-gpu)."
        )
        self.table(
            ("step", "a second", "µs each"),
            ((r["step"], r["median"], 1e6 / r["median"]) for r in rows),
        )

    def boards(
        self, counts: list[dict], sizes: list[dict], heard: list[dict], boards: dict[str, tuple]
    ) -> None:
        """Show what the sizes ask of a Raspberry Pi."""
        self.text(
            "Nothing of this was run on a Raspberry Pi: what is counted holds there too, the "
            "times are an estimate. The assumption: a board's core gets as large a share of its"
            " vector unit's multiply-adds done as the core here gets of its best matrix "
            "product. Memory bandwidth and caches are smaller there; take the times as a lower "
            "bound. Wheels of all core dependencies exist for 64-bit ARM "
            "(`tests/test_platforms.py`)."
        )
        states = {one["size"]: one["state_bytes"] for one in sizes if "dim" in one}
        head = ("multiply-adds for 1 s", "weights", "state, 30 words", "process at its peak")
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
        names = [f"{name}: {ghz:g} GHz x {each}" for name, (ghz, each, _) in boards.items()]
        self.table(
            ("ms for a decision", "share of the best", *names),
            (
                (
                    one["size"],
                    f"{100 * one['share']:.0f} %",
                    *(f"{ms:.0f}" for ms in one["boards_ms"].values()),
                )
                for one in counts
            ),
        )
        small = [one for one in counts if one["size"] == "small"]
        speech = [one for one in heard if one["who"] == "tapword" and "speech" in one["scene"]]
        if small and speech:
            slower = {
                board: ms / small[0]["here_ms"] for board, ms in small[0]["boards_ms"].items()
            }
            loads = ", ".join(
                f"{speech[0]['load_percent'] * factor:.0f} % of a core on a {board}"
                for board, factor in slower.items()
            )
            self.text(
                f"Size small while somebody talks without a pause, by the same estimate: {loads}."
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
