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
        while True:
            await asyncio.sleep(every_s)
            try:
                if await asyncio.to_thread(model.look) and changed is not None:
                    changed()
            except Exception:
                log.exception("%s cannot be read; the words from before stay in use", model.path)

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
