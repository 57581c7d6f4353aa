"""Options of the commands that serve a model."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tapword.cli.app import argument, flag, option
from tapword.errors import InputError
from tapword.listening.decider import REFRACTORY_S
from tapword.serve.wyoming.settings import Clients, read_clients
from tapword.spotter.thresholds import FALSE_ALARMS_PER_HOUR

if TYPE_CHECKING:
    from tapword.serve.studio.launch import Tls
    from tapword.serve.wyoming.service import ServiceInfo

PORT = 8642
URI = "tcp://127.0.0.1:10400"

Model = Annotated[
    Path,
    argument(
        "MODEL",
        "Model file; created if missing. [default: home.tap]",
        envvar="TAPWORD_MODEL",
    ),
]


@dataclass
class StudioOptions:
    """Where a studio is served."""

    port: Annotated[int, option("N", "Port; 0: any free port.")] = PORT
    host: Annotated[
        str,
        option("ADDRESS", "Address to bind to; 0.0.0.0: other devices can open the link, too."),
    ] = "127.0.0.1"
    tls_cert: Annotated[Path | None, option("FILE", "TLS certificate (PEM).")] = None
    tls_key: Annotated[Path | None, option("FILE", "Key of the certificate (PEM).")] = None
    tls_self_signed: Annotated[
        bool, flag("--tls-self-signed", "Use TLS with a self-signed certificate.")
    ] = False

    def tls(self) -> "Tls":
        """Give the certificate and its key, or whether to make one."""
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InputError("--tls-cert and --tls-key go together: give both")
        if self.tls_cert and self.tls_self_signed:
            raise InputError("give either --tls-cert and --tls-key or --tls-self-signed, not both")
        given = self.tls_cert and self.tls_key
        return (self.tls_cert, self.tls_key) if given else self.tls_self_signed  # type: ignore


@dataclass
class ServiceOptions:
    """Where a wake-word service is served, and how it detects words."""

    uri: Annotated[
        str, option("URI", "Where to listen; tcp://0.0.0.0:10400: other machines can connect.")
    ] = URI
    name: Annotated[str, option("NAME", "Name of the service in Home Assistant.")] = "tapword"
    language: Annotated[
        list[str] | None,
        option("CODE", "Language of the words, such as de; repeat for several."),
    ] = None
    threshold: Annotated[
        list[str] | None,
        option(
            "WORD=SCORE",
            "Score from which WORD counts as said; repeat for several. CLIENT/WORD=SCORE: for one "
            "client.",
        ),
    ] = None
    sensitivity: Annotated[
        list[str] | None,
        option(
            "[WORD=]VALUE",
            "From 0 to 1, instead of the model's: higher detects more words and raises more false "
            "alarms; repeat for several words. CLIENT/VALUE, CLIENT/WORD=VALUE: for one client.",
        ),
    ] = None
    false_alarms_per_hour: Annotated[
        list[str] | None,
        option(
            "RATE",
            "Acceptable false alarms of all words together; fewer mean more missed words. "
            f"CLIENT/RATE: for one client. [default: {FALSE_ALARMS_PER_HOUR}]",
            # The option's own name would not fit into the help.
            envvar="TAPWORD_FALSE_ALARMS",
        ),
    ] = None
    refractory: Annotated[
        list[str] | None,
        option(
            "SECONDS",
            "At most one word in this time. CLIENT/SECONDS: for one client. "
            f"[default: {REFRACTORY_S}]",
        ),
    ] = None
    client: Annotated[
        list[str] | None,
        option(
            "NAME=ADDRESS",
            "Name a client for the log and as CLIENT in other options, such as kitchen=10.0.0.7; "
            "repeat for several.",
        ),
    ] = None
    zeroconf: Annotated[
        str | None,
        option("NAME", "Announce the service under this name, so Home Assistant finds it."),
    ] = None

    def clients(self) -> Clients:
        """Read the settings of clients."""
        return read_clients(
            self.client or (),
            self.threshold or (),
            self.false_alarms_per_hour or (),
            self.refractory or (),
            self.sensitivity or (),
        )

    def address(self) -> tuple[str, int]:
        """Host and port; refuse a name in the network that nobody else could use."""
        from tapword.serve.addresses import is_loopback
        from tapword.serve.wyoming.service import address

        host, port = address(self.uri)
        if self.zeroconf is not None and is_loopback(host):
            raise InputError(
                f"--zeroconf announces the service to other machines, but {host} is only this "
                "machine: give --uri tcp://0.0.0.0:10400"
            )
        return host, port

    def info(self) -> "ServiceInfo":
        """Describe the service."""
        from tapword.serve.wyoming.service import ServiceInfo

        return ServiceInfo(self.name, self.language or (), self.zeroconf)
