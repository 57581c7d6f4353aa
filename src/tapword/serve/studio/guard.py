"""Who may talk to the studio: own pages only, and with the token where others can reach it.

A page of another site must neither read nor change a model that is served on this machine. So the
Host header must be one of ours (against DNS rebinding), whatever changes something must come from
our own page (Origin), and a studio that others in the network can reach asks for a token.
"""

import hmac
import socket
from collections.abc import Iterable

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tapword.serve.network import ip_address, is_loopback

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


class Guard:
    """ASGI middleware that turns away whatever is not the own page of a studio bound to `host`."""

    def __init__(self, app: ASGIApp, host: str, token: str | None):
        self.app = app
        self.local = is_loopback(host)
        self.token = token
        name = socket.gethostname().lower()
        self.names = {*LOOPBACK, host.lower(), name, f"{name}.local"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        refusal = self._refusal(request)
        if refusal is None:
            await self.app(scope, receive, self._sealed(request, send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "not allowed"})
        else:
            await refusal(scope, receive, self._sealed(request, send))

    def _refusal(self, request: HTTPConnection) -> Response | None:
        """Answer to a request that may not pass; None where it may."""
        host = request.headers.get("host", "")
        if len(request.headers.getlist("host")) != 1 or not self._known(host):
            return PlainTextResponse(
                "This is a tapword studio, but not under this name. Open it by the address that "
                "the command printed.",
                421,
            )
        changes = request["type"] == "websocket" or request["method"] not in SAFE_METHODS
        own_origin = f"{'https' if _secure(request) else 'http'}://{host}"
        if changes and request.headers.getlist("origin") != [own_origin]:
            return PlainTextResponse("Only the studio's own page may do this.", 403)
        return None if self.token is None else self._ask_for_token(request)

    def _known(self, host: str) -> bool:
        """Whether the studio answers to a Host header."""
        name = host.lower()
        if not name.endswith("]"):
            bare, colon, port = name.rpartition(":")
            name = bare if colon and port.isdigit() else name
        if self.local:
            return name in LOOPBACK
        # A rebound name is a name: an address in its place cannot be forged from elsewhere.
        return name in self.names or ip_address(name.strip("[]")) is not None

    def _ask_for_token(self, request: HTTPConnection) -> Response | None:
        """Answer to a request that does not show the token; None where it does."""
        # Browsers do not tell cookies apart by port: it is in the name.
        cookie = f"tapword_studio_{(request.get('server') or ('', 0))[1]}"
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        shown = [request.cookies.get(cookie, ""), bearer if scheme.lower() == "bearer" else ""]
        if self._right(shown):
            return None
        given = request.query_params.getlist("token")
        if request["type"] == "http" and request["path"] == "/" and self._right(given):
            # The token leaves the address bar, and with it the history and the shoulder's view.
            answer, secure = RedirectResponse("/", 303), _secure(request)
            answer.set_cookie(cookie, str(self.token), httponly=True, samesite="lax", secure=secure)
            return answer
        return PlainTextResponse(
            "This tapword studio asks for its token. Open the whole address that the command "
            "printed, with ?token=... at its end.",
            401,
        )

    def _right(self, shown: Iterable[str]) -> bool:
        # All are compared, in constant time: how long it takes tells nothing.
        wanted = str(self.token).encode()
        return any([hmac.compare_digest(text.encode(), wanted) for text in shown])

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


def _secure(request: HTTPConnection) -> bool:
    return request["scheme"] in ("https", "wss")
