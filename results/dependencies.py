"""The code that a command runs, found without running it, and its hash.

A command depends on its program, on the modules of tapword and `benchmarks/` that are imported from
there, also inside functions, and on the parts that are named: in the command, or in a string of one
of these modules. A part's shipped weights count too. Comments, docstrings, formatting, the version
number and completion in the shell do not count.
"""

import ast
import functools
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "tapword"
# No figure depends on these: the version number, and completion in the shell.
IGNORED = (PACKAGE / "version.py", PACKAGE / "cli" / "complete.py")
# Folders of parts: a file's name is the part's name, unless a class in it has a `public_name`.
PARTS = ("backbones", "poolings", "learners", "research/datasets")
PUBLIC_NAME = re.compile(r'^    public_name = "(\w+)"', re.MULTILINE)


def code_hash(command: str) -> str:
    """Hash the code that a command runs."""
    total = hashlib.sha256()
    for path in files(command):
        total.update(f"{path.relative_to(ROOT).as_posix()} {file_hash(path)}\n".encode())
    return total.hexdigest()[:16]


def files(command: str) -> list[Path]:
    """List the files of the code that a command runs, and of its parts' weights."""
    program, name = command.split()[:2]
    waiting = [PACKAGE / "cli" / f"{name}.py" if program == "tapword" else ROOT / name]
    names = set(re.findall(r"\w+", command))
    found: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path not in found and path not in IGNORED:
            found.add(path)
            names |= named_parts(path)
            waiting += [*imports(path), *(part for name, part in parts().items() if name in names)]
    assets = (PACKAGE / "assets").rglob("*.safetensors")
    return sorted([*found, *(path for path in assets if parts().get(path.stem) in found)])


@functools.cache
def parts() -> dict[str, Path]:
    """Name -> file of every part."""
    result: dict[str, Path] = {}
    for folder in PARTS:
        for path in (PACKAGE / folder).glob("*.py"):
            names = PUBLIC_NAME.findall(path.read_text("utf-8"))
            result |= dict.fromkeys([path.stem, *names], path)
    return result


@functools.cache
def syntax(path: Path) -> ast.Module:
    """Parse a file; docstrings are removed."""
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                del body[0]
    return tree


@functools.cache
def file_hash(path: Path) -> str:
    """Hash the code of a Python file, or the bytes of another file."""
    content = spelled(syntax(path)).encode() if path.suffix == ".py" else path.read_bytes()
    return hashlib.sha256(content).hexdigest()


def spelled(node: object) -> str:
    """Spell a syntax tree without positions, the same in every version of Python.

    Examples
    --------
    >>> spelled(ast.parse("x = 1  # one"))
    "Module(body=[Assign(targets=[Name(id='x', ctx=Store())], value=Constant(value=1))])"
    """
    if isinstance(node, list):
        return f"[{', '.join(map(spelled, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    # Later versions have more fields, empty in older code.
    fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []))
    return f"{type(node).__name__}({', '.join(f'{k}={spelled(v)}' for k, v in fields)})"


@functools.cache
def named_parts(path: Path) -> set[str]:
    """Words of the strings in a file that may be specs of parts, which contain no spaces."""
    strings = (
        node.value
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value
    )
    return {word for text in strings for word in re.findall(r"\w+", text)}


@functools.cache
def imports(path: Path) -> list[Path]:
    """Files of tapword, or beside this one, that a file imports."""
    found = (_module_file(path.parent, name) for name in _imported_names(syntax(path)))
    return [one for one in found if one is not None]


def _imported_names(tree: ast.Module) -> Iterator[tuple[str, ...]]:
    """Dotted names of modules, each with those it may stand for, the likeliest first."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((one.name,) for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            # A name imported from a package may be a module in it.
            yield from ((f"{node.module}.{one.name}", node.module) for one in node.names)


def _module_file(folder: Path, names: tuple[str, ...]) -> Path | None:
    for name in names:
        root = ROOT / "src" if name.partition(".")[0] == "tapword" else folder
        path = root / name.replace(".", "/")
        for one in (path.with_suffix(".py"), path / "__init__.py"):
            if one.is_file():
                return one
    return None
