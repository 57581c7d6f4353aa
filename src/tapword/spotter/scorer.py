"""The scorer: encoded clips -> normalised scores, and the thresholds they are compared with."""

import functools
from collections.abc import Mapping

import numpy as np

from tapword.audio.files import SAMPLE_RATE
from tapword.errors import InputError
from tapword.learners.base import Learner
from tapword.spotter.cohort import Cohort, normalize, unit
from tapword.spotter.encoder import Encoded, Encoder
from tapword.spotter.thresholds import (
    CONFIDENCE_SLOPES,
    Scores,
    Tail,
    check_rate,
    is_close,
    rate_factor,
)
from tapword.spotter.vocabulary import CLIP_S, Vocabulary
from tapword.support.threads import one_blas_thread

# How much higher a word may score by all backbones than by the first alone: a sound that stays
# farther below every threshold is not passed through the others. By training/constants.py they add
# 0.06 to 0.08 to half of the right words and 0.20 to 0.23 to 99%.
REST_SCORE = 0.2


class Scorer:
    """Score clips for the words of a model.

    Parameters
    ----------
    encoder, learner, vocabulary
        Of a spotter.

    Attributes
    ----------
    cohort
        Running speech that scores are normalised by; None without thresholds.
    """

    def __init__(self, encoder: Encoder, learner: Learner, vocabulary: Vocabulary):
        self.parts = encoder, learner, vocabulary
        self.encoder, self.learner, self.vocabulary = self.parts
        self.cohort: Cohort | None = encoder.cohort if learner.supports_thresholds else None
        self._tails: tuple[np.ndarray, dict[str, Tail]] | None = None

    @one_blas_thread
    def score(self, encoded: Encoded) -> list[Scores]:
        """Score each row of `encoded`."""
        words, negatives = self.learner.all_scores(encoded.vectors)
        if self.cohort is not None and words.size:
            cohort_score = self.cohort.score(encoded.vectors, encoded.seconds)
            words, negatives = normalize(
                self.learner, encoded.vectors, words, negatives, cohort_score
            )
        return self._by_name(words, negatives)

    @one_blas_thread
    def score_window(
        self,
        clip: np.ndarray,
        thresholds: Mapping[str, float] | None = None,
        first: np.ndarray | None = None,
    ) -> Scores | None:
        """Score a clip (n,) that is aligned already; None for noise alone.

        Scores below the `thresholds` need not be exact. With several backbones, the first
        proposes. If no word could reach its threshold with what the others add, they do not run.
        `first` is the first backbone's part of the vector (D_1,), if it is known.
        """
        several = len(self.encoder.backbones) > 1
        if several and self.vocabulary.words and thresholds is not None:
            first = self.encoder.encode_first(clip) if first is None else first
            if self.encoder.is_noise(first[None])[0]:
                return None
            proposed = self.propose(first, len(clip) / SAMPLE_RATE)
            if proposed is not None and not is_close(proposed, thresholds, REST_SCORE):
                return proposed
        encoded = self.encoder.encode_from(first, clip)
        return None if self.encoder.is_noise(encoded.vectors)[0] else self.score(encoded)[0]

    @one_blas_thread
    def propose(self, first: np.ndarray, seconds: float) -> Scores | None:
        """Score a clip by the first backbone's part of its vector (D_1,) and its length.

        None where scores are not normalised.
        """
        cohort = self.encoder.first_cohort
        if self.cohort is None or cohort is None:
            return None
        return self.first_scores(first[None], cohort.score(first[None], np.array([seconds])))[0]

    @one_blas_thread
    def first_scores(self, first: np.ndarray, cohort_score: np.ndarray | float) -> list[Scores]:
        """Score by the first backbone's part of vectors (n, D_1), less a cohort score (n,)."""
        directions = unit(self.learner.directions()[:, : first.shape[1]])
        scores = unit(first) @ directions.T - np.reshape(cohort_score, (-1, 1))
        negative = np.array([row.negative for row in self.learner.rows], dtype=bool)
        return self._by_name(scores[:, ~negative], scores[:, negative])

    def _by_name(self, words: np.ndarray, negatives: np.ndarray) -> list[Scores]:
        names, negative_names = list(self.learner.words), list(self.learner.negatives)
        return [
            Scores(
                dict(zip(names, map(float, own), strict=True)),
                dict(zip(negative_names, map(float, others), strict=True)),
                self.confidence_width,
            )
            for own, others in zip(words, negatives, strict=True)
        ]

    # Thresholds.

    def require_thresholds(self, advice: str) -> None:
        """Refuse a configuration without thresholds; `advice` says what to do."""
        if self.cohort is None:
            raise InputError(
                "Thresholds are unavailable for this configuration. The sizes and "
                f"speech_embedding have them. {advice}"
            )

    @one_blas_thread
    def tails(self) -> dict[str, Tail]:
        """Word -> how high its scores are in running speech."""
        if not self.vocabulary.words:
            return {}
        self.require_thresholds("Give a threshold for each word (--threshold WORD=SCORE)")
        assert self.cohort is not None
        directions = self.learner.directions()
        # A learner returns the same directions until it learns something.
        if self._tails is None or self._tails[0] is not directions:
            found = {}
            for row, direction in zip(self.learner.rows, directions, strict=True):
                if not row.negative:
                    is_phrase = self.vocabulary.length_of(row.word).is_phrase
                    windows = self.cohort.phrases if is_phrase else self.cohort.words
                    scores = windows.scores(direction[None])[:, 0]
                    found[row.word] = Tail.of(scores, self.encoder.line)
            self._tails = directions, found
        return self._tails[1]

    def thresholds(
        self,
        false_alarms_per_hour: float,
        sensitivities: Mapping[str | None, float] | None = None,
    ) -> dict[str, float]:
        """As for `Spotter.thresholds`."""
        check_rate(false_alarms_per_hour)
        given, tails = sensitivities or {}, self.tails()
        result = {}
        for word, tail in tails.items():
            own = given.get(word, given.get(None, self.vocabulary.sensitivity_of(word)))
            result[word] = tail.threshold(false_alarms_per_hour / len(tails) * rate_factor(own))
        return result

    @functools.cached_property
    def confidence_width(self) -> float | None:
        """Width of the scale of confidences, in scores; None where thresholds are unavailable."""
        if self.cohort is None:
            return None
        return CONFIDENCE_SLOPES * self.encoder.line.slope

    # Phrases.

    @functools.cached_property
    def phrases(self) -> dict[str, tuple[float, float]]:
        """Phrase -> shortest and longest window that it is searched in, in seconds.

        Empty without thresholds, or if the first backbone cannot stream.
        """
        hop = self.encoder.backbones[0].hop
        if hop is None or self.cohort is None or not self.learner.supports_phrases:
            return {}
        words = self.vocabulary.words.items()
        return {word: one.length.span(one.clips) for word, one in words if one.length.is_phrase}

    @functools.cached_property
    def short_words(self) -> list[str]:
        """Words that are searched in windows of one second."""
        return [word for word in self.vocabulary.words if word not in self.phrases]

    @functools.cached_property
    def longest_s(self) -> float:
        """Length of the longest window that a word needs, in seconds."""
        return max((longest for _, longest in self.phrases.values()), default=CLIP_S)

    def phrases_of(self, seconds: float) -> list[str]:
        """List the phrases that are searched in windows of this length."""
        spans = self.phrases.items()
        return [word for word, (shortest, longest) in spans if shortest <= seconds <= longest]
