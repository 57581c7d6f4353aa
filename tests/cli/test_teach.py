import importlib
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
import typer.main

import tapword
from tapword import cli, registry
from tapword.assets import CLIPS
from tapword.cli import app, teach
from tapword.cli.commands import COMMANDS
from tapword.spotter import store
from tests.conftest import tone

NEW = ["--backbone", "logmel", "--pooling", "tap:R=2", "--learner", "ncm"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for word, pitch in [("low", 300), ("high", 1200)]:
        (tmp_path / "clips" / word).mkdir(parents=True)
        for take in range(3):
            path = tmp_path / "clips" / word / f"{take}.wav"
            soundfile.write(path, tone(pitch * (1 + 0.05 * take)), 16_000)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def model(folder, run):
    assert run("learn", "home.tap", "clips", *NEW)[0] == 0
    return Path("home.tap")


def test_clips_of_noise_alone_are_left_out_and_said_in_one_line(folder, run):
    rng = np.random.default_rng(1)
    for take in range(5):
        soundfile.write(f"hiss{take}.wav", 0.02 * rng.standard_normal(16_000), 16_000)
    lamp = sorted((CLIPS / "lamp").glob("*.ogg"))[0]
    code, output, errors = run("learn", "home.tap", "lamp", "hiss*.wav", lamp)
    assert code == 0 and "learned 1 clip\n" in output and "1 word, 1 sample," in output
    assert errors.splitlines() == [
        "warning: left out 5 clips with only noise: hiss0.wav, hiss1.wav, hiss2.wav and 2 more; "
        "--keep-noise teaches them"
    ]
    code, _, errors = run("learn", "home.tap", "lamp", "hiss*.wav")
    assert code == 2 and "nothing was taught" in errors
    assert tapword.load("home.tap").words == {"lamp": 1}
    code, output, errors = run("learn", "home.tap", "lamp", "hiss*.wav", "--keep-noise")
    assert code == 0 and "learned 5 clips" in output and "taught 5 clips with only noise" in errors
    assert tapword.load("home.tap").words == {"lamp": 6}


def test_a_recording_of_seven_takes_teaches_seven_samples(folder, run):
    takes = [soundfile.read(path)[0] for path in sorted((CLIPS / "lamp").glob("*_0.ogg"))[:7]]
    soundfile.write("lamp.wav", np.concatenate([np.pad(take, 8_000) for take in takes]), 16_000)
    code, output, errors = run("learn", "home.tap", "lamp", "lamp.wav")
    assert code == 0 and "learned 7 clips\n" in output and "1 word, 7 samples," in output
    assert errors.splitlines() == [
        "contains 7 takes; each is taught: lamp.wav (--no-split: the loudest alone)"
    ]
    code, output, errors = run("learn", "one.tap", "lamp", "lamp.wav", "--no-split")
    assert code == 0 and "learned 1 clip\n" in output and "more than one word" in errors
    code, _, errors = run("learn", "home.tap", "lamp", "--mic", "--split")
    assert code == 2 and "not for --mic" in errors


def test_one_recording_under_two_names_is_said(folder, run):
    shutil.copy("clips/low/0.wav", "clips/high/low.wav")
    code, _, errors = run("learn", "home.tap", "clips", *NEW)
    assert code == 0
    names = "clips/high/low.wav, clips/low/0.wav"
    same = f'the same recording is taught as "high" and as "low": {names}'
    assert f"warning: {same}\n" in errors


def test_a_word_that_contradicts_what_was_taught_is_said(folder, run):
    lamps = sorted((CLIPS / "lamp").glob("*_0.ogg"))
    assert run("learn", "home.tap", "lamp", *lamps[:5])[2] == ""
    errors = run("learn", "home.tap", "window", lamps[5])[2]
    assert f'warning: sounds like "lamp", not "window": {lamps[5]}\n' == errors
    assert run("forget", "home.tap", "window")[0] == 0
    errors = run("learn", "home.tap", "light", *lamps[6:9])[2]
    assert 'warning: "light" sounds like "lamp"' in errors


def test_a_word_in_other_capitals_is_asked_about_at_a_terminal(folder, run, model, monkeypatch):
    before = model.read_bytes()
    asked = []

    def answer(question, **_):
        asked.append(question)
        return False

    monkeypatch.setattr(teach.typer, "confirm", answer)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(teach.err, "_force_terminal", True)
    code, _, error = run("learn", model, "Low", "clips/low")
    assert code == 2 and 'to teach "low", use that spelling' in error
    question = '"Low" differs from "low" in capital letters only. Teach it?'
    assert asked == [question] and model.read_bytes() == before
    monkeypatch.setattr(teach.typer, "confirm", lambda *_, **__: True)
    assert run("learn", model, "Low", "clips/low")[0] == 0
    # A word that is known is no question.
    monkeypatch.setattr(teach.typer, "confirm", answer)
    assert run("learn", model, "Low", "clips/low")[0] == 0 and len(asked) == 1


def test_a_word_in_other_capitals_is_said_elsewhere(folder, run):
    os.rename("clips/high", "clips/Low")
    code, _, errors = run("learn", "home.tap", "clips", *NEW)
    assert code == 0 and 'warning: "low" differs from "Low" in capital letters only\n' in errors


@pytest.mark.parametrize("moment", ["listening", "learning", "after"])
def test_what_became_of_the_model_is_said_when_somebody_stops(folder, run, monkeypatch, moment):
    def stop(*_, **__):
        raise KeyboardInterrupt

    target, name = {
        "listening": (teach.audio_files, "read"),
        "learning": (tapword.Spotter, "learn_encoded"),
        "after": (teach, "report_model"),
    }[moment]
    monkeypatch.setattr(target, name, stop)
    code, _, error = run("learn", "home.tap", "low", "clips/low", *NEW)
    done = "everything was taught" if moment == "after" else "nothing was taught"
    assert code == 130 and error.endswith(f"stopped: {done}\n")
    assert Path("home.tap").exists() == (moment == "after")


def test_parts_that_do_not_know_their_thresholds_say_so_when_they_are_taught(folder, run):
    for parts in (NEW, []):
        code, output, _ = run("learn", "paper.tap", "low", "clips/low", *parts)
        assert code == 0 and "listen needs --threshold WORD=SCORE" in output
    lamp = sorted((CLIPS / "lamp").glob("*.ogg"))[0]
    assert "--threshold" not in run("learn", "home.tap", "lamp", lamp)[1]


def test_learn_predict_info(folder, run):
    code, output, _ = run("learn", "home.tap", "low", "clips/low", *NEW)
    assert code == 0 and "learned 3 clips" in output
    code, output, _ = run("learn", "home.tap", "high", "clips/high/0.wav", "clips/high/[12].wav")
    assert code == 0 and "2 words, 6 samples" in output
    code, output, _ = run("predict", "home.tap", "clips/high/1.wav", "clips/low", "--json")
    answers = json.loads(output)
    assert [answer["word"] for answer in answers] == ["high", "low", "low", "low"]
    assert answers[0]["confidence"] is None and answers[0]["confidences"] == {}
    assert answers[0]["file"] == "clips/high/1.wav"
    assert set(answers[0]["probabilities"]) == {"low", "high"}
    code, output, _ = run("predict", "home.tap", "clips/high/1.wav")
    assert "high" in output and "next" in output
    facts = json.loads(run("info", "home.tap", "--json")[1])
    assert facts["words"] == {"low": 3, "high": 3}
    assert facts["poolings"] == [{"name": "tap", "arguments": {"R": 2}}]
    assert facts["state_bytes"]["total"] == 8 + 2 * (4 * 64 + 8)
    assert facts["keeps_vectors"] is False and facts["keeps_trace"] is False
    _, text, _ = run("info", "home.tap")
    assert "│ low " in text and "2 words, 6 samples" in text and "tap:R=2" not in text
    _, text, _ = run("info", "home.tap", "--verbose")
    assert text.index("│ low ") < text.index("tap:R=2") and "never a recording" in text


def test_predict_with_nothing_taught(folder, run):
    tapword.Spotter("logmel").save("empty.tap")
    answers = json.loads(run("predict", "empty.tap", "clips/low/0.wav", "--json")[1])
    nothing = dict.fromkeys(("word", "score", "confidence"))
    empty = {"probabilities": {}, "confidences": {}}
    assert answers == [{"file": "clips/low/0.wav"} | nothing | empty]
    assert "no words yet" in run("predict", "empty.tap", "clips/low/0.wav")[1]
    assert "no words yet" in run("info", "empty.tap")[1]


def test_forget_rename_merge(folder, run, model):
    assert run("rename", model, "low", "deep")[0] == 0
    assert tapword.load(model).words == {"high": 3, "deep": 3}
    assert run("forget", model, "high")[0] == 0
    assert tapword.load(model).words == {"deep": 3}
    run("learn", "other.tap", "high", "clips/high", *NEW)
    assert run("merge", "both.tap", model, "other.tap")[0] == 0
    assert tapword.load("both.tap").words == {"deep": 3, "high": 3}
    code, _, error = run("merge", "both.tap", model, "other.tap")
    assert code == 2 and "both.tap exists; give a new file, or --force" in error
    assert run("merge", "both.tap", "other.tap", "--force")[0] == 0
    assert tapword.load("both.tap").words == {"high": 3}
    assert run("merge", "both.tap", "both.tap", model, "--force")[0] == 0
    assert tapword.load("both.tap").words == {"high": 3, "deep": 3}


def test_a_model_is_not_merged_with_itself(folder, run, model):
    shutil.copy(model, "copy.tap")
    os.symlink(model, "link.tap")
    for other in (model, "copy.tap", "link.tap"):
        code, _, error = run("merge", "both.tap", model, other)
        assert code == 2 and f"{other} is the same model as {model}" in error
    assert not Path("both.tap").exists()


def test_list(run):
    for room in ("backbones", "poolings", "learners"):
        parts = json.loads(run("list", room, "--json")[1])
        assert all(set(part) == {"name", "arguments", "summary"} for part in parts)
    assert {"name": "tap", "arguments": {"R": 5}}.items() <= next(
        part for part in json.loads(run("list", "poolings", "--json")[1]) if part["name"] == "tap"
    ).items()
    assert "slda" in run("list", "learners")[1]


def test_list_without_a_kind_lists_everything(run):
    parts = json.loads(run("list", "--json")[1])
    assert list(parts) == ["backbones", "poolings", "learners", "voices", "datasets", "sizes"]
    assert parts["poolings"] == json.loads(run("list", "poolings", "--json")[1])
    assert [size["name"] for size in parts["sizes"]] == ["small", "medium", "large"]
    _, text, _ = run("list")
    for kind, names in parts.items():
        assert f"{kind}\n" in text and all(f"│ {part['name']} " in text for part in names)


def test_predict_suggests_listen_where_more_than_one_word_is_said(folder, run, model):
    one, pause = tone(300)[:8_000], np.zeros(12_000, dtype=np.float32)
    soundfile.write("one.wav", np.concatenate([pause, pause, one, pause, pause]), 16_000)
    soundfile.write("a b.wav", np.concatenate([pause, one, pause, one, pause]), 16_000)
    code, output, error = run("predict", model, "one.wav", "a b.wav")
    assert code == 0 and "a b.wav" in output
    assert error == (
        "more than one word in a b.wav; to find all of them: tapword listen home.tap 'a b.wav'\n"
    )
    assert json.loads(run("predict", model, "a b.wav", "--json")[1])


@pytest.mark.parametrize("kind", registry.KINDS)
def test_list_cuts_no_argument(run, kind):
    _, text, _ = run("list", kind)
    assert "…" not in text
    for name, cls in registry.classes(kind).items():
        assert f"│ {name} " in text
        for key, parameter in cls.parameters().items():
            assert f"{key}={registry.as_typed(parameter.default)}" in text


@pytest.mark.parametrize("word", ["[/b]", ":lamp:", "[red]stop"])
def test_words_are_shown_as_they_are(folder, run, word):
    assert run("learn", "[m].tap", "low", "clips/low", *NEW)[0] == 0
    assert run("learn", "[m].tap", word, "clips/high")[0] == 0
    for command in (["info", "[m].tap"], ["predict", "[m].tap", "clips/high/0.wav"]):
        code, output, _ = run(*command)
        assert code == 0 and f"│ {word} " in output
    code, output, _ = run("rename", "[m].tap", word, f"{word}2")
    assert code == 0 and f"[m].tap: '{word}' is now '{word}2'" in output
    code, output, _ = run("forget", "[m].tap", f"{word}2")
    assert code == 0 and f"forgot '{word}2', 1 word left" in output
    code, _, error = run("forget", "[m].tap", word)
    assert code == 2 and f"'{word}' is not in this model" in error


def test_words_are_checked_before_clips(folder, run):
    os.rename("clips/low", "clips/lo\tw")
    Path("clips/high/0.wav").write_text("what would be said if it were read first")
    for arguments in (
        ["learn", "new.tap", "a\nb", "clips/high"],
        ["learn", "new.tap", "clips"],
    ):
        code, _, error = run(*arguments, *NEW)
        assert code == 2 and "printable characters" in error and error.count("\n") == 1


def test_a_pooling_for_each_backbone(folder, run):
    two = ["--backbone", "logmel", "--backbone", "logmel:pad_s=0.5", "--learner", "ncm"]
    poolings = ["--pooling", "avg", "--pooling", "tap:R=2"]
    assert run("learn", "two.tap", "low", "clips/low", *two, *poolings)[0] == 0
    assert [pooling.spec for pooling in tapword.load("two.tap").encoder.poolings] == [
        "avg",
        "tap:R=2",
    ]
    assert run("learn", "one.tap", "low", "clips/low", *two, "--pooling", "max")[0] == 0
    assert [pooling.spec for pooling in tapword.load("one.tap").encoder.poolings] == ["max", "max"]
    code, _, error = run("learn", "no.tap", "low", "clips/low", *two, *poolings, "--pooling", "max")
    assert code == 2 and "3 poolings for 2 backbones" in error


@pytest.mark.parametrize("value", ["nan", "inf", "-0.1", "10.5"])
def test_silence_around_a_clip_has_bounds(folder, run, value):
    given = ["--backbone", f"logmel:pad_s={value}"]
    code, _, error = run("learn", "new.tap", "low", "clips/low", *given)
    assert code == 2 and f"pad_s must lie in 0..10 seconds, got {value}" in error


@pytest.mark.parametrize(
    "change",
    [
        {"learner": None},
        {"learner": "ncm"},
        {"learner": {"name": "ncm"}},
        {"learner": {"name": 3, "arguments": {}}},
        {"learner": {"name": "nmc", "arguments": {}}},
        {"backbones": None},
        {"backbones": []},
        {"backbones": "logmel"},
        {"backbones": {"name": "logmel", "arguments": {}}},
        {"backbones": [{"name": ["logmel"], "arguments": {}}]},
        {"poolings": [None]},
        {"poolings": [{"name": "tap", "arguments": 2}]},
    ],
)
@pytest.mark.parametrize("lacking", [False, True])
def test_info_refuses_headers_without_parts(model, run, change, lacking):
    header, arrays = store.read(model)
    header |= change
    if lacking:
        del header[next(iter(change))]
    model.write_bytes(store.pack(header, arrays))
    for arguments in (["info", model], ["info", model, "--json"]):
        code, output, error = run(*arguments)
        assert code == 2 and not output
        assert "home.tap names parts that cannot be made" in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (
            ZeroDivisionError("by\nzero"),
            2,
            "tapword: unexpected error: ZeroDivisionError: by zero ",
        ),
        (KeyError("[/b]"), 2, "tapword: unexpected error: KeyError: '[/b]' (--debug shows where"),
        (OSError(28, "No space left on device"), 2, "tapword: No space left on device\n"),
        (PermissionError(13, "Permission denied", "x"), 2, "tapword: x: Permission denied\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_the_last_net(folder, run, monkeypatch, raised, code, said):
    def fail(_):
        raise raised

    monkeypatch.setattr(store, "read", fail)
    found, output, error = run("info", "home.tap")
    assert found == code and not output
    assert error.startswith(said) and error.count("\n") == bool(said)
    if code == 2:
        monkeypatch.setattr(sys, "argv", ["tapword", "--debug", "info", "home.tap"])
        with pytest.raises(type(raised)):
            app.main()


def test_interrupted_outside_a_command(run, monkeypatch):
    def interrupt(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "app", interrupt)
    assert run("info", "home.tap") == (130, "", "")


def test_names_too_long_are_one_line(folder, run):
    for arguments in (["info", "n" * 300], ["learn", "home.tap", "low", "n" * 300 + ".wav", *NEW]):
        code, _, error = run(*arguments)
        assert code == 2 and "File name too long" in error and error.count("\n") == 1
        assert "Traceback" not in error


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name is text")
def test_names_that_are_not_text_are_shown(folder, run, model):
    name = os.fsdecode(b"caf\xe9.wav")
    code, _, error = run("predict", model, name)
    assert code == 2 and error == "tapword: caf\\udce9.wav does not exist\n"
    Path(name).write_text("no sound")
    code, _, error = run("predict", model, name, "--skip-bad")
    assert code == 0 and error.startswith("skipped: caf\\udce9.wav is not audio")
    os.replace("clips/low/0.wav", name)
    code, output, _ = run("predict", model, name)
    assert code == 0 and "caf\\udce9.wav" in output
    [answer] = json.loads(run("predict", model, name, "--json")[1])
    assert answer["file"] == name
    os.replace(model, os.fsdecode(b"\xe9.tap"))
    assert run("forget", os.fsdecode(b"\xe9.tap"), "low")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["predict", "gone.tap", "clips/low/0.wav"],
            "gone.tap does not exist; create it with: tapword learn gone.tap WORD FILES",
        ),
        (["forget", "gone.tap", "low"], "gone.tap does not exist"),
        (["forget", "home.tap", "medium"], "'medium' is not in this model. It knows: high, low"),
        (["rename", "home.tap", "low", "high"], "there is already a word 'high'"),
        (["predict", "home.tap", "gone.wav"], "gone.wav does not exist"),
        (["predict", "home.tap", "home.tap"], "is not audio"),
        (["learn", "home.tap", "low", "nothing/*.wav"], "no sound files found in"),
        (["learn", "home.tap", "low", "empty"], "no sound files found in"),
        (["learn", "home.tap", "low", "clips/low", "--pooling", "avg"], "only for a new model"),
        (["learn", "new.tap", "low", "clips/low", "--pooling", "men"], "no pooling named 'men'"),
        (["learn", "no/new.tap", "low", "clips/low", *NEW], "does not exist"),
        (["learn", "home.tap", "", "clips/low"], "a word must be"),
        (["learn", "home.tap", "gone"], "give sound files of 'gone', or --mic"),
        (["learn", "home.tap", "empty"], "no folders of sound files"),
        (["list", "rooms"], "known: backbones, poolings, learners"),
        (["sensitivity", "home.tap", "0,7"], "; use a dot: 0.7"),
        (["listen", "home.tap", "a.wav", "--refractory=0,7"], "; use a dot: 0.7"),
        (["listen", "home.tap", "a.wav", "--sensitivity", "low=0,7"], "; use a dot: 0.7"),
        (["listen", "home.tap", "a.wav", "--threshold", "low=-0,7"], "; use a dot: -0.7"),
        (["learn", "new.tap", "a", "clips/low", "--backbone", "logmel:pad_s=0,5"], "use a dot"),
        (["learn"], "Missing argument 'MODEL'"),
        (["lern", "home.tap"], "No such command 'lern'"),
        (["predict", "home.tap", "clips/low/0.wav", "--jsn"], "No such option"),
    ],
)
def test_errors_are_one_line_and_exit_code_2(folder, run, model, arguments, message):
    (folder / "empty").mkdir()
    before = model.read_bytes()
    code, output, error = run(*arguments)
    assert code == 2 and output == ""
    assert message in error
    assert error.startswith("tapword: ") and error.count("\n") == 1
    assert model.read_bytes() == before
    assert not Path("new.tap").exists()


def test_bad_files_can_be_skipped(folder, run, model):
    (folder / "clips/low/broken.wav").write_text("no sound")
    code, _, error = run("learn", model, "low", "clips/low")
    assert code == 2 and "broken.wav" in error
    code, output, error = run("learn", model, "low", "clips/low", "--skip-bad")
    assert code == 0 and "learned 3 clips" in output and "skipped" in error
    (folder / "clips/bad").mkdir()
    os.rename("clips/low/broken.wav", "clips/bad/broken.wav")
    code, _, error = run("learn", model, "bad", "clips/bad", "--skip-bad")
    assert code == 2 and "nothing was taught" in error


def test_version_help_and_debug(run, folder):
    assert run("--version")[1].strip() == tapword.__version__
    for help_text in (run("--help")[1], run()[1]):
        for command in ("learn", "predict", "merge", "demo", "--debug", "Teach and listen"):
            assert command in help_text
    process = subprocess.run(
        [sys.executable, "-m", "tapword", "--debug", "info", "gone.tap"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 1 and "Traceback" in process.stderr
    process = subprocess.run(
        [sys.executable, "-m", "tapword", "info", "gone.tap"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 2 and "Traceback" not in process.stderr


def test_a_model_whose_weights_lie_elsewhere(folder, run):
    """The path of a weight file is no part of a model; it is said again where it is needed."""
    from tapword.backbones.speech_embedding import weights_path

    copy = folder / "embedding.onnx"
    copy.write_bytes(Path(weights_path(None)).read_bytes())
    here = ["--backbone", f"speech_embedding:weights={copy}"]
    assert run("learn", "m.tap", "low", "clips/low", *here)[0] == 0
    assert run("learn", "m.tap", "high", "clips/high", *here)[0] == 0
    code, output, _ = run("predict", "m.tap", "clips/high/0.wav", "--json", *here)
    assert code == 0 and json.loads(output)[0]["word"] == "high"
    code, _, error = run("predict", "m.tap", "clips/high/0.wav", "--backbone", "logmel")
    assert code == 2 and "taught with another backbone: speech_embedding" in error


def every_command():
    """Every command with its parameters, by name."""
    group = typer.main.get_command(app.app)
    return {name: group.load(name) for name in group.commands}


# How wide a terminal is, is asked once a process.
HELPS = """
import contextlib, io, json, sys
from tapword import cli

shown = {}
for name in sys.argv[1:]:
    sys.argv = ["tapword", name, "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.suppress(SystemExit):
        cli.main()
    shown[name] = output.getvalue()
print(json.dumps(shown))
"""


@pytest.fixture(scope="module")
def helps():
    """Help of every command in a terminal of 80 columns."""
    process = subprocess.run(
        [sys.executable, "-c", HELPS, *every_command()],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "80", "TERMINAL_WIDTH": "80"},
    )
    return json.loads(process.stdout)


@pytest.mark.parametrize("name", every_command())
def test_help_is_whole_at_80_columns(helps, name):
    """Flags are never cut, words such as WORD are shown, and a flag is not called a bool."""
    command = every_command()[name]
    shown = helps[name]
    assert f"tapword {name}" in shown
    for parameter in command.params:
        for flag in parameter.opts if parameter.param_type_name == "option" else []:
            assert f"{flag} " in shown, f"{flag} is cut"
        assert parameter.param_type_name != "argument" or parameter.metavar.strip(".") in shown
    assert "<bool>" not in shown and "…" not in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_the_help_has_every_command_with_the_first_line_of_its_docstring():
    for file in pkgutil.iter_modules(cli.__path__):
        importlib.import_module(f"tapword.cli.{file.name}")
    listed = {name: text for panel in COMMANDS.values() for name, (_, text) in panel.items()}
    assert app._registered.keys() == listed.keys()
    for name, command in every_command().items():
        assert command.help.partition("\n")[0] == listed[name]


@pytest.mark.parametrize("shown", ["--help", "--version", "completion"])
def test_what_needs_no_model_imports_nothing_heavy(shown, monkeypatch):
    if shown == "completion":
        monkeypatch.setenv("_TAPWORD_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", "tapword le")
        monkeypatch.setenv("COMP_CWORD", "1")
    code = (
        f"import sys\nsys.argv = ['tapword', {shown!r}]\nfrom tapword import cli\n"
        "try: cli.main()\nexcept SystemExit: pass\n"
        "heavy = {'numpy', 'soundfile', 'soxr', 'safetensors', 'filelock', 'tapword.audio'}\n"
        "print(*heavy & sys.modules.keys(), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout
    assert done.stderr.strip() == ""


def test_model_comes_first_wherever_there_is_one():
    for name, command in every_command().items():
        arguments = [p.metavar for p in command.params if p.param_type_name == "argument"]
        if any("MODEL" in metavar for metavar in arguments):
            assert arguments[0] == "MODEL", name


def test_tables_in_a_pipe_keep_whole_paths(folder, run, model):
    deep = folder / ("a" * 100) / ("b" * 100)
    deep.mkdir(parents=True)
    path = deep / "clip.wav"
    soundfile.write(path, tone(300), 16_000)
    process = subprocess.run(
        [sys.executable, "-m", "tapword", "predict", str(model), str(path)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "80"},
    )
    assert str(path) in process.stdout


def test_predict_may_say_none_of_them(folder, run):
    lamp, music = (sorted((CLIPS / word).glob("*.ogg"))[:5] for word in ("lamp", "music"))
    assert run("learn", "home.tap", "lamp", *lamp)[0] == 0
    other = music[0]
    [answer] = json.loads(run("predict", "home.tap", other, "--json")[1])
    assert answer["word"] is None and answer["probabilities"] == {"lamp": 1.0}
    assert answer["confidence"] < 50 and answer["confidences"] == {"lamp": answer["confidence"]}
    # Beside "-" stands how sure it is, not which of the taught words is nearest.
    shown = run("predict", "home.tap", other)[1]
    assert re.search(rf"│ -    │ {answer['confidence']:<4} │ lamp ", shown)
    assert "%" not in shown
    said = json.loads(run("predict", "home.tap", lamp[0], "--json")[1])[0]
    assert said["word"] == "lamp" and said["confidence"] >= 50
    [answer] = json.loads(run("predict", "home.tap", other, "--json", "--closed")[1])
    assert answer["word"] == "lamp"


def test_every_command_that_encodes_with_a_model_takes_its_backbone():
    for name, command in every_command().items():
        taken = {parameter.name for parameter in command.params}
        # What MODEL holds is shown, or restored, without hearing anything.
        assert "model" not in taken or "backbone" in taken or name in ("info", "undo"), name


def test_a_model_of_a_network_elsewhere_lives_with_its_backbone_given(folder, run):
    pytest.importorskip("onnx")
    from tests.backbones.test_onnx import waveform

    network = waveform(folder / "net.onnx")
    given = ["--backbone", f"onnx:file={network}"]
    parts = ["--pooling", "avg", "--learner", "ncm"]
    assert run("learn", "home.tap", "clips", *given, *parts)[0] == 0
    assert run("learn", "other.tap", "clips", *given, *parts)[0] == 0
    low = "clips/low/0.wav"
    for arguments in (
        ["learn", "home.tap", "low", low],
        ["predict", "home.tap", low],
        ["reject", "home.tap", low],
        ["merge", "both.tap", "home.tap", "other.tap"],
        ["rename", "home.tap", "high", "higher"],
        ["forget", "home.tap", "higher"],
    ):
        code, _, error = run(*arguments)
        assert code == 2 and f"--backbone onnx:file={'...'}" in error, error
        code, _, error = run(*arguments, *given)
        assert code == 0, error
    assert run("info", "home.tap")[0] == 0


def test_each_file_is_decoded_once(folder, run, monkeypatch):
    opened = []

    class Counting(soundfile.SoundFile):
        def __init__(self, file, *arguments, **options):
            opened.append(Path(os.fsdecode(file)).relative_to(folder))
            super().__init__(file, *arguments, **options)

    monkeypatch.setattr(soundfile, "SoundFile", Counting)
    files = sorted(Path("clips").glob("*/*.wav"))
    for command in (["learn", "home.tap", "clips", *NEW], ["predict", "home.tap", "clips"]):
        opened.clear()
        assert run(*command)[0] == 0
        assert sorted(opened) == files


def test_a_plain_command_does_not_import_the_cluster():
    code = "import sys, tapword.cli; sys.exit('tapword.research.cluster' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
