"""Who may talk to the studio: own pages only, and with the token.

A page of another site must neither read nor change a model that is served on this machine. So the
Host header must be one of ours (against DNS rebinding), and whatever changes something must come
from our own page (Origin). Other people must not either, on this machine or in its network: all
that is asked must show the token that the command printed, in a cookie that the address with the
token sets.
"""

import contextlib
import hmac
import socket
from collections.abc import Iterable

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tapword.serve.addresses import ip_address, is_loopback

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
SAFE_METHODS = ("GET", "HEAD")
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
    "Cache-Control": "no-store",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; worker-src 'self'; "
    "connect-src 'self' {socket}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">{more}
<title>tapword studio</title><h1>tapword studio</h1><p>{text}</p></html>
"""
OTHER_NAME = (
    "This is a tapword studio, but not under this name. Open it by the link that the command "
    "printed in the terminal."
)
OTHER_PAGE = "Only the studio's own page may do this."
# Browsers keep a strict cookie back when a link on another site leads here, but not on our own.
NO_TOKEN = (
    "This studio opens by the link that its command printed in the terminal: the whole of it, with "
    "?token=... at its end. It is new at every start. Was it open in this browser before? <a "
    'href="/">Try again</a>'
)
NO_PLACE = "Too many connections are open: close some pages, and try again."


class Guard:
    """ASGI middleware that turns away whatever is not the own page of a studio bound to `host`."""

    def __init__(self, app: ASGIApp, host: str, token: str):
        self.app = app
        self.token = token.encode()
        self.names = {*LOOPBACK, host.lower()}
        self.by_address = not is_loopback(host)
        if self.by_address:
            name = socket.gethostname().lower()
            self.names |= {name, f"{name}.local"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        answer = self._answer(request)
        sealed = self._sealed(request, send)
        if answer is None:
            visit = scope.get("state", {}).get("visit")
            with visit.serving() if visit else contextlib.nullcontext():
                await self.app(scope, receive, sealed)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "not allowed"})
        else:
            await answer(scope, receive, sealed)

    def _answer(self, request: HTTPConnection) -> Response | None:
        """Answer to a request that does not pass; None where it does."""
        host = request.headers.get("host", "")
        if len(request.headers.getlist("host")) != 1 or not self._known(host):
            return refusal(421, OTHER_NAME)
        changes = request["type"] == "websocket" or request["method"] not in SAFE_METHODS
        own_origin = f"{'https' if _secure(request) else 'http'}://{host}"
        if changes and request.headers.getlist("origin") != [own_origin]:
            return refusal(403, OTHER_PAGE)
        # Browsers do not tell cookies apart by port: it is in the name.
        cookie = f"tapword_studio_{_port(request)}"
        # Nowhere else, so that a token in an address is never left there.
        opens = request["type"] == "http" and request["path"] == "/"
        given = request.query_params.getlist("token") if opens else []
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        shown = [request.cookies.get(cookie, ""), bearer if scheme.lower() == "bearer" else ""]
        if not self._right([*given, *shown]):
            return refusal(403, NO_TOKEN)
        return self._exchange(request, cookie) if self._right(given) else None

    def _exchange(self, request: HTTPConnection, cookie: str) -> Response:
        """Give a cookie for the token, which leaves the address bar and so the history."""
        # A page that goes on to the studio, not a redirect: to a browser that was led here from
        # elsewhere, what a redirect asks for is asked from there, and it keeps strict cookies back.
        go_on = '<meta http-equiv="refresh" content="0;url=/">'
        answer = HTMLResponse(PAGE.format(more=go_on, text='<a href="/">Open the studio</a>'))
        answer.set_cookie(
            cookie, self.token.decode(), httponly=True, samesite="strict", secure=_secure(request)
        )
        return answer

    def _right(self, shown: Iterable[str]) -> bool:
        return is_token(self.token, [text.encode() for text in shown])

    def _known(self, host: str) -> bool:
        """Whether the studio answers to a Host header."""
        name = host.lower()
        if not name.endswith("]"):
            bare, colon, port = name.rpartition(":")
            name = bare if colon and port.isdecimal() else name
        # A rebound name is a name: an address in its place cannot be forged from elsewhere.
        return name in self.names or (self.by_address and ip_address(name.strip("[]")) is not None)

    def _sealed(self, request: HTTPConnection, send: Send) -> Send:
        """Send with the headers that tell a browser what the page may do."""
        host = request.headers.get("host", "")
        socket_address = f"{'wss' if _secure(request) else 'ws'}://{host}"
        policy = POLICY.format(socket=socket_address if self._known(host) else "")

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                found = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    found.setdefault(name, value)
                found["Content-Security-Policy"] = policy
            await send(message)

        return sealed


def is_token(token: bytes, shown: Iterable[bytes]) -> bool:
    """Whether one of these is the token."""
    # All are compared, in constant time: how long it takes tells nothing.
    return any([hmac.compare_digest(text, token) for text in shown])


def _secure(request: HTTPConnection) -> bool:
    return request["scheme"] in ("https", "wss")


def _port(request: HTTPConnection) -> str:
    """Port by which a browser asks, which a tunnel may have changed."""
    port = request.headers.get("host", "").rpartition(":")[2]
    return port if port.isdecimal() else "443" if _secure(request) else "80"


def refusal(status: int, text: str) -> Response:
    """Refuse a request; its connection is closed, whatever more it had to say."""
    headers = HEADERS | {"Connection": "close", "Content-Security-Policy": POLICY.format(socket="")}
    return HTMLResponse(PAGE.format(more="", text=text), status, headers)
