"""What the established registry refuses between two strings, numbers, enums, constants and negations."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from registry.formats.json_schema.interning import Interning, json_equal
from registry.formats.json_schema.pairs import Choice, Pair, change
from registry.formats.json_schema.text import compact

if TYPE_CHECKING:
    from registry.formats.json_schema.comparison import Comparison


def compare_strings(comparison: Comparison, pair: Pair) -> None:
    """Lengths and the pattern; formats are not compared."""
    limit(comparison, pair, "maxLength", "MAX_LENGTH", is_upper=True)
    limit(comparison, pair, "minLength", "MIN_LENGTH", is_upper=False)
    before, after = pair.writer.schema.get("pattern"), pair.reader.schema.get("pattern")
    if after is not None and before != after:
        kind = "PATTERN_ADDED" if before is None else "PATTERN_CHANGED"
        comparison.note(pair, kind, "pattern", before=before, after=after)


def compare_numbers(comparison: Comparison, pair: Pair) -> None:
    """Bounds, multipleOf, and integer against number; draft 4's boolean exclusive bounds are not compared."""
    limit(comparison, pair, "maximum", "MAXIMUM", is_upper=True)
    limit(comparison, pair, "minimum", "MINIMUM", is_upper=False)
    limit(comparison, pair, "exclusiveMaximum", "EXCLUSIVE_MAXIMUM", is_upper=True)
    limit(comparison, pair, "exclusiveMinimum", "EXCLUSIVE_MINIMUM", is_upper=False)
    _multiples(comparison, pair)
    if pair.reader.type_name == "integer" and pair.writer.type_name != "integer":
        comparison.note(pair, "TYPE_NARROWED", before=pair.writer.label, after=pair.reader.label)


def compare_enums(comparison: Comparison, pair: Pair) -> None:
    """The values of two enums, as sets."""
    before, after = pair.writer.schema.get("enum"), pair.reader.schema.get("enum")
    if not isinstance(before, list) or not isinstance(after, list):
        return
    interning = Interning()
    ours, theirs = {interning.number(value) for value in before}, {interning.number(value) for value in after}
    if ours <= theirs:
        return
    missing = [value for value in before if interning.number(value) not in theirs]
    kind = "ENUM_ARRAY_NARROWED" if theirs <= ours else "ENUM_ARRAY_CHANGED"
    comparison.note(pair, kind, "enum", before=before, after=after, name=_listed(missing))


def compare_const(comparison: Comparison, pair: Pair) -> None:
    """Two constants; a change is told as a change of an enum."""
    before, after = pair.writer.schema["const"], pair.reader.schema["const"]
    if not json_equal(before, after):
        comparison.note(pair, "ENUM_ARRAY_CHANGED", "const", before=before, after=after, name=_listed([before]))


def compare_nots(comparison: Comparison, pair: Pair) -> None:
    """Two negations: what the reader forbids must be forbidden by the writer."""
    inner = comparison.pair(pair.reader.inner("not"), pair.writer.inner("not"))
    pair.choices.append(Choice("not", [inner], change(pair, "NOT_TYPE_EXTENDED", "not")))


def limit(
    comparison: Comparison,
    pair: Pair,
    keyword: str,
    kind: str,
    *,
    is_upper: bool,
    read: Callable[[Any, str], Any] | None = None,
) -> None:
    """A bound that is new or tighter on the reader's side."""
    take = read or number_of
    before, after = take(pair.writer.schema, keyword), take(pair.reader.schema, keyword)
    if after is None or before == after:
        return
    if before is None:
        comparison.note(pair, f"{kind}_ADDED", keyword, before=before, after=after)
    elif is_upper and after < before:
        comparison.note(pair, f"{kind}_DECREASED", keyword, before=before, after=after)
    elif not is_upper and after > before:
        comparison.note(pair, f"{kind}_INCREASED", keyword, before=before, after=after)


def number_of(schema: Any, keyword: str) -> Any:
    """The number that a keyword has, None where it has none."""
    value = schema.get(keyword)
    return value if isinstance(value, (int, Decimal)) and not isinstance(value, bool) else None


def _multiples(comparison: Comparison, pair: Pair) -> None:
    before, after = number_of(pair.writer.schema, "multipleOf"), number_of(pair.reader.schema, "multipleOf")
    if after is None or before == after:
        return
    if before is None:
        comparison.note(pair, "MULTIPLE_OF_ADDED", "multipleOf", before=before, after=after)
    elif is_multiple(after, before):
        comparison.note(pair, "MULTIPLE_OF_EXPANDED", "multipleOf", before=before, after=after)
    elif not is_multiple(before, after):
        comparison.note(pair, "MULTIPLE_OF_CHANGED", "multipleOf", before=before, after=after)


def is_multiple(number: int | Decimal, divisor: int | Decimal) -> bool:
    """Whether a number is a whole multiple of another, exactly."""
    over, under = _ratio(number)
    divisor_over, divisor_under = _ratio(divisor)
    return divisor_over != 0 and (over * divisor_under) % (under * divisor_over) == 0


def _ratio(number: int | Decimal) -> tuple[int, int]:
    return number.as_integer_ratio()


def _listed(values: list[Any]) -> str:
    shown = ", ".join(compact(value)[:80] for value in values[:20])
    return shown + (" …" if len(values) > 20 else "")
