"""Take pictures of the studio, with a fake microphone that plays the demo's clips.

    python docs/pictures/studio.py

Screenshots, and studio.webp, which moves: the studio while it listens. For that the page gets sound
and time frame by frame, so that a busy machine makes the same film. Needs Chromium, ffmpeg and the
extras `web` and `dev`.
"""

import shutil
import subprocess
import sys
import tempfile
from datetime import datetime
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
# Samples of one message of the microphone. The film has a frame for every second one, and the width
# of a picture in the README.
CHUNK, CHUNK_MS, FILM_WIDTH = 1_280, 80, 960
# The film's microphone gives what `speak` says; that ends when the studio has scored it.
MICROPHONE = """
let give, scored;
window.AudioWorkletNode = class extends AudioWorkletNode {
  get port() { return {set onmessage(onChunk) { give = onChunk; }}; }
};
window.WebSocket = class extends WebSocket {
  constructor(...given) {
    super(...given);
    this.addEventListener('message', ({data}) => {
      if (typeof data === 'string' && JSON.parse(data).type === 'scores') scored?.();
    });
  }
};
window.speak = samples => new Promise(done => {
  scored = done;
  give({data: Int16Array.from(samples)});
});
"""


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
        pieces.append(np.zeros(-sum(map(len, pieces)) % (2 * CHUNK), dtype=np.float32))
        hiss = np.random.default_rng(0).standard_normal(sum(map(len, pieces))) * 1e-3
        samples = np.concatenate(pieces) + hiss
        soundfile.write(sound, samples, 16_000)
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
                film(browser, address.strip(), samples, Path(folder), HERE / "studio.webp")
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


def film(browser: Browser, address: str, samples: np.ndarray, folder: Path, target: Path) -> None:
    """Make one picture that repeats: what the page shows while it hears samples (n,) again."""
    context = browser.new_context(
        permissions=["microphone"],
        viewport={"width": 1280, "height": 900},
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.set_default_timeout(150_000)
    page.add_init_script(MICROPHONE)
    begin = datetime(2026, 11, 19, 18, 30)
    page.clock.install(time=begin)
    page.goto(address)
    page.locator("#word-list li").first.wait_for()
    page.locator("#word").fill("lamp")
    page.locator("#listen-button").click()
    page.locator("#listen-button.live").wait_for()
    page.clock.pause_at(begin.replace(minute=35))
    chunks = np.round(samples * 32_767).astype(int).reshape(-1, CHUNK).tolist()
    # The first time fills what the page shows of the last seconds.
    for number, chunk in enumerate([*chunks, *chunks]):
        page.evaluate("samples => speak(samples)", chunk)
        page.clock.run_for(CHUNK_MS)
        place = number - len(chunks)
        if place >= 0 and place % 2 == 1:
            page.screenshot(path=folder / f"{place // 2:03}.png", animations="disabled")
    context.close()
    options = f"-vf scale={FILM_WIDTH}:-2:flags=lanczos -c:v libwebp_anim -loop 0 -quality 70"
    command = f"ffmpeg -loglevel error -y -framerate 1000/{2 * CHUNK_MS} -i %03d.png {options}"
    subprocess.run([*command.split(), target], cwd=folder, check=True)
    print(f"{target.name}: {len(chunks) // 2} frames, {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
