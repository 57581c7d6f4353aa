import numpy as np
import pytest

from tapword import Spotter, registry, sizes
from tapword.backbones.logmel import Logmel
from tapword.errors import InputError, ModelFileError
from tapword.learners.ncm import Ncm
from tests.conftest import tone

PARTS = {"backbone": "logmel", "pooling": "tap:R=2", "learner": "slda"}
WORDS = ["low", "mid", "high"] * 4


def clips(rng):
    pitch = {"low": 300, "mid": 600, "high": 1200}
    return [tone(pitch[word] * rng.uniform(0.9, 1.1), rng.uniform(0.4, 1.2)) for word in WORDS]


def test_an_untaught_spotter_answers_none():
    assert Spotter(**PARTS).predict(tone(300)) == (None, None, {})


def test_prediction_ranks_every_taught_word(rng):
    spotter = Spotter(**PARTS)
    spotter.learn_many(clips(rng), WORDS)
    answer = spotter.predict(tone(310))
    assert answer.word == "low" and next(iter(answer.probabilities)) == "low"
    assert set(answer.probabilities) == {"low", "mid", "high"}
    assert sum(answer.probabilities.values()) == pytest.approx(1)
    assert answer.score == spotter.learner.scores(spotter.vectors([tone(310)])).max()


def test_learn_many_equals_learn(rng):
    sounds = clips(rng)
    one, many = Spotter(**PARTS), Spotter(**PARTS)
    for sound, word in zip(sounds, WORDS, strict=True):
        one.learn(sound, word)
    many.learn_many(sounds, WORDS)
    assert one.words == many.words == {"low": 4, "mid": 4, "high": 4}
    X = one.vectors(sounds)
    np.testing.assert_allclose(one.learner.scores(X), many.learner.scores(X), rtol=1e-3)


def test_learn_many_takes_all_or_none(rng):
    spotter = Spotter(**PARTS)
    with pytest.raises(InputError):
        spotter.learn_many([tone(300), np.zeros(16_000, np.float32)], ["low", "low"])
    with pytest.raises(InputError, match="got 1 clips for 2 words"):
        spotter.learn_many([tone(300)], ["low", "low"])
    with pytest.raises(InputError, match="printable"):
        spotter.learn_many([tone(300), tone(400)], ["low", "\n"])
    assert spotter.words == {}


def test_merging_halves_equals_learning_the_whole(rng):
    sounds = clips(rng)
    whole, left, right = Spotter(**PARTS), Spotter(**PARTS), Spotter(**PARTS)
    whole.learn_many(sounds, WORDS)
    left.learn_many(sounds[:5], WORDS[:5])
    right.learn_many(sounds[5:], WORDS[5:])
    left.merge(right)
    assert left.words == whole.words
    X = whole.vectors(sounds)
    np.testing.assert_allclose(left.learner.scores(X), whole.learner.scores(X), rtol=1e-3)


def test_merging_different_parts_is_refused():
    with pytest.raises(InputError, match="different pooling"):
        Spotter(**PARTS).merge(Spotter(**PARTS | {"pooling": "avg"}))


def test_forget_and_rename(rng):
    spotter = Spotter(**PARTS)
    spotter.learn_many(clips(rng), WORDS)
    spotter.rename("low", "deep")
    assert list(spotter.words) == ["deep", "mid", "high"]
    assert spotter.predict(tone(300)).word == "deep"
    with pytest.raises(InputError, match="already taught"):
        spotter.rename("deep", "mid")
    spotter.forget("deep")
    assert spotter.predict(tone(300)).word in ("mid", "high")
    with pytest.raises(InputError, match="no word 'deep' is taught; known: mid, high"):
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
    one = Spotter(backbone="logmel", pooling="avg").vectors([tone(300)])
    two = Spotter(backbone=["logmel", Logmel(pad_s=0.5)], pooling="avg").vectors([tone(300)])
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


def test_sizes_are_parts_chosen_for_you():
    assert repr(Spotter()) == repr(Spotter(size="small"))
    small = sizes.size("small")
    vector = f"{small.backbones[0]} -> {small.poolings[0]} -> prior"
    wanted = f"align -> copies -> {vector} -> {small.learner}"
    assert repr(Spotter()) == f"<Spotter {wanted}, 0 words>"
    assert small.poolings == ("blocks:poolings=tap:R=2+tap:R=2+middle",)
    assert small.learner.startswith("cosine:prior=shipped")
    with pytest.raises(InputError, match="no size named 'tiny'; known: small, medium, large"):
        Spotter(size="tiny")
    with pytest.raises(InputError, match="either size='small' or parts"):
        Spotter(size="small", pooling="avg")
    with pytest.raises(InputError, match="no prior at hand"):
        Spotter(size="small", align=False)


def test_parts_alone_are_neither_aligned_nor_whitened():
    for spotter in (Spotter(**PARTS), Spotter("speech_embedding"), Spotter(learner="slda")):
        assert not spotter.align and spotter.priors == []


@pytest.mark.parametrize("align", [False, True])
def test_an_aligned_spotter_hears_the_word_wherever_it_lies(align):
    """In a clip of 3 s, whose middle frames hold the word in one place alone."""
    spotter = Spotter("logmel", "blocks:poolings=middle", "ncm", align=align)
    word = tone(300, 0.4)
    clips = [np.pad(word, (start, 41_600 - start)) for start in (0, 20_800, 40_000)]
    vectors = spotter.vectors(clips)
    assert (np.ptp(vectors, axis=0) < 1e-5).all() == align


def test_blocks_go_through_a_model_file(tmp_path):
    spec = "blocks:poolings=tap:R=2+tap:R=2+middle"
    spotter = Spotter("speech_embedding:layers=b64+emb+emb", spec, "ncm", align=True)
    spotter.learn(tone(300), "low")
    spotter.save(tmp_path / "model.tap")
    loaded = Spotter.load(tmp_path / "model.tap")
    assert loaded.poolings[0].spec == spec and loaded.align
    np.testing.assert_array_equal(loaded.vectors([tone(400)]), spotter.vectors([tone(400)]))
    with pytest.raises(InputError, match="got 3 poolings for 2 blocks"):
        Spotter("speech_embedding:layers=b64+emb", spec, "ncm").vectors([tone(300)])


def test_each_backbone_may_have_its_own_pooling():
    spotter = Spotter(["logmel", "logmel:pad_s=0.5"], ["avg", "tap:R=3"], "ncm")
    assert spotter.vectors([tone(300)]).shape == (1, 32 + 3 * 32)
    with pytest.raises(InputError, match="got 2 poolings for 1 backbones"):
        Spotter("logmel", ["avg", "tap"])


def test_every_pooling_goes_with_every_learner(rng):
    sounds = [tone(pitch * rng.uniform(0.9, 1.1), 0.2) for pitch in (300, 1200) * 2]
    frames = Logmel().frames_many(sounds)
    for name in registry.classes("poolings"):
        # Four frames keep the longest vector short enough for every learner to be quick.
        pooling = registry.build("poolings", name).fixed(4)
        X = np.stack([pooling.pool(blocks[0], learning=True) for blocks in frames])
        for learner_name in registry.classes("learners"):
            learner = registry.build("learners", learner_name)
            learner.learn_many(X, ["low", "high"] * 2)
            assert set(learner.predict(X)) <= {"low", "high"}, (name, learner_name)


def test_rates_and_files(tmp_path):
    import soundfile

    spotter = Spotter(**PARTS)
    soundfile.write(tmp_path / "clip.wav", tone(300, rate=48_000), 48_000, subtype="FLOAT")
    from_file = spotter.vectors([tmp_path / "clip.wav"])
    from_array = spotter.vectors([tone(300, rate=48_000)], sample_rate=48_000)
    np.testing.assert_allclose(from_file, from_array, atol=1e-3)
