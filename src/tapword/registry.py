"""Names of a room -> classes, and `NAME:key=value,...` -> a part.

A room is a package (`tapword.poolings`); a file in it holds one part, a class that is not abstract,
and the file's name is the part's public name. Nothing is listed anywhere: adding a file adds the
part.
"""

import importlib
import inspect
import pkgutil
import types
import typing
from collections.abc import Sequence
from typing import Any

from tapword.errors import InputError

ROOMS = ("backbones", "poolings", "learners", "datasets")


class Part:
    """A backbone, pooling or learner: plain keyword arguments stored under their own names."""

    @classmethod
    def parameters(cls) -> dict[str, inspect.Parameter]:
        """List the constructor's arguments by name."""
        if cls.__init__ is object.__init__:
            return {}
        found = dict(inspect.signature(cls.__init__).parameters)
        found.pop("self")
        return found

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
        changed = [
            f"{name}={_text(getattr(self, name))}"
            for name, parameter in self.parameters().items()
            if getattr(self, name) != parameter.default
        ]
        return self.name + (":" + ",".join(changed) if changed else "")

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.arguments().items())
        return f"{type(self).__name__}({inside})"


def _name(cls: type) -> str:
    # A file that holds several parts names each by a class attribute `public_name`.
    return vars(cls).get("public_name") or cls.__module__.rpartition(".")[2]


def _text(value: Any) -> str:
    if isinstance(value, tuple | list):
        return "+".join(str(item) for item in value)
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def classes(room: str) -> dict[str, type[Part]]:
    """Every part of a room by public name, sorted.

    Examples
    --------
    >>> "tap" in classes("poolings")
    True
    """
    package = importlib.import_module(f"tapword.{room}")
    base = importlib.import_module(f"tapword.{room}.base")
    kind: type[Part] = getattr(base, room.capitalize()[:-1])
    found: dict[str, type[Part]] = {}
    value: Any
    for module_info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"tapword.{room}.{module_info.name}")
        for value in vars(module).values():
            if (
                inspect.isclass(value)
                and issubclass(value, kind)
                and value.__module__ == module.__name__
                and not inspect.isabstract(value)
            ):
                found[_name(value)] = value
    return dict(sorted(found.items()))


def summary(cls: type) -> str:
    """First line of a part's docstring."""
    return (inspect.getdoc(cls) or "").partition("\n")[0]


def build(room: str, spec: str, **extra: Any) -> Any:
    """Make a part from `NAME` or `NAME:key=value,key=value`.

    Parameters
    ----------
    room
        One of `ROOMS`.
    spec
        Values are read by the argument's own type; `+` separates the items of a tuple.
    extra
        Arguments given as Python values, over those in `spec`.

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
    parameters = cls.parameters()
    hints = typing.get_type_hints(cls.__init__) if parameters else {}
    arguments: dict[str, Any] = {}
    for item in filter(None, rest.split(",")):
        key, equals, text = item.partition("=")
        if not equals:
            raise InputError(f"{kind} {name!r}: expected key=value, got {item!r}")
        if key not in parameters:
            takes = ", ".join(parameters) or "no arguments"
            raise InputError(f"{kind} {name!r} has no argument {key!r}; it takes: {takes}")
        arguments[key] = _convert(text, hints.get(key, str), f"{kind} {name!r}: {key}")
    for key in extra:
        if key not in parameters:
            takes = ", ".join(parameters) or "no arguments"
            raise InputError(f"{kind} {name!r} has no argument {key!r}; it takes: {takes}")
    return cls(**(arguments | extra))


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
            try:
                return number(text)
            except ValueError:
                pass
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
    arguments = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in part.arguments().items()
        if name not in skip
    }
    return {"name": part.name, "arguments": arguments}


def restore(room: str, stored: dict[str, Any]) -> Any:
    """Make the part that `store` wrote."""
    arguments = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in stored["arguments"].items()
    }
    return build(room, stored["name"], **arguments)


def describe(stored: dict[str, Any]) -> str:
    """`NAME:key=value,...` of a part that `store` wrote, without making it."""
    arguments = ",".join(f"{name}={_text(value)}" for name, value in stored["arguments"].items())
    return stored["name"] + (":" + arguments if arguments else "")
