"""Check clips before they are taught: one by one, then as a lesson."""

import hashlib
import itertools
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeVar

import numpy as np

from tapword.audio import files as audio_files
from tapword.audio.align import other_sound
from tapword.audio.endpoint import Take
from tapword.audio.files import SAMPLE_RATE
from tapword.backbones.base import Backbone
from tapword.errors import InputError
from tapword.spotter import typed
from tapword.spotter.encoder import CLIPS_AT_ONCE, Encoded, Encoder
from tapword.spotter.spotter import Spotter, require_same_parts
from tapword.spotter.takes import find_takes
from tapword.spotter.thresholds import decide
from tapword.spotter.vocabulary import CLIP_S, clean_new_word
from tapword.support.atomic_files import PathLike
from tapword.support.issues import Issue, Severity
from tapword.support.text import counted, listed
from tapword.voices.base import Said, SpokenBy, Voice

# A clip contains more than one word if this much other sound is as loud, in seconds. A pause is
# long from the second on. Set by hand: none of the demo's clips has either, of 177 read phrases 3
# and 3 do.
OTHER_S, PAUSE_S = 0.15, 0.35
# A take is unlike its word if its score is this far below the word's threshold. Of 200 takes each,
# the checks doubt 3.5 % by the voice that taught the word, 9 % by other voices, and 92.5 % of other
# words (benchmarks/takes.py, Speech Commands).
UNLIKE_SCORE = 0.2
# A word is close to another if this fraction of its clips, and at least this many, sound like the
# other. Set by hand; tests/spotter/test_session.py holds them to the demo's words.
CLOSE_FRACTION, MIN_CLIPS = 0.8, 3
# This fraction must still be confused once the rest of the lesson is learned: fewer are single
# clips under a wrong name. Set by hand, held to the same.
CONFUSED_FRACTION = 0.2
# At most this many clips of a word are learned for a review: more change nothing.
MAX_CLIPS = 10
# A review is a cross-validation of this many folds.
FOLDS = 3
# Most clips times words of a review, as 500 words with 10 clips each have. It takes about 100 bytes
# each, and more words would take gigabytes.
MAX_SCORES = 2_500_000
# Clips that a review covers where a word is taught take by take.
LATEST = 5

# A take was just recorded, and its speaker can say it again. A file is a clip as somebody else cut
# it. Files of a lesson are compared with each other by `TeachSession.review`.
Kind = Literal["take", "file", "lesson"]
NOTHING = "none of the clips could be used; nothing was taught"
NOT_TAUGHT = 'nothing was taught; to teach "{other}", use that spelling'

# Called with a doubt; says whether to teach it all the same.
Ask = Callable[[Issue], bool]
Label = TypeVar("Label")


class Checked(NamedTuple):
    """A clip that was checked.

    Attributes
    ----------
    word, name
        What is said in it, and what messages call it.
    encoded
        As it would be learned, one row; no row where there is no speech.
    issues
        What may be wrong with it, in the order of `CHECKS`.
    digest
        Hash of its samples.
    spoken_by
        The voice that spoke it; None for a recording.
    """

    word: str
    name: str
    encoded: Encoded
    issues: list[Issue]
    digest: bytes
    spoken_by: SpokenBy | None = None

    @property
    def severity(self) -> str | None:
        """The worst severity of its issues; None where it has none."""
        found = {issue.severity for issue in self.issues}
        return next((one for one in ("refuse", "doubt", "note") if one in found), None)

    def has(self, code: str) -> bool:
        """Whether it has an issue with this code."""
        return any(issue.code == code for issue in self.issues)


def sound_issues(spotter: Spotter, audio: np.ndarray, _: Checked) -> Iterator[Issue]:
    """Find other sound than one word or phrase in a clip (n,)."""
    if not spotter.encoder.preparation.align or len(audio) <= CLIP_S * SAMPLE_RATE:
        return
    if has_several_words(audio):
        yield Issue("more_than_one_word", "note")
    if other_sound(audio)[1] >= PAUSE_S:
        yield Issue("long_pause", "note")


def has_several_words(audio: np.ndarray) -> bool:
    """Whether a clip (n,) contains other sound, about as loud as its loudest."""
    return len(audio) > CLIP_S * SAMPLE_RATE and other_sound(audio)[0] >= OTHER_S


def noise_issues(spotter: Spotter, _: np.ndarray, clip: Checked) -> Iterator[Issue]:
    """Find out whether a clip is noise alone."""
    if spotter.encoder.is_noise(clip.encoded.vectors)[0]:
        yield Issue("noise", "doubt")


def other_word_issues(spotter: Spotter, _: np.ndarray, clip: Checked) -> Iterator[Issue]:
    """Find out whether a clip counts as another word, if there are thresholds."""
    if spotter.words and spotter.has_thresholds:
        [found] = spotter.predict_encoded(clip.encoded)
        if found.word not in (None, clip.word):
            yield Issue("other_word", "doubt", {"word": clip.word, "other": found.word})


def unlike_issues(spotter: Spotter, _: np.ndarray, clip: Checked) -> Iterator[Issue]:
    """Find out whether a take is unlike the word's other takes, if there are thresholds."""
    if clip.word in spotter.words and spotter.has_thresholds:
        [scores] = spotter.score_encoded(clip.encoded)
        if spotter.thresholds()[clip.word] - scores.words[clip.word] > UNLIKE_SCORE:
            yield Issue("unlike", "doubt", {"word": clip.word})


# The checks, in this order, and the kinds of clips they apply to. A take's own issue comes first.
Check = Callable[[Spotter, np.ndarray, Checked], Iterator[Issue]]
CHECKS: tuple[tuple[Check, tuple[Kind, ...]], ...] = (
    (sound_issues, ("file", "lesson")),
    (noise_issues, ("take", "file", "lesson")),
    (other_word_issues, ("take", "file")),
    (unlike_issues, ("take",)),
)
# After one of these, nothing more is checked.
FINAL = {"noise", "other_word"}


@dataclass(frozen=True)
class ModelFile:
    """A model file to teach.

    Attributes
    ----------
    path
        Where it is; it is made if there is none.
    backbones
        Of a file that exists, its backbones, as for `Spotter.load`; None: as the file has them.
    parts
        Of a new one, what it is made of, as for `Spotter`.
    """

    path: Path
    backbones: Sequence[str | Backbone] | None = None
    parts: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> Spotter:
        """Read it, or make a spotter of its parts if there is no file."""
        if os.path.lexists(self.path):
            return Spotter.load(self.path, self.backbones)
        return Spotter(**self.parts)


class TeachSession:
    """Check clips before they are taught, and review those that were accepted as one lesson.

    Parameters
    ----------
    spotter
        The model before the lesson; it is not changed.
    latest
        Review this many of the latest clips; None: all.
    model
        The file to teach, where `write` does it.

    Attributes
    ----------
    accepted
        Clips that were accepted: those that a review covers.

    Examples
    --------
    >>> session = TeachSession(Spotter())
    >>> noise = 0.1 * np.random.default_rng(0).standard_normal(16000).astype(np.float32)
    >>> checked = session.check(noise, "lamp")
    >>> checked.severity, [issue.code for issue in checked.issues]
    ('doubt', ['noise'])
    """

    def __init__(self, spotter: Spotter, latest: int | None = None, model: ModelFile | None = None):
        self.spotter = spotter
        self.model = model
        self.accepted: deque[Checked] = deque(maxlen=latest)
        self._current = spotter
        self._not_in_current: list[Checked] = []

    @classmethod
    def open(cls, model: ModelFile, words: Iterable[str], ask: Ask, **options: Any) -> Self:
        """Begin to teach words to a model file, and ask about words that are doubtful."""
        session = cls(model.load(), model=model, **options)
        for issue in session.check_words(words):
            if not ask(issue):
                raise InputError(NOT_TAUGHT.format(**issue.params))
        return session

    def check_words(self, words: Iterable[str]) -> list[Issue]:
        """Refuse new words that are too long; doubt those that differ in capital letters only."""
        known, found = set(self.spotter.words), []
        # First known word of each spelling; a search for each word would take quadratic time.
        first: dict[str, str] = {}
        for word in self.spotter.words:
            first.setdefault(word.casefold(), word)
        for word in words:
            clean_new_word(word, known)
            other = first.setdefault(word.casefold(), word)
            if word not in known and other != word:
                found.append(Issue("case_variant", "doubt", {"word": word, "other": other}))
            known.add(word)
        return found

    def check(
        self, clip: np.ndarray | Take, word: str, kind: Kind = "take", name: str = ""
    ) -> Checked:
        """Check one clip.

        Parameters
        ----------
        clip
            Shape (n,), float32 at 16 kHz; or a take as the end-pointer gave it, with its issue.
        word
            What is said in it.
        kind
            Which checks apply.
        name
            What messages call it.
        """
        if not isinstance(clip, Take):
            return self._check(kind, [clip], [word], [name])[0]
        if clip.has_speech:
            return self._check(kind, [clip.audio], [word], [name], clip.issue)[0]
        nothing = self.spotter.encoder.encode([], learning=True)
        return Checked(word, name, nothing, [clip.issue] if clip.issue else [], b"")

    def _check(
        self,
        kind: Kind,
        clips: Sequence[np.ndarray],
        words: Sequence[str],
        names: Sequence[str],
        issue: Issue | None = None,
        prepared: Sequence[np.ndarray] | None = None,
    ) -> list[Checked]:
        encoder = self.spotter.encoder
        prepared = prepared or [encoder.prepare(clip) for clip in clips]
        rows = encoder.encode(prepared, learning=True)
        # A lesson is compared with the model by its review.
        spotter = self.spotter if kind == "lesson" else self.current
        result = []
        for audio, word, name, encoded in zip(clips, words, names, rows, strict=True):
            issues = [issue] if issue is not None and kind == "take" else []
            digest = hashlib.sha256(audio.tobytes()).digest()
            checked = Checked(word, name, encoded, issues, digest)
            for find, kinds in CHECKS:
                if kind in kinds and not any(map(checked.has, FINAL)):
                    issues += find(spotter, audio, checked)
            result.append(checked)
        return result

    def accept(self, checked: Checked) -> None:
        """Note that a clip is taught."""
        self.accepted.append(checked)
        self._not_in_current.append(checked)

    def follow(self, spotter: Spotter) -> None:
        """Compare the next clips with this model, which learned those that were accepted."""
        self._current, self._not_in_current = spotter, []

    @property
    def current(self) -> Spotter:
        """The model, with what was accepted so far."""
        if self._not_in_current:
            self._current = _taught(self._current, self._not_in_current)
            self._not_in_current = []
        return self._current

    def review(self) -> list[Issue]:
        """Compare the accepted clips with each other and with the model before the lesson.

        Each third of the clips is scored by a copy that learned the other two. A word is close to
        another if nearly all its clips sound like the other without it, and some still do with it;
        or if nearly all would count as the other. Of words that are not close, the clips are named
        that would count as another word. A recording that is taught as two words is named, too.
        Words are not compared where clips times words exceed `MAX_SCORES`.
        """
        clips = list(self.accepted)
        return [*_same_recordings(clips), *_Review(self.spotter, clips).issues()]

    # Files.

    def learn_files(
        self,
        files: Iterable[tuple[PathLike, str]],
        say: Callable[[Issue], None],
        keep_noise: bool = False,
        skipped: Callable[[str], None] | None = None,
        progress: Callable[[int], None] | None = None,
        split: bool | None = None,
    ) -> Spotter:
        """Check sound files, each with its word, and teach them to the model file.

        Parameters
        ----------
        files
            Paths with their words.
        say
            Called with each issue and the clips that share it; "refuse": they are left out.
        keep_noise
            Whether to teach clips that contain only noise.
        skipped
            Called with a message for each file that cannot be used; None: raise an error.
        progress
            Called with the number of files that were read.
        split
            Whether each sound of a file is a take. None: where its sounds are similar.

        Returns
        -------
        Spotter
            The model afterwards.
        """
        for issue in self.check_files(files, keep_noise, skipped, progress, split):
            say(issue)
        return self.write(say)

    def check_files(
        self,
        files: Iterable[tuple[PathLike, str]],
        keep_noise: bool = False,
        skipped: Callable[[str], None] | None = None,
        progress: Callable[[int], None] | None = None,
        split: bool | None = None,
    ) -> list[Issue]:
        """Check sound files and accept those to teach; arguments as for `learn_files`."""
        issues: list[Issue] = []
        answer: Severity = "note" if keep_noise else "refuse"

        def cut(name: str, word: str, clip: np.ndarray) -> list[tuple[str, np.ndarray]]:
            none = split is False
            sounds = [] if none else find_takes(self.spotter.encoder, clip, force=bool(split))
            if not sounds:
                return [(name, clip)]
            named = [(f"{name} at {one.start_s:.1f} s", one) for one in sounds]
            takes = [(place, one.audio) for place, one in named if one.is_take]
            unlike = tuple(place for place, one in named if not one.is_take)
            issues.append(Issue("several_takes", "note", {"takes": len(takes)}, (name,)))
            if unlike:
                issues.append(Issue("unlike", "refuse", {"word": word}, unlike))
            return takes

        for batch in read_files(self.spotter.encoder, files, skipped, progress, cut):
            names, words, clips, prepared = zip(*batch, strict=True)
            for checked in self._check("lesson", clips, words, names, prepared=prepared):
                for issue in checked.issues:
                    severity = answer if issue.severity == "doubt" else issue.severity
                    issues.append(issue._replace(severity=severity, clips=(checked.name,)))
                if keep_noise or checked.severity != "doubt":
                    self.accept(checked)
        return joined(issues)

    def speak(
        self,
        word: str,
        request: typed.Request,
        voice: str | Voice | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[Said]:
        """Let a voice say a word and accept the clips; arguments as for `Spotter.learn_text`."""
        self.spotter.learner.require_synthetic()
        known = self.spotter.vocabulary.synthetic.get(word, 0)
        spoken = typed.speak(self.spotter.encoder, request, voice, progress, seed=known)
        for one, row in zip(spoken.said, spoken.encoded, strict=True):
            digest = hashlib.sha256(one.audio.tobytes()).digest()
            self.accept(Checked(word, one.speaker, row, [], digest, spoken.by))
        return spoken.said

    def write(self, say: Callable[[Issue], None]) -> Spotter:
        """Review what was accepted, and teach it to the model file; give the model afterwards."""
        assert self.model is not None
        if not self.clips:
            raise InputError(NOTHING)
        for issue in self.review():
            say(issue)
        # The file is locked only for the moment of learning.
        model, words = self.model, dict.fromkeys(clip.word for clip in self.accepted)
        said = all(clip.spoken_by is not None for clip in self.accepted)
        verb = "say" if said else "learn"
        step = f"{verb} {listed(list(words))}: {counted(self.clips, 'clip')}"
        with Spotter.edit(model.path, model.backbones, step, **model.parts) as spotter:
            # Somebody may have replaced it meanwhile.
            require_same_parts(spotter, self.spotter)
            self.teach(spotter)
        return spotter

    @property
    def clips(self) -> int:
        """How many clips are taught."""
        return len(self.accepted)

    def teach(self, spotter: Spotter) -> None:
        """Teach a spotter the clips that were accepted."""
        for by in dict.fromkeys(clip.spoken_by for clip in self.accepted):
            clips = [clip for clip in self.accepted if clip.spoken_by == by]
            spotter.learn_encoded(_joined(clips), [clip.word for clip in clips], by)


def read_files(
    encoder: Encoder,
    files: Iterable[tuple[PathLike, Label]],
    skipped: Callable[[str], None] | None = None,
    progress: Callable[[int], None] | None = None,
    cut: Callable[[str, Label, np.ndarray], list[tuple[str, np.ndarray]]] | None = None,
) -> Iterator[list[tuple[str, Label, np.ndarray, np.ndarray]]]:
    """Read sound files, each with a label, and prepare them for an encoder, a batch at a time.

    `cut` may make several clips of one, each with its name.

    Yields
    ------
    list of tuples
        Name, label, clip (n,) and prepared clip (m,). `skipped` and `progress` are as for
        `TeachSession.learn_files`.
    """
    files, done = iter(files), 0
    while some := list(itertools.islice(files, CLIPS_AT_ONCE)):
        batch = []
        for path, label in some:
            try:
                name, clip = str(path), audio_files.read(path)
                clips = [(name, clip)] if cut is None else cut(name, label, clip)
                batch += [(name, label, clip, encoder.prepare(clip, name)) for name, clip in clips]
            except InputError as error:
                if skipped is None:
                    raise
                skipped(str(error))
        if batch:
            yield batch
        done += len(some)
        if progress is not None:
            progress(done)


def joined(issues: Iterable[Issue]) -> list[Issue]:
    """Join issues that differ in their clips alone."""
    found: dict[tuple[object, ...], list[Issue]] = {}
    for issue in issues:
        key = issue.code, issue.severity, *issue.params.items()
        found.setdefault(key, []).append(issue)
    return [
        same[0]._replace(clips=tuple(clip for issue in same for clip in issue.clips))
        for same in found.values()
    ]


class _Review:
    """Cross-validation of the clips of a lesson; `spotter` is the model before it."""

    def __init__(self, spotter: Spotter, clips: Iterable[Checked]):
        self.spotter = spotter
        self.clips_of: dict[str, list[Checked]] = {}
        for clip in clips:
            self.clips_of.setdefault(clip.word, []).append(clip)

    def taught(self, fold: int | None = None, without: str | None = None) -> Spotter:
        """Teach a copy a few clips of each word, except for one fold or one word."""
        clips = [
            clip
            for word, own in self.clips_of.items()
            for place, clip in enumerate(own[:MAX_CLIPS])
            if place % FOLDS != fold and word != without
        ]
        return _taught(self.spotter, clips)

    def compare(self) -> dict[tuple[str, str], list[tuple[Checked, bool, bool]]]:
        """List clips by their word and the best other word.

        With each: whether it would count as the other if there were no such word, and whether it
        is nearer to the other.
        """
        found: dict[tuple[str, str], list[tuple[Checked, bool, bool]]] = {}
        for fold in range(FOLDS):
            clips = [clip for own in self.clips_of.values() for clip in own[fold::FOLDS]]
            if not clips:
                break
            spotter = self.taught(fold)
            thresholds = spotter.thresholds() if spotter.has_thresholds else {}
            for clip, scores in zip(clips, spotter.score_encoded(_joined(clips)), strict=True):
                others = dict(scores.words)
                own_score = others.pop(clip.word, -math.inf)
                if others:
                    other = max(others, key=lambda word: others[word])
                    counts = decide(scores._replace(words=others), thresholds) == other
                    pair = found.setdefault((clip.word, other), [])
                    pair.append((clip, counts, others[other] > own_score))
        return found

    def issues(self) -> list[Issue]:
        """Name words that are close to each other, and single clips that count as another word."""
        n_words = len(self.spotter.words.keys() | self.clips_of.keys())
        if n_words < 2 or n_words * sum(map(len, self.clips_of.values())) > MAX_SCORES:
            return []
        close: dict[str, str] = {}
        single = []
        for (word, other), pair in self.compare().items():
            _, counts, nearer = zip(*pair, strict=True)
            if self._are_close(word, other, sum(counts), sum(nearer)):
                if close.get(other) != word:
                    close[word] = other
                continue
            # Somebody has decided about a clip that has this issue already.
            names = [c.name for c, *both in pair if all(both) and not c.has("other_word")]
            if names:
                params = {"word": word, "other": other}
                single.append(Issue("other_word", "note", params, tuple(names)))
        pairs = ({"word": word, "other": other} for word, other in close.items())
        return [*(Issue("close_word", "note", params) for params in pairs), *single]

    def _are_close(self, word: str, other: str, counting: int, nearer: int) -> bool:
        clips = self.clips_of[word]
        if len(clips) < MIN_CLIPS:
            return False
        if counting >= CLOSE_FRACTION * len(clips):
            return True
        if nearer < CONFUSED_FRACTION * len(clips):
            return False
        some = clips[:MAX_CLIPS]
        answers = self.taught(without=word).predict_encoded(_joined(some), closed=True)
        return sum(one.word == other for one in answers) >= CLOSE_FRACTION * len(some)


def _same_recordings(clips: Iterable[Checked]) -> Iterator[Issue]:
    """Name each recording that is taught as two words."""
    first: dict[bytes, Checked] = {}
    for clip in clips:
        same = first.setdefault(clip.digest, clip)
        if same.word != clip.word:
            words = {"first": same.word, "second": clip.word}
            yield Issue("same_recording", "note", words, (same.name, clip.name))


def _taught(spotter: Spotter, clips: Sequence[Checked]) -> Spotter:
    """Copy of a spotter that has learned more."""
    taught = spotter.copy()
    if clips:
        taught.learn_encoded(_joined(clips), [clip.word for clip in clips])
    return taught


def _joined(clips: Sequence[Checked]) -> Encoded:
    return Encoded.concatenate([clip.encoded for clip in clips])
