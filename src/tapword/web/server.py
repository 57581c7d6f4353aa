"""The studio's server: pages, a few requests, and the live line.

Sound comes as 16 kHz 16-bit samples in the body of a request or on the live line, is looked at in
memory and let go; it is never written anywhere.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket

from tapword import takes
from tapword.audio import MIN_S, SAMPLE_RATE
from tapword.errors import InputError, ModelFileError, TapwordError
from tapword.spotter import clean_word
from tapword.web.guard import Guard
from tapword.web.live import Lines
from tapword.web.shared_model import SharedModel

STATIC = Path(__file__).parent / "static"
CLIP_S = 10.0
MODEL_BYTES = 64 * 1024 * 1024
JSON_BYTES = 4_000
BODY_TIMEOUT_S = 30.0
WATCH_S = 0.5


def studio(model: SharedModel, host: str = "127.0.0.1", token: str | None = None) -> Starlette:
    """Make the studio's application.

    Parameters
    ----------
    model
        What it teaches.
    host
        Address it will be bound to; decides which names it answers to.
    token
        What visitors must show; None where only this machine can reach it.
    """
    lines = Lines(model)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        watching = asyncio.create_task(_watch(model, lines))
        try:
            yield
        finally:
            watching.cancel()

    async def live(socket: WebSocket) -> None:
        await lines.serve(socket)

    application = Starlette(
        routes=[
            Route("/", _page),
            Route("/api/state", _state),
            Route("/api/examine", _examine, methods=["POST"]),
            Route("/api/learn", _learn, methods=["POST"]),
            Route("/api/forget", _forget, methods=["POST"]),
            Route("/api/rename", _rename, methods=["POST"]),
            Route("/api/model", _download),
            Route("/api/model", _upload, methods=["POST"]),
            WebSocketRoute("/api/live", live),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(Guard, host=host, token=token)],
        exception_handlers={TapwordError: _refuse, HTTPException: _refuse},
        lifespan=lifespan,
    )
    application.state.model = model
    application.state.lines = lines
    return application


async def _watch(model: SharedModel, lines: Lines) -> None:
    """Tell every page when another program changed the model."""
    while True:
        await asyncio.sleep(WATCH_S)
        if await to_thread.run_sync(model.look):
            lines.tell()


async def _page(_: Request) -> Response:
    return FileResponse(STATIC / "index.html")


async def _state(request: Request) -> Response:
    model: SharedModel = request.app.state.model
    await to_thread.run_sync(model.look)
    return JSONResponse(model.state())


async def _examine(request: Request) -> Response:
    take = await to_thread.run_sync(takes.examine, await _sound(request))
    return JSONResponse(
        {
            "problem": take.problem,
            "speech": take.end_s > take.start_s,
            "start_s": round(take.start_s, 3),
            "end_s": round(take.end_s, 3),
            "level_db": round(float(take.level_db), 1),
            "snr_db": round(float(take.snr_db), 1),
        }
    )


async def _learn(request: Request) -> Response:
    word = clean_word(request.query_params.get("word", ""))
    take = await to_thread.run_sync(takes.examine, await _sound(request))
    if take.end_s <= take.start_s or (take.problem and "anyway" not in request.query_params):
        raise InputError(take.problem or "no speech was heard")
    return await _change(request, lambda model: model.learn(take.audio, word))


async def _forget(request: Request) -> Response:
    [word] = await _texts(request, "word")
    return await _change(request, lambda model: model.forget(word))


async def _rename(request: Request) -> Response:
    old, new = await _texts(request, "old", "new")
    return await _change(request, lambda model: model.rename(old, new))


async def _download(request: Request) -> Response:
    model: SharedModel = request.app.state.model
    content = await to_thread.run_sync(model.content)
    name = quote(model.path.name)
    return Response(
        content,
        media_type="application/octet-stream",
        headers={"Content-Disposition": f"attachment; filename*=UTF-8''{name}"},
    )


async def _upload(request: Request) -> Response:
    how = request.query_params.get("how")
    if how not in ("add", "replace"):
        raise InputError(f"how must be add or replace, got {how!r}")
    seen = request.query_params.get("revision") or None
    content = await _body(request, MODEL_BYTES)
    return await _change(request, lambda model: model.upload(content, how == "add", seen))


async def _change(request: Request, change: Callable[[SharedModel], None]) -> Response:
    """Change the model, tell every page, and answer with what it is now."""
    model: SharedModel = request.app.state.model
    await to_thread.run_sync(change, model)
    request.app.state.lines.tell()
    return JSONResponse(model.state())


async def _sound(request: Request) -> np.ndarray:
    """Read samples (n,) float32 from a request's body."""
    content = await _body(request, round(CLIP_S * SAMPLE_RATE) * 2)
    if len(content) % 2:
        raise InputError("sound must be whole 16-bit samples at 16 kHz")
    if len(content) < MIN_S * SAMPLE_RATE * 2:
        raise InputError(f"that was shorter than {MIN_S * 1000:.0f} ms; say the whole word")
    return np.frombuffer(content, dtype="<i2").astype(np.float32) / 32768.0


async def _texts(request: Request, *names: str) -> list[str]:
    """Texts by name of a JSON body."""
    try:
        value = json.loads(await _body(request, JSON_BYTES))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not all(isinstance(value.get(name), str) for name in names):
        raise InputError(f"the request must be JSON with the texts {', '.join(names)}")
    return [value[name] for name in names]


async def _body(request: Request, limit: int) -> bytes:
    """Read a body of at most `limit` bytes, whatever its header says of it."""
    content = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for part in request.stream():
                content += part
                if len(content) > limit:
                    raise HTTPException(413, f"that is too large: the limit is {_size(limit)}")
    except TimeoutError:
        raise HTTPException(408, "the upload took too long; try again") from None
    except ClientDisconnect:
        raise HTTPException(400, "the upload was broken off") from None
    return bytes(content)


def _size(limit: int) -> str:
    if limit == round(CLIP_S * SAMPLE_RATE) * 2:
        return f"{CLIP_S:g} s of sound"
    return f"{limit:,} bytes"


async def _refuse(_: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        return JSONResponse({"error": error.detail}, error.status_code)
    status: dict[type, Any] = {InputError: 422, ModelFileError: 409}
    return JSONResponse({"error": str(error)}, status.get(type(error), 400))
