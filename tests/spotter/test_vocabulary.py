"""Words: one record each, in step with the learner; lengths; encoded rows; copies of a spotter."""

import numpy as np
import pytest

from tapword import Spotter
from tapword.errors import InputError
from tapword.spotter.encoder import Encoded
from tapword.spotter.vocabulary import CLIP_S, LONGEST_S, Length, Vocabulary, Word

WORDS = ("lamp", "music", "turn on the lights")
SECONDS = np.array([1.0, 1.2, 1.9, 2.4, 1.5])


def small():
    return Spotter("logmel", "avg", "cosine:covariance=full")


def sample(rng):
    vector = rng.normal(size=(1, 32)).astype(np.float32)
    return Encoded(vector, rng.uniform(1.0, 3.0, 1).astype(np.float32))


@pytest.mark.parametrize("seed", range(5))
def test_records_are_in_step_with_the_learner(seed, tmp_path):
    """Whatever is taught, rejected, taken out, renamed, forgotten or merged, in any order."""
    rng, spotter, taught = np.random.default_rng(seed), small(), []
    for step in range(60):
        word, known = str(rng.choice(WORDS)), list(spotter.words)
        kind = rng.choice(["learn"] * 4 + ["reject", "unlearn", "rename", "forget", "merge"])
        if kind == "learn":
            taught.append((sample(rng), word, False))
            spotter.learn_encoded(taught[-1][0], [word])
        elif kind == "reject" and known:
            one = sample(rng)
            taught.append((one, spotter.reject_encoded(one, one), True))
        elif kind == "unlearn" and taught:
            one, word, negative = taught.pop(int(rng.integers(len(taught))))
            spotter.unlearn_encoded(one, [word], negative)
        elif kind == "rename" and word in known:
            spotter.rename(word, f"{word} {step}")
            taught = [(x, f"{w} {step}" if w == word else w, n) for x, w, n in taught]
        elif kind == "forget" and word in known:
            spotter.forget(word)
        elif kind == "merge" and word in known:
            part = spotter.extract_word(word)
            spotter.forget(word)
            spotter.merge(part)
        taught = [one for one in taught if one[1] in spotter.words]
        assert list(spotter.words.items()) == list(spotter.learner.words.items())
        assert spotter.vocabulary.negatives == spotter.learner.negatives
    for word, one in spotter.vocabulary.words.items():
        seconds = [x.seconds[0] for x, w, negative in taught if w == word and not negative]
        assert one.length == pytest.approx(Length.of(np.array(seconds)), abs=1e-6)
    spotter.save(tmp_path / "model.tap")
    assert Spotter.load(tmp_path / "model.tap").vocabulary == spotter.vocabulary


def test_every_change_returns_a_new_vocabulary():
    before = Vocabulary.of_samples(["lamp", "music", "lamp"], np.array([1.0, 1.0, 2.0]))
    words = dict(before.words)
    assert before.counts == {"lamp": 2, "music": 1}
    before.renamed("lamp", "light")
    before.without("lamp")
    before.rejected("lamp")
    before.unlearned("lamp", np.array([2.0]))
    before.added(before)
    before.with_sensitivities(0.3, {"lamp": 0.9})
    assert before == Vocabulary(words)
    with pytest.raises(AttributeError):
        before.words["lamp"].count = 3
    assert before.words["music"] == Word(1)


def test_a_copy_is_taught_separately():
    spotter, rng = small(), np.random.default_rng(0)
    spotter.learn_encoded(sample(rng), ["lamp"])
    copied = spotter.copy()
    copied.learn_encoded(sample(rng), ["lamp"])
    copied.learn_encoded(sample(rng), ["music"])
    assert spotter.words == spotter.learner.words == {"lamp": 1}
    assert copied.words == {"lamp": 2, "music": 1} and copied.encoder is spotter.encoder
    empty = spotter.copy(small().learner, Vocabulary())
    assert empty.words == {} and empty.learner is not spotter.learner


def test_rows_of_encoded_clips():
    encoded = Encoded(np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 1.5]))
    assert [one.seconds.tolist() for one in encoded] == [[1.0], [2.0], [1.5]]
    assert len(encoded[encoded.seconds > 1]) == 2 and encoded[-1].vectors.tolist() == [[4.0, 5.0]]
    again = Encoded.concatenate(list(encoded))
    np.testing.assert_array_equal(again.vectors, encoded.vectors)
    np.testing.assert_array_equal(again.seconds, encoded.seconds)
    assert Encoded.one_second(encoded.vectors).seconds.tolist() == [1.0] * 3
    with pytest.raises(IndexError):
        encoded[3]


def test_an_error_of_a_clip_names_its_file():
    encoder, noise = Spotter().encoder, np.random.default_rng(0).standard_normal(80_000)
    long = (0.1 * noise).astype(np.float32)
    with pytest.raises(InputError, match=r"^take\.wav: 5.00 s of sound without a pause"):
        encoder.prepare(long, "take.wav")
    with pytest.raises(InputError, match=r"^5.00 s of sound without a pause"):
        encoder.prepare(long)


def test_any_order_and_any_parts_give_the_same(rng):
    whole = Length.of(SECONDS)
    for _ in range(5):
        seconds, first = rng.permutation(SECONDS), int(rng.integers(1, len(SECONDS)))
        parts = Length.of(seconds[:first]), Length.of(seconds[first:])
        joined = parts[0].joined(first, parts[1], len(SECONDS) - first)
        assert joined == pytest.approx(whole)
        parted = joined.parted(len(SECONDS), parts[1], len(SECONDS) - first)
        assert parted == pytest.approx(parts[0], abs=1e-9)
    assert Length().joined(0, whole, 5) == pytest.approx(whole)
    assert whole.parted(5, whole, 5) == Length()


def test_a_word_of_one_second_is_no_phrase():
    assert not Length.of(np.ones(3)).is_phrase and Length.of(np.ones(3)) == Length()
    assert not Length.of(np.array([1.0, 1.0, 1.0, 1.3])).is_phrase
    assert Length.of(SECONDS).is_phrase


def test_a_phrase_is_looked_for_around_its_length_and_more_samples_say_more():
    alike = np.full(20, 1.6)
    few, many = Length.of(alike[:2]).span(2), Length.of(alike).span(20)
    assert CLIP_S <= few[0] < many[0] < 1.6 < many[1] < few[1] <= LONGEST_S
    assert Length.of(np.array([1.05, 1.2, 1.2])).span(3)[0] == CLIP_S
    assert Length.of(np.array([3.1])).span(1)[1] == LONGEST_S
