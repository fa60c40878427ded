"""Strict reading of a schema's JSON text: Java's comments are allowed, duplicate keys and NaN are not."""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

from registry.errors import InvalidSchema
from registry.formats.json_source import MAX_DEPTH, DuplicateKey, SchemaProblem, check_text, decode
from registry.formats.pointer import position_index, without_comments


def read_json(text: str) -> Any:
    """The JSON value of a text of at most MAX_TEXT_LENGTH characters; raises InvalidSchema with line and column."""
    check_text(text, "an Avro schema")
    return decode(without_comments(text), _DECODER, lambda: _refuse_duplicate(text))


def check_depth(value: Any, pointer: str) -> None:
    """Raises SchemaProblem if a JSON value is nested deeper than MAX_DEPTH; walks without recursion."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for item in level
            if isinstance(item, (dict, list))
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return
    raise SchemaProblem(f"the JSON is nested too deep: {MAX_DEPTH} levels are allowed", pointer)


def _refuse_duplicate(text: str) -> NoReturn:
    index = position_index(text)
    if index.first_duplicate is None:
        raise InvalidSchema("the JSON has a key twice in one object: remove one of the two")
    key, offset = index.first_duplicate
    line, column = index.line_and_column(offset)
    raise InvalidSchema(
        f'the key "{key}" stands twice in one object, again at line {line}, column {column}: remove one of the two',
        line=line,
        column=column,
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise DuplicateKey
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f'{name} is not JSON; write it as the string "{name}" in the default of a float or double')


def _finite(digits: str) -> float:
    number = float(digits)
    if number - number != 0:
        raise ValueError(f"the number {digits[:40]} is too large for a double")
    return number


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant, parse_float=_finite)
