"""The service and the studio in one process end together."""

import signal
import subprocess
import sys

import pytest

pytest.importorskip("starlette", reason="needs the extra web")
pytest.importorskip("wyoming", reason="needs the extra wyoming")

# A home that gets a signal after its service began and before its studio does.
PROGRAM = """
import os
import sys
from tapword.serve.home.model import HomeModel
from tapword.serve.home.pages import Home
from tapword.serve.home.run import serve
from tapword.serve.studio.launch import prepare
from tapword.serve.wyoming.service import SERVICE_INFO

home = Home(HomeModel(sys.argv[1], clients=None), None)
studio = prepare(home.model, port=0, extension=home)
serve(home, studio, "127.0.0.1", 0, SERVICE_INFO, lambda *_: os.kill(os.getpid(), int(sys.argv[2])))
print("ended")
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda one: one.name)
def test_a_signal_that_comes_while_it_starts_ends_it(tmp_path, number):
    command = [sys.executable, "-c", PROGRAM, tmp_path / "home.tap", str(int(number))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("ended\n", 0), done.stderr
