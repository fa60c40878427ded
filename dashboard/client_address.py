"""Who a request is from: the address of the connection, or what a trusted proxy says of it.

`X-Forwarded-For` is a list to which each proxy adds whom it got the request from, so its end is true and its beginning
may be invented. It is read from its end, as far as the proxies are trusted (SCHEMADESK_TRUSTED_PROXIES,
docs/how-to/run.md); without that nothing of it is believed.
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
#: in the request's environment: the connection is from a proxy that isn't trusted, so many people may share the address
SHARED: Final = "schemadesk.shared_address"
MOST_PROXIES: Final = 16
WARN_SECONDS: Final = 3600.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrustedProxies:
    """The proxies in front: by their networks, or how many there are, whatever their addresses."""

    networks: tuple[Network, ...] = ()
    count: int = 0

    @classmethod
    def parse(cls, text: str) -> TrustedProxies:
        """Of comma-separated addresses and networks, or a number. Raises ImproperlyConfigured."""
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
        """Whether a proxy with that address is trusted."""
        return any(address in network for network in self.networks)

    def client_of(self, connection: str, forwarded_for: str) -> str:
        """The address that a request is from; that of the connection where no trusted proxy says another."""
        peer = _address(connection)
        if peer is None or not (self.count or self.has(peer)):
            return connection
        client = peer
        hops = reversed(forwarded_for.split(",")[-MOST_PROXIES:]) if forwarded_for.strip() else ()
        for number, text in enumerate(hops, 1):
            hop = _address(text)
            if hop is None:
                break  # no address, so what stands before it is nobody's word
            client = hop
            if number == self.count if self.count else not self.has(hop):
                break
        return str(client)

    def trusts(self, connection: str) -> bool:
        """Whether what the other end of the connection says of others is believed."""
        peer = _address(connection)
        return bool(self.count) or (peer is not None and self.has(peer))


class ClientAddressMiddleware:
    """Makes REMOTE_ADDR and the scheme those of the client, where a trusted proxy tells them."""

    #: when the log last named a proxy that isn't trusted, by the monotonic clock
    warned_at = -WARN_SECONDS

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Go on with the client's address."""
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
        """Once an hour: a proxy that isn't trusted makes everybody behind it one address."""
        now = time.monotonic()
        if now - ClientAddressMiddleware.warned_at >= WARN_SECONDS:
            ClientAddressMiddleware.warned_at = now
            logger.warning(
                "requests from %s carry X-Forwarded-For, which is not believed: if that is your proxy, name it in"
                " SCHEMADESK_TRUSTED_PROXIES, or all people behind it count as one address",
                connection,
            )


def _take_scheme(meta: dict[str, Any]) -> None:
    """The scheme that the client used, by the nearest proxy."""
    scheme = str(meta.get("HTTP_X_FORWARDED_PROTO", "")).rpartition(",")[2].strip().lower()
    if scheme in ("http", "https"):
        meta["wsgi.url_scheme"] = scheme


def _address(text: str) -> Address | None:
    """The address of a hop, without a port and brackets; None for anything else."""
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
