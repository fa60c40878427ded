"""The rules of drift, one row each: the sentence of the finding, its severity, and the remedy.

The tables are by subject matter; a new table is added by one line here. Severities are those of findings: `break` (data
is lost or unreadable now), `risk` (it will be, or may already be unnoticed), `notice` (worth knowing).
"""

from __future__ import annotations

from typing import Final

from registry.drift.debezium import rules as change_events
from registry.drift.rules import registries, topics
from registry.drift.rules.rule import Rule, Severity

__all__ = ["BUDGET_SEVERITIES", "FORMER", "RULES", "TABLES", "Rule", "Severity"]

#: title for people → rows
TABLES: Final[dict[str, tuple[Rule, ...]]] = {
    "Topics": topics.TOPIC_RULES,
    "Fields of decoded messages": topics.FIELD_RULES,
    "The registry itself": registries.REGISTRY_RULES,
    "State of streaming queries": registries.STATE_RULES,
    "Change events from PostgreSQL": change_events.ROWS,
}


def _joined(*tables: tuple[Rule, ...]) -> dict[str, Rule]:
    """Return the rows by id; raises ValueError if two rows have the same id."""
    rules: dict[str, Rule] = {}
    for row in (row for table in tables for row in table):
        if row.id in rules:
            raise ValueError(f"rule {row.id} is in two tables")
        rules[row.id] = row
    return rules


RULES: Final[dict[str, Rule]] = _joined(*TABLES.values())
#: a former id → the rule's present id
FORMER: Final = {rule.former: rule.id for rule in RULES.values() if rule.former}

# From the highest share down: the first one that is reached gives the severity.
BUDGET_SEVERITIES: Final[tuple[tuple[float, Severity], ...]] = ((0.90, "break"), (0.75, "risk"))
