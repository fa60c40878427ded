"""Random Protobuf schemas, random changes of them, random data, and what was written against what was read."""

from __future__ import annotations

import copy
import random
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}

UNNAMED = (77, -77, 2**31 - 1, -(2**31))


def random_datum(rng: random.Random, descriptor: Descriptor, depth: int = 0) -> Message:
    """A message with about half of its fields set, required ones always."""
    datum = GetMessageClass(descriptor)()
    for field in descriptor.fields:
        if not field.is_required and (rng.random() < 0.5 or (depth > 3 and field.message_type is not None)):
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            _fill_map(rng, getattr(datum, field.name), field.message_type, depth)
        elif field.is_repeated:
            for _ in range(rng.randint(0, 3)):
                if field.message_type is not None:
                    getattr(datum, field.name).add().CopyFrom(random_datum(rng, field.message_type, depth + 1))
                else:
                    getattr(datum, field.name).append(random_value(rng, field))
        elif field.message_type is not None:
            getattr(datum, field.name).CopyFrom(random_datum(rng, field.message_type, depth + 1))
            getattr(datum, field.name).SetInParent()
        else:
            setattr(datum, field.name, random_value(rng, field))
    return datum


def _fill_map(rng: random.Random, target: Any, entry: Descriptor, depth: int) -> None:
    key, value = entry.fields_by_number[1], entry.fields_by_number[2]
    for _ in range(rng.randint(0, 2)):
        if value.message_type is not None:
            target[random_value(rng, key)].CopyFrom(random_datum(rng, value.message_type, depth + 1))
        else:
            target[random_value(rng, key)] = random_value(rng, value)


def random_value(rng: random.Random, field: FieldDescriptor) -> Any:
    if field.enum_type is not None:
        named = [value.number for value in field.enum_type.values]
        return rng.choice(named if field.enum_type.is_closed else [*named, *UNNAMED])
    if field.cpp_type in INTEGERS:
        low, high = INTEGERS[field.cpp_type]
        return rng.choice((low, high, max(low, -3), 0, 1, 2, 300, rng.randint(low, high)))
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return rng.random() < 0.5
    if field.cpp_type in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return rng.choice((0.0, 1.5, -2.25, 1e10, float("inf")))
    if field.type == FieldDescriptor.TYPE_BYTES:
        return bytes(rng.choices((0, 8, 65, 200, 255), k=rng.randint(0, 4)))
    return rng.choice(("", "a", "é", "\x08\x01", "long enough to be no number"))


def loss(written: Message, reader: Descriptor) -> str:
    """What the reader loses of a datum, "" for nothing: by number, and by name where the reader has moved it."""
    try:
        read = GetMessageClass(reader).FromString(written.SerializeToString())
    except DecodeError as error:
        return f"error: {error}"
    if not read.IsInitialized():
        return f"missing: {read.FindInitializationErrors()}"
    return difference(written, read)


def difference(written: Message, read: Message) -> str:
    for theirs in written.DESCRIPTOR.fields:
        ours = read.DESCRIPTOR.fields_by_name.get(theirs.name) or read.DESCRIPTOR.fields_by_number.get(theirs.number)
        if ours is None or (theirs.has_presence and not written.HasField(theirs.name)):
            continue
        left, right = items(written, theirs), items(read, ours)
        if theirs.is_repeated and not ours.is_repeated and not left:
            continue
        if not theirs.is_repeated and ours.is_repeated and left in ([0], [""], [b""], [False]) and not right:
            continue
        if not ours.is_repeated and ours.message_type is not None and not read.HasField(ours.name):
            return f"{theirs.name}: not set"
        is_different = len(left) != len(right) or next(
            (d for a, b in zip(left, right, strict=True) if (d := one(theirs, ours, a, b))), ""
        )
        if is_different:
            return f"{theirs.name}: {left} became {right} {is_different}"
    return ""


def items(datum: Message, field: FieldDescriptor) -> list[Any]:
    value = getattr(datum, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return [(key, value[key]) for key in sorted(value, key=str)]
    return list(value) if field.is_repeated else [value]


def one(theirs: FieldDescriptor, ours: FieldDescriptor, left: Any, right: Any) -> str:
    if isinstance(left, tuple) != isinstance(right, tuple):
        return "a map and no map"
    if isinstance(left, tuple):
        keys = [field.message_type.fields_by_number[1] for field in (theirs, ours)]
        values = [field.message_type.fields_by_number[2] for field in (theirs, ours)]
        return one(*keys, left[0], right[0]) or one(*values, left[1], right[1])
    if isinstance(left, Message) or isinstance(right, Message):
        if not (isinstance(left, Message) and isinstance(right, Message)):
            return "a message and no message"
        return difference(left, right)
    if theirs.enum_type is not None and ours.enum_type is not None and left == right:
        names = [value.name for value in theirs.enum_type.values if value.number == left]
        numbers = [
            ours.enum_type.values_by_name[name].number for name in names if name in ours.enum_type.values_by_name
        ]
        return "" if not numbers or left in numbers else "another number of the same name"
    if ours.type == FieldDescriptor.TYPE_STRING and isinstance(right, bytes):
        return "no text"
    a, b = (value.encode() if isinstance(value, str) else value for value in (left, right))
    return "" if a == b and isinstance(a, bytes) == isinstance(b, bytes) else "another value"


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


def _enum(rng: random.Random, name: str, index: int, syntax: str) -> Tree:
    values = {f"V{index}_0": 0}
    for i in range(1, rng.randint(2, 5)):
        values[f"V{index}_{i}"] = rng.choice((i, i + 10, -i))
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
