"""Undo, and takes that are taken out again, in a file that others change too."""

import threading

import numpy as np
import pytest

import tapword
from tapword.errors import InputError
from tests.conftest import tone
from tests.serve.conftest import HOME, LIVE, SMALL, client_of, learn, spoken, words_of

pytest.importorskip("starlette", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("httpx2", reason="needs httpx2, which the test client is made of")

from tapword.serve.studio.history import GONE, History
from tapword.serve.studio.limits import ServerLimits
from tapword.serve.studio.model import StudioModel
from tapword.voices.base import SpokenBy

PAGE = {"page": "one"}


@pytest.fixture
def taught(model):
    for pitch in (300, 310):
        model.learn(tone(pitch), "lamp")
    model.learn(tone(1200), "music")
    return model


@pytest.fixture
def history(taught):
    return taught.histories.of("one")


def knowledge(path):
    """Counts, and means by row, of what the file holds."""
    spotter = tapword.load(path)
    learner = spotter.learner
    means = dict(zip(learner.rows, learner.statistics.means, strict=True))
    return spotter.words, spotter.vocabulary.negatives, spotter.vocabulary.sensitivities, means


def same(one, other):
    assert one[:3] == other[:3] and one[3].keys() == other[3].keys()
    for row, mean in one[3].items():
        np.testing.assert_allclose(mean, other[3][row], rtol=1e-4, atol=1e-4)


CHANGES = {
    "teach": lambda model, history: model.learn(tone(305), "lamp", history),
    "new": lambda model, history: model.learn(tone(800), "door", history),
    "reject": lambda model, history: model.reject(tone(700), history),
    "forget": lambda model, history: model.forget("lamp", history),
    "rename": lambda model, history: model.rename("lamp", "light", history),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_undone(taught, history, path, change):
    before = knowledge(path)
    change(taught, history)
    assert knowledge(path)[0] != before[0] or knowledge(path)[1] != before[1]
    taught.undo(history)
    same(knowledge(path), before)
    with pytest.raises(InputError, match="nothing to undo"):
        taught.undo(history)


def test_all_of_them_are_undone_one_after_the_other(taught, history, path):
    states = []
    for change in CHANGES.values():
        states.append(knowledge(path))
        change(taught, history)
        if "light" in tapword.load(path).words:
            taught.rename("light", "lamp", history)
            states.append(None)
        if "lamp" not in tapword.load(path).words:
            taught.learn(tone(320), "lamp", history)
            states.append(None)
    while states:
        taught.undo(history)
        if (wanted := states.pop()) is not None:
            same(knowledge(path), wanted)


def test_takes_are_removed_in_any_order_and_given_back(taught, history, path):
    before = knowledge(path)
    numbers = [taught.learn(tone(pitch), "door", history).take for pitch in (600, 630, 660)]
    three = knowledge(path)
    taught.remove(numbers[1], history)
    assert tapword.load(path).words["door"] == 2
    with pytest.raises(InputError, match="removed already"):
        taught.remove(numbers[1], history)
    taught.undo(history)
    same(knowledge(path), three)
    for number in numbers:
        taught.remove(number, history)
    same(knowledge(path), before)
    assert history.in_model() == []
    taught.undo(history)
    assert tapword.load(path).words["door"] == 1
    assert [take.number for take in history.in_model()] == [numbers[2]]


def test_the_last_take_takes_the_negatives_along_and_brings_them_back(model, path):
    history = model.histories.of("one")
    number = model.learn(tone(300), "lamp", history).take
    model.reject(tone(320), history)
    before = knowledge(path)
    model.remove(number, history)
    assert tapword.load(path).words == {}
    model.undo(history)
    same(knowledge(path), before)


def test_takes_follow_their_word(taught, history, path):
    """Renamed by another page, it is still found; forgotten, it comes back with the word."""
    number = taught.learn(tone(305), "lamp", history).take
    other = taught.histories.of("two")
    taught.rename("lamp", "light", other)
    taught.forget("light", other)
    assert history.in_model() == []
    with pytest.raises(InputError, match="was forgotten, and the take with it"):
        taught.remove(number, history)
    taught.undo(other)
    taught.remove(number, history)
    assert tapword.load(path).words == {"music": 1, "light": 2}
    taught.undo(other)
    taught.undo(history)
    assert tapword.load(path).words == {"music": 1, "lamp": 3}


def test_what_others_taught_since_stays(taught, history, path):
    taught.learn(tone(305), "lamp", history)
    taught.forget("music", history)
    with tapword.Spotter.edit(path) as other:
        other.learn(tone(1250), "music")
        other.learn(tone(330), "lamp")
    taught.undo(history)
    assert tapword.load(path).words == {"lamp": 4, "music": 2}
    taught.undo(history)
    assert tapword.load(path).words == {"lamp": 3, "music": 2}


def forgotten(spotter):
    spotter.forget("lamp")


def taught_anew(spotter):
    spotter.forget("lamp")
    for pitch in (900, 950, 1000):
        spotter.learn(tone(pitch), "lamp")


def renamed(spotter):
    spotter.rename("lamp", "light")


@pytest.mark.parametrize("by_others", [forgotten, taught_anew, renamed])
@pytest.mark.parametrize("seen", [True, False])
def test_what_others_took_away_is_said_and_left_alone(taught, history, path, by_others, seen):
    """Whether the studio saw the file change before it was asked, or not."""
    taught.rename("music", "radio", history)
    number = taught.learn(tone(305), "lamp", history).take
    with tapword.Spotter.edit(path) as other:
        by_others(other)
    if seen:
        taught.refresh()
    after = path.read_bytes()
    for attempt in (lambda: taught.remove(number, history), lambda: taught.undo(history)):
        with pytest.raises(InputError) as refused:
            attempt()
        assert refused.value.code == "take_changed" and str(refused.value) == GONE["take_changed"]
        assert path.read_bytes() == after
    # What cannot be undone is let go: the change before it can be.
    taught.undo(history)
    assert "music" in tapword.load(path).words


def test_a_name_that_others_took_meanwhile(taught, history, path):
    taught.rename("lamp", "light", history)
    with tapword.Spotter.edit(path) as other:
        other.learn(tone(500), "lamp")
    with pytest.raises(InputError, match="there is already a word 'lamp'"):
        taught.undo(history)
    assert tapword.load(path).words == {"light": 2, "music": 1, "lamp": 1}


def test_what_was_replaced_holds_no_take(taught, history, path, tmp_path):
    number = taught.learn(tone(305), "lamp", history).take
    other = tapword.Spotter(**SMALL)
    for pitch in (500, 510, 520, 530):
        other.learn(tone(pitch), "lamp")
    other.save(tmp_path / "other.tap")
    content = (tmp_path / "other.tap").read_bytes()
    taught.upload(content, True, None)
    assert len(history.in_model()) == 1
    taught.upload(content, False, taught.revision)
    with pytest.raises(InputError, match="taught again elsewhere"):
        taught.remove(number, history)
    assert tapword.load(path).words == {"lamp": 4}


def test_two_at_a_time_undo_two_changes(taught, history, path):
    """Not one of them twice, however pages and threads meet."""
    for pitch in (305, 315, 325, 335):
        taught.learn(tone(pitch), "lamp", history)
    threads = [threading.Thread(target=taught.undo, args=(history,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tapword.load(path).words == {"lamp": 2, "music": 1} and history.changes == []


def test_sensitivities(path):
    model = StudioModel(path)
    model.learn(tone(300), "lamp")
    model.learn(tone(1200), "music")
    history = model.histories.of("one")
    model.set_sensitivity("music", 0.3)
    for value in (0.55, 0.6, 0.65):
        model.set_sensitivity("lamp", value, history)
    model.set_sensitivity(None, 0.4, history)
    vocabulary = tapword.load(path).vocabulary
    assert vocabulary.sensitivities == {} and vocabulary.sensitivity == 0.4
    model.undo(history)
    assert tapword.load(path).vocabulary.sensitivities == {"music": 0.3, "lamp": 0.65}
    # Steps of one slider are one change.
    model.undo(history)
    assert tapword.load(path).vocabulary.sensitivities == {"music": 0.3}
    model.set_sensitivity("lamp", 0.7, history)
    with tapword.Spotter.edit(path) as other:
        other.set_sensitivity(0.8, "lamp")
    with pytest.raises(InputError, match='of "lamp" was changed elsewhere since'):
        model.undo(history)
    assert tapword.load(path).vocabulary.sensitivity_of("lamp") == 0.8
    model.set_sensitivity("lamp", 0.7, history)
    model.rename("lamp", "light")
    model.undo(history)
    assert tapword.load(path).vocabulary.sensitivity_of("light") == 0.8


def test_of_a_learner_that_cannot_unlearn_names_alone_are_undone(path):
    model = StudioModel(path, SMALL | {"learner": "perceptron"})
    history = model.histories.of("one")
    number = model.learn(tone(300), "lamp", history).take
    model.rename("lamp", "light", history)
    model.learn(tone(1200), "music", history)
    model.reject(tone(700), history)
    model.forget("music", history)
    with pytest.raises(InputError, match="cannot be removed"):
        model.remove(number, history)
    model.undo(history)
    assert tapword.load(path).words == {"lamp": 1}
    assert history.state() == {"undo": None, "takes": []}


def test_a_failed_writing_changes_no_history(taught, history, path, monkeypatch):
    number = taught.learn(tone(305), "lamp", history).take
    with monkeypatch.context() as patch:
        patch.setattr(tapword.Spotter, "_write", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            taught.remove(number, history)
    assert len(history.in_model()) == 1
    taught.remove(number, history)
    assert tapword.load(path).words["lamp"] == 2


def test_histories_are_bounded(taught):
    limits = ServerLimits(changes=3, pages=2)
    taught.histories.limits = limits
    history = History(limits)
    for _ in range(5):
        taught.learn(tone(300), "lamp", history)
    assert len(history.changes) == 3 == len(history.takes)
    pages = [taught.histories.of(name) for name in ("one", "two", "one", "three")]
    assert list(taught.histories) == ["one", "three"] and pages[0] is pages[2]
    assert taught.histories.of("") is not taught.histories.of("")


def next_history(line, before):
    """What a page can undo now; the watch on the model's file may tell once more what it was."""
    for _ in range(3):
        found = line.receive_json()["history"]
        if found != before:
            break
    return found


def test_over_the_line_and_by_requests(client, path):
    with client.websocket_connect(f"{LIVE}?page=one", headers=HOME) as line:
        nothing = line.receive_json()["history"]
        assert nothing == {"undo": None, "takes": []}
        sound = spoken(tone(300, 0.5))
        kept = client.post("/api/learn", content=sound, params=PAGE | {"word": "lamp"}).json()
        assert kept["take"] == 1 and kept["issues"] == []
        wanted = {"kind": "teach", "word": "lamp"}
        takes = [{"id": 1, "word": "lamp", "negative": False}]
        taught = next_history(line, nothing)
        assert taught == {"undo": wanted, "takes": takes}
        learn(client, "music", 1200)
        assert line.receive_json()["history"] == taught
        removed = client.post("/api/remove", json={"take": 1}, params=PAGE).json()
        assert words_of(removed) == {"music": 1}
        told = next_history(line, taught)
        assert told == {"undo": {"kind": "remove", "word": "lamp"}, "takes": []}
        assert words_of(client.post("/api/undo", params=PAGE).json()) == {"music": 1, "lamp": 1}
        assert next_history(line, told)["takes"] == takes
    # A page that lost its line finds what it changed.
    with client.websocket_connect(f"{LIVE}?page=one", headers=HOME) as line:
        assert line.receive_json()["history"] == {"undo": wanted, "takes": takes}
    refused = client.post("/api/undo", params={"page": "another"})
    assert refused.status_code == 422 and "nothing to undo" in refused.json()["error"]
    answer = client.post("/api/remove", json={"take": True}, params=PAGE)
    assert answer.status_code == 422 and "the whole number take" in answer.json()["error"]


def test_a_refused_undo_tells_what_is_undone_next(path):
    with (
        client_of(StudioModel(path, SMALL)) as client,
        client.websocket_connect(f"{LIVE}?page=one", headers=HOME) as line,
    ):
        line.receive_json()
        learn(client, "music", 1200)
        sound = spoken(tone(300, 0.5))
        client.post("/api/learn", content=sound, params=PAGE | {"word": "lamp"})
        with tapword.Spotter.edit(path) as other:
            other.forget("lamp")
        assert client.post("/api/undo", params=PAGE).status_code == 422
        while line.receive_json()["history"]["undo"] is not None:
            pass


def test_a_bad_take_is_learned_where_the_page_insists(client, path):
    cut_off = spoken(tone(300, 0.5))[2 * 9600 :]
    insist = PAGE | {"word": "lamp", "anyway": "1"}
    assert client.post("/api/learn", content=cut_off, params=insist).status_code == 200
    silence = spoken(np.zeros(8000))
    assert client.post("/api/learn", content=silence, params=insist).json()["take"] is None
    assert tapword.load(path).words == {"lamp": 1}


def test_takes_of_a_typed_word_come_and_go(taught, history, path):
    with tapword.Spotter.edit(path) as spotter:
        said = spotter.encode([tone(2000), tone(2050)], learning=True)
        spotter.learn_encoded(said, ["radio"] * 2, spoken_by=SpokenBy("kokoro"))
    before = knowledge(path)
    taught.refresh()
    [radio] = [one for one in taught.state()["words"] if one["word"] == "radio"]
    assert (radio["count"], radio["synthetic"]) == (0, 2)
    number = taught.learn(tone(2010), "radio", history).take
    assert knowledge(path)[0]["radio"] == 1
    taught.remove(number, history)
    same(knowledge(path), before)
    taught.undo(history)
    assert knowledge(path)[0]["radio"] == 1
    taught.forget("radio", history)
    assert "radio" not in knowledge(path)[0]
    taught.undo(history)
    assert tapword.load(path).learner.synthetic == {"radio": 2}
