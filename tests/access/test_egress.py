"""Outgoing addresses: what is connected to, where secrets go, and within which limits."""

from __future__ import annotations

import datetime
import gzip
import json
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from registry.access import egress
from registry.access.egress import EgressPolicy, parse_connection
from registry.access.http_client import HttpLimits, OutgoingClient, ResponseTooLarge, Secret, authorization, find_secret
from registry.errors import AddressRefused, InvalidInput, InvalidSecret, RemoteUnavailable
from tests.access.fake_server import Call, Raw, Told, serving
from tests.waiting import ends_soon

LOOPBACK = EgressPolicy(allow=("127.0.0.1",))
CASES = json.loads((Path(__file__).parent / "addresses.json").read_text())


def resolving(*addresses: str, allow: Sequence[str] = (), refuse_private: bool = False) -> EgressPolicy:
    return EgressPolicy(tuple(allow), refuse_private, lambda host, port: addresses)


@pytest.mark.parametrize("url", CASES["good_urls"], ids=str)
def test_a_plain_address_is_read(url: str) -> None:
    assert parse_connection(url).url == url


def test_the_parts_of_an_address() -> None:
    found = parse_connection("https://Registry.Example.com:8443/base/", user="u", secret="s")
    assert (found.scheme, found.host, found.port, found.path) == ("https", "registry.example.com", 8443, "/base")
    assert (found.netloc, parse_connection("http://[::1]:80").netloc) == ("registry.example.com:8443", "[::1]")


@pytest.mark.parametrize("url", CASES["bad_urls"], ids=repr)
def test_what_programs_read_in_different_ways_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_connection(url)
    assert "hunter2" not in refused.value.message


@pytest.mark.parametrize(("address", "kind"), CASES["kinds"].items())
def test_the_kind_of_an_address(address: str, kind: str) -> None:
    assert egress.kind_of(egress.ipaddress.ip_address(address)) == kind


@pytest.mark.parametrize(
    "address", [address for address, kind in CASES["kinds"].items() if kind not in ("", "private")]
)
def test_a_name_that_leads_to_a_guarded_address_is_refused(address: str) -> None:
    connection = parse_connection("http://innocent.example")
    with pytest.raises(AddressRefused, match=r"innocent\.example leads to .* SCHEMADESK_EGRESS_ALLOW"):
        resolving("93.184.216.34", address).addresses(connection)
    assert len(resolving("93.184.216.34").addresses(connection)) == 1


def test_private_networks_are_a_setting() -> None:
    connection = parse_connection("http://registry.internal:8081")
    assert resolving("10.1.2.3").addresses(connection)
    with pytest.raises(AddressRefused, match="private"):
        resolving("10.1.2.3", refuse_private=True).addresses(connection)
    for entry in ("10.0.0.0/8", "registry.internal", "registry.internal:8081", "10.1.2.3", "10.1.2.3:8081"):
        assert resolving("10.1.2.3", refuse_private=True, allow=[entry]).addresses(connection)
    for entry in ("10.0.0.0/16", "other.internal", "registry.internal:8082", "10.1.2.3:80", "0.0.0.0/31"):
        with pytest.raises(AddressRefused):
            resolving("10.1.2.3", refuse_private=True, allow=[entry]).addresses(connection)


def test_a_name_in_the_allow_list_does_not_open_the_metadata_service() -> None:
    connection = parse_connection("http://mine.example")
    assert resolving("127.0.0.1", allow=["mine.example"]).addresses(connection)
    for address in ("169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "fd00:ec2::254"):
        with pytest.raises(AddressRefused):
            resolving(address, allow=["mine.example"]).addresses(connection)
    with pytest.raises(AddressRefused):
        resolving("169.254.169.254", allow=["169.254.0.0/16", "0.0.0.0/0"]).addresses(connection)
    assert resolving("169.254.169.254", allow=["169.254.169.254"]).addresses(connection)
    assert resolving("169.254.9.9", allow=["169.254.0.0/16"]).addresses(connection)
    assert resolving("::ffff:127.0.0.1", allow=["127.0.0.1"]).addresses(connection)


@pytest.mark.parametrize(
    "host", ["127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0x7f000001", "127.0.0.1.", "1.2.3.0x4"]
)
def test_numbers_in_other_spellings_do_not_get_through(host: str) -> None:
    """Refused as an address, and refused by the address if a resolver understands it."""
    try:
        connection = parse_connection(f"http://{host}")
    except InvalidInput:
        return
    with pytest.raises(AddressRefused):
        EgressPolicy().addresses(connection)


def test_the_connection_goes_to_the_address_that_was_judged() -> None:
    """A resolver that says another address the second time (DNS rebinding) is asked once for a connection."""
    answers = [["127.0.0.1"], ["169.254.169.254"]]
    asked: list[str] = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return answers.pop(0)

    with serving(lambda call: {"host": call.headers["host"]}) as server:
        connection = parse_connection(f"http://rebinding.example:{server.port}")
        with OutgoingClient(connection, policy=EgressPolicy(("127.0.0.1",), resolve=resolve)) as client:
            for _ in range(3):
                answer = client.call("GET", "/x").json("the answer")
                assert answer == {"host": f"rebinding.example:{server.port}"}
            assert asked == ["rebinding.example"]
            client.close()
            with pytest.raises(AddressRefused, match="cloud metadata"):
                client.call("GET", "/x")
        assert len(server.calls) == 3


def test_an_environment_proxy_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with serving(lambda call: []) as server:
        assert call_to(server.port).status == 200


def call_to(port: int, path: str = "/", **limits: Any) -> Any:
    connection = parse_connection(f"http://127.0.0.1:{port}")
    with OutgoingClient(connection, policy=LOOPBACK, limits=HttpLimits(**limits)) as client:
        return client.call("GET", path)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    where = {"Location": "http://169.254.169.254/latest/meta-data/"}
    with serving(lambda call: Told(status, b"", where)) as server:
        with pytest.raises(RemoteUnavailable, match="Redirects are not followed"):
            call_to(server.port)
        assert len(server.calls) == 1


def test_an_answer_is_bounded() -> None:
    announced = Told(200, b"x", {"Content-Length": str(10**15)})
    with serving(lambda call: announced if call.path == "/announced" else Raw(endless)) as server:
        for path in ("/announced", "/endless"):
            with pytest.raises(ResponseTooLarge, match="more than 100000 bytes"):
                call_to(server.port, path, max_bytes=100_000)


def endless(call: Call) -> None:
    call.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        call.write(b"x" * 10_000)


@pytest.mark.parametrize(
    "begin", [b"", b"HTTP/1.1 200 OK\r\nX-A: ", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"]
)
def test_a_slow_drip_ends_at_the_deadline(begin: bytes) -> None:
    def drip(call: Call) -> None:
        call.write(begin)
        for _ in range(1_200):  # a minute
            call.write(b"a")
            time.sleep(0.05)

    with serving(lambda call: Raw(drip)) as server:
        with ends_soon():
            with pytest.raises(
                RemoteUnavailable, match=r"didn't send a complete response within 0\.5 s|not valid HTTP"
            ):
                call_to(server.port, total_seconds=0.5)


def test_silence_ends_at_the_limit() -> None:
    over = threading.Event()
    with serving(lambda call: Raw(lambda _: over.wait(60) and None)) as server:
        with ends_soon(), pytest.raises(RemoteUnavailable, match="no response in time"):
            call_to(server.port, read_seconds=0.3)
        over.set()


@pytest.mark.parametrize(
    "answer",
    [
        b"\x00\x01\x02 nonsense\r\n\r\n",
        b"HTTP/1.1 banana\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        b"",
    ],
    ids=["bytes", "status", "headers", "header", "chunks", "short", "nothing"],
)
def test_what_is_no_http_is_an_error_of_ours(answer: bytes) -> None:
    with serving(lambda call: Raw(lambda call: call.write(answer) and None)) as server:
        with pytest.raises(RemoteUnavailable, match=rf"127\.0\.0\.1:{server.port}"):
            call_to(server.port)


def test_a_compressed_answer_is_not_unpacked() -> None:
    bomb = gzip.compress(b"0" * 10_000_000)
    with serving(lambda call: Told(200, bomb, {"Content-Encoding": "gzip"})) as server:
        with pytest.raises(RemoteUnavailable, match="compressed"):
            call_to(server.port)
        assert server.calls[0].headers["accept-encoding"] == "identity"


def test_a_connection_that_the_server_closed_is_opened_again() -> None:
    def answer(call: Call) -> Any:
        return Raw(lambda call: call.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]") and None)

    with serving(answer) as server:
        connection = parse_connection(f"http://127.0.0.1:{server.port}")
        with OutgoingClient(connection, policy=LOOPBACK) as client:
            for _ in range(3):
                assert client.call("GET", "/").body == b"[]"
                time.sleep(0.05)


def test_nobody_there_is_said_with_the_host() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        with pytest.raises(RemoteUnavailable, match=rf"127\.0\.0\.1:{port} can't be reached: Connection refused"):
            call_to(port)


def test_an_unknown_host_is_said() -> None:
    def resolve(host: str, port: int) -> list[str]:
        raise socket.gaierror(-2, "Name or service not known")

    with pytest.raises(RemoteUnavailable, match=r"nowhere\.example can't be resolved: Name or service not known"):
        EgressPolicy(resolve=resolve).addresses(parse_connection("http://nowhere.example"))


class TestSecrets:
    """Where secrets are, and where they go."""

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, settings: Any) -> Path:
        settings.SECRETS_DIR = tmp_path
        return tmp_path

    @pytest.mark.parametrize(
        ("binding", "url", "goes"),
        [
            ("registry.example.com", "https://registry.example.com", True),
            ("registry.example.com", "https://REGISTRY.example.com:8443", True),
            ("registry.example.com:8443", "https://registry.example.com:8443", True),
            ("registry.example.com:8443", "https://registry.example.com", False),
            ("registry.example.com", "https://evil.example", False),
            ("registry.example.com", "https://registry.example.com.evil.example", False),
            ("registry.example.com", "http://registry.example.com", False),
            ("http://registry.example.com", "http://registry.example.com:8081", True),
            ("localhost", "http://localhost:8081", True),
            ("[::1]:8081", "http://[::1]:8081", True),
            ("ftp://registry.example.com", "https://registry.example.com", False),
            ("*", "https://registry.example.com", False),
        ],
    )
    def test_a_secret_goes_to_its_host_alone(self, folder: Path, binding: str, url: str, goes: bool) -> None:
        (folder / "mine").write_text(f"{binding} hunter2\n")
        connection = parse_connection(url, secret="mine")
        if goes:
            assert authorization(connection) == {"Authorization": "Bearer hunter2"}
            return
        with pytest.raises(InvalidSecret) as refused:
            authorization(connection)
        assert "hunter2" not in refused.value.message
        assert "'mine'" in refused.value.message

    def test_a_user_makes_it_basic(self, folder: Path) -> None:
        (folder / "mine").write_text("a.example\nhunter2")
        found = authorization(parse_connection("https://a.example", user="anna", secret="mine"))
        assert found == {"Authorization": "Basic YW5uYTpodW50ZXIy"}

    def test_a_variable_serves_where_no_file_is(self, folder: Path) -> None:
        environment = {"SCHEMADESK_SECRET_MY_ONE": "a.example from-variable"}
        assert find_secret("my-one", environment=environment).value == "from-variable"
        (folder / "my-one").write_text("a.example from-file")
        assert find_secret("my-one", environment=environment).value == "from-file"

    def test_nothing_but_the_folder_and_the_prefix_is_read(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        outside = folder.parent / "outside"
        outside.write_text("a.example stolen")
        (folder / "link").symlink_to(outside)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a.example stolen")
        for name in ("link", "../outside", "/etc/passwd", "AWS_SECRET_ACCESS_KEY", "", ".", "a" * 65, "a\x00b", "none"):
            with pytest.raises(InvalidSecret) as refused:
                find_secret(name)
            assert "stolen" not in refused.value.message

    @pytest.mark.parametrize(
        "text", ["", "a.example", "a.example x\x00y", "a.example é", "a.example " + "x" * 9000, "a.example a\nb"]
    )
    def test_a_secret_that_no_header_can_carry_is_refused(self, folder: Path, text: str) -> None:
        (folder / "mine").write_text(text)
        with pytest.raises(InvalidSecret):
            find_secret("mine")

    def test_a_secret_shows_in_no_repr(self) -> None:
        assert "hunter2" not in repr(Secret("mine", "a.example", "hunter2"))

    def test_no_secret_leaves_before_the_address_is_judged(self, folder: Path) -> None:
        (folder / "mine").write_text("127.0.0.1 hunter2")
        with serving(lambda call: []) as server:
            connection = parse_connection(f"http://127.0.0.1:{server.port}", secret="mine")
            with pytest.raises(AddressRefused):
                OutgoingClient(connection, policy=EgressPolicy()).call("GET", "/")
            assert server.calls == []
            with OutgoingClient(connection, policy=LOOPBACK) as client:
                client.call("GET", "/")
            assert server.calls[0].headers["authorization"] == "Bearer hunter2"


class TestTls:
    """The certificate is checked against the name, though the connection goes to an address."""

    @pytest.fixture(scope="class")
    @classmethod
    def authority(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("tls")
        make_certificate(folder, "registry.example")
        return folder

    @pytest.fixture
    def server(self, authority: Path) -> Any:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority / "cert.pem", authority / "key.pem")
        with serving(lambda call: {"host": call.headers["host"]}, tls=context) as server:
            yield server

    def call(self, host: str, port: int) -> Any:
        policy = EgressPolicy(("127.0.0.1",), resolve=lambda host, port: ["127.0.0.1"])
        with OutgoingClient(parse_connection(f"https://{host}:{port}"), policy=policy) as client:
            return client.call("GET", "/").json("it")

    def test_a_trusted_name_is_spoken_to(self, authority: Path, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(authority / "cert.pem"))
        assert self.call("registry.example", server.port) == {"host": f"registry.example:{server.port}"}

    def test_another_name_is_not(self, authority: Path, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(authority / "cert.pem"))
        with pytest.raises(RemoteUnavailable, match=r"its certificate isn't valid \(Hostname mismatch"):
            self.call("other.example", server.port)

    def test_an_authority_that_is_not_trusted_is_not(self, server: Any) -> None:
        with pytest.raises(RemoteUnavailable, match="its certificate isn't valid"):
            self.call("registry.example", server.port)


def make_certificate(folder: Path, name: str) -> None:
    """A certificate for a name, its own authority, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    title = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(title)
        .issuer_name(title)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
