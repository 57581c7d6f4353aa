"""The properties that hypothesis searches, searched longer."""

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT

FILES = ("audio/test_files_search.py", "learners/test_search.py", "spotter/test_store_search.py")


@pytest.mark.soak
def test_the_same_searched_longer():
    files = [str(ROOT / "tests" / name) for name in FILES]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files]
    subprocess.run(command, env=os.environ | {"HYPOTHESIS_PROFILE": "soak"}, check=True)
