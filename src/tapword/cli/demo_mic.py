"""The demo with a microphone: teach one word by voice, then listen for it; nothing is stored."""

from collections.abc import Callable

from rich.console import Console

from tapword.audio import microphone
from tapword.audio.files import SAMPLE_RATE
from tapword.cli.record import record
from tapword.listening.detector import Detector
from tapword.listening.near import NearMisses
from tapword.spotter.session import TeachSession
from tapword.spotter.spotter import Spotter
from tapword.support.issues import Issue
from tapword.support.text import counted, printable

# Takes of the word, and how long it is listened for: long enough to say it and some other words.
TAKES, LISTEN_S = 3, 20


def show(console: Console, word: str, device: str | None, ask: Callable[[Issue], bool]) -> None:
    """Record takes of a word, then print it whenever it is said."""

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    say(f"Say {printable(word)!r} {TAKES} times, each time when asked. Nothing is stored or sent.")
    session = TeachSession(Spotter())
    session.check_words([word])
    record(session, word, TAKES, device, ask)
    detector = Detector(session.current)
    misses = NearMisses(detector)
    say(f"Listening for {LISTEN_S} s. Say {printable(word)!r}, and other words too.")
    count, heard_s = 0, 0.0
    try:
        with microphone.open_stream(device) as chunks:
            for chunk in chunks:
                if chunk.gap:
                    detector.gap()
                heard_s += len(chunk.samples) / SAMPLE_RATE
                events = detector(chunk.samples)
                count += len(events)
                for event in events:
                    say(
                        f" {event.start_s:5.1f} s  {printable(event.word)}, sure {event.confidence}"
                    )
                for miss in misses.since(heard_s):
                    say(f" {miss.start_s:5.1f} s  nearly, sure {miss.confidence}: 50 is needed")
                if heard_s >= LISTEN_S:
                    break
    except KeyboardInterrupt:
        pass
    say(f"Heard {printable(word)!r} {counted(count, 'time')}.")
    say(f"To keep such a model: tapword learn home.tap {printable(word)} --mic")
