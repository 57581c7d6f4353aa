"""Entities by MQTT discovery, at a real broker."""

import asyncio
import contextlib
import getpass
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

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
from tapword.serve.studio import certificate  # noqa: E402
from tests.serve.test_home_assistant import clean, python_with  # noqa: E402
from tests.serve.test_wyoming import clip, teach_words  # noqa: E402

USER, PASSWORD = "ann", "a-secret"
PATIENCE_S = 30


@pytest.fixture
def home(tmp_path):
    path = tmp_path / "home.tap"
    teach_words(path)
    return Home(HomeModel(path))


class RunningBroker:
    """mosquitto, with a password; with a certificate, by TLS."""

    def __init__(self, folder, tls=False):
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
        self.certificate = folder / "certificate.pem"
        if tls:
            public, key, _ = certificate.self_signed({"localhost", "127.0.0.1"})
            self.certificate.write_bytes(public)
            (folder / "key.pem").write_bytes(key)
            with self.config.open("a") as more:
                more.write(f"certfile {self.certificate}\nkeyfile {folder / 'key.pem'}\n")
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


@needs_broker
def test_the_real_home_assistant_takes_the_entities(home, broker, monkeypatch, tmp_path):
    python = python_with("homeassistant")
    script = Path(__file__).with_name("home_assistant_mqtt.py")

    async def conversation(there):
        process = await asyncio.create_subprocess_exec(
            *(python, str(script), str(broker.port), USER, PASSWORD),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=clean(),
            cwd=tmp_path,
        )
        last = await there.entity("sensor", "last_word")
        output = asyncio.create_task(process.communicate())
        # Not retained: it is said until Home Assistant is there.
        while not output.done() and process.returncode is None:
            await asyncio.to_thread(said, home)
            assert await there.wait(last["state_topic"])
            await asyncio.sleep(1)
        lines, errors = await output
        assert process.returncode == 0, errors.decode()[-3000:]
        before, after = (json.loads(line) for line in lines.splitlines() if line[:1] == b"{")
        shown = {one["name"]: one["state"] for one in before["entities"].values()}
        assert shown.pop("My words Not one of my words") == "unknown"
        assert shown == {
            "My words Last word": "lamp",
            "My words Last score": "0.6",
            "My words Detection": "on",
            "My words Sensitivity: lamp": "0.5",
            "My words Sensitivity: music": "0.5",
        }
        assert after["problems"] == []

    talk(home, broker, conversation, monkeypatch)
    model = tapword.load(home.model.path)
    assert model.vocabulary.sensitivity_of("lamp") == 0.7 and home.satellites.paused_s
    assert model.vocabulary.negatives == {"lamp": 1}


@contextlib.contextmanager
def rough_broker(port):
    """What listens at the port of a broker and is none: it answers each connection differently."""
    answers = [b"", None, b"\x20\x02\x00\x05", b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(1000)]
    accepted, held = [], []

    def serve():
        with contextlib.suppress(OSError):
            while True:
                line, _ = listening.accept()
                answer = answers[len(accepted) % len(answers)]
                accepted.append(answer)
                # None: it never answers and never hangs up.
                if answer is None:
                    held.append(line)
                    continue
                with line, contextlib.suppress(OSError):
                    line.recv(1000)
                    line.sendall(answer)

    with socket.create_server(("127.0.0.1", port)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        yield accepted
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()
    for line in held:
        line.close()


@needs_broker
def test_what_is_no_broker_delays_nobody_and_is_tried_again(home, broker, monkeypatch, caplog):
    for name, value in (("RETRY_S", 0.05), ("TIMEOUT_S", 0.5)):
        monkeypatch.setattr(mqtt, name, value)
    broker.stop()

    async def run():
        entities = asyncio.create_task(Entities(home, "My words", Broker(broker.url)).run())
        with rough_broker(broker.port) as accepted:
            async with asyncio.timeout(PATIENCE_S):
                while len(accepted) < 7:
                    # The loop that answers satellites is free meanwhile.
                    await asyncio.sleep(0.05)
        assert not entities.done()
        await asyncio.to_thread(broker.start)
        client = aiomqtt.Client("127.0.0.1", broker.port, username=USER, password=PASSWORD)
        async with client:
            await client.subscribe("#")
            there = HomeAssistant(client)
            following = asyncio.create_task(there.follow())
            await there.wait("tapword/my_words/status", "online")
            for task in (following, entities):
                task.cancel()
            await asyncio.gather(following, entities, return_exceptions=True)

    asyncio.run(run())
    assert "trying again" in caplog.text and PASSWORD not in caplog.text


def test_a_broker_that_hangs_does_not_keep_the_program_from_ending(home, monkeypatch):
    monkeypatch.setattr(mqtt, "TIMEOUT_S", 0.3)
    monkeypatch.setattr(mqtt, "RETRY_S", 0.05)
    leave = aiomqtt.Client.__aexit__

    async def late(client, *error):
        await leave(client, *error)
        raise aiomqtt.MqttError("the broker did not confirm in time")

    monkeypatch.setattr(aiomqtt.Client, "__aexit__", late)
    connected = threading.Event()

    def serve():
        line, _ = listening.accept()
        with line:
            line.recv(1000)
            # It accepts the client, and says nothing more.
            line.sendall(b"\x20\x02\x00\x00")
            connected.set()
            while line.recv(1000):
                pass
            ended.wait(PATIENCE_S)

    async def run():
        broker = Broker(f"mqtt://127.0.0.1:{listening.getsockname()[1]}")
        entities = asyncio.create_task(Entities(home, "My words", broker).run())
        assert await asyncio.to_thread(connected.wait, PATIENCE_S)
        await asyncio.sleep(0.1)
        entities.cancel()
        done, _ = await asyncio.wait([entities], timeout=5)
        ended_by_itself = entities.cancelled()
        while not entities.done():
            entities.cancel()
            await asyncio.sleep(0)
        assert done and ended_by_itself

    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            asyncio.run(run())
        finally:
            ended.set()
            thread.join()


@needs_broker
def test_a_flood_of_commands_is_dropped(home, broker, monkeypatch):
    monkeypatch.setattr(mqtt, "PACE_S", 0.001)
    monkeypatch.setattr(mqtt, "MAX_WAITING", 10)
    ran, free = [], threading.Event()

    def attempt(_, text):
        free.wait(PATIENCE_S)
        ran.append(len(text))

    monkeypatch.setattr(mqtt.Commands, "attempt", attempt)

    async def conversation(there):
        await there.wait("tapword/my_words/status", "online")
        command = "tapword/my_words/command"
        for _ in range(100):
            await there.client.publish(command, b"x" * 4000)
        # The broker delivers in order, so the flood has arrived before this.
        await there.client.publish("tapword/my_words/seen", "yes", qos=1)
        await there.wait("tapword/my_words/seen", "yes")
        await asyncio.sleep(1)
        free.set()
        switch = await there.entity("switch", "detection")
        for _ in range(100):
            await there.client.publish(switch["command_topic"], "OFF")
            await asyncio.sleep(0.1)
            if home.satellites.paused_s:
                break
        assert home.satellites.paused_s

    talk(home, broker, conversation, monkeypatch)
    assert 1 <= len(ran) < 50


@needs_broker
def test_the_command_connects_by_tls_with_a_password_from_a_file(home, tmp_path):
    broker = RunningBroker(tmp_path, tls=True)
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    command = [sys.executable, "-m", "tapword", "home", home.model.path, "--port", "0"]
    command += ["--uri", "tcp://127.0.0.1:0", "--name", "My words"]
    command += ["--mqtt", f"mqtts://{USER}@localhost:{broker.port}"]
    command += ["--mqtt-password-file", tmp_path / "password"]
    process = subprocess.Popen(
        [*map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"SSL_CERT_FILE": str(broker.certificate)},
    )

    async def online():
        context = ssl.create_default_context(cafile=broker.certificate)
        client = aiomqtt.Client(
            "localhost", broker.port, username=USER, password=PASSWORD, tls_context=context
        )
        async with client:
            await client.subscribe("#")
            there = HomeAssistant(client)
            following = asyncio.create_task(there.follow())
            await there.wait("tapword/my_words/status", "online")
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    try:
        asyncio.run(online())
    finally:
        process.terminate()
        output, _ = process.communicate(timeout=30)
        broker.stop()
    assert PASSWORD not in output


def test_a_password_on_the_command_line_is_refused(run, home, monkeypatch):
    url = f"mqtt://{USER}:{PASSWORD}@127.0.0.1:1"
    monkeypatch.delenv("TAPWORD_MQTT", raising=False)
    at = ("--port", "0", "--uri", "tcp://127.0.0.1:0")
    code, _, error = run("home", str(home.model.path), *at, "--mqtt", url)
    assert code == 2 and "--mqtt-password-file" in error and PASSWORD not in error
    # In the variable it is allowed.
    served = []
    monkeypatch.setattr(
        "tapword.serve.home.run.serve", lambda *given: served.append(given) or given[1][1].close()
    )
    monkeypatch.setenv("TAPWORD_MQTT", url)
    assert run("home", str(home.model.path), *at)[0] == 0
    [(*_, beside)] = served
    assert beside[0].__self__.broker.password == PASSWORD


def test_passwords_in_files(tmp_path):
    path = tmp_path / "password"
    path.write_bytes("grün\r\nmore".encode())
    assert mqtt.read_password(path) == "grün"
    for content in (b"", b"\n", b"\xff\n", b"x" * 1001):
        path.write_bytes(content)
        with pytest.raises(InputError):
            mqtt.read_password(path)
    with pytest.raises(InputError, match="cannot read the password"):
        mqtt.read_password(tmp_path / "none")
    assert Broker("mqtt://ann:old@h", "new").password == "new"
    with pytest.raises(InputError, match="needs a user"):
        Broker("mqtt://h", "secret")


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
