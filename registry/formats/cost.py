"""Estimates of the cost of reading and comparing schemas, from the text alone, before any parser sees it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from registry.errors import SchemaTooCostly
from registry.formats.base import ResolvedReference

#: no count grows beyond this, so that products stay small
CEILING: Final = 10**18
#: deeper than any limit; counting stops here
DEEPEST: Final = 2_000


# -- JSON texts -------------------------------------------------------------------------------------------------------

# A string (with the colon if it is a key), a comment, or a bracket. An unterminated string or comment runs to the end,
# so that no place is read twice.
_JSON_TOKEN: Final = re.compile(
    r'"(?:[^"\\]++|\\.)*+(?:"(?:\s*+:)?+|\\?\Z)|/\*.*?(?:\*/|\Z)|//[^\n]*+|[\[\]{},]', re.DOTALL
)
_ASCII_ESCAPE: Final = re.compile(r"\\u00([2-7][0-9a-fA-F])")
_COUNTED_REPEAT: Final = re.compile(r"\{\s*+(\d{1,9})\s*+(?:,\s*+(\d{0,9}))?+")
_REPEATED_GROUP: Final = re.compile(r"\)[*+{]")
_LONGEST_KEYWORD: Final = 128
_LISTED: Final = 100_000

_BRACKETS: Final = frozenset("[]{},")

#: keywords that multiply the combinations, by the number of alternatives or by two for each use
_COMBINING: Final = frozenset({"anyOf", "allOf", "oneOf"})
_BRANCHING: Final = frozenset({"if", "not", "contains", "unevaluatedProperties", "unevaluatedItems"})
_BRANCHING_MEMBERS: Final = frozenset({"dependencies", "dependentSchemas", "patternProperties", "dependentRequired"})
_REFERRING: Final = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
#: arrays of an Avro schema that aren't unions
_PLAIN_ARRAYS: Final = frozenset({"fields", "symbols", "aliases", "required"})
#: keys of an Avro schema whose values name types
_NAMING: Final = frozenset({"type", "items", "values"})
_SIMPLE_TYPES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_BUILT_TYPES: Final = ("record", "error", "enum", "array", "map", "fixed")
_AVRO_SIMPLE: Final = frozenset(f'"{name}"' for name in (*_SIMPLE_TYPES, *_BUILT_TYPES))


class _JsonMeasure:
    """One pass over the tokens that measures depth, width and combinations."""

    def __init__(self) -> None:
        self.depth = 0
        self.branches = 0
        self.keys = 0
        self.referring = 0
        self.bits = 0.0
        self.named = 0
        self._open: list[tuple[str, str]] = []  # (preceding key, bracket)
        self._commas: list[int] = []
        self._key = ""
        self._names_types = False

    def read(self, tokens: Iterable[str]) -> None:
        """Read the tokens in order, until the depth exceeds every limit."""
        for token in tokens:
            if token in _BRACKETS:
                self._bracket(token)
                if self.depth > DEEPEST:
                    return
            elif token[0] != '"':
                continue  # a comment
            elif token[-1] == ":":
                self._read_key(token)
            elif self._names_types and token not in _AVRO_SIMPLE:
                self.named += 1

    def _bracket(self, sign: str) -> None:
        if sign == ",":
            if self._commas:
                self._commas[-1] += 1
                self._names_types = self._open[-1][1] == "[" and self._open[-1][0] not in _PLAIN_ARRAYS
        elif sign in "[{":
            self._open.append((self._key, sign))
            self._commas.append(0)
            self.depth = max(self.depth, len(self._open))
            self._names_types = sign == "[" and self._key not in _PLAIN_ARRAYS
            self._key = ""
        elif self._open:
            key, bracket = self._open.pop()
            self._close(key, bracket, self._commas.pop())

    def finish(self) -> None:
        """Count what is still open, so that a text that isn't JSON doesn't look cheaper."""
        while self._open:
            key, bracket = self._open.pop()
            self._close(key, bracket, self._commas.pop())

    def _read_key(self, token: str) -> None:
        self.keys += 1
        self._key = _keyword(token)
        self._names_types = self._key in _NAMING
        if self._key in _BRANCHING:
            self.bits += 1
        elif self._key in _REFERRING:
            self.referring += 1

    def _close(self, key: str, bracket: str, commas: int) -> None:
        members = commas + 1
        if bracket == "[" and key not in _PLAIN_ARRAYS:
            self.branches = max(self.branches, members)
        if key == "oneOf" and bracket == "[":
            self.bits += members - 1  # each alternative excludes all others
        elif key in _COMBINING and bracket == "[":
            self.bits += math.log2(members)
        elif key in _BRANCHING_MEMBERS and bracket == "{":
            self.bits += members


def _keyword(token: str) -> str:
    key = token[1 : token.rindex('"')]
    if "\\" in key and len(key) <= _LONGEST_KEYWORD:
        try:
            return str(json.loads(f'"{key}"'))
        except ValueError:
            return key
    return key


def avro_measures(text: str) -> dict[str, int]:
    """Return the counts of an Avro schema that AVRO_LIMITS names, in linear time like the functions below."""
    walk = _walked(text)
    return {"depth": walk.depth, "branches": walk.branches, "named uses": walk.named}


def json_schema_measures(text: str) -> dict[str, int]:
    """Return the counts of a JSON Schema that JSON_SCHEMA_LIMITS names."""
    walk = _walked(text)
    # The target of a reference may contain all of the alternatives.
    bits = walk.bits * (1 + walk.referring) if walk.referring else walk.bits
    combinations = CEILING if bits >= 59 else round(2**bits)
    return {
        "depth": walk.depth,
        "branches": walk.branches,
        "combinations": combinations,
        "keys": walk.keys,
        "repetitions": _repetitions(text),
    }


def _walked(text: str) -> _JsonMeasure:
    walk = _JsonMeasure()
    # A list is faster to walk, but for a long text it would be many times as large as the text.
    tokens = (
        _JSON_TOKEN.findall(text) if len(text) <= _LISTED else (measures[0] for measures in _JSON_TOKEN.finditer(text))
    )
    walk.read(tokens)
    walk.finish()
    return walk


def _repetitions(text: str) -> int:
    """Estimate the repetitions in the patterns of a text; counted repeats and repeated groups may nest."""
    plain = _ASCII_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text) if "\\u00" in text else text
    product = 1
    for low, high in _COUNTED_REPEAT.findall(plain):
        product *= max(int(low), int(high or 0), 1)
        if product > CEILING:
            return CEILING
    groups = len(_REPEATED_GROUP.findall(plain))
    return CEILING if groups >= 9 else min(product * 100**groups, CEILING)


# -- Protobuf ---------------------------------------------------------------------------------------------------------

_PROTO_TOKEN: Final = re.compile(
    r'"(?:[^"\\\n]|\\.)*+(?:"|\\?(?=\n|\Z))|\'(?:[^\'\\\n]|\\.)*+(?:\'|\\?(?=\n|\Z))|/\*.*?(?:\*/|\Z)|//[^\n]*+'
    r"|[A-Za-z_][A-Za-z0-9_.]*+|[{}\[\]()<>=]",
    re.DOTALL,
)
_DEFINING: Final = frozenset({"message", "enum", "oneof", "extend", "service", "group", "rpc"})


def proto_measures(text: str) -> dict[str, int]:
    """Return the counts of a .proto file that PROTOBUF_LIMITS names."""
    depth = deepest = definitions = fields = imports = 0
    for match in _PROTO_TOKEN.finditer(text):
        word = match[0]
        if word in "{[(<":
            depth += 1
            deepest = max(deepest, depth)
            if depth > DEEPEST:
                break
        elif word in "}])>":
            depth = max(depth - 1, 0)
        elif word == "=":
            fields += 1
        elif word in _DEFINING:
            definitions += 1
        elif word == "import":
            imports += 1
    return {"depth": deepest, "definitions": definitions, "fields": fields, "imports": imports}


Place = Literal["process", "child"]
Combine = Literal["sum", "product", "largest"]

_REMEMBERED: Final = 512
_SHORT: Final = 60_000


@dataclass(frozen=True, slots=True)
class Cost:
    """The value of each measure that `LIMITS` names; measures that a format doesn't have are absent."""

    schema_type: str
    measures: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CostLimit:
    """The limits of one measure: cheap for one schema, cheap for two together (`in_pair`), and the absolute maximum.

    `combine` says how the measures of two schemas become that of the pair. `cure` says what to do after a rejection.
    """

    measure: str
    in_process: int
    in_pair: int
    combine: Combine
    at_most: int | None
    label: str
    cure: str


_SPLIT: Final = "move shared types into separate schemas and refer to them"
_FLATTEN: Final = "reduce the nesting: give the inner types names and refer to them by name"
_FEWER: Final = "use fewer alternatives in one place"

_SIZE: Final = CostLimit("characters", 60_000, 150_000, "sum", 1_048_576, "characters", _SPLIT)
_NESTING: Final = CostLimit("depth", 60, 60, "largest", 1_000, "levels of nesting", _FLATTEN)
_REFERRED: Final = CostLimit("references", 100, 200, "sum", 1_000, "referenced schemas, directly or not", _SPLIT)

AVRO_LIMITS: Final = (
    # Read and compared in Python at about 1 µs a character, except for the measures below.
    CostLimit("characters", 300_000, 700_000, "sum", 1_048_576, "characters", _SPLIT),
    _NESTING,
    _REFERRED,
    CostLimit("branches", 200, 2_500, "product", 100_000, "branches in one union", _FEWER),
    # Each use of a name makes the comparison visit the named type again.
    CostLimit("named uses", 300, 90_000, "product", None, "uses of named types", _SPLIT),
)
JSON_SCHEMA_LIMITS: Final = (
    _SIZE,
    _NESTING,
    _REFERRED,
    CostLimit("branches", 200, 2_500, "product", 100_000, "alternatives in one place", _FEWER),
    # Measured with jsonschema_rs 0.60, canonicalize: 160 take 13 ms, 384 67 ms, 900 0.5 s, 2,000 2 s and 400 MB.
    CostLimit("combinations", 256, 65_536, "product", None, "combinations of its alternatives", _FEWER),
    CostLimit(
        "repetitions",
        1_000,
        1_000,
        "largest",
        None,
        "repetitions in its patterns",
        "use lower bounds in the patterns",
    ),
    CostLimit("keys", 3_000, 6_000, "sum", None, "keys", _SPLIT),
)
PROTOBUF_LIMITS: Final = (
    # The compiler takes about 1 µs a character and holds the GIL.
    CostLimit("characters", 30_000, 100_000, "sum", 1_048_576, "characters", _SPLIT),
    _NESTING,
    _REFERRED,
    CostLimit("definitions", 300, 600, "sum", 20_000, "messages, enums, groups and oneofs", _SPLIT),
    CostLimit("fields", 1_000, 2_000, "sum", 65_535, "fields and enum constants", _SPLIT),
    CostLimit("imports", 50, 100, "sum", 1_000, "imports", _SPLIT),
)
#: for formats that set no limits of their own
PLAIN_LIMITS: Final = (_SIZE, _REFERRED)
#: the limits of the registered formats, and the functions that count the measures of a text
LIMITS: Final[dict[str, tuple[CostLimit, ...]]] = {}
MEASURES: Final[dict[str, Callable[[str], Mapping[str, int]]]] = {}


def estimate(schema_type: str, text: str, references: Sequence[ResolvedReference] = ()) -> Cost:
    """Estimate the cost of a text with everything it refers to, in linear time.

    Raises SchemaTooCostly for what no process accepts: too long, too deep, too many references.
    """
    texts = [text, *_referenced_texts(references)]
    measures = _merged([_measured(schema_type, item) for item in texts]) | {"references": len(texts) - 1}
    for limit in LIMITS.get(schema_type, ()):
        _refuse_absurd(limit, measures.get(limit.measure, 0))
    return Cost(schema_type, measures)


def pair_cost(first: Cost, second: Cost) -> Cost:
    """Return the cost of comparing two schemas of one format, for comparison with `in_pair`."""
    measures = {}
    for limit in LIMITS.get(first.schema_type, ()):
        one, other = first.measures.get(limit.measure, 0), second.measures.get(limit.measure, 0)
        # A schema with a count of zero is still compared with each of the other schema's.
        combined = {"sum": one + other, "product": max(one, 1) * max(other, 1), "largest": max(one, other)}
        measures[limit.measure] = min(combined[limit.combine], CEILING)
    return Cost(first.schema_type, measures)


def place_of(cost: Cost) -> Place:
    """Return where to process one schema."""
    rows = LIMITS.get(cost.schema_type)
    cheap = rows is not None and all(cost.measures.get(row.measure, 0) <= row.in_process for row in rows)
    return "process" if cheap else "child"


def place_of_pair(first: Cost, second: Cost) -> Place:
    """Return where to compare two schemas: in this process if each of them and the pair are cheap."""
    if first.schema_type != second.schema_type:
        return "process"  # nothing is compared
    if place_of(first) == "child" or place_of(second) == "child":
        return "child"
    both = pair_cost(first, second)
    cheap = all(both.measures.get(row.measure, 0) <= row.in_pair for row in LIMITS[first.schema_type])
    return "process" if cheap else "child"


def _refuse_absurd(limit: CostLimit, value: int) -> None:
    if limit.at_most is not None and value > limit.at_most:
        raise SchemaTooCostly(
            f"the schema has more than {limit.at_most:,} {limit.label}, which is the limit: {limit.cure}",
            measure=limit.measure,
            value=value,
            limit=limit.at_most,
        )


def _referenced_texts(references: Sequence[ResolvedReference]) -> list[str]:
    """Return each referenced text once; without recursion, because a small graph can unfold to a huge tree."""
    texts: dict[tuple[str, int, str], str] = {}
    stack = list(references)
    most = _REFERRED.at_most or 0
    while stack:
        reference = stack.pop()
        key = (reference.subject, reference.version, reference.text)
        if key not in texts:
            texts[key] = reference.text
            _refuse_absurd(_REFERRED, len(texts) if len(texts) > most else 0)
            stack.extend(reference.references)
    return list(texts.values())


def _merged(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Merge the costs of a text and its references: maximum depth and width, product of combinations, or sums."""
    measures: dict[str, int] = {}
    for part in parts:
        for name, value in part.items():
            before = measures.get(name)
            if before is None:
                measures[name] = value
            elif name in ("depth", "branches"):
                measures[name] = max(before, value)
            else:
                measures[name] = min(before * value if name == "combinations" else before + value, CEILING)
    return measures


def _measured(schema_type: str, text: str) -> Mapping[str, int]:
    """Measure one text; only short texts are cached, because long ones would fill the memory."""
    return _remembered(schema_type, text) if len(text) <= _SHORT else _counted(schema_type, text)


@lru_cache(maxsize=_REMEMBERED)
def _remembered(schema_type: str, text: str) -> Mapping[str, int]:
    return _counted(schema_type, text)


def _counted(schema_type: str, text: str) -> Mapping[str, int]:
    measures = {"characters": len(text)}
    if len(text) > (_SIZE.at_most or 0):
        return measures  # rejected for its size alone
    return {**measures, **MEASURES[schema_type](text)} if schema_type in MEASURES else measures
