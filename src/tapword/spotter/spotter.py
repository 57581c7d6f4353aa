"""Spotter = encoder + learner: teach words from clips, recognise them, keep them in a file."""

import contextlib
import copy
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from tapword.spotter import model_header, presets, store, typed
from tapword.spotter.encoder import Audio, Encoded, Encoder, Preparation
from tapword.spotter.scorer import Scorer
from tapword.spotter.thresholds import (
    FALSE_ALARMS_PER_HOUR,
    Scores,
    check_sensitivity,
    confidences,
    decide,
)
from tapword.spotter.vocabulary import Vocabulary, clean_new_word, clean_word
from tapword.spotter.whitening import Whitening
from tapword.support.atomic_files import PathLike
from tapword.support.text import counted
from tapword.support.threads import one_blas_thread
from tapword.version import __version__
from tapword.voices.base import SpokenBy, Voice


class Prediction(NamedTuple):
    """The word in a clip.

    Attributes
    ----------
    word
        The best word; None if no word matches, or the model has none.
    score
        The best word's score, also where `word` is None; None if the model has no words. The
        sizes normalise it by running speech; other parts keep the learner's own scale.
    probabilities
        Word -> probability over all taught words, best first: they compare the words with each
        other and do not say whether any of them was said.
    confidences
        Word -> how sure, from 0 to 100, best first: it counts as said from 50 on. All are 0 for
        noise. Empty where thresholds are unavailable.
    """

    word: str | None
    score: float | None
    probabilities: dict[str, float]
    confidences: dict[str, int]

    @property
    def confidence(self) -> int | None:
        """How sure, from 0 to 100: of the word, or of the nearest word if none matches.

        None where thresholds are unavailable, or the model has no words.
        """
        if self.word is not None:
            return self.confidences.get(self.word)
        return next(iter(self.confidences.values()), None)


class Spotter:
    """Teach words from clips, one at a time, and recognise them.

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
        Preset instead of parts: "small", "medium" or "large". Parts that are not named come from
        "small", see `presets.fill_in`.
    align
        Cut each clip around its speech, at least one second; otherwise use the whole clip. None:
        as in the preset, if backbone and pooling are the preset's.
    augment
        Teach each clip as the mean of itself and augmented copies: fewer words are missed in noise,
        and one sample is worth more. None: as for `align`.
    whitening
        "shipped": whiten vectors by how other words vary; "none"; or `Whitening`s, one of them for
        each backbone. None: shipped if the learner needs it, as in the presets
        (`cosine:prior=shipped`).

    Attributes
    ----------
    encoder, learner
        Its two halves: clips -> vectors, vectors -> scores.
    vocabulary
        A record of each word: count, negatives, length, sensitivity.

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
        self.vocabulary = Vocabulary()
        self._scorer: Scorer | None = None
        self._generation = 0
        self._revision: str | None = None
        # Whether something was forgotten that the file's backup still contains.
        self._forgot = False

    def __repr__(self) -> str:
        return (
            f"<Spotter {self.encoder!r} -> {self.learner.spec}, {counted(len(self.words), 'word')}>"
        )

    @property
    def words(self) -> dict[str, int]:
        """Word -> number of samples taught; 0 for a word that was only typed."""
        return self.vocabulary.counts

    @property
    def scorer(self) -> Scorer:
        """Scores, tails and phrases of what is taught now."""
        parts = self.encoder, self.learner, self.vocabulary
        if self._scorer is None or self._scorer.parts != parts:
            self._scorer = Scorer(*parts)
        return self._scorer

    def copy(self, learner: Learner | None = None, vocabulary: Vocabulary | None = None) -> Self:
        """Copy the spotter, to teach it separately; both share the encoder.

        A given `learner` or `vocabulary` replaces the copied one.
        """
        made = copy.copy(self)
        made.learner = copy.deepcopy(self.learner) if learner is None else learner
        made.vocabulary = self.vocabulary if vocabulary is None else vocabulary
        return made

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

    @one_blas_thread
    def learn_encoded(
        self, encoded: Encoded, words: Sequence[str], spoken_by: SpokenBy | None = None
    ) -> None:
        """Learn what `encode` returned, one row for each of `words`.

        Clips that were `spoken_by` a voice are kept apart: see `learn_text`.
        """
        words = [clean_new_word(word, self.words) for word in words]
        if spoken_by is not None:
            for word in dict.fromkeys(words):
                rows = [row for row, own in enumerate(words) if own == word]
                self.learner.learn_synthetic(encoded.vectors[rows], word, spoken_by.native)
        elif len(words) == 1:
            self.learner.learn_one(encoded.vectors[0], words[0])
        else:
            self.learner.learn_many(encoded.vectors, words)
        self.vocabulary = self.vocabulary.added(
            Vocabulary.of_samples(words, encoded.seconds, spoken_by)
        )

    def learn_text(
        self,
        word: str,
        text: str | None = None,
        *,
        language: str = typed.LANGUAGE,
        voice: str | Voice | None = None,
        n: int = typed.CLIPS,
        phonemes: str = "",
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Learn a word from its text alone: a voice says it in many ways.

        The clips are kept apart from samples. They count as one of them, or for nothing where the
        samples sound too different.

        Parameters
        ----------
        word, text
            The word, and what is said; None: the word itself.
        language
            As espeak-ng names it: en-us, de, fr-fr, ...
        voice
            Name with arguments or a `Voice`; None: the best one that speaks here.
        n
            Number of clips.
        phonemes
            How the text is pronounced, in IPA; "": as it is spelled.
        progress
            Called with the number of clips that were spoken.
        """
        self.learner.require_synthetic()
        word = clean_new_word(word, self.words)
        request = typed.Request(word if text is None else text, language, n, phonemes)
        done = self.vocabulary.synthetic.get(word, 0)
        said = typed.speak(self.encoder, request, voice, progress, seed=done)
        self.learn_encoded(said.encoded, [word] * len(said.encoded), said.by)

    @one_blas_thread
    def unlearn_encoded(
        self,
        encoded: Encoded,
        words: Sequence[str],
        negative: bool = False,
        scattered: bool = True,
        spoken_by: SpokenBy | None = None,
    ) -> None:
        """Take out what was learned, as if it had never been.

        As words, as negatives if `negative`, or as clips that were `spoken_by` a voice. `scattered`
        is as for `Learner.unlearn_one`. The last sample of a word removes the word.
        """
        for one, word in zip(encoded, map(clean_word, words), strict=True):
            if spoken_by is not None:
                self.learner.unlearn_synthetic(one.vectors[0], word, spoken_by.native)
            else:
                self.learner.unlearn_one(one.vectors[0], word, negative, scattered)
            if negative:
                self.vocabulary = self.vocabulary.rejected(word, -1)
            else:
                self.vocabulary = self.vocabulary.unlearned(
                    word, one.seconds, spoken_by is not None
                )
        self._forgot = True

    def extract_word(self, word: str) -> Self:
        """Copy that knows this word alone; `merge` restores it after `forget`."""
        word = clean_word(word)
        return self.copy(self.learner.extract_word(word), self.vocabulary.only(word))

    def reject(self, audio: Audio, sample_rate: int = SAMPLE_RATE) -> str | None:
        """Learn that a sound is none of the words; return the word it matched, or the nearest.

        It becomes a negative of that word, learned as the word's samples are. The clip is not kept.
        """
        if not self.words:
            return None
        clip = files.load(audio, sample_rate)
        return self.reject_encoded(self.encode([clip]), self.encode([clip], learning=True))

    @one_blas_thread
    def reject_encoded(self, encoded: Encoded, taught: Encoded) -> str:
        """Learn a negative from one clip, encoded plainly and for learning."""
        [scores] = self.score_encoded(encoded)
        # What it matches now: a word it was rejected as before may be nearer still.
        candidates = scores.not_rejected() or scores.words
        word = max(candidates, key=lambda name: candidates[name])
        self.learner.learn_one(taught.vectors[0], word, negative=True)
        self.vocabulary = self.vocabulary.rejected(word)
        return word

    def forget(self, word: str) -> None:
        """Remove a word and its negatives; the next `save` removes what else holds them.

        That is the backup, and the undo file unless `save` or `edit` is given a `step`.
        """
        word = clean_word(word)
        self.learner.forget(word)
        self.vocabulary = self.vocabulary.without(word)
        self._forgot = True

    def rename(self, old: str, new: str) -> None:
        """Give a word another name."""
        old, new = clean_word(old), clean_new_word(new, self.words)
        self.learner.rename(old, new)
        self.vocabulary = self.vocabulary.renamed(old, new)
        self._forgot = True

    @one_blas_thread
    def merge(self, other: "Spotter") -> None:
        """Add what another spotter of the same parts was taught.

        A word keeps its sensitivity; if both have the word, the lower one counts.
        """
        require_same_parts(self, other)
        self.learner.merge(other.learner)
        self.vocabulary = self.vocabulary.merged(other.vocabulary)

    def replace_with(self, other: "Spotter") -> None:
        """Take over parts and words of another spotter, in place of its own."""
        self.encoder, self.learner = other.encoder, other.learner
        self.vocabulary = other.vocabulary
        self._forgot = True

    # Recognising.

    def encode(
        self, audios: Sequence[Audio], sample_rate: int = SAMPLE_RATE, learning: bool = False
    ) -> Encoded:
        """Encode clips as vectors with their lengths; `learning` augments them."""
        clips = [
            self.encoder.prepare(
                files.load(audio, sample_rate), None if isinstance(audio, np.ndarray) else audio
            )
            for audio in audios
        ]
        return self.encoder.encode(clips, learning)

    def predict(
        self,
        audio: Audio,
        sample_rate: int = SAMPLE_RATE,
        *,
        closed: bool = False,
        thresholds: Mapping[str, float] | None = None,
    ) -> Prediction:
        """Return the taught word in a clip, or None if none matches.

        Parameters
        ----------
        audio, sample_rate
            As for `learn`.
        closed
            Always give the nearest word. Otherwise `word` is None for noise, and if no word
            reaches its threshold, where thresholds are available.
        thresholds
            Word -> score from which it counts, in place of those of `thresholds()`.
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

    @one_blas_thread
    def predict_encoded(
        self,
        encoded: Encoded,
        *,
        closed: bool = False,
        thresholds: Mapping[str, float] | None = None,
    ) -> list[Prediction]:
        """Predictions of what `encode` returned."""
        scores = self.score_encoded(encoded)
        if not self.words:
            return [Prediction(None, None, {}, {})] * len(scores)
        known = dict(thresholds or {})
        if self.has_thresholds:
            known = self.thresholds() | known
        if not closed and self.has_thresholds:
            thresholds = known
        noise = self.encoder.is_noise(encoded.vectors)
        probabilities = self.learner.probabilities(
            np.array([list(one.words.values()) for one in scores]).reshape(-1, len(self.words))
        )
        result = []
        for one, row, is_noise in zip(scores, probabilities, noise, strict=True):
            order = sorted(one.words, key=lambda word: -one.words[word])
            by_word = dict(zip(one.words, map(float, row), strict=True))
            word: str | None = order[0]
            if not closed and thresholds is not None:
                word = None if is_noise else decide(one, thresholds)
            ranked = {name: by_word[name] for name in order}
            sure = confidences(one, known)
            sure = {name: 0 if is_noise else sure[name] for name in order if name in sure}
            result.append(Prediction(word, one.words[order[0]], ranked, sure))
        return result

    def score_encoded(self, encoded: Encoded) -> list[Scores]:
        """Scores of what `encode` returned."""
        return self.scorer.score(encoded)

    @property
    def has_thresholds(self) -> bool:
        """Whether it is known how running speech scores: for the sizes and speech_embedding."""
        return self.scorer.cohort is not None

    def thresholds(
        self,
        false_alarms_per_hour: float = FALSE_ALARMS_PER_HOUR,
        sensitivities: Mapping[str | None, float] | None = None,
    ) -> dict[str, float]:
        """Score from which each word counts as said.

        In an hour of speech that contains none of the words, all of them together raise this many
        false alarms. A word with another sensitivity raises more or fewer.
        `sensitivities` are by word, and by None for all others, in place of the spotter's own.
        """
        return self.scorer.thresholds(false_alarms_per_hour, sensitivities)

    def set_sensitivity(self, value: float, word: str | None = None) -> None:
        """Recognise a word more or less readily: from 0 to 1, with more or fewer false alarms.

        Each tenth allows 2.5 times as many false alarms. Without a word it applies to all of them,
        also to those with their own sensitivity and those taught later.
        """
        value = check_sensitivity(value)
        self.scorer.require_thresholds("A sensitivity needs thresholds")
        vocabulary = self.vocabulary
        if word is None:
            self.vocabulary = vocabulary.with_sensitivities(value, {})
            return
        word = clean_word(word)
        self.learner.require_taught(word)
        own = vocabulary.sensitivities | {word: value}
        self.vocabulary = vocabulary.with_sensitivities(vocabulary.sensitivity, own)

    # Files.

    def save(self, path: PathLike, overwrite: bool = False, step: str | None = None) -> None:
        """Write the model, completely or not at all.

        A file with changes that this spotter has not seen is refused, unless `overwrite`. The
        replaced file is kept beside it as `NAME.bak`, unless it contains words that were forgotten.
        `step` is as for `edit`.
        """
        with store.locked(Path(path)):
            found = None if overwrite else store.revision(Path(path))
            if found is not None and found != self._revision:
                raise ModelFileError(
                    f"{path} was changed since this spotter was loaded, or is another model; "
                    "teach through Spotter.edit(path), merge, save elsewhere, or pass "
                    "overwrite=True"
                )
            self._write(Path(path), step)

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
            Override where the model's backbones are loaded from, or their device: names with
            arguments or `Backbone`s. They must be those the model was taught with. Paths of weights
            never come from the file, so `onnx` and `transformers` need this.
        whitening
            The model's whitening, if it is not the shipped one.

        Notes
        -----
        Only the model file is opened, and weights that you name. A backbone opens its own weights
        at the first clip, and refuses them if they are not those of the model.
        """
        model = store.read(path)
        header = model.header
        if backbones is None:
            given = model_header.make_parts(path, "backbones", header)
            # Not shared, so they may open their weights at the first clip.
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
        spotter.vocabulary = Vocabulary.of(
            header["words"],
            header["negatives"],
            header["lengths"],
            {word: float(x) for word, x in header["sensitivities"].items()},
            float(header["sensitivity"]),
            header["synthetic"],
            header["voices"],
        )
        if [one.sha256 for one in spotter.encoder.whitenings] != (header.get("whitening") or []):
            raise ModelFileError(
                f"{path} was taught with another whitening, from an earlier tapword; teach it "
                "again, or give that whitening with Spotter.load(path, whitening=[...])"
            )
        spotter._require_dim(path, header["dim"])
        spotter.learner = store.load_learner(path, model)
        spotter._revision = header.get("revision")
        return spotter

    @classmethod
    @contextlib.contextmanager
    def edit(
        cls,
        path: PathLike,
        backbones: Sequence[str | Backbone] | None = None,
        step: str | None = None,
        **parts: Any,
    ) -> Iterator[Self]:
        """Change a model file safely: lock, load, let the caller change, write.

        Two programs that teach one file this way lose nothing of each other. On an error the file
        stays as it was. `backbones` are as for `load`. Without a file, `parts` make a new spotter;
        a file of other parts is refused. `step` describes the change for `tapword undo`, which can
        then take it back; None: it cannot.
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
                    require_same_parts(spotter, cls(**parts))
            else:
                spotter = cls(**parts)
            yield spotter
            spotter._write(path, step)

    def _write(self, path: Path, step: str | None) -> None:
        learner, vocabulary = self.learner, self.vocabulary
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
            "synthetic": learner.synthetic,
            "voices": vocabulary.voices,
            "rows": learner.rows if learner.negatives else None,
            "sensitivity": vocabulary.sensitivity,
            "sensitivities": vocabulary.sensitivities,
            "lengths": vocabulary.lengths,
        }
        header = store.write(path, header, learner.state(), self._forgot, step)
        self._generation, self._revision = header["generation"], header["revision"]

    def _require_dim(self, path: PathLike, taught: Any) -> None:
        """Refuse parts whose vectors differ in length from those that were taught."""
        if taught is None or any(pooling.needs_length for pooling in self.encoder.poolings):
            return
        dim = self.encoder.dim()
        if dim != taught:
            raise ModelFileError(
                f"{path} is damaged: taught with vectors of {taught} numbers, its parts have {dim}"
            )

    def _parts(self) -> dict[str, Any]:
        return self.encoder.stored() | {"learner": registry.store(self.learner)}


def require_same_parts(one: Spotter, other: Spotter) -> None:
    """Refuse two spotters whose vectors or learners differ in kind."""
    ours, theirs = one._parts(), other._parts()
    for key in ours:
        # However a clip was augmented, its vector is of the same kind.
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


def load(path: PathLike) -> Spotter:
    """Read a model file: short for `Spotter.load`."""
    return Spotter.load(path)


def _several(parts: Any) -> list[Any] | None:
    """Make a list of one part, several or none."""
    if parts is None:
        return None
    return [parts] if isinstance(parts, str | registry.Part) else list(parts)


def _require_backbones(path: PathLike, header: dict[str, Any], given: list[Backbone]) -> None:
    """Refuse backbones that a model was not taught with, before opening any."""
    for stored, one in zip_longest(header["backbones"], given):
        if stored is None or one is None or not model_header.is_stored(stored, one):
            raise ModelFileError(
                f"{path} was taught with another backbone: {model_header.taught_with(header)}"
            )
        wanted = stored.get("weights_sha256", "")
        if one.weights_sha256 != wanted:
            raise ModelFileError(f"{path}: {other_weights(one.name, wanted, one.weights_sha256)}")
