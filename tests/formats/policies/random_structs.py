"""Random StructTypes of Spark, and random changes of them: schemas as they evolve in a state store, and worse."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

ATOMIC = (
    *("boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary", "date"),
    *("timestamp", "timestamp_ntz", "void", "decimal(10,2)", "decimal(11,2)", "decimal(11,3)", "decimal(20,2)"),
)
COMMON = ("integer", "long", "float", "double", "string", "binary", "date", "timestamp")
WITHOUT_AVRO = ("interval day", "variant", "char(3)")
NAMES = ("a", "b", "c", "user_id", "userId", "é", "_x1")
BAD_NAMES = ("my-col", "1a", "a.b", "")


def a_type(random: Random, depth: int) -> Any:
    """Any type, mostly a plain one."""
    roll = random.random()
    if depth <= 0 or roll < 0.5:
        return random.choice(COMMON)
    if roll < 0.7:
        return random.choice(ATOMIC)
    if roll < 0.71:
        return random.choice(WITHOUT_AVRO)
    if roll < 0.81:
        return {"type": "array", "elementType": a_type(random, depth - 1), "containsNull": random.random() < 0.8}
    if roll < 0.89:
        key = "integer" if random.random() < 0.08 else "string"
        value = a_type(random, depth - 1)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": random.random() < 0.8}
    return a_struct(random, depth - 1)


def a_field(random: Random, depth: int, name: str) -> dict[str, Any]:
    """A field, nullable in most cases."""
    if random.random() < 0.01:
        name = random.choice(BAD_NAMES)
    return {"name": name, "type": a_type(random, depth), "nullable": random.random() < 0.85, "metadata": {}}


def a_struct(random: Random, depth: int = 2) -> dict[str, Any]:
    """A struct of up to four fields."""
    names = random.sample(NAMES, random.randint(0, 4))
    return {"type": "struct", "fields": [a_field(random, depth, name) for name in names]}


def changed(struct: dict[str, Any], random: Random) -> dict[str, Any]:
    """A copy with up to three changes."""
    result = copy.deepcopy(struct)
    for _ in range(random.randint(0, 3)):
        _change(random.choice(list(_structs(result))), random)
    return result


def _structs(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get("type") == "struct":
            yield value
        for inner in value.values():
            yield from _structs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _structs(inner)


def _change(struct: dict[str, Any], random: Random) -> None:
    fields = struct["fields"]
    names = [name for name in NAMES if name not in {field["name"] for field in fields}]
    if not fields or (random.random() < 0.25 and names):
        fields.insert(random.randint(0, len(fields)), a_field(random, 1, random.choice(names or ["a"])))
        return
    field = random.choice(fields)
    roll = random.random()
    if roll < 0.2:
        fields.remove(field)
    elif roll < 0.35 and names:
        field["name"] = random.choice(names)
    elif roll < 0.7:
        field["type"] = random.choice(COMMON) if isinstance(field["type"], str) else a_type(random, 1)
    elif roll < 0.8:
        field["nullable"] = not field["nullable"]
    elif roll < 0.85:
        field["metadata"] = {"comment": "x"}
    else:
        random.shuffle(fields)


def a_restart(seed: int) -> dict[str, Any]:
    """A history of schema files and a plan, as the oracle is asked; the same for a seed."""
    random = Random(seed)
    evolves = random.random() < 0.75
    key = {"type": "struct", "fields": [a_field(random, 0, "key")]}
    values = {name: a_struct(random) for name in ("counts", "last", "names")[: random.randint(1, 3)]}
    ids = {name: random.choice((0, 0, 0, 12, 13, 14)) for name in values}
    files = [_file(key, values, ids)]
    for _ in range(random.choice((0, 0, 1, 2))):
        values = {name: changed(value, random) if random.random() < 0.6 else value for name, value in values.items()}
        ids = {
            name: ids[name] + (files[-1][number]["value"] != values[name]) for number, name in enumerate(sorted(ids))
        }
        files.append(_file(key, values, ids))
    planned = {name: changed(value, random) for name, value in values.items() if random.random() < 0.9}
    if random.random() < 0.2:
        planned["fresh"] = a_struct(random)
    new_key = changed(key, random) if random.random() < 0.2 else key
    if evolves:
        for value in planned.values():
            for field in value["fields"]:
                field["nullable"] = True
    return {"stored": files, "planned": _file(new_key, planned, {}), "evolution": evolves}


def _file(key: Any, values: dict[str, Any], ids: dict[str, int]) -> list[dict[str, Any]]:
    return [{"name": name, "id": ids.get(name, 0), "key": key, "value": values[name]} for name in sorted(values)]
