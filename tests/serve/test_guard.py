"""Whom the studio lets in, and what its page may load."""

import re
import socket

import numpy as np
import pytest

from tests.conftest import tone
from tests.serve.conftest import HOME, HOST, LIVE, TOKEN, client_of, learn, spoken, words_of

pytest.importorskip("starlette", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("uvicorn", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("httpx2", reason="needs httpx2, which the test client is made of")

from starlette.websockets import WebSocketDisconnect

from tapword.serve.studio.app import STATIC


def test_own_page(client):
    page = client.get("/")
    assert page.status_code == 200 and "tapword" in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "*" not in policy
    assert f"ws://{HOST}" in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    for name in ("main.js", "style.css", "capture.js", "icon.svg"):
        assert client.get(f"/static/{name}").status_code == 200
    assert client.get("/static/%2e%2e/app.py").status_code == 404


def test_the_page_loads_nothing_from_elsewhere():
    for file in STATIC.iterdir():
        text = file.read_text()
        outside = text.replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in outside and "https://" not in outside, file.name
    page = (STATIC / "index.html").read_text()
    assert " style=" not in page and " onclick=" not in page and "<script>" not in page


def test_colours_are_told_apart():
    """Text on every ground it stands on: a contrast of 4.5 at least, light and dark."""
    text = (STATIC / "style.css").read_text()
    schemes = [
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6});", block))
        for block in re.findall(r":root \{(.*?)\}", text, re.DOTALL)
    ]
    assert len(schemes) == 2
    for colours in schemes:
        for ink in ("ink", "soft", "accent", "warn", "danger"):
            for ground in ("card", "ground", "field"):
                assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
        assert contrast(colours["on-accent"], colours["accent"]) >= 4.5
        assert contrast(colours["ink"], colours["tint"]) >= 4.5


def contrast(one, two):
    """Ratio of the lighter luminance to the darker, by the rule of WCAG 2."""

    def luminance(colour):
        digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
        parts = np.array([int(digits[at : at + 2], 16) for at in (0, 2, 4)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return linear @ np.array([0.2126, 0.7152, 0.0722])

    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8642", "192.168.0.7:8642", ""])
def test_other_names_are_turned_away(client, host):
    answer = client.get("/api/state", headers={"host": host})
    assert answer.status_code == 421 and "words" not in answer.text
    with pytest.raises(WebSocketDisconnect):
        client.websocket_connect(
            f"ws://{host or HOST}/api/live", headers=HOME | {"host": host}
        ).__enter__()


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", f"https://{HOST}", "http://127.0.0.1:9999", None]
)
def test_other_pages_are_turned_away(client, path, origin):
    headers = {} if origin is None else {"origin": origin}
    del client.headers["origin"]
    sound = spoken(tone(300, 0.5))
    changes = ("/api/learn?word=x", "/api/forget", "/api/rename", "/api/remove", "/api/undo")
    for target in (*changes, "/api/sensitivity", "/api/model?how=add"):
        assert client.post(target, content=sound, headers=headers).status_code == 403
    assert not path.exists()
    with pytest.raises(WebSocketDisconnect) as refused:
        client.websocket_connect(LIVE, headers=headers).__enter__()
    assert refused.value.code == 1008


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]:8642", "LOCALHOST:1"])
def test_this_machine_by_any_of_its_names(client, host):
    assert client.get("/api/state", headers={"host": host}).status_code == 200


BASE = "http://192.168.0.7:8642"


@pytest.mark.parametrize(("host", "base"), [("127.0.0.1", f"http://{HOST}"), ("0.0.0.0", BASE)])
def test_nothing_without_the_token(model, host, base):
    """Also on this machine, which others may use."""
    line_address = f"{base.replace('http', 'ws')}/api/live"
    with client_of(model, host, base) as client:
        del client.headers["authorization"]
        client.headers["origin"] = base
        targets = ("/", "/api/state", "/static/main.js", "/api/model", "/?token=wrong", "/none")
        targets += ("/api/phone", "/api/export/onnx")
        for target in (*targets, f"/api/state?token={TOKEN}"):
            answer = client.get(target)
            assert answer.status_code == 403 and "the link that the command printed" in answer.text
            assert answer.headers["connection"] == "close" and "set-cookie" not in answer.headers
        for target in ("/api/forget", "/api/rename", "/api/undo", "/api/model?how=add"):
            assert client.post(target, content=b"{}").status_code == 403
        assert learn(client, "lamp").status_code == 403
        with pytest.raises(WebSocketDisconnect):
            client.websocket_connect(line_address, headers={"origin": base}).__enter__()
        right, wrong = ({"authorization": f"Bearer {text}"} for text in (TOKEN, TOKEN + "x"))
        assert client.get("/api/state", headers=right).status_code == 200
        assert client.get("/api/state", headers=wrong).status_code == 403
        answer = client.get(f"/?token={TOKEN}")
        assert answer.status_code == 200 and "url=/" in answer.text and TOKEN not in answer.text
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=strict" in cookie
        # From here on the cookie will do.
        page = client.get("/").text
        assert 'id="teach"' in page
        assert learn(client, "lamp").status_code == 200
        with client.websocket_connect(line_address, headers={"origin": base}) as line:
            assert words_of(line.receive_json()) == {"lamp": 1}
        # Whoever has the cookie and opens the link again must not be left with it either.
        assert client.get(f"/?token={TOKEN}").text == answer.text != page


def test_the_token_is_compared_in_constant_time(client, monkeypatch):
    compared = []

    def compare(one, other):
        compared.append((one, other))
        return one == other

    monkeypatch.setattr("hmac.compare_digest", compare)
    assert client.get("/api/state").status_code == 200
    assert (TOKEN.encode(), TOKEN.encode()) in compared


def test_studios_on_two_ports_have_cookies_of_their_own(client):
    """Also when the ports are those of tunnels to two machines."""
    names = set()
    for port in (8642, 9000):
        answer = client.get(f"/?token={TOKEN}", headers={"host": f"localhost:{port}"})
        names.add(answer.headers["set-cookie"].partition("=")[0])
    assert names == {"tapword_studio_8642", "tapword_studio_9000"}


def test_an_open_studio_answers_to_addresses_and_its_own_names(model):
    with client_of(model, "0.0.0.0", BASE) as client:
        for host in ("10.1.2.3:80", "[fe80::1]:80", "localhost", socket.gethostname()):
            assert client.get("/api/state", headers={"host": host}).status_code == 200
        for host in ("evil.example", "10.1.2.3.evil.example", "1.2.3", "a:b"):
            assert client.get("/api/state", headers={"host": host}).status_code == 421


def test_any_address_of_this_machine_alone(model):
    with client_of(model, "127.0.0.2", "http://127.0.0.2:8642") as client:
        assert client.get("/api/state").status_code == 200
        assert client.get("/api/state", headers={"host": "10.1.2.3"}).status_code == 421
