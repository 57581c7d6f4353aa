"""What a sample is taught with: copies of it, faster, slower and in noise."""

import numpy as np
import pytest

from tapword import Spotter, modelfile
from tapword.copies import COPIES, copies
from tapword.vectors import Hearing
from tests.conftest import tone

PARTS = {"backbone": "logmel", "pooling": "tap:R=2", "learner": "ncm"}


@pytest.fixture
def burst():
    """A fifth of a second of sound in the middle of a second."""
    sound = np.zeros(16_000, dtype=np.float32)
    sound[6_400:9_600] = 0.3 * np.sin(np.arange(3_200) * 0.2)
    return sound


def test_copies_are_shorter_longer_and_noisy(burst):
    short, long, noisy = copies(burst)
    assert COPIES == 3 and all(copy.dtype == np.float32 for copy in (short, long, noisy))
    for copy, length in ((short, 0.88), (long, 1.12)):
        loud = np.flatnonzero(np.abs(copy) > 0.1 * np.abs(burst).max())
        assert loud[-1] - loud[0] == pytest.approx(3_200 * length, abs=100)
        assert (loud[0] + loud[-1]) / 2 == pytest.approx(8_000, abs=50)
    power = np.mean(np.square(burst[6_400:9_600])) * 3_200 / 4_000
    assert np.mean(np.square(noisy - burst)) == pytest.approx(power / 10, rel=0.1)
    np.testing.assert_array_equal(copies(burst)[2], noisy)


def test_a_sample_is_taught_as_the_mean_of_itself_and_its_copies(burst):
    plain, spotter = Spotter(**PARTS), Spotter(**PARTS, copies=True)
    wanted = plain.vectors([burst, *copies(burst)]).mean(axis=0)
    learned = spotter.vectors([tone(500), burst], learning=True)
    np.testing.assert_allclose(learned[1], wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(spotter.vectors([burst]), plain.vectors([burst]))


def test_the_sizes_teach_with_copies_and_parts_do_not():
    assert Spotter().front.hearing == Hearing(align=True, copies=True)
    assert Spotter(copies=False).front.hearing == Hearing(align=True, copies=False)
    assert Spotter(**PARTS).front.hearing == Hearing()


def test_a_model_keeps_how_it_is_taught(tmp_path, burst):
    spotter = Spotter(**PARTS, copies=True)
    spotter.learn(burst, "beep")
    spotter.save(tmp_path / "beep.tap")
    assert Spotter.load(tmp_path / "beep.tap").front.hearing.copies
    other = Spotter(**PARTS)
    other.learn(tone(900), "ring")
    other.merge(spotter)
    assert other.words == {"ring": 1, "beep": 1} and not other.front.hearing.copies


def test_a_model_from_before_copies_is_taught_as_it_was(tmp_path, burst):
    spotter = Spotter(**PARTS)
    spotter.learn(burst, "beep")
    header = {key: value for key, value in spotter._parts().items() if key != "copies"}
    header |= {"dim": spotter.learner.dim, "words": dict(spotter.learner.words)}
    modelfile.write(tmp_path / "old.tap", header, spotter.learner.state())
    assert not Spotter.load(tmp_path / "old.tap").front.hearing.copies
