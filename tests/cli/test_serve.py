"""The commands that serve a model, in processes of their own."""

import asyncio
import hashlib
import http.client
import json
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tapword.errors import how_to_install
from tests.conftest import tone
from tests.serve.conftest import spoken, words_of

pytest.importorskip("starlette", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("uvicorn", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("wyoming", reason="needs the extra wyoming: pip install 'tapword[wyoming]'")

from tests.serve.test_wyoming import HOST, ask, clip, teach

# The studio.

# The handshake of a WebSocket; the key is RFC 6455's example.
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "home.tap"


def start(*arguments):
    """Run the command; its process and the address it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tapword", "studio", "--port", "0", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "Ctrl+C" in line:
            break
    found = re.findall(r"https?://\S+", "".join(lines))
    assert found, "".join(lines)
    return process, found, "".join(lines)


def finish(process, ending=signal.SIGINT):
    process.send_signal(ending)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 0, output
    assert "The studio is closed." in output and "Traceback" not in output
    return output


def test_the_command_serves_with_token_and_tls(path):
    pytest.importorskip("cryptography", reason="needs the extra web")
    httpx = pytest.importorskip("httpx2")
    process, urls, output = start(path, "--host", "0.0.0.0", "--tls-self-signed")
    try:
        local = next(url for url in urls if "127.0.0.1" in url)
        address, token = local.split("/?token=")
        port = int(address.rpartition(":")[2])
        shown = ssl.get_server_certificate(("127.0.0.1", port))
        digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(shown)).hexdigest().upper()
        assert digest in output.replace(":", "")
        context = ssl.create_default_context(cadata=shown)
        context.check_hostname = True
        with httpx.Client(base_url=address, verify=context) as client:
            assert client.get("/").status_code == 403
            # Nobody may speak for the client in a header.
            forged = {"x-forwarded-proto": "http", "x-forwarded-host": "evil.example"}
            assert client.get("/", headers=forged).status_code == 403
            assert client.get(f"/?token={token}").status_code == 200
            assert 'id="teach"' in client.get("/").text
            assert client.get("/api/state").json()["exports"] == ["onnx", "h"]
            origin = {"origin": address}
            answer = client.post(
                "/api/learn?word=lamp&anyway=1", content=spoken(tone(300, 0.5)), headers=origin
            )
            assert words_of(answer.json()) == {"lamp": 1}
            [cookie] = answer.request.headers["cookie"].split("; ")
        from websockets.sync.client import connect

        live_address = address.replace("https", "wss") + "/api/live"
        with connect(
            live_address, ssl=context, origin=address, additional_headers={"cookie": cookie}
        ) as line:
            assert words_of(json.loads(line.recv())) == {"lamp": 1}
            line.send("nonsense")
            with pytest.raises(Exception, match="1008"):
                line.recv()
        for headers, who in (({}, address), ({"cookie": cookie}, "https://evil.example")):
            # Not by websockets, whose client hangs if the answer to a refused handshake comes in
            # two pieces.
            plain = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=30)
            plain.request("GET", "/api/live", headers=UPGRADE | {"Origin": who} | headers)
            assert plain.getresponse().status == 403
            plain.close()
    finally:
        finish(process)


def test_the_command_closes_while_a_page_is_open(path):
    pytest.importorskip("websockets")
    from websockets.sync.client import connect

    process, [url], output = start(path)
    assert "TLS" not in output
    address, token = url.split("/?token=")
    live_address = address.replace("http", "ws") + "/api/live"
    bearer = {"authorization": f"Bearer {token}"}
    with connect(live_address, origin=address, additional_headers=bearer) as line:
        assert json.loads(line.recv())["type"] == "model"
        finish(process)


def test_the_token_is_new_at_every_start_and_plain_http_in_a_network_is_warned_of(path):
    tokens = set()
    for _ in range(2):
        process, urls, output = start(path, "--host", "0.0.0.0")
        assert "can listen in" in output and "--tls-self-signed" in output
        finish(process)
        tokens |= {url.split("/?token=")[1] for url in urls}
    assert len(tokens) == 2 and all(len(token) >= 32 for token in tokens)


BROWSER = """#!{python}
import os, pathlib, sys, urllib.parse
page = pathlib.Path(urllib.parse.urlparse(sys.argv[-1]).path)
modes = [oct(path.stat().st_mode) for path in (page, page.parent)]
seen = [" ".join(sys.argv), page.read_text(), *modes]
pathlib.Path({seen!r}).write_text("\\0".join([*seen, str(page)]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the browser is a script")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_browser_is_not_told_the_token_on_its_command_line(path, tmp_path, monkeypatch, ending):
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(BROWSER.format(python=sys.executable, seen=str(seen)))
    browser.chmod(0o700)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    process, [url], _ = start(path, "--open")
    give_up = time.monotonic() + 20
    while not seen.exists() and time.monotonic() < give_up:
        time.sleep(0.05)
    finish(process, ending)
    told, content, mode, folder_mode, page = seen.read_text().split("\0")
    token = url.split("/?token=")[1]
    assert token not in told and f"url={url}" in content
    assert (mode, folder_mode) == ("0o100600", "0o40700")
    assert not Path(page).parent.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tls-cert", "a.pem"], "go together"),
        (["--tls-cert", "a.pem", "--tls-key", "b.pem", "--tls-self-signed"], "not both"),
        (["--tls-cert", "a.pem", "--tls-key", "b.pem"], "cannot be used for TLS"),
        (["nowhere/home.tap"], "its folder does not exist"),
        (["bad.tap"], "bad.tap"),
        (["--size", "huge"], "no size named 'huge'"),
        (["--port", "70000"], "must be in 0..65535"),
    ],
)
def test_what_the_command_refuses(run, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    Path("bad.tap").write_text("nonsense")
    code, _, error = run("studio", *arguments)
    assert code == 2 and said in error and error.count("\n") == 1


def test_the_command_names_the_extra(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "starlette", None)
    code, _, error = run("studio")
    assert code == 2 and how_to_install("web") in error


# The wake-word service.


@pytest.mark.parametrize(
    "options, message",
    [
        (["--threshold", "lamp"], "as in lamp=0.6"),
        (["--threshold", "lamp=much"], "as in lamp=0.6"),
        (["--false-alarms-per-hour", "0"], "must be above 0"),
        (["--zeroconf", "home"], "only this machine"),
        (["--refractory", "kitchen/2"], "where --client names that client"),
        (["--client", "kitchen"], "as in kitchen=10.0.0.7"),
        (["--check", "--uri", "tcp://127.0.0.1:{free}"], "answers at 127.0.0.1 port {free}: Conn"),
        (["{tests}/test_serve.py"], "not a tapword model"),
        (["--uri", "tcp://127.0.0.1:{taken}"], "Address already in use; another"),
        (["--uri", "tcp://nowhere.invalid:10400"], "cannot use port 10400 of nowhere.invalid"),
    ],
)
def test_what_the_service_refuses(run, options, message, request):
    with socket.create_server((HOST, 0)) as taken, socket.socket() as free:
        # Bound, so that nobody else gets it, but nobody listens there.
        free.bind((HOST, 0))
        facts = {
            "taken": taken.getsockname()[1],
            "free": free.getsockname()[1],
            "tests": request.path.parent,
        }
        code, _, error = run("wyoming", *(option.format(**facts) for option in options))
    assert code == 2 and message.format(**facts) in error and error.count("\n") == 1


def test_whatever_the_file_is_called_the_terminal_stays_as_it_is(run, monkeypatch):
    from tapword.serve.wyoming import service

    monkeypatch.setattr(service, "serve", lambda model, host, port, info, ready: ready(port))
    # Neither the file nor its folder is there yet.
    code, out, _ = run("wyoming", "nowhere/\x1b[31mhome.tap")
    assert code == 0 and out.startswith(
        "nowhere/\\x1b[31mhome.tap: does not exist yet, waiting for it\n"
    )


def test_the_environment_sets_what_options_do(run, monkeypatch):
    from tapword.serve.wyoming import service

    seen = []
    monkeypatch.setattr(service, "serve", lambda *arguments: seen.append(arguments))
    for name, value in {
        "MODEL": "there.tap",
        "URI": "tcp://0.0.0.0:123",
        "NAME": "Down here",
        "LANGUAGE": "de en",
        "THRESHOLD": "lamp=0.6 hall/lamp=0.5",
        "SENSITIVITY": "0.4 lamp=0.6",
        "REFRACTORY": "1",
        "FALSE_ALARMS": "2",
        "CLIENT": "hall=10.0.0.7",
        "ZEROCONF": "words",
    }.items():
        monkeypatch.setenv(f"TAPWORD_{name}", value)
    code, _, _ = run("wyoming")
    [(model, host, port, info, _)] = seen
    assert (code, str(model.path), host, port) == (0, "there.tap", "0.0.0.0", 123)
    assert info == service.ServiceInfo("Down here", ["de", "en"], "words")
    hall = model.clients.settings("10.0.0.7")
    assert (hall.false_alarms_per_hour, hall.refractory_s) == (2.0, 1.0)
    assert hall.sensitivities == {None: 0.4, "lamp": 0.6}
    assert hall.thresholds == {"lamp": 0.5} and model.clients.name("10.0.0.7") == "hall"
    _, help_text, _ = run("wyoming", "--help")
    assert "TAPWORD_FALSE_ALARMS]" in help_text and "TAPWORD_MODEL]" in help_text
    assert "TAPWORD_CHECK" not in help_text
    # A container's network may set TAPWORD_PORT by itself.
    _, help_text, _ = run("studio", "--help")
    assert "TAPWORD_PORT" not in help_text


def test_the_service_names_the_extra(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "wyoming.server", None)
    code, _, error = run("wyoming")
    assert code == 2 and how_to_install("wyoming") in error


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to catch")
def test_the_service_in_a_process(tmp_path):
    taught = tmp_path / "home.tap"
    teach(taught, {word: [clip(word, n) for n in range(0, 10, 2)] for word in ("lamp", "music")})
    arguments = ["wyoming", str(taught), "--uri", "tcp://0.0.0.0:0"]
    errors = tmp_path / "errors"
    with (
        open(errors, "w") as stderr,
        subprocess.Popen(
            [sys.executable, "-m", "tapword", *arguments],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            cwd=tmp_path,
        ) as process,
    ):
        assert process.stdout.readline() == f"{taught}: lamp, music\n", errors.read_text()
        port = int(re.search(r"port (\d+)", process.stdout.readline()).group(1))
        assert asyncio.run(ask(port)) == ["lamp", "music"]
        where = f"tcp://{HOST}:{port}"
        check = [sys.executable, "-m", "tapword", "wyoming", "--check", "--uri", where]
        answer = subprocess.run(check, capture_output=True, text=True)
        assert (answer.returncode, answer.stdout) == (0, f"{where}: lamp, music\n"), answer.stderr
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
    assert process.returncode == 0, errors.read_text()
    assert "no passwords" in rest and rest.endswith("is closed.\n")


# Both in one process.


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to catch")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_service_and_studio_in_a_process(path, ending):
    httpx = pytest.importorskip("httpx2")
    teach(path, {"lamp": [clip("lamp", n) for n in (0, 2)]})
    command = [sys.executable, "-m", "tapword", "home", path, "--port", "0"]
    command += ["--uri", "tcp://127.0.0.1:0", "--ingress", "127.0.0.9"]
    process = subprocess.Popen(
        [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    lines = []
    while not re.search(r"http://\S+token=", line := process.stdout.readline()):
        assert line, "".join(lines)
        lines.append(line)
    port = int(re.search(r"port (\d+)", "".join(lines))[1])
    address, token = line.strip().split("/?token=")
    try:
        assert asyncio.run(ask(port)) == ["lamp"]
        with httpx.Client(base_url=address) as client:
            forged = {"x-ingress-path": "/api/hassio_ingress/token"}
            assert client.get("/", headers=forged).status_code == 403
            bearer = {"authorization": f"Bearer {token}"}
            assert client.get("/api/home", headers=bearer).json()["satellites"] == []
            # What the studio teaches is served at once.
            answer = client.post(
                "/api/learn?word=tone&anyway=1",
                content=spoken(tone(300, 0.5)),
                headers=bearer | {"origin": address},
            )
            assert answer.status_code == 200
            assert asyncio.run(ask(port)) == ["lamp", "tone"]
    finally:
        process.send_signal(ending)
        output, _ = process.communicate(timeout=30)
    assert process.returncode == 0, output
    assert "are closed" in output and "Traceback" not in output
