"""Pages of sources, scans and the use of versions over the real database: what they show, to whom, in how many queries."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from registry.access.roles import Actor
from registry.drift.models import Cluster, Connector, Finding, Scan, SchemaUse, Source, Topic
from registry.errors import BrokerUnavailable
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import RawClient

pytestmark = pytest.mark.requirement("CARD-3", "SCS-3")

QUERIES = json.loads((Path(__file__).parents[1] / "query_counts.json").read_text())
NASTY = '<script>alert("1")</script>'
ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
CAST = ("reader", "steward", "approver", "admin")
NOTHING_READ = "No topic of this subject was read from a cluster."
USAGE = "/ui/registries/dev/subjects/orders-value/usage"


def seen(response: Any) -> str:
    """What a person reads of a page: without markup, white space folded."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", response.content.decode())).split())


READ = {
    "nothing": False, "messages": 12, "bytes": 345, "seconds": 1.2, "bound_reached": "messages", "tombstones": 1,
    "topics_asked": 3, "topics_read": 1, "restarted": [], "gone": [], "left_out": {},
    "topics": [{"topic": "orders", "messages": 12}],
    "partitions": [{"topic": "orders", "partition": 0, "start": 0, "end": 12, "high": 12, "messages": 12}],
    "ids": [{"topic": "orders", "side": "value", "framing": "id", "schema_id": 1, "messages": 11}],
    "unframed": [{"topic": "orders", "side": "value", "hint": NASTY, "messages": 1}],
    "unreadable": [{"topic": NASTY, "reason": "no ACL"}],
    "expired": [{"topic": "orders", "partition": 0, "start": 0, "end": 7}],
    "schemas_not_used": [],
}  # fmt: skip
CONNECTOR = {
    **READ, "bound_reached": None, "unreadable": [], "expired": [],
    "connector": {
        "name": "shop", "state": "RUNNING", "worker": "connect:8083", "prefix": "shop", "converters": {"key": "Json", "value": "Json"},
        "tasks": [{"number": 0, "state": "FAILED", "worker": "connect:8083", "reason": f"PSQLException {NASTY}"}],
        "transforms": [{"name": "r", "type": "RegexRouter", "understood": False}], "skipped_operations": ["t"], "tombstones": True,
        "snapshot_mode": "initial", "not_understood": [NASTY],
    },
    "database": {"name": "shop", "version": "17.2", "wal_level": "logical", "cut": False},
    "slot": {"name": "shop", "active": False, "wal_status": "reserved", "lag_bytes": 2048, "safe_bytes": None},
    "tables": [
        {
            "table": "public.customers", "topic": "shop.public.customers", "partitions": 1, "identity": "default", "identity_case": "key",
            "identity_sentence": "Replica identity DEFAULT: before is the key.", "refused": [], "published": True, "row_filter": "",
            "events": {"c": 5, "u": 2, "d": 1, "r": 0, "t": 0}, "tombstones": 1, "key_changes": 0, "state": "drift",
            "known": ["table", "registered"], "behind": ["registered"], "key": ["id"], "left_out": [{"column": "secret", "why": "excluded"}],
            "changes": [{"change": "renamed", "column": "phone", "becomes": "mobile"}],
            "next_row": {"value": {"outcome": "not_checked", "reason": "the type is unknown"}, "key": {"outcome": "unchanged", "reason": ""}},
        },
    ],
    "tables_left_out": 0,
    "message_events": [{"topic": "shop.message", "messages": 3, "in_transaction": 1}],
}  # fmt: skip
ADVICE = {
    "nothing": False, "seconds": 0.1, "looked_at": {"connectors_not_read": []},
    "advice": [
        {"advice": "a", "sentence": "Compatibility NONE is not in use.", "followed": "yes", "findings": 0, "known_from": "the settings"},
        {"advice": "b", "sentence": "The production registry is READONLY.", "followed": "no", "findings": 2, "known_from": "the modes"},
    ],
}  # fmt: skip


@pytest.fixture
def content(person: Callable[[str], Actor]) -> dict[str, Any]:
    """A cluster with topics and a connector, a registry and a checkpoint as sources; scans; a version in use."""
    steward, dev = person("steward"), Registry.objects.get(name="dev")
    register_version(registry="dev", subject=SubjectName(".", "orders-value"), text=json.dumps(ORDER), by=steward)
    cluster = Cluster.objects.create(name=NASTY, bootstrap="localhost:9092", created_by="steward")
    kafka = Source.objects.create(
        registry=dev,
        kind="kafka",
        name="all",
        cluster=cluster,
        created_by="steward",
        include=["orders*"],
        every_seconds=300,
    )
    debezium = Source.objects.create(registry=dev, kind="debezium", name="shop", cluster=cluster, created_by="steward")
    Connector.objects.create(source=debezium, connect_url="http://localhost:8083", name="shop")
    rules = Source.objects.create(registry=dev, kind="registry", name="dev", created_by="steward")
    state = Source.objects.create(registry=dev, kind="state_store", name="/data/totals", created_by="steward")
    now = timezone.now()
    times = {"queued_by": "steward", "started_at": now - timedelta(seconds=2), "finished_at": now, "state": "done"}
    done = Scan.objects.create(source=kafka, read=READ, **times)
    Scan.objects.create(source=debezium, read=CONNECTOR, **times)
    Scan.objects.create(source=rules, read=ADVICE, **times)
    Scan.objects.create(source=state, **{**times, "state": "failed"}, error=f"No such folder {NASTY}")
    orders = Topic.objects.create(
        source=kafka, name="orders", partitions=2, retention_ms=7 * 86_400_000, positions={"0": 12, "1": 3}, read_from={"0": 0, "1": 0},
        strategies={"value": ["TopicName"]}, subjects={"value": ["orders-value"]}, messages=15, checked_at=now, read_at=now,
    )  # fmt: skip
    Topic.objects.create(source=kafka, name=NASTY, partitions=1, problem="Not authorized", checked_at=now)
    Topic.objects.create(source=kafka, name="gone", partitions=1, gone_at=now)
    version = SchemaVersion.objects.select_related("schema").get(subject__name="orders-value")
    SchemaUse.objects.create(
        topic=orders, side="value", framing="id", mark=str(version.schema.schema_id), schema_id=version.schema.schema_id, partition=0,
        messages=12, bytes=300, first_offset=0, last_offset=11, first_time=now - timedelta(days=2), last_time=now,
    )  # fmt: skip
    return {
        "cluster": cluster.pk, "kafka": kafka.pk, "debezium": debezium.pk, "rules": rules.pk, "state": state.pk,
        "scan": done.pk, "id": version.schema.schema_id,
    }  # fmt: skip


PAGES = {
    "sources": ("/ui/sources", ["State of Spark queries", "1 of 2 topics scanned", "1 unreadable", "every 5 minutes", "12 new messages in 1 of 3 topics"]),
    "source kafka": ("/ui/sources/{kafka}", ["orders-value", "by TopicName", "7 days", "0@12 1@3", "Not authorized", "reached its limit of messages", "7 messages expired"]),
    "source debezium": ("/ui/sources/{debezium}", ["Failed", "PSQLException", "2 KiB", "The slot has no reader", "the registered schema is behind", "phone renamed → mobile", "insert 5", "before is the key", "no limit", "RegexRouter (unknown)", "Value: not checked", "the type is unknown", "Key: no new version"]),
    "source registry": ("/ui/sources/{rules}", ["Not followed", "READONLY", "2 findings", "Followed"]),
    "source failed": ("/ui/sources/{state}", ["No such folder", "Findings of earlier scans don’t change"]),
    "source edit": ("/ui/sources/{kafka}/edit", ["orders*", "Bounds", "Patterns apply from the next scan"]),
    "source remove": ("/ui/sources/{kafka}/remove", ["You can’t undo this", "read positions of 2 topics"]),
    "cluster add": ("/ui/clusters/add", ["SASL mechanism", "SCHEMADESK_SECRET_NAME", "Test connection"]),
    "cluster edit": ("/ui/clusters/{cluster}/edit", ["from the next scan"]),
    "cluster remove": ("/ui/clusters/{cluster}/remove", ["2 sources read it. Remove the sources first."]),
    "add debezium": ("/ui/sources/add?kind=debezium", ["Kafka Connect", "Database"]),
    "add registry": ("/ui/sources/add?kind=registry", ["production advice"]),
    "add checkpoints": ("/ui/sources/discover", ["Find checkpoints", "Folder or address", "Below"]),
    "usage": (USAGE, ["Version 1", "12 messages", "80.0 %", "It is the newest version", "Can’t be retired", "Check the clusters now", "orders was last scanned"]),
    "decode": ("/ui/decode", ["Paste a message"]),
}  # fmt: skip
FORMS = ("cluster add", "add debezium", "add registry", "decode")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_is_there_in_a_fixed_number_of_queries(
    look: Callable[[str], Client], content: dict[str, Any], page: str, django_assert_num_queries: Any
) -> None:
    address, sentences = PAGES[page]
    client = look("steward")
    with django_assert_num_queries(QUERIES[f"drift: {page}"]):
        response = client.get(address.format(**content))
    assert response.status_code == 200
    assert "default-src 'none'" in response["Content-Security-Policy"]
    text = seen(response)
    assert [word for word in sentences if word not in text] == []
    raw = response.content.decode()
    assert raw.count("<h1") == 1
    assert NASTY not in raw


@pytest.mark.parametrize("page", PAGES)
def test_a_stranger_sees_nothing(look: Callable[[str], Client], content: dict[str, Any], page: str) -> None:
    address = PAGES[page][0].format(**content)
    assert RawClient().get(address).status_code == 302
    if not page.startswith("add "):  # a form that anybody with an account may look at; its button is off
        assert look("stranger").get(address).status_code == 403


@pytest.mark.parametrize("name", CAST)
def test_who_may_change_what_reads_why_not(look: Callable[[str], Client], content: dict[str, Any], name: str) -> None:
    client, may = look(name), name in ("steward", "admin")
    for address in (
        "/ui/sources/{kafka}",
        "/ui/sources/{kafka}/edit",
        "/ui/sources/{kafka}/remove",
        "/ui/clusters/add",
    ):
        text = seen(client.get(address.format(**content)))
        assert ("You need the" in text) != may, address
    for address in ("/ui/sources/{kafka}/edit", "/ui/sources/{kafka}/remove", "/ui/clusters/{cluster}/remove"):
        status = client.post(address.format(**content), {"every_seconds": ""}).status_code
        assert (status == 403) != may, address


MISSING = (
    "/ui/sources/999", "/ui/sources/999/edit", "/ui/sources/999/remove", "/ui/clusters/999/edit", "/ui/clusters/999/remove",
    "/ui/scans/999/progress", "/ui/sources/{kafka}?scan=999", "/ui/sources/{debezium}?scan={scan}",
    "/ui/registries/dev/subjects/none/usage", "/ui/registries/none/subjects/orders-value/usage", "/ui/sources/" + "9" * 30,
)  # fmt: skip


@pytest.mark.parametrize("address", MISSING)
def test_what_is_not_there_is_a_page_that_says_so(
    look: Callable[[str], Client], content: dict[str, Any], address: str
) -> None:
    response = look("admin").get(address.format(**content))
    assert response.status_code == 404
    assert "<h1" in response.content.decode()


def test_topics_are_filtered_and_paged_and_take_no_more_queries(
    look: Callable[[str], Client], content: dict[str, Any], django_assert_num_queries: Any
) -> None:
    Topic.objects.bulk_create(Topic(source_id=content["kafka"], name=f"many-{n:03}", partitions=1) for n in range(120))
    client, address = look("steward"), f"/ui/sources/{content['kafka']}"
    with django_assert_num_queries(QUERIES["drift: source kafka"]):
        first = seen(client.get(address))
    assert "many-000" in first and "many-119" not in first
    assert "many-119" in seen(client.get(f"{address}?offset=100"))
    assert "many-119" in seen(client.get(f"{address}?q=MANY-119"))
    unreadable = seen(client.get(f"{address}?show=problem"))
    assert "Not authorized" in unreadable and "many-000" not in unreadable
    assert "No matching topics" in seen(client.get(f"{address}?q=nothing-like-it"))
    assert client.get(f"{address}?offset={'9' * 40}").status_code == 200
    assert client.get(f"{address}?show=zz").status_code == 422
    part = client.get(f"{address}?q=many-119", headers={"hx-request": "true", "hx-target": "topics"}).content.decode()
    assert "many-119" in part and "<html" not in part


def test_more_sources_take_no_more_queries(
    look: Callable[[str], Client], content: dict[str, Any], django_assert_num_queries: Any
) -> None:
    for number in range(20):
        more = Cluster.objects.create(name=f"c{number}", bootstrap=f"host-{number}:9092", created_by="steward")
        source = Source.objects.create(
            registry=Registry.objects.get(name="dev"),
            kind="kafka",
            name=f"s{number}",
            cluster=more,
            created_by="steward",
        )
        Scan.objects.create(source=source, queued_by="steward")
    client = look("steward")
    with django_assert_num_queries(QUERIES["drift: sources"]):
        assert client.get("/ui/sources").status_code == 200


def test_a_running_scan_is_watched_cancelled_and_over(look: Callable[[str], Client], content: dict[str, Any]) -> None:
    now = timezone.now()
    scan = Scan.objects.create(
        source_id=content["kafka"], queued_by="steward", state="running", started_at=now, lease_until=now, phase="judging",
        progress_done=2, progress_total=5, tag="t",
    )  # fmt: skip
    watched = {"hx-request": "true", "hx-target": "progress"}
    address = f"/ui/scans/{scan.pk}"
    reader = look("reader").get(f"{address}/progress", headers=watched)
    assert "hx-trigger" in reader.content.decode() and "HX-Refresh" not in reader
    assert "to start scans" in seen(reader)
    assert look("reader").post(f"{address}/cancel").status_code == 403
    steward = look("steward")
    page = seen(steward.get(f"/ui/sources/{content['kafka']}"))
    assert "judging 2 of 5" in page and "Cancel the scan" in page and f"Scan {scan.pk} is running." in page
    assert "Scan cancelled" in seen(steward.post(f"{address}/cancel", follow=True))
    scan.refresh_from_db()
    assert scan.state == "cancelled"
    assert steward.get(f"{address}/progress", headers=watched)["HX-Refresh"] == "true"
    assert "HX-Refresh" not in steward.get(f"{address}/progress")
    assert "can be cancelled" in seen(steward.post(f"{address}/cancel", follow=True))


def test_an_older_scan_has_its_own_address(look: Callable[[str], Client], content: dict[str, Any]) -> None:
    newer = Scan.objects.create(source_id=content["kafka"], queued_by="steward", state="failed", error="away")
    text = seen(look("reader").get(f"/ui/sources/{content['kafka']}?scan={content['scan']}"))
    assert "This is an older scan" in text and f"Scan {content['scan']} is done" in text
    assert f"Scan {newer.pk} is done" not in text


def test_a_source_is_changed_and_removed(look: Callable[[str], Client], content: dict[str, Any]) -> None:
    steward, address = look("steward"), f"/ui/sources/{content['kafka']}"
    form = {"include": "orders\r\n payments-* \r\n", "exclude": "", "mode": "tail", "every_seconds": "3600", "context": "", "tail_messages": "50", "keep_samples": "no"}  # fmt: skip
    assert "Saved." in seen(steward.post(f"{address}/edit", form, follow=True))
    source = Source.objects.get(pk=content["kafka"])
    assert (source.include, source.exclude, source.mode, source.every_seconds) == (
        ["orders", "payments-*"],
        [],
        "tail",
        3600,
    )
    assert (source.tail_messages, source.keep_samples) == (50, False)
    refused = steward.post(f"{address}/edit", {**form, "tail_messages": "many"})
    assert refused.status_code == 422 and "Enter a whole number" in seen(refused)
    assert steward.post(f"{address}/edit", {**form, "include": "a b"}).status_code == 422
    running = Scan.objects.create(source=source, queued_by="s", state="running", lease_until=timezone.now())
    conflict = steward.post(f"{address}/remove")
    assert conflict.status_code == 409 and "is running" in seen(conflict)
    running.delete()
    assert "Source removed." in seen(steward.post(f"{address}/remove", follow=True))
    assert not Source.objects.filter(pk=content["kafka"]).exists()


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"bootstrap": "nowhere"}, "host:port"),
        ({"bootstrap": "127.0.0.1:1"}, "loopback"),
        (
            {"security_protocol": "SASL_SSL", "username": "u", "secret": "none", "sasl_mechanism": "PLAIN"},
            "not found. Put it in a file",
        ),
        ({"security_protocol": "SASL_SSL"}, "needs a mechanism"),
        ({"security_protocol": "SSL", "ca_pem": "no certificate"}, "PEM certificates"),
        ({"security_protocol": NASTY}, "Select a valid choice"),
    ],
)
@pytest.mark.parametrize("do", ["test", "keep"])
def test_a_cluster_that_cannot_be_is_refused_with_the_reason(
    look: Callable[[str], Client], registries: None, form: dict[str, str], sentence: str, do: str
) -> None:
    body = {"name": "c", "bootstrap": "broker.example.com:9093", "security_protocol": "PLAINTEXT", **form, "do": do}
    response = look("steward").post("/ui/clusters/add", body)
    assert response.status_code == 422
    assert sentence in seen(response)
    assert NASTY not in response.content.decode()
    assert Cluster.objects.count() == 0


def test_a_tested_cluster_is_not_kept(
    look: Callable[[str], Client], registries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Answer:
        class metadata:  # noqa: N801 - an attribute
            brokers = {1: None, 2: None}
            topics = {"orders": None, "__consumer_offsets": None}

    monkeypatch.setattr("registry.drift.services.sources.connect", lambda row: Answer)
    body = {"name": "c", "bootstrap": "broker.example.com:9093", "security_protocol": "PLAINTEXT", "do": "test"}
    text = seen(look("steward").post("/ui/clusters/add", body))
    assert "Found 2 brokers and 1 topic. Nothing was saved." in text
    assert Cluster.objects.count() == 0
    assert look("reader").post("/ui/clusters/add", body).status_code == 403


def test_usage_asks_the_clusters_only_on_request(
    look: Callable[[str], Client], content: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    clusters = []

    def away(cluster: Cluster) -> None:
        clusters.append(cluster.name)
        raise BrokerUnavailable(f"No broker answers for {NASTY}")

    monkeypatch.setattr("registry.drift.usage.retirement.admin_of", away)
    reader = look("reader")
    assert "Check the clusters now" in seen(reader.get(USAGE)) and clusters == []
    response = reader.get(f"{USAGE}?ask=1", headers={"hx-request": "true", "hx-target": "usage"})
    assert clusters == [NASTY] and "Some sources couldn’t be checked" in seen(response)
    assert NOTHING_READ in seen(response) and "were read from the clusters" not in seen(response)
    assert NASTY not in response.content.decode() and "<html" not in response.content.decode()


def test_usage_without_any_scan_is_not_known_and_never_green(
    look: Callable[[str], Client], content: dict[str, Any]
) -> None:
    reader, never = look("reader"), "No scan has read a topic of this subject."
    assert never not in seen(reader.get(USAGE))
    Topic.objects.update(read_at=None)
    assert never in seen(reader.get(USAGE)), "that its offsets were asked for isn't reading"
    Source.objects.all().delete()
    response = reader.get(USAGE)
    assert "No topics of this subject are scanned" in seen(response) and never in seen(response)
    assert "tone-ok" not in response.content.decode()
    asked = seen(reader.get(f"{USAGE}?ask=1"))
    assert NOTHING_READ in asked and "just now" not in asked


def test_the_subject_page_leads_to_its_usage(
    look: Callable[[str], Client], content: dict[str, Any], person: Callable[[str], Actor]
) -> None:
    register_version(registry="dev", subject=SubjectName(".shop", "a/b"), text=json.dumps(ORDER), by=person("steward"))
    reader = look("reader")
    assert f'href="{USAGE}"' in reader.get("/ui/registries/dev/subjects/orders-value/").content.decode()
    page = reader.get("/ui/registries/dev/subjects/%3A.shop%3Aa%2Fb/").content.decode()
    link = re.search(r'href="([^"]+usage)"', page)
    assert link and reader.get(link[1]).status_code == 200


DECODED = {
    "framed": ("00{id:08x}0e", ["schema id", "orders-value version 1", "7", "Avro"]),
    "unknown id": ("0000ffffff00", ["has no schema with schema id"]),
    "no mark": ("ff00", ["starts with byte 0xff"]),
    "json": ('{{"a": "<script>alert(1)</script>"}}', ["The message is JSON", "alert(1)"]),
    "cut short": ("00{id:08x}", ["schema id"]),
}


@pytest.mark.parametrize("case", DECODED)
def test_a_pasted_message_is_explained(look: Callable[[str], Client], content: dict[str, Any], case: str) -> None:
    text, sentences = DECODED[case]
    body = {"registry": "dev", "message": text.format(id=content["id"]), "side": "value", "encoding": "auto"}
    response = look("reader").post("/ui/decode", body)
    assert response.status_code == 200
    assert [word for word in sentences if word not in seen(response)] == []
    assert "<script>alert" not in response.content.decode()


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"message": ""}, "Paste a message"),
        ({"message": "z!"}, "not a hexadecimal digit"),
        ({"message": "00", "encoding": NASTY}, "The encoding must be one of"),
        ({"message": "00", "headers": "nothing"}, "Line 1 of the headers"),
        ({"message": "00", "registry": "none"}, "none"),
        ({"message": "00", "context": "a:b"}, "context"),
    ],
)
def test_what_is_no_message_is_refused_with_the_reason(
    look: Callable[[str], Client], content: dict[str, Any], form: dict[str, str], sentence: str
) -> None:
    response = look("reader").post("/ui/decode", {"registry": "dev", **form})
    assert response.status_code in (404, 422)
    assert sentence in seen(response)
    assert NASTY not in response.content.decode()


def test_nothing_of_a_pasted_message_is_kept(look: Callable[[str], Client], content: dict[str, Any]) -> None:
    before = Finding.objects.count(), Scan.objects.count()
    look("reader").post("/ui/decode", {"registry": "dev", "message": "00"})
    assert (Finding.objects.count(), Scan.objects.count()) == before


def test_first_run_says_what_to_do(look: Callable[[str], Client], registries: None) -> None:
    text = seen(look("steward").get("/ui/sources"))
    assert "No sources yet" in text and "Connect a cluster" in text


def test_a_registry_and_a_connector_are_added_here(look: Callable[[str], Client], content: dict[str, Any]) -> None:
    steward = look("steward")
    response = steward.post("/ui/sources/add", {"kind": "registry", "registry": "prod", "every_seconds": "3600"})
    added = Source.objects.get(kind="registry", registry__name="prod")
    assert response["Location"] == f"/ui/sources/{added.pk}"
    assert (added.every_seconds, added.scans.count()) == (3600, 1)
    body = {
        "kind": "debezium",
        "registry": "dev",
        "name": "n",
        "cluster": NASTY,
        "connect_url": "file:///etc/passwd",
        "connector": "x",
    }
    for changes in ({}, {"database_port": "many"}, {"cluster": "none"}, {"connect_url": ""}):
        refused = steward.post("/ui/sources/add", {**body, **changes})
        assert refused.status_code in (404, 422), changes
        assert NASTY not in refused.content.decode()
    assert look("reader").post("/ui/sources/add", body).status_code == 403
    assert not Source.objects.filter(name="n").exists()
