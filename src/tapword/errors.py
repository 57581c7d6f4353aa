"""Errors of tapword; catch `TapwordError` to catch them all."""

import json
import shlex
from collections.abc import Mapping


class TapwordError(Exception):
    """Anything tapword refuses, with a message that says what to do.

    Attributes
    ----------
    code, params
        Name of the error and values in its message, for a page that says it in another language;
        the code is None if it has none.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        params: Mapping[str, str | float | None] | None = None,
    ):
        super().__init__(message)
        self.code = code
        self.params = dict(params or {})


class InputError(TapwordError, ValueError):
    """What the caller gave cannot be used: an audio file, an array, a word, an option."""


class ModelFileError(TapwordError):
    """A model file cannot be read, written or used with the given parts."""


class MissingExtra(TapwordError, ImportError):
    """A part needs a package that is not installed."""

    def __init__(self, part: str, package: str, extra: str):
        super().__init__(
            f"{part} needs the package '{package}', which is not installed; "
            f"install it with: {how_to_install(extra)}"
        )


def how_to_install(extra: str) -> str:
    """Command that installs an extra from the source of tapword itself: folder, file or index.

    pip records the first two in `direct_url.json`.
    """
    # Imported here: `import tapword` would take a third longer.
    from importlib import metadata
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        noted = metadata.distribution("tapword").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        noted = None
    source = json.loads(noted) if noted else {}
    if "dir_info" in source:
        folder = url2pathname(urlsplit(source["url"]).path)
        editable = "-e " if source["dir_info"].get("editable") else ""
        return f"pip install {editable}{shlex.quote(f'{folder}[{extra}]')}"
    address = source.get("url", "")
    if "vcs_info" in source:
        address = f"{source['vcs_info']['vcs']}+{address}"
    return f"pip install 'tapword[{extra}]{address and f' @ {address}'}'"
