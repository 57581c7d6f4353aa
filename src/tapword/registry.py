"""Find parts by their names, and make them from `NAME:key=value,...`.

A part is a backbone, a pooling, a learner or a data set. tapword's own are files of a package such
as `tapword.poolings`: a file holds one class, and the file's name is the part's public name. Other
packages bring parts by entry points (group `tapword.poolings`), and `load_file` takes them from a
file that the user names.
"""

import contextlib
import functools
import importlib
import importlib.util
import inspect
import numbers
import os
import pkgutil
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tapword.errors import InputError

# Kind of part -> the package that holds tapword's own; `tapword.KIND` is the entry point group.
KINDS = {
    "backbones": "tapword.backbones",
    "poolings": "tapword.poolings",
    "learners": "tapword.learners",
    "voices": "tapword.voices",
    "datasets": "tapword.research.datasets",
}
# Floats, and most programs that read JSON, hold larger whole numbers inexactly.
MAX_WHOLE = 2**53 - 1


@typing.dataclass_transform(eq_default=False)
@dataclass(eq=False, repr=False)
class Part:
    """A backbone, pooling, learner or data set: a dataclass of plain arguments, all with defaults.

    Annotated attributes of a subclass are its arguments, as in `R: int = 5`; constants have no
    annotation, or `ClassVar`. A subclass without annotations keeps its constructor.

    Attributes
    ----------
    former_name, former_arguments
        Spelling from before a part, or some of its arguments (new name -> old), were renamed. Files
        keep it, so that those written before and after are the same.
    """

    former_name: ClassVar[str] = ""
    former_arguments: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if inspect.get_annotations(cls):
            dataclass(eq=False, repr=False)(cls)

    def __post_init__(self) -> None:
        """Refuse arguments that make no sense."""

    @classmethod
    def parameters(cls) -> dict[str, inspect.Parameter]:
        """List the constructor's arguments by name."""
        return dict(inspect.signature(cls).parameters)

    def arguments(self) -> dict[str, Any]:
        """List the constructor's arguments with the values this part was made with."""
        return {name: getattr(self, name) for name in self.parameters()}

    @property
    def name(self) -> str:
        """The public name, as `--pooling` and a model file spell it."""
        return _name(type(self))

    @property
    def spec(self) -> str:
        """`NAME:key=value,...` with the arguments that differ from their defaults."""
        defaults = {name: parameter.default for name, parameter in self.parameters().items()}
        changed = {k: value for k, value in self.arguments().items() if value != defaults[k]}
        return _spell(self.name, changed)

    def _require(self, key: str, fits: bool, wanted: str) -> None:
        """Refuse an argument that makes no sense, and show it."""
        if not fits:
            given = repr(getattr(self, key))[:200]
            raise InputError(f"{self.name}: {key} must be {wanted}, got {given}")

    def _require_whole(
        self, key: str, minimum: int, maximum: int = MAX_WHOLE, none: bool = False
    ) -> None:
        value: Any = getattr(self, key)
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        fits = (whole and minimum <= value <= maximum) or (none and value is None)
        limit = f"of at least {minimum}" if maximum == MAX_WHOLE else f"from {minimum} to {maximum}"
        self._require(key, fits, f"a whole number {limit}")

    def _require_one_of(self, key: str, *options: str) -> None:
        self._require(key, getattr(self, key) in options, f"one of {', '.join(options)}")

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.arguments().items())
        return f"{type(self).__name__}({inside})"


def _name(cls: type) -> str:
    # A file that holds several parts names each by a class attribute `public_name`.
    return vars(cls).get("public_name") or cls.__module__.rpartition(".")[2]


def as_typed(value: Any) -> str:
    """Write an argument as it is typed in `NAME:key=value`."""
    if isinstance(value, tuple | list):
        return "+".join(str(item) for item in value)
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def _spell(name: str, arguments: Mapping[str, Any]) -> str:
    typed = ",".join(f"{key}={as_typed(value)}" for key, value in arguments.items())
    return name + (":" + typed if typed else "")


# Parts of files that the user named: file -> kind -> name -> class.
_from_files: dict[Path, dict[str, dict[str, type[Part]]]] = {}


def classes(kind: str) -> dict[str, type[Part]]:
    """Every part of a kind by public name, sorted."""
    return {name: _load(kind, source) for name, source in _sources(kind).items()}


def find(kind: str, name: str) -> type[Part]:
    """Class of a part by its public name, or by the one that it had before."""
    sources = _sources(kind)
    if name in sources:
        return _load(kind, sources[name])
    for cls in _shipped(kind).values():
        if name and cls.former_name == name:
            return cls
    raise InputError(
        f"no {kind[:-1]} named {name!r}; known: {', '.join(sources)}; for others, install their "
        "package or give their file with --part"
    )


def load_file(path: str | os.PathLike[str]) -> None:
    """Run a Python file and add the parts it defines.

    Only load files that the user names; a model file must never name one.
    """
    path = Path(path).resolve()
    if path in _from_files:
        return
    name = f"tapword_parts.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InputError(f"{path} is not a Python file")
    # A dataclass looks its own module up.
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    found = {kind: _parts_of(module, kind) for kind in KINDS}
    if not any(found.values()):
        raise InputError(
            f"{path} has no class derived from Backbone, Pooling, Learner, Voice or Dataset"
        )
    _from_files[path] = found
    try:
        for kind in KINDS:
            _sources(kind)
    except InputError:
        del _from_files[path]
        raise


def loaded_files() -> list[Path]:
    """Files whose parts were added: another process has to load them again."""
    return list(_from_files)


def _sources(kind: str) -> dict[str, Any]:
    """Name -> class or entry point of each part of a kind, sorted; refuse a name taken twice."""
    given: list[tuple[str, Any, str]] = []
    given += [(name, cls, "tapword's own") for name, cls in _shipped(kind).items()]
    given += [(entry.name, entry, f"{entry.value} of a package") for entry in _entry_points(kind)]
    for path, found in _from_files.items():
        given += [(name, cls, f"in {path}") for name, cls in found[kind].items()]
    sources: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name, source, origin in given:
        if name in sources:
            both = f"one is {origins[name]}, the other {origin}"
            raise InputError(f"two {kind} are named {name!r}: {both}; rename one of them")
        sources[name], origins[name] = source, origin
    return dict(sorted(sources.items()))


@functools.cache
def _shipped(kind: str) -> dict[str, type[Part]]:
    package = importlib.import_module(KINDS[kind])
    found: dict[str, type[Part]] = {}
    for info in pkgutil.iter_modules(package.__path__):
        found |= _parts_of(importlib.import_module(f"{KINDS[kind]}.{info.name}"), kind)
    return found


@functools.cache
def _entry_points(kind: str) -> tuple[Any, ...]:
    # Imported here: `import tapword` would take a third longer.
    from importlib import metadata

    return tuple(metadata.entry_points(group=f"tapword.{kind}"))


def _load(kind: str, source: Any) -> type[Part]:
    """Class of a source; an entry point's package is imported only here."""
    if isinstance(source, type):
        return source
    label = f"{kind[:-1]} {source.name!r} is the entry point {source.value}, which"
    try:
        cls = source.load()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"{label} cannot be imported: {reason}") from error
    if not _is_part(cls, kind):
        raise InputError(f"{label} is not a class derived from {_base(kind).__name__}")
    if _name(cls) != source.name:
        wanted = f"give the class public_name = {source.name!r}"
        raise InputError(f"{label} is named {_name(cls)!r}: {wanted}")
    return cls


def _parts_of(module: types.ModuleType, kind: str) -> dict[str, type[Part]]:
    """Parts of a kind that a module defines, by public name."""
    members = [cls for _, cls in inspect.getmembers(module, lambda cls: _is_part(cls, kind))]
    return {_name(cls): cls for cls in members if cls.__module__ == module.__name__}


def _is_part(cls: Any, kind: str) -> bool:
    return inspect.isclass(cls) and issubclass(cls, _base(kind)) and not inspect.isabstract(cls)


def _base(kind: str) -> type[Part]:
    """Class that every part of a kind is derived from."""
    return getattr(importlib.import_module(f"{KINDS[kind]}.base"), kind.capitalize()[:-1])


def summary(cls: type) -> str:
    """First line of a part's docstring."""
    return (inspect.getdoc(cls) or "").partition("\n")[0]


def build(kind: str, spec: str, **extra: Any) -> Any:
    """Make a part from `NAME` or `NAME:key=value,key=value`.

    Values are read by the argument's own type; `+` separates the items of a tuple. `extra` are
    further arguments as Python values, which win over those in `spec`.

    Examples
    --------
    >>> build("poolings", "tap:R=3")
    Tap(R=3)
    >>> build("poolings", "men")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    tapword.errors.InputError: no pooling named 'men'; known: attentive, avg, ...
    """
    name, _, rest = spec.partition(":")
    cls, label = find(kind, name), f"{kind[:-1]} {name!r}"
    parameters, hints = cls.parameters(), typing.get_type_hints(cls.__init__)
    renamed = {old: new for new, old in cls.former_arguments.items()}
    texts: dict[str, str] = {}
    for item in filter(None, rest.split(",")):
        key, equals, text = item.partition("=")
        if not equals:
            decimals = texts and item.isdigit()
            hint = "; a comma separates arguments, so use a dot in numbers" if decimals else ""
            raise InputError(f"{label}: expected key=value, got {item!r}{hint}")
        texts[renamed.get(key, key)] = text
    extra = {renamed.get(key, key): value for key, value in extra.items()}
    for key in (*texts, *extra):
        if key not in parameters:
            takes = ", ".join(parameters) or "no arguments"
            raise InputError(f"{label} has no argument {key!r}; it takes: {takes}")
    read = {k: _convert(text, hints.get(k, str), f"{label}: {k}") for k, text in texts.items()}
    return cls(**(read | extra))


def make(kind: str, part: Any) -> Any:
    """Return a part as it is, or make it from its name with arguments."""
    if isinstance(part, str):
        return build(kind, part)
    if isinstance(part, _base(kind)):
        return part
    raise InputError(f"expected a {kind[:-1]} or its name, got {part!r}")


def _convert(text: str, hint: Any, label: str) -> Any:
    """Read `text` as the type an argument is annotated with."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    options = typing.get_args(hint) if union else (hint,)
    if type(None) in options and text.lower() == "none":
        return None
    if bool in options and text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        if number in options:
            with contextlib.suppress(ValueError):
                return number(text)
    for option in options:
        if typing.get_origin(option) is tuple and (str not in options or "+" in text):
            inner = typing.get_args(option)[0]
            return tuple(_convert(item, inner, label) for item in text.split("+"))
    if str in options:
        return text
    names = " or ".join(getattr(option, "__name__", str(option)) for option in options)
    raise InputError(f"{label} must be {names}, got {text!r}")


def store(part: Part, skip: Sequence[str] = ()) -> dict[str, Any]:
    """Write a part as JSON: its name and its arguments, without those in `skip`."""
    former = part.former_arguments
    kept = {former.get(k, k): value for k, value in part.arguments().items() if k not in skip}
    return {"name": part.former_name or part.name, "arguments": plain(kept)}


def plain(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments as JSON has them: tuples are lists."""
    return {name: list(x) if isinstance(x, tuple) else x for name, x in arguments.items()}


def restore(kind: str, stored: dict[str, Any]) -> Any:
    """Make the part that `store` wrote."""
    given = stored["arguments"].items()
    arguments = {name: tuple(value) if isinstance(value, list) else value for name, value in given}
    return build(kind, stored["name"], **arguments)


def describe(kind: str, *stored: dict[str, Any]) -> str:
    """`NAME:key=value,...` of parts that `store` wrote, joined by +, without making them."""
    specs = []
    for one in stored:
        name, arguments = one["name"], one["arguments"]
        with contextlib.suppress(InputError):
            cls = find(kind, name)
            renamed = {old: new for new, old in cls.former_arguments.items()}
            name, arguments = _name(cls), {renamed.get(k, k): x for k, x in arguments.items()}
        specs.append(_spell(name, arguments))
    return " + ".join(specs)
