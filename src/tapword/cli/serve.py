"""Commands that serve a model: to the browser, and to Home Assistant."""

import contextlib
from pathlib import Path
from typing import Annotated

from tapword.cli.app import SERVE, argument, command, flag, option, state
from tapword.cli.console import out
from tapword.cli.export import header_of, onnx_of
from tapword.cli.options import HOME, SIZES, Backbones
from tapword.errors import InputError, MissingExtra
from tapword.listening.decider import REFRACTORY_S
from tapword.serve.wyoming.settings import read_clients
from tapword.spotter.thresholds import FALSE_ALARMS_PER_HOUR
from tapword.support.text import printable

PORT = 8642
URI = "tcp://127.0.0.1:10400"

ServedModel = Annotated[
    Path,
    argument(
        "MODEL",
        "Model file; it need not be there yet. [default: home.tap]",
        envvar="TAPWORD_MODEL",
    ),
]


@command(SERVE)
def studio(
    model: ServedModel = HOME,
    port: Annotated[int, option("N", "Port; 0 for any that is free.")] = PORT,
    host: Annotated[
        str,
        option("ADDRESS", "Address to bind to; 0.0.0.0 lets other devices in that have the link."),
    ] = "127.0.0.1",
    size: Annotated[str | None, option("SIZE", f"For a new model: {SIZES}.")] = None,
    tls_cert: Annotated[Path | None, option("FILE", "Certificate, PEM.")] = None,
    tls_key: Annotated[Path | None, option("FILE", "Its key, PEM.")] = None,
    tls_self_signed: Annotated[
        bool, flag("--tls-self-signed", "Make a certificate, for the phone at hand.")
    ] = False,
    browser: Annotated[bool, flag("--open", "Open it in the browser.")] = False,
    backbone: Backbones = None,
) -> None:
    """Teach, watch and correct a model in the browser, by voice.

    The sound goes to this process alone, stays in memory for a moment and is never written.
    """
    if (tls_cert is None) != (tls_key is None):
        raise InputError("--tls-cert and --tls-key belong together: give both")
    if tls_cert and tls_self_signed:
        raise InputError("give either --tls-cert and --tls-key or --tls-self-signed, not both")
    if size and model.exists():
        raise InputError(f"--size only for a new model; {model} exists and keeps its parts")
    if not model.absolute().parent.is_dir():
        raise InputError(f"cannot make {model}: its folder does not exist")
    try:
        import starlette  # noqa: F401
    except ImportError as error:
        raise MissingExtra("the studio", "starlette", "web") from error
    from tapword.serve.studio.model import StudioModel
    from tapword.serve.studio.server import Address, in_browser, serve

    def ready(address: Address) -> None:
        out.print(f"The studio of {model} is open:", soft_wrap=True)
        for url in address.urls:
            out.print(f"  {url}", soft_wrap=True)
        if address.fingerprint:
            out.print(
                "The browser will warn of the certificate, which this machine signed itself; its "
                f"SHA-256 is\n  {address.fingerprint}",
                soft_wrap=True,
            )
        if not address.secure:
            out.print(
                "Without TLS, others in the network can listen in and take the token, and browsers "
                "do not lend the microphone: add --tls-self-signed, or --tls-cert and --tls-key.",
                soft_wrap=True,
            )
        out.print("Press Ctrl+C to close it.")
        if browser:
            opened.enter_context(in_browser(address.urls[0]))

    tls = (tls_cert, tls_key) if tls_cert and tls_key else tls_self_signed
    try:
        parts = {"size": size, "backbone": None if model.exists() else backbone}
        parts = {name: value for name, value in parts.items() if value}
        with contextlib.ExitStack() as opened:
            exports = {"onnx": onnx_of, "h": header_of}
            serve(StudioModel(model, parts, backbone, exports), host, port, tls, ready)
    except KeyboardInterrupt:
        out.print("The studio is closed.")


@command(SERVE, environment=True)
def wyoming(
    model: ServedModel = HOME,
    uri: Annotated[
        str, option("URI", "Where to listen; tcp://0.0.0.0:10400 lets other machines in.")
    ] = URI,
    name: Annotated[str, option("NAME", "What Home Assistant calls the service.")] = "tapword",
    language: Annotated[
        list[str] | None,
        option("CODE", "Language of the words, as in de; repeat for several."),
    ] = None,
    threshold: Annotated[
        list[str] | None,
        option(
            "WORD=SCORE",
            "Score from which WORD counts as said; repeat for several. CLIENT/WORD=SCORE: for one "
            "client alone.",
        ),
    ] = None,
    sensitivity: Annotated[
        list[str] | None,
        option(
            "[WORD=]VALUE",
            "From 0 to 1, instead of the model's: higher hears more and raises more false alarms; "
            "repeat for several words. CLIENT/VALUE, CLIENT/WORD=VALUE: for one client alone.",
        ),
    ] = None,
    false_alarms_per_hour: Annotated[
        list[str] | None,
        option(
            "RATE",
            "How many are acceptable, of all words together; fewer cost more misses. CLIENT/RATE: "
            f"for one client alone. [default: {FALSE_ALARMS_PER_HOUR}]",
            # Its own name would not fit into the help.
            envvar="TAPWORD_FALSE_ALARMS",
        ),
    ] = None,
    refractory: Annotated[
        list[str] | None,
        option(
            "SECONDS",
            "One word at most in this time. CLIENT/SECONDS: for one client alone. "
            f"[default: {REFRACTORY_S}]",
        ),
    ] = None,
    client: Annotated[
        list[str] | None,
        option(
            "NAME=ADDRESS",
            "Name a client, as in kitchen=10.0.0.7, for the log and as CLIENT in other options; "
            "repeat for several.",
        ),
    ] = None,
    zeroconf: Annotated[
        str | None, option("NAME", "Announce it by this name, for Home Assistant to find.")
    ] = None,
    backbone: Backbones = None,
    verbose: Annotated[
        bool, flag("--verbose", "Also log connections, and words that were nearly said.")
    ] = False,
    check: Annotated[
        bool, flag("--check", "Ask the service that runs at URI whether it is well, and end.")
    ] = False,
) -> None:
    """Serve the words of a model to Home Assistant and its voice satellites (Wyoming protocol).

    The model is read again whenever somebody taught it more.
    """
    clients = read_clients(
        client or (),
        threshold or (),
        false_alarms_per_hour or (),
        refractory or (),
        sensitivity or (),
    )
    try:
        import wyoming.server  # noqa: F401
    except ImportError as error:
        raise MissingExtra("the wake-word service", "wyoming", "wyoming") from error
    from tapword.serve import log
    from tapword.serve.addresses import is_loopback
    from tapword.serve.wyoming.followed_model import FollowedModel
    from tapword.serve.wyoming.service import Presence, address, described, serve

    host, port = address(uri)
    if check:
        words = described(host, port)
        out.print(f"{uri}: {printable(', '.join(words) or 'no words yet')}", soft_wrap=True)
        return
    local = is_loopback(host)
    if zeroconf is not None and local:
        raise InputError(
            f"--zeroconf announces the service to other machines, but {host} is this machine "
            "alone: give --uri tcp://0.0.0.0:10400"
        )
    log.set_up("tapword.serve.wyoming.client", verbose or state["debug"])
    followed = FollowedModel(model, clients, backbone)

    def ready(bound: int) -> None:
        words = ", ".join(followed.served.words)
        missing = "no words yet" if model.exists() else "not there yet, waiting for it"
        out.print(printable(f"{model}: {words or missing}"), soft_wrap=True)
        out.print(f"Listening on {host} port {bound} for Home Assistant. Ctrl+C ends it.")
        if not local:
            out.print(
                "The protocol has no passwords and no encryption: whoever reaches this port can "
                "see the words and use the service. Let only your home network reach it.",
                soft_wrap=True,
            )

    serve(followed, host, port, Presence(name, language or (), zeroconf), ready)
    out.print("The wake-word service is closed.")
