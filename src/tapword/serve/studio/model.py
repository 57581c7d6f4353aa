"""The model that a studio teaches: one file, which other programs may change, too."""

import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from tapword import registry
from tapword.audio import endpoint
from tapword.audio.files import SAMPLE_RATE
from tapword.backbones.base import Backbone
from tapword.errors import InputError, ModelFileError
from tapword.learners.base import Learner
from tapword.learners.statistics_learner import StatisticsLearner
from tapword.listening.detector import Detector
from tapword.serve.studio.history import (
    Forgotten,
    Histories,
    History,
    Renamed,
    SensitivityChanged,
    Take,
    TakeRemoved,
    Taught,
    Typed,
    sensitivities,
)
from tapword.serve.studio.limits import LIMITS, ServerLimits
from tapword.serve.studio.word_map import word_map
from tapword.spotter import store
from tapword.spotter.encoder import Encoded
from tapword.spotter.session import LATEST, Kind, TeachSession
from tapword.spotter.spotter import Spotter, require_same_parts
from tapword.spotter.takes import Sound, find_takes
from tapword.spotter.typed import Request
from tapword.spotter.vocabulary import MAX_WORD_BYTES, clean_new_word, clean_word
from tapword.spotter.watched import WatchedModel
from tapword.support.issues import Issue
from tapword.voices.base import Said, SpokenBy


class Outcome(NamedTuple):
    """What came of a clip: its number if it was learned, and what may be wrong with it.

    Of a file with several takes, the outcome of each, with the sound that it is about.
    """

    take: int | None
    issues: list[Issue]
    sounds: Sequence[tuple[Sound, "Outcome"]] = ()

    def state(self) -> dict[str, Any]:
        """Give what a page shows of it, ready for JSON."""
        state = {"take": self.take, "issues": issue_states(self.issues)}
        if not self.sounds:
            return state
        sounds = [
            {"first": sound.first, "samples": len(sound.audio), "start_s": round(sound.start_s, 1)}
            | outcome.state()
            for sound, outcome in self.sounds
        ]
        return state | {"sounds": sounds}


def issue_states(issues: Iterable[Issue]) -> list[dict[str, Any]]:
    """Give code, severity and parameters of issues, ready for JSON."""
    return [
        {"code": issue.code, "severity": issue.severity, "params": dict(issue.params)}
        for issue in issues
    ]


class Spoken(NamedTuple):
    """What came of a typed word.

    Attributes
    ----------
    voice, native
        Which voice spoke it, and whether its speakers are native speakers of the language.
    phonemes
        How it was pronounced, in IPA; "" if the voice does not say.
    clips
        Each clip, and the number of its take.
    issues
        What may be wrong with the word.
    """

    voice: str
    native: bool
    phonemes: str
    clips: list[tuple[int, Said]]
    issues: list[Issue]


class StudioModel(WatchedModel):
    """A watched model, with the operations of the studio's pages.

    Clips are encoded before the file is locked; under the lock only their vectors are learned.
    `detector` is the class of detectors of its words. `exports` maps a file extension to a function
    that exports a spotter. Changes go into the page's history if the learner can undo them. `more`
    goes to a further base class.
    """

    detector: type[Detector] = Detector
    _session: TeachSession | None = None

    def __init__(
        self,
        path: Path,
        parts: dict[str, Any] | None = None,
        backbones: Sequence[str | Backbone] | None = None,
        exports: Mapping[str, Callable[[Spotter], bytes]] | None = None,
        limits: ServerLimits = LIMITS,
        **more: Any,
    ):
        super().__init__(path, parts=parts, backbones=backbones, **more)
        self.limits = limits
        self.exports = dict(exports or {})
        self.histories = Histories(limits)
        # Held while the file and the histories change together.
        self._changing = threading.RLock()
        self._snapshot_lock = threading.Lock()
        self._snapshot = _Snapshot(self.spotter)

    def learn(
        self,
        clip: np.ndarray | endpoint.Take,
        word: str,
        history: History | None = None,
        kind: Kind = "take",
        anyway: bool = True,
    ) -> Outcome:
        """Learn a clip of a word, unless it is refused; if it is doubtful, only with `anyway`.

        Clip and kind are as for `TeachSession.check`.
        """
        encoder = self.spotter
        word = clean_new_word(word, encoder.words)
        session = self._session_of(encoder, word)
        checked = session.check(clip, word, kind)
        if checked.severity == "refuse" or (checked.severity == "doubt" and not anyway):
            return Outcome(None, checked.issues)
        session.accept(checked)
        close = [issue for issue in session.review() if issue.code == "close_word"]
        taught = checked.encoded
        history = history or History()
        with self._changing:
            with self.edit() as spotter:
                if not _same_parts(spotter, encoder):
                    audio = clip.audio if isinstance(clip, endpoint.Take) else clip
                    taught = spotter.encode([audio], learning=True)
                take = history.take(word, taught)
                take.learn(spotter)
            note_taught(history, take, spotter)
        return Outcome(take.number, [*checked.issues, *close])

    def learn_file(
        self, audio: np.ndarray, word: str, history: History | None = None, anyway: bool = True
    ) -> Outcome:
        """Learn a recording (n,) of a word: each of its takes, if it contains several."""
        sounds = find_takes(self.spotter.encoder, audio)
        if not sounds:
            limit_s, seconds = self.limits.clip_s, len(audio) / SAMPLE_RATE
            if seconds > limit_s:
                raise InputError(
                    f"{seconds:.0f} s without several takes of one word: cut it into clips of at "
                    f"most {limit_s:g} s",
                    code="file_too_long",
                    params={"seconds": round(seconds), "limit_s": limit_s},
                )
            return self.learn(audio, word, history, "file", anyway)
        unlike = Outcome(None, [Issue("unlike", "doubt", {"word": word})])
        history = history or History()
        outcomes = [
            (one, self.learn(one.audio, word, history, "file", anyway) if one.is_take else unlike)
            for one in sounds
        ]
        takes = sum(one.is_take for one in sounds)
        return Outcome(None, [Issue("several_takes", "note", {"takes": takes})], outcomes)

    def say(
        self,
        request: Request,
        voice: str | None = None,
        history: History | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Spoken:
        """Let a voice say a word, and learn the clips; each can be removed like a take.

        Without a `voice`, the best one that speaks here is used. A page may only name a voice, not
        give it arguments, which can be paths.
        """
        encoder = self.spotter
        word = clean_new_word(request.text, encoder.words)
        request = replace(request, text=word)
        if voice is not None and voice not in registry.classes("voices"):
            raise InputError(f"no voice is named {voice!r}")
        speaker = request.voice(voice)
        phonemes = request.phonemes or speaker.pronunciation(word, request.language)
        session = TeachSession(encoder)
        said = session.speak(word, request, speaker, progress)
        issues = session.review()
        taught = [clip.encoded for clip in session.accepted]
        by = SpokenBy(speaker.name, speaker.is_native(request.language))
        history = history or History()
        with self._changing:
            with self.edit() as spotter:
                if not _same_parts(spotter, encoder):
                    again = [spotter.encode([one.audio], learning=True) for one in said]
                    taught = again
                takes = [history.take(word, row, spoken_by=by) for row in taught]
                for take in takes:
                    take.learn(spotter)
            history.add(Typed(takes))
        clips = [(take.number, one) for take, one in zip(takes, said, strict=True)]
        return Spoken(by.voice, by.native, phonemes, clips, issues)

    def _session_of(self, spotter: Spotter, word: str) -> TeachSession:
        """Session of the latest clips of a word; a new one if the word or the model is another."""
        session = self._session
        if (
            session is None
            or any(clip.word != word for clip in session.accepted)
            # Words that were forgotten must not be compared with.
            or not session.spotter.words.keys() <= spotter.words.keys()
            or not _same_parts(session.spotter, spotter)
        ):
            session = self._session = TeachSession(spotter, LATEST)
        session.follow(spotter)
        return session

    def reject(self, clip: np.ndarray, history: History | None = None) -> Outcome:
        """Learn that a clip (n,) float32 is none of the words."""
        encoder = self.spotter
        asked, taught = _encode_both(encoder, clip)
        history = history or History()
        with self._changing:
            with self.edit() as spotter:
                if not spotter.words:
                    return Outcome(None, [])
                if not _same_parts(spotter, encoder):
                    asked, taught = _encode_both(spotter, clip)
                take = history.take("", taught, asked)
                take.learn(spotter)
            note_taught(history, take, spotter)
        return Outcome(take.number, [])

    def remove(self, number: int, history: History) -> None:
        """Unlearn a take."""
        take = history.find(number)
        with self._changing:
            with self.edit() as spotter:
                known = spotter.vocabulary.words.get(take.word)
                last = not take.negative and known is not None and known.clips == 1
                can_undo = last and spotter.learner.mergeable
                word_model = spotter.extract_word(take.word) if can_undo else None
                take.unlearn(spotter)
            take.gone = "take_removed"
            history.add(TakeRemoved(take, word_model))

    def forget(self, word: str, history: History | None = None) -> None:
        """Remove a word."""
        self._require_words()
        word = clean_word(word)
        with self._changing:
            with self.edit() as spotter:
                can_undo = spotter.learner.mergeable and word in spotter.words
                word_model = spotter.extract_word(word) if can_undo else None
                spotter.forget(word)
            gone = [take for take in self.histories.in_model() if take.word == word]
            for take in gone:
                take.gone = "take_forgotten"
            if word_model is not None and history is not None:
                history.add(Forgotten(word, word_model, gone))

    def rename(self, old: str, new: str, history: History | None = None) -> None:
        """Rename a word."""
        self._require_words()
        old, new = clean_word(old), clean_word(new)
        with self._changing:
            with self.edit() as spotter:
                spotter.rename(old, new)
            self.histories.rename_word(old, new)
            if history is not None and old != new:
                history.add(Renamed(old, new))

    def set_sensitivity(
        self, word: str | None, value: float, history: History | None = None
    ) -> None:
        """Set the sensitivity of a word, or of all words if it is None."""
        self._require_words()
        word = None if word is None else clean_word(word)
        with self._changing:
            with self.edit() as spotter:
                before = sensitivities(spotter)
                spotter.set_sensitivity(value, word)
                after = sensitivities(spotter)
            if history is not None:
                history.add(SensitivityChanged(word, before, after))

    def undo(self, history: History) -> None:
        """Undo the last change of a page, in the file as it is now.

        A change that cannot be undone, because others changed the same, is dropped.
        """
        with self._changing:
            change = history.last
            try:
                with self.edit() as spotter:
                    change.undo(spotter)
            except InputError:
                history.changes.remove(change)
                raise
            history.changes.remove(change)
            change.mark_undone()
            if isinstance(change, Renamed):
                self.histories.rename_word(change.new, change.old)

    @contextmanager
    def edit(self) -> Iterator[Spotter]:
        """Change the file under its lock; first note takes that others removed."""
        before = None
        try:
            with super().edit() as spotter:
                self._note_changes(spotter)
                before = self._snapshot
                yield spotter
                # Before the file is written, because a poll compares it with this.
                self._snapshot = _Snapshot(spotter)
        except BaseException:
            self._snapshot = before or self._snapshot
            raise

    def refresh(self) -> bool:
        """Read the file if it changed; say whether it did."""
        changed = super().refresh()
        if changed:
            self._note_changes(self.spotter)
        return changed

    def _note_changes(self, spotter: Spotter) -> None:
        """Note which takes others removed from the model."""
        with self._snapshot_lock:
            now = _Snapshot(spotter)
            lost = self._snapshot.lost(now)
            self._snapshot = now
        for take in self.histories.in_model():
            if take.row in lost:
                take.gone = "take_changed"

    def open(self) -> BinaryIO:
        """Open the file; others replace it whole, so what is read stays the same."""
        self._require_words()
        try:
            return self.path.open("rb")
        except OSError as error:
            raise ModelFileError(f"cannot read {self.path}: {error.strerror}") from error

    def export(self, kind: str) -> bytes:
        """Export the words as they are now."""
        self._require_words()
        return self.exports[kind](self.spotter)

    def inspect(self, content: bytes) -> dict[str, Any]:
        """Give the words of an uploaded model file, and whether they can be added to these."""
        theirs = self._load_uploaded(content)
        addable = theirs.learner.mergeable and _same_parts(theirs, self.spotter)
        return {"words": list(theirs.words), "addable": addable}

    def _load_uploaded(self, content: bytes) -> Spotter:
        """Read an uploaded model file.

        Its backbone must be the one in use: nothing that it names is loaded from this machine.
        """
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "uploaded.tap"
            path.write_bytes(content)
            try:
                return Spotter.load(path, self.spotter.encoder.backbones)
            except ModelFileError as error:
                raise ModelFileError(str(error).replace(str(path), "the uploaded file")) from None

    def upload(self, content: bytes, add: bool, seen: str | None) -> None:
        """Add the words of an uploaded model file, or replace revision `seen` by it.

        Another revision than `seen` is not replaced.
        """
        theirs = self._load_uploaded(content)
        with self._changing:
            with self.edit() as ours:
                if add:
                    ours.merge(theirs)
                elif store.revision(self.path) not in (seen, None):
                    raise ModelFileError(
                        "the model was changed meanwhile: look at it again before you replace it",
                        code="model_changed",
                    )
                else:
                    ours.replace_with(theirs)
            for take in [] if add else self.histories.in_model():
                take.gone = "take_changed"

    def _require_words(self) -> None:
        if self.revision is None and not os.path.lexists(self.path):
            raise InputError("no words yet, so there is no model file", code="no_words")

    def state(self) -> dict[str, Any]:
        """Give what a page shows of the model, except the map, ready for JSON."""
        # Another thread may replace the spotter meanwhile.
        revision, spotter = self.revision, self.spotter
        learner, negatives = spotter.learner, spotter.vocabulary.negatives
        spoken = spotter.vocabulary.synthetic
        return {
            "file": self.path.name,
            "revision": revision,
            "problem": self.problem,
            "words": [
                {
                    "word": word,
                    "count": n,
                    "negatives": negatives.get(word, 0),
                    "synthetic": spoken.get(word, 0),
                    "sensitivity": spotter.vocabulary.sensitivity_of(word),
                }
                for word, n in spotter.words.items()
            ],
            "sensitivity": spotter.vocabulary.sensitivity,
            "has_thresholds": spotter.has_thresholds,
            "state_bytes": learner.state_bytes.total,
            "bytes_per_word": learner.state_bytes.per_word,
            "keeps_vectors": learner.keeps_vectors,
            "trace": _trace(learner),
            "mergeable": learner.mergeable,
            "exports": list(self.exports),
            "max_word_bytes": MAX_WORD_BYTES,
        }

    def map(self) -> dict[str, Any]:
        """Give the map of the words, and the revision it shows, ready for JSON."""
        revision, spotter = self.revision, self.spotter
        points, overlaps = word_map(spotter)
        return {
            "revision": revision,
            "points": [point._asdict() for point in points],
            "overlaps": overlaps,
        }


class _Snapshot:
    """Counts and means of what a model knows, to notice if others removed samples.

    By the `Take.row` of the takes that are in it.
    """

    def __init__(self, spotter: Spotter):
        self.spotter = spotter
        learner = spotter.learner
        self.counts = {(word, "sample"): n for word, n in learner.words.items()}
        self.counts |= {(word, "negative"): n for word, n in learner.negatives.items()}
        self.counts |= {(word, "synthetic"): n for word, n in learner.synthetic.items()}
        self.means: dict[tuple[str, str], np.ndarray] = {}
        if not isinstance(learner, StatisticsLearner) or learner.dim is None:
            return
        for row, mean in zip(learner.rows, learner.statistics.means, strict=True):
            self.means[row.word, "negative" if row.negative else "sample"] = mean
        if learner.spoken_statistics is not None:
            for row, mean in zip(learner.rows, learner.spoken_statistics.means, strict=True):
                if not row.negative:
                    self.means[row.word, "synthetic"] = mean

    def lost(self, now: "_Snapshot") -> set[tuple[str, str]]:
        """Rows that are gone, have fewer samples, or other samples."""
        if not _same_parts(self.spotter, now.spotter):
            return set(self.counts)
        return {
            row
            for row, count in self.counts.items()
            if now.counts.get(row, 0) < count
            or (
                now.counts[row] == count
                and row in self.means
                and not np.allclose(self.means[row], now.means[row], rtol=1e-4, atol=1e-5)
            )
        }


def note_taught(history: History, take: Take, spotter: Spotter) -> None:
    """Add a take to a history if the learner can unlearn it."""
    if spotter.learner.mergeable:
        history.add(Taught(take))


def _trace(learner: Learner) -> str | None:
    """Say what stays of a forgotten word while there are others; None: nothing."""
    if not learner.keeps_trace:
        return None
    # A shared scatter contains how takes differ from their mean; training changes other words.
    return "differences" if isinstance(learner, StatisticsLearner) else "changes"


def _encode_both(spotter: Spotter, clip: np.ndarray) -> tuple[Encoded, Encoded]:
    """Encode a clip as it is scored and as it is learned."""
    return spotter.encode([clip]), spotter.encode([clip], learning=True)


def _same_parts(one: Spotter, other: Spotter) -> bool:
    """Whether the vectors of one spotter fit another."""
    try:
        require_same_parts(one, other)
    except InputError:
        return False
    return True
