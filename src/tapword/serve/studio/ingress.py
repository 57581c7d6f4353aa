"""Requests that come through Home Assistant's ingress, which has checked the user.

The Supervisor forwards them from one address, 172.30.32.2 in a Home Assistant installation, and
names the path under which the browser sees the page. Both are required: the address, because
anybody can send a header, and the header, because the Supervisor also sends other requests.
See https://developers.home-assistant.io/docs/apps/presentation#ingress.
"""

import ipaddress
import re
from collections.abc import Sequence

from tapword.errors import InputError
from tapword.serve.addresses import ip_address

SUPERVISOR = "172.30.32.2"
HEADER = "x-ingress-path"
_PATH = r"/api/hassio_ingress/[\w-]{1,200}"
_LINE = re.compile(rb"^x-ingress-path:[ \t]*" + _PATH.encode() + rb"[ \t]*\r?$", re.I | re.M)
_HOST = re.compile(r"[\w.-]{1,253}(:\d{1,5})?|\[[\da-f:]{2,45}\](:\d{1,5})?", re.ASCII | re.I)


class Ingress:
    """Recognise requests of the proxy at `address`; None: there is no such proxy.

    Examples
    --------
    >>> ingress = Ingress("172.30.32.2")
    >>> ingress.forwards("172.30.32.2", ["/api/hassio_ingress/a-token"])
    True
    >>> ingress.forwards("172.30.33.7", ["/api/hassio_ingress/a-token"])
    False
    """

    def __init__(self, address: str | None = None):
        self._proxy = None if address is None else ip_address(address)
        if address is not None and self._proxy is None:
            raise InputError(
                f"--ingress must be the address of Home Assistant's proxy, such as {SUPERVISOR}; "
                f"got {address!r}"
            )

    def __bool__(self) -> bool:
        return self._proxy is not None

    def forwards(self, address: str | None, paths: Sequence[str]) -> bool:
        """Whether a request from `address` with these ingress paths comes from the proxy."""
        return (
            self._is_proxy(address)
            and len(paths) == 1
            and re.fullmatch(_PATH, paths[0], re.ASCII) is not None
        )

    def may_forward(self, address: str | None, head: bytes) -> bool:
        """Whether the head of a request may be the proxy's; the guard checks it again."""
        return self._is_proxy(address) and _LINE.search(head) is not None

    def _is_proxy(self, address: str | None) -> bool:
        if self._proxy is None or address is None:
            return False
        found = ip_address(address)
        # A socket for both kinds of addresses shows IPv4 inside IPv6.
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        return found == self._proxy


def is_own_origin(origins: Sequence[str], hosts: Sequence[str]) -> bool:
    """Whether a request comes from a page of Home Assistant, whose names are `hosts`.

    A proxy before it may have changed the scheme.
    """
    own = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
    return len(origins) == 1 and origins[0] in own


def is_host(host: str) -> bool:
    """Whether a host name can be put into a header."""
    return _HOST.fullmatch(host) is not None
