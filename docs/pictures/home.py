"""Take screenshots of the satellites in the studio, below the path of Home Assistant's ingress.

    PYTHONPATH=. python docs/pictures/home.py

Two satellites stream the demo's clips. Needs Chromium and the extras `web`, `wyoming` and `dev`.
"""

import shutil
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright
from tests.serve.home import PlayingSatellite, running_home
from tests.serve.ingress_proxy import PROXY, proxied
from tests.serve.test_wyoming import clip, said, teach

from tapword.serve.wyoming.settings import read_clients

HERE = Path(__file__).parent
WORDS = ("lamp", "music", "heater")


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
            PlayingSatellite(home.port, "127.0.0.7") as kitchen,
            PlayingSatellite(home.port, "127.0.0.8") as living_room,
        ):
            for word in WORDS:
                kitchen.say(said([clip(word, 11)]))
            living_room.say(said([clip(WORDS[0], 13), clip("door", 3)]))
            time.sleep(3)
            for name, width, height in (("home", 1280, 1500), ("home-phone", 390, 844)):
                page = browser.new_page(viewport={"width": width, "height": height})
                page.goto(address)
                page.locator("#entries li").first.wait_for()
                row = page.locator("#satellites li", has_text="Kitchen")
                row.get_by_role("button", name="Use as microphone").click()
                row.locator("[aria-pressed=true]").wait_for()
                page.locator("#word").fill(WORDS[0])
                kitchen.say(said([clip(WORDS[0], 15)]), wait=False)
                time.sleep(1.0)
                page.evaluate(
                    "innerWidth < 500 && document.getElementById('home').scrollIntoView()"
                )
                page.screenshot(path=HERE / f"{name}.png")
                page.close()
        browser.close()


if __name__ == "__main__":
    main()
