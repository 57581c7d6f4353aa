"""The satellites in a real browser: choose one, teach through it, put right what it heard."""

import threading
import time

import numpy as np
import pytest

import tapword
from tests.browser import PHONE, launched

pytest.importorskip("starlette", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("wyoming", reason="needs the extra wyoming: pip install 'tapword[wyoming]'")
pytest.importorskip("httpx2", reason="needs httpx2")

from tapword.listening import calibration
from tests.serve.home import PlayingSatellite, running_home
from tests.serve.ingress_proxy import PROXY, proxied
from tests.serve.test_wyoming import clip, said, teach_words


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with launched(tmp_path_factory.mktemp("microphone") / "none.wav") as browser:
        yield browser


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "home.tap"
    teach_words(path)
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
            # Soon: one that is said when the last take has just ended is still held back.
            satellite.say(np.concatenate([said([one], gap_s=0.3), np.zeros(16_000, np.int16)]))
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


def test_listen_and_calibrate_through_a_satellite(path, open_page, monkeypatch):
    monkeypatch.setattr(calibration, "MIN_SOUND_S", 3)
    with running_home(path) as home, PlayingSatellite(home.port, "127.0.0.7") as satellite:
        page = open_page(home)
        row = page.locator("#satellites li", has_text="127.0.0.7")
        # The page listens through it, and tests its meter.
        row.get_by_role("button", name="Use as microphone").click()
        row.locator("[aria-pressed=true]").wait_for()
        page.locator("#listen-button").click()
        page.locator("#listen-button[aria-pressed=true]").wait_for()
        satellite.say(said([clip("music", 11)]))
        page.locator("#events li", has_text="music").first.wait_for()
        page.locator("#listen-button").click()
        row.get_by_role("button", name="Chosen").click()
        # Calibration needs no open microphone.
        row.get_by_role("button", name="Calibrate").click()
        page.locator("#dialog").get_by_role("button", name="Start").click()
        row.get_by_text("Do not say the words now").wait_for()
        assert row.get_by_role("button", name="Finish").is_disabled()
        satellite.say(said([clip("door", n) for n in (0, 2, 4, 6)], gap_s=0.4))
        row.locator("button:enabled", has_text="Finish").click()
        row.get_by_text("Calibrated by").wait_for()
        assert "“lamp”: sensitivity 0.5" in row.inner_text()
        assert tapword.load(path).vocabulary.sensitivities
        assert page.locator("#undo").get_attribute("aria-label") == "Undo: calibration"
        page.locator("#undo").click()
        page.locator("#undo[aria-disabled=true]").wait_for()
        assert not tapword.load(path).vocabulary.sensitivities
        row.get_by_role("button", name="OK").click()
        row.get_by_role("button", name="Calibrate").wait_for()


def test_the_page_in_a_frame_of_the_phone_app(path, browser):
    """Home Assistant shows it in a frame; the app's webview gives pages no microphone."""
    with (
        running_home(path, ingress=PROXY) as home,
        PlayingSatellite(home.port, "127.0.0.7"),
        proxied(int(home.url.rpartition(":")[2])) as address,
    ):
        context = browser.new_context(viewport=PHONE, locale="en-GB")
        context.add_init_script("delete Navigator.prototype.mediaDevices")
        page = context.new_page()
        problems = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        # A page of the same origin, as Home Assistant's is.
        origin = address.partition("/api/")[0]
        frame = f'<iframe src="{address}" style="width:100%;height:95vh"></iframe>'
        page.route(
            f"{origin}/app", lambda route: route.fulfill(content_type="text/html", body=frame)
        )
        page.goto(f"{origin}/app")
        frame = page.frame_locator("iframe")
        row = frame.locator("#satellites li")
        row.get_by_role("button", name="Use as microphone").click()
        row.locator("[aria-pressed=true]").wait_for()
        frame.locator("#word").fill("door")
        frame.locator("#record").click()
        frame.locator("#record.recording").wait_for()
        frame.locator("#record").click()
        assert not problems
        context.close()


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
        # A name stays on its line, beside which there is no room for the buttons.
        name = page.locator("#satellites .name > span")
        name.evaluate("one => { one.textContent = 'Wohnzimmer' }")
        assert name.bounding_box()["height"] < 40
        context.close()
