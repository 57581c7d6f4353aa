"""A real browser, with a microphone made of the demo's clips."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from tapword.assets import CLIPS
from tapword.audio import files as audio

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PHONE = {"width": 390, "height": 844}
VOICE = "flite-rms"
# The microphone that a page opens next is silent but for what `speak(samples)` gives it at once, so
# that a busy machine loses nothing.
SPEAKING = """() => {
  window.AudioWorkletNode = class extends AudioWorkletNode {
    get port() {
      return {set onmessage(give) {
        window.speak = samples => give({data: Int16Array.from(samples)});
      }};
    }
  };
}"""


@contextlib.contextmanager
def launched(microphone: Path) -> Iterator[Any]:
    """Start a browser that takes a file for its microphone, read anew whenever a page opens it."""
    library = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright: pip install playwright"
    )
    executable = next(filter(None, map(shutil.which, NAMES)), None)
    if executable is None:
        pytest.skip(f"needs a browser: none of {', '.join(NAMES)} is installed")
    speak(microphone, ["lamp"])
    with library.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable,
            args=[
                "--no-sandbox",
                "--use-fake-ui-for-media-stream",
                "--use-fake-device-for-media-stream",
                f"--use-file-for-fake-audio-capture={microphone}",
            ],
        )
        yield browser
        browser.close()


def speak(path, words, gap_s=0.9):
    """Put words of one voice on the microphone, over and over, in a quiet room."""
    parts = [np.zeros(round(gap_s * 16_000))]
    for word in words:
        for take in (0, 1):
            clip = audio.read(CLIPS / word / f"{VOICE}_{take}.ogg")
            parts += [0.5 * clip / np.abs(clip).max(), np.zeros(round(gap_s * 16_000))]
    samples = np.concatenate(parts)
    samples += np.random.default_rng(0).normal(0, 5e-4, len(samples))
    soundfile.write(path, samples, 16_000, subtype="PCM_16")
