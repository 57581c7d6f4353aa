"""Spotter = encoder + learner: teach words from clips, recognise them, keep them in a file."""

import contextlib
import copy
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from tapword import registry
from tapword.audio import files
from tapword.audio.files import SAMPLE_RATE
from tapword.backbones.base import Backbone, other_weights
from tapword.errors import InputError, ModelFileError
from tapword.learners.base import Learner
from tapword.poolings.base import Pooling
from tapword.spotter import model_header, presets, store
from tapword.spotter.cohort import Cohort, measured, shift, unit
from tapword.spotter.encoder import REST_SCORE, Encoded, Encoder, Preparation
from tapword.spotter.lengths import CLIP_S, Length, lengths_of
from tapword.spotter.thresholds import (
    FALSE_ALARMS_PER_HOUR,
    SENSITIVITY,
    Scores,
    Tail,
    check_rate,
    check_sensitivity,
    decide,
    nearly,
    rate_factor,
)
from tapword.spotter.whitening import Whitening
from tapword.spotter.words import clean_new_word, clean_word
from tapword.support.atomic_files import PathLike
from tapword.support.text import counted
from tapword.version import __version__

Audio = PathLike | np.ndarray


class Prediction(NamedTuple):
    """What a spotter takes a clip for.

    Attributes
    ----------
    word
        The best word; None where it is none of them, or nothing is taught.
    score
        The best word's score, also where `word` is None; None where nothing is taught. Of the
        sizes it is measured against running speech, of other parts on the learner's own scale.
    probabilities
        Word -> share, over all taught words, best first.
    """

    word: str | None
    score: float | None
    probabilities: dict[str, float]


class Spotter:
    """Teach words from clips, one at a time; recognise them.

    Parameters
    ----------
    backbone
        Name with arguments (`"speech_embedding:layers=b64+emb"`), a `Backbone`, or a list of
        either, whose vectors are put side by side.
    pooling
        Name with arguments (`"tap:R=3"`), a `Pooling`, or a list with one for each backbone.
    learner
        Name with arguments or a `Learner`.
    size
        Preset instead of parts: "small", "medium" or "large". Parts that are not named are those of
        "small", as `presets.fill_in` has it.
    align
        Cut each clip around its speech, or to the second around its middle where that is short;
        otherwise a clip is taken as it is. None: as the preset has it, where backbone and pooling
        are the preset's.
    augment
        Teach each clip as the mean of itself and augmented copies: words are missed less in noise,
        and one sample is worth more. None: as for `align`.
    whitening
        "shipped": whiten vectors by how other words vary; "none"; or `Whitening`s, among which one
        is for each backbone. None: shipped where the learner asks for it, as that of the presets
        does (`cosine:prior=shipped`).

    Attributes
    ----------
    encoder, learner
        Its two halves: clips -> vectors, vectors -> scores.
    sensitivity, sensitivities
        From 0 to 1, how readily words are heard; and word -> its own, where it has one. They are
        kept in the file; `set_sensitivity` changes them.
    lengths
        Word -> how long its samples are, for those that were not all of one second.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> spotter = Spotter(backbone="logmel", pooling="avg", learner="ncm")
    >>> low, high = (0.1 * np.sin(np.arange(16000) * pitch) for pitch in (0.1, 0.9))
    >>> spotter.learn(low, "low")
    >>> spotter.learn(high, "high")
    >>> spotter.predict(low + 0.001 * rng.standard_normal(16000)).word
    'low'
    """

    def __init__(
        self,
        backbone: str | Backbone | Sequence[str | Backbone] | None = None,
        pooling: str | Pooling | Sequence[str | Pooling] | None = None,
        learner: str | Learner | None = None,
        size: str | None = None,
        align: bool | None = None,
        augment: bool | None = None,
        whitening: str | Sequence[Whitening] | None = None,
    ):
        parts = (backbone, pooling, learner)
        if size is not None and parts != (None, None, None):
            raise InputError(f"give either size={size!r} or parts, not both")
        if size is not None:
            chosen = presets.preset(size)
        else:
            chosen = presets.fill_in(_several(backbone), _several(pooling), learner)
        if learner is None and (whitening is None or size is not None):
            learner = chosen.learner
        elif learner is None:
            own = presets.preset(presets.DEFAULT).learner
            learner = presets.UNWHITENED if whitening == "none" else own
        self.learner: Learner = registry.make("learners", learner)
        if self.learner.needs_whitening and whitening == "none":
            raise InputError(f"learner {self.learner.spec} needs a whitening, got whitening='none'")
        if whitening is None:
            whitening = "shipped" if self.learner.needs_whitening else "none"
        preparation = Preparation(
            chosen.align if align is None else align,
            chosen.augment if augment is None else augment,
        )
        self.encoder = Encoder(chosen.backbones, chosen.poolings, preparation, whitening)
        self.sensitivity = SENSITIVITY
        self.sensitivities: dict[str, float] = {}
        self.lengths: dict[str, Length] = {}
        self._tails: tuple[np.ndarray, list[Tail]] | None = None
        self._generation = 0
        self._revision: str | None = None
        # Whether something was forgotten since the file was written, which its backup still holds.
        self._forgot = False

    def __repr__(self) -> str:
        return (
            f"<Spotter {self.encoder!r} -> {self.learner.spec}, {counted(len(self.words), 'word')}>"
        )

    @property
    def backbones(self) -> list[Backbone]:
        """What turns clips into frames."""
        return self.encoder.backbones

    @property
    def words(self) -> dict[str, int]:
        """Word -> how many samples it was taught."""
        return dict(self.learner.words)

    @property
    def negatives(self) -> dict[str, int]:
        """Word -> how many sounds were taught as not this word."""
        return dict(self.learner.negatives)

    # Teaching.

    def learn(self, audio: Audio, word: str, sample_rate: int = SAMPLE_RATE) -> None:
        """Learn one clip of a word, known or new; the clip is not kept.

        `audio` is a sound file, or samples (n,), float in [-1, 1] or int16, at `sample_rate`.
        """
        self.learn_encoded(self.encode([audio], sample_rate, learning=True), [word])

    def learn_many(
        self, audios: Sequence[Audio], words: Sequence[str], sample_rate: int = SAMPLE_RATE
    ) -> None:
        """Learn many clips: equal to `learn` in order, faster; all of them or none."""
        if len(audios) != len(words):
            raise InputError(
                f"got {counted(len(audios), 'clip')} for {counted(len(words), 'word')}"
            )
        if len(audios):
            self.learn_encoded(self.encode(audios, sample_rate, learning=True), words)

    def learn_encoded(self, encoded: Encoded, words: Sequence[str]) -> None:
        """Learn what `encode` gave, one row for each of `words`."""
        before = self.words
        words = [clean_new_word(word, before) for word in words]
        if len(words) == 1:
            self.learner.learn_one(encoded.vectors[0], words[0])
        else:
            self.learner.learn_many(encoded.vectors, words)
        self._add_lengths(lengths_of(words, encoded.seconds), before, Counter(words))

    def _add_lengths(
        self, new: Mapping[str, Length], before: Mapping[str, int], more: Mapping[str, int]
    ) -> None:
        """Note how long further samples of words are, of which there were so many before."""
        lengths = dict(self.lengths)
        for word, length in new.items():
            joined = self.length_of(word).joined(before.get(word, 0), length, more[word])
            if joined != Length():
                lengths[word] = joined
        # Another dict: a copy of this spotter may have the old one.
        self.lengths = lengths

    def length_of(self, word: str) -> Length:
        """How long the samples of a word are."""
        return self.lengths.get(word, Length())

    def short_words(self) -> list[str]:
        """List the words that are looked for in windows of one second."""
        spans = self._spans()
        return [word for word in self.learner.words if word not in spans]

    def phrases_of(self, seconds: float) -> list[str]:
        """List the phrases that are looked for in windows of a stream that are so long."""
        spans = self._spans().items()
        return [word for word, (shortest, longest) in spans if shortest <= seconds <= longest]

    def longest_s(self) -> float:
        """How long a window of a stream has to be for the longest word."""
        return max((longest for _, longest in self._spans().values()), default=CLIP_S)

    def _spans(self) -> dict[str, tuple[float, float]]:
        """Phrase -> seconds between which it is looked for.

        There are none where the first backbone cannot hear a stream in pieces, or scores are not
        measured against running speech.
        """
        if (
            self.backbones[0].hop is None
            or not self.has_thresholds
            or not self.learner.supports_phrases
        ):
            return {}
        counts = self.learner.words
        found = self.lengths.items()
        return {word: length.span(counts[word]) for word, length in found if length.is_phrase}

    def unlearn_encoded(
        self,
        encoded: Encoded,
        words: Sequence[str],
        negative: bool = False,
        scattered: bool = True,
    ) -> None:
        """Take out what was learned, as if it had never been.

        As words, or where `negative` as negatives; `scattered` is as for `Learner.unlearn_one`. The
        last sample of a word takes the word along.
        """
        for one, word in zip(encoded, map(clean_word, words), strict=True):
            before = self.words
            self.learner.unlearn_one(one.vectors[0], word, negative, scattered)
            if word not in self.learner.words:
                self.sensitivities.pop(word, None)
            if not negative:
                self._part_length(word, before[word], Length.of(one.seconds))
        self._forgot = True

    def _part_length(self, word: str, before: int, gone: Length) -> None:
        """Note that one of a word's samples is gone, and how long it was."""
        length = self.length_of(word).parted(before, gone, 1)
        if length == Length():
            self._drop_length(word)
        else:
            self.lengths = self.lengths | {word: length}

    def _drop_length(self, word: str) -> None:
        self.lengths = {other: x for other, x in self.lengths.items() if other != word}

    def part(self, word: str) -> Self:
        """Copy that knows one word alone; `merge` gives it back where it was forgotten."""
        word = clean_word(word)
        made = copy.copy(self)
        made.learner = self.learner.part(word)
        made.sensitivities = {word: self.sensitivity_of(word)}
        made.lengths = {word: self.length_of(word)}
        return made

    def reject(self, audio: Audio, sample_rate: int = SAMPLE_RATE) -> str | None:
        """Learn that a sound is none of the words; give the word it was taken for, or nearest to.

        It becomes a negative of that word: how such sounds vary is learned as a word's own samples
        are, and the clip is not kept.
        """
        if not self.words:
            return None
        clip = files.load(audio, sample_rate)
        return self.reject_encoded(self.encode([clip]), self.encode([clip], learning=True))

    def reject_encoded(self, encoded: Encoded, taught: Encoded) -> str:
        """Learn a negative from one clip as `encode` gives it, and as it does for learning."""
        [scores] = self.score_encoded(encoded)
        # What it is taken for now: a word it was rejected as before may be nearer still.
        candidates = scores.not_rejected() or scores.words
        word = max(candidates, key=lambda name: candidates[name])
        self.learner.learn_one(taught.vectors[0], word, negative=True)
        return word

    def forget(self, word: str) -> None:
        """Remove a word and its negatives; the next `save` removes the file's backup with them."""
        word = clean_word(word)
        self.learner.forget(word)
        self.sensitivities.pop(word, None)
        self._drop_length(word)
        self._forgot = True

    def rename(self, old: str, new: str) -> None:
        """Give a word another name."""
        old, new = clean_word(old), clean_new_word(new, self.words)
        self.learner.rename(old, new)
        self._forgot = True
        if old in self.sensitivities:
            self.sensitivities[new] = self.sensitivities.pop(old)
        if old in self.lengths:
            self.lengths = {new if word == old else word: x for word, x in self.lengths.items()}

    def merge(self, other: "Spotter") -> None:
        """Add what another spotter of the same parts was taught.

        A word keeps its sensitivity; the lower one, where both have it.
        """
        self.require_same_parts(other)
        theirs = {word: other.sensitivity_of(word) for word in other.words}
        both = {w: min(theirs[w], self.sensitivity_of(w)) for w in self.words if w in theirs}
        self.add(other.learner, other.lengths)
        for word, value in (theirs | both).items():
            if value != self.sensitivity_of(word):
                self.sensitivities[word] = value

    def add(self, learner: Learner, lengths: Mapping[str, Length]) -> None:
        """Add what another learner of the same kind was taught, and how long its samples were."""
        before = self.words
        self.learner.merge(learner)
        found = {word: lengths.get(word, Length()) for word in learner.words}
        self._add_lengths(found, before, learner.words)

    def replace_by(self, other: "Spotter") -> None:
        """Know what another spotter knows, instead of what this one was taught."""
        self.encoder, self.learner = other.encoder, other.learner
        self.sensitivity, self.sensitivities = other.sensitivity, other.sensitivities
        self.lengths = other.lengths
        self._forgot = True

    # Recognising.

    def predict(
        self,
        audio: Audio,
        sample_rate: int = SAMPLE_RATE,
        *,
        closed: bool = False,
        thresholds: Mapping[str, float] | None = None,
    ) -> Prediction:
        """Say which taught word a clip is, or that it is none of them.

        Parameters
        ----------
        audio, sample_rate
            As for `learn`.
        closed
            Give the nearest word at all cost. Otherwise `word` is None for noise, and where no
            word's score reaches its threshold, as far as thresholds are known for these parts.
        thresholds
            Word -> score from which it counts, over those of the method `thresholds`.
        """
        return self.predict_many([audio], sample_rate, closed=closed, thresholds=thresholds)[0]

    def predict_many(
        self,
        audios: Sequence[Audio],
        sample_rate: int = SAMPLE_RATE,
        *,
        closed: bool = False,
        thresholds: Mapping[str, float] | None = None,
    ) -> list[Prediction]:
        """Predictions of many clips, equal to `predict` one by one."""
        if not len(audios):
            return []
        encoded = self.encode(audios, sample_rate)
        return self.predict_encoded(encoded, closed=closed, thresholds=thresholds)

    def predict_encoded(
        self,
        encoded: Encoded,
        *,
        closed: bool = False,
        thresholds: Mapping[str, float] | None = None,
    ) -> list[Prediction]:
        """Predictions of what `encode` gave."""
        scores = self.score_encoded(encoded)
        if not self.words:
            return [Prediction(None, None, {})] * len(scores)
        if not closed and self.has_thresholds:
            thresholds = self.thresholds() | dict(thresholds or {})
        noise = self.encoder.is_noise(encoded.vectors)
        shares = self.learner.probabilities(
            np.array([list(one.words.values()) for one in scores]).reshape(-1, len(self.words))
        )
        result = []
        for one, share, no_word in zip(scores, shares, noise, strict=True):
            order = sorted(one.words, key=lambda word: -one.words[word])
            by_word = dict(zip(one.words, map(float, share), strict=True))
            word: str | None = order[0]
            if not closed and thresholds is not None:
                word = None if no_word else decide(one, thresholds)
            ranked = {name: by_word[name] for name in order}
            result.append(Prediction(word, one.words[order[0]], ranked))
        return result

    def score_encoded(self, encoded: Encoded) -> list[Scores]:
        """Scores of what `encode` gave."""
        vectors, seconds = encoded.vectors, encoded.seconds
        words, negatives = self.learner.all_scores(vectors)
        learner, cohort = measured(self.learner), self.cohort
        if learner is not None and cohort is not None and words.size:
            level = cohort.level(vectors, seconds)
            more = shift(learner, vectors, words, level)[:, None]
            words, negatives = words + more, negatives + more
        pairs = zip(words, negatives, strict=True)
        return [self._named(words, negatives) for words, negatives in pairs]

    def score_window(
        self, clip: np.ndarray, thresholds: Mapping[str, float] | None = None
    ) -> Scores | None:
        """Scores of a clip (n,) that is aligned already; None for noise alone.

        Scores below the `thresholds` need not be exact: where there are several backbones, the
        first proposes, and if no word would reach its threshold even with most of what the others
        could add, they are not run and its scores stand for all.
        """
        if len(self.backbones) > 1 and self.words and thresholds is not None:
            first = self.encoder.encode_first(clip)
            if self.encoder.is_noise(first[None])[0]:
                return None
            proposed = self.propose(first, len(clip) / SAMPLE_RATE)
            if proposed is not None and not nearly(proposed, thresholds, REST_SCORE):
                return proposed
        encoded = self.encoder.encode([clip])
        if self.encoder.is_noise(encoded.vectors)[0]:
            return None
        return self.score_encoded(encoded)[0]

    def propose(self, first: np.ndarray, seconds: float) -> Scores | None:
        """Scores by the first backbone's part of a vector (D_1,) of a sound so long.

        None where scores are not measured against running speech.
        """
        cohort = self.encoder.first_cohort
        if measured(self.learner) is None or cohort is None:
            return None
        level = cohort.level(first[None], np.array([seconds]))
        return self.first_scores(first[None], level)[0]

    def first_scores(self, first: np.ndarray, level: np.ndarray | float) -> list[Scores]:
        """Scores by the first backbone's part of vectors (n, D_1), less a level (n,)."""
        learner = measured(self.learner)
        assert learner is not None
        directions = unit(learner.directions()[:, : first.shape[1]])
        scores = unit(first) @ directions.T - np.reshape(level, (-1, 1))
        negative = np.array([row.negative for row in learner.rows], dtype=bool)
        return [self._named(one[~negative], one[negative]) for one in scores]

    def _named(self, words: np.ndarray, negatives: np.ndarray) -> Scores:
        return Scores(
            dict(zip(self.learner.words, map(float, words), strict=True)),
            dict(zip(self.learner.negatives, map(float, negatives), strict=True)),
        )

    @property
    def cohort(self) -> Cohort | None:
        """Running speech that scores are measured against; None where they are not."""
        return None if measured(self.learner) is None else self.encoder.cohort

    @property
    def has_thresholds(self) -> bool:
        """Whether it is known how running speech scores: for the sizes, and parts whitened so."""
        return self.cohort is not None

    def require_thresholds(self, reason: str) -> None:
        """Refuse parts for which thresholds are not known; `reason` says why, or what to do."""
        if not self.has_thresholds:
            raise InputError(
                "how sounds score that are no word is not known for these parts, only for the "
                f"sizes and for speech_embedding; {reason}"
            )

    def tails(self) -> dict[str, Tail]:
        """Word -> how high its scores reach in running speech."""
        if not self.words:
            return {}
        self.require_thresholds("give a threshold for each word (--threshold WORD=SCORE)")
        learner, cohort = measured(self.learner), self.cohort
        assert learner is not None and cohort is not None
        directions = learner.directions()
        # A learner gives the same directions until it learns something.
        if self._tails is None or self._tails[0] is not directions:
            found, reach = [], self.encoder.whitenings[0].reach
            for row, direction in zip(learner.rows, directions, strict=True):
                phrase = self.length_of(row.word).is_phrase
                windows = cohort.phrases if phrase else cohort.words
                found.append(Tail.of(windows.scores(direction[None])[:, 0], reach))
            self._tails = directions, found
        rows = zip(learner.rows, self._tails[1], strict=True)
        return {row.word: tail for row, tail in rows if not row.negative}

    def sensitivity_of(self, word: str) -> float:
        """How readily a word is heard, from 0 to 1: its own sensitivity, or that of all words."""
        return self.sensitivities.get(word, self.sensitivity)

    def set_sensitivity(self, value: float, word: str | None = None) -> None:
        """Hear a word more readily, or less: from 0 to 1, with more false alarms or fewer.

        Each tenth is 2.5 times as many false alarms. Without a word it is for all of them, those
        with a sensitivity of their own and those taught later too.
        """
        value = check_sensitivity(value)
        self.require_thresholds("a sensitivity needs that")
        if word is None:
            self.sensitivity, self.sensitivities = value, {}
            return
        word = clean_word(word)
        self.learner.require_taught(word)
        self.sensitivities[word] = value

    def thresholds(
        self,
        false_alarms_per_hour: float = FALSE_ALARMS_PER_HOUR,
        sensitivities: Mapping[str | None, float] | None = None,
    ) -> dict[str, float]:
        """Score from which each word counts as said.

        In an hour of speech that holds none of the words, all of them together may raise so many
        false alarms; a word whose sensitivity was changed may raise more or fewer.
        `sensitivities` are by word, and by None for all others, instead of the spotter's own.
        """
        check_rate(false_alarms_per_hour)
        given, tails = sensitivities or {}, self.tails()
        result = {}
        for word, tail in tails.items():
            own = given.get(word, given.get(None, self.sensitivity_of(word)))
            allowed = false_alarms_per_hour / len(tails) * rate_factor(own)
            result[word] = tail.threshold(allowed)
        return result

    def encode(
        self, audios: Sequence[Audio], sample_rate: int = SAMPLE_RATE, learning: bool = False
    ) -> Encoded:
        """Encode clips as vectors with their lengths; to learn from where `learning`."""
        clips = [self.prepare(audio, sample_rate) for audio in audios]
        return self.encoder.encode(clips, learning)

    def prepare(self, audio: Audio, sample_rate: int = SAMPLE_RATE) -> np.ndarray:
        """Read a clip and bring it to what `Encoder.encode` takes."""
        clip = files.load(audio, sample_rate)
        try:
            return self.encoder.prepare(clip)
        except InputError as error:
            if isinstance(audio, np.ndarray):
                raise
            raise InputError(f"{audio}: {error}") from error

    # In files.

    def require_same_parts(self, other: "Spotter") -> None:
        """Refuse another spotter whose vectors or learner are not like this one's."""
        ours, theirs = self._parts(), other._parts()
        for key in ours:
            # However a clip was augmented, its vector is one of the same kind.
            if key == "augment" or ours[key] == theirs[key]:
                continue
            if key in ("align", "whitening"):
                raise InputError(f"different {key}: {ours[key]} and {theirs[key]}")
            named = [
                registry.describe(*(("learners", one) if key == "learner" else (key, *one)))
                for one in (ours[key], theirs[key])
            ]
            hint = ", or their weights differ" if named[0] == named[1] else ""
            raise InputError(f"different {key}: {named[0]} and {named[1]}{hint}")

    def save(self, path: PathLike, overwrite: bool = False) -> None:
        """Write the model, whole or not at all.

        A file that holds something this spotter has not seen is refused, unless `overwrite`. The
        file that is replaced is kept beside it as `NAME.bak`, unless it holds words that were
        forgotten.
        """
        with store.locked(Path(path)):
            found = None if overwrite else store.revision(Path(path))
            if found is not None and found != self._revision:
                raise ModelFileError(
                    f"{path} was changed since this spotter was loaded, or is another model; "
                    "teach through Spotter.edit(path), merge, save elsewhere, or pass "
                    "overwrite=True"
                )
            self._write(Path(path))

    @classmethod
    def load(
        cls,
        path: PathLike,
        backbones: Sequence[str | Backbone] | None = None,
        whitening: str | Sequence[Whitening] = "shipped",
    ) -> Self:
        """Read a model file.

        Parameters
        ----------
        path
            What `save` wrote.
        backbones
            The model's backbones as they are to be had here, where their weights lie elsewhere or
            they run on another device: names with arguments or `Backbone`s. They must be those the
            model was taught with. Where weights lie never comes from the file, so `onnx` and
            `transformers` need it.
        whitening
            The model's whitening, where it is not the shipped one.

        Notes
        -----
        Nothing but the model file is opened, besides weights that you name: a backbone's own are
        opened when it hears the first clip, and refused if they are not those of the model.
        """
        model = store.read(path)
        header = model.header
        if backbones is None:
            given = model_header.make_parts(path, "backbones", header)
            # These are nobody else's: they may wait for their first clip to open their weights.
            for one, stored in zip(given, header["backbones"], strict=True):
                one.claim_weights(stored.get("weights_sha256", ""))
        else:
            given = [registry.make("backbones", part) for part in backbones]
        _require_backbones(path, header, given)
        try:
            spotter = cls(
                given,
                model_header.make_parts(path, "poolings", header),
                model_header.make_learner(path, header),
                align=bool(header.get("align", False)),
                augment=bool(header.get("augment", False)),
                whitening=whitening if header.get("whitening") else "none",
            )
        except InputError as error:
            raise ModelFileError(f"{path} names parts that do not fit: {error}") from error
        spotter._generation = header.get("generation", 0)
        spotter.sensitivity = float(header["sensitivity"])
        spotter.sensitivities = {word: float(x) for word, x in header["sensitivities"].items()}
        spotter.lengths = {word: Length(*map(float, x)) for word, x in header["lengths"].items()}
        parts = spotter._parts()
        if parts["whitening"] != (header.get("whitening") or []):
            raise ModelFileError(
                f"{path} was taught with another whitening than the one at hand, as an earlier "
                "tapword shipped it; teach anew, or give that whitening by "
                "Spotter.load(path, whitening=[...])"
            )
        spotter._require_dim(path, header["dim"])
        spotter.learner = store.taught(path, model)
        spotter._revision = header.get("revision")
        return spotter

    @classmethod
    @contextlib.contextmanager
    def edit(
        cls, path: PathLike, backbones: Sequence[str | Backbone] | None = None, **parts: Any
    ) -> Iterator[Self]:
        """Change a model file safely: lock, load, let the caller change, write.

        Two programs that teach one file this way lose nothing of each other. On an error the file
        stays as it was. `backbones` are as for `load`; `parts` are what to make a new spotter of
        where there is no file, and a file of other parts is refused.
        """
        path = Path(path)
        with store.locked(path):
            if os.path.lexists(path):
                whitening = parts.get("whitening")
                spotter = cls.load(path, backbones, whitening or "shipped")
                given = whitening not in (None, "none", "shipped")
                if given and not spotter.encoder.whitenings:
                    raise InputError(f"{path} was taught without a whitening; leave it out")
                if parts.keys() - {"whitening"}:
                    spotter.require_same_parts(cls(**parts))
            else:
                spotter = cls(**parts)
            yield spotter
            spotter._write(path)

    def _write(self, path: Path) -> None:
        learner = self.learner
        for name, array in learner.state().items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ModelFileError(
                    f"not saved: {name!r} of learner {learner.spec} has become NaN or infinite; "
                    "the file stays as it was"
                )
        header = self._parts() | {
            "version": __version__,
            "generation": min(self._generation + 1, registry.MAX_WHOLE),
            "dim": learner.dim,
            "words": learner.words,
            "negatives": learner.negatives,
            "rows": learner.rows if learner.negatives else None,
            "sensitivity": self.sensitivity,
            "sensitivities": self.sensitivities,
            "lengths": self.lengths,
        }
        header = store.write(path, header, learner.state(), self._forgot)
        self._generation, self._revision = header["generation"], header["revision"]

    def _require_dim(self, path: PathLike, taught: Any) -> None:
        """Refuse parts whose vectors are not as long as those the learner was taught."""
        if taught is None or any(pooling.needs_length for pooling in self.encoder.poolings):
            return
        dim = self.encoder.dim()
        if dim != taught:
            raise ModelFileError(
                f"{path} was taught vectors of {taught} numbers, its parts give {dim}: it is "
                "damaged"
            )

    def _parts(self) -> dict[str, Any]:
        return self.encoder.stored() | {"learner": registry.store(self.learner)}


def load(path: PathLike) -> Spotter:
    """Read a model file: short for `Spotter.load`."""
    return Spotter.load(path)


def _several(parts: Any) -> list[Any] | None:
    """List what was given as one part, several or none."""
    if parts is None:
        return None
    return [parts] if isinstance(parts, str | registry.Part) else list(parts)


def _require_backbones(path: PathLike, header: dict[str, Any], given: list[Backbone]) -> None:
    """Refuse backbones that a model was not taught with, before any is opened."""
    for stored, one in zip_longest(header["backbones"], given):
        if stored is None or one is None or not model_header.is_stored(stored, one):
            raise ModelFileError(
                f"{path} was taught with another backbone: {model_header.taught_with(header)}"
            )
        wanted = stored.get("weights_sha256", "")
        if one.weights_sha256 != wanted:
            raise ModelFileError(f"{path}: {other_weights(one.name, wanted, one.weights_sha256)}")
