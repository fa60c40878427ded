"""Whether a request comes straight from this machine or through a proxy."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

#: headers that a proxy adds to a forwarded request, as names in the WSGI environment
FORWARDING_HEADERS: Final = (
    "HTTP_X_FORWARDED_FOR",
    "HTTP_FORWARDED",
    "HTTP_X_REAL_IP",
    "HTTP_VIA",
    "HTTP_X_FORWARDED",
    "HTTP_X_FORWARDED_HOST",
    "HTTP_X_FORWARDED_PROTO",
    "HTTP_X_CLIENT_IP",
    "HTTP_TRUE_CLIENT_IP",
    "HTTP_CF_CONNECTING_IP",
)
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def is_local(environment: Mapping[str, Any]) -> bool:
    """Return whether a request comes straight from this machine.

    A request with a forwarding header is never local, even if the proxy runs here: its client may be anywhere. A change
    sent by a browser for another site's page isn't local either: a browser on this machine shows pages from anywhere.
    """
    if any(header in environment for header in FORWARDING_HEADERS) or _is_of_another_site(environment):
        return False
    try:
        address = ipaddress.ip_address(str(environment.get("REMOTE_ADDR") or ""))
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _is_of_another_site(environment: Mapping[str, Any]) -> bool:
    """Return whether a browser says that the request is a change sent by another site's page.

    Source: Fetch Metadata (`Sec-Fetch-Site`) and, for older browsers, the `Origin` of the Fetch standard.
    """
    if environment.get("REQUEST_METHOD", "GET") in _SAFE_METHODS:
        return False
    if environment.get("HTTP_SEC_FETCH_SITE", "none") not in ("none", "same-origin"):
        return True
    origin = environment.get("HTTP_ORIGIN")
    return origin is not None and urlsplit(str(origin)).netloc != environment.get("HTTP_HOST")
