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
        "Model file; created if missing. [default: home.tap]",
        envvar="TAPWORD_MODEL",
    ),
]


@command(SERVE)
def studio(
    model: ServedModel = HOME,
    port: Annotated[int, option("N", "Port; 0: any free port.")] = PORT,
    host: Annotated[
        str,
        option("ADDRESS", "Address to bind to; 0.0.0.0: other devices can open the link, too."),
    ] = "127.0.0.1",
    size: Annotated[str | None, option("SIZE", f"Size of a new model: {SIZES}.")] = None,
    tls_cert: Annotated[Path | None, option("FILE", "TLS certificate (PEM).")] = None,
    tls_key: Annotated[Path | None, option("FILE", "Key of the certificate (PEM).")] = None,
    tls_self_signed: Annotated[
        bool, flag("--tls-self-signed", "Use TLS with a self-signed certificate.")
    ] = False,
    browser: Annotated[bool, flag("--open", "Open the studio in the browser.")] = False,
    backbone: Backbones = None,
) -> None:
    """Teach and correct a model by voice, in the browser.

    Audio goes only to this process, stays in memory for at most two minutes, and is never written.
    """
    if (tls_cert is None) != (tls_key is None):
        raise InputError("--tls-cert and --tls-key go together: give both")
    if tls_cert and tls_self_signed:
        raise InputError("give either --tls-cert and --tls-key or --tls-self-signed, not both")
    if size and model.exists():
        raise InputError(f"--size is for a new model; {model} already exists")
    if not model.absolute().parent.is_dir():
        raise InputError(f"cannot create {model}: its folder does not exist")
    try:
        import starlette  # noqa: F401
    except ImportError as error:
        raise MissingExtra("the studio", "starlette", "web") from error
    from tapword.serve.studio.launch import Address, in_browser, serve
    from tapword.serve.studio.model import StudioModel

    def ready(address: Address) -> None:
        out.print(f"The studio of {model} is open:", soft_wrap=True)
        for url in address.urls:
            out.print(f"  {url}", soft_wrap=True)
        if address.fingerprint:
            out.print(
                "The browser will warn about the self-signed certificate. Its SHA-256 is\n"
                f"  {address.fingerprint}",
                soft_wrap=True,
            )
        if not address.secure:
            out.print(
                "Without TLS, others in the network can listen in, and browsers block the "
                "microphone. Add --tls-self-signed, or --tls-cert and --tls-key.",
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
        str, option("URI", "Where to listen; tcp://0.0.0.0:10400: other machines can connect.")
    ] = URI,
    name: Annotated[str, option("NAME", "Name of the service in Home Assistant.")] = "tapword",
    language: Annotated[
        list[str] | None,
        option("CODE", "Language of the words, such as de; repeat for several."),
    ] = None,
    threshold: Annotated[
        list[str] | None,
        option(
            "WORD=SCORE",
            "Score from which WORD counts as said; repeat for several. CLIENT/WORD=SCORE: for one "
            "client.",
        ),
    ] = None,
    sensitivity: Annotated[
        list[str] | None,
        option(
            "[WORD=]VALUE",
            "From 0 to 1, instead of the model's: higher detects more words and raises more false "
            "alarms; repeat for several words. CLIENT/VALUE, CLIENT/WORD=VALUE: for one client.",
        ),
    ] = None,
    false_alarms_per_hour: Annotated[
        list[str] | None,
        option(
            "RATE",
            "Acceptable false alarms of all words together; fewer mean more missed words. "
            f"CLIENT/RATE: for one client. [default: {FALSE_ALARMS_PER_HOUR}]",
            # The option's own name would not fit into the help.
            envvar="TAPWORD_FALSE_ALARMS",
        ),
    ] = None,
    refractory: Annotated[
        list[str] | None,
        option(
            "SECONDS",
            "At most one word in this time. CLIENT/SECONDS: for one client. "
            f"[default: {REFRACTORY_S}]",
        ),
    ] = None,
    client: Annotated[
        list[str] | None,
        option(
            "NAME=ADDRESS",
            "Name a client for the log and as CLIENT in other options, such as kitchen=10.0.0.7; "
            "repeat for several.",
        ),
    ] = None,
    zeroconf: Annotated[
        str | None,
        option("NAME", "Announce the service under this name, so Home Assistant finds it."),
    ] = None,
    backbone: Backbones = None,
    verbose: Annotated[bool, flag("--verbose", "Also log connections and near misses.")] = False,
    check: Annotated[bool, flag("--check", "Check that a service runs at URI, and exit.")] = False,
) -> None:
    """Serve the words of a model to Home Assistant and its voice satellites (Wyoming protocol).

    The model is read again whenever it changes.
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
    from tapword.serve.wyoming.served_model import ServedModel
    from tapword.serve.wyoming.service import ServiceInfo, address, query_words, serve

    host, port = address(uri)
    if check:
        words = query_words(host, port)
        out.print(f"{uri}: {printable(', '.join(words) or 'no words yet')}", soft_wrap=True)
        return
    local = is_loopback(host)
    if zeroconf is not None and local:
        raise InputError(
            f"--zeroconf announces the service to other machines, but {host} is only this machine: "
            "give --uri tcp://0.0.0.0:10400"
        )
    log.set_up("tapword.serve.wyoming.client", verbose or state["debug"])
    served = ServedModel(model, clients, backbone)

    def ready(bound: int) -> None:
        words = ", ".join(served.served.words)
        missing = "no words yet" if model.exists() else "does not exist yet, waiting for it"
        out.print(printable(f"{model}: {words or missing}"), soft_wrap=True)
        out.print(f"Listening on {host} port {bound} for Home Assistant. Ctrl+C ends it.")
        if not local:
            out.print(
                "The protocol has no passwords and no encryption: anyone who can reach this port "
                "can use the service. Allow it only in your home network.",
                soft_wrap=True,
            )

    serve(served, host, port, ServiceInfo(name, language or (), zeroconf), ready)
    out.print("The wake-word service is closed.")
