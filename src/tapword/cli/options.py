"""Options that several commands share: each is described once."""

import contextlib
import glob
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tapword.audio import files as audio_files
from tapword.cli.app import argument, flag, option
from tapword.errors import InputError, TapwordError
from tapword.research import report
from tapword.spotter.presets import DEFAULT, POOLING, PRESETS
from tapword.spotter.session import ModelFile

if TYPE_CHECKING:
    from tapword.research.cluster import Cluster

SIZES = ", ".join(PRESETS)
HOME = Path("home.tap")
# Defaults of parts that are not named, as in `presets.fill_in`.
POOLING_DEFAULT = f"that of size {DEFAULT}; {POOLING} for most other backbones"
LEARNER_DEFAULT = f"that of size {DEFAULT}; with other parts cosine, not whitened"
CACHE_GB = 4.0

Model = Annotated[Path, argument("MODEL", "Model file.")]
Files = Annotated[list[str], argument("FILES", "Sound files, folders or globs.")]
AsJson = Annotated[bool, flag("--json", "Print JSON.")]
Quiet = Annotated[bool, flag("--quiet", "Hide the progress bar.")]
SkipBad = Annotated[bool, flag("--skip-bad", "Skip unusable files and list them.")]
Device = Annotated[str | None, option("NAME", "With --mic: name or number of the microphone.")]
Backbones = Annotated[
    list[str] | None,
    option(
        "PART",
        "Override where MODEL's backbone is loaded from, e.g. with weights=PATH or device=cuda.",
        "--backbone",
    ),
]
PerHour = Annotated[
    float,
    option(
        "RATE",
        "Target for all words together. Fewer false alarms mean more missed words.",
        "--false-alarms-per-hour",
    ),
]
Thresholds = Annotated[
    list[str] | None,
    option(
        "WORD=SCORE",
        "Lowest score at which WORD is reported; repeat for several.",
        "--threshold",
    ),
]
Sensitivities = Annotated[
    list[str] | None,
    option(
        "[WORD=]VALUE",
        "0 to 1, for this run only. Higher means fewer misses and more false alarms; repeat for "
        "several words.",
        "--sensitivity",
    ),
]
Refractory = Annotated[
    float, option("SECONDS", "Report one word at most in this time.", "--refractory")
]
Jobs = Annotated[int | None, option("N", "Number of processes. [default: one per core]", min=1)]
CacheFolder = Annotated[
    Path | None,
    option(
        "DIR",
        "Where vectors are cached. [default: tapword/features in the user's cache folder]",
        "--cache",
    ),
]
CacheSize = Annotated[float, option("GB", "Size limit of the cache.")]
DataFolder = Annotated[Path, option("DIR", "Folder of the data set.", show_default=False)]


@dataclass
class Parts:
    """Parts of a new model."""

    backbone: Annotated[
        list[str] | None,
        option(
            "PART",
            f"For a new model; repeat for several. [default: that of size {DEFAULT}] For an "
            "existing model: override where its backbone is loaded from, e.g. weights=PATH.",
        ),
    ] = None
    pooling: Annotated[
        list[str] | None,
        option(
            "PART",
            "For a new model; one for all backbones, or repeat for each. "
            f"[default: {POOLING_DEFAULT}]",
        ),
    ] = None
    learner: Annotated[
        str | None, option("PART", f"For a new model. [default: {LEARNER_DEFAULT}]")
    ] = None
    size: Annotated[
        str | None,
        option("SIZE", f"For a new model, instead of parts: {SIZES}. [default: {DEFAULT}]"),
    ] = None

    def model_file(self, path: Path) -> ModelFile:
        """Model file with these parts; refuse parts that a model which exists has already."""
        given = {name: value for name, value in vars(self).items() if value}
        if not path.exists():
            return ModelFile(path, parts=given)
        backbones = given.pop("backbone", None)
        if given:
            raise InputError(
                f"{', '.join(f'--{name}' for name in given)} only for a new model; {path} exists "
                "and keeps its parts"
            )
        return ModelFile(path, backbones)


@dataclass
class Engine:
    """Where the work runs."""

    engine: Annotated[str, option("NAME", "local, or ray for processes and machines.")] = "local"
    address: Annotated[
        str | None,
        option(
            "HOST:PORT",
            "With --engine ray: the cluster, or auto. [default: this machine]",
        ),
    ] = None

    @contextlib.contextmanager
    def open(self, cpus: int | None = None) -> Iterator["Cluster | None"]:
        """Connect to the cluster; None stands for this process alone."""
        if self.engine == "local" and self.address is None:
            yield None
            return
        # Here, since few commands use a cluster.
        from tapword.research.cluster import open_engine

        with open_engine(self.engine, self.address, cpus) as cluster:
            yield cluster


def expand(patterns: Iterable[str]) -> list[Path]:
    """List the sound files of paths, folders and globs, in order; refuse one that has none."""
    found: list[Path] = []
    for pattern in patterns:
        literal = Path(pattern).exists() or not glob.has_magic(pattern)
        matches = [pattern] if literal else sorted(glob.glob(pattern, recursive=True))
        sounds = [file for match in matches for file in audio_files.find(match)]
        if not sounds:
            raise InputError(f"no sound files found in {pattern}")
        found.extend(sounds)
    return found


@dataclass
class Output:
    """Where results are written."""

    out: Annotated[
        list[Path] | None,
        option(
            "FILE",
            "Write the results; the file's ending chooses the format. Repeat for several files.",
        ),
    ] = None
    as_json: AsJson = False
    quiet: Quiet = False

    def check(self, writers: report.Writers) -> None:
        """Refuse a file that could not be written, before hours of work."""
        for path in self.out or ():
            report.check(path, writers)

    def write(self, results: Any, writers: report.Writers) -> None:
        """Write each file that was asked for; report failures after all were tried."""
        failures: list[TapwordError] = []
        for path in self.out or ():
            try:
                report.write(results, path, writers)
            except TapwordError as error:
                failures.append(error)
        if failures:
            raise InputError("; ".join(map(str, failures))) from failures[0]
