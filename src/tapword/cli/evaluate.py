"""The command that evaluates parts on a data set."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tapword import registry
from tapword.cli.app import command, command_line, flag, option
from tapword.cli.console import out, print_json, progress_steps, warn
from tapword.cli.options import (
    CACHE_GB,
    LEARNER_DEFAULT,
    POOLING_DEFAULT,
    SIZES,
    CacheFolder,
    CacheSize,
    Engine,
    Jobs,
    Output,
)
from tapword.cli.vectors import read_vectors
from tapword.errors import InputError
from tapword.research import cache as vector_cache
from tapword.research import evaluate as evaluation
from tapword.research import report, runner
from tapword.research.cache import Cache
from tapword.research.open_set import OpenSet
from tapword.research.orders import ORDERS
from tapword.research.own_voice import OwnVoice
from tapword.research.records import Records, as_json
from tapword.spotter.presets import DEFAULT, UNWHITENED
from tapword.spotter.whitening import Whitening
from tapword.support.text import counted, printable


@dataclass
class Data:
    """The data set."""

    dataset: Annotated[
        str | None,
        option("KIND", "speech_commands, mswc or folder, with arguments. [default: folder]"),
    ] = None
    data: Annotated[Path | None, option("DIR", "Folder of the data set.")] = None
    features: Annotated[
        Path | None,
        option("FILE", "Vectors instead of a data set: train_x, train_y, test_x, test_y."),
    ] = None


@dataclass
class Combinations:
    """The parts to compare."""

    backbone: Annotated[
        list[str] | None, option("PART", f"Repeat for several. [default: as size {DEFAULT}]")
    ] = None
    pooling: Annotated[
        list[str] | None,
        option("PART", f"Repeat for several. [default: {POOLING_DEFAULT}]"),
    ] = None
    learner: Annotated[
        list[str] | None,
        option("PART", f"Repeat for several. [default: {LEARNER_DEFAULT}]"),
    ] = None
    size: Annotated[
        list[str] | None,
        option(
            "SIZE",
            f"Preset: {SIZES}; repeat for several. [default without parts: {DEFAULT}]",
        ),
    ] = None
    align: Annotated[
        bool | None, flag("--align/--no-align", "Centre clips on their speech, as the sizes do.")
    ] = None
    augment: Annotated[
        bool | None,
        flag("--augment/--no-augment", "Learn clips with augmented copies, as the sizes do."),
    ] = None
    whitening: Annotated[
        list[Path] | None, option("FILE", "Whitening from `tapword whitening`. [default: shipped]")
    ] = None

    def arguments(self) -> dict[str, Any]:
        """Arguments of an evaluation."""
        return {
            "backbones": self.backbone or (),
            "poolings": self.pooling or (),
            "learners": self.learner or (),
            "sizes": self.size or (),
            "align": self.align,
            "augment": self.augment,
            "whitening": [Whitening.load(path) for path in self.whitening or ()] or None,
        }


@dataclass
class Stream:
    """The order of words, and what is measured."""

    order: Annotated[str, option("NAME", "class-iid or iid.")] = runner.Stream.order
    orderings: Annotated[int, option("N", "Seeded orderings to average.", min=1)] = (
        runner.Stream.orderings
    )
    shots: Annotated[
        list[int] | None, option("N", "Samples a word; repeat for several counts.", min=1)
    ] = None
    draws: Annotated[int, option("N", "Seeded draws, with --shots or --open-set.", min=1)] = (
        runner.Stream.draws
    )
    classes_per_task: Annotated[int, option("N", "New words in each task.", min=1)] = 1
    upper_bound: Annotated[
        bool, flag("--upper-bound", "Add offline LDA and logistic regression.")
    ] = False
    open_set: Annotated[
        bool, flag("--open-set", "Teach some words with --shots samples, test all words.")
    ] = False
    known: Annotated[int, option("N", "With --open-set: number of taught words.", min=1)] = (
        OpenSet.known
    )
    voice: Annotated[
        str | None,
        option(
            "WHOSE",
            "With --open-set: who teaches: own (the person who is tested), others, or both. "
            "[default: train split teaches, test split is tested]",
        ),
    ] = None

    def arguments(self) -> dict[str, Any]:
        """Arguments of an evaluation; refuse incompatible options."""
        if self.order not in ORDERS[:2]:
            raise InputError(f"no order named {self.order!r}; known: class-iid, iid, and --shots")
        if self.shots and self.order == "iid":
            raise InputError("--shots has its own order, word by word; leave out --order iid")
        if self.voice and not self.open_set:
            raise InputError("--voice goes with --open-set")
        if self.open_set:
            if self.upper_bound or self.order == "iid" or self.classes_per_task > 1:
                raise InputError("--open-set goes only with --known, --shots, --draws and --voice")
            options: dict[str, Any] = {"known": self.known, "draws": self.draws}
            options["shots"] = self.shots or OpenSet.shots
            if self.voice:
                return {"protocol": OwnVoice(voice=self.voice, **options)}
            return {"protocol": OpenSet(**options)}
        return {
            "order": self.order,
            "orderings": self.orderings,
            "shots": self.shots or (),
            "draws": self.draws,
            "classes_per_task": self.classes_per_task,
            "upper_bound": self.upper_bound,
        }


@dataclass
class Work:
    """Processes and cache."""

    strict: Annotated[bool, flag("--strict", "Stop at an unreadable clip.")] = False
    jobs: Jobs = None
    cache: CacheFolder = None
    cache_gb: CacheSize = CACHE_GB


@command()
def evaluate(
    data: Data,
    parts: Combinations,
    stream: Stream,
    work: Work,
    engine: Engine,
    output: Output,
) -> None:
    """Evaluate parts by the paper's protocol: one pass over the words, accuracy after each task.

    Every combination of backbones, poolings and learners is run; repeat an option for several. Each
    clip passes a backbone once; vectors are cached, so an interrupted run continues where it
    stopped. Results go to --out FILE: .html, .json, .csv or .tex.

        tapword evaluate --dataset speech_commands --data DIR --pooling avg --pooling tap
            --learner slda --learner ncm --out report.html
    """
    output.check(report.WRITERS)
    arguments = stream.arguments()
    with progress_steps(output.quiet) as step:
        if data.features is not None:
            records = _evaluate_vectors(data, parts, stream, engine, work, step)
        elif data.data is None:
            raise InputError(
                "give the folder of a data set with --data, or vectors with --features"
            )
        else:
            with engine.open(work.jobs) as workers:
                records = evaluation.evaluate(
                    registry.build("datasets", data.dataset or "folder", root=str(data.data)),
                    **parts.arguments(),
                    **arguments,
                    cache=Cache(work.cache, work.cache_gb),
                    strict=work.strict,
                    jobs=work.jobs,
                    progress=step,
                    store=workers.store if workers else vector_cache.store,
                )
    records.config.command = command_line()
    if output.as_json:
        print_json(as_json(records))
    else:
        _show_records(records)
    output.write(records, report.WRITERS)
    if len(report.refused(records.results)) == len(records.results):
        raise InputError("every combination was refused; see the reasons below the table")


def _evaluate_vectors(
    data: Data, parts: Combinations, stream: Stream, engine: Engine, work: Work, step: Any
) -> Records:
    """Run learners on the vectors of --features."""
    others = {
        "--data": data.data,
        "--dataset": data.dataset,
        "--backbone": parts.backbone,
        "--pooling": parts.pooling,
        "--size": parts.size,
        "--align": parts.align is not None,
        "--augment": parts.augment is not None,
        "--whitening": parts.whitening,
        "--strict": work.strict,
        "--engine": engine.engine != "local",
    }
    given = [name for name, value in others.items() if value]
    if given:
        raise InputError(f"--features cannot go with {', '.join(given)}")
    learners = parts.learner or [UNWHITENED]
    # Report a wrong name before reading.
    for name in learners:
        registry.build("learners", name)
    split = read_vectors(Path(str(data.features)))
    jobs = work.jobs or os.cpu_count() or 1
    return evaluation.evaluate_vectors(
        split, learners, jobs=jobs, progress=step, **stream.arguments()
    )


def _show_records(records: Records) -> None:
    config = records.config
    out.print(report.table(records))
    for line in report.refused(records.results) + report.no_deviation(records.results):
        out.print(printable(line), soft_wrap=True)
    out.print(
        f"{counted(config.n_words, 'word')}, {counted(config.n_train, 'clip')} to learn, "
        f"{config.n_test:,} to test, "
        f"{config.skipped} unusable; {records.environment.seconds:.1f} s"
    )
    if config.whitening_of_same_data:
        warn(
            "the whitening was learned from these words, which flatters the results; give one of "
            "other words with --whitening"
        )
