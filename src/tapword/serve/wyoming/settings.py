"""Settings of clients: options for all of them, or for one."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tapword.errors import InputError
from tapword.listening.decider import Decider
from tapword.listening.follow import DetectorSettings
from tapword.serve.addresses import ip_address
from tapword.spotter.thresholds import (
    check_rate,
    parse_sensitivity,
    parse_threshold,
)


@dataclass(frozen=True)
class Clients:
    """Names and settings of clients by their addresses; others have the common settings."""

    common: DetectorSettings = field(default_factory=DetectorSettings)
    names: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, DetectorSettings] = field(default_factory=dict)

    def name(self, address: str) -> str:
        """Name of a client in the log."""
        return self.names.get(address, address)

    def settings(self, address: str) -> DetectorSettings:
        """Give the settings of a client."""
        return self.own.get(address, self.common)

    def words(self) -> list[str]:
        """Words that any settings name, sorted."""
        return sorted(self.common.words.union(*(own.words for own in self.own.values())))


def read_clients(
    clients: Iterable[str] = (),
    thresholds: Iterable[str] = (),
    false_alarms_per_hour: Iterable[str] = (),
    refractory: Iterable[str] = (),
    sensitivities: Iterable[str] = (),
) -> Clients:
    """Read options: NAME=ADDRESS, and values for all clients or, as CLIENT/VALUE, for one.

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
        address, value = _split_client(text, addresses)
        given[address].setdefault("thresholds", {}).update([parse_threshold(value)])
    for text in sensitivities:
        address, value = _split_client(text, addresses)
        given[address].setdefault("sensitivities", {}).update([parse_sensitivity(value)])
    for key, texts, check in (
        ("false_alarms_per_hour", false_alarms_per_hour, check_rate),
        ("refractory_s", refractory, _check_refractory),
    ):
        for text in texts:
            address, value = _split_client(text, addresses)
            given[address][key] = check(_number(key, value))
    common = DetectorSettings(**given.pop("", {}))
    own = {address: _override(common, values) for address, values in given.items()}
    return Clients(common, {address: name for name, address in addresses.items()}, own)


def _override(common: DetectorSettings, own: dict[str, Any]) -> DetectorSettings:
    """Override the common settings by those of one client."""
    thresholds = {**common.thresholds, **own.get("thresholds", {})}
    sensitivities = own.get("sensitivities", {})
    # A value for all words of a client replaces the common values of single words.
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


def _split_client(text: str, addresses: Mapping[str, str]) -> tuple[str, str]:
    """Split CLIENT/VALUE into the client's address and the value; "" as address for all clients.

    A word may contain a slash, so CLIENT must be a known name or an address.
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


def _check_refractory(refractory_s: float) -> float:
    return Decider(refractory_s).refractory_s
