"""The studio and the page without a server, in Chromium, Firefox and WebKit.

One short test of each runs with all the others; `make browsers` runs every one.
"""

import base64
from collections.abc import Callable
from typing import NamedTuple

import pytest
import soundfile
import soxr

from tapword.assets import CLIPS
from tests.browser import PHONE, speak
from tests.serve.conftest import running
from tests.web.conftest import stop
from tests.webdriver import BROWSERS, Page

pytest.importorskip("starlette", reason="needs the extra web: pip install 'tapword[web]'")

from tapword.serve.studio.model import StudioModel

# The microphone that the page opens next says words, over and over, at the rate of a usual one.
SPEAK = """
const sound = Uint8Array.from(atob(given[0]), letter => letter.charCodeAt(0)).buffer;
navigator.mediaDevices.getUserMedia = async () => {
  const context = new AudioContext({sampleRate: 48000});
  const buffer = await context.decodeAudioData(sound.slice(0));
  const source = new AudioBufferSourceNode(context, {buffer, loop: true});
  const microphone = context.createMediaStreamDestination();
  source.connect(microphone);
  source.start();
  await context.resume();
  return microphone.stream;
};
"""
# Whatever is thrown in the page from here on.
NOTE_ERRORS = """
window.errors = [];
addEventListener('error', ({message}) => errors.push(message));
addEventListener('unhandledrejection', ({reason}) => errors.push(String(reason)));
"""
# Words and their takes, as the page lists them.
TAUGHT = """
return [...document.querySelectorAll('#word-list li')].map(
  li => [li.querySelector('.name').innerText, parseInt(li.querySelector('.soft').innerText)]);
"""
# Keep the bytes that the page saves as a file.
KEEP = """
const create = URL.createObjectURL;
URL.createObjectURL = blob => {
  blob.arrayBuffer().then(bytes => {
    window.saved = btoa(String.fromCharCode(...new Uint8Array(bytes)));
  });
  return create.call(URL, blob);
};
"""


class Opened(NamedTuple):
    """A page in a browser, and how to speak to its microphone."""

    page: Page
    load: Callable[..., None]
    say: Callable[[str], None]
    stop_server: Callable[[], None]

    def teach_files(self, word, count=3):
        """Teach a word by files, which are named by their voices."""
        self.write_word(word)
        self.page.choose("#files", sorted((CLIPS / word).glob("flite-*.ogg"))[:count])
        self.page.wait("!document.querySelector('#sort').hidden")
        self.page.click("#sort-teach")
        self.page.wait(
            "[...document.querySelectorAll('#file-list li')]"
            f".some(li => li.innerText.includes('of “{word}”.'))"
        )

    def write_word(self, word):
        self.page.run("document.querySelector('#word').value = ''")
        self.page.type("#word", word)

    def taught(self):
        return dict(self.page.run(TAUGHT))


@pytest.fixture(params=BROWSERS)
def page(request, tmp_path_factory):
    with BROWSERS[request.param](tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture(params=["studio", "try"])
def address(request, tmp_path):
    """Where the page lies, and what ends the program behind it."""
    if request.param == "try":
        server = request.getfixturevalue("server")
        yield f"http://127.0.0.1:{server.server_port}/try/", lambda: stop(server)
        return
    with running(StudioModel(tmp_path / "home.tap")) as studio:
        yield studio.url, lambda: setattr(studio.server, "should_exit", True)


@pytest.fixture
def opened(page, address, tmp_path):
    """Open the page; every error that it meets fails the test."""

    def load(open_page=lambda: page.open(address[0])):
        open_page()
        page.wait("document.querySelector('#model').textContent")
        page.run(NOTE_ERRORS)

    def say(word):
        speak(tmp_path / "said.wav", [word], gap_s=1.5)
        page.run(SPEAK, base64.b64encode((tmp_path / "said.wav").read_bytes()).decode())

    load()
    yield Opened(page, load, say, address[1])
    assert page.run("return window.errors") == []


def test_teach_listen_correct_reload(opened):
    page = opened.page
    for word in ("lamp", "kitchen"):
        opened.teach_files(word)
    known = opened.taught()
    assert list(known) == ["lamp", "kitchen"] and min(known.values()) > 0
    opened.say("kitchen")
    page.click("#listen-button")
    page.wait("document.querySelector('#events li')")
    assert page.text("#events li .heard") == "kitchen"
    page.click("#listen-button")
    page.wait("document.querySelector('#listen-button').ariaPressed === 'false'")
    opened.load(page.reload)
    page.wait("document.querySelector('#word-list li')")
    assert opened.taught() == known


@pytest.mark.browsers
def test_teach_by_voice(opened):
    """Five takes one after the other, each of which can be played and taken back."""
    page = opened.page
    opened.say("lamp")
    opened.write_word("lamp")
    for _ in range(5):
        page.click("#record")
        page.wait("document.querySelector('#record.recording')")
        page.wait("document.querySelector('#record.idle, #record.judged')")
        if page.run("return Boolean(document.querySelector('#record.idle'))"):
            break
    assert "“lamp” is ready: 5 takes" in page.text("#verdict")
    page.run("AudioBufferSourceNode.prototype.start = () => { window.played = true; }")
    page.click("[aria-label='Play take 2']")
    page.wait("window.played")
    page.click("[aria-label='Remove take 2']")
    page.wait("document.querySelector('#undo').ariaLabel === 'Undo: removed a take of “lamp”'")
    assert opened.taught() == {"lamp": 4}
    page.click("#undo")
    page.wait("document.querySelectorAll('#take-list li').length === 5")
    assert opened.taught() == {"lamp": 5}


@pytest.mark.browsers
def test_the_browsers_own_microphone(opened):
    """It is opened as the page asks for it, and its level is shown."""
    page = opened.page
    opened.teach_files("lamp")
    page.click("#listen-button")
    page.wait("document.querySelector('#listen-button.live')")
    page.wait("document.querySelector('#level').ariaValueNow > -40")
    assert page.text("#listen-status") == ""
    page.wait("document.querySelectorAll('#microphone option').length > 1")


@pytest.mark.browsers
def test_recordings(opened, tmp_path):
    """Each browser decodes them by its own means, at a rate that is not the core's."""
    samples, rate = soundfile.read(CLIPS / "lamp" / "flite-rms_0.ogg")
    paths = [tmp_path / f"lamp.{ending}" for ending in ("wav", "ogg", "flac", "mp3")]
    for path in paths:
        soundfile.write(path, soxr.resample(samples, rate, 44_100), 44_100)
    opened.write_word("lamp")
    opened.page.choose("#files", paths)
    opened.page.wait("document.querySelector('#file-list').innerText.includes('of “lamp”.')")
    assert "Taught 4 recordings of “lamp”." in opened.page.text("#file-list")
    assert opened.taught() == {"lamp": 4}


@pytest.mark.browsers
def test_a_file_that_is_no_recording(opened, tmp_path):
    (tmp_path / "lamp.wav").write_bytes(b"RIFF but no sound")
    opened.write_word("lamp")
    opened.page.choose("#files", [tmp_path / "lamp.wav"])
    opened.page.wait("document.querySelector('#file-list li.bad')")
    assert "cannot read this file as audio" in opened.page.text("#file-list")
    assert opened.taught() == {}


@pytest.mark.browsers
@pytest.mark.parametrize(
    ("error", "said"),
    [("NotAllowedError", "The microphone is blocked"), ("NotFoundError", "No microphone")],
)
def test_without_a_microphone(opened, error, said):
    opened.write_word("lamp")
    opened.page.run(
        "navigator.mediaDevices.getUserMedia = "
        "() => Promise.reject(new DOMException('', given[0]));",
        error,
    )
    opened.page.click("#record")
    opened.page.wait("document.querySelector('#verdict.bad')")
    assert said in opened.page.text("#verdict")


@pytest.mark.browsers
@pytest.mark.parametrize("address", ["studio"], indirect=True)
def test_the_studio_ends(opened):
    """The page says so, and keeps trying."""
    opened.stop_server()
    opened.page.wait("!document.querySelector('#problem').hidden")
    assert "does not answer" in opened.page.text("#problem")


@pytest.mark.browsers
@pytest.mark.parametrize("address", ["try"], indirect=True)
def test_without_a_network(opened):
    """Once it was open, the page needs its server no more."""
    page = opened.page
    opened.teach_files("lamp")
    known = opened.taught()
    page.wait("navigator.serviceWorker.controller !== null")
    opened.stop_server()
    opened.load(page.reload)
    page.wait("document.querySelector('#word-list li')")
    assert opened.taught() == known


@pytest.mark.browsers
@pytest.mark.parametrize("address", ["try"], indirect=True)
def test_save_and_open(opened, tmp_path):
    """What the page saves, it opens again."""
    page = opened.page
    opened.teach_files("lamp")
    known = opened.taught()
    page.run(KEEP)
    page.click("#save-model")
    saved = page.wait("window.saved")
    (tmp_path / "words.bin").write_bytes(base64.b64decode(saved))
    page.click("[data-key='forget/lamp']")
    page.click("#dialog-actions .danger")
    page.wait("!document.querySelector('#word-list li')")
    page.choose("#model-file", [tmp_path / "words.bin"])
    page.wait("document.querySelector('#dialog').open")
    page.click("#dialog-actions .primary")
    page.wait("document.querySelector('#word-list li')")
    assert opened.taught() == known


@pytest.mark.browsers
def test_it_fits(opened):
    """On a phone and on a screen, nothing is wider than the window."""
    opened.teach_files("lamp")
    for width in (390, 768, 1280):
        opened.page.resize(width, PHONE["height"])
        found = opened.page.run(
            "await new Promise(requestAnimationFrame);"
            "return [document.documentElement.scrollWidth, innerWidth]"
        )
        assert found[0] <= found[1]
