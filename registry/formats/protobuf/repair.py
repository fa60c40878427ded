"""Edits of a schema that remove a finding against another, or that declare a suspected rename.

An edited text is compiled and judged again; an edit that doesn't help isn't offered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from registry.errors import InvalidInput
from registry.formats.base import Difference, Edit, Incompatibility
from registry.formats.json_pointer import unescape
from registry.formats.protobuf.findings import field_hazards
from registry.formats.protobuf.model import (
    Enum,
    Field,
    Message,
    Schema,
    field_at,
    holder_at,
    message_at,
    message_of,
    message_of_name,
)
from registry.formats.protobuf.options import quoted
from registry.formats.protobuf.parser import parse_schema
from registry.formats.protobuf.renames import is_likely
from registry.formats.protobuf.rules import RULES
from registry.formats.protobuf.text.positions import Editor, NoPlace
from registry.formats.protobuf.text.printer import field_text, label_and_type, label_outside, message_text
from registry.formats.protobuf.verdict import judge

_NAME: Final = 1
_NUMBER: Final = 3
_NEW_NUMBER: Final = " the new number "
_FORMER_NUMBER: Final = " the number "
_LOSS: Final = " then no longer holds"


@dataclass(frozen=True, slots=True)
class Job:
    """One finding to repair: `mine` is edited, `other` stays; each has a pointer."""

    mine: Schema
    other: Schema
    finding: Incompatibility
    mine_pointer: str
    other_pointer: str
    is_reader: bool

    @property
    def mine_field(self) -> Field | None:
        """The field of the finding on the edited side."""
        return field_at(self.mine, self.mine_pointer)

    @property
    def other_field(self) -> Field | None:
        """The field on the other side."""
        return field_at(self.other, self.other_pointer)


def repair(schema: Schema, other: Schema, finding: Incompatibility, *, is_reader: bool) -> Edit | None:
    """Return the edit of `schema` that removes the finding against `other`; None if there is none or none helps."""
    mine, theirs = (finding.reader_pointer, finding.writer_pointer)
    sources = (finding.reader_source, finding.writer_source)
    if not is_reader:
        mine, theirs, sources = theirs, mine, sources[::-1]
    if mine is None or theirs is None or sources[0] is not None or finding.rule not in _EDITS:
        return None
    job = Job(schema, other, finding, mine, theirs, is_reader)
    editor = Editor(schema)
    try:
        title = _EDITS[finding.rule](job, editor)
        text = editor.text() if title is not None else ""
        edited = parse_schema(text, schema.references) if title is not None else None
    except (NoPlace, InvalidInput):
        return None
    if edited is None or title is None or _is_there(edited, job):
        return None
    step = _EDITS[finding.rule]
    if _NEW_NUMBER in title or _FORMER_NUMBER in title:
        step = _new_number if _NEW_NUMBER in title else _number
    effect = _FOR_OLD_READERS if step is _oneof and not is_reader else _EFFECTS[step]
    # old data has nothing under a new number: readers get the default of the type
    return Edit(title, text, is_invented=_LOSS in title, effect=effect)


def _is_there(edited: Schema, job: Job) -> bool:
    """Return whether the finding remains after the edit, or is replaced by other breaks."""
    after, before = (judge(mine, job.other) if job.is_reader else judge(job.other, mine) for mine in (edited, job.mine))
    key = (job.finding.rule, job.finding.path)
    return len(after.breaks) > len(before.breaks) or any(
        (item.rule, item.path) == key for item in (*after.breaks, *after.hazards)
    )


def accept_rename(old: Schema, new: Schema, suspected: Difference) -> Edit | None:
    """Return the edit of `new` that restores the renamed field's number, and its JSON name if JSON needs it.

    None if the number is taken or reserved. The title says which values still change.
    """
    if suspected.rule != "FIELD_RENAME_SUSPECTED" or not suspected.pointer_old or not suspected.pointer_new:
        return None
    before, field = field_at(old, suspected.pointer_old), field_at(new, suspected.pointer_new)
    message = holder_at(new, suspected.pointer_new)
    if before is None or field is None or message is None or message.numbered(before.number) is not None:
        return None
    if field.accepts_json_of(before):
        return _with_number_of(before, field, new, keeps_json_name=False)
    with_json_name = _with_number_of(before, field, new, keeps_json_name=True)
    return with_json_name or _with_number_of(before, field, new, keeps_json_name=False)


def _with_number_of(before: Field, field: Field, new: Schema, *, keeps_json_name: bool) -> Edit | None:
    """Return `new` with the field under the number of `before`; None if that text doesn't compile."""
    editor = Editor(new)
    try:
        begin, end = editor.place(field.pointer, _NUMBER)
        editor.replace(begin, end, str(before.number))
        if keeps_json_name:
            _set_json_name(editor, field, before.json_name, end)
        text = editor.text()
        parse_schema(text, new.references)
    except (NoPlace, InvalidInput):
        return None
    title = f'give "{field.name}" the number {before.number}, which "{before.name}" had'
    if keeps_json_name:
        title += f', and keep its JSON name "{before.json_name}"'
    elif not field.accepts_json_of(before):
        title += f': JSON readers still lose the values of "{before.json_name}"'
    losses = [
        RULES[rule].sentence.format(name=name, writer=theirs, reader=ours)
        for rule, name, theirs, ours in field_hazards(before, field, is_moved=True)
        if RULES[rule].severity == "value loss"
    ]
    effect = f'Old data under number {before.number} is read as "{field.name}". Old readers find new data there.'
    return Edit("; ".join([title, *losses]), text, effect=effect)


def _set_json_name(editor: Editor, field: Field, name: str, end: int) -> None:
    """Add the option to a field without it; `end` is the end of its number. Raises NoPlace."""
    try:
        begin, _ = editor.place(f"{field.pointer}/options")
    except NoPlace:
        editor.replace(end, end, f" [json_name = {quoted(name)}]")
    else:
        editor.replace(begin + 1, begin + 1, f"json_name = {quoted(name)}, ")


def _package(job: Job, editor: Editor) -> str | None:
    package = job.other.main.package
    statement = f"package {package};" if package else ""
    if job.mine.main.package:
        begin, end = editor.place("/package")
        editor.replace(begin, end, statement)
    else:
        try:
            _, end = editor.place("/syntax")
        except NoPlace:
            end = 0
        editor.replace(end, end, f"\n{statement}\n" if end else f"{statement}\n")
    return f'set the package to "{package}"' if package else "remove the package"


def _message(job: Job, editor: Editor) -> str | None:
    if job.is_reader:
        message = message_at(job.other, job.other_pointer)
        if message is None:
            return None
        editor.insert(job.mine_pointer, message_text(job.other, message, job.mine))
        return f'add the message "{message.local_name}" again'
    mine = message_at(job.mine, job.mine_pointer)
    if mine is None:
        return None
    editor.delete(mine.pointer)
    return f'remove the message "{mine.local_name}"'


def _type(job: Job, editor: Editor) -> str | None:
    """Give a field the type and label of the other side."""
    mine, other = job.mine_field, job.other_field
    if mine is None or other is None or "group" in (mine.kind, other.kind):
        return None
    if mine.name != other.name and not is_likely(other, mine):  # a different field would take over the other's data
        return _new_number(job, editor)
    begin, _ = editor.place(mine.pointer)
    end, _ = editor.place(mine.pointer, _NAME)
    keeps_label = mine.is_repeated == other.is_repeated and not (mine.is_map or other.is_map)
    declaration = label_and_type(other, job.other, job.mine, is_member=keeps_label or mine.oneof is not None)
    if keeps_label and mine.label:
        declaration = f"{mine.label} {declaration}"
    editor.replace(begin, end, f"{declaration} ")
    message = other.message.by_number[2].message if other.is_map and other.message is not None else other.message
    if message is not None and message.source is None and message_of(job.mine, message) is None:
        outside = message_of_name(job.mine, message.local_name.rpartition(".")[0])
        editor.insert(outside.pointer if outside is not None else "", message_text(job.other, message, job.mine))
    return f'give "{mine.name}" the type {declaration}'


def _required(job: Job, editor: Editor) -> str | None:
    """Repair a required field that one side lacks: the side with it makes it optional, the other adds it."""
    mine, other = job.mine_field, job.other_field
    if mine is not None and (other is None or job.is_reader):
        if mine.label != "required":
            return None
        begin, _ = editor.place(mine.pointer)
        editor.replace(begin, begin + len("required"), "optional")
        return f'make "{mine.name}" optional'
    if mine is None and other is not None:
        editor.insert(job.mine_pointer, field_text(job.other, other, job.mine))
        return f'add the field "{other.name}" as the other side has it'
    if mine is not None and mine.label == "optional":
        begin, _ = editor.place(mine.pointer)
        editor.replace(begin, begin + len("optional"), "required")
        return f'require "{mine.name}"'
    return None


def _member(job: Job, editor: Editor) -> str | None:
    """Repair a member that the reader's oneof lacks: the reader adds it, the writer removes it."""
    if job.is_reader:
        other = job.other_field
        if other is None:
            return None
        editor.insert(job.mine_pointer, field_text(job.other, other, job.mine, is_member=True))
        return f'add the member "{other.name}" again'
    mine, message = job.mine_field, holder_at(job.mine, job.mine_pointer)
    if mine is None or message is None:
        return None
    theirs = message_of(job.other, message)
    namesake = next((field for field in theirs.fields if field.name == mine.name), None) if theirs is not None else None
    if namesake is not None and namesake.number != mine.number:  # the same field under another number
        editor.replace(*editor.place(mine.pointer, _NUMBER), str(namesake.number))
        return f'give "{mine.name}" the number {namesake.number} again'
    outside = theirs.numbered(mine.number) if theirs is not None else None
    if outside is not None and mine.oneof is not None:
        return _take_out(job, message, mine.oneof, {mine.number: outside}, editor)
    editor.delete(mine.pointer)
    return f'remove the member "{mine.name}"'


def _oneof(job: Job, editor: Editor) -> str | None:
    """Repair fields that only the reader has in a oneof: the reader moves them out, the writer moves them in."""
    reader, writer = (job.mine, job.other) if job.is_reader else (job.other, job.mine)
    pointer = job.mine_pointer if job.is_reader else job.other_pointer
    name = unescape(pointer.rpartition("/")[2])
    ours = message_at(reader, pointer.rpartition("/oneofs/")[0])
    theirs = message_of(writer, ours)
    if ours is None or theirs is None or name not in ours.oneofs:
        return None
    numbers = [n for n in ours.oneofs[name].numbers if n in theirs.by_number]
    if job.is_reader:
        outside = [n for n in numbers if theirs.by_number[n].oneof is None]
        return _take_out(job, ours, name, {number: theirs.by_number[number] for number in outside}, editor)
    return _put_in(theirs, name, numbers, editor)


def _take_out(job: Job, message: Message, name: str, numbers: Mapping[int, Field], editor: Editor) -> str | None:
    """Move fields out of a oneof as written, with the labels of the other side."""
    if not numbers:
        return None
    lines = [
        editor.statement(message.by_number[number].pointer, label_outside(theirs, job.mine))
        for number, theirs in numbers.items()
    ]
    if set(numbers) == set(message.oneofs[name].numbers):
        editor.delete(message.oneofs[name].pointer)
    else:
        for number in numbers:
            editor.delete(message.by_number[number].pointer)
    editor.insert(message.pointer, *lines)
    moved = ", ".join(message.by_number[number].name for number in numbers)
    return f'move {moved} out of the oneof "{name}"'


def _put_in(message: Message, name: str, numbers: list[int], editor: Editor) -> str | None:
    moved = [message.by_number[number] for number in numbers if message.by_number[number].oneof != name]
    if any(field.oneof is not None or field.is_repeated or field.label == "required" for field in moved):
        return None
    lines = [editor.statement(field.pointer, without=field.label) for field in moved]
    for field in moved:
        editor.delete(field.pointer)
    if name in message.oneofs:
        editor.insert(message.oneofs[name].pointer, *lines)
    else:
        editor.insert(
            message.pointer,
            "\n".join([f"oneof {name} {{", *(f"  {part}" for line in lines for part in line.split("\n")), "}"]),
        )
    return f'put {", ".join(field.name for field in moved)} into the oneof "{name}"'


def _rename(job: Job, editor: Editor) -> str | None:
    mine, other = job.mine_field, job.other_field
    if mine is None or other is None:
        return None
    editor.replace(*editor.place(mine.pointer, _NAME), other.name)
    return f'call the field "{other.name}" again'


def _number(job: Job, editor: Editor) -> str | None:
    """Give a field its number on the other side again, and also the fields that have taken those numbers."""
    field, message = job.mine_field, holder_at(job.mine, job.mine_pointer)
    theirs = holder_at(job.other, job.other_pointer)
    numbers = {other.name: other.number for other in theirs.fields} if theirs is not None else {}
    moved: list[Field] = []
    while field is not None and message is not None and field not in moved:
        if numbers.get(field.name, field.number) == field.number:
            return None  # its number is taken by a field that the other side has there, or lacks
        moved.append(field)
        field = message.numbered(numbers[field.name])
    for field in moved:
        editor.replace(*editor.place(field.pointer, _NUMBER), str(numbers[field.name]))
    pairs = (f'"{field.name}"{_FORMER_NUMBER}{numbers[field.name]}' for field in moved)
    return f"give {', '.join(pairs)} again" if moved else None


def _new_number(job: Job, editor: Editor) -> str | None:
    mine, message = job.mine_field, holder_at(job.mine, job.mine_pointer)
    other = holder_at(job.other, job.other_pointer)
    if mine is None or message is None or other is None:
        return None
    if any(field.name == mine.name for field in other.fields) and (former := _number(job, editor)):
        return former
    number = max((*message.by_number, *other.by_number)) + 1
    while 19_000 <= number < 20_000 or message.is_reserved(number) or other.is_reserved(number):
        number += 1
    editor.replace(*editor.place(mine.pointer, _NUMBER), str(number))
    editor.insert(message.pointer, f"reserved {mine.number};")
    theirs = other.numbered(mine.number)
    loss = f': "{mine.name}"{_LOSS} what "{theirs.name}" held' if theirs is not None else ""
    return f'give "{mine.name}"{_NEW_NUMBER}{number} and reserve {mine.number}{loss}'


def _enum_values(job: Job, editor: Editor) -> str | None:
    """Add the writer's missing values to the reader's enum."""
    mine, other = _enums(job)
    if mine is None or other is None or not job.is_reader:
        return None
    missing = {name: n for name, n in other.numbers.items() if n not in mine.by_number and name not in mine.numbers}
    if not missing:
        return None
    editor.insert(mine.pointer, *(f"{name} = {number};" for name, number in missing.items()))
    return f"add the values {', '.join(missing)}"


def _enum_numbers(job: Job, editor: Editor) -> str | None:
    mine, other = _enums(job)
    if mine is None or other is None:
        return None
    moved = [name for name, number in mine.numbers.items() if other.numbers.get(name, number) != number]
    for name in moved:
        pointer = f"{mine.pointer}/values/{mine.numbers[name]}"
        editor.replace(*editor.place(pointer, 2), str(other.numbers[name]))
    return f"give {', '.join(moved)} the numbers of the other side" if moved else None


def _enums(job: Job) -> tuple[Enum | None, Enum | None]:
    mine, other = job.mine_field, job.other_field
    enums = tuple(field.enum if field is not None else None for field in (mine, other))
    return (None, None) if enums[0] is None or enums[0].source is not None else (enums[0], enums[1])


_EDITS: Final[Mapping[str, Callable[[Job, Editor], str | None]]] = {
    "PACKAGE_CHANGED": _package,
    "MESSAGE_REMOVED": _message,
    "FIELD_KIND_CHANGED": _type,
    "FIELD_SCALAR_KIND_CHANGED": _type,
    "FIELD_NAMED_TYPE_CHANGED": _type,
    "KNOWN_TYPE_REINTERPRETED": _type,
    "FIELD_NUMERIC_LABEL_CHANGED": _type,
    "VALUE_NARROWED": _type,
    "BYTES_READ_AS_STRING": _type,
    "REPEATED_READ_AS_SINGLE": _type,
    "REQUIRED_FIELD_ADDED": _required,
    "REQUIRED_FIELD_REMOVED": _required,
    "REQUIRED_INTRODUCED": _required,
    "ONEOF_FIELD_REMOVED": _member,
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": _oneof,
    "FIELD_MOVED_TO_EXISTING_ONEOF": _oneof,
    "FIELD_RENAMED": _rename,
    "FIELD_RENAMED_JSON_KEPT": _rename,
    "FIELD_RENUMBERED": _number,
    "NUMBER_REUSED": _new_number,
    "CLOSED_ENUM_VALUE_MISSING": _enum_values,
    "ENUM_VALUE_MISSING": _enum_values,
    "ENUM_VALUE_RENUMBERED": _enum_numbers,
}

_FOR_OLD_READERS: Final = "New data has at most one of these fields, as old readers expect. Old data isn't affected."
#: what each edit does to old data and old readers
_EFFECTS: Final[Mapping[Callable[[Job, Editor], str | None], str]] = {
    _package: "Old and new programs know the messages by the same names.",
    _message: "Old and new programs have the same messages. Old data isn't affected.",
    _type: "Old data is read with the type that wrote it, and old readers get what they expect.",
    _required: "Old data without the field stays readable. Readers that require it need it in all new data.",
    _member: "Old and new programs agree on what the oneof holds. Old data isn't affected.",
    _oneof: "Old data with several of these fields keeps them all.",
    _rename: "JSON and generated code find the old name again. Binary data isn't affected.",
    _number: "Old data is read under the number that it was written with, and old readers find new data there.",
    _new_number: "Old data under the old number is skipped, never misread, and the number stays reserved. "
    "Old readers don't see the new field.",
    _enum_values: "Old data with these values is read by name. Old readers aren't affected.",
    _enum_numbers: "Old data and old readers use the same numbers for the same names.",
}
