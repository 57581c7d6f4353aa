"""The app for Home Assistant: its options reach the service, and none it accepts ends it."""

import json
import re
import shutil
import subprocess

import pytest

import tapword
from tapword.errors import InputError
from tapword.serve.wyoming.settings import DetectorSettings, read_clients
from tests.conftest import ROOT

yaml = pytest.importorskip("yaml", reason="needs the package pyyaml")
FOLDER = ROOT / "contrib" / "home_assistant_addon"


@pytest.fixture(scope="module")
def config():
    return yaml.safe_load((FOLDER / "config.yaml").read_text())


def accepts(rule: str, value: str) -> bool:
    """Whether the Supervisor accepts a value for `match(...)`."""
    return re.match(re.fullmatch(r"match\((.*)\)", rule)[1], value) is not None


@pytest.mark.skipif(not shutil.which("jq"), reason="needs jq")
@pytest.mark.parametrize("more", [{}, {"verbose": True}])
def test_options_become_arguments(run, monkeypatch, config, more):
    pytest.importorskip("wyoming", reason="needs the extra wyoming")
    from tapword.serve.wyoming import service

    clients = [
        {"name": "hall", "address": "10.0.0.7", "refractory": 0, "sensitivity": 0},
        {"name": "the bath", "address": "10.0.0.8", "false_alarms_per_hour": 0.1},
    ]
    thresholds = ["turn off=0.6", "the bath/turn off=.5"]
    given = {"name": "My words", "clients": clients, "thresholds": thresholds, "languages": ["de"]}
    given |= {"sensitivities": ["0.4", "the bath/turn off=0.7"]}
    seen = []
    monkeypatch.setattr(service, "serve", lambda *arguments: seen.append(arguments))
    monkeypatch.setenv("TAPWORD_URI", "tcp://0.0.0.0:10400")
    for options in (config["options"], config["options"] | given | more):
        command = ["jq", "--raw-output", "--from-file", FOLDER / "options.jq"]
        content = json.dumps(options)
        lines = subprocess.run(command, input=content, capture_output=True, text=True, check=True)
        code, _, error = run("wyoming", *lines.stdout.splitlines())
        assert code == 0, error
    [plain, full] = seen
    assert plain[0].clients.common == DetectorSettings() and plain[3] == service.SERVICE_INFO
    assert str(full[0].path) == "/share/tapword/home.tap"
    assert full[3] == service.ServiceInfo("My words", ["de"])
    known = full[0].clients
    hall, bath = known.settings("10.0.0.7"), known.settings("10.0.0.8")
    assert hall == DetectorSettings(0.5, 0.0, {"turn off": 0.6}, {None: 0.0})
    assert bath == DetectorSettings(0.1, 0.4, {"turn off": 0.5}, {None: 0.4, "turn off": 0.7})
    assert known.name("10.0.0.8") == "the bath"


@pytest.mark.parametrize(
    "value", ["marvin=0.6", "a=b=1", "hall/turn off=.5", "10.0.0.7/lamp=-0.1", "lamp=2"]
)
def test_thresholds_that_home_assistant_accepts_are_some(config, value):
    assert accepts(config["schema"]["thresholds"][0], value)
    read_clients(thresholds=[value])


def test_thresholds_that_are_none_are_refused_in_home_assistant(config):
    for value in ("marvin=-", "marvin=", "=0.5", " =1", "marvin", "lamp=--1", "lamp=1.2.3"):
        assert not accepts(config["schema"]["thresholds"][0], value)
        with pytest.raises(InputError):
            read_clients(thresholds=[value])


def test_sensitivities_are_judged_alike(config):
    [rule] = config["schema"]["sensitivities"]
    for value in ("0", "1", "0.55", ".5", "1.0", "marvin=0.6", "a=b=1", "10.0.0.7/lamp=0"):
        assert accepts(rule, value)
        read_clients(sensitivities=[value])
    for value in ("", "2", "1.1", "-0.1", "hall/0.5", "=0.5", " =1", "marvin", "lamp=2", "lamp="):
        assert not accepts(rule, value)
        with pytest.raises(InputError):
            read_clients(sensitivities=[value])


def test_every_option_is_explained_in_every_language(config):
    assert config["version"] == tapword.__version__
    assert set(config["options"]) == set(config["schema"])
    documented = (FOLDER / "DOCS.md").read_text()
    for language in ("en", "de"):
        text = yaml.safe_load((FOLDER / "translations" / f"{language}.yaml").read_text())
        assert set(text["configuration"]) == set(config["schema"])
        assert set(text["network"]) == set(config["ports"])
    assert all(f"| `{option}` |" in documented for option in config["schema"])
