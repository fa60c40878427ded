"""When the facts about a string or a number imply one keyword of the reader."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from registry.formats.json_schema.compare_values import is_multiple
from registry.formats.json_schema.conjunction import Facts


def string_holds(facts: Facts, keyword: str, held: Any) -> bool:
    """Whether the facts imply a length or a pattern; a pattern is implied by the same pattern alone."""
    if keyword == "maxLength":
        return any(value <= held for value in facts.values("maxLength"))
    if keyword == "minLength":
        return held == 0 or any(value >= held for value in facts.values("minLength"))
    return held == "" or any(value == held for value in facts.values("pattern"))


def number_holds(facts: Facts, keyword: str, held: int | Decimal) -> bool:
    """Whether the facts imply a bound or a divisor."""
    if keyword == "multipleOf":
        if any(is_multiple(value, held) for value in facts.values("multipleOf")):
            return True
        return "number" not in facts.types and is_multiple(1, held)
    inclusive, exclusive = list(facts.values(_INCLUSIVE[keyword])), list(facts.values(_EXCLUSIVE[keyword]))
    if keyword in ("maximum", "exclusiveMaximum"):
        within = any(value <= held for value in exclusive)
        return within or any(value <= held if keyword == "maximum" else value < held for value in inclusive)
    within = any(value >= held for value in exclusive)
    return within or any(value >= held if keyword == "minimum" else value > held for value in inclusive)


_INCLUSIVE = {"maximum": "maximum", "exclusiveMaximum": "maximum", "minimum": "minimum", "exclusiveMinimum": "minimum"}
_EXCLUSIVE = {
    "maximum": "exclusiveMaximum",
    "exclusiveMaximum": "exclusiveMaximum",
    "minimum": "exclusiveMinimum",
    "exclusiveMinimum": "exclusiveMinimum",
}
