"""Parts broken on purpose, one for each check of test_contracts.py."""

import numpy as np

from tapword.backbones.logmel import Logmel
from tapword.backbones.tapword_ear import TapwordEar
from tapword.learners.ncm import Ncm
from tapword.learners.perceptron import Perceptron
from tapword.learners.slda import Slda
from tapword.poolings.avg import Avg
from tapword.poolings.flat import Flat

D = 6


class NoDefault(Avg):
    def __init__(self, R):
        self.R = R


class Alters(Avg):
    def __init__(self, R: int = 5):
        self.R = R + 1


class Silent(Avg):
    def __init__(self, R: int = 5):
        self.R = R

    __repr__ = object.__repr__


class OddSpec(Avg):
    spec = property(lambda self: "odd")


class Writes(Avg):
    def _reduce(self, frames):
        frames += 1
        return super()._reduce(frames)


class Random(Avg):
    def _reduce(self, frames):
        return super()._reduce(frames) + np.random.default_rng().normal()


class OneFrame(Avg):
    def _reduce(self, frames):
        with np.errstate(all="ignore"):
            return np.float32(1) * frames.sum(axis=1) / (frames.shape[1] - 1)


class Constant(Avg):
    def _reduce(self, frames):
        with np.errstate(all="ignore"):
            return frames.mean(axis=1) / frames.std(axis=1)


class WrongDim(Avg):
    def dim(self, d):
        return d + 1


class NeedsNoLength(Flat):
    needs_length = False


class BatchMatters(Avg):
    def _reduce(self, frames):
        return frames.mean(axis=1) - frames.mean()


class KeepsDouble(Avg):
    def pool(self, frames):
        return frames.mean(axis=-2) + (frames.dtype == np.float64)


class Unchecked(Avg):
    def pool(self, frames):
        return np.nan_to_num(np.asarray(frames, dtype=np.float32)).mean(axis=-2)


class WritesVectors(Ncm):
    def _scores(self, X):
        result = super()._scores(X)
        X += 1
        return result


class KeepsView(Perceptron):
    def learn_one(self, x, word, negative=False):
        self.kept = [*getattr(self, "kept", []), x]
        super().learn_one(x, word, negative)

    def _scores(self, X):
        return super()._scores(X) + np.sum(self.kept)


class RandomScores(Ncm):
    def _scores(self, X):
        return super()._scores(X) + np.random.default_rng().normal(size=(len(X), 1))


class WarmStart(Ncm):
    def __init__(self):
        super().__init__()
        self.learn_one(np.zeros(D), "unknown")


class OneTooMany(Ncm):
    def _scores(self, X):
        return np.pad(super()._scores(X), ((0, 0), (0, 1)))


class ClosedSet(Ncm):
    def _grow(self):
        if len(self.words) < 4:
            super()._grow()


class BatchForgets(Slda):
    def _learn_many(self, X, indices):
        super()._learn_many(X[::2], indices[::2])


class LosesCounts(Ncm):
    def _load(self, state, n_rows):
        super()._load(state, n_rows)
        self.statistics.counts[:] = 1


class StateOfLists(Ncm):
    def _arrays(self):
        return super()._arrays() | {"history": ["word"]}


class Grows(Ncm):
    def _learn_one(self, x, k):
        super()._learn_one(x, k)
        self.history = [*getattr(self, "history", []), x]

    def _arrays(self):
        return super()._arrays() | {"history": np.array(self.history)}


class Unlimited(Ncm):
    def _check_size(self, dim, n_rows):
        pass


class DoubleCounts(Ncm):
    def learn_many(self, X, words):
        super().learn_many(X + (X.dtype == np.float64), words)


class LearnsNan(Ncm):
    def _check(self, X, ndim):
        return super()._check(np.nan_to_num(X, posinf=0), ndim)


class CutsVectors(Ncm):
    def _check(self, X, ndim):
        return super()._check(np.resize(X, (*X.shape[:-1], D)), ndim)


class RemembersForgotten(Ncm):
    def _forget(self, k):
        pass


class StartsFromBefore(Slda):
    def _start(self, dim):
        before = getattr(self, "statistics", None)
        super()._start(dim)
        if before is not None and len(before.scatter):
            np.copyto(self.statistics.scatter, before.scatter)


class HidesItsTrace(Slda):
    def __post_init__(self):
        super().__post_init__()
        self.keeps_trace = False


class MergesCountsOnly(Ncm):
    def _merge(self, other, indices):
        pass


class LastSampleWins(Ncm):
    def _learn_one(self, x, k):
        super()._learn_one(x, k)
        self.statistics.centres[k] = x


class NegativesAreWords(Ncm):
    def learn_one(self, x, word, negative=False):
        super().learn_one(x, word)


class KeepsNegatives(Ncm):
    def forget(self, word):
        self.rename(word, f"forgotten {word}")


class MergesWordsAlone(Ncm):
    def merge(self, other):
        for word in list(other.negatives):
            other.forget(word)
        super().merge(other)


class SortsRows(Ncm):
    def load_state(self, state, words, negatives=None, rows=None):
        super().load_state(state, words, negatives)


class LongDirections(Ncm):
    supports_thresholds = True

    def directions(self):
        return self.statistics.means


class WrongWidth(Logmel):
    dims = (33,)


class WritesAudio(Logmel):
    def frames_many(self, audios):
        audios[0][:] = 0.5
        return super().frames_many(audios)


class RandomFrames(Logmel):
    def _extract(self, audio):
        return [super()._extract(audio)[0] + np.random.default_rng().normal()]


class NormalisesBatch(Logmel):
    def _extract(self, audio):
        return super()._extract(audio / len(audio))


class StreamBeginsAgain(TapwordEar):
    def stream(self):
        stream = super().stream()
        advance = stream.advance

        def forgetful(audio):
            stream._before[:] = 0
            return advance(audio)

        stream.advance = forgetful
        return stream


class UncheckedAudio(Logmel):
    def frames_many(self, audios):
        return [super().frames_many([np.nan_to_num(np.ravel(a))])[0] for a in audios]
