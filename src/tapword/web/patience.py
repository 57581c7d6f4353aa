"""HTTP that does not wait for ever: a connection that asks for nothing is closed."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

# Idle connections would otherwise use up those that are allowed, and lock everybody out.
BEGIN_S = 10.0


class ImpatientProtocol(H11Protocol):
    """The server's protocol with a limit on the time until a first request is there."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self.loop.call_later(BEGIN_S, self._give_up)

    def _give_up(self) -> None:
        # A WebSocket has left the HTTP connections by then.
        if self.cycle is None and self in self.connections:
            self.transport.abort()
