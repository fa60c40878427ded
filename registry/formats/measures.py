"""What there is in a schema's text, counted in one walk over its tokens: without parsing, without recursion.

The counts err on the high side. A text that doesn't parse is counted all the same, as if it did.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Final

#: no count grows beyond this, so that products stay small numbers
CEILING: Final = 10**18
#: deeper than any limit: what is nested deeper is counted no further
DEEPEST: Final = 2_000


def measure(schema_type: str, text: str) -> dict[str, int]:
    """The counts of a text, by the names that the limits of its format use; linear in its length."""
    return _proto_measures(text) if schema_type == "PROTOBUF" else _json_measures(schema_type, text)


# -- JSON texts -------------------------------------------------------------------------------------------------------

# A string with the colon that makes it a key, a comment, or a bracket. An open string or comment goes to the end, so
# no place is read twice.
_JSON_TOKEN: Final = re.compile(
    r'"(?:[^"\\]|\\.)*+(?:"(?:\s*+:)?+|\\?\Z)|/\*.*?(?:\*/|\Z)|//[^\n]*+|[\[\]{},]', re.DOTALL
)
_ASCII_ESCAPE: Final = re.compile(r"\\u00([2-7][0-9a-fA-F])")
_COUNTED_REPEAT: Final = re.compile(r"\{\s*+(\d{1,9})\s*+(?:,\s*+(\d{0,9}))?+")
_REPEATED_GROUP: Final = re.compile(r"\)[*+{]")
_LONGEST_KEYWORD: Final = 128
_LISTED: Final = 100_000

_BRACKETS: Final = frozenset("[]{},")

#: what one alternative more, or one use of the keyword, adds to the exponent of the combinations
_COMBINING: Final = frozenset({"anyOf", "allOf", "oneOf"})
_BRANCHING: Final = frozenset({"if", "not", "contains", "unevaluatedProperties", "unevaluatedItems"})
_BRANCHING_MEMBERS: Final = frozenset({"dependencies", "dependentSchemas", "patternProperties", "dependentRequired"})
_REFERRING: Final = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
#: arrays of an Avro schema that are no union
_PLAIN_ARRAYS: Final = frozenset({"fields", "symbols", "aliases", "required"})
#: keys of an Avro schema whose value names a type
_NAMING: Final = frozenset({"type", "items", "values"})
_SIMPLE_TYPES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_BUILT_TYPES: Final = ("record", "error", "enum", "array", "map", "fixed")
_AVRO_SIMPLE: Final = frozenset(f'"{name}"' for name in (*_SIMPLE_TYPES, *_BUILT_TYPES))


class _Walk:
    """One pass over the tokens: how deep, how wide, and how many ways."""

    def __init__(self) -> None:
        self.depth = 0
        self.branches = 0
        self.keys = 0
        self.referring = 0
        self.bits = 0.0
        self.named = 0
        self._open: list[tuple[str, str]] = []  # the key before it and the bracket
        self._commas: list[int] = []
        self._key = ""
        self._names_types = False

    def read(self, tokens: Iterable[str]) -> None:
        """Takes the tokens in their order, until it is too deep to matter."""
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
        """Counts what was left open: a text that isn't JSON must not look cheaper for it."""
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
            self.bits += members - 1  # each one excludes all others
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


def _json_measures(schema_type: str, text: str) -> dict[str, int]:
    walk = _Walk()
    # A list is quicker to walk, and of a long text it would be many times as large as the text.
    tokens = _JSON_TOKEN.findall(text) if len(text) <= _LISTED else (found[0] for found in _JSON_TOKEN.finditer(text))
    walk.read(tokens)
    walk.finish()
    found = {"depth": walk.depth, "branches": walk.branches}
    if schema_type == "AVRO":
        return found | {"named uses": walk.named}
    # What a reference leads to may hold all the alternatives there are.
    bits = walk.bits * (1 + walk.referring) if walk.referring else walk.bits
    combinations = CEILING if bits >= 59 else round(2**bits)
    return found | {"combinations": combinations, "keys": walk.keys, "repetitions": _repetitions(text)}


def _repetitions(text: str) -> int:
    """How often the patterns of a text may repeat something: counted repeats nest, repeated groups may too."""
    plain = _ASCII_ESCAPE.sub(lambda found: chr(int(found[1], 16)), text) if "\\u00" in text else text
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


def _proto_measures(text: str) -> dict[str, int]:
    depth = deepest = definitions = fields = imports = 0
    for found in _PROTO_TOKEN.finditer(text):
        word = found[0]
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
