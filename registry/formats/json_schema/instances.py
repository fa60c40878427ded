"""Generated instances of a writer's schema, those that a reader is likely to reject first.

For each place, the generator knows the writer's constraints (facts) and all keyword objects of the reader for the same
place (views). From both it takes edge values: a length and one more, a name and none, a value of an enum that the other
side lacks. Nothing here is certain, so callers validate the instances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from itertools import chain, islice
from typing import Any, Final

from registry.formats.json_schema.sample_values import matching_strings, numbers, texts
from registry.formats.json_schema.text import Interning
from registry.formats.json_schema.value_facts import (
    Definitions,
    Facts,
    Schema,
    item_schema,
    property_schemas,
    variants,
    views,
)

MAX_STEPS: Final = 6_000
_MAX_DEPTH: Final = 10
_FULL_DEPTH: Final = 4
_WIDTH: Final = (200, 24, 14, 8)
_MAX_ITEMS: Final = 200
_SEED: Final = 7
#: the most pattern matches, about 1 µs each, for sorting names; `_PATTERNS_A_STEP` of them count as one step
_MAX_MATCHES: Final = 500_000
_FEWEST_NAMES: Final = 20
_PATTERNS_A_STEP: Final = 500
_EXTRA_NAMES: Final = ("extra", "x-other")
_SAMPLES: Final[Mapping[str, tuple[Any, ...]]] = {
    "null": (None,),
    "boolean": (True, False),
}
_TYPE_ORDER: Final = ("object", "array", "string", "integer", "number", "boolean", "null")
_SIMPLE: Final[tuple[Any, ...]] = ("", "a", 0, 1, -1, Decimal("0.5"), True, False, None, [], {}, [None], {"a": None})

Ask = Callable[[Any, Schema], bool]


class Instances:
    """Candidates for a writer's schema compared with a reader's; both are bundles in draft 2020-12.

    `accepts(value, schema)` says whether a schema of the writer accepts a value (other parts are dropped), `refuses`
    whether a schema of the reader rejects it (those come first).
    """

    def __init__(
        self, writer: Schema, reader: Schema, accepts: Ask, refuses: Ask, *, is_full_first: bool = False
    ) -> None:
        self._writer, self._reader = writer, reader
        self._writers, self._readers = Definitions.of(writer), Definitions.of(reader)
        self._accepts = accepts
        self._refuses = refuses
        self._seed = _SEED
        self._is_full_first = is_full_first
        self._steps = 0

    def candidates(self) -> Iterator[Any]:
        """Yield values of the whole schema, each once, at most a few thousand."""
        interning = Interning()
        numbers: set[int] = set()
        alive: list[Any] = []
        for value in self._values([self._writer], [self._reader], 0):
            alive.append(value)
            number = interning.number(value)
            if number not in numbers:
                numbers.add(number)
                yield value
            if self._steps > MAX_STEPS:
                return

    def _values(self, schemas: list[Schema], readers: list[Schema], depth: int) -> Iterator[Any]:
        self._steps += 1
        if self._steps > MAX_STEPS or depth > _MAX_DEPTH:
            return
        looks = views(readers, self._readers)
        own = views(schemas, self._writers)
        streams = [self._of_facts(facts, [*looks, *own], looks, depth) for facts in variants(schemas, self._writers)]
        yield from _interleaved(streams)

    def _of_facts(
        self, facts: Facts, hints: list[Mapping[str, Any]], looks: list[Mapping[str, Any]], depth: int
    ) -> Iterator[Any]:
        listed = facts.finite()
        if listed is not None:
            yield from listed[:_MAX_ITEMS]
            return
        types = facts.types - {"integer"} if _takes_fractions(facts) else facts.types
        streams = [self._of_type(name, facts, hints, looks, depth) for name in _TYPE_ORDER if name in types]
        yield from _interleaved(streams)
        yield from (value for hint in hints for value in _named_values(hint))

    def _of_type(
        self, name: str, facts: Facts, hints: list[Mapping[str, Any]], looks: list[Mapping[str, Any]], depth: int
    ) -> Iterator[Any]:
        if name == "object":
            yield from self._objects(facts, looks, depth)
        elif name == "array":
            yield from self._arrays(facts, looks, depth)
        elif name == "string":
            yield from texts(facts, hints, self._seed)
        elif name in ("integer", "number"):
            yield from numbers(facts, hints, is_whole=name == "integer")
        else:
            yield from _SAMPLES[name]

    def _best(self, schemas: list[Schema], readers: list[Schema], depth: int) -> list[Any]:
        """Return a few values of a part, first those that a schema of the reader rejects."""
        width = _WIDTH[min(depth, len(_WIDTH) - 1)]
        tried = islice(self._values(schemas, readers, depth), width * 3)
        accepted = [value for value in tried if all(self._accepts(value, schema) for schema in schemas)]
        if len(accepted) <= 1 or not readers:
            return accepted[:width]
        refused = [value for value in accepted if any(self._refuses(value, reader) for reader in readers)]
        if not refused:
            return accepted[:width]
        marks = {id(value) for value in refused}
        return [*refused, *(value for value in accepted if id(value) not in marks)][:width]

    def _objects(self, facts: Facts, looks: list[Mapping[str, Any]], depth: int) -> Iterator[Any]:
        required = sorted(facts.required())
        base: dict[str, Any] = {}
        options: dict[str, list[Any]] = {}
        for name in required:
            options[name] = self._property(facts, looks, name, depth)
            if not options[name]:
                return
            base[name] = options[name][-1]
        base = self._padded(facts, looks, base, depth)
        yield base
        for name in required:
            yield from ({**base, name: value} for value in options[name])
        if depth > _FULL_DEPTH:
            return
        others = [name for name in _names(facts, looks, self._seed) if name not in base]
        looked_at = max(_FEWEST_NAMES, _MAX_MATCHES // max(1, _patterns(facts, looks)))
        others[:looked_at] = sorted(others[:looked_at], key=lambda name: _is_alike(facts, looks, name))
        others = others[: _MAX_ITEMS * (1 if self._is_full_first else 10)]
        full = dict(base)
        if self._is_full_first:
            for name in others[:_MAX_ITEMS]:
                for value in self._property(facts, looks, name, depth)[:1] if name not in _EXTRA_NAMES else ():
                    full.update(self._with_dependents(facts, looks, {**base, name: value}, name, depth))
            yield dict(full)
        for name in others:
            for position, value in enumerate(self._property(facts, looks, name, depth)):
                needed = self._with_dependents(facts, looks, {**base, name: value}, name, depth)
                yield needed
                if position == 0:
                    full.update(needed)
                if needed is not full and len(full) > 1:
                    yield {**full, name: value}
        yield full
        yield from self._counted(facts, looks, full, base)

    def _property(self, facts: Facts, looks: list[Mapping[str, Any]], name: str, depth: int) -> list[Any]:
        self._steps += _patterns(facts, looks) // _PATTERNS_A_STEP
        if self._steps > MAX_STEPS:
            return []
        ours = [schema for item in facts.items for schema in property_schemas(item, name)]
        if any(schema is False for schema in ours):
            return []
        theirs = [schema for item in looks for schema in property_schemas(item, name)]
        return self._best(ours, theirs, depth + 1)

    def _with_dependents(
        self, facts: Facts, looks: list[Mapping[str, Any]], value: dict[str, Any], name: str, depth: int
    ) -> dict[str, Any]:
        """Return the value with the properties that its property requires."""
        needed = [other for dependencies in facts.values("dependentRequired") for other in dependencies.get(name, ())]
        extra = [dependencies[name] for dependencies in facts.values("dependentSchemas") if name in dependencies]
        for inner in variants(extra, self._writers)[:1] if extra else ():
            needed.extend(inner.required())
            facts = Facts((*facts.items, *inner.items))
        for other in needed:
            if other not in value:
                options = self._property(facts, looks, other, depth)
                if options:
                    value[other] = options[-1]
        return value

    def _padded(self, facts: Facts, looks: list[Mapping[str, Any]], base: dict[str, Any], depth: int) -> dict[str, Any]:
        """Return the object filled up to the writer's minimum number of properties."""
        least = max([0, *facts.values("minProperties")])
        names = chain(_names(facts, looks, self._seed), (f"p{number}" for number in range(_MAX_ITEMS)))
        while len(base) < min(least, _MAX_ITEMS):
            name = next(names, None)
            if name is None:
                break
            options = [] if name in base else self._property(facts, looks, name, depth)
            if options:
                base[name] = options[-1]
        return base

    def _counted(
        self, facts: Facts, looks: list[Mapping[str, Any]], full: dict[str, Any], base: dict[str, Any]
    ) -> Iterator[Any]:
        """Yield objects with as many properties as each limit, and one more or less."""
        counts = {
            count + change
            for item in (*looks, *facts.items)
            for key in ("minProperties", "maxProperties")
            for count, change in (
                (int(item.get(key, -9)), -1),
                (int(item.get(key, -9)), 0),
                (int(item.get(key, -9)), 1),
            )
        }
        rest = [schema for item in facts.items for schema in property_schemas(item, "p0")]
        filler = next(iter(self._values(rest, [], _FULL_DEPTH)), None)
        for count in sorted(counts):
            if len(base) <= count <= _MAX_ITEMS:
                instance = dict(islice({**base, **full}.items(), count))
                instance.update({f"p{number}": filler for number in range(count - len(instance))})
                yield instance

    def _arrays(self, facts: Facts, looks: list[Mapping[str, Any]], depth: int) -> Iterator[Any]:
        least = min(max([0, *facts.values("minItems")]), _MAX_ITEMS)
        most = min([_MAX_ITEMS, *facts.values("maxItems")])
        is_unique = any(value is True for value in facts.values("uniqueItems"))
        lengths = {least, least + 1, 1, 2}
        for item in (*looks, *facts.items):
            lengths |= {
                int(item[key]) + change for key in ("minItems", "maxItems") if key in item for change in (-1, 0, 1)
            }
            lengths |= {len(item.get("prefixItems", ())) + change for change in (0, 1)}
        contained = list(facts.values("contains"))
        yield from self._containing(facts, looks, depth, least, most)
        for length in sorted(length for length in lengths if least <= length <= most):
            columns = [self._item(facts, looks, index, depth, is_last=index == length - 1) for index in range(length)]
            if not all(columns):
                continue
            if contained and length:
                columns[0] = [*self._best([*contained, *self._items_at(facts, 0)], [], depth + 1), *columns[0]]
            yield from _rows(columns, is_unique=is_unique)

    def _containing(
        self, facts: Facts, looks: list[Mapping[str, Any]], depth: int, least: int, most: int
    ) -> Iterator[Any]:
        """Yield arrays with as many `contains` matches as each limit, and one more or less."""
        for item in (*facts.items, *looks):
            if "contains" not in item:
                continue
            values = self._best([*self._items_at(facts, 0)], [], depth + 1)
            fitting = [value for value in values if self._accepts(value, item["contains"])]
            if item in facts.items:
                fitting = fitting or self._best([item["contains"], *self._items_at(facts, 0)], [], depth + 1)
            counts = [int(item.get("minContains", 1)), int(item.get("maxContains", 2)), *facts.values("minContains")]
            for count in {count + change for count in counts for change in (-1, 0, 1)}:
                if fitting and least <= count <= most:
                    yield [fitting[index % len(fitting)] for index in range(count)]

    def _items_at(self, facts: Facts, index: int) -> list[Schema]:
        schemas = [item_schema(item, index) for item in facts.items]
        return [schema for schema in schemas if schema is not None]

    def _item(
        self, facts: Facts, looks: list[Mapping[str, Any]], index: int, depth: int, *, is_last: bool
    ) -> list[Any]:
        theirs = [item_schema(item, index) for item in looks] if is_last or index < 3 else []
        theirs += [item["contains"] for item in looks if "contains" in item and index == 0]
        return self._best(self._items_at(facts, index), [item for item in theirs if item is not None], depth + 1)


def _patterns(facts: Facts, looks: list[Mapping[str, Any]]) -> int:
    """Return how many patterns each name is matched with."""
    return sum(len(item.get("patternProperties", ())) for item in (*facts.items, *looks))


def _is_alike(facts: Facts, looks: list[Mapping[str, Any]], name: str) -> bool:
    """Return whether the texts of writer and reader say the same about a property."""
    ours = [schema for item in facts.items for schema in property_schemas(item, name)]
    theirs = [schema for item in looks for schema in property_schemas(item, name)]
    return bool(ours) and ours == theirs


def _takes_fractions(facts: Facts) -> bool:
    return "number" in facts.types


def _names(facts: Facts, looks: list[Mapping[str, Any]], seed: int) -> list[str]:
    """Return property names that either side mentions, and a few others."""
    names: dict[str, None] = {}
    for item in (*looks, *facts.items):
        names.update(dict.fromkeys(item.get("properties", {})))
        names.update(dict.fromkeys(name for name in item.get("required", ()) if isinstance(name, str)))
        for keyword in ("dependentRequired", "dependentSchemas"):
            names.update(dict.fromkeys(item.get(keyword, {})))
        for pattern in item.get("patternProperties", {}):
            names.update(dict.fromkeys(matching_strings(pattern, seed, 3)))
        naming = item.get("propertyNames")
        if isinstance(naming, dict):
            names.update(dict.fromkeys(texts(Facts((naming,)), [], seed)))
    names.update(dict.fromkeys(_EXTRA_NAMES))
    return list(names)


def _named_values(hint: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the values that a keyword object of either side lists."""
    if "const" in hint:
        yield hint["const"]
    yield from hint.get("enum", ())[:_MAX_ITEMS]
    if "type" not in hint:
        yield from _SIMPLE


def _rows(columns: list[list[Any]], *, is_unique: bool) -> Iterator[list[Any]]:
    """Yield arrays of the columns' values, the simplest first, then one place varied; `is_unique` avoids repeats."""
    base = [column[-1] for column in columns]
    if is_unique:
        base = _distinct(columns)
    yield list(base)
    for index, column in enumerate(columns):
        for value in column:
            row = list(base)
            row[index] = value
            yield row
    if len(columns) > 1:
        yield [columns[0][0]] * len(columns)


def _distinct(columns: list[list[Any]]) -> list[Any]:
    """Return one value of each column, different from the earlier ones if possible."""
    interning, taken, alive = Interning(), set[int](), list[Any]()
    row = []
    for column in columns:
        alive.append(column)
        free = next((value for value in column if interning.number(value) not in taken), column[-1])
        taken.add(interning.number(free))
        row.append(free)
    return row


def _interleaved(streams: list[Iterator[Any]]) -> Iterator[Any]:
    """Yield one value of each stream in turn, until all are exhausted."""
    open_streams = list(streams)
    while open_streams:
        left = []
        for stream in open_streams:
            try:
                value = next(stream)
            except StopIteration:
                continue
            left.append(stream)
            yield value
        open_streams = left
