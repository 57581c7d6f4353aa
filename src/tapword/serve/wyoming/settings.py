"""How words are heard for each client: what the options say, for all or for one alone."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tapword.errors import InputError
from tapword.listening.decider import REFRACTORY_S, Decider
from tapword.serve.addresses import ip_address
from tapword.spotter.thresholds import (
    FALSE_ALARMS_PER_HOUR,
    check_rate,
    parse_sensitivity,
    parse_threshold,
)


@dataclass(frozen=True)
class Settings:
    """As for `Detector`; words may be named that are taught later."""

    false_alarms_per_hour: float = FALSE_ALARMS_PER_HOUR
    refractory_s: float = REFRACTORY_S
    thresholds: Mapping[str, float] = field(default_factory=dict)
    sensitivities: Mapping[str | None, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Clients:
    """What is known of clients by their addresses; most are not known, and hear as all do."""

    common: Settings = field(default_factory=Settings)
    names: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, Settings] = field(default_factory=dict)

    def name(self, address: str) -> str:
        """Give what a client is called in the log."""
        return self.names.get(address, address)

    def settings(self, address: str) -> Settings:
        """Give what a client's words are heard with."""
        return self.own.get(address, self.common)

    def words(self) -> list[str]:
        """List the words that are named in somebody's settings."""
        every = (self.common, *self.own.values())
        named = {word for one in every for word in (*one.thresholds, *one.sensitivities)}
        return sorted(word for word in named if word is not None)


def read_clients(
    clients: Iterable[str] = (),
    thresholds: Iterable[str] = (),
    false_alarms_per_hour: Iterable[str] = (),
    refractory: Iterable[str] = (),
    sensitivities: Iterable[str] = (),
) -> Clients:
    """Read options: NAME=ADDRESS, and values, each for all or as CLIENT/VALUE for one alone.

    Examples
    --------
    >>> known = read_clients(["kitchen=10.0.0.7"], ["lamp=0.6", "kitchen/lamp=0.5"], ["1"])
    >>> known.settings("10.0.0.8").thresholds, known.settings("10.0.0.7").thresholds
    ({'lamp': 0.6}, {'lamp': 0.5})
    """
    named = list(map(_client, clients))
    addresses = dict(named)
    if not len(named) == len(addresses) == len(set(addresses.values())):
        raise InputError("--client: give each name one address, and each address one name")
    given: dict[str, dict[str, Any]] = defaultdict(dict)
    for text in thresholds:
        address, value = _whose(text, addresses)
        given[address].setdefault("thresholds", {}).update([parse_threshold(value)])
    for text in sensitivities:
        address, value = _whose(text, addresses)
        given[address].setdefault("sensitivities", {}).update([parse_sensitivity(value)])
    for key, texts, check in (
        ("false_alarms_per_hour", false_alarms_per_hour, check_rate),
        ("refractory_s", refractory, _check_pause),
    ):
        for text in texts:
            address, value = _whose(text, addresses)
            given[address][key] = check(_number(key, value))
    common = Settings(**given.pop("", {}))
    own = {address: _over(common, values) for address, values in given.items()}
    return Clients(common, {address: name for name, address in addresses.items()}, own)


def _over(common: Settings, own: dict[str, Any]) -> Settings:
    """Put the settings of one client over those of all."""
    thresholds = {**common.thresholds, **own.get("thresholds", {})}
    sensitivities = own.get("sensitivities", {})
    # One for all of its words is for those too that have another one elsewhere.
    if None not in sensitivities:
        sensitivities = {**common.sensitivities, **sensitivities}
    return replace(common, **own | {"thresholds": thresholds, "sensitivities": sensitivities})


def _client(text: str) -> tuple[str, str]:
    """Read NAME=ADDRESS."""
    name, _, given = text.partition("=")
    name, address = name.strip(), ip_address(given.strip())
    if not name or "/" in name or not name.isprintable() or address is None:
        raise InputError(f"--client must be NAME=ADDRESS, as in kitchen=10.0.0.7; got {text!r}")
    return name, str(address)


def _whose(text: str, addresses: Mapping[str, str]) -> tuple[str, str]:
    """Split CLIENT/VALUE into the client's address and the value; no address where it is for all.

    A word may hold a slash: only what stands before the first one and is a client is one.
    """
    before, slash, value = text.partition("/")
    before = before.strip()
    address = addresses.get(before) or str(ip_address(before) or "")
    return (address, value) if slash and address else ("", text)


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        option = key.removesuffix("_s").replace("_", "-")
        raise InputError(
            f"--{option} must be a number, or CLIENT/NUMBER where --client names that client "
            f"or CLIENT is an address; got {text!r}"
        ) from None


def _check_pause(refractory_s: float) -> float:
    return Decider(refractory_s).refractory_s
