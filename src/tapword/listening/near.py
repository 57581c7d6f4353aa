"""Near misses: words that a detector did not take for said, though little was lacking."""

from typing import NamedTuple

from tapword.audio.files import SAMPLE_RATE
from tapword.listening.decider import Candidate
from tapword.listening.detector import CLOSE_SCORE, Detector
from tapword.spotter.thresholds import decide

# A word may turn out to lie in a phrase, or the next window to be better: until so much later than
# the longest word lasts.
SETTLED_S = 1.0


class NearMiss(NamedTuple):
    """A word that was nearly said, where in the stream, and what it scored.

    `rejected`: whatever the score, the sound is nearer to one that was taught as not this word.
    """

    word: str
    start_s: float
    end_s: float
    score: float
    threshold: float
    rejected: bool

    @property
    def margin(self) -> float:
        """How far the score is above the threshold; mostly it is below."""
        return self.score - self.threshold


class NearMisses:
    """Observe a detector; give the best near miss of each second in which no word was said.

    A word is nearly said if its score is below its threshold by no more than the detector calls
    close. A detector that was reset wants a new one.
    """

    def __init__(self, detector: Detector):
        self._detector = detector
        detector.observe = self
        self._found: list[NearMiss] = []
        # The best of this second, and the centres of it and of the last word.
        self._best: NearMiss | None = None
        self._best_at = self._said_at = -SAMPLE_RATE

    def __call__(self, candidate: Candidate) -> None:
        """Look at what the detector scored."""
        thresholds, scores, at = self._detector.thresholds, candidate.scores, candidate.centre
        if decide(scores, thresholds) is not None:
            # What is beside a word is like it.
            self._said_at = at
            inside = candidate.start_s <= self._best_at / SAMPLE_RATE <= candidate.end_s
            if inside or at - self._best_at < SAMPLE_RATE:
                self._best = None
            return
        start_s, end_s = candidate.start_s, candidate.end_s
        taken = scores.not_rejected()
        best = max(
            (
                NearMiss(word, start_s, end_s, score, thresholds[word], word not in taken)
                for word, score in scores.words.items()
                if word in thresholds
            ),
            key=lambda near: near.margin,
            default=None,
        )
        if best is None or best.margin < -CLOSE_SCORE or at - self._said_at < SAMPLE_RATE:
            return
        if at - self._best_at >= SAMPLE_RATE:
            self._settle()
        if self._best is None or best.margin > self._best.margin:
            self._best, self._best_at = best, at

    def since(self, now_s: float) -> list[NearMiss]:
        """Give those found since the last time that nothing can replace any more."""
        settled_s = self._detector.spotter.scorer.longest_s + SETTLED_S
        if now_s - self._best_at / SAMPLE_RATE > settled_s:
            self._settle()
        found, self._found = self._found, []
        return found

    def _settle(self) -> None:
        if self._best is not None:
            self._found.append(self._best)
        self._best = None
