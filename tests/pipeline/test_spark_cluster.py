"""Scans on a Spark standalone cluster of two workers, chosen by SPARK_MASTER and SPARK_REMOTE alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from registry.access.roles import Actor
from registry.drift import services
from registry.drift.models import Finding, Scan, SchemaUse, Topic
from registry.drift.scan import runner
from registry.observations import FieldProfile, SchemaNotUsed
from registry.pipeline.run import run
from tests.amounts import long_run
from tests.drift.test_faults import add, bad, register, scan
from tests.pipeline.cluster import SparkCluster, connect_to, standalone_cluster
from tests.pipeline.test_profile import secretive, told
from tests.pipeline.test_topic_scan import only
from tests.pipeline.topics import fill, framed, make_topic, scan_of, string

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.slow]
MESSAGES = 24_000


@dataclass(frozen=True)
class Running:
    """A cluster and the Spark Connect server that drives it."""

    cluster: SparkCluster
    remote: str


@pytest.fixture(scope="module")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    base = tmp_path_factory.mktemp("cluster")
    with standalone_cluster(base) as cluster, connect_to(cluster, base / "server") as remote:
        yield Running(cluster, remote)


@pytest.mark.django_db(transaction=True)  # so that it comes before the test that kills a worker
def test_a_cluster_observes_the_same_as_the_embedded_server(
    kafka_bootstrap: str, spark_remote: str, spark_cluster: Running
) -> None:
    messages, more = secretive()
    topic = make_topic(kafka_bootstrap, messages * 200, partitions=1)
    spec = scan_of(kafka_bootstrap, topic, more=more)
    observations = run(spec, remote=spark_cluster.remote)
    assert only(SchemaNotUsed, observations) == []
    assert len(only(FieldProfile, observations)) > 10  # also those that the workers' Python counts
    assert told(observations) == told(run(spec, remote=spark_remote))


@long_run
@pytest.mark.requirement("CARD-3")
@pytest.mark.django_db(transaction=True)
def test_a_worker_that_dies_in_the_middle_of_a_scan_loses_no_message_and_makes_no_finding(
    kafka_bootstrap: str,
    spark_remote: str,
    registries: None,
    spark_cluster: Running,
    system: Actor,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The findings are those of local Spark over the same topic. Last, since the worker stays dead."""
    settings.KAFKA_BOOTSTRAP, settings.SPARK_REMOTE = kafka_bootstrap, spark_remote
    services.connect_cluster(name="real", bootstrap=kafka_bootstrap, by=system)
    topic = make_topic(kafka_bootstrap, [], partitions=8)
    schema_id = register(topic, system)
    fill(kafka_bootstrap, topic, ((n % 8, None, framed(schema_id, string(f"user {n}"))) for n in range(MESSAGES)))
    fill(kafka_bootstrap, topic, [*bad(3), (1, None, b"no frame"), (2, None, framed(schema_id, b"\x7f"))])

    def outcome(source: int) -> tuple[Any, ...]:
        findings = Finding.objects.filter(source_id=source).order_by("fingerprint")
        uses = SchemaUse.objects.filter(topic__source_id=source).order_by("mark", "partition")
        row = Topic.objects.get(source_id=source)
        return (
            list(findings.values_list("fingerprint", "rule", "sentence", "count", "location", "state")),
            list(uses.values_list("mark", "partition", "messages", "undecodable", "first_offset", "last_offset")),
            (row.positions, row.messages, row.problem),
        )

    locally = add(system, topic)
    assert scan(locally, system).state == "done"
    settings.SPARK_REMOTE = spark_cluster.remote
    whole = add(system, topic)
    assert scan(whole, system).state == "done"
    assert outcome(whole) == outcome(locally)

    write, killed = runner._Watch.note, []

    def note(self: Any, done: int, total: int, phase: str) -> None:
        if done and "reading messages" in phase and "messages 1 to" not in phase and not killed:
            killed.append(phase)
            spark_cluster.cluster.kill_worker()
        write(self, done, total, phase)

    monkeypatch.setattr(runner._Watch, "note", note)
    interrupted = add(system, topic)
    row: Scan = scan(interrupted, system)
    assert killed
    assert (row.state, row.error) == ("done", "")
    assert outcome(interrupted) == outcome(locally)
