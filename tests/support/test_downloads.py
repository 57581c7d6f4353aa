"""Downloads: addresses that are none, and servers that take their time."""

import contextlib
import socket
import threading
import time

import pytest

from tapword.errors import InputError
from tapword.support import downloads

HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://127.0.0.1/x", "file:///etc/passwd", "", "http://", "http://[::1", "https://a b/"),
        *(
            "http://127.0.0.1:port/",
            "http://127.0.0.1:99999/",
            "http://a..b/",
            "http://h/a b",
            "http://h/é",
        ),
    ],
)
def test_what_is_not_an_address_is_refused(tmp_path, url):
    with pytest.raises(InputError, match="address"):
        downloads.download(url, tmp_path / "file", 1000)


@contextlib.contextmanager
def trickling(start):
    """Serve one request: the start of an answer, then a byte now and then."""
    ended = threading.Event()

    def serve(server):
        connection, _ = server.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(10_000)
            connection.sendall(start)
            while not ended.wait(0.02):
                connection.sendall(b"1")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=[server])
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/file"
        ended.set()
        thread.join()


@pytest.mark.parametrize(
    "start",
    [
        *(HEAD, HEAD + b"Content-Length: 1000000\r\n\r\n", HEAD + b"\r\n"),
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n10000\r\n",
    ],
    ids=["head", "length", "no length", "size of a chunk", "chunk"],
)
def test_a_download_has_a_deadline(tmp_path, monkeypatch, start):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(downloads, "ANSWER_S", 0.3)
    monkeypatch.setattr(downloads, "TIMEOUT_S", 0.3)
    monkeypatch.setattr(downloads, "SLOWEST_BYTES_PER_S", 10**9)
    began = time.monotonic()
    with trickling(start) as url, pytest.raises(downloads.TooLate):
        downloads.download(url, tmp_path / "file", 10**6)
    assert time.monotonic() - began < 20
    assert list(tmp_path.iterdir()) == []
