"""Chromium, Firefox and WebKit, driven by the commands of WebDriver that all three know.

Chromium and WebKit have a driver, a program that takes commands by HTTP. Firefox takes the same
commands itself, by its protocol Marionette. Each starts with an empty profile, without a screen,
and with a microphone that gives a tone.
"""

import contextlib
import glob
import itertools
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pytest

from tests.browser import NAMES as CHROMIUM

# Command -> its address at a driver. Marionette has the same commands by name.
COMMANDS = {
    "SetTimeouts": "/timeouts",
    "SetWindowRect": "/window/rect",
    "Navigate": "/url",
    "FindElement": "/element",
    "ElementClick": "/element/{id}/click",
    "ElementSendKeys": "/element/{id}/value",
    "ExecuteAsyncScript": "/execute/async",
}
# How long a program may take to start and to end, and a command to be answered.
START_S, END_S, ANSWER_S = 60, 10, 90
SCRIPT_MS = 60_000

PREFERENCES = {
    "marionette.port": 0,
    # A microphone that gives a tone and needs no permission, and loudspeakers that are not there:
    # without any, Firefox does not start an AudioContext.
    "media.navigator.permission.disabled": True,
    "media.navigator.streams.fake": True,
    "media.cubeb.force_mock_context": True,
}

# Sends a command with its parameters, and returns the value.
Send = Callable[[str, dict[str, Any]], Any]


class WebDriverError(Exception):
    """A command failed."""


class Page:
    """The one page of a browser."""

    def __init__(self, name: str, send: Send):
        self.name = name
        self.send = send
        send("SetTimeouts", {"script": SCRIPT_MS, "pageLoad": SCRIPT_MS})

    def open(self, url: str) -> None:
        self.send("Navigate", {"url": url})

    def reload(self) -> None:
        """Reload as a person does; Firefox's command goes past a service worker."""
        self.run("window.before = true; setTimeout(() => location.reload())")
        self.wait("!window.before && document.readyState === 'complete'")

    def resize(self, width: int, height: int) -> None:
        self.send("SetWindowRect", {"width": width, "height": height})

    def run(self, script: str, *given: Any) -> Any:
        """Run the body of an async function of `given`; returns what it returns."""
        call = f"const done = arguments[1]; (async given => {{{script}}})(arguments[0])"
        call += ".then(value => done({value}), error => done({error: String(error)}));"
        answer = self.send("ExecuteAsyncScript", {"script": call, "args": [given]})
        if answer is None or "error" in answer:
            raise WebDriverError(
                f"{self.name}: {(answer and answer['error']) or 'the page was left'}"
            )
        return answer.get("value")

    def wait(self, expression: str, limit_s: float = 30) -> Any:
        """Wait until a JavaScript expression is true, if need be of the next page."""
        end, problem = time.monotonic() + limit_s, ""
        while time.monotonic() < end:
            try:
                if value := self.run(f"return {expression}"):
                    return value
            except WebDriverError as error:
                problem = str(error)
            time.sleep(0.05)
        raise WebDriverError(f"{self.name}, never: {expression} {problem}\n{self.text('body')}")

    def text(self, selector: str) -> str:
        return self.run("return document.querySelector(given[0]).innerText", selector)

    def click(self, selector: str) -> None:
        """Click as a person does, after which a page may play and record sound."""
        # Not below a header that stays at the top.
        self.run("document.querySelector(given[0]).scrollIntoView({block: 'center'})", selector)
        self.send("ElementClick", {"id": self._find(selector)})

    def type(self, selector: str, text: str) -> None:
        self.send("ElementSendKeys", {"id": self._find(selector), "text": text})

    def choose(self, selector: str, paths: Sequence[Path]) -> None:
        """Choose files, one after the other where there are several."""
        self.type(selector, "\n".join(map(str, paths)))

    def _find(self, selector: str) -> str:
        found = self.send("FindElement", {"using": "css selector", "value": selector})
        [identifier] = found.values()
        return identifier


@contextlib.contextmanager
def chromium(folder: Path) -> Iterator[Page]:
    """Start Chromium by chromedriver."""
    browser = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if browser is None:
        pytest.skip("needs Chromium: apt install chromium")
    command = needed("chromedriver", package="chromium-driver")
    options = [
        "--headless=new",
        "--no-sandbox",
        "--use-fake-ui-for-media-stream",
        "--use-fake-device-for-media-stream",
        f"--user-data-dir={folder}",
    ]
    capabilities = {"goog:chromeOptions": {"binary": browser, "args": options}}
    with driver(command, capabilities) as send:
        yield Page("Chromium", send)


@contextlib.contextmanager
def webkit(folder: Path) -> Iterator[Page]:
    """Start WebKit's own small browser by WebKitWebDriver, on a screen in memory."""
    command = needed("WebKitWebDriver", package="webkit2gtk-driver")
    screen = needed("Xvfb", package="xvfb")
    browsers = sorted(glob.glob("/usr/lib/*/webkit2gtk-4.*/MiniBrowser"))
    if not browsers:
        pytest.skip("needs MiniBrowser, which comes with libwebkit2gtk")
    options = ["--automation", "--enable-mock-capture-devices=TRUE"]
    capabilities = {"webkitgtk:browserOptions": {"binary": browsers[-1], "args": options}}
    home = {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)}
    display = [screen, "-displayfd", "1", "-screen", "0", "1280x1024x24", "-nolisten", "tcp"]
    with program(display, stdout=subprocess.PIPE) as running:
        number = running.stdout.readline().decode().strip()
        with driver(command, capabilities, DISPLAY=f":{number}", **home) as send:
            yield Page("WebKit", send)


@contextlib.contextmanager
def firefox(folder: Path) -> Iterator[Page]:
    """Start Firefox."""
    browser = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
    if browser is None:
        pytest.skip("needs Firefox: apt install firefox-esr")
    lines = (
        f"user_pref({json.dumps(name)}, {json.dumps(PREFERENCES[name])});\n" for name in PREFERENCES
    )
    (folder / "user.js").write_text("".join(lines))
    port = folder / "MarionetteActivePort"
    command = [browser, "--headless", "--marionette", "--no-remote", "--profile", str(folder)]
    with program(command) as running:
        until(lambda: port.exists() and port.read_text(), running)
        address = ("127.0.0.1", int(port.read_text()))
        with socket.create_connection(address, ANSWER_S) as to, to.makefile("rb") as reader:
            yield Page("Firefox", marionette(to, reader))


BROWSERS = {"chromium": chromium, "firefox": firefox, "webkit": webkit}


@contextlib.contextmanager
def driver(program_: str, capabilities: dict[str, Any], **environment: str) -> Iterator[Send]:
    """Run a driver, which starts a browser."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

    def listens() -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return True
        return False

    def request(method: str, address: str, value: object = None) -> Any:
        body = json.dumps(value).encode() if method == "POST" else None
        asked = urllib.request.Request(f"http://127.0.0.1:{port}{address}", body, method=method)
        asked.add_header("Content-Type", "application/json; charset=utf-8")
        try:
            with urllib.request.urlopen(asked, timeout=ANSWER_S) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            with error:
                raise WebDriverError(error.read().decode()) from None

    with program([program_, f"--port={port}"], **environment) as running:
        until(listens, running)
        wanted = {"capabilities": {"alwaysMatch": capabilities}}
        session = f"/session/{request('POST', '/session', wanted)['sessionId']}"
        try:
            yield lambda command, given: request(
                "POST", session + COMMANDS[command].format_map(given), given
            )
        finally:
            request("DELETE", session)


def marionette(connection: socket.socket, reader: IO[bytes]) -> Send:
    """Open a session with Firefox: messages are a length, a colon, and JSON."""
    numbers = itertools.count(1)

    def read() -> Any:
        length = b"".join(iter(lambda: reader.read(1), b":"))
        return json.loads(reader.read(int(length)))

    def send(command: str, given: dict[str, Any]) -> Any:
        number = next(numbers)
        message = json.dumps([0, number, f"WebDriver:{command}", given]).encode()
        connection.sendall(b"%d:%b" % (len(message), message))
        _, answered, error, value = read()
        assert answered == number
        if error:
            raise WebDriverError(f"{error['error']}: {error['message']}")
        return value.get("value", value)

    assert read()["marionetteProtocol"] == 3
    send("NewSession", {"capabilities": {"alwaysMatch": {}}})
    return send


def needed(name: str, package: str) -> str:
    """Return the path of a program; skip where it is absent."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"needs {name}: apt install {package}")
    return path


@contextlib.contextmanager
def program(
    command: list[str], stdout: int = subprocess.DEVNULL, **environment: str
) -> Iterator[Any]:
    """Run a program until the end of the block."""
    running = subprocess.Popen(
        command, stdout=stdout, stderr=subprocess.DEVNULL, env=os.environ | environment
    )
    try:
        yield running
    finally:
        running.terminate()
        try:
            running.wait(END_S)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
        if running.stdout:
            running.stdout.close()


def until(ready: Callable[[], Any], running: subprocess.Popen[bytes]) -> None:
    """Wait until a program is ready."""
    end = time.monotonic() + START_S
    while not ready():
        if running.poll() is not None or time.monotonic() > end:
            raise WebDriverError(f"{running.args!r} did not start")
        time.sleep(0.05)
