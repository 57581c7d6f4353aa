"""The real Home Assistant between a satellite and tapword, and its API for apps.

    python home_assistant_satellite.py PORT SATELLITE_PORT API_PORT TOKEN

Runs where the package homeassistant is, without tapword. It prints a line of JSON when it
is ready, for each event of tapword, and for each change of the satellite's state. A line on
standard input is the wake word to wait for.

The API stands for the Supervisor's proxy: POST /core/api/events/TYPE with the bearer token fires an
event in Home Assistant.
"""

import asyncio
import json
import socket
import sys
import tempfile

from home_assistant_pipeline import add, speech_to_text
from homeassistant import bootstrap, loader
from homeassistant.components import wake_word
from homeassistant.components.assist_pipeline import async_get_pipeline, async_update_pipeline
from homeassistant.config_entries import ConfigEntries
from homeassistant.core import HomeAssistant

# How often the list of wake words is opened until it has the word.
TRIES = 60
ANSWER = "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def tell(**what):
    print(json.dumps(what), flush=True)


async def api(reader, writer, hass, token):
    """Fire an event that an app posts."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next(
        int(line.split(":")[1])
        for line in head.split("\r\n")
        if line.lower().startswith("content-l")
    )
    body = json.loads(await reader.readexactly(length))
    _, path, _ = head.split(" ", 2)
    allowed = f"Authorization: Bearer {token}\r\n" in head
    if allowed and path.startswith("/core/api/events/"):
        hass.bus.async_fire(path.rpartition("/")[2], body)
    writer.write(ANSWER.format(*((200, "OK") if allowed else (401, "Unauthorized"))).encode())
    await writer.drain()
    writer.close()


async def main(port: int, satellite: int, api_port: int, token: str) -> None:
    hass = HomeAssistant(tempfile.mkdtemp())
    hass.config.skip_pip = True
    hass.config_entries = ConfigEntries(hass, {})
    loader.async_setup(hass)
    config = {"homeassistant": {}, "http": {"server_port": free_port()}, "assist_pipeline": {}}
    assert await bootstrap.async_from_config_dict(config, hass)
    text = await asyncio.start_server(speech_to_text, "127.0.0.1", 0)
    await add(hass, port)
    await add(hass, text.sockets[0].getsockname()[1])
    [engine] = hass.states.async_entity_ids("wake_word")
    pipeline = async_get_pipeline(hass)
    chosen = {
        "wake_word_entity": engine,
        "stt_engine": hass.states.async_entity_ids("stt")[0],
        "stt_language": "en",
        "conversation_engine": "conversation.home_assistant",
        "tts_engine": None,
    }
    await async_update_pipeline(hass, pipeline, wake_word_id=None, **chosen)
    for kind in ("tapword_detected", "tapword_near_miss"):
        hass.bus.async_listen(kind, lambda event: tell(event=event.event_type, data=event.data))

    def changed(event):
        if event.data["entity_id"].startswith("assist_satellite."):
            tell(satellite=event.data["new_state"].state if event.data["new_state"] else None)

    hass.bus.async_listen("state_changed", changed)
    server = await asyncio.start_server(
        lambda reader, writer: api(reader, writer, hass, token), "127.0.0.1", api_port
    )
    await add(hass, satellite)
    tell(ready=True)
    lines = asyncio.StreamReader()
    await hass.loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := (await lines.readline()).decode().strip():
        entity = wake_word.async_get_wake_word_detection_entity(hass, engine)
        # It waits a second for an answer; where the machine is busy, it offers the words of before.
        for _ in range(TRIES):
            offered = [one.id for one in await entity.get_supported_wake_words()]
            if line in offered:
                break
            await asyncio.sleep(1)
        pipeline = async_get_pipeline(hass)
        await async_update_pipeline(hass, pipeline, wake_word_id=line, **chosen)
        tell(offered=offered)
    server.close()
    await hass.async_stop(force=True)


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:4]), sys.argv[4]))
