"""The compatibility report: one object for the API, the pages, commands and CI."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from registry.formats.base import Incompatibility, ParsedSchema, Severity
from registry.formats.pointer import position

Direction = Literal["BACKWARD", "FORWARD"]

_MAX_SCHEMA_IN_MESSAGE: Final = 10 * 1024

# The sentences that Confluent's registry writes in `verbose` answers; clients and their tests look for them.
# {reader} and {writer} are "new" or "old".
_DESCRIPTIONS: Final[Mapping[str, str]] = {
    "FIXED_SIZE_MISMATCH": "The size of FIXED type field at path '{location}' in the {reader} schema does not match "
    "with the {writer} schema",
    "TYPE_MISMATCH": "The type (path '{location}') of a field in the {reader} schema does not match with the "
    "{writer} schema",
    "NAME_MISMATCH": "The name of the schema has changed (path '{location}')",
    "MISSING_ENUM_SYMBOLS": "The {reader} schema is missing enum symbols '{detail}' at path '{location}' in the "
    "{writer} schema",
    "MISSING_UNION_BRANCH": "The {reader} schema is missing a type inside a union field at path '{location}' in the "
    "{writer} schema",
    "READER_FIELD_MISSING_DEFAULT_VALUE": "The field '{detail}' at path '{location}' in the {reader} schema has no "
    "default value and is missing in the {writer} schema",
}


@dataclass(frozen=True, slots=True)
class ReportItem:
    """One finding against one version in one direction.

    `before` and `json_pointer_old` are of the version, `after` and `json_pointer_new` of the new schema, whichever of
    the two reads. `line` and `column` (from 1) are in the new schema's text, `old_line` and `old_column` in the
    version's; None where the place is in a referenced schema. `remedy` is a change of the new schema.
    """

    rule: str
    kind: str
    direction: Direction
    against_version: int
    named_path: str
    json_pointer_new: str | None
    json_pointer_old: str | None
    line: int | None
    column: int | None
    old_line: int | None
    old_column: int | None
    before: Any
    after: Any
    severity: Severity
    message: str
    why: str
    remedy: str
    location: str
    detail: str
    causes: tuple[ReportItem, ...] = ()
    example: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The item as JSON values."""
        return {
            "rule": self.rule,
            "kind": self.kind,
            "direction": self.direction,
            "against_version": self.against_version,
            "named_path": self.named_path,
            "json_pointer_new": self.json_pointer_new,
            "json_pointer_old": self.json_pointer_old,
            "line": self.line,
            "column": self.column,
            "old_line": self.old_line,
            "old_column": self.old_column,
            "before": self.before,
            "after": self.after,
            "severity": self.severity,
            "message": self.message,
            "why": self.why,
            "remedy": self.remedy,
            "location": self.location,
            "detail": self.detail,
            "example": self.example,
            "causes": [cause.to_dict() for cause in self.causes],
        }

    def confluent_message(self) -> str:
        """The item in the shape of Confluent's `verbose` messages."""
        if self.kind == "SCHEMA_TYPE_CHANGED":
            return "Incompatible because of different schema type"
        reader, writer = ("new", "old") if self.direction == "BACKWARD" else ("old", "new")
        values = {"location": self.location, "detail": self.detail, "reader": reader, "writer": writer}
        template = _DESCRIPTIONS.get(self.kind)
        description = template.format_map(values) if template is not None else self.message
        return f"{{errorType:'{self.kind}', description:'{description}', additionalInfo:'{self.detail}'}}"


@dataclass(frozen=True, slots=True)
class Report:
    """The verdict of one level, with every finding against every version that the level names, newest first.

    `versions` are those checked; `old_schemas` their canonical texts.
    """

    level: str
    is_compatible: bool
    items: tuple[ReportItem, ...] = ()
    versions: tuple[int, ...] = ()
    upgrade_order: str = ""
    old_schemas: Mapping[int, str] = field(default_factory=dict, repr=False)

    @property
    def breaks(self) -> tuple[ReportItem, ...]:
        """The items that decide the verdict."""
        return tuple(item for item in self.items if item.severity == "break")

    @property
    def hazards(self) -> tuple[ReportItem, ...]:
        """The items that pass the level and yet change values or deserve a look."""
        return tuple(item for item in self.items if item.severity != "break")

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "level": self.level,
            "is_compatible": self.is_compatible,
            "versions": list(self.versions),
            "upgrade_order": self.upgrade_order,
            "items": [item.to_dict() for item in self.items],
        }

    def messages(self) -> list[str]:
        """What Confluent's API gives as `messages` in a verbose answer; empty if the schema is compatible."""
        messages: list[str] = []
        for version in self.versions:
            found = [item for item in self.breaks if item.against_version == version]
            if not found:
                continue
            messages.extend(item.confluent_message() for item in found)
            messages.append(f"{{oldSchemaVersion: {version}}}")
            messages.append(_old_schema_message(self.old_schemas.get(version, "")))
        if messages:
            messages.append(f"{{validateFields: 'false', compatibility: '{self.level}'}}")
        return messages

    def to_text(self) -> str:
        """The report for a terminal: the verdict, then every item with its place, reason and cure."""
        verdict = "compatible" if self.is_compatible else "incompatible"
        asked = ", ".join(map(str, self.versions))
        head = f"{verdict} under {self.level}" + (
            f", checked against version {asked}" if asked else "; nothing to check"
        )
        return "\n".join([head, *(_item_text(item) for item in self.items)])


_READING: Final[Mapping[Direction, str]] = {"BACKWARD": "the new schema reads", "FORWARD": "the new schema is read by"}


def _item_text(item: ReportItem) -> str:
    place = f" (line {item.line}, column {item.column})" if item.line is not None else ""
    lines = [
        f"{item.severity.upper()} {item.rule} at {item.named_path}{place}: "
        f"{_READING[item.direction]} version {item.against_version}",
        f"    {item.message}",
        f"    why: {item.why}" if item.why else "",
        f"    cure: {item.remedy}" if item.remedy else "",
    ]
    return "\n".join(filter(None, lines))


def item_from(
    found: Incompatibility, direction: Direction, version: int, new: ParsedSchema, old: ParsedSchema
) -> ReportItem:
    """A format's finding as an item: seen from the new schema, with lines and columns, and the cure on its side."""
    if direction == "BACKWARD":
        new_pointer, new_source = found.reader_pointer, found.reader_source
        old_pointer, old_source = found.writer_pointer, found.writer_source
        before, after, remedy = found.before, found.after, found.remedy_in_reader
    else:
        new_pointer, new_source = found.writer_pointer, found.writer_source
        old_pointer, old_source = found.reader_pointer, found.reader_source
        before, after, remedy = found.after, found.before, found.remedy_in_writer
    line, column = _position(new, new_pointer, new_source)
    old_line, old_column = _position(old, old_pointer, old_source)
    return ReportItem(
        rule=found.rule,
        kind=found.kind,
        direction=direction,
        against_version=version,
        named_path=found.path,
        json_pointer_new=new_pointer,
        json_pointer_old=old_pointer,
        line=line,
        column=column,
        old_line=old_line,
        old_column=old_column,
        before=before,
        after=after,
        severity=found.severity,
        message=found.message,
        why=found.why,
        remedy=remedy,
        location=found.location,
        detail=found.detail,
        example=found.example,
        causes=tuple(item_from(cause, direction, version, new, old) for cause in found.causes),
    )


def _position(schema: ParsedSchema, pointer: str | None, source: str | None) -> tuple[int | None, int | None]:
    if pointer is None or source is not None:
        return None, None
    return position(schema.text, pointer) or (None, None)


def _old_schema_message(schema: str) -> str:
    if len(schema) <= _MAX_SCHEMA_IN_MESSAGE:
        return f"{{oldSchema: '{schema}'}}"
    return f"{{oldSchema: <truncated> '{schema[:_MAX_SCHEMA_IN_MESSAGE]}...'}}"
