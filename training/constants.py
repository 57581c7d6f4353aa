"""Measure the constants of the encoder on real recordings.

    python training/constants.py DIR SPEECHOCEAN

DIR is a folder of Speech Commands with `_background_noise_`; SPEECHOCEAN is the folder for
training/whitening.py. For the preset small, it prints the cosines to white noise of noise
recordings, of words and of words in noise at 10 dB (`encoder.NOISE_COSINE` is between them), and
the accuracy with a few clips a word for several factors on the diagonal of the whitening's
covariance (`whitening.DIAGONAL`). For small and medium, it prints how wide the scale of confidences
is (`thresholds.CONFIDENCE_SLOPES`). For medium and large, it prints how much higher right words
score by all backbones than by the first (`scorer.REST_SCORE`).
"""

import argparse
import itertools
from pathlib import Path

import numpy as np
from places import encode
from speechocean import tokens

from tapword import Spotter, registry
from tapword.audio import files
from tapword.audio.align import align
from tapword.audio.files import SAMPLE_RATE
from tapword.spotter.cohort import unit
from tapword.spotter.encoder import group_lengths
from tapword.spotter.whitening import Whitening, join, vector_kind

SNR_DB = 10.0
WORDS, SAMPLES, TESTED = 10, 5, 20
DIAGONALS, SHOTS = (1.0, 1.5, 2.0, 3.0, 4.0), (1, 5)
TOKENS = 4000


def main() -> None:
    """Print all of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("speechocean")
    options = parser.parse_args()
    clips: dict[str, list[np.ndarray]] = {}
    for clip in registry.build("datasets", "speech_commands", root=options.folder).clips("train"):
        if len(clips.setdefault(clip.word, [])) < SAMPLES + TESTED:
            clips[clip.word].append(files.read(clip.path))
    noises = {
        path.stem: _seconds(path)
        for path in sorted(Path(options.folder, "_background_noise_").glob("*.wav"))
    }
    noise_cosines(clips, noises)
    diagonals(clips, options.speechocean)
    for size in ("small", "medium"):
        confidence_width(size, clips)
    for size in ("medium", "large"):
        rest_scores(size, clips)


def noise_cosines(clips: dict[str, list[np.ndarray]], noises: dict[str, list[np.ndarray]]) -> None:
    """Print how close to white noise recordings of noise and of words are."""
    spotter = Spotter()
    white = np.random.default_rng(0).standard_normal(SAMPLE_RATE, dtype=np.float32) * 0.05
    [direction] = encode(spotter, [white])
    direction /= np.linalg.norm(direction)

    def show(name: str, sounds: list[np.ndarray]) -> None:
        vectors = encode(spotter, [align(sound, 1.0) for sound in sounds])
        cosines = vectors @ direction / np.linalg.norm(vectors, axis=1)
        low, median, high = np.quantile(cosines, (0.02, 0.5, 0.98))
        print(f"{name:22} 2% below {low:.2f}, median {median:.2f}, 2% above {high:.2f}")

    for name, sounds in noises.items():
        show(name, sounds)
    words = [clip for some in clips.values() for clip in some]
    show("words", words)
    rng = np.random.default_rng(0)
    everything = [sound for sounds in noises.values() for sound in sounds]
    noisy = []
    for word in words:
        noise = everything[rng.integers(len(everything))][: len(word)]
        word = word[: len(noise)]
        factor = np.sqrt(np.mean(word**2) / np.mean(noise**2)) * 10 ** (-SNR_DB / 20)
        noisy.append(word + noise * np.float32(factor))
    show(f"words at {SNR_DB:g} dB", noisy)


def diagonals(clips: dict[str, list[np.ndarray]], speechocean: str) -> None:
    """Print the accuracy with a few clips a word for several factors on the diagonal."""
    plain = Spotter(*Spotter("speech_embedding").encoder.parts[0], "ncm", align=True)
    others = list(itertools.islice(tokens(Path(speechocean)), TOKENS))
    X = encode(plain, [token.alone for token in others])
    groups = group_lengths(*plain.encoder.parts[0])
    about = vector_kind(*plain.encoder.parts[0], align=True) | {"source": "trial"}
    vectors = {word: plain.encode(some).vectors for word, some in clips.items()}
    for diagonal in DIAGONALS:
        whitening = Whitening.fit(X, [token.word for token in others], groups, about, diagonal)
        shares = []
        for shots in SHOTS:
            right = []
            for start in range(0, SAMPLES + TESTED, shots)[:5]:
                learner = registry.build("learners", "cosine:prior=shipped,covariance=full")
                tested, truth = [], []
                for word, found in vectors.items():
                    found = join([found], [whitening])
                    taught = np.arange(start, start + shots) % len(found)
                    learner.learn_many(found[taught], [word] * shots)
                    tested.append(np.delete(found, taught, axis=0))
                    truth += [word] * len(tested[-1])
                answers = learner.predict(np.concatenate(tested))
                right.append(np.mean([a == b for a, b in zip(answers, truth, strict=True)]))
            shares.append(100 * np.mean(right))
        shown = ", ".join(f"{share:.1f}% at {n}" for n, share in zip(SHOTS, shares, strict=True))
        print(f"diagonal {diagonal:g} times: {shown} clips a word")


def confidence_width(size: str, clips: dict[str, list[np.ndarray]]) -> None:
    """Print the width of a logistic regression between right words and the nearest other words.

    Its variable is the score less the threshold, and its middle is the threshold. Other words are
    those that are not taught; both kinds weigh the same.
    """
    spotter = Spotter(size=size)
    taught = sorted(clips)[:WORDS]
    for word in taught:
        spotter.learn_many(clips[word][:SAMPLES], [word] * SAMPLES)
    thresholds, right, others = spotter.thresholds(), [], []
    for word, some in clips.items():
        for scores in spotter.score_encoded(spotter.encode(some[SAMPLES:])):
            above = {name: score - thresholds[name] for name, score in scores.words.items()}
            if word in above:
                right.append(above[word])
            else:
                others.append(max(above.values()))
    slope = spotter.encoder.line.slope
    widths = np.linspace(0.5, 5, 91) * slope
    losses = [
        np.logaddexp(0, -np.array(right) / width).mean()
        + np.logaddexp(0, np.array(others) / width).mean()
        for width in widths
    ]
    best = widths[int(np.argmin(losses))]
    print(
        f"{size}: confidences are {best:.3f} wide, {best / slope:.2f} slopes of {slope:.4f} "
        f"({len(right)} clips of taught words, {len(others)} of others)"
    )


def rest_scores(size: str, clips: dict[str, list[np.ndarray]]) -> None:
    """Print how much higher right words score by all backbones than by the first."""
    spotter = Spotter(size=size)
    words = sorted(clips)[:WORDS]
    for word in words:
        spotter.learn_many(clips[word][:SAMPLES], [word] * SAMPLES)
    first, whole = spotter.encoder.first_cohort, spotter.encoder.cohort
    assert first is not None and whole is not None
    numbers = first.words.vectors.shape[1]
    more: list[float] = []
    for direction, word in zip(spotter.learner.directions(), words, strict=True):
        X = spotter.encode(clips[word][SAMPLES:]).vectors
        own = unit(X[:, :numbers]) @ unit(direction[None, :numbers])[0]
        level = whole.words.cohort_score(X) - first.words.cohort_score(X[:, :numbers])
        more += list(unit(X) @ direction - own - level)
    quantiles = ", ".join(f"{np.quantile(more, q):.2f}" for q in (0.5, 0.9, 0.99, 1.0))
    print(f"{size}: higher by, at 50, 90, 99, 100%: {quantiles} ({len(more)} clips)")


def _seconds(path: Path) -> list[np.ndarray]:
    sound = np.concatenate(list(files.blocks(path)))
    return [sound[i : i + SAMPLE_RATE] for i in range(0, len(sound) - SAMPLE_RATE, SAMPLE_RATE)]


if __name__ == "__main__":
    main()
