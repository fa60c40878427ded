"""Rows of statements that are written by hand, as instances of models: for the calls that are made most."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from django.db import connection
from django.db.models import Field, JSONField, Model

_Model = TypeVar("_Model", bound=Model)


def columns_of(model: type[Model], alias: str) -> str:
    """All columns of a table that has that alias in the statement, in the order that `row_of` wants."""
    return ", ".join(f'"{alias}"."{column.column}"' for column in _columns(model))


def width_of(model: type[Model]) -> int:
    """How many columns those are."""
    return len(_columns(model))


def row_of(model: type[_Model], values: Sequence[Any]) -> _Model:
    """The instance that such a row stands for."""
    columns = _columns(model)
    decoded = [
        json.loads(value) if isinstance(column, JSONField) and value is not None else value
        for column, value in zip(columns, values, strict=True)
    ]
    return model.from_db(connection.alias, [column.attname for column in columns], decoded)


def _columns(model: type[Model]) -> Sequence[Field[Any, Any]]:
    return model._meta.concrete_fields
