"""The client of a request: the address of the connection, or what a trusted proxy reports.

`X-Forwarded-For` is a list to which each proxy appends the address that it got the request from, so that its end is
true and its beginning may be forged. It is read from the end, as far as the proxies are trusted
(SCHEMADESK_TRUSTED_PROXIES, docs/how-to/run.md); otherwise it is ignored.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse

from registry.access.request_origin import FORWARDING_HEADERS

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
FORWARDED_FOR: Final = "HTTP_X_FORWARDED_FOR"
#: in the request's environment: the connection is from an untrusted proxy, so that many people may share the address
SHARED: Final = "schemadesk.shared_address"
MOST_PROXIES: Final = 16
WARN_SECONDS: Final = 3600.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrustedProxies:
    """The trusted proxies: by their networks, or by their number, regardless of their addresses."""

    networks: tuple[Network, ...] = ()
    count: int = 0

    @classmethod
    def parse(cls, text: str) -> TrustedProxies:
        """Parse comma-separated addresses and networks, or a number. Raises ImproperlyConfigured."""
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if len(parts) == 1 and parts[0].isascii() and parts[0].isdigit():
            count = int(parts[0]) if len(parts[0]) < 3 else MOST_PROXIES + 1
            if count > MOST_PROXIES:
                raise ImproperlyConfigured(f"SCHEMADESK_TRUSTED_PROXIES: at most {MOST_PROXIES} proxies are counted")
            return cls(count=count)
        try:
            return cls(networks=tuple(ip_network(part) for part in parts))
        except ValueError as error:
            raise ImproperlyConfigured(
                f"SCHEMADESK_TRUSTED_PROXIES takes addresses and networks (10.0.0.0/8, ::1) or a number: {error}"
            ) from None

    def has(self, address: Address) -> bool:
        """Return whether a proxy with that address is trusted."""
        return any(address in network for network in self.networks)

    def client_of(self, connection: str, forwarded_for: str) -> str:
        """Return the client's address; that of the connection unless a trusted proxy reports another."""
        peer = _address(connection)
        if peer is None or not (self.count or self.has(peer)):
            return connection
        client = peer
        hops = reversed(forwarded_for.split(",")[-MOST_PROXIES:]) if forwarded_for.strip() else ()
        for number, text in enumerate(hops, 1):
            hop = _address(text)
            if hop is None:
                break  # not an address, so that nothing before it can be trusted
            client = hop
            if number == self.count if self.count else not self.has(hop):
                break
        return str(client)

    def trusts(self, connection: str) -> bool:
        """Return whether the other end of the connection is trusted."""
        if not self.networks:
            return bool(self.count)
        peer = _address(connection)
        return peer is not None and self.has(peer)


class ClientAddressMiddleware:
    """Sets REMOTE_ADDR and the scheme to the client's, if a trusted proxy reports them."""

    #: when an untrusted proxy was last logged, by the monotonic clock
    warned_at = -WARN_SECONDS

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle the request with the client's address."""
        meta, trusted = request.META, settings.TRUSTED_PROXIES
        connection = str(meta.get("REMOTE_ADDR") or "")
        if trusted.trusts(connection):
            meta["REMOTE_ADDR"] = trusted.client_of(connection, str(meta.get(FORWARDED_FOR, "")))
            _take_scheme(meta)
        elif any(name in meta for name in FORWARDING_HEADERS):
            meta[SHARED] = True
            self._warn(connection)
        return self.get_response(request)

    def _warn(self, connection: str) -> None:
        """Log once an hour that an untrusted proxy makes everybody behind it share one address."""
        now = time.monotonic()
        if now - ClientAddressMiddleware.warned_at >= WARN_SECONDS:
            ClientAddressMiddleware.warned_at = now
            logger.warning(
                "requests from %s carry X-Forwarded-For, which is not believed: if that is your proxy, name it in"
                " SCHEMADESK_TRUSTED_PROXIES, or all people behind it count as one address",
                connection,
            )


def _take_scheme(meta: dict[str, Any]) -> None:
    """Set the client's scheme, as reported by the nearest proxy."""
    scheme = str(meta.get("HTTP_X_FORWARDED_PROTO", "")).rpartition(",")[2].strip().lower()
    if scheme in ("http", "https"):
        meta["wsgi.url_scheme"] = scheme


def _address(text: str) -> Address | None:
    """Return the address of a hop, without port and brackets; None for anything else."""
    bare = text.strip()
    if bare.startswith("["):
        bare = bare[1:].partition("]")[0]
    elif bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        address = ip_address(bare)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
