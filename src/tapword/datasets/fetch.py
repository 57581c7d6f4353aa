"""Fetch Speech Commands: download, check, unpack, and only then let it appear."""

import contextlib
import hashlib
import os
import shutil
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import filelock

from tapword.datasets.download import DownloadError, Progress, download
from tapword.datasets.speech_commands import LISTS
from tapword.errors import InputError, TapwordError

URL = "http://download.tensorflow.org/data/{archive}"
SHA256 = {
    "v0.01": "743935421bb51cccdb6bdd152e04c5c70274e935c82119ad7faeec31780d811d",
    "v0.02": "af14739ee7dc311471de98f5f9d2c9191b18aedfe957f4a6ff791c709868ff58",
}
# Says which archive a folder was unpacked from.
_MARK = ".archive_sha256"
# Unpacked, the archives are about half as large again; the rest is margin.
_UNPACKED = 2.0


def fetch_speech_commands(
    version: str,
    to: str | os.PathLike[str],
    progress: Progress | None = None,
    urls: Sequence[str] | None = None,
    sha256: str | None = None,
    timeout_s: float = 30.0,
    retries: int = 3,
    backoff_s: float = 1.0,
) -> Path:
    """Download Google Speech Commands into a folder; do nothing where it is there already.

    Parameters
    ----------
    version
        "v0.01" or "v0.02".
    to
        Folder to make; it appears whole or not at all. An archive that was downloaded by hand and
        lies in it, or beside it, is used and left in place.
    progress
        Called with the bytes downloaded and the bytes in all (None where not known).
    urls, sha256
        Other addresses and another hash than the official ones.
    timeout_s, retries, backoff_s
        As in `download`.

    Returns
    -------
    Path
        The folder, fit for `speech_commands:root=...`.

    Notes
    -----
    The download lies beside the folder as `<archive>.part`, and a cut one is resumed by the next
    call. A downloaded archive is deleted once unpacked, or if its hash is wrong.

    Examples
    --------
    >>> fetch_speech_commands("v3", "speech")
    Traceback (most recent call last):
    ...
    tapword.errors.InputError: no version 'v3' of Speech Commands; known: v0.01, v0.02
    """
    if version not in SHA256:
        raise InputError(f"no version {version!r} of Speech Commands; known: {', '.join(SHA256)}")
    if not hasattr(tarfile, "data_filter"):
        raise TapwordError("to unpack an archive safely, Python must be 3.11.4 or newer")
    wanted = sha256 or SHA256[version]
    name = f"speech_commands_{version}.tar.gz"
    urls = [URL.format(archive=name)] if urls is None else list(urls)
    folder = Path(os.path.realpath(Path(to).expanduser()))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            if _is_there(folder, wanted):
                return folder
            _require_ours(folder, name)
            by_hand = [path for path in (folder / name, folder.with_name(name)) if path.is_file()]
            archive = by_hand[0] if by_hand else folder.with_name(name)
            if not by_hand:
                try:
                    download(urls, archive, progress, timeout_s, retries, backoff_s, _UNPACKED)
                except DownloadError as error:
                    raise TapwordError(
                        f"{error}. Without a network: download {urls[0]} elsewhere and put the "
                        f"archive at {folder / name}, then try again"
                    ) from error
            _check_hash(archive, wanted, delete=not by_hand)
            _unpack(archive, folder, wanted)
            if not by_hand:
                archive.unlink()
    except OSError as error:
        raise TapwordError(f"cannot make {folder}: {error}") from error
    return folder


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Two programs that fetch into one folder would spoil each other's download."""
    lock = filelock.FileLock(folder.with_name(f".{folder.name}.lock"), timeout=1)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise TapwordError(f"another program is fetching into {folder}; wait for it") from None
    try:
        yield
    finally:
        lock.release()


def _is_there(folder: Path, wanted: str) -> bool:
    if not all((folder / name).is_file() for name in LISTS.values()):
        return False
    mark = folder / _MARK
    if not mark.is_file():
        raise InputError(
            f"{folder} looks like Speech Commands but was not fetched by tapword, so its version "
            "is not known: use it as it is with --data, or give another folder"
        )
    if mark.read_text(encoding="utf-8").strip() != wanted:
        raise InputError(f"{folder} holds another version of Speech Commands; give another folder")
    return True


def _require_ours(folder: Path, name: str) -> None:
    """Refuse to mix the data set with other things."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder")
    strange = sorted({path.name for path in folder.iterdir()} - {name}) if folder.exists() else []
    if strange:
        raise InputError(
            f"{folder} is neither empty nor Speech Commands (it has {strange[0]!r}); give a folder "
            "that does not exist yet"
        )


def _check_hash(archive: Path, wanted: str, delete: bool) -> None:
    with archive.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found == wanted:
        return
    size = archive.stat().st_size
    if delete:
        archive.unlink()
    what = "it was deleted; try again" if delete else "delete it to have it downloaded"
    raise TapwordError(
        f"{archive} ({size:,} bytes) is not the official archive, or is damaged: its SHA-256 is "
        f"{found}, not {wanted}; {what}"
    )


def _unpack(archive: Path, folder: Path, mark: str) -> None:
    """Unpack beside the folder, then put it in place by one renaming."""
    temporary = folder.with_name(f".{folder.name}.unpacking")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir()
        try:
            with tarfile.open(archive, "r:gz") as file:
                file.extractall(temporary, filter=_plain)
        except (tarfile.TarError, EOFError, zlib.error) as error:
            raise TapwordError(f"{archive} cannot be unpacked: {error}") from error
        for name in LISTS.values():
            if not (temporary / name).is_file():
                raise TapwordError(f"{archive} is not Speech Commands: there is no {name} in it")
        (temporary / _MARK).write_text(mark + "\n", encoding="utf-8")
        if folder.exists():
            if archive.parent == folder:
                archive.replace(temporary / archive.name)
            folder.rmdir()
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _plain(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
    """Allow files and folders below the target, nothing else."""
    if not (member.isreg() or member.isdir()):
        raise tarfile.SpecialFileError(member)
    return tarfile.data_filter(member, path)
