# ruff: noqa: RUF001 (phonetic signs look like letters)
"""Piper: files of a voice, with a small network of the same inputs and outputs."""

import json

import numpy as np
import pytest

from tapword import registry
from tapword.errors import InputError
from tapword.voices import espeak
from tapword.voices.base import Unspeakable
from tapword.voices.choice import choose
from tapword.voices.kokoro import Kokoro
from tapword.voices.piper import Piper, read_settings, sign_numbers

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

RATE = 22_050
SIGNS = {"_": [0], "^": [1], "$": [2], " ": [3], "h": [4], "a": [5], "l": [6], "o": [7], "ˈ": [8]}
SIGNS |= {"c": [9], "\u0327": [10]}


def network(speakers):
    """A graph with Piper's inputs: a tone for each sign, lower for a higher speaker."""
    import onnx
    from onnx import TensorProto, helper

    def value(name, kind, shape):
        return helper.make_tensor_value_info(name, kind, shape)

    def constant(name, array):
        return onnx.numpy_helper.from_array(np.asarray(array), name)

    node = helper.make_node
    nodes = [
        node("Cast", ["input"], ["ids"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["ids", "last"], ["column"]),
        # The length of a sound: samples of each tone.
        node("Slice", ["scales", "one", "two"], ["slow"]),
        node("Mul", ["slow", "samples"], ["long"]),
        node("Cast", ["long"], ["count"], to=TensorProto.INT64),
        node("Squeeze", ["count"], ["end"]),
        node("Range", ["zero", "end", "step"], ["steps"]),
        node("Cast", ["steps"], ["time"], to=TensorProto.FLOAT),
        node("Mul", ["column", "time"], ["fast"]),
        node("Mul", ["fast", "pace"], ["phase"]),
    ]
    inputs = [
        value("input", TensorProto.INT64, [1, "n"]),
        value("input_lengths", TensorProto.INT64, [1]),
        value("scales", TensorProto.FLOAT, [3]),
    ]
    sounding = "phase"
    if speakers > 1:
        inputs.append(value("sid", TensorProto.INT64, [1]))
        nodes += [
            node("Cast", ["sid"], ["who"], to=TensorProto.FLOAT),
            node("Add", ["who", "unit"], ["lower"]),
            node("Div", ["phase", "lower"], ["deep"]),
        ]
        sounding = "deep"
    nodes += [node("Sin", [sounding], ["wave"]), node("Reshape", ["wave", "shape"], ["output"])]
    constants = [
        constant("last", np.array([2])),
        constant("one", np.array([1])),
        constant("two", np.array([2])),
        constant("zero", np.array(0)),
        constant("step", np.array(1)),
        constant("samples", np.float32([2000])),
        constant("pace", np.float32([0.05])),
        constant("unit", np.float32([1])),
        constant("shape", np.array([1, 1, 1, -1])),
    ]
    graph = helper.make_graph(
        nodes, "piper", inputs, [value("output", TensorProto.FLOAT, [1, 1, 1, "t"])], constants
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model.SerializeToString()


def settings(language="en-us", speakers=1, **changes):
    return {
        "audio": {"sample_rate": RATE},
        "espeak": {"voice": language},
        "inference": {"noise_scale": 0.667, "length_scale": 1, "noise_w": 0.8},
        "phoneme_type": "espeak",
        "phoneme_id_map": SIGNS,
        "num_speakers": speakers,
        "speaker_id_map": {f"p{k}": k for k in range(speakers)} if speakers > 1 else {},
    } | changes


def put(folder, name="voice", **options):
    """Write a voice file; return its path."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.onnx"
    described = settings(**options)
    path.write_bytes(network(described["num_speakers"]))
    path.with_name(f"{name}.onnx.json").write_text(json.dumps(described))
    return path


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def test_a_voice_file_says_phonemes_faster_and_slower(tmp_path):
    voice = registry.build("voices", f"piper:path={put(tmp_path)}")
    said = list(voice.speak("hello", n=3, phonemes="halˈo"))
    assert [one.speaker for one in said] == ["voice"] * 3
    # 13 numbers of 2000 samples at 22,050 Hz: begin, gap, five signs with gaps, end.
    seconds = [len(one.audio) / 16_000 for one in said]
    assert len(set(seconds)) == 3 and all(0.8 < s / (13 * 2000 / RATE) < 1.25 for s in seconds)
    assert all(one.audio.dtype == np.float32 for one in said)
    assert all(0.5 < np.abs(one.audio).max() < 1.5 for one in said)
    again = list(voice.speak("hello", n=3, phonemes="halˈo"))
    assert all(np.array_equal(a.audio, b.audio) for a, b in zip(said, again, strict=True))


def test_all_speakers_of_all_files_of_the_language_speak_in_turn(tmp_path):
    put(tmp_path / "data", "x")  # not where voices are looked for
    folder = tmp_path / "data" / "tapword" / "voices" / "piper"
    folder.mkdir(parents=True)
    put(folder, "one")
    put(folder, "many", speakers=3)
    put(folder, "german", language="de")
    said = list(Piper().speak("hello", n=8, phonemes="halo"))
    names = [one.speaker for one in said]
    assert set(names) == {"one", "many p0", "many p1", "many p2"} and names[:4] == names[4:]
    by_name = dict(zip(names, said, strict=True))
    high, deep = (np.abs(np.diff(by_name[f"many p{k}"].audio)).mean() for k in (0, 2))
    # The third speaker's tones are three times as low.
    assert high > 2 * deep
    assert {one.speaker for one in Piper().speak("hallo", "de", 2, phonemes="halo")} == {"german"}


def test_the_region_is_kept_where_a_file_has_it(tmp_path):
    put(tmp_path, "american")
    put(tmp_path, "british", language="en-gb")
    voice = Piper(path=str(tmp_path))
    speakers = lambda language: {  # noqa: E731
        one.speaker for one in voice.speak("hello", language, 4, phonemes="halo")
    }
    assert speakers("en-gb") == {"british"}
    assert speakers("en-au") == {"american", "british"}


def test_numbers_begin_end_and_have_gaps(tmp_path):
    known = read_settings(put(tmp_path))
    assert sign_numbers("hˈa", known) == [1, 0, 4, 0, 8, 0, 5, 0, 2]
    # Signs with a mark are two numbers; unknown signs are left out.
    assert sign_numbers("çx", known) == [1, 0, 9, 0, 10, 0, 2]
    for nothing in ("", "ˈ", "xyz", "h" * 401):
        with pytest.raises(Unspeakable, match="1 to 400 sounds that the voice knows"):
            sign_numbers(nothing, known)


@pytest.mark.skipif(espeak.why_no_phonemes("de") is not None, reason="needs espeak-ng")
def test_phonemes_come_from_the_program(tmp_path):
    path = put(tmp_path, language="de")
    voice = Piper(path=str(path))
    spelled = voice.pronunciation("Halo", "de")
    assert spelled == espeak.phonemes("Halo", "de")
    [said] = voice.speak("Halo", "de", 1)
    [given] = voice.speak("x", "de", 1, phonemes=spelled)
    np.testing.assert_array_equal(said.audio, given.audio)


def test_a_voice_of_letters_needs_no_program(tmp_path, monkeypatch):
    monkeypatch.setattr(espeak.shutil, "which", lambda name: None)
    text = Piper(path=str(put(tmp_path, phoneme_type="text")))
    assert text.why_not("en-us") is None and len(list(text.speak("HALLO", n=2))) == 2
    spelled = Piper(path=str(put(tmp_path, "other")))
    assert "espeak-ng is not installed" in spelled.why_not("en-us")
    assert spelled.why_not("en-us", "halo") is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"phoneme_id_map": {"a": [1]}}, "not the settings of a Piper voice"),
        ({"phoneme_id_map": None}, "not the settings of a Piper voice"),
        ({"num_speakers": 0}, "not the settings of a Piper voice"),
        ({"num_speakers": 10**9}, "not the settings of a Piper voice"),
        ({"audio": {"sample_rate": 1}}, "not the settings of a Piper voice"),
        ({"inference": {"length_scale": "x"}}, "not the settings of a Piper voice"),
        ({"espeak": {}}, "not the settings of a Piper voice"),
    ],
)
def test_damaged_settings_get_one_line(tmp_path, changes, message):
    path = put(tmp_path)
    path.with_name("voice.onnx.json").write_text(json.dumps(settings() | changes))
    why = Piper(path=str(path)).why_not("en-us")
    assert message in why and "voice.onnx.json" in why and "\n" not in why


def test_missing_files_and_languages_say_what_to_do(tmp_path):
    assert "download NAME.onnx and NAME.onnx.json" in Piper().why_not("en-us")
    path = put(tmp_path)
    assert "speak en-us, not 'de'" in Piper(path=str(path)).why_not("de")
    path.with_name("voice.onnx.json").unlink()
    assert "needs voice.onnx.json beside it" in Piper(path=str(path)).why_not("en-us")


def test_a_file_that_is_no_network_gets_one_line(tmp_path):
    path = put(tmp_path)
    path.write_bytes(b"no network")
    with pytest.raises(InputError, match=r"voice\.onnx is not a Piper voice") as error:
        list(Piper(path=str(path)).speak("hello", phonemes="halo"))
    assert "\n" not in str(error.value)


def test_a_native_voice_is_chosen_before_one_that_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(Kokoro, "why_not", lambda self, *_: None)
    folder = tmp_path / "data" / "tapword" / "voices" / "piper"
    folder.mkdir(parents=True)
    put(folder, "german", language="de")
    assert choose("en-us", "halo").name == "kokoro"
    assert choose("de", "halo").name == "piper"
    assert choose("sv", "halo").name == "kokoro"


def test_its_licence_is_shown():
    assert "MODEL_CARD" in Piper.licence
