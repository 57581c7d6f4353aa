"""Small computers: all that the package needs has wheels for 64-bit ARM; nothing is compiled.

A package registry is asked, which answers the same until a dependency changes or is published: so
`make soak` asks it. A release is also installed on such a machine.
"""

import json
import subprocess
import sys
import tomllib

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.soak
# Raspberry Pi OS 12 has the C library 2.36; wheels for older ones run there too.
PLATFORMS = ("manylinux2014_aarch64", "manylinux_2_17_aarch64", "manylinux_2_28_aarch64")


def resolve(requirements: list[str], python: str, target) -> subprocess.CompletedProcess[str]:
    """Let pip choose wheels for ARM without downloading them."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--report", "-"]
    command += ["--only-binary=:all:", "--implementation", "cp", "--python-version", python]
    command += ["--no-input", "--disable-pip-version-check", "--target", str(target)]
    for platform in PLATFORMS:
        command += ["--platform", platform]
    return subprocess.run([*command, *requirements], capture_output=True, text=True, timeout=300)


def core() -> list[str]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    """Whether the registry answers: a small package that has one wheel for all."""
    found = resolve(["filelock"], "3.11", tmp_path_factory.mktemp("reach"))
    if found.returncode:
        pytest.skip(f"needs a package registry: {found.stderr.strip().splitlines()[-1]}")


@pytest.mark.parametrize("python", ["3.11", "3.13"])
def test_every_core_dependency_has_a_wheel_for_arm(registry, python, tmp_path):
    found = resolve(core(), python, tmp_path)
    assert not found.returncode, found.stderr
    chosen = json.loads(found.stdout)["install"]
    files = {one["metadata"]["name"].lower(): one["download_info"]["url"] for one in chosen}
    compiled = [url for url in files.values() if not url.endswith("-none-any.whl")]
    assert compiled and all("aarch64" in url for url in compiled)
    for name in ("numpy", "safetensors", "soxr"):
        assert name in files


def test_a_package_without_such_a_wheel_is_noticed(registry, tmp_path):
    # Published for x86-64 alone, which is why no extra asks for it on other machines.
    found = resolve(["moonshine_cpp==0.1.4"], "3.11", tmp_path)
    assert found.returncode
    assert "No matching distribution" in found.stderr
