"""`tapword undo`, and what it keeps beside the model."""

import json
import shutil
import stat
import time
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import soundfile

import tapword
from tapword.spotter import store, undo
from tapword.spotter.spotter import Spotter
from tests.conftest import tone

PARTS = ["--backbone", "logmel", "--pooling", "avg", "--learner", "ncm"]


@pytest.fixture
def model(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    for name, pitch in [("lamp", 300), ("music", 900), ("radio", 2_000)]:
        soundfile.write(f"{name}.wav", tone(pitch), 16_000)
    for word, parts in (("lamp", PARTS), ("music", [])):
        assert run("learn", "home.tap", word, f"{word}.wav", *parts)[0] == 0
    return Path("home.tap")


CHANGES = {
    "learn": ["learn", "home.tap", "radio", "radio.wav"],
    "learn more": ["learn", "home.tap", "lamp", "music.wav"],
    "forget": ["forget", "home.tap", "lamp"],
    "rename": ["rename", "home.tap", "lamp", "light"],
    "reject": ["reject", "home.tap", "radio.wav"],
    "merge": ["merge", "home.tap", "home.tap", "other.tap", "--force"],
}


@pytest.mark.parametrize("arguments", CHANGES.values(), ids=CHANGES)
def test_a_change_is_undone_to_the_last_bit(model, run, arguments):
    other = Spotter.load(model)
    other.learn(tone(2_000), "radio")
    other.save("other.tap")
    before = model.read_bytes()
    assert run(*arguments)[0] == 0 and model.read_bytes() != before
    code, output, _ = run("undo", "home.tap")
    assert code == 0 and output.splitlines()[0].startswith(f"undone: {arguments[0]}")
    assert output.splitlines()[1] == "home.tap: 2 words, 2 samples"
    assert model.read_bytes() == before
    assert not store.backup(model).exists(), "it may hold what was undone"


def test_a_sensitivity_is_undone(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    spotter = Spotter()
    spotter.learn(tone(300), "lamp")
    spotter.save("home.tap")
    for arguments in (["0.7"], ["0.2", "--word", "lamp"]):
        assert run("sensitivity", "home.tap", *arguments)[0] == 0
    code, output, _ = run("undo", "home.tap", "--list")
    assert code == 0
    assert "sensitivity 0.2 of lamp" in output and "sensitivity 0.7 of all words" in output
    assert run("undo", "home.tap")[0] == 0
    assert tapword.load("home.tap").vocabulary.sensitivity_of("lamp") == 0.7
    assert run("undo", "home.tap")[0] == 0
    assert tapword.load("home.tap").vocabulary.sensitivity_of("lamp") == 0.5


def test_several_steps_back_to_the_beginning(model, run):
    states = [model.read_bytes()]
    for name in ("learn", "rename", "reject"):
        assert run(*CHANGES[name])[0] == 0
        states.append(model.read_bytes())
    assert run("undo", "home.tap", "--steps", "2")[0] == 0
    assert model.read_bytes() == states[1]
    # A step after an undo is a step like any other.
    assert run(*CHANGES["forget"])[0] == 0
    assert run("undo", "home.tap", "--steps", "2")[0] == 0
    assert model.read_bytes() == states[0]
    code, _, errors = run("undo", "home.tap", "--steps", "3")
    assert code == 2 and "only the last 2 changes" in errors
    code, output, _ = run("undo", "home.tap", "--steps", "2")
    assert code == 0 and "removed" in output
    assert sorted(path.name for path in Path().glob("[!.]*.tap*")) == []


def test_a_change_by_another_program_is_left_alone(model, run):
    with Spotter.edit(model) as spotter:
        spotter.learn(tone(500), "music")
    after = model.read_bytes()
    code, _, errors = run("undo", "home.tap")
    assert code == 2 and "changed by another program" in errors and "nothing was undone" in errors
    assert model.read_bytes() == after
    # The next command starts from there.
    assert run(*CHANGES["forget"])[0] == 0
    assert run("undo", "home.tap")[0] == 0 and model.read_bytes() == after
    assert run("undo", "home.tap")[0] == 2
    assert "nothing to undo" in run("undo", "home.tap", "--list")[1]


def test_the_undo_file_is_private_and_has_bounds(model, run, monkeypatch):
    model.chmod(0o644)
    kept = undo.path_of(model)
    for number in range(undo.MAX_STEPS + 2):
        names = ("lamp", "light") if number % 2 == 0 else ("light", "lamp")
        assert run("rename", "home.tap", *names)[0] == 0
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert len(undo.read(model)) == undo.MAX_STEPS
    size = model.stat().st_size
    assert kept.stat().st_size < undo.MAX_STEPS * size + 3_000
    monkeypatch.setattr(undo, "MAX_MB", 6.5 * size / 1e6)
    run(*CHANGES["learn"])
    assert len(undo.read(model)) == 6
    # A month later, any program that writes the model removes it.
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + (undo.MAX_DAYS + 1) * 24 * 3600)
    code, _, errors = run("undo", "home.tap")
    assert code == 2 and "nothing to undo" in errors
    with Spotter.edit(model) as spotter:
        spotter.learn(tone(500), "music")
    assert not kept.exists()
    assert stat.S_IMODE(model.stat().st_mode) == 0o644


def test_it_keeps_statistics_alone_and_goes_nowhere(model, run):
    assert run(*CHANGES["learn"])[0] == 0
    states = [step.state.tobytes() for step in undo.read(model)]
    # Each is a model file, which holds no recording, or nothing before the first.
    assert states[0] == b""
    for state in states[1:]:
        Path("state.tap").write_bytes(state)
        assert not Spotter.load("state.tap").learner.keeps_vectors
    assert run("merge", "both.tap", "home.tap")[0] == 0
    assert undo.read(Path("both.tap").resolve())[0].state.size == 0
    shutil.copy(model, "copy.tap")
    assert "nothing to undo" in run("undo", "copy.tap")[2]


def test_what_is_erased_is_nowhere(model, run):
    """`forget` keeps the word for undo, until it is undone or erased."""
    assert run(*CHANGES["learn"])[0] == 0
    assert run("forget", "home.tap", "radio", "--erase")[0] == 0
    assert sorted(path.name for path in Path().glob("[!.]*.tap*")) == ["home.tap"]
    assert b"radio" not in model.read_bytes()
    assert run("undo", "home.tap")[0] == 2
    # A word that was forgotten already.
    assert run(*CHANGES["learn"])[0] == 0 and run("forget", "home.tap", "radio")[0] == 0
    assert b"radio" in undo.path_of(model).read_bytes()
    code, output, _ = run("forget", "home.tap", "radio", "--erase")
    assert code == 0 and "erased the backup and the undo file" in output
    assert sorted(path.name for path in Path().glob("[!.]*.tap*")) == ["home.tap"]
    code, _, errors = run("forget", "home.tap", "radio", "--erase")
    assert code == 2 and "radio" in errors


def test_what_python_and_the_studio_forget_is_in_no_undo_file(model, run):
    with Spotter.edit(model) as spotter:
        spotter.forget("lamp")
    assert not undo.path_of(model).exists()


def forged(steps, states):
    return safetensors.numpy.save(states, {"steps": json.dumps(steps)})


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole, after: whole[:-5],
        lambda whole, after: b"",
        lambda whole, after: b"\xff" * 100,
        lambda whole, after: forged([["learn", "soon", after]], {}),
        lambda whole, after: forged([["learn", time.time(), after]], {"1": np.zeros(3)}),
        lambda whole, after: forged({"a": 1}, {}),
        lambda whole, after: (8).to_bytes(8, "little") + b"[" * 100_000,
        lambda whole, after: forged([["learn", time.time(), after]], {"0": np.ones(30)}),
    ],
)
def test_a_damaged_undo_file_changes_nothing(model, run, damage):
    kept, before = undo.path_of(model), model.read_bytes()
    kept.write_bytes(damage(kept.read_bytes(), store.revision(model)))
    code, _, errors = run("undo", "home.tap")
    assert code == 2 and len(errors.splitlines()) == 1
    assert model.read_bytes() == before
    # The next change begins a new one.
    assert run(*CHANGES["rename"])[0] == 0
    assert run("undo", "home.tap")[0] == 0 and model.read_bytes() == before


def test_a_step_whose_write_failed_does_not_count(model, run, monkeypatch):
    before = model.read_bytes()

    def fail(source, target):
        if str(target).endswith(".tap"):
            raise OSError(28, "No space left on device")
        return replace(source, target)

    with monkeypatch.context() as patched:
        replace = __import__("os").replace
        patched.setattr("os.replace", fail)
        assert run(*CHANGES["rename"])[0] == 2
    assert model.read_bytes() == before
    code, output, _ = run("undo", "home.tap")
    assert code == 0 and output.startswith("undone: learn music")
