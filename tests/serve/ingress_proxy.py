"""Stands for the proxies of Home Assistant: forwards what is below one path to a studio.

As the real ones do, it keeps the browser's Host and Origin, takes the path away, names it in a
header, and comes from one address.
"""

import asyncio
import contextlib
import threading

PROXY = "127.0.0.3"
PATH = "/api/hassio_ingress/a-token_of-the-Supervisor"
USER = "X-Remote-User-Id: 1234\r\nX-Remote-User-Name: ann\r\nX-Remote-User-Display-Name: Ann\r\n"


# A loop holds its tasks weakly: connections that wait on each other alone could be collected.
_running = set()


async def forward(reader, writer, port, address):
    """Forward one request, or one WebSocket."""
    opened, task = [writer], asyncio.current_task()
    _running.add(task)
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        request, _, lines = head.partition("\r\n")
        method, target, version = request.split(" ")
        if not target.startswith(f"{PATH}/"):
            writer.write(
                b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
            return
        if "upgrade: websocket" not in lines.lower():
            kept = [line for line in lines.split("\r\n") if not line.lower().startswith("connect")]
            lines = "Connection: close\r\n" + "\r\n".join(kept)
        head = f"{method} {target.removeprefix(PATH)} {version}\r\nX-Ingress-Path: {PATH}\r\n"
        there = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        opened.append(there[1])
        there[1].write((head + USER + lines).encode("latin-1"))
        await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        _running.discard(task)
        for end in opened:
            end.close()


async def copy(reader, writer):
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()


@contextlib.contextmanager
def proxied(port, address=PROXY):
    """Forward to the studio at a port; give the address of its page."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start():
        return await asyncio.start_server(
            lambda *ends: forward(*ends, port, address), "127.0.0.1", 0
        )

    async def stop():
        server.close()
        # A connection that was just accepted gets its task in a later turn; transports close then.
        for _ in range(5):
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(0.01)

    server = asyncio.run_coroutine_threadsafe(start(), loop).result()
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{PATH}/"
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
