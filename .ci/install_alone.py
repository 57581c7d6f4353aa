"""Install a wheel with what it declares and nothing else: `install_alone.py WHEEL FOLDER`.

The environment in FOLDER holds the wheel, what its metadata asks for, and what that asks for in
turn, linked from the environment that runs this: an import that is not declared fails there, as
after `pip install`, but nothing is downloaded or unpacked.
"""

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

Found = set[tuple[str, frozenset[str]]]


def collect(requirements: Iterable[str], extras: Iterable[str], found: Found) -> None:
    """Add requirements to `found`, by name and extras, and their own requirements."""
    for one in map(Requirement, requirements):
        asked = one.marker is None or any(one.marker.evaluate({"extra": name}) for name in extras)
        key = (canonicalize_name(one.name), frozenset(one.extras))
        if asked and key not in found:
            found.add(key)
            collect(metadata.requires(one.name) or [], ("", *one.extras), found)


def link(name: str, site: Path) -> None:
    """Link the files of a package; its scripts are elsewhere and not needed."""
    for file in metadata.files(name) or []:
        source, target = Path(file.locate()), site / file
        if ".." not in file.parts and source.exists() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(source, target)


def main(wheel: str, folder: str) -> None:
    """Create the environment."""
    venv.create(folder, clear=True, symlinks=os.name != "nt")
    base = {"base": folder, "platbase": folder}
    python = Path(sysconfig.get_path("scripts", "venv", base), "python")
    site = Path(sysconfig.get_path("purelib", "venv", base))
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    subprocess.run([*pip, "install", "--quiet", "--no-index", "--no-deps", wheel], check=True)
    [installed] = metadata.distributions(path=[str(site)])
    found: Found = set()
    collect(installed.requires or [], [""], found)
    names = sorted({name for name, _ in found})
    for name in names:
        link(name, site)
    subprocess.run([*pip, "check"], check=True)
    print(f"{Path(wheel).name} and what it asks for: {', '.join(names)}")


main(*map(os.path.abspath, sys.argv[1:]))
