"""Events for Home Assistant's automations: `tapword_detected` and `tapword_near_miss`.

They are sent to Home Assistant's REST API, in an app through the Supervisor. See
https://developers.home-assistant.io/docs/api/rest and
https://developers.home-assistant.io/docs/apps/communication#home-assistant-core.
"""

import http.client
import json
import logging
import queue
import threading
from typing import Any
from urllib.parse import urlsplit

from tapword.errors import InputError
from tapword.serve.home.commands import event_of

log = logging.getLogger("tapword.serve.home")

DETECTED, NEAR_MISS = "tapword_detected", "tapword_near_miss"
TIMEOUT_S = 10.0
# Events that wait while Home Assistant does not answer; more are dropped.
MAX_WAITING = 100


class Events:
    """Send events to the API at an address, such as http://supervisor/core/api.

    Parameters
    ----------
    address
        Where the API is.
    token
        What Home Assistant knows this program by.
    """

    def __init__(self, address: str, token: str):
        try:
            parts = urlsplit(address)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise InputError(
                "--events must be the address of Home Assistant's API, such as "
                f"http://supervisor/core/api; got {address!r}"
            )
        if not token or not token.isascii() or not token.isprintable():
            raise InputError("--events needs Home Assistant's token in SUPERVISOR_TOKEN")
        self._kind = http.client.HTTPSConnection if parts.scheme == "https" else None
        self._host, self._port = parts.hostname, port
        self._path = parts.path.rstrip("/")
        self._token = token
        self._waiting: queue.Queue[dict[str, Any]] = queue.Queue(MAX_WAITING)
        self._failed = False
        threading.Thread(target=self._work, name="events", daemon=True).start()

    def note(self, entry: dict[str, Any]) -> None:
        """Queue the event of an entry."""
        try:
            self._waiting.put_nowait(entry)
        except queue.Full:
            log.warning("an event was dropped: Home Assistant does not answer")

    def _work(self) -> None:
        while True:
            entry = self._waiting.get()
            try:
                self._send(DETECTED if entry["said"] else NEAR_MISS, event_of(entry))
                self._failed = False
            except Exception as error:
                if not self._failed:
                    log.error("Home Assistant did not take an event: %s", error)
                self._failed = True

    def _send(self, kind: str, data: dict[str, Any]) -> None:
        """Send an event. Redirects are not followed: the token is for one address."""
        connection = (self._kind or http.client.HTTPConnection)(
            self._host, self._port, timeout=TIMEOUT_S
        )
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        try:
            connection.request("POST", f"{self._path}/events/{kind}", json.dumps(data), headers)
            answer = connection.getresponse()
            if answer.status >= 300:
                raise OSError(f"{answer.status} {answer.reason}")
            answer.read(1 << 16)
        finally:
            connection.close()
