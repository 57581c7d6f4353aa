"""Problems with clips, as codes with parameters; messages are made from them."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

Severity = Literal["refuse", "doubt", "note"]

# Code -> the English message, a phrase without a full stop. The pages' language files hold one
# template a code, too, and the C core has the codes as an enum, in this order.
MESSAGES = {
    # A take, by its sound.
    "no_speech": "no speech found: say the word aloud, and check the choice of microphone",
    "too_long": (
        "too long: {seconds:.1f} s of speech; a word or phrase lasts at most {limit_s:g} s, so say "
        "it once, then be silent"
    ),
    "several_words": "more than one word: say it once, without a long pause",
    "clipped": "clipped: speak more softly, move back, or turn down the microphone's gain",
    "cut_off": "cut off: wait for the signal, say the word, then be silent for a moment",
    "too_quiet": "too quiet: speak up, come closer, or turn up the microphone's gain",
    "noisy": "too quiet for the noise around you: come closer or find a quieter place",
    "too_short": "too short: say the whole word, as you would in a sentence",
    "sound_lost": "some sound was lost: close programs that keep the computer busy",
    # Any clip, by its sound.
    "noise": "contains only noise, which is never reported as a word",
    "more_than_one_word": "contains more than one word; the loudest is taught",
    "long_pause": "contains a long pause",
    "same_recording": 'the same recording is taught as "{first}" and as "{second}"',
    # By its vector.
    "other_word": 'sounds like "{other}", not "{word}"',
    "unlike": 'sounds unlike the other takes of "{word}"',
    "close_word": (
        '"{word}" sounds like "{other}": if they are mixed up, teach more takes of both, or choose '
        "another word"
    ),
    # By its name.
    "case_variant": '"{word}" differs from "{other}" in capital letters only',
    # A recording.
    "several_takes": "contains {takes:g} takes; each is taught",
}


class Issue(NamedTuple):
    """What may be wrong with a clip, or with the clips of a lesson.

    Attributes
    ----------
    code
        One of those in `MESSAGES`.
    severity
        "refuse": it cannot be taught. "doubt": ask before teaching it. "note": it is taught, and
        this is said.
    params
        Values that the message needs.
    clips
        Names of the clips it is about, where it is about some of a lesson.
    """

    code: str
    severity: Severity
    params: Mapping[str, str | float] = {}
    clips: tuple[str, ...] = ()


def message(issue: Issue) -> str:
    """Make the English message of an issue.

    Examples
    --------
    >>> message(Issue("other_word", "doubt", {"word": "music", "other": "lamp"}))
    'sounds like "lamp", not "music"'
    """
    return MESSAGES[issue.code].format(**issue.params)
