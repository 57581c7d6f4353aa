"""The microphone, with a sound library that plays what a test gives."""

import numpy as np
import pytest

from tapword.audio import microphone
from tapword.audio.files import SAMPLE_RATE
from tapword.errors import InputError, MissingExtra
from tests.conftest import tone
from tests.fake_sound import PortAudioError

RATE = SAMPLE_RATE


def recorded(**options):
    """All chunks of a stream that ends by falling silent."""
    chunks = []
    with (
        pytest.raises(InputError, match="still plugged in"),
        microphone.open_stream(silent_s=0.3, **options) as stream,
    ):
        for chunk in stream:
            chunks.append(chunk)
    return chunks


def test_devices_are_the_inputs(fake):
    fake(tone(300))
    assert microphone.devices() == [
        microphone.Device(1, "USB Mic", 2, 48_000, True),
        microphone.Device(2, "Webcam Mic", 1, 48_000, False),
    ]


def test_chunks_are_the_sound(fake):
    module, sound = fake(tone(300)), tone(300)
    chunks = recorded()
    assert {len(chunk.samples) for chunk in chunks[:-1]} == {1280}
    assert not any(chunk.gap for chunk in chunks)
    whole = np.concatenate([chunk.samples for chunk in chunks])
    assert whole.dtype == np.float32
    np.testing.assert_array_equal(whole, sound)
    assert module.opened[0]["device"] == 1 and module.opened[0]["channels"] == 1


def test_a_device_with_its_own_rate_is_resampled(fake):
    module = fake(tone(300, rate=48_000), rates=(48_000,), lose=(0, 6))
    chunks = recorded()
    assert module.opened[0]["samplerate"] == 48_000 and module.opened[0]["blocksize"] == 3840
    whole = np.concatenate([chunk.samples for chunk in chunks])
    assert all(len(chunk.samples) for chunk in chunks)
    # What is still in the filter never comes out of a stream without end.
    assert len(whole) == pytest.approx(RATE, abs=1500)
    np.testing.assert_allclose(whole[2000:14_000], tone(300)[2000:14_000], atol=2e-3)
    assert [chunk.gap for chunk in chunks].count(True) == 2 and chunks[0].gap


def test_a_device_that_is_stereo_only_is_mixed(fake):
    module = fake(tone(300), channels=(2,))
    whole = np.concatenate([chunk.samples for chunk in recorded()])
    assert module.opened[0]["channels"] == 2
    np.testing.assert_array_equal(whole, tone(300))


def test_a_gap_of_the_driver_is_told(fake):
    fake(tone(300), lose=(3,))
    assert [i for i, chunk in enumerate(recorded()) if chunk.gap] == [3]


def test_a_slow_reader_is_told_what_it_lost(fake):
    module = fake(np.arange(12 * 1280, dtype=np.float32))
    module.pause_at = 10
    with microphone.open_stream(queue_s=0.32) as stream:
        assert module.paused.wait(10)
        before = [next(stream) for _ in range(4)]
        module.go_on.set()
        after = [next(stream) for _ in range(2)]
    assert [chunk.samples[0] for chunk in before + after] == [
        block * 1280 for block in (0, 1, 2, 3, 10, 11)
    ]
    assert [chunk.gap for chunk in before + after] == [False] * 4 + [True, False]


@pytest.mark.parametrize(
    ("device", "number"), [("usb", 1), ("Webcam Mic", 2), ("2", 2), (None, 1), (" webcam ", 2)]
)
def test_devices_are_found_by_name_and_number(fake, device, number):
    module = fake(tone(300))
    recorded(device=device)
    assert module.opened[0]["device"] == number


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("radio", "no microphone named 'radio'; give a number or name of: 1 'USB Mic', 2 'Webcam"),
        ("mic", "more than one microphone named 'mic'"),
        ("Speakers", "no microphone named"),
        ("", "no microphone named ''"),
    ],
)
def test_unknown_devices_are_refused(fake, device, message):
    fake(tone(300))
    with pytest.raises(InputError, match=message), microphone.open_stream(device):
        pass


def test_no_default_takes_the_first_input(fake):
    module = fake(tone(300))
    module.default.device = [-1, -1]
    recorded()
    assert module.opened[0]["device"] == 1


def test_no_device_at_all(fake):
    fake(tone(300), known=[])
    assert microphone.devices() == []
    with pytest.raises(InputError, match="no microphone was found"), microphone.open_stream():
        pass


def test_a_device_that_does_not_open(fake):
    fake(tone(300), rates=())
    with pytest.raises(InputError, match="'USB Mic' cannot be opened"), microphone.open_stream():
        pass
    module = fake(tone(300))

    def busy(**options):
        raise PortAudioError("Device unavailable")

    module.InputStream = busy
    with (
        pytest.raises(InputError, match="Device unavailable; is another"),
        microphone.open_stream(),
    ):
        pass


@pytest.mark.parametrize(
    ("failure", "error", "message"),
    [
        (ImportError("No module"), MissingExtra, r"pip install .*\[mic\]"),
        (OSError("PortAudio library not found"), InputError, "libportaudio2"),
        (RuntimeError("Error initializing PortAudio"), InputError, "does not start"),
    ],
)
def test_a_library_that_is_not_there(monkeypatch, failure, error, message):
    def importing(name):
        raise failure

    monkeypatch.setattr(microphone.importlib, "import_module", importing)
    with pytest.raises(error, match=message):
        microphone.devices()
