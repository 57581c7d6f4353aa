"""Commands for those who compare methods: data sets, evaluation, reports."""

import functools
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tapword import evaluate as evaluation
from tapword import features, plans, registry, report, sizes
from tapword import open_set as open_sets
from tapword.cli.app import app, err, out, printable, progress_bar, progress_steps
from tapword.cli.engines import Address, EngineName, open_engine
from tapword.cli.outputs import check_outputs, write_outputs
from tapword.cli.vectors import read_vectors
from tapword.datasets import fetch as downloads
from tapword.errors import InputError
from tapword.front import BACKBONE, POOLING
from tapword.priors.prior import Prior
from tapword.report.columns import human_bytes, refused
from tapword.spotter import LEARNER, Spotter

CacheFolder = Annotated[
    Path | None,
    typer.Option("--cache", help="Where vectors are kept. [default: the user's cache folder]"),
]
Backbones = Annotated[
    list[str] | None,
    typer.Option("--backbone", help=f"Repeat for several. [default: {BACKBONE}]"),
]
Poolings = Annotated[
    list[str] | None, typer.Option("--pooling", help=f"Repeat for several. [default: {POOLING}]")
]
Learners = Annotated[
    list[str] | None, typer.Option("--learner", help=f"Repeat for several. [default: {LEARNER}]")
]


@app.command()
def evaluate(
    dataset: Annotated[
        str | None,
        typer.Option(help="speech_commands, mswc or folder, with arguments. [default: folder]"),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of the data set.")] = None,
    backbone: Backbones = None,
    pooling: Poolings = None,
    learner: Learners = None,
    size: Annotated[
        list[str] | None,
        typer.Option("--size", help="small, medium or large; the default where no part is named."),
    ] = None,
    align: Annotated[
        bool, typer.Option("--align", help="Centre clips on their speech; sizes do so themselves.")
    ] = False,
    copies: Annotated[
        bool, typer.Option("--copies", help="Teach clips with copies, as the sizes do.")
    ] = False,
    prior: Annotated[
        list[Path] | None,
        typer.Option("--prior", help="From `tapword prior`, instead of the shipped one."),
    ] = None,
    order: Annotated[str, typer.Option(help="class-iid or iid.")] = "class-iid",
    orderings: Annotated[int, typer.Option(min=1, help="Seeded orderings to average.")] = 5,
    shots: Annotated[
        list[int] | None, typer.Option(min=1, help="Samples a word; repeat for several counts.")
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Seeded draws, with --shots.")] = 10,
    open_set: Annotated[
        bool,
        typer.Option("--open-set", help="Teach some words by --shots, ask about unknown ones too."),
    ] = False,
    known: Annotated[int, typer.Option(min=1, help="Words taught, with --open-set.")] = 5,
    classes_per_task: Annotated[int, typer.Option(min=1, help="New words in each task.")] = 1,
    upper_bound: Annotated[
        bool, typer.Option("--upper-bound", help="Add offline LDA and logistic regression.")
    ] = False,
    vectors: Annotated[
        Path | None,
        typer.Option("--features", help="Ready-made vectors: train_x, train_y, test_x, test_y."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at a clip that cannot be read.")
    ] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes. [default: cores]")] = None,
    engine: EngineName = "local",
    address: Address = None,
    cache: CacheFolder = None,
    cache_gb: Annotated[float, typer.Option(help="Most the cache may hold.")] = 4.0,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE")] = None,
    html_file: Annotated[Path | None, typer.Option("--html", metavar="FILE")] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", metavar="FILE")] = None,
    latex_file: Annotated[Path | None, typer.Option("--latex", metavar="FILE")] = None,
) -> None:
    """Run the paper's protocol: a stream of words, one pass, accuracy after each task.

    Every combination of backbones, poolings and learners is run; each option may be repeated.
    The audio passes each backbone once, vectors are kept for the next run, and an interrupted run
    goes on where it stopped.

        tapword evaluate --dataset speech_commands --data DIR --pooling avg --pooling tap
            --learner slda --learner ncm --html report.html
    """
    outputs = [
        (report.write_json, json_file),
        (report.write_html, html_file),
        (report.write_csv, csv_file),
        (report.write_latex, latex_file),
    ]
    check_outputs(path for _, path in outputs)
    if order not in ("class-iid", "iid"):
        raise InputError(f"no order named {order!r}; known: class-iid, iid, and --shots")
    if shots and order == "iid":
        raise InputError("--shots brings its own order, word after word; leave out --order iid")
    if vectors is not None:
        parts = {"data": data, "dataset": dataset, "backbone": backbone, "pooling": pooling}
        given = [f"--{name}" for name, value in (parts | {"size": size}).items() if value]
        if given:
            raise InputError(f"{', '.join(given)} cannot go with --features: vectors are ready")
    stream: dict[str, Any] = {
        "order": order,
        "orderings": orderings,
        "shots": shots or (),
        "draws": draws,
        "classes_per_task": classes_per_task,
        "upper_bound": upper_bound,
        "jobs": jobs or os.cpu_count() or 1,
    }
    if open_set:
        if upper_bound or order == "iid" or classes_per_task > 1:
            raise InputError("--open-set goes with --known, --shots and --draws alone")
        stream = {"known": known, "shots": shots or (5,), "draws": draws}
        stream |= {"jobs": jobs} if vectors is None else {}
    if vectors is not None and engine != "local":
        raise InputError(f"--engine {engine} cannot go with --features: vectors are ready")
    with open_engine(engine, address, jobs) as cluster, progress_steps() as step:
        if vectors is not None:
            learners = learner or [LEARNER]
            # A wrong name is said before anything is read.
            for name in learners:
                registry.build("learners", name)
            records = (open_sets if open_set else evaluation).evaluate_vectors(
                read_vectors(vectors), learners, progress=step, **stream
            )
        else:
            if data is None:
                raise InputError("give the data set's folder with --data, or --features FILE")
            records = (open_sets.evaluate_open_set if open_set else evaluation.evaluate)(
                registry.build("datasets", dataset or "folder", root=str(data)),
                backbone or (),
                pooling or (),
                learner or (),
                size or (),
                align=align,
                copies=copies,
                prior=[Prior.load(path) for path in prior] if prior else None,
                cache=features.Cache(cache, cache_gb),
                strict=strict,
                progress=step,
                store=cluster.store if cluster else features.store,
                **stream,
            )
    records["config"]["command"] = shlex.join(["tapword", *sys.argv[1:]])
    out.print(report.table(records))
    refusals = refused(records["results"])
    for line in refusals:
        out.print(printable(line), soft_wrap=True)
    config = records["config"]
    out.print(
        f"{config['n_words']} words, {config['n_train']:,} clips to learn, {config['n_test']:,} to "
        f"ask, {config['skipped']} unusable; {records['environment']['seconds']:.1f} s"
    )
    if config.get("prior_of_same_data"):
        err.print(
            "the prior was computed from these very words, which flatters the result; give one of "
            "other words by --prior",
            style="yellow",
            soft_wrap=True,
        )
    write_outputs((functools.partial(write, records), path) for write, path in outputs)
    if len(refusals) == len(records["results"]):
        raise InputError("every combination was refused, for the reasons below the table")


@app.command()
def prior(
    to: Annotated[Path, typer.Argument(help="Folder; one file a backbone is written there.")],
    source: Annotated[str, typer.Option(help="What readers of results are told about the data.")],
    data: Annotated[Path, typer.Option(help="Folder of the data set.")],
    dataset: Annotated[str, typer.Option(help="speech_commands, mswc or folder.")] = "folder",
    size: Annotated[str | None, typer.Option(help="small, medium or large.")] = None,
    backbone: Annotated[str | None, typer.Option(help="Instead of a size.")] = None,
    pooling: Annotated[str | None, typer.Option(help="Instead of a size.")] = None,
    align: Annotated[bool, typer.Option("--align", help="With --backbone or --pooling.")] = False,
    cache: CacheFolder = None,
) -> None:
    """Compute how words vary from a data set's training clips, to whiten the vectors of others.

    Take words that will not be taught. `evaluate --prior FILE` uses the file.
    """
    if size and (backbone or pooling or align):
        raise InputError("give either --size or parts, not both")
    if backbone or pooling:
        spotter = Spotter(backbone, pooling, "ncm", align=align)
    else:
        chosen = sizes.size(size or sizes.DEFAULT)
        spotter = Spotter(chosen.backbones, chosen.poolings, "ncm", align=chosen.align)
    words = registry.build("datasets", dataset, root=str(data))
    to.mkdir(parents=True, exist_ok=True)
    for made in plans.fit_priors(words, spotter, source, features.Cache(cache)):
        path = to / f"{made.about['backbone']['name']}.safetensors"
        made.save(path)
        out.print(f"{path}: {human_bytes(path.stat().st_size)}")


@app.command()
def fetch(
    dataset: Annotated[str, typer.Argument(help="speech_commands.")],
    to: Annotated[Path, typer.Option(help="Folder to unpack into.")],
    version: Annotated[str, typer.Option(help="v0.01 or v0.02.")] = "v0.02",
) -> None:
    """Download a data set, check it and unpack it; go on where a download stopped."""
    if dataset != "speech_commands":
        raise InputError(f"nothing to fetch named {dataset!r}; known: speech_commands")
    with progress_bar() as progress:
        task = progress.add_task(f"{dataset} {version}", total=None)
        folder = downloads.fetch_speech_commands(
            version, to, lambda done, total: progress.update(task, completed=done, total=total)
        )
    out.print(f"{dataset} {version} is in {folder}")


@app.command()
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Drop all vectors.")] = False,
    folder: CacheFolder = None,
) -> None:
    """Show or clear the vectors that `evaluate` keeps."""
    kept = features.Cache(folder)
    if clear:
        out.print(f"freed {human_bytes(kept.clear())} in {kept.folder}")
    else:
        out.print(f"{human_bytes(kept.bytes())} of vectors in {kept.folder}")
