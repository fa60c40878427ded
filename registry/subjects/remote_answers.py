"""What Confluent's REST API answers, as the values that we keep; each wrong type is named with its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from registry.errors import InvalidSnapshot
from registry.formats.base import Reference
from registry.subjects.contracts import read_metadata, read_rule_set
from registry.subjects.models.policy import MODES
from registry.subjects.models.schemas import SCHEMA_TYPES
from registry.subjects.names import parse_subject
from registry.subjects.snapshot import VersionRecord

MOST = 2**31 - 1
MAX_REFERENCES = 1000
#: property of a config, in the order of the answers → the setting that it is
SETTINGS: Mapping[str, str] = {
    "alias": "alias",
    "aliasForDeks": "alias_for_deks",
    "normalize": "normalize",
    "validateFields": "validate_fields",
    "validateNewSchemas": "validate_new_schemas",
    "validateRules": "validate_rules",
    "compatibilityLevel": "level",
    "compatibilityPolicy": "compatibility_policy",
    "compatibilityGroup": "compatibility_group",
    "defaultMetadata": "default_metadata",
    "overrideMetadata": "override_metadata",
    "defaultRuleSet": "default_rule_set",
    "overrideRuleSet": "override_rule_set",
}


def read_version(item: Mapping[str, Any]) -> VersionRecord:
    """A version as the entity `Schema`. Raises InvalidSnapshot, InvalidName, InvalidInput, InvalidRuleSet."""
    refuse_unusable_text(item)
    subject = parse_subject(_text(item, "subject"))
    if not subject.subject:
        raise InvalidSnapshot("/subject is empty; a subject needs a name.")
    schema_type = (_text(item, "schemaType", "AVRO") or "AVRO").upper()
    if schema_type not in SCHEMA_TYPES:
        raise InvalidSnapshot(f"/schemaType is {schema_type[:40]!r}; it is one of {', '.join(SCHEMA_TYPES)}.")
    references = item.get("references") or []
    if not isinstance(references, list) or len(references) > MAX_REFERENCES:
        raise InvalidSnapshot(f"/references is no array of at most {MAX_REFERENCES}.")
    rules = item.get("ruleSet") if item.get("ruleSet") is not None else item.get("ruleset")
    return VersionRecord(
        subject=subject,
        version=_number(item, "version"),
        schema_id=_number(item, "id"),
        schema_type=schema_type,
        text=_text(item, "schema"),
        references=tuple(_reference(entry, position) for position, entry in enumerate(references)),
        metadata=read_metadata(item.get("metadata")) or None,
        rule_set=read_rule_set(rules) or None,
        deleted=item.get("deleted") is True,
    )


def read_settings(value: Any) -> tuple[dict[str, Any], list[str]]:
    """The settings that a config sets, and the names of those that aren't known here. Raises InvalidSnapshot."""
    if not isinstance(value, Mapping):
        raise InvalidSnapshot("it is no object.")
    refuse_unusable_text(value)
    # Servers of the first years say `compatibility` here.
    given = {"compatibilityLevel" if name == "compatibility" else name: item for name, item in value.items()}
    known = {SETTINGS[name]: item for name, item in given.items() if name in SETTINGS and item is not None}
    if isinstance(known.get("level"), str):
        known["level"] = known["level"].upper()
    return known, sorted(str(name) for name in given.keys() - SETTINGS.keys())


def read_mode(value: Any) -> str:
    """The mode. Raises InvalidSnapshot for one that isn't known here."""
    mode = value.get("mode") if isinstance(value, Mapping) else None
    if mode not in MODES:
        raise InvalidSnapshot(f"{str(mode)[:40]!r} is no mode here; the modes are {', '.join(MODES)}.")
    return str(mode)


def refuse_unusable_text(value: Any) -> None:
    """Raise InvalidSnapshot for a JSON value with a text that no database can hold: a NUL, half of a surrogate pair."""
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            if "\x00" in item or any("\ud800" <= char <= "\udfff" for char in item):
                raise InvalidSnapshot(f"the text {item[:40]!r} can't be kept: it holds what is no character.")
        elif isinstance(item, Mapping):
            left += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            left += item


def _reference(item: Any, position: int) -> Reference:
    if not isinstance(item, Mapping):
        raise InvalidSnapshot(f"/references/{position} is no object.")
    return Reference(_text(item, "name"), _text(item, "subject"), _number(item, "version"))


def _text(item: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = item.get(name, default)
    if not isinstance(value, str):
        raise InvalidSnapshot(f"/{name} is no text.")
    return value


def _number(item: Mapping[str, Any], name: str) -> int:
    value = item.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST:
        raise InvalidSnapshot(f"/{name} is {str(value)[:40]}; it takes a number from 1 to 2^31-1.")
    return value
