"""A model file is data: whatever it says, loading it does nothing but read it.

The promise: loading opens no other file, no socket and no thread; it takes the file's size and
200 MB of memory at most, and time in proportion to the file.
"""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tapword
from tapword import Spotter
from tapword.errors import ModelFileError
from tapword.spotter import store
from tapword.spotter.encoder import Encoded
from tests import hostile
from tests.conftest import ROOT, tone

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: limits and strace")
MOST_BYTES = 200_000_000
# Generous: the slowest, two megabytes of names, takes half a second on a busy machine.
MOST_S = 5.0
CALLS = "open,openat,openat2,creat,socket,connect,clone,clone3,fork,vfork,execve"

LOAD = """
import contextlib, json, os, resource, sys, time
from tapword import Spotter
from tapword.errors import ModelFileError

def mark(name):
    with contextlib.suppress(OSError):
        os.open("/mark/" + name, os.O_RDONLY)

folder, most = sys.argv[1], int(sys.argv[2])
names = sorted(os.listdir(folder))
# Modules that every load needs are imported by this one.
Spotter.load(os.path.join(folder, "honest"))
for name in names:
    path = os.path.join(folder, name)
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + os.path.getsize(path) + most, -1))
    began, outcome = time.process_time(), "loaded"
    mark("begin")
    try:
        Spotter.load(path)
    except ModelFileError as error:
        outcome = str(error)
    except BaseException as error:
        outcome = f"RAISED {error!r}"
    mark("end")
    took = time.process_time() - began
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    print(json.dumps([name, outcome, took]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("hostile")
    (made / "honest").write_bytes(hostile.forged(hostile.honest()))
    for number, (name, content) in enumerate(hostile.attacks()):
        (made / f"{number:02} {name}").write_bytes(content)
    return made


@pytest.fixture(scope="module")
def loaded(folder, tmp_path_factory):
    """Each file loaded in one process: its outcome and time, and the system calls of all."""
    log = tmp_path_factory.mktemp("trace") / "log"
    traced = ["strace", "-f", "-qq", "--seccomp-bpf", "-e", f"trace={CALLS}", "-o", str(log)]
    can_trace = (
        shutil.which("strace") is not None and not subprocess.run([*traced, "true"]).returncode
    )
    command = [*(traced if can_trace else []), sys.executable, "-c", LOAD, folder, MOST_BYTES]
    done = subprocess.run(
        list(map(str, command)), cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    outcomes = {}
    for line in done.stdout.splitlines():
        name, outcome, took = json.loads(line)
        outcomes[name] = outcome, took
    return outcomes, log.read_text(errors="replace") if can_trace else None


@LINUX
def test_every_hostile_file_is_refused_with_words_one_can_print(loaded):
    for name, (outcome, took) in loaded[0].items():
        harmless = name == "honest" or name[3:] in hostile.HARMLESS
        assert (outcome == "loaded") == harmless, (name, outcome)
        assert not outcome.startswith("RAISED"), (name, outcome)
        assert "does not fit into memory" not in outcome, "it was tried, not judged"
        assert outcome.isprintable() and len(outcome) < 1500, name
        assert took < MOST_S, (name, took)


@LINUX
def test_loading_opens_no_other_file_no_socket_and_no_thread(loaded, folder):
    outcomes, log = loaded
    if log is None:
        pytest.skip("needs strace, and to be allowed to trace")
    inside, loads, found = False, 0, []
    package = str(Path(tapword.__file__).parent)
    for line in log.splitlines():
        if '"/mark/' in line:
            inside = '"/mark/begin"' in line
            loads += inside
        elif inside:
            opened = re.search(r'open\w*\([^"]*"([^"]*)"', line)
            if opened is None or not opened[1].startswith((str(folder), package)):
                found.append(line)
    assert found == [] and loads == len(outcomes)


@pytest.mark.parametrize("name", sorted(hostile.HARMLESS))
def test_what_loads_harmlessly_can_be_taught_saved_and_loaded_again(tmp_path, name):
    path = tmp_path / "model.tap"
    path.write_bytes(dict(hostile.attacks())[name])
    spotter = Spotter.load(path)
    spotter.learn_encoded(
        Encoded.one_second(np.ones((1, spotter.learner.dim), np.float32)), ["music"]
    )
    spotter.save(path)
    assert "music" in Spotter.load(path).words


def test_a_save_that_could_not_be_loaded_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "model.tap"
    model = hostile.honest()
    path.write_bytes(hostile.forged(model, model.arrays | {"counts": np.array([2**40, 1])}))
    before, spotter = path.read_bytes(), Spotter.load(path)
    spotter.learn(tone(300), "lamp")
    with pytest.raises(ModelFileError, match=r"not saved, .* stays as it was: .*'counts'"):
        spotter.save(path)
    assert path.read_bytes() == before
    assert {one.name for one in tmp_path.iterdir()} == {"model.tap", ".model.tap.lock"}


@pytest.mark.parametrize("word", [" lamp", "lamp\t ", "cafe\u0301"])
def test_words_of_format_1_get_their_clean_spelling(tmp_path, word):
    path = tmp_path / "model.tap"
    model = hostile.honest()
    words = {word: 1, "word 1": 1}
    path.write_bytes(hostile.forged(model, format=1, words=words))
    spotter = Spotter.load(path)
    [clean, _] = spotter.words
    assert clean in ("lamp", "caf\xe9")
    spotter.forget(word)
    assert list(spotter.words) == ["word 1"]


def test_a_file_that_is_overwritten_while_it_is_read_is_refused(tmp_path, monkeypatch):
    """A mapped file that gets shorter kills its reader."""
    path = tmp_path / "model.tap"
    path.write_bytes(hostile.forged(hostile.honest("slda", "tap:R=20")))
    judge = store._check_arrays

    def cut(*arguments):
        judge(*arguments)
        with open(path, "r+b") as file:
            file.truncate(2000)

    monkeypatch.setattr(store, "_check_arrays", cut)
    with pytest.raises(ModelFileError, match="checksum does not match"):
        Spotter.load(path)


@LINUX
def test_a_large_model_takes_its_own_size_of_memory_alone(tmp_path):
    """300 MB, of which one array is nearly all: a copy of it would not fit."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "honest").write_bytes(hostile.forged(hostile.honest()))
    model = hostile.honest("ncm", words=5)
    dim = 300_000_000 // 4 // 5
    arrays = {"means": np.zeros((5, dim), np.float32)} | hostile.counts(5)
    flat = [hostile.part("flat", n_frames=None)]
    large = hostile.forged(store.Model(model.header | {"dim": dim}, arrays), poolings=flat)
    (tmp_path / "models" / "large").write_bytes(large)
    del large, arrays
    command = [sys.executable, "-c", LOAD, str(tmp_path / "models"), str(MOST_BYTES)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.count('"loaded"') == 2, done.stdout + done.stderr[-2000:]


def test_time_grows_with_the_file(tmp_path):
    path, best = tmp_path / "model.tap", {}
    for words in (2_000, 8_000):
        path.write_bytes(hostile.forged(hostile.honest("ncm", words=words)))
        for _ in range(3):
            began = time.process_time()
            Spotter.load(path)
            best[words] = min(best.get(words, np.inf), time.process_time() - began)
    # Four times, if it is linear; sixteen if every word is compared with every other.
    assert best[8_000] < 10 * best[2_000] + 0.05


# Backups.


@pytest.fixture
def path(tmp_path):
    spotter = Spotter("logmel", "avg", "ncm")
    for word in ("lamp", "music"):
        spotter.learn(tone(300), word)
    spotter.save(tmp_path / "home.tap")
    return tmp_path / "home.tap"


def change(path, call):
    with Spotter.edit(path) as spotter:
        call(spotter)


def test_the_file_before_is_kept_with_its_permissions(path):
    kept = store.backup(path)
    assert kept.name == "home.tap.bak" and not kept.exists()
    path.chmod(0o600)
    for _ in range(3):
        before = path.read_bytes()
        change(path, lambda spotter: spotter.learn(tone(500), "radio"))
        assert kept.read_bytes() == before != path.read_bytes()
        assert kept.stat().st_mode & 0o777 == path.stat().st_mode & 0o777 == 0o600
    assert not [one for one in path.parent.iterdir() if one.name.endswith(".new")]


def test_a_disk_without_second_names_keeps_a_copy(path, monkeypatch):
    path.chmod(0o600)
    before = path.read_bytes()

    def refuse(*arguments):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    change(path, lambda spotter: spotter.learn(tone(500), "radio"))
    kept = store.backup(path)
    assert kept.read_bytes() == before and kept.stat().st_mode & 0o777 == 0o600


def forget_and_teach_again(spotter):
    spotter.forget("lamp")
    for _ in range(3):
        spotter.learn(tone(900), "lamp")


@pytest.mark.parametrize(
    "call",
    [
        lambda spotter: spotter.forget("lamp"),
        lambda spotter: spotter.rename("lamp", "light"),
        forget_and_teach_again,
        lambda spotter: spotter.replace_with(Spotter("logmel", "avg", "ncm")),
    ],
    ids=["forgotten", "renamed", "taught again", "replaced"],
)
def test_nothing_that_was_forgotten_stays_in_a_backup(path, call):
    change(path, lambda spotter: spotter.learn(tone(500), "radio"))
    assert store.backup(path).exists()
    change(path, call)
    assert not store.backup(path).exists()
    change(path, lambda spotter: spotter.learn(tone(500), "radio"))
    assert store.backup(path).exists(), "of the file after it was forgotten"


def test_what_was_forgotten_elsewhere_stays_in_no_backup(path, tmp_path):
    spotter = Spotter.load(path)
    spotter.forget("lamp")
    spotter.save(tmp_path / "copy.tap")
    spotter.learn(tone(500), "lamp")
    spotter.save(path, overwrite=True)
    assert not store.backup(path).exists()


def test_a_model_of_other_words_written_over_one_leaves_no_backup(path):
    change(path, lambda spotter: spotter.learn(tone(500), "radio"))
    other = Spotter("logmel", "avg", "ncm")
    other.learn(tone(300), "lamp")
    other.save(path, overwrite=True)
    assert not store.backup(path).exists()


def test_a_damaged_file_names_its_backup_which_no_write_destroys(path):
    before = path.read_bytes()
    change(path, lambda spotter: spotter.learn(tone(500), "radio"))
    spotter = Spotter.load(path)
    path.write_bytes(path.read_bytes()[:-1])
    kept = store.backup(path)
    with pytest.raises(ModelFileError, match=f"cut short .*; {kept} is the model as it was before"):
        Spotter.load(path)
    with pytest.raises(ModelFileError):
        spotter.save(path)
    assert kept.read_bytes() == before
    spotter.save(path, overwrite=True)
    assert kept.read_bytes() == before, "the good one, not the damaged file"
    shutil.copy(kept, path)
    assert Spotter.load(path).words == {"lamp": 1, "music": 1}


def test_nobody_else_can_read_a_private_model_while_it_is_written(path, monkeypatch):
    path.chmod(0o600)
    seen, sync = [], os.fsync

    def look(descriptor):
        found = os.fstat(descriptor).st_mode
        if stat.S_ISREG(found):
            seen.append(found & 0o777)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", look)
    change(path, lambda spotter: spotter.learn(tone(500), "radio"))
    assert seen == [0o600]
