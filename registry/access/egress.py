"""The egress policy: which addresses our own HTTP clients may connect to.

An operator or a form names the host, so it may point anywhere: at a cloud's metadata service, at a port of this
machine, at a name that resolves differently the second time. So connections are typed, the host is resolved here, every
resolved address is checked, and the client connects to a checked address instead of the name.
"""

from __future__ import annotations

import ipaddress
import queue
import re
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.conf import settings

from registry.errors import AddressRefused, InvalidInput, RemoteUnavailable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
#: host, port → the addresses as texts; raises OSError
Resolver = Callable[[str, int], Sequence[str]]

PORTS = {"http": 80, "https": 443}
RESOLVE_SECONDS = 10.0
MAX_URL = 2048
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::(?P<port>[0-9]{1,5}))?(?P<path>(?:/[A-Za-z0-9._~%:@+-]*)*)"
)
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_SECRET = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_NUMERIC = re.compile(r"0x[0-9a-f]*|[0-9]+")


@dataclass(frozen=True)
class Connection:
    """A target of our clients; `host` is in lower case, `path` has no trailing slash.

    `secret` is the name of a stored secret, never the secret itself.
    """

    scheme: str
    host: str
    port: int
    path: str = ""
    user: str = ""
    secret: str = ""

    @property
    def url(self) -> str:
        """The URL without user and secret."""
        return f"{self.scheme}://{self.netloc}{self.path}"

    @property
    def netloc(self) -> str:
        """Host and port as in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


def parse_connection(url: str, *, user: str = "", secret: str = "") -> Connection:
    """Parse a URL into a connection. Raises InvalidInput, which says what is wrong and how to fix it.

    The grammar is narrow on purpose: it excludes what programs parse differently (users in URLs, octal numbers,
    backslashes, other scripts).
    """
    match = _URL.fullmatch(url) if len(url) <= MAX_URL else None
    if match is None:
        raise InvalidInput(_what_is_wrong(url))
    host = match["host"].lower().strip("[]").removesuffix(".")
    _check_host(host, bracketed=match["host"].startswith("["))
    port = int(match["port"]) if match["port"] else PORTS[match["scheme"]]
    if not 1 <= port <= 65535:
        raise InvalidInput(f"The port {port} must be between 1 and 65535.")
    path = match["path"].rstrip("/")
    if any(part.replace("%2e", ".").replace("%2E", ".") in (".", "..") for part in path.split("/")):
        raise InvalidInput(f"The path {path[:80]!r} contains '.' or '..' segments. Write it without them.")
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in user) or ":" in user or len(user) > 255:
        raise InvalidInput("A user name can have up to 255 characters, without ':' or control characters.")
    if secret and not _SECRET.fullmatch(secret):
        raise InvalidInput(
            "A secret's name can have 1 to 64 letters, digits, _ and -. Enter the name of the secret, not"
            " the secret itself."
        )
    return Connection(match["scheme"], host, port, path, user, secret)


def _what_is_wrong(url: str) -> str:
    """Say what is wrong, without repeating any of the URL, which may contain a password."""
    before_path = url.partition("://")[2].partition("/")[0]
    if "@" in before_path:
        return "The address contains a user name. Enter the user name separately, and name a secret for the password."
    if "?" in url or "#" in url:
        return "The address contains '?' or '#'. Enter only the base address."
    return "The address must be http://HOST[:PORT][/PATH] or https://…, in plain ASCII."


def _check_host(host: str, *, bracketed: bool) -> None:
    if bracketed:
        try:
            ipaddress.IPv6Address(host)
        except ValueError:
            raise InvalidInput(f"{host[:60]!r} is not a valid IPv6 address.") from None
        return
    labels = host.split(".")
    if len(host) > 253 or not all(_NAME.fullmatch(label) for label in labels):
        raise InvalidInput(f"{host[:80]!r} is not a valid host name.")
    if _NUMERIC.fullmatch(labels[-1]):
        try:
            ipaddress.IPv4Address(host)
        except ValueError:
            raise InvalidInput(f"{host[:60]!r} is a number. Write an IPv4 address as four decimal numbers.") from None


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(text) for text in texts)


METADATA, LINK_LOCAL, PRIVATE = "cloud metadata", "link-local", "private"
#: kind of address → its networks; the first match counts. Source: IANA's special-purpose address registries and the
#: clouds' own documentation of their metadata services
KINDS: tuple[tuple[str, tuple[Network, ...]], ...] = (
    (
        METADATA,
        _networks(
            "169.254.169.254/32",
            "169.254.170.2/32",
            "169.254.170.23/32",
            "100.100.100.200/32",
            "192.0.0.192/32",
            "168.63.129.16/32",
            "fd00:ec2::/32",
            "fd20:ce::254/128",
        ),
    ),
    (LINK_LOCAL, _networks("169.254.0.0/16", "fe80::/10")),
    ("loopback", _networks("127.0.0.0/8", "::1/128")),
    ("unspecified", _networks("0.0.0.0/8", "::/128")),
    ("multicast", _networks("224.0.0.0/4", "ff00::/8")),
    ("reserved", _networks("240.0.0.0/4", "192.0.0.0/24", "198.18.0.0/15", "100::/64")),
    (PRIVATE, _networks("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "fec0::/10")),
)
#: IPv6 networks whose addresses embed an IPv4 address → the position of its lowest bit
_EMBEDDED = (
    (ipaddress.IPv6Network("::ffff:0:0/96"), 0),
    (ipaddress.IPv6Network("::ffff:0:0:0/96"), 0),
    (ipaddress.IPv6Network("64:ff9b::/96"), 0),
    (ipaddress.IPv6Network("64:ff9b:1::/48"), 0),
    (ipaddress.IPv6Network("2002::/16"), 80),
    (ipaddress.IPv6Network("::/96"), 0),
)
#: kinds that a host name in the allow list doesn't allow, because the owner of its DNS could choose the address
_ONLY_BY_ADDRESS = frozenset({METADATA, LINK_LOCAL, "unspecified", "multicast", "reserved"})


def kind_of(address: Address) -> str:
    """Return the kind of an address, "" for a public one; an embedded IPv4 address counts too."""
    inner = ipv4_in(address)
    for candidate in (address, inner) if inner else (address,):
        for kind, networks in KINDS:
            if any(candidate.version == network.version and candidate in network for network in networks):
                return kind
    if isinstance(address, ipaddress.IPv6Address) and address.teredo:
        return "reserved"  # a tunnel to an address that its sender chooses
    return ""


def ipv4_in(address: Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that an IPv6 address embeds (mapped, NAT64, 6to4 or compatible), else None."""
    if isinstance(address, ipaddress.IPv4Address) or int(address) <= 1:
        return None
    for network, shift in _EMBEDDED:
        if address in network:
            return ipaddress.IPv4Address(int(address) >> shift & 0xFFFFFFFF)
    return None


def system_resolve(host: str, port: int) -> list[str]:
    """Resolve with the system's resolver, within ten seconds, because it has no time-out of its own."""
    answers: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answers.put([str(item[4][0]) for item in infos])
        except OSError as error:
            answers.put(error)
        except UnicodeError as error:
            answers.put(OSError(str(error)))

    threading.Thread(target=ask, name=f"resolve-{host[:40]}", daemon=True).start()
    try:
        result = answers.get(timeout=RESOLVE_SECONDS)
    except queue.Empty:
        raise OSError(f"no answer within {RESOLVE_SECONDS:.0f} s") from None
    if isinstance(result, OSError):
        raise result
    return result


@dataclass(frozen=True)
class EgressPolicy:
    """The addresses that clients may connect to.

    `allow` lists hosts, addresses and networks, each with or without a port.
    """

    allow: tuple[str, ...] = ()
    refuse_private: bool = False
    resolve: Resolver = field(default=system_resolve, compare=False)

    def addresses(self, connection: Connection) -> list[Address]:
        """Return the addresses of a connection's host; see `judge`."""
        return self.judge(connection.host, connection.port)

    def judge(self, host: str, port: int) -> list[Address]:
        """Return the addresses of a host in the resolver's order, if all are allowed.

        Clients that can't connect to a given address, such as Kafka's, call this before they connect. Raises
        AddressRefused if one isn't allowed, RemoteUnavailable if the host has none.
        """
        addresses = list(dict.fromkeys(self._resolved(host, port)))
        if not addresses:
            raise RemoteUnavailable(f"{host} has no address. Check the host name.")
        for address in addresses:
            self._judge(host, port, address)
        return addresses

    def _resolved(self, host: str, port: int) -> list[Address]:
        try:
            return [ipaddress.ip_address(host)]
        except ValueError:
            pass
        try:
            texts = self.resolve(host, port)
            return [ipaddress.ip_address(text) for text in texts]
        except OSError as error:
            raise RemoteUnavailable(f"{host} can't be resolved: {error.strerror or error}.") from error
        except ValueError as error:  # an address with a zone, such as fe80::1%eth0
            raise AddressRefused(
                f"{host} resolves to a link-local address with a scope, which can't be used."
            ) from error

    def _judge(self, host: str, port: int, address: Address) -> None:
        kind = kind_of(address)
        if not kind or (kind == PRIVATE and not self.refuse_private):
            return
        if any(_covers(entry, host, port, address, kind) for entry in self.allow):
            return
        cure = str(address) if kind in _ONLY_BY_ADDRESS else f"{host}:{port}"
        leads = "" if host == str(address) else f" leads to {address}, which"
        raise AddressRefused(
            f"{host}{leads} is {_ARTICLES.get(kind, 'a')} {kind} address, which is blocked. To allow it, the"
            f" operator must list {cure} in SCHEMADESK_EGRESS_ALLOW.",
            host=host,
            kind=kind,
        )


_ARTICLES = {"unspecified": "an"}


def current_policy() -> EgressPolicy:
    """Return the policy in the settings EGRESS_ALLOW and EGRESS_REFUSE_PRIVATE."""
    return EgressPolicy(tuple(settings.EGRESS_ALLOW), settings.EGRESS_REFUSE_PRIVATE)


def _covers(entry: str, host: str, port: int, address: Address, kind: str) -> bool:
    """Return whether an entry of the allow list covers this address of a host."""
    where, only_port = _entry(entry)
    if only_port is not None and only_port != port:
        return False
    try:
        network = ipaddress.ip_network(where, strict=False)
    except ValueError:
        return where.lower() == host and kind not in _ONLY_BY_ADDRESS
    if kind == METADATA and network.num_addresses > 1:
        return False  # a wide network never allows a metadata address in it, which gives credentials away
    inner = ipv4_in(address)
    return any(item is not None and item.version == network.version and item in network for item in (address, inner))


def _entry(entry: str) -> tuple[str, int | None]:
    """Split `host`, `host:port`, `address`, `network` or `[v6]:port` into what is before the port, and the port."""
    if entry.startswith("["):
        where, _, port = entry[1:].partition("]")
        return where, int(port[1:]) if port[1:].isdigit() else None
    where, colon, port = entry.rpartition(":")
    if colon and ":" not in where and port.isdigit():
        return where, int(port)
    return entry, None
