"""Topics with the rows of `operator_feed`, for the restarts of queries that read Kafka.

Each checkpoint has topics of its own, as offsets are of one topic. The broker is that of KAFKA_BOOTSTRAP.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

try:
    from confluent_kafka import KafkaException, Producer
    from confluent_kafka.admin import AdminClient, NewTopic
except ImportError:  # the Python of another Spark, which does no row with topics
    pass

BOOTSTRAP: Final = "KAFKA_BOOTSTRAP"


@contextmanager
def broker(folder: Path) -> Iterator[None]:
    """A broker for the time that restarts run, unless the environment names one, and Spark's jars for it."""
    from dashboard.runtime.jars import jar_files
    from dashboard.runtime.parts import kafka_broker

    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-class-path {':'.join(map(str, jar_files('spark')))} pyspark-shell"
    if os.environ.get(BOOTSTRAP):
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with kafka_broker(folder) as address:
        os.environ[BOOTSTRAP] = address
        yield
    del os.environ[BOOTSTRAP]


def new_topics(names: tuple[str, ...], partitions: int = 1) -> dict[str, str]:
    """Create an empty topic for each name; gives the topics' own names."""
    topics = {name: f"{name}-{uuid.uuid4().hex[:12]}" for name in names}
    admin = _client(AdminClient)
    for made in admin.create_topics([NewTopic(topic, partitions, 1) for topic in topics.values()]).values():
        made.result()
    return topics


def produce(topic: str, lines: list[str]) -> None:
    """Write a message for each line; its key is the row's first value."""
    producer = _client(Producer)
    for line in lines:
        producer.produce(topic, line, key=str(next(iter(json.loads(line).values()))))
    producer.flush()


def recreate(topic: str) -> None:
    """Delete a topic with its rows and create it again."""
    admin = _client(AdminClient)
    admin.delete_topics([topic])[topic].result()
    for _ in range(100):
        try:
            admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
        except KafkaException:  # the broker isn't done with the old one
            time.sleep(0.2)
        else:
            return
    raise TimeoutError(f"{topic} can't be created again")


def _client(kind: Any) -> Any:
    return kind({"bootstrap.servers": os.environ[BOOTSTRAP]})
