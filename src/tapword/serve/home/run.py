"""Run the service and the studio in one process."""

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from tapword.serve.home.pages import Home
from tapword.serve.studio.launch import Address
from tapword.serve.wyoming.service import ServiceInfo, listening_threads, serving

# A studio that is ready to run: its server, its socket and its address.
Prepared = tuple[Any, socket.socket, Address]


async def run(
    home: Home,
    studio: Prepared,
    host: str,
    port: int,
    info: ServiceInfo,
    ready: Callable[[int, Address], None],
    beside: Sequence[Callable[[], Coroutine[Any, Any, None]]] = (),
) -> None:
    """Serve until the studio's server ends; `ready` is called with the service's port.

    The jobs of `beside` run meanwhile.
    """
    server, listening, address = studio
    watch = home.satellites.watch
    # The studio reads the model again for both.
    async with serving(home.model, host, port, info, poll_s=None, watch=watch) as bound:
        ready(bound, address)
        tasks = [asyncio.create_task(job()) for job in beside]
        try:
            await server.serve(sockets=[listening])
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def serve(
    home: Home,
    studio: Prepared,
    host: str,
    port: int,
    info: ServiceInfo,
    ready: Callable[[int, Address], None],
    beside: Sequence[Callable[[], Coroutine[Any, Any, None]]] = (),
) -> None:
    """Serve until interrupted or terminated."""
    if threading.current_thread() is threading.main_thread():
        # uvicorn handles these signals while it serves, and then sends them again to the handlers
        # from before. One that comes earlier must end it, too.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: setattr(studio[0], "should_exit", True))
    with studio[1], listening_threads():
        asyncio.run(run(home, studio, host, port, info, ready, beside))
