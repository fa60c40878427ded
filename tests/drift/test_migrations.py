"""A source that was one topic becomes a cluster and a source that includes that topic; its findings stay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from registry.audit.grants import grant_to_application
from registry.subjects.models import Registry
from tests.services_plugin import as_owner

BEFORE, AFTER = [("drift", "0002_audit")], [("drift", "0005_sources")]
pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def migrate(target: list[tuple[str, str]]) -> Any:
    executor = MigrationExecutor(connection)
    executor.migrate(target)
    return MigrationExecutor(connection).loader.project_state(target).apps


@pytest.fixture
def old() -> Iterator[Any]:
    """The models as they were. The tables of this app are made anew for it, and brought up to date at the end."""
    with as_owner():
        newest = MigrationExecutor(connection).loader.graph.leaf_nodes()
        try:
            MigrationExecutor(connection).migrate([("drift", None)])  # none of them
            yield migrate(BEFORE)
        finally:
            MigrationExecutor(connection).migrate(newest)
            grant_to_application(using=connection.alias)  # as the command does afterwards; for the tests that follow


def test_topics_become_sources_of_clusters(old: Any) -> None:
    registry = Registry.objects.create(name="old").pk
    source, finding = old.get_model("drift", "Source"), old.get_model("drift", "Finding")
    seen = timezone.now()
    for bootstrap, name in (("b1:9092", "orders"), ("b1:9092", "customers"), ("b2:9092", "orders")):
        row = source.objects.create(
            registry_id=registry, kind="kafka_topic", name=name, bootstrap=bootstrap, positions={"0": 7}, created_by="x",
            every_seconds=60,
        )  # fmt: skip
        finding.objects.create(
            source=row, fingerprint=f"{bootstrap}{name}", rule="R", severity="break", sentence="s", remedy="r",
            location="l", evidence={}, first_seen=seen, last_seen=seen, state="open",
        )  # fmt: skip
    source.objects.create(registry_id=registry, kind="state_store", name="/state/x", created_by="x")

    new = migrate(AFTER)
    sources = {row.name: row for row in new.get_model("drift", "Source").objects.filter(registry__name="old")}
    assert set(sources) == {"orders", "customers", "orders at b2:9092", "/state/x"}
    assert {row.name: row.bootstrap for row in new.get_model("drift", "Cluster").objects.all()} == {
        "b1:9092": "b1:9092",
        "b2:9092": "b2:9092",
    }
    other = sources["orders at b2:9092"]
    assert (other.kind, other.include, other.cluster.name, other.every_seconds) == ("kafka", ["orders"], "b2:9092", 60)
    assert (sources["/state/x"].kind, sources["/state/x"].cluster) == ("state_store", None)
    topic = new.get_model("drift", "Topic").objects.get(source=other)
    assert (topic.name, topic.positions) == ("orders", {"0": 7})
    assert [(row.state, row.topic.name) for row in other.findings.all()] == [("open", "orders")]
    with connection.cursor() as cursor:
        cursor.execute("SELECT tgname FROM pg_trigger WHERE tgrelid = 'drift_source'::regclass AND tgname = 'audit'")
        assert cursor.fetchone() == ("audit",)
