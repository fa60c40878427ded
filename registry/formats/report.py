"""The compatibility report: one object for the API, the pages, commands and CI."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from registry.formats.base import Incompatibility, ParsedSchema, Severity, Witness, values_of
from registry.formats.schema_format import DEFAULT_FORMAT, FORMATS, SchemaFormat

Direction = Literal["BACKWARD", "FORWARD"]
Profile = Literal["confluent", "semantic"]
Verdict = Literal["compatible", "incompatible", "differs"]

#: the severities that decide the verdict: the reference implementation's rules ignore value loss, the data check
#: doesn't
DECISIVE: Final[Mapping[Profile, frozenset[Severity]]] = {
    "confluent": frozenset({"break"}),
    "semantic": frozenset({"break", "value loss"}),
}
PROFILES: Final[tuple[Profile, ...]] = tuple(DECISIVE)

#: version of the code that makes reports; each report shows it, so that two reports on the same texts can be told apart
CHECKER_VERSION: Final = "0.1.0"

_MAX_SCHEMA_IN_MESSAGE: Final = 10 * 1024


@dataclass(frozen=True, slots=True)
class ReportItem:
    """One finding against one version in one direction.

    `before` and `json_pointer_old` are of the version, `after` and `json_pointer_new` of the new schema, in both
    directions. `line` and `column` (from 1) are in the new schema's text, `old_line` and `old_column` in the version's;
    None if the place is in a referenced schema. `remedy` is a change of the new schema. `decoders` names the affected
    decoders if others read the same data unchanged; it is empty if all are affected.
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
    witness: Witness | None = None
    decoders: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the item as JSON values."""
        return {
            **values_of(self, "causes", "witness", "decoders"),
            "decoders": list(self.decoders),
            "witness": self.witness.to_dict() if self.witness else None,
            "causes": [cause.to_dict() for cause in self.causes],
        }

    def confluent_message(self) -> str:
        """Return the item in the shape of Confluent's `verbose` messages."""
        if self.kind == "SCHEMA_TYPE_CHANGED":
            return "Incompatible because of different schema type"
        formats = (item for item in FORMATS.values() if self.kind in item.confluent_sentences)
        format = next(formats, FORMATS[DEFAULT_FORMAT])
        reader, writer = ("new", "old") if self.direction == "BACKWARD" else ("old", "new")
        values = {"location": self.location, "detail": self.detail, "reader": reader, "writer": writer}
        sentence = format.confluent_sentences.get(self.kind, "").format_map(values) or self.message
        return format.confluent_shape.format(kind=self.kind, said=sentence, detail=self.detail)


@dataclass(frozen=True, slots=True)
class Report:
    """The verdict of one level, with every finding against every version that the level names, newest first.

    `versions` are those checked; `old_schemas` are their canonical texts. `differing` are the (version, direction)
    pairs whose result depends on the decoder.
    """

    level: str
    is_compatible: bool
    profile: Profile = "confluent"
    items: tuple[ReportItem, ...] = ()
    versions: tuple[int, ...] = ()
    upgrade_order: str = ""
    old_schemas: Mapping[int, str] = field(default_factory=dict, repr=False)
    differing: tuple[tuple[int, Direction], ...] = ()

    @property
    def breaks(self) -> tuple[ReportItem, ...]:
        """The items that decide the verdict."""
        return tuple(item for item in self.items if item.severity in DECISIVE[self.profile])

    @property
    def verdict(self) -> Verdict:
        """The verdict; `differs` if every incompatible pair is safe with at least one decoder."""
        if self.is_compatible:
            return "compatible"
        pairs = {(item.against_version, item.direction) for item in self.breaks}
        return "differs" if pairs <= set(self.differing) else "incompatible"

    @property
    def hazards(self) -> tuple[ReportItem, ...]:
        """The items that pass the level but change values or deserve a look."""
        return tuple(item for item in self.items if item.severity not in DECISIVE[self.profile])

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "level": self.level,
            "profile": self.profile,
            "is_compatible": self.is_compatible,
            "verdict": self.verdict,
            "versions": list(self.versions),
            "upgrade_order": self.upgrade_order,
            "items": [item.to_dict() for item in self.items],
        }

    def messages(self) -> list[str]:
        """Return the `messages` of Confluent's verbose answer; empty if the schema is compatible."""
        messages: list[str] = []
        for version in self.versions:
            items = [item for item in self.breaks if item.against_version == version]
            if not items:
                continue
            messages.extend(item.confluent_message() for item in items)
            messages.append(f"{{oldSchemaVersion: {version}}}")
            messages.append(_old_schema_message(self.old_schemas.get(version, "")))
        if messages:
            messages.append(f"{{validateFields: 'false', compatibility: '{self.level}'}}")
        return messages


def item_from(
    format: SchemaFormat,
    finding: Incompatibility,
    direction: Direction,
    version: int,
    new: ParsedSchema,
    old: ParsedSchema,
) -> ReportItem:
    """Return a finding as an item from the new schema's view: with lines and columns, and the cure on its side."""
    if direction == "BACKWARD":
        new_pointer, new_source = finding.reader_pointer, finding.reader_source
        old_pointer, old_source = finding.writer_pointer, finding.writer_source
        before, after, remedy = finding.before, finding.after, finding.remedy_in_reader
    else:
        new_pointer, new_source = finding.writer_pointer, finding.writer_source
        old_pointer, old_source = finding.reader_pointer, finding.reader_source
        before, after, remedy = finding.after, finding.before, finding.remedy_in_writer
    line, column = _position(format, new, new_pointer, new_source)
    old_line, old_column = _position(format, old, old_pointer, old_source)
    return ReportItem(
        rule=finding.rule,
        kind=finding.kind,
        direction=direction,
        against_version=version,
        named_path=finding.path,
        json_pointer_new=new_pointer,
        json_pointer_old=old_pointer,
        line=line,
        column=column,
        old_line=old_line,
        old_column=old_column,
        before=before,
        after=after,
        severity=finding.severity,
        message=finding.message,
        why=finding.why,
        remedy=remedy,
        location=finding.location,
        detail=finding.detail,
        example=finding.example,
        witness=finding.witness,
        decoders=finding.decoders,
        causes=tuple(item_from(format, cause, direction, version, new, old) for cause in finding.causes),
    )


def _position(
    format: SchemaFormat, schema: ParsedSchema, pointer: str | None, source: str | None
) -> tuple[int | None, int | None]:
    if pointer is None or source is not None or schema.schema_type != format.name:
        return None, None
    return format.position(schema, pointer) or (None, None)


def _old_schema_message(schema: str) -> str:
    if len(schema) <= _MAX_SCHEMA_IN_MESSAGE:
        return f"{{oldSchema: '{schema}'}}"
    return f"{{oldSchema: <truncated> '{schema[:_MAX_SCHEMA_IN_MESSAGE]}...'}}"
