"""The wake-word service: a port, its clients, and the threads that listen for them."""

import asyncio
import contextlib
import heapq
import itertools
import os
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from wyoming.client import AsyncTcpClient
from wyoming.info import Attribution, Describe, Info, WakeModel, WakeProgram

from tapword.errors import InputError
from tapword.serve.watching import watching
from tapword.serve.wyoming.announce import announced
from tapword.serve.wyoming.client import LIMITS, Client, Limits, log
from tapword.serve.wyoming.followed_model import FollowedModel
from tapword.support.threads import one_blas_thread
from tapword.version import __version__

T = TypeVar("T")
# How often the model file is looked at.
LOOK_S = 1.0
# How long a service that is well may take to say so.
CHECK_S = 5.0
# How long a thread of Python may keep the others waiting; usually 5 ms.
SWITCH_S = 0.0005


@dataclass(frozen=True)
class Presence:
    """How a service shows itself: its name, its words' languages, and its name in the network."""

    name: str = "tapword"
    languages: Sequence[str] = ()
    announced: str | None = None


PRESENCE = Presence()


class Turns:
    """Threads, and who is next on them: whoever's sound would be over first if it were played.

    So nobody who sends faster than sound plays delays those who speak.
    """

    def __init__(self, threads: int):
        self._threads = ThreadPoolExecutor(threads, "listening")
        self._free = threads
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    async def work(self, ahead_s: float, job: Callable[..., T], *arguments: Any) -> T:
        """Do a job on one of the threads, when it is its turn."""
        loop = asyncio.get_running_loop()
        if self._free:
            self._free -= 1
        else:
            turn: asyncio.Future[None] = loop.create_future()
            heapq.heappush(self._waiting, (loop.time() + ahead_s, next(self._order), turn))
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():
                    self._next()
                raise
        working = loop.run_in_executor(self._threads, job, *arguments)
        working.add_done_callback(self._done)
        # A client may go while a thread is busy with it; that thread is not free before its end.
        return await asyncio.shield(working)

    def _done(self, working: asyncio.Future[Any]) -> None:
        if not working.cancelled():
            working.exception()
        self._next()

    def _next(self) -> None:
        while self._waiting:
            *_, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def close(self) -> None:
        """Begin no more jobs."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class Service:
    """What the clients share: the words, the threads, the number of places."""

    def __init__(
        self,
        model: FollowedModel,
        presence: Presence,
        limits: Limits,
        clock: Callable[[], float],
    ):
        self.model = model
        self.presence = presence
        self.limits = limits
        self.clock = clock
        self._clients: set[Client] = set()
        self._turns = Turns(os.cpu_count() or 1)
        self.work = self._turns.work

    @property
    def places_taken(self) -> int:
        """Number of clients."""
        return len(self._clients)

    def info(self) -> Info:
        """Describe the service and its words."""
        maker = Attribution("tapword", "https://pypi.org/project/tapword/")
        common: dict[str, Any] = {"attribution": maker, "installed": True, "version": __version__}
        languages = list(self.presence.languages)
        words = [
            WakeModel(
                name=word, description=shown(word), phrase=word, languages=languages, **common
            )
            for word in self.model.served.words
        ]
        description = "Words taught on this device, a few samples each"
        program = WakeProgram(
            name=self.presence.name, description=description, models=words, **common
        )
        return Info(wake=[program])

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a client as long as it stays, where there is a place for it."""
        client = Client(self, reader, writer)
        if len(self._clients) >= self.limits.clients and not self._make_room(client):
            log.warning("refused a client: %d are connected already", self.limits.clients)
            writer.transport.abort()
            return
        connection = writer.get_extra_info("socket")
        if connection is not None:
            # A peer that lost its power does not say goodbye, and would keep its place.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        client.task = asyncio.create_task(client.run())
        self._clients.add(client)
        client.task.add_done_callback(lambda _: self._clients.discard(client))

    def _make_room(self, newcomer: Client) -> bool:
        """Send one away: who hurries most, else who is idle, else of the address with most."""
        leaving = max(self._clients, key=lambda client: client.ahead_s)
        if not leaving.hurries:
            leaving = min(self._clients, key=lambda client: client.last)
        if not leaving.hurries and self.clock() - leaving.last < self.limits.idle_s:
            places = Counter(client.address for client in self._clients)
            address, taken = places.most_common(1)[0]
            if taken <= places[newcomer.address] + 1:
                return False
            theirs = (client for client in self._clients if client.address == address)
            leaving = min(theirs, key=lambda client: client.last)
        self._clients.discard(leaving)
        leaving.leave()
        return True

    async def close(self) -> None:
        """Send all clients away."""
        tasks = [client.task for client in self._clients if client.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._turns.close()


def shown(word: str) -> str:
    """Give a word's name as a list of wake words shows it, unless it was taught with capitals.

    Examples
    --------
    >>> shown("turn_off the lamp"), shown("Licht an")
    ('Turn Off The Lamp', 'Licht an')
    """
    if word != word.lower():
        return word
    return " ".join(part[:1].upper() + part[1:] for part in word.replace("_", " ").split())


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
    presence: Presence = PRESENCE,
    *,
    look_s: float = LOOK_S,
    limits: Limits = LIMITS,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[int]:
    """Serve within this context, announced in the network if it has a name there; give the port."""
    service = Service(model, presence, limits, clock)
    try:
        server = await asyncio.start_server(service.handle, host, port, limit=limits.data_bytes)
    except OSError as error:
        raise InputError(
            f"cannot use port {port} of {host}: {_reason(error)}; another wake-word service may be "
            "running there: stop it, or give another port by --uri"
        ) from error
    port = server.sockets[0].getsockname()[1]
    try:
        async with watching(model, look_s), announced(presence.announced, host, port):
            yield port
    finally:
        server.close()
        await service.close()


def serve(
    model: FollowedModel,
    host: str,
    port: int,
    presence: Presence,
    ready: Callable[[int], None],
) -> None:
    """Serve until interrupted or told to stop; `ready` is told the port."""

    async def main() -> None:
        stop = asyncio.Event()
        # Windows has no such signals; there, Ctrl+C alone ends the service.
        with contextlib.suppress(NotImplementedError):
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
        async with serving(model, host, port, presence) as bound:
            ready(bound)
            await stop.wait()

    # The threads are busy with clients; BLAS's own would only fight them for the cores.
    with one_blas_thread, _quick_switches():
        asyncio.run(main())


@contextlib.contextmanager
def _quick_switches() -> Iterator[None]:
    """Let threads of Python wait for each other less than usual, within this context.

    A thread that hears gives way some hundred times a second of sound, and waits that long for the
    one that reads whenever somebody keeps that busy.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def described(host: str, port: int, patience_s: float = CHECK_S) -> list[str]:
    """Ask the service that runs there for its words; an error where there is no answer."""

    async def ask() -> list[str]:
        async with asyncio.timeout(patience_s), AsyncTcpClient(host, port) as line:
            await line.write_event(Describe().event())
            event = await line.read_event()
            if event is None or not Info.is_type(event.type):
                raise ConnectionError("no wake-word service")
            return [word.name for program in Info.from_event(event).wake for word in program.models]

    try:
        return asyncio.run(ask())
    except OSError as error:
        reason = _reason(error) or f"none within {patience_s:g} s"
        raise InputError(f"no wake-word service answers at {host} port {port}: {reason}") from error


def _reason(error: OSError) -> str:
    """Say what went wrong in the system's own words: asyncio puts others before them."""
    number = error.errno or 0
    return os.strerror(number) if number > 0 else error.strerror or str(error)
