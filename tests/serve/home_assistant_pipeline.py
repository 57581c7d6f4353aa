"""Run a pipeline of the real Home Assistant from wake word to text; print what came of it as JSON.

    python home_assistant_pipeline.py PORT WORD SOUND

Runs where the package homeassistant is, without tapword. SOUND is s16le mono at 16 kHz. The text
comes from a service here, which says how much sound it got.
"""

import asyncio
import json
import sys
import tempfile

from homeassistant import bootstrap, loader
from homeassistant.components import stt, wake_word
from homeassistant.components.assist_pipeline import (
    AudioSettings,
    PipelineStage,
    async_get_pipeline,
    async_pipeline_from_audio_stream,
    async_update_pipeline,
)
from homeassistant.config_entries import ConfigEntries
from homeassistant.core import Context, HomeAssistant
from wyoming.asr import Transcript
from wyoming.audio import AudioChunk, AudioStop
from wyoming.event import async_read_event, async_write_event
from wyoming.info import AsrModel, AsrProgram, Attribution, Describe, Info

CHUNK = 2048


async def speech_to_text(reader, writer):
    """Answer as a service for speech does: with the number of milliseconds it heard."""
    common = {"attribution": Attribution("", ""), "installed": True, "version": "1"}
    models = [AsrModel(name="count", description="", languages=["en"], **common)]
    program = AsrProgram(name="count", description="", models=models, **common)
    heard = 0
    while (event := await async_read_event(reader)) is not None:
        if Describe.is_type(event.type):
            await async_write_event(Info(asr=[program]).event(), writer)
        elif AudioChunk.is_type(event.type):
            heard += len(event.payload)
        elif AudioStop.is_type(event.type):
            await async_write_event(Transcript(text=f"{heard // 32} ms").event(), writer)
    writer.close()


async def live(sound: bytes):
    """Give the sound as a satellite does, somewhat faster than it plays."""
    for start in range(0, len(sound), CHUNK):
        yield sound[start : start + CHUNK]
        await asyncio.sleep(CHUNK / 32_000 / 4)


async def add(hass, port: int):
    """Add a Wyoming service as the user interface does."""
    result = await hass.config_entries.flow.async_init(
        "wyoming", context={"source": "user"}, data={"host": "127.0.0.1", "port": port}
    )
    await hass.async_block_till_done()
    return result["title"]


async def main(port: int, word: str, sound: bytes) -> dict:
    """Set Home Assistant up, run the pipeline, give what happened."""
    hass = HomeAssistant(tempfile.mkdtemp())
    hass.config.skip_pip = True
    hass.config_entries = ConfigEntries(hass, {})
    loader.async_setup(hass)
    assert await bootstrap.async_from_config_dict(
        {"homeassistant": {}, "assist_pipeline": {}}, hass
    )
    server = await asyncio.start_server(speech_to_text, "127.0.0.1", 0)
    title = await add(hass, port)
    await add(hass, server.sockets[0].getsockname()[1])
    [engine] = hass.states.async_entity_ids("wake_word")
    entity = wake_word.async_get_wake_word_detection_entity(hass, engine)
    offered = await entity.get_supported_wake_words()
    pipeline = async_get_pipeline(hass)
    await async_update_pipeline(
        hass,
        pipeline,
        wake_word_entity=engine,
        wake_word_id=word,
        stt_engine=hass.states.async_entity_ids("stt")[0],
        stt_language="en",
    )
    events = []
    await async_pipeline_from_audio_stream(
        hass,
        context=Context(),
        event_callback=events.append,
        stt_metadata=stt.SpeechMetadata(
            language="en",
            format=stt.AudioFormats.WAV,
            codec=stt.AudioCodecs.PCM,
            bit_rate=stt.AudioBitRates.BITRATE_16,
            sample_rate=stt.AudioSampleRates.SAMPLERATE_16000,
            channel=stt.AudioChannels.CHANNEL_MONO,
        ),
        stt_stream=live(sound),
        audio_settings=AudioSettings(is_vad_enabled=False),
        start_stage=PipelineStage.WAKE_WORD,
        end_stage=PipelineStage.STT,
    )
    found = {str(event.type): event.data for event in events}
    await hass.async_stop(force=True)
    server.close()
    return {
        "title": title,
        "offered": [(one.id, one.name) for one in offered],
        "wake_word": (found.get("wake_word-end") or {}).get("wake_word_output"),
        "text": ((found.get("stt-end") or {}).get("stt_output") or {}).get("text"),
        "error": found.get("error"),
    }


if __name__ == "__main__":
    with open(sys.argv[3], "rb") as file:
        print(json.dumps(asyncio.run(main(int(sys.argv[1]), sys.argv[2], file.read()))))
