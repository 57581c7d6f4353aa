"""Clips per second of the paper's six backbones, and the cost of pooling and slda.

    python benchmarks/torch_backbones.py [--device cuda] [--seconds 5] [--json FILE] [NAMES...]

Random weights, clips of 1 s. For each backbone and precision, in one run: the network alone on the
device; `frames_many` with frames copied back to numpy; vectors pooled by `avg` and by `tap`, on the
device if it is a GPU; and everything with one exact batch update of `slda` on the CPU. Batches run
in several threads, so the device works while the CPU copies.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import threadpoolctl
import torch
from rich.console import Console
from rich.table import Table

from tapword import registry
from tapword.spotter.encoder import pool_audio

NAMES = (
    "wav2vec2_base",
    "wav2vec2_large",
    "hubert_base",
    "hubert_large",
    "hubert_xlarge",
    "emformer_base",
)
BATCH = 128
# As in `evaluate`, a learner learns thousands of vectors at a time.
BATCHES = 24
WORDS = 35


def rate(call: Callable[[], int], seconds: float) -> float:
    """Clips per second of a call that returns its number of clips; warmed up once."""
    call()
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        done += call()
    return done / (time.perf_counter() - start)


def measure(name: str, device: str, half: bool, seconds: float, jobs: int) -> dict:
    backbone = registry.build("backbones", f"{name}:weights=random,device={device}", half=half)
    clips = np.random.default_rng(0).normal(scale=0.1, size=(BATCH, 16_000)).astype(np.float32)
    audios = list(clips)
    network, on_device = backbone.network, torch.from_numpy(clips).to(device)
    part = BATCH if half and device != "cpu" else 32

    def alone() -> int:
        with torch.inference_mode(), backbone._settings(torch, torch.device(device)):
            for start in range(0, BATCH, part):
                backbone._run(network, on_device[start : start + part])
        if device != "cpu":
            torch.cuda.synchronize()
        return BATCH

    def road(pooling: str | None, learner: str | None) -> Callable[[], int]:
        pool = registry.build("poolings", pooling) if pooling else None
        made = registry.build("learners", learner) if learner else None
        words = [f"word{index % WORDS}" for index in range(BATCHES * BATCH)]

        def batch(_: int) -> list[np.ndarray]:
            if pool is None:
                backbone.frames_many(audios)
                return []
            return pool_audio(backbone, [[pool]], audios, learning=True)

        def call() -> int:
            with ThreadPoolExecutor(jobs) as threads:
                vectors = [one for found in threads.map(batch, range(BATCHES)) for one in found]
            if made is not None:
                made.learn_many(np.concatenate(vectors), words)
            return BATCHES * BATCH

        return call

    rates = {
        "network": rate(alone, seconds),
        "frames": rate(road(None, None), seconds),
        "avg": rate(road("avg", None), seconds),
        "tap": rate(road("tap", None), seconds),
        "tap_slda": rate(road("tap", "slda"), seconds),
    }
    return {
        "backbone": name,
        "device": torch.cuda.get_device_name() if device != "cpu" else "cpu",
        "precision": "fp16" if half and device != "cpu" else "fp32",
        **rates,
        "tap_share": 100 * (1 - rates["tap"] / rates["frames"]),
        "slda_share": 100 * (1 - rates["tap_slda"] / rates["tap"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--jobs", type=int, default=min(8, os.cpu_count() or 1))
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the records there")
    options = parser.parse_args()
    columns = ("network", "frames", "avg", "tap", "tap_slda")
    table = Table("backbone", "precision", *columns, "tap %", "slda %", title="clips per second")
    records = []
    with threadpoolctl.threadpool_limits(4):
        for name in options.names:
            for half in (True, False) if options.device != "cpu" else (False,):
                record = measure(name, options.device, half, options.seconds, options.jobs)
                records.append(record)
                print(json.dumps(record), flush=True)
                table.add_row(
                    name,
                    record["precision"],
                    *(f"{record[key]:,.0f}" for key in columns),
                    f"{record['tap_share']:.1f}",
                    f"{record['slda_share']:.1f}",
                )
                torch.cuda.empty_cache()
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps(records, indent=2))


if __name__ == "__main__":
    main()
