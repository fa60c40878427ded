"""One flow with a row of every kind, for the tests of the lineage and of its page."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group
from django.utils import timezone

from registry.access.models import Ownership
from registry.access.roles import Actor
from registry.drift.models import Cluster, Connector, Finding, Scan, SchemaUse, Source, Topic
from registry.streams.models import QueryInput, StateVariable, StreamQuery
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.services import register_version
from registry.subjects.usage.clients import declare_client
from registry.subjects.versions.qualified_names import SubjectName


def schema(*fields: str) -> str:
    listed = [{"name": name, "type": ["null", "string"], "default": None} for name in fields]
    return json.dumps({"type": "record", "name": "Order", "fields": listed})


def schema_id(subject: str, version: int) -> int:
    return SchemaVersion.objects.get(subject__name=subject, version=version).schema.schema_id


def use(topic: Topic, schema: int, *, days: float = 0) -> SchemaUse:
    when = timezone.now() - timedelta(days=days)
    return SchemaUse.objects.create(
        topic=topic, side="value", framing="id", mark=str(schema), schema_id=schema, partition=0, messages=10, bytes=100,
        first_offset=0, last_offset=9, first_time=when, last_time=when,
    )  # fmt: skip


def make_flow(system: Actor) -> dict[str, Any]:
    """`public.orders` → connector `shop` → topic `orders` → `orders-value` → query `totals` with its state, `billing`.

    `payments` has no scanned message: its subject is known by name. `checkout` writes `orders-value`.
    """
    dev, now = Registry.objects.get(name="dev"), timezone.now()
    for fields in ("a", "ab", "abc"):
        register_version(registry="dev", subject=SubjectName(".", "orders-value"), text=schema(*fields), by=system)
    register_version(registry="dev", subject=SubjectName(".", "payments-value"), text=schema("paid"), by=system)
    register_version(registry="dev", subject=SubjectName(".", "alone-value"), text=schema("alone"), by=system)
    cluster = Cluster.objects.create(name="main", bootstrap="127.0.0.1:1", created_by="tests")
    shop = Source.objects.create(registry=dev, kind="debezium", name="shop", cluster=cluster, created_by="tests")
    Connector.objects.create(source=shop, connect_url="http://127.0.0.1:8083", name="shop")
    Scan.objects.create(source=shop, state="done", queued_by="tests")
    kafka = Source.objects.create(registry=dev, kind="kafka", name="all", cluster=cluster, created_by="tests")
    orders = Topic.objects.create(
        source=shop,
        name="orders",
        subjects={"value": ["orders-value"]},
        tables=[["shop", "public", "orders"]],
        read_at=now,
    )
    Topic.objects.create(source=kafka, name="orders", subjects={"value": ["orders-value"]}, read_at=now)
    Topic.objects.create(source=kafka, name="payments")
    Topic.objects.create(source=kafka, name="logs", read_at=now)
    for version, days in ((1, 9), (2, 0.5), (3, 0)):
        use(orders, schema_id("orders-value", version), days=days)
    state = Source.objects.create(registry=dev, kind="state_store", name="/data/totals", created_by="tests")
    query = StreamQuery.objects.create(
        source=state, registry=dev, path="/data/totals", query_id="q", encoding="avro", allowed_value_schemas=16,
        allowed_schema_files=128, scanned_at=now,
    )  # fmt: skip
    QueryInput.objects.create(query=query, topic="orders", side="value", context=".", subject="orders-value")
    QueryInput.objects.create(query=query, topic="clicks")
    totals = StateVariable.objects.create(
        query=query, operator=0, name="totals", label="totals", kind="value", encoding="avro"
    )
    Finding.objects.create(
        source=kafka, fingerprint="f", rule="R", severity="break", sentence="s", remedy="r", location="orders",
        subject_name="orders-value", evidence={}, first_seen=now, last_seen=now,
    )  # fmt: skip
    for client, values in {"billing": {"version": 2}, "checkout": {"reads": False, "writes": True}}.items():
        declare_client(
            registry="dev",
            subject=SubjectName(".", "orders-value"),
            name=client,
            by=system,
            **({"reads": True, "writes": False, "version": None} | values),
        )
    Ownership.objects.create(registry="dev", subject_pattern="orders-*", group=Group.objects.create(name="shop-team"))
    return {"shop": shop.pk, "query": query.pk, "state": totals.pk, "kafka": kafka.pk, "checkpoint": state.pk}
