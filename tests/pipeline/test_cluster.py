"""The same scan on a Spark standalone cluster, chosen by SPARK_MASTER and SPARK_REMOTE alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.services import spark
from dashboard.services.standalone import spark_connect
from registry.observations import FieldProfile, Observation, ScanTotals, SchemaNotUsed
from registry.pipeline import run
from tests.java_words import SHORT_LIVED
from tests.pipeline.cluster import standalone_cluster
from tests.pipeline.test_profiles import secretive
from tests.pipeline.test_topic_scan import only
from tests.pipeline.topics import make_topic, scan_of

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster_remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Spark Connect server that drives a cluster of two workers."""
    base: Path = tmp_path_factory.mktemp("cluster")
    with standalone_cluster(base) as master, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_MASTER", master)
        patch.setattr(spark, "AVRO_LIMITS", (*spark.AVRO_LIMITS, *SHORT_LIVED))  # the executors have these too
        patch.setattr(spark, "LATER_COMPILER", ())
        (base / "server").mkdir()
        with spark_connect(base / "server") as remote:
            yield remote


def told(seen: list[Observation]) -> list[Observation]:
    """What two scans of the same messages say alike: all but their duration."""
    return [each for each in seen if not isinstance(each, ScanTotals)]


def test_a_cluster_says_the_same_as_the_embedded_server(
    kafka_bootstrap: str, spark_remote: str, cluster_remote: str
) -> None:
    messages, more = secretive()
    topic = make_topic(kafka_bootstrap, messages * 200, partitions=1)
    spec = scan_of(kafka_bootstrap, topic, more=more)
    seen = run(spec, remote=cluster_remote)
    assert only(SchemaNotUsed, seen) == []
    assert len(only(FieldProfile, seen)) > 10  # also those that the workers' Python counts
    assert told(seen) == told(run(spec, remote=spark_remote))
