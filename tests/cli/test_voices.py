"""`tapword learn --say`, `tapword voices` and what `info` shows, with small files like Kokoro's."""

import json
from pathlib import Path

import pytest

from tapword.voices import espeak, kokoro_files
from tapword.voices.kokoro_files import Files
from tests import fake_kokoro

PARTS = ["--backbone", "logmel", "--pooling", "avg", "--learner", "cosine"]
SAY = ["--say", "--voices", "4", "--phonemes"]


@pytest.fixture(scope="module")
def offered(tmp_path_factory):
    pytest.importorskip("onnx")
    folder = tmp_path_factory.mktemp("offered")
    return folder, *fake_kokoro.offer(folder)


@pytest.fixture
def pinned(offered, tmp_path, monkeypatch):
    """Small files take the place of Kokoro's; none of them is here yet."""
    folder, model, styles = offered
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(kokoro_files, "MODEL", model)
    monkeypatch.setattr(Files.get, "__defaults__", (None, model, styles))
    return folder


@pytest.fixture
def voice(pinned, run):
    code, output, _ = run("voices", "get", "--from", pinned)
    assert code == 0 and f"Kokoro is in {Files().folder}" in output
    return pinned


def test_a_typed_word_is_taught_shown_undone_and_forgotten(voice, run):
    code, output, error = run("learn", "home.tap", "hello", *SAY, "həlO", *PARTS)
    assert (code, error) == (0, "")
    assert output.splitlines()[0] == "learned 4 clips that kokoro spoke: həlO"
    assert "home.tap: 1 word, 0 samples, 4 synthetic clips" in output
    assert run("learn", "home.tap", "lamp", *SAY, "læmp")[0] == 0
    facts = json.loads(run("info", "home.tap", "--json")[1])
    assert facts["words"] == {"hello": 0, "lamp": 0}
    assert facts["synthetic"] == {"hello": 4, "lamp": 4} and facts["format"] == 3
    assert facts["voices"] == {"hello": ["kokoro"], "lamp": ["kokoro"]}
    assert "synthetic" in run("info", "home.tap")[1] and "4 by kokoro" in run("info", "home.tap")[1]
    before = Path("home.tap").read_bytes()
    assert run("forget", "home.tap", "lamp")[0] == 0
    assert json.loads(run("info", "home.tap", "--json")[1])["synthetic"] == {"hello": 4}
    assert run("undo", "home.tap")[0] == 0 and Path("home.tap").read_bytes() == before
    code, output, _ = run("undo", "home.tap")
    assert code == 0 and "undone: say lamp: 4 clips" in output
    # As many clips as `learn` and `info` count.
    assert "home.tap: 1 word, 0 samples, 4 synthetic clips" in output
    assert "1 word, 0 samples, 4 synthetic clips. --verbose" in run("info", "home.tap")[1]
    assert json.loads(run("info", "home.tap", "--json")[1])["words"] == {"hello": 0}


def test_a_model_without_typed_words_shows_no_column_for_them(run, tmp_path, monkeypatch):
    import soundfile

    from tests.conftest import tone

    monkeypatch.chdir(tmp_path)
    soundfile.write("a.wav", tone(300), 16_000)
    assert run("learn", "home.tap", "lamp", "a.wav", *PARTS)[0] == 0
    assert "synthetic" not in run("info", "home.tap")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lamp", "--say", "a.wav"], "give one of sound files, --mic and --say"),
        (["lamp", "--say", "--mic"], "give one of sound files, --mic and --say"),
        (["lamp", "a.wav", "--voices", "3"], "need --say"),
        (["lamp", "a.wav", "--language", "de"], "need --say"),
        (["lamp", "--say", "--split"], "not for --say"),
        (["hey \U0001f600", "--say"], "cannot be said: write it in letters"),
        (["...", "--say"], "has no letters"),
        (["x" * 300, "--say"], "1 to 200 printable characters"),
        (["lamp", "--say", "--voice", "nobody"], "no voice named 'nobody'"),
        (["lamp", "--say", "--phonemes", "§"], "1 to 200 sounds that Kokoro knows"),
    ],
)
def test_bad_input_gets_one_line_and_no_file(voice, run, arguments, message):
    code, _, error = run("learn", "home.tap", *arguments, *PARTS)
    assert code == 2 and message in error and len(error.splitlines()) == 1
    assert not Path("home.tap").exists()


def test_without_voices_the_message_says_what_to_do(pinned, run, monkeypatch):
    monkeypatch.setattr(espeak.shutil, "which", lambda name: None)
    code, _, error = run("learn", "home.tap", "lamp", "--say", *PARTS)
    assert code == 2 and "tapword voices get" in error and "install espeak-ng" in error
    code, output, _ = run("voices", "--json")
    found = {row["name"]: row["missing"] for row in json.loads(output)}
    assert "tapword voices get" in found["kokoro"] and "install espeak-ng" in found["espeak"]
    shown = run("voices")[1]
    assert "kokoro" in shown and "phonemes by the built-in speller (de, en-us" in shown


def test_a_language_without_native_speakers_is_warned_of(voice, run):
    for language, warned in (("ar", True), ("en-gb", False), ("pt-br", False)):
        options = ["--language", language, *PARTS]
        code, _, error = run("learn", f"{language}.tap", "lamp", *SAY, "læmp", *options)
        assert code == 0 and (f"no native speaker of {language}" in error) == warned


def test_a_voice_that_cannot_speak_is_not_warned_of(voice, run):
    code, _, error = run("learn", "home.tap", "lamp", "--say", "--voice", "piper", *PARTS)
    assert code == 2 and "no voice file is at" in error and len(error.splitlines()) == 1


def test_another_folder_is_named_where_it_is_used(pinned, run):
    code, output, _ = run("voices", "get", "--from", pinned, "--to", "here")
    assert code == 0 and "for --voice kokoro:folder=here" in output
    code, _, error = run("learn", "home.tap", "lamp", *SAY, "læmp", *PARTS)
    assert code == 2 and "tapword voices get" in error
    said = run("learn", "home.tap", "lamp", *SAY, "læmp", "--voice", "kokoro:folder=here", *PARTS)
    assert said[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["fetch"], "the only action is get"), (["--to", "x"], "go with get")],
)
def test_wrong_arguments_of_voices(run, arguments, message):
    code, _, error = run("voices", *arguments)
    assert code == 2 and message in error
