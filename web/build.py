"""Build what web pages use of tapword: the package @tapword/core, and the page to try it.

    python web/build.py core OUT [options of tapword export]
    python web/build.py try OUT [options of tapword export]

The core is the C header of an ear that knows no word yet, compiled to WebAssembly by clang. The
page is the studio's, its files taken from there, with the core in the place of the program.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tapword.serve.studio.limits import LIMITS
from tapword.spotter.vocabulary import MAX_WORD_BYTES
from tapword.version import __version__

ROOT = Path(__file__).parents[1]
CORE, TRY = ROOT / "web" / "core", ROOT / "site" / "try"
STUDIO = ROOT / "src" / "tapword" / "serve" / "studio" / "static"
NEEDED = "clang, lld and wasi-libc are needed: apt install clang lld wasi-libc"
# Words there is room for: a page has more memory than a board.
MAX_WORDS = 100
# wasi-libc gives mathematics and memcpy; nothing that asks a system for anything is linked.
FLAGS = (
    *("--target=wasm32-wasi", "-std=c99", "-O3", "-msimd128", "-Wall", "-Wextra", "-Werror"),
    *("-nostartfiles", "-nodefaultlibs", "-Wl,--no-entry", "-Wl,--strip-all"),
)
PACKAGE = ("index.js", "index.d.ts", "core.js", "worker.js", "README.md")
# Of the studio: what talks to a program, and what cannot do without one.
NOT_SHARED = (
    *("api.js", "main.js", "index.html", "map.js", "more.js"),
    *("satellites.js", "calibration.js", "satellites.css"),
)
# What settings.js begins with, by which a page is known that may be replaced.
MADE = 'export default {\n  "limits": {'
# What the page loads, of all that is there.
LOADED = (".css", ".html", ".js", ".svg", ".wasm")
# Of its page, what goes, and what comes in the place of what.
PROGRAM = re.compile(r"\s*<!-- program -->.*?<!-- /program -->", re.DOTALL)
POLICY = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; base-uri 'none'; form-action 'none'"
)
PAGE = (
    ('"static/', '"./'),
    ("<title>tapword studio", "<title>tapword: try it"),
    ("<span>studio</span>", "<span>try it</span>"),
    ('href="api/model"', 'href="#words"'),
    ('accept=".tap,.safetensors,', 'accept=".bin,'),
    ("The studio needs JavaScript", "This page needs JavaScript"),
    ("<title>", f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n<title>'),
)


def check_tools() -> None:
    """Leave, and say what to install, where there is no compiler to WebAssembly."""
    if not (shutil.which("clang") and shutil.which("wasm-ld")):
        sys.exit(NEEDED)


def build_core(out: Path, options: Sequence[str] = ()) -> None:
    """Compile the core and lay out the package."""
    check_tools()
    out.mkdir(parents=True, exist_ok=True)
    header = out / "model.h"
    command = [sys.executable, "-m", "tapword", "export", "ear_s", header, "--force"]
    command += ["--max-words", MAX_WORDS, *options]
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
    wasm = out / "tapword.wasm"
    sources = ["-I", out, CORE / "core.c", "-lc", "-lm", "-o", wasm]
    subprocess.run(["clang", *FLAGS, *map(str, sources)], check=True)
    header.unlink()
    for name in PACKAGE:
        shutil.copy(CORE / name, out)
    shutil.copy(STUDIO / "capture.js", out)
    shutil.copy(ROOT / "LICENSE", out)
    about = json.loads((CORE / "package.json").read_text()) | {"version": __version__}
    (out / "package.json").write_text(json.dumps(about, indent=2) + "\n")
    print(f"{out}: tapword.wasm of {wasm.stat().st_size:,} bytes")


def build_try(out: Path, options: Sequence[str] = ()) -> None:
    """Put the page together, with a list of its files for the times without a network."""
    check_tools()
    settings = out / "settings.js"
    if out.exists():
        # Nobody's folder is emptied by a slip of the hand.
        ours = settings.exists() and settings.read_text().startswith(MADE)
        if not ours and (not out.is_dir() or any(out.iterdir())):
            sys.exit(f"{out} is not a page made by this: name a new folder, or remove that one")
        shutil.rmtree(out)
    out.mkdir(parents=True)
    numbers = {"limits": asdict(LIMITS), "max_word_bytes": MAX_WORD_BYTES}
    settings.write_text(f"export default {json.dumps(numbers, indent=2)};\n")
    build_core(out / "core", options)
    for path in STUDIO.iterdir():
        if path.name not in NOT_SHARED:
            shutil.copy(path, out)
    for path in TRY.iterdir():
        shutil.copy(path, out)
    (out / "index.html").write_text(page((STUDIO / "index.html").read_text()))
    worker = out / "offline.js"
    files = sorted(path for path in out.rglob("*") if path.suffix in LOADED and path != worker)
    names = [f"./{path.relative_to(out).as_posix()}" for path in files]
    version = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
    listed = f"const VERSION = {json.dumps(version)};\nconst FILES = {json.dumps(names)};\n"
    worker.write_text(listed + worker.read_text())


def page(text: str) -> str:
    """Make the page of the studio's; it loads nothing from elsewhere."""
    text = PROGRAM.sub("", text)
    for old, new in PAGE:
        if old not in text:
            sys.exit(f"the studio's page changed: it has no {old!r}")
        text = text.replace(old, new)
    return text


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("core", "try"):
        sys.exit(__doc__)
    {"core": build_core, "try": build_try}[sys.argv[1]](Path(sys.argv[2]).resolve(), sys.argv[3:])
