"""Typing a word in the studio: a voice says it, clips are heard and dropped, and all is undone."""

import threading

import numpy as np
import pytest

import tapword
from tapword import registry
from tapword.spotter import typed
from tapword.voices import choice, espeak, kokoro_files
from tapword.voices.base import Said, SpokenBy, Voice
from tapword.voices.kokoro_files import Files
from tests import fake_kokoro
from tests.browser import PHONE, launched
from tests.conftest import ROOT, tone
from tests.serve.conftest import LIVE, SMALL, client_of, learn, next_of, running, words_of

pytest.importorskip("starlette", reason="needs the extra web: pip install 'tapword[web]'")

from tapword.serve.studio.history import History
from tapword.serve.studio.model import StudioModel

PAGE = {"page": "a"}
PITCHES = {"lamp": 300, "music": 1500}


class Tones(Voice):
    """A voice that says a word as a tone; every speaker is a little higher."""

    takes_phonemes = True

    def why_not(self, language, phonemes=""):
        return None if language in ("en-us", "de") else f"no {language!r} here"

    def is_native(self, language):
        return language == "en-us"

    def pronunciation(self, text, language):
        return f"/{text}/"

    def _speak(self, text, language, n, seed, phonemes):
        for k in range(seed, seed + n):
            yield Said(tone(PITCHES.get(phonemes or text, 800) + 10 * k, 0.5), f"speaker {k}")


@pytest.fixture(autouse=True)
def voices(monkeypatch):
    """One voice is here, under the name of the best."""
    classes, build = registry.classes, registry.build

    def made(kind, name, **arguments):
        own = kind == "voices" and name == "kokoro"
        return Tones() if own else build(kind, name, **arguments)

    def known(kind):
        return {"kokoro": Tones} if kind == "voices" else classes(kind)

    monkeypatch.setattr(registry, "classes", known)
    monkeypatch.setattr(registry, "build", made)
    monkeypatch.setattr(Tones, "name", "kokoro")
    monkeypatch.setattr(choice, "ORDER", ("kokoro",))


def said(word="lamp", **given):
    return {"word": word, "language": "en-us", "voice": None, "phonemes": ""} | given


def say(client, **given):
    return client.post("/api/say", json=said(**given), params=PAGE)


def drop(client, number):
    return client.post("/api/remove", json={"take": number}, params=PAGE)


def means(path):
    return tapword.load(path).learner.state()["synthetic_means"]


def test_a_typed_word_is_taught_and_told_clip_by_clip(client, path):
    with client.websocket_connect(f"{LIVE}?page=a") as line:
        next_of(line, "model")
        answer = say(client).json()
        steps = [next_of(line, "speaking") for _ in range(typed.CLIPS)]
        assert [one["done"] for one in steps] == list(range(1, typed.CLIPS + 1))
        assert {(one["word"], one["of"]) for one in steps} == {("lamp", typed.CLIPS)}
    assert (answer["voice"], answer["native"], answer["phonemes"]) == ("kokoro", True, "/lamp/")
    assert [clip["speaker"] for clip in answer["clips"]] == [
        f"speaker {k}" for k in range(typed.CLIPS)
    ]
    assert all(len(clip["audio"]) > 10_000 for clip in answer["clips"])
    [word] = answer["words"]
    assert (word["word"], word["count"], word["synthetic"]) == ("lamp", 0, typed.CLIPS)
    saved = tapword.load(path)
    assert saved.vocabulary.voices == {"lamp": ["kokoro"]}
    # As the command line teaches it.
    other = tapword.Spotter(**SMALL)
    other.learn_text("lamp", voice=Tones())
    np.testing.assert_allclose(means(path), other.learner.state()["synthetic_means"], rtol=1e-5)
    # Only the page that asked is told.
    with client.websocket_connect(f"{LIVE}?page=b") as line:
        next_of(line, "model")
        say(client, word="music")
        assert line.receive_json()["type"] == "model"


def test_dropped_clips_leave_the_word_as_if_they_had_never_been_taught(client, path):
    clips = say(client).json()["clips"]
    for number in (1, 4, 9):
        assert drop(client, clips[number]["take"]).status_code == 200
    kept = [k for k in range(typed.CLIPS) if k not in (1, 4, 9)]
    other = tapword.Spotter(**SMALL)
    audio = [tone(PITCHES["lamp"] + 10 * k, 0.5) for k in kept]
    other.learn_encoded(
        other.encode(audio, learning=True), ["lamp"] * len(kept), SpokenBy("kokoro")
    )
    saved = tapword.load(path)
    assert saved.vocabulary == other.vocabulary
    np.testing.assert_allclose(
        means(path), other.learner.state()["synthetic_means"], rtol=1e-5, atol=1e-6
    )
    # A second pronunciation adds to it; then all of it is dropped.
    more = say(client, phonemes="music").json()["clips"]
    for clip in [clips[k] for k in kept] + more:
        assert drop(client, clip["take"]).status_code == 200
    assert tapword.load(path).words == {}
    assert drop(client, clips[0]["take"]).status_code == 422


def test_undo_takes_back_a_drop_and_a_typed_word(client, path):
    learn(client, "music", 1500, **PAGE)
    clips = say(client).json()["clips"]
    before = means(path)
    drop(client, clips[2]["take"])
    assert not np.allclose(means(path), before, rtol=1e-7, atol=0)
    state = client.post("/api/undo", params=PAGE).json()
    np.testing.assert_allclose(means(path), before, rtol=1e-5, atol=1e-6)
    assert words_of(state) == {"music": 1, "lamp": 0}
    with client.websocket_connect(f"{LIVE}?page=a") as line:
        history = next_of(line, "model")["history"]
        assert history["undo"] == {"kind": "type", "word": "lamp"}
    assert words_of(client.post("/api/undo", params=PAGE).json()) == {"music": 1}
    assert "synthetic_means" not in tapword.load(path).learner.state()


def test_the_last_clip_takes_the_negatives_along_and_undo_brings_them_back(model, path):
    history = History()
    clips = model.say(typed.Request("lamp", n=2), history=history).clips
    model.reject(tone(320, 0.5), history)
    for number, _ in clips:
        model.remove(number, history)
    assert tapword.load(path).words == {}
    model.undo(history)
    again = tapword.load(path)
    assert again.vocabulary.synthetic == {"lamp": 1} and again.vocabulary.negatives == {"lamp": 1}


def test_clips_that_others_forgot_cannot_be_dropped(client, path):
    clips = say(client).json()["clips"]
    with tapword.Spotter.edit(path) as other:
        other.forget("lamp")
        other.learn_text("lamp", "music", voice=Tones())
    refused = drop(client, clips[0]["take"])
    assert refused.status_code == 422 and refused.json()["code"] == "take_changed"
    refused = client.post("/api/undo", params=PAGE)
    assert refused.status_code == 422 and refused.json()["code"] == "take_changed"
    assert tapword.load(path).vocabulary.synthetic == {"lamp": typed.CLIPS}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"word": ""}, "printable"),
        ({"word": "..."}, "no letters"),
        ({"word": "hey \U0001f600"}, "cannot be said"),
        ({"word": "x" * 300}, "1 to 200 printable characters"),
        ({"language": "tlh"}, "no 'tlh' here"),
        ({"voice": "nobody"}, "no voice is named 'nobody'"),
        ({"voice": "kokoro:folder=/etc"}, "no voice is named"),
        ({"voice": 3}, "must be JSON"),
    ],
)
def test_bad_requests_get_one_line(client, path, given, message):
    refused = say(client, **given)
    assert refused.status_code == 422 and message in refused.json()["error"]
    assert "\n" not in refused.json()["error"] and not path.exists()


def test_a_learner_that_cannot_keep_clips_apart_refuses(path):
    with client_of(StudioModel(path, SMALL | {"learner": "cbcl"})) as client:
        refused = say(client)
    assert refused.status_code == 422 and "cannot learn typed words" in refused.json()["error"]


def test_words_are_compared_with_those_there_are(client):
    say(client, word="music")
    answer = say(client, word="musik", phonemes="music").json()
    assert [(one["code"], one["params"]["other"]) for one in answer["issues"]] == [
        ("close_word", "music")
    ]


def test_one_word_is_spoken_at_a_time_and_teaching_goes_on(client, monkeypatch):
    began, go_on = threading.Event(), threading.Event()

    def slow(self, text, language, n, seed, phonemes):
        began.set()
        assert go_on.wait(30)
        yield Said(tone(800, 0.5), "slow")

    monkeypatch.setattr(Tones, "_speak", slow)
    asking = threading.Thread(target=say, args=(client,))
    asking.start()
    try:
        assert began.wait(30)
        assert learn(client, "music").status_code == 200
    finally:
        go_on.set()
        asking.join()


def test_it_is_offered_what_speaks_here(client):
    found = client.get("/api/voices", params={"language": "de"}).json()
    assert found["best"] == "kokoro" and found["missing"] is None
    assert found["voices"] == [
        {"name": "kokoro", "native": False, "phonemes": True, "missing": None}
    ]
    found = client.get("/api/voices", params={"language": "fr"}).json()
    assert found["best"] is None and "no 'fr' here" in found["missing"]


def test_a_home_types_words_too(path):
    home = pytest.importorskip("tests.serve.home")
    with home.running_home(path) as served:
        assert served.get("api/voices?language=en-us")["best"] == "kokoro"
        answer = served.post("api/say", **said())
        assert answer.status_code == 200 and len(answer.json()["clips"]) == typed.CLIPS
        number = answer.json()["clips"][0]["take"]
        assert served.post("api/remove", take=number).status_code == 200
    assert tapword.load(path).vocabulary.synthetic == {"lamp": typed.CLIPS - 1}


# In a browser.


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with launched(tmp_path_factory.mktemp("microphone") / "sound.wav") as browser:
        yield browser


@pytest.fixture(scope="module")
def offered(tmp_path_factory):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    folder = tmp_path_factory.mktemp("offered")
    return folder, *fake_kokoro.offer(folder)


@pytest.fixture
def real(offered, tmp_path, monkeypatch):
    """Files like Kokoro's are installed for the user; espeak-ng need not be here."""
    folder, model, styles = offered
    monkeypatch.undo()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(kokoro_files, "MODEL", model)
    monkeypatch.setattr(espeak, "languages", lambda: frozenset({"en-us", "de", "ar"}))
    monkeypatch.setattr(espeak, "is_installed", lambda: True)
    monkeypatch.setattr(espeak, "phonemes", lambda text, language: "ˈ" + text.lower())  # noqa: RUF001
    return lambda: Files().get(lambda _: None, folder, model, styles)


def opened(browser, path, **options):
    """Open the page of a studio; also what it played."""
    context = browser.new_context(permissions=["microphone"], reduced_motion="reduce", **options)
    context.set_default_timeout(30_000)
    page = context.new_page()
    page.add_init_script(
        "window.played = []; AudioBufferSourceNode.prototype.start = function () {"
        " window.played.push(this.buffer.length); };"
    )
    page.goto(path)
    page.locator("#model:not(:empty)").wait_for()
    return page


def test_type_hear_drop_and_undo_in_the_browser(browser, path, real, tmp_path):
    real()
    with running(StudioModel(path, SMALL)) as studio:
        page = opened(browser, studio.url, locale="en-US")
        page.locator("#type-it").click()
        page.locator("#type-voice option", has_text="kokoro").wait_for(state="attached")
        assert page.locator("#type-language").input_value() == "en-us"
        page.locator("#type-say").click()
        page.locator("#type-status", has_text="Type the word first").wait_for()
        page.locator("#word").fill("lamp")
        page.locator("#type-say").click()
        rows = page.locator("#type-clips li")
        page.locator("#type-status", has_text="kokoro taught “lamp” by 16 clips").wait_for()
        rows.nth(15).wait_for()
        assert rows.count() == typed.CLIPS
        assert page.locator("#takes").inner_text() == "Typed: takes are optional"
        assert page.locator("#type-phonemes").get_attribute("placeholder") == "ˈlamp"  # noqa: RUF001
        assert "16 synthetic clips" in page.locator("#word-list li").inner_text()
        assert tapword.load(path).vocabulary.synthetic == {"lamp": typed.CLIPS}
        rows.first.get_by_label("Play the clip of").click()
        assert page.evaluate("window.played.length") == 1 and page.evaluate("played[0] > 1000")
        rows.first.get_by_label("Drop the clip of").click()
        rows.nth(15).wait_for(state="detached")
        assert rows.count() == 15
        assert tapword.load(path).vocabulary.synthetic == {"lamp": typed.CLIPS - 1}
        page.locator("#undo").click()
        rows.nth(15).wait_for()
        # Another pronunciation takes the place of the first.
        page.locator("#type-drop").click()
        rows.first.wait_for(state="detached")
        assert tapword.load(path).words == {}
        page.locator("#type-phonemes").fill("læmp")
        page.locator("#type-say").click()
        page.locator("#type-status", has_text="16 clips").wait_for()
        page.locator("#next-actions").wait_for()
        # Clips of another word are not shown, and those of this one again where it is typed.
        page.locator("#word").fill("other")
        assert rows.count() == 0
        page.locator("#word").fill("lamp")
        rows.nth(15).wait_for()
        assert rows.count() == typed.CLIPS
        page.context.close()


def test_without_a_voice_the_page_says_what_to_do(browser, path, real, monkeypatch):
    with running(StudioModel(path, SMALL)) as studio:
        monkeypatch.setattr(espeak, "why_no_phonemes", lambda language: "install espeak-ng")
        page = opened(browser, studio.url, locale="de-DE", viewport=PHONE)
        page.locator("#type-it").click()
        status = page.locator("#type-status", has_text="Keine Stimme spricht hier diese Sprache")
        status.wait_for()
        assert status.inner_text().endswith("with: tapword voices get")
        assert "piper" not in status.inner_text()
        assert not page.locator("#type-say").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        page.context.close()


def test_the_page_without_a_server_does_not_offer_it():
    static = ROOT / "src" / "tapword" / "serve" / "studio" / "static"
    page = (static / "index.html").read_text("utf-8")
    at = page.index('id="typing"')
    assert page.rfind("<!-- program -->", 0, at) > page.rfind("<!-- /program -->", 0, at)
    assert "typing.js" not in (ROOT / "site" / "try" / "main.js").read_text("utf-8")
