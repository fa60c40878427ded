"""The edits of a field that people ask about, each made in the schema's text and checked by the engines.

What isn't known is "unknown", never "fine".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from registry.errors import InvalidReference, InvalidSchema, NotFound, SchemadeskError, Unavailable
from registry.formats import format_of
from registry.formats.base import FieldEdit, OutlineField, ParsedSchema
from registry.formats.compatibility import LEVELS, History, LevelOverview
from registry.formats.report import DECISIVE, Direction, ReportItem
from registry.subjects.comparison.comparison import live_rows
from registry.subjects.engine import schema_engine
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.policy.effective_policy import EffectiveConfig, effective_config
from registry.subjects.versions.lookup import get_subject
from registry.subjects.versions.parsed_schemas import parser_of
from registry.subjects.versions.qualified_names import SubjectName

EffectAnswer = Literal["breaks", "care", "unknown", "fine"]
RowKind = Literal[
    "readers", "writers", "level", "table", "connector", "topic", "producer", "subject", "query", "state", "consumer",
    "request",
]  # fmt: skip
#: limits of one look: versions, and characters of all of them
MAX_VERSIONS: Final = 50
MAX_CHARACTERS: Final = 1_000_000
#: a longer schema is checked by the rules alone
LONGEST_PROVED: Final = 100_000
#: errors that leave something unknown
UNREADABLE: Final = (InvalidSchema, InvalidReference, Unavailable)


@dataclass(frozen=True)
class EditEffect:
    """What an edit does to one thing."""

    edit: FieldEdit
    answer: EffectAnswer
    sentence: str = ""


@dataclass(frozen=True)
class ImpactRow:
    """One thing with the effects of the edits on it; none on what comes before the subject in the flow.

    `evidence` says how the thing is known to have the field. `node` is its id in the lineage, `key` what its page's URL
    has besides the registry.
    """

    kind: RowKind
    name: str
    effects: tuple[EditEffect, ...] = ()
    evidence: str = ""
    node: str = ""
    key: str = ""


@dataclass(frozen=True)
class EditedSchema:
    """The schema after an edit, or the `problem` that prevents it."""

    edit: FieldEdit
    title: str = ""
    schema: ParsedSchema | None = None
    problem: str = ""
    levels: LevelOverview | None = None

    def effect(self, answer: EffectAnswer, sentence: str = "") -> EditEffect:
        """Return an effect of this edit."""
        return EditEffect(self.edit, answer, sentence)

    @property
    def unknown(self) -> EditEffect:
        """The effect on anything if the edit can't be made."""
        return self.effect("unknown", self.problem)


@dataclass(frozen=True)
class EditedField:
    """A field of the newest version, in its schema and after each edit. `names` are those of its parents and its own."""

    path: str
    row: OutlineField
    names: tuple[str, ...]
    outline: tuple[OutlineField, ...]
    history: History
    config: EffectiveConfig
    unread: tuple[int, ...] = ()
    edits: tuple[EditedSchema, ...] = ()

    @property
    def schema(self) -> ParsedSchema:
        """The newest version's schema."""
        return self.history[-1][1]


def edited_field(registry: Registry, subject: SubjectName, path: str) -> EditedField:
    """Return the field of the newest version with all edits that its format makes; a constant number of queries.

    Raises SubjectNotFound, NotFound, InvalidSchema, InvalidReference, Unavailable.
    """
    named = {"context__registry": registry, "context__name": subject.context, "name": subject.subject}
    versions = SchemaVersion.objects.filter(**{f"subject__{column}": value for column, value in named.items()})
    rows = list(versions.filter(deleted_at=None).select_related("schema").order_by("version"))
    rows = rows or live_rows(get_subject(registry, subject))
    count = max(1, min(MAX_VERSIONS, MAX_CHARACTERS // max(1, len(rows[-1].schema.canonical))))
    chosen, unread = rows[-count:], [row.version for row in rows[:-count]]
    parse, history = parser_of([row.schema for row in chosen]), list[tuple[int, ParsedSchema]]()
    newest = parse(chosen[-1].schema)
    for row in chosen[:-1]:
        try:
            history.append((row.version, parse(row.schema)))
        except UNREADABLE:
            unread.append(row.version)
    history.append((chosen[-1].version, newest))
    outline = schema_engine.outline(newest)
    outline_row, names = _row_at(outline, path)
    config = effective_config(registry, subject)
    edits = tuple(_edit(history, config, path, edit) for edit in format_of(newest.schema_type).field_edits)
    return EditedField(path, outline_row, names, outline, history, config, tuple(unread), edits)


def _row_at(outline: Sequence[OutlineField], path: str) -> tuple[OutlineField, tuple[str, ...]]:
    """Return the field's row and the names from the root to it. Raises NotFound."""
    names: list[str] = []
    for row in outline:
        names[row.depth :] = [row.name]
        if row.path == path:
            return row, tuple(names)
    raise NotFound(f"The newest version has no field {path[:200]}.", path=path[:200])


def _edit(history: History, config: EffectiveConfig, path: str, edit: FieldEdit) -> EditedSchema:
    """Return the newest schema after an edit, with its reports."""
    newest, title = history[-1][1], ""
    try:
        made = schema_engine.edit_field(newest, path, edit)
        title = made.title
        schema = schema_engine.parse(newest.schema_type, made.text, schema_engine.references_of(newest))
        levels = schema_engine.check_all_levels(schema, history, profile=config.profile)
    except SchemadeskError as error:
        return EditedSchema(edit, title, problem=error.message)
    return EditedSchema(edit, title, schema, levels=levels)


# -- compatibility -----------------------------------------------------------------------------------------------------


def level_rows(edited: EditedField) -> Iterator[ImpactRow]:
    """Return the verdict of each level that checks anything."""
    for level in LEVELS.values():
        if level.directions:
            is_cut = bool(edited.unread) and level.scope == "all"
            yield ImpactRow(
                "level", level.name, tuple(_level(item, level.name, is_cut=is_cut) for item in edited.edits)
            )


def _level(item: EditedSchema, level: str, *, is_cut: bool) -> EditEffect:
    if item.levels is None:
        return item.unknown
    if not item.levels.reports[level].is_compatible:
        return item.effect("breaks")
    return item.effect("unknown", "Not all versions were checked.") if is_cut else item.effect("fine")


def direction_rows(edited: EditedField) -> Iterator[ImpactRow]:
    """Return what happens in each reading direction."""
    sides: tuple[tuple[RowKind, str, Direction], ...] = (
        ("readers", "Old readers, new data", "FORWARD"),
        ("writers", "New readers, existing data", "BACKWARD"),
    )
    for kind, name, direction in sides:
        yield ImpactRow(kind, name, tuple(_direction(edited, item, direction) for item in edited.edits))


def _direction(edited: EditedField, item: EditedSchema, direction: Direction) -> EditEffect:
    """Return the effect on one reading direction, by the rules for all versions and the data of the newest one."""
    if item.levels is None or item.schema is None:
        return item.unknown
    items = [part for row in item.levels.matrix for part in (row.forward if direction == "FORWARD" else row.backward)]
    breaks = _first(items, DECISIVE["confluent"])
    if breaks:
        return item.effect("breaks", f"Version {breaks.against_version}: {breaks.message}.")
    proved = _proved(edited, item, item.schema, direction)
    if proved is not None:
        return proved
    lost = _first(items, {"value loss"}) or _first(items, {"warning"})
    sentence = f"{lost.message[:1].upper()}{lost.message[1:]}." if lost else _lost(edited.row, item.edit, direction)
    return item.effect("care" if sentence else "fine", sentence)


def _first(items: Iterable[ReportItem], severities: Iterable[str]) -> ReportItem | None:
    return next((item for item in items if item.severity in severities), None)


def _proved(edited: EditedField, item: EditedSchema, schema: ParsedSchema, direction: Direction) -> EditEffect | None:
    """Return what the data check adds to rules that found no break; None if it agrees."""
    if len(schema.text) > LONGEST_PROVED:
        return item.effect("unknown", "The rules find no break. The schema is too long to be checked with data.")
    reader, writer = (edited.schema, schema) if direction == "FORWARD" else (schema, edited.schema)
    try:
        truth = schema_engine.truth(reader, writer)
    except SchemadeskError as error:
        return item.effect("unknown", error.message)
    if truth.answer == "yes":
        return None
    if truth.answer == "unknown":
        return item.effect("unknown", f"The rules find no break. With data: {truth.how}.")
    message = truth.findings[0].message if truth.findings else truth.how
    return item.effect(
        "breaks" if truth.answer == "no" else "care", f"The rules find no break, but with data: {message}."
    )


def _lost(row: OutlineField, edit: FieldEdit, direction: Direction) -> str:
    """Say which values readers lose without an error; "" if none."""
    if edit == "change type" or (edit == "rename" and row.number is not None):
        return ""
    if direction == "FORWARD":
        return (
            f"They read {f'the default {row.default[:80]}' if row.default is not None else 'no value'} instead of data."
        )
    return "They don’t read the values under the old name." if edit == "rename" else ""
