"""Bodies of one JSON Schema: JSON that must be valid by it, and what it says of the values at a path."""

from __future__ import annotations

import json
from typing import Any

from registry.pipeline.workers.bodies import Decoded, loaded_json
from registry.pipeline.workers.shapes import Shape

BACKTRACK_LIMIT = 20_000
PATTERN_BYTES = 2 * 1_048_576
LONGEST_PLACE = 200
NOT_VALIDATED = "its value couldn't be validated: it is nested too deep, isn't Unicode, or takes a pattern too long"
UNDECLARED = "(not declared)"
MOST_REFERENCES = 50  # followed one after the other: a circle ends there


class JsonSchemaBodies:
    """Raises ValueError for a text that is no JSON Schema, ImportError where the workers have no jsonschema_rs."""

    def __init__(self, text: str) -> None:
        import jsonschema_rs

        schema = json.loads(text)
        names_draft = isinstance(schema, dict) and "$schema" in schema
        make: Any = jsonschema_rs.validator_for if names_draft else jsonschema_rs.Draft7Validator
        patterns = jsonschema_rs.FancyRegexOptions(
            backtrack_limit=BACKTRACK_LIMIT, size_limit=PATTERN_BYTES, dfa_size_limit=PATTERN_BYTES
        )
        try:
            self._validator = make(schema, offline=True, validate_formats=False, pattern_options=patterns)
        except ValueError:
            raise ValueError("jsonschema_rs doesn't take the schema") from None
        kinds: Any = jsonschema_rs.ValidationErrorKind
        self._gave_up = (kinds.BacktrackLimitExceeded, kinds.RegexEngineFailure)
        self.shape = JsonSchemaShape(schema, schema)

    def decode(self, data: bytes) -> Decoded:
        """The value; one that the schema doesn't allow has the problem beside it, and is counted like any other."""
        value = loaded_json(data)
        try:
            return Decoded(value, self.shape, violation=self._violation(value))
        except ValueError:  # as NOT_VALIDATED says, or a pattern that gave up: nothing is known of its validity
            return Decoded(value, self.shape, unchecked=NOT_VALIDATED)

    def _violation(self, value: Any) -> str:
        """Which keyword of the schema the value is against, in the schema's own words: nothing of the value itself."""
        if self._validator.is_valid(value):
            return ""
        errors = self._validator.iter_errors(value)
        first = next((error for error in errors if not isinstance(error.kind, self._gave_up)), None)
        if first is None:
            raise ValueError
        place = "/".join(str(part) for part in first.schema_path)[:LONGEST_PLACE]
        return f"the value isn't valid by its schema, at {place}"


class JsonSchemaShape(Shape):
    """The values that a schema of the text `root` describes. What it doesn't declare is JSON of any kind."""

    def __init__(self, schema: Any, root: Any) -> None:
        self._root = root
        self._schema = self._followed(schema)
        allowed = self._schema.get("enum", [self._schema["const"]] if "const" in self._schema else ())
        self.counted = bool(allowed) and all(isinstance(each, str) for each in allowed)
        self._symbols = frozenset(allowed) if self.counted else frozenset()

    def symbol(self, value: str) -> str:
        """The value where the schema has it: any other is data, and is not told."""
        return value if value in self._symbols else UNDECLARED

    def child(self, name: str) -> Shape:
        """The shape of a declared property."""
        return self._below(self._schema.get("properties"), name)

    def item(self) -> Shape:
        """The shape of a list's items."""
        return JsonSchemaShape(self._schema.get("items"), self._root)

    def _below(self, properties: Any, name: str) -> Shape:
        return (
            JsonSchemaShape(properties[name], self._root)
            if isinstance(properties, dict) and name in properties
            else Shape()
        )

    def _followed(self, schema: Any) -> dict[str, Any]:
        """The schema that a `$ref` into the same text means; an optional one (`oneOf` with null) means the other."""
        for _ in range(MOST_REFERENCES):
            if not isinstance(schema, dict):
                break
            if isinstance(schema.get("$ref"), str):
                schema = self._pointed(schema["$ref"])
                continue
            others = [each for key in ("oneOf", "anyOf") for each in _branches(schema.get(key)) if not _is_null(each)]
            if len(others) != 1:
                return schema
            schema = others[0]
        return {}

    def _pointed(self, reference: str) -> Any:
        if not reference.startswith("#/"):
            return self._root if reference == "#" else None
        found = self._root
        for part in reference[2:].split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, dict) else None
        return found


def _branches(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"
