"""The rules of schema evolution in Oracle NoSQL Database, with their weights in both variants.

`document` is the weight under the documented rules, `product` the weight under the product's checker (as of client
18.3); None if a variant lacks the rule. The document divides unsafe changes into those that are rejected and those that
need a plan for upgrading clients. Force overrides the second kind: stored data stays readable with the new schema, and
only clients with the old one are harmed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from registry.formats.policies.base import PolicyRule, Weight


@dataclass(frozen=True, slots=True)
class EvolveRule(PolicyRule):
    """A rule with its weight in each variant."""

    document: Weight | None = None
    product: Weight | None = None


_UPGRADE: Final = "or force it: upgrade all reading clients to the new schema first, then all writing clients"
_NEW_FIELD: Final = "keep the type, and add a field with the new type and a default"


def _row(
    id: str, document: Weight | None, product: Weight | None, requirement: str, sentence: str, why: str, remedy: str
) -> EvolveRule:
    return EvolveRule(id, sentence, why, remedy, requirement, document, product)


_ROWS: Final = (
    _row(
        "NOT_A_RECORD",
        "refusal",
        "refusal",
        "",
        "the schema is {after}, not an Avro record",
        "The store contains only records: the value of a key has one record type.",
        "make the schema a record with one field of this type",
    ),
    _row(
        "VERSION_NOT_A_RECORD",
        "refusal",
        "refusal",
        "ORA-3",
        "the version is {before}, not an Avro record, and the schema is {after}",
        "The store contains only records: data of another type can't be read as a record.",
        "register the record under a separate subject",
    ),
    _row(
        "RECORD_RENAMED",
        "refusal",
        "refusal",
        "",
        "the record's name changes from {before} to {after}",
        "The store finds the versions of a schema by the full name of its record: another name is another schema.",
        "keep the name {before}, or register the schema under a separate subject",
    ),
    _row(
        "FIELD_WITHOUT_DEFAULT",
        "advice",
        "force",
        "ORA-2",
        'the field "{name}" has no default',
        "A field without a default can't be deleted later because clients with the old schema can't read data "
        "without it.",
        'give "{name}" a default now, before anything depends on it',
    ),
    _row(
        "DEFAULT_REMOVED",
        "advice",
        None,
        "ORA-2",
        'the field "{name}" loses its default',
        "After this change, the field can't be deleted.",
        'keep the default of "{name}"',
    ),
    _row(
        "DEFAULT_INVALID",
        "refusal",
        "refusal",
        "",
        'the default of the field "{name}" doesn\'t match its type: {detail}',
        "Decoding fails for readers that need the default.",
        "write a default of the type {after}",
    ),
    _row(
        "FIELD_DELETED_WITHOUT_DEFAULT",
        "force",
        "force",
        "ORA-2",
        'the field "{name}" is deleted and had no default',
        "Clients with the old schema can't read data written with the new schema.",
        f'keep "{{name}}", {_UPGRADE}',
    ),
    _row(
        "FIELD_ADDED_WITHOUT_DEFAULT",
        "refusal",
        "refusal",
        "ORA-4",
        'the field "{name}" is added without a default',
        "Data in the store doesn't have the field, so clients with the new schema can't read it.",
        'give "{name}" a default',
    ),
    _row(
        "FIELD_RENAMED",
        "force",
        "advice",
        "ORA-5",
        'the field "{before}" is renamed to "{after}"',
        "A field can't be renamed. The store treats a new name as a deleted field and an added field, and "
        "clients with the old schema get the default instead of the value.",
        'keep the name "{before}" and give the field the alias "{after}"',
    ),
    _row(
        "FIELD_RENAME_SUSPECTED",
        "force",
        "advice",
        "ORA-5",
        'deleting "{before}" and adding "{after}" looks like a rename (score {score}: {detail})',
        "A rename loses the values: readers drop the old field and fill the new field with its default.",
        'keep the name "{before}" and give the field the alias "{after}"; force the change if these are two '
        "different fields",
    ),
    _row(
        "TYPE_WIDENED",
        "force",
        "force",
        "ORA-3",
        "the type is widened from {before} to {after}",
        "Clients with the old schema can't read data written with the wider type.",
        f"{_NEW_FIELD}, {_UPGRADE}",
    ),
    _row(
        "TYPE_CHANGED",
        "refusal",
        "refusal",
        "ORA-3",
        "the type changes from {before} to {after}",
        "Data in the store can't be read as the new type, or the product doesn't accept the change.",
        _NEW_FIELD,
    ),
    _row(
        "LOGICAL_TYPE_CHANGED",
        "refusal",
        None,
        "ORA-3",
        "the logical type changes from {before} to {after}",
        "The bytes stay readable but have another meaning.",
        _NEW_FIELD,
    ),
    _row(
        "TYPE_RENAMED",
        "refusal",
        "refusal",
        "ORA-3",
        "the type's name changes from {before} to {after}",
        "Readers and writers find a record, an enum or a fixed by its full name. The store ignores aliases.",
        "keep the name {before}",
    ),
    _row(
        "UNION_OF_ONE",
        "force",
        None,
        "ORA-3",
        "the type changes from {before} to {after}",
        "Readers on both sides understand it, but the type of a field must not change.",
        "keep {before}, or force it: no data is affected",
    ),
    _row(
        "UNION_INTRODUCED",
        "force",
        "force",
        "ORA-3",
        "the type {before} becomes a union: {after}",
        "Clients with the old schema can't read data of the other branches.",
        f"{_NEW_FIELD}, {_UPGRADE}",
    ),
    _row(
        "UNION_BRANCH_ADDED",
        "force",
        "force",
        "ORA-3",
        "{name} is added to the union",
        "Clients with the old schema can't read data of the new branch.",
        f"{_NEW_FIELD}, {_UPGRADE}",
    ),
    _row(
        "UNION_BRANCH_REMOVED",
        "refusal",
        "refusal",
        "ORA-3",
        "{name} is removed from the union",
        "Data in the store may be of that branch, and clients with the new schema can't read it.",
        "keep {name} in the union",
    ),
    _row(
        "ENUM_SYMBOLS_ADDED",
        "force",
        "force",
        "ORA-3",
        "the enum gains the symbols {name}",
        "Clients with the old schema can't read data with a new symbol.",
        f"{_NEW_FIELD}, {_UPGRADE}",
    ),
    _row(
        "ENUM_SYMBOLS_REMOVED",
        "refusal",
        "refusal",
        "ORA-3",
        "the enum loses the symbols {name}",
        "Data in the store may have one of these symbols, and clients with the new schema can't read it.",
        "keep the symbols {name}",
    ),
    _row(
        "FIXED_SIZE_CHANGED",
        "refusal",
        "refusal",
        "ORA-3",
        "the size changes from {before} to {after} bytes",
        "A fixed is written without its length, so both sides must have the same size.",
        "keep the size, and add a field with a fixed of the new size and a default",
    ),
)
EVOLVE_RULES: Final[Mapping[str, EvolveRule]] = {rule.id: rule for rule in _ROWS}
