"""Who may talk to the studio: own pages only, and with the token where others can reach it.

A page of another site must neither read nor change a model that is served on this machine. So the
Host header must be one of ours (against DNS rebinding), whatever changes something must come from
our own page (Origin), and a studio that others in the network can reach asks for a token.
"""

import hmac
import ipaddress
import socket
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address to bind to.

    Examples
    --------
    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "::")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Guard:
    """ASGI middleware that turns away whatever is not the studio's own page.

    Parameters
    ----------
    app
        What is behind it.
    host
        Address the server is bound to.
    token
        What a visitor must show; None where only this machine can reach the server.
    """

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
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is None:
            await self.app(scope, receive, self._sealed(scope, headers, send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "not allowed"})
        else:
            await refusal(scope, receive, self._sealed(scope, headers, send))

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Answer to a request that may not pass; None where it may."""
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or not self._known(host):
            return PlainTextResponse(
                "This is a tapword studio, but not under this name. Open it by the address that "
                "the command printed.",
                421,
            )
        changes = scope["type"] == "websocket" or scope["method"] not in SAFE_METHODS
        if changes and headers.getlist("origin") != [f"{_web_scheme(scope)}://{host}"]:
            return PlainTextResponse("Only the studio's own page may do this.", 403)
        return None if self.token is None else self._ask_for_token(scope, headers)

    def _known(self, host: str) -> bool:
        name = host.lower()
        if not name.endswith("]"):
            bare, colon, port = name.rpartition(":")
            name = bare if colon and port.isdigit() else name
        if self.local:
            return name in LOOPBACK
        # A rebound name is a name: an address in its place cannot be forged from elsewhere.
        return name in self.names or _is_address(name)

    def _ask_for_token(self, scope: Scope, headers: Headers) -> Response | None:
        cookie = cookie_name(scope)
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        shown = [_cookies(headers).get(cookie, "")]
        if scheme.lower() == "bearer":
            shown.append(bearer)
        if self._right(shown):
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        if scope["type"] == "http" and scope["path"] == "/" and self._right(given):
            # The token leaves the address bar, and with it the history and the shoulder's view.
            answer = RedirectResponse("/", 303)
            answer.set_cookie(
                cookie,
                str(self.token),
                httponly=True,
                samesite="lax",
                secure=_web_scheme(scope) == "https",
            )
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

    def _sealed(self, scope: Scope, headers: Headers, send: Send) -> Send:
        secure = _web_scheme(scope) == "https"
        socket_address = f"{'wss' if secure else 'ws'}://{headers.get('host', '')}"

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                found = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    found.setdefault(name, value)
                known = self._known(headers.get("host", ""))
                policy = POLICY.format(socket=socket_address if known else "")
                found["Content-Security-Policy"] = policy
            await send(message)

        return sealed


def cookie_name(scope: Scope) -> str:
    """Name of the cookie: with the port, which browsers do not tell cookies apart by."""
    server = scope.get("server") or ("", 0)
    return f"tapword_studio_{server[1]}"


def _web_scheme(scope: Scope) -> str:
    scheme: str = scope["scheme"]
    return {"ws": "http", "wss": "https"}.get(scheme, scheme)


def _cookies(headers: Headers) -> dict[str, str]:
    jar: SimpleCookie = SimpleCookie()
    try:
        jar.load("; ".join(headers.getlist("cookie")))
    except CookieError:
        return {}
    return {name: str(morsel.value) for name, morsel in jar.items()}


def _is_address(name: str) -> bool:
    try:
        address: Any = ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return bool(address)
