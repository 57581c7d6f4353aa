"""Feed damaged input to tapword until something other than its own errors comes out.

    python tests/fuzz.py [TARGET ...] [--seconds N] [--seed N] [--keep]

| target | what is damaged |
|---|---|
| file | the bytes of a model file |
| header | the JSON in a model file, honest or hostile, whose checksums are made to match |
| state | the numbers in a model file whose checksums are made to match; it is then used |
| device | a device's state, any bytes under a matching checksum; it is then used |
| audio | the bytes of WAV, FLAC, OGG, Opus, MP3 and other audio files |
| wyoming | the events that a client sends to the Wyoming service |
| http | the requests and WebSocket frames that a client sends to the studio |

All targets share the time. Each one first replays its folder of `tests/corpus`, which holds inputs
with different outcomes; then it damages these and valid inputs, at random by the seed. An input
with a new outcome is damaged further; `--keep` also adds it to the corpus. A finding, or 30 s
without an answer, ends the run and stays in the corpus folder. After a crash of the process it is
the file `running`.

If atheris is installed and one target that runs Python code alone is named, the coverage of
tapword's code guides the damage.
"""

import argparse
import asyncio
import contextlib
import hashlib
import json
import logging
import os
import re
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import numpy as np
import safetensors.numpy
import soundfile

try:
    import atheris
except ImportError:
    atheris = None

with atheris.instrument_imports(include=["tapword"]) if atheris else contextlib.nullcontext():
    from tapword import Spotter, registry
    from tapword.assets import CLIPS
    from tapword.audio import files as audio
    from tapword.errors import TapwordError
    from tapword.export.c import state as states
    from tapword.spotter import store

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests import hostile

CORPUS = Path(__file__).with_name("corpus")
LEARNERS = tuple(registry.classes("learners"))
# Those that a device can have.
IN_C = ("cosine", "slda", "ridge", "ncm")
AUDIO_FORMATS = {
    "wav": [{"subtype": name} for name in ("PCM_16", "PCM_U8", "FLOAT", "ULAW", "IMA_ADPCM")],
    "flac": [{}],
    "ogg": [{"subtype": "VORBIS"}, {"subtype": "OPUS"}],
    "mp3": [{}],
    "aiff": [{}],
    "au": [{}],
    "caf": [{}],
    "w64": [{}],
}
MAX_BYTES = 20_000
# Of an input in the corpus, and inputs of a target: it stays small.
KEPT_BYTES, KEPT = 6_000, 24
MAX_S = 2.0
TIMEOUT_S = 30
# How long the studio may take to answer before the next input is sent. It waits much longer for the
# rest of an incomplete request.
ANSWER_S = 0.05
# The first answers to an input make its outcome: types of events and errors, or status codes and
# messages.
EVENT = re.compile(rb'"type": *"([a-z-]+)"|([A-Z][A-Za-z]+Error)')
RESPONSE = re.compile(rb'HTTP/1.1 ([0-9]+)|"error": "([a-z ]+)|"type": "([a-z]+)"')
OUTCOMES = 3
SAMPLES = (0.3 * np.sin(np.arange(4_800) * 0.1) * np.hanning(4_800)).astype(np.float32)
PCM = (SAMPLES * 32767).astype("<i2").tobytes()
# Stand for what differs in every run.
TOKEN, PORT = "{TOKEN}", "{PORT}"


def taught(learner: str) -> Spotter:
    """Teach a small spotter three words."""
    spotter = Spotter(backbone="logmel", pooling="avg", learner=learner)
    for number, word in enumerate(("lamp", "café", "ラジオ") * 2):
        spotter.learn(SAMPLES * (1 - 0.1 * number), word)
    return spotter


class Target:
    """Valid inputs, and what is done with any input; it works in a folder."""

    # Whether it runs Python code alone, in this thread.
    guidable = True

    def __init__(self, folder: Path):
        self.path = folder / "input"

    def seeds(self) -> Iterator[bytes]:
        """Give inputs that nothing is wrong with."""
        raise NotImplementedError

    def __call__(self, data: bytes) -> str:
        """Use an input; return the outcome. Only tapword's own errors may be raised."""
        raise NotImplementedError

    def close(self) -> None:
        """End what was started."""


class ModelTarget(Target):
    """A model file of every learner, to be damaged."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.models = {}
        for learner in LEARNERS:
            taught(learner).save(self.path, overwrite=True)
            self.models[learner] = store.read(self.path)

    def load(self, text: str, arrays: dict[str, np.ndarray]) -> Spotter:
        """Load a file of this header and these arrays, its checksum made to match."""
        metadata = {"tapword": text, "crc32": store.seal(text, arrays)}
        self.path.write_bytes(safetensors.numpy.save(arrays, metadata))
        return Spotter.load(self.path)


class FileTarget(ModelTarget):
    """Load any bytes."""

    def seeds(self) -> Iterator[bytes]:
        return (store.pack(*model) for model in self.models.values())

    def __call__(self, data: bytes) -> str:
        self.path.write_bytes(data)
        Spotter.load(self.path)
        return "loaded"


class HeaderTarget(ModelTarget):
    """Load a file with any header, with the state of the learner it names, if it names one."""

    def seeds(self) -> Iterator[bytes]:
        for header, _ in self.models.values():
            yield json.dumps(header, ensure_ascii=False).encode()
        yield from hostile.headers()

    def __call__(self, data: bytes) -> str:
        text = data.decode(errors="replace")
        name = next((name for name in LEARNERS if f'"{name}"' in text), "ridge")
        self.load(text, self.models[name].arrays)
        store.revision(self.path)
        return "loaded"


class StateTarget(ModelTarget):
    """Load a file with any numbers in its arrays; predict, teach, predict, save."""

    def seeds(self) -> Iterator[bytes]:
        for number, (_, arrays) in enumerate(self.models.values()):
            yield bytes([number]) + b"".join(array.tobytes() for array in arrays.values())

    def __call__(self, data: bytes) -> str:
        header, arrays = self.models[LEARNERS[(data or b"\0")[0] % len(LEARNERS)]]
        arrays, position = dict(arrays), 1
        for name, array in arrays.items():
            part = data[position : position + array.nbytes].ljust(array.nbytes, b"\0")
            position += array.nbytes
            arrays[name] = np.frombuffer(part, array.dtype).reshape(array.shape)
        spotter = self.load(json.dumps(header | {"checksum": store.checksum(arrays)}), arrays)
        with np.errstate(all="ignore"):
            spotter.predict(SAMPLES)
            spotter.learn(SAMPLES, "lamp")
            spotter.forget("café")
            spotter.predict(SAMPLES)
        spotter.save(self.path)
        return f"used {header['learner']['name']}"


class DeviceTarget(Target):
    """Load a device's state of any bytes; predict, teach, save."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.models = [taught(learner) for learner in IN_C]

    def seeds(self) -> Iterator[bytes]:
        return (states.dump(one)[: -states.SEAL.size] for one in self.models)

    def __call__(self, data: bytes) -> str:
        sealed = data + states.SEAL.pack(zlib.crc32(data))
        spotter = states.load("input", sealed, self.models)
        with np.errstate(all="ignore"):
            spotter.predict(SAMPLES)
            spotter.learn(SAMPLES, "lamp")
        self.path.unlink(missing_ok=True)
        spotter.save(self.path)
        states.load("again", states.dump(spotter), self.models)
        return f"used {spotter.learner.name}"


class AudioTarget(Target):
    """Read any bytes as audio; the result must be audio."""

    # libsndfile decodes it, where atheris sees nothing.
    guidable = False

    def __init__(self, folder: Path):
        super().__init__(folder)
        # libmpg123 writes a note about every damaged MP3 there.
        self.stderr = os.dup(2)
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)

    def close(self) -> None:
        os.dup2(self.stderr, 2)
        os.close(self.stderr)

    def seeds(self) -> Iterator[bytes]:
        for format_name, kinds in AUDIO_FORMATS.items():
            for kind in kinds:
                for channels, rate in ((1, 16_000), (2, 48_000)):
                    samples = np.stack([SAMPLES] * channels, axis=1)
                    soundfile.write(self.path, samples, rate, format=format_name, **kind)
                    yield self.path.read_bytes()

    def __call__(self, data: bytes) -> str:
        self.path.write_bytes(data)
        samples = audio.read(self.path, max_s=MAX_S)
        assert samples.dtype == np.float32 and samples.ndim == 1 and len(samples)
        assert np.isfinite(samples).all()
        return f"{data[:4]!r} read"


class ServerTarget(Target):
    """Send any bytes to a server in this process, which must not log an error."""

    guidable = False

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.errors: list[str] = []
        self.stack = contextlib.ExitStack()
        self.stack.enter_context(errors_logged(self.errors))
        self.model = folder / "home.tap"
        spotter = Spotter()
        for word in ("lamp", "music"):
            clips = [audio.read(path) for path in sorted((CLIPS / word).glob("*.ogg"))[:3]]
            spotter.learn_many(clips, [word] * len(clips))
        spotter.save(self.model)

    def exchange(self, port: int, *parts: bytes, ends: bool = False) -> bytes:
        """Send parts, each after the answer to the one before; return all answers.

        If `ends`, no more is sent, and the server must close the connection. Otherwise it may wait
        for more, so an answer ends with a pause.
        """
        answer = b""
        with (
            contextlib.suppress(ConnectionError),
            socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as connection,
        ):
            for part in parts:
                connection.sendall(part)
                if ends:
                    connection.shutdown(socket.SHUT_WR)
                connection.settimeout(TIMEOUT_S if ends else ANSWER_S)
                with contextlib.nullcontext() if ends else contextlib.suppress(TimeoutError):
                    while received := connection.recv(1 << 16):
                        answer += received
        if self.errors:
            raise AssertionError(self.errors.pop())
        return answer

    def close(self) -> None:
        """Stop the server."""
        self.stack.close()


class WyomingTarget(ServerTarget):
    """Send events to the Wyoming service."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.port = self.stack.enter_context(wyoming_service(self.model))

    def seeds(self) -> Iterator[bytes]:
        def event(kind: str, payload: bytes = b"", **more: object) -> bytes:
            header = {"type": kind, "payload_length": len(payload)} | more
            return json.dumps(header).encode() + b"\n" + payload

        mono = {"rate": 16_000, "width": 2, "channels": 1}
        chunks = event("audio-chunk", PCM, data=mono) * 2
        stream = event("audio-start", data=mono) + chunks + event("audio-stop")
        yield stream
        yield event("detect", data={"names": ["lamp", "music"]}) + stream
        yield event("describe") + event("ping", data={"text": "here"})
        wide = {"rate": 44_100, "width": 4, "channels": 2, "timestamp": 100}
        yield event("audio-start", data=wide) + event("audio-chunk", PCM, data=wide)
        names = json.dumps({"names": ["lamp"]}).encode()
        yield event("detect", data_length=len(names)) + names

    def __call__(self, data: bytes) -> str:
        answer = self.exchange(self.port, data, ends=True)
        return str(EVENT.findall(answer)[:OUTCOMES])


class HttpTarget(ServerTarget):
    """Send requests, and frames behind them, to the studio."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        from tapword.serve.studio.model import StudioModel
        from tests.serve.conftest import running

        server = self.stack.enter_context(running(StudioModel(self.model)))
        self.port = server.port
        self.token = server.bearer["authorization"].removeprefix("Bearer ").encode()

    def seeds(self) -> Iterator[bytes]:
        def request(method: str, path: str, body: bytes = b"", more: str = "") -> bytes:
            host = f"Host: 127.0.0.1:{PORT}\r\nOrigin: http://127.0.0.1:{PORT}\r\n"
            shown = f"Authorization: Bearer {TOKEN}\r\nContent-Length: {len(body)}\r\n"
            return f"{method} {path} HTTP/1.1\r\n{host}{shown}{more}\r\n".encode() + body

        def frame(content: bytes, kind: int) -> bytes:
            return struct.pack(">BBH", kind, 0xFE, len(content)) + bytes(4) + content

        close = "Connection: close\r\n"
        for path in ("/", "/api/state", "/api/map", "/static/main.js", "/api/model", "/none"):
            yield request("GET", path, more=close)
        yield request("POST", "/api/learn?word=lamp&kind=file&anyway=1", PCM, close)
        for path, content in (
            ("forget", {"word": "none"}),
            ("rename", {"old": "none", "new": "radio"}),
            ("sensitivity", {"word": "lamp", "value": 0.6}),
            ("remove", {"take": 1}),
            ("undo", {}),
        ):
            yield request("POST", f"/api/{path}", json.dumps(content).encode(), close)
        chunked = f"Transfer-Encoding: chunked\r\n{close}"
        yield request("POST", "/api/undo", more=chunked) + b"2\r\n{}\r\n0\r\n\r\n"
        yield request("GET", "/api/state") + request("GET", "/api/state", more=close)
        upgrade = (
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        )
        live = request("GET", "/api/live", more=upgrade)
        yield live + frame(b'{"type": "listen"}', 0x81) + frame(PCM[:2560], 0x82)
        record = frame(b'{"type": "record", "id": 1}', 0x81) + frame(PCM[:2560], 0x82)
        yield live + record + frame(b'{"type": "cancel"}', 0x81)

    def __call__(self, data: bytes) -> str:
        data = data.replace(TOKEN.encode(), self.token).replace(PORT.encode(), b"%d" % self.port)
        # Frames are read after the answer to the request before them.
        head, end, frames = data.partition(b"\r\n\r\n")
        parts = (head + end, frames) if b"websocket" in head and frames else (data,)
        answer = self.exchange(self.port, *parts)
        assert b"HTTP/1.1 500" not in answer, "the studio failed inside"
        return str(RESPONSE.findall(answer)[:OUTCOMES])


@contextlib.contextmanager
def errors_logged(into: list[str]) -> Iterator[None]:
    """Note the errors that are logged, and print nothing of the log."""

    class Noting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.ERROR:
                into.append(self.format(record))

    root, handler = logging.getLogger(), Noting()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


@contextlib.contextmanager
def wyoming_service(model: Path) -> Iterator[int]:
    """Run the Wyoming service in a thread; give its port."""
    from tapword.serve.wyoming.served_model import ServedModel
    from tapword.serve.wyoming.service import serving

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    service = serving(ServedModel(model), "127.0.0.1", 0)
    try:
        yield asyncio.run_coroutine_threadsafe(service.__aenter__(), loop).result()
        asyncio.run_coroutine_threadsafe(service.__aexit__(None, None, None), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


TARGETS: dict[str, type[Target]] = {
    "file": FileTarget,
    "header": HeaderTarget,
    "state": StateTarget,
    "device": DeviceTarget,
    "audio": AudioTarget,
    "wyoming": WyomingTarget,
    "http": HttpTarget,
}


def damage(data: bytes, rng: np.random.Generator) -> bytes:
    """Change, remove, insert or repeat a few bytes, at random."""
    result = bytearray(data)
    for _ in range(rng.integers(1, 6)):
        start = int(rng.integers(len(result) + 1))
        stop = start + int(rng.integers(1, 9))
        kind = rng.integers(5)
        if kind == 0:
            result[start:stop] = rng.bytes(len(result[start:stop]))
        elif kind == 1:
            del result[start : start + int(rng.integers(1, 200))]
        elif kind == 2:
            result[start:start] = rng.bytes(stop - start)
        elif kind == 3:
            result[start:start] = result[start:stop] * 3
        else:
            result[start:stop] = rng.choice([b"\xff", b"\0", b"\x7f", b"9"]) * (stop - start)
    return bytes(result[:MAX_BYTES])


class Fuzzer:
    """One target with its corpus.

    Parameters
    ----------
    target
        What is fuzzed.
    corpus
        Folder of its inputs; findings are saved there.

    Attributes
    ----------
    outcomes
        Input that first had each outcome.
    """

    def __init__(self, target: Target, corpus: Path):
        self.target = target
        self.corpus = corpus
        self.outcomes: dict[str, bytes] = {}

    def use(self, data: bytes) -> bool:
        """Use an input; say whether its outcome is new. Save it if it is a finding."""
        running = self.corpus / "running"
        running.write_bytes(data)
        signal.alarm(TIMEOUT_S)
        try:
            outcome = self.target(data)
        except TapwordError as error:
            # Names, numbers and paths in a message make no other outcome.
            outcome = re.sub(r"""'.*?'|".*?"|\S*\d\S*|\S*/\S*""", "_", str(error))
        except Exception:
            running.rename(self.corpus / f"found-{_digest(data)}")
            raise
        finally:
            signal.alarm(0)
            running.unlink(missing_ok=True)
        new = outcome not in self.outcomes
        self.outcomes.setdefault(outcome, data)
        return new

    def replay(self) -> int:
        """Use every input of the corpus; return their number."""
        inputs = sorted(self.corpus.iterdir())
        for path in inputs:
            self.use(path.read_bytes())
        return len(inputs)

    def run(self, seconds: float, seed: int) -> int:
        """Damage inputs at random, for a time; return how many were used."""
        rng, runs = np.random.default_rng(seed), 0
        inputs = [*self.target.seeds(), *self.outcomes.values()]
        for data in inputs:
            self.use(data)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            data = damage(inputs[rng.integers(len(inputs))], rng)
            runs += 1
            if self.use(data):
                inputs.append(data)
        return runs

    def keep(self) -> None:
        """Add inputs with new outcomes to the corpus, the smallest first."""
        kept = {path.read_bytes() for path in self.corpus.iterdir()}
        for data in sorted(set(self.outcomes.values()) - kept, key=len)[: KEPT - len(kept)]:
            if len(data) <= KEPT_BYTES:
                (self.corpus / _digest(data)).write_bytes(data)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def _timeout(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"no answer within {TIMEOUT_S} s")


@contextlib.contextmanager
def fuzzer(name: str, corpus: Path = CORPUS) -> Iterator[Fuzzer]:
    """Start a target."""
    signal.signal(signal.SIGALRM, _timeout)
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        target = TARGETS[name](Path(folder))
        try:
            (corpus / name).mkdir(parents=True, exist_ok=True)
            yield Fuzzer(target, corpus / name)
        finally:
            target.close()


def guide(fuzzed: Fuzzer, seconds: int, seed: int) -> None:
    """Let atheris choose the damage; it ends the process."""
    with tempfile.TemporaryDirectory() as folder:
        for number, data in enumerate(fuzzed.target.seeds()):
            Path(folder, str(number)).write_bytes(data)
        atheris.Setup(
            [
                sys.argv[0],
                f"-max_total_time={seconds}",
                f"-max_len={MAX_BYTES}",
                f"-seed={seed}",
                f"-artifact_prefix={folder}/",
                "-rss_limit_mb=2048",
                "-print_final_stats=1",
                folder,
                str(fuzzed.corpus),
            ],
            fuzzed.use,
        )
        atheris.Fuzz()


def main() -> None:
    """Fuzz some targets for a time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="add new outcomes to the corpus")
    options = parser.parse_args()
    targets = options.targets or list(TARGETS)
    if unknown := set(targets) - set(TARGETS):
        parser.error(f"no target named {', '.join(unknown)}; known: {', '.join(TARGETS)}")
    for name in targets:
        try:
            with fuzzer(name) as fuzzed:
                replayed = fuzzed.replay()
                if atheris and targets == [name] and fuzzed.target.guidable:
                    guide(fuzzed, round(options.seconds), options.seed)
                runs = fuzzed.run(options.seconds / len(targets), options.seed)
                if options.keep:
                    fuzzed.keep()
        except ImportError as error:
            print(f"{name}: skipped: {error}; make extras installs it")
        else:
            counts = f"{replayed} of the corpus, {runs} damaged, {len(fuzzed.outcomes)} outcomes"
            print(f"{name}: {counts}", flush=True)


if __name__ == "__main__":
    main()
