"""Checkpoints in an object store through every door: a real server on this machine, judged, signed in to, and hostile."""

from __future__ import annotations

import html
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from registry.access.roles import Actor
from registry.audit.models import AuditEvent
from registry.checkpoints import Bounds, object_store, read_checkpoint
from registry.drift import services
from registry.drift.models import Finding, Scan, Source
from registry.drift.scan.runner import perform_scan
from registry.drift.selectors import get_source
from registry.errors import (
    AddressRefused,
    InvalidCheckpoint,
    InvalidInput,
    InvalidSecret,
    InvalidSource,
    NotAllowed,
    RemoteUnavailable,
    SchemadeskError,
)
from registry.observations import StateScan
from registry.streams.models import CheckpointStore, StateCheck, StateVariable, StreamQuery
from registry.streams.services import check_document, checked_store, checkpoint_location, discover
from tests.checkpoints.test_object_store import FIXTURES, _client, lake

ADDRESS = "s3://lake/checkpoints/team/customer_totals"
KEY = "the-secret-key"  # what no table, log or page may show
PLAN = {"variables": [{"name": "totals", "value_schema": "orders BIGINT"}]}
pytestmark = pytest.mark.requirement("DBX-1")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Two queries, one that isn't allowed, and a broken one."""
    with lake(("customer_totals", "aggregation_hdfs")) as url:
        client = _client(url)
        client.put_object(Bucket="lake", Key="checkpoints/broken/metadata", Body=b"{")
        client.put_object(Bucket="lake", Key="checkpoints/broken/offsets/0", Body=b"no log")
        yield url


@pytest.fixture
def allowed(server: str, settings: Any, tmp_path: Path) -> dict[str, str]:
    """The fields of the store, with settings under which it may be read."""
    settings.CHECKPOINT_PROTOCOLS, settings.CHECKPOINT_ADDRESSES = ("file", "s3"), ("s3://lake/checkpoints",)
    settings.CHECKPOINT_ROOTS, settings.SPARK_REMOTE = [FIXTURES], ""
    settings.EGRESS_ALLOW, settings.SECRETS_DIR = (server.removeprefix("http://"),), tmp_path
    (tmp_path / "lake").write_text(f"{server} {KEY}")
    (tmp_path / "other").write_text(f"https://s3.example.com {KEY}")
    return {"endpoint": server, "region": "eu-central-1", "access_key_id": "reader", "secret": "lake"}


@pytest.fixture
def steward(person: Callable[[str], Actor]) -> Actor:
    """Who may add sources."""
    return person("steward")


def seen(response: Any) -> str:
    """What a person reads of a page: without markup, white space folded."""
    text = re.sub(r"</?(?:b|bdi|code|svg|use)\b[^>]*>", "", response.content.decode())
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def added(by: Actor, store: dict[str, str], address: str = ADDRESS) -> int:
    return services.add_source(registry="dev", kind="state_store", name=address, store=store, by=by)


def scanned(source: int) -> Scan:
    made = Scan.objects.create(source_id=source, queued_by="tests")
    assert perform_scan(made.pk) == "done", Scan.objects.get(pk=made.pk).error
    made.refresh_from_db()
    return made


@pytest.mark.django_db(transaction=True)
@pytest.mark.requirement("CARD-3", "DBX-6")
def test_an_address_is_added_scanned_and_judged_without_its_rows(allowed: dict[str, str], steward: Actor) -> None:
    number = added(steward, allowed, "s3a://lake/checkpoints/team/customer_totals/")
    info = get_source(number)
    assert info.name == ADDRESS
    assert info.store is not None
    assert vars(info.store) == allowed
    read = scanned(number).read
    assert read["rows_problem"].startswith(
        "rows not readable on this server: the Spark server doesn't open s3: addresses"
    )
    assert {variable["variable"] for variable in read["variables"]} >= {"totals", "by_status"}
    assert StreamQuery.objects.get().path == ADDRESS
    assert set(StateVariable.objects.filter(removed_at=None).values_list("rows_problem", flat=True)) == {
        read["rows_problem"]
    }
    rules = set(Finding.objects.values_list("rule", flat=True))
    assert {"RENAME_SUSPECTED", "STATE_SCHEMA_EVOLVED"} <= rules
    # What the files tell is all that a scan can see here, so what is gone from them is gone.
    Finding.objects.filter(rule="RENAME_SUSPECTED").update(fingerprint="of another time")
    scanned(number)
    scanned(number)
    assert Finding.objects.get(fingerprint="of another time").state == "resolved"


@pytest.mark.django_db(transaction=True)
def test_the_secret_is_in_no_table_log_or_page(
    allowed: dict[str, str], steward: Actor, look: Callable[[str], Client], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    number = added(steward, allowed)
    scanned(number)
    page = look("reader").get(f"/ui/sources/{number}")
    text = seen(page)
    assert f"{allowed['endpoint']}, eu-central-1" in text
    assert "as reader, secret lake" in text
    assert "Rows not readable on this server: the Spark server doesn't open s3: addresses" in text
    query = StreamQuery.objects.get()
    variable = StateVariable.objects.get(name="totals")
    assert "Rows not readable" in seen(look("reader").get(f"/ui/queries/{query.pk}/variables/{variable.pk}"))
    (event,) = AuditEvent.objects.filter(table="streams_checkpointstore")
    assert (event.operation, event.actor, event.after["secret"]) == ("INSERT", "steward", "lake")
    stored = [str(vars(row)) for model in (CheckpointStore, Source, Scan, AuditEvent) for row in model.objects.all()]
    assert not any(KEY in item for item in [*stored, caplog.text, page.content.decode()])


@pytest.mark.django_db(transaction=True)
def test_rows_are_asked_for_where_spark_opens_the_address_spelled_as_it_opens_it(
    allowed: dict[str, str], steward: Actor, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SPARK_REMOTE, settings.CHECKPOINT_SPARK_ROOTS = "sc://127.0.0.1:1", ("/data", "s3a://lake/checkpoints")
    specs: list[StateScan] = []
    # The package has a function of its module's name.
    monkeypatch.setattr(import_module("registry.pipeline.run"), "run", lambda spec, **_: specs.append(spec) or [])
    read = scanned(added(steward, allowed)).read
    (spec,) = specs
    assert (spec.path, read["rows_problem"]) == ("s3a://lake/checkpoints/team/customer_totals", "")
    assert spec.bounds.max_messages > 10**9  # a state of more rows than a topic scan reads is no bound


REFUSED: list[tuple[str, dict[str, str], type[SchemadeskError], str]] = [
    ("s3://lake/secret/query", {}, InvalidCheckpoint, "outside the allowed folders"),
    ("s3://lake/checkpoints2", {}, InvalidCheckpoint, "outside the allowed folders"),
    ("s3://other/checkpoints/q", {}, InvalidCheckpoint, "outside the allowed folders"),
    ("s3://lake/checkpoints/../secret/query", {}, InvalidCheckpoint, "'..'"),
    ("s3://key:word@lake/checkpoints", {}, InvalidCheckpoint, "has no valid bucket"),
    ("s3://lake/checkpoints/a?versionId=1", {}, InvalidCheckpoint, "'?'"),
    ("filecache::s3://lake/checkpoints/q", {}, InvalidCheckpoint, "chained"),
    ("s3://lake/checkpoints/a::b", {}, InvalidCheckpoint, "chained"),
    ("memory://lake/checkpoints/q", {}, InvalidCheckpoint, "checkpoints at memory: addresses are not allowed"),
    ("http://127.0.0.1/checkpoints/q", {}, InvalidCheckpoint, "checkpoints at http: addresses are not allowed"),
    ("s3://lake/checkpoints/nothing", {}, InvalidCheckpoint, "doesn't exist"),
    ("s3://lake/checkpoints/team", {}, InvalidCheckpoint, "is not a checkpoint"),
    (str(FIXTURES / "customer_totals"), {}, InvalidInput, "A local folder has no object store"),
    (ADDRESS, {"endpoint": ""}, InvalidInput, "The address must be http"),
    (ADDRESS, {"endpoint": "ftp://127.0.0.1"}, InvalidInput, "The address must be http"),
    (ADDRESS, {"endpoint": "https://me:word@s3.example.com"}, InvalidInput, "contains a user name"),
    (ADDRESS, {"endpoint": "http://127.0.0.1:9/lake"}, InvalidInput, "Put the bucket and folder in the address"),
    (ADDRESS, {"endpoint": "http://127.0.0.1:9", "access_key_id": "", "secret": ""}, AddressRefused, "loopback"),
    (ADDRESS, {"endpoint": "http://169.254.169.254", "access_key_id": "", "secret": ""}, AddressRefused, "metadata"),
    (ADDRESS, {"endpoint": "http://0x7f.1", "access_key_id": "", "secret": ""}, InvalidInput, "number"),
    (ADDRESS, {"region": "eu central\r\nX-Evil: 1"}, InvalidInput, "A region may contain only lowercase letters"),
    (ADDRESS, {"access_key_id": "a b"}, InvalidInput, "An access key id may have"),
    (ADDRESS, {"access_key_id": ""}, InvalidInput, "Give both"),
    (ADDRESS, {"secret": ""}, InvalidInput, "Give both"),
    (ADDRESS, {"secret": "missing"}, InvalidSecret, "Secret 'missing' not found"),
    (ADDRESS, {"secret": "other"}, InvalidSecret, "bound to another host"),
    (ADDRESS, {"secret": "../lake"}, InvalidInput, "A secret's name"),
    (ADDRESS, {"anon": "true"}, InvalidInput, "has no setting 'anon'"),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("address", "change", "error", "says"), REFUSED)
def test_what_may_not_be_read_is_refused_at_every_channel(
    allowed: dict[str, str], steward: Actor, address: str, change: dict[str, str], error: type[Exception], says: str
) -> None:
    store = allowed | change
    with pytest.raises(error, match=re.escape(says)):
        added(steward, store, address)
    with pytest.raises(error, match=re.escape(says)):
        check_document(checkpoint=address, plan=PLAN, store=store, by=steward)
    if not says.startswith("is not a checkpoint"):  # a folder of checkpoints is what is searched
        with pytest.raises(error, match=re.escape(says)):
            discover(path=address, registry="dev", store=store, by=steward)
    assert not (Source.objects.exists() or CheckpointStore.objects.exists() or StateCheck.objects.exists())


@pytest.mark.django_db
def test_without_the_protocol_without_an_endpoint_and_for_other_kinds(
    allowed: dict[str, str], steward: Actor, settings: Any
) -> None:
    with pytest.raises(InvalidInput, match="Give its endpoint"):
        services.add_source(registry="dev", kind="state_store", name=ADDRESS, by=steward)
    with pytest.raises(InvalidInput, match="Give its endpoint"):
        check_document(checkpoint=ADDRESS, plan=PLAN, by=steward)
    with pytest.raises(InvalidSource, match="has no object store"):
        services.add_source(registry="dev", kind="registry", name="", store=allowed, by=steward)
    settings.CHECKPOINT_PROTOCOLS = ("file",)
    with pytest.raises(InvalidCheckpoint, match="SCHEMADESK_CHECKPOINT_PROTOCOLS"):
        added(steward, allowed)


@pytest.mark.django_db
def test_a_bucket_that_is_absent_is_said(allowed: dict[str, str], steward: Actor, settings: Any) -> None:
    settings.CHECKPOINT_ADDRESSES = ("s3://no-such-bucket",)
    with pytest.raises(InvalidCheckpoint, match="folder s3://no-such-bucket/q doesn't exist"):
        added(steward, allowed, "s3://no-such-bucket/q")


@pytest.mark.django_db
def test_who_may_not_add_sources_connects_to_nothing(
    allowed: dict[str, str], person: Callable[[str], Actor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("registry.streams.services.open_store", lambda store: pytest.fail("it was connected to"))
    reader = person("reader")
    for call in (
        lambda: added(reader, allowed),
        lambda: check_document(checkpoint=ADDRESS, plan=PLAN, store=allowed, by=reader),
        lambda: discover(path=ADDRESS, registry="dev", store=allowed, by=reader),
    ):
        with pytest.raises(NotAllowed):
            call()


@pytest.mark.django_db
@pytest.mark.requirement("DBX-4")
def test_the_check_of_a_plan_finds_the_store_of_the_source(
    allowed: dict[str, str], steward: Actor, api: Callable[[str], Client], look: Callable[[str], Client]
) -> None:
    client = api("steward")

    def ask(**more: Any) -> Any:
        body = json.dumps({"checkpoint": ADDRESS, "plan": PLAN} | more)
        return client.post("/api/v1/state-checks", body, content_type="application/json")

    assert ask().status_code == 422
    with_store = ask(store=allowed)
    assert with_store.status_code == 201
    number = added(steward, allowed)
    without_store = ask()
    assert without_store.status_code == 201
    assert without_store.json()["report"] == with_store.json()["report"]
    assert any(
        "rows not readable on this server: the Spark server" in note for note in without_store.json()["report"]["notes"]
    )
    page = look("steward")
    fields = {f"{'store_' if name == 'secret' else ''}{name}": value for name, value in allowed.items()}
    loaded = page.post("/ui/state-checks/new", {"path": ADDRESS, "plan": "", "do": "load", **fields})
    assert '"by_status"' in html.unescape(loaded.content.decode())
    sent = page.post("/ui/state-checks/new", {"checkpoint": ADDRESS, "plan": json.dumps(PLAN), "do": "check"})
    assert "rows not readable on this server" in seen(page.get(sent["Location"]))
    # The same address in two stores: which one is meant has to be said.
    row = Source.objects.get(pk=number)
    again = Source.objects.create(
        registry=services.sources.get_registry("prod"), kind="state_store", name=row.name, created_by="tests"
    )
    CheckpointStore.objects.create(source=again, endpoint="https://s3.example.com")
    assert "in different object stores" in ask().json()["message"]
    assert ask(store=allowed).status_code == 201


@pytest.mark.django_db
@pytest.mark.requirement("DBX-4")
def test_the_command_reads_an_object_store_without_the_database(
    allowed: dict[str, str], tmp_path: Path, settings: Any
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(PLAN))

    def run(address: str, *more: str) -> tuple[int, str]:
        out = StringIO()
        try:
            call_command("check_state", address, str(plan), *more, stdout=out)
        except SystemExit as end:
            return int(end.code or 0), out.getvalue()
        except CommandError as error:
            return error.returncode, str(error)
        return 0, out.getvalue()

    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in allowed.items()]
    code, text = run("s3://lake/secret/query", *arguments)  # who may start commands names the root
    assert (code, "totals (value)" in text) == (2, True), text
    assert "Not checked: whether removed fields of totals hold values" in text
    assert run(ADDRESS)[0] == 2
    assert "Give its --endpoint too" in run(ADDRESS, "--secret=lake")[1]
    assert "bound to another host" in run(ADDRESS, *arguments, "--secret=other")[1]
    settings.EGRESS_ALLOW = ()
    assert "loopback" in run(ADDRESS, *arguments)[1]
    settings.CHECKPOINT_PROTOCOLS = ("file",)
    assert "SCHEMADESK_CHECKPOINT_PROTOCOLS" in run(ADDRESS, *arguments)[1]


@pytest.mark.django_db
def test_checkpoints_are_found_and_each_has_its_form(
    allowed: dict[str, str], look: Callable[[str], Client], steward: Actor
) -> None:
    client = look("steward")
    assert "Object store" in seen(client.get("/ui/sources/discover"))
    fields = {f"{'store_' if name == 'secret' else ''}{name}": value for name, value in allowed.items()}
    search = {"path": "s3://lake/checkpoints", "registry": "dev", "every_seconds": "", **fields}
    page = client.post("/ui/sources/discover", search)
    text = seen(page)
    assert "3 checkpoints in" in text
    assert "s3://lake/checkpoints/team/aggregation_hdfs" in text
    assert "s3://lake/checkpoints/broken" in text
    (form,) = [
        markup
        for markup in re.findall(r"<form.*?</form>", page.content.decode(), re.DOTALL)
        if f'value="{ADDRESS}"' in markup
    ]
    sent = dict(re.findall(r'<input\s+type="hidden"\s+name="([a-z_]+)"\s+value="([^"]*)"', form))
    response = client.post("/ui/sources/add", sent)
    assert response.status_code == 302
    assert CheckpointStore.objects.get().secret == "lake"
    assert "Already a source" in seen(client.post("/ui/sources/discover", search))
    empty = client.post("/ui/sources/discover", search | {"path": "s3://lake/checkpoints/nothing"})
    assert (empty.status_code, "doesn't exist" in seen(empty)) == (422, True)
    assert look("reader").post("/ui/sources/discover", search).status_code == 403
    nasty = '"><script>alert(1)</script>'
    response = client.post("/ui/sources/discover", search | {"path": nasty, "region": nasty})
    assert (response.status_code, b"<script>alert" in response.content) == (422, False)


@pytest.mark.django_db
def test_folders_are_searched_too_and_a_bound_is_said(
    allowed: dict[str, str], look: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = look("steward")
    search = {"path": str(FIXTURES), "registry": "dev", "every_seconds": ""}
    text = seen(client.post("/ui/sources/discover", search))
    assert "join_rocksdb" in text
    assert "transformWithState" in text
    monkeypatch.setattr("registry.streams.services.SEARCH", Bounds(checkpoints=2))
    assert "the search stopped at its limit: more than 2 checkpoints" in seen(
        client.post("/ui/sources/discover", search)
    )


@pytest.mark.django_db
def test_how_a_store_is_reached_can_change_and_is_looked_at_first(
    allowed: dict[str, str],
    person: Callable[[str], Actor],
    api: Callable[[str], Client],
    look: Callable[[str], Client],
) -> None:
    number = added(person("steward"), allowed)
    client = api("steward")

    def patch(store: dict[str, str]) -> Any:
        body = json.dumps({"store": store})
        return client.patch(f"/api/v1/sources/{number}", body, content_type="application/json")

    assert patch(allowed | {"access_key_id": "another"}).json()["store"]["access_key_id"] == "another"
    refused = patch(allowed | {"secret": "other"})
    assert (refused.status_code, refused.json()["error"]) == (422, "InvalidSecret")
    assert CheckpointStore.objects.get().secret == "lake"
    page = look("steward")
    assert 'value="another"' in page.get(f"/ui/sources/{number}/edit").content.decode()
    fields = {f"{'store_' if name == 'secret' else ''}{name}": value for name, value in allowed.items()}
    assert page.post(f"/ui/sources/{number}/edit", {"every_seconds": "", **fields}).status_code == 302
    assert CheckpointStore.objects.get().access_key_id == "reader"
    with pytest.raises(NotAllowed):
        services.update_source(source_id=number, store=allowed, by=person("reader"))


def test_a_listing_without_an_end_is_left(
    allowed: dict[str, str], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (
        b'<?xml version="1.0"?><ListBucketResult><Name>lake</Name><IsTruncated>true</IsTruncated>'
        b"<NextContinuationToken>more</NextContinuationToken><Contents><Key>checkpoints/q/x</Key><Size>1</Size>"
        b"<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>e</ETag></Contents></ListBucketResult>"
    )
    listing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(page) + page
    requests: list[bytes] = []
    with _Answering(listing, requests) as url:
        settings.EGRESS_ALLOW = (url.removeprefix("http://"),)
        for seconds in (1.5, 6, 24, 96):  # on a busy machine the first may be over before much was asked
            requests.clear()
            monkeypatch.setattr(object_store, "CALL_SECONDS", seconds)
            location = checkpoint_location("s3://lake/checkpoints/q", checked_store({"endpoint": url}))
            with pytest.raises(RemoteUnavailable, match=rf"within {seconds:g} s"):
                read_checkpoint(location.path, location.roots, store=location.store)
            if len(requests) > 3:
                return
    pytest.fail(f"the listing was given up after {len(requests)} pages in {seconds} s")


class _Answering:
    """A server that gives every request one answer and keeps what was asked."""

    def __init__(self, response: bytes, requests: list[bytes]) -> None:
        self._answer, self._asked = response, requests
        self._server = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        return f"http://127.0.0.1:{self._server.getsockname()[1]}"

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
