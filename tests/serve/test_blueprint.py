"""The blueprint for automations: its inputs are used, and its command is one."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytest.importorskip("starlette", reason="needs the extra web: pip install 'tapword[web]'")
pytest.importorskip("wyoming", reason="needs the extra wyoming: pip install 'tapword[wyoming]'")

from tapword.serve.home.commands import Commands
from tapword.serve.home.events import DETECTED
from tests.serve.test_home_assistant import clean, python_with

yaml = pytest.importorskip("yaml", reason="needs the package pyyaml")

FILE = ROOT / "contrib" / "home_assistant_blueprints" / "not_one_of_my_words.yaml"


class Input(str):
    """An input of a blueprint, where it is used."""


class Loader(yaml.SafeLoader):
    """YAML with Home Assistant's !input."""


Loader.add_constructor("!input", lambda loader, node: Input(loader.construct_scalar(node)))


@pytest.fixture(scope="module")
def blueprint():
    return yaml.load(FILE.read_text(), Loader)


def used(node):
    if isinstance(node, Input):
        return {str(node)}
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else []
    return set().union(*map(used, parts))


def test_all_inputs_are_declared_and_used(blueprint):
    assert used(blueprint) == blueprint["blueprint"]["input"].keys()
    assert blueprint["triggers"] == [{"trigger": "event", "event_type": DETECTED}]


def test_its_command_rejects_the_entry_of_the_event(blueprint):
    action = blueprint["actions"][-1]
    assert action["action"] == "hassio.addon_stdin"
    command = dict(action["data"]["input"])
    # Home Assistant renders a number as a number.
    assert command["entry"] == "{{ entry }}"
    assert blueprint["variables"]["entry"] == "{{ trigger.event.data.entry }}"
    command["entry"] = 12
    taught = []

    class Heard:
        model_changed = staticmethod(lambda: None)

        class entries:
            correct = staticmethod(lambda number, word, _: taught.append((number, word)))

        model = satellites = None

    Commands(Heard).run(json.dumps(command))
    assert taught == [(12, None)]


def test_the_real_home_assistant_makes_an_automation_of_it():
    python = python_with("homeassistant")
    script = Path(__file__).with_name("home_assistant_blueprint.py")
    done = subprocess.run(
        [python, script, FILE], capture_output=True, text=True, env=clean(), check=False
    )
    assert done.returncode == 0, done.stderr
    automation = json.loads(done.stdout)
    assert automation["triggers"][0]["event_type"] in (DETECTED, [DETECTED])
    assert automation["actions"][0]["device_id"] == "a" * 32
    assert automation["actions"][-1]["data"]["addon"] == "a1b2c3d4_tapword"
