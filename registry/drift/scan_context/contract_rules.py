"""The conditions of a version's data contract, as a scan evaluates them on stored messages.

Confluent's clients apply domain rules when they write and when they read. A rule that transforms makes the stored message
another one than the condition sees, and only its own executor can undo that: then no condition is evaluated. Nor is one
in another language than CEL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from registry.formats.base import ParsedSchema
from registry.observations import ContractRule
from registry.subjects.comparison.parsed_versions import tags_of_parsed
from registry.subjects.lifecycle.notes import Note
from registry.subjects.models import Schema
from registry.subjects.policy.data_contracts import Contract

TYPES: Final = ("CEL", "CEL_FIELD")
MOST_RULES: Final = 50  # of a schema
ERROR: Final = "ERROR"  # what a client does by default if a condition is broken
_PHASES: Final = ("domainRules", "encodingRules")


def rules_of(
    row: Schema, parsed: ParsedSchema, condition: Contract | None = None
) -> tuple[tuple[ContractRule, ...], dict[str, tuple[str, ...]]]:
    """Return the enabled conditions of a stored schema, and the tags of its fields by path if a condition needs them.

    With `condition`, it is evaluated in place of them.
    """
    rule_set = row.rule_set or {}
    if condition is not None:
        others = [rule for rule in rule_set.get("domainRules", ()) if rule["kind"] != "CONDITION"]
        rule_set = {**rule_set, "enableAt": "ALL", "domainRules": [*others, condition]}
    rules = tuple(conditions_of(rule_set))
    if not any(rule.tags and not rule.not_checked for rule in rules):
        return rules, {}
    tags = tags_of_parsed(parsed, row.metadata, Note())
    return rules, {field.data_path: field.tags for field in tags.fields if field.tags}


def conditions_of(rule_set: Mapping[str, Any]) -> Iterator[ContractRule]:
    """Yield the enabled conditions among the domain rules; those that can't be evaluated with the reason."""
    if rule_set.get("enableAt") == "NONE":
        return
    enabled = [rule for phase in _PHASES for rule in rule_set.get(phase, ()) if not rule["disabled"]]
    transforms = [rule for rule in enabled if rule["kind"] == "TRANSFORM"]
    domain = rule_set.get("domainRules", ())
    conditions = [rule for rule in domain if rule["kind"] == "CONDITION" and not rule["disabled"]]
    for number, rule in enumerate(conditions[: MOST_RULES + 1]):
        reason = ""
        if number == MOST_RULES:
            others = len(conditions) - number
            reason = f"a scan evaluates at most {MOST_RULES} rules of a schema; this one and {others - 1} after it are left out"
        elif rule["type"] not in TYPES:
            reason = f"conditions of type {rule['type'][:80]} aren't evaluated, only CEL and CEL_FIELD"
        elif not rule.get("expr", "").strip():
            reason = "the rule has no expression"
        elif transforms:
            reason = (
                f"rule {transforms[0]['name']} transforms messages, so they aren't stored as the condition reads them"
            )
        yield ContractRule(
            name=rule["name"],
            type=rule["type"],
            expression=rule.get("expr", ""),
            mode=rule["mode"],
            on_failure=_on_failure(rule),
            tags=tuple(rule.get("tags", ())),
            not_checked=reason,
        )


def _on_failure(rule: Mapping[str, Any]) -> str:
    """Return the action of a client that reads: of `NONE,ERROR`, the second; of a rule for writing, its action."""
    actions = [action.strip() for action in rule.get("onFailure", "").split(",")]
    return actions[-1] or ERROR
