"""A shop's registries as a week of work leaves them: the demo's schemas, a scanned topic, a query's state, requests.

Only what Spark would read of the broker is given (`Topic`); everything else goes through the services.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from django.utils import timezone

from dashboard.demo.producers import SCHEMAS, UNKNOWN_SCHEMA_ID
from registry.access.roles import Actor
from registry.drift.judge.topic_observations import milliseconds
from registry.drift.models import Source
from registry.drift.scan.runner import perform_scan
from registry.drift.services import add_source, queue_scan
from registry.drift.sources import kafka
from registry.drift.sources.base import ScannedTopic
from registry.drift.sources.kafka_offsets import TopicPlan
from registry.drift.sources.kafka_survey import Survey
from registry.drift.usage import retirement
from registry.drift.usage.retirement_rules import Groups
from registry.observations import FramedMessages, Observation, PartitionRead, ScanTotals, Span, TopicTotals
from registry.promotions import services
from registry.search.services import index_stale
from registry.subjects.selectors import get_version
from registry.subjects.services import register_version
from registry.subjects.usage.clients import declare_client
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName
from tests.drift.scans import make_source

ROOT: Final = Path(__file__).parents[2]
CHECKPOINT: Final = ROOT / "tests" / "checkpoints" / "fixtures" / "customer_totals"
ORDERS, CUSTOMERS, PAYMENTS, SHIPMENTS = (
    SubjectName(".", f"{name}-value") for name in ("orders", "customers", "payments", "shipments")
)


def demo_schema(name: str) -> dict[str, Any]:
    """A schema of the demo."""
    schema: dict[str, Any] = json.loads((SCHEMAS / f"{name}.avsc").read_text())
    return schema


def record(name: str, **types: str) -> dict[str, Any]:
    """A record of the shop; a type that ends in `?` is optional."""
    fields: list[dict[str, Any]] = [
        {"name": field, "type": ["null", kind[:-1]], "default": None}
        if kind.endswith("?")
        else {"name": field, "type": kind}
        for field, kind in types.items()
    ]
    return {"type": "record", "name": name, "namespace": "com.example.shop", "fields": fields}


def register(schema: object, subject: SubjectName, by: Actor, *registries: str) -> None:
    """Register a schema in dev, or in the named registries."""
    for registry in registries or ("dev",):
        register_version(registry=registry, subject=subject, text=json.dumps(schema, indent=2), by=by)


class Topic:
    """The one partition of a topic, as its cluster and Spark describe it: counts by schema id, oldest first."""

    def __init__(self, name: str, counts: dict[int, int]) -> None:
        now, first = milliseconds(timezone.now()), 0
        self.name, self.messages, self.seen = name, sum(counts.values()), []
        for schema_id, count in counts.items():
            later = self.messages - first - count
            span = Span(count, count * 60, first, first + count - 1, now - later * 1_000, now)
            self.seen.append(FramedMessages(name, "value", 0, "id", str(schema_id), span))
            first += count

    def survey(self, source: Source) -> Survey:
        """What the cluster says."""
        rows = source.topics.all()
        positions = {row.name: {int(part): end for part, end in row.positions.items()} for row in rows}
        topics = {self.name: ScannedTopic(self.name, 1)}
        return Survey(topics, {self.name: TopicPlan(())}, (self.name,), positions)

    def observe(self, *_given: object, **_more: object) -> Sequence[Observation]:
        """What Spark says."""
        return [
            PartitionRead(self.name, 0, 0, self.messages, 0, self.messages, self.messages),
            *self.seen,
            TopicTotals(self.name, self.messages, self.messages * 60, None),
            ScanTotals(1, self.messages, self.messages * 60, None, 0.1),
        ]


def scan(source: Source, by: Actor) -> None:
    """Scan a source as the worker does."""
    perform_scan(queue_scan(source_id=source.pk, by=by))


def schema_id(subject: SubjectName, version: int) -> int:
    """The id of a version in dev, as messages carry it."""
    return get_version(get_registry("dev"), subject, str(version)).schema.schema_id


class Shop:
    """The shop, with what its people did."""

    def __init__(self, person: Callable[[str], Actor]) -> None:
        self.steward, self.approver = person("steward"), person("approver")
        person("approver2")
        for name in ("customers", "orders"):
            subject = SubjectName(".", f"{name}-value")
            register(demo_schema(f"{name}_v1"), subject, self.steward)
            register(demo_schema(f"{name}_v2"), subject, self.steward)
        for subject, name in ((PAYMENTS, "Payment"), (SHIPMENTS, "Shipment")):
            fields = {"id": "string", "order_id": "string", "amount_cents": "long"}
            register(record(name, **fields), subject, self.steward, "dev", "staging")
            register(record(name, **fields, note="string?"), subject, self.steward)
        self._declare("billing", version=1, fields=("customer_id", "email"), contact="approver2, #billing")
        self._declare("crm-sync", contact="crm@example.com, #crm")
        index_stale()

    def _declare(self, name: str, **more: Any) -> None:
        declare_client(registry="dev", subject=CUSTOMERS, name=name, by=self.steward, **more)

    def request(self, subject: SubjectName, reason: str, version: int = 2) -> int:
        """Request a version of dev in staging."""
        asked = {"subject": subject, "version": version, "reason": reason, "by": self.steward}
        return services.request_promotion(source="dev", target="staging", **asked)

    def scan_customers(self, monkeypatch: pytest.MonkeyPatch) -> Source:
        """Scan the customers: both versions are in use, and three messages have an id that nobody registered."""
        counts = {schema_id(CUSTOMERS, 1): 60, schema_id(CUSTOMERS, 2): 40, UNKNOWN_SCHEMA_ID: 3}
        topic = Topic("customers", counts)
        monkeypatch.setattr(kafka, "survey_cluster", topic.survey)
        monkeypatch.setattr(kafka, "observe", topic.observe)
        monkeypatch.setattr(retirement, "query_clusters", lambda stored, used: (stored, Groups((), ""), ()))
        source = make_source(name="customers")
        scan(source, self.steward)
        return source

    def scan_state(self, settings: Any, folder: Path) -> Source:
        """Scan the checkpoint of a query, copied into a folder."""
        settings.CHECKPOINT_ROOTS, settings.SPARK_REMOTE = [folder], ""
        checkpoint = shutil.copytree(CHECKPOINT, folder / CHECKPOINT.name, dirs_exist_ok=True)
        number = add_source(registry="", kind="state_store", name=str(checkpoint), by=self.steward)
        source = Source.objects.get(pk=number)
        scan(source, self.steward)
        return source

    def propose_coupon(self) -> int:
        """Propose a further field of customers in dev."""
        schema = demo_schema("customers_v2")
        schema["fields"].append({"name": "coupon_code", "type": ["null", "string"], "default": None})
        text = json.dumps(schema, indent=2)
        reason = "The shop sends coupons to customers."
        return services.propose_version(target="dev", subject=CUSTOMERS, text=text, reason=reason, by=self.steward)
