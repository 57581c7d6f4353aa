"""The studio inside Home Assistant: whom it trusts, and its page below a path."""

import json
import re

import pytest

from tapword.errors import InputError
from tests.conftest import tone
from tests.serve.conftest import TOKEN, learn, running, spoken, words_of
from tests.serve.ingress_proxy import PATH, PROXY, proxied

pytest.importorskip("starlette", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("uvicorn", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("httpx2", reason="needs httpx2, which the test client is made of")

import httpx2
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from websockets.sync.client import connect

from tapword.serve.studio.app import STATIC, studio
from tapword.serve.studio.ingress import SUPERVISOR, Ingress

HOME = "http://homeassistant.local:8123"
FORWARDED = {"x-ingress-path": PATH, "x-remote-user-id": "1234", "origin": HOME}
LIVE = f"{HOME.replace('http', 'ws')}/api/live"


def through(model, address=SUPERVISOR, ingress=SUPERVISOR, headers=FORWARDED, base=HOME):
    """Give a way to the studio that comes from an address."""
    application = studio(model, "0.0.0.0", TOKEN, ingress=Ingress(ingress))
    return TestClient(application, base_url=base, headers=headers, client=(address, 5000))


@pytest.mark.parametrize("address", [SUPERVISOR, f"::ffff:{SUPERVISOR}"])
def test_what_ingress_forwards_needs_no_token(model, address):
    with through(model, address) as client:
        page = client.get("/")
        assert page.status_code == 200 and 'id="teach"' in page.text
        assert "set-cookie" not in page.headers
        assert learn(client, "lamp").status_code == 200
        with client.websocket_connect(LIVE, headers=FORWARDED) as line:
            assert words_of(line.receive_json()) == {"lamp": 1}


def test_home_assistant_may_show_it_in_a_frame_and_nobody_else(model, client):
    with through(model) as forwarded:
        policy = forwarded.get("/").headers["content-security-policy"]
    assert "frame-ancestors 'self'" in policy
    assert f"{LIVE.removesuffix('/api/live')} wss://homeassistant.local:8123;" in policy
    assert "frame-ancestors 'none'" in client.get("/").headers["content-security-policy"]


def test_a_strange_host_name_is_not_put_into_the_policy(model):
    with through(model) as client:
        answer = client.get("/", headers={"host": "evil.example; script-src *"})
    assert "script-src *" not in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("address", "ingress", "shown"),
    [
        # A forged header: from the network, from another container, from this machine.
        ("192.168.0.9", SUPERVISOR, PATH),
        ("172.30.33.7", SUPERVISOR, PATH),
        ("127.0.0.1", SUPERVISOR, PATH),
        ("testclient", SUPERVISOR, PATH),
        # The right address, where nobody switched it on.
        (SUPERVISOR, None, PATH),
        # The Supervisor's other requests, and paths that it never sends.
        (SUPERVISOR, SUPERVISOR, None),
        (SUPERVISOR, SUPERVISOR, ""),
        (SUPERVISOR, SUPERVISOR, "/"),
        (SUPERVISOR, SUPERVISOR, f"{PATH}/more"),
        (SUPERVISOR, SUPERVISOR, f"/elsewhere{PATH}"),
    ],
)
def test_everything_else_needs_the_token(model, shown, address, ingress):
    model.learn(tone(300), "lamp")
    base = "http://192.168.0.7:8642"
    headers = {"origin": base, "x-remote-user-id": "1234", "x-forwarded-for": SUPERVISOR}
    headers |= {} if shown is None else {"x-ingress-path": shown}
    with through(model, address, ingress, headers, base) as client:
        for target in ("/", "/api/state", "/static/main.js", "/api/model"):
            assert client.get(target).status_code == 403
        assert learn(client, "lamp").status_code == 403
        line = f"{base.replace('http', 'ws')}/api/live"
        with pytest.raises(WebSocketDisconnect):
            client.websocket_connect(line, headers=headers).__enter__()
        bearer = {"authorization": f"Bearer {TOKEN}"}
        assert client.get("/api/state", headers=bearer).status_code == 200
    assert model.spotter.words == {"lamp": 1}


def test_two_paths_are_one_too_many(model):
    with through(model, base="http://192.168.0.7:8642") as client:
        assert client.get("/").status_code == 200
        both = [("x-ingress-path", PATH), ("x-ingress-path", PATH)]
        assert client.get("/", headers=both).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", None])
def test_pages_of_other_sites_change_nothing_through_ingress(model, path, origin):
    headers = {"x-ingress-path": PATH} | ({} if origin is None else {"origin": origin})
    with through(model, headers=headers) as client:
        assert client.get("/").status_code == 200
        assert learn(client, "lamp").status_code == 403
        with pytest.raises(WebSocketDisconnect):
            client.websocket_connect(LIVE, headers=headers).__enter__()
    assert not path.exists()


@pytest.mark.parametrize(
    ("origin", "host", "forwarded"),
    [
        ("https://homeassistant.local:8123", "homeassistant.local:8123", None),
        ("https://my.example", "my.example", None),
        ("https://my.example", "10.0.0.2:8123", "my.example"),
    ],
)
def test_home_assistant_behind_a_proxy_with_tls(model, origin, host, forwarded):
    headers = {"x-ingress-path": PATH, "origin": origin, "host": host}
    headers |= {} if forwarded is None else {"x-forwarded-host": forwarded}
    with through(model, headers=headers) as client:
        assert learn(client, "lamp").status_code == 200


@pytest.mark.parametrize("address", ["", "supervisor", "172.30.32.0/23"])
def test_the_proxy_is_one_address(address):
    with pytest.raises(InputError, match="the address of Home Assistant's proxy"):
        Ingress(address)


def test_the_page_and_its_socket_work_below_a_path(model):
    """Through a stand-in for the proxies of Home Assistant, over real connections."""
    with running(model, ingress=PROXY) as studio, proxied(studio.port) as page:
        origin = page.partition("/api/")[0]
        with httpx2.Client(headers={"origin": origin}) as browser:
            text = browser.get(page).text
            for name in re.findall(r'(?:src|href)="(static/[^"]+)"', text):
                assert browser.get(page + name).status_code == 200
            sound = spoken(tone(300, 0.5))
            taught = browser.post(f"{page}api/learn?word=lamp", content=sound)
            assert taught.status_code == 200
            assert len(browser.get(f"{page}api/model").content) > 1000
            # The same without the proxy, and with its header from here.
            for headers in ({}, {"x-ingress-path": PATH}):
                answer = browser.get(f"http://127.0.0.1:{studio.port}/", headers=headers)
                assert answer.status_code == 403
        live = f"{page.replace('http', 'ws')}api/live"
        with connect(live, origin=origin, compression=None) as line:
            assert words_of(json.loads(line.recv())) == {"lamp": 1}
            line.send(json.dumps({"type": "listen"}))
            assert json.loads(line.recv())["type"] == "listen"
    with running(model) as studio, proxied(studio.port) as page:
        assert httpx2.get(page).status_code == 403


def test_all_addresses_of_the_page_are_relative():
    for file in STATIC.iterdir():
        if file.suffix in (".js", ".html", ".css"):
            assert not re.search(r"""["'`(]/(api|static)\b""", file.read_text()), file.name
