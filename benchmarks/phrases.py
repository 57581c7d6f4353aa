"""Phrases by other people: accuracy, rejection, and detection in a stream with single words.

    python benchmarks/phrases.py PHRASES --words SPEECH_COMMANDS --negatives FILE ...
        [--draws 3] [--backbone NAME]

PHRASES has a folder of recordings for each phrase, named by their speakers. In each draw, 5 people
teach 8 phrases, and 40 others are tested on all phrases. Printed are the accuracy on taught phrases
("closed"), and how many of them are rejected where 5% and 1% of the untaught ones pass. Then five
words of SPEECH_COMMANDS are taught too, five training clips each. The 40 people's phrases and as
many test clips of the words are inserted into the negatives: misses, false alarms per hour and
latency.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from tapword import Detector, Event, Spotter, registry
from tapword.audio import files
from tapword.audio.files import SAMPLE_RATE
from tapword.errors import InputError
from tapword.research.stream_eval import TOLERANCE_S, find_positives
from tapword.research.stream_mix import SampleReader, StreamMix
from tapword.spotter.encoder import Encoded

TAUGHT, PEOPLE, TESTED = 8, 5, 40
# Words that are rare in phone calls and orders.
WORDS = ("marvin", "sheila", "bird", "wow", "happy")
FALSE_ACCEPTS = 0.05, 0.01
CHUNK = 1280


def main() -> None:
    """Print a line for each draw, and the means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_AsIs)
    parser.add_argument("phrases", type=Path)
    parser.add_argument("--words", type=Path, required=True)
    parser.add_argument("--negatives", type=Path, nargs="*", default=[])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--backbone", help="instead of size small's; speech_embedding, say")
    options = parser.parse_args()
    listener = Spotter(options.backbone)
    clips = read(listener, options.phrases)
    rows = []
    for draw in range(options.draws):
        rng = np.random.default_rng(draw)
        taught = rng.permutation(sorted({phrase for phrase, _ in clips}))[:TAUGHT]
        people = rng.permutation(sorted({person for _, person in clips}))
        spotter = Spotter(options.backbone)
        for (phrase, person), (learned, _, _) in clips.items():
            if phrase in taught and person in people[:PEOPLE]:
                spotter.learn_encoded(learned, [phrase])
        row = asked(spotter, clips, set(people[PEOPLE : PEOPLE + TESTED]))
        print(f"draw {draw}: closed %.2f%%, refused %.2f / %.2f%%" % tuple(row), flush=True)
        if options.negatives:
            row += heard(spotter, clips, people[PEOPLE : PEOPLE + TESTED], options, draw)
        rows.append(row)
    print("mean:", *(f"{one:.2f}" for one in np.mean(rows, axis=0)))


class _AsIs(argparse.RawDescriptionHelpFormatter):
    """Keep the text above as it is."""


Clips = dict[tuple[str, str], tuple[Encoded, Encoded, Path]]


def read(listener: Spotter, folder: Path) -> Clips:
    """(Phrase, person) -> the clip encoded to learn and to test, and the file."""
    found: Clips = {}
    for path in sorted(folder.glob("*/*")):
        try:
            clip = files.read(path)
            learned, encoded = listener.encode([clip], learning=True), listener.encode([clip])
        except InputError as error:
            print(f"{path.parent.name}/{path.name} is left out: {error}")
            continue
        found[path.parent.name, path.stem] = learned, encoded, path
    return found


def asked(spotter: Spotter, clips: Clips, people: set[str]) -> list[float]:
    """Percentage right, and rejected at each rate of false accepts."""
    keys = [key for key in clips if key[1] in people]
    scores = spotter.score_encoded(Encoded.concatenate([clips[key][1] for key in keys]))
    best = [max(one.words, key=lambda word: one.words[word]) for one in scores]
    score = np.array([one.words[word] for one, word in zip(scores, best, strict=True)])
    known = np.array([phrase in spotter.words for phrase, _ in keys])
    right = np.array([phrase == word for (phrase, _), word in zip(keys, best, strict=True)])
    strangers = np.sort(score[~known])[::-1]
    result = [100 * right[known].mean()]
    for share in FALSE_ACCEPTS:
        passed = right & (score > strangers[int(share * len(strangers))])
        result.append(100 * (1 - passed[known].mean()))
    return list(map(float, result))


def heard(
    spotter: Spotter, clips: Clips, people: np.ndarray, options: argparse.Namespace, draw: int
) -> list[float]:
    """Percentage missed of phrases and of words, alarms per hour, and 95% latency."""
    dataset = registry.build("datasets", "speech_commands", root=str(options.words))
    test: dict[str, list[Path]] = {word: [] for word in WORDS}
    for clip in dataset.clips("test"):
        if clip.word in test:
            test[clip.word].append(clip.path)
    for word in WORDS:
        train = [clip.path for clip in dataset.clips("train") if clip.word == word]
        spotter.learn_many(train[:5], [word] * 5)
    with tempfile.TemporaryDirectory() as folder:
        for (phrase, person), (_, _, path) in clips.items():
            if phrase in spotter.words and person in people:
                link(path, Path(folder) / phrase)
        for word, paths in test.items():
            for path in paths[:TESTED]:
                link(path, Path(folder) / word)
        positives, _ = find_positives(folder, list(spotter.words))
        mix = StreamMix(options.negatives, positives, seed=draw)
        found, seconds = listen(Detector(spotter), mix)
    hit: dict[int, float] = {}
    alarms: list[str] = []
    wrong = 0
    for event, reported_s in found:
        middle_s = (event.start_s + event.end_s) / 2
        near = [
            index
            for index, clip in enumerate(mix.placed)
            if clip.start_s - TOLERANCE_S <= middle_s <= clip.end_s + TOLERANCE_S
        ]
        right = [index for index in near if mix.placed[index].word == event.word]
        if right:
            hit.setdefault(right[0], reported_s - mix.placed[right[0]].speech_end_s)
        if not near:
            alarms.append(event.word)
        wrong += bool(near) and not right
    missed = []
    for words in (set(spotter.words) - set(WORDS), set(WORDS)):
        own = [index for index, clip in enumerate(mix.placed) if clip.word in words]
        missed.append(100 * (1 - sum(index in hit for index in own) / len(own)))
    late = [s for index, s in hit.items() if mix.placed[index].word not in WORDS]
    hours = mix.negative_s / 3600
    print(
        f"  {len(mix.placed)} clips in {hours:.2f} hours: missed phrases {missed[0]:.1f}%, words "
        f"{missed[1]:.1f}%; {len(alarms)} false alarms {alarms}, {wrong} confusions; phrases come "
        f"{np.median(late):.2f} s after their end, 95% within {np.quantile(late, 0.95):.2f} s; "
        f"{1000 * seconds / (mix.samples / SAMPLE_RATE):.0f} ms of CPU a second",
        flush=True,
    )
    return [*missed, len(alarms) / hours, float(np.quantile(late, 0.95))]


def listen(detector: Detector, mix: StreamMix) -> tuple[list[tuple[Event, float]], float]:
    """Events and their times, and seconds of CPU."""
    source, found = SampleReader(iter(mix)), []
    start = time.process_time()
    while len(chunk := source.read(CHUNK)):
        found += [(event, source.n_read / SAMPLE_RATE) for event in detector(chunk)]
    return found, time.process_time() - start


def link(path: Path, folder: Path) -> None:
    """Link a file into a folder under a unique name."""
    folder.mkdir(exist_ok=True)
    (folder / f"{len(list(folder.iterdir()))}{path.suffix}").symlink_to(path.resolve())


if __name__ == "__main__":
    main()
