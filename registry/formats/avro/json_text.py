"""Strict reading of a schema's JSON text: Java's comments are allowed, duplicate keys and NaN are not."""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

from registry.errors import InvalidSchema
from registry.formats.pointer import position, position_index, without_comments

MAX_TEXT_LENGTH: Final = 1_048_576
MAX_DEPTH: Final = 200


class SchemaProblem(Exception):
    """What is wrong at a pointer; the package's `parse` turns it into InvalidSchema with line and column."""

    def __init__(self, message: str, pointer: str) -> None:
        super().__init__(message)
        self.message = message
        self.pointer = pointer


class _DuplicateKey(Exception):
    """An object that has the same key twice."""


def read_json(text: str) -> Any:
    """The JSON value of a text of at most MAX_TEXT_LENGTH characters; raises InvalidSchema with line and column."""
    if not isinstance(text, str):
        raise InvalidSchema(f"the schema must be text, not {type(text).__name__}: send it as a JSON string")
    if len(text) > MAX_TEXT_LENGTH:
        raise InvalidSchema(
            f"the schema has {len(text):,} characters, the limit is {MAX_TEXT_LENGTH:,}: "
            "move shared types into schemas of their own and refer to them"
        )
    if not text.strip():
        raise InvalidSchema("the schema is empty: send an Avro schema as JSON", line=1, column=1)
    blanked = without_comments(text)
    try:
        return _DECODER.decode(blanked)
    except json.JSONDecodeError as error:
        raise InvalidSchema(
            f"not JSON: {error.msg.removesuffix(' starting at')}", line=error.lineno, column=error.colno
        ) from None
    except _DuplicateKey:
        _refuse_duplicate(text)
    except RecursionError:
        raise InvalidSchema(f"the JSON is nested too deep: {MAX_DEPTH} levels are allowed") from None
    except ValueError as error:
        raise InvalidSchema(f"not JSON that a schema may hold: {error}") from None


def invalid(problem: SchemaProblem, text: str) -> InvalidSchema:
    """The problem as the error that callers see, with line and column."""
    found = position(text, problem.pointer)
    if found is None:
        return InvalidSchema(problem.message, pointer=problem.pointer)
    line, column = found
    return InvalidSchema(problem.message, line=line, column=column, pointer=problem.pointer)


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
        raise _DuplicateKey
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f'{name} is not JSON; write it as the string "{name}" in the default of a float or double')


def _finite(digits: str) -> float:
    number = float(digits)
    if number - number != 0:
        raise ValueError(f"the number {digits[:40]} is too large for a double")
    return number


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant, parse_float=_finite)
