"""The line between a page and the studio: sound and wishes in, scores, events and news out."""

import asyncio
import contextlib
import json
from collections import deque
from typing import Any

import anyio
import numpy as np
from anyio import to_thread
from starlette.websockets import WebSocket, WebSocketDisconnect

from tapword.audio import SAMPLE_RATE
from tapword.errors import TapwordError
from tapword.web.listener import Listener
from tapword.web.shared_model import SharedModel

MOST_LINES = 16
# One message of sound, and one of text.
CHUNK_BYTES, TEXT_CHARACTERS = 2 * SAMPLE_RATE, 2_000
MOST_SCORES, MOST_MESSAGES = 25, 200
SEND_TIMEOUT_S = 20.0
TIDY_S = 5.0

UNSUPPORTED, REFUSED, TOO_LARGE, TRY_LATER = 1003, 1008, 1009, 1013


class Outbox:
    """Messages that wait for a slow page: scores give way to newer ones, news do not.

    Attributes
    ----------
    full
        Whether so much waits that the page must be given up.
    """

    def __init__(self) -> None:
        self._waiting: deque[dict[str, Any]] = deque()
        self._ready = asyncio.Event()
        self.full = False

    def put(self, message: dict[str, Any]) -> None:
        """Queue a message, dropping the oldest scores where too many wait."""
        if message["type"] == "heard":
            waiting = [old for old in self._waiting if old["type"] == "heard"]
            if len(waiting) >= MOST_SCORES:
                self._waiting.remove(waiting[0])
        self._waiting.append(message)
        self.full = len(self._waiting) > MOST_MESSAGES
        self._ready.set()

    async def get(self) -> dict[str, Any]:
        """Wait for the next message."""
        while not self._waiting:
            self._ready.clear()
            await self._ready.wait()
        return self._waiting.popleft()


class Lines:
    """All pages that are connected."""

    def __init__(self, model: SharedModel):
        self.model = model
        self.open: set[Outbox] = set()

    def tell(self) -> None:
        """Send the model as it is now to every page."""
        message = {"type": "model"} | self.model.state()
        for outbox in self.open:
            outbox.put(message)

    async def serve(self, socket: WebSocket) -> None:
        """Talk with one page until it leaves."""
        if len(self.open) >= MOST_LINES:
            await socket.close(TRY_LATER, "too many pages are open")
            return
        await socket.accept()
        outbox = Outbox()
        self.open.add(outbox)
        outbox.put({"type": "model"} | self.model.state())
        listener = Listener(self.model)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_send, socket, outbox, tasks.cancel_scope)
                tasks.start_soon(_tidy, listener, outbox)
                await self._receive(socket, outbox, listener)
                tasks.cancel_scope.cancel()
        finally:
            self.open.discard(outbox)

    async def _receive(self, socket: WebSocket, outbox: Outbox, listener: Listener) -> None:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            sound, text = message.get("bytes"), message.get("text")
            if sound is not None:
                if len(sound) > CHUNK_BYTES:
                    await socket.close(TOO_LARGE, "one message holds at most 1 s of sound")
                    return
                if not sound or len(sound) % 2:
                    await socket.close(UNSUPPORTED, "sound must be whole 16-bit samples")
                    return
                for answer in await _hear(listener, np.frombuffer(sound, dtype="<i2")):
                    outbox.put(answer)
            else:
                wish = _wish(text or "")
                if wish is None:
                    await socket.close(REFUSED, "a wish must be JSON with a known type")
                    return
                outbox.put(await self._grant(wish, listener))

    async def _grant(self, wish: dict[str, Any], listener: Listener) -> dict[str, Any]:
        """Do what a page wishes; the answer names the wish, so that the page can tell which."""
        answer: dict[str, Any] = {
            key: wish[key] for key in ("type", "event", "word") if key in wish
        }
        try:
            if wish["type"] == "listen":
                await to_thread.run_sync(listener.pause)
                answer["thresholds"] = await to_thread.run_sync(lambda: listener.thresholds)
            elif wish["type"] == "gap":
                await to_thread.run_sync(listener.pause)
            elif wish["type"] == "correct":
                await to_thread.run_sync(listener.correct, wish["event"], wish["word"])
                self.tell()
            elif wish["type"] == "missed":
                await to_thread.run_sync(listener.missed, wish["word"])
                self.tell()
        except Exception as error:
            answer["error"] = _explain(error)
        return answer


async def _hear(listener: Listener, samples: np.ndarray) -> list[dict[str, Any]]:
    try:
        return await to_thread.run_sync(listener.hear, samples)
    except Exception as error:
        return [{"type": "listen", "error": _explain(error)}]


def _explain(error: Exception) -> str:
    """Say what went wrong; a line that broke without a word would help nobody."""
    if isinstance(error, TapwordError):
        return str(error)
    return f"unexpected error: {type(error).__name__}: {error}"


def _wish(text: str) -> dict[str, Any] | None:
    """Read a page's wish; None where it is none."""
    if len(text) > TEXT_CHARACTERS:
        return None
    try:
        wish = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(wish, dict):
        return None
    word, event = wish.get("word"), wish.get("event")
    right = {
        "listen": True,
        "gap": True,
        "correct": type(event) is int and "word" in wish and (word is None or type(word) is str),
        "missed": type(word) is str,
    }
    kind = wish.get("type")
    return wish if type(kind) is str and right.get(kind, False) else None


async def _send(socket: WebSocket, outbox: Outbox, line: anyio.CancelScope) -> None:
    """Send what waits; end the line where its page does not take it."""
    with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
        while not outbox.full:
            message = json.dumps(await outbox.get(), ensure_ascii=False)
            with anyio.move_on_after(SEND_TIMEOUT_S) as sending:
                await socket.send_text(message)
            if sending.cancelled_caught:
                break
    line.cancel()


async def _tidy(listener: Listener, outbox: Outbox) -> None:
    """Let sound go that is too old, and tell the page what can still be corrected."""
    told: list[int] = []
    while True:
        await anyio.sleep(TIDY_S)
        left = listener.let_go()
        if left != told:
            outbox.put({"type": "correctable", "events": left})
            told = left
