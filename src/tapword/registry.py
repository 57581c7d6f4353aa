"""Names of a room -> classes, and `NAME:key=value,...` -> a part.

A room is a package (`tapword.poolings`); a file in it holds one part, a class that is not abstract,
and the file's name is the part's public name. Nothing is listed anywhere: adding a file adds the
part.
"""

import contextlib
import importlib
import inspect
import numbers
import pkgutil
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tapword.errors import InputError

# Where the parts of each kind live.
ROOMS = {
    "backbones": "tapword.backbones",
    "poolings": "tapword.poolings",
    "learners": "tapword.learners",
    "datasets": "tapword.research.datasets",
}


# Whole numbers beyond this are exact in no float and in few programs that read JSON.
MOST = 2**53 - 1


@typing.dataclass_transform(eq_default=False)
@dataclass(eq=False, repr=False)
class Part:
    """A backbone, pooling, learner or data set: a dataclass of plain arguments, all with defaults.

    What a subclass annotates is an argument, as in `R: int = 5`; its constants have no annotation,
    or `ClassVar`. One that annotates nothing, or writes its own `__init__`, keeps its constructor.
    """

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
        return describe({"name": self.name, "arguments": changed})

    def _require(self, key: str, fits: bool, wanted: str) -> None:
        """Refuse an argument that makes no sense, and show it."""
        if not fits:
            given = repr(getattr(self, key))[:200]
            raise InputError(f"{self.name}: {key} must be {wanted}, got {given}")

    def _require_whole(
        self, key: str, minimum: int, maximum: int = MOST, none: bool = False
    ) -> None:
        value: Any = getattr(self, key)
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        fits = (whole and minimum <= value <= maximum) or (none and value is None)
        limit = f"of at least {minimum}" if maximum == MOST else f"from {minimum} to {maximum}"
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


def classes(room: str) -> dict[str, type[Part]]:
    """Every part of a room by public name, sorted."""
    package, kind = importlib.import_module(ROOMS[room]), _kind(room)
    found = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{ROOMS[room]}.{info.name}")
        for _, cls in inspect.getmembers(module, inspect.isclass):
            own = cls.__module__ == module.__name__
            if own and issubclass(cls, kind) and not inspect.isabstract(cls):
                found[_name(cls)] = cls
    return dict(sorted(found.items()))


def _kind(room: str) -> type[Part]:
    """Class that every part of a room is of."""
    return getattr(importlib.import_module(f"{ROOMS[room]}.base"), room.capitalize()[:-1])


def summary(cls: type) -> str:
    """First line of a part's docstring."""
    return (inspect.getdoc(cls) or "").partition("\n")[0]


def build(room: str, spec: str, **extra: Any) -> Any:
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
    tapword.errors.InputError: no pooling named 'men'; known: avg, ...
    """
    kind = room[:-1]
    name, _, rest = spec.partition(":")
    known = classes(room)
    if name not in known:
        raise InputError(f"no {kind} named {name!r}; known: {', '.join(known)}")
    cls = known[name]
    parameters, hints = cls.parameters(), typing.get_type_hints(cls.__init__)
    texts: dict[str, str] = {}
    for item in filter(None, rest.split(",")):
        key, equals, texts[key] = item.partition("=")
        if not equals:
            raise InputError(f"{kind} {name!r}: expected key=value, got {item!r}")
    for key in (*texts, *extra):
        if key not in parameters:
            takes = ", ".join(parameters) or "no arguments"
            raise InputError(f"{kind} {name!r} has no argument {key!r}; it takes: {takes}")
    read = {
        k: _convert(text, hints.get(k, str), f"{kind} {name!r}: {k}") for k, text in texts.items()
    }
    return cls(**(read | extra))


def make(room: str, part: Any) -> Any:
    """Give a part as it is, or make it from its name with arguments."""
    if isinstance(part, str):
        return build(room, part)
    if isinstance(part, _kind(room)):
        return part
    raise InputError(f"expected a {room[:-1]} or its name, got {part!r}")


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
    raise InputError(f"{label} wants {names}, got {text!r}")


def store(part: Part, skip: Sequence[str] = ()) -> dict[str, Any]:
    """Write a part as JSON: its name and its arguments, less those in `skip`."""
    kept = {name: value for name, value in part.arguments().items() if name not in skip}
    return {"name": part.name, "arguments": plain(kept)}


def plain(arguments: dict[str, Any]) -> dict[str, Any]:
    """Give arguments as JSON does: tuples are lists."""
    return {name: list(x) if isinstance(x, tuple) else x for name, x in arguments.items()}


def restore(room: str, stored: dict[str, Any]) -> Any:
    """Make the part that `store` wrote."""
    given = stored["arguments"].items()
    arguments = {name: tuple(value) if isinstance(value, list) else value for name, value in given}
    return build(room, stored["name"], **arguments)


def describe(stored: dict[str, Any]) -> str:
    """`NAME:key=value,...` of a part that `store` wrote, without making it."""
    arguments = ",".join(f"{name}={as_typed(value)}" for name, value in stored["arguments"].items())
    return stored["name"] + (":" + arguments if arguments else "")
