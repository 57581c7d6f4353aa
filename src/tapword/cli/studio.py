"""The command that opens the studio in the browser."""

from pathlib import Path
from typing import Annotated

import typer

from tapword.cli.app import app, out
from tapword.errors import InputError, MissingExtra

PORT = 8642


@app.command()
def studio(
    model: Annotated[Path, typer.Option(help="Model file; made by the first word taught.")] = Path(
        "home.tap"
    ),
    port: Annotated[int, typer.Option(help="Port; 0 for any that is free.")] = PORT,
    host: Annotated[
        str,
        typer.Option(help="Address to bind to; 0.0.0.0 lets others in who have the token."),
    ] = "127.0.0.1",
    size: Annotated[
        str | None, typer.Option(help="For a new model: small, medium or large.")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate, PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its key, PEM.")] = None,
    tls_self_signed: Annotated[
        bool,
        typer.Option("--tls-self-signed", help="Make a certificate, for the phone at hand."),
    ] = False,
    browser: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
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
    from tapword.web.serving import Address, serve
    from tapword.web.shared_model import SharedModel

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
                "Browsers lend the microphone to secure pages only: add --tls-self-signed to teach "
                "by voice from another device.",
                soft_wrap=True,
            )
        out.print("Press Ctrl+C to close it.")
        if browser:
            import webbrowser

            webbrowser.open(address.urls[0])

    tls = (tls_cert, tls_key) if tls_cert and tls_key else tls_self_signed
    try:
        serve(SharedModel(model, {"size": size} if size else None), host, port, tls, ready)
    except KeyboardInterrupt:
        out.print("The studio is closed.")
