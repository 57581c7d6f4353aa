"""What is said about clips that are about to be taught, wherever they come from."""

import copy
from collections import Counter, deque
from collections.abc import Sequence
from itertools import compress

import numpy as np

from tapword.spotter.spotter import Spotter

# Share of the clips that must be heard as another word for it to be close, and how many clips it
# takes to say so. Set by hand; tests/spotter/test_teaching.py holds them to the demo's words.
CLOSE_SHARE, FEWEST = 0.8, 3
# So many recent clips of a lesson, and clips of a word, are compared at most: more change nothing.
LATEST, MOST = 5, 10
# A take whose score lacks more than this to its word's threshold is unlike the word's other takes.
# By this and the other doubts, of 200 takes each 4.5 % are doubted by the voice that taught one
# before, 6.5 % by other voices, and 93 % of other words (benchmarks/takes.py, Speech Commands).
UNLIKE_SCORE = 0.2

NOISE = "sounds like noise alone, which is never taken for a word when listening"


def warnings(
    spotter: Spotter, vectors: np.ndarray, word: str, names: Sequence[str] | None = None
) -> list[str]:
    """Say what may be wrong with clips of one word before they are taught.

    Parameters
    ----------
    spotter
        The model before it learns the clips.
    vectors
        Of the clips, as they will be learned, (n, D).
    word
        What is said in them.
    names
        What to call each clip; "take 1" and so on by default.

    Returns
    -------
    list of str
        A sentence without its full stop for each clip that is noise alone, and one where the word
        sounds close to another.
    """
    names = [f"take {n + 1}" for n in range(len(vectors))] if names is None else names
    noisy = compress(names, spotter.encoder.is_noise(vectors))
    found = [f"{name} {NOISE}" for name in noisy]
    other = close_word(spotter, vectors, word)
    return found if other is None else [*found, close_warning(word, other)]


def doubts(spotter: Spotter, vector: np.ndarray, word: str) -> list[str]:
    """Say why a take may be none of `word`, by its vector (D,), before it is taught.

    It may be noise alone, sound like another word, or unlike this word's other takes; the latter
    two can be told where thresholds are known.
    """
    if spotter.encoder.is_noise(vector[None])[0]:
        return [f"this take {NOISE}"]
    if not spotter.words or not spotter.has_thresholds:
        return []
    [heard] = spotter.predict_vectors(vector[None])
    if heard.word not in (None, word):
        return [f'this take sounds like "{heard.word}"']
    lacking = 0.0
    if word in spotter.words:
        [scores] = spotter.score_vectors(vector[None])
        lacking = spotter.thresholds()[word] - scores.words[word]
    return [f'this take sounds unlike "{word}" so far'] if lacking > UNLIKE_SCORE else []


def close_word(spotter: Spotter, vectors: np.ndarray, word: str) -> str | None:
    """Taught word that clips of another are mixed up with, or None; arguments as for `warnings`.

    Nearly all clips must be heard as it now, and at least one still when a copy has learned the
    other clips: a model of few words hears one of them in anything, but tells a word that is far
    from it as soon as it is taught.
    """
    vectors = vectors[:MOST]
    if len(vectors) < FEWEST:
        return None
    heard = Counter(answer.word for answer in spotter.predict_vectors(vectors, closed=True))
    other, votes = heard.most_common(1)[0]
    if other in (None, word) or votes < CLOSE_SHARE * len(vectors):
        return None
    pupil = copy.copy(spotter)
    for index, vector in enumerate(vectors):
        pupil.learner = copy.deepcopy(spotter.learner)
        rest = np.delete(vectors, index, axis=0)
        pupil.learn_vectors(rest, [word] * len(rest))
        if pupil.predict_vectors(vector[None], closed=True)[0].word == other:
            return other
    return None


def close_warning(word: str, other: str) -> str:
    """Say that two words sound alike, and what to do."""
    return (
        f'"{word}" sounds close to "{other}"; if they are mixed up, teach more takes of both, or '
        "forget one and choose another word"
    )


class Lesson:
    """One word taught clip by clip to a spotter: what there is to say with each further clip."""

    def __init__(self, spotter: Spotter, word: str):
        self.spotter = spotter
        self.word = word
        self._vectors: deque[np.ndarray] = deque(maxlen=LATEST)

    def warnings(self, vector: np.ndarray) -> list[str]:
        """Say what may be wrong with the next clip's vector (D,), seen with those before it."""
        found = warnings(self.spotter, vector[None], self.word, ["this take"])
        self._vectors.append(vector)
        other = close_word(self.spotter, np.stack(self._vectors), self.word)
        return found if other is None else [*found, close_warning(self.word, other)]
