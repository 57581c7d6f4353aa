"""Check a blueprint of an automation as the real Home Assistant does when it is imported and used.

    python home_assistant_blueprint.py FILE

Runs where the package homeassistant is, without tapword. It prints the automation as JSON.
"""

import asyncio
import json
import sys
import tempfile

from homeassistant.components.automation import config
from homeassistant.components.blueprint.models import Blueprint, BlueprintInputs
from homeassistant.core import HomeAssistant
from homeassistant.util.yaml import load_yaml

INPUTS = {"phone": "a" * 32, "app": "a1b2c3d4_tapword"}


async def main(path: str) -> None:
    # Templates are checked in its loop.
    hass = HomeAssistant(tempfile.mkdtemp())
    blueprint = Blueprint(
        load_yaml(path),
        path=path,
        expected_domain="automation",
        schema=config.AUTOMATION_BLUEPRINT_SCHEMA,
    )
    assert blueprint.validate() is None
    inputs = BlueprintInputs(blueprint, {"use_blueprint": {"path": path, "input": INPUTS}})
    inputs.validate()
    automation = config.PLATFORM_SCHEMA(inputs.async_substitute())
    print(json.dumps(automation, default=str))
    await hass.async_stop(force=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
