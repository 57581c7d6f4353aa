"""Who may talk to the studio: own pages only, and with the token.

A page of another site must neither read nor change a model that is served on this machine. So the
Host header must be one of ours (against DNS rebinding), and a request that changes something must
come from our own page (Origin). Other people, on this machine or in its network, must not either:
every request must show the token that the command printed. The link with the token sets it as a
cookie. Requests through Home Assistant's ingress need no token where that was switched on.
"""

import base64
import contextlib
import hashlib
import hmac
import socket
from collections.abc import Iterable

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tapword.serve.addresses import ip_address, is_loopback
from tapword.serve.studio import ingress as ingress_module
from tapword.serve.studio.ingress import Ingress

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
# Looks of the pages for those without the token: they may load no file of the studio.
STYLE = """:root { color-scheme: light dark; }
body { margin: 12vh auto; max-width: 34rem; padding: 0 1.5rem; font: 18px/1.6 system-ui, sans-serif;
  color: #24211d; background: #f6f3ee; overflow-wrap: anywhere; }
main { padding: 1.75rem; border: 1px solid #e6dfd5; border-radius: 18px; background: #fffdfa; }
h1 { margin: 0 0 0.6rem; font-size: 1.4rem; line-height: 1.25; }
p { margin: 0; }
a { color: #0b6b5d; }
@media (prefers-color-scheme: dark) {
  body { color: #ece8e1; background: #141618; }
  main { background: #1c1f22; border-color: #2f3336; }
  a { color: #62cdb5; }
}"""
STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'sha256-" + STYLE_HASH + "'; "
    "img-src 'self'; worker-src 'self'; connect-src 'self' {socket}; base-uri 'none'; "
    "form-action 'none'; frame-ancestors {frames}"
)
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">{more}
<title>tapword studio</title><style>{style}</style>
<main><h1>tapword studio</h1><p>{text}</p></main></html>
"""
OTHER_NAME = (
    "This is a tapword studio, but not under this name. Open the link that the command printed in "
    "the terminal."
)
OTHER_PAGE = "Only the studio's own page can do this."
# Browsers do not send a strict cookie with a link from another site, but do with our own.
NO_TOKEN = (
    "Open the link that the command printed in the terminal, with ?token=... at its end. The link "
    'is new at every start. Was the studio open in this browser before? <a href="/">Try again</a>'
)
TOO_MANY = "Too many connections are open. Close some pages and try again."


class Guard:
    """ASGI middleware that refuses whatever is not the own page of a studio bound to `host`."""

    def __init__(self, app: ASGIApp, host: str, token: str, ingress: Ingress):
        self.app = app
        self.ingress = ingress
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
        answer = self._response(request)
        send_securely = self._with_headers(request, send)
        if answer is None:
            connection = scope.get("state", {}).get("connection")
            # What a WebSocket sends is no answer that could be cut off.
            path = scope["path"] if scope["type"] == "http" else None
            with connection.serving(path) if connection else contextlib.nullcontext():
                await self.app(scope, receive, send_securely)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "not allowed"})
        else:
            await answer(scope, receive, send_securely)

    def _response(self, request: HTTPConnection) -> Response | None:
        """Response to a request that is not passed on; None if it is."""
        changes = request["type"] == "websocket" or request["method"] not in SAFE_METHODS
        if self._is_forwarded(request):
            hosts = [request.headers.get(name, "") for name in ("host", "x-forwarded-host")]
            own = ingress_module.is_own_origin(request.headers.getlist("origin"), hosts)
            return None if own or not changes else refusal(403, OTHER_PAGE)
        host = request.headers.get("host", "")
        if len(request.headers.getlist("host")) != 1 or not self._is_own_host(host):
            return refusal(421, OTHER_NAME)
        own_origin = f"{'https' if _secure(request) else 'http'}://{host}"
        if changes and request.headers.getlist("origin") != [own_origin]:
            return refusal(403, OTHER_PAGE)
        # Browsers share cookies between ports, so the port is in the name.
        cookie = f"tapword_studio_{_port(request)}"
        # Nowhere else: a token must not stay in an address.
        opens = request["type"] == "http" and request["path"] == "/"
        given = request.query_params.getlist("token") if opens else []
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        shown = [request.cookies.get(cookie, ""), bearer if scheme.lower() == "bearer" else ""]
        if not self._is_token([*given, *shown]):
            return refusal(403, NO_TOKEN)
        return self._set_cookie(request, cookie) if self._is_token(given) else None

    def _is_forwarded(self, request: HTTPConnection) -> bool:
        """Whether Home Assistant's ingress forwarded a request."""
        address = request.client.host if request.client else None
        return self.ingress.forwards(address, request.headers.getlist(ingress_module.HEADER))

    def _set_cookie(self, request: HTTPConnection, cookie: str) -> Response:
        """Store the token in a cookie, so it leaves the address bar and the history."""
        # A page that loads the studio, not a redirect: after a link from another site, a browser
        # follows a redirect as that site's request, without strict cookies.
        go_on = '<meta http-equiv="refresh" content="0;url=/">'
        text = '<a href="/">Open the studio</a>'
        answer = HTMLResponse(PAGE.format(more=go_on, text=text, style=STYLE))
        answer.set_cookie(
            cookie, self.token.decode(), httponly=True, samesite="strict", secure=_secure(request)
        )
        return answer

    def _is_token(self, shown: Iterable[str]) -> bool:
        return is_token(self.token, [text.encode() for text in shown])

    def _is_own_host(self, host: str) -> bool:
        """Whether a Host header names this studio."""
        name = host.lower()
        if not name.endswith("]"):
            bare, colon, port = name.rpartition(":")
            name = bare if colon and port.isdecimal() else name
        # DNS rebinding needs a name: an address in its place cannot be forged.
        return name in self.names or (self.by_address and ip_address(name.strip("[]")) is not None)

    def _with_headers(self, request: HTTPConnection, send: Send) -> Send:
        """Add the headers that tell a browser what the page may do."""
        host = request.headers.get("host", "")
        schemes, frames = ["wss" if _secure(request) else "ws"], "'none'"
        known = self._is_own_host(host)
        if self._is_forwarded(request):
            # Home Assistant shows the page in a frame; the browser may have come by TLS.
            schemes, frames, known = ["ws", "wss"], "'self'", ingress_module.is_host(host)
        sockets = " ".join(f"{scheme}://{host}" for scheme in schemes)
        policy = POLICY.format(socket=sockets if known else "", frames=frames)

        async def send_securely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers["Content-Security-Policy"] = policy
            await send(message)

        return send_securely


def is_token(token: bytes, shown: Iterable[bytes]) -> bool:
    """Whether one of these is the token."""
    # All are compared in constant time, so the time reveals nothing.
    return any([hmac.compare_digest(text, token) for text in shown])


def _secure(request: HTTPConnection) -> bool:
    return request["scheme"] in ("https", "wss")


def _port(request: HTTPConnection) -> str:
    """Port in the browser's address; a tunnel may have changed it."""
    port = request.headers.get("host", "").rpartition(":")[2]
    return port if port.isdecimal() else "443" if _secure(request) else "80"


def refusal(status: int, text: str) -> Response:
    """Refuse a request and close its connection."""
    policy = POLICY.format(socket="", frames="'none'")
    headers = HEADERS | {"Connection": "close", "Content-Security-Policy": policy}
    return HTMLResponse(PAGE.format(more="", text=text, style=STYLE), status, headers)
