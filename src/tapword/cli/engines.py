"""The options that say where the work is done: here, or on a Ray cluster."""

import contextlib
from collections.abc import Iterator
from typing import Annotated

import typer

from tapword import scale
from tapword.errors import InputError

ENGINES = ("local", "ray")

EngineName = Annotated[
    str, typer.Option("--engine", help="local, or ray: spread over processes and machines.")
]
Address = Annotated[
    str | None,
    typer.Option(
        help="With --engine ray: HOST:PORT of a cluster, or auto. [default: this machine's cores]"
    ),
]


@contextlib.contextmanager
def open_engine(
    name: str, address: str | None, cpus: int | None = None
) -> Iterator[scale.Cluster | None]:
    """Give a cluster, or None for this process."""
    if name not in ENGINES:
        raise InputError(f"no engine named {name!r}; known: {', '.join(ENGINES)}")
    if name == "local":
        if address is not None:
            raise InputError(f"--address {address} goes with --engine ray")
        yield None
        return
    with scale.cluster(address, cpus) as made:
        yield made
