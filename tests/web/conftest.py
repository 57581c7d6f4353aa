"""The page without a server, built once and served by a plain file server."""

import functools
import shutil
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.conftest import ROOT

TOOLS = ("clang", "wasm-ld")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the page once, with the package in it; and lay out the example as it is here."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing or not Path("/usr/include/wasm32-wasi").exists():
        pytest.skip("needs a compiler to WebAssembly: apt install clang lld wasi-libc")
    folder = tmp_path_factory.mktemp("site")
    build = ROOT / "web" / "build.py"
    subprocess.run([sys.executable, build, "try", folder / "try"], check=True)
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copytree(folder / "try" / "core", folder / "build" / "web" / "core")
    return folder


class Quiet(SimpleHTTPRequestHandler):
    """A plain file server, which says nothing."""

    def log_message(self, *_):
        pass


@pytest.fixture
def server(site):
    handler = functools.partial(Quiet, directory=site)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        stop(server)
        thread.join()


def stop(server):
    server.shutdown()
    server.server_close()
