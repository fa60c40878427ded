"""JSON values on their way out: no Decimals, and not too large for a report."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

_MAX_VALUES: Final = 2_000


def to_plain(value: Any) -> Any:
    """The value with Decimals as int or float, so that any JSON writer takes it; new containers."""
    if isinstance(value, Decimal):
        return to_number(value)
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    return value


def to_number(number: Decimal) -> int | float:
    """A Decimal as a float; as an int where it is whole and a float would lose digits."""
    found = float(number)
    if number == number.to_integral_value() and Decimal(found) != number:
        return int(number)
    return found
