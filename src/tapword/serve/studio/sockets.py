"""WebSockets between pages and the studio: audio and commands in, updates out."""

import asyncio
import contextlib
import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, ClassVar, NamedTuple

import anyio
import numpy as np
from anyio import to_thread
from starlette.requests import HTTPConnection
from starlette.routing import Route
from starlette.websockets import WebSocket, WebSocketDisconnect

from tapword.audio.files import SAMPLE_RATE
from tapword.errors import TapwordError
from tapword.serve.studio.history import History
from tapword.serve.studio.limits import LIMITS, ServerLimits
from tapword.serve.studio.listener import Listener, Message
from tapword.serve.studio.model import StudioModel

# How often audio that is too old is dropped.
EXPIRE_S = 5.0
# Codes that close a WebSocket (RFC 6455, 7.4.1).
UNSUPPORTED, REFUSED, TOO_LARGE, TRY_LATER = 1003, 1008, 1009, 1013

# Commands of a page by type: the method that runs one, and the types of its arguments.
COMMANDS: dict[str, tuple[Callable[..., Message | None], dict[str, tuple[type, ...]]]] = {
    "listen": (Listener.listen, {}),
    "stop": (Listener.stop, {}),
    "gap": (Listener.gap, {}),
    "correct": (Listener.correct, {"id": (int,), "word": (str, NoneType)}),
    "missed": (Listener.missed, {"word": (str,)}),
    "keep_missed": (Listener.keep_missed, {"word": (str,)}),
    "drop_missed": (Listener.drop_missed, {}),
    "record": (Listener.record, {"id": (int,)}),
    "finish": (Listener.finish, {}),
    "cancel": (Listener.cancel, {}),
    "keep": (Listener.keep, {"id": (int,), "word": (str,), "anyway": (bool,)}),
    "play": (Listener.event_audio, {"id": (int,)}),
}
TEACHING_COMMANDS = ("correct", "missed", "keep_missed", "keep")
# Changes of the model at a time. They wait for the file's lock anyway, and this leaves processor
# time to those who listen.
MAX_CHANGES = 2
MAX_PAGE_ID_CHARACTERS = 40
# Messages of which a page needs only the latest.
DROPPED = ("scores", "levels")


class EncodedMessage(NamedTuple):
    """A message as it is sent, and its type; bytes are sound."""

    type: str
    text: str | bytes


def encode_message(message: Message) -> EncodedMessage:
    """Encode a message as JSON in ASCII, so that any text of a page or a file can be sent."""
    return EncodedMessage(message["type"], json.dumps(message))


class Outbox:
    """Messages that wait for a slow page: old ones of `DROPPED` are dropped, others are not."""

    def __init__(self, limits: ServerLimits = LIMITS) -> None:
        self.limits = limits
        self._waiting: deque[EncodedMessage] = deque()
        self._ready = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """Whether too many messages wait, and the page must be disconnected."""
        return len(self._waiting) > self.limits.messages

    def put(self, message: EncodedMessage) -> None:
        """Queue a message; drop the oldest scores, or of another kind, if too many wait."""
        if message.type in DROPPED:
            waiting = [old for old in self._waiting if old.type == message.type]
            if len(waiting) >= self.limits.scores:
                self._waiting.remove(waiting[0])
        self._waiting.append(message)
        self._ready.set()

    def waiting(self, kind: str) -> int:
        """Count the messages of a type that wait."""
        return sum(message.type == kind for message in self._waiting)

    async def get(self) -> EncodedMessage:
        """Wait for the next message."""
        while not self._waiting:
            self._ready.clear()
            await self._ready.wait()
        return self._waiting.popleft()


class RateLimiter:
    """How fast a socket is read: faster than real time and any page needs, slower than a flood."""

    def __init__(self, limits: ServerLimits, clock: Callable[[], float] = time.monotonic):
        self.limits = limits
        self.clock = clock
        self._done_s = 0.0

    def wait_s(self, audio_s: float) -> float:
        """Seconds to wait before a message with this much audio is read."""
        now_s, limits = self.clock(), self.limits
        self._done_s = max(self._done_s, now_s - limits.burst_s)
        self._done_s += max(1 / limits.messages_per_s, audio_s / limits.speed)
        return max(self._done_s - now_s, 0.0)


class Extension:
    """What a program around the studio adds to its pages; this one adds nothing.

    Attributes
    ----------
    commands
        Further commands by type, with the types of their arguments.
    """

    commands: ClassVar[Mapping[str, dict[str, tuple[type, ...]]]] = {}

    def routes(self, sockets: "Sockets") -> list[Route]:
        """Give further HTTP requests; called once, with the WebSockets of the pages."""
        return []

    def opened(self, outbox: Outbox, listener: Listener) -> None:
        """Note that a page connected."""

    def closed(self, outbox: Outbox) -> None:
        """Note that it disconnected."""

    def run(self, outbox: Outbox, command: Message) -> None:
        """Run a command of `commands`."""


NO_EXTENSION = Extension()


class Sockets:
    """The WebSockets of all pages; `open` maps the outbox of each to the history of its page."""

    def __init__(
        self,
        model: StudioModel,
        limits: ServerLimits = LIMITS,
        phone: bool = False,
        extension: Extension = NO_EXTENSION,
    ):
        self.model = model
        self.extension = extension
        self.commands = {name: arguments for name, (_, arguments) in COMMANDS.items()}
        self.commands |= extension.commands
        self.limits = limits
        self.phone = phone
        self.open: dict[Outbox, History] = {}
        self.changes = anyio.CapacityLimiter(MAX_CHANGES)
        # A voice takes seconds and all cores.
        self.speaking = anyio.CapacityLimiter(1)

    def broadcast(self) -> None:
        """Send every page the state of the model, and what the page can undo."""
        state = self._model_message()
        for outbox, history in self.open.items():
            outbox.put(encode_message(state | {"history": history.state()}))

    def send(self, history: History, message: Message) -> None:
        """Send a message to the page of a history, if it is open."""
        for outbox, own in self.open.items():
            if own is history:
                outbox.put(encode_message(message))

    def _model_message(self) -> Message:
        return {"type": "model", "phone": self.phone} | self.model.state()

    async def serve(self, socket: WebSocket) -> None:
        """Serve one page until it disconnects."""
        if len(self.open) >= self.limits.sockets:
            await socket.close(TRY_LATER, "too many pages are open")
            return
        await socket.accept()
        outbox = Outbox(self.limits)
        history = self.model.histories.of(page_id(socket))
        self.open[outbox] = history
        outbox.put(encode_message(self._model_message() | {"history": history.state()}))
        listener = Listener(self.model, self.limits, history=history)
        self.extension.opened(outbox, listener)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._send, socket, outbox, tasks.cancel_scope)
                tasks.start_soon(_expire, listener, outbox)
                refusal = await self._receive(socket, outbox, listener)
                if refusal is not None:
                    with contextlib.suppress(WebSocketDisconnect):
                        await socket.close(*refusal)
                tasks.cancel_scope.cancel()
        finally:
            self.extension.closed(outbox)
            del self.open[outbox]

    async def _receive(
        self, socket: WebSocket, outbox: Outbox, listener: Listener
    ) -> tuple[int, str] | None:
        """Process messages until the page disconnects; give code and reason if it must be."""
        rate = RateLimiter(self.limits)
        while (message := await socket.receive())["type"] != "websocket.disconnect":
            audio = message.get("bytes")
            await anyio.sleep(rate.wait_s(len(audio or "") / 2 / SAMPLE_RATE))
            if audio is not None:
                if len(audio) > 2 * SAMPLE_RATE * self.limits.chunk_s:
                    return TOO_LARGE, f"at most {self.limits.chunk_s:g} s of audio per message"
                if not audio or len(audio) % 2:
                    return UNSUPPORTED, "audio must be whole 16-bit samples"
                samples = np.frombuffer(audio, dtype="<i2")
                answers = await to_thread.run_sync(_push, listener, samples)
            else:
                command = self._read_command(message.get("text") or "")
                if command is None:
                    return REFUSED, "a command must be JSON with a known type"
                if command["type"] in self.extension.commands:
                    self.extension.run(outbox, command)
                    continue
                teaches = command["type"] in TEACHING_COMMANDS
                limiter = self.changes if teaches else None
                answers = await to_thread.run_sync(_run, listener, command, limiter=limiter)
                if teaches:
                    self.broadcast()
            for answer in answers:
                outbox.put(answer)
        return None

    def _read_command(self, text: str) -> Message | None:
        """Type and arguments of a command; None if the text is not a command."""
        try:
            command = json.loads(text if len(text) <= self.limits.text_characters else "")
            arguments = self.commands[command["type"]]
            # Not isinstance: True and False would pass for numbers.
            valid = all(type(command[key]) in types for key, types in arguments.items())
            # JSON can contain half of a surrogate pair, which cannot be sent back.
            json.dumps(command, ensure_ascii=False).encode()
        except (ValueError, RecursionError, KeyError, TypeError):
            return None
        return {key: command[key] for key in ("type", *arguments)} if valid else None

    async def _send(self, socket: WebSocket, outbox: Outbox, scope: anyio.CancelScope) -> None:
        """Send what waits; disconnect a page that does not read it."""
        with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
            while not outbox.full:
                content = (await outbox.get()).text
                if isinstance(content, bytes):
                    await socket.send_bytes(content)
                else:
                    await socket.send_text(content)
        scope.cancel()


def page_id(request: HTTPConnection) -> str:
    """Give the identifier that a page chose for itself; "" without one."""
    return request.query_params.get("page", "")[:MAX_PAGE_ID_CHARACTERS]


def error_message(error: TapwordError) -> Message:
    """Encode an error: an English message, and a code and parameters for the page's language."""
    return {"error": str(error), "code": error.code, "params": error.params}


def _push(listener: Listener, samples: np.ndarray) -> list[EncodedMessage]:
    """Give samples (n,) int16 to the take that is recorded and to the detector, if any."""
    answers = _attempt({"type": "take"}, listener.push_take, samples)
    return answers + _attempt({"type": "listen"}, listener.push, samples)


def _run(listener: Listener, command: Message) -> list[EncodedMessage]:
    """Run a command; the answer repeats it, so that the page knows which it answers."""
    method, arguments = COMMANDS[command["type"]]
    values = [command[key] for key in arguments]
    return _attempt(command, lambda: [command | (method(listener, *values) or {})])


def _attempt(
    about: Message, job: Callable[..., list[Message]], *arguments: Any
) -> list[EncodedMessage]:
    """Run a job on this thread; send its errors to the page."""
    try:
        answers = job(*arguments)
    except TapwordError as error:
        answers = [about | error_message(error)]
    except Exception as error:
        answers = [about | {"error": f"unexpected error: {type(error).__name__}: {error}"}]
    return [encode_message(answer) for answer in answers]


async def _expire(listener: Listener, outbox: Outbox) -> None:
    """Drop audio that is too old; send the page the events that can still be corrected."""
    sent: list[int] = []
    while True:
        await anyio.sleep(EXPIRE_S)
        left = listener.drop_expired()
        if left != sent:
            outbox.put(encode_message({"type": "correctable", "events": left}))
            sent = left
