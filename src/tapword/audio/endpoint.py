"""Find one spoken word in a recording, check it, and detect live when it ends."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from tapword.audio.align import decibels
from tapword.audio.files import SAMPLE_RATE
from tapword.errors import InputError
from tapword.support.issues import Issue

SILENCE_DB = -100.0

State = Literal["waiting", "speaking", "over", "nobody"]


@dataclass(frozen=True)
class EndpointSettings:
    """Rules for speech, for a good take, and for the end of a word.

    The numbers were set by hand. `tests/audio/test_endpoint.py` tests them on 300 English and over
    100 Arabic recordings 20 dB above the noise: 95 % must be accepted, with the right start and
    end. Of six kinds of noise, 95 % must be refused.
    """

    # Length of a frame, and the time from one frame to the next.
    frame_ms: int = 32
    hop_ms: int = 10
    # Rumble and mains hum are below this band, hiss is above; the range of pitch of a voice.
    band_hz: tuple[int, int] = (150, 7_000)
    pitch_hz: tuple[int, int] = (70, 400)
    # The background level is this quantile of the frames. Speech begins at the first level above
    # it and ends at the second.
    background_share: float = 0.2
    onset_db: float = 9.0
    offset_db: float = 5.0
    # In digital silence every sound is above the background: ignore frames this far below the
    # loudest.
    range_db: float = 35.0
    # Shorter sounds are clicks. Pauses up to the second are inside a word; between voiced sounds,
    # pauses up to the third are inside a phrase, as in `align.extent`.
    click_ms: float = 60
    gap_ms: float = 250
    pause_ms: float = 500
    # Every word has a vowel: at least this voicing for this long. Water, clatter and keys do not.
    voicing: float = 0.65
    voiced_ms: float = 50
    # Margin around a word; a word nearer than the second to the edge of the recording is cut off.
    margin_ms: float = 200
    edge_ms: float = 30
    # Shortest and longest word or phrase. Other speech that is at most `second_db` weaker is a
    # second word. Lowest level, and lowest level above the background.
    short_s: float = 0.1
    long_s: float = 3.0
    second_db: float = 10.0
    quiet_db: float = -50.0
    snr_db: float = 10.0
    # Samples from this value on are clipped; a word may have at most this fraction of them.
    clipped: float = 0.99
    clipped_share: float = 0.005
    # How long to wait for speech, how much silence ends a word, and the longest recording.
    wait_s: float = 5.0
    silence_s: float = 0.6
    max_s: float = 10.0


SETTINGS = EndpointSettings()
FRAME = SETTINGS.frame_ms * SAMPLE_RATE // 1000
HOP = SETTINGS.hop_ms * SAMPLE_RATE // 1000
# Long recordings are measured 10 s at a time.
BLOCK = 1_000 * HOP


class Take(NamedTuple):
    """What was found in a recording of one word.

    Attributes
    ----------
    issue
        What is wrong with the take; None where it is good.
    audio
        The speech with up to 0.2 s on each side, (m,); empty if there is no speech.
    start_s, end_s
        Start and end of the speech in the recording; both 0 if there is none.
    level_db
        Level of the speech in dB of full scale.
    snr_db
        Level of the speech above the background of the recording.
    """

    issue: Issue | None
    audio: np.ndarray
    start_s: float
    end_s: float
    level_db: float
    snr_db: float

    @property
    def has_speech(self) -> bool:
        """Whether there is speech."""
        return self.end_s > self.start_s


def examine(audio: np.ndarray) -> Take:
    """Find the spoken word in a recording and check whether it is good enough to learn from.

    Parameters
    ----------
    audio
        Shape (n,), float32 at 16 kHz: a word with silence around it.

    Examples
    --------
    >>> time = np.arange(24000) / 16000
    >>> hum = sum(np.sin(2 * np.pi * pitch * time) for pitch in range(120, 1200, 120))
    >>> word = np.where(abs(time - 0.7) < 0.2, 0.03 * hum, 0).astype(np.float32)
    >>> take = examine(word)
    >>> take.issue, round(take.start_s, 1), round(take.end_s, 1)
    (None, 0.5, 0.9)
    >>> examine(word[10000:]).issue.code
    'cut_off'
    """
    if not isinstance(audio, np.ndarray) or audio.ndim != 1 or audio.dtype != np.float32:
        raise InputError("a recording must be a float32 array of shape (n,) at 16 kHz")
    if not np.isfinite(audio).all():
        raise InputError("the recording contains NaN or infinite samples")
    levels, voicing = frames(audio)
    spans = speech(levels, voicing)
    if not spans:
        return Take(Issue("no_speech", "refuse"), audio[:0], 0.0, 0.0, SILENCE_DB, 0.0)
    # The word is the segment with the most energy.
    energies = [_power(levels[slice(*span)]).sum() for span in spans]
    start, end = spans[int(np.argmax(energies))]
    twice = len(spans) > 1 and np.sort(energies)[-2] > max(energies) * _power(-SETTINGS.second_db)
    level_db = float(decibels(_power(levels[start:end]).mean()))
    # The median ignores short sounds, such as a door, before the word.
    around = np.concatenate([levels[:start], levels[end:]])
    snr_db = level_db - float(np.median(around)) if len(around) else 0.0
    first, last = _samples(start, end)
    margin = round(SETTINGS.margin_ms / 1000 * SAMPLE_RATE)
    clip = audio[max(0, first - margin) : last + margin]
    take = Take(None, clip, first / SAMPLE_RATE, last / SAMPLE_RATE, level_db, snr_db)
    clipped = float(np.mean(np.abs(audio[first:last]) >= SETTINGS.clipped))
    edge_s = min(first, len(audio) - last) / SAMPLE_RATE
    return take._replace(issue=_issue(take, clipped, edge_s, twice))


def _issue(take: Take, clipped: float, edge_s: float, twice: bool) -> Issue | None:
    """Find what is wrong with a take.

    `clipped` is its fraction of clipped samples, `edge_s` its distance to an edge; `twice` says
    that there was more speech.
    """
    length_s = take.end_s - take.start_s
    if length_s > SETTINGS.long_s:
        return Issue("too_long", "doubt", {"seconds": length_s, "limit_s": SETTINGS.long_s})
    found = {
        "several_words": twice,
        "clipped": clipped > SETTINGS.clipped_share,
        "cut_off": edge_s < SETTINGS.edge_ms / 1000,
        "too_quiet": take.level_db < SETTINGS.quiet_db,
        "noisy": take.snr_db < SETTINGS.snr_db,
        "too_short": length_s < SETTINGS.short_s,
    }
    code = next((code for code, is_so in found.items() if is_so), None)
    return None if code is None else Issue(code, "doubt")


class Endpointer:
    """Detect the end of a word while it is recorded.

    Parameters
    ----------
    wait_s
        How long to wait for speech.
    max_s
        Longest recording.

    Attributes
    ----------
    state
        What `push` returned last.
    audio
        The recording so far, (n,) float32.

    Examples
    --------
    >>> endpointer = Endpointer(wait_s=1.0)
    >>> endpointer.push(np.zeros(12000, dtype=np.float32))
    'waiting'
    >>> endpointer.push(np.zeros(12000, dtype=np.float32))
    'nobody'
    """

    def __init__(self, wait_s: float = SETTINGS.wait_s, max_s: float = SETTINGS.max_s):
        self.wait_s = wait_s
        self.max_s = max_s
        self.state: State = "waiting"
        self.audio = np.zeros(0, dtype=np.float32)
        self._levels, self._voicing = np.zeros(0), np.zeros(0)
        self._lost = False

    @property
    def level_db(self) -> float:
        """Highest level of the last 0.1 s, for a meter."""
        return float(self._levels[-100 // SETTINGS.hop_ms :].max(initial=SILENCE_DB))

    def push(self, chunk: np.ndarray) -> State:
        """Add samples (n,) float32 at 16 kHz and return the state.

        Returns
        -------
        str
            "waiting" for speech; "speaking"; "over" after silence follows speech, or if speech
            lasts longer than a word; "nobody" after `wait_s` without speech.
        """
        self.audio = np.concatenate([self.audio, chunk])
        levels, voicing = frames(self.audio[len(self._levels) * HOP :])
        self._levels = np.concatenate([self._levels, levels])
        self._voicing = np.concatenate([self._voicing, voicing])
        self.state = self._judge(speech(self._levels, self._voicing))
        return self.state

    def _judge(self, spans: list[tuple[int, int]]) -> State:
        now_s = _ms(len(self._levels)) / 1000
        if not spans:
            return "nobody" if now_s >= self.wait_s else "waiting"
        start_s, end_s = (_ms(edge) / 1000 for edge in spans[-1])
        silence_s = SETTINGS.silence_s
        over = now_s - end_s >= silence_s or end_s - start_s > SETTINGS.long_s + silence_s
        return "over" if over or now_s >= self.max_s else "speaking"

    def gap(self) -> None:
        """Note that sound was lost, which spoils the take."""
        self._lost = True

    def take(self) -> Take:
        """Examine the recording."""
        take = examine(self.audio)
        lost = Issue("sound_lost", "doubt" if take.has_speech else "refuse")
        return take._replace(issue=lost) if self._lost else take


def frames(audio: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Measure 32 ms of audio (n,) every 10 ms: levels (t,) in dB of full scale, and voicing (t,).

    Voicing is 1 for a sound that is periodic at the pitch of a voice, about 0 for noise.
    """
    if len(audio) < FRAME:
        return np.zeros(0), np.zeros(0)
    window = np.hanning(FRAME)
    frequency = np.fft.rfftfreq(2 * FRAME, 1 / SAMPLE_RATE)
    lowest, highest = SETTINGS.band_hz
    band = (frequency >= lowest) & (frequency <= highest)
    pieces = np.lib.stride_tricks.sliding_window_view(audio, FRAME)[::HOP]
    power = np.abs(np.fft.rfft(pieces * window, 2 * FRAME)) ** 2 * band
    levels = decibels(power.sum(axis=1) / (FRAME * (window**2).sum()))
    # Autocorrelation, corrected for the window at each lag.
    deepest, highest = SETTINGS.pitch_hz
    lags = slice(SAMPLE_RATE // highest, SAMPLE_RATE // deepest)
    repeats = np.fft.irfft(power)
    taper = np.fft.irfft(np.abs(np.fft.rfft(window, 2 * FRAME)) ** 2)
    share = repeats[:, lags] / np.maximum(repeats[:, :1], 1e-12)
    return levels, (share * taper[0] / taper[lags]).max(axis=1)


def sounds(audio: np.ndarray, pause_ms: float = SETTINGS.pause_ms) -> list[tuple[int, int]]:
    """Find the samples [start, end) of each segment of speech in a recording (n,) of any length.

    Pauses of up to `pause_ms` are inside a segment.
    """
    # In blocks, because the spectra of a long recording would take too much memory.
    blocks = [
        frames(audio[start : start + BLOCK + FRAME - HOP]) for start in range(0, len(audio), BLOCK)
    ]
    levels, voicing = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return [_samples(*span) for span in speech(levels, voicing, pause_ms)]


def speech(
    levels: np.ndarray, voicing: np.ndarray, pause_ms: float = SETTINGS.pause_ms
) -> list[tuple[int, int]]:
    """Find the frames [start, end) of each segment of speech, without clicks, gaps bridged."""
    if not len(levels):
        return []
    background = np.quantile(levels, SETTINGS.background_share)
    threshold = max(background + SETTINGS.offset_db, levels.max() - SETTINGS.range_db)
    loud_enough = background + SETTINGS.onset_db
    edges = np.flatnonzero(np.diff(levels > threshold, prepend=False, append=False))
    spans: list[tuple[int, int]] = []
    for start, end in edges.reshape(-1, 2).tolist():
        if _ms(end - start) < SETTINGS.click_ms or levels[start:end].max() < loud_enough:
            continue
        if spans and _ms(start - spans[-1][1]) <= SETTINGS.gap_ms:
            start = spans.pop()[0]
        spans.append((start, end))
    voiced = voicing > SETTINGS.voicing
    found: list[tuple[int, int]] = []
    for start, end in spans:
        if _ms(voiced[start:end].sum()) < SETTINGS.voiced_ms:
            continue
        if found and _ms(start - found[-1][1]) <= pause_ms:
            start = found.pop()[0]
        found.append((start, end))
    return found


def _samples(start: int, end: int) -> tuple[int, int]:
    """Convert frames [start, end) to samples."""
    # The window fades the ends of a frame, so its level is that of its middle half.
    return start * HOP + FRAME // 4, (end - 1) * HOP + FRAME * 3 // 4


def _ms(n_frames: int) -> int:
    return n_frames * SETTINGS.hop_ms


def _power(levels: np.ndarray | float) -> np.ndarray:
    return 10 ** (np.asarray(levels) / 10)
