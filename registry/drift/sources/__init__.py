"""The kinds of source: how each is checked, observed and judged."""

from registry.drift.sources import debezium, kafka, registry, state_store
from registry.drift.sources.base import SourceKind

SOURCES: dict[str, SourceKind] = {
    "kafka": kafka.KafkaTopics(),
    "state_store": state_store.StateStore(),
    "debezium": debezium.DebeziumConnector(),
    "registry": registry.RegistryRules(),
}

__all__ = ["SOURCES", "SourceKind"]
