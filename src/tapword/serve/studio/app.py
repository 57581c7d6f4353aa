"""The studio's web application: its page, its HTTP requests and its WebSocket.

Audio arrives as 16-bit samples at 16 kHz, in the body of a request or on the WebSocket. It stays in
memory for at most two minutes and is never written.
"""

import asyncio
import io
import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote

import numpy as np
from anyio import from_thread, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tapword.audio.endpoint import examine
from tapword.audio.files import MIN_S, SAMPLE_RATE, as_float
from tapword.errors import InputError, MissingExtra, ModelFileError, TapwordError
from tapword.serve.polling import polling
from tapword.serve.studio.guard import Guard
from tapword.serve.studio.history import History
from tapword.serve.studio.ingress import Ingress
from tapword.serve.studio.limits import LIMITS, ServerLimits
from tapword.serve.studio.listener import encode_audio
from tapword.serve.studio.model import Outcome, StudioModel, issue_states
from tapword.serve.studio.sockets import (
    NO_EXTENSION,
    Extension,
    Sockets,
    error_message,
    page_id,
)
from tapword.spotter import typed
from tapword.spotter.session import Kind
from tapword.voices.choice import offer

STATIC = Path(__file__).parent / "static"
# Not from the system's table, which other programs change: browsers run no other types.
TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


class ValueType(NamedTuple):
    """Type of a value in a request."""

    name: str
    types: tuple[type, ...]


TEXT, NUMBER = ValueType("text", (str,)), ValueType("number", (int, float))
WHOLE, TEXT_OR_NULL = ValueType("whole number", (int,)), ValueType("text or null", (str, NoneType))
NO_INGRESS = Ingress()
# How often the model file is polled.
POLL_S = 0.5
# Bytes of an answer that are sent at a time: a slow reader must read each in time, not all of them.
BLOCK_BYTES = 1 << 15


def studio(
    model: StudioModel,
    host: str,
    token: str,
    limits: ServerLimits = LIMITS,
    phone: str | None = None,
    ingress: Ingress = NO_INGRESS,
    extension: Extension = NO_EXTENSION,
) -> Starlette:
    """Make the web application of a studio that is bound to `host`.

    Requests must show the token, or come through `ingress`. `phone` is the link that opens it on
    another device, if one can reach it. `extension` adds to its pages.
    """
    sockets = Sockets(model, limits, phone is not None, extension)
    requests = _Requests(model, sockets, limits, phone)
    application = Starlette(
        routes=[
            Route("/", requests.page),
            Route("/api/state", requests.state),
            Route("/api/map", requests.map),
            Route("/api/learn", requests.learn, methods=["POST"]),
            Route("/api/voices", requests.voices),
            Route("/api/say", requests.say, methods=["POST"]),
            Route("/api/forget", requests.forget, methods=["POST"]),
            Route("/api/rename", requests.rename, methods=["POST"]),
            Route("/api/sensitivity", requests.sensitivity, methods=["POST"]),
            Route("/api/remove", requests.remove, methods=["POST"]),
            Route("/api/undo", requests.undo, methods=["POST"]),
            Route("/api/model", requests.download),
            Route("/api/model", requests.upload, methods=["POST"]),
            Route("/api/export/{kind}", requests.export),
            Route("/api/phone", requests.phone),
            WebSocketRoute("/api/live", sockets.serve),
            Route("/static/{name}", requests.static),
            *extension.routes(sockets),
        ],
        middleware=[
            Middleware(Guard, host=host, token=token, ingress=ingress),
            Middleware(_InBlocks),
        ],
        exception_handlers={TapwordError: _refuse, HTTPException: _refuse},
        lifespan=lambda _: polling(model, POLL_S, sockets.broadcast),
    )
    application.state.sockets = sockets
    return application


class _Requests:
    """Handlers of the HTTP requests."""

    def __init__(
        self, model: StudioModel, sockets: Sockets, limits: ServerLimits, link: str | None
    ):
        self.model = model
        self.sockets = sockets
        self.limits = limits
        self.link = link
        # In memory, so that a page does not wait for a thread.
        self.files = {path.name: path.read_bytes() for path in STATIC.iterdir()}

    async def page(self, _: Request) -> Response:
        return self._file("index.html")

    async def static(self, request: Request) -> Response:
        return self._file(request.path_params["name"])

    def _file(self, name: str) -> Response:
        if name not in self.files:
            raise HTTPException(404)
        return Response(self.files[name], media_type=TYPES[Path(name).suffix])

    async def state(self, _: Request) -> Response:
        await to_thread.run_sync(self.model.refresh)
        return JsonAnswer(self.model.state())

    async def map(self, _: Request) -> Response:
        return JsonAnswer(await to_thread.run_sync(self.model.map, limiter=self.sockets.changes))

    async def learn(self, request: Request) -> Response:
        word = request.query_params.get("word", "")
        kind = request.query_params.get("kind", "take")
        if kind not in ("take", "file"):
            raise InputError(f"kind must be take or file, got {kind!r}")
        anyway = "anyway" in request.query_params
        limits = self.limits
        audio = await self._audio(request, limits.file_s if kind == "file" else limits.clip_s)
        history = self._history(request)
        return await self._change(self._learn, audio, word, history, kind, anyway)

    def _learn(
        self, audio: np.ndarray, word: str, history: History, kind: Kind, anyway: bool
    ) -> Outcome:
        """Learn a recording (n,): of a take only the speech, of a file each of its takes."""
        if kind == "file":
            return self.model.learn_file(audio, word, history, anyway)
        return self.model.learn(examine(audio), word, history, kind, anyway)

    async def voices(self, request: Request) -> Response:
        language = request.query_params.get("language", typed.LANGUAGE)
        return JsonAnswer(await to_thread.run_sync(offer, language))

    async def say(self, request: Request) -> Response:
        """Let a voice say a word; the page is told of each clip."""
        word, language, voice, phonemes = await self._values(
            request, word=TEXT, language=TEXT, voice=TEXT_OR_NULL, phonemes=TEXT
        )
        history = self._history(request)
        wanted = typed.Request(word, language, phonemes=phonemes)
        about: dict[str, Any] = {"type": "speaking", "word": word, "of": wanted.n}

        def told(done: int) -> None:
            from_thread.run_sync(self.sockets.send, history, about | {"done": done})

        spoken = await to_thread.run_sync(
            self.model.say, wanted, voice, history, told, limiter=self.sockets.speaking
        )
        self.sockets.broadcast()
        clips = [
            {"take": take, "speaker": said.speaker, "audio": encode_audio(said.audio)}
            for take, said in spoken.clips
        ]
        about = {"voice": spoken.voice, "native": spoken.native, "phonemes": spoken.phonemes}
        return JsonAnswer(
            self.model.state() | about | {"clips": clips, "issues": issue_states(spoken.issues)}
        )

    async def forget(self, request: Request) -> Response:
        [word] = await self._values(request, word=TEXT)
        return await self._change(self.model.forget, word, self._history(request))

    async def rename(self, request: Request) -> Response:
        names = await self._values(request, old=TEXT, new=TEXT)
        return await self._change(self.model.rename, *names, self._history(request))

    async def sensitivity(self, request: Request) -> Response:
        given = await self._values(request, word=TEXT_OR_NULL, value=NUMBER)
        return await self._change(self.model.set_sensitivity, *given, self._history(request))

    async def remove(self, request: Request) -> Response:
        [number] = await self._values(request, take=WHOLE)
        return await self._change(self.model.remove, number, self._history(request))

    async def undo(self, request: Request) -> Response:
        try:
            return await self._change(self.model.undo, self._history(request))
        except InputError:
            # The change was dropped, so another is undone next.
            self.sockets.broadcast()
            raise

    async def download(self, _: Request) -> Response:
        file = await to_thread.run_sync(self.model.open)
        return _Download(file, headers=_attached(self.model.path.name))

    async def export(self, request: Request) -> Response:
        kind = request.path_params["kind"]
        if kind not in self.model.exports:
            raise HTTPException(404)
        content = await to_thread.run_sync(self.model.export, kind, limiter=self.sockets.changes)
        headers = _attached(f"{self.model.path.stem}.{kind}")
        return Response(content, media_type=_Download.media_type, headers=headers)

    async def phone(self, _: Request) -> Response:
        """Give the link as a QR code, for a phone to scan."""
        if self.link is None:
            raise HTTPException(404)
        try:
            import segno
        except ImportError as error:
            raise MissingExtra("the QR code", "segno", "web") from error
        picture = io.BytesIO()
        code = segno.make(self.link, micro=False)
        code.save(picture, kind="svg", scale=6, dark="#000", light="#fff")
        return Response(picture.getvalue(), media_type=TYPES[".svg"])

    async def upload(self, request: Request) -> Response:
        how = request.query_params.get("how")
        if how not in ("inspect", "add", "replace"):
            raise InputError(f"how must be inspect, add or replace, got {how!r}")
        seen = request.query_params.get("revision") or None
        most = self.limits.model_bytes
        content = await self._body(request, most, f"{most:,} bytes")
        if how == "inspect":
            found = await to_thread.run_sync(
                self.model.inspect, content, limiter=self.sockets.changes
            )
            return JsonAnswer(found)
        return await self._change(self.model.upload, content, how == "add", seen)

    async def _change(self, change: Callable[..., Outcome | None], *given: Any) -> Response:
        """Change the model, send its state to every page, and answer with it."""
        outcome = await to_thread.run_sync(change, *given, limiter=self.sockets.changes)
        self.sockets.broadcast()
        return JsonAnswer(self.model.state() | (outcome.state() if outcome else {}))

    def _history(self, request: Request) -> History:
        """Give the history of the page that sent a request."""
        return self.model.histories.of(page_id(request))

    async def _audio(self, request: Request, most_s: float) -> np.ndarray:
        """Read samples (n,) float32 from the body of a request."""
        most = 2 * round(most_s * SAMPLE_RATE)
        content = await self._body(request, most, f"{most_s:g} s of audio")
        if len(content) % 2:
            raise InputError("audio must be whole 16-bit samples at 16 kHz")
        if len(content) < 2 * MIN_S * SAMPLE_RATE:
            raise InputError(
                f"shorter than {MIN_S * 1000:.0f} ms: say the whole word",
                code="clip_too_short",
                params={"ms": MIN_S * 1000},
            )
        return as_float(np.frombuffer(content, dtype="<i2"))

    async def _values(self, request: Request, **kinds: ValueType) -> list[Any]:
        return await read_values(request, self.limits, **kinds)

    async def _body(self, request: Request, most: int, shown: str) -> bytes:
        return await _read_body(request, self.limits, most, shown)


async def read_values(request: Request, limits: ServerLimits, **kinds: ValueType) -> list[Any]:
    """Read values of the given types from the JSON body of a request."""
    most = limits.json_bytes
    try:
        value = json.loads(await _read_body(request, limits, most, f"{most:,} bytes"))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not all(
        name in value and type(value[name]) in kind.types for name, kind in kinds.items()
    ):
        wanted = ", ".join(f"the {kind.name} {name}" for name, kind in kinds.items())
        raise InputError(f"the request must be JSON with {wanted}")
    return [value[name] for name in kinds]


async def _read_body(request: Request, limits: ServerLimits, most: int, shown: str) -> bytes:
    """Read a body of at most `most` bytes, whatever its header says."""
    content = bytearray()
    try:
        async with asyncio.timeout(limits.body_s):
            async for part in request.stream():
                content += part
                if len(content) > most:
                    raise HTTPException(413, f"too large: the limit is {shown}")
    except TimeoutError:
        raise HTTPException(408, "the upload took too long; try again") from None
    except ClientDisconnect:
        raise HTTPException(400, "the upload was interrupted") from None
    return bytes(content)


def _attached(name: str) -> dict[str, str]:
    """Headers of a download with this file name."""
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(os.fsencode(name))}"}


class _InBlocks:
    """ASGI middleware that sends a large body in blocks, each when the one before was read."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_blocks(message: Message) -> None:
            if message["type"] != "http.response.body":
                await send(message)
                return
            body, more = memoryview(message.get("body", b"")), message.get("more_body", False)
            for start in range(0, max(len(body), 1), BLOCK_BYTES):
                end = start + BLOCK_BYTES
                block = {"body": bytes(body[start:end]), "more_body": more or end < len(body)}
                await send({**message, **block})

        await self.app(scope, receive, send_blocks)


class JsonAnswer(Response):
    """JSON in ASCII, so that any file name and any text of a page can be sent."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Encode it."""
        return json.dumps(content).encode()


class _Download(StreamingResponse):
    """A file; each block is read when the one before was sent."""

    media_type = "application/octet-stream"

    def __init__(self, file: BinaryIO, headers: dict[str, str]):
        super().__init__(self._blocks(), headers=headers)
        self.file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self.file:
            await super().__call__(scope, receive, send)

    async def _blocks(self) -> AsyncIterator[bytes]:
        while block := await to_thread.run_sync(self.file.read, BLOCK_BYTES):
            yield block


async def _refuse(_: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        return JsonAnswer({"error": error.detail}, error.status_code)
    status: dict[type, int] = {InputError: 422, ModelFileError: 409}
    assert isinstance(error, TapwordError)
    fitting = (status[kind] for kind in type(error).__mro__ if kind in status)
    return JsonAnswer(error_message(error), next(fitting, 400))
