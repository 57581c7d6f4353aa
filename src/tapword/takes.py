"""One spoken word in a recording: find it, judge it, and say live when it is over."""

from typing import Literal, NamedTuple

import numpy as np

from tapword.audio import SAMPLE_RATE
from tapword.errors import InputError

FRAME, HOP = 512, 160
HOP_S = HOP / SAMPLE_RATE
# The window tapers a frame off: what it measures lies in its middle half.
FRAME_START_S, FRAME_END_S = FRAME / SAMPLE_RATE / 4, FRAME / SAMPLE_RATE * 3 / 4
# Rumble and mains hum lie below, hiss above.
BAND_HZ = (150, 7_000)
PITCH_HZ = (70, 400)
SILENCE_DB = -100.0

# The background is what the quietest fifth of a recording stays below.
BACKGROUND_SHARE = 0.2
# Speech rises so far over the background, and lasts until it falls below the second.
ONSET_DB, OFFSET_DB = 9.0, 5.0
# In digital silence everything stands out: look no further below the loudest frame.
RANGE_DB = 35.0
CLICK_S, GAP_S = 0.06, 0.25
# Every word has a vowel; water, clatter and keys have none.
VOICED, VOICED_S = 0.65, 0.05

MARGIN_S, EDGE_S = 0.2, 0.03
SHORT_S, LONG_S = 0.1, 2.5
QUIET_DB, SNR_DB = -50.0, 10.0
# Samples at the top of the scale, and the share of them that spoils a word.
CLIPPED, CLIPPED_SHARE = 0.99, 0.005


class Take(NamedTuple):
    """What was found in a recording of one word.

    Attributes
    ----------
    problem
        None where the take is good; else a sentence for the speaker that says what to do.
    audio
        The speech with 0.2 s on each side where there is that much, (m,); empty where there is
        no speech.
    start_s, end_s
        Where the speech lies in the recording; both 0 where there is none.
    level_db
        Level of the speech in dB of full scale.
    snr_db
        How far that is over the background of the same recording.
    """

    problem: str | None
    audio: np.ndarray
    start_s: float
    end_s: float
    level_db: float
    snr_db: float


def examine(audio: np.ndarray) -> Take:
    """Find the one spoken word in a recording and say whether it is fit to learn from.

    Parameters
    ----------
    audio
        Shape (n,), float32 at 16 kHz: a word with silence around it.

    Returns
    -------
    Take
        With `problem` None where it is.

    Examples
    --------
    >>> time = np.arange(24000) / 16000
    >>> hum = sum(np.sin(2 * np.pi * pitch * time) for pitch in range(120, 1200, 120))
    >>> word = np.where(abs(time - 0.7) < 0.2, 0.03 * hum, 0).astype(np.float32)
    >>> take = examine(word)
    >>> take.problem, round(take.start_s, 1), round(take.end_s, 1)
    (None, 0.5, 0.9)
    >>> examine(word[10000:]).problem
    'cut off: wait for the sign, say the word, then stay silent for a moment'
    """
    if not isinstance(audio, np.ndarray) or audio.ndim != 1 or audio.dtype != np.float32:
        raise InputError("a recording must be a float32 array of shape (n,) at 16 kHz")
    if not np.isfinite(audio).all():
        raise InputError("the recording contains NaN or infinite samples")
    levels, voicing = frames(audio)
    spans = speech(levels, voicing)
    if not spans:
        reason = "no speech was heard: say the word aloud; is this the right microphone?"
        return Take(reason, audio[:0], 0.0, 0.0, SILENCE_DB, 0.0)
    # Of several, the word is the one with the most energy.
    start, end = max(spans, key=lambda span: _power(levels[slice(*span)]).sum())
    level_db = float(_decibels(_power(levels[start:end]).mean()))
    # The median: a door that falls shut before the word is not the background.
    around = np.concatenate([levels[:start], levels[end:]])
    snr_db = level_db - float(np.median(around)) if len(around) else 0.0
    start_s = start * HOP_S + FRAME_START_S
    end_s = (end - 1) * HOP_S + FRAME_END_S
    first, last, margin = (round(time * SAMPLE_RATE) for time in (start_s, end_s, MARGIN_S))
    clip = audio[max(0, first - margin) : last + margin]

    problem = None
    if end_s - start_s > LONG_S:
        problem = f"too long: {end_s - start_s:.1f} s of speech; say the one word, then be silent"
    elif np.mean(np.abs(audio[first:last]) >= CLIPPED) > CLIPPED_SHARE:
        problem = "clipped: speak more softly, move back, or turn the microphone's gain down"
    elif start_s < EDGE_S or len(audio) / SAMPLE_RATE - end_s < EDGE_S:
        problem = "cut off: wait for the sign, say the word, then stay silent for a moment"
    elif level_db < QUIET_DB:
        problem = "too quiet: speak up, come closer, or turn the microphone's gain up"
    elif snr_db < SNR_DB:
        problem = "too quiet for the noise around: come closer or find a quieter place"
    elif end_s - start_s < SHORT_S:
        problem = "too short: say the whole word, as you would in a sentence"
    return Take(problem, clip, start_s, end_s, level_db, snr_db)


class Endpointer:
    """Listen to a recording as it is made and say when its word is over.

    Parameters
    ----------
    wait_s
        How long to wait for somebody to speak.
    silence_s
        How much silence ends a word.

    Examples
    --------
    >>> endpointer = Endpointer(wait_s=1.0)
    >>> endpointer.hear(np.zeros(12000, dtype=np.float32))
    'waiting'
    >>> endpointer.hear(np.zeros(12000, dtype=np.float32))
    'nobody'
    """

    def __init__(self, wait_s: float = 5.0, silence_s: float = 0.6):
        self.wait_s = wait_s
        self.silence_s = silence_s
        self._chunks: list[np.ndarray] = []
        self._rest = np.zeros(0, dtype=np.float32)
        self._levels, self._voicing = np.zeros(0), np.zeros(0)

    @property
    def audio(self) -> np.ndarray:
        """All that was heard, (n,) float32: what `examine` takes."""
        return np.concatenate([self._rest[:0], *self._chunks])

    @property
    def level_db(self) -> float:
        """Level of the loudest of the last 0.1 s, for a meter."""
        return float(self._levels[-10:].max(initial=SILENCE_DB))

    def hear(self, chunk: np.ndarray) -> Literal["waiting", "speaking", "over", "nobody"]:
        """Take the next samples (n,) float32 at 16 kHz; say how things stand.

        Returns
        -------
        str
            "waiting" for speech; "speaking"; "over" where silence followed speech, or speech goes
            on for longer than a word; "nobody" where `wait_s` passed without speech.
        """
        self._chunks.append(chunk)
        pending = np.concatenate([self._rest, chunk])
        levels, voicing = frames(pending)
        self._rest = pending[len(levels) * HOP :]
        self._levels = np.concatenate([self._levels, levels])
        self._voicing = np.concatenate([self._voicing, voicing])
        spans = speech(self._levels, self._voicing)
        now_s = len(self._levels) * HOP_S
        if not spans:
            return "nobody" if now_s >= self.wait_s else "waiting"
        start_s, end_s = (edge * HOP_S for edge in spans[-1])
        over = now_s - end_s >= self.silence_s or end_s - start_s > LONG_S + self.silence_s
        return "over" if over else "speaking"


def frames(audio: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Measure 32 ms of sound (n,) every 10 ms.

    Returns
    -------
    tuple
        Levels in dB of full scale, (t,), and voicing, (t,): 1 for a sound that repeats itself at
        the pitch of a voice, about 0 for noise.
    """
    if len(audio) < FRAME:
        return np.zeros(0), np.zeros(0)
    window = np.hanning(FRAME)
    frequency = np.fft.rfftfreq(2 * FRAME, 1 / SAMPLE_RATE)
    band = (frequency >= BAND_HZ[0]) & (frequency <= BAND_HZ[1])
    pieces = np.lib.stride_tricks.sliding_window_view(audio, FRAME)[::HOP]
    power = np.abs(np.fft.rfft(pieces * window, 2 * FRAME)) ** 2 * band
    levels = _decibels(power.sum(axis=1) / (FRAME * (window**2).sum()))
    # Autocorrelation, less what the window alone takes from it at each lag.
    lags = slice(SAMPLE_RATE // PITCH_HZ[1], SAMPLE_RATE // PITCH_HZ[0])
    repeats = np.fft.irfft(power)
    taper = np.fft.irfft(np.abs(np.fft.rfft(window, 2 * FRAME)) ** 2)
    share = repeats[:, lags] / np.maximum(repeats[:, :1], 1e-12)
    return levels, (share * taper[0] / taper[lags]).max(axis=1)


def speech(levels: np.ndarray, voicing: np.ndarray) -> list[tuple[int, int]]:
    """Frames [start, end) of each stretch of speech: clicks dropped, gaps in a word bridged."""
    if not len(levels):
        return []
    background = np.quantile(levels, BACKGROUND_SHARE)
    threshold = max(background + OFFSET_DB, levels.max() - RANGE_DB)
    edges = np.flatnonzero(np.diff(levels > threshold, prepend=False, append=False))
    spans: list[tuple[int, int]] = []
    for start, end in edges.reshape(-1, 2).tolist():
        if (end - start) * HOP_S < CLICK_S or levels[start:end].max() < background + ONSET_DB:
            continue
        if spans and (start - spans[-1][1]) * HOP_S <= GAP_S:
            start = spans.pop()[0]
        spans.append((start, end))
    return [
        (start, end)
        for start, end in spans
        if (voicing[start:end] > VOICED).sum() * HOP_S >= VOICED_S
    ]


def _power(levels: np.ndarray) -> np.ndarray:
    return 10 ** (levels / 10)


def _decibels(power: np.ndarray) -> np.ndarray:
    return 10 * np.log10(power + 10 ** (SILENCE_DB / 10))
