"""Sounds that several tests are made of: clips of the demo, silence, noise."""

import numpy as np

from tapword.assets import CLIPS
from tapword.audio import endpoint, files

RATE = files.SAMPLE_RATE
VOICES = sorted({path.stem.rpartition("_")[0] for path in CLIPS.glob("*/*.ogg")})
TAUGHT, ASKED = VOICES[::2], VOICES[1::2]


def clip(word, voice):
    return files.read(CLIPS / word / f"{voice}_0.ogg")


def silence(seconds):
    return np.zeros(round(seconds * RATE), dtype=np.float32)


def noise(seconds, level=0.003, seed=0):
    rng = np.random.default_rng(seed)
    return level * rng.standard_normal(round(seconds * RATE), dtype=np.float32)


def padded(sound):
    return np.concatenate([silence(0.5), sound, silence(0.5)])


def in_a_row(sounds, pause_s, level=1e-4):
    """Sounds with pauses before, between and after them, in faint noise."""
    pause = silence(pause_s)
    sound = np.concatenate([part for one in sounds for part in (pause, one)] + [pause])
    return (sound + noise(len(sound) / RATE, level)).astype(np.float32)


def speech(word, voice):
    """A clip without the silence around its word."""
    sound = padded(clip(word, voice))
    take = endpoint.examine(sound)
    return sound[round(take.start_s * RATE) : round(take.end_s * RATE)]


def samples(sound):
    """Sound as a pipe carries it: 16-bit samples."""
    return (sound * 32767).astype("<i2").tobytes()
