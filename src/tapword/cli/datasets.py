"""Commands for data sets: download one, learn a whitening, manage the cache."""

from pathlib import Path
from typing import Annotated

from tapword import registry
from tapword.cli.app import argument, command, flag, option
from tapword.cli.complete import one_of
from tapword.cli.console import out, progress_bar
from tapword.cli.options import SIZES, CacheFolder, DataFolder, Quiet
from tapword.errors import InputError
from tapword.research import experiment, report
from tapword.research.cache import Cache
from tapword.research.datasets import fetch as downloads
from tapword.spotter.presets import DEFAULT, preset
from tapword.spotter.spotter import Spotter


@command()
def whitening(
    to: Annotated[Path, argument("DIR", "Output folder; one file per backbone.")],
    source: Annotated[str, option("TEXT", "Description of the data, shown with results.")],
    data: DataFolder,
    dataset: Annotated[str, option("KIND", "speech_commands, mswc or folder.")] = "folder",
    size: Annotated[str | None, option("SIZE", f"{SIZES}.")] = None,
    backbone: Annotated[str | None, option("PART", "Instead of a size.")] = None,
    pooling: Annotated[str | None, option("PART", "Instead of a size.")] = None,
    align: Annotated[bool, flag("--align", "With --backbone or --pooling.")] = False,
    cache: CacheFolder = None,
) -> None:
    """Learn a whitening from a data set's training clips, for `evaluate --whitening FILE`.

    Use words that will not be taught.
    """
    if size and (backbone or pooling or align):
        raise InputError("give either --size or parts, not both")
    if backbone or pooling:
        # A learner without whitening: there may be none yet.
        spotter = Spotter(backbone, pooling, "ncm", align=align)
    elif align:
        raise InputError("--align goes with --backbone or --pooling; sizes always align")
    else:
        chosen = preset(size or DEFAULT)
        spotter = Spotter(chosen.backbones, chosen.poolings, "ncm", align=chosen.align)
    words = registry.build("datasets", dataset, root=str(data))
    to.mkdir(parents=True, exist_ok=True)
    for made in experiment.fit_whitenings(words, spotter, source, Cache(cache)):
        path = to / f"{made.about['backbone']['name']}.safetensors"
        made.save(path)
        out.print(f"{path}: {report.human_bytes(path.stat().st_size)}")


@command()
def fetch(
    dataset: Annotated[
        str, argument("DATASET", "speech_commands.", autocompletion=one_of(["speech_commands"]))
    ],
    to: Annotated[Path, option("DIR", "Folder to unpack into.")],
    version: Annotated[str, option("V", "v0.01 or v0.02.")] = "v0.02",
    quiet: Quiet = False,
) -> None:
    """Download, verify and unpack a data set; resume an interrupted download."""
    if dataset != "speech_commands":
        raise InputError(f"no data set named {dataset!r} to download; known: speech_commands")
    with progress_bar(quiet) as progress:
        task = progress.add_task(f"{dataset} {version}", total=None)
        folder = downloads.fetch_speech_commands(
            version, to, lambda done, total: progress.update(task, completed=done, total=total)
        )
    out.print(f"{dataset} {version} is in {folder}")


@command(parts=False)
def cache(
    clear: Annotated[bool, flag("--clear", "Delete all vectors.")] = False,
    folder: CacheFolder = None,
) -> None:
    """Show or clear the cache of `evaluate`."""
    kept = Cache(folder)
    if clear:
        out.print(f"freed {report.human_bytes(kept.clear())} in {kept.folder}")
    else:
        out.print(f"{report.human_bytes(kept.bytes())} of vectors in {kept.folder}")
