"""A schema as Confluent's registry reads it: each schema has one kind, and several kinds form an `allOf`.

That registry loads a schema into objects (a string schema, an object schema, an enum …) and compares objects of the
same kind. Its verdicts depend on which keywords form which object, so this module does the same: a `type` takes the
keywords of its group, a list of types is an `anyOf`, groups of keywords without a `type` form objects of their own, and
everything that occurs together forms an `allOf`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from registry.formats.json_pointer import join
from registry.formats.json_schema.drafts import Draft, is_schema
from registry.formats.json_schema.model import Model, SchemaLocation
from registry.formats.json_schema.text import Interning

Kind = Literal[
    "empty", "true", "false", "string", "number", "boolean", "null", "object", "array",
    "enum", "const", "not", "conditional", "combined", "meta",
]  # fmt: skip

_OBJECT: Final = frozenset(
    {"properties", "required", "minProperties", "maxProperties", "dependencies", "patternProperties",
     "additionalProperties", "propertyNames", "dependentRequired", "dependentSchemas", "unevaluatedProperties"}
)  # fmt: skip
_ARRAY: Final = frozenset(
    {"items", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains", "prefixItems", "minContains",
     "maxContains", "unevaluatedItems"}
)  # fmt: skip
_NUMBER: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_STRING: Final = frozenset({"minLength", "maxLength", "pattern"})
_FIRST_DRAFT: Final[Mapping[str, int]] = {
    "propertyNames": 6, "contains": 6, "dependentRequired": 2019, "dependentSchemas": 2019,
    "unevaluatedProperties": 2019, "unevaluatedItems": 2019, "prefixItems": 2020, "minContains": 2019,
    "maxContains": 2019,
}  # fmt: skip
_GROUPS: Final[Mapping[Kind, frozenset[str]]] = {
    "array": _ARRAY,
    "object": _OBJECT,
    "number": _NUMBER,
    "string": _STRING,
}
_KIND_OF_TYPE: Final[Mapping[str, Kind]] = {
    "string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null",
    "array": "array", "object": "object",
}  # fmt: skip
_COMBINATIONS: Final = ("allOf", "anyOf", "oneOf")
_DECIDING: Final = frozenset(
    {*_OBJECT, *_ARRAY, *_NUMBER, *_STRING, *_COMBINATIONS, "enum", "const", "type", "not", "if", "then", "else"}
)


@dataclass(slots=True, eq=False)
class Shape:
    """One object of that reading.

    `schema` is its JSON and `location` its place. A combined shape has `parts`, joined by `criterion`. A part that is a
    location is read on demand, because it may be recursive. An `is_synthetic` shape wasn't written as a combination.
    `type_name` is the type as written.
    """

    kind: Kind
    location: SchemaLocation
    owner: Shapes = field(repr=False)
    schema: Mapping[str, Any] = field(default_factory=dict)
    criterion: str = ""
    parts: tuple[Shape | SchemaLocation, ...] = ()
    is_synthetic: bool = False
    type_name: str = ""

    @property
    def label(self) -> str:
        """The label for sentences."""
        if self.kind == "combined":
            return f"{self.criterion} of {len(self.parts)}" if not self.is_synthetic else "several constraints"
        return {"empty": "any value", "true": "any value", "false": "no value", "conditional": "if/then/else"}.get(
            self.kind, self.type_name or self.kind
        )

    @property
    def draft(self) -> Draft:
        """The draft of the text."""
        return self.owner.draft(self.location)

    def inner(self, *tokens: str | int) -> Shape:
        """Return the shape of an inner schema, after its references are followed."""
        return self.owner.at(self.child(*tokens))

    def all_parts(self) -> tuple[Shape, ...]:
        """Return the shapes of a combination's members, in the order of the text; equal members count separately."""
        return self.owner.parts(self)

    def distinct_parts(self) -> tuple[Shape, ...]:
        """Return the shapes of a combination's members, without members whose text equals an earlier one's."""
        return self.owner.distinct_parts(self)

    def child(self, *tokens: str | int) -> SchemaLocation:
        """Return the place of an inner part."""
        return SchemaLocation(self.location.document, join(self.location.pointer, *tokens))


class Shapes:
    """The shapes of a model, each made once; a reference has the shape of its target."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._shapes: dict[SchemaLocation, Shape] = {}
        self._parts_of: dict[int, tuple[Shape, ...]] = {}
        self._distinct_parts_of: dict[int, tuple[Shape, ...]] = {}
        self._interning = Interning()

    def at(self, location: SchemaLocation) -> Shape:
        """Return the shape of the schema at a place, after its references are followed."""
        cached = self._shapes.get(location)
        if cached is not None:
            return cached
        chain: dict[SchemaLocation, None] = {}
        shape: Shape | None = None
        while shape is None:
            chain[location] = None
            target = self._plain_target(location)
            if target is None:
                shape = self._shape(location)
            elif isinstance(target, str) or target in chain:
                shape = Shape("meta", location, self)
            else:
                location = target
                shape = self._shapes.get(target)
        for item in chain:
            self._shapes[item] = shape
        return shape

    def parts(self, shape: Shape) -> tuple[Shape, ...]:
        """Return the shapes of a combination's members."""
        key = id(shape)
        if key not in self._parts_of:
            self._parts_of[key] = tuple(part for item in shape.parts for part in self._part(item))
        return self._parts_of[key]

    def distinct_parts(self, shape: Shape) -> tuple[Shape, ...]:
        """Return the shapes of a combination's members; members with equal text count once."""
        key = id(shape)
        if key not in self._distinct_parts_of:
            members: dict[object, Shape | SchemaLocation] = {}
            for item in shape.parts:
                members.setdefault(self.signature(item) if isinstance(item, SchemaLocation) else item, item)
            self._distinct_parts_of[key] = tuple(part for item in members.values() for part in self._part(item))
        return self._distinct_parts_of[key]

    def _part(self, item: Shape | SchemaLocation) -> tuple[Shape, ...]:
        if isinstance(item, Shape):
            return (item,)
        shape = self.at(item)
        if (
            shape.is_synthetic
            and self.draft(item).number >= 2019
            and all(isinstance(part, Shape) for part in shape.parts)
        ):
            return tuple(part for part in shape.parts if isinstance(part, Shape))
        return (shape,)

    def signature(self, location: SchemaLocation) -> int:
        """Return a number that is equal for schemas with equal text."""
        return self._interning.number(self.model.at(location))

    def draft(self, location: SchemaLocation) -> Draft:
        """Return the draft of the text at a place."""
        return self.model.documents[location.document].draft

    def _plain_target(self, location: SchemaLocation) -> SchemaLocation | str | None:
        """Return the target of a schema that is only a reference; None for others."""
        schema = self.model.at(location)
        if not isinstance(schema, dict):
            return None
        refs = self._refs(location, schema)
        if len(refs) != 1:
            return None
        if self.draft(location).ref_hides_siblings or not any(key in _DECIDING for key in schema):
            return refs[0]
        return None

    def _refs(self, location: SchemaLocation, schema: Mapping[str, Any]) -> list[SchemaLocation | str]:
        targets = []
        for keyword in ("$ref", "$recursiveRef", "$dynamicRef"):
            if keyword in schema:
                target = self.model.targets.get(SchemaLocation(location.document, join(location.pointer, keyword)))
                if target is not None:
                    targets.append(target)
        return targets

    def _shape(self, location: SchemaLocation) -> Shape:
        schema = self.model.at(location)
        if isinstance(schema, bool):
            return Shape("true" if schema else "false", location, self)
        parts = tuple(self._pieces(location, schema))
        if not parts:
            return Shape("empty", location, self, schema)
        if len(parts) == 1 and isinstance(parts[0], Shape):
            return parts[0]
        return Shape("combined", location, self, schema, "allOf", parts, is_synthetic=True)

    def _pieces(self, location: SchemaLocation, schema: Mapping[str, Any]) -> Iterator[Shape | SchemaLocation]:
        draft = self.draft(location)
        if draft.number >= 2019:
            for target in self._refs(location, schema):
                yield Shape("meta", location, self) if isinstance(target, str) else target
        if "enum" in schema:
            yield Shape("enum", location, self, schema)
        for criterion in _COMBINATIONS:
            if isinstance(schema.get(criterion), list):
                yield self._combined(location, schema, criterion)
        if "not" in schema:
            yield Shape("not", location, self, schema)
        if "const" in schema and draft.number >= 6:
            yield Shape("const", location, self, schema)
        taken: set[Kind] = set()
        yield from self._typed(location, schema, taken)
        for kind, keywords in _GROUPS.items():
            if kind not in taken and any(key in schema and _knows(draft, key) for key in keywords):
                yield Shape(kind, location, self, schema)
        if "string" not in taken and "format" in schema and draft.number < 2019 and not _STRING & schema.keys():
            yield Shape("string", location, self, schema)
        if draft.number >= 7 and any(key in schema for key in ("if", "then", "else")):
            yield Shape("conditional", location, self, schema)

    def _typed(self, location: SchemaLocation, schema: Mapping[str, Any], taken: set[Kind]) -> Iterator[Shape]:
        named = schema.get("type")
        if isinstance(named, str) and named in _KIND_OF_TYPE:
            kind = _KIND_OF_TYPE[named]
            taken.add(kind)
            yield Shape(kind, location, self, schema, type_name=named)
        elif isinstance(named, list):
            names = [name for name in named if isinstance(name, str) and name in _KIND_OF_TYPE]
            taken.update(_KIND_OF_TYPE[name] for name in names)
            parts = tuple(Shape(_KIND_OF_TYPE[name], location, self, schema, type_name=name) for name in names)
            yield Shape("combined", location, self, schema, "anyOf", parts, type_name=" or ".join(names))

    def _combined(self, location: SchemaLocation, schema: Mapping[str, Any], criterion: str) -> Shape:
        """Return a written combination with all its members."""
        members = tuple(
            SchemaLocation(location.document, join(location.pointer, criterion, index))
            for index, member in enumerate(schema[criterion])
            if is_schema(member)
        )
        return Shape("combined", location, self, schema, criterion, members)


def _knows(draft: Draft, keyword: str) -> bool:
    return draft.number >= _FIRST_DRAFT.get(keyword, 4)
