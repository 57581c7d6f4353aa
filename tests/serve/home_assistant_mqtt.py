"""The real Home Assistant at an MQTT broker: it finds tapword's entities, and uses them.

    python home_assistant_mqtt.py PORT USER PASSWORD

Runs where the package homeassistant is, without tapword. It prints JSON: the entities with their
names and states, and what Home Assistant found wrong. Then it sets the first sensitivity to 0.7,
switches detection off, presses the button, and prints the states after that.
"""

import asyncio
import functools
import json
import logging
import sys
import tempfile
import time
from pathlib import Path

from homeassistant import bootstrap, loader
from homeassistant.config_entries import ConfigEntries
from homeassistant.core import HomeAssistant

PATIENCE_S = 60


class Problems(logging.Handler):
    """Collect what Home Assistant's integration complains about."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def entities(hass):
    return {
        one.entity_id: {"name": one.name, "state": one.state}
        for one in hass.states.async_all(("sensor", "switch", "number", "button"))
        if one.attributes.get("friendly_name", "").startswith("My words")
    }


async def until(condition, hass, problems):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        shown = {one.entity_id: one.state for one in hass.states.async_all()}
        assert time.monotonic() < end, (shown, problems.lines)
        await asyncio.sleep(0.1)


async def main(port: int, user: str, password: str) -> None:
    problems = Problems()
    logging.getLogger("homeassistant.components.mqtt").addHandler(problems)
    folder = Path(tempfile.mkdtemp())
    (folder / "configuration.yaml").touch()
    hass = HomeAssistant(str(folder))
    hass.config.skip_pip = True
    hass.config_entries = ConfigEntries(hass, {})
    loader.async_setup(hass)
    assert await bootstrap.async_from_config_dict({"homeassistant": {}}, hass)
    # It subscribes once everything has started.
    await hass.async_start()
    flow = await hass.config_entries.flow.async_init("mqtt", context={"source": "user"})
    broker = {"broker": "127.0.0.1", "port": port, "username": user, "password": password}
    if "other_settings" in map(str, flow["data_schema"].schema):
        # Later versions have a section of what is left as it is.
        broker["other_settings"] = {"set_client_cert": False, "set_ca_cert": "off"}
    result = await hass.config_entries.flow.async_configure(flow["flow_id"], broker)
    assert result["type"] == "create_entry", result
    # Two sensors, the switch, the button, and the sensitivities of two words.
    found = functools.partial(until, hass=hass, problems=problems)
    await found(lambda: len(entities(hass)) == 6 and "unavailable" not in str(entities(hass)))
    await found(lambda: any(one["state"] == "lamp" for one in entities(hass).values()))
    print(json.dumps({"entities": entities(hass)}), flush=True)

    def named(ending):
        return next(one for one, found in entities(hass).items() if found["name"].endswith(ending))

    sensitivity, switch = named("lamp"), named("Detection")

    async def call(domain, service, entity, **data):
        await hass.services.async_call(domain, service, {"entity_id": entity} | data, blocking=True)

    await call("button", "press", named("Not one of my words"))
    await call("number", "set_value", sensitivity, value=0.7)
    await call("switch", "turn_off", switch)
    await found(lambda: entities(hass)[sensitivity]["state"] == "0.7")
    await found(lambda: entities(hass)[switch]["state"] == "off")
    print(json.dumps({"entities": entities(hass), "problems": problems.lines}), flush=True)
    await hass.async_stop(force=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], sys.argv[3]))
