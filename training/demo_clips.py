"""Synthesise the clips of ``tapword demo``.

Every clip is one command word said by one synthetic voice, written to
``src/tapword/assets/clips/<word>/<voice>_<take>.ogg`` (16 kHz, mono, Ogg Opus). The clips that the
package ships were made on Debian 12 with espeak-ng 1.51, flite 2.2 and festival 2.5.0
(packages ``espeak-ng flite festival festvox-kallpc16k festvox-kdlpc16k``) and soundfile 0.14.0
(libsndfile 1.2.2). The engines are deterministic and the Ogg serial numbers are fixed here, so
with those versions a second run writes the same bytes.

Each voice counts as one speaker. No person's recordings are in two voices: festival's kal replaces
flite's kal16, and flite's slt replaces festival's. The espeak-ng voices are one rule-based
synthesiser with different accents and formants. The takes of a voice differ in rate, and in pitch
where the voice lets it be set (not flite's rms).

Usage: ``python training/demo_clips.py [FOLDER]``.
"""

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import soundfile as sf
import soxr
from scipy.signal import butter, sosfiltfilt

RATE = 16_000
MARGIN = 0.1  # seconds kept before and after the word
PEAK = 0.48  # the codec may overshoot it a little
RUMBLE = butter(2, 60, "highpass", fs=RATE, output="sos")  # flite's rms hums below its speech
OPUS_LEVEL = 0.93  # libsndfile's compression level, 0 (best) to 1 (smallest)
LIMIT = 2_000_000  # bytes, all clips together
OUTPUT = Path(__file__).resolve().parents[1] / "src" / "tapword" / "assets" / "clips"

WORDS = (
    "blinds", "coffee", "door", "fan", "garage", "heater", "kitchen", "lamp", "light",
    "music", "oven", "pause", "right", "stop", "timer", "up", "volume", "window",
)  # fmt: skip

# espeak-ng ignores the variant in "en-gb+f4", so its British voice goes by "en".
ESPEAK = (
    "en-us", "en-us+f2", "en-us-nyc+m7", "en+f4", "en+m2", "en-gb-x-rp+f3",
    "en-gb-scotland+m3", "en-gb-x-gbclan+m4", "en-029+f1",
)  # fmt: skip
FLITE = {"awb": 0.8, "rms": 0.65, "slt": 0.9}  # with a factor on durations: rms is slow
FESTIVAL = ("kal", "ked")
# Each take: how much longer than the voice's own pace, how much higher than its middle pitch.
TAKES = ((1.0, 1.0), (0.87, 1.15))


def espeak(voice: str, stretch: float, shift: float, folder: Path) -> None:
    """Write every word as ``folder/<word>.wav`` with espeak-ng."""
    options = ["-v", voice, "-s", f"{165 / stretch:.0f}", "-p", f"{50 * shift:.0f}"]
    for word in WORDS:
        subprocess.run(["espeak-ng", *options, "-w", folder / f"{word}.wav", word], check=True)


def flite(voice: str, stretch: float, shift: float, folder: Path) -> None:
    """Write every word as ``folder/<word>.wav`` with flite."""
    settings = [f"duration_stretch={FLITE[voice] * stretch:.3f}", f"f0_shift={shift}"]
    options = ["-voice", voice, "--setf", settings[0], "--setf", settings[1]]
    for word in WORDS:
        subprocess.run(["flite", *options, "-t", word, folder / f"{word}.wav"], check=True)


def festival(voice: str, stretch: float, shift: float, folder: Path) -> None:
    """Write every word as ``folder/<word>.wav`` with one festival process."""
    lines = [f"(voice_{voice}_diphone)", f"(Parameter.set 'Duration_Stretch {stretch})"]
    lines += [f"(set! int_lr_params (cons '(target_f0_mean {105 * shift:.1f}) int_lr_params))"]
    lines += [f'(utt.save.wave (SynthText "{w}") "{folder / w}.wav" \'riff)' for w in WORDS]
    script = folder / "words.scm"
    script.write_text("\n".join(lines))
    subprocess.run(["festival", "-b", script], check=True)


def tidy(path: Path) -> np.ndarray:
    """Return a clip at 16 kHz, with its outer silence set to the margin and its peak set."""
    samples, rate = sf.read(path)
    samples = soxr.resample(samples, rate, RATE)
    samples = sosfiltfilt(RUMBLE, samples)
    hop = RATE // 100
    frames = samples[: len(samples) // hop * hop].reshape(-1, hop)
    level = np.sqrt((frames**2).mean(axis=1))
    loud = np.flatnonzero(level > level.max() * 10 ** (-36 / 20))
    margin = round(MARGIN * RATE)
    padded = np.pad(samples, margin)
    clip = padded[loud[0] * hop : (loud[-1] + 1) * hop + 2 * margin].copy()
    fade = np.linspace(0.0, 1.0, margin // 4)
    clip[: len(fade)] *= fade
    clip[-len(fade) :] *= fade[::-1]
    return clip * (PEAK / np.abs(clip).max())


def ogg_crc(data: bytes | bytearray) -> int:
    """Return the CRC-32 of an Ogg page (polynomial 0x04c11db7, most significant bit first)."""
    crc = 0
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1) ^ (0x104C11DB7 if crc & 0x80000000 else 0)
    return crc


def encode(clip: np.ndarray) -> bytes:
    """Return the clip as Ogg Opus bytes, with the encoder's random serial number set to 1."""
    buffer = io.BytesIO()
    sf.write(buffer, clip, RATE, "OPUS", format="OGG", compression_level=OPUS_LEVEL)
    data, start = bytearray(buffer.getvalue()), 0
    while start < len(data):
        segments = data[start + 26]
        end = start + 27 + segments + sum(data[start + 27 : start + 27 + segments])
        data[start + 14 : start + 18] = (1).to_bytes(4, "little")
        data[start + 22 : start + 26] = bytes(4)
        data[start + 22 : start + 26] = ogg_crc(data[start:end]).to_bytes(4, "little")
        start = end
    return bytes(data)


def main() -> None:
    """Make every clip, check it, and print a table of the words."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=OUTPUT)
    output = parser.parse_args().folder
    made: dict[str, dict[str, bytes]] = {word: {} for word in WORDS}
    for engine, voices in ((espeak, ESPEAK), (flite, FLITE), (festival, FESTIVAL)):
        for voice in voices:
            name = f"{engine.__name__}-{voice.replace('+', '-')}"
            for take, (stretch, shift) in enumerate(TAKES):
                with tempfile.TemporaryDirectory() as folder:
                    engine(voice, stretch, shift, Path(folder))
                    for word in WORDS:
                        clip = encode(tidy(Path(folder) / f"{word}.wav"))
                        made[word][f"{name}_{take}.ogg"] = clip
    print(f"{'word':10}{'clips':>6}{'bytes':>9}{'shortest':>10}{'longest':>9}{'peak':>7}")
    bad = []
    for word, clips in made.items():
        shutil.rmtree(output / word, ignore_errors=True)
        (output / word).mkdir(parents=True)
        size, seconds, peaks = 0, [], []
        for name, data in clips.items():
            (output / word / name).write_bytes(data)
            samples = sf.read(output / word / name)[0]
            size += len(data)
            seconds.append(len(samples) / RATE)
            peaks.append(np.abs(samples).max())
            if not (0.25 <= seconds[-1] <= 1.0 and 0.3 <= peaks[-1] <= 0.6):
                bad.append(f"{word}/{name}: {seconds[-1]:.2f} s, peak {peaks[-1]:.2f}")
        low, high = min(seconds), max(seconds)
        print(f"{word:10}{len(clips):6}{size:9}{low:10.2f}{high:9.2f}{max(peaks):7.2f}")
    files = [data for clips in made.values() for data in clips.values()]
    total = sum(map(len, files))
    people = len(ESPEAK) + len(FLITE) + len(FESTIVAL)
    print(f"{len(WORDS)} words, {people} voices, {len(files)} clips, {total} bytes")
    if len(set(files)) < len(files):
        bad.append("two clips are the same")
    if total >= LIMIT:
        bad.append(f"more than {LIMIT} bytes in all")
    sys.exit("\n".join(bad) or 0)


if __name__ == "__main__":
    main()
