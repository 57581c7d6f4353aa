"""Poll a model file for changes by other programs."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable

from tapword.spotter.watched import WatchedModel

log = logging.getLogger("tapword.serve")


@contextlib.asynccontextmanager
async def polling(
    model: WatchedModel, interval_s: float, on_change: Callable[[], None] | None = None
) -> AsyncIterator[None]:
    """Read a model again within this context whenever its file changes; call `on_change` then."""

    async def poll() -> None:
        logged = None
        while True:
            await asyncio.sleep(interval_s)
            try:
                if await asyncio.to_thread(model.refresh) and on_change is not None:
                    on_change()
                logged = None
            except Exception as error:
                # Once, and in printable characters, whatever the file contains.
                if repr(error) != logged:
                    logged = repr(error)
                    log.error(
                        "%s cannot be read; the words from before stay: %s", model.path, logged
                    )

    task = asyncio.create_task(poll())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
