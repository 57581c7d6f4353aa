"""The command that serves taught words to Home Assistant."""

import ipaddress
import logging
import math
from pathlib import Path
from typing import Annotated

import typer

from tapword.cli.app import app, out, state
from tapword.errors import InputError, MissingExtra
from tapword.spotter import clean_word

URI = "tcp://127.0.0.1:10400"


@app.command()
def wyoming(
    model: Annotated[
        Path, typer.Option(help="Model file; read again whenever somebody taught it more.")
    ] = Path("home.tap"),
    uri: Annotated[
        str, typer.Option(help="Where to listen; tcp://0.0.0.0:10400 lets other machines in.")
    ] = URI,
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD=SCORE", help="Score from which a word counts as said; repeat for several."
        ),
    ] = None,
    false_alarms_per_hour: Annotated[
        float, typer.Option(help="How many are acceptable; fewer cost more misses.")
    ] = 0.5,
    zeroconf: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Announce it by this name, for Home Assistant to find."),
    ] = None,
) -> None:
    """Serve the words of a model to Home Assistant and its voice satellites (Wyoming protocol)."""
    thresholds = dict(map(_threshold, threshold or []))
    if not (math.isfinite(false_alarms_per_hour) and false_alarms_per_hour > 0):
        raise InputError(f"--false-alarms-per-hour must be above 0, got {false_alarms_per_hour}")
    if not model.absolute().parent.is_dir():
        raise InputError(f"cannot wait for {model}: its folder does not exist")
    try:
        import wyoming.server  # noqa: F401
    except ImportError as error:
        raise MissingExtra("the wake-word service", "wyoming", "wyoming") from error
    from tapword.wyoming.followed_model import FollowedModel
    from tapword.wyoming.service import address, serve

    host, port = address(uri)
    local = _is_local(host)
    if zeroconf is not None and local:
        raise InputError(
            f"--zeroconf announces the service to other machines, but {host} is this machine "
            "alone: give --uri tcp://0.0.0.0:10400"
        )
    logging.basicConfig(
        format="%(asctime)s %(levelname)s %(message)s",
        level=logging.DEBUG if state["debug"] else logging.INFO,
    )
    followed = FollowedModel(
        model, false_alarms_per_hour=false_alarms_per_hour, thresholds=thresholds
    )

    def ready(bound: int) -> None:
        words = ", ".join(followed.served.words)
        missing = "no words yet" if model.exists() else "not there yet, waiting for it"
        out.print(f"{model}: {words or missing}", soft_wrap=True)
        out.print(f"Listening on {host} port {bound} for Home Assistant. Ctrl+C ends it.")
        if not local:
            out.print(
                "The protocol has no passwords and no encryption: whoever reaches this port can "
                "see the words and use the service. Let only your home network reach it.",
                soft_wrap=True,
            )

    serve(followed, host, port, zeroconf, ready)
    out.print("The wake-word service is closed.")


def _threshold(given: str) -> tuple[str, float]:
    word, sign, score = given.rpartition("=")
    try:
        value = float(score)
    except ValueError:
        value = math.nan
    if not sign or not math.isfinite(value):
        raise InputError(f"--threshold must be like lamp=0.6, got {given!r}")
    return clean_word(word), value


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
