"""Random Protobuf schemas and random changes of them: small trees that are written as text.

A tree is {"syntax", "package", "messages": [message], "enums": [enum]}; a message {"name", "fields", "messages",
"reserved"}; a field {"name", "number", "type", "label", "oneof", "default"}; an enum {"name", "values": {name: number}}.
"""

from __future__ import annotations

import copy
import random
from typing import Any

SCALARS = (
    "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "bytes", "uint32",
    "sfixed32", "sfixed64", "sint32", "sint64",
)  # fmt: skip
KEYS = ("int32", "int64", "uint32", "sint32", "fixed32", "bool", "string")
NUMBER_GROUP = ("int32", "int64", "uint32", "uint64", "bool")
Tree = dict[str, Any]


def random_tree(rng: random.Random) -> Tree:
    """A schema with one to three messages and one or two enums."""
    syntax = rng.choice(("proto2", "proto3", "proto3", "2023"))
    enums = [_enum(rng, f"E{i}", i, syntax) for i in range(rng.randint(1, 2))]
    tree: Tree = {"syntax": syntax, "package": rng.choice(("", "shop", "shop.v1")), "messages": [], "enums": enums}
    for i in range(rng.randint(1, 3)):
        tree["messages"].append(_message(rng, f"M{i}", tree, depth=0))
    return tree


def _enum(rng: random.Random, name: str, place: int, syntax: str) -> Tree:
    values = {f"V{place}_0": 0}
    for i in range(1, rng.randint(2, 5)):
        values[f"V{place}_{i}"] = rng.choice((i, i + 10, -i))
    return {"name": name, "values": values, "closed": syntax == "proto2"}


def _message(rng: random.Random, name: str, tree: Tree, depth: int) -> Tree:
    message: Tree = {"name": name, "fields": [], "messages": [], "reserved": []}
    if depth == 0 and rng.random() < 0.4:
        message["messages"].append(_message(rng, f"In{name}", tree, depth=1))
    local = [f"{name}.{inner['name']}" for inner in message["messages"]]
    for number in sorted(rng.sample(range(1, 16), rng.randint(1, 7))):
        message["fields"].append(_field(rng, number, tree, local))
    return message


def _types(rng: random.Random, tree: Tree, local: list[str]) -> str:
    """A type; messages that stand before, so that no required field leads back to its own message."""
    pick = rng.random()
    messages = [message["name"] for message in tree["messages"]] + local
    if pick < 0.15:
        return str(rng.choice(tree["enums"])["name"])
    if pick < 0.35 and messages:
        return str(rng.choice(messages))
    if pick < 0.45:
        value = rng.choice((*SCALARS, *messages, *(e["name"] for e in tree["enums"])))
        return f"map<{rng.choice(KEYS)}, {value}>"
    return rng.choice(SCALARS)


def _field(rng: random.Random, number: int, tree: Tree, local: list[str]) -> Tree:
    type_ = _types(rng, tree, local)
    label = "" if type_.startswith("map") else _label(rng, tree["syntax"])
    oneof = (
        rng.choice(("o1", "o1", "o2")) if label != "repeated" and "map" not in type_ and rng.random() < 0.25 else None
    )
    field: Tree = {
        "name": f"f{number}",
        "number": number,
        "type": type_,
        "label": label,
        "oneof": oneof,
        "default": None,
    }
    if oneof:
        field["label"] = ""
    if (
        tree["syntax"] == "proto2"
        and not oneof
        and label == "optional"
        and type_ in NUMBER_GROUP
        and rng.random() < 0.3
    ):
        field["default"] = "true" if type_ == "bool" else "7"
    return field


def _label(rng: random.Random, syntax: str) -> str:
    if syntax == "proto2":
        return rng.choice(("optional", "optional", "optional", "repeated", "required"))
    if syntax == "proto3":
        return rng.choice(("", "", "optional", "repeated"))
    return rng.choice(("", "", "repeated"))


def mutated(rng: random.Random, tree: Tree, changes: int | None = None) -> Tree:
    """A copy with one to three changes."""
    new = copy.deepcopy(tree)
    for _ in range(changes or rng.randint(1, 3)):
        rng.choice(_CHANGES)(rng, new)
    return new


def _pick(rng: random.Random, tree: Tree) -> tuple[Tree, list[str]]:
    message = rng.choice(tree["messages"])
    return message, [f"{message['name']}.{inner['name']}" for inner in message["messages"]]


def _change_type(rng: random.Random, tree: Tree) -> None:
    message, _ = _pick(rng, tree)
    if message["fields"]:
        field = rng.choice(message["fields"])
        if field["type"].startswith("map"):
            field["type"] = f"map<{rng.choice(KEYS)}, {rng.choice(SCALARS)}>"
        else:
            field["type"] = rng.choice(SCALARS if rng.random() < 0.5 else NUMBER_GROUP)
        field["default"] = None


def _change_label(rng: random.Random, tree: Tree) -> None:
    message, _ = _pick(rng, tree)
    plain = [f for f in message["fields"] if not f["oneof"] and not f["type"].startswith("map")]
    if plain:
        field = rng.choice(plain)
        field["label"], field["default"] = _label(rng, tree["syntax"]), None


def _remove_field(rng: random.Random, tree: Tree) -> None:
    message, _ = _pick(rng, tree)
    if message["fields"]:
        message["fields"].remove(rng.choice(message["fields"]))


def _add_field(rng: random.Random, tree: Tree) -> None:
    message, local = _pick(rng, tree)
    taken = {field["number"] for field in message["fields"]} | {int(field["name"][1:]) for field in message["fields"]}
    free = sorted(set(range(1, 40)) - taken)
    first = tree["messages"].index(message)
    earlier = {**tree, "messages": tree["messages"][:first]}
    message["fields"].append(_field(rng, rng.choice(free), earlier, local))


def _rename_field(rng: random.Random, tree: Tree) -> None:
    message, _ = _pick(rng, tree)
    if message["fields"]:
        field = rng.choice(message["fields"])
        field["name"] = f"g{field['number']}"


def _renumber_field(rng: random.Random, tree: Tree) -> None:
    message, _ = _pick(rng, tree)
    free = sorted(set(range(1, 20)) - {field["number"] for field in message["fields"]})
    if message["fields"]:
        rng.choice(message["fields"])["number"] = rng.choice(free)


def _move_oneof(rng: random.Random, tree: Tree) -> None:
    message, _ = _pick(rng, tree)
    for field in rng.sample(message["fields"], min(2, len(message["fields"]))):
        if field["label"] != "repeated" and not field["type"].startswith("map"):
            field["oneof"] = rng.choice(("o1", "o2", None))
            field["default"] = None
            field["label"] = "" if field["oneof"] or tree["syntax"] != "proto2" else "optional"


def _change_enum(rng: random.Random, tree: Tree) -> None:
    enum = rng.choice(tree["enums"])
    names = list(enum["values"])[1:]
    if names and rng.random() < 0.6:
        name = rng.choice(names)
        number = enum["values"].pop(name)
        if rng.random() < 0.5:
            enum["values"][name if rng.random() < 0.5 else f"{name}_new"] = number + 100
    else:
        enum["values"][f"{enum['name']}_NEW"] = 50


def _spread_oneofs(rng: random.Random, tree: Tree) -> None:
    """Every field that may be a member goes into one of several oneofs or out of them, in another order."""
    message, _ = _pick(rng, tree)
    for field in message["fields"]:
        if field["label"] in ("", "optional") and not field["type"].startswith("map"):
            field["oneof"] = rng.choice(("o1", "o2", "o3", None))
            field["default"] = None
            field["label"] = "" if field["oneof"] or tree["syntax"] != "proto2" else "optional"
    rng.shuffle(message["fields"])


def _change_syntax(rng: random.Random, tree: Tree) -> None:
    """Enums of proto2 are closed, the others open; what is required or has a default stays where it can stand."""
    tree["syntax"] = rng.choice(("proto2", "proto3", "2023"))
    messages = [inner for message in tree["messages"] for inner in (message, *message["messages"])]
    for field in (field for message in messages for field in message["fields"]):
        is_bare = field["oneof"] or field["type"].startswith("map")
        if not is_bare and field["label"] != "repeated":
            field["label"], field["default"] = ("optional" if tree["syntax"] == "proto2" else ""), None


def _change_package(rng: random.Random, tree: Tree) -> None:
    tree["package"] = "other"


def _remove_message(rng: random.Random, tree: Tree) -> None:
    if len(tree["messages"]) > 1:
        last = tree["messages"][-1]
        tree["messages"] = tree["messages"][:-1]
        _forget(tree, last["name"])


def _forget(tree: Tree, name: str) -> None:
    for message in tree["messages"]:
        for holder in (message, *message["messages"]):
            holder["fields"] = [f for f in holder["fields"] if name not in f["type"].replace(">", "").split(" ")[-1]]


_CHANGES = (
    _change_type, _change_type, _change_type, _change_label, _change_label, _remove_field, _add_field, _rename_field,
    _renumber_field, _move_oneof, _spread_oneofs, _change_syntax, _change_enum, _change_enum, _change_package, _remove_message,
)  # fmt: skip


def text_of(tree: Tree) -> str:
    """The .proto text of a tree."""
    head = f'edition = "{tree["syntax"]}";' if tree["syntax"].isdigit() else f'syntax = "{tree["syntax"]}";'
    lines = [head]
    if tree["package"]:
        lines.append(f"package {tree['package']};")
    for message in tree["messages"]:
        lines += _message_lines(message)
    for enum in tree["enums"]:
        is_aliased = len(set(enum["values"].values())) < len(enum["values"])
        lines.append(f"enum {enum['name']} {{")
        lines += ["  option allow_alias = true;"] if is_aliased else []
        lines += [f"  {name} = {number};" for name, number in enum["values"].items()] + ["}"]
    return "\n".join(lines) + "\n"


def _message_lines(message: Tree) -> list[str]:
    lines = [f"message {message['name']} {{"]
    for inner in message["messages"]:
        lines += [f"  {line}" for line in _message_lines(inner)]
    oneofs: dict[str, list[str]] = {}
    for field in message["fields"]:
        default = f" [default = {field['default']}]" if field["default"] else ""
        text = f"{field['label']} {field['type']} {field['name']} = {field['number']}{default};".strip()
        if field["oneof"]:
            oneofs.setdefault(field["oneof"], []).append(text)
        else:
            lines.append(f"  {text}")
    for name, members in oneofs.items():
        lines += [f"  oneof {name} {{", *(f"    {text}" for text in members), "  }"]
    return [*lines, "}"]
