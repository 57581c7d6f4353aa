"""A detector that takes up a changed model while it listens."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tapword.listening.decider import REFRACTORY_S
from tapword.listening.detector import Detector
from tapword.listening.near import NearMisses
from tapword.spotter.spotter import Spotter
from tapword.spotter.thresholds import FALSE_ALARMS_PER_HOUR


@dataclass(frozen=True)
class DetectorSettings:
    """Arguments of `Detector`, which may name words that are taught later."""

    false_alarms_per_hour: float = FALSE_ALARMS_PER_HOUR
    refractory_s: float = REFRACTORY_S
    thresholds: Mapping[str, float] = field(default_factory=dict)
    sensitivities: Mapping[str | None, float] = field(default_factory=dict)

    @property
    def words(self) -> set[str]:
        """Words that the settings name."""
        return {word for word in (*self.thresholds, *self.sensitivities) if word is not None}

    def detector(self, spotter: Spotter, kind: type[Detector] = Detector) -> Detector:
        """Make a detector; settings of words that the spotter does not know are left out."""
        words = spotter.words
        return kind(
            spotter,
            false_alarms_per_hour=self.false_alarms_per_hour,
            thresholds={word: score for word, score in self.thresholds.items() if word in words},
            sensitivities={
                word: value
                for word, value in self.sensitivities.items()
                if word is None or word in words
            },
            refractory_s=self.refractory_s,
        )


class ModelFollower:
    """Keep a detector up to date with a model that may be taught while it listens.

    Parameters
    ----------
    settings
        How its words are detected.
    near_misses
        Whether to look for near misses, too; this costs time.
    kind
        Class of the detector.

    Attributes
    ----------
    detector
        Detector of the words as they were last taken up; None without words.
    near
        Near misses of that detector; None if they are not wanted.

    Examples
    --------
    >>> follower = ModelFollower()
    >>> follower.take_up(Spotter()) is None
    True
    """

    def __init__(
        self,
        settings: DetectorSettings | None = None,
        near_misses: bool = False,
        kind: type[Detector] = Detector,
    ):
        self.settings = settings or DetectorSettings()
        self.near_misses = near_misses
        self.kind = kind
        self.reset()

    def reset(self) -> None:
        """Forget the stream; the next detector starts again."""
        self.detector: Detector | None = None
        self.near: NearMisses | None = None

    def take_up(self, spotter: Spotter, now_s: float = 0.0) -> Detector | None:
        """Give the detector of a spotter's words; None without words.

        The stream goes on where words are taught or forgotten. It starts again, `now_s` after its
        beginning, where there is no detector yet or the settings name a word that is new.
        """
        if self.detector is not None and self.detector.spotter is spotter:
            return self.detector
        if not spotter.words:
            self.reset()
        elif self.detector is None or self.settings.words & (
            spotter.words.keys() - self.detector.spotter.words.keys()
        ):
            self.detector = self.settings.detector(spotter, self.kind)
            self.near = NearMisses(self.detector) if self.near_misses else None
            self.detector.gap(now_s)
        else:
            self.detector.spotter = spotter
        return self.detector
