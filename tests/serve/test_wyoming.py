"""The wake-word service over a real socket, asked by the Wyoming package's own client."""

import asyncio
import contextlib
import functools
import logging
import re
import shutil
import sys
import threading

import numpy as np
import pytest
import soxr

from tapword.assets import CLIPS
from tapword.audio import files as audio
from tapword.errors import InputError, MissingExtra
from tapword.listening.detector import Detector
from tapword.spotter.spotter import Spotter
from tests.conftest import shared

pytest.importorskip("wyoming", reason="needs the extra wyoming: pip install 'tapword[wyoming]'")

import wyoming
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncTcpClient
from wyoming.error import Error
from wyoming.event import async_write_event
from wyoming.info import Describe, Info
from wyoming.ping import Ping, Pong
from wyoming.wake import Detect, Detection, NotDetected

import tapword
from tapword.serve.wyoming import announce, service
from tapword.serve.wyoming.audio import Converter, Format, RawChunk
from tapword.serve.wyoming.client import ClientLimits
from tapword.serve.wyoming.served_model import ServedModel
from tapword.serve.wyoming.service import address, serving
from tapword.serve.wyoming.settings import Clients, DetectorSettings, read_clients
from tapword.serve.wyoming.stream import Stream

HOST = "127.0.0.1"
# Under load everything takes long; nothing is to be waited for in vain for ever.
PATIENCE_S = 60
NOTHING = [NotDetected]


def clip(word: str, number: int) -> np.ndarray:
    return audio.read(sorted((CLIPS / word).glob("*.ogg"))[number])


def said(clips: list[np.ndarray], seed: int = 0, gap_s: float = 0.7) -> np.ndarray:
    """Clips with pauses around and a little noise, int16."""
    quiet = np.zeros(round(gap_s * 16_000), dtype=np.float32)
    sound = np.concatenate([quiet, *(part for one in clips for part in (one, quiet))])
    sound = sound + np.random.default_rng(seed).normal(0, 1e-4, len(sound))
    return (np.clip(sound, -1, 1) * 32767).astype(np.int16)


def teach(path, words: dict[str, list[np.ndarray]]) -> None:
    with Spotter.edit(path) as spotter:
        for word, clips in words.items():
            spotter.learn_many(clips, [word] * len(clips))


def teach_words(path, words=("lamp", "music")):
    """Teach five clips of each word."""
    teach(path, {word: [clip(word, n) for n in range(0, 10, 2)] for word in words})


def direct(model: ServedModel, samples: np.ndarray) -> list[tuple[str, int]]:
    """Words and times as a detector gives them without any service."""
    detector = Detector(model.served)
    events = detector(samples) + detector.flush()
    return [(event.word, round(1000 * event.end_s)) for event in events]


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "home.tap"
    teach_words(path)
    return path


@pytest.fixture(scope="module")
def model(taught):
    return ServedModel(taught)


@pytest.fixture(scope="module")
def samples():
    return said([clip("lamp", 11), clip("music", 13), clip("door", 3), clip("lamp", 15)])


def serve(model, conversation, **options):
    """Serve while `conversation(port)` lasts; give its result."""

    async def run():
        async with asyncio.timeout(PATIENCE_S), serving(model, HOST, 0, **options) as port:
            return await conversation(port)

    return asyncio.run(run())


async def ask(port: int) -> list[str]:
    """Words the service describes."""
    async with AsyncTcpClient(HOST, port) as line:
        await line.write_event(Describe().event())
        [program] = Info.from_event(await line.read_event()).wake
        return [word.name for word in program.models]


async def answers(line: AsyncTcpClient) -> list:
    """What was answered until now: (word, timestamp) for a detection, types for the rest."""
    await line.write_event(Ping("end").event())
    result = []
    while not Pong.is_type((event := await line.read_event()).type):
        if Detection.is_type(event.type):
            detection = Detection.from_event(event)
            result.append((detection.name, detection.timestamp))
        else:
            assert NotDetected.is_type(event.type)
            result.append(NotDetected)
    return result


async def send(line, samples, rate=16_000, channels=1, chunk=1280, clock_ms=0):
    """Send samples (n, channels) int16 as a satellite does, without start and stop."""
    step = chunk * rate // 16_000
    for start in range(0, len(samples), step):
        sound = samples[start : start + step].tobytes()
        at = None if clock_ms is None else clock_ms + 1000 * start // rate
        await line.write_event(AudioChunk(rate, 2, channels, sound, timestamp=at).event())


async def listen(port, samples, names=None, rate=16_000, channels=1, chunk=1280, clock_ms=0):
    """Send a whole stream; give the answers."""
    async with AsyncTcpClient(HOST, port) as line:
        await line.write_event(Detect(names=names).event())
        await line.write_event(AudioStart(rate, 2, channels, timestamp=clock_ms).event())
        await send(line, samples, rate, channels, chunk, clock_ms)
        await line.write_event(AudioStop().event())
        return await answers(line)


def test_the_package_and_our_room_of_the_same_name_are_two():
    assert wyoming.__file__ != tapword.serve.wyoming.__file__
    assert service.Info is Info


def test_describe_names_every_word(model):
    async def conversation(port):
        async with AsyncTcpClient(HOST, port) as line:
            await line.write_event(Describe().event())
            return Info.from_event(await line.read_event())

    info = serve(model, conversation)
    [program] = info.wake
    assert (program.name, program.installed, program.version) == (
        "tapword",
        True,
        tapword.__version__,
    )
    assert [word.name for word in program.models] == ["lamp", "music"]
    for word in program.models:
        assert word.installed and word.phrase == word.name
        assert word.description == word.name.title()
        assert word.version and word.attribution.name and word.attribution.url
        assert word.languages == []


def test_the_service_has_a_name_languages_and_words_as_they_are_shown(model, tmp_path):
    path = tmp_path / "home.tap"
    teach(path, {"turn_off": [clip("lamp", 0)], "Licht an": [clip("music", 0)]})

    async def conversation(port):
        async with AsyncTcpClient(HOST, port) as line:
            await line.write_event(Describe().event())
            return Info.from_event(await line.read_event())

    info = service.ServiceInfo("Downstairs", ["de", "en"])
    [program] = serve(ServedModel(path), conversation, info=info).wake
    assert program.name == "Downstairs"
    assert [(word.name, word.description, word.languages) for word in program.models] == [
        ("turn_off", "Turn Off", ["de", "en"]),
        ("Licht an", "Licht an", ["de", "en"]),
    ]


def test_words_are_heard_at_their_times_and_listening_goes_on(model, samples):
    async def conversation(port):
        return await listen(port, samples), await listen(port, samples, clock_ms=50_000)

    heard, later = serve(model, conversation)
    assert heard == direct(model, samples)
    assert [word for word, _ in heard] == ["lamp", "music", "lamp"]
    # The first word begins after 0.7 s of silence and is shorter than 0.9 s.
    assert 700 < heard[0][1] < 1600
    assert later == [(word, at + 50_000) for word, at in heard]


def test_only_the_named_words_fire(model, samples, caplog):
    async def conversation(port):
        return [await listen(port, samples, names) for names in (["music"], ["Lamp_"], ["door"])]

    music, lamp, door = serve(model, conversation)
    everything = direct(model, samples)
    assert music == [one for one in everything if one[0] == "music"]
    # A client that waits for a word compares the spelling it asked for.
    assert lamp == [("Lamp_", at) for word, at in everything if word == "lamp"]
    assert door == NOTHING and "waits for 'door', not taught" in caplog.text


def test_not_detected_when_nothing_was_said(model):
    async def conversation(port):
        async with AsyncTcpClient(HOST, port) as line:
            await line.write_event(AudioStart(16_000, 2, 1).event())
            await send(line, said([clip("door", 3)]))
            before = await answers(line)
            await line.write_event(AudioStop().event())
            return before, await answers(line)

    assert serve(model, conversation) == ([], NOTHING)


def test_one_connection_many_requests_as_satellites_do(model):
    """Satellites ask anew after each command, without starting or stopping a stream."""

    async def conversation(port):
        async with AsyncTcpClient(HOST, port) as line:
            heard = []
            for names, word in ((["lamp"], "lamp"), (["lamp"], "music"), (None, "music")):
                await line.write_event(Detect(names=names).event())
                await send(line, said([clip(word, 11)], gap_s=0.8), clock_ms=None)
                # Asking anew waits until all sound before it is heard.
                await line.write_event(Detect(names=names).event())
                heard.append([one[0] for one in await answers(line)])
            return heard

    assert serve(model, conversation) == [["lamp"], [], ["music"]]


def test_twenty_clients_hear_what_a_detector_hears(model):
    streams = [
        said([clip("lamp", 11), clip("lamp", 15)], 0),
        said([clip("music", 15), clip("lamp", 13)], 1),
        said([clip("door", 5), clip("music", 11)], 2),
        said([clip("light", 5)], 3),
    ]

    async def conversation(port):
        tasks = [
            asyncio.create_task(listen(port, streams[n % 4], chunk=(480, 800, 1280, 4000)[n // 5]))
            for n in range(20)
        ]
        await asyncio.sleep(0)
        words = await ask(port)
        busy = sum(not task.done() for task in tasks)
        return words, busy, await asyncio.gather(*tasks)

    words, busy, heard = serve(model, conversation)
    assert words == ["lamp", "music"] and busy > 0
    expected = [direct(model, stream) or NOTHING for stream in streams]
    assert heard == [expected[n % 4] for n in range(20)]
    assert expected[1] != expected[2]


def test_real_speech(tmp_path):
    folder = shared("data", "speech_commands_v0.01_subset")
    clips = {word: sorted((folder / word).glob("*.wav")) for word in ("marvin", "sheila", "tree")}
    path = tmp_path / "home.tap"
    teach(path, {word: list(map(audio.read, clips[word][:8])) for word in ("marvin", "sheila")})
    model = ServedModel(path)
    streams = [
        said([audio.read(clips[word][n]) for word in order], n)
        for n, order in ((20, ("marvin", "tree", "sheila")), (24, ("sheila", "marvin")))
    ]

    async def conversation(port):
        return await asyncio.gather(*(listen(port, stream) for stream in streams))

    heard = serve(model, conversation)
    assert heard == [direct(model, stream) or NOTHING for stream in streams]
    assert {one[0] for stream in heard for one in stream if one is not NotDetected} >= {"marvin"}


def test_any_format_a_client_sends(model, samples):
    wide = soxr.resample(samples.astype(np.float32) / 32768, 16_000, 48_000)
    stereo = np.stack([wide, 0.5 * wide], axis=1)
    stereo = (np.clip(stereo, -1, 1) * 32767).astype("<i2")

    async def conversation(port):
        return await listen(port, stereo, rate=48_000, channels=2)

    heard, expected = serve(model, conversation), direct(model, samples)
    assert [word for word, _ in heard] == [word for word, _ in expected]
    assert np.abs(np.subtract(*([at for _, at in side] for side in (heard, expected)))).max() <= 30


@pytest.mark.parametrize("rate", [8_000, 16_000, 44_100])
@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_samples_of_every_width(rate, width):
    tone = 0.5 * np.sin(2 * np.pi * 440 * np.arange(rate) / rate)
    whole = np.round(tone * 2 ** (8 * width - 1)).astype("<i4") + (128 if width == 1 else 0)
    content = whole.view(np.uint8).reshape(-1, 4)[:, :width].tobytes()
    converter = Converter(Format(rate, width, 1))
    cut = 1000 * width
    pieces = [converter(content[:cut]), converter(content[cut:]), converter(b"", last=True)]
    expected = 0.5 * np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000)
    heard = np.concatenate(pieces)
    assert heard.dtype == np.float32 and len(heard) == 16_000
    # Resampling rings where the tone begins and ends all of a sudden.
    assert np.abs(heard - expected)[500:-500].max() < (0.01 if width == 1 else 0.001)


def test_sound_is_split_into_seconds_and_none_of_nothing_waits():
    data = {"rate": 16_000, "width": 2, "channels": 1, "timestamp": 70}
    pieces = list(RawChunk.of(data, bytes(80_000)).split())
    assert [(piece.seconds, piece.timestamp_ms) for piece in pieces] == [
        (1.0, 70),
        (1.0, None),
        (0.5, None),
    ]
    assert list(RawChunk.of(data, b"").split()) == []


def test_the_model_file_is_followed(tmp_path, taught, model, samples, caplog):
    caplog.set_level(logging.INFO, "tapword.serve.wyoming")
    path = tmp_path / "home.tap"
    thresholds = {"music": 2.0, "later": 0.5}
    followed = ServedModel(path, Clients(DetectorSettings(thresholds=thresholds)))

    async def until(condition):
        while not condition():
            await asyncio.sleep(0.02)

    async def conversation(port):
        async with AsyncTcpClient(HOST, port) as line:

            async def hear():
                await line.write_event(AudioStart(16_000, 2, 1).event())
                await send(line, samples)
                await line.write_event(AudioStop().event())
                return await answers(line)

            seen = [(await ask(port), await hear())]
            shutil.copy(taught, path)
            await until(lambda: followed.served.words)
            seen.append((await ask(port), await hear()))
            with Spotter.edit(path) as spotter:
                spotter.rename("lamp", "light")
            await until(lambda: "light" in followed.served.words)
            seen.append((await ask(port), await hear()))
            path.write_bytes(path.read_bytes()[:-100])
            await until(lambda: "not a tapword model" in caplog.text)
            path.unlink()
            await until(lambda: "is gone" in caplog.text)
            seen.append((await ask(port), await hear()))
            return seen

    nothing, first, renamed, kept = serve(followed, conversation, poll_s=0.02)
    assert nothing == ([], NOTHING)
    # The threshold of "music" cannot be reached.
    lamps = [one for one in direct(model, samples) if one[0] == "lamp"]
    assert first == (["lamp", "music"], lamps)
    assert sorted(renamed[0]) == ["light", "music"]
    assert renamed[1] == [("light", at) for _, at in lamps]
    assert kept == renamed
    assert "'later' is not in" in caplog.text


def test_words_taught_in_the_middle_of_a_stream_keep_its_time(tmp_path, taught, model, samples):
    path = tmp_path / "home.tap"
    followed = ServedModel(path)
    stream = Stream(followed, DetectorSettings())

    def hear(sound):
        raw = RawChunk(sound.tobytes(), Format(16_000, 2, 1))
        return stream.push([stream.convert(raw)])

    half = 3 * 16_000
    assert hear(samples[:half]) == []
    shutil.copy(taught, path)
    followed.refresh()
    followed.refresh()
    heard = hear(samples[half:]) + stream.flush()
    late = [one for one in direct(model, samples) if one[1] > 4000]
    assert [(one.word, one.ended_ms) for one in heard] == late != []


def test_a_client_may_have_settings_of_its_own(taught, samples, caplog):
    caplog.set_level(logging.INFO, "tapword.serve.wyoming")
    known = read_clients(
        ["hall=127.0.0.1"], ["lamp=2", "hall/music=2", "10.0.0.9/lamp=0.1"], ["1"], ["hall/60", "1"]
    )
    assert known.settings("10.0.0.9") == DetectorSettings(1.0, 1.0, {"lamp": 0.1})
    assert known.settings("10.0.0.1") == known.common == DetectorSettings(1.0, 1.0, {"lamp": 2.0})
    assert known.settings(HOST) == DetectorSettings(1.0, 60.0, {"lamp": 2.0, "music": 2.0})

    async def conversation(port):
        return await listen(port, samples)

    assert serve(ServedModel(taught, known), conversation) == NOTHING
    # One word a minute, of all that are said.
    slow = read_clients(["hall=127.0.0.1"], refractory=["hall/60"])
    assert [word for word, _ in serve(ServedModel(taught, slow), conversation)] == ["lamp"]
    assert re.search(
        r"hall: heard 'lamp', sure [5-9]\d, score 0\.\d\d, threshold 0\.\d\d", caplog.text
    )


@pytest.mark.parametrize(
    "options, message",
    [
        ({"clients": ["kitchen"]}, "as in kitchen=10.0.0.7; got 'kitchen'"),
        ({"clients": ["kitchen=host"]}, "as in kitchen=10.0.0.7"),
        ({"clients": ["a/b=10.0.0.7"]}, "as in kitchen=10.0.0.7"),
        ({"false_alarms_per_hour": ["hall/1"]}, "--false-alarms-per-hour must be a number, or"),
        ({"false_alarms_per_hour": ["10.0.0.7/0"]}, "must be above 0"),
        ({"refractory": ["-1"]}, "0 s or more"),
        ({"refractory": ["nan"]}, "0 s or more"),
        ({"sensitivities": ["hall/0.5"]}, "must be a number from 0 to 1, or WORD=NUMBER"),
        ({"sensitivities": ["10.0.0.7/lamp=2"]}, "must be a number from 0 to 1"),
        ({"thresholds": ["10.0.0.7/lamp"]}, "as in lamp=0.6"),
        ({"thresholds": ["marvin=-"]}, "as in lamp=0.6"),
    ],
)
def test_settings_that_are_none(options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read_clients(**options)


def test_sensitivities_for_all_and_for_one_client(taught, caplog):
    known = read_clients(
        ["hall=127.0.0.1"],
        sensitivities=["lamp=0.6", "0.4", "hall/music=0.3", "10.0.0.9/0.8", "shelf=0.7"],
    )
    common = {None: 0.4, "lamp": 0.6, "shelf": 0.7}
    assert known.common.sensitivities == common
    assert known.settings(HOST).sensitivities == common | {"music": 0.3}
    # One for all words of a client is for those too that have another one elsewhere.
    assert known.settings("10.0.0.9").sensitivities == {None: 0.8}
    followed = ServedModel(taught, known)
    assert "'shelf' is not in" in caplog.text
    detector = known.settings(HOST).detector(followed.served)
    spotter, wanted = followed.served, {None: 0.4, "lamp": 0.6, "music": 0.3}
    assert detector.thresholds == spotter.thresholds(sensitivities=wanted)
    # Where no option says otherwise, it is the file's, as soon as it changes.
    followed = ServedModel(taught)
    before = DetectorSettings().detector(followed.served).thresholds
    with Spotter.edit(taught) as spotter:
        spotter.set_sensitivity(0.9)
    assert followed.refresh()
    after = DetectorSettings().detector(followed.served).thresholds
    assert after == pytest.approx(spotter.thresholds())
    assert all(after[word] < before[word] for word in before)


def test_near_misses_are_logged_where_no_word_was(taught, samples, caplog):
    caplog.set_level(logging.DEBUG, "tapword.serve.wyoming")

    async def conversation(port):
        return await listen(port, samples)

    # Looking for them changes nothing of what is heard.
    assert serve(ServedModel(taught), conversation) == direct(ServedModel(taught), samples)
    caplog.clear()
    first, *_ = Detector(ServedModel(taught).served)(samples)
    just_missed = read_clients(thresholds=[f"lamp={first.score + 0.1}"])
    heard = serve(ServedModel(taught, just_missed), conversation)
    assert (first.word, round(1000 * first.end_s)) not in heard
    nearly = re.findall(r"nearly '(\w+)', sure \d+, score (\S+), threshold (\S+)", caplog.text)
    assert ("lamp", f"{first.score:.2f}", f"{first.score + 0.1:.2f}") in nearly
    # One for each word that was said, at most.
    assert len(nearly) <= 4


GARBAGE = {
    "no line": b"\x00\xff" * 50_000,
    "no JSON": b"GET / HTTP/1.1\r\n\r\n",
    "no object": b"[1, 2]\n",
    "no type": b"{}\n",
    "deep": b"[" * 60_000 + b"\n",
    "a length that is none": b'{"type": "audio-chunk", "payload_length": "many"}\n',
    "a payload too long": b'{"type": "audio-chunk", "payload_length": 10000000000}\n',
    "data too long": b'{"type": "detect", "data_length": 10000000000}\n',
    "data that is none": b'{"type": "detect", "data_length": 3}\n[1]',
    "no rate": b'{"type": "audio-chunk", "data": {"width": 2}}\n',
    "a rate that is none": b'{"type": "audio-start", "data": {"rate": NaN}}\n',
    "half samples": b'{"type": "audio-chunk", "payload_length": 3, "data": '
    b'{"rate": 16000, "width": 2, "channels": 1}}\nabc',
    "names that are none": b'{"type": "detect", "data": {"names": "lamp"}}\n',
    "the end in the middle": b'{"type": "audio-chunk", "payload_length": 64000}\nabc',
}


def test_garbage_ends_its_own_connection_alone(model, samples):
    async def throw(port, content):
        reader, writer = await asyncio.open_connection(HOST, port)
        with contextlib.suppress(ConnectionError):
            writer.write(content)
            await writer.drain()
            if content == GARBAGE["the end in the middle"]:
                writer.write_eof()
            # To the end: the service closes.
            await reader.read()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async def conversation(port):
        good = asyncio.create_task(listen(port, samples))
        await asyncio.gather(*(throw(port, content) for content in GARBAGE.values()))
        return await good, await ask(port)

    assert serve(model, conversation) == (direct(model, samples), ["lamp", "music"])


def test_a_client_that_leaves_in_the_middle_disturbs_nobody(model, samples, caplog):
    async def leave(port):
        _, writer = await asyncio.open_connection(HOST, port)
        for start in range(0, len(samples), 1280):
            sound = samples[start : start + 1280].tobytes()
            await async_write_event(AudioChunk(16_000, 2, 1, sound).event(), writer)
        writer.transport.abort()

    async def conversation(port):
        heard, *_ = await asyncio.gather(listen(port, samples), *(leave(port) for _ in range(5)))
        return heard

    assert serve(model, conversation) == direct(model, samples)
    assert "unexpected" not in caplog.text


def test_what_cannot_be_used_is_answered_with_a_reason(model):
    async def conversation(port):
        async with AsyncTcpClient(HOST, port) as line:
            await line.write_event(AudioChunk(16_000, 5, 1, b"12345").event())
            return Error.from_event(await line.read_event()), await line.read_event()

    error, end = serve(model, conversation)
    assert error.text == "width must be 1, 2, 3 or 4 bytes, got 5" and end is None


def test_half_an_event_is_not_waited_for_forever(model):
    async def conversation(port):
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(b'{"type": "audio-chunk", "payload_length": 64}\nabc')
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()

    serve(model, conversation, limits=ClientLimits(timeout_s=0.05))


def test_no_more_clients_than_there_are_places(model):
    async def conversation(port):
        async with AsyncTcpClient(HOST, port) as first:
            assert await answers(first) == []
            reader, writer = await asyncio.open_connection(HOST, port)
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()
            return await answers(first)

    assert serve(model, conversation, limits=ClientLimits(clients=1)) == []


def test_a_recording_sent_faster_than_it_plays_loses_nothing(model, samples):
    async def conversation(port):
        return await listen(port, samples)

    assert serve(model, conversation, limits=ClientLimits(backlog_s=0.5)) == direct(model, samples)


def test_live_sound_that_cannot_be_followed_is_let_go(taught, model, samples, caplog):
    """All threads are blocked for the first two words, while time passes as the sound does.

    After that time stands still, so that the rest can wait however busy this machine is.
    """
    now = [0.0]
    opened = threading.Event()

    def clock():
        if not opened.is_set():
            now[0] += 0.08
        return now[0]

    class Blocked(ServedModel):
        """Words that nobody gets who is to hear sound with them, until they are given free."""

        @property
        def served(self):
            if threading.current_thread().name.startswith("listening"):
                opened.wait(PATIENCE_S)
            return self.words_in_use

        @served.setter
        def served(self, served):
            self.words_in_use = served

    middle = round(3.5 * 16_000) // 1280 * 1280

    async def conversation(port):
        async with AsyncTcpClient(HOST, port) as line:
            await line.write_event(AudioStart(16_000, 2, 1).event())
            await send(line, samples[:middle], clock_ms=None)
            assert await answers(line) == []
            opened.set()
            await send(line, samples[middle:], clock_ms=None)
            await line.write_event(AudioStop().event())
            return await answers(line)

    limits = ClientLimits(backlog_s=1.0)
    heard = serve(Blocked(taught), conversation, limits=limits, clock=clock)
    assert "too busy" in caplog.text
    expected = direct(model, samples)
    assert len(expected) == 3 and heard == expected[-1:]


@pytest.mark.parametrize("uri", ["tcp://127.0.0.1", "unix:///a", "10400", "tcp://h:99999999", ""])
def test_uris(uri):
    assert address("tcp://[::1]:1") == ("::1", 1)
    with pytest.raises(InputError, match="must be like tcp://"):
        address(uri)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "zeroconf", None)

    async def announced():
        async with announce.announced("home", HOST, 1):
            pass

    with pytest.raises(MissingExtra, match=r"pip install .*\[zeroconf\]"):
        asyncio.run(announced())


ATTEMPTS = 5


def test_a_name_that_is_taken_gets_a_number(caplog, monkeypatch):
    pytest.importorskip("zeroconf", reason="needs the extra zeroconf")

    import zeroconf.asyncio

    # One interface is enough here; with all of them, some machines lose messages.
    AsyncZeroconf = functools.partial(
        zeroconf.asyncio.AsyncZeroconf, interfaces=zeroconf.InterfaceChoice.Default
    )
    monkeypatch.setattr(zeroconf.asyncio, "AsyncZeroconf", AsyncZeroconf)

    kind = "_wyoming._tcp.local."

    async def announced():
        async with announce.announced("tapword test", HOST, 1):
            network = AsyncZeroconf()
            try:
                if not await network.async_get_service_info(kind, f"tapword test.{kind}"):
                    pytest.skip("here two programs do not receive each other's mDNS messages")
            finally:
                await network.async_close()
            # A busy machine may answer after the half second for which a name is asked about.
            for _ in range(ATTEMPTS):
                async with announce.announced("tapword test", HOST, 2):
                    if said in caplog.text:
                        return

    said = "the name 'tapword test' is in use in the network: announced as 'tapword"
    asyncio.run(announced())
    assert said in caplog.text
