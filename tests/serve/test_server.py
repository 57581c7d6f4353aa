"""The studio on a port: the socket, TLS, and connections that ask for nothing."""

import contextlib
import hashlib
import socket
import ssl
import stat
import tempfile
from pathlib import Path

import pytest

from tapword.errors import InputError
from tests.serve.conftest import running

pytest.importorskip("starlette", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("uvicorn", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("httpx2", reason="needs httpx2, which the test client is made of")

import httpx2 as httpx

from tapword.serve.studio import certificate, server
from tapword.serve.studio.limits import Limits


def test_connections_that_ask_for_nothing_are_closed(model):
    idle = []
    with running(model, limits=Limits(head_s=0.5)) as studio:
        try:
            with httpx.Client(base_url=studio.origin, headers=studio.bearer) as other:
                # A page that is already open, with a request behind it, is left alone.
                assert other.get("/api/state").status_code == 200
                for beginning in (b"", b"GET / HTTP/1.1\r\nHost: x\r\n") * 110:
                    idle.append(socket.create_connection(("127.0.0.1", studio.port), timeout=5))
                    idle[-1].sendall(beginning)
                for connection in idle:
                    with contextlib.suppress(ConnectionResetError):
                        assert connection.recv(100) == b""
                assert other.get("/api/state").status_code == 200
        finally:
            for connection in idle:
                connection.close()


def test_a_port_in_use():
    with server.bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"cannot use port {port}.*--port 0"):
            server.bind("127.0.0.1", port)
    for port in (-1, 65_536):
        with pytest.raises(InputError, match=r"must lie in 0\.\.65535"):
            server.bind("127.0.0.1", port)
    with pytest.raises(InputError, match="no address named"):
        server.bind("no.such.host.invalid", 0)


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
