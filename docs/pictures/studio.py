"""Take pictures of the studio, with a fake microphone that plays the demo's clips.

    python docs/pictures/studio.py

Screenshots, and studio.webp, which moves: the studio while it listens. Needs Chromium, ffmpeg and
the extras `web` and `dev`.
"""

import shutil
import subprocess
import sys
import tempfile
import time
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
# The film: its length, the time between frames, and the pixels of a picture in the README.
FILM_S, FRAME_S, FILM_WIDTH = 9.0, 0.2, 960


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
        # Long enough that no take is cut off by the next word.
        quiet = np.zeros(24_000, dtype=np.float32)
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
                listening = open_page(browser, address.strip(), 1280, 900)
                film(listening, Path(folder), HERE / "studio.webp")
                listening.context.close()
                desktop = open_studio(browser, address.strip(), 1280, 1600)
                desktop.screenshot(path=HERE / "studio.png")
                phone = open_studio(browser, address.strip(), 390, 844, color_scheme="dark")
                phone.screenshot(path=HERE / "studio-phone.png")
                browser.close()
        finally:
            server.terminate()
            server.wait()


def open_page(browser: Browser, address: str, width: int, height: int, **options: str) -> Page:
    """Open a page that listens, and wait until it heard some words."""
    size = {"width": width, "height": height}
    context = browser.new_context(permissions=["microphone"], viewport=size, **options)
    page = context.new_page()
    page.goto(address)
    page.locator("#word-list li").first.wait_for()
    page.locator("#word").fill("lamp")
    page.locator("#listen-button").click()
    page.locator("#events li").nth(2).wait_for(timeout=150_000)
    return page


def open_studio(browser: Browser, address: str, width: int, height: int, **options: str) -> Page:
    """Open a page that listens, and record takes until one is kept."""
    page = open_page(browser, address, width, height, **options)
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


def film(page: Page, folder: Path, target: Path) -> None:
    """Take screenshots for some seconds, and make one picture of them that repeats."""
    frames, begin = [], time.monotonic()
    while (now_s := time.monotonic() - begin) < FILM_S:
        frames.append((folder / f"{len(frames):03}.png", now_s))
        page.screenshot(path=frames[-1][0])
        page.wait_for_timeout(max(0, 1000 * (now_s + FRAME_S - (time.monotonic() - begin))))
    # A screenshot takes as long as it takes: each frame is shown until the next was taken.
    ends = [*(at_s for _, at_s in frames[1:]), FILM_S]
    parts = "".join(
        f"file '{path}'\nduration {end_s - at_s:.3f}\n"
        for (path, at_s), end_s in zip(frames, ends, strict=True)
    )
    (folder / "frames.txt").write_text(parts)
    options = f"-vf scale={FILM_WIDTH}:-2:flags=lanczos -fps_mode vfr -c:v libwebp_anim -loop 0"
    command = f"ffmpeg -loglevel error -y -f concat -safe 0 -i frames.txt {options} -quality 70"
    subprocess.run([*command.split(), target], cwd=folder, check=True)
    print(f"{target.name}: {len(frames)} frames, {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
