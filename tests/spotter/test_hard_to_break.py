"""Model files under what happens to files: kills, crowds, full disks, and lies about sizes.

What must not touch the process of the tests (limits, kills, other users) runs in one of its own.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tapword import Spotter
from tapword.errors import InputError, ModelFileError
from tapword.spotter import store
from tapword.spotter.encoder import Encoded
from tapword.spotter.store import Entry
from tests import hostile
from tests.conftest import ROOT, tone

PARTS = {"backbone": "logmel", "pooling": "avg", "learner": "slda"}
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: fork, limits, namespaces")

BEGIN = """
import os, random, resource, signal, sys, time
import numpy as np
from tapword import Spotter
from tapword.spotter import store
from tapword.spotter.encoder import Encoded
from tapword.errors import ModelFileError, TapwordError

path, arguments = sys.argv[1], sys.argv[2:]

def spotter(order, number):
    made = Spotter(backbone="logmel", pooling=f"tap:R={order}", learner="slda")
    x = np.random.default_rng(number).normal(size=(4, 32 * order))
    made.learn_encoded(Encoded.one_second(x), list("abcd"))
    return made
"""


def alone(script, *arguments, prefix=()):
    """Run a script in a process of its own; give back what it prints."""
    command = [*prefix, sys.executable, "-c", BEGIN + script, *map(str, arguments)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def litter(folder):
    return [name for name in os.listdir(folder) if name.endswith(".new")]


@pytest.fixture
def path(tmp_path):
    spotter = Spotter(**PARTS)
    spotter.learn(tone(300), "low")
    spotter.learn(tone(900), "high")
    spotter.save(tmp_path / "model.tap")
    return tmp_path / "model.tap"


# Kills and crowds.

KILLED = """
versions = [spotter(20, number) for number in range(2)]
states = [{key: array.tobytes() for key, array in one.learner.state().items()} for one in versions]
versions[0].save(path)
began = time.perf_counter()
versions[0].save(path)
save_s = time.perf_counter() - began
random.seed(int(arguments[1]))
seen, torn = set(), 0
kills = int(arguments[0])
# Beyond these only as long as luck has not shown both versions and a write half done.
for number in range(10 * kills):
    if number >= kills and len(seen) == 2 and torn:
        break
    child = os.fork()
    if not child:
        while True:
            for one in versions:
                one.save(path, overwrite=True)
    time.sleep(random.uniform(0, 4 * save_s))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    state = Spotter.load(path).learner.state()
    seen.add(states.index({key: array.tobytes() for key, array in state.items()}))
    torn += any(name.endswith(".new") for name in os.listdir(os.path.dirname(path)))
versions[0].save(path, overwrite=True)
print(sorted(seen), torn)
"""


@LINUX
@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.soak)])
def test_a_killed_save_leaves_one_of_two_whole_versions(tmp_path, kills):
    """`states.index` fails on anything else; some kills must have hit a write half done."""
    seen, _, torn = alone(KILLED, tmp_path / "model.tap", kills, 1).rpartition(" ")
    assert json.loads(seen) == [0, 1] and int(torn) > 0
    assert not litter(tmp_path)


CROWD = """
workers, rounds = map(int, arguments)
children = []
for worker in range(workers):
    children.append(os.fork())
    if not children[-1]:
        number = 0
        while number < rounds:
            x = np.random.default_rng((worker, number)).normal(size=(2, 32))
            try:
                with Spotter.edit(path, backbone="logmel", pooling="avg", learner="slda") as one:
                    one.learn_encoded(Encoded.one_second(x), [f"own{worker}", "everybody's"])
                number += 1
            except ModelFileError as error:
                # On a busy machine the others may take turns for longer than the lock waits.
                assert "try again" in str(error), error
        os._exit(0)
assert not any([os.waitpid(child, 0)[1] for child in children])
"""


@LINUX
@pytest.mark.parametrize("rounds", [5, pytest.param(100, marks=pytest.mark.soak)])
def test_eight_programs_teaching_one_model_lose_no_sample(tmp_path, rounds):
    path = tmp_path / "model.tap"
    alone(CROWD, path, 8, rounds)
    whole = Spotter(**PARTS)
    for worker in range(8):
        for number in range(rounds):
            x = np.random.default_rng((worker, number)).normal(size=(2, 32))
            whole.learn_encoded(Encoded.one_second(x), [f"own{worker}", "everybody's"])
    taught = Spotter.load(path)
    assert taught.words == whole.words
    assert store.read(path).header["generation"] == 8 * rounds
    for word in whole.words:
        means = [
            one.learner.state()["means"][list(one.words).index(word)] for one in (taught, whole)
        ]
        np.testing.assert_allclose(*means, atol=1e-5)
    scatters = [one.learner.state()["scatter"] for one in (taught, whole)]
    np.testing.assert_allclose(*scatters, atol=1e-5 * scatters[0].max())


# Disks and folders.

FULL = """
small, large = spotter(1, 0), spotter(10, 1)
small.save(path)
before = open(path, "rb").read()
if arguments:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(arguments[0]), -1))
try:
    large.save(path, overwrite=True)
except ModelFileError as error:
    print(error)
assert open(path, "rb").read() == before
assert Spotter.load(path).words == small.words
print([name for name in os.listdir(os.path.dirname(path)) if name.endswith(".new")])
small.save(path)
"""


@LINUX
def test_a_file_that_may_not_grow_is_said_and_the_old_one_stays(tmp_path):
    output = alone(FULL, tmp_path / "model.tap", 50_000)
    assert output == f"cannot write {tmp_path}/model.tap: File too large\n[]\n"


@LINUX
def test_a_full_disk_is_said_and_the_old_file_stays(tmp_path):
    own_disk = ["unshare", "-Urm", "sh", "-c"]
    mount = f'mount -t tmpfs -o size=64k none "{tmp_path}"'
    if shutil.which("unshare") is None or subprocess.run([*own_disk, mount]).returncode:
        pytest.skip("a disk of 64 kB cannot be mounted here")
    output = alone(FULL, tmp_path / "model.tap", prefix=[*own_disk, f'{mount} && exec "$@"', "sh"])
    assert output == f"cannot write {tmp_path}/model.tap: No space left on device\n[]\n"


READ_ONLY = """
one = Spotter.load(path)
if not os.getuid():
    os.setuid(65534)
one = Spotter.load(path)
for change in (lambda: one.save(path), lambda: Spotter.edit(path).__enter__()):
    try:
        change()
    except ModelFileError as error:
        print(error)
"""


@pytest.fixture
def public(path):
    """A model in a folder that any user can walk to, as those of pytest are not."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(shutil.copy(path, folder))
        os.chmod(folder, 0o755)


@LINUX
def test_a_folder_that_may_not_be_written_is_said_and_its_model_still_loads(public):
    before = public.read_bytes()
    os.chmod(public.parent, 0o555)
    assert alone(READ_ONLY, public) == f"cannot write {public}: Permission denied\n" * 2
    assert public.read_bytes() == before and os.listdir(public.parent) == [public.name]


UNREACHABLE = """
one = Spotter.load(path)
os.chmod(os.path.dirname(path), 0o600)
if not os.getuid():
    os.setuid(65534)
for read in (Spotter.load, one.predict):
    try:
        read(path)
    except TapwordError as error:
        print(error)
"""


@LINUX
def test_what_lies_in_a_closed_folder_is_not_called_missing(public):
    wanted = f"{public} cannot be reached: Permission denied\n"
    assert alone(UNREACHABLE, public) == f"no model file: {wanted}{wanted}"


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
@pytest.mark.parametrize("failure", [PermissionError(13, "Permission denied"), KeyboardInterrupt()])
def test_a_write_that_fails_at_any_step_leaves_the_old_file_alone(path, monkeypatch, step, failure):
    def fail(*arguments):
        raise failure

    before = path.read_bytes()
    monkeypatch.setattr(os, step, fail)
    wanted = ModelFileError if isinstance(failure, OSError) else KeyboardInterrupt
    with pytest.raises(wanted), Spotter.edit(path) as spotter:
        spotter.learn(tone(500), "mid")
    monkeypatch.undo()
    assert path.read_bytes() == before and not litter(path.parent)
    with Spotter.edit(path) as spotter:
        spotter.learn(tone(500), "mid")
    assert "mid" in Spotter.load(path).words


def test_a_folder_that_vanishes_before_the_write_is_said(path):
    with (
        pytest.raises(ModelFileError, match=r"cannot write .*No such file"),
        Spotter.edit(path) as spotter,
    ):
        spotter.learn(tone(500), "mid")
        shutil.rmtree(path.parent)
    assert spotter.words["mid"] == 1
    path.parent.mkdir()
    spotter.save(path)
    assert "mid" in Spotter.load(path).words


def test_a_file_that_vanishes_before_the_write_is_written_whole(path):
    with Spotter.edit(path) as spotter:
        spotter.learn(tone(500), "mid")
        path.unlink()
    assert Spotter.load(path).words == {"low": 1, "high": 1, "mid": 1}


def test_the_next_write_sweeps_its_own_litter_and_nobody_elses(path):
    for name in (".model.tap.abcd_123.new", ".model.tap.x.abcd1234.new", "model.tap.new", ".new"):
        path.with_name(name).touch()
    with Spotter.edit(path):
        pass
    assert sorted(litter(path.parent)) == [".model.tap.x.abcd1234.new", ".new", "model.tap.new"]


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, "/".join(["a" * 200] * 30), "", "\udc80/x"])
def test_names_no_file_can_have_are_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    spotter = Spotter(**PARTS)
    for call in (Spotter.load, spotter.save, lambda name: Spotter.edit(name).__enter__()):
        with pytest.raises(ModelFileError):
            call(name)
    with pytest.raises(InputError):
        spotter.learn(name, "word")


@LINUX
def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    spotter = Spotter(**PARTS)
    for call in (Spotter.load, spotter.save, lambda name: Spotter.edit(name).__enter__()):
        with pytest.raises(ModelFileError, match="is not a plain file"):
            call(tmp_path / "pipe")
    with pytest.raises(InputError, match="is not a plain file"):
        spotter.learn(tmp_path / "pipe", "word")


def test_numbers_of_numpy_in_a_parts_arguments_are_saved(tmp_path):
    from tapword.poolings.tap import Tap

    spotter = Spotter("logmel", Tap(R=np.int64(3)), "ncm")
    spotter.save(tmp_path / "model.tap")
    assert Spotter.load(tmp_path / "model.tap").encoder.poolings[0].R == 3


# Lies.

LONG_LIST = {f"{number:0200}": 1 for number in range(100_000)}


def tensor(dtype="F32", shape=(2, 2), start=0, stop=16):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [start, stop]}


def header_text(path, **changes):
    return json.dumps(store.read(path).header | changes)


def forge(path, text, tensors, data=b"\0" * 64, size=None):
    """Write a safetensors file by hand; with `size`, with a hole of so many bytes."""
    table = tensors if isinstance(tensors, bytes) else json.dumps(tensors)[1:].encode()
    entries = {} if isinstance(tensors, bytes) else tensors
    shapes = {name: Entry(np.dtype("f4"), tuple(row["shape"])) for name, row in entries.items()}
    metadata = {"tapword": text, "crc32": store.seal(text, shapes)}
    start = b'{"__metadata__": ' + json.dumps(metadata).encode()
    content = start + (b"}" if table == b"}" else b", " + table)
    with open(path, "wb") as file:
        file.write(len(content).to_bytes(8, "little") + content + data)
        if size is not None:
            file.truncate(8 + len(content) + size)


@pytest.mark.parametrize(
    "tensors",
    [
        {"means": tensor(shape=[2**40], stop=2**42)},
        {"means": tensor(shape=[2**62, 2**62], stop=16)},
        {"means": tensor(shape=[-2, -2])},
        {"means": tensor(shape=[2.5, 2])},
        {"means": tensor(shape=[])},
        {"means": tensor(start=16, stop=0)},
        {"means": tensor(start=-16, stop=0)},
        {"means": tensor(), "counts": tensor(start=8, stop=24)},
        {"means": tensor(), "counts": tensor()},
        {"means": tensor(start=8, stop=24)},
        {"means": tensor(stop=2**64)},
        {"means": tensor(dtype="O")},
        {"means": tensor(dtype="F8_E4M3", shape=[64], stop=64)},
        {"means": tensor(dtype="BF16", shape=[32], stop=64)},
        b'"means": %s, "means": %s}' % ((json.dumps(tensor()).encode(),) * 2),
        b'"__metadata__": {}}',
        b'"a": ' + b"[" * 100_000,
        b'"a": ' + b'{"a":' * 100_000,
    ],
    ids=lambda tensors: str(tensors)[:60],
)
def test_tables_that_lie_are_refused(path, tensors):
    text = header_text(path)
    forge(path, text, tensors)
    with pytest.raises(ModelFileError):
        Spotter.load(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "not JSON"),
        ('{"format": 1, "words": ' + '{"a":' * 100_000, "not JSON"),
        ('{"format": 1, "format": 1, "words": {}}', "a name comes twice"),
        ('{"format": 1, "words": {"low": 1, "low": 2}}', "a name comes twice"),
        ('{"format": ' + "9" * 5_000 + "}", "not JSON"),
        ('{"format": 0, "words": {}}', "no format number"),
        ('{"format": true, "words": {}}', "no format number"),
        ('{"format": 1, "words": {"\\ud800": 1}}', "printable characters"),
        ('{"format": 1, "words": {"\\u001b[2J": 1}}', "printable characters"),
        ('{"format": 1, "words": {"low": 1e400}}', "no list of words"),
        ('{"format": 1, "words": {}, "generation": "x"}', "no generation or revision"),
        ('{"format": 1, "words": {}, "generation": Infinity}', "no generation or revision"),
        ('{"format": 1, "words": {}, "revision": []}', "no generation or revision"),
        (
            '{"format": 1, "revision": "a", "words": {}, "backbones": ["logmel"]}',
            "parts that cannot be made",
        ),
    ],
    ids=lambda text: text[:40],
)
def test_headers_that_lie_are_refused_when_loading_and_when_saving(path, text, message):
    spotter = Spotter.load(path)
    forge(path, text, b"}", b"")
    for call in (lambda: Spotter.load(path, ["logmel"]), lambda: spotter.save(path)):
        with pytest.raises(ModelFileError, match=message):
            call()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("counts", np.array([-1, 2])),
        ("counts", np.array([0, 2])),
        ("counts", np.array([2**62, 2**62])),
        ("n_scatter", np.array([-1])),
        ("n_scatter", np.array([2**63 - 1])),
    ],
)
def test_counts_that_lie_are_refused(path, key, value):
    model = store.read(path)
    path.write_bytes(hostile.forged(model, model.arrays | {key: value}))
    with pytest.raises(ModelFileError, match="'counts' or 'n_scatter' cannot be right"):
        Spotter.load(path)


MEASURED = """
def peak_kb():
    # What a process is started with may have been larger; this is its own.
    return int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])

Spotter.load(arguments[0])
before = peak_kb()
try:
    Spotter.load(path)
except ModelFileError as error:
    print(peak_kb() - before, str(error))
"""


@LINUX
@pytest.mark.parametrize(
    "claim", ["huge shape", "huge file", "huge header", "huge claim of header"]
)
def test_huge_claims_are_refused_before_memory_is_taken(path, claim):
    good = shutil.copy(path, path.with_name("good.tap"))
    text = header_text(path)
    if claim == "huge shape":
        forge(path, text, {"means": tensor(shape=[2**36], stop=2**38)})
    elif claim == "huge file":
        forge(path, text, {"foreign": tensor(shape=[2**36], stop=2**38)}, b"", size=2**38)
    elif claim == "huge header":
        forge(path, header_text(path, words=LONG_LIST), b"}", b"")
    else:
        path.write_bytes((99_000_000).to_bytes(8, "little") + b"{}" * 20)
    grown_kb, message = alone(MEASURED, path, good).split(" ", 1)
    assert int(grown_kb) < 8_000, message
    assert "at most" in message or "cut short or damaged" in message


LITTLE_MEMORY = """
Spotter.load(arguments[0])
used = int(open("/proc/self/status").read().partition("VmSize:")[2].split()[0]) * 1024
resource.setrlimit(resource.RLIMIT_AS, (used + int(arguments[1]), -1))
try:
    store.read(path)
except ModelFileError as error:
    print(error)
"""


@LINUX
@pytest.mark.parametrize("room", [200_000_000, 2_000_000_000])
def test_a_model_larger_than_memory_is_said(path, room):
    """There is room for nothing, or for most of it."""
    good = shutil.copy(path, path.with_name("good.tap"))
    size, words = 3_000_000_000, {str(n): 1 for n in range(100)}
    text = header_text(path, dim=size // 400, words=words, learner={"name": "ncm", "arguments": {}})
    forge(path, text, {"means": tensor(shape=[100, size // 400], stop=size)}, b"", size=size)
    message = alone(LITTLE_MEMORY, path, good, room)
    assert message.startswith(f"cannot read {path}: ") and "memory" in message[len(str(path)) :]


def test_a_list_of_words_too_long_to_be_read_again_is_not_written(path):
    header, arrays = store.read(path)
    header["words"] = LONG_LIST
    before = path.read_bytes()
    with pytest.raises(ModelFileError, match=r"a header of 2\d MB; a model's has at most 2 MB"):
        store.write(path, header, arrays)
    assert path.read_bytes() == before


@LINUX
def test_foreign_arrays_are_refused_before_memory_is_taken(path):
    good = shutil.copy(path, path.with_name("good.tap"))
    size = 3_000_000_000
    tensors = {"foreign": tensor(shape=[size // 4], stop=size)}
    forge(path, header_text(path), tensors, b"", size=size)
    grown_kb, message = alone(MEASURED, path, good).split(" ", 1)
    assert int(grown_kb) < 8_000, message
    assert "bytes of arrays, its learner and 2 rows need at most" in message


def test_parts_that_do_not_fit_what_was_taught_are_refused(path):
    poolings = [hostile.part("tap", R=20)]
    path.write_bytes(hostile.forged(store.read(path), poolings=poolings))
    with pytest.raises(ModelFileError, match="vectors of 32 numbers, its parts have 640"):
        Spotter.load(path)
