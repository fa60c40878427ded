"""Which steps may remove a finding of each rule, on each side: a table, the smallest edit first.

A step changes the text and says in words what it did; it raises NoSuchPlace, or gives no words, where it doesn't apply.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from registry.formats.avro.repair_case import Step
from registry.formats.avro.repair_fields import (
    add_default,
    drop_aliases,
    leave_alias_to_one,
    leave_alias_to_one_with_defaults,
    make_optional,
    restore_field,
    restore_field_at_end,
)
from registry.formats.avro.repair_types import (
    add_branch,
    add_enum_default,
    add_null,
    add_symbols,
    add_type_alias,
    drop_branch,
    drop_symbols,
    rename_type,
    restore_definition,
    restore_size,
    restore_type,
    restore_type_and_default,
    same_branch_first,
)

_RESTORE: Final[tuple[Step, ...]] = (restore_type, restore_definition, restore_type_and_default)

#: the steps after which readers get a value that nobody wrote in place of data
INVENTING: Final[frozenset[Step]] = frozenset(
    {add_default, make_optional, leave_alias_to_one_with_defaults, add_enum_default}
)

IN_READER: Final[Mapping[str, tuple[Step, ...]]] = {
    "FIELD_WITHOUT_DEFAULT": (add_default, make_optional),
    "TYPE_NARROWED": (*_RESTORE, add_branch),
    "TYPE_CHANGED": (*_RESTORE, add_branch),
    "NULL_NOT_ACCEPTED": (add_null,),
    "UNION_BRANCH_MISSING": (add_branch, *_RESTORE),
    "ENUM_SYMBOL_MISSING": (add_symbols, add_enum_default),
    "FIXED_SIZE_CHANGED": (restore_size,),
    "NAME_CHANGED": (add_type_alias, rename_type, *_RESTORE),
    "ALIAS_AMBIGUOUS": (drop_aliases,),
    "FIELD_ALIASED_TWICE": (leave_alias_to_one, leave_alias_to_one_with_defaults),
    "FIELD_ALIAS_ACROSS_NAMESPACES": (add_type_alias, rename_type),
    "UNION_BRANCH_AMBIGUOUS": _RESTORE,
    "UNION_BRANCH_ORDER": (same_branch_first,),
    "ENUM_SYMBOL_DEFAULTED": (add_symbols,),
    "WIDENING_LOSES_PRECISION": _RESTORE,
    "BYTES_READ_AS_STRING": _RESTORE,
    "STRING_READ_AS_UUID": _RESTORE,
    "BYTES_READ_AS_DECIMAL": _RESTORE,
    "LOGICAL_TYPE_REINTERPRETED": _RESTORE,
    "LOGICAL_TYPE_CHANGED": _RESTORE,
    "DECIMAL_PRECISION_NARROWED": _RESTORE,
}

IN_WRITER: Final[Mapping[str, tuple[Step, ...]]] = {
    "FIELD_WITHOUT_DEFAULT": (restore_field, restore_field_at_end),
    "TYPE_NARROWED": _RESTORE,
    "TYPE_CHANGED": _RESTORE,
    "NULL_NOT_ACCEPTED": (drop_branch, *_RESTORE),
    "UNION_BRANCH_MISSING": (drop_branch, *_RESTORE),
    "ENUM_SYMBOL_MISSING": (drop_symbols,),
    "FIXED_SIZE_CHANGED": (restore_size,),
    "NAME_CHANGED": (rename_type, *_RESTORE),
    "FIELD_ALIAS_ACROSS_NAMESPACES": (rename_type,),
    "UNION_BRANCH_AMBIGUOUS": _RESTORE,
    "UNION_BRANCH_ORDER": _RESTORE,
    "ENUM_SYMBOL_DEFAULTED": (drop_symbols,),
    "WIDENING_LOSES_PRECISION": _RESTORE,
    "BYTES_READ_AS_STRING": _RESTORE,
    "STRING_READ_AS_UUID": _RESTORE,
    "BYTES_READ_AS_DECIMAL": _RESTORE,
    "DEFAULT_FILLED_DIFFERENTLY": (restore_field, restore_field_at_end),
    "LOGICAL_TYPE_REINTERPRETED": _RESTORE,
    "LOGICAL_TYPE_CHANGED": _RESTORE,
    "DECIMAL_PRECISION_NARROWED": _RESTORE,
}
