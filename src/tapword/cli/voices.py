"""The command for voices: which of them speak here, and fetching the files of one."""

from pathlib import Path
from typing import Annotated, Any

from rich.table import Table

from tapword import registry
from tapword.cli.app import argument, command, option
from tapword.cli.complete import one_of
from tapword.cli.console import cell, out, print_json
from tapword.cli.options import AsJson
from tapword.errors import InputError
from tapword.spotter.typed import LANGUAGE
from tapword.voices import spelling
from tapword.voices.base import Voice
from tapword.voices.kokoro_files import Files

GET = "get"


@command()
def voices(
    action: Annotated[
        str | None,
        argument(
            "[get]", "Fetch Kokoro, the best voice: 120 MB, once.", autocompletion=one_of([GET])
        ),
    ] = None,
    to: Annotated[Path | None, option("DIR", "Where get puts the files.")] = None,
    source: Annotated[
        Path | None,
        option("DIR", "Take the files from this folder instead of the network.", "--from"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show which voices speak here, or fetch the files of one.

    A voice teaches a word from its text: tapword learn home.tap "hey computer" --say. Every file is
    checked by a hash that comes with tapword.
    """
    if action not in (None, GET):
        raise InputError(f"the only action is {GET}, got {action!r}")
    if action is None and (to or source):
        raise InputError(f"--to and --from go with {GET}")
    if action == GET:
        files = Files(to or "")
        files.get(lambda what: out.print(f"getting {what}", soft_wrap=True), source)
        where = f", for --voice kokoro:folder={files.folder}" if to else ""
        out.print(f"Kokoro is in {files.folder}{where}", soft_wrap=True)
        return
    rows: list[dict[str, Any]] = []
    for name in registry.classes("voices"):
        voice: Voice = registry.build("voices", name)
        rows.append({"name": name, "missing": voice.why_not(LANGUAGE), "licence": voice.licence})
    if as_json:
        print_json(rows)
        return
    table = Table("voice", "speaks here", "licence")
    for row in rows:
        missing = row["missing"]
        table.add_row(row["name"], cell("yes" if missing is None else missing), row["licence"])
    out.print(table)
    out.print(f"phonemes by {spelling.spelled_by(LANGUAGE)}", soft_wrap=True)
