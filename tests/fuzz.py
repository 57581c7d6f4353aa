"""Feed damaged files to tapword until something but its own errors comes out.

    python tests/fuzz.py file|header|state|device|audio [--seconds N] [--seed N]

| target | what is damaged |
|---|---|
| file | the bytes of a model file |
| header | the JSON in a model file, honest or hostile, whose checksums are made to match |
| state | the numbers in a model file whose checksums are made to match; it is then used |
| device | a device's state, any bytes under a matching checksum; it is then used |
| audio | the bytes of WAV, FLAC, OGG, Opus, MP3 and other sound files |

With the package atheris what to damage is guided by the coverage of tapword's code. Without it, and
for sound, which libsndfile decodes out of its sight, damage is random. Seeds are made on the spot.
A finding or 30 s without an answer ends the run; the input lies in the folder named at the start.
"""

import argparse
import contextlib
import json
import signal
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import safetensors.numpy
import soundfile

try:
    import atheris
except ImportError:
    atheris = None

with atheris.instrument_imports(include=["tapword"]) if atheris else contextlib.nullcontext():
    from tapword import Spotter, registry
    from tapword.audio import files as audio
    from tapword.errors import TapwordError
    from tapword.export.c import state as states
    from tapword.spotter import store

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests import hostile

LEARNERS = tuple(registry.classes("learners"))
# Those that a device can have.
IN_C = ("cosine", "slda", "ridge", "ncm")
SOUNDS = {
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
MAX_S = 2.0
TIMEOUT_S = 30
SAMPLES = (0.3 * np.sin(np.arange(4_800) * 0.1) * np.hanning(4_800)).astype(np.float32)


def taught(learner: str) -> Spotter:
    """Teach a small spotter three words."""
    spotter = Spotter(backbone="logmel", pooling="avg", learner=learner)
    for number, word in enumerate(("lamp", "café", "ラジオ") * 2):
        spotter.learn(SAMPLES * (1 - 0.1 * number), word)
    return spotter


class Target:
    """Seeds, and what is done with each input; both in a folder of their own."""

    def __init__(self, folder: Path):
        self.path = folder / "input"
        self.models = {}
        self.devices = [taught(learner) for learner in IN_C]
        for learner in LEARNERS:
            taught(learner).save(folder / "model.tap", overwrite=True)
            self.models[learner] = store.read(folder / "model.tap")

    def seeds(self, name: str) -> Iterator[bytes]:
        """Give inputs that nothing is wrong with."""
        if name == "device":
            yield from (states.dump(one)[: -states.SEAL.size] for one in self.devices)
        if name == "audio":
            for format_name, kinds in SOUNDS.items():
                for kind in kinds:
                    for channels, rate in ((1, 16_000), (2, 48_000)):
                        sound = np.stack([SAMPLES] * channels, axis=1)
                        soundfile.write(self.path, sound, rate, format=format_name, **kind)
                        yield self.path.read_bytes()
        for number, (header, arrays) in enumerate(self.models.values()):
            if name == "file":
                yield store.pack(header, arrays)
            elif name == "header":
                yield json.dumps(header, ensure_ascii=False).encode()
            elif name == "state":
                yield bytes([number]) + b"".join(a.tobytes() for a in arrays.values())

    def sealed(self, text: str, arrays: dict[str, np.ndarray]) -> dict[str, str]:
        """Give a file's metadata, its seal made to match."""
        return {"tapword": text, "crc32": store.seal(text, arrays)}

    def file(self, data: bytes) -> None:
        """Load any bytes."""
        self.path.write_bytes(data)
        Spotter.load(self.path)

    def header(self, data: bytes) -> None:
        """Load a file with any header, whose learner is that of the header where it is one."""
        text = data.decode(errors="replace")
        name = next((name for name in LEARNERS if f'"{name}"' in text), "ridge")
        arrays = self.models[name].arrays
        self.path.write_bytes(safetensors.numpy.save(arrays, self.sealed(text, arrays)))
        Spotter.load(self.path)
        store.revision(self.path)

    def state(self, data: bytes) -> None:
        """Load a file with any numbers in its arrays; predict, teach, predict, save."""
        header, arrays = self.models[LEARNERS[(data or b"\0")[0] % len(LEARNERS)]]
        arrays, position = dict(arrays), 1
        for name, array in arrays.items():
            part = data[position : position + array.nbytes].ljust(array.nbytes, b"\0")
            position += array.nbytes
            arrays[name] = np.frombuffer(part, array.dtype).reshape(array.shape)
        text = json.dumps(header | {"checksum": store.checksum(arrays)})
        self.path.write_bytes(safetensors.numpy.save(arrays, self.sealed(text, arrays)))
        spotter = Spotter.load(self.path)
        with np.errstate(all="ignore"):
            spotter.predict(SAMPLES)
            spotter.learn(SAMPLES, "lamp")
            spotter.forget("café")
            spotter.predict(SAMPLES)
        spotter.save(self.path)

    def device(self, data: bytes) -> None:
        """Load a device's state of any bytes; predict, teach, save."""
        sealed = data + states.SEAL.pack(zlib.crc32(data))
        spotter = states.load("input", sealed, self.devices)
        with np.errstate(all="ignore"):
            spotter.predict(SAMPLES)
            spotter.learn(SAMPLES, "lamp")
        self.path.unlink(missing_ok=True)
        spotter.save(self.path)
        states.load("again", states.dump(spotter), self.devices)

    def audio(self, data: bytes) -> None:
        """Read any bytes as sound; what comes out must be sound."""
        self.path.write_bytes(data)
        sound = audio.read(self.path, max_s=MAX_S)
        assert sound.dtype == np.float32 and sound.ndim == 1 and len(sound)
        assert np.isfinite(sound).all()


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


def run_at_random(call: Callable[[bytes], None], corpus: Path, seconds: float, seed: int) -> None:
    """Damage seeds at random, for a time."""
    rng, seeds, runs = np.random.default_rng(seed), sorted(corpus.iterdir()), 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        data = damage(seeds[rng.integers(len(seeds))].read_bytes(), rng)
        (corpus.parent / "last").write_bytes(data)
        signal.alarm(TIMEOUT_S)
        call(data)
        runs += 1
    print(f"Done {runs} runs in {seconds:.0f} second(s)")


def main() -> None:
    """Run one target for a time."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("target", choices=["file", "header", "state", "device", "audio"])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir=memory if memory.is_dir() else None))
    corpus = folder / "corpus"
    corpus.mkdir()
    target = Target(folder)
    for number, seed in enumerate(target.seeds(options.target)):
        (corpus / f"seed{number}").write_bytes(seed)
        getattr(target, options.target)(seed)
    if options.target == "header":
        for number, text in enumerate(hostile.headers()):
            (corpus / f"hostile{number}").write_bytes(text)
    refused = 0

    def call(data: bytes) -> None:
        nonlocal refused
        try:
            getattr(target, options.target)(data)
        except TapwordError:
            refused += 1

    guided = atheris is not None and options.target != "audio"
    print(f"{options.target}, {'guided' if guided else 'at random'}, in {folder}", flush=True)
    if not guided:
        run_at_random(call, corpus, options.seconds, options.seed)
        print(f"{refused} refused")
        return
    atheris.Setup(
        [
            sys.argv[0],
            f"-max_total_time={options.seconds}",
            f"-max_len={MAX_BYTES}",
            f"-seed={options.seed}",
            f"-artifact_prefix={folder}/",
            f"-timeout={TIMEOUT_S}",
            "-rss_limit_mb=2048",
            "-print_final_stats=1",
            str(corpus),
        ],
        call,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
