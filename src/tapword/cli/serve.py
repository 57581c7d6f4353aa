"""Commands that serve a model: to the browser, and to Home Assistant."""

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tapword.cli.app import command, flag, option, state
from tapword.cli.console import out
from tapword.cli.export import header_of, onnx_of
from tapword.cli.options import HOME, SIZES, Backbones
from tapword.cli.serve_options import Model, ServiceOptions, StudioOptions
from tapword.errors import InputError, MissingExtra
from tapword.support.text import printable

if TYPE_CHECKING:
    from tapword.serve.home.pages import Home
    from tapword.serve.studio.launch import Address
    from tapword.serve.wyoming.served_model import ServedModel

# What pages can export: file extension -> how.
EXPORTS = {"onnx": onnx_of, "h": header_of}
Verbose = Annotated[bool, flag("--verbose", "Also log connections and near misses.")]
Check = Annotated[bool, flag("--check", "Check that a service runs at URI, and exit.")]


@command()
def studio(
    at: StudioOptions,
    model: Model = HOME,
    size: Annotated[str | None, option("SIZE", f"Size of a new model: {SIZES}.")] = None,
    browser: Annotated[bool, flag("--open", "Open the studio in the browser.")] = False,
    backbone: Backbones = None,
) -> None:
    """Teach and correct a model by voice, in the browser.

    Audio goes only to this process, stays in memory for at most two minutes, and is never written.
    """
    tls = at.tls()
    if size and model.exists():
        raise InputError(f"--size is for a new model; {model} already exists")
    if not model.absolute().parent.is_dir():
        raise InputError(f"cannot create {model}: its folder does not exist")
    _require_web()
    from tapword.serve.studio.launch import Address, in_browser, serve
    from tapword.serve.studio.model import StudioModel

    def ready(address: Address) -> None:
        _show_links(model, address)
        out.print("Press Ctrl+C to close it.")
        if browser:
            opened.enter_context(in_browser(address.urls[0]))

    try:
        parts = _parts(model, backbone) | ({"size": size} if size else {})
        with contextlib.ExitStack() as opened:
            made = StudioModel(model, parts, backbone, EXPORTS)
            serve(made, at.host, at.port, tls, ready)
    except KeyboardInterrupt:
        out.print("The studio is closed.")


@command(environment=True)
def wyoming(
    at: ServiceOptions,
    model: Model = HOME,
    backbone: Backbones = None,
    verbose: Verbose = False,
    check: Check = False,
) -> None:
    """Serve the words of a model to Home Assistant and its voice satellites (Wyoming protocol).

    The model is read again whenever it changes.
    """
    clients = at.clients()
    _require_wyoming()
    from tapword.serve import log
    from tapword.serve.wyoming.served_model import ServedModel
    from tapword.serve.wyoming.service import serve

    if check:
        _check(at)
        return
    host, port = at.address()
    log.set_up(verbose or state["debug"], "tapword.serve.wyoming.client")
    served = ServedModel(model, clients, backbone)

    def ready(bound: int) -> None:
        _show_service(served, host, bound)

    serve(served, host, port, at.info(), ready)
    out.print("The wake-word service is closed.")


@command(environment=True)
def home(
    service: ServiceOptions,
    at: StudioOptions,
    model: Model = HOME,
    ingress: Annotated[
        str | None,
        option(
            "ADDRESS",
            "Address of Home Assistant's ingress, 172.30.32.2 in an app: it has checked the user, "
            "so what it forwards needs no token.",
        ),
    ] = None,
    events: Annotated[
        str | None,
        option(
            "URL",
            "Fire events at Home Assistant's API, such as http://supervisor/core/api, by the token "
            "in the variable SUPERVISOR_TOKEN.",
        ),
    ] = None,
    mqtt: Annotated[
        str | None,
        option(
            "URL",
            "Make entities in Home Assistant through the MQTT broker at URL, such as "
            "mqtt://ann@hub.local; mqtts: by TLS. Only the variable may contain a password.",
        ),
    ] = None,
    mqtt_password_file: Annotated[
        Path | None,
        option("FILE", "File whose first line is the password of the MQTT broker."),
    ] = None,
    commands: Annotated[
        bool, flag("--commands", "Read commands of automations from standard input.")
    ] = False,
    backbone: Backbones = None,
    verbose: Verbose = False,
    check: Check = False,
) -> None:
    """Serve a model to Home Assistant, and teach it in the browser through the satellites.

    One process is the service of `tapword wyoming` and the studio of `tapword studio`.
    """
    clients, tls = service.clients(), at.tls()
    _require_wyoming()
    if check:
        _check(service)
        return
    _require_web()
    from tapword.serve import log
    from tapword.serve.home.commands import Commands
    from tapword.serve.home.events import Events
    from tapword.serve.home.model import HomeModel
    from tapword.serve.home.pages import Home
    from tapword.serve.home.run import serve
    from tapword.serve.studio.launch import prepare

    if not model.absolute().parent.is_dir():
        raise InputError(f"cannot create {model}: its folder does not exist")
    host, port = service.address()
    log.set_up(verbose or state["debug"], "tapword.serve.wyoming.client", "tapword.serve.home")
    parts = _parts(model, backbone)
    made = HomeModel(model, parts, backbone, EXPORTS, clients=clients)
    pages = Home(made, clients)
    if events is not None:
        token = os.environ.get("SUPERVISOR_TOKEN", "")
        pages.satellites.noted.append(Events(events, token).note)
    beside = []
    if mqtt is not None:
        beside.append(_entities(pages, service.name, mqtt, mqtt_password_file))
    prepared = prepare(made, at.host, at.port, tls, ingress=ingress, extension=pages)

    def ready(bound: int, address: "Address") -> None:
        _show_service(made, host, bound)
        _show_links(model, address)
        if commands:
            Commands(pages).follow(0)

    serve(pages, prepared, host, port, service.info(), ready, beside)
    out.print("The service and the studio are closed.")


def _require_web() -> None:
    try:
        import starlette  # noqa: F401
    except ImportError as error:
        raise MissingExtra("the studio", "starlette", "web") from error


def _require_wyoming() -> None:
    try:
        import wyoming.server  # noqa: F401
    except ImportError as error:
        raise MissingExtra("the wake-word service", "wyoming", "wyoming") from error


def _entities(pages: "Home", name: str, url: str, password_file: Path | None) -> Any:
    """Give what keeps the entities at a broker up to date."""
    try:
        from tapword.serve.home.mqtt import Broker, Entities, read_password
    except ImportError as error:
        raise MissingExtra("--mqtt", str(error.name), "mqtt") from error
    password = None if password_file is None else read_password(password_file)
    broker = Broker(url, password)
    if password is None and broker.password and url != os.environ.get("TAPWORD_MQTT"):
        raise InputError(
            "others on this machine can see options, and this one contains a password: write it "
            "to a file and give --mqtt-password-file, or set the variable TAPWORD_MQTT"
        )
    return Entities(pages, name, broker).run


def _parts(model: Path, backbone: Any) -> dict[str, Any]:
    """Parts of a new model."""
    return {} if model.exists() or not backbone else {"backbone": backbone}


def _check(at: ServiceOptions) -> None:
    """Check that a service runs."""
    from tapword.serve.wyoming.service import address, query_words

    words = query_words(*address(at.uri))
    out.print(f"{at.uri}: {printable(', '.join(words) or 'no words yet')}", soft_wrap=True)


def _show_service(served: "ServedModel", host: str, port: int) -> None:
    """Say which words are served, and where."""
    from tapword.serve.addresses import is_loopback

    words = ", ".join(served.served.words)
    missing = "no words yet" if served.path.exists() else "does not exist yet, waiting for it"
    out.print(printable(f"{served.path}: {words or missing}"), soft_wrap=True)
    out.print(f"Listening on {host} port {port} for Home Assistant. Ctrl+C ends it.")
    if not is_loopback(host):
        out.print(
            "The protocol has no passwords and no encryption: anyone who can reach this port "
            "can use the service. Allow it only in your home network.",
            soft_wrap=True,
        )


def _show_links(model: Path, address: "Address") -> None:
    """Say where the studio is open."""
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
