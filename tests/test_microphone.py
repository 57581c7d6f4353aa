"""The microphone and the recording dialogue, with a sound library that plays what a test gives."""

import io
import sys
import threading
import types

import numpy as np
import pytest

import tapword
from tapword import audio, microphone
from tapword.cli import record
from tapword.demo import CLIPS
from tapword.errors import InputError, MissingExtra
from tests.conftest import tone

RATE = audio.SAMPLE_RATE
NEW = ["--backbone", "logmel", "--pooling", "tap:R=2", "--learner", "ncm"]


class PortAudioError(Exception):
    pass


class FakeSound(types.ModuleType):
    """`sounddevice` as far as it is used: devices that play `sound` through the callback."""

    PortAudioError = PortAudioError

    def __init__(self, sound, known=None, rates=(16_000,), channels=(1,), lose=()):
        super().__init__("sounddevice")
        self.sound, self.rates, self.channels, self.lose = sound, rates, channels, lose
        self.known = (
            [("Speakers", 0), ("USB Mic", 2), ("Webcam Mic", 1)] if known is None else known
        )
        self.default = types.SimpleNamespace(device=[1 if self.known else -1, 0])
        self.opened = []
        # Before this block the driver waits until it is told to go on.
        self.pause_at, self.paused, self.go_on = None, threading.Event(), threading.Event()

    def query_devices(self):
        return [
            {"name": name, "max_input_channels": inputs, "default_samplerate": 48_000.0}
            for name, inputs in self.known
        ]

    def check_input_settings(self, device, channels, dtype, samplerate):
        if samplerate not in self.rates or channels not in self.channels:
            raise PortAudioError("Invalid sample rate [PaErrorCode -9997]")

    def InputStream(self, **options):
        self.opened.append(options)
        return FakeStream(self, **options)


class FakeStream:
    def __init__(self, module, samplerate, blocksize, device, channels, dtype, callback):
        assert dtype == "float32"
        self.module, self.callback = module, callback
        sound = np.repeat(module.sound[:, None], channels, axis=1)
        self.blocks = [sound[at : at + blocksize] for at in range(0, len(sound), blocksize)]
        self.thread = threading.Thread(target=self.play, daemon=True)
        self.closed = False

    def start(self):
        self.thread.start()

    def play(self):
        for number, block in enumerate(self.blocks):
            if self.closed:
                return
            if number == self.module.pause_at:
                self.module.paused.set()
                self.module.go_on.wait(10)
            buffer = block.copy()
            status = types.SimpleNamespace(input_overflow=number in self.module.lose)
            self.callback(buffer, len(buffer), None, status)
            # The driver uses its buffer again.
            buffer[:] = np.nan

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.closed = True
        self.thread.join()


@pytest.fixture
def fake(monkeypatch):
    """Put a fake library in place; a fast one, so nothing may be lost unless a test wants it."""
    monkeypatch.setattr(microphone, "QUEUE_S", 1e6)
    monkeypatch.setattr(microphone, "SILENT_S", 0.3)

    def put(sound, **options):
        module = FakeSound(sound, **options)
        monkeypatch.setitem(sys.modules, "sounddevice", module)
        return module

    return put


def heard(**options):
    """All chunks of a stream that ends by falling silent."""
    chunks = []
    with (
        pytest.raises(InputError, match="still plugged in"),
        microphone.open_stream(**options) as stream,
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
    chunks = heard()
    assert {len(chunk.samples) for chunk in chunks[:-1]} == {1280}
    assert not any(chunk.gap for chunk in chunks)
    whole = np.concatenate([chunk.samples for chunk in chunks])
    assert whole.dtype == np.float32
    np.testing.assert_array_equal(whole, sound)
    assert module.opened[0]["device"] == 1 and module.opened[0]["channels"] == 1


def test_a_device_with_its_own_rate_is_resampled(fake):
    module = fake(tone(300, rate=48_000), rates=(48_000,), lose=(0, 6))
    chunks = heard()
    assert module.opened[0]["samplerate"] == 48_000 and module.opened[0]["blocksize"] == 3840
    whole = np.concatenate([chunk.samples for chunk in chunks])
    assert all(len(chunk.samples) for chunk in chunks)
    # What is still in the filter never comes out of a stream without end.
    assert len(whole) == pytest.approx(RATE, abs=1500)
    np.testing.assert_allclose(whole[2000:14_000], tone(300)[2000:14_000], atol=2e-3)
    assert [chunk.gap for chunk in chunks].count(True) == 2 and chunks[0].gap


def test_a_device_that_is_stereo_only_is_mixed(fake):
    module = fake(tone(300), channels=(2,))
    whole = np.concatenate([chunk.samples for chunk in heard()])
    assert module.opened[0]["channels"] == 2
    np.testing.assert_array_equal(whole, tone(300))


def test_a_gap_of_the_driver_is_told(fake):
    fake(tone(300), lose=(3,))
    assert [i for i, chunk in enumerate(heard()) if chunk.gap] == [3]


def test_a_slow_reader_is_told_what_it_lost(fake, monkeypatch):
    module = fake(np.arange(12 * 1280, dtype=np.float32))
    module.pause_at = 10
    monkeypatch.setattr(microphone, "QUEUE_S", 0.32)
    with microphone.open_stream() as stream:
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
    heard(device=device)
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
    heard()
    assert module.opened[0]["device"] == 1


def test_no_device_at_all(fake):
    fake(tone(300), known=[])
    assert microphone.devices() == []
    with pytest.raises(InputError, match="no microphone was found"), microphone.open_stream():
        pass


def test_a_device_that_does_not_open(fake, monkeypatch):
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
        (ImportError("No module"), MissingExtra, r"pip install 'tapword\[mic\]'"),
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


# The dialogue: learn --mic.


def noise(seconds, seed=0):
    made = 2e-4 * np.random.default_rng(seed).standard_normal(round(seconds * RATE))
    return made.astype(np.float32)


def spoken(word, count, gain=1.0, first=0):
    """Clips of a word as somebody would say them who waits for each sign."""
    paths = sorted((CLIPS / word).glob("*.ogg"))[first::3][:count]
    assert len(paths) == count
    pieces = [noise(3.5)]
    for path in paths:
        pieces += [gain * audio.read(path), noise(3.5)]
    return np.concatenate(pieces)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_learn_by_microphone(fake, here, run):
    fake(spoken("lamp", 3))
    code, output, error = run("learn", "home.tap", "lamp", "--mic", "--takes", 3, *NEW)
    assert (code, error) == (0, "")
    assert output.count("say it now") == 3 and output.count("good") == 3
    assert "take 3 of 3: good" in output and "learned 3 clips" in output
    fake(spoken("music", 5))
    assert run("learn", "home.tap", "music", "--mic", "--device", "webcam")[0] == 0
    spotter = tapword.load("home.tap")
    assert spotter.words == {"lamp": 3, "music": 5}
    clips = sorted((CLIPS / "music").glob("*.ogg"))[::3][:5]
    assert [answer.word for answer in spotter.predict_many(clips)].count("music") >= 4


def test_a_bad_take_is_said_again(fake, here, run):
    fake(np.concatenate([spoken("lamp", 1, gain=0.02), spoken("lamp", 2)]))
    code, output, _ = run("learn", "home.tap", "lamp", "--mic", "--takes", 2, *NEW)
    assert code == 0 and "take 1 of 2 not used, too quiet: speak up" in output
    assert tapword.load("home.tap").words == {"lamp": 2}


def test_a_take_with_a_gap_is_said_again(fake, here, run):
    fake(spoken("lamp", 3), lose=(30,))
    code, output, _ = run("learn", "home.tap", "lamp", "--mic", "--takes", 2, *NEW)
    assert code == 0 and "take 1 of 2 not used, sound was lost" in output


def test_nobody_speaks(fake, here, run):
    fake(noise(60))
    code, output, error = run("learn", "home.tap", "lamp", "--mic", *NEW)
    assert code == 2 and output.count("no speech was heard") == record.MAX_REFUSALS
    assert "5 takes in a row could not be used; nothing was taught" in error


@pytest.mark.parametrize(("answer", "words"), [("\n", {"lamp": 2}), ("n\n", None), ("", None)])
def test_what_was_kept_is_asked_for(fake, here, run, monkeypatch, answer, words):
    fake(np.concatenate([spoken("lamp", 2), noise(60)]))
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    code, output, _ = run("learn", "home.tap", "lamp", "--mic", *NEW)
    assert "2 of 5 takes are good; teach 'lamp' with them?" in output
    check_kept(code, words)


@pytest.mark.parametrize(("kept", "words"), [(2, {"lamp": 2}), (0, None)])
def test_stopping_keeps_what_is_good(fake, here, run, monkeypatch, kept, words):
    fake(spoken("lamp", 3))
    examine, done = record.examine, []

    def stopping(sound):
        if len(done) == kept:
            raise KeyboardInterrupt
        done.append(sound)
        return examine(sound)

    monkeypatch.setattr(record, "examine", stopping)
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    code, output, _ = run("learn", "home.tap", "lamp", "--mic", *NEW)
    assert "stopped" in output
    check_kept(code, words)


def check_kept(code, words):
    if words is None:
        assert code == 130
        with pytest.raises(tapword.errors.TapwordError):
            tapword.load("home.tap")
    else:
        assert code == 0 and tapword.load("home.tap").words == words


def test_options_that_do_not_go_together(fake, here, run):
    fake(noise(1))
    for arguments in (["--mic", "a.wav"], []):
        code, _, error = run("learn", "home.tap", "lamp", *arguments)
        assert code == 2 and "either sound files or --mic" in error
    for option in (["--takes", 3], ["--device", "usb"]):
        code, _, error = run("learn", "home.tap", "lamp", "a.wav", *option)
        assert code == 2 and "go with --mic" in error


def vectors(spotter, word, start, end):
    return spotter.vectors(sorted((CLIPS / word).glob("*.ogg"))[start:end])


@pytest.fixture(scope="module")
def taught():
    spotter = tapword.Spotter("speech_embedding", "tap", "ridge")
    for word in ("lamp", "music", "window"):
        found = vectors(spotter, word, 0, 4)
        spotter.learn_vectors(found, [word] * len(found))
    return spotter


def test_the_same_word_by_another_name_is_close(taught):
    takes = vectors(taught, "lamp", 4, 9)
    before = taught.words
    assert record.close_word(taught, takes, "light") == "lamp"
    assert record.close_word(taught, takes, "lamp") is None
    assert taught.words == before
    assert record.close_word(taught, takes[:2], "light") is None


@pytest.mark.parametrize("word", ["coffee", "garage", "kitchen", "timer"])
def test_other_words_are_not_close(taught, word):
    assert record.close_word(taught, vectors(taught, word, 4, 9), word) is None


def test_nothing_is_close_to_nothing():
    spotter = tapword.Spotter("logmel", "avg", "ncm")
    assert record.close_word(spotter, vectors(spotter, "lamp", 0, 3), "lamp") is None


def test_closeness_is_said(fake, here, run):
    tapword.Spotter("speech_embedding", "tap", "ridge").save("home.tap")
    for word in ("lamp", "music"):
        fake(spoken(word, 5, first=1))
        code, _, error = run("learn", "home.tap", word, "--mic")
        assert (code, error) == (0, "")
    fake(spoken("lamp", 5))
    code, _, error = run("learn", "home.tap", "light", "--mic")
    assert code == 0 and 'warning: "light" sounds close to "lamp"' in error
    assert tapword.load("home.tap").words["light"] == 5
