"""Schemas that are written as JSON, Avro's and JSON Schema's: reading a hostile text, and errors with their place."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, NoReturn

from registry.errors import InvalidSchema
from registry.formats.pointer import position

MAX_TEXT_LENGTH: Final = 1_048_576
MAX_DEPTH: Final = 200


class SchemaProblem(Exception):
    """What is wrong at a pointer; a format's `parse` turns it into InvalidSchema with line and column."""

    def __init__(self, message: str, pointer: str) -> None:
        super().__init__(message)
        self.message = message
        self.pointer = pointer


class DuplicateKey(Exception):
    """An object that has the same key twice; raised by the hooks of a format's decoder."""


def invalid(problem: SchemaProblem, text: str) -> InvalidSchema:
    """The problem as the error that callers see, with line and column."""
    found = position(text, problem.pointer)
    if found is None:
        return InvalidSchema(problem.message, pointer=problem.pointer)
    line, column = found
    return InvalidSchema(problem.message, line=line, column=column, pointer=problem.pointer)


def check_text(text: str, kind: str) -> None:
    """Raises InvalidSchema for what is no text, too long or empty; `kind` is what to send, as in "an Avro schema"."""
    if not isinstance(text, str):
        raise InvalidSchema(f"the schema must be text, not {type(text).__name__}: send it as a JSON string")
    if len(text) > MAX_TEXT_LENGTH:
        raise InvalidSchema(
            f"the schema has {len(text):,} characters, the limit is {MAX_TEXT_LENGTH:,}: "
            "move shared types into schemas of their own and refer to them"
        )
    if not text.strip():
        raise InvalidSchema(f"the schema is empty: send {kind} as JSON", line=1, column=1)


def decode(text: str, decoder: json.JSONDecoder, refuse_duplicate: Callable[[], NoReturn]) -> Any:
    """The JSON value; every error of the decoder as InvalidSchema, `refuse_duplicate` raises that of a key twice."""
    try:
        return decoder.decode(text)
    except json.JSONDecodeError as error:
        raise InvalidSchema(
            f"not JSON: {error.msg.removesuffix(' starting at')}", line=error.lineno, column=error.colno
        ) from None
    except DuplicateKey:
        refuse_duplicate()
    except RecursionError:
        raise InvalidSchema(f"the JSON is nested too deep: {MAX_DEPTH} levels are allowed") from None
    except ValueError as error:
        raise InvalidSchema(f"not JSON that a schema may hold: {error}") from None
