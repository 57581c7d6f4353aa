"""The service with the real Home Assistant and the real wyoming-satellite, on recorded speech.

Both pin an older wyoming than tapword wants, so each lives in a Python of its own: below build/,
where `make extras` puts the satellite, or what HOMEASSISTANT_PYTHON and WYOMING_SATELLITE_PYTHON
name. `make home` installs Home Assistant, which needs a new Python, and runs these tests.
"""

import asyncio
import contextlib
import json
import os
import shlex
import socket
import subprocess
import sys

import numpy as np
import pytest

from tapword.audio import files as audio
from tests.conftest import ROOT, shared

pytest.importorskip("wyoming", reason="needs the extra wyoming: pip install 'tapword[wyoming]'")

from wyoming.audio import AudioChunk
from wyoming.client import AsyncTcpClient
from wyoming.info import Describe
from wyoming.pipeline import RunPipeline
from wyoming.satellite import RunSatellite

from tapword.serve.wyoming.served_model import ServedModel
from tapword.serve.wyoming.service import ServiceInfo, serving
from tests.serve.test_wyoming import HOST, said, teach

PATIENCE_S = 120


def python_with(package: str) -> str:
    """Give the Python that has a package; skip where there is none."""
    variable = f"{package.upper()}_PYTHON"
    python = os.environ.get(variable, str(ROOT / "build" / package / "bin" / "python"))
    try:
        subprocess.run([python, "-c", f"import {package}.__main__"], check=True, env=clean())
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"needs the package {package} in {python}, or in what {variable} names")
    return python


def clean() -> dict[str, str]:
    """Environment in which another Python finds its own packages alone."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@pytest.fixture(scope="module")
def spoken():
    folder = shared("data", "speech_commands_v0.01_subset")
    return {
        word: [audio.read(path) for path in sorted((folder / word).glob("*.wav"))[:30]]
        for word in ("marvin", "sheila", "tree")
    }


@pytest.fixture(scope="module")
def model(tmp_path_factory, spoken):
    path = tmp_path_factory.mktemp("model") / "home.tap"
    teach(path, {word: spoken[word][:8] for word in ("marvin", "sheila")})
    return ServedModel(path)


@pytest.fixture(scope="module")
def sound(spoken):
    """Another word, the wake word, and a command of two seconds after it."""
    others = said([spoken["tree"][20], spoken["sheila"][20]])
    command = said([spoken["tree"][21], spoken["tree"][22]], gap_s=0.3)
    return np.concatenate([others, said([spoken["marvin"][20]], gap_s=0.5), command]).tobytes()


def test_a_pipeline_of_home_assistant(model, sound, tmp_path):
    python = python_with("homeassistant")
    script = os.path.join(os.path.dirname(__file__), "home_assistant_pipeline.py")
    (tmp_path / "audio").write_bytes(sound)

    async def run():
        info = ServiceInfo("My words", ["en"])
        async with asyncio.timeout(PATIENCE_S), serving(model, HOST, 0, info) as port:
            process = await asyncio.create_subprocess_exec(
                *(python, script, str(port), "marvin", str(tmp_path / "audio")),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=clean(),
            )
            return process, *await process.communicate()

    process, output, errors = asyncio.run(run())
    assert process.returncode == 0, errors.decode()
    told = json.loads(output.splitlines()[-1])
    assert told["error"] is None and told["title"] == "My words"
    assert told["offered"] == [["marvin", "Marvin"], ["sheila", "Sheila"]]
    assert told["wake_word"]["wake_word_id"] == "marvin"
    # Words before the wake word are not part of the command; all of it comes after.
    length_ms = int(told["text"].removesuffix(" ms"))
    assert 1500 < length_ms < len(sound) / 32 - 2000


def test_wyoming_satellite(model, sound, tmp_path):
    """It wakes by our service, then sends the command to the server, as Home Assistant is to it."""
    python = python_with("wyoming_satellite")
    (tmp_path / "audio").write_bytes(sound)
    # A microphone that speaks as sound plays, then is silent.
    (tmp_path / "microphone.py").write_text(
        "import sys, time\n"
        "sound = open(sys.argv[1], 'rb').read() + bytes(320_000)\n"
        "for start in range(0, len(sound), 2048):\n"
        "    sys.stdout.buffer.write(sound[start : start + 2048])\n"
        "    sys.stdout.flush()\n"
        "    time.sleep(0.064)\n"
    )
    microphone = shlex.join(
        [sys.executable, str(tmp_path / "microphone.py"), str(tmp_path / "audio")]
    )
    with socket.socket() as free:
        free.bind((HOST, 0))
        place = free.getsockname()[1]

    async def run():
        async with asyncio.timeout(PATIENCE_S), serving(model, HOST, 0) as port:
            process = await asyncio.create_subprocess_exec(
                *(python, "-m", "wyoming_satellite", "--no-zeroconf", "--name", "kitchen"),
                *("--uri", f"tcp://{HOST}:{place}", "--mic-command", microphone),
                *("--mic-command-samples-per-chunk", "1024"),
                *("--wake-uri", f"tcp://{HOST}:{port}", "--wake-word-name", "marvin"),
                *("--snd-command", "cat"),
                stderr=asyncio.subprocess.DEVNULL,
                env=clean(),
            )
            try:
                return await as_home_assistant(process, place)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()
                await process.wait()

    async def as_home_assistant(process, place):
        line = None
        while line is None:
            await asyncio.sleep(0.2)
            assert process.returncode is None, "the satellite has ended"
            with contextlib.suppress(OSError):
                line = AsyncTcpClient(HOST, place)
                await line.connect()
                await line.write_event(Describe().event())
                assert (await line.read_event()).type == "info"
                continue
            line = None
        await line.write_event(RunSatellite().event())
        asked, command = None, 0
        while command < 2000:
            event = await line.read_event()
            assert event is not None, "the satellite is gone"
            if RunPipeline.is_type(event.type):
                asked = RunPipeline.from_event(event)
            elif AudioChunk.is_type(event.type):
                # Nothing is sent before the wake word.
                assert asked is not None
                command += len(event.payload) // 32
        await line.disconnect()
        return asked

    asked = asyncio.run(run())
    assert str(asked.start_stage.value) == "asr"
