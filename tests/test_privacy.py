"""No command talks to anybody or writes anywhere it was not told to, by a dependency either."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tapword.assets import CLIPS
from tapword.audio import files
from tests.conftest import tone

CALLS = "connect,sendto,sendmsg,open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink"
LAMP, MUSIC = (sorted((CLIPS / word).glob("*_0.ogg"))[:4] for word in ("lamp", "music"))
# A model's life; whatever is written lies beside it.
COMMANDS = [
    ["learn", "home.tap", "lamp", *LAMP],
    ["learn", "home.tap", "words"],
    ["predict", "home.tap", MUSIC[0]],
    ["reject", "home.tap", MUSIC[0]],
    ["info", "home.tap"],
    ["sensitivity", "home.tap", "0.6", "--word", "lamp"],
    ["calibrate", "home.tap", "room.wav"],
    ["listen", "home.tap", "tone.wav"],
    ["rename", "home.tap", "lamp", "light"],
    ["merge", "both.tap", "home.tap"],
    ["forget", "home.tap", "light"],
    ["undo", "home.tap"],
    ["forget", "home.tap", "light", "--erase"],
    ["export", "both.tap", "both.onnx", "--quantize"],
    ["export", "both.tap", "both.h"],
    ["export", "ear_s", "device.bin"],
    ["import", "device.bin", "device.tap"],
    [
        "evaluate",
        "--data",
        "words",
        "--shots",
        "1",
        "--draws",
        "1",
        "--jobs",
        "1",
        "--out",
        "r.html",
    ],
    ["list", "backbones"],
    ["--help"],
]


# All in one process, which starts once; a few seconds of sound are enough to calibrate by.
PROGRAM = """
import json, sys
from tapword import cli
from tapword.listening import calibration

calibration.MIN_SOUND_S = 2
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["tapword", *arguments]
    try:
        cli.main()
    except SystemExit as stop:
        assert not stop.code, arguments
    print("done:", *arguments)
"""


def traced(folder: Path, commands: list[list]) -> list[str]:
    """System calls of commands that speak to a network or change the disk outside of a folder."""
    log = folder.parent / "trace"
    command = ["strace", "-f", "-qq", "-e", f"trace={CALLS}", "-o", str(log)]
    command += [sys.executable, "-c", PROGRAM, json.dumps(commands, default=str)]
    home = {"HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | home | {"TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-1000:]
    assert done.stdout.count("\ndone: ") == len(commands)
    found = []
    for line in log.read_text(errors="replace").splitlines():
        # A socket that nothing is sent through, as uuid uses one to read an address, is no speech.
        network = re.search(r"\b(connect|sendto|sendmsg)\(.*(AF_INET|nscd)", line)
        written = re.search(r"O_WRONLY|O_RDWR|O_CREAT|\b(creat|mkdir\w*|rename\w*|unlink)\(", line)
        paths = re.findall(r'"((?:[^"\\]|\\.)*)"', line)
        inside = (str(folder), "/dev/", "/proc/self/")
        outside = any(path.startswith("/") and not path.startswith(inside) for path in paths)
        if network or (written and outside and " = -1 " not in line):
            found.append(line)
    return found


@pytest.fixture
def folder(tmp_path):
    """A place to work in, with clips in it; the user's own folders lie below it."""
    if (
        shutil.which("strace") is None
        or subprocess.run(["strace", "-o", "/dev/null", "true"]).returncode
    ):
        pytest.skip("needs strace, and to be allowed to trace")
    made = tmp_path / "work"
    for word, paths in (("lamp", LAMP), ("music", MUSIC)):
        (made / "words" / word).mkdir(parents=True)
        for path in paths:
            shutil.copy(path, made / "words" / word)
    (made / "home").mkdir()
    soundfile.write(made / "tone.wav", tone(300, 3.0), 16_000)
    said = np.pad(files.read(MUSIC[0]), (0, 11_200))
    soundfile.write(made / "room.wav", np.tile(said, 5), 16_000)
    return made


def test_a_command_speaks_to_nobody_and_writes_nowhere_else(folder):
    assert traced(folder, COMMANDS) == []
    # Nothing of a dependency in the user's own folders either.
    assert os.listdir(folder / "home") == []
    assert set(os.listdir(folder / "cache")) <= {"tapword"}


@pytest.mark.parametrize(
    ("program", "call"),
    [
        ("open('../outside', 'w')", "openat"),
        ("import socket; socket.socket().connect_ex(('127.0.0.1', 9))", "connect"),
    ],
)
def test_what_a_command_must_not_do_is_seen(folder, monkeypatch, program, call):
    monkeypatch.setitem(globals(), "PROGRAM", program.replace("..", str(folder.parent)))
    assert any(call in line for line in traced(folder, []))
