"""Which Avro schemas Spring's server takes for the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from registry.api.spring.equality import equality_key


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (
            {"type": "enum", "name": "E", "doc": "x", "symbols": ["A"]},
            {"type": "enum", "name": "E", "symbols": ["A"]},
            True,
        ),
        (
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": 1}]},
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": 1.0}]},
            False,
        ),
        (
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": "boolean", "default": True}]},
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": "boolean", "default": 1}]},
            False,
        ),
        (
            {
                "type": "record",
                "name": "R",
                "fields": [
                    {
                        "name": "a",
                        "type": {"type": "map", "values": {"type": "fixed", "name": "F", "size": 2, "aliases": ["G"]}},
                    }
                ],
            },
            {
                "type": "record",
                "name": "R",
                "fields": [{"name": "a", "type": {"type": "map", "values": {"type": "fixed", "name": "F", "size": 2}}}],
            },
            True,
        ),
        (
            {"type": "record", "name": "R", "x": {"doc": 1}, "fields": []},
            {"type": "record", "name": "R", "x": {"doc": 2}, "fields": []},
            False,
        ),
        (
            {"type": "record", "name": "R", "x": 1, "y": 2, "fields": []},
            {"type": "record", "name": "R", "y": 2, "x": 1, "fields": []},
            True,
        ),
        (["int", "null"], ["null", "int"], False),
    ],
)
def test_what_counts_as_the_same_schema(one: Any, other: Any, same: bool) -> None:
    assert (equality_key(json.dumps(one)) == equality_key(json.dumps(other))) is same
