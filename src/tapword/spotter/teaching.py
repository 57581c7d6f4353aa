"""What is said about clips that are about to be taught, wherever they come from."""

import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress

import numpy as np

from tapword.audio.align import besides
from tapword.audio.files import SAMPLE_RATE
from tapword.spotter.encoder import Encoded
from tapword.spotter.lengths import CLIP_S
from tapword.spotter.spotter import Spotter
from tapword.spotter.thresholds import decide
from tapword.support.text import listed

# Share of the clips that must be heard as another word for it to be close, and how many clips it
# takes to say so. Set by hand; tests/spotter/test_teaching.py holds them to the demo's words.
CLOSE_SHARE, FEWEST = 0.8, 3
# In a lesson of many clips, this share must still be mixed up once the others are learned: fewer
# are single clips under a wrong name. Set by hand, held to the same.
STILL_SHARE = 0.2
# So many recent clips of a lesson, and clips of a word, are compared at most: more change nothing.
LATEST, MOST = 5, 10
# A take whose score lacks more than this to its word's threshold is unlike the word's other takes.
# By this and the other doubts, of 200 takes each 3.5 % are doubted by the voice that taught one
# before, 9 % by other voices, and 92.5 % of other words (benchmarks/takes.py, Speech Commands).
UNLIKE_SCORE = 0.2
# A lesson of many words is looked at in so many parts.
FOLDS = 3

# A clip holds more than one word where so much other sound is as loud, and a pause is long from
# here on. Set by hand: none of the demo's clips has either, of 177 read phrases 3 and 3 do.
OTHER_S, PAUSE_S = 0.15, 0.35

NOISE = "sounds like noise alone, which is never taken for a word when listening"


def warnings(
    spotter: Spotter, encoded: Encoded, word: str, names: Sequence[str] | None = None
) -> list[str]:
    """Say what may be wrong with clips of one word before they are taught.

    Parameters
    ----------
    spotter
        The model before it learns the clips.
    encoded
        The clips, as they will be learned.
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
    names = [f"take {n + 1}" for n in range(len(encoded))] if names is None else names
    found = [f"{name} {NOISE}" for name in compress(names, is_noise(spotter, encoded))]
    other = close_word(spotter, encoded, word)
    return found if other is None else [*found, close_warning(word, other)]


def doubts(spotter: Spotter, encoded: Encoded, word: str) -> list[str]:
    """Say why a take may be none of `word`, by its vector, before it is taught.

    It may be noise alone, sound like another word, or unlike this word's other takes; the latter
    two can be told where thresholds are known.
    """
    if is_noise(spotter, encoded)[0]:
        return [f"this take {NOISE}"]
    if not spotter.words or not spotter.has_thresholds:
        return []
    [heard] = spotter.predict_encoded(encoded)
    if heard.word not in (None, word):
        return [f'this take sounds like "{heard.word}"']
    lacking = 0.0
    if word in spotter.words:
        [scores] = spotter.score_encoded(encoded)
        lacking = spotter.thresholds()[word] - scores.words[word]
    return [f'this take sounds unlike "{word}" so far'] if lacking > UNLIKE_SCORE else []


def is_noise(spotter: Spotter, encoded: Encoded) -> np.ndarray:
    """Say which clips are noise alone, (n,) bool."""
    return spotter.encoder.is_noise(encoded.vectors)


def remarks(clip: np.ndarray) -> list[str]:
    """Say what else a clip (n,) holds that is taught as one word or phrase."""
    if len(clip) <= CLIP_S * SAMPLE_RATE:
        return []
    other_s, pause_s = besides(clip)
    found = []
    if other_s >= OTHER_S:
        found.append("holds more than one word, of which the loudest is taught")
    if pause_s >= PAUSE_S:
        found.append("has a long pause inside")
    return found


def lesson_warnings(
    spotter: Spotter, encoded: Encoded, words: Sequence[str], names: Sequence[str]
) -> list[str]:
    """Say of clips of several words which words, and which clips, sound like another word.

    Each third of the clips is asked of a copy that was taught the other two. A word is close to
    another as for `close_word`, or where nearly all its clips would count as the other. Of words
    that are not, the clips are named that would be taken for another word. Arguments are as for
    `warnings`, with a word for each clip.
    """
    rows_of: dict[str, list[int]] = {}
    for row, word in enumerate(words):
        rows_of.setdefault(word, []).append(row)

    def lesson(fold: int | None = None, without: str | None = None) -> Spotter:
        """Teach a copy a few clips of each word, but for one third or one word."""
        rows = [
            row
            for word, own in rows_of.items()
            for place, row in enumerate(own[:MOST])
            if place % FOLDS != fold and word != without
        ]
        return _taught(spotter, encoded[rows], [words[row] for row in rows])

    pairs: dict[tuple[str, str], _Likeness] = {}
    for fold in range(FOLDS):
        asked = [row for own in rows_of.values() for row in own[fold::FOLDS]]
        if not asked:
            break
        pupil = lesson(fold)
        thresholds = pupil.thresholds() if pupil.has_thresholds else {}
        for row, scores in zip(asked, pupil.score_encoded(encoded[asked]), strict=True):
            others = dict(scores.words)
            own_score = others.pop(words[row], -math.inf)
            if not others:
                continue
            other = max(others, key=lambda word: others[word])
            counts = decide(scores._replace(words=others), thresholds) == other
            nearer = others[other] > own_score
            pair = pairs.setdefault((words[row], other), _Likeness())
            pair.counting += counts
            pair.nearer += nearer
            if counts and nearer:
                pair.taken.append(names[row])
    close: dict[str, str] = {}
    single = []
    for (word, other), pair in pairs.items():
        rows = rows_of[word]
        mixed_up = pair.nearer >= STILL_SHARE * len(rows) >= STILL_SHARE * FEWEST
        mixed_up = mixed_up and other == _mostly_heard(lesson(without=word), encoded[rows[:MOST]])
        if mixed_up or pair.counting >= CLOSE_SHARE * len(rows) >= CLOSE_SHARE * FEWEST:
            if close.get(other) != word:
                close[word] = other
        elif pair.taken:
            single.append(f'taught as "{word}", sounds like "{other}": {listed(pair.taken)}')
    return [close_warning(*pair) for pair in close.items()] + single


@dataclass
class _Likeness:
    """Clips of a word that have another for the next best."""

    # How many would count as the other were there no such word, and are nearer to it.
    counting: int = 0
    nearer: int = 0
    # Those of which both is true.
    taken: list[str] = field(default_factory=list)


def close_word(spotter: Spotter, encoded: Encoded, word: str) -> str | None:
    """Taught word that clips of another are mixed up with, or None; arguments as for `warnings`.

    Nearly all clips must be heard as it now, and at least one still when a copy has learned the
    other clips: a model of few words hears one of them in anything, but tells a word that is far
    from it as soon as it is taught.
    """
    encoded = encoded[:MOST]
    if len(encoded) < FEWEST:
        return None
    other = _mostly_heard(spotter, encoded)
    if other in (None, word):
        return None
    for index, one in enumerate(encoded):
        rest = encoded[np.arange(len(encoded)) != index]
        pupil = _taught(spotter, rest, [word] * len(rest))
        if pupil.predict_encoded(one, closed=True)[0].word == other:
            return other
    return None


def _mostly_heard(spotter: Spotter, encoded: Encoded) -> str | None:
    """Word that nearly all clips are nearest to, or None."""
    heard = Counter(answer.word for answer in spotter.predict_encoded(encoded, closed=True))
    word, votes = heard.most_common(1)[0]
    return word if votes >= CLOSE_SHARE * len(encoded) else None


def _taught(spotter: Spotter, encoded: Encoded, words: Sequence[str]) -> Spotter:
    """Copy of a spotter that has learned more."""
    pupil = spotter.copy()
    pupil.learn_encoded(encoded, words)
    return pupil


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
        self._latest: deque[Encoded] = deque(maxlen=LATEST)

    def warnings(self, encoded: Encoded) -> list[str]:
        """Say what may be wrong with the next clip, seen with those before it."""
        found = warnings(self.spotter, encoded, self.word, ["this take"])
        self._latest.append(encoded)
        other = close_word(self.spotter, Encoded.concatenate(list(self._latest)), self.word)
        return found if other is None else [*found, close_warning(self.word, other)]
