"""Synthesise words on a GPU with blended voices, cut by the durations that the voice predicts.

    python training/ear/speak.py FOLDER PROCESSES SECONDS [SEED [SHARE]]

FOLDER has the output of voice.py and words.py. Each process writes `said_N.npz`: `audio` (int16,
16 kHz, in one row) and `spans` (start, stop, row of words.json, whether it has neighbours without a
pause). One launch of the network costs the same for one word as for two dozen. `spoken` is written
when all are done. Only SHARE of the words are spoken: in little time, few words many times are
better than many once.
"""

import json
import multiprocessing
import sys
import time
from pathlib import Path

import numpy as np
import torch
import voice

TOGETHER, MOST = 24, 340
# Samples at 16 kHz of one step of the predicted durations.
STEP = 400
SPACE, PAUSES = [16], ([3, 16], [4, 16], [16, 9, 16])


def work(
    folder: str, rank: int, seconds: float, seed: int, share: float, device: str = "cuda"
) -> None:
    """Synthesise until the time is up."""
    import torchaudio.functional

    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    model = voice.load(folder, device)
    styles = torch.tensor(np.load(f"{folder}/styles.npy").astype(np.float32), device=device)
    words = json.loads(Path(folder, "words.json").read_text("utf-8"))
    # Rows without phonemes are skipped: see words.py.
    rows = np.array([row for row, (_, _, sounds) in enumerate(words) if sounds])
    rows = rows[np.random.default_rng(seed).random(len(rows)) < share]
    rng = np.random.default_rng([seed, rank])
    audio, spans, total, began = [], [], 0, time.time()
    while time.time() - began < seconds:
        joined = rng.random() < 0.4
        tokens: list[int] = []
        places = []
        for row in rng.choice(rows, TOGETHER, replace=False):
            places.append((len(tokens), len(tokens) + len(words[row][2]), row))
            tokens += words[row][2] + (SPACE if joined else PAUSES[rng.integers(len(PAUSES))])
            if len(tokens) > MOST:
                break
        with torch.no_grad():
            style = blend(styles, rng)
            given = torch.tensor([[0, *tokens, 0]], device=device)
            sound, steps = model.forward_with_tokens(given, style, float(rng.uniform(0.75, 1.35)))
            sound = torchaudio.functional.resample(sound.reshape(1, -1).float(), 24_000, 16_000)
        sound = sound[0].cpu().numpy()
        if not np.isfinite(sound).all() or np.abs(sound).max() < 1e-3:
            continue
        ends = np.concatenate([[0], np.cumsum(steps.cpu().numpy().ravel())]) * STEP
        # The end of the text lengthens the last word.
        for first, last, row in places[:-1]:
            spans.append((total + ends[first + 1], total + ends[last + 1], row, joined))
        audio.append((sound / np.abs(sound).max() * 29_000).astype(np.int16))
        total += len(sound)
    np.savez(
        f"{folder}/said_{rank}.npz",
        audio=np.concatenate(audio),
        spans=np.array(spans, dtype=np.int64),
    )
    print(f"{rank}: {len(spans)} words, {total / 16_000:.0f} s of sound", flush=True)


def blend(styles: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Blend a voice from one, two or three others."""
    count = rng.choice([1, 2, 3], p=[0.2, 0.5, 0.3])
    shares = rng.dirichlet(np.full(count, 0.7))
    length = rng.integers(2, styles.shape[1])
    chosen = rng.integers(len(styles), size=count)
    return sum(float(s) * styles[k, length] for s, k in zip(shares, chosen, strict=True))[None]


def main(folder: str, processes: str, seconds: str, seed: str = "0", share: str = "1") -> None:
    """Start the processes and wait for them."""
    multiprocessing.set_start_method("spawn")
    jobs = [
        multiprocessing.Process(
            target=work, args=(folder, rank, float(seconds), int(seed), float(share))
        )
        for rank in range(int(processes))
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    Path(folder, "spoken").write_text("")


if __name__ == "__main__":
    main(*sys.argv[1:])
