"""Kokoro's files: where they are found, and how they are fetched."""

import hashlib
import math
import re
import shutil
import tarfile
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tapword.errors import TapwordError
from tapword.support.atomic_files import PathLike, atomic_write
from tapword.voices.base import voices_folder


class Download(NamedTuple):
    """A file to fetch: where from, its name, its SHA-256 and its size."""

    url: str
    name: str
    sha256: str
    n_bytes: int


MODEL = Download(
    "https://github.com/thewh1teagle/kokoro-onnx/releases/download/model-files-v1.0/"
    "kokoro-v1.0.int8.onnx",
    "kokoro-v1.0.int8.onnx",
    "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb",
    92_361_271,
)
STYLES = Download(
    "https://registry.npmjs.org/kokoro-js/-/kokoro-js-1.2.1.tgz",
    "kokoro-js-1.2.1.tgz",
    "1f0d0383ef0349af0bd9440d81dc12abbea3a5392eb645283eda876f537f5860",
    26_887_218,
)
# A speaker's style: 256 numbers for each number of phonemes up to 510.
STYLE_SHAPE = (510, 256)
STYLE_BYTES = 4 * math.prod(STYLE_SHAPE)
N_STYLES = 54
_STYLE_NAME = re.compile(r"package/voices/([a-z]{2}_[a-z]{1,20})\.bin")

Progress = Callable[[str], None]


class Files:
    """The folder of Kokoro's files.

    Parameters
    ----------
    folder
        "": `tapword/voices/kokoro` in the user's data folder (XDG_DATA_HOME or ~/.local/share).
    """

    def __init__(self, folder: PathLike = ""):
        self.folder = Path(folder) if folder else voices_folder() / "kokoro"

    @property
    def styles(self) -> Path:
        """Folder of the speakers' styles, one file each."""
        return self.folder / "styles"

    def why_not(self) -> str | None:
        """Say which files are missing; None: none."""
        if (self.folder / MODEL.name).is_file() and self.speakers:
            return None
        return (
            f"Kokoro's files are not in {self.folder}; fetch them (120 MB, once) with: "
            "tapword voices get"
        )

    @property
    def speakers(self) -> list[str]:
        """Names of the speakers."""
        return sorted(path.stem for path in self.styles.glob("*.bin"))

    def model(self) -> bytes:
        """Read the network; refuse a file that is not the pinned one."""
        path = self.folder / MODEL.name
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != MODEL.sha256:
            raise TapwordError(
                f"{path} is not the file that was pinned; delete it, then: tapword voices get"
            )
        return content

    def style(self, name: str) -> np.ndarray:
        """Styles of a speaker by number of phonemes, (510, 256) float32."""
        if name not in self._read:
            path = self.styles / f"{name}.bin"
            values = np.fromfile(path, dtype="<f4")
            if values.size != math.prod(STYLE_SHAPE) or not np.isfinite(values).all():
                raise TapwordError(f"{path} is damaged; delete it, then: tapword voices get")
            self._read[name] = values.reshape(STYLE_SHAPE)
        return self._read[name]

    @cached_property
    def _read(self) -> dict[str, np.ndarray]:
        return {}

    def get(
        self,
        say: Progress,
        source: PathLike | None = None,
        model: Download = MODEL,
        styles: Download = STYLES,
    ) -> None:
        """Fetch what is missing; everything is checked by its hash before it is used.

        Parameters
        ----------
        say
            Called with what happens next, for people.
        source
            Folder with files that were downloaded elsewhere; None: download them.
        model, styles
            Replace the official addresses and hashes.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if not _is(self.folder / model.name, model):
            self._fetch(model, source, say)
        if len(self.speakers) < N_STYLES:
            archive = self._fetch(styles, source, say)
            self._unpack(archive)
            archive.unlink()

    def _fetch(self, wanted: Download, source: PathLike | None, say: Progress) -> Path:
        """Put one file into the folder, from the network or from another folder."""
        # Imported here: it brings http along, which most commands do not need.
        from tapword.support import downloads

        path = self.folder / wanted.name
        temporary = path.with_name(f".{wanted.name}.unchecked")
        say(f"{wanted.name} ({wanted.n_bytes / 1e6:.0f} MB)")
        try:
            if source is None:
                downloads.download(wanted.url, temporary, wanted.n_bytes)
            else:
                shutil.copyfile(Path(source) / wanted.name, temporary)
            if not _is(temporary, wanted):
                raise TapwordError(
                    f"{wanted.name} from {source or wanted.url} is not the file that was pinned "
                    f"(SHA-256 {wanted.sha256[:12]}…); nothing was kept"
                )
            temporary.replace(path)
        except OSError as error:
            raise TapwordError(
                f"could not get {wanted.name}: {error}. Without a network, download {wanted.url} "
                "elsewhere, then: tapword voices get --from FOLDER"
            ) from error
        finally:
            temporary.unlink(missing_ok=True)
        return path

    def _unpack(self, archive: Path) -> None:
        self.styles.mkdir(exist_ok=True)
        with tarfile.open(archive, "r:gz") as packed:
            for member in packed:
                named = _STYLE_NAME.fullmatch(member.name)
                if named is None or not member.isfile() or member.size != STYLE_BYTES:
                    continue
                file = packed.extractfile(member)
                assert file is not None
                atomic_write(self.styles / f"{named[1]}.bin", file.read())


def _is(path: Path, wanted: Download) -> bool:
    """Whether a file is the pinned one."""
    if not path.is_file() or path.stat().st_size != wanted.n_bytes:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == wanted.sha256
