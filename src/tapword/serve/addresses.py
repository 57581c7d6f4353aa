"""Addresses of this machine, and who can reach them."""

import ipaddress
import socket


def ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Read a numeric address; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address to bind to.

    Examples
    --------
    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "::")]
    [True, True, True, False, False]
    """
    address = ip_address(host)
    return host == "localhost" if address is None else address.is_loopback


def own_address(family: socket.AddressFamily = socket.AF_INET) -> str:
    """Address under which others in the network reach this machine; OSError without one."""
    # A documentation address (RFC 5737, RFC 3849): connecting sends nothing, it picks a route.
    far = "192.0.2.1" if family == socket.AF_INET else "2001:db8::1"
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((far, 9))
        return str(probe.getsockname()[0])
