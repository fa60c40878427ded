"""Brokers with TLS, sign-in and an authorizer that denies by default, with certificates of an authority of their own."""

from __future__ import annotations

import datetime
import ipaddress
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dashboard.runtime import kafka
from dashboard.runtime.layout import Layout, free_port, kept_ports
from dashboard.runtime.parts import KAFKA, wait_until_ready
from dashboard.runtime.process import Child, Watchdog, end_children, start
from tests.waiting import until

PASSWORD = "the-password-of-scan"
SECRET = "the-secret-of-an-api-key"
CLUSTER_ID = "c2NoZW1hZGVzay10ZXN0cw"
_PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


class Authority:
    """A certificate authority, with an intermediate one that signs certificates of clients."""

    def __init__(self) -> None:
        self._key, self._intermediate_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        self._root = _certificate("tests' root", self._key, None, self._key)
        self._intermediate = _certificate("tests' intermediate", self._intermediate_key, self._root, self._key)
        self.pem = _pem(self._root)

    def server(self) -> str:
        """The key and certificate of a broker on loopback."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        return _pem(key) + _pem(_certificate("broker", key, self._root, self._key, names))

    def client(self, name: str) -> str:
        """The key of a client, its certificate, and that of the intermediate authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        own = _certificate(name, key, self._intermediate, self._intermediate_key, [x509.DNSName(name)])
        return _pem(key) + _pem(own) + _pem(self._intermediate)


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey,
    names: list[x509.GeneralName] | None = None,
) -> x509.Certificate:
    """A certificate; without `names` of an authority."""
    title = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(title)
        .issuer_name(issuer.subject if issuer else title)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=not names, path_length=None), critical=True)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _pem(value: x509.Certificate | ec.EllipticCurvePrivateKey) -> str:
    if isinstance(value, x509.Certificate):
        return value.public_bytes(serialization.Encoding.PEM).decode()
    return value.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


@dataclass
class SecuredKafka:
    """Running brokers: `plain` is for the tests' own client, which may do everything."""

    plain: str
    sasl: str
    mutual: str
    authority: Authority
    brokers: dict[int, Child]
    admin: AdminClient

    def allow(self, *rules: AclBinding) -> None:
        """Grant rights, and wait until the brokers have them."""
        for future in self.admin.create_acls(list(rules)).values():
            future.result(60)
        self._until_known(rules, are_there=True)

    def withdraw(self, *rules: AclBinding) -> None:
        """Take rights away, and wait until the brokers know."""
        filters = [
            AclBindingFilter(
                rule.restype, rule.name, rule.resource_pattern_type, rule.principal, rule.host, rule.operation,
                rule.permission_type,
            )
            for rule in rules
        ]  # fmt: skip
        for future in self.admin.delete_acls(filters).values():
            future.result(60)
        self._until_known(rules, are_there=False)

    def _until_known(self, rules: tuple[AclBinding, ...], *, are_there: bool) -> None:
        every = AclBindingFilter(
            ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
        )
        until(lambda: all((rule in self.admin.describe_acls(every).result(30)) == are_there for rule in rules), 30)


def rule(user: str, operation: str, kind: str, name: str, *, prefixed: bool = False) -> AclBinding:
    """A right of a user, in the words of kafka-acls."""
    operations = {"Read": "READ", "Describe": "DESCRIBE", "DescribeConfigs": "DESCRIBE_CONFIGS"}
    pattern = ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL
    return AclBinding(
        ResourceType[kind], name, pattern, user, "*", AclOperation[operations[operation]], AclPermissionType.ALLOW
    )


@contextmanager
def secured_kafka(folder: Path, brokers: int) -> Iterator[SecuredKafka]:
    """Run brokers, each a controller too, that keep topics as often as there are brokers."""
    authority, watchdog = Authority(), Watchdog()
    watchdog.start()
    (folder / "ca.pem").write_text(authority.pem)
    (folder / "server.pem").write_text(authority.server())
    layouts = {}
    for number in range(1, brokers + 1):
        own = folder / str(number)
        (own / "kafka").mkdir(parents=True)
        (own / "kafka" / "meta.properties").write_text(f"version=1\ncluster.id={CLUSTER_ID}\nnode.id={number}\n")
        layouts[number] = Layout.at(own, watchdog, durable=False, ports=kept_ports(own, kafka.PORTS))
    doors = {number: (free_port(), free_port()) for number in layouts}
    voters = ",".join(f"{number}@127.0.0.1:{layout.ports['kafka-controller']}" for number, layout in layouts.items())
    children: dict[int, Child] = {}
    with ExitStack() as stack:
        for layout in layouts.values():
            stack.callback(shutil.rmtree, layout.sockets, ignore_errors=True)
        stack.callback(watchdog.close)
        stack.callback(lambda: end_children(list(children.values())))
        for number, layout in layouts.items():
            own_values = _properties(number, layout, doors[number], folder, brokers) | {
                "controller.quorum.voters": voters
            }
            with mock.patch.object(kafka, "ALONE", kafka.ALONE | own_values):
                children[number] = start(kafka.command(layout), layout.log("kafka"), watchdog)
        for number, layout in layouts.items():
            wait_until_ready(KAFKA, children[number], layout)
        plain = ",".join(kafka.bootstrap(layout) for layout in layouts.values())
        admin = AdminClient({"bootstrap.servers": plain})
        until(lambda: len(admin.list_topics(timeout=30).brokers) == brokers, 120)
        _add_users(admin)
        sasl, mutual = (",".join(f"127.0.0.1:{ports[door]}" for ports in doors.values()) for door in range(2))
        yield SecuredKafka(plain, sasl, mutual, authority, children, admin)


def _properties(number: int, layout: Layout, doors: tuple[int, int], folder: Path, brokers: int) -> Mapping[str, str]:
    plain, controller = (f"127.0.0.1:{layout.ports[name]}" for name in kafka.PORTS)
    open_ = f"PLAINTEXT://{plain},SASL://127.0.0.1:{doors[0]},MUTUAL://127.0.0.1:{doors[1]}"
    values = {
        "node.id": str(number),
        "listeners": f"{open_},CONTROLLER://{controller}",
        "advertised.listeners": open_,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_SSL,MUTUAL:SSL",
        "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl.plain.sasl.jaas.config": f'{_PLAIN_LOGIN} user_APIKEY="{SECRET}";',
        "listener.name.sasl.scram-sha-256.sasl.jaas.config": _SCRAM_LOGIN,
        "listener.name.sasl.scram-sha-512.sasl.jaas.config": _SCRAM_LOGIN,
        "listener.name.mutual.ssl.client.auth": "required",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "default.replication.factor": str(brokers),
        "min.insync.replicas": str(max(1, brokers - 1)),
    }
    for name in ("sasl", "mutual"):
        values |= {
            f"listener.name.{name}.ssl.keystore.type": "PEM",
            f"listener.name.{name}.ssl.keystore.location": str(folder / "server.pem"),
            f"listener.name.{name}.ssl.truststore.type": "PEM",
            f"listener.name.{name}.ssl.truststore.location": str(folder / "ca.pem"),
        }
    return values


def _add_users(admin: AdminClient) -> None:
    """The user `scan`, with a password for both SCRAM mechanisms."""
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        change = UserScramCredentialUpsertion("scan", ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
        for future in admin.alter_user_scram_credentials([change]).values():
            future.result(60)
