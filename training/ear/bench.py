"""Time a training step and its parts.

    python training/ear/bench.py FOLDER CHECKPOINT [DEVICE]

FOLDER has mel.npz and embedding_model.onnx; the audio is noise. DEVICE is cuda or cpu.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from noises import Noises
from rooms import cut, extents, hide, isolate, spoil
from teachers import TARGET
from train import SHARES, SIZES, Training


class Stand:
    """A corpus of random audio and random words."""

    def __init__(self, device: str, samples: int = 400_000_000, words: int = 200_000):
        self.audio = torch.randint(-9_000, 9_000, (samples,), dtype=torch.int16, device=device)
        start = torch.randint(50_000, samples - 100_000, (words,), device=device)
        length = torch.randint(5_000, 16_000, (words,), device=device)
        label = torch.randint(0, 17_763, (words,), device=device)
        self.spans = torch.stack([start, start + length, label, label * 0], 1)
        self.lessons = torch.randn(words, TARGET, device=device).half()
        self.lesson = torch.arange(words, device=device)

    def draw(self, kind: str, count: int) -> tuple[torch.Tensor, int]:
        """Positions of `count` words, and how many of them have a label."""
        free = round(count * (SHARES["sentences"] + SHARES["calls"]))
        rows = torch.randint(len(self.spans), (count,), device=self.audio.device)
        return rows, count - free if kind == "word" else count


def timed(name: str, function: Callable, *given: Any, times: int = 10) -> Any:
    """Run a function and print its milliseconds."""
    cuda = torch.cuda.is_available()
    for _ in range(2 if cuda else 1):
        result = function(*given)
    if cuda:
        torch.cuda.synchronize()
    began = time.time()
    for _ in range(times):
        function(*given)
    if cuda:
        torch.cuda.synchronize()
    print(f"{name}: {(time.time() - began) / times * 1e3:.2f} ms", flush=True)
    return result


def main(folder: str, checkpoint: str, device: str = "cuda") -> None:
    """Time a step on words and its parts."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    cuda = device == "cuda"
    training = Training(folder, 17_763, device, checkpoint)
    training.corpus = Stand(device) if cuda else Stand(device, 2_000_000, 500)  # type: ignore[assignment]
    training.noises = Noises(device) if cuda else Noises(device, 64, 32)
    timed("noises", training.noises.refresh, training.corpus.audio, times=1)
    training.noises.fill(training.corpus.audio)
    length, size, _ = SIZES["word"]
    size, times = (size, 10) if cuda else (32, 1)
    timed("step", training.step, "word", size, times=times)
    if cuda:
        training.record("word")
        timed("step, replayed", training.go, "word", times=20)
    corpus = training.corpus
    spans = corpus.spans[corpus.draw("word", size)[0]]
    with torch.no_grad():
        clean, start, stop = timed("cut", cut, corpus.audio, spans, length, times=times)
        timed("isolate", isolate, clean, start, stop, 0.6, times=times)
        mel = timed("teacher's mel", training.teacher_mel, clean, times=times)
        timed("teacher", training.teach, mel, times=times)
        spoilt = timed("spoil", spoil, clean, start, stop, training.noises, times=times)
        timed("extents", extents, spoilt, start, stop, True, times=times)
        seen = hide(timed("mel", training.mel, spoilt, times=times))

    def both(hear: Callable) -> None:
        with torch.autocast(device, torch.bfloat16, enabled=cuda):
            hidden = hear(seen)
        hidden.float().square().mean().backward()

    timed("ear, there and back", both, training.hear, times=times)
    timed("ear by convolutions", both, training.ear.hidden, times=times)


if __name__ == "__main__":
    main(*sys.argv[1:])
