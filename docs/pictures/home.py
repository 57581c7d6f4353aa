"""Take screenshots of the satellites in the studio, below the path of Home Assistant's ingress.

    PYTHONPATH=. python docs/pictures/home.py

Two satellites stream the demo's clips. Needs Chromium and the extras `web`, `wyoming` and `dev`.
"""

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright
from tests.serve.home import PlayingSatellite, running_home
from tests.serve.ingress_proxy import PROXY, proxied
from tests.serve.test_wyoming import clip, said, teach

from tapword.serve.wyoming.settings import read_clients

HERE = Path(__file__).parent
WORDS = ("lamp", "music", "heater")
WIDE, PHONE = {"width": 1280, "height": 1500}, {"width": 390, "height": 844}


def choose(page: Page, name: str) -> Any:
    """Use a satellite as the microphone; give its row."""
    row = page.locator("#satellites li", has_text=name)
    row.get_by_role("button", name="Use as microphone").click()
    row.locator("[aria-pressed=true]").wait_for()
    return row


def overview(page: Page, kitchen: PlayingSatellite, name: str) -> None:
    """Show the page while a satellite is spoken to."""
    page.locator("#entries li").first.wait_for()
    choose(page, "Kitchen")
    page.locator("#word").fill(WORDS[0])
    kitchen.say(said([clip(WORDS[0], 15)]), wait=False)
    time.sleep(1.0)
    # On a phone, the page is longer than the picture.
    page.evaluate("innerWidth < 500 && document.getElementById('home').scrollIntoView()")
    page.screenshot(path=HERE / f"{name}.png")
    page.locator("#satellites li", has_text="Kitchen").get_by_role("button", name="Chosen").click()


def teaching(page: Page, kitchen: PlayingSatellite) -> None:
    """Show the card that teaches, while takes come from a satellite."""
    row = choose(page, "Kitchen")
    page.locator("#word").fill("door")
    page.locator("#record").click()
    page.locator("#record.recording").wait_for()
    for number in (0, 2, 4):
        kitchen.say(said([clip("door", number)], gap_s=1.0))
    page.locator("#teach").screenshot(path=HERE / "home-teach.png")
    page.locator("#record").click()
    row.get_by_role("button", name="Chosen").click()
    page.locator("#undo").wait_for()


def calibrating(page: Page, living_room: PlayingSatellite) -> None:
    """Show the satellites while one is calibrated."""
    row = page.locator("#satellites li", has_text="Living room")
    row.get_by_role("button", name="Calibrate").click()
    page.locator("#dialog").get_by_role("button", name="Start").click()
    row.get_by_text("Do not say the words now").wait_for()
    living_room.say(said([clip("door", n) for n in (1, 3, 5, 7)], gap_s=0.4))
    time.sleep(1.5)
    page.locator("#satellites").screenshot(path=HERE / "home-calibrate.png")
    row.get_by_role("button", name="Cancel").click()


def main() -> None:
    """Teach, let two satellites speak, and take the screenshots."""
    clients = read_clients(["Kitchen=127.0.0.7", "Living room=127.0.0.8"])
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as library:
        path = Path(folder, "home.tap")
        teach(path, {word: [clip(word, n) for n in range(0, 10, 2)] for word in WORDS})
        browser = library.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        with (
            running_home(path, clients, ingress=PROXY) as home,
            proxied(int(home.url.rpartition(":")[2])) as address,
        ):
            page = browser.new_page(viewport=WIDE)
            page.goto(address)
            page.locator("#home").screenshot(path=HERE / "home-none.png")
            page.close()
            with (
                PlayingSatellite(home.port, "127.0.0.7") as kitchen,
                PlayingSatellite(home.port, "127.0.0.8") as living_room,
            ):
                for word in WORDS:
                    kitchen.say(said([clip(word, 11)]))
                both = [clip(WORDS[0], 13), clip("door", 3)]
                living_room.say(said(both))
                time.sleep(3)
                for name, size in (("home", WIDE), ("home-phone", PHONE)):
                    page = browser.new_page(viewport=size)
                    page.goto(address)
                    overview(page, kitchen, name)
                    if name == "home":
                        page.locator("#entries").screenshot(path=HERE / "home-list.png")
                        calibrating(page, living_room)
                        teaching(page, kitchen)
                    page.close()
        browser.close()


if __name__ == "__main__":
    main()
