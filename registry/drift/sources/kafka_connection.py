"""The only access to a Kafka cluster: checks its addresses, reads its password, and creates a client.

The egress policy checks every bootstrap address before a client connects, and every broker in the cluster's metadata
before the client is returned. The deployment's own broker (KAFKA_BOOTSTRAP) is allowed. Two gaps remain: Kafka's
clients resolve names themselves, so a name may resolve differently the second time; and they follow brokers that join
while they are connected. With TLS, both fail at the certificate, whose name is checked.

A password is a secret of `registry.access.http_client` whose first word lists its hosts, separated by commas:
`broker-1.example.com:9093,broker-2.example.com:9093 the-password`. It is only sent over TLS or to this machine, unless
a host is written `plaintext://HOST`. With SSL, the secret is the client's private key and certificates, as PEM.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata
from django.conf import settings

from registry.access.egress import Address, EgressPolicy, current_policy
from registry.access.http_client import find_secret
from registry.drift.models import SASL_MECHANISMS, SECURITY_PROTOCOLS, Cluster
from registry.errors import BrokerUnavailable, InvalidSecret, InvalidSource, RemoteUnavailable
from registry.observations import KafkaConnection

TIMEOUT_SECONDS = 8
CONNECT_SECONDS = 3
REFUSED_SECONDS = 2  # after which a refused sign-in ends the wait
MAX_SERVERS = 10
MAX_PEM = 64 * 1024
_SERVER = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9_.-]{1,253}):(?P<port>[0-9]{1,5})")
_USER = re.compile(r"[\x21-\x7e]{1,255}")
_KEY = re.compile(r"-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----")
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")
LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Server:
    """A broker's host, in lower case, and port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class ClientCertificate:
    """A client's private key and its certificates, the client's own first, as PEM."""

    key: str = field(repr=False)
    chain: str


@dataclass(frozen=True)
class ClusterConnection:
    """A cluster that answered: a client, and the metadata of its brokers and topics."""

    admin: AdminClient
    metadata: ClusterMetadata


def parse_servers(bootstrap: str) -> tuple[Server, ...]:
    """Parse a bootstrap list, `host:port` separated by commas. Raises InvalidSource."""
    parts = bootstrap.replace(" ", "").split(",")
    if len(parts) > MAX_SERVERS:
        raise InvalidSource(f"There are {len(parts)} bootstrap servers; the maximum is {MAX_SERVERS}.")
    servers = []
    for part in parts:
        match = _SERVER.fullmatch(part)
        if match is None or not 1 <= int(match["port"]) <= 65535:
            raise InvalidSource(
                f"{bootstrap[:80]!r} is not a list of bootstrap servers. Write host:port, or several separated by "
                "commas."
            )
        servers.append(Server(match["host"].strip("[]").lower(), int(match["port"])))
    return tuple(servers)


def check_fields(cluster: Cluster) -> None:
    """Raise InvalidSource for inconsistent fields, InvalidSecret for a secret that isn't for its servers."""
    if cluster.security_protocol not in SECURITY_PROTOCOLS:
        raise InvalidSource(f"The security protocol must be one of {', '.join(SECURITY_PROTOCOLS)}.")
    sasl = cluster.security_protocol.startswith("SASL")
    if sasl and cluster.sasl_mechanism not in SASL_MECHANISMS:
        raise InvalidSource(f"{cluster.security_protocol} needs a mechanism: {', '.join(SASL_MECHANISMS)}.")
    if sasl and not (_USER.fullmatch(cluster.username) and cluster.secret):
        raise InvalidSource("SASL needs a user name (printable characters without spaces) and a secret's name.")
    if not sasl and (cluster.sasl_mechanism or cluster.username):
        raise InvalidSource(f"{cluster.security_protocol} doesn't use a mechanism or user. Use SASL_SSL for those.")
    if cluster.secret and cluster.security_protocol == "PLAINTEXT":
        raise InvalidSource(
            "PLAINTEXT doesn't use a secret. Use SASL_SSL for a password, or SSL for a client certificate."
        )
    if cluster.ca_pem and not cluster.security_protocol.endswith("SSL"):
        raise InvalidSource(
            f"{cluster.security_protocol} doesn't use a certificate authority. Use SSL or SASL_SSL for that."
        )
    if cluster.ca_pem:
        _check_pem(cluster.ca_pem)
    password_of(cluster)
    certificate_of(cluster)


def _check_pem(text: str) -> None:
    problem = "The certificate authority must be one or more PEM certificates (-----BEGIN CERTIFICATE----- …)."
    if len(text) > MAX_PEM or "PRIVATE KEY" in text:
        raise InvalidSource(problem)
    try:
        if not ssl.create_default_context(cadata=text).get_ca_certs():
            raise InvalidSource(problem)
    except (ssl.SSLError, ValueError) as error:
        raise InvalidSource(problem) from error


def password_of(cluster: Cluster) -> str | None:
    """Return the password of a cluster with SASL. Raises InvalidSecret if it is missing or not for all servers."""
    return _secret_of(cluster) if cluster.security_protocol.startswith("SASL") else None


def certificate_of(cluster: Cluster) -> ClientCertificate | None:
    """Return the client's certificate of a cluster with SSL, None without a secret. Raises InvalidSecret."""
    text = _secret_of(cluster) if cluster.security_protocol == "SSL" else None
    if text is None:
        return None
    from cryptography.exceptions import UnsupportedAlgorithm  # imported late: only mutual TLS needs it
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from cryptography.x509 import load_pem_x509_certificates

    keys, chain = _KEY.findall(text), "\n".join(_CERTIFICATE.findall(text))
    try:
        (key,) = keys
        own, *_ = load_pem_x509_certificates(chain.encode())
        fits = load_pem_private_key(key.encode(), None).public_key() == own.public_key()
    except (ValueError, UnsupportedAlgorithm):
        fits = False
    if not fits:
        raise InvalidSecret(
            f"Secret {cluster.secret!r} must be a private key (-----BEGIN PRIVATE KEY-----, without a passphrase) "
            "and then its certificate and those between it and the certificate authority, all as PEM.",
            secret=cluster.secret,
        )
    return ClientCertificate(key, chain)


def _secret_of(cluster: Cluster) -> str | None:
    """Return the value of a cluster's secret. Raises InvalidSecret if it is missing or not for all servers."""
    if not cluster.secret:
        return None
    secret = find_secret(cluster.secret, is_pem=cluster.security_protocol == "SSL")
    bindings = [entry.rpartition("://") for entry in secret.binding.lower().split(",")]
    for server in parse_servers(cluster.bootstrap):
        fitting = [scheme for scheme, _, where in bindings if where.rstrip("/") in (str(server), server.host)]
        if not fitting:
            raise InvalidSecret(
                f"Secret {secret.name!r} can't be sent to {server}: it is bound to other hosts.", secret=secret.name
            )
        encrypted = cluster.security_protocol.endswith("SSL") or server.host in LOOPBACK
        if not encrypted and "plaintext" not in fitting:
            raise InvalidSecret(
                f"Secret {secret.name!r} can't be sent to {server} without TLS. Use SASL_SSL, or bind the secret "
                f"to plaintext://{server}.",
                secret=secret.name,
            )
    return secret.value


def judge_servers(cluster: Cluster) -> dict[Server, list[Address]]:
    """Return the allowed addresses of every bootstrap server.

    Raises AddressRefused if one isn't allowed, BrokerUnavailable if none has an address.
    """
    policy, addresses, reasons = _policy(), {}, []
    for server in parse_servers(cluster.bootstrap):
        try:
            addresses[server] = policy.judge(server.host, server.port)
        except RemoteUnavailable as error:  # one of several servers may no longer be in the DNS
            reasons.append(error.message)
    if not addresses:
        raise BrokerUnavailable(
            f"No Kafka broker in {cluster.bootstrap} has an address ({' '.join(reasons)})", bootstrap=cluster.bootstrap
        )
    return addresses


def kafka_connection(cluster: Cluster) -> KafkaConnection:
    """Return what Spark needs to reach the cluster, including the password, after checking its addresses.

    Raises AddressRefused, BrokerUnavailable, InvalidSecret.
    """
    judge_servers(cluster)
    client = certificate_of(cluster)
    return KafkaConnection(
        bootstrap=cluster.bootstrap,
        security_protocol=cluster.security_protocol,  # type: ignore[arg-type]  # the database restricts it to these
        sasl_mechanism=cluster.sasl_mechanism or None,  # type: ignore[arg-type]  # likewise
        username=cluster.username or None,
        password=password_of(cluster),
        ca_pem=cluster.ca_pem or None,
        client_key=client.key if client else None,
        client_chain=client.chain if client else None,
    )


def connect(cluster: Cluster) -> ClusterConnection:
    """Return a client of the cluster and its metadata, after checking all of its brokers.

    Raises AddressRefused for an address that the egress policy rejects, BrokerUnavailable if no server answers within
    eight seconds, InvalidSecret.
    """
    _require_listener(cluster, judge_servers(cluster))
    errors: list[KafkaError] = []
    admin = AdminClient(client_settings(cluster) | {"error_cb": errors.append})
    for seconds in (REFUSED_SECONDS, TIMEOUT_SECONDS):  # the client itself waits, whatever a broker says
        try:
            metadata = admin.list_topics(timeout=seconds)
            break
        except KafkaException as error:
            failed = error
        admin.poll(0)  # passes on what went wrong with each connection
        if refused := refusal(cluster, errors):
            raise refused from failed
    else:
        raise unavailable(cluster.bootstrap, failed) from failed
    policy = _policy()
    for broker in metadata.brokers.values():
        try:
            policy.judge(broker.host.lower().strip("[]"), broker.port)
        except RemoteUnavailable as error:
            raise BrokerUnavailable(
                f"The cluster at {cluster.bootstrap} advertises broker {broker.host}:{broker.port}, which can't be "
                "resolved here. Correct its advertised listeners.",
                bootstrap=cluster.bootstrap,
            ) from error
    return ClusterConnection(admin, metadata)


def admin_of(cluster: Cluster) -> AdminClient:
    """Return a client for offsets, configurations and groups. Raises the errors of `connect`."""
    return connect(cluster).admin


def client_settings(cluster: Cluster) -> dict[str, Any]:
    """Return librdkafka's settings for a cluster, without free properties. Raises InvalidSecret."""
    chosen: dict[str, Any] = {
        "bootstrap.servers": cluster.bootstrap,
        "security.protocol": cluster.security_protocol,
        "socket.timeout.ms": TIMEOUT_SECONDS * 1000,
        "socket.connection.setup.timeout.ms": TIMEOUT_SECONDS * 1000,
        "allow.auto.create.topics": False,
        "log_level": 0,
    }
    if cluster.sasl_mechanism:
        chosen |= {
            "sasl.mechanism": cluster.sasl_mechanism,
            "sasl.username": cluster.username,
            "sasl.password": password_of(cluster),
        }
    if cluster.ca_pem:
        chosen["ssl.ca.pem"] = cluster.ca_pem
    if client := certificate_of(cluster):
        chosen |= {"ssl.key.pem": client.key, "ssl.certificate.pem": client.chain}
    return chosen


def refusal(cluster: Cluster, errors: Sequence[KafkaError]) -> BrokerUnavailable | None:
    """Return the error for a refused sign-in or a failed TLS handshake, which no waiting mends; None without one."""
    denied = [error.str() for error in errors if error.code() == KafkaError._AUTHENTICATION]
    broken = [error.str() for error in errors if "SSL routines" in error.str()]  # also what a broker says of a client
    if denied:
        problem = f"refused the sign-in of user {cluster.username} by {cluster.sasl_mechanism}"
        cure = f"Check the user, the mechanism and the secret {cluster.secret!r}."
    elif broken:
        problem = "couldn't be reached over TLS"
        mine = f", and the client's certificate in the secret {cluster.secret!r}" if certificate_of(cluster) else ""
        cure = f"Check the certificate authority{mine}."
    else:
        return None
    reason = re.sub(r"^\S+: | \(after [^()]*\)$", "", (denied or broken)[0])[:300]
    return BrokerUnavailable(
        f"The Kafka cluster at {cluster.bootstrap} {problem} ({reason}). {cure}",
        bootstrap=cluster.bootstrap,
        is_lasting=True,
    )


def unavailable(bootstrap: str, error: KafkaException) -> BrokerUnavailable:
    """Return the error for a cluster that doesn't answer, with the client's message."""
    return BrokerUnavailable(
        f"The Kafka cluster at {bootstrap} didn't answer within {TIMEOUT_SECONDS} s ({error.args[0].str()}). Check "
        "its address and security settings, and that the broker is running.",
        bootstrap=bootstrap,
    )


def _policy() -> EgressPolicy:
    """Return the deployment's policy, with its own broker allowed."""
    policy = current_policy()
    own = tuple(part.strip() for part in settings.KAFKA_BOOTSTRAP.split(",") if part.strip())
    return replace(policy, allow=(*policy.allow, *own))


def _require_listener(cluster: Cluster, servers: dict[Server, list[Address]]) -> None:
    """Raise BrokerUnavailable immediately if no server accepts a connection: the client would wait for its timeout."""
    reasons = []
    for server, addresses in servers.items():
        for address in addresses[:2]:
            try:
                socket.create_connection((str(address), server.port), timeout=CONNECT_SECONDS).close()
            except OSError as error:
                reasons.append(f"{server}: {error}")
            else:
                return
    raise BrokerUnavailable(
        f"No Kafka broker answers at {cluster.bootstrap} ({'; '.join(reasons)}). Check the address and that the "
        "broker is running.",
        bootstrap=cluster.bootstrap,
    )
