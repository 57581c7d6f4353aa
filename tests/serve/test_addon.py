"""The app for Home Assistant: its options reach the service, and none it accepts ends it."""

import fnmatch
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

import tapword
from tapword.cli.serve_options import PORT
from tapword.errors import InputError
from tapword.serve.studio.ingress import SUPERVISOR
from tapword.serve.wyoming.settings import DetectorSettings, read_clients
from tests.conftest import ROOT
from tests.serve.supervisor_schema import (
    OPTIONAL,
    REPOSITORY,
    REPOSITORY_OPTIONAL,
    REQUIRED,
    TRANSLATIONS,
    problems,
)

yaml = pytest.importorskip("yaml", reason="needs the package pyyaml")
FOLDER = ROOT / "contrib" / "home_assistant_addon"
OPTIONS = FOLDER / "options.jq"


@pytest.fixture(scope="module")
def config():
    return yaml.safe_load((FOLDER / "config.yaml").read_text())


def accepts(rule: str, value: str) -> bool:
    """Whether the Supervisor accepts a value for `match(...)`."""
    return re.match(re.fullmatch(r"match\((.*)\)", rule)[1], value) is not None


needs_jq = pytest.mark.skipif(not shutil.which("jq"), reason="needs jq")


def test_the_supervisor_accepts_the_app_and_the_repository(config):
    assert problems(config, REQUIRED, OPTIONAL) == []
    repository = yaml.safe_load((ROOT / "repository.yaml").read_text())
    assert problems(repository, REPOSITORY, REPOSITORY_OPTIONAL) == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"slug": None}, "slug is None"),
        ({"arch": ["sparc"]}, "arch is ['sparc']"),
        ({"map": ["share:rx"]}, "map is"),
        ({"map": [{"type": "share", "read_only": "no"}]}, "map is"),
        ({"ingress_port": 70000}, "ingress_port is"),
        ({"schema": {"model": "text"}}, "schema is"),
        ({"schema": {"clients": [["str"]]}}, "schema is"),
        ({"image": "tapword"}, "image is"),
        ({"ingres": True}, "ingres is unknown"),
        ({"backup": "warm"}, "backup is"),
        ({"privileged": ["SYS_EVERYTHING"]}, "privileged is"),
        ({"ulimits": {"nofile": {"soft": 1}}}, "ulimits is"),
        ({"host_network": "yes"}, "host_network is"),
        ({"schema": {"port": "device(usb)"}}, "schema is"),
    ],
)
def test_the_schema_finds_mistakes(config, change, found):
    [problem] = problems(config | change, REQUIRED, OPTIONAL)
    assert problem.startswith(found)
    del (missing := dict(config))["version"]
    assert problems(missing, REQUIRED, OPTIONAL) == ["version is missing"]


def test_a_workflow_builds_the_images_that_the_app_names(config):
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "app.yml").read_text())
    job = workflow["jobs"]["image"]
    assert [one["arch"] for one in job["strategy"]["matrix"]["include"]] == config["arch"]
    push = next(step["with"] for step in job["steps"] if "build-push" in step.get("uses", ""))
    image, _, tag = push["tags"].partition(":")
    assert image == config["image"].replace("{arch}", "${{ matrix.arch }}")
    assert tag == "${{ steps.version.outputs.version }}"
    read = next(step["run"] for step in job["steps"] if step.get("id") == "version")
    command = re.search(r"=\$\((.*)\)\"", read)[1]
    found = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True)
    assert found.stdout.strip() == tapword.__version__


def test_the_studio_is_inside_home_assistant(config):
    assert config["ingress"] and config["panel_admin"] and config["stdin"]
    script = (FOLDER / "run.sh").read_text()
    assert f"supervisor=${{TAPWORD_INGRESS:-{SUPERVISOR}}}\n" in script
    assert config["ingress_port"] == PORT


@needs_jq
@pytest.mark.parametrize("more", [{}, {"verbose": True, "events": True}])
def test_options_become_arguments(run, monkeypatch, config, more):
    pytest.importorskip("wyoming", reason="needs the extra wyoming")
    pytest.importorskip("starlette", reason="needs the extra web")
    from tapword.serve.home import run as home
    from tapword.serve.wyoming import service

    clients = [
        {"name": "hall", "address": "10.0.0.7", "refractory": 0, "sensitivity": 0},
        {"name": "the bath", "address": "10.0.0.8", "false_alarms_per_hour": 0.1},
    ]
    thresholds = ["turn off=0.6", "the bath/turn off=.5"]
    given = {"name": "My words", "clients": clients, "thresholds": thresholds, "languages": ["de"]}
    given |= {"sensitivities": ["0.4", "the bath/turn off=0.7"]}
    seen = []

    def seen_by(pages, studio, *others):
        studio[1].close()
        seen.append((pages, *others))

    monkeypatch.setattr(home, "serve", seen_by)
    monkeypatch.setenv("TAPWORD_URI", "tcp://0.0.0.0:10400")
    monkeypatch.setenv("TAPWORD_PORT", "0")
    monkeypatch.setenv("SUPERVISOR_TOKEN", "token")
    for options in (config["options"], config["options"] | given | more):
        command = ["jq", "--raw-output", "--arg", "folder", "/tmp"]
        content = json.dumps(options)
        lines = subprocess.run(
            [*command, "--arg", "api", "http://supervisor/core/api", "--from-file", OPTIONS],
            input=content,
            capture_output=True,
            text=True,
        )
        code, _, error = run("home", *lines.stdout.splitlines())
        assert code == 0, error
    [plain, full] = seen
    assert plain[0].model.clients.common == DetectorSettings()
    assert plain[3] == service.SERVICE_INFO and not plain[0].satellites.noted
    assert len(full[0].satellites.noted) == ("events" in more)
    assert str(full[0].model.path) == "/tmp/home.tap"
    assert full[3] == service.ServiceInfo("My words", ["de"])
    known = full[0].model.clients
    hall, bath = known.settings("10.0.0.7"), known.settings("10.0.0.8")
    assert hall == DetectorSettings(0.5, 0.0, {"turn off": 0.6}, {None: 0.0})
    assert bath == DetectorSettings(0.1, 0.4, {"turn off": 0.5}, {None: 0.4, "turn off": 0.7})
    assert known.name("10.0.0.8") == "the bath"


def script_environment(tmp_path, data, share):
    """Environment of the app's script: Home Assistant's shell functions, and this tapword."""
    functions = tmp_path / "bashio"
    functions.write_text(
        "bashio::var.json() { echo '{}'; }\n"
        "bashio::discovery() { return 0; }\n"
        'bashio::log.error() { echo "$1" >&2; }\n'
    )
    command = tmp_path / "tapword"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m tapword "$@"\n')
    command.chmod(0o755)
    return os.environ | {
        "TAPWORD_DATA": str(data),
        "TAPWORD_SHARE": str(share),
        "TAPWORD_JQ": str(OPTIONS),
        "TAPWORD_COMMAND": str(command),
        "TAPWORD_URI": "tcp://127.0.0.1:0",
        "TAPWORD_PORT": "0",
        "BASH_ENV": str(functions),
    }


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="needs shellcheck")
def test_shellcheck_finds_nothing_in_the_script():
    command = ["shellcheck", "--shell=bash", FOLDER / "run.sh"]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


@needs_jq
@pytest.mark.parametrize("shared", [False, True])
def test_the_script_starts_both_on_the_model_that_is_there(config, tmp_path, shared):
    """With Home Assistant's shell functions as its base image documents them."""
    pytest.importorskip("wyoming", reason="needs the extra wyoming")
    pytest.importorskip("starlette", reason="needs the extra web")
    data, share = tmp_path / "data", tmp_path / "share"
    data.mkdir(), share.mkdir()
    (data / "options.json").write_text(json.dumps(config["options"]))
    if shared:
        tapword.Spotter().save(share / "home.tap")
    environment = script_environment(tmp_path, data, share)
    process = subprocess.Popen(
        ["bash", FOLDER / "run.sh"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    lines = []
    try:
        while "token=" not in (line := process.stdout.readline()):
            assert line, "".join(lines)
            lines.append(line)
        folder = share if shared else data
        assert lines[0].startswith(f"{folder / 'home.tap'}: ")
        process.stdin.write('{"command": "pause", "seconds": 1}\n')
        process.stdin.flush()
        while "command:" not in (line := process.stdout.readline()):
            assert line
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=30)


@pytest.mark.parametrize(
    "value", ["marvin=0.6", "a=b=1", "hall/turn off=.5", "10.0.0.7/lamp=-0.1", "lamp=2"]
)
def test_thresholds_that_home_assistant_accepts_are_some(config, value):
    assert accepts(config["schema"]["thresholds"][0], value)
    read_clients(thresholds=[value])


def test_a_backup_of_a_running_app_holds_a_whole_model(config, tmp_path, monkeypatch):
    """Files that exist only while a model is written are left out."""
    seen = set()
    replace = os.replace

    def replaced(source, target):
        seen.update(one.name for one in tmp_path.iterdir())
        replace(source, target)

    monkeypatch.setattr(os, "replace", replaced)
    for _ in range(2):
        with tapword.Spotter.edit(tmp_path / "home.tap") as spotter:
            spotter.set_sensitivity(0.6)
    kept = {
        name
        for name in seen
        if not any(fnmatch.fnmatch(name, rule) for rule in config["backup_exclude"])
    }
    assert config["backup"] == "hot" and "home.tap" in kept and len(seen) > len(kept)
    for name in kept:
        assert name in ("home.tap", "home.tap.bak", "home.tap.undo"), name


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
    for language in ("en", "de", "fr"):
        text = yaml.safe_load((FOLDER / "translations" / f"{language}.yaml").read_text())
        assert problems(text, TRANSLATIONS, {}) == []
        assert set(text["configuration"]) == set(config["schema"])
        assert set(text["network"]) == set(config["ports"])
        # The fields of an option that has some, too.
        for option, rule in config["schema"].items():
            fields = rule[0] if isinstance(rule, list) and isinstance(rule[0], dict) else {}
            assert set(text["configuration"][option].get("fields", {})) == set(fields), option
    assert all(f"| `{option}` |" in documented for option in config["schema"])
