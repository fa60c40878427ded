"""What the tests of moving and mirroring share: a registry with one of everything, and where it is served."""

from __future__ import annotations

import json
from typing import Any

from registry.access.roles import Actor
from registry.formats import FORMATS
from registry.formats.base import Reference
from registry.subjects.names import SubjectName
from registry.subjects.services import delete_subject, delete_version, register_version, set_config, set_mode


def record(name: str, *fields: str) -> str:
    """An Avro record of optional longs."""
    return json.dumps(
        {
            "type": "record",
            "name": name,
            "fields": [{"name": field, "type": ["null", "long"], "default": None} for field in fields],
        }
    )


def furnish(registry: str, by: Actor) -> None:
    """Contexts, references across subjects and contexts, deletions of each kind, contracts, configs, modes, formats."""

    def add(subject: str, text: str, *references: Reference, context: str = ".", **more: Any) -> None:
        name = SubjectName(context, subject)
        register_version(registry=registry, subject=name, text=text, references=references, by=by, **more)

    add("zz-money", '{"type": "enum", "name": "Money", "symbols": ["EUR", "USD"] }')
    for fields in (("a",), ("a", "b"), ("a", "b", "c")):
        add("aa-order", record("Order", *fields))
    uses = '{"type": "record", "name": "Price", "fields": [{"name": "unit", "type": "Money"}]}'
    add("mm-price", uses, Reference("Money", "zz-money", 1))
    add("team/a", record("InTeam", "x"), context=".team")
    add("gone", record("Gone", "x"))
    add("removed", record("Removed", "x"))
    add("rules", record("Ruled", "x"), metadata={"properties": {"owner": "sales"}, "sensitive": ["owner"]})
    if "PROTOBUF" in FORMATS:
        add("proto", 'syntax = "proto3";\nmessage  P { int64 a = 1; } // note\n', schema_type="PROTOBUF")
    if "JSON" in FORMATS:
        add("json", '{"type": "object", "properties": {"b": {"type": "integer"}}}', schema_type="JSON")
    add("normal", '{"type": "record", "name": "N", "fields": [], "doc": "d", "aliases": []}', normalize=True)
    delete_version(registry=registry, subject=SubjectName(".", "aa-order"), version=2, by=by)
    delete_subject(registry=registry, subject=SubjectName(".", "gone"), by=by)
    for permanent in (False, True):
        delete_subject(registry=registry, subject=SubjectName(".", "removed"), by=by, permanent=permanent)
    settle(registry, by)


def settle(registry: str, by: Actor) -> None:
    """Configs and modes of each scope."""
    order, team = SubjectName(".", "aa-order"), SubjectName(".team", "")
    set_config(registry=registry, subject=None, by=by, level="FULL")
    set_config(registry=registry, subject=team, by=by, level="NONE", normalize=True)
    settings = {"level": "FORWARD", "compatibility_group": "major", "default_metadata": {"properties": {"k": "v"}}}
    set_config(registry=registry, subject=order, by=by, **settings)
    set_config(registry=registry, subject=SubjectName(".", "mm-price"), by=by, alias="aa-order", level="NONE")
    set_mode(registry=registry, subject=order, by=by, mode="READONLY")
