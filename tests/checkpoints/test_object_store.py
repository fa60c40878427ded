"""Checkpoints in an object store: a real server on this machine, real requests, and what must not be reached."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
import s3fs
import urllib3
from moto.server import ThreadedMotoServer

from benchmarks.state import write_checkpoint
from registry.access.egress import EgressPolicy, parse_connection
from registry.checkpoints import ObjectStore, ReadCache, S3Endpoint, find_checkpoints, read_checkpoint, s3_options
from registry.checkpoints import object_store as module
from registry.checkpoints.files import CheckpointFiles
from registry.errors import AddressRefused, InvalidCheckpoint, InvalidInput, RemoteUnavailable

FIXTURES = Path(__file__).parent / "fixtures"
ROOT = "s3://lake/checkpoints"
LOOPBACK = [ipaddress.ip_address("127.0.0.1")]


@contextmanager
def lake(names: Iterable[str]) -> Iterator[str]:
    """The address of an S3 server with fixtures below two prefixes of one bucket; the second isn't allowed."""
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    try:
        host, port = moto.get_host_and_port()
        url = f"http://{host}:{port}"
        urllib3.request("POST", f"{url}/moto-api/reset")  # one process has one store, whichever server asks it
        client = _client(url)
        client.create_bucket(Bucket="lake")
        for name in names:
            upload(client, name, f"checkpoints/team/{name}")
        upload(client, "customer_totals", "secret/query")
        yield url
    finally:
        moto.stop()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Three queries, and one that isn't allowed."""
    with lake(("customer_totals", "aggregation_hdfs", "join_rocksdb")) as url:
        yield url


def _client(url: str) -> Any:
    return boto3.client(
        "s3", endpoint_url=url, aws_access_key_id="reader", aws_secret_access_key="x", region_name="us-east-1"
    )


def upload(client: Any, name: str, prefix: str) -> None:
    for path in sorted((FIXTURES / name).rglob("*")):
        if path.is_file():
            key = f"{prefix}/{path.relative_to(FIXTURES / name)}"
            client.put_object(Bucket="lake", Key=key, Body=path.read_bytes())


def opened(url: str, addresses: Any = LOOPBACK, **options: Any) -> ObjectStore:
    endpoint = S3Endpoint(url, access_key_id="reader")
    system = s3fs.S3FileSystem(**s3_options(endpoint, "x", addresses, **options))
    return ObjectStore("s3", system, name=endpoint.name)


@pytest.mark.parametrize("name", ["customer_totals", "aggregation_hdfs", "join_rocksdb"])
def test_an_object_store_gives_what_the_disk_gives(server: str, name: str) -> None:
    stored = read_checkpoint(f"{ROOT}/team/{name}", [ROOT], store=opened(server))
    local = read_checkpoint(str(FIXTURES / name), [FIXTURES])
    assert stored.path == f"s3://lake/checkpoints/team/{name}"
    for ours, theirs in zip(stored.operators, local.operators, strict=True):
        assert [variable.name for variable in ours.variables] == [variable.name for variable in theirs.variables]
        for one, other in zip(ours.variables, theirs.variables, strict=True):
            assert [version.value_schema for version in one.versions] == [
                version.value_schema for version in other.versions
            ]
    assert (stored.sources, stored.budgets, stored.problems) == (local.sources, local.budgets, local.problems)


def test_many_queries_are_found_below_a_prefix(server: str) -> None:
    discovery = find_checkpoints(ROOT, [ROOT], store=opened(server))
    assert [each.path.rpartition("/")[2] for each in discovery.found] == [
        "aggregation_hdfs",
        "customer_totals",
        "join_rocksdb",
    ]
    assert (discovery.ended_early, discovery.passed_over) == (None, ())


@pytest.mark.parametrize(
    "path", ["s3://lake/secret/query", "s3://lake/nothing", "s3://other/checkpoints", "s3://lake/checkpoints2"]
)
def test_roots_hold_in_an_object_store_in_the_same_words_for_all(server: str, path: str) -> None:
    with pytest.raises(InvalidCheckpoint, match="outside the allowed folders"):
        read_checkpoint(path, [ROOT, FIXTURES], store=opened(server))


def test_local_roots_allow_no_object_store_and_the_other_way_round(server: str) -> None:
    with pytest.raises(InvalidCheckpoint, match="outside"):
        read_checkpoint(f"{ROOT}/team/customer_totals", ["/"], store=opened(server))
    with pytest.raises(InvalidCheckpoint, match="outside"):
        read_checkpoint(str(FIXTURES / "customer_totals"), [ROOT], store=opened(server))
    with pytest.raises(InvalidCheckpoint, match="SCHEMADESK_CHECKPOINT_PROTOCOLS"):
        read_checkpoint(f"{ROOT}/team/customer_totals", [ROOT])


def test_a_folder_without_a_checkpoint_says_what_was_found(server: str) -> None:
    store = opened(server)
    with pytest.raises(InvalidCheckpoint, match=r"found aggregation_hdfs, customer_totals, join_rocksdb"):
        read_checkpoint(f"{ROOT}/team", [ROOT], store=store)
    with pytest.raises(InvalidCheckpoint, match="doesn't exist"):
        read_checkpoint(f"{ROOT}/missing", [ROOT], store=store)


def test_an_object_above_the_limit_is_refused_by_its_size_alone(server: str) -> None:
    files = CheckpointFiles(f"{ROOT}/team/customer_totals", [ROOT], store=opened(server))
    with pytest.raises(InvalidCheckpoint, match=r"metadata has \d+ bytes; the maximum for such a file is 10"):
        files.read("metadata", limit=10)


def test_nothing_is_written_and_nothing_is_read_twice_when_nothing_changed(server: str) -> None:
    client = _client(server)
    prefix = "checkpoints/cached"
    upload(client, "customer_totals", prefix)
    cache = ReadCache()
    first = read_checkpoint("s3://lake/checkpoints/cached", [ROOT], store=opened(server), cache=cache)
    store = opened(server)
    read: list[str] = []
    real = store.read
    store.read = lambda path, *rest: read.append(path) or real(path, *rest)  # type: ignore[method-assign, func-returns-value]
    assert read_checkpoint("s3://lake/checkpoints/cached", [ROOT], store=store, cache=cache) is first
    assert read == []
    body = (FIXTURES / "customer_totals/offsets/4").read_bytes()
    client.put_object(Bucket="lake", Key=f"{prefix}/offsets/5", Body=body)
    store = opened(server)
    real = store.read
    store.read = lambda path, *rest: read.append(path) or real(path, *rest)  # type: ignore[method-assign, func-returns-value]
    again = read_checkpoint("s3://lake/checkpoints/cached", [ROOT], store=store, cache=cache)
    assert again.last_planned_batch == 5
    assert read == [f"lake/{prefix}/offsets/5"]
    client.delete_object(Bucket="lake", Key=f"{prefix}/offsets/5")


@pytest.mark.slow
def test_many_files_are_read_together(server: str, tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "q", schema_files=20, variables=3)
    client = _client(server)
    for path in folder.rglob("*"):
        if path.is_file():
            key = f"checkpoints/long/{path.relative_to(folder)}"
            client.put_object(Bucket="lake", Key=key, Body=path.read_bytes())
    store = opened(server)
    alone: list[str] = []
    real = store.read
    store.read = lambda path, *rest: alone.append(path) or real(path, *rest)  # type: ignore[method-assign, func-returns-value]
    stored = read_checkpoint("s3://lake/checkpoints/long", [ROOT], store=store)
    local = read_checkpoint(str(folder), [tmp_path])
    assert [len(variable.versions) for variable in stored.operators[0].variables] == [
        len(variable.versions) for variable in local.operators[0].variables
    ]
    assert stored.settings == local.settings
    assert len(alone) < 5


def test_only_judged_addresses_are_connected_to(server: str) -> None:
    store = opened(server, addresses=[ipaddress.ip_address("192.0.2.7")])
    with pytest.raises(AddressRefused, match="was not checked"):
        read_checkpoint(f"{ROOT}/team/customer_totals", [ROOT], store=store)


def test_a_redirect_to_another_host_leads_nowhere() -> None:
    reached: list[bytes] = []
    with _answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", reached, "127.0.0.2") as inner:
        answer = f"HTTP/1.1 307 Moved\r\nLocation: {inner}/lake\r\nContent-Length: 0\r\n\r\n".encode()
        with _answering(answer, []) as outer, pytest.raises((RemoteUnavailable, AddressRefused)):
            read_checkpoint(f"{ROOT}/q", [ROOT], store=opened(outer))
    assert reached == []


def test_the_callers_egress_policy_decides_about_the_endpoint(server: str) -> None:
    connection = parse_connection(server, user="reader", secret="lake")
    with pytest.raises(AddressRefused, match="loopback"):
        EgressPolicy().addresses(connection)
    allowed = EgressPolicy(allow=(connection.netloc,)).addresses(connection)
    assert read_checkpoint(
        f"{ROOT}/team/customer_totals", [ROOT], store=opened(connection.url, allowed)
    ).last_committed_batch


def test_a_store_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CALL_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = opened(f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(RemoteUnavailable, match=r"within 0.5 s"):
            read_checkpoint(f"{ROOT}/q", [ROOT], store=store)


def test_nobodys_credentials_but_the_given_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "the-machines-own")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the-machines-secret")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    asked: list[bytes] = []
    with _answering(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", asked) as url:
        anonymous = S3Endpoint(url)
        store = ObjectStore("s3", s3fs.S3FileSystem(**s3_options(anonymous, "", LOOPBACK)), name=anonymous.name)
        with pytest.raises(InvalidCheckpoint, match="refuses these credentials"):
            read_checkpoint(f"{ROOT}/q", [ROOT], store=store)
        with pytest.raises(InvalidCheckpoint, match="refuses these credentials"):
            read_checkpoint(f"{ROOT}/q", [ROOT], store=opened(url))
    first, *_, last = asked
    assert b"uthorization" not in first
    assert b"Credential=reader/" in last
    assert not any(b"the-machines-own" in each for each in asked)


@pytest.mark.parametrize("given", [{"region": "eu central"}, {"region": ""}, {"access_key_id": "a b"}])
def test_fields_of_an_endpoint_are_typed(given: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        S3Endpoint("https://s3.example.com", **given)


class _answering:  # noqa: N801 - used as a `with` function
    """A server that gives every request one answer and keeps what was asked."""

    def __init__(self, answer: bytes, asked: list[bytes], host: str = "127.0.0.1") -> None:
        self._answer, self._asked = answer, asked
        self._server = socket.create_server((host, 0))
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        host, port = self._server.getsockname()
        return f"http://{host}:{port}"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(5)

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(60)
                self._asked.append(connection.recv(65_536))
                connection.sendall(self._answer)
