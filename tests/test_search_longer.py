"""The properties that hypothesis searches, searched longer, and files damaged at random."""

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT


@pytest.mark.soak
def test_the_same_searched_longer():
    files = sorted(map(str, ROOT.glob("tests/*/test_*search.py")))
    assert len(files) == 3
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files]
    subprocess.run(command, env=os.environ | {"HYPOTHESIS_PROFILE": "soak"}, check=True)


@pytest.mark.soak
@pytest.mark.parametrize("target", ["file", "header", "state", "device"])
def test_damaged_model_files_for_a_minute(target):
    command = [sys.executable, "tests/fuzz.py", target, "--seconds", "60"]
    subprocess.run(command, cwd=ROOT, check=True)
