"""The studio on a port: the socket, TLS, and connections that ask for nothing."""

import contextlib
import hashlib
import os
import shutil
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tapword.errors import InputError
from tests.conftest import tone
from tests.serve.conftest import SMALL, running

pytest.importorskip("starlette", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("uvicorn", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("httpx2", reason="needs httpx2, which the test client is made of")

import httpx2 as httpx

from tapword.cli.export import header_of
from tapword.serve.studio import certificate, launch
from tapword.serve.studio.limits import ServerLimits
from tapword.serve.studio.model import StudioModel
from tapword.spotter.spotter import Spotter

# Strangers, and those who have the token and take their time.


@pytest.fixture
def lines():
    """Connections to a port: as many as wanted, each beginning with some bytes."""
    with contextlib.ExitStack() as stack:

        def open_lines(port, beginning=b"", count=1):
            made = []
            for _ in range(count):
                line = stack.enter_context(socket.create_connection(("127.0.0.1", port), 10))
                line.sendall(beginning)
                made.append(line)
            return made

        yield open_lines


def head_of(studio, request="GET /api/state", more=""):
    """Head of a request that shows the token."""
    bearer = studio.bearer["authorization"]
    host = f"127.0.0.1:{studio.port}"
    return f"{request} HTTP/1.1\r\nHost: {host}\r\nAuthorization: {bearer}\r\n{more}\r\n".encode()


def read_all(line) -> bytes:
    """Read until the other side has closed the connection, in order or not."""
    content = b""
    with contextlib.suppress(ConnectionResetError):
        while part := line.recv(1 << 16):
            content += part
    return content


def page_id(studio):
    return httpx.Client(base_url=studio.origin, headers=studio.bearer)


def test_unauthenticated_connections_never_take_the_places_of_those_with_the_token(model, lines):
    limits = ServerLimits(unauthenticated=20)
    with running(model, limits=limits) as studio, page_id(studio) as page:
        idle = lines(studio.port, count=100)
        begun = lines(studio.port, b"GET / HTTP/1.1\r\nHost: x\r\n", count=100)
        assert page.get("/api/state").status_code == 200
        assert len(studio.server.unauthenticated) <= limits.unauthenticated
        # The oldest went.
        assert [read_all(line) for line in idle] == 100 * [b""]
        begun[-1].sendall(b"\r\n")
        assert read_all(begun[-1]).startswith(b"HTTP/1.1 403 ")


def test_whoever_is_refused_is_not_waited_for(model, lines):
    """Not one of them may go on with what was refused."""
    with running(model) as studio, page_id(studio) as page:
        beginning = b"POST /api/learn?word=x HTTP/1.1\r\nContent-Length: 100000\r\n\r\n"
        for line in lines(studio.port, beginning, count=199):
            answer = read_all(line)
            assert b" 403 " in answer and b"the link that the command printed" in answer
        assert not studio.server.unauthenticated
        assert page.get("/api/state").status_code == 200


def test_more_pages_than_there_are_places(model, lines):
    with running(model, limits=ServerLimits(connections=2)) as studio:
        first, second, third = lines(studio.port, head_of(studio), count=3)
        assert first.recv(100).startswith(b"HTTP/1.1 200 ")
        assert second.recv(100).startswith(b"HTTP/1.1 200 ")
        assert read_all(third).startswith(b"HTTP/1.1 503 ")
        first.close()
        while len(studio.server.authenticated) > 1:
            time.sleep(0.01)
        [again] = lines(studio.port, head_of(studio))
        assert again.recv(100).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "beginning",
    [b"", b"GET / HTTP/1.1\r\nHost: x\r\n", "token", "token and a body"],
    ids=["nothing", "half a head", "after an answer", "body after an answer"],
)
def test_whole_heads_have_a_deadline(model, lines, beginning):
    """Bytes that come now and then do not put it off."""
    with running(model, limits=ServerLimits(head_s=0.6)) as studio, page_id(studio) as page:
        if isinstance(beginning, str):
            body = "Content-Length: 100000\r\n" if "body" in beginning else ""
            beginning = head_of(studio, more=body)
        [line] = lines(studio.port, beginning)
        begun = time.monotonic()
        with pytest.raises(OSError):
            while time.monotonic() < begun + 5:
                line.sendall(b"X")
                time.sleep(0.05)
        assert time.monotonic() - begun < 4
        assert page.get("/api/state").status_code == 200


@pytest.mark.parametrize("more", [b"a" * 20_000, 1_000 * b"a:b\r\n"], ids=["long", "many lines"])
def test_large_heads_are_not_read(model, lines, more):
    with running(model) as studio:
        [line] = lines(studio.port)
        with contextlib.suppress(ConnectionError):
            line.sendall(b"GET / HTTP/1.1\r\n" + more + b"\r\n\r\n")
        assert read_all(line) == b""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads memory from /proc")
def test_unread_downloads_are_not_held_and_end(model, path, lines):
    model.learn(tone(300), "lamp")
    with path.open("ab") as file:
        file.truncate(64 << 20)
    limits = ServerLimits(send_s=1.0)
    with running(model, limits=limits) as studio, page_id(studio) as page:
        before = memory_mb()
        lines(studio.port, 5 * head_of(studio, "GET /api/model"), count=8)
        while page.get("/api/state").status_code == 200 and len(studio.server.authenticated) < 9:
            pass
        time.sleep(0.5)
        # Held whole they would be half a gigabyte; what the system buffers is not counted.
        assert memory_mb() - before < 50
        give_up = time.monotonic() + 10
        while len(studio.server.authenticated) > 1 and time.monotonic() < give_up:
            page.get("/api/state")
            time.sleep(0.05)
        assert len(studio.server.authenticated) == 1


# More than the kernel buffers of one connection, and more than `unsent_bytes`.
EXPORT = bytes(range(256)) * 12_000


@pytest.fixture
def exporting(path):
    model = StudioModel(path, SMALL, exports={"h": lambda _: EXPORT})
    model.learn(tone(300), "lamp")
    return model


def slow_line(studio, more=""):
    """Ask for an export on a connection that buffers little."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.settimeout(10)
    line.connect(("127.0.0.1", studio.port))
    if studio.origin.startswith("https"):
        line = ssl._create_unverified_context().wrap_socket(line)
    line.sendall(head_of(studio, "GET /api/export/h", more))
    return line


def read_slowly(line, seconds: float) -> bytes:
    """Read an export in about this time."""
    content, length = bytearray(), len(EXPORT)
    begun = time.monotonic()
    while (body := len(content.partition(b"\r\n\r\n")[2])) < length:
        time.sleep(max(0.0, begun + seconds * body / length - time.monotonic()))
        if not (part := line.recv(1 << 16)):
            break
        content += part
    return bytes(content.partition(b"\r\n\r\n")[2])


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("more", ["", "Connection: close\r\n"], ids=["kept", "closed"])
def test_a_slow_reader_gets_the_whole_export(exporting, caplog, more, tls):
    if tls:
        pytest.importorskip("cryptography", reason="needs the extra web")
    # Every block arrives in time, all of them together do not.
    limits = ServerLimits(send_s=1.0, close_s=0.1, head_s=0.5)
    with running(exporting, tls=tls, limits=limits) as studio, slow_line(studio, more) as line:
        assert read_slowly(line, 3.0) == EXPORT
    assert not caplog.records


def test_an_answer_that_is_cut_off_is_logged(exporting, caplog):
    with running(exporting, limits=ServerLimits(send_s=0.3)) as studio, slow_line(studio) as line:
        while not studio.server.authenticated:
            time.sleep(0.01)
        while studio.server.authenticated:
            time.sleep(0.01)
        assert len(read_all(line)) < len(EXPORT)
    [record] = caplog.records
    message = "the answer to /api/export/h was cut off: it was not read within 0.3 s"
    assert (record.levelname, record.getMessage()) == ("WARNING", message)


def test_answers_about_thousands_of_words_arrive_whole(path):
    words = [f"word number {number}" for number in range(4_000)]
    spotter = Spotter(backbone="logmel", pooling="tap:R=6", learner="ncm")
    encoded = spotter.encode([tone(300 + number, 0.3) for number in range(4)])
    spotter.learn_encoded(encoded[[number % 4 for number in range(len(words))]], words)
    spotter.save(path)
    header = header_of(spotter)
    assert len(header) > 10_000_000
    model = StudioModel(path, exports={"h": lambda _: header})
    with running(model) as studio, page_id(studio) as page:
        assert [entry["word"] for entry in page.get("/api/state").json()["words"]] == words
        assert page.get("/api/model").content == path.read_bytes()
        assert page.get("/api/export/h").content == header


IN_A_NAMESPACE = ["unshare", "--net", "--map-root-user", "sh", "-c"]
SET_MTU = "ip link set lo mtu 1500 up"


def test_an_export_arrives_whole_in_packets_of_a_real_network(tmp_path):
    """Loopback takes 64 kB at a time, a real network 1500 bytes."""
    if not shutil.which("unshare") or subprocess.run([*IN_A_NAMESPACE, SET_MTU]).returncode:
        pytest.skip("this system allows no network namespaces")
    command = [*IN_A_NAMESPACE, f'{SET_MTU} && exec "$@"', "sh", sys.executable, "-m"]
    command += ["tests.serve.test_server", str(tmp_path / "home.tap")]
    subprocess.run(command, cwd=Path(__file__).parents[2], check=True)


def export_over_a_network(path: Path) -> None:
    """Download the exports of a model, of this network's packets; an error where one is cut off."""
    exports = {"h": lambda _: EXPORT, "onnx": lambda _: EXPORT[::-1]}
    model = StudioModel(path, SMALL, exports=exports)
    model.learn(tone(300), "lamp")
    with running(model) as studio, page_id(studio) as page:
        for kind, export in exports.items():
            assert page.get(f"/api/export/{kind}").content == export(None)


def memory_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


UPGRADE = (
    "Origin: http://127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


@pytest.mark.parametrize(
    "flood",
    [
        1_000 * (b"\x89\xfd\0\0\0\0" + bytes(125)),
        b"\x02\x80\0\0\0\0" + 10_000 * b"\0\x80\0\0\0\0",
    ],
    ids=["unread answers to pings", "a message of empty parts"],
)
def test_floods_end_the_line(model, lines, flood):
    with running(model, limits=ServerLimits(unsent_bytes=1 << 17)) as studio:
        upgrade = head_of(studio, "GET /api/live", UPGRADE.format(port=studio.port))
        [line] = lines(studio.port, upgrade)
        assert line.recv(12) == b"HTTP/1.1 101"
        with pytest.raises(ConnectionError):
            for _ in range(1_000):
                line.sendall(flood)
        while studio.server.authenticated:
            time.sleep(0.01)


def test_what_clients_do_wrong_is_not_in_the_log(model, lines, caplog):
    with running(model) as studio:
        upgrade = head_of(studio, "GET /api/live", UPGRADE.format(port=studio.port))
        for beginning in (
            b"\x1b[31m nonsense\r\n\r\n",
            head_of(studio, "GET /\x1b[31m"),
            head_of(studio, more="Upgrade: \x1b[31m\r\nConnection: Upgrade, close\r\n"),
            head_of(studio, "GET /api/live", "Upgrade: websocket\r\nConnection: Upgrade\r\n"),
        ):
            [line] = lines(studio.port, beginning)
            assert read_all(line)
        no_text = b"\x81\x82\0\0\0\0\xff\xfe"
        [early] = lines(studio.port, upgrade + no_text)
        read_all(early)
        [line] = lines(studio.port, upgrade)
        assert line.recv(12) == b"HTTP/1.1 101"
        line.sendall(no_text)
        # The frame that closes the line: not a text (1007).
        assert read_all(line).endswith(b"\x88\x02\x03\xef")
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]


def test_a_handshake_has_a_deadline(model, lines):
    pytest.importorskip("cryptography", reason="needs the extra web")
    with running(model, tls=True, limits=ServerLimits(head_s=0.5)) as studio:
        for beginning in (b"", b"\x16\x03\x01\x02\x00"):
            [line] = lines(studio.port, beginning)
            assert read_all(line) == b""
        assert not studio.server.unauthenticated
        with httpx.Client(base_url=studio.origin, headers=studio.bearer, verify=False) as page:
            assert page.get("/api/state").status_code == 200


def test_a_port_in_use():
    with launch.bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"cannot use port {port}.*--port 0"):
            launch.bind("127.0.0.1", port)
    for port in (-1, 65_536):
        with pytest.raises(InputError, match=r"must be in 0\.\.65535"):
            launch.bind("127.0.0.1", port)
    with pytest.raises(InputError, match="no address named"):
        launch.bind("no.such.host.invalid", 0)


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_a_key_that_all_can_read_is_refused(tmp_path):
    pytest.importorskip("cryptography", reason="needs the extra web")
    public, key, _ = certificate.self_signed(["localhost"])
    files = tmp_path / "certificate.pem", tmp_path / "key.pem"
    for file, content in zip(files, (public, key), strict=True):
        file.write_bytes(content)
    files[1].chmod(0o604)
    with pytest.raises(InputError, match=r"^all users can read the key .*: chmod 600"):
        certificate.read(*files)
    files[1].chmod(0o640)
    assert isinstance(certificate.read(*files), ssl.SSLContext)


def test_a_certificate_for_the_phone(tmp_path, monkeypatch):
    pytest.importorskip("cryptography", reason="needs the extra web")
    public, key, fingerprint = certificate.self_signed(["192.168.0.7", "localhost"])
    der = ssl.PEM_cert_to_DER_cert(public.decode())
    assert hashlib.sha256(der).hexdigest().upper() == fingerprint.replace(":", "")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    modes = {}
    load = ssl.SSLContext.load_cert_chain

    def look(self, certfile, keyfile):
        modes[Path(keyfile).name] = stat.S_IMODE(Path(keyfile).stat().st_mode)
        return load(self, certfile, keyfile)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", look)
    assert isinstance(certificate.context(public, key), ssl.SSLContext)
    assert modes == {"key.pem": 0o600} and not list(scratch.iterdir())


if __name__ == "__main__":
    export_over_a_network(Path(sys.argv[1]))
