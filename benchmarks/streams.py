"""Words that are spliced into running speech, without a pause: how many are missed.

    python benchmarks/streams.py SPEECH_COMMANDS --negatives FILE ... --noise FILE ...
        [--size small] [--snr 10] [--out FILE]

Models of five words are taught by a training clip of each of five speakers, or by all training
clips, and listen at the thresholds as they come to all test clips of their words in the first of
the negatives: `tapword evaluate-stream`, for several models. `--out` writes the figures as JSON,
too.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from tapword import Spotter, registry
from tapword.research.datasets.base import Dataset
from tapword.research.stream_eval import evaluate_stream

SETS = (
    "marvin sheila bird house wow",
    "six bird dog four on",
    "off up tree four marvin",
    "left up six cat house",
)
FEW = 5


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("speech_commands")
    parser.add_argument("--negatives", nargs="+", required=True, metavar="FILE")
    parser.add_argument("--noise", nargs="+", required=True, metavar="FILE")
    parser.add_argument("--size", default="small")
    parser.add_argument("--snr", type=float, default=10.0, metavar="DB")
    parser.add_argument("--out", type=Path, metavar="FILE")
    options = parser.parse_args()
    dataset = registry.build("datasets", "speech_commands", root=options.speech_commands)
    rows = []
    for words in SETS:
        few, all_clips = (taught(options.size, dataset, words, count) for count in (FEW, None))
        noisy = {"noise": options.noise, "snr_db": options.snr}
        for spotter, around in ((few, {}), (few, noisy), (all_clips, {})):
            rows.append(listen(spotter, dataset, options.negatives[0], around))
    if options.out:
        options.out.write_text(json.dumps(rows), encoding="utf-8")


def taught(size: str, dataset: Dataset, words: str, speakers: int | None) -> Spotter:
    """Teach a model words by one training clip of each of some speakers, or by all clips."""
    spotter = Spotter(size=size)
    for word in words.split():
        clips = [clip for clip in dataset.clips("train") if clip.word == word]
        if speakers:
            clips = list({clip.speaker: clip for clip in reversed(clips)}.values())
            clips = sorted(clips, key=lambda clip: str(clip.speaker))[:speakers]
        spotter.learn_many([clip.path for clip in clips], [word] * len(clips))
    return spotter


def listen(spotter: Spotter, dataset: Dataset, negative: str, around: Any) -> dict[str, Any]:
    """Print and give how many test clips of a model's words are missed in a recording."""
    with tempfile.TemporaryDirectory() as folder:
        for clip in dataset.clips("test"):
            if clip.word in spotter.words:
                place = Path(folder, clip.word, clip.path.name)
                place.parent.mkdir(exist_ok=True)
                shutil.copy(clip.path, place)
        found = evaluate_stream(spotter, folder, [negative], **around)
    row = {
        "spoken": " ".join(spotter.words),
        "taught": max(spotter.words.values()),
        "noise_dB": around.get("snr_db"),
        "clips": found.config.positives,
        "hours": found.hours,
        "missed": found.miss_rate,
        "missed_ci": list(found.miss_rate_ci),
        "repeats": found.repeats,
        "confusions": found.confusions,
        "false_alarms": found.false_alarms,
        "median_seconds": found.latency_s.median,
    }
    print(row, flush=True)
    return row


if __name__ == "__main__":
    main()
