"""The kinds of source: how each is checked, observed and judged."""

from registry.drift.sources import kafka_topic, state_store
from registry.drift.sources.base import SourceKind

SOURCES: dict[str, SourceKind] = {
    "kafka_topic": kafka_topic.KafkaTopic(),
    "state_store": state_store.StateStore(),
}

__all__ = ["SOURCES", "SourceKind"]
