"""Announce the service to Home Assistant by mDNS."""

import contextlib
import logging
import socket
from collections.abc import AsyncIterator

from tapword.errors import InputError, MissingExtra
from tapword.serve.addresses import own_address

log = logging.getLogger("tapword.serve.wyoming")

_TYPE = "_wyoming._tcp.local."


@contextlib.asynccontextmanager
async def announced(name: str | None, host: str, port: int) -> AsyncIterator[None]:
    """Announce a service under a name within this context; None announces nothing.

    A name that is in use gets a number. For the hosts 0.0.0.0 and ::, this machine's address in the
    network is announced.
    """
    if name is None:
        yield
        return
    try:
        import zeroconf
        from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf
    except ImportError as error:
        raise MissingExtra("--zeroconf", "zeroconf", "zeroconf") from error
    info = AsyncServiceInfo(
        _TYPE, f"{name}.{_TYPE}", addresses=[socket.inet_aton(_reachable(host))], port=port
    )
    try:
        network = AsyncZeroconf()
    except OSError as error:
        raise InputError(f"cannot announce {name!r} in the network: {error}") from error
    try:
        try:
            await (await network.async_register_service(info, allow_name_change=True))
        except (OSError, zeroconf.Error) as error:
            raise InputError(f"cannot announce {name!r} in the network: {error!r}") from error
        given = info.name.removesuffix(f".{_TYPE}")
        if given != name:
            log.warning("the name %r is in use in the network: announced as %r", name, given)
        yield
    finally:
        await network.async_unregister_all_services()
        await network.async_close()


def _reachable(host: str) -> str:
    """IPv4 address under which others reach what is bound to `host`."""
    try:
        return own_address() if host in ("0.0.0.0", "::") else socket.gethostbyname(host)
    except OSError as error:
        raise InputError(f"no address to announce {host} by: {error.strerror}") from error
