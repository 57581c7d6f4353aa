"""Take screenshots of the studio, with a fake microphone that plays the demo's clips.

    python docs/pictures/studio.py

Needs Chromium and the extras `web` and `dev`.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import soundfile
from playwright.sync_api import Browser, Page, sync_playwright

from tapword import Spotter
from tapword.assets import CLIPS
from tapword.audio import files

HERE = Path(__file__).parent
WORDS = ["lamp", "music", "coffee", "window", "heater", "stop"]
# The voice at the microphone; it teaches nothing.
VOICE = "espeak-en-us"
SAID = ["lamp", "lamp", "coffee", "lamp", "music"]
PORT = 8643


def main() -> None:
    """Teach six words, open the studio, record a take, listen, and take screenshots."""
    with tempfile.TemporaryDirectory() as folder:
        model, sound = Path(folder, "home.tap"), Path(folder, "sound.wav")
        spotter = Spotter()
        for word in WORDS:
            clips = [
                path for path in sorted((CLIPS / word).glob("*_0.ogg")) if path.stem != f"{VOICE}_0"
            ]
            takes = 3 if word == "lamp" else 5
            spotter.learn_many(clips[:takes], [word] * takes)
        spotter.save(model)
        quiet = np.zeros(12_000, dtype=np.float32)
        said = [files.read(CLIPS / word / f"{VOICE}_0.ogg") for word in SAID]
        pieces = [piece for clip in said for piece in (quiet, clip)]
        hiss = np.random.default_rng(0).standard_normal(sum(map(len, pieces))) * 1e-3
        soundfile.write(sound, np.concatenate(pieces) + hiss, 16_000)
        command = [sys.executable, "-m", "tapword", "studio", str(model), "--port", str(PORT)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            while "http" not in (address := server.stdout.readline()):
                pass
            with sync_playwright() as library:
                browser = library.chromium.launch(
                    executable_path=shutil.which("chromium"),
                    args=[
                        "--no-sandbox",
                        "--use-fake-ui-for-media-stream",
                        "--use-fake-device-for-media-stream",
                        f"--use-file-for-fake-audio-capture={sound}",
                    ],
                )
                desktop = open_studio(browser, address.strip(), 1280, 1600)
                desktop.screenshot(path=HERE / "studio.png")
                phone = open_studio(browser, address.strip(), 390, 844, color_scheme="dark")
                phone.screenshot(path=HERE / "studio-phone.png")
                browser.close()
        finally:
            server.terminate()
            server.wait()


def open_studio(browser: Browser, address: str, width: int, height: int, **options: str) -> Page:
    """Open a page that listens, and record takes until one is kept."""
    size = {"width": width, "height": height}
    context = browser.new_context(permissions=["microphone"], viewport=size, **options)
    page = context.new_page()
    page.goto(address)
    page.locator("#word-list li").first.wait_for()
    page.locator("#word").fill("lamp")
    page.locator("#listen-button").click()
    page.locator("#events li").nth(2).wait_for(timeout=60_000)
    kept = page.locator("#take-list li", has_not_text="Not saved")
    while not kept.count():
        for one in page.get_by_label("Remove take").all():
            one.click()
        page.locator("#record").click()
        page.locator("#record.recording").wait_for()
        while page.locator("#record.recording").count() and not kept.count():
            page.wait_for_timeout(100)
        page.wait_for_timeout(500)
    page.evaluate("scrollTo(0, 0)")
    return page


if __name__ == "__main__":
    main()
