"""The kinds of source: one class each, with its settings, rules, and how it is checked, scanned and shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django.utils.module_loading import import_string

from registry.drift.rules import RULES
from registry.drift.sources import debezium, kafka, registry, state_store
from registry.drift.sources.base import CONFIG, FieldSet, MissingKind, SourceField, SourceKind

__all__ = ["BUILT_IN", "CONFIG", "SOURCES", "FieldSet", "SourceField", "SourceKind", "kind_of", "register_kinds"]

BUILT_IN: Final[tuple[type[SourceKind], ...]] = (
    kafka.KafkaTopics,
    state_store.StateStore,
    debezium.DebeziumConnector,
    registry.RegistryRules,
)
#: name → kind, in the order of the pages
SOURCES: dict[str, SourceKind] = {kind.name: kind() for kind in BUILT_IN}


def register_kinds(paths: Iterable[str]) -> None:
    """Register further kinds with their rules, by the dotted paths of their classes (the setting SOURCE_KINDS).

    Raises ImportError, and ValueError for a name or a rule that already exists.
    """
    for path in paths:
        kind: SourceKind = import_string(path)()
        taken = [rule.id for rule in kind.rules if RULES.get(rule.id, rule) != rule]
        if taken or type(SOURCES.get(kind.name, kind)) is not type(kind):
            raise ValueError(f"{path} can't be registered: {taken[0] if taken else kind.name} exists already.")
        SOURCES[kind.name] = kind
        RULES.update({rule.id: rule for rule in kind.rules})


def kind_of(name: str) -> SourceKind:
    """Return the kind with that name; without a registered class, a kind that can't be scanned."""
    return SOURCES.get(name) or MissingKind(name)
