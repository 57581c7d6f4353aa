"""Show the effect of a low-dimensional projection of the cohort on a device.

    python training/directions.py SPEECHOCEAN SPEECH_COMMANDS CALLS... [--test CALLS...]
        [--campaigns FILE --apart CALL...] [--backbone NAME]

SPEECHOCEAN and CALLS are as for training/whitening.py, SPEECH_COMMANDS is a folder of that data
set. For all dimensions and for several smaller numbers, it prints: bytes; the line of thresholds,
fitted to the calls as in training/cohort.py, which explains --campaigns and --apart; the figures of
training/ear/choices.py; and at the resulting thresholds for half an alarm per hour, the percentage
of missed clips of five words and alarms per hour in the calls. It uses training clips and the
calls; with --test also test clips and other calls, at the same thresholds. `reduced.PROJECTED` was
chosen by the former.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent / "ear"))
from choices import TAUGHT, TESTED, means, measure
from cohort import encode_words, fit, listen, scores_of
from places import encode, recordings
from whitening import windows

from tapword import Spotter, registry
from tapword.audio.files import SAMPLE_RATE
from tapword.spotter.cohort import Windows, unit
from tapword.spotter.thresholds import FALSE_ALARMS_PER_HOUR, LINE, Line, Tail
from tapword.spotter.whitening import shipped

COUNTS = (24, 32, 48, 64, 96)
# Words that are rare in calls: benchmarks/thresholds.py.
RARE = "marvin sheila bird wow bed cat dog happy tree house left stop".split()  # noqa: SIM905
KNOWN, DRAWS = 5, 40


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("speechocean", type=Path)
    parser.add_argument("speech_commands")
    parser.add_argument("calls", nargs="+", type=Path)
    parser.add_argument("--test", nargs="+", default=[], type=Path, metavar="CALLS")
    parser.add_argument("--campaigns", type=Path, metavar="FILE")
    parser.add_argument("--apart", nargs="+", default=[], metavar="CALL")
    parser.add_argument("--backbone", default="ear_s", metavar="NAME")
    options = parser.parse_args()
    spotter = Spotter(backbone=options.backbone, augment=False)
    whitening = shipped(options.backbone)
    assert whitening is not None and whitening.cohort is not None
    said = encode_words(spotter, options.speechocean)
    whole = unit(whitening.cohort.astype(np.float32))
    trials = {"training": ("train", options.calls), "test": ("test", options.test)}
    heard = {name: calls_of(spotter, calls) for name, (_, calls) in trials.items() if calls}
    sounds = recordings(options.calls, options.campaigns, options.apart)
    around = listen(spotter, sounds, Windows(whole), said.directions, set())
    clips = {name: clips_of(spotter, options.speech_commands, trials[name][0]) for name in heard}
    for count in (None, *COUNTS):
        one = whitening if count is None else whitening.project(count, LINE)
        assert one.cohort is not None and one.phrases is not None
        how = one.projection, one.cohort_weight, one.cohort_nearest
        cohort = Windows(one.cohort.astype(np.float32), *how)
        projection = 0 if one.projection is None else one.projection.size
        size = one.cohort.size + one.phrases.size + projection
        print(f"{count or 'all'} directions: {size:,} bytes")
        line = fit(cohort, [around], said, whitening.line)
        for name, (calls, hours) in heard.items():
            call = np.concatenate(calls)
            told = measure(clips[name], cohort, unit(call))
            missed, alarms = at_thresholds(clips[name], cohort, line, call, hours)
            print(
                f"{name}: {told}; at thresholds {missed:.1f}% missed, {alarms:.2f} alarms an hour"
            )


def calls_of(spotter: Spotter, calls: list[Path]) -> tuple[list[np.ndarray], float]:
    """Vectors of windows of each call without noise, and the total hours."""
    sounds = recordings(calls)
    heard = [encode(spotter, windows(sound)) for sound in sounds]
    hours = sum(map(len, sounds)) / SAMPLE_RATE / 3600
    return [one[~spotter.encoder.is_noise(one)] for one in heard], hours


def clips_of(spotter: Spotter, folder: str, split: str) -> dict[str, np.ndarray]:
    """Encode each word's clips as unit vectors: training clips to teach, then those to test."""
    found: dict[str, list[Path]] = {}
    dataset = registry.build("datasets", "speech_commands", root=folder)
    for part in ("train", "test"):
        most = TAUGHT if part != split else TAUGHT + TESTED
        for clip in dataset.clips(part):
            if part in ("train", split) and len(found.setdefault(clip.word, [])) < most:
                found[clip.word].append(clip.path)
    return {word: unit(spotter.encode(paths).vectors) for word, paths in found.items()}


def at_thresholds(
    clips: dict[str, np.ndarray],
    cohort: Windows,
    line: Line,
    call: np.ndarray,
    hours: float,
) -> tuple[float, float]:
    """Percentage of missed clips, and alarms per hour, of models of rare words."""
    missed, alarms = [], []
    for seed in range(DRAWS):
        words = list(np.random.default_rng(seed).choice(RARE, KNOWN, replace=False))
        directions = means(clips, words, 5, seed)
        tails = [Tail.of(column, line) for column in cohort.scores(directions).T]
        least = np.array([tail.threshold(FALSE_ALARMS_PER_HOUR / KNOWN) for tail in tails])
        for row, word in enumerate(words):
            scores = scores_of(cohort, directions, clips[word][TAUGHT:])
            said = np.where(scores >= least, scores, -9.0)
            taken = (said.argmax(axis=1) == row) & (said.max(axis=1) > -9)
            missed.append(100 * np.mean(~taken))
        heard = scores_of(cohort, directions, call) >= least
        alarms.append(heard.any(axis=1).sum() / hours)
    return float(np.mean(missed)), float(np.mean(alarms))


if __name__ == "__main__":
    main()
