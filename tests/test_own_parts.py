"""Parts in files and packages of one's own, as docs/adding_parts.md shows them."""

import json
import os
import re
import subprocess
import sys
from importlib import metadata

import numpy as np
import pytest
import soundfile

from tapword import registry
from tapword.errors import InputError, ModelFileError
from tapword.spotter.spotter import Spotter
from tests.conftest import ROOT, tone

GUIDE = (ROOT / "docs" / "adding_parts.md").read_text()
PARTS = ["--backbone", "logmel", "--pooling", "median", "--learner", "ncm"]
LEARNER = """
from tapword.learners.ncm import Ncm

class Nearest(Ncm):
    '''Nearest class mean, under another name.'''
"""


@pytest.fixture(autouse=True)
def nothing_loaded(monkeypatch):
    monkeypatch.setattr(registry, "_from_files", {})


@pytest.fixture
def median(tmp_path):
    [code] = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    path = tmp_path / "median.py"
    path.write_text(code)
    return path


@pytest.fixture
def clip(tmp_path):
    path = tmp_path / "low.wav"
    soundfile.write(path, tone(300), 16_000)
    return path


@pytest.fixture
def entries(monkeypatch):
    """Give entry points as an installed package does."""

    def put(kind, **named):
        group = f"tapword.{kind}"
        found = [metadata.EntryPoint(name, value, group) for name, value in named.items()]
        monkeypatch.setattr(registry, "_entry_points", lambda k: found if k == kind else [])

    return put


def test_a_file_named_on_the_command_line(run, tmp_path, median, clip, monkeypatch):
    model = tmp_path / "home.tap"
    code, _, error = run("learn", model, "low", clip, *PARTS, "--part", median)
    assert code == 0, error
    assert "low" in run("predict", model, clip, "--closed", "--part", median)[1]
    assert "median" in run("list", "poolings", "--part", median)[1]
    monkeypatch.setattr(registry, "_from_files", {})
    code, _, error = run("predict", model, clip)
    assert code == 2 and "no pooling named 'median'" in error and "--part" in error


def test_processes_of_an_evaluation_know_the_file(run, tmp_path, median):
    own = tmp_path / "nearest.py"
    own.write_text(LEARNER)
    rng = np.random.default_rng(0)
    for pitch in (200, 900):
        for index in range(4):
            path = tmp_path / "data" / str(pitch) / f"{index}.wav"
            path.parent.mkdir(parents=True, exist_ok=True)
            noise = 0.01 * rng.standard_normal(16_000)
            soundfile.write(path, tone(pitch) + noise, 16_000)
    given = ["--backbone", "logmel", "--pooling", "median", "--learner", "nearest"]
    given += ["--part", median, "--part", own, "--jobs", 2, "--orderings", 2, "--json"]
    given += ["--cache", tmp_path / "cache", "--quiet"]
    code, output, error = run("evaluate", "--data", tmp_path / "data", *given)
    assert code == 0, error
    assert "nearest" in output


def test_the_package_of_the_guide(tmp_path, median, clip):
    """With it a model loads; without it an error says what is missing."""
    [project] = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    median.with_name("pyproject.toml").write_text(project)
    site, model = tmp_path / "site", tmp_path / "home.tap"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--no-index", "--target", site, tmp_path], check=True)

    def call(*arguments, installed=True):
        paths = [str(ROOT / "src"), *([str(site)] if installed else [])]
        return subprocess.run(
            [sys.executable, "-m", "tapword", *map(str, arguments)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            text=True,
        )

    listed = call("list", "poolings", "--json")
    assert {"median", "tap"} <= {part["name"] for part in json.loads(listed.stdout)}
    taught = call("learn", model, "low", clip, *PARTS)
    assert taught.returncode == 0, taught.stderr
    assert "low" in call("predict", model, clip, "--closed").stdout
    missing = call("predict", model, clip, installed=False)
    assert missing.returncode == 2 and "no pooling named 'median'" in missing.stderr
    assert "install" in missing.stderr


def test_a_name_that_is_taken_is_refused(median, entries):
    tap = median.rename(median.with_name("tap.py"))
    with pytest.raises(InputError, match=r"two poolings are named 'tap': .* own.*tap\.py"):
        registry.load_file(tap)
    assert registry.loaded_files() == [] and registry.build("poolings", "tap:R=3").R == 3
    entries("poolings", avg="own.poolings:Avg")
    with pytest.raises(InputError, match=r"'avg': .* tapword's own.*own\.poolings:Avg"):
        registry.build("poolings", "tap")


def test_an_entry_point_is_imported_only_where_it_is_asked_for(entries):
    entries("poolings", absent="no_such_package:Absent", maximum="tapword.poolings.max:Max")
    assert registry.build("poolings", "tap").name == "tap"
    with pytest.raises(InputError, match="no_such_package:Absent, which cannot be imported"):
        registry.build("poolings", "absent")
    with pytest.raises(InputError, match="named 'max': give the class public_name = 'maximum'"):
        registry.build("poolings", "maximum")
    entries("learners", median="tapword.poolings.max:Max")
    with pytest.raises(InputError, match="is not a class derived from Learner"):
        registry.build("learners", "median")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1 / 0", "cannot be loaded: ZeroDivisionError"),
        ("def", "cannot be loaded: SyntaxError"),
        ("x = 1", "has no class derived from"),
    ],
)
def test_files_without_a_part_are_refused(tmp_path, content, message):
    path = tmp_path / "own.py"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        registry.load_file(path)
    with pytest.raises(InputError, match="is not a Python file"):
        registry.load_file(tmp_path / "gone.py")


def test_a_model_file_loads_no_file(tmp_path, median, clip, monkeypatch):
    registry.load_file(median)
    spotter = Spotter("logmel", "median", "ncm")
    spotter.learn(clip, "low")
    spotter.save(tmp_path / "home.tap")
    assert Spotter.load(tmp_path / "home.tap").predict(clip, closed=True).word == "low"
    monkeypatch.setattr(registry, "_from_files", {})
    with pytest.raises(ModelFileError, match=r"no pooling named 'median'; .* --part"):
        Spotter.load(tmp_path / "home.tap")
