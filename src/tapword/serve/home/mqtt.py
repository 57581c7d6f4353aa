"""Entities in Home Assistant by MQTT discovery, where there is no Supervisor.

See https://www.home-assistant.io/integrations/mqtt#mqtt-discovery. The last word and its score are
sensors; a switch pauses detection; numbers are sensitivities; a button rejects the last detection.
The topic TAPWORD/NAME/command takes what `tapword home --commands` does.
"""

import asyncio
import contextlib
import hashlib
import json
import logging
import math
import re
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import aiomqtt

from tapword.errors import InputError
from tapword.serve.home.commands import PACE_S, Commands, event_of
from tapword.serve.home.pages import Home
from tapword.version import __version__

log = logging.getLogger("tapword.serve.home")
client_log = logging.getLogger("tapword.serve.home.mqtt")
# It would log every message in the verbose log.
client_log.setLevel(logging.WARNING)

DISCOVERY = "homeassistant"
PORT, TLS_PORT = 1883, 8883
# How long to wait before connecting again, and how often to look for changes of the model.
RETRY_S, CHANGES_S = 5.0, 1.0
# How long a broker may take to answer.
TIMEOUT_S = 10.0
MAX_WAITING = 100
MAX_PAYLOAD_BYTES = 4000
MAX_PASSWORD_BYTES = 1000


class Broker:
    """The address of a broker, such as mqtt://user:password@homeassistant.local.

    Parameters
    ----------
    address
        With or without the password.
    password
        In place of the one in the address.

    Examples
    --------
    >>> Broker("mqtts://ann:secret@10.0.0.2")
    Broker mqtts://10.0.0.2:8883
    """

    def __init__(self, address: str, password: str | None = None):
        try:
            parts = urlsplit(address)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname or parts.path.strip("/"):
            # Without the address: it may contain a password.
            raise InputError("--mqtt must be like mqtt://user:password@homeassistant.local:1883")
        self.tls = parts.scheme == "mqtts"
        self.host = parts.hostname
        self.port = port or (TLS_PORT if self.tls else PORT)
        self.user = unquote(parts.username) if parts.username else None
        inside = unquote(parts.password) if parts.password else None
        self.password = inside if password is None else password
        if self.password is not None and self.user is None:
            raise InputError("a password of the MQTT broker needs a user: mqtt://USER@HOST")

    def __repr__(self) -> str:
        return f"Broker {'mqtts' if self.tls else 'mqtt'}://{self.host}:{self.port}"


def read_password(path: Path) -> str:
    """Read a password: the first line of a file."""
    try:
        with path.open("rb") as file:
            line = file.readline(MAX_PASSWORD_BYTES + 1).rstrip(b"\r\n")
        text = line.decode()
    except OSError as error:
        raise InputError(f"cannot read the password in {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"the password in {path} is not text in UTF-8") from error
    if not text or len(line) > MAX_PASSWORD_BYTES:
        raise InputError(
            f"the first line of {path} must be the password, at most {MAX_PASSWORD_BYTES} bytes"
        )
    return text


class Entities:
    """The entities of a home at a broker.

    Parameters
    ----------
    home
        Whose.
    name
        Name of the service; each home at a broker has its own.
    broker
        Where.
    """

    def __init__(self, home: Home, name: str, broker: Broker):
        self.home = home
        self.name = name
        self.broker = broker
        self._commands = Commands(home)
        self._id = f"tapword_{re.sub('[^a-z0-9]+', '_', name.lower()).strip('_') or 'home'}"
        self._base = f"tapword/{self._id.removeprefix('tapword_')}"
        self._waiting: asyncio.Queue[dict[str, Any]] = asyncio.Queue(MAX_WAITING)
        # Words whose sensitivities are entities, by their topics.
        self._words: dict[str, str] = {}
        # What was published last, by topic.
        self._published: dict[str, str] = {}

    async def run(self) -> None:
        """Keep the entities up to date, until cancelled."""
        loop = asyncio.get_running_loop()

        def noted(entry: dict[str, Any]) -> None:
            # The loop may be closing.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._note, entry)

        self.home.satellites.noted.append(noted)
        failed = None
        while True:
            try:
                async with self._client() as client:
                    log.info("connected to %r", self.broker)
                    failed = None
                    await self._serve(client)
            except Exception as error:
                # Disconnecting while this is cancelled may fail, and hide that.
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise asyncio.CancelledError from error
                # Whatever a broker does, the words are still detected.
                reason = str(error) or repr(error)
                if reason != failed:
                    failed = reason
                    log.error("%r: %s; trying again", self.broker, failed)
            await asyncio.sleep(RETRY_S)

    def _client(self) -> aiomqtt.Client:
        broker = self.broker
        return aiomqtt.Client(
            broker.host,
            broker.port,
            username=broker.user,
            password=broker.password,
            tls_context=ssl.create_default_context() if broker.tls else None,
            will=aiomqtt.Will(f"{self._base}/status", "offline", qos=1, retain=True),
            # Commands that come faster than they are run are dropped.
            max_queued_incoming_messages=MAX_WAITING,
            timeout=TIMEOUT_S,
            logger=client_log,
        )

    def _note(self, entry: dict[str, Any]) -> None:
        if not self._waiting.full():
            self._waiting.put_nowait(entry)

    async def _serve(self, client: aiomqtt.Client) -> None:
        self._published = {}
        await client.subscribe(f"{self._base}/+/set", qos=1)
        await client.subscribe(f"{self._base}/command", qos=1)
        await self._publish_fixed(client)
        await self._publish(client, f"{self._base}/status", "online")
        jobs = [self._receive(client), self._follow(client), self._tell(client)]
        tasks = [asyncio.ensure_future(job) for job in jobs]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for error in results:
            if isinstance(error, Exception):
                raise error

    async def _publish(self, client: aiomqtt.Client, topic: str, payload: str) -> None:
        """Publish a retained payload, unless it is there already."""
        if self._published.get(topic) != payload:
            await client.publish(topic, payload, qos=1, retain=True)
            self._published[topic] = payload

    async def _entity(
        self, client: aiomqtt.Client, kind: str, key: str, name: str, **more: Any
    ) -> None:
        """Publish the discovery of an entity."""
        config = {
            "name": name,
            "unique_id": f"{self._id}_{key}",
            "availability_topic": f"{self._base}/status",
            "device": {
                "identifiers": [self._id],
                "name": self.name,
                "manufacturer": "tapword",
                "sw_version": __version__,
            },
            "origin": {"name": "tapword", "sw_version": __version__},
            **more,
        }
        await self._publish(client, self._config_topic(kind, key), json.dumps(config))

    def _config_topic(self, kind: str, key: str) -> str:
        return f"{DISCOVERY}/{kind}/{self._id}/{key}/config"

    async def _publish_fixed(self, client: aiomqtt.Client) -> None:
        heard = {"state_topic": f"{self._base}/detected"}
        await self._entity(
            client,
            "sensor",
            "last_word",
            "Last word",
            value_template="{{ value_json.word }}",
            json_attributes_topic=heard["state_topic"],
            icon="mdi:account-voice",
            **heard,
        )
        await self._entity(
            client,
            "sensor",
            "last_score",
            "Last score",
            value_template="{{ value_json.score }}",
            **heard,
        )
        await self._entity(
            client,
            "switch",
            "detection",
            "Detection",
            command_topic=f"{self._base}/detection/set",
            state_topic=f"{self._base}/detection",
        )
        await self._entity(
            client,
            "button",
            "reject",
            "Not one of my words",
            command_topic=f"{self._base}/command",
            payload_press=json.dumps({"command": "reject"}),
        )

    async def _follow(self, client: aiomqtt.Client) -> None:
        """Publish what changes: words, sensitivities, the pause."""
        while True:
            vocabulary = self.home.model.spotter.vocabulary
            words = {_key(word): word for word in self.home.model.spotter.words}
            for key in self._words.keys() - words.keys():
                # An empty payload removes an entity.
                await self._publish(client, self._config_topic("number", key), "")
            self._words = words
            for key, word in words.items():
                topic = f"{self._base}/{key}"
                await self._entity(
                    client,
                    "number",
                    key,
                    f"Sensitivity: {word}",
                    command_topic=f"{topic}/set",
                    state_topic=topic,
                    min=0,
                    max=1,
                    step=0.05,
                    mode="slider",
                    entity_category="config",
                )
                await self._publish(client, topic, f"{vocabulary.sensitivity_of(word):g}")
            paused = self.home.satellites.paused_s > 0
            await self._publish(client, f"{self._base}/detection", "OFF" if paused else "ON")
            await asyncio.sleep(CHANGES_S)

    async def _tell(self, client: aiomqtt.Client) -> None:
        """Publish words and near misses, which are not retained: they are over."""
        while True:
            entry = await self._waiting.get()
            topic = "detected" if entry["said"] else "near_miss"
            await client.publish(f"{self._base}/{topic}", json.dumps(event_of(entry)), qos=1)

    async def _receive(self, client: aiomqtt.Client) -> None:
        async for message in client.messages:
            payload = message.payload
            if not isinstance(payload, bytes) or len(payload) > MAX_PAYLOAD_BYTES:
                log.warning("command refused: longer than %d bytes", MAX_PAYLOAD_BYTES)
                continue
            command = self._command(str(message.topic).removeprefix(f"{self._base}/"), payload)
            if command is not None:
                await asyncio.to_thread(self._commands.attempt, command)
            await asyncio.sleep(PACE_S)

    def _command(self, topic: str, payload: bytes) -> bytes | None:
        """Give the command of a message; None if it was done already."""
        if topic == "command":
            return payload
        key = topic.removesuffix("/set")
        if key == "detection":
            self.home.satellites.pause(math.inf if payload == b"OFF" else 0)
            return None
        try:
            value = float(payload)
        except ValueError:
            value = math.nan
        given = {"command": "sensitivity", "word": self._words.get(key, ""), "value": value}
        return json.dumps(given).encode()


def _key(word: str) -> str:
    """Key of a word in topics: a word may contain any character."""
    return f"sensitivity_{hashlib.sha256(word.encode()).hexdigest()[:12]}"
