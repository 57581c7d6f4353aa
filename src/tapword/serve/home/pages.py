"""What the studio's pages show of a home: its satellites, and what happened while nobody looked."""

import asyncio
import contextlib
from types import NoneType
from typing import Any, ClassVar

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tapword.errors import InputError, TapwordError
from tapword.serve.home.entries import Entries
from tapword.serve.home.model import HomeModel
from tapword.serve.home.satellites import Satellites
from tapword.serve.studio.app import TEXT, TEXT_OR_NULL, WHOLE, JsonAnswer, ValueType, read_values
from tapword.serve.studio.limits import LIMITS, ServerLimits
from tapword.serve.studio.listener import Listener, Message, encode_audio
from tapword.serve.studio.sockets import (
    EncodedMessage,
    Extension,
    Outbox,
    Sockets,
    encode_message,
    error_message,
    page_id,
)
from tapword.serve.wyoming.settings import Clients

FLAG = ValueType("true or false", (bool,))
# How often pages get the levels of satellites, and whether they stream.
LEVELS_S = 0.25


class Home(Extension):
    """The satellites of a home and the list of its words, and the pages that show them."""

    commands: ClassVar = {"satellite": {"id": (int, NoneType)}}

    def __init__(
        self, model: HomeModel, clients: Clients | None = None, limits: ServerLimits = LIMITS
    ):
        self.model = model
        self.limits = limits
        self.entries = Entries(model, self.changed)
        self.satellites = Satellites(
            clients or Clients(), self.entries, self.changed, calibrated=self.model_changed
        )
        self._pages: dict[Outbox, Listener] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._telling: asyncio.Task[None] | None = None
        self._shown: list[dict[str, Any]] = []

    def routes(self, sockets: Sockets) -> list[Route]:
        """Give the requests of the pages."""
        self.sockets = sockets
        return [
            Route("/api/home", self._state),
            Route("/api/home/name", self._name, methods=["POST"]),
            Route("/api/home/correct", self._correct, methods=["POST"]),
            Route("/api/home/calibrate", self._calibrate, methods=["POST"]),
            Route("/api/home/sound", self._keep_sound, methods=["POST"]),
            Route("/api/home/sound/{number:int}", self._sound),
        ]

    def opened(self, outbox: Outbox, listener: Listener) -> None:
        """Show a page that there is a home, and from now on its levels."""
        self._loop = asyncio.get_running_loop()
        self._pages[outbox] = listener
        outbox.put(encode_message({"type": "home"}))
        if self._telling is None or self._telling.done():
            self._telling = self._loop.create_task(self._tell_levels())

    def closed(self, outbox: Outbox) -> None:
        """Note that a page disconnected; it uses no satellite any more."""
        self.satellites.leave(outbox)
        del self._pages[outbox]

    def run(self, outbox: Outbox, command: Message) -> None:
        """Make a satellite the microphone of a page."""
        answer = command
        try:
            self.satellites.use(command["id"], outbox, self._pages[outbox])
        except TapwordError as error:
            answer = command | error_message(error)
        outbox.put(encode_message(answer))

    def changed(self) -> None:
        """Tell the pages, from any thread, that what they show changed."""
        if self._loop is not None:
            # The loop may be closing.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._tell, encode_message({"type": "home"}))

    def model_changed(self) -> None:
        """Send the pages the model, from any thread, after a change that none of them made."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.sockets.broadcast)
        self.changed()

    def _tell(self, message: EncodedMessage) -> None:
        for outbox in self._pages:
            # One is enough, however much changed.
            if message.type != "home" or not outbox.waiting("home"):
                outbox.put(message)

    async def _tell_levels(self) -> None:
        while self._pages:
            self._tell(encode_message({"type": "levels", "levels": self.satellites.levels()}))
            state = self.satellites.state()
            if state != self._shown:
                self._shown = state
                self._tell(encode_message({"type": "home"}))
            await asyncio.sleep(LEVELS_S)

    def state(self) -> dict[str, Any]:
        """Give what a page shows, ready for JSON."""
        return {
            "satellites": self.satellites.state(),
            "entries": [entry.state() for entry in self.entries.list()],
            "keeps_sound": self.entries.keeps_sound,
            "paused": self.satellites.paused_s > 0,
        }

    async def _state(self, _: Request) -> Response:
        return JsonAnswer(self.state())

    async def _name(self, request: Request) -> Response:
        number, name = await read_values(request, self.limits, id=WHOLE, name=TEXT)
        self.satellites.rename(number, name)
        return JsonAnswer(self.state())

    async def _correct(self, request: Request) -> Response:
        number, word = await read_values(request, self.limits, id=WHOLE, word=TEXT_OR_NULL)
        history = self.model.histories.of(page_id(request))
        outcome = await to_thread.run_sync(
            self.entries.correct, number, word, history, limiter=self.sockets.changes
        )
        self.sockets.broadcast()
        return JsonAnswer(self.state() | outcome.state())

    async def _calibrate(self, request: Request) -> Response:
        number, action = await read_values(request, self.limits, id=WHOLE, action=TEXT)
        satellites = self.satellites
        if action == "start":
            history = self.model.histories.of(page_id(request))
            satellites.calibrate(number, history)
        elif action == "finish":
            calibration = satellites.calibration(number)
            await to_thread.run_sync(calibration.finish, limiter=self.sockets.changes)
        elif action == "end":
            satellites.end_calibration(number)
        else:
            raise InputError(f"action must be start, finish or end, got {action!r}")
        return JsonAnswer(self.state())

    async def _keep_sound(self, request: Request) -> Response:
        [self.entries.keeps_sound] = await read_values(request, self.limits, on=FLAG)
        return JsonAnswer(self.state())

    async def _sound(self, request: Request) -> Response:
        clip = self.entries.find(request.path_params["number"]).clip
        if clip is None:
            raise InputError(
                "the sound of this entry is gone (it is held for at most two minutes)",
                code="entry_silent",
            )
        return JsonAnswer({"audio": encode_audio(clip)})
