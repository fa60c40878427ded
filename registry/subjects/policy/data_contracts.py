"""Data contracts: the metadata and the rule set of a schema. Pure.

Both are stored as JSON objects in one form: known properties only, sets sorted, nothing empty. So equal contracts are
equal values, and responses contain the stored value. Source of shapes and rules: Confluent's public REST reference
(Metadata, RuleSet, Rule).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from registry.errors import InvalidInput, InvalidRuleSet

Contract = dict[str, Any]

#: the metadata property with the version's number, if that was given with the schema
VERSION_PROPERTY: Final = "confluent:version"
MAX_RULE_NAME: Final = 256
KINDS: Final = ("TRANSFORM", "CONDITION")
ENVIRONMENTS: Final = ("ALL", "CLIENT", "GATEWAY", "SERVER", "NONE")
_MIGRATION: Final = ("UPGRADE", "DOWNGRADE", "UPDOWN")
_DATA: Final = ("WRITE", "READ", "WRITEREAD")
#: list of rules → the modes of its rules, and the error message for another mode
PHASES: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "migrationRules": (_MIGRATION, "Migration rules can only be UPGRADE, DOWNGRADE, UPDOWN"),
    "domainRules": (_DATA, "Domain rules can only be WRITE, READ, WRITEREAD"),
    "encodingRules": (_DATA, "Encoding rules can only be WRITE, READ, WRITEREAD"),
}


def read_metadata(value: Any, where: str = "metadata") -> Contract | None:
    """Return metadata in its stored form; None for None. Raises InvalidInput, which names the place."""
    if value is None:
        return None
    fields = _object(value, where)
    tags = _object(fields.get("tags"), f"{where}/tags")
    metadata = {
        "tags": {path: _texts(tags[path], f"{where}/tags/{path}") for path in sorted(tags)},
        "properties": _properties(fields.get("properties"), f"{where}/properties"),
        "sensitive": _texts(fields.get("sensitive"), f"{where}/sensitive"),
    }
    return {name: part for name, part in metadata.items() if part}


def read_rule_set(value: Any, where: str = "ruleSet") -> Contract | None:
    """Return a rule set in its stored form; None for None. Raises InvalidInput and InvalidRuleSet."""
    if value is None:
        return None
    fields = _object(value, where)
    names: set[str] = set()
    rule_set: Contract = {}
    for phase, (modes, refusal) in PHASES.items():
        rules = _list(fields.get(phase), f"{where}/{phase}")
        read = [_rule(rule, f"{where}/{phase}/{position}", modes) for position, rule in enumerate(rules)]
        for rule in read:
            if rule["name"] in names:
                raise InvalidRuleSet(f"Found rule with duplicate name '{rule['name']}'")
            names.add(rule["name"])
            if rule["mode"] not in modes:
                raise InvalidRuleSet(f"{refusal}; {rule['name']} is {rule['mode']}")
        if read:
            rule_set[phase] = read
    if fields.get("enableAt") is not None:
        rule_set["enableAt"] = _one_of(fields["enableAt"], ENVIRONMENTS, f"{where}/enableAt")
    return rule_set


def merge_metadata(*parts: Contract | None) -> Contract | None:
    """Merge the parts; later ones win. None if all are None."""
    present = [part for part in parts if part is not None]
    if not present:
        return None
    merged = {
        "tags": _merged(part.get("tags", {}) for part in present),
        "properties": _merged(part.get("properties", {}) for part in present),
        "sensitive": sorted({name for part in present for name in part.get("sensitive", [])}),
    }
    return {name: part for name, part in merged.items() if part}


def merge_rule_sets(*parts: Contract | None) -> Contract | None:
    """Merge the parts; a later rule replaces those with its name. None if all are None."""
    present = [part for part in parts if part is not None]
    if not present:
        return None
    merged: Contract = {}
    for part in present:
        for phase in PHASES:
            new = part.get(phase, [])
            replaced = {rule["name"] for rule in new}
            rules = [rule for rule in merged.get(phase, []) if rule["name"] not in replaced] + new
            if rules:
                merged[phase] = rules
        if "enableAt" in part:
            merged["enableAt"] = part["enableAt"]
    return merged


def without_rules(rule_set: Contract | None, names: Sequence[str]) -> Contract | None:
    """Return the rule set without the rules with those names."""
    if rule_set is None:
        return None
    left = {phase: [rule for rule in rule_set.get(phase, []) if rule["name"] not in names] for phase in PHASES}
    phases = {phase: rules for phase, rules in left.items() if rules}
    return {**phases, **({"enableAt": rule_set["enableAt"]} if "enableAt" in rule_set else {})}


def with_version(metadata: Contract | None, version: int) -> Contract:
    """Return the metadata with the version's number."""
    merged = merge_metadata(metadata, {"properties": {VERSION_PROPERTY: str(version)}})
    return merged or {}


def version_in(metadata: Contract | None) -> str | None:
    """Return the version's number in the metadata."""
    number: str | None = property_of(metadata, VERSION_PROPERTY)
    return number


def without_version(metadata: Contract | None) -> Contract:
    """Return the metadata without a version's number; an empty object for None."""
    properties = {k: v for k, v in (metadata or {}).get("properties", {}).items() if k != VERSION_PROPERTY}
    rest = {name: part for name, part in (metadata or {}).items() if name != "properties"}
    return {**rest, **({"properties": properties} if properties else {})}


def property_of(metadata: Contract | None, name: str) -> str | None:
    """Return a property of the metadata, None if it doesn't exist."""
    value: str | None = (metadata or {}).get("properties", {}).get(name)
    return value


def _rule(value: Any, where: str, modes: tuple[str, ...]) -> Contract:
    fields = _object(value, where)
    read: Contract = {
        "name": _rule_name(fields.get("name")),
        "doc": _text(fields.get("doc"), f"{where}/doc"),
        "kind": _one_of(fields.get("kind") or "TRANSFORM", KINDS, f"{where}/kind"),
        "mode": _one_of(fields.get("mode") or "WRITEREAD", (*_MIGRATION, *_DATA), f"{where}/mode"),
        "type": _text(fields.get("type"), f"{where}/type"),
        "tags": _texts(fields.get("tags"), f"{where}/tags"),
        "params": _properties(fields.get("params"), f"{where}/params"),
        "expr": _text(fields.get("expr"), f"{where}/expr"),
        "onSuccess": _action(fields, "onSuccess", where),
        "onFailure": _action(fields, "onFailure", where),
    }
    if read["type"] is None:
        raise InvalidRuleSet(f"Missing rule type: {read['name']} at /{where}")
    disabled = fields.get("disabled")
    if disabled is not None and not isinstance(disabled, bool):
        raise InvalidInput(f"/{where}/disabled must be true or false.")
    return {**{name: part for name, part in read.items() if part not in (None, [], {})}, "disabled": bool(disabled)}


def _rule_name(name: Any) -> str:
    if name is None:
        raise InvalidRuleSet("Missing rule name")
    if not isinstance(name, str) or not name:
        raise InvalidRuleSet("Empty rule name" if name == "" else "A rule's name is a string")
    if len(name) > MAX_RULE_NAME:
        raise InvalidRuleSet("Rule name too long")
    if not (name[0].isalpha() or name[0] == "_"):
        raise InvalidRuleSet(f"Illegal initial character in rule name: {name}")
    if not all(char.isalnum() or char in "_-" for char in name):
        raise InvalidRuleSet(f"Illegal character in rule name: {name}")
    return name


def _action(rule: Mapping[str, Any], name: str, where: str) -> str | None:
    action = _text(rule.get(name), f"{where}/{name}")
    if action and "," in action and (rule.get("mode") or "WRITEREAD") not in ("WRITEREAD", "UPDOWN"):
        raise InvalidRuleSet("Multiple actions only valid with WRITEREAD and UPDOWN")
    return action


def _one_of(value: Any, choices: tuple[str, ...], where: str) -> str:
    if value not in choices:
        raise InvalidRuleSet(f"/{where} is {str(value)[:40]!r}; it is one of {', '.join(choices)}.")
    return str(value)


def _object(value: Any, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidInput(f"/{where} must be an object.")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidInput(f"/{where} must be an array.")
    return value


def _texts(value: Any, where: str) -> list[str]:
    texts = _list(value, where)
    if not all(isinstance(item, str) for item in texts):
        raise InvalidInput(f"/{where} must be an array of strings.")
    return sorted(set(texts))


def _text(value: Any, where: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"/{where} must be a string.")
    return value


def _properties(value: Any, where: str) -> dict[str, str]:
    fields = _object(value, where)
    return {name: _scalar(fields[name], f"{where}/{name}") for name in sorted(fields)}


def _scalar(value: Any, where: str) -> str:
    """Return a string; like Confluent, it accepts numbers and booleans and converts them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput(f"/{where} is a number that is too large to be read; write it as a string.")
    if isinstance(value, str | int | float):
        return str(value)
    raise InvalidInput(f"/{where} must be a string.")


def _merged(parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    joined: dict[str, Any] = {}
    for part in parts:
        joined |= part
    return dict(sorted(joined.items()))
