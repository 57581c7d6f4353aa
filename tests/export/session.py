"""What every instruction set has to compute the same: a session with a device, and its numbers."""

from typing import NamedTuple

import numpy as np

from tapword import Spotter
from tapword.listening.decider import Event
from tests.export.device import Device, Listening, counted
from tests.export.test_export import clips_of
from tests.export.test_listen import sampled
from tests.sounds import noise

WORDS = ("lamp", "door", "fan", "timer", "right")


class Answers(NamedTuple):
    """Scores of clips (clips, words) and the words that count as said; events of a stream; the
    saved state; and scores after it was loaded again and the first word forgotten."""

    scores: np.ndarray
    said: list[int]
    events: list[Event | int]
    saved: bytes
    later: np.ndarray


def taught_clips() -> list[np.ndarray]:
    return [clips_of(word, stop=1)[0] for word in WORDS]


def asked_clips() -> list[np.ndarray]:
    return clips_of("door", 9, 10)


def stream() -> np.ndarray:
    """Give two words with silence around them."""
    quiet, brief = noise(0.5, 0.001), noise(0.3, 0.001)
    lamp, door = (clips_of(word, 6, 7)[0] for word in ("lamp", "door"))
    return sampled(quiet, lamp, brief, door, quiet)


def learned(spotter: Spotter) -> Spotter:
    """Teach Python's model the same."""
    for word, clip in zip(WORDS, taught_clips(), strict=True):
        spotter.learn(clip, word)
    return spotter


def answers(device: Listening) -> Answers:
    """Teach a device without words five, try it, save; start again, load, forget, and ask again."""
    for word, clip in zip(WORDS, taught_clips(), strict=True):
        device.order("t", *counted(clip), word)
    ask(device)
    device.whole(stream())
    device.order("S")
    device.run()
    assert [device.number() for _ in WORDS] == list(range(len(WORDS)))
    scores, said = scored(device)
    names = list(WORDS)
    events = device.heard(names) + device.heard(names)
    assert device.number() == -12, "no room"
    saved = device.take(device.number(), np.uint8).tobytes()
    device.order("L", np.uint32(len(saved)), np.frombuffer(saved, np.uint8))
    device.order("f", WORDS[0])
    ask(device)
    device.run()
    assert device.number() == device.number() == 0
    return Answers(scores, said, events, saved, scored(device)[0])


def differences(given: Answers, wanted: Answers) -> float:
    """Give the largest difference of scores; all else has to be equal."""
    assert given.said == wanted.said and len(given.saved) == len(wanted.saved)
    assert [event[:3] for event in given.events] == [event[:3] for event in wanted.events]
    pairs = [(given.scores, wanted.scores), (given.later, wanted.later)]
    pairs += [tuple(np.array([event[3] for event in each.events]) for each in (given, wanted))]
    return max(float(np.abs(one - other).max()) for one, other in pairs)


def ask(device: Device) -> None:
    for clip in asked_clips():
        device.order("w", *counted(clip))


def scored(device: Device) -> tuple[np.ndarray, list[int]]:
    rows, said = [], []
    for _ in asked_clips():
        assert device.number() == 0
        rows.append(device.take(device.number()))
        device.number()
        said.append(device.number())
    return np.array(rows), said


def check_products(device: Device, rng: np.random.Generator) -> None:
    """Compare a device's sums of products with those of whole numbers."""
    low, high = np.int8(-128), np.int8(127)
    wanted = []
    for n in (8, 16, 24, 40, 64, 96, 320, 368, 1_600):
        random = [rng.integers(-128, 128, (2, n)) for _ in range(4)]
        edges = [np.full((2, n), value) for value in (low, high)]
        mixed = [np.stack([np.full(n, low), np.resize([high, low], n)])]
        for start, (x, weights) in enumerate([*random, *edges, *mixed]):
            x, weights = x.astype(np.int8), weights.astype(np.int8)
            device.order("V", np.uint32(n), np.uint32(start), x, weights)
            wanted.append(int(x.astype(int) @ weights.astype(int)))
    device.run()
    assert [device.number() for _ in wanted] == wanted
