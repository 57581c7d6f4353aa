"""Entities by MQTT discovery, at a real broker."""

import asyncio
import contextlib
import getpass
import json
import shutil
import socket
import subprocess
import threading
import time

import pytest

import tapword
from tapword.errors import InputError

pytest.importorskip("starlette", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("wyoming", reason="needs the extra wyoming: pip install 'tapword[wyoming]'")
aiomqtt = pytest.importorskip("aiomqtt", reason="needs the extra mqtt: pip install 'tapword[mqtt]'")
needs_broker = pytest.mark.skipif(not shutil.which("mosquitto"), reason="needs mosquitto")

from tapword.serve.home import mqtt  # noqa: E402
from tapword.serve.home.model import HomeModel  # noqa: E402
from tapword.serve.home.mqtt import Broker, Entities  # noqa: E402
from tapword.serve.home.pages import Home  # noqa: E402
from tests.serve.test_wyoming import clip, teach  # noqa: E402

USER, PASSWORD = "ann", "a-secret"
PATIENCE_S = 30


@pytest.fixture
def home(tmp_path):
    path = tmp_path / "home.tap"
    teach(path, {word: [clip(word, n) for n in range(0, 10, 2)] for word in ("lamp", "music")})
    return Home(HomeModel(path))


class RunningBroker:
    """mosquitto, with a password."""

    def __init__(self, folder):
        passwords = folder / "passwords"
        command = ["mosquitto_passwd", "-b", "-c", passwords, USER, PASSWORD]
        subprocess.run(command, check=True, capture_output=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.config = folder / "mosquitto.conf"
        self.config.write_text(
            f"listener {self.port} 127.0.0.1\npassword_file {passwords}\nallow_anonymous false\n"
            # Started by root, it would become another user, who cannot read this folder.
            f"user {getpass.getuser()}\n"
        )
        self.start()

    def start(self):
        command = ["mosquitto", "-c", self.config]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + PATIENCE_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            assert time.monotonic() < end and self.process.poll() is None
            time.sleep(0.05)

    def stop(self):
        self.process.terminate()
        self.process.wait()

    @property
    def url(self):
        return f"mqtt://{USER}:{PASSWORD}@127.0.0.1:{self.port}"


@pytest.fixture
def broker(tmp_path):
    running = RunningBroker(tmp_path)
    yield running
    running.stop()


class HomeAssistant:
    """What Home Assistant does: follow discovery, read states, send commands."""

    def __init__(self, client):
        self.client = client
        self.seen: dict[str, str] = {}

    async def follow(self):
        async for message in self.client.messages:
            self.seen[str(message.topic)] = message.payload.decode()

    async def wait(self, topic, wanted=None):
        async with asyncio.timeout(PATIENCE_S):
            while topic not in self.seen or wanted not in (None, self.seen[topic]):
                await asyncio.sleep(0.02)
        return self.seen[topic]

    async def entity(self, kind, key):
        return json.loads(await self.wait(f"homeassistant/{kind}/tapword_my_words/{key}/config"))


def talk(home, broker, conversation, monkeypatch):
    """Run the entities of a home beside what Home Assistant does."""
    monkeypatch.setattr(mqtt, "RETRY_S", 0.2)
    monkeypatch.setattr(mqtt, "CHANGES_S", 0.1)

    async def run():
        entities = asyncio.create_task(Entities(home, "My words", Broker(broker.url)).run())
        client = aiomqtt.Client("127.0.0.1", broker.port, username=USER, password=PASSWORD)
        async with client:
            await client.subscribe("#")
            there = HomeAssistant(client)
            following = asyncio.create_task(there.follow())
            try:
                await conversation(there)
            finally:
                for task in (following, entities):
                    task.cancel()
                await asyncio.gather(following, entities, return_exceptions=True)

    asyncio.run(run())


def said(home, **more):
    """A satellite heard a word: it is told from a thread, as by the service."""
    entry = home.entries.add(1, "lamp", 0.6, 0.5, True, clip("lamp", 11)).state()
    event = entry | {"name": "kitchen", "latency_ms": 400} | more

    def tell():
        for told in home.satellites.noted:
            told(event)

    thread = threading.Thread(target=tell)
    thread.start()
    thread.join()


@needs_broker
def test_words_sensitivities_and_the_switch_are_entities(home, broker, monkeypatch):
    async def conversation(there):
        assert await there.wait("tapword/my_words/status") == "online"
        last = await there.entity("sensor", "last_word")
        assert last["device"]["name"] == "My words"
        await asyncio.to_thread(said, home)
        told = json.loads(await there.wait(last["state_topic"]))
        assert told["word"] == "lamp" and told["satellite"] == "kitchen" and told["score"] == 0.6
        button = await there.entity("button", "reject")
        await there.client.publish(button["command_topic"], button["payload_press"])
        # Each word has its sensitivity; a change elsewhere is shown, and one here is stored.
        number = await there.entity("number", mqtt._key("lamp"))
        assert number["name"] == "Sensitivity: lamp"
        assert await there.wait(number["state_topic"]) == "0.5"
        await there.client.publish(number["command_topic"], "0.65")
        await there.wait(number["state_topic"], "0.65")
        await asyncio.to_thread(home.model.set_sensitivity, "lamp", 0.4)
        await there.wait(number["state_topic"], "0.4")
        for nonsense in ("", "high", "7", "nan", "x" * 5000):
            await there.client.publish(number["command_topic"], nonsense)
        switch = await there.entity("switch", "detection")
        assert await there.wait(switch["state_topic"]) == "ON"
        await there.client.publish(switch["command_topic"], "OFF")
        await there.wait(switch["state_topic"], "OFF")
        assert home.satellites.paused_s > 0
        assert json.dumps(home.state(), allow_nan=False)
        await there.client.publish(switch["command_topic"], "ON")
        await there.wait(switch["state_topic"], "ON")
        assert home.satellites.paused_s == 0
        # A word that is taught appears, and one that is forgotten goes.
        await asyncio.to_thread(home.model.learn, clip("door", 3), "door")
        await there.entity("number", mqtt._key("door"))
        await asyncio.to_thread(home.model.forget, "lamp")
        topic = f"homeassistant/number/tapword_my_words/{mqtt._key('lamp')}/config"
        await there.wait(topic, "")

    negatives = []
    correct = home.entries.correct
    monkeypatch.setattr(
        home.entries,
        "correct",
        lambda *given: negatives.append(given[0]) or correct(*given),
    )
    talk(home, broker, conversation, monkeypatch)
    assert negatives == [1]
    assert tapword.load(home.model.path).words == {"music": 5, "door": 1}


@needs_broker
def test_a_broker_that_restarts_gets_everything_again(home, broker, monkeypatch, caplog):
    async def conversation(_):
        await asyncio.to_thread(broker.stop)
        await asyncio.sleep(0.5)
        await asyncio.to_thread(broker.start)
        client = aiomqtt.Client("127.0.0.1", broker.port, username=USER, password=PASSWORD)
        async with client:
            await client.subscribe("#")
            again = HomeAssistant(client)
            following = asyncio.create_task(again.follow())
            assert await again.wait("tapword/my_words/status", "online")
            await again.entity("sensor", "last_word")
            await again.entity("number", mqtt._key("music"))
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    with contextlib.suppress(aiomqtt.MqttError):
        talk(home, broker, conversation, monkeypatch)
    assert "trying again" in caplog.text and PASSWORD not in caplog.text


@pytest.mark.parametrize(
    "address", ["", "broker", "http://a", "mqtt://", "mqtt://a:b", "mqtt://ann:a-secret@h/path"]
)
def test_what_is_no_address_of_a_broker(address):
    with pytest.raises(InputError, match="--mqtt must be like") as error:
        Broker(address)
    assert PASSWORD not in str(error.value)


def test_the_parts_of_an_address():
    broker = Broker("mqtts://ann:a%40b@[::1]")
    assert (broker.host, broker.port, broker.user, broker.password) == ("::1", 8883, "ann", "a@b")
    assert "a@b" not in repr(broker)
