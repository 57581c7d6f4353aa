import numpy as np
import pytest

from tapword.backbones.logmel import Logmel, log_mel
from tapword.errors import InputError
from tests.conftest import tone


def test_log_mel_is_the_stated_formula():
    clip = tone(700, 0.5)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    magnitude = np.abs(np.fft.rfft(clip[320:720].astype(np.float64) * window, 512))
    mel = 1127 * np.log(1 + np.arange(257) * 16_000 / 512 / 700)
    low, high = 1127 * np.log(1 + np.array([60, 3800]) / 700)
    edges = np.linspace(low, high, 34)
    expected = []
    for band in range(32):
        left, centre, right = edges[band : band + 3]
        triangle = np.interp(mel, [left, centre, right], [0, 1, 0])
        triangle[0] = 0
        expected.append(np.log(magnitude @ triangle + 1e-3))
    np.testing.assert_allclose(log_mel(clip)[2], expected, atol=1e-4)


def test_silence_can_be_put_on_each_side():
    padded = Logmel(pad_s=0.5).frames(tone(700))[0]
    np.testing.assert_allclose(padded[50:148], Logmel().frames(tone(700))[0], atol=1e-6)
    np.testing.assert_allclose(padded[:40], np.log(1e-3), atol=1e-6)
    with pytest.raises(InputError, match=r"pad_s must lie in 0\.\.10 seconds, got 11"):
        Logmel(pad_s=11)
    with pytest.raises(InputError, match="399 samples; at least 400"):
        Logmel().frames(tone(700)[:399])
