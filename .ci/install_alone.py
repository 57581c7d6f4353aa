"""Install a wheel with what it declares and nothing else: `install_alone.py WHEEL FOLDER`.

The environment in FOLDER holds the wheel, what its metadata asks for, and what that asks for in
turn, linked from the environment that runs this: an import that is not declared fails there, as after
`pip install`, but nothing is downloaded or unpacked.
"""

import os
import subprocess
import sys
import sysconfig
import venv
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement


def wanted(requirements: list[str], found: dict[str, metadata.Distribution], extras=("",)) -> None:
    """Add to `found` what is required, and what that requires."""
    for requirement in map(Requirement, requirements):
        marker = requirement.marker
        if marker and not any(marker.evaluate({"extra": extra}) for extra in extras):
            continue
        one = metadata.distribution(requirement.name)
        key = f"{one.name} {sorted(requirement.extras)}"
        if key not in found:
            found[key] = one
            wanted(one.requires or [], found, ("", *requirement.extras))


def link(distribution: metadata.Distribution, folder: Path) -> None:
    """Link the files of a distribution; scripts, which lie elsewhere, are not needed."""
    for file in distribution.files or []:
        target = folder / file
        if ".." not in file.parts and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(file.locate(), target)


wheel, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
venv.create(folder, clear=True, symlinks=os.name != "nt")
base = {"base": str(folder), "platbase": str(folder)}
site = Path(sysconfig.get_path("purelib", "venv", base))
python = Path(sysconfig.get_path("scripts", "venv", base)) / "python"
pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index"]
subprocess.run([*pip, "--no-deps", str(wheel)], check=True)
[installed] = metadata.distributions(path=[str(site)])
found: dict[str, metadata.Distribution] = {}
wanted(installed.requires or [], found)
for one in found.values():
    link(one, site)
print(f"{wheel.name} with {len(found)} packages that it asks for: {', '.join(sorted(found))}")
