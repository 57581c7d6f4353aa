"""Near misses: words whose score was just below the threshold."""

from typing import NamedTuple

from tapword.audio.files import SAMPLE_RATE
from tapword.listening.decider import Candidate
from tapword.listening.detector import CLOSE_SCORE, Detector
from tapword.spotter.thresholds import confidences, decide

# A word may be inside a phrase, or the next window better: until this long after the longest word.
FINAL_S = 1.0


class NearMiss(NamedTuple):
    """A word that nearly counted, its time in the stream, and its score.

    `rejected`: whatever the score, the sound is nearer to a negative of this word.
    `confidence`: how sure, below 50; None where thresholds are unavailable.
    """

    word: str
    start_s: float
    end_s: float
    score: float
    threshold: float
    rejected: bool
    confidence: int | None

    @property
    def margin(self) -> float:
        """Score less threshold, mostly negative."""
        return self.score - self.threshold


class NearMisses:
    """Observe a detector; collect the best near miss of each second without a word.

    A near miss is at most `CLOSE_SCORE` below its threshold. Those found before the detector is
    reset are still returned; times then start again at 0.
    """

    def __init__(self, detector: Detector):
        self._detector = detector
        detector.observe = self
        self._found: list[NearMiss] = []
        self._resets = detector.resets
        # The best of this second, and the centres of it and of the last word.
        self._best: NearMiss | None = None
        self._best_at = self._said_at = -SAMPLE_RATE

    def __call__(self, candidate: Candidate) -> None:
        """Observe a candidate."""
        self._follow_reset()
        thresholds, scores, at = self._detector.thresholds, candidate.scores, candidate.centre
        if decide(scores, thresholds) is not None:
            # Windows next to a word score like it.
            self._said_at = at
            inside = candidate.start_s <= self._best_at / SAMPLE_RATE <= candidate.end_s
            if inside or at - self._best_at < SAMPLE_RATE:
                self._best = None
            return
        start_s, end_s = candidate.start_s, candidate.end_s
        not_rejected = scores.not_rejected()
        sure = confidences(scores, thresholds)
        best = max(
            (
                NearMiss(
                    word,
                    start_s,
                    end_s,
                    score,
                    thresholds[word],
                    word not in not_rejected,
                    sure.get(word),
                )
                for word, score in scores.words.items()
                if word in thresholds
            ),
            key=lambda near: near.margin,
            default=None,
        )
        if best is None or best.margin < -CLOSE_SCORE or at - self._said_at < SAMPLE_RATE:
            return
        if at - self._best_at >= SAMPLE_RATE:
            self._finalize()
        if self._best is None or best.margin > self._best.margin:
            self._best, self._best_at = best, at

    def since(self, now_s: float) -> list[NearMiss]:
        """Return those found since the last call that nothing can replace any more."""
        self._follow_reset()
        final_s = self._detector.spotter.scorer.longest_s + FINAL_S
        if now_s - self._best_at / SAMPLE_RATE > final_s:
            self._finalize()
        found, self._found = self._found, []
        return found

    def _follow_reset(self) -> None:
        """Forget where words were in an earlier stream."""
        if self._resets != self._detector.resets:
            self._resets = self._detector.resets
            self._finalize()
            self._best_at = self._said_at = -SAMPLE_RATE

    def _finalize(self) -> None:
        if self._best is not None:
            self._found.append(self._best)
        self._best = None
