"""Bodies of messages in JSON: decoded, and read with another schema."""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

from registry.errors import InvalidDatum
from registry.formats.base import BodyReplay, DecodedBody, Resolution, check_size
from registry.formats.json_schema import data
from registry.formats.json_schema.data import data_path, reader_location, validation_failures
from registry.formats.json_schema.model import Model, root_path

MAX_PROBLEMS: Final = 20
TOO_LONG: Final = "a pattern of the schema takes too long on this value"


def decode_body(model: Model, body: bytes) -> DecodedBody:
    """The value in the body, and what the schema says against it. Raises InvalidDatum."""
    check_size(body)
    value = json_value(body)
    validator = data.validator_for(model)
    failures = validation_failures(validator, value)
    problems = tuple(f"{data_path(model, item.instance_path)}: {item.message}" for item in failures)
    if not failures and not data.is_valid(validator, value):
        problems = (TOO_LONG,)
    return DecodedBody(value, root_path(model), (), problems[:MAX_PROBLEMS])


def replay_of(reader: Model, writer: Model) -> BodyReplay:
    """A value is read as it is or refused; the place is the schema's, as names in data are data."""
    validators = [data.validator_for(model) for model in (writer, reader)]

    def replay(body: bytes, indexes: tuple[int, ...] | None) -> Resolution:
        check_size(body)
        value = json_value(body)
        if not data.is_valid(validators[0], value):
            raise InvalidDatum("the value isn't valid under its writer schema")
        if data.is_valid(validators[1], value):
            return Resolution(value, "", value)
        failures = validation_failures(validators[1], value)
        keywords = dict.fromkeys(
            f"#{reader_location(reader, item.schema_path).pointer} ({item.keyword})" for item in failures
        )
        return Resolution(value, "", error=f"rejected by {', '.join(list(keywords)[:5])}" if keywords else TOO_LONG)

    return replay


def json_value(body: bytes) -> Any:
    """The JSON value in the bytes. Raises InvalidDatum with line and column."""
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise InvalidDatum(f"byte {error.start}: the body isn't UTF-8", byte=error.start) from None
    except json.JSONDecodeError as error:
        raise InvalidDatum(f"line {error.lineno}, column {error.colno}: the body isn't JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidDatum(f"the body isn't valid JSON: {str(error)[:200]}") from None
    data.check_datum(value)
    return value


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")
