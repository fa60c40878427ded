"""What reading and comparing a schema may cost, estimated from its text alone, before any parser sees it.

A schema is a program for its checker: a few hundred characters of `allOf` and `anyOf` keep a checker busy for
seconds, hold the interpreter's lock meanwhile and take a gigabyte. The estimate is one walk over the tokens of the
text, without recursion, and errs on the high side: what looks cheap here is cheap. It says nothing about validity.

`LIMITS` decides what follows: up to `in_process` a schema is worked on where the request runs, above it in a child
process that can be killed, above `at_most` nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from registry.errors import SchemaTooCostly
from registry.formats.base import ResolvedReference
from registry.formats.measures import CEILING, measure

Place = Literal["process", "child"]
Combine = Literal["sum", "product", "largest"]

_REMEMBERED: Final = 512
_SHORT: Final = 60_000


@dataclass(frozen=True, slots=True)
class Cost:
    """How much there is of each measure that `LIMITS` names; a measure that a format doesn't have is absent."""

    schema_type: str
    measures: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Limit:
    """What of one measure is cheap, alone and (`in_pair`) for two schemas together, and what is refused anywhere.

    `combine` says how the measures of two schemas make that of the pair. `cure` is what to do about a refusal.
    """

    measure: str
    in_process: int
    in_pair: int
    combine: Combine
    at_most: int | None
    words: str
    cure: str


_SPLIT: Final = "move shared types into schemas of their own and refer to them"
_FLATTEN: Final = "nest less: give the inner parts names and use them by name"
_FEWER: Final = "use fewer alternatives in one place"

_SIZE: Final = Limit("characters", 60_000, 150_000, "sum", 1_048_576, "characters", _SPLIT)
_NESTING: Final = Limit("depth", 60, 60, "largest", 1_000, "levels of nesting", _FLATTEN)
_REFERRED: Final = Limit("references", 100, 200, "sum", 1_000, "referenced schemas, directly or not", _SPLIT)

LIMITS: Final[Mapping[str, tuple[Limit, ...]]] = {
    "AVRO": (
        # Read and compared in Python, in proportion to its length but for the rows below: about 1 µs a character.
        Limit("characters", 300_000, 700_000, "sum", 1_048_576, "characters", _SPLIT),
        _NESTING,
        _REFERRED,
        Limit("branches", 200, 2_500, "product", 100_000, "branches in one union", _FEWER),
        # Each use of a name leads the comparison of two schemas to the named type again.
        Limit("named uses", 300, 90_000, "product", None, "uses of named types", _SPLIT),
    ),
    "JSON": (
        _SIZE,
        _NESTING,
        _REFERRED,
        Limit("branches", 200, 2_500, "product", 100_000, "alternatives in one place", _FEWER),
        # Measured with jsonschema_rs 0.60, canonicalize: 160 take 13 ms, 384 67 ms, 900 0.5 s, 2,000 2 s and 400 MB.
        Limit("combinations", 256, 65_536, "product", None, "combinations of its alternatives", _FEWER),
        Limit("repetitions", 1_000, 1_000, "largest", None, "repetitions in its patterns", "bound the patterns lower"),
        Limit("keys", 3_000, 6_000, "sum", None, "keys", _SPLIT),
    ),
    "PROTOBUF": (
        # The compiler takes about 1 µs a character, with the interpreter's lock held.
        Limit("characters", 30_000, 100_000, "sum", 1_048_576, "characters", _SPLIT),
        _NESTING,
        _REFERRED,
        Limit("definitions", 300, 600, "sum", 20_000, "messages, enums, groups and oneofs", _SPLIT),
        Limit("fields", 1_000, 2_000, "sum", 65_535, "fields and enum constants", _SPLIT),
        Limit("imports", 50, 100, "sum", 1_000, "imports", _SPLIT),
    ),
}


def estimate(schema_type: str, text: str, references: Sequence[ResolvedReference] = ()) -> Cost:
    """The cost of a text with all that it refers to; linear in their length.

    Raises SchemaTooCostly for what no process takes on: too long, too deep, too many references.
    """
    texts = [text, *_referenced_texts(references)]
    measures = _merged([_measured(schema_type, item) for item in texts]) | {"references": len(texts) - 1}
    for limit in LIMITS.get(schema_type, ()):
        _refuse_absurd(limit, measures.get(limit.measure, 0))
    return Cost(schema_type, measures)


def pair_cost(first: Cost, second: Cost) -> Cost:
    """The cost of comparing two schemas of one format, to be held against `in_pair`."""
    found = {}
    for limit in LIMITS.get(first.schema_type, ()):
        one, other = first.measures.get(limit.measure, 0), second.measures.get(limit.measure, 0)
        # A schema without any of a measure still meets each of the other one's.
        combined = {"sum": one + other, "product": max(one, 1) * max(other, 1), "largest": max(one, other)}
        found[limit.measure] = min(combined[limit.combine], CEILING)
    return Cost(first.schema_type, found)


def place_of(cost: Cost) -> Place:
    """Where one schema is worked on."""
    rows = LIMITS.get(cost.schema_type)
    cheap = rows is not None and all(cost.measures.get(row.measure, 0) <= row.in_process for row in rows)
    return "process" if cheap else "child"


def place_of_pair(first: Cost, second: Cost) -> Place:
    """Where two schemas are compared: in the process if each of them and the pair is cheap."""
    if first.schema_type != second.schema_type:
        return "process"  # nothing is compared
    if place_of(first) == "child" or place_of(second) == "child":
        return "child"
    both = pair_cost(first, second)
    cheap = all(both.measures.get(row.measure, 0) <= row.in_pair for row in LIMITS[first.schema_type])
    return "process" if cheap else "child"


def _refuse_absurd(limit: Limit, value: int) -> None:
    if limit.at_most is not None and value > limit.at_most:
        raise SchemaTooCostly(
            f"the schema has more than {limit.at_most:,} {limit.words}, which is the limit: {limit.cure}",
            measure=limit.measure,
            value=value,
            limit=limit.at_most,
        )


def _referenced_texts(references: Sequence[ResolvedReference]) -> list[str]:
    """Each referenced text once; without recursion, since a small graph can be a huge tree."""
    seen: dict[tuple[str, int, str], str] = {}
    stack = list(references)
    most = _REFERRED.at_most or 0
    while stack:
        reference = stack.pop()
        key = (reference.subject, reference.version, reference.text)
        if key not in seen:
            seen[key] = reference.text
            _refuse_absurd(_REFERRED, len(seen) if len(seen) > most else 0)
            stack.extend(reference.references)
    return list(seen.values())


def _merged(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """One cost of a text and its references: sums, but the deepest, the widest, and all combinations together."""
    found: dict[str, int] = {}
    for part in parts:
        for name, value in part.items():
            known = found.get(name)
            if known is None:
                found[name] = value
            elif name in ("depth", "branches"):
                found[name] = max(known, value)
            else:
                found[name] = min(known * value if name == "combinations" else known + value, CEILING)
    return found


def _measured(schema_type: str, text: str) -> Mapping[str, int]:
    """The measures of one text; those of short ones are remembered, long ones would fill the memory."""
    return _remembered(schema_type, text) if len(text) <= _SHORT else _counted(schema_type, text)


@lru_cache(maxsize=_REMEMBERED)
def _remembered(schema_type: str, text: str) -> Mapping[str, int]:
    return _counted(schema_type, text)


def _counted(schema_type: str, text: str) -> Mapping[str, int]:
    found = {"characters": len(text)}
    if len(text) > (_SIZE.at_most or 0):
        return found  # refused by its size alone
    return found | measure(schema_type, text)
