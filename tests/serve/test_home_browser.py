"""The satellites in a real browser: choose one, teach through it, put right what it heard."""

import threading
import time

import pytest

import tapword
from tests.browser import launched

pytest.importorskip("starlette", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("wyoming", reason="needs the extra wyoming: pip install 'tapword[wyoming]'")
pytest.importorskip("httpx2", reason="needs httpx2")

from tests.serve.home import PlayingSatellite, running_home
from tests.serve.test_wyoming import clip, said, teach


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with launched(tmp_path_factory.mktemp("microphone") / "none.wav") as browser:
        yield browser


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "home.tap"
    teach(path, {word: [clip(word, n) for n in range(0, 10, 2)] for word in ("lamp", "music")})
    return path


@pytest.fixture
def open_page(browser):
    contexts, errors = [], []

    def open_page(home, **options):
        # No microphone is allowed: the satellite is all there is.
        context = browser.new_context(reduced_motion="reduce", locale="en-GB", **options)
        contexts.append(context)
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        token = home.bearer["authorization"].removeprefix("Bearer ")
        page.goto(f"{home.url}/?token={token}")
        page.locator("#home:visible").wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not errors


def microphones(home):
    [satellite] = home.home.satellites.all.values()
    return list(satellite.microphones.values())


def keep_saying(home, satellite, clips, end):
    """Say clips while takes are recorded, with a pause after each."""
    while not end.is_set():
        for one in clips:
            # A take that waits for a decision is over.
            while not any(one.listener.recording for one in microphones(home)) and not end.is_set():
                time.sleep(0.05)
            satellite.say(said([one], gap_s=1.0))
            if end.is_set():
                return


def test_teach_through_a_satellite_and_correct_what_it_heard(path, open_page):
    with running_home(path) as home:
        page = open_page(home)
        assert "No satellite sends sound" in page.locator("#home-lead").inner_text()
        with PlayingSatellite(home.port, "127.0.0.7") as satellite:
            row = page.locator("#satellites li", has_text="127.0.0.7")
            row.get_by_role("button", name="Rename").click()
            page.locator("#dialog-input").fill("Kitchen")
            page.keyboard.press("Enter")
            row = page.locator("#satellites li", has_text="Kitchen")
            row.get_by_role("button", name="Use as microphone").click()
            row.locator("[aria-pressed=true]").wait_for()
            assert page.locator("#microphone").input_value() == "satellite:1"
            page.locator("#word").fill("door")
            page.locator("#record").click()
            end = threading.Event()
            clips = [clip("door", n) for n in range(0, 10, 2)]
            saying = threading.Thread(target=keep_saying, args=(home, satellite, clips, end))
            page.locator("#record.recording").wait_for()
            assert "Its sound goes to an open page" in row.inner_text()
            saying.start()
            try:
                for _ in range(8):
                    page.locator("#record.idle, #again:visible").first.wait_for()
                    if page.locator("#record.idle").is_visible():
                        break
                    page.locator("#again").click()
            finally:
                end.set()
                saying.join()
            assert "“door” is ready" in page.locator("#verdict").inner_text()
            assert tapword.load(path).words["door"] == 5
            assert satellite.detections == []
            row.get_by_text("Is being taught").wait_for(state="detached")
            # The word that was taught is detected, and then put right.
            satellite.say(said([clip("door", 11)]))
            entry = page.locator("#entries li:not(.near)", has_text="door").first
            assert "of 100 sure (score 0." in entry.inner_text()
            entry.get_by_role("button", name="Not one of my words").click()
            entry.get_by_text("Taught as not “door”").wait_for()
            assert [one.name for one in satellite.detections] == ["door"]
            assert tapword.load(path).vocabulary.negatives == {"door": 1}
            assert "ms after the end of a word" in row.inner_text()
            page.locator("#undo").click()
            entry.get_by_role("button", name="Not one of my words").wait_for()
            # With sound, where that is switched on.
            page.get_by_label("Keep the sound").check()
            time.sleep(0.3)
            satellite.say(said([clip("music", 11)]))
            heard = page.locator("#entries li", has_text="music").first
            heard.locator("button[data-key^=sound]").wait_for()
            heard.locator("select").select_option("lamp")
            heard.get_by_role("button", name="Teach").click()
            heard.get_by_text("Learned as “lamp”").wait_for()
        page.get_by_text("No satellite sends sound").wait_for()


@pytest.mark.parametrize("language", ["de-DE", "fr-FR"])
def test_the_list_in_other_languages_fits_a_phone(path, open_page, browser, language):
    with running_home(path) as home, PlayingSatellite(home.port, "127.0.0.7") as satellite:
        context = browser.new_context(locale=language, viewport={"width": 360, "height": 800})
        page = context.new_page()
        token = home.bearer["authorization"].removeprefix("Bearer ")
        page.goto(f"{home.url}/?token={token}")
        page.locator("#satellites li").wait_for()
        satellite.say(said([clip("lamp", 11)]))
        page.locator("#entries li").first.wait_for()
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 360
        assert "undefined" not in page.locator("#home").inner_text()
        context.close()
