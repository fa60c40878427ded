"""Frozen values of rows: what selectors give instead of models. Pure."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any, TypeVar, cast

Info = TypeVar("Info")


def row_info(kind: type[Info], row: object, **others: Any) -> Info:
    """A dataclass whose fields are the row's attributes of the same names, but for the `others`."""
    names = (name for name in _field_names(cast(Any, kind)) if name not in others)
    return kind(**{name: getattr(row, name) for name in names}, **others)


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
