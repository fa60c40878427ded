"""The sentences that Confluent's registry writes in `verbose` answers about Avro; clients and their tests look for them.

One row a kind of incompatibility. `{reader}` and `{writer}` are "new" or "old", `{location}` and `{detail}` are the
finding's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DESCRIPTIONS: Final[Mapping[str, str]] = {
    "FIXED_SIZE_MISMATCH": "The size of FIXED type field at path '{location}' in the {reader} schema does not match "
    "with the {writer} schema",
    "TYPE_MISMATCH": "The type (path '{location}') of a field in the {reader} schema does not match with the "
    "{writer} schema",
    "NAME_MISMATCH": "The name of the schema has changed (path '{location}')",
    "MISSING_ENUM_SYMBOLS": "The {reader} schema is missing enum symbols '{detail}' at path '{location}' in the "
    "{writer} schema",
    "MISSING_UNION_BRANCH": "The {reader} schema is missing a type inside a union field at path '{location}' in the "
    "{writer} schema",
    "READER_FIELD_MISSING_DEFAULT_VALUE": "The field '{detail}' at path '{location}' in the {reader} schema has no "
    "default value and is missing in the {writer} schema",
}
