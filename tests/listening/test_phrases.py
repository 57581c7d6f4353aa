"""Phrases in a stream: found among other speech, once, soon, and not the words inside them."""

import numpy as np
import pytest

from tapword import Detector, Spotter
from tapword.audio.files import SAMPLE_RATE
from tapword.listening.decider import Candidate, Decider, Event, Overlaps, replay
from tapword.spotter.thresholds import Scores
from tests.sounds import ASKED, TAUGHT, noise, silence, speech

PHRASE = "lamp music coffee"


def said(text, voice):
    parts = [part for word in text.split() for part in (speech(word, voice), silence(0.03))]
    return np.concatenate(parts[:-1])


# Segments are pooled from the frames of a stream, or scored again as clips.
@pytest.fixture(scope="module", params=["ear_s", "tapword_ear"])
def ear(request):
    return request.param


@pytest.fixture(scope="module")
def spotter(ear):
    made = Spotter(ear)
    for text in (PHRASE, "lamp", "coffee", "window"):
        made.learn_many(
            [np.concatenate([silence(0.5), said(text, voice), silence(0.5)]) for voice in TAUGHT],
            [text] * len(TAUGHT),
        )
    return made


def detect(detector, sound, size=1280):
    events, reported = [], []
    for start in range(0, len(sound), size):
        found = detector(sound[start : start + size])
        events += found
        reported += [(start + size) / SAMPLE_RATE] * len(found)
    found = detector.flush()
    return events + found, reported + [len(sound) / SAMPLE_RATE] * len(found)


def scene(voice):
    """Window, the phrase, lamp and coffee, among other words without a pause; ends of the four."""
    parts = [
        (None, noise(1.0)),
        ("window", said("window", voice)),
        (None, noise(1.5)),
        (None, said("timer door", voice)),
        (PHRASE, said(PHRASE, voice)),
        (None, said("door", voice)),
        (None, noise(1.5)),
        ("lamp", said("lamp", voice)),
        (None, noise(1.5)),
        ("coffee", said("coffee", voice)),
        (None, noise(1.5)),
    ]
    sound = np.concatenate([part for _, part in parts])
    ends = np.cumsum([len(part) for _, part in parts]) / SAMPLE_RATE
    wanted = [(word, end) for (word, _), end in zip(parts, ends, strict=True) if word]
    return sound + noise(len(sound) / SAMPLE_RATE, 0.001, seed=1), wanted


@pytest.mark.parametrize("voice", ASKED[:3])
def test_a_phrase_in_speech_is_one_event_without_the_words_inside_it(spotter, voice):
    sound, wanted = scene(voice)
    events, reported = detect(Detector(spotter), sound)
    assert [event.word for event in events] == [word for word, _ in wanted]
    for event, reported_s, (word, end_s) in zip(events, reported, wanted, strict=True):
        assert abs(event.end_s - end_s) < 0.4
        if word == PHRASE:
            assert reported_s - end_s < 0.6
            assert event.end_s - event.start_s == pytest.approx(
                len(said(PHRASE, voice)) / SAMPLE_RATE, rel=0.3
            )


def test_the_pieces_that_a_stream_comes_in_do_not_matter(spotter):
    sound, _ = scene(ASKED[1])
    events, _ = detect(Detector(spotter), sound)
    for size in (1, 160, 7_777, len(sound)):
        assert detect(Detector(spotter), sound, size)[0] == events


def test_an_observer_judges_as_the_detector_does(spotter):
    sound, _ = scene(ASKED[0])
    candidates = []
    detector = Detector(spotter, observe=candidates.append)
    events, _ = detect(detector, sound)
    assert replay(candidates, detector.thresholds) == events
    assert any(one.phrase for one in candidates)
    assert all(one.phrase is (PHRASE in one.scores.words) for one in candidates)


def test_sound_that_was_lost_ends_a_phrase(spotter):
    sound = said(PHRASE, ASKED[0])
    detector = Detector(spotter)
    detector(np.concatenate([noise(1.0), sound[: len(sound) // 2]]))
    detector.gap(2.0)
    events = detector(np.concatenate([sound[len(sound) // 2 :], noise(1.5)])) + detector.flush()
    assert PHRASE not in [event.word for event in events]


def test_a_phrase_taught_while_listening_is_detected(spotter, ear):
    made = Spotter(ear)
    made.learn_encoded(*_some(spotter, made, "window"))
    detector = Detector(made)
    detector(noise(1.3))
    made.learn_encoded(*_some(spotter, made, PHRASE))
    events, _ = detect(detector, np.concatenate([noise(1.0), said(PHRASE, ASKED[0]), noise(1.0)]))
    assert [event.word for event in events] == [PHRASE]
    assert events[0].start_s == pytest.approx(2.3, abs=0.3)


def _some(spotter, made, text):
    clips = [np.concatenate([silence(0.5), said(text, voice), silence(0.5)]) for voice in TAUGHT]
    return made.encode(clips, learning=True), [text] * len(clips)


# Decisions by themselves.


def stretch(start_s, end_s, score, over=False):
    centre = round((start_s + end_s) / 2 * SAMPLE_RATE)
    return Candidate(centre, start_s, end_s, Scores({"a": score}, {}), True, over)


def test_of_stretches_of_one_utterance_the_best_is_the_event():
    decide = Decider()
    row = [stretch(1.0, 2.0, 0.5), stretch(1.1, 2.3, 0.7), stretch(1.2, 2.4, 0.6)]
    assert [decide(one, {"a": 0.4}) for one in row] == [None, None, Event("a", 1.1, 2.3, 0.7)]
    assert decide(stretch(1.3, 2.5, 0.9), {"a": 0.4}) is None and decide.finalize() is None
    # Another utterance.
    assert decide(stretch(2.6, 3.8, 0.5, over=True), {"a": 0.4}) == Event("a", 2.6, 3.8, 0.5)


def test_a_word_waits_for_a_phrase_that_may_hold_it():
    overlaps = Overlaps()
    word, other = Event("b", 1.1, 1.5, 0.9), Event("c", 3.0, 3.4, 0.9)
    overlaps.add(word, phrase=False)
    assert overlaps.pop_ready(2.0, 1.5) == []
    # A phrase may begin with the word's last sound.
    assert overlaps.pop_ready(2.9, 1.5) == [] and overlaps.pop_ready(3.0, 1.5) == [word]
    overlaps.add(other, phrase=False)
    phrase = Event("a", 2.9, 4.2, 0.5)
    overlaps.add(phrase, phrase=True)
    overlaps.add(word := Event("b", 4.1, 4.5, 0.9), phrase=False)
    # More of the phrase arrived since.
    overlaps.suppress(phrase._replace(end_s=4.4))
    assert overlaps.pop_ready() == [phrase] and word not in overlaps.pop_ready()


def test_a_word_that_shares_sound_with_a_phrase_is_part_of_it():
    phrase = Event("a", 1.0, 2.5, 0.5)
    for start_s, end_s, part in (
        (0.2, 1.25, True),
        (0.2, 1.15, False),
        (2.25, 3.3, True),
        (2.35, 3.3, False),
        (2.38, 2.6, True),
        (2.42, 2.62, False),
        (2.6, 2.9, False),
        (1.4, 1.5, True),
    ):
        overlaps = Overlaps()
        overlaps.add(word := Event("b", start_s, end_s, 0.9), phrase=False)
        overlaps.add(phrase, phrase=True)
        assert (word not in overlaps.pop_ready()) == part, word


@pytest.mark.parametrize("voice", ASKED[:3])
def test_a_word_after_a_phrase_and_a_pause_is_detected(spotter, voice):
    said_s = [noise(1.0), said(PHRASE, voice), noise(0.4), said("window", voice), noise(1.5)]
    sound = np.concatenate(said_s)
    events, _ = detect(Detector(spotter), sound + noise(len(sound) / SAMPLE_RATE, 0.001, seed=1))
    assert [event.word for event in events] == [PHRASE, "window"]


def test_words_inside_a_phrase_are_never_reported_before_it(spotter):
    """They wait in silence too: a phrase that hardly reaches its threshold does so at its end."""
    for voice in ASKED:
        sound = np.concatenate([noise(1.0), said(PHRASE, voice), noise(1.5)])
        sound = sound + noise(len(sound) / SAMPLE_RATE, 0.001, seed=1)
        [score] = [one.score for one in detect(Detector(spotter), sound)[0] if one.word == PHRASE]
        for below in (0.002, 0.01, 0.1):
            thresholds = {PHRASE: score - below, "lamp": 0.2, "coffee": 0.2}
            events, _ = detect(Detector(spotter, thresholds=thresholds), sound)
            assert [event.word for event in events] == [PHRASE]


def test_a_word_that_comes_late_is_still_inside_the_phrase():
    decide, thresholds = Decider(), {"a": 0.4, "b": 0.4}
    assert decide(stretch(1.0, 2.0, 0.5, over=True), thresholds) is not None
    assert decide(stretch(1.2, 2.4, 0.5, over=True), thresholds) is None
    scores = Scores({"b": 0.9}, {})
    assert decide(Candidate(round(2.3 * SAMPLE_RATE), 2.1, 2.5, scores), thresholds) is None
    assert decide(Candidate(round(3.3 * SAMPLE_RATE), 3.1, 3.5, scores), thresholds) is not None


def test_a_longer_phrase_around_one_that_was_given_comes_as_well():
    decide, thresholds = Decider(), {"a": 0.4, "b": 0.4}
    assert decide(stretch(1.0, 2.0, 0.5, over=True), thresholds) is not None
    later = stretch(1.0, 2.8, 0.5, over=True)._replace(scores=Scores({"b": 0.6}, {}))
    assert decide(later, thresholds) == Event("b", 1.0, 2.8, 0.6)
    assert decide(stretch(1.1, 2.1, 0.9, over=True), thresholds) is None


# A model that changes, parts that detect no phrases, lost samples.


def test_another_spotter_takes_over_while_a_phrase_is_said(spotter, ear):
    made = Spotter(ear)
    for text in (PHRASE, "window door timer"):
        made.learn_encoded(*_some(spotter, made, text))
    detector = Detector(made)
    sound = np.concatenate([noise(1.0), said(PHRASE, ASKED[0]), noise(1.0)])
    detector(sound[: len(sound) // 2])
    detector.spotter = spotter
    events = detector(sound[len(sound) // 2 :]) + detector.flush()
    assert {event.word for event in events} <= set(spotter.words)
    events, _ = detect(detector, sound)
    assert [event.word for event in events] == [PHRASE]


def test_a_gap_gives_the_events_before_it(spotter):
    sound = np.concatenate([noise(1.0), said("window", ASKED[0]), said("door timer", ASKED[0])])
    detector = Detector(spotter)
    events = detector(sound)
    detector.gap(1.0)
    events += detector(noise(1.5)) + detector.flush()
    assert [event.word for event in events] == ["window"]


def test_parts_that_cannot_stream_detect_only_words():
    made = Spotter(backbone="logmel", pooling="avg", learner="ncm", align=True)
    made.learn(np.concatenate([silence(0.5), said(PHRASE, ASKED[0]), silence(0.5)]), "long")
    assert made.vocabulary.lengths and made.scorer.longest_s == 1.0
    assert made.scorer.short_words == ["long"]
    assert Detector(made, thresholds={"long": 1e9})(noise(3.0)) == []
