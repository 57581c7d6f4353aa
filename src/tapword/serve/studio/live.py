"""The line between a page and the studio: sound and wishes in, scores, takes and news out."""

import asyncio
import contextlib
import json
import time
from collections import deque
from collections.abc import Callable
from types import NoneType
from typing import Any, NamedTuple

import anyio
import numpy as np
from anyio import to_thread
from starlette.requests import HTTPConnection
from starlette.websockets import WebSocket, WebSocketDisconnect

from tapword.audio.files import SAMPLE_RATE
from tapword.errors import TapwordError
from tapword.serve.studio.history import History
from tapword.serve.studio.limits import LIMITS, Limits
from tapword.serve.studio.listener import Listener, Message
from tapword.serve.studio.model import StudioModel

# How often sound that is too old is let go.
TIDY_S = 5.0
# Codes by which a WebSocket is closed (RFC 6455, 7.4.1).
UNSUPPORTED, REFUSED, TOO_LARGE, TRY_LATER = 1003, 1008, 1009, 1013

# What a page may wish, by its type: who does it, and the types of what it must bring along.
WISHES: dict[str, tuple[Callable[..., Message | None], dict[str, tuple[type, ...]]]] = {
    "listen": (Listener.listen, {}),
    "stop": (Listener.stop, {}),
    "gap": (Listener.gap, {}),
    "correct": (Listener.correct, {"id": (int,), "word": (str, NoneType)}),
    "missed": (Listener.missed, {"word": (str,)}),
    "record": (Listener.record, {"id": (int,)}),
    "finish": (Listener.finish, {}),
    "cancel": (Listener.cancel, {}),
    "keep": (Listener.keep, {"id": (int,), "word": (str,), "careful": (bool,)}),
    "hear": (Listener.hear_again, {"id": (int,)}),
}
TEACHING = ("correct", "missed", "keep")
# Changes of the model that are worked on at a time. They wait for each other at the file's lock
# anyway, and so leave the processor to those who listen.
CHANGES = 2
# Characters of a page's name.
MOST_NAME = 40


class Written(NamedTuple):
    """A message as it is sent, and its type."""

    type: str
    text: str


def written(message: Message) -> Written:
    """Write a message as JSON, in ASCII: no text of a page or a file can fail to be sent."""
    return Written(message["type"], json.dumps(message))


class Outbox:
    """Messages that wait for a slow page: scores give way to newer ones, news do not."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.limits = limits
        self._waiting: deque[Written] = deque()
        self._ready = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """Whether so much waits that the page must be given up."""
        return len(self._waiting) > self.limits.messages

    def put(self, message: Written) -> None:
        """Queue a message, dropping the oldest scores where too many wait."""
        if message.type == "scores":
            waiting = [old for old in self._waiting if old.type == "scores"]
            if len(waiting) >= self.limits.scores:
                self._waiting.remove(waiting[0])
        self._waiting.append(message)
        self._ready.set()

    async def get(self) -> Written:
        """Wait for the next message."""
        while not self._waiting:
            self._ready.clear()
            await self._ready.wait()
        return self._waiting.popleft()


class Pace:
    """How fast a line is read: above real time and any page's need, and slower than a flood."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic):
        self.limits = limits
        self.clock = clock
        self._done_s = 0.0

    def wait_s(self, sound_s: float) -> float:
        """Seconds to wait before a message with so much sound is read."""
        now_s, limits = self.clock(), self.limits
        self._done_s = max(self._done_s, now_s - limits.burst_s)
        self._done_s += max(1 / limits.messages_per_s, sound_s / limits.speed)
        return max(self._done_s - now_s, 0.0)


class Lines:
    """All pages that are connected; `open` holds what waits for each, and what it changed."""

    def __init__(self, model: StudioModel, limits: Limits = LIMITS, phone: bool = False):
        self.model = model
        self.limits = limits
        self.phone = phone
        self.open: dict[Outbox, History] = {}
        self.changes = anyio.CapacityLimiter(CHANGES)

    def tell(self) -> None:
        """Send the model as it is now to every page, and what the page can undo."""
        state = self._news()
        for outbox, history in self.open.items():
            outbox.put(written(state | {"history": history.state()}))

    def _news(self) -> Message:
        return {"type": "model", "phone": self.phone} | self.model.state()

    async def serve(self, socket: WebSocket) -> None:
        """Talk with one page until it leaves."""
        if len(self.open) >= self.limits.lines:
            await socket.close(TRY_LATER, "too many pages are open")
            return
        await socket.accept()
        outbox = Outbox(self.limits)
        history = self.model.histories.of(page_of(socket))
        self.open[outbox] = history
        outbox.put(written(self._news() | {"history": history.state()}))
        listener = Listener(self.model, self.limits, history=history)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._send, socket, outbox, tasks.cancel_scope)
                tasks.start_soon(_tidy, listener, outbox)
                refusal = await self._receive(socket, outbox, listener)
                if refusal is not None:
                    with contextlib.suppress(WebSocketDisconnect):
                        await socket.close(*refusal)
                tasks.cancel_scope.cancel()
        finally:
            del self.open[outbox]

    async def _receive(
        self, socket: WebSocket, outbox: Outbox, listener: Listener
    ) -> tuple[int, str] | None:
        """Do what the page wishes until it leaves, or breaks the rules: then give code and why."""
        pace = Pace(self.limits)
        while (message := await socket.receive())["type"] != "websocket.disconnect":
            sound = message.get("bytes")
            await anyio.sleep(pace.wait_s(len(sound or "") / 2 / SAMPLE_RATE))
            if sound is not None:
                if len(sound) > 2 * SAMPLE_RATE * self.limits.chunk_s:
                    most_s = self.limits.chunk_s
                    return TOO_LARGE, f"one message holds at most {most_s:g} s of sound"
                if not sound or len(sound) % 2:
                    return UNSUPPORTED, "sound must be whole 16-bit samples"
                samples = np.frombuffer(sound, dtype="<i2")
                answers = await to_thread.run_sync(_hear, listener, samples)
            else:
                wish = _read_wish(message.get("text") or "", self.limits.text_characters)
                if wish is None:
                    return REFUSED, "a wish must be JSON with a known type"
                teaches = wish["type"] in TEACHING
                limiter = self.changes if teaches else None
                answers = await to_thread.run_sync(_fulfil, listener, wish, limiter=limiter)
                if teaches:
                    self.tell()
            for answer in answers:
                outbox.put(answer)
        return None

    async def _send(self, socket: WebSocket, outbox: Outbox, line: anyio.CancelScope) -> None:
        """Send what waits; end the line where its page does not take it."""
        with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
            while not outbox.full:
                await socket.send_text((await outbox.get()).text)
        line.cancel()


def page_of(request: HTTPConnection) -> str:
    """Name that a page gave itself; empty where it has none."""
    return request.query_params.get("page", "")[:MOST_NAME]


def _read_wish(text: str, most_characters: int) -> Message | None:
    """Type of a page's wish and what it brings along; None where the text is no wish."""
    try:
        wish = json.loads(text if len(text) <= most_characters else "")
        _, brought = WISHES[wish["type"]]
        # Not isinstance, by which True and False would pass for numbers.
        right = all(type(wish[key]) in types for key, types in brought.items())
        # Half of a pair of surrogates, which JSON can name, is no text that could be sent back.
        json.dumps(wish, ensure_ascii=False).encode()
    except (ValueError, RecursionError, KeyError, TypeError):
        return None
    return {key: wish[key] for key in ("type", *brought)} if right else None


def _hear(listener: Listener, samples: np.ndarray) -> list[Written]:
    """Record samples (n,) int16 and listen to them, where either is wanted."""
    answers = _attempt({"type": "take"}, listener.take_up, samples)
    return answers + _attempt({"type": "listen"}, listener.hear, samples)


def _fulfil(listener: Listener, wish: Message) -> list[Written]:
    """Do what a page wishes; the answer names the wish, so that the page can tell which."""
    do, brought = WISHES[wish["type"]]
    given = [wish[key] for key in brought]
    return _attempt(wish, lambda: [wish | (do(listener, *given) or {})])


def _attempt(about: Message, job: Callable[..., list[Message]], *given: Any) -> list[Written]:
    """Do a page's work, on a thread; what goes wrong is told, for silence would help nobody."""
    try:
        answers = job(*given)
    except TapwordError as error:
        answers = [about | {"error": str(error)}]
    except Exception as error:
        answers = [about | {"error": f"unexpected error: {type(error).__name__}: {error}"}]
    return [written(answer) for answer in answers]


async def _tidy(listener: Listener, outbox: Outbox) -> None:
    """Let sound go that is too old, and tell the page what can still be corrected."""
    told: list[int] = []
    while True:
        await anyio.sleep(TIDY_S)
        left = listener.tidy()
        if left != told:
            outbox.put(written({"type": "correctable", "events": left}))
            told = left
