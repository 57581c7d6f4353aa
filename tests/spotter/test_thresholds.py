"""What is none of the words: thresholds, negatives, and what a file keeps of them."""

import numpy as np
import pytest

from tapword import Detector, Spotter
from tapword.assets import CLIPS
from tapword.audio import files
from tapword.errors import InputError, ModelFileError
from tapword.spotter import store
from tapword.spotter.thresholds import (
    LINE,
    Line,
    Scores,
    Tail,
    confidence,
    confidences,
    decide,
    parse_sensitivity,
    parse_threshold,
    rate_factor,
)
from tapword.spotter.vocabulary import SENSITIVITY
from tapword.spotter.whitening import shipped
from tests.conftest import tone


@pytest.fixture
def spotter(rng):
    made = Spotter()
    for word, pitch in (("low", 300), ("high", 1200)):
        for _ in range(3):
            made.learn(tone(pitch * rng.uniform(0.95, 1.05)), word)
    return made


def test_fewer_false_alarms_ask_for_higher_scores(spotter):
    strict, lenient = spotter.thresholds(0.1), spotter.thresholds(10)
    assert all(strict[word] > lenient[word] for word in ("low", "high"))
    one = Spotter()
    one.learn(tone(300), "low")
    # The rate is for all words together, so each of several has less of it.
    assert one.thresholds()["low"] < spotter.thresholds()["low"]


@pytest.mark.parametrize("rate", [0, -1, np.inf, np.nan])
def test_a_rate_must_be_above_zero(spotter, rate):
    with pytest.raises(InputError, match="false_alarms_per_hour must be above 0"):
        spotter.thresholds(rate)


def test_a_tail_gives_thresholds_and_takes_them_back(rng):
    tail = Tail.of(rng.normal(-0.3, 0.1, 1000))
    rates = (1e3, 1, 1e-2, 1e-4)
    thresholds = [tail.threshold(rate) for rate in rates]
    assert thresholds == sorted(thresholds)
    found = [tail.false_alarms_per_hour(threshold) for threshold in thresholds]
    np.testing.assert_allclose(found, rates)


def test_a_word_that_is_said_now_and_then_in_running_speech_does_not_become_deaf(rng):
    scores = rng.normal(-0.3, 0.1, 1000)
    without = Tail.of(scores).threshold(0.5)
    scores[:5] = 0.6
    assert Tail.of(scores).threshold(0.5) - without < 0.03


def test_few_scores_have_a_tail_too():
    assert np.isfinite(Tail.of(np.array([0.1, 0.3])).threshold(0.5))


def test_thresholds_follow_what_is_learned(spotter):
    before = spotter.thresholds()
    spotter.learn(tone(500), "low")
    after = spotter.thresholds()
    assert after["low"] != before["low"] and after["high"] == pytest.approx(before["high"])


@pytest.mark.parametrize("learner", ["slda:prior=shipped", "ridge", "ncm"])
def test_thresholds_are_for_the_learner_they_were_measured_with(learner):
    small = Spotter()
    parts = small.encoder.backbones, small.encoder.poolings
    other = Spotter(*parts, learner, align=True, whitening="shipped")
    other.learn(tone(300), "low")
    with pytest.raises(InputError, match="Thresholds are unavailable"):
        other.thresholds()
    with pytest.raises(InputError, match="Thresholds are unavailable"):
        Detector(other)
    assert Detector(other, thresholds={"low": 0.5}).thresholds == {"low": 0.5}


def test_words_that_were_not_taught_are_none_of_them():
    def clips(word):
        return sorted((CLIPS / word).glob("*.ogg"))

    spotter = Spotter()
    for word in ("coffee", "blinds"):
        spotter.learn_many(clips(word)[::4], [word] * len(clips(word)[::4]))
    right = [spotter.predict(clip).word for clip in clips("coffee")[1::4]]
    assert right.count("coffee") > 0.6 * len(right) and "blinds" not in right
    other = [spotter.predict(clip) for clip in clips("garage") + clips("music")]
    assert sum(answer.word is None for answer in other) > 0.9 * len(other)
    assert all(answer.score is not None for answer in other)
    music = clips("music")[0]
    assert spotter.predict(music, closed=True).word in spotter.words
    low = dict.fromkeys(spotter.words, -1.0)
    assert spotter.predict(music, thresholds=low).word in spotter.words
    assert spotter.predict(music, thresholds={}).word is None


def test_the_best_word_that_reaches_its_threshold_is_said():
    scores = Scores({"a": 0.5, "b": 0.7, "c": 0.9}, {})
    assert decide(scores, {"a": 0.5, "b": 0.5, "c": 0.95}) == "b"
    assert decide(scores, {"a": 0.5}) == "a"
    assert decide(scores, {"a": 0.51}) is None
    assert decide(Scores({"a": 0.5}, {"a": 0.5}), {"a": 0.1}) is None
    assert decide(Scores({"a": 0.5, "b": 0.4}, {"a": 0.6, "b": 0.3}), {"a": 0.1, "b": 0.1}) == "b"


def test_a_rejected_sound_is_not_taken_for_any_word_again():
    parts = {"backbone": "logmel", "pooling": "avg", "learner": "ncm"}
    spotter = Spotter(**parts)
    spotter.learn(tone(300), "low")
    spotter.learn(tone(1200), "high")
    sound, everything = tone(500), dict.fromkeys(("low", "high"), -np.inf)
    taken = spotter.predict(sound, thresholds=everything).word
    assert spotter.reject(sound) == taken
    # Now it falls to the other word; rejecting it again is about that one.
    second = spotter.predict(sound, thresholds=everything).word
    assert second is not None and second != taken
    assert spotter.reject(sound) == second
    assert spotter.predict(sound, thresholds=everything).word is None
    assert spotter.words == {"low": 1, "high": 1}
    assert spotter.vocabulary.negatives == {"low": 1, "high": 1}
    assert spotter.predict(tone(300), thresholds=everything).word == "low"


def test_rejected_sounds_follow_their_word(tmp_path, rng):
    spotter = Spotter("logmel", "avg", "ncm")
    spotter.learn(tone(300), "low")
    spotter.reject(tone(500))
    spotter.rename("low", "deep")
    assert spotter.vocabulary.negatives == {"deep": 1}
    spotter.save(tmp_path / "model.tap")
    assert Spotter.load(tmp_path / "model.tap").vocabulary.negatives == {"deep": 1}
    spotter.forget("deep")
    assert spotter.words == spotter.vocabulary.negatives == {} and spotter.learner.rows == []
    assert spotter.reject(tone(300)) is None


# Sensitivity.


def test_each_tenth_of_sensitivity_allows_more_false_alarms(spotter):
    middle = spotter.thresholds()
    spotter.set_sensitivity(0.6, "low")
    assert spotter.thresholds() == {
        "low": pytest.approx(spotter.thresholds(0.5 * 100**0.2, {None: 0.5})["low"]),
        "high": middle["high"],
    }
    assert spotter.thresholds()["low"] < middle["low"]
    # It holds at any rate.
    assert spotter.thresholds(0.1)["low"] < spotter.thresholds(0.1, {None: 0.5})["low"]
    spotter.set_sensitivity(0.2)
    assert spotter.vocabulary.sensitivity == 0.2 and spotter.vocabulary.sensitivities == {}
    assert all(spotter.thresholds()[word] > middle[word] for word in middle)
    assert [rate_factor(value) for value in (0, 0.5, 1)] == pytest.approx([0.01, 1, 100])


def test_sensitivities_for_one_listener_alone(spotter):
    spotter.set_sensitivity(0.9, "low")
    for given, low, high in [
        ({}, 0.9, 0.5),
        ({"low": 0.3}, 0.3, 0.5),
        ({None: 0.7}, 0.7, 0.7),
        ({None: 0.7, "high": 0.1}, 0.7, 0.1),
    ]:
        wanted = {"low": spotter.thresholds(0.5, {None: low})["low"]}
        wanted |= {"high": spotter.thresholds(0.5, {None: high})["high"]}
        assert spotter.thresholds(0.5, given) == wanted
        assert Detector(spotter, sensitivities=given).thresholds == wanted
    assert spotter.vocabulary.sensitivities == {"low": 0.9}
    given = Detector(spotter, sensitivities={None: 1.0}, thresholds={"low": 0.9}).thresholds
    assert given == spotter.thresholds(0.5, {None: 1.0}) | {"low": 0.9}


@pytest.mark.parametrize("value", [-0.01, 1.01, np.nan, np.inf, "x", None])
def test_a_sensitivity_goes_from_0_to_1(spotter, value):
    with pytest.raises(InputError, match="a number from 0 to 1"):
        spotter.set_sensitivity(value, "low")
    with pytest.raises(InputError, match="a number from 0 to 1"):
        Detector(spotter, sensitivities={"low": value})
    assert spotter.vocabulary.sensitivities == {}


def test_a_sensitivity_is_of_a_taught_word_and_of_known_scores(spotter):
    with pytest.raises(InputError, match="'lo' is not in this model"):
        spotter.set_sensitivity(0.6, "lo")
    with pytest.raises(InputError, match="'lo' is not in this model"):
        Detector(spotter, sensitivities={"lo": 0.6})
    other = Spotter("logmel", "avg", "ncm")
    other.learn(tone(300), "low")
    for word in (None, "low"):
        with pytest.raises(InputError, match="Thresholds are unavailable"):
            other.set_sensitivity(0.6, word)
        with pytest.raises(InputError, match="Thresholds are unavailable"):
            Detector(other, thresholds={"low": 0.5}, sensitivities={word: 0.6})


def test_sensitivities_go_with_the_words(spotter, tmp_path):
    path = tmp_path / "model.tap"
    spotter.set_sensitivity(0.4)
    spotter.set_sensitivity(0.8, "low")
    spotter.save(path)
    loaded = Spotter.load(path)
    assert (loaded.vocabulary.sensitivity, loaded.vocabulary.sensitivities) == (0.4, {"low": 0.8})
    assert loaded.thresholds() == pytest.approx(spotter.thresholds())
    spotter.rename("low", "deep")
    assert spotter.vocabulary.sensitivities == {"deep": 0.8}
    spotter.forget("deep")
    assert spotter.vocabulary.sensitivities == {}
    spotter.replace_with(loaded)
    assert (spotter.vocabulary.sensitivity, spotter.vocabulary.sensitivities) == (0.4, {"low": 0.8})


def test_of_two_sensitivities_the_lower_one_is_merged(spotter):
    """Each word goes on as it was heard; whoever heard it less set that for a reason."""
    other = Spotter()
    for word, pitch in (("low", 300), ("high", 1200), ("beep", 2000)):
        other.learn(tone(pitch), word)
    other.set_sensitivity(0.3)
    other.set_sensitivity(0.9, "low")
    spotter.set_sensitivity(0.7, "low")
    spotter.merge(other)
    assert spotter.vocabulary.sensitivity == 0.5
    assert spotter.vocabulary.sensitivities == {"low": 0.7, "high": 0.3, "beep": 0.3}


@pytest.mark.parametrize(
    "said",
    [
        {"sensitivity": 1.5},
        {"sensitivity": True},
        {"sensitivity": None},
        {"sensitivities": {"low": "x"}},
        {"sensitivities": {"low": float("nan")}},
        {"sensitivities": {"low": -1}},
        {"sensitivities": {"other": 0.5}},
        {"sensitivities": [1]},
    ],
)
def test_sensitivities_of_a_file_must_make_sense(spotter, tmp_path, said):
    path = tmp_path / "model.tap"
    spotter.save(path)
    header, arrays = store.read(path)
    path.write_bytes(store.pack(header | said, arrays))
    with pytest.raises(ModelFileError, match="sensitivit"):
        Spotter.load(path)


def test_a_file_without_sensitivities_has_the_usual_one(spotter, tmp_path):
    path = tmp_path / "model.tap"
    spotter.save(path)
    header, arrays = store.read(path)
    header = {key: header[key] for key in header if not key.startswith("sensitiv")}
    # Earlier versions kept thresholds of their own scores.
    path.write_bytes(store.pack(header | {"calibrated": {"low": 10**400}}, arrays))
    loaded = Spotter.load(path)
    assert (loaded.vocabulary.sensitivity, loaded.vocabulary.sensitivities) == (SENSITIVITY, {})


def test_a_whitening_for_a_file_without_one_is_refused(spotter, tmp_path):
    path = tmp_path / "model.tap"
    other = Spotter("logmel", "avg", "ncm")
    other.learn(tone(300), "low")
    other.save(path)
    with (
        pytest.raises(InputError, match="taught without a whitening"),
        Spotter.edit(path, whitening=spotter.encoder.whitenings),
    ):
        pass


def test_times_count_every_sample_that_was_lost(spotter):
    detector = Detector(spotter, thresholds=dict.fromkeys(spotter.words, -1.0))
    said = files.read(sorted((CLIPS / "lamp").glob("*.ogg"))[0])
    sound = np.pad(said, (8_000, 16_000))
    [first] = detector(sound)
    for _ in range(100):
        detector(np.zeros(1_119, dtype=np.float32))
        detector.gap(0.004)
    lost_s = len(sound) / 16_000 + 100 * (1_119 / 16_000 + 0.004)
    [second] = detector(sound)
    assert second.start_s - first.start_s == pytest.approx(lost_s, abs=1e-3)


# WORD=SCORE as options give it.


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("lamp=0.6", ("lamp", 0.6)),
        (" kitchen light =1e-1", ("kitchen light", 0.1)),
        ("cafe\u0301=-1", ("caf\u00e9", -1.0)),
        ("2+2=4=0.5", ("2+2=4", 0.5)),
    ],
)
def test_a_threshold_is_a_word_and_a_score(text, wanted):
    assert parse_threshold(text) == wanted


@pytest.mark.parametrize("text", ["", "lamp", "0.6", "lamp=", "lamp=much", "=0.6", " =1", "a=nan"])
def test_what_is_no_threshold(text):
    with pytest.raises(InputError, match=r"must be WORD=SCORE, as in lamp=0\.6; got"):
        parse_threshold(text)


def test_a_threshold_of_a_word_that_cannot_be_shown():
    with pytest.raises(InputError, match="printable"):
        parse_threshold("a\nb=0.6")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0.6", (None, 0.6)),
        ("1", (None, 1.0)),
        (" a=b =0", ("a=b", 0.0)),
        ("lamp=.5", ("lamp", 0.5)),
    ],
)
def test_a_sensitivity_is_a_number_for_a_word_or_for_all(text, wanted):
    assert parse_sensitivity(text) == wanted


@pytest.mark.parametrize(
    "text", ["", "lamp", "lamp=", "=0.6", " =1", "lamp=nan", "1.1", "lamp=-0.1"]
)
def test_what_is_no_sensitivity(text):
    with pytest.raises(InputError, match=r"must be a number from 0 to 1, or WORD=NUMBER"):
        parse_sensitivity(text)


def test_a_renamed_word_has_its_threshold(spotter):
    before = spotter.thresholds()
    spotter.rename("low", "deep")
    assert spotter.thresholds() == {"deep": before["low"], "high": before["high"]}


def test_how_widely_scores_scatter_below_the_tail_says_nothing(rng):
    scores = np.sort(rng.normal(-0.3, 0.1, 1000))
    wide = np.where(np.arange(1000) < 900, 3 * scores, scores)
    assert Tail.of(wide).threshold(0.5) == Tail.of(scores).threshold(0.5)
    assert np.isfinite(Tail.of(scores).false_alarms_per_hour(-1e6))


def test_a_whitening_may_say_how_far_scores_reach():
    scores = np.random.default_rng(0).normal(-0.3, 0.1, 1000)
    near, far = Tail.of(scores, Line(0.5, 0.1)), Tail.of(scores, Line(1.0, 0.3))
    assert near.threshold(1.0) == pytest.approx(near.tail_mean + 0.5)
    assert far.threshold(0.1) > near.threshold(0.1)
    for tail in (near, far):
        assert tail.false_alarms_per_hour(tail.threshold(0.2)) == pytest.approx(0.2)
    few = shipped("tapword_ear").project(8, Line(0.3, 0.1))
    ear = Spotter("tapword_ear", "attentive", "cosine:prior=shipped", align=True, whitening=[few])
    ear.learn(tone(300), "low")
    assert ear.scorer.tails()["low"].line == Line(0.3, 0.1) != LINE


def test_a_line_belongs_to_the_scores_of_one_backbone():
    spotter = Spotter(size="small")
    [whitening] = spotter.encoder.whitenings
    assert spotter.encoder.line == whitening.line != LINE
    spotter.encoder.whitenings = [whitening, shipped("moonshine_tiny")]
    assert spotter.encoder.line == LINE


def test_fifty_is_where_a_word_counts_as_said(rng):
    width = 0.0564
    for threshold in (-0.3, 0.0, 0.1 + 0.2, 0.55):
        below, above = np.nextafter(threshold, -1), np.nextafter(threshold, 1)
        scores = [threshold - 0.2, below, threshold, above, threshold + 0.2]
        found = [
            confidences(Scores({"a": float(score)}, {}, width), {"a": threshold})["a"]
            for score in scores
        ]
        assert found[1:4] == [49, 50, 50]
        assert found == sorted(found) and found[0] == 2 and found[-1] == 97
    ranked = [confidence(score, 0.4, width) for score in np.sort(rng.normal(0.4, 0.3, 500))]
    assert ranked == sorted(ranked) and ranked[0] >= 0 and ranked[-1] <= 100
    assert (confidence(-9e9, 0.4, width), confidence(9e9, 0.4, width)) == (0, 100)


def test_a_word_nearer_to_its_negatives_is_not_sure_whatever_it_scores(rng):
    thresholds = {"a": 0.4, "b": 0.4}
    for a, not_a, b in rng.uniform(0.2, 0.8, (300, 3)):
        scores = Scores({"a": a, "b": b}, {"a": not_a}, 0.05)
        found, said = confidences(scores, thresholds), decide(scores, thresholds)
        sure = {word: scores.words[word] for word in found if found[word] >= 50}
        assert said == max(sure, key=lambda word: sure[word], default=None)
    assert confidences(Scores({"a": 0.6}, {"a": 0.6}, 0.05), thresholds) == {"a": 49}
    # Words without a threshold have none, and nothing has where the spread is unknown.
    assert confidences(Scores({"a": 0.6, "c": 0.6}, {}, 0.05), thresholds) == {"a": 98}
    assert confidences(Scores({"a": 0.6}, {}), thresholds) == {}


def test_confidences_follow_the_threshold_in_force():
    spotter = Spotter()
    for word in ("lamp", "music"):
        spotter.learn_many(sorted((CLIPS / word).glob("*_0.ogg"))[:3], [word] * 3)
    sound = files.read(sorted((CLIPS / "lamp").glob("*_0.ogg"))[5])
    answer = spotter.predict(sound)
    score, width = answer.score, spotter.scorer.confidence_width
    assert answer.word == "lamp" and answer.confidence == answer.confidences["lamp"] >= 50
    assert answer.confidence == confidence(score, spotter.thresholds()["lamp"], width)
    spotter.set_sensitivity(0.0, "lamp")
    strict = spotter.predict(sound)
    assert strict.confidence == confidence(score, spotter.thresholds()["lamp"], width)
    assert strict.confidence <= answer.confidence
    given = spotter.predict(sound, thresholds={"lamp": score})
    assert (given.word, given.confidence) == ("lamp", 50)
    above = spotter.predict(sound, thresholds={"lamp": float(np.nextafter(score, 1))})
    assert (above.word, above.confidence) == (None, 49)
    assert list(above.confidences) == list(above.probabilities)
    closed = spotter.predict(sound, thresholds={"lamp": score + 1}, closed=True)
    assert (closed.word, closed.confidence) == ("lamp", 0)
    detector = Detector(spotter, thresholds={"lamp": score - 0.1}, sensitivities={"music": 0.1})
    quiet = np.zeros(16_000, dtype=np.float32)
    [event] = detector(np.concatenate([quiet, sound, quiet])) + detector.flush()
    assert event.confidence == confidence(event.score, score - 0.1, width) >= 50


def test_noise_is_no_word_at_all():
    spotter = Spotter()
    spotter.learn_many(sorted((CLIPS / "lamp").glob("*_0.ogg"))[:3], ["lamp"] * 3)
    hiss = 0.05 * np.random.default_rng(3).standard_normal(16_000).astype(np.float32)
    assert spotter.predict(hiss).confidence == spotter.predict(hiss, closed=True).confidence == 0


def test_parts_without_thresholds_have_no_confidence(rng):
    spotter = Spotter("logmel", "avg", "ncm")
    spotter.learn(tone(300), "low")
    for thresholds in (None, {"low": -1e9}):
        answer = spotter.predict(tone(300), thresholds=thresholds)
        assert (answer.word, answer.confidence, answer.confidences) == ("low", None, {})
