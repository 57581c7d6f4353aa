"""The wake-word service: a port, its clients, and the threads that process their audio."""

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
from tapword.serve.polling import polling
from tapword.serve.wyoming.announce import announced
from tapword.serve.wyoming.client import LIMITS, Client, ClientLimits, log
from tapword.serve.wyoming.served_model import ServedModel
from tapword.serve.wyoming.watch import Watch
from tapword.support.threads import one_blas_thread
from tapword.version import __version__

T = TypeVar("T")
# How often the model file is polled.
POLL_S = 1.0
# How long a healthy service may take to answer.
CHECK_S = 5.0
# Python's switch interval between threads; the default is 5 ms.
SWITCH_S = 0.0005


@dataclass(frozen=True)
class ServiceInfo:
    """How a service describes itself: name, languages of its words, name in the network."""

    name: str = "tapword"
    languages: Sequence[str] = ()
    announced_as: str | None = None


SERVICE_INFO = ServiceInfo()


class DeadlineExecutor:
    """Threads that run the job with the earliest deadline first.

    The deadline is when the client's audio would end if it were played. So a client that sends
    faster than real time does not delay those who speak.
    """

    def __init__(self, threads: int):
        self._threads = ThreadPoolExecutor(threads, "listening")
        self._free = threads
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    async def submit(self, ahead_s: float, job: Callable[..., T], *arguments: Any) -> T:
        """Run a job on a thread, when its turn comes."""
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
        # A client may disconnect while a thread runs its job; the thread is free only after that.
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
        """Start no more jobs."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class Service:
    """What the clients share: the model, the threads, the limits."""

    def __init__(
        self,
        model: ServedModel,
        info: ServiceInfo,
        limits: ClientLimits,
        clock: Callable[[], float],
        watch: Callable[[str], Watch] = Watch,
    ):
        self.model = model
        self.watch = watch
        self._info = info
        self.limits = limits
        self.clock = clock
        self._clients: set[Client] = set()
        # Time of the last turn of a client that is ahead of real time.
        self._fast_turn = 0.0
        self._executor = DeadlineExecutor(os.cpu_count() or 1)
        self.work = self._executor.submit

    def fast_turn_s(self) -> float:
        """Seconds to wait for the next turn of the clients that are ahead of real time.

        They share one rate of events. Each waits for one turn at a time, so their turns alternate.
        """
        now = asyncio.get_running_loop().time()
        self._fast_turn = max(now, self._fast_turn + 1 / self.limits.fast_events_hz)
        return self._fast_turn - now

    def info(self) -> Info:
        """Describe the service and its words to a client."""
        maker = Attribution("tapword", "https://pypi.org/project/tapword/")
        common: dict[str, Any] = {"attribution": maker, "installed": True, "version": __version__}
        languages = list(self._info.languages)
        words = [
            WakeModel(
                name=word,
                description=display_name(word),
                phrase=word,
                languages=languages,
                **common,
            )
            for word in self.model.served.words
        ]
        description = "Words taught on this device, a few samples each"
        program = WakeProgram(name=self._info.name, description=description, models=words, **common)
        return Info(wake=[program])

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a client until it disconnects, if there is room for it."""
        client = Client(self, reader, writer)
        if len(self._clients) >= self.limits.clients and not self._make_room(client):
            log.warning("refused a client: %d are connected already", self.limits.clients)
            writer.transport.abort()
            return
        connection = writer.get_extra_info("socket")
        if connection is not None:
            # A peer that lost power does not disconnect; keep-alive notices.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        client.task = asyncio.create_task(client.run())
        self._clients.add(client)
        client.task.add_done_callback(lambda _: self._clients.discard(client))

    def _make_room(self, newcomer: Client) -> bool:
        """Disconnect the client furthest ahead, else an idle one, else one of the busiest address.

        An address with more than half of all connections gives up one of its own: on a busy
        machine, a satellite elsewhere may seem idle or ahead for a moment.
        """
        places = Counter(client.address for client in self._clients)
        address, taken = places.most_common(1)[0]
        theirs = [client for client in self._clients if client.address == address]
        found = theirs if taken > len(self._clients) / 2 else list(self._clients)
        leaving = max(found, key=lambda client: client.ahead_s)
        if not leaving.ahead_of_realtime:
            leaving = min(found, key=lambda client: client.last)
        if not leaving.ahead_of_realtime and self.clock() - leaving.last < self.limits.idle_s:
            if taken <= places[newcomer.address] + 1:
                return False
            leaving = min(theirs, key=lambda client: client.last)
        self._clients.discard(leaving)
        leaving.disconnect()
        return True

    async def close(self) -> None:
        """Disconnect all clients."""
        tasks = [client.task for client in self._clients if client.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._executor.close()


def display_name(word: str) -> str:
    """Name of a word in a list of wake words: capitalized, unless it was taught with capitals.

    Examples
    --------
    >>> display_name("turn_off the lamp"), display_name("Licht an")
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
    model: ServedModel,
    host: str,
    port: int,
    info: ServiceInfo = SERVICE_INFO,
    *,
    poll_s: float | None = POLL_S,
    limits: ClientLimits = LIMITS,
    clock: Callable[[], float] = time.monotonic,
    watch: Callable[[str], Watch] = Watch,
) -> AsyncIterator[int]:
    """Serve within this context, announced in the network if it has a name there; give the port.

    None as `poll_s`: somebody else reads the model again. `watch` makes the watch of a client at an
    address.
    """
    service = Service(model, info, limits, clock, watch)
    try:
        server = await asyncio.start_server(service.handle, host, port, limit=limits.data_bytes)
    except OSError as error:
        raise InputError(
            f"cannot use port {port} of {host}: {_reason(error)}; another wake-word service may be "
            "running. Stop it, or give another port with --uri"
        ) from error
    port = server.sockets[0].getsockname()[1]
    try:
        changes = contextlib.nullcontext() if poll_s is None else polling(model, poll_s)
        async with changes, announced(info.announced_as, host, port):
            yield port
    finally:
        server.close()
        await service.close()


def serve(
    model: ServedModel,
    host: str,
    port: int,
    info: ServiceInfo,
    ready: Callable[[int], None],
) -> None:
    """Serve until interrupted or terminated; `ready` is called with the port."""

    async def main() -> None:
        stop = asyncio.Event()
        # Windows has no such signals; there, only Ctrl+C ends the service.
        with contextlib.suppress(NotImplementedError):
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
        async with serving(model, host, port, info) as bound:
            ready(bound)
            await stop.wait()

    with listening_threads():
        asyncio.run(main())


@contextlib.contextmanager
def listening_threads() -> Iterator[None]:
    """Set Python and BLAS up for the threads of the service, within this context."""
    # The threads use all cores already; BLAS's own threads would compete for them.
    with one_blas_thread, _short_switch_interval():
        yield


@contextlib.contextmanager
def _short_switch_interval() -> Iterator[None]:
    """Shorten Python's switch interval within this context.

    A thread that processes audio yields about a hundred times per second of audio. Each time it
    waits up to one interval for the thread that reads, if a client keeps that busy.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def query_words(host: str, port: int, timeout_s: float = CHECK_S) -> list[str]:
    """Ask a running service for its words; an error without an answer."""

    async def ask() -> list[str]:
        async with asyncio.timeout(timeout_s), AsyncTcpClient(host, port) as client:
            await client.write_event(Describe().event())
            event = await client.read_event()
            if event is None or not Info.is_type(event.type):
                raise ConnectionError("no wake-word service")
            return [word.name for program in Info.from_event(event).wake for word in program.models]

    try:
        return asyncio.run(ask())
    except OSError as error:
        reason = _reason(error) or f"none within {timeout_s:g} s"
        raise InputError(f"no wake-word service answers at {host} port {port}: {reason}") from error


def _reason(error: OSError) -> str:
    """Give the system's message, without the text that asyncio puts before it."""
    number = error.errno or 0
    return os.strerror(number) if number > 0 else error.strerror or str(error)
