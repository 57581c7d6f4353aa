"""Augmented copies of a clip: faster, slower and in noise."""

import numpy as np
import pytest

from tapword import Spotter
from tapword.audio.augment import N_COPIES, augmented
from tapword.spotter.encoder import Preparation
from tests.conftest import tone

PARTS = {"backbone": "logmel", "pooling": "tap:R=2", "learner": "ncm"}


@pytest.fixture
def burst():
    """A fifth of a second of sound in the middle of a second."""
    sound = np.zeros(16_000, dtype=np.float32)
    sound[6_400:9_600] = 0.3 * np.sin(np.arange(3_200) * 0.2)
    return sound


def test_copies_are_shorter_longer_and_noisy(burst):
    short, long, noisy = augmented(burst)
    assert N_COPIES == 3 and all(copy.dtype == np.float32 for copy in (short, long, noisy))
    for copy, length in ((short, 0.88), (long, 1.12)):
        loud = np.flatnonzero(np.abs(copy) > 0.1 * np.abs(burst).max())
        assert loud[-1] - loud[0] == pytest.approx(3_200 * length, abs=100)
        assert (loud[0] + loud[-1]) / 2 == pytest.approx(8_000, abs=50)
    power = np.mean(np.square(burst[6_400:9_600])) * 3_200 / 4_000
    assert np.mean(np.square(noisy - burst)) == pytest.approx(power / 10, rel=0.1)
    np.testing.assert_array_equal(augmented(burst)[2], noisy)


def test_a_sample_is_taught_as_the_mean_of_itself_and_its_copies(burst):
    plain, spotter = Spotter(**PARTS), Spotter(**PARTS, augment=True)
    wanted = plain.encode([burst, *augmented(burst)]).vectors.mean(axis=0)
    learned = spotter.encode([tone(500), burst], learning=True).vectors
    np.testing.assert_allclose(learned[1], wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(spotter.encode([burst]).vectors, plain.encode([burst]).vectors)


def test_presets_augment_and_other_parts_do_not():
    assert Spotter().encoder.preparation == Preparation(align=True, augment=True)
    assert Spotter(augment=False).encoder.preparation == Preparation(align=True, augment=False)
    assert Spotter(**PARTS).encoder.preparation == Preparation()


def test_a_model_keeps_how_it_is_taught(tmp_path, burst):
    spotter = Spotter(**PARTS, augment=True)
    spotter.learn(burst, "beep")
    spotter.save(tmp_path / "beep.tap")
    assert Spotter.load(tmp_path / "beep.tap").encoder.preparation.augment
    other = Spotter(**PARTS)
    other.learn(tone(900), "ring")
    other.merge(spotter)
    assert other.words == {"ring": 1, "beep": 1} and not other.encoder.preparation.augment
