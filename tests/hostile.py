"""Model files that an attacker would hand somebody: small, and sealed as tapword seals them.

`attacks` gives each by name. None may open another file, a socket or a thread when it is loaded,
take much more memory than the file has bytes, or take long.
"""

import contextlib
import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import safetensors.numpy

from tapword import Spotter
from tapword.spotter import store
from tapword.spotter.encoder import Encoded

SECRET = "/etc/passwd"
HASH = "ab" * 32
# What loads, because it does nothing until it is used, and is checked then.
HARMLESS = {
    "weights to be fetched",
    "icarl with a large buffer",
    "a long vocabulary",
    "many objects",
    "the most writings",
    "2^40 samples",
}


def honest(learner: str = "slda", pooling: str = "avg", words: int = 2) -> store.Model:
    """Header and arrays of a small taught model."""
    spotter = Spotter(backbone="logmel", pooling=pooling, learner=learner)
    vectors = np.random.default_rng(0).normal(size=(words, spotter.encoder.dim()))
    spoken = ["lamp", *(f"word {n}" for n in range(1, words))]
    spotter.learn_encoded(Encoded.one_second(vectors), spoken)
    header: dict[str, Any] = json.loads(json.dumps(spotter._parts()))
    header |= {
        "format": 2,
        "version": "0.1.0",
        "generation": 1,
        "revision": "0" * 32,
        "dim": spotter.learner.dim,
        "words": spotter.words,
        "negatives": {},
        "rows": None,
        "sensitivity": 0.5,
        "sensitivities": {},
        "lengths": {},
    }
    return store.Model(header, spotter.learner.state())


def forged(model: store.Model, arrays: dict[str, np.ndarray] | None = None, **changes) -> bytes:
    """Bytes of a file of a model with other arrays and with changes in the header, sealed."""
    arrays = model.arrays if arrays is None else arrays
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    text = json.dumps(model.header | {"checksum": store.checksum(arrays)} | changes)
    metadata = {"tapword": text, "crc32": store.seal(text, arrays)}
    return safetensors.numpy.save(arrays, metadata)


def backbone(name: str, **arguments) -> list[dict[str, Any]]:
    return [{"name": name, "arguments": arguments, "weights_sha256": HASH}]


def part(name: str, **arguments) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def raw(table: bytes) -> bytes:
    return len(table).to_bytes(8, "little") + table


def attacks() -> Iterator[tuple[str, bytes]]:
    """Give files by name, one after the other."""
    model = honest()
    header, arrays = model

    # Other files, the network, threads.
    yield "onnx with a path", forged(model, backbones=backbone("onnx", file=SECRET))
    yield "onnx without one", forged(model, backbones=backbone("onnx"))
    for number in (1, 2):
        hub = backbone("transformers", model="someone/model", layer=None)
        yield f"a hub's name, format {number}", forged(model, backbones=hub, format=number)
    yield "torch weights", forged(model, backbones=backbone("wav2vec2_base", weights=SECRET))
    yield "weights", forged(model, backbones=backbone("speech_embedding", weights=SECRET))
    for threads in (2, 4000):
        many = backbone("speech_embedding", threads=threads)
        yield f"{threads} threads", forged(model, backbones=many)
    yield "other weights", forged(model, backbones=backbone("speech_embedding", layers="emb"))
    yield "random weights", forged(model, backbones=backbone("hubert_base", weights="random"))
    wide = honest("ncm").header | {"dim": 768}
    wide = store.Model(wide, {"means": np.zeros((2, 768), np.float32)} | counts(2))
    yield "weights to be fetched", forged(wide, backbones=backbone("wav2vec2_base"))

    # Memory.
    for size in (10**9, 900_000):
        icarl = honest("icarl", "tap:R=32")
        icarl.header["learner"]["arguments"]["buffer"] = size
        name = "icarl with an endless buffer" if size > 10**6 else "icarl with a large buffer"
        yield name, forged(icarl)
    tuned = honest("finetune", "tap:R=32")
    tuned.header["learner"]["arguments"]["vocabulary"] = [f"w{n}" for n in range(100_000)]
    yield "a vocabulary without end", forged(tuned)
    tuned.header["learner"]["arguments"]["vocabulary"] = [f"w{n}" for n in range(10_000)]
    yield "a long vocabulary", forged(tuned)
    yield "poolings without end", forged(model, poolings=[part("avg")] * 40_000)
    yield "backbones without end", forged(model, backbones=header["backbones"] * 20_000)
    many = part("blocks", poolings=["tap:R=2"] * 100_000)
    yield "blocks without end", forged(model, poolings=[many])
    deep = part("blocks", poolings=["blocks:poolings=" * 60 + "avg"])
    yield "blocks in blocks", forged(model, poolings=[deep])
    layers = backbone("speech_embedding", layers=["emb"] * 100_000)
    yield "layers without end", forged(model, backbones=layers)
    means = {"means": np.zeros((1, 40_000), np.float32)} | counts(1)
    for claimed in (32, 40_000):
        small = header | {"words": {"lamp": 1}, "dim": claimed}
        yield f"a dimension of 3 GB, said to be {claimed}", forged(store.Model(small, means))
    none = {"means": np.zeros((0, 2**40), np.float32)} | counts(0)
    for learner in ("ncm", "slda"):
        empty = {"words": {}, "dim": None, "learner": part(learner)}
        yield f"no words of 2^40 numbers, {learner}", forged(model, none, **empty)
    rank = part("cosine", covariance="lowrank", rank=10**9)
    yield "a sketch without end", forged(model, learner=rank)
    yield "an order without end", forged(model, poolings=[part("tap", R=10**12)])
    yield "frames without end", forged(model, poolings=[part("flat", n_frames=10**12)])
    yield "many objects", forged(model, more=[{"": 0}] * 150_000)
    shape = b'{"a": {"dtype": "F32", "data_offsets": [0, 4], "shape": [%s1]}}'
    yield "axes without end", raw(shape % ((b"9" * 4000 + b",") * 400))
    yield "a long shape", raw(shape % (b"1, " * 500_000))
    yield "nested lists", raw(b'{"a": ' + b"[" * 1_000_000)

    # Numbers.
    yield "2^40 samples", forged(model, words={"lamp": 2**40 + 1, "word 1": 1})
    for number in (2**53, 2**63 - 1, 10**400, -1, 1.5):
        words = {"lamp": number, "word 1": 1}
        yield f"{str(number)[:20]} samples", forged(model, words=words)
    many = arrays | {"counts": np.array([2**40 + 1, 1])}
    yield "a state of 2^40 samples", forged(model, many)
    yield "a generation of 2^63", forged(model, generation=2**63 - 1)
    yield "the most writings", forged(model, generation=2**53 - 1)
    for score in (10**400, float("inf"), float("nan"), 1e300, "0.5", None, True):
        yield f"a sensitivity of {str(score)[:8]}", forged(model, sensitivities={"lamp": score})
        yield f"a common sensitivity of {str(score)[:8]}", forged(model, sensitivity=score)
    yield "a word without samples", forged(model, words={"lamp": 0, "word 1": 1})
    yield "a version without end", forged(model, version=math.inf)
    for revision in (None, ""):
        yield f"the revision {revision!r}", forged(model, revision=revision)
    yield "a sensitivity of nobody", forged(model, sensitivities={"music": 0.5})
    yield "an argument of 10^400", forged(model, learner=part("ridge", lam=10**400))

    # Words and text.
    for name, word in {
        "invisible": "lamp\u200b",
        "long": "lamp" * 100,
        "not stripped": " lamp",
        "not composed": "cafe\u0301",
        "escape codes": "\x1b[2J",
        "half a surrogate": "\ud800",
        "right to left": "\u202elamp",
        "empty": "",
    }.items():
        for number in (1, 2):
            # Those of format 1 that have a clean spelling get it.
            if number == 2 or name not in ("not stripped", "not composed"):
                words = {word: 1, "word 1": 1}
                yield f"a word, {name}, format {number}", forged(model, words=words, format=number)
    yield "one spelling twice", forged(model, words={"lamp": 1, " lamp": 1}, format=1)
    yield "escape codes in a version", forged(model, version="\x1b[2J")
    yield "escape codes in a later version", forged(model, version="\x1b[2J", format=9)
    yield "escape codes in a name", forged(model, learner=part("\x1b[2J"))
    yield "escape codes in an argument", forged(model, backbones=backbone("logmel", **{"\x1b": 1}))

    # The seal.
    content = forged(model)
    renamed = content.replace(b'\\"lamp\\"', b'\\"lump\\"')
    assert renamed != content
    yield "another word", renamed
    yield "another word, the seal's name damaged", renamed.replace(b"crc32", b"crc33")
    text = json.dumps(header | {"checksum": store.checksum(arrays)})
    yield "no seal", safetensors.numpy.save(arrays, {"tapword": text})


def headers() -> Iterator[bytes]:
    """Give the JSON of those files that have a header."""
    for _, content in attacks():
        start = content[8 : 8 + int.from_bytes(content[:8], "little")]
        with contextlib.suppress(ValueError, KeyError, RecursionError):
            yield json.loads(start)["__metadata__"]["tapword"].encode(errors="replace")


def counts(rows: int) -> dict[str, np.ndarray]:
    return {"counts": np.ones(rows, np.int64), "n_scatter": np.array([rows])}
