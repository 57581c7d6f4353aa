import numpy as np
import pytest

from tapword import Spotter
from tapword.backbones.logmel import Logmel
from tapword.errors import InputError, ModelFileError
from tapword.learners.ncm import Ncm
from tapword.spotter import presets, vocabulary
from tests.conftest import tone

PARTS = {"backbone": "logmel", "pooling": "tap:R=2", "learner": "slda"}
WORDS = ["low", "mid", "high"] * 4


def clips(rng):
    pitch = {"low": 300, "mid": 600, "high": 1200}
    return [tone(pitch[word] * rng.uniform(0.9, 1.1), rng.uniform(0.4, 1.2)) for word in WORDS]


def test_no_clips_have_no_vectors():
    for spotter in (Spotter(), Spotter("logmel", "avg", "ncm")):
        width = spotter.encode([np.ones(16_000)]).vectors.shape[1]
        assert spotter.encode([]).vectors.shape == (0, width)
    assert len(Spotter("logmel", "flat", "ncm").encode([])) == 0


def test_an_untaught_spotter_answers_none():
    assert Spotter(**PARTS).predict(tone(300)) == (None, None, {}, {})
    assert Spotter().predict(tone(300)) == (None, None, {}, {})


def test_prediction_ranks_every_taught_word(rng):
    spotter = Spotter(**PARTS)
    spotter.learn_many(clips(rng), WORDS)
    answer = spotter.predict(tone(310))
    assert answer.word == "low" and next(iter(answer.probabilities)) == "low"
    assert set(answer.probabilities) == {"low", "mid", "high"}
    assert sum(answer.probabilities.values()) == pytest.approx(1)
    assert answer.score == spotter.learner.scores(spotter.encode([tone(310)]).vectors).max()


def test_learn_many_takes_all_or_none(rng):
    spotter = Spotter(**PARTS)
    with pytest.raises(InputError):
        spotter.learn_many([tone(300), np.zeros(16_000, np.float32)], ["low", "low"])
    with pytest.raises(InputError, match="got 1 clip for 2 words"):
        spotter.learn_many([tone(300)], ["low", "low"])
    with pytest.raises(InputError, match="printable"):
        spotter.learn_many([tone(300), tone(400)], ["low", "\n"])
    assert spotter.words == {}


def test_merging_different_parts_is_refused():
    with pytest.raises(InputError, match="different pooling"):
        Spotter(**PARTS).merge(Spotter(**PARTS | {"pooling": "avg"}))


def test_vectors_are_unlearned_and_a_word_given_back(rng, tmp_path):
    spotter = Spotter()
    spotter.learn_many(clips(rng), WORDS)
    asked, extra = tone(310), spotter.encode([tone(900)], learning=True)
    before = spotter.predict(asked, closed=True)
    spotter.learn_encoded(extra, [" low "])
    spotter.unlearn_encoded(extra, [" low "])
    assert spotter.words == {"low": 4, "mid": 4, "high": 4}
    assert spotter.predict(asked, closed=True).score == pytest.approx(before.score, abs=1e-4)
    spotter.set_sensitivity(0.7, "low")
    part = spotter.extract_word("low")
    spotter.forget("low")
    assert part.words == {"low": 4} and spotter.vocabulary.sensitivities == {}
    spotter.merge(part)
    assert spotter.words == {"mid": 4, "high": 4, "low": 4}
    assert spotter.vocabulary.sensitivities == {"low": 0.7}
    assert spotter.predict(asked, closed=True).score == pytest.approx(before.score, abs=1e-4)
    # The last sample takes the word along, and the file's backup holds nothing of it.
    path = tmp_path / "home.tap"
    spotter.learn_encoded(extra, ["new"])
    spotter.set_sensitivity(0.2, "new")
    for _ in range(2):
        spotter.save(path)
    spotter.unlearn_encoded(extra, ["new"])
    spotter.save(path)
    assert "new" not in Spotter.load(path).words and "new" not in spotter.vocabulary.sensitivities
    assert not path.with_name("home.tap.bak").exists()


def test_new_words_are_at_most_64_bytes(tmp_path, monkeypatch):
    """Files of before may contain longer ones, which can still be taught, renamed and forgotten."""
    path, long = tmp_path / "home.tap", "ä" * 50
    spotter = Spotter(**PARTS)
    spotter.learn(tone(300), "ä" * 32)
    for refuse in (
        lambda: spotter.learn(tone(300), "ä" * 33),
        lambda: spotter.rename("ä" * 32, long),
    ):
        with pytest.raises(InputError, match="at most 64 bytes of UTF-8") as refused:
            refuse()
        assert refused.value.code == "word_too_long"
    with monkeypatch.context() as before:
        before.setattr(vocabulary, "MAX_WORD_BYTES", 200)
        spotter.learn(tone(900), long)
    spotter.save(path)
    loaded = Spotter.load(path)
    loaded.learn(tone(910), long)
    assert loaded.words == {"ä" * 32: 1, long: 2} and loaded.predict(tone(900)).word == long
    loaded.rename(long, "short")
    loaded.forget("short")
    assert list(loaded.words) == ["ä" * 32]


def test_forget_and_rename(rng):
    spotter = Spotter(**PARTS)
    spotter.learn_many(clips(rng), WORDS)
    spotter.rename("low", "deep")
    assert list(spotter.words) == ["deep", "mid", "high"]
    assert spotter.predict(tone(300)).word == "deep"
    with pytest.raises(InputError, match="there is already a word"):
        spotter.rename("deep", "mid")
    spotter.forget("deep")
    assert spotter.predict(tone(300)).word in ("mid", "high")
    with pytest.raises(InputError, match="'deep' is not in this model"):
        spotter.forget("deep")
    spotter.learn(tone(300), "deep")
    assert spotter.words == {"mid": 4, "high": 4, "deep": 1}


def test_a_state_that_went_wrong_is_not_saved(tmp_path):
    spotter = Spotter("logmel", "avg", "finetune:lr=1e30")
    with np.errstate(all="ignore"):
        for _ in range(5):
            spotter.learn(tone(300), "low")
            spotter.learn(tone(900), "high")
    with pytest.raises(ModelFileError, match=r"not saved: .* NaN or infinite"):
        spotter.save(tmp_path / "model.tap")
    assert not (tmp_path / "model.tap").exists()


def test_words_are_cleaned():
    spotter = Spotter(**PARTS)
    spotter.learn(tone(300), " cafe\u0301 ")
    spotter.learn(tone(300), "caf\u00e9")
    assert spotter.words == {"caf\u00e9": 2}
    spotter.rename("cafe\u0301", "coffee")
    spotter.forget(" coffee ")
    assert spotter.words == {}
    for word in ("", "  ", "a\nb", "x" * 201, 7):
        with pytest.raises(InputError, match="a word must be"):
            spotter.learn(tone(300), word)


def test_several_backbones_stand_side_by_side():
    one = Spotter(backbone="logmel", pooling="avg").encode([tone(300)]).vectors
    two = Spotter(backbone=["logmel", Logmel(pad_s=0.5)], pooling="avg").encode([tone(300)]).vectors
    assert two.shape == (1, 64)
    np.testing.assert_array_equal(two[:, :32], one)
    assert not np.allclose(two[:, 32:], one)


def test_parts_are_names_or_objects():
    assert Spotter(learner=Ncm()).learner.name == "ncm"
    assert "tap:R=2" in repr(Spotter(**PARTS))
    with pytest.raises(InputError, match="expected a learner or its name, got 3"):
        Spotter(learner=3)
    with pytest.raises(InputError, match="at least one backbone"):
        Spotter(backbone=[])


def test_presets_are_parts_chosen_for_you():
    assert repr(Spotter()) == repr(Spotter(size="small"))
    small = presets.preset("small")
    vector = f"{small.backbones[0]} -> {small.poolings[0]} -> whitening"
    wanted = f"align -> augment -> {vector} -> {small.learner}"
    assert repr(Spotter()) == f"<Spotter {wanted}, 0 words>"
    assert (small.backbones, small.poolings) == (("ear_s",), ("attentive",))
    assert small.learner.startswith("cosine:prior=shipped")
    with pytest.raises(InputError, match="no size named 'tiny'; known: small, medium, large"):
        Spotter(size="tiny")
    with pytest.raises(InputError, match="either size='small' or parts"):
        Spotter(size="small", pooling="avg")
    with pytest.raises(InputError, match="no whitening for"):
        Spotter(size="small", align=False)


def test_parts_that_are_not_named_are_the_presets():
    whole, bare = Spotter(), Spotter("ear_s")
    assert repr(bare) == repr(whole)
    earlier = repr(whole).replace("ear_s", "tapword_ear")
    assert repr(Spotter("tapword_ear")) == earlier != repr(whole)
    assert "speech_embedding:layers=b64+emb+emb -> blocks" in repr(Spotter("speech_embedding"))
    slda = Spotter(learner="slda")
    assert slda.encoder.parts[0][1].spec == whole.encoder.parts[0][1].spec
    assert slda.encoder.preparation == whole.encoder.preparation and not slda.encoder.whitenings
    assert repr(Spotter(pooling="avg")) == (
        "<Spotter ear_s -> avg -> cosine:covariance=full, 0 words>"
    )
    assert repr(Spotter("logmel")) == "<Spotter logmel -> tap -> cosine:covariance=full, 0 words>"


@pytest.mark.parametrize("align", [False, True])
def test_an_aligned_spotter_finds_the_word_wherever_it_is(align):
    """In a clip of 3 s, whose middle frames hold the word in one place alone."""
    spotter = Spotter("logmel", "blocks:poolings=middle", "ncm", align=align)
    word = tone(300, 0.4)
    clips = [np.pad(word, (start, 41_600 - start)) for start in (0, 20_800, 40_000)]
    vectors = spotter.encode(clips).vectors
    assert (np.ptp(vectors, axis=0) < 1e-5).all() == align


def test_blocks_go_through_a_model_file(tmp_path):
    spec = "blocks:poolings=tap:R=2+tap:R=2+middle"
    spotter = Spotter("speech_embedding:layers=b64+emb+emb", spec, "ncm", align=True)
    spotter.learn(tone(300), "low")
    spotter.save(tmp_path / "model.tap")
    loaded = Spotter.load(tmp_path / "model.tap")
    assert loaded.encoder.poolings[0].spec == spec and loaded.encoder.preparation.align
    np.testing.assert_array_equal(
        loaded.encode([tone(400)]).vectors, spotter.encode([tone(400)]).vectors
    )
    with pytest.raises(InputError, match="got 3 poolings for 2 blocks"):
        Spotter("speech_embedding:layers=b64+emb", spec, "ncm").encode([tone(300)])


def test_each_backbone_may_have_its_own_pooling():
    spotter = Spotter(["logmel", "logmel:pad_s=0.5"], ["avg", "tap:R=3"], "ncm")
    assert spotter.encode([tone(300)]).vectors.shape == (1, 32 + 3 * 32)
    with pytest.raises(InputError, match="got 2 poolings for 1 backbones"):
        Spotter("logmel", ["avg", "tap"])


def test_rates_and_files(tmp_path):
    import soundfile

    spotter = Spotter(**PARTS)
    soundfile.write(tmp_path / "clip.wav", tone(300, rate=48_000), 48_000, subtype="FLOAT")
    from_file = spotter.encode([tmp_path / "clip.wav"]).vectors
    from_array = spotter.encode([tone(300, rate=48_000)], sample_rate=48_000).vectors
    np.testing.assert_allclose(from_file, from_array, atol=1e-3)
