"""Real words for training: speechocean762 (CC BY 4.0, Zhang et al.), decoded once.

    python training/ear/real.py SPEECHOCEAN WORDS.json REAL.npz [LIBSNDFILE] [RECORDING ...]

It writes `audio` and `spans`, like speak.py, of all words in words.json, and half seconds without a
label: row -1 for those of the sentences, -2 for recordings whose name begins with "calls", -3 for
other recordings. LIBSNDFILE is the path of the library on a machine without
the package soundfile.
"""

import ctypes
import json
import sys
from pathlib import Path

import numpy as np

# Most clips of one word: "the" alone would be a tenth of all.
MOST = 120


class Info(ctypes.Structure):
    """libsndfile's description of a file."""

    _fields_ = (
        ("frames", ctypes.c_int64),
        *((name, ctypes.c_int) for name in ("rate", "channels", "format", "sections", "seekable")),
    )


def decode(path: Path, library: ctypes.CDLL) -> np.ndarray:
    """Read a mono file: its samples at 16 kHz, int16."""
    info = Info()
    file = library.sf_open(str(path).encode(), 0x10, ctypes.byref(info))
    if not file or info.channels != 1 or info.rate not in (16_000, 48_000):
        raise ValueError(f"{path}: {info.channels} channels at {info.rate} Hz")
    # Files of 48 kHz have nothing above 8 kHz here: the mean of three samples is enough.
    samples = np.zeros(info.frames, np.int16)
    read = library.sf_readf_short(file, samples.ctypes.data_as(ctypes.c_void_p), info.frames)
    library.sf_close(file)
    samples = samples[:read]
    if info.rate == 48_000:
        samples = samples[: len(samples) // 3 * 3].reshape(-1, 3).mean(axis=1).astype(np.int16)
    return samples


def pieces(samples: np.ndarray, row: int, offset: int, step: int = 4_000) -> list[tuple]:
    """Half seconds of a recording with speech."""
    found = []
    for middle in range(8_000, len(samples) - 8_000, step):
        part = samples[middle - 4_000 : middle + 4_000].astype(np.float32)
        if part.std() > 300:
            found.append((offset + middle - 4_000, offset + middle + 4_000, row, 1))
    return found


def level(samples: np.ndarray, most: float = 40.0) -> np.ndarray:
    """Scale a recording to about the level of speak.py's."""
    peak = np.abs(samples.astype(np.int32)).max(initial=1)
    return (samples * min(29_000 / peak, most)).clip(-32_768, 32_767).astype(np.int16)


def main(folder: str, words: str, target: str, library: str = "", *recordings: str) -> None:
    """Decode all sentences and list their words."""
    if not library:
        import soundfile

        library = soundfile._libname if hasattr(soundfile, "_libname") else "libsndfile.so.1"
    sndfile = ctypes.CDLL(library)
    sndfile.sf_open.restype = ctypes.c_void_p
    sndfile.sf_open.argtypes = (ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p)
    sndfile.sf_readf_short.restype = ctypes.c_int64
    sndfile.sf_readf_short.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    sndfile.sf_close.argtypes = (ctypes.c_void_p,)
    rows = json.loads(Path(words).read_text("utf-8"))
    known = {
        text: row
        for row, (text, language, sounds) in enumerate(rows)
        if language == "en-us" and sounds
    }
    audio, spans, total, seen = [], [], 0, np.zeros(len(rows), int)
    for line in Path(folder, "words.jsonl").read_text("utf-8").splitlines():
        sentence = json.loads(line)
        samples = decode(Path(folder, "clips", sentence["clip"]), sndfile)
        samples = level(samples, 100.0)
        for word, start, length in sentence["words"]:
            row = known.get(word)
            if row is None or seen[row] >= MOST or not 0.12 <= length <= 1.5:
                continue
            seen[row] += 1
            first = total + round(start * 16_000)
            spans.append((first, first + round(length * 16_000), row, 1))
        spans += pieces(samples, -1, total)
        audio.append(samples)
        total += len(samples)
    for path in recordings:
        whole = decode(Path(path), sndfile)
        # Calls have many levels: scale each ten seconds to the same level.
        samples = np.concatenate(
            [level(whole[start : start + 160_000], 8.0) for start in range(0, len(whole), 160_000)]
        )
        is_call = Path(path).name.startswith("calls")
        spans += pieces(samples, -2, total) if is_call else pieces(samples, -3, total, 8_000)
        audio.append(samples)
        total += len(samples)
    # Rename it when complete: another process waits for it.
    np.savez(f"{target}.new.npz", audio=np.concatenate(audio), spans=np.array(spans, np.int64))
    Path(f"{target}.new.npz").rename(target)
    words_found = sum(row >= 0 for _, _, row, _ in spans)
    print(
        f"{words_found} real words, {np.count_nonzero(seen)} different, {total / 57_600_000:.1f} h"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
