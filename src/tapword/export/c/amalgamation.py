"""The C sources and the tables of a model as one header."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

SOURCES = resources.files("tapword.export.c") / "core"
# Of a model, and not among the sources.
MODEL, TABLES = "tapword_model.h", "tapword_tables.h"
_INCLUDE = re.compile(r'^#include "(.*)"\n', re.MULTILINE)
_SIZES = """#include "model.h"
#include <stdio.h>
int main(void)
{
#if TAPWORD_HAS_LISTENER
    printf("%d ", (int)sizeof(tapword_listener));
#endif
    return printf("%d", (int)sizeof(tapword)) < 0;
}
"""


def amalgamate(about: str, settings: Mapping[str, Any], tables: str) -> str:
    """Join all sources: local includes are inlined once, in their order.

    Parameters
    ----------
    about
        Text of the comment at the top.
    settings
        Macros of the model, without TAPWORD_.
    tables
        Definitions of its tables.
    """
    texts, seen = {MODEL: macros(settings), TABLES: tables}, set[str]()

    def inline(include: re.Match[str]) -> str:
        name = include[1]
        if name in seen:
            return ""
        seen.add(name)
        text = texts.get(name) or SOURCES.joinpath(name).read_text("utf-8")
        return _INCLUDE.sub(inline, text)

    code = sorted(path.name for path in SOURCES.iterdir() if path.name.endswith(".c"))
    lines = [
        # The name of a part may not end the comment.
        f"/* {about.replace('*/', '* /')} */",
        '#include "tapword.h"',
        "#ifdef TAPWORD_IMPLEMENTATION",
        "#define TAPWORD_PRIVATE static",
        *(f'#include "{name}"' for name in code),
        "#endif",
    ]
    return _INCLUDE.sub(inline, "\n".join(lines) + "\n")


def macros(settings: Mapping[str, Any]) -> str:
    """Write settings as macros. A program may define another room for words."""
    return "".join(
        f"#ifndef TAPWORD_{key}\n#define TAPWORD_{key} {value}\n#endif\n"
        if key == "MAX_WORDS"
        else f"#define TAPWORD_{key} {_literal(value)}\n"
        for key, value in settings.items()
    )


def ram(header: str) -> list[int] | None:
    """Bytes of a header's model, and of its listener if it has one; None without a C compiler.

    The compiler knows the layout of the structures; they have no pointers, so every machine that
    aligns a double to 8 bytes agrees.
    """
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.h").write_text(header, encoding="utf-8")
        (folder / "sizes.c").write_text(_SIZES)
        command: list[str | Path] = [compiler, folder / "sizes.c", "-o", folder / "sizes"]
        if subprocess.run(command, capture_output=True).returncode:
            return None
        sizes = subprocess.run([folder / "sizes"], capture_output=True, check=True).stdout.split()
    return [int(size) for size in reversed(sizes)]


def _literal(value: Any) -> str:
    return f"({value})" if isinstance(value, int | float) and value < 0 else str(value)
