"""Look at a model file again and again, for what others write to it."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable

from tapword.spotter.watched import WatchedModel

log = logging.getLogger("tapword.serve")


@contextlib.asynccontextmanager
async def watching(
    model: WatchedModel, every_s: float, changed: Callable[[], None] | None = None
) -> AsyncIterator[None]:
    """Look at a model every so often within this context; call `changed` whenever it was."""

    async def watch() -> None:
        said = None
        while True:
            await asyncio.sleep(every_s)
            try:
                if await asyncio.to_thread(model.look) and changed is not None:
                    changed()
                said = None
            except Exception as error:
                # Once, and in printable characters, whatever the file holds.
                if repr(error) != said:
                    said = repr(error)
                    log.error("%s cannot be read; the words from before stay: %s", model.path, said)

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
