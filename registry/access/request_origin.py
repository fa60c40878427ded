"""Where a request comes from: straight from this machine, or through a proxy."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any, Final

#: what a proxy adds to a request that it forwards, by the names of the WSGI environment
FORWARDING_HEADERS: Final = ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP")


def is_local(environment: Mapping[str, Any]) -> bool:
    """Whether a request comes straight from this machine.

    A request with a forwarding header is never local, even if the proxy runs here: its client may be anywhere.
    """
    if any(header in environment for header in FORWARDING_HEADERS):
        return False
    try:
        address = ipaddress.ip_address(str(environment.get("REMOTE_ADDR") or ""))
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
