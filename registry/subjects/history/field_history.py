"""The history of one field: which version added it, and what each version changed about it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Final

from django.db.models import F

from registry.errors import InvalidReference, InvalidSchema, Unavailable
from registry.formats.base import OutlineField, ParsedSchema
from registry.subjects.engine import schema_engine
from registry.subjects.history.level_history import TextBytes
from registry.subjects.models import Registry, Schema, SchemaVersion, Subject
from registry.subjects.versions.lookup import get_subject
from registry.subjects.versions.parsed_schemas import parser_of
from registry.subjects.versions.qualified_names import SubjectName

#: the most versions that are read, the newest ones
MAX_VERSIONS: Final = 200
SECONDS: Final = 4.0
#: the most bytes of texts that are read
_MAX_BYTES: Final = 16_000_000
#: the most characters of a text that a sentence quotes
_QUOTED: Final = 200
#: the most paths that are suggested if the field doesn't exist
_NEAREST: Final = 5

INTRODUCED, THERE, REMOVED, RETURNED, CHANGED = "introduced", "there", "removed", "returned", "changed"


@dataclass(frozen=True)
class FieldChange:
    """One change that a version made to the field, as a sentence; `kind` is one of those above."""

    kind: str
    sentence: str
    renamed_from: str = ""


@dataclass(frozen=True)
class Chapter:
    """A version that changed the field, with who registered it, when, and through which API or page."""

    version: int
    at: datetime
    by: str
    channel: str
    deleted: bool
    changes: tuple[FieldChange, ...]


@dataclass(frozen=True)
class FieldHistory:
    """The chapters, oldest first; empty if no version that was read has the field.

    `field` is the field in the newest version, None if it isn't there. The newest `looked_at` of `versions` versions
    were read; `unread` says why some couldn't be. `nearest` are similar paths if the field never existed. `characters`
    is the length of the newest version's text.
    """

    path: str
    chapters: tuple[Chapter, ...]
    field: OutlineField | None
    newest: int
    looked_at: int
    versions: int
    unread: tuple[tuple[int, str], ...] = ()
    nearest: tuple[str, ...] = ()
    characters: int = 0


def field_history(registry: Registry, subject: SubjectName, path: str, *, seconds: float = SECONDS) -> FieldHistory:
    """Return the history of the field at a path, over all versions that exist. Raises SubjectNotFound.

    A constant number of queries; when the time is over, the oldest versions are left out.
    """
    row = get_subject(registry, subject, deleted=True)
    rows, versions = _newest(row)
    reader = _HistoryReader(path, parser_of([item.schema for item in rows]), time.monotonic() + seconds)
    readings = reader.back(rows)
    chapters = reader.chapters(readings, is_whole=len(readings) == versions)
    newest = readings[-1] if readings else None
    return FieldHistory(
        path=path,
        chapters=tuple(chapters),
        field=newest.outline_field if newest else None,
        newest=rows[0].version if rows else 0,
        looked_at=len(readings),
        versions=versions,
        unread=tuple(reader.unread),
        nearest=() if chapters else tuple(_nearest(path, newest)),
        characters=len(rows[0].schema.canonical) if rows else 0,
    )


def _newest(subject: Subject) -> tuple[list[SchemaVersion], int]:
    """Return the newest versions, as many as are read, newest first; and how many exist."""
    sizes = subject.versions.order_by("-version").annotate(size=TextBytes(F("schema__canonical")))
    chosen, room, count = list[int](), _MAX_BYTES, 0
    for pk, size in sizes.values_list("pk", "size"):
        count += 1
        room -= size
        if len(chosen) < MAX_VERSIONS and (room >= 0 or not chosen):
            chosen.append(pk)
    rows = SchemaVersion.objects.filter(pk__in=chosen).select_related("schema").defer("submitted")
    return list(rows.order_by("-version")), count


@dataclass(frozen=True)
class _FieldReading:
    """A version that was read: the field in it, and the paths of all its fields."""

    row: SchemaVersion
    schema: ParsedSchema
    outline_field: OutlineField | None
    paths: tuple[str, ...] = field(repr=False, default=())


@dataclass
class _HistoryReader:
    """Reads versions from the newest back."""

    path: str
    parse: Callable[[Schema], ParsedSchema]
    until: float
    unread: list[tuple[int, str]] = field(default_factory=list)

    def back(self, rows: Sequence[SchemaVersion]) -> list[_FieldReading]:
        """Return what was read in time, oldest first."""
        readings: list[_FieldReading] = []
        for row in rows:
            if readings and time.monotonic() >= self.until:
                break
            try:
                schema = self.parse(row.schema)
                outline = schema_engine.outline(schema)
            except (InvalidSchema, InvalidReference, Unavailable) as error:
                self.unread.append((row.version, error.placed))
                continue
            outline_field = next((item for item in outline if item.path == self.path), None)
            readings.append(_FieldReading(row, schema, outline_field, tuple(item.path for item in outline)))
        return readings[::-1]

    def chapters(self, readings: Sequence[_FieldReading], *, is_whole: bool) -> list[Chapter]:
        """Return what each version changed, if anything; unless all were read, the first says what was there."""
        chapters: list[Chapter] = []
        before: _FieldReading | None = None
        for item in readings:
            was_there = any(change.kind != REMOVED for chapter in chapters for change in chapter.changes)
            changes = self._changes(before, item, was_there=was_there, is_first=before is None and not is_whole)
            if changes:
                row = item.row
                gone = row.deleted_at is not None
                chapters.append(Chapter(row.version, row.created_at, row.created_by, row.channel, gone, tuple(changes)))
            before = item
        return chapters

    def _changes(
        self, before: _FieldReading | None, now: _FieldReading, *, was_there: bool, is_first: bool
    ) -> list[FieldChange]:
        old = before.outline_field if before else None
        if now.outline_field is None:
            return [FieldChange(REMOVED, "It was removed.")] if old else []
        if old is not None:
            return [FieldChange(CHANGED, sentence) for sentence in _differences(old, now.outline_field)]
        described = _described(now.outline_field)
        if is_first:
            return [FieldChange(THERE, f"It already existed: {described}.")]
        if was_there:
            return [FieldChange(RETURNED, f"It was added again: {described}.")]
        renamed = self._renamed_from(before, now) if before else ""
        if renamed:
            return [FieldChange(INTRODUCED, f"It was renamed from {renamed}: {described}.", renamed)]
        return [FieldChange(INTRODUCED, f"It was added: {described}.")]

    def _renamed_from(self, before: _FieldReading, now: _FieldReading) -> str:
        """Return the path that the field had before; "" if it is new or that can't be determined."""
        if before.schema.schema_type != now.schema.schema_type:
            return ""
        try:
            differences = schema_engine.diff(before.schema, now.schema)
        except (InvalidSchema, Unavailable) as error:
            self.unread.append((now.row.version, f"it is unknown whether it was renamed: {error.message}"))
            return ""
        for difference in differences:
            if difference.kind == "renamed" and difference.path == self.path and difference.score is None:
                old = f"{self.path[: len(self.path) - len(str(difference.after))]}{difference.before}"
                return old if old in before.paths else ""
        return ""


def _described(item: OutlineField) -> str:
    parts = [f"type {item.type}", _default(item)]
    if item.tags:
        parts.append(f"tagged {', '.join(item.tags)}")
    if item.aliases:
        parts.append(f"also known as {', '.join(item.aliases)}")
    return ", ".join(parts)


def _default(item: OutlineField) -> str:
    if item.default is not None:
        return f"default {_quoted(item.default)}"
    return "required" if item.required else "no default"


def _differences(old: OutlineField, new: OutlineField) -> list[str]:
    """Return what changed about the field as sentences, in a fixed order."""
    sentences = []
    if old.type != new.type:
        sentences.append(f"Its type changed from {old.type} to {new.type}.")
    if _default(old) != _default(new):
        sentences.append(f"It changed from {_was(old)} to {_was(new)}.")
    if old.doc != new.doc:
        sentences.append(_doc(old.doc, new.doc))
    sentences += _sets("tag", "tags", old.tags, new.tags)
    sentences += _sets("alias", "aliases", old.aliases, new.aliases)
    return sentences


def _was(item: OutlineField) -> str:
    default = _default(item)
    return f"the {default}" if item.default is not None else default


def _doc(old: str, new: str) -> str:
    if not old:
        return f"Its description was added: “{_quoted(new)}”"
    if not new:
        return "Its description was removed."
    return f"Its description changed from “{_quoted(old)}” to “{_quoted(new)}”"


def _sets(one: str, many: str, old: tuple[str, ...], new: tuple[str, ...]) -> list[str]:
    sentences = []
    for change, names in (("added", set(new) - set(old)), ("removed", set(old) - set(new))):
        if names:
            noun, verb = (one, "was") if len(names) == 1 else (many, "were")
            sentences.append(f"The {noun} {', '.join(sorted(names))} {verb} {change}.")
    return sentences


def _quoted(text: str) -> str:
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"


def _nearest(path: str, newest: Any) -> list[str]:
    """Return paths of the newest version that resemble an unknown one."""
    if newest is None:
        return []
    name = path.rpartition(".")[2]
    same = [other for other in newest.paths if other.rpartition(".")[2] == name]
    return [*same, *(other for other in get_close_matches(path, newest.paths, _NEAREST) if other not in same)][
        :_NEAREST
    ]
