"""The wake-word service: a port, its clients, and the threads that listen for them."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from threadpoolctl import threadpool_limits
from wyoming.info import Attribution, Info, WakeModel, WakeProgram

from tapword.errors import InputError
from tapword.serve.watching import watching
from tapword.serve.wyoming.announce import announced
from tapword.serve.wyoming.client import LIMITS, Client, Limits
from tapword.serve.wyoming.followed_model import FollowedModel
from tapword.serve.wyoming.stream import Detections
from tapword.version import __version__

log = logging.getLogger("tapword.serve.wyoming")

# How often the model file is looked at.
LOOK_S = 1.0


class Service:
    """What the clients share: the words, the threads, the number of places."""

    def __init__(self, model: FollowedModel, limits: Limits, clock: Callable[[], float]):
        self.model = model
        self.limits = limits
        self.clock = clock
        self._clients: set[asyncio.Task[None]] = set()
        self._threads = ThreadPoolExecutor(os.cpu_count() or 1, "listening")

    def info(self) -> Info:
        """Describe the service and its words."""
        maker = Attribution("tapword", "https://pypi.org/project/tapword/")
        common: dict[str, Any] = {"attribution": maker, "installed": True, "version": __version__}
        words = [
            WakeModel(name=word, description=word, phrase=word, languages=[], **common)
            for word in self.model.served.words
        ]
        description = "Words taught on this device, a few samples each"
        program = WakeProgram(name="tapword", description=description, models=words, **common)
        return Info(wake=[program])

    async def work(self, job: Callable[..., Detections], *arguments: Any) -> Detections:
        """Hear a client's sound on one of the threads."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, job, *arguments)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a client as long as it stays, where there is a place for it."""
        if len(self._clients) >= self.limits.clients:
            log.warning("refused a client: %d are connected already", self.limits.clients)
            writer.transport.abort()
            return
        connection = writer.get_extra_info("socket")
        if connection is not None:
            # A peer that lost its power does not say goodbye, and would keep its place.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        task = asyncio.create_task(Client(self, reader, writer).run())
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)

    async def close(self) -> None:
        """Send all clients away."""
        for task in self._clients:
            task.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)


def address(uri: str) -> tuple[str, int]:
    """Host and port of a URI.

    Examples
    --------
    >>> address("tcp://127.0.0.1:10400")
    ('127.0.0.1', 10400)
    """
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or port is None or parts.scheme != "tcp" or parts.path.strip("/"):
        raise InputError(f"the URI must be like tcp://127.0.0.1:10400, got {uri!r}")
    return host, port


@contextlib.asynccontextmanager
async def serving(
    model: FollowedModel,
    host: str,
    port: int,
    name: str | None = None,
    *,
    look_s: float = LOOK_S,
    limits: Limits = LIMITS,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[int]:
    """Serve within this context, announced in the network where there is a name; give the port."""
    service = Service(model, limits, clock)
    try:
        server = await asyncio.start_server(service.handle, host, port)
    except OSError as error:
        number = error.errno or 0
        reason = os.strerror(number) if number > 0 else error.strerror
        raise InputError(
            f"cannot use port {port} of {host}: {reason}; another wake-word service may be "
            "running there: stop it, or give another port by --uri"
        ) from error
    port = server.sockets[0].getsockname()[1]
    try:
        async with watching(model, look_s), announced(name, host, port):
            yield port
    finally:
        server.close()
        await service.close()


def serve(
    model: FollowedModel, host: str, port: int, name: str | None, ready: Callable[[int], None]
) -> None:
    """Serve until interrupted or told to stop; `ready` is told the port."""

    async def main() -> None:
        stop = asyncio.Event()
        # Windows has no such signals; there, Ctrl+C alone ends the service.
        with contextlib.suppress(NotImplementedError):
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
        async with serving(model, host, port, name) as bound:
            ready(bound)
            await stop.wait()

    # The threads are busy with clients; BLAS's own would only fight them for the cores.
    with threadpool_limits(1, user_api="blas"):
        asyncio.run(main())
