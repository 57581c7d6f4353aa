"""The one family of errors: catch `TapwordError` to catch them all."""


class TapwordError(Exception):
    """Anything tapword refuses, with a message that says what to do."""


class InputError(TapwordError, ValueError):
    """What the caller gave cannot be used: an audio file, an array, a word, an option."""


class ModelFileError(TapwordError):
    """A model file cannot be read, written or used with the parts at hand."""


class MissingExtra(TapwordError, ImportError):
    """A part needs a package that is not installed."""

    def __init__(self, part: str, package: str, extra: str):
        super().__init__(
            f"{part} needs the package '{package}', which is not installed; "
            f"install it with: pip install 'tapword[{extra}]'"
        )
