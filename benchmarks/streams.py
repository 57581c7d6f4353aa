"""Missed words that are inserted into running speech without a pause.

    python benchmarks/streams.py SPEECH_COMMANDS --negatives FILE ... --noise FILE ...
        [--size small] [--snr 10] [--no-augment] [--out FILE]

Models of five words learn one training clip of each of five speakers, or all training clips. They
listen at default thresholds for all test clips of their words in the first of the negatives, as
`tapword evaluate-stream` does. The models of five clips also listen to its second half with other
sensitivities, and with those that `tapword calibrate` finds in its first half; and to test clips
that are said twice, with little silence between. `--out` also writes the figures as JSON.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from tapword import Detector, Spotter, registry
from tapword.audio import align, files
from tapword.listening.calibration import calibrate
from tapword.research.datasets.base import Dataset
from tapword.research.stream_eval import evaluate_stream
from tapword.spotter.vocabulary import SENSITIVITY

SETS = (
    "marvin sheila bird house wow",
    "six bird dog four on",
    "off up tree four marvin",
    "left up six cat house",
)
FEW = 5
SENSITIVITIES = (0.4, 0.5, 0.6)
# Silence between a word and the same word again, in seconds.
GAPS_S = (0.1, 0.2, 0.3)


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("speech_commands")
    parser.add_argument("--negatives", nargs="+", required=True, metavar="FILE")
    parser.add_argument("--noise", nargs="+", required=True, metavar="FILE")
    parser.add_argument("--size", default="small")
    parser.add_argument("--snr", type=float, default=10.0, metavar="DB")
    parser.add_argument("--no-augment", action="store_true", help="teach clips without copies")
    parser.add_argument("--out", type=Path, metavar="FILE")
    options = parser.parse_args()
    dataset = registry.build("datasets", "speech_commands", root=options.speech_commands)
    augment = False if options.no_augment else None
    rows = []
    for words in SETS:
        few, all_clips = (
            taught(Spotter(size=options.size, augment=augment), dataset, words, count)
            for count in (FEW, None)
        )
        noisy = {"noise": options.noise, "snr_db": options.snr}
        for spotter, around in ((few, {}), (few, noisy), (all_clips, {})):
            rows.append(listen(spotter, dataset, options.negatives[0], around))
        rows += sensitivities(few, dataset, options.negatives[0])
        rows += twice(few, dataset)
    if options.out:
        options.out.write_text(json.dumps(rows), encoding="utf-8")


def taught(spotter: Spotter, dataset: Dataset, words: str, speakers: int | None) -> Spotter:
    """Teach a model one training clip of each of some speakers, or all clips."""
    for word in words.split():
        clips = [clip for clip in dataset.clips("train") if clip.word == word]
        if speakers:
            clips = list({clip.speaker: clip for clip in reversed(clips)}.values())
            clips = sorted(clips, key=lambda clip: str(clip.speaker))[:speakers]
        spotter.learn_many([clip.path for clip in clips], [word] * len(clips))
    return spotter


def listen(spotter: Spotter, dataset: Dataset, negative: str, around: Any) -> dict[str, Any]:
    """Print and return how many test clips of a model's words are missed in a recording."""
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


def sensitivities(spotter: Spotter, dataset: Dataset, negative: str) -> list[dict[str, Any]]:
    """Listen to the second half of a recording; its first half calibrates."""
    sound = np.concatenate(list(files.blocks(negative)))
    first, second = np.array_split(sound, 2)
    found = calibrate(spotter, [[first]])
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        half = str(Path(folder, "second_half.wav"))
        soundfile.write(half, second, files.SAMPLE_RATE)
        for value in (*SENSITIVITIES, None):
            for word in spotter.words:
                spotter.set_sensitivity(found.after[word] if value is None else value, word)
            row = listen(spotter, dataset, half, {})
            kept = ("spoken", "missed", "missed_ci", "false_alarms")
            rows.append({"sensitivity": value or "calibrated"} | {key: row[key] for key in kept})
    spotter.set_sensitivity(SENSITIVITY)
    return rows


def twice(spotter: Spotter, dataset: Dataset) -> list[dict[str, Any]]:
    """Test clips that are detected once when said once, said twice."""
    sounds = []
    for clip in dataset.clips("test"):
        if clip.word in spotter.words:
            audio = files.load(clip.path)
            begin, end = align.extent(audio)
            if events(spotter, audio[begin:end]) == [clip.word]:
                sounds.append((clip.word, audio[begin:end]))
    rows = []
    for gap_s in GAPS_S:
        gap = silence(gap_s)
        heard = [
            events(spotter, np.concatenate([sound, gap, sound])) == [word, word]
            for word, sound in sounds
        ]
        row = {
            "spoken": " ".join(spotter.words),
            "seconds_between": gap_s,
            "pairs": len(heard),
            "heard_as_two": sum(heard),
        }
        print(row, flush=True)
        rows.append(row)
    return rows


def events(spotter: Spotter, sound: np.ndarray) -> list[str]:
    """Words that are detected in a sound with a second of silence around it."""
    detector = Detector(spotter)
    stream = np.concatenate([silence(1.0), sound, silence(1.0)])
    return [event.word for event in [*detector(stream), *detector.flush()]]


def silence(seconds: float) -> np.ndarray:
    """Silence of this length."""
    return np.zeros(round(seconds * files.SAMPLE_RATE), dtype=np.float32)


if __name__ == "__main__":
    main()
