"""Measure what `docs/results/` shows and write its pages: `make results`.

    python results/run.py [SUBJECT ...] --english DIR --arabic DIR --phrases DIR
        --negatives FILE ... [--again]
    python results/run.py --status

`subjects.py` has the commands, and `pages/` the text around their numbers. A command is skipped if
it was measured before on the same data by the same code, so a stopped run continues; `--again`
measures it again. A command without its data keeps its old result. `--status` only prints which
figures are stale.
"""

import argparse
import functools
import hashlib
import json
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from dependencies import code_hash
from page import Kept, render, render_status
from subjects import SUBJECTS

from tapword.support.atomic_files import write as write_file

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "results"
# Not stored: they take megabytes, and the command gives them again.
LEFT_OUT = ("orderings", "matrix", "confusion", "records")

# Placeholders for data in a command, and what each one is.
KEY = r"\{(\w+)\}"
FOLDERS = {"english": "speech_commands", "arabic": "mswc:language=ar", "phrases": "wake phrases"}

Data = dict[str, tuple[Path, ...]]


def main() -> None:
    """Run what is missing, and write every page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=", ".join(SUBJECTS))
    for name, what in FOLDERS.items():
        parser.add_argument(f"--{name}", nargs=1, type=Path, metavar="DIR", help=what)
    parser.add_argument("--negatives", nargs="+", type=Path, metavar="FILE", help="running speech")
    parser.add_argument("--again", action="store_true", help="also measure what is already there")
    parser.add_argument("--status", action="store_true", help="print which figures are stale")
    options = parser.parse_args()
    if options.status:
        print(status(DOCS), end="")
        return
    named = {name: getattr(options, name) for name in (*FOLDERS, "negatives")}
    data: Data = {name: tuple(paths) for name, paths in named.items() if paths}
    unknown = set(options.subjects) - set(SUBJECTS)
    if unknown:
        parser.error(f"no subject named {', '.join(unknown)}; known: {', '.join(SUBJECTS)}")
    failed: list[str] = []
    for name in options.subjects or SUBJECTS:
        failed += measure(name, data, DOCS, options.again)
        write(name, DOCS)
    write_file(DOCS / "status.md", status(DOCS).encode())
    if failed:
        sys.exit(f"failed and unchanged: {'; '.join(failed)}")


def measure(subject: str, data: Data, docs: Path, again: bool = False) -> list[str]:
    """Run the commands of a subject and store their results in a JSON file beside its page.

    Returns the names of runs that failed; these keep their old results.
    """
    failed = []
    path, kept = docs / f"{subject}.json", stored(subject, docs)
    runs = SUBJECTS[subject].runs
    # Drop runs that are no longer listed, and follow the order of the list.
    kept = {name: kept[name] for name in runs if name in kept}
    for name, command in runs.items():
        needed = list(dict.fromkeys(re.findall(KEY, command)))
        if not all(key in data for key in needed):
            print(f"{subject}, {name}: unchanged: its data were not given")
            continue
        measured_by = {
            "command": command,
            "data": {key: digest(data[key]) for key in needed},
            "code": code_hash(command),
        }
        before = kept.get(name, {})
        if not again and {key: before.get(key) for key in measured_by} == measured_by:
            continue
        print(f"{subject}, {name}: {command}", flush=True)
        start = time.perf_counter()
        try:
            found = run(command, data)
        except subprocess.CalledProcessError as error:
            print(f"{subject}, {name}: failed, exit status {error.returncode}", flush=True)
            failed.append(f"{subject}, {name}")
            continue
        kept[name] = {
            **measured_by,
            "commit": commit(),
            "seconds": round(time.perf_counter() - start, 1),
            "found": found,
        }
        docs.mkdir(parents=True, exist_ok=True)
        kept = {name: kept[name] for name in runs if name in kept}
        write_file(path, (json.dumps(kept, indent=1, ensure_ascii=False) + "\n").encode())
    return failed


def run(command: str, data: Data) -> Any:
    """Run a command on data and return its results in short form."""

    def placed(word: str) -> list[str]:
        key = re.search(KEY, word)
        return [word.replace(key[0], str(one.resolve())) for one in data[key[1]]] if key else [word]

    words = [one for word in shlex.split(command) for one in placed(word)]
    program = {"tapword": [sys.executable, "-m", "tapword"], "python": [sys.executable]}[words[0]]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "found.json")
        subprocess.run([*program, *words[1:], "--out", str(out)], cwd=ROOT, check=True)
        return shortened(json.loads(out.read_text("utf-8")))


def shortened(found: Any) -> Any:
    """Drop the largest entries, and with them the paths of this machine."""
    if isinstance(found, dict):
        kept = (item for item in found.items() if item[0] not in (*LEFT_OUT, "command"))
        return {key: shortened(value) for key, value in kept}
    return [shortened(one) for one in found] if isinstance(found, list) else found


@functools.cache
def digest(paths: tuple[Path, ...]) -> str:
    """Hash the names and contents of files, and of all files in folders."""
    total = hashlib.sha256()
    for path in paths:
        root = path if path.is_dir() else path.parent
        for one in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if one.is_file():
                content = hashlib.sha256(one.read_bytes()).hexdigest()
                total.update(f"{one.relative_to(root).as_posix()} {content}\n".encode())
    return total.hexdigest()[:16]


def commit() -> str:
    """Return the commit, marked if files other than the results have changed."""

    def git(*words: str) -> str:
        found = subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
        )
        return found.stdout.strip()

    written = f":!{DOCS.relative_to(ROOT)}"
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", written)
    return (git("rev-parse", "--short=10", "HEAD") or "unknown") + ("-dirty" if changed else "")


def stored(subject: str, docs: Path) -> Kept:
    """Results of a subject's runs by name, as they were measured."""
    path = docs / f"{subject}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def write(subject: str, docs: Path) -> None:
    """Write the page of a measured subject."""
    if kept := stored(subject, docs):
        text = render(subject, SUBJECTS[subject], kept)
        write_file(docs / f"{subject}.md", text.encode())


def status(docs: Path) -> str:
    """Render the page that compares the code of every figure with the code now."""
    measured = {subject: stored(subject, docs) for subject in SUBJECTS}
    now = {
        one["command"]: code_hash(one["command"])
        for kept in measured.values()
        for one in kept.values()
    }
    return render_status(SUBJECTS, measured, now)


if __name__ == "__main__":
    main()
