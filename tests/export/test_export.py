"""Exported ONNX files and C headers say what the model says."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tapword import Spotter
from tapword.assets import CLIPS
from tapword.audio import files
from tapword.audio.align import align, cut, fill
from tapword.backbones.base import Backbone
from tapword.backbones.logmel import log_mel
from tapword.errors import InputError, MissingExtra
from tapword.export.c import header as c_header
from tapword.export.c import state as states
from tapword.export.c.reduced import reduced
from tapword.export.c.tables import quote
from tapword.export.layout import front_end
from tapword.export.onnx import file as onnx_file
from tapword.export.onnx import frames as onnx_frames
from tapword.export.onnx import scores as onnx_scores
from tapword.export.onnx.check import OnnxModel, compare
from tapword.export.onnx.graph_builder import GraphBuilder
from tapword.export.onnx.quantize import quantize
from tapword.registry import build
from tapword.spotter.encoder import group_lengths, prepare
from tapword.spotter.thresholds import Scores
from tapword.spotter.thresholds import decide as said_word
from tapword.spotter.whitening import Whitening, vector_kind
from tapword.support.onnx_sessions import open_session
from tapword.voices.base import SpokenBy
from tests.conftest import ROOT, shared
from tests.export.device import Device, compile_c, counted

WORDS = ("lamp", "music", "door", "right")
LOGMEL = {"backbone": "logmel", "pooling": "tap:R=3"}
# Headers of it are compiled in half the time.
DIAGONAL = {"learner": "cosine:prior=shipped,covariance=diagonal"}
# A network whose convolutions stay outside of a C header.
EMBEDDING = {
    "backbone": "speech_embedding:layers=b64+emb+emb",
    "pooling": "blocks:poolings=tap:R=2+tap:R=2+middle",
    "learner": "cosine:prior=shipped",
    "align": True,
    "whitening": "shipped",
}


def clips_of(word: str, start: int = 0, stop: int | None = None) -> list[np.ndarray]:
    return [files.read(path) for path in sorted((CLIPS / word).glob("*.ogg"))[start:stop]]


def taught(words=WORDS, count: int = 3, **parts) -> Spotter:
    """Teach words to the ear, unless another backbone is named."""
    spotter = Spotter(**{"backbone": "ear_s"} | parts)
    for word in words:
        spotter.learn_many(clips_of(word, stop=count), [word] * count)
    return spotter


def phrase(*words: str, take: int = 0, before: int = 0, after: int = 0) -> np.ndarray:
    """Give clips of words one after the other, 0.05 s apart, with silence around them."""
    pause = np.zeros(800, dtype=np.float32)
    clips = [clips_of(word, take, take + 1)[0] for word in words]
    said = [part for clip in clips for part in (clip, pause)][:-1]
    return np.pad(np.concatenate(said), (before, after))


LIGHT, MUSIC = ("kitchen", "light", "up"), ("music", "stop")


def with_phrases() -> Spotter:
    """Teach words, a phrase of 1.7 s and one of 1.2 s."""
    spotter = taught()
    for said in (LIGHT, MUSIC):
        spotter.learn_many([phrase(*said, take=take) for take in range(3)], [" ".join(said)] * 3)
    return spotter


@pytest.fixture(scope="module")
def small() -> Spotter:
    return taught()


@pytest.fixture(scope="module")
def phrases() -> Spotter:
    return with_phrases()


def run(graph: GraphBuilder, given: dict[str, np.ndarray], output: str) -> np.ndarray:
    """Give what onnxruntime makes of a graph's tensor."""
    for name, array in given.items():
        graph.input(name, array.shape)
    return open_session(graph.content(also=[output])).run([output], given)[0]


# ONNX.


def sounds(seed: int) -> list[np.ndarray]:
    """Noise of uneven loudness, of several lengths; some begin with silence."""
    rng = np.random.default_rng(seed)
    made = []
    for n in (1_600, 7_999, 16_000, 40_001, 79_999):
        envelope = np.repeat(rng.random(n // 400 + 1) ** rng.integers(1, 7), 400)[:n]
        clip = (envelope * rng.standard_normal(n)).astype(np.float32)
        clip[: rng.integers(n)] *= rng.integers(2)
        made.append(clip)
    return made


def steady(*parts: tuple[int, float]) -> np.ndarray:
    """Give a clip of so many samples each at a level of its own."""
    return np.concatenate([np.full(n, level, dtype=np.float32) for n, level in parts])


def spoken() -> list[np.ndarray]:
    """Give words, phrases and longer sounds: tight and in silence, each also in noise."""
    rng = np.random.default_rng(0)
    clips = [
        phrase(*words, take=take, before=before, after=after)
        for words in (("door",), ("lamp", "fan"), MUSIC, LIGHT, (*LIGHT, *MUSIC), LIGHT * 2)
        for take, before, after in ((5, 0, 0), (9, 12_345, 9_000))
    ]
    noises = [0.01 * rng.standard_normal(len(clip), dtype=np.float32) for clip in clips]
    return [*clips, *(clip + noise for clip, noise in zip(clips, noises, strict=True))]


def recordings() -> list[np.ndarray]:
    """Give what is spoken, and sounds by which a step more or less decides."""
    edges = [
        steady((300, 0.5), (29_700, 0)),
        steady((29_700, 0), (300, 0.5)),
        steady((30_000, 0.5)),
        steady((30_000, 0)),
        # Of 3 s, and of one step more; of 1 s, and of one step less. Three steps on either side
        # of a sound count as its own.
        steady((8_000, 0), (48_000 - 960, 0.5), (8_000, 0)),
        steady((8_000, 0), (48_000 - 959, 0.5), (8_000, 0)),
        steady((16_000, 0), (6_000, 0.5), (9_040, 0.2), (16_000, 0)),
        steady((16_000, 0), (6_000, 0.5), (8_880, 0.2), (16_000, 0)),
    ]
    # Where a quiet beginning is silence hangs on which step is the first above the quietest tenth.
    edges.append(steady((23 * 160, 0.001), (100 * 160, 0.004), (77 * 160, 0.1)))
    # The longest pause that is part of a sound, and one that ends it; the louder side is taken.
    for steps in (55, 56):
        for levels in ((0.5, 0.4), (0.4, 0.5)):
            sides = [(17_600, level) for level in levels]
            edges.append(steady(sides[0], (160 * steps, 0), sides[1]))
    return spoken() + edges + [clip for seed in range(5) for clip in sounds(seed)]


def prepared(clip: np.ndarray) -> np.ndarray | None:
    """Give what a model hears of a clip; None for more than 3 s of sound."""
    try:
        return prepare(clip, aligned=True)
    except InputError:
        return None


def test_the_graph_cuts_clips_as_the_encoder_does():
    graph, seen = GraphBuilder(), set()
    cut, refused = onnx_frames.cut(graph, "audio")
    outputs = {"cut": (cut, ["m"]), "refused": (graph.cast(refused, np.float32), [1])}
    session = open_session(graph.model({"audio": ["n"]}, outputs, {}).SerializeToString())
    for clip in recordings():
        wanted = prepared(clip)
        given, refuses = session.run(None, {"audio": clip})
        assert refuses == (wanted is None)
        if wanted is not None:
            np.testing.assert_array_equal(given, wanted)
        seen.add(None if wanted is None else len(wanted) > 16_000)
    assert seen == {None, True, False}


@pytest.mark.parametrize(
    ("backbone", "limit"), [("logmel", 2e-5), ("logmel:pad_s=0.5", 2e-5), ("ear_s", 5e-5)]
)
def test_the_graph_gives_the_same_log_mel_energies(backbone, limit):
    [clip], graph = clips_of("lamp", stop=1), GraphBuilder()
    written = front_end(build("backbones", backbone))
    given = run(graph, {"audio": clip}, onnx_frames.log_mel(graph, "audio", written))
    missing = -len(clip) % written.hop
    heard = np.pad(clip, (written.before, missing + written.after))
    np.testing.assert_allclose(given[0], log_mel(heard, *written.mel), atol=limit)


@pytest.mark.parametrize("samples", [1, 640, 16_000, 16_001, 51_200])
@pytest.mark.parametrize("name", ["ear_s", "tapword_ear"])
def test_the_graph_hears_as_the_ear(name, samples):
    ear, graph = build("backbones", name), GraphBuilder()
    clip = np.resize(phrase(*LIGHT, *MUSIC), samples)
    mel = onnx_frames.log_mel(graph, "audio", front_end(ear))
    [frames] = onnx_frames.blocks(graph, ear, mel)
    given = run(graph, {"audio": clip}, frames)
    np.testing.assert_allclose(given, ear.frames(clip)[0], atol=1e-4)


@pytest.mark.parametrize(
    "name",
    (
        *("avg", "avgmax", "max", "mix:alpha=0.3", "tap", "tap:R=1", "tap:R=2", "tsdp", "tstp"),
        *(
            "attentive:centers=0.2,widths=0.3",
            "attentive:centers=0.1+0.7,widths=0.2+0.4,frame_rate=8",
        ),
        *(
            "middle",
            "middle:n=20",
            "middle:n=7",
            "middle:n=7,frame_rate=8",
            "middle:n=20,frame_rate=8",
        ),
    ),
)
@pytest.mark.parametrize("t", [1, 8, 13])
def test_the_graph_pools_as_the_pooling_does(rng, name, t):
    frames = (10 + rng.standard_normal((t, 5))).astype(np.float32)
    frames[:, 2] = 3.3
    frames[:, 3] = 1000
    frames[::2, 3] = np.nextafter(frames[::2, 3], np.float32(np.inf))  # constant but for rounding
    pooling, graph = build("poolings", name), GraphBuilder()
    given = run(graph, {"frames": frames}, onnx_scores.pool(graph, pooling, "frames"))
    np.testing.assert_allclose(given[0], pooling.pool(frames), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "parts",
    [
        {},
        EMBEDDING,
        {"backbone": "speech_embedding", "pooling": "tap:R=2", "learner": "ridge"},
        {"backbone": ["speech_embedding:layers=b51", "logmel"], "pooling": "avg", "learner": "ncm"},
        {"backbone": "logmel:pad_s=0.1", "pooling": "tstp", "learner": "slda:prior=diagonal"},
        {"backbone": "logmel", "pooling": "avgmax", "learner": "perceptron"},
        {"backbone": "logmel", "pooling": "avgmax", "learner": "finetune"},
    ],
    ids=lambda parts: parts.get("learner", "small").partition(":")[0],
)
def test_the_file_scores_as_the_model(parts):
    spotter = taught(**parts)
    runner = OnnxModel(onnx_file.build(spotter).SerializeToString())
    assert runner.words == list(spotter.words)
    [short], [clip] = clips_of("door", 7, 8), clips_of("music", 9, 10)
    for heard in (clip, short[:5_000], np.concatenate([np.zeros(20_000, np.float32), clip])):
        [scores] = spotter.score_encoded(spotter.encode([heard]))
        wanted = np.array(list(scores.words.values()))
        scale = max(1.0, np.abs(wanted).max())
        np.testing.assert_allclose(runner.scores(heard), wanted, atol=1e-3 * min(scale, 10))


def people() -> list[np.ndarray]:
    """Give words and phrases as people said them."""
    words = shared("data", "speech_commands_v0.01_subset").glob("[a-z]*/*.wav")
    phrases = [*shared("data", "phrases").glob("*/*"), *shared("data", "wake_phrases").glob("*/*")]
    paths = [*sorted(words)[::400], *sorted(phrases)[::150]]
    clips = [files.read(path) for path in paths]
    return [clip for clip in clips if prepared(clip) is not None]


def test_real_recordings_score_as_the_model_scores_them(small):
    clips = people()
    lengths = [len(prepared(clip)) for clip in clips]
    assert min(lengths) == 16_000 and max(lengths) > 24_000
    content = onnx_file.build(small).SerializeToString()
    seen = compare(small, content, clips, None)
    assert seen.clips == len(clips) > 10
    assert seen.difference < 1e-5


def test_phrases_score_as_the_model_scores_them(small, phrases):
    clips = [clip for clip in spoken() if prepared(clip) is not None]
    too_long = phrase(*LIGHT * 2)
    for spotter in (small, phrases):
        content = onnx_file.build(spotter).SerializeToString()
        assert compare(spotter, content, clips, None).difference < 1e-5
        assert np.isnan(OnnxModel(content).scores(too_long)).all()
        with pytest.raises(InputError, match="of sound without a pause"):
            spotter.predict(too_long)
    runner, thresholds = OnnxModel(content), phrases.thresholds()
    for said in (LIGHT, MUSIC):
        scores = runner.scores(phrase(*said, take=9))
        best = runner.words[scores.argmax()]
        assert best == " ".join(said) and scores.max() >= thresholds[best]


def test_onnxruntime_alone_runs_the_file(small, tmp_path):
    [clip] = clips_of("lamp", 5, 6)
    (tmp_path / "home.onnx").write_bytes(onnx_file.build(small).SerializeToString())
    clip.tofile(tmp_path / "clip.f32")
    program = """if True:
        import json, sys
        import numpy, onnxruntime
        session = onnxruntime.InferenceSession("home.onnx", providers=["CPUExecutionProvider"])
        words = json.loads(session.get_modelmeta().custom_metadata_map["words"])
        clip = numpy.fromfile("clip.f32", dtype=numpy.float32)
        scores = session.run(["scores"], {"audio": clip})[0]
        assert not any(name.startswith(("tapword", "onnx.")) for name in sys.modules)
        print(json.dumps(dict(zip(words, scores.tolist()))))
    """
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    scores = json.loads(done.stdout)
    prediction = small.predict(clip)
    assert max(scores, key=scores.get) == prediction.word == "lamp"
    assert scores["lamp"] == pytest.approx(prediction.score, abs=1e-3)


def test_negatives_are_columns_behind_the_words():
    spotter = taught(("lamp", "door"))
    spotter.set_sensitivity(0.3, "door")
    [noise] = clips_of("right", stop=1)
    nearest = spotter.reject(noise)
    spotter.learn_many(clips_of("music", stop=3), ["music"] * 3)
    model = onnx_file.build(spotter)
    about = {entry.key: json.loads(entry.value) for entry in model.metadata_props}
    assert about["words"] == ["lamp", "door", "music"]
    assert about["negatives"] == [nearest]
    assert about["thresholds"] == spotter.thresholds()
    assert about["sample_rate"] == 16_000
    runner = OnnxModel(model.SerializeToString())
    raw = runner.session.run(["scores"], {"audio": noise})[0]
    [scores] = spotter.score_encoded(spotter.encode([noise]))
    wanted = [*scores.words.values(), *scores.negatives.values()]
    np.testing.assert_allclose(raw, wanted, atol=1e-3)
    assert raw[-1] > raw[:-1].max()


def test_eight_bits_are_smaller_and_nearly_as_good(small):
    model = onnx_file.build(small)
    content = quantize(model, [clip for word in WORDS for clip in clips_of(word, 3, 5)])
    # Windows of running speech are in 8 bits already, a byte for each number.
    windows = small.scorer.cohort.words.vectors.size + small.scorer.cohort.phrases.vectors.size
    assert len(content) - windows < 0.5 * (model.ByteSize() - windows)
    words = [word for word in WORDS for _ in range(3)]
    clips = [clip for word in WORDS for clip in clips_of(word, 10, 13)]
    seen = compare(small, content, clips, words)
    assert 1e-6 < seen.difference < 0.15
    assert seen.file_right >= seen.model_right - 1
    with pytest.raises(InputError, match="nothing to quantize"):
        quantize(onnx_file.build(taught(**LOGMEL, learner="ncm")), clips[:1])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"learner": "snb"}, "learner snb cannot be exported as ONNX"),
        ({"learner": "sovr"}, "learner sovr cannot be exported as ONNX"),
        ({"pooling": "flat"}, "pooling flat cannot be exported as ONNX"),
        ({"pooling": "maxw"}, "pooling maxw cannot be exported as ONNX"),
    ],
)
def test_parts_that_cannot_be_exported_are_named(parts, message):
    spotter = taught(("lamp",), **({"backbone": "logmel", "pooling": "avg"} | parts))
    with pytest.raises(InputError, match=message):
        onnx_file.build(spotter)


def test_other_backbones_are_refused():
    class Other(Backbone):
        dims, params = (1,), 0

        def _extract(self, audio):
            return [audio[:, :, None]]

    with pytest.raises(InputError, match="backbone test_export cannot be exported"):
        front_end(Other())


def test_only_onnx_files_need_the_package_of_that_name(monkeypatch):
    spotter = taught(("lamp",))
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtra, match=r"an ONNX file needs the package 'onnx'.*\[onnx\]"):
        onnx_file.build(spotter)
    assert "tapword_ear_push" in c_header.build(spotter, eight_bits=True).text


# C.


@pytest.fixture(scope="module")
def device(phrases, tmp_path_factory) -> Device:
    return Device(phrases, tmp_path_factory.mktemp("device"))


def test_the_header_hears_as_the_model(device, phrases):
    clips = [
        clips_of("door", 9, 10)[0],
        np.pad(clips_of("lamp", 9, 10)[0], (21_000, 777)),
        phrase(*LIGHT, take=9, before=7_000, after=20_001),
        phrase(*MUSIC, take=9),
        phrase("window", "door", take=9),
    ]
    encoded = phrases.encode(clips)
    for clip in clips:
        device.order("h", *counted(clip))
        device.order("w", *counted(clip))
    device.order("h", *counted(phrase(*LIGHT * 2)))
    device.order("h", *counted(np.zeros(0)))
    device.order("z")
    device.run()
    for clip, x, scores in zip(clips, encoded.vectors, phrases.score_encoded(encoded), strict=True):
        heard_as(device, clip, x)
        scored_as(device, scores, phrases)
    for error in (-7, -4):
        assert device.number() == error and device.number() == 0
        device.take(encoded.vectors.shape[1])
    assert device.number() == device.ram[0]
    assert device.number() == device.header.flash_bytes


def heard_as(device: Device, clip: np.ndarray, vector: np.ndarray) -> None:
    assert device.number() == 0
    assert device.number() == len(prepare(clip, aligned=True))
    same_vectors(device.take(len(vector)), vector)


def same_vectors(given: np.ndarray, wanted: np.ndarray) -> None:
    """Compare whitened vectors before their signed roots, which are steep near 0."""
    np.testing.assert_allclose(given * np.abs(given), wanted * np.abs(wanted), atol=1e-4)


def scored_as(device: Device, scores: Scores, spotter: Spotter) -> None:
    assert device.number() == 0
    given = device.take(device.number())
    np.testing.assert_allclose(given, list(scores.words.values()), atol=1e-5)
    best, decided = device.number(), device.number()
    words, said = list(scores.words), said_word(scores, spotter.thresholds())
    assert words[best] == max(scores.words, key=scores.words.__getitem__)
    assert (words[decided] if decided >= 0 else None) == said


def with_typed(**parts) -> Spotter:
    """Teach clips as if a voice had spoken them: of a new word, of a known one, of a phrase.

    And of a known one that the voice says differently from the people.
    """
    spotter = taught(**parts)
    typed = {"window": clips_of("window", 0, 6), WORDS[0]: clips_of(WORDS[0], 4, 9)}
    typed[WORDS[1]] = [clip[::-1].copy() for clip in clips_of(WORDS[1], 4, 9)]
    typed[" ".join(LIGHT)] = [phrase(*LIGHT, take=take) for take in range(6)]
    for word, clips in typed.items():
        encoded = spotter.encode(clips, learning=True)
        by = SpokenBy("kokoro", native=word != WORDS[1])
        spotter.learn_encoded(encoded, [word] * len(clips), by)
    spotter.learn(clips_of("window", 6, 7)[0], "window")
    return spotter


def test_typed_words_are_exported_as_a_few_samples(tmp_path):
    spotter = with_typed()
    clips = [clip for clip in spoken() if prepared(clip) is not None][:6]
    content = onnx_file.build(spotter).SerializeToString()
    assert compare(spotter, content, clips, None).difference < 1e-5
    device = Device(spotter, tmp_path)
    for clip in clips:
        device.order("h", *counted(clip))
        device.order("w", *counted(clip))
    device.run()
    encoded = spotter.encode(clips)
    for clip, x, scores in zip(clips, encoded.vectors, spotter.score_encoded(encoded), strict=True):
        heard_as(device, clip, x)
        scored_as(device, scores, spotter)


def test_a_typed_word_scores_the_same_in_an_onnx_file_of_ncm():
    spotter = with_typed(learner="ncm")
    runner = OnnxModel(onnx_file.build(spotter).SerializeToString())
    for heard in clips_of("window", 7, 9):
        [scores] = spotter.score_encoded(spotter.encode([heard]))
        wanted = np.array(list(scores.words.values()))
        np.testing.assert_allclose(runner.scores(heard), wanted, rtol=1e-3)


def test_a_device_keeps_typed_words_as_samples():
    spotter = with_typed(learner="cosine:prior=shipped,covariance=diagonal")
    again = states.load("state", states.dump(spotter), [spotter])
    assert again.words == {**dict.fromkeys(WORDS, 3), WORDS[0]: 4, "window": 2, " ".join(LIGHT): 1}
    assert again.scorer.phrases.keys() == spotter.scorer.phrases.keys()
    encoded = spotter.encode(clips_of("window", 7, 9))
    for one, other in zip(
        again.score_encoded(encoded), spotter.score_encoded(encoded), strict=True
    ):
        wanted = [other.words[word] for word in one.words]
        np.testing.assert_allclose(list(one.words.values()), wanted, atol=1e-5)


def test_the_header_hears_real_recordings_as_the_model(device, phrases):
    clips = people()
    encoded = phrases.encode(clips)
    for clip in clips:
        device.order("h", *counted(clip))
        device.order("w", *counted(clip))
    device.run()
    for clip, x, scores in zip(clips, encoded.vectors, phrases.score_encoded(encoded), strict=True):
        heard_as(device, clip, x)
        scored_as(device, scores, phrases)


def test_the_header_cuts_clips_as_the_encoder_does(device):
    clips = recordings()
    for clip in clips:
        device.order("a", *counted(clip))
    device.order("a", *counted(np.zeros(500 * 160 + 1)))
    device.run()
    for clip in clips:
        wanted = prepared(clip)
        assert device.number() == (-7 if wanted is None else 0)
        start, length = device.number(), device.number()
        if wanted is not None:
            given = cut(clip, start + length // 2, length)
            np.testing.assert_array_equal(given, wanted)
    assert device.number() == -4


def test_the_header_hears_a_stream_as_the_ear(device, phrases):
    stream = phrases.encoder.backbones[0].stream()
    sound = np.resize(phrase(*LIGHT, *MUSIC), 60 * 640)
    [wanted], _ = stream.push(sound)
    device.order("e", *counted(sound))
    device.run()
    frames = device.take(60 * wanted.shape[1]).reshape(60, -1)
    # The first are of nothing.
    np.testing.assert_allclose(frames[60 - len(wanted) :], wanted, atol=1e-4)


def test_no_sound_makes_the_header_leave_its_memory(tmp_path, monkeypatch):
    # Whether all is given back at the end is the driver's matter.
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover")
    spotter = taught(("lamp",), **DIAGONAL)
    device = Device(spotter, tmp_path, *flags)
    broken = np.ones((3, 20_000), dtype=np.float32)
    broken[0, 7], broken[1, 19_999], broken[2, 0] = np.nan, np.inf, 8.1
    for sound in broken:
        device.order("h", *counted(sound))
    sounds = [np.zeros(1), np.ones(1), np.full(17_000, -8), phrase(*LIGHT)]
    for sound in sounds:
        device.order("h", *counted(sound))
    device.run()
    for _ in broken:
        assert device.number() == -4 and device.number() == 0
        device.take(spotter.learner.dim)
    for sound in sounds:
        assert device.number() == 0 and device.number() == len(prepare(sound, aligned=True))
        assert np.isfinite(device.take(spotter.learner.dim)).all()


def test_the_header_surrounds_a_network_outside(tmp_path):
    spotter = taught(**EMBEDDING)
    device = Device(spotter, tmp_path)
    [backbone], dim = spotter.encoder.backbones, spotter.learner.dim
    clips = [np.pad(clips_of("lamp", 9, 10)[0], (21_000, 777)), phrase(*LIGHT, take=9)]
    vectors = spotter.encode(clips).vectors
    for clip in clips:
        device.order("m", *counted(clip))
        blocks = backbone.frames(prepare(clip, aligned=True))
        device.order("v", *[part for block in blocks for part in counted(block)])
    device.order("z")
    device.run()
    for clip, x in zip(clips, vectors, strict=True):
        mel = log_mel(np.pad(prepare(clip, aligned=True), 8_000))
        assert device.number() == len(mel)
        np.testing.assert_allclose(device.take(mel.size).reshape(mel.shape), mel, atol=1e-4)
        np.testing.assert_allclose(device.take(dim), x, rtol=1e-3, atol=1e-4)
    assert device.number() == device.ram[0]
    assert device.number() == device.header.flash_bytes


@pytest.mark.parametrize(
    "learner",
    [
        "cosine:covariance=full",
        "cosine:covariance=block,block=40",
        "cosine:covariance=diagonal",
        "slda:prior=diagonal",
        # With the default of 0.0001, twelve samples leave a matrix that amplifies any rounding.
        "slda:eps=0.01,variant=reference,covariance=block,block=32",
        "ridge",
        "ridge:lam=2.5,balanced=false",
        "ncm",
    ],
)
def test_the_device_learns_as_the_model(tmp_path, learner):
    spotter = taught(**LOGMEL, learner=learner)
    device = Device(spotter, tmp_path, max_words=6)
    fresh = [(clip, word) for word in ("timer", "blinds") for clip in clips_of(word, stop=20)]
    fresh += [(clip, "lamp") for clip in clips_of("lamp", 3, 13)]
    vectors = spotter.encode([clip for clip, _ in fresh]).vectors
    asked = spotter.encode(
        [clips_of(word, 20, 21)[0] for word in (*WORDS, "timer", "blinds")]
    ).vectors

    def ask() -> None:
        for x in asked:
            device.order("s", np.uint32(16_000), x)

    def answered() -> None:
        wanted = spotter.learner.scores(asked)
        for row in wanted:
            assert device.number() == 0
            assert device.number() == len(row)
            scores = device.take(len(row))
            np.testing.assert_allclose(scores, row, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())
            assert device.number() == row.argmax()
            device.number()

    ask()
    for x, (_, word) in zip(vectors, fresh, strict=True):
        device.order("l", x, word)
    device.order("d")
    ask()
    device.order("l", vectors[0], "one too many")
    device.order("l", vectors[0], "")
    device.order("l", vectors[0], "x" * 65)
    device.order("l", np.full_like(vectors[0], np.nan), "lamp")
    for broken in (np.nan, np.inf, 1e20):
        device.order("s", np.uint32(16_000), np.full_like(vectors[0], broken))
    device.order("f", "music")
    device.order("f", "music")
    ask()
    # The first of these take the places of forgotten ones in the scatter.
    again = [x for x, (_, word) in zip(vectors, fresh, strict=True) if word == "timer"]
    for x in again:
        device.order("l", x, "timer")
    ask()
    for word in spotter.learner.words | {"timer": 1, "blinds": 1}:
        device.order("f", word)
    device.order("d")
    device.run()

    answered()
    for x, (_, word) in zip(vectors, fresh, strict=True):
        spotter.learner.learn_one(x, word)
        # The device keeps float32, as does a model that is saved after each sample.
        state = spotter.learner.state()
        assert device.number() == list(spotter.learner.words).index(word)
    assert device.number() == len(state["counts"]) == 6
    assert device.number() == state["n_scatter"][0]
    np.testing.assert_array_equal(device.take(6, "<u4"), state["counts"])
    means = device.take(state["means"].size).reshape(state["means"].shape)
    np.testing.assert_allclose(means, state["means"], rtol=1e-5, atol=1e-5)
    if "scatter" in state:
        scatter = device.take(state["scatter"].size)
        limit = 1e-5 * np.abs(state["scatter"]).max()
        np.testing.assert_allclose(scatter, state["scatter"], rtol=1e-5, atol=limit)
    answered()
    assert [device.number() for _ in range(4)] == [-1, -2, -2, -3]
    for _ in range(3):
        assert device.number() == -3, "no vector"
        device.take(device.number()), device.number(), device.number()
    assert [device.number() for _ in range(2)] == [0, -5]
    spotter.learner.forget("music")
    answered()
    for x in again:
        spotter.learner.learn_one(x, "timer")
        assert device.number() == list(spotter.learner.words).index("timer")
    answered()
    forgotten = [device.number() for _ in range(6)]
    assert sorted(forgotten) == [-5, 0, 0, 0, 0, 0]
    assert device.number() == 0 and device.number() == 0
    assert not np.frombuffer(device.answer[device.place :], "<f4").any(), "all is forgotten"


@pytest.mark.parametrize(("aligned", "longer"), [(True, True), (True, False), (False, True)])
def test_clips_are_measured_by_windows_of_their_length(tmp_path, aligned, longer):
    rng = np.random.default_rng(0)
    plain = Spotter(backbone="logmel", pooling="middle:n=3", learner="ncm", align=aligned)
    [backbone], [pooling] = plain.encoder.backbones, plain.encoder.poolings
    words = [word for word in WORDS for _ in range(8)]
    clips = [clip for word in WORDS for clip in clips_of(word, stop=8)]
    X = plain.encode(clips).vectors
    about = vector_kind(backbone, pooling, aligned) | {"source": "a test"}
    whitening = Whitening.fit(X, words, group_lengths(backbone, pooling), about)
    windows = [X[rng.integers(len(X), size=150)] + rng.standard_normal((150, X.shape[1]))] * 2
    windows[1] = windows[1] + 3
    whitening.set_cohort(*windows if longer else windows[:1])
    spotter = Spotter(
        backbone=backbone,
        pooling=pooling,
        learner="cosine:prior=shipped",
        align=aligned,
        whitening=[whitening],
    )
    spotter.learn_many(clips, words)
    asked = [clips_of("lamp", 9, 10)[0], phrase(*MUSIC, take=9), phrase(*LIGHT, take=9)]
    content = onnx_file.build(spotter).SerializeToString()
    assert compare(spotter, content, asked, None).difference < 1e-5
    device = Device(spotter, tmp_path)
    encoded = spotter.encode(asked)
    for clip, x in zip(asked, encoded.vectors, strict=True):
        device.order("s", np.uint32(len(spotter.encoder.prepare(clip))), x)
    device.run()
    for scores in spotter.score_encoded(encoded):
        scored_as(device, scores, spotter)


def test_the_device_rejects_as_the_model(tmp_path):
    words = ('say "a*/b\\n??/', "Küche 厨房 🏠")
    spotter = Spotter()
    for word, name in zip(words, ("lamp", "door"), strict=True):
        spotter.learn_many(clips_of(name, stop=4), [word] * 4)
    nearest = spotter.reject(clips_of("right", stop=1)[0])
    spotter.set_sensitivity(1.0, nearest)
    device = Device(spotter, tmp_path)
    encoded = spotter.encode(
        [
            clips_of(name, at, at + 1)[0]
            for name in ("lamp", "door", "right", "timer")
            for at in (0, 9)
        ]
    )
    for x in encoded.vectors:
        device.order("s", np.uint32(16_000), x)
    device.order("n")
    device.order("f", nearest)
    device.order("n")
    device.run()
    said = set()
    rows, thresholds = spotter.learner.rows, spotter.thresholds()
    for one in encoded:
        device.number(), device.take(device.number())
        best, decided = device.number(), device.number()
        assert rows[best] == (spotter.predict_encoded(one, closed=True)[0].word, False)
        wanted = said_word(spotter.score_encoded(one)[0], thresholds)
        assert (rows[decided].word if decided >= 0 else None) == wanted
        said.add(wanted)
    assert {None, *words} == said

    def names() -> list[str]:
        room = device.take(device.number() * 67, "u1").tobytes()
        return [room[at : at + 67].split(b"\0")[0].decode() for at in range(0, len(room), 67)]

    assert names() == list(map(states.name, rows))
    assert device.number() == 0
    assert names() == [word for word in words if word != nearest], "its negatives went with it"


@pytest.mark.parametrize(
    "pooling",
    [
        *("avg", "max", "middle:n=7", "middle:n=301", "middle:n=7,frame_rate=90"),
        *("tap:R=5", "tsdp", "tstp"),
        *(
            "attentive:centers=0.1+0.7,widths=0.2+0.4",
            "attentive:centers=0.6,widths=0.2,frame_rate=90",
        ),
        "attentive:centers=0.6,widths=0.2,frame_rate=98",
    ],
)
def test_the_header_pools_as_the_pooling_does(tmp_path, pooling):
    spotter = taught(backbone="logmel", pooling=pooling, learner="ncm")
    device = Device(spotter, tmp_path)
    [clip] = clips_of("door", 4, 5)
    [block] = spotter.encoder.backbones[0].frames(fill(clip, 1.0))
    block[:, 3] = -2.2
    block[:, 4] = 1000
    block[::2, 4] = np.nextafter(block[::2, 4], np.float32(np.inf))  # constant but for rounding
    device.order("v", *counted(block))
    device.order("h", *counted(clip))
    device.run()
    wanted = spotter.encoder.poolings[0].pool(block)
    np.testing.assert_allclose(device.take(len(wanted)), wanted, rtol=1e-4, atol=1e-4)
    assert device.number() == 0 and device.number() == max(len(clip), 16_000)
    [heard] = spotter.encode([clip]).vectors
    np.testing.assert_allclose(device.take(len(heard)), heard, rtol=1e-3, atol=1e-3)


def test_the_frames_file_is_the_backbone_from_log_mel_on():
    import onnxruntime

    spotter = taught(("lamp",), **EMBEDDING)
    clip = align(clips_of("lamp", stop=1)[0], 1.0)
    session = onnxruntime.InferenceSession(
        onnx_file.build_frames(spotter).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    given = session.run(None, {"mel": log_mel(np.pad(clip, 8_000))})
    for block, wanted in zip(given, spotter.encoder.backbones[0].frames(clip), strict=True):
        np.testing.assert_allclose(block, wanted, atol=1e-3)


@pytest.mark.parametrize("form", ["block", "diagonal"])
def test_a_reduced_learner_is_one_taught_so_from_the_start(form):
    full, wanted = (
        taught(**LOGMEL, learner=f"cosine:block=40,covariance={kept}") for kept in ("full", form)
    )
    made = reduced(full.learner, form)
    for key, array in wanted.learner.state().items():
        np.testing.assert_allclose(made.state()[key], array, rtol=1e-4, atol=1e-4)
    assert made.words == wanted.words


@pytest.mark.parametrize(
    ("parts", "options", "message"),
    [
        ({"learner": "snb"}, {}, "learner snb cannot be exported to C"),
        ({"learner": "cosine:covariance=lowrank"}, {}, "lowrank"),
        ({"learner": "slda:scatter=per-word"}, {}, "per word"),
        ({"pooling": "mix"}, {}, "pooling mix cannot be exported to C"),
        ({"backbone": ["logmel", "logmel"]}, {}, "takes one backbone, the model has 2"),
        ({}, {"max_words": 1}, "max_words must be at least 2"),
    ],
)
def test_what_c_does_not_know_is_named(parts, options, message):
    spotter = taught(
        ("lamp", "door"), **({"backbone": "logmel", "pooling": "avg", "learner": "ncm"} | parts)
    )
    with pytest.raises(InputError, match=message):
        c_header.build(spotter, **options)


def test_words_cannot_leave_their_string():
    assert quote('a";\\?\n*/é') == r'"a\042\073\134\077\012\052\057\303\251"'


# The documentation, and the command.


def example(language: str, number: int = 0) -> str:
    text = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)[number]


def test_the_python_that_is_shown_runs(small, tmp_path):
    [clip] = clips_of("lamp", 5, 6)
    (tmp_path / "home.onnx").write_bytes(onnx_file.build(small).SerializeToString())
    soundfile.write(tmp_path / "new.wav", clip, 16_000)
    done = subprocess.run(
        [sys.executable, "-c", example("python")], cwd=tmp_path, capture_output=True, check=True
    )
    assert done.stdout.startswith(b"lamp 0.")
    soundfile.write(tmp_path / "new.wav", phrase(*LIGHT * 2), 16_000)
    done = subprocess.run(
        [sys.executable, "-c", example("python")], cwd=tmp_path, capture_output=True, check=True
    )
    assert done.stdout == b"- nan\n", "more than 3 s of sound"


MAIN = """
#include <stdio.h>

void begin(void);
int teach(const float *audio, size_t n, const char *word);
const char *ask(const float *audio, size_t n);

int main(void)
{
    static float audio[2][16000];
    const char *said;
    begin();
    if (fread(audio, sizeof audio[0], 2, stdin) != 2) {
        return 1;
    }
    said = ask(audio[0], 16000);
    printf("%s ", said == NULL ? "-" : said);
    if (teach(audio[1], 16000, "fan") < 0) {
        return 2;
    }
    said = ask(audio[1], 16000);
    printf("%s", said == NULL ? "-" : said);
    return 0;
}
"""


def test_the_c_that_is_shown_runs(tmp_path):
    header = c_header.build(taught(("lamp", "door"), **DIAGONAL))
    (tmp_path / "home.h").write_text(header.text, encoding="utf-8")
    for name, text in (("home.c", example("c")), ("main.c", MAIN)):
        (tmp_path / name).write_text(text)
    compile_c(tmp_path / "home.c", tmp_path / "main.c", "-o", tmp_path / "home")
    asked = [fill(clips_of(word, 9, 10)[0], 1.0)[:16_000] for word in ("lamp", "fan")]
    done = subprocess.run(
        [tmp_path / "home"], input=np.concatenate(asked).tobytes(), capture_output=True, check=True
    )
    assert done.stdout == b"lamp fan"


@pytest.fixture
def model(tmp_path) -> Path:
    path = tmp_path / "home.tap"
    taught(("lamp", "door"), **LOGMEL, learner="ridge").save(path)
    return path


def test_the_command_writes_and_measures(run, model, tmp_path):
    for word in ("lamp", "door"):
        (tmp_path / "clips" / word).mkdir(parents=True)
        for path in sorted((CLIPS / word).glob("*.ogg"))[5:7]:
            shutil.copy(path, tmp_path / "clips" / word)
    target = tmp_path / "home.onnx"
    code, out, _ = run("export", model, target, "--check", tmp_path / "clips")
    assert code == 0 and "on 4 clips" in out and "% by the file" in out
    assert OnnxModel(target.read_bytes()).words == ["lamp", "door"]
    header = tmp_path / "home.h"
    code, out, _ = run("export", model, header, "--max-words", 7)
    assert code == 0 and "room for 7" in out and "RAM: " in out
    assert "#define TAPWORD_MAX_WORDS 7" in header.read_text()
    assert "nothing else is needed" in header.read_text()


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("more", [[], ["--quiet"]], ids=["shown", "quiet"])
def test_the_command_shows_progress_on_a_terminal_alone(model, tmp_path, more):
    target = tmp_path / "home.h"
    command = [sys.executable, "-m", "tapword", "export", str(model), str(target), "--force", *more]
    ours, terminal = os.openpty()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=terminal, check=True, text=True)
    # Something to read even if nothing was shown.
    os.write(terminal, b".")
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    os.close(terminal)
    assert done.stdout.startswith(f"{target}: 2 words, room for 20\nFlash: ")
    assert ("preparing" in shown and "writing C" in shown) == (not more)
    piped = subprocess.run(command, capture_output=True, check=True, text=True)
    assert (piped.stdout, piped.stderr) == (done.stdout, "")


def test_the_command_writes_the_network_that_is_outside_of_a_header(run, tmp_path):
    taught(("lamp",), **EMBEDDING).save(tmp_path / "home.tap")
    frames = tmp_path / "frames.onnx"
    code, out, _ = run("export", tmp_path / "home.tap", tmp_path / "home.h", "--frames", frames)
    assert code == 0 and "The backbone's network is not included" in out
    assert "#define TAPWORD_HAS_BACKBONE 0" in (tmp_path / "home.h").read_text()
    assert [one.name for one in open_session(frames.read_bytes()).get_inputs()] == ["mel"]


@pytest.mark.parametrize(("ear", "streams"), [("ear_s", 1), ("tapword_ear", 0)])
def test_the_command_writes_an_ear_that_knows_no_word(run, tmp_path, ear, streams):
    header = tmp_path / "core.h"
    code, out, _ = run("export", ear, header)
    assert code == 0 and "0 words, room for 20" in out
    assert f"#define TAPWORD_STREAMS {streams}\n" in header.read_text()
    assert "#define TAPWORD_BLOCK 1\n" in header.read_text(), "the diagonal alone"
    (tmp_path / "main.c").write_text(
        '#define TAPWORD_IMPLEMENTATION\n#include "core.h"\nint main(void)\n'
        "{ static tapword t; tapword_start(&t); return (int)t.words; }\n"
    )
    compile_c("-O0", tmp_path / "main.c", "-o", tmp_path / "core")
    assert subprocess.run([tmp_path / "core"]).returncode == 0


def test_the_command_refuses_what_it_cannot_do(run, model, tmp_path):
    taken = tmp_path / "taken.onnx"
    taken.write_text("mine")
    empty = tmp_path / "empty.tap"
    Spotter(**LOGMEL, learner="ncm").save(empty)
    for arguments, message in (
        ((model, tmp_path / "out.tflite"), "must end in .onnx, .h or .bin"),
        ((model, taken), "exists; give another file"),
        ((model, tmp_path / "nowhere" / "a.h"), "folder does not exist"),
        ((model, tmp_path / "a.h", "--quantize"), "--quantize goes with OUT.onnx"),
        ((model, tmp_path / "a.onnx", "--max-words", 9), "--max-words goes with OUT.h"),
        ((model, tmp_path / "a.onnx", "--covariance", "block"), "goes with OUT.h or OUT.bin"),
        ((model, tmp_path / "a.onnx", "--quantize"), "nothing to quantize"),
        ((model, tmp_path / "a.onnx", "--check", tmp_path), "no folder of sound files"),
        ((model, tmp_path / "a.h", "--covariance", "block"), "no covariance"),
        (
            (model, tmp_path / "a.h", "--frames", tmp_path / "b.onnx"),
            "already has the whole backbone",
        ),
        ((empty, tmp_path / "a.onnx"), "no words yet"),
        (("ear_s", tmp_path / "a.onnx"), "no model file"),
        (("ear_s", tmp_path / "a.h", "--covariance", "some"), "covariance"),
    ):
        code, _, err = run("export", *arguments)
        assert code == 2 and message in err, arguments
        assert not (tmp_path / "a.h").exists() and not (tmp_path / "a.onnx").exists()
    assert taken.read_text() == "mine"
    assert run("export", model, taken, "--force")[0] == 0
    assert taken.read_bytes() != b"mine"
