"""The studio in a real browser, with a microphone made of the demo's clips."""

import contextlib
import functools
import re
import webbrowser
from pathlib import Path

import numpy as np
import pytest
import soundfile

import tapword
from tapword.assets import CLIPS
from tapword.audio import files as audio
from tapword.audio.endpoint import examine
from tapword.errors import InputError
from tapword.spotter.encoder import Encoded
from tapword.support.issues import MESSAGES
from tests.browser import PHONE, VOICE, launched, speak
from tests.conftest import ROOT
from tests.serve.conftest import running
from tests.serve.ingress_proxy import PROXY, proxied

pytest.importorskip("starlette", reason="needs the extra web: pip install 'tapword[web]'")

from tapword.serve.studio.launch import in_browser
from tapword.serve.studio.model import StudioModel
from tapword.voices.base import SpokenBy


@pytest.fixture(scope="module")
def microphone(tmp_path_factory):
    """File that the browser takes for its microphone; read anew whenever a page opens it."""
    return tmp_path_factory.mktemp("microphone") / "sound.wav"


@pytest.fixture(scope="module")
def browser(microphone):
    with launched(microphone) as browser:
        yield browser


@pytest.fixture
def url(path):
    with running(StudioModel(path)) as studio:
        yield studio.url


@pytest.fixture
def open_page(browser, url):
    """Open the studio in a tab of its own; every error the page met fails the test."""
    contexts, errors = [], []

    def note(message):
        # The browser tells of every refused request; the page shows those itself.
        if message.type == "error" and "Failed to load resource" not in message.text:
            errors.append(message.text)

    def open_page(script=None, **options):
        context = browser.new_context(
            permissions=["microphone"], reduced_motion="reduce", locale="en-GB", **options
        )
        contexts.append(context)
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", note)
        if script:
            page.add_init_script(script)
        page.goto(url)
        page.locator("#model:not(:empty)").wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not errors


def taught(path, *words, takes=2):
    """Teach words by the voice of the microphone, from files."""
    with tapword.Spotter.edit(path) as spotter:
        for word in words:
            for take in range(takes):
                spotter.learn(CLIPS / word / f"{VOICE}_{take % 2}.ogg", word)


def teach(page, word):
    """Teach by voice with the keyboard alone: every step has the focus where it is needed."""
    page.locator("#word").focus()
    page.keyboard.type(word)
    for _ in range(5):
        page.keyboard.press("Enter")
        page.locator("#record.recording:focus").wait_for()
        page.locator("#record.idle:focus, #again:focus").first.wait_for()
        if page.locator("#record.idle").is_visible():
            return
    pytest.fail(f"too many bad takes: {page.locator('#verdict').inner_text()}")


def test_teach_listen_correct_reload(microphone, open_page, path):
    taught(path, "kitchen")
    speak(microphone, ["lamp"])
    page = open_page()
    teach(page, "lamp")
    assert "“lamp” is ready: 5 takes" in page.locator("#verdict").inner_text()
    kept = page.locator("#take-list li", has_not_text="Not saved")
    assert kept.count() == 5
    # The next steps: another word, or to try this one.
    page.locator("#teach-another").click()
    page.locator("#word:focus").wait_for()
    assert page.locator("#word").input_value() == ""
    assert not page.locator("#next-actions").is_visible()
    page.context.close()
    assert tapword.load(path).words == {"kitchen": 2, "lamp": 5}

    speak(microphone, ["kitchen"], gap_s=1.5)
    page = open_page()
    assert page.locator("#expected li").all_inner_texts() == ["kitchen 2 of 3 takes", "lamp"]
    page.locator("#listen-button").click()
    event = page.locator("#events li").first
    event.wait_for()
    assert event.locator(".heard").inner_text() == "kitchen"
    page.locator("#listen-button").click()
    assert page.locator("#listen-button").get_attribute("aria-pressed") == "false"

    # It can be heard first; choosing a word alone teaches nothing.
    first = page.locator("#events li").last
    page.evaluate("AudioBufferSourceNode.prototype.start = () => { window.played = true; }")
    first.get_by_label("Play what was heard as kitchen").click()
    page.wait_for_function("() => window.played")
    first.get_by_label("I said another word, not kitchen").select_option("lamp")
    assert tapword.load(path).words == {"kitchen": 2, "lamp": 5}
    first.get_by_role("button", name="Teach", exact=True).click()
    first.locator(".verdict.good, .verdict.bad").wait_for()
    assert "Learned as “lamp”" in first.inner_text()
    assert tapword.load(path).words == {"kitchen": 2, "lamp": 6}
    page.locator("#word").fill("lamp")
    assert page.locator("#take-list li").count() == 1
    first.get_by_role("button", name="Undo the correction").click()
    first.get_by_text("Undone.").wait_for()
    assert tapword.load(path).words == {"kitchen": 2, "lamp": 5}
    page.reload()
    page.locator("#word-list li").first.wait_for()
    shown = page.locator("#word-list li").all_inner_texts()
    assert [re.sub(r"\s+", " ", text).strip() for text in shown] == [
        "kitchen 2 takes, 1 more helps 0.50 fewer false alarms fewer missed words",
        "lamp 5 takes 0.50 fewer false alarms fewer missed words",
    ]


def test_the_studio_says_when_a_take_is_over(microphone, open_page, path):
    """Stop, Escape, a word that is over, and nobody speaking; while listening goes on as well."""
    taught(path, "music")
    taught(path, "lamp", takes=4)
    speak(microphone, ["lamp"])
    page = open_page()
    sent, frames = [], []
    page.on("request", lambda request: sent.append(request.url))
    page.on("websocket", lambda line: line.on("framesent", lambda sent: frames.append(sent)))
    page.reload()
    page.locator("#model:not(:empty)").wait_for()
    page.locator("#word").fill("lamp")
    page.locator("#listen-button").click()
    page.locator("#listen-button.live").wait_for()
    page.locator("#record").click()
    page.locator("#record.recording").wait_for()
    page.keyboard.press("Escape")
    page.locator("#record.idle").wait_for()
    assert page.locator("#verdict").inner_text() == ""
    page.locator("#record").click()
    page.locator("#record.recording").wait_for()
    page.locator("#record").click()
    page.locator("#record.idle, #record.judged").wait_for()
    while tapword.load(path).words["lamp"] < 6:
        page.locator("#record").click()
        page.locator("#record.recording").wait_for()
        page.locator("#record.idle, #record.judged").wait_for()
    assert page.locator("#listen-button").get_attribute("aria-pressed") == "true"
    # The sound went over the line, each chunk once; no request carried it.
    chunks = [frame for frame in frames if isinstance(frame, bytes)]
    assert len(set(chunks)) == len(chunks) > 10
    assert not [url for url in sent if "learn" in url]
    page.context.close()

    soundfile.write(microphone, np.random.default_rng(0).normal(0, 5e-4, 16_000 * 8), 16_000)
    page = open_page(viewport=PHONE)
    page.locator("#word").fill("lamp")
    page.locator("#record").click()
    page.locator("#verdict", has_text="No speech found").wait_for()
    assert not page.locator("#keep").is_visible() and page.locator("#again").is_visible()


def test_a_typed_word_will_be_heard_without_takes(open_page, path):
    taught(path, "kitchen")
    with tapword.Spotter.edit(path) as spotter:
        clip = audio.read(CLIPS / "lamp" / f"{VOICE}_0.ogg")
        spotter.learn_encoded(
            spotter.encode([clip], learning=True), ["lamp"], spoken_by=SpokenBy("kokoro")
        )
    page = open_page()
    assert page.locator("#expected li").all_inner_texts() == ["kitchen 2 of 3 takes", "lamp"]
    assert (
        "0 takes, 1 synthetic clip" in page.locator("#word-list li", has_text="lamp").inner_text()
    )
    # The options open the studio of any command in the network.
    assert page.locator("#phone-command").inner_text() == "--host 0.0.0.0 --tls-self-signed"


def test_inside_home_assistant_no_code_for_a_phone_is_offered(browser, path):
    with running(StudioModel(path), ingress=PROXY) as studio, proxied(studio.port) as below:
        context = browser.new_context()
        page = context.new_page()
        page.goto(below)
        page.locator("#model:not(:empty)").wait_for()
        assert page.locator("#more-title").is_visible()
        assert not page.locator("#phone-box").is_visible()
        context.close()


def test_a_take_of_another_word_waits_for_an_answer(microphone, open_page, path):
    taught(path, "lamp", "kitchen")
    speak(microphone, ["kitchen"])
    page = open_page()
    page.locator("#word").fill("lamp")
    page.locator("#record").click()
    page.locator("#take-actions:visible").wait_for()
    for _ in range(3):
        if "sounds like" in page.locator("#verdict").inner_text():
            break
        page.locator("#again").click()
        page.locator("#record.judged").wait_for()
    assert "Not saved yet. It sounds like “kitchen”." in page.locator("#verdict").inner_text()
    assert tapword.load(path).words == {"lamp": 2, "kitchen": 2}
    waiting = page.locator("#take-list li", has_text="sounds like")
    assert waiting.count() == 1
    # Kept from the list, it is taught; removed, it is gone again, and the focus is not lost.
    waiting.get_by_role("button", name="Keep take").click()
    page.locator("#word-list li", has_text="lamp3 takes").wait_for()
    page.locator("#take-list li", has_text="sounds like").get_by_label("Remove take").focus()
    page.keyboard.press("Enter")
    page.locator("#word-list li", has_text="lamp2 takes").wait_for()
    assert page.evaluate("document.activeElement !== document.body")
    assert tapword.load(path).words == {"lamp": 2, "kitchen": 2}


def test_everything_is_undone(microphone, open_page, path):
    """By the button and by the keyboard, and where others changed the same, that is said."""
    taught(path, "lamp", "music")
    page = open_page()
    undo = page.locator("#undo")
    assert undo.get_attribute("aria-label") == "Nothing to undo"
    page.get_by_label("Sensitivity: lamp").fill("0.7")
    page.locator("#undo[aria-label='Undo: sensitivity of “lamp”']").wait_for()
    page.get_by_role("button", name="Rename: lamp").click()
    page.get_by_label("New name").fill("light")
    page.keyboard.press("Enter")
    page.locator("#undo[aria-label='Undo: renamed “lamp” to “light”']").wait_for()
    page.locator("[data-key='rename/light']:focus").wait_for()
    page.locator("#word").fill("music")
    page.locator("#files").set_input_files(CLIPS / "music" / f"{VOICE}_1.ogg")
    page.locator("#sort-teach").click()
    page.locator("#undo[aria-label='Undo: a take of “music”']").wait_for()
    page.get_by_role("button", name="Remove take 1").click()
    page.locator("#undo[aria-label='Undo: removed a take of “music”']").wait_for()
    page.get_by_role("button", name="Forget: music").click()
    assert "You can undo this" in page.locator("#dialog-text").inner_text()
    page.get_by_role("button", name="Forget", exact=True).click()
    page.locator("#undo[aria-label='Undo: forgot “music”']").wait_for()
    assert tapword.load(path).words == {"light": 2}
    undo.click()
    page.locator("#undo[aria-label='Undo: removed a take of “music”']").wait_for()
    assert tapword.load(path).words == {"light": 2, "music": 2}
    page.keyboard.press("Control+z")
    page.locator("#undo[aria-label='Undo: a take of “music”']").wait_for()
    assert page.locator("#take-list li").count() == 1
    with tapword.Spotter.edit(path) as other:
        other.rename("light", "shine")
    undo.click()
    page.locator("#undo[aria-label='Undo: renamed “lamp” to “light”']").wait_for()
    for left in ("Undo: sensitivity of “light”", "Nothing to undo"):
        undo.click()
        page.get_by_text("“light” is not in this model").wait_for()
        page.get_by_role("button", name="OK").click()
        page.locator(f"#undo[aria-label='{left}']:focus").wait_for()
    assert tapword.load(path).words == {"shine": 2, "music": 2}


def test_a_warning_stands_with_what_was_kept(open_page, path):
    """The same word under another name, from several voices."""
    clips = {word: sorted((CLIPS / word).glob("*.ogg")) for word in ("lamp", "music", "window")}
    with tapword.Spotter.edit(path, backbone="speech_embedding", learner="ridge") as spotter:
        for word, files in clips.items():
            spotter.learn_many(files[:5], [word] * 5)
    page = open_page()
    page.locator("#word").fill("light")
    page.locator("#files").set_input_files(clips["lamp"][5:10])
    page.locator("#sort-teach").click()
    page.locator("#file-list li").last.get_by_text("recordings of").wait_for()
    warned = page.locator("#file-list li.bad").all_inner_texts()
    assert any("“light” sounds like “lamp”" in text and "Taught." in text for text in warned)
    # Each is listed, to be heard and removed.
    assert page.locator("#take-list li").count() == tapword.load(path).words["light"]


def test_that_was_wrong(microphone, open_page, path):
    taught(path, "lamp", "kitchen")
    speak(microphone, ["lamp"], gap_s=1.5)
    page = open_page()
    page.locator("#listen-button").click()
    event = page.locator("#events li").last
    event.wait_for()
    event.get_by_role("button", name="Not one of my words").focus()
    page.keyboard.press("Enter")
    event.locator(".verdict.good").wait_for()
    assert "not one of your words" in event.inner_text()
    assert tapword.load(path).words == {"lamp": 2, "kitchen": 2}
    assert tapword.load(path).vocabulary.negatives == {"lamp": 1}
    # The focus is on the way back.
    page.keyboard.press("Enter")
    event.get_by_text("Undone.").wait_for()
    assert tapword.load(path).vocabulary.negatives == {}


def test_a_word_that_was_missed_has_to_be_named(microphone, open_page, path):
    """The sound that was taken is shown and played, with undo beside it."""
    taught(path, "lamp", "kitchen")
    with tapword.Spotter.edit(path) as spotter:
        spotter.set_sensitivity(0.0)
    speak(microphone, ["lamp"], gap_s=1.5)
    page = open_page()
    page.locator("#listen-button").click()
    page.locator("#missed").wait_for()
    assert page.locator("#missed-word").input_value() == ""
    assert page.locator("#missed-button").is_disabled()
    missed_word(page, "lamp")
    page.locator("#missed-status.good", has_text="Learned another take of “lamp”").wait_for()
    assert tapword.load(path).words == {"lamp": 3, "kitchen": 2}
    assert page.locator("#missed-button").is_disabled()
    found = page.locator("#missed-found")
    said = re.search(r"This sound was taken: (\S+) s of speech, \S+ s before", found.inner_text())
    assert 0.1 < float(said[1]) < 0.6
    assert found.locator("canvas").bounding_box()["height"] > 30
    page.evaluate("AudioBufferSourceNode.prototype.start = () => { window.played = true; }")
    found.get_by_role("button", name="Play the sound").click()
    page.wait_for_function("() => window.played")
    # The same duration everywhere.
    assert f"{said[1]} s" in page.locator("#take-list li").inner_text()
    found.get_by_role("button", name="Undo").click()
    page.locator("#missed-status", has_text="Undone.").wait_for()
    assert not found.is_visible()
    assert tapword.load(path).words == {"lamp": 2, "kitchen": 2}


def test_a_doubtful_missed_word_is_asked_about(microphone, open_page, path):
    taught(path, "lamp", "kitchen")
    speak(microphone, ["kitchen"], gap_s=1.5)
    page = open_page()
    page.locator("#listen-button").click()
    missed_word(page, "lamp")
    page.locator("#missed-status", has_text="Not learned yet. It sounds like “kitchen”").wait_for()
    found = page.locator("#missed-found")
    found.get_by_role("button", name="Learn as “lamp”").wait_for()
    found.get_by_role("button", name="Do not learn").click()
    page.locator("#missed-status", has_text="Nothing was learned.").wait_for()
    assert not found.is_visible()
    assert tapword.load(path).words == {"lamp": 2, "kitchen": 2}
    missed_word(page, "lamp")
    found.get_by_role("button", name="Learn as “lamp”").click()
    page.locator("#missed-status", has_text="Learned another take of “lamp”").wait_for()
    assert tapword.load(path).words == {"lamp": 3, "kitchen": 2}
    found.get_by_role("button", name="Undo").click()
    page.locator("#missed-status", has_text="Undone.").wait_for()
    assert tapword.load(path).words == {"lamp": 2, "kitchen": 2}


def missed_word(page, word):
    """Say a word and press that it was missed, between two words."""
    page.locator("#missed").wait_for()
    page.wait_for_timeout(3000)
    page.wait_for_function("() => Number(document.getElementById('level').ariaValueNow) < -45")
    page.locator("#missed-word").select_option(word)
    page.locator("#missed-button").click()


def test_the_right_half_is_used_from_the_beginning(microphone, open_page, path):
    """What will be heard, a sound meter that sends nothing, and waveforms of the last takes."""
    speak(microphone, ["lamp"])
    page = open_page()
    assert "are listed here" in page.locator("#listen-empty").inner_text()
    frames = []
    page.on("websocket", lambda line: line.on("framesent", lambda sent: frames.append(sent)))
    page.reload()
    page.locator("#model:not(:empty)").wait_for()
    page.locator("#meter-test").click()
    page.wait_for_function(
        "() => Number(document.getElementById('level').getAttribute('aria-valuenow')) > -30"
    )
    page.get_by_role("button", name="Stop the test").click()
    page.wait_for_function(
        "() => document.getElementById('level').getAttribute('aria-valuenow') === '-60'"
    )
    assert not [frame for frame in frames if isinstance(frame, bytes)]
    assert "as a waveform" in page.locator("#takes-empty").inner_text()
    teach(page, "lamp")
    # A take that was cut off or doubtful is listed too, as not saved.
    kept = page.locator("#take-list li", has_not_text="Not saved")
    assert all(re.search(r"Take \d+, \S+ s", take) for take in kept.all_inner_texts())
    assert kept.count() == 5 and not page.locator("#takes-empty").is_visible()
    # Taller than a line of silence: the pixels of the wave in the middle column of the last take.
    tall = page.locator("#take-list canvas").first.evaluate(
        """canvas => {
          const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
          return Math.max(...Array.from({length: canvas.width}, (_, x) =>
            Array.from({length: canvas.height}, (_, y) => data[4 * (y * canvas.width + x) + 3])
              .filter(alpha => alpha > 200).length)) / canvas.height;
        }"""
    )
    assert tall > 0.5
    page.evaluate("AudioBufferSourceNode.prototype.start = () => { window.played = true; }")
    page.get_by_role("button", name="Play take 5").click()
    page.wait_for_function("() => window.played")
    page.locator("#try-now").click()
    page.locator("#listen-button.live:focus").wait_for()
    page.locator("#events li", has_text="lamp").first.wait_for()


def test_a_take_has_one_duration(microphone, open_page, path):
    """In the message that it was saved, and in the list."""
    taught(path, "lamp", takes=3)
    speak(microphone, ["lamp"])
    page = open_page()
    page.evaluate(
        """() => {
          window.said = [];
          const note = () => window.said.push(document.getElementById('verdict').textContent);
          new MutationObserver(note).observe(
            document.getElementById('verdict'), {childList: true, subtree: true});
        }"""
    )
    teach(page, "lamp")
    said = " ".join(page.evaluate("window.said"))
    [saved] = set(re.findall(r"Saved take 1 of \d: (\S+) s", said))
    kept = page.locator("#take-list li", has_not_text="Not saved")
    assert f", {saved} s" in kept.last.inner_text()


def test_headings_have_the_font_of_the_page(open_page):
    """No serif that one system has and another replaces."""
    families = open_page().evaluate(
        """() => ['body', 'h1', 'h2'].map(name =>
          getComputedStyle(document.querySelector(name)).fontFamily)"""
    )
    assert len(set(families)) == 1 and "system-ui" in families[0]


def test_lanes_are_high_enough_on_a_phone(open_page, path):
    taught(path, "lamp", "kitchen", "music")
    page = open_page(viewport=PHONE)
    page.locator("#listen-button").click()
    page.wait_for_function("() => document.getElementById('lanes').clientHeight >= 3 * 80")
    width = page.evaluate("document.getElementById('lanes').clientWidth")
    # Words are above their curves, which have the whole width.
    assert width > 300 and page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_file_with_several_takes_teaches_each(open_page, path, tmp_path):
    clips = [examine(audio.read(CLIPS / "lamp" / f"{VOICE}_{n}.ogg")).audio for n in (0, 1, 0, 1)]
    pause = np.zeros(40_000)
    sound = np.concatenate([part for clip in clips for part in (pause, clip)] + [pause])
    sound += np.random.default_rng(0).normal(0, 1e-4, len(sound))
    assert len(sound) > 10 * 16_000
    soundfile.write(tmp_path / "lamp.wav", sound, 16_000)
    page = open_page()
    page.locator("#word").fill("lamp")
    page.locator("#files").set_input_files(tmp_path / "lamp.wav")
    page.locator("#file-list li", has_text="Taught 4 recordings of “lamp”").wait_for()
    said = page.locator("#file-list").inner_text()
    assert "It contains 4 takes; each is taught." in said and "lamp.wav at 2.6 s" in said
    assert tapword.load(path).words == {"lamp": 4}
    assert page.locator("#take-list canvas").count() == 4
    page.get_by_role("button", name="Remove take 2").click()
    page.locator("#undo[aria-label='Undo: removed a take of “lamp”']").wait_for()
    assert tapword.load(path).words == {"lamp": 3}


def test_a_near_miss_is_marked_on_its_lane(microphone, open_page, path):
    """Hollow, where what was heard is filled."""
    taught(path, "lamp", "kitchen")
    soundfile.write(microphone, np.random.default_rng(0).normal(0, 5e-4, 16_000 * 8), 16_000)
    page = open_page(
        script="""
        window.WebSocket = class extends WebSocket {
          constructor(...given) { super(...given); window.line = this; }
        };"""
    )
    page.locator("#listen-button").click()
    page.locator("#listen-button.live").wait_for()
    tell = """message => {
      message.end_s = window.time_s - 4;
      message.start_s = message.end_s - 0.5;
      window.line.onmessage({data: JSON.stringify(message)});
    }"""
    # A mark is a triangle: how much of a line through its middle has the colour of its edge.
    look = """([lane, half]) => {
      const canvas = document.getElementById('lanes'), pen = canvas.getContext('2d');
      const image = pen.getImageData(0, 0, canvas.width, canvas.height);
      const accent = [11, 107, 93];
      const is = (x, y) => accent.every((value, i) =>
        Math.abs(image.data[4 * (y * canvas.width + x) + i] - value) < 40);
      const columns = Array.from({length: canvas.width}, (_, x) => x);
      return columns.filter(x => is(x, lane * 46 + half)).length;
    }"""
    page.evaluate(
        """() => { window.line.addEventListener('message', ({data}) => {
          const message = JSON.parse(data);
          if (message.type === 'scores') window.time_s = message.time_s;
        }); }"""
    )
    page.wait_for_function("() => window.time_s > 1")
    near = {"type": "near", "word": "lamp", "score": 0.41, "threshold": 0.5, "rejected": False}
    near |= {"confidence": 22}
    page.evaluate(tell, near)
    page.locator(
        "#listen-status",
        has_text="Near miss: “lamp”, 22 of 100 sure; 50 is needed (score 0.41, threshold 0.50).",
    ).wait_for()
    page.evaluate(
        tell, {"type": "event", "id": 1, "word": "kitchen", "score": 0.7, "confidence": 93}
    )
    page.locator("#events li", has_text="93 of 100 sure (score 0.70)").wait_for()
    page.wait_for_timeout(600)
    hollow, filled = (page.evaluate(look, [lane, 5]) for lane in (0, 1))
    assert 0 < hollow < filled


def test_the_focus_survives_every_action(microphone, open_page, path):
    """By the keyboard alone: after each action the focus is somewhere, not at the page's start."""
    taught(path, "lamp", "kitchen", "music")
    speak(microphone, ["kitchen"], gap_s=1.5)
    page = open_page()

    def press(target, key="Enter"):
        target.focus()
        page.keyboard.press(key)

    def has_focus(done=None):
        if done is not None:
            done.wait_for()
        page.wait_for_function("() => document.activeElement !== document.body")

    button = functools.partial(page.get_by_role, "button")
    press(page.get_by_label("Sensitivity: music"), "ArrowLeft")
    has_focus(page.locator("#undo[aria-label='Undo: sensitivity of “music”']"))
    press(page.locator("#undo"))
    has_focus(page.locator("#undo[aria-label='Nothing to undo']"))
    press(button(name="Rename: music"))
    page.keyboard.press("Escape")
    page.locator("[data-key='rename/music']:focus").wait_for()
    page.locator("#files").set_input_files([CLIPS / "lamp" / f"{VOICE}_{n}.ogg" for n in (0, 1)])
    page.locator("#sort-list input").fill("lamp")
    press(button(name=f"Leave out {VOICE}_0.ogg"))
    has_focus(page.locator("#sort-teach", has_text="Teach 1 recording of 1 word"))
    press(page.locator("#sort-teach"))
    has_focus(page.locator("#file-list li", has_text="Taught 1 recording of “lamp”"))
    page.locator("#word").fill("lamp")
    press(button(name="Remove take 1"))
    has_focus(page.locator("#undo[aria-label='Undo: removed a take of “lamp”']"))
    press(button(name="Forget: lamp"))
    page.keyboard.press("Enter")
    has_focus(page.locator("#undo[aria-label='Undo: forgot “lamp”']"))
    press(button(name="Start listening"))
    event = page.locator("#events li").last
    has_focus(event)
    event.get_by_label("I said another word").select_option("music")
    press(event.get_by_role("button", name="Teach", exact=True))
    has_focus(event.get_by_text("Learned as “music”"))
    page.keyboard.press("Enter")
    has_focus(event.get_by_text("Undone."))
    page.locator("#missed-word").select_option("kitchen")
    press(page.locator("#missed-button"))
    has_focus(page.locator("#missed-status.good, #missed-status.bad"))
    press(button(name="Stop listening"))
    has_focus(button(name="Start listening"))


def test_files_words_and_two_tabs(open_page, path):
    page, other = open_page(), open_page(viewport=PHONE)
    clips = sorted((CLIPS / "lamp").glob("flite-*.ogg"))
    page.locator("#files").set_input_files([*clips, CLIPS / "README.md"])
    # Without a word they are sorted by their names, and nothing is taught until somebody says so.
    page.locator("#sort-title:focus").wait_for()
    words = page.locator("#sort-list input")
    assert [words.nth(i).input_value() for i in range(words.count())] == [
        *("flite-awb", "flite-rms", "flite-slt", "README")
    ]
    assert page.locator("#sort-teach").inner_text() == "Teach 7 recordings of 4 words"
    assert not path.exists()
    page.get_by_role("button", name="Leave out flite-slt_0.ogg").click()
    words.nth(2).fill("")
    words.nth(1).fill("flite-awb")
    page.locator("#sort-teach", has_text="Teach 5 recordings of 2 words").click()
    page.locator("#file-list li", has_text="of “README”").wait_for()
    said = page.locator("#file-list").inner_text()
    assert said.count("Taught.") == 4, said
    assert "This browser cannot read this file" in said
    kept = tapword.load(path).words["flite-awb"]
    assert kept == 4 and list(tapword.load(path).words) == ["flite-awb"]
    # It gets a better name, on the phone.
    other.get_by_role("button", name="Rename: flite-awb").click()
    other.get_by_label("New name").fill("<b>lamp</b>")
    other.keyboard.press("Enter")
    page.locator("#word-list .name", has_text="<b>lamp</b>").wait_for()
    assert tapword.load(path).words == {"<b>lamp</b>": kept}
    page.get_by_role("button", name="Forget: <b>lamp</b>").click()
    page.get_by_role("button", name="Cancel").click()
    assert tapword.load(path).words == {"<b>lamp</b>": kept}
    page.get_by_role("button", name="Forget: <b>lamp</b>").click()
    page.get_by_role("button", name="Forget", exact=True).click()
    other.get_by_text("No words yet").wait_for()
    page.locator("#words-title:focus").wait_for()
    assert tapword.load(path).words == {}


def test_dropped_folders_name_the_words(open_page):
    """Files in a folder are of its name, however deep; those beside it have none."""
    found = open_page().evaluate(
        """async () => {
          const {dropped} = await import('/static/files.js');
          const file = name => ({isFile: true, name, file: give => give({name})});
          const folder = (name, entries) => ({isDirectory: true, name, createReader() {
            const parts = [entries.slice(0, 1), entries.slice(1), []];
            return {readEntries: give => give(parts.shift())};
          }});
          const entries = [file('a.wav'), folder('words', [
            folder('lamp', [file('1.wav'), file('2.wav')]), folder('radio', [file('1.wav')])])];
          const items = entries.map(entry => ({webkitGetAsEntry: () => entry}));
          return (await dropped({items, files: []})).map(({file, folder}) => [folder, file.name]);
        }"""
    )
    assert found == [["", "a.wav"], ["lamp", "1.wav"], ["lamp", "2.wav"], ["radio", "1.wav"]]


def test_the_link_opens_the_studio_once_and_for_all(browser, path, tmp_path):
    """From a file, as --open does; the token stays nowhere, and an old page says what to do."""
    context = browser.new_context()
    page, model = context.new_page(), StudioModel(path)
    with running(model) as studio, webbrowser_to(page), in_browser(studio.url):
        page.locator("#model:not(:empty)").wait_for()
        assert page.url == f"{studio.origin}/"
        token = studio.bearer["authorization"].partition(" ")[2]
        assert token not in page.evaluate("document.cookie + document.referrer + location.href")
        [cookie] = context.cookies()
        assert cookie["name"] == f"tapword_studio_{studio.port}" and cookie["value"] == token
        assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
        # The addresses that the browser went through: neither is the one with the token.
        history = page.context.new_cdp_session(page).send("Page.getNavigationHistory")
        assert not [entry for entry in history["entries"] if token in entry["url"]]
        page.reload()
        page.locator("#model:not(:empty)").wait_for()
        stranger = browser.new_context().new_page()
        assert stranger.goto(studio.origin).status == 403
        assert "the link that the command printed" in stranger.locator("body").inner_text()
        stranger.context.close()
        port = studio.port
    with running(model, port=port):
        page.locator("#problem", has_text="Open the new link from the terminal").wait_for()
        assert page.goto(studio.origin).status == 403
    context.close()


@contextlib.contextmanager
def webbrowser_to(page):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(webbrowser, "open", page.goto)
        yield


def test_a_slider_moves_the_sensitivity(microphone, open_page, path):
    with tapword.Spotter.edit(path) as spotter:
        for word in ("lamp", "music"):
            spotter.learn(CLIPS / word / f"{VOICE}_0.ogg", word)
    page, other = open_page(), open_page(viewport=PHONE)
    slider = page.get_by_label("Sensitivity: lamp")
    assert slider.input_value() == "0.5"
    assert "fewer missed words" in page.locator("#sensitivity-note").inner_text()
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.locator("#say", has_text="lamp: fewer missed words").wait_for(state="attached")
    # Every page shows it, and the focus stays for the next step.
    other.locator(".sensitivity output", has_text="0.55").wait_for()
    page.locator("[data-key='sensitivity/lamp']:focus").wait_for()
    assert tapword.load(path).vocabulary.sensitivities == {"lamp": 0.55}
    other.get_by_label("Sensitivity: lamp").fill("0.2")
    page.locator(".sensitivity output", has_text="0.20").wait_for()
    assert tapword.load(path).vocabulary.sensitivities == {"lamp": 0.2}
    page.get_by_label("Sensitivity: All words").fill("0.6")
    other.locator(".sensitivity output", has_text="0.60").nth(2).wait_for()
    vocabulary = tapword.load(path).vocabulary
    assert vocabulary.sensitivity == 0.6 and vocabulary.sensitivities == {}


@pytest.mark.parametrize("name", ["All words", "lamp"])
def test_a_slider_keeps_up_with_the_keyboard(open_page, path, name):
    """The page's own news, which come later, must not set it back."""
    taught(path, "lamp", "music")
    page = open_page()
    page.get_by_label(f"Sensitivity: {name}").focus()
    for _ in range(8):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(40)
    page.locator(".sensitivity output", has_text="0.90").first.wait_for()
    page.wait_for_timeout(1500)
    assert page.get_by_label(f"Sensitivity: {name}").input_value() == "0.9"
    assert tapword.load(path).vocabulary.sensitivity_of("lamp") == 0.9


def test_the_ends_of_a_slider_have_labels(open_page, path):
    taught(path, "lamp", "music")
    page = open_page()
    boxes = [
        page.locator("#word-list li").first.get_by_text(text).bounding_box()
        for text in ("fewer false alarms", "fewer missed words")
    ]
    slider = page.get_by_label("Sensitivity: lamp").bounding_box()
    middle = slider["x"] + slider["width"] / 2
    assert boxes[0]["x"] + boxes[0]["width"] < middle < boxes[1]["x"]


def test_the_map_names_words_that_nearly_coincide(open_page, path):
    """Close words, and those that only look close because a map is flat."""
    taught(path, "lamp", "music", "kitchen")
    page = open_page()
    page.locator("#map-picture svg").wait_for()
    assert page.locator("#map-lead").inner_text() == "No words are easily confused."
    row = {"x": 0.5, "y": 0, "distance": 0.9}
    points = [
        row | {"word": "lamp", "nearest": "music", "verdict": "close"},
        row | {"word": "music", "x": 0.52, "nearest": "lamp", "verdict": "close"},
        row | {"word": "kitchen", "x": -0.5, "nearest": "lamp", "verdict": "distinct"},
        row | {"word": "stop", "x": -0.51, "nearest": "lamp", "verdict": "distinct"},
    ]
    answer = {"revision": None, "points": points, "overlaps": [["kitchen", "stop"]]}
    page.route("**/api/map", lambda route: route.fulfill(json=answer))
    page.reload()
    page.locator("#map-lead", has_text="look here").wait_for()
    assert page.locator("#map-lead").inner_text() == (
        "Close, but not easily confused: music and lamp. "
        "Further apart than they look here: kitchen and stop."
    )


def test_the_name_of_a_file_keeps_its_first_letter(open_page):
    said = open_page().evaluate(
        """async () => {
          const {errorText} = await import('/static/texts.js');
          return ['text.wav is empty', 'the file is empty'].map(error => errorText({error}));
        }"""
    )
    assert said == ["text.wav is empty.", "The file is empty."]


def test_the_page_without_a_token_has_a_style(browser, path):
    page = browser.new_context().new_page()
    with running(StudioModel(path)) as studio:
        assert page.goto(studio.origin).status == 403
        styles = page.evaluate(
            "['max-width', 'font-family'].map(name => "
            "getComputedStyle(document.body).getPropertyValue(name))"
        )
    assert styles[0] != "none" and "system-ui" in styles[1]
    page.context.close()


def test_forgetting_says_what_stays(open_page, path):
    with tapword.Spotter.edit(path) as spotter:
        for word in ("lamp", "music"):
            spotter.learn(CLIPS / word / f"{VOICE}_0.ogg", word)
    page = open_page()
    page.get_by_role("button", name="Forget: music").click()
    said = page.locator("#dialog-text").inner_text()
    assert "a trace stays: how these takes varied, mixed with all others." in said
    page.get_by_role("button", name="Forget", exact=True).click()
    page.locator("#word-list:has(li:only-child)").wait_for()
    page.get_by_role("button", name="Forget: lamp").click()
    assert "Nothing of it stays" in page.locator("#dialog-text").inner_text()


def test_model_down_and_up(open_page, path, tmp_path):
    other = tmp_path / "other.tap"
    for file, word in ((path, "lamp"), (other, "music")):
        with tapword.Spotter.edit(file) as spotter:
            spotter.learn(CLIPS / word / f"{VOICE}_0.ogg", word)
    page = open_page()
    with page.expect_download() as download:
        page.get_by_role("link", name="Save the model").click()
    assert download.value.suggested_filename == "home.tap"
    assert tapword.load(download.value.path()).words == {"lamp": 1}
    for choice, words in (
        ("Add words", {"lamp": 1, "music": 1}),
        ("Replace all", {"music": 1}),
    ):
        page.locator("#model-file").set_input_files(other)
        page.get_by_text("It contains 1 word: music.").wait_for()
        page.get_by_role("button", name=choice).click()
        page.locator("#dialog").wait_for(state="hidden")
        page.locator(f"#word-list:has(li:nth-child({len(words)}):last-child)").wait_for()
        assert tapword.load(path).words == words
        if choice == "Add words":
            page.locator("#map-picture svg").wait_for()
            rows = page.locator("#map-table tr").all_text_contents()
            assert [row.startswith(word) for row, word in zip(rows, words, strict=True)]
    assert page.get_by_role("button", name="Open a model").is_visible()
    # Nobody is asked about a file that is not a model.
    page.locator("#model-file").set_input_files(CLIPS / "README.md")
    page.locator("#dialog-text:visible").wait_for()
    assert "is not a tapword model" in page.locator("#dialog-text").inner_text()
    assert not page.get_by_role("button", name="Replace all").is_visible()
    assert tapword.load(path).words == {"music": 1}


REFUSALS = {
    "NotAllowedError": "Allow it for this page",
    "NotFoundError": "No microphone found",
    "NotReadableError": "Another program is using",
}


def test_without_a_microphone(open_page):
    page = open_page()
    page.locator("#record").click()
    assert "Type the word first" in page.locator("#verdict").inner_text()
    page.locator("#word").fill("lamp")
    for name, said in REFUSALS.items():
        page.evaluate(
            "name => { navigator.mediaDevices.getUserMedia = "
            "() => Promise.reject(new DOMException('', name)); }",
            name,
        )
        page.locator("#record").click()
        page.locator("#verdict", has_text=said).wait_for()
    # As in Firefox on a machine without loudspeakers.
    page.evaluate(
        """() => {
          AudioContext.prototype.resume = () => new Promise(() => {});
          const {stream} = new MediaStreamAudioDestinationNode(new AudioContext());
          navigator.mediaDevices.getUserMedia = async () => stream;
        }"""
    )
    page.locator("#record").click()
    page.locator("#verdict", has_text="does not start audio").wait_for()
    page.evaluate("() => { delete window.AudioWorkletNode; }")
    page.locator("#record").click()
    page.locator("#verdict", has_text="lacks AudioWorklet").wait_for()


def test_a_browser_that_does_not_resample(microphone, open_page, path):
    taught(path, "lamp", takes=4)
    speak(microphone, ["lamp"])
    page = open_page(
        script="""
        window.AudioContext = class extends AudioContext {
          constructor(options) {
            if (options?.sampleRate) throw new DOMException('', 'NotSupportedError');
            super(options);
          }
        };"""
    )
    teach(page, "lamp")
    assert tapword.load(path).words == {"lamp": 5}


def test_the_worklet_resamples(open_page):
    """A tone keeps its level at any rate of the device; what 16 kHz cannot hold is gone."""
    levels = open_page().evaluate(
        """async () => {
          const levels = {};
          for (const rate of [16000, 44100, 48000]) for (const hertz of [1000, 6000, 10000]) {
            const context = new OfflineAudioContext(1, rate, rate);
            await context.audioWorklet.addModule('/static/capture.js');
            const node = new AudioWorkletNode(context, 'capture', {numberOfOutputs: 0});
            const chunks = [];
            const enough = new Promise(done => {
              node.port.onmessage = ({data}) => { if (chunks.push(data) === 12) done(); };
            });
            const tone = new OscillatorNode(context, {frequency: hertz});
            tone.connect(new GainNode(context, {gain: 0.5})).connect(node);
            tone.start();
            await context.startRendering();
            await enough;
            const samples = chunks.slice(2, -1).flatMap(chunk => [...chunk]);
            const square = samples.reduce((sum, sample) => sum + sample ** 2, 0) / samples.length;
            levels[`${rate} ${hertz}`] = Math.sqrt(square) / 32768;
          }
          return levels;
        }"""
    )
    for name, level in levels.items():
        wanted = 0 if name.endswith(" 10000") else 0.5 / np.sqrt(2)
        assert level == pytest.approx(wanted, abs=0.002), name


LONG = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen"


def test_many_words_and_a_long_one_fit(open_page, path):
    with tapword.Spotter.edit(path) as spotter:
        encoded = spotter.encode([CLIPS / "lamp" / f"{VOICE}_0.ogg"], learning=True)
        words = [LONG, "a word that is rather long for the width of a telephone"]
        words += [f"word {n}" for n in range(32)]
        spotter.learn_encoded(Encoded.concatenate([encoded] * len(words)), words)
    page = open_page(viewport=PHONE)
    page.locator("#word-list li").nth(33).wait_for()
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('button, a, input, select, canvas, svg[role]')]
          .filter(e => e.checkVisibility() && !(e.getAttribute('aria-label') || e.labels?.length
            || e.textContent.trim()))
          .map(e => e.outerHTML)"""
    )
    assert nameless == []
    for width in (320, 390, 768, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    # On a phone one listens before one scrolls through the words.
    page.set_viewport_size(PHONE)
    tops = [
        page.locator(f"#{name}").bounding_box()["y"] for name in ("teach", "listen", "words", "map")
    ]
    assert tops == sorted(tops)
    assert page.locator("#word-list").bounding_box()["height"] <= PHONE["height"]


AXE = Path(__file__).parents[2] / "build" / "axe" / "package" / "axe.min.js"


def broken_rules(page):
    """What axe-core finds: rule, and the element it is about."""
    found = page.evaluate("axe.run()")["violations"]
    return [(rule["id"], node["html"]) for rule in found for node in rule["nodes"]]


@pytest.mark.skipif(not AXE.exists(), reason="needs axe-core: make extras")
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_finds_nothing(microphone, open_page, path, colours):
    """An empty page, a full one that listens and judges, files being sorted, a dialog; a phone."""
    page = open_page(AXE.read_text(), color_scheme=colours, viewport=PHONE)
    assert broken_rules(page) == []
    taught(path, "lamp", "kitchen")
    speak(microphone, ["kitchen"])
    page = open_page(AXE.read_text(), color_scheme=colours)
    page.locator("#listen-button").click()
    page.locator("#events li").first.wait_for()
    page.locator("#files").set_input_files(sorted((CLIPS / "music").glob("flite-*.ogg")))
    page.locator("#sort-title:focus").wait_for()
    page.locator("#word").fill("lamp")
    page.locator("#record").click()
    page.locator("#take-actions:visible").wait_for()
    page.locator("#map-picture svg").wait_for()
    page.locator("summary").click()
    assert broken_rules(page) == []
    page.get_by_role("button", name="Forget: lamp").click()
    assert broken_rules(page) == []


def test_another_microphone(microphone, open_page, path):
    """The one that is chosen is opened, and whoever listens goes on with it."""
    taught(path, "lamp", "kitchen")
    speak(microphone, ["lamp"])
    page = open_page(
        script="""
        const get = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
        window.asked = [];
        navigator.mediaDevices.getUserMedia = command => {
          window.asked.push(command.audio.deviceId?.exact ?? null);
          return get({audio: true});
        };"""
    )
    page.locator("#listen-button").click()
    page.locator("#listen-button.live").wait_for()
    choices = page.locator("#microphone option")
    choices.nth(2).wait_for(state="attached")
    assert choices.nth(0).inner_text() == "System default"
    wanted = choices.nth(2).get_attribute("value")
    page.locator("#microphone").select_option(wanted)
    page.wait_for_function("() => window.asked.length === 2")
    assert page.evaluate("window.asked") == [None, wanted]
    page.locator("#events li").first.wait_for()
    assert page.locator("#listen-button").get_attribute("aria-pressed") == "true"


def test_more(browser, path):
    """The code for a phone, and files for other programs, where the studio offers them."""
    pytest.importorskip("segno", reason="needs the extra web: pip install 'tapword[web]'")
    taught(path, "lamp", "music")
    page = browser.new_context(locale="en-GB").new_page()
    exports = {"onnx": lambda spotter: ",".join(spotter.words).encode()}
    model = StudioModel(path, exports=exports)
    with running(model, host="0.0.0.0") as studio:
        page.goto(re.sub(r"//[^:]*:", "//127.0.0.1:", studio.url))
        page.locator("#phone-show").click()
        page.wait_for_function(
            "() => document.querySelector('#phone-code img')?.naturalWidth > 100"
        )
        with page.expect_download() as download:
            page.get_by_role("button", name="ONNX file").click()
        assert download.value.suggested_filename == "home.onnx"
        assert download.value.path().read_text() == "lamp,music"
        page.locator("#export-status.good", has_text="Exported home.onnx").wait_for()
        model.exports["onnx"] = refuse_to_export
        page.get_by_role("button", name="ONNX file").click()
        page.locator("#export-status.bad", has_text="Cannot be exported").wait_for()
    page.context.close()


def refuse_to_export(spotter):
    raise InputError("cannot be exported")


def test_on_this_machine_alone_there_is_no_code_for_a_phone(open_page):
    page = open_page()
    assert "--host 0.0.0.0" in page.locator("#more").inner_text()
    assert not page.locator("#phone-show").is_visible()
    assert not page.locator("#export-box").is_visible()


@pytest.mark.parametrize(
    ("locale", "language", "title", "said"),
    [
        ("de-AT", "de", "Ein Wort beibringen", "„gone“ ist nicht in diesem Modell"),
        ("fr-FR", "fr", "Apprendre un mot", "«\u00a0gone\u00a0» n"),
        ("es-ES", "en", "Teach a word", "“gone” is not in this model"),
    ],
)
def test_the_page_speaks_the_browsers_language(browser, url, path, locale, language, title, said):
    taught(path, "lamp")
    context = browser.new_context(locale=locale, viewport=PHONE)
    page = context.new_page()
    page.goto(url)
    page.locator("#word-list li").first.wait_for()
    assert page.locator("html").get_attribute("lang") == language
    assert page.locator("#teach-title").inner_text() == title
    # What the studio says is translated, too.
    text = page.evaluate(
        "import('/static/api.js').then(api => api.postJson('/api/forget', {word: 'gone'}))"
        ".catch(error => error.message)"
    )
    assert text.startswith(said)
    for width in (320, 390, 768, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


def test_every_language_says_everything(open_page):
    """The same keys, functions of as many arguments, and templates with the same parameters."""
    shapes = open_page().evaluate(
        """async () => {
          const shape = value => typeof value === 'function' ? value.length
            : Array.isArray(value) ? value.length
            : typeof value === 'object' ? Object.fromEntries(
                Object.entries(value).map(([name, one]) => [name, shape(one)]))
            : value === '' ? 'empty' : (value.match(/\\{\\w+\\}/g) ?? []).sort().join();
          const shapes = {};
          for (const language of ['en', 'de', 'fr']) {
            shapes[language] = shape((await import(`/static/${language}.js`)).default);
          }
          return shapes;
        }"""
    )
    assert shapes["en"] == shapes["de"] == shapes["fr"] and "empty" not in str(shapes)
    assert shapes["en"]["issues"].keys() == MESSAGES.keys()
    for code, params in shapes["en"]["issues"].items():
        known = set(re.findall(r"\{(\w+)", MESSAGES[code]))
        assert set(re.findall(r"\w+", params)) <= known, code
    sources = "".join(path.read_text() for path in Path(tapword.__file__).parent.rglob("*.py"))
    program = (ROOT / "site" / "try" / "program.js").read_text()
    for code in shapes["en"]["errors"]:
        assert f'"{code}"' in sources or f"'{code}'" in program, code


def test_files_are_asked_about_before_they_are_taught_as_the_word_in_the_field(open_page, path):
    """They may be named like another word, or sound like one."""
    taught(path, "lamp", "music")
    page = open_page()
    page.locator("#word").fill("lamp")
    clip = (CLIPS / "music" / f"{VOICE}_1.ogg").read_bytes()
    files = [
        {"name": name, "mimeType": "audio/ogg", "buffer": clip}
        for name in ("music_1.ogg", "take 2.ogg")
    ]
    page.locator("#files").set_input_files(files)
    page.locator("#sort-title:focus").wait_for()
    words = page.locator("#sort-list input")
    assert [words.nth(i).input_value() for i in range(2)] == ["music", "lamp"]
    shown = page.locator("#sort-list").inner_text()
    assert "Named “music”, but you typed “lamp”." in shown
    assert tapword.load(path).words == {"lamp": 2, "music": 2}
    page.locator("#sort-teach").click()
    doubted = page.locator("#file-list li", has_text="take 2.ogg")
    doubted.get_by_text("Not taught yet. It sounds like “music”.").wait_for()
    assert tapword.load(path).words == {"lamp": 2, "music": 3}
    doubted.get_by_role("button", name="Keep take 2.ogg anyway").click()
    doubted.get_by_text("Taught. It sounds like “music”.").wait_for()
    assert tapword.load(path).words == {"lamp": 3, "music": 3}
    # A name that says the same needs no question.
    clip = (CLIPS / "lamp" / f"{VOICE}_1.ogg").read_bytes()
    named = {"name": "Lamp.ogg", "mimeType": "audio/ogg", "buffer": clip}
    page.locator("#files").set_input_files([named])
    page.locator("#file-list li", has_text="Taught 1 recording of “lamp”").wait_for()
    assert tapword.load(path).words == {"lamp": 4, "music": 3}
