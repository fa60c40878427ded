"""Notes on subjects: tags, a description and a contact channel, in every registry, including mirrors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Count, QuerySet

from registry.access.contact_channels import clean_channel
from registry.access.name_patterns import name_pattern
from registry.access.roles import Actor, require
from registry.access.selectors import Owners, group_channels
from registry.audit.context import record
from registry.errors import InvalidInput, NoteChanged, SubjectNotFound
from registry.subjects.models import Registry, Subject, SubjectNote
from registry.subjects.models.registries import MAX_DOC, MAX_TAG, MAX_TAGS
from registry.subjects.registration.locks import retried
from registry.subjects.versions.lookup import get_registry, get_subject
from registry.subjects.versions.qualified_names import SubjectName

#: the state of a subject without a note
NONE: Final = "none"


@dataclass(frozen=True)
class Note:
    """A subject's tags, description and contact channel; if nobody wrote any, all are empty and `updated_at` is None."""

    tags: tuple[str, ...] = ()
    doc: str = ""
    updated_at: datetime | None = None
    updated_by: str = ""
    channel: str = ""

    @property
    def is_described(self) -> bool:
        """Whether it has tags or a description, which exports and promotions carry; a channel stays where it is."""
        return bool(self.tags or self.doc)

    @property
    def state(self) -> str:
        """A value that changes with every change; a writer passes the state that they read."""
        return NONE if self.updated_at is None else self.updated_at.isoformat()


def note_info(row: SubjectNote | None) -> Note:
    """Return the row as a value; an empty one for None."""
    if row is None:
        return Note()
    # a note as it was before there were channels has NULL
    return Note(tuple(row.tags), row.doc, row.updated_at, row.updated_by, row.channel or "")


def note_of(registry: Registry, subject: SubjectName) -> Note:
    """Return the note on a subject; one query. An unknown subject has an empty note."""
    return note_info(
        _rows(registry).filter(subject__context__name=subject.context, subject__name=subject.subject).first()
    )


def notes_of(registry: Registry, subjects: Collection[SubjectName] | None = None) -> dict[SubjectName, Note]:
    """Return the notes on those subjects (None: on all), without subjects that have none; one query."""
    rows = _rows(registry).select_related("subject__context")
    if subjects is not None:
        rows = rows.filter(subject__name__in={name.subject for name in subjects})
    notes = {SubjectName(row.subject.context.name, row.subject.name): note_info(row) for row in rows}
    return notes if subjects is None else {name: note for name, note in notes.items() if name in set(subjects)}


def notes_in(registries: Sequence[Registry], subjects: Collection[SubjectName]) -> list[dict[SubjectName, Note]]:
    """Return the notes on those subjects in each of the registries; one query."""
    rows = SubjectNote.objects.select_related("subject__context").filter(
        subject__context__registry__in=registries, subject__name__in={name.subject for name in subjects}
    )
    asked = set(subjects)
    notes: dict[int, dict[SubjectName, Note]] = {registry.pk: {} for registry in registries}
    for row in rows:
        context, name = row.subject.context, SubjectName(row.subject.context.name, row.subject.name)
        if name in asked:
            notes[context.registry_id][name] = note_info(row)
    return [notes[registry.pk] for registry in registries]


def channels_of(note: Note, owners: Owners) -> tuple[str, ...]:
    """Return where to ask about a subject: its own channel, else those of the groups that own it."""
    return (note.channel,) if note.channel else owners.channels


def channels_in(registry: Registry, subjects: Collection[SubjectName]) -> tuple[str, ...]:
    """Return where to ask about these subjects, each channel once; one query, none without subjects."""
    if not subjects:
        return ()
    notes = _rows(registry).filter(subject__name__in={name.subject for name in subjects}).exclude(channel="")
    own = notes.values_list("subject__context__name", "subject__name", "channel")
    own_channels, of_groups = dict[SubjectName, str](), list[tuple[str, str]]()
    for context, key, channel in own.union(group_channels(registry.name), all=True):
        if context is None:
            of_groups.append((key, channel))
        else:
            own_channels[SubjectName(context, key)] = channel
    channels: dict[str, None] = {}
    for name in sorted(subjects, key=lambda name: name.qualified):
        if name in own_channels:
            channels[own_channels[name]] = None
        else:
            channels |= dict.fromkeys(
                channel for pattern, channel in sorted(of_groups) if name_pattern(pattern).allows(name.qualified)
            )
    return tuple(channels)


def tag_counts(registry: Registry) -> dict[str, int]:
    """Return the registry's subject tags in lower case with their number of subjects, most used first; one query."""
    counts: Counter[str] = Counter()
    alike = _rows(registry).filter(tags__len__gt=0).values_list("tags").annotate(notes=Count("pk"))
    for tags, notes in alike.order_by():
        counts.update(dict.fromkeys({tag.lower() for tag in tags}, notes))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _rows(registry: Registry) -> QuerySet[SubjectNote]:
    return SubjectNote.objects.filter(subject__context__registry=registry)


ACTION: Final = "subject.describe"
#: as the expected state: replace any note
ANY_STATE: Final = "*"
MAX_REASON: Final = 500
#: the most subjects in one call
MOST: Final = 200
_TAG: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.:-]{{0,{MAX_TAG - 1}}}")


@retried
def set_note(
    *,
    registry: str,
    subject: SubjectName,
    tags: Iterable[str],
    doc: str,
    by: Actor,
    expected: str,
    reason: str = "",
    channel: str | None = None,
) -> Note:
    """Replace the note on a subject, which may be soft-deleted; returns the resulting note. A `channel` of None stays.

    `expected` is the state of the note that the caller read (`Note.state`), or `*` to replace any. Of tags that differ
    only in case, the first is kept. Raises InvalidInput, NotAllowed, RegistryNotFound, SubjectNotFound, and NoteChanged
    if somebody else changed it meanwhile.
    """
    new_tags, text, why = clean_tags(tags), clean_doc(doc), _reason(reason)
    new_channel = None if channel is None else clean_channel(channel)
    registry_row = get_registry(registry)
    require(by, ACTION, registry=registry_row.name, subject=subject.qualified)
    row = _locked_subject(registry_row, subject)
    before = note_info(SubjectNote.objects.filter(subject=row).first())
    if expected not in (before.state, ANY_STATE):
        who = f" by {before.updated_by}" if before.updated_by else ""
        raise NoteChanged(
            f"The description of {subject.qualified} was changed{who} after you opened it. Reload it and try again.",
            subject=subject.qualified,
            state=before.state,
        )
    record(by=by, why=f"describe {subject.qualified} in {registry_row.name}{why}")
    return _write(row, before, new_tags, text, by, new_channel)


@retried
def change_tags(
    *,
    registry: str,
    subjects: Sequence[SubjectName],
    by: Actor,
    add: Iterable[str] = (),
    remove: Iterable[str] = (),
    reason: str = "",
) -> dict[SubjectName, Note]:
    """Add tags to several subjects and remove others, all or nothing; returns the resulting notes.

    Removing a tag ignores case, and an existing tag keeps its case. Raises InvalidInput, NotAllowed, RegistryNotFound,
    SubjectNotFound.
    """
    added, taken, why = clean_tags(add), clean_tags(remove), _reason(reason)
    removed = {tag.lower() for tag in taken}
    if not added and not removed:
        raise InvalidInput("Give a tag to add or to remove.", field="tags")
    if not 1 <= len(subjects) <= MOST:
        raise InvalidInput(f"Choose 1 to {MOST} subjects at a time. You chose {len(subjects)}.", field="subjects")
    registry_row = get_registry(registry)
    for subject in subjects:
        require(by, ACTION, registry=registry_row.name, subject=subject.qualified)
    verb = ", ".join([*(f"add {tag}" for tag in added), *(f"remove {tag}" for tag in taken)])
    done: dict[SubjectName, Note] = {}
    for subject in sorted(
        set(subjects), key=lambda name: name.qualified
    ):  # a fixed order, so that two callers can't deadlock
        row = _locked_subject(registry_row, subject)
        before = note_info(SubjectNote.objects.filter(subject=row).first())
        left = [tag for tag in before.tags if tag.lower() not in removed]
        try:
            new_tags = clean_tags([*left, *added])
        except InvalidInput as error:
            raise InvalidInput(f"{subject.qualified}: {error.message}", field="tags") from error
        record(by=by, why=f"{verb} at {subject.qualified} in {registry_row.name}{why}")
        done[subject] = _write(row, before, new_tags, before.doc, by)
    return done


def bring_checked(notes: Iterable[tuple[Subject, tuple[str, ...], str]], *, by: Actor) -> None:
    """Write imported notes with cleaned tags and text, in the caller's transaction and audit.

    The caller has checked the permission. The number of queries grows only with changed notes, not with new ones.
    """
    given = list(notes)
    rows = {row.subject_id: row for row in SubjectNote.objects.filter(subject__in=[subject for subject, *_ in given])}
    added = []
    for subject, tags, doc in given:
        if row := rows.get(subject.pk):
            _write(subject, note_info(row), tags, doc, by)
        elif tags or doc:
            added.append(SubjectNote(subject=subject, tags=list(tags), doc=doc, updated_by=by.name))
    SubjectNote.objects.bulk_create(added)


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the tags as stored: each once, sorted. Raises InvalidInput, which names the invalid tag."""
    spellings: dict[str, str] = {}
    for tag in tags:
        if not isinstance(tag, str) or not _TAG.fullmatch(tag):
            raise InvalidInput(
                f"{str(tag)[:80]!r} is not a valid tag. A tag starts with a letter or digit and has at most {MAX_TAG} "
                "ASCII letters, digits and the characters `_ . : -`.",
                field="tags",
            )
        spellings.setdefault(tag.lower(), tag)
    if len(spellings) > MAX_TAGS:
        raise InvalidInput(f"There are {len(spellings)} tags. A subject can have at most {MAX_TAGS}.", field="tags")
    return tuple(sorted(spellings.values()))


def _locked_subject(registry: Registry, subject: SubjectName) -> Subject:
    """Return the subject's row, locked, so that two first notes are written one after the other."""
    subject_row = get_subject(registry, subject, deleted=True)
    row = Subject.objects.select_for_update().filter(pk=subject_row.pk).first()
    if row is None:
        message = f"Subject '{subject.qualified}' not found."
        raise SubjectNotFound(message, registry=registry.name, subject=subject.qualified)
    return row


def _write(row: Subject, before: Note, tags: tuple[str, ...], doc: str, by: Actor, channel: str | None = None) -> Note:
    """Return the resulting note; an unchanged note isn't written, and an empty one is deleted."""
    channel = before.channel if channel is None else channel
    if (before.tags, before.doc, before.channel) == (tags, doc, channel):
        return before
    if not (tags or doc or channel):
        SubjectNote.objects.filter(subject=row).delete()
        return Note()
    written, _ = SubjectNote.objects.update_or_create(
        subject=row, defaults={"tags": list(tags), "doc": doc, "channel": channel, "updated_by": by.name}
    )
    return note_info(written)


def clean_doc(doc: str) -> str:
    """Return the text as stored. Raises InvalidInput if it is too long or can't be displayed."""
    text = doc.replace("\r\n", "\n").replace("\r", "\n").strip()
    if len(text) > MAX_DOC:
        raise InvalidInput(f"The text has {len(text):,} characters. At most {MAX_DOC:,} are allowed.", field="doc")
    if any(not (char.isprintable() or char in "\n\t") for char in text):
        raise InvalidInput("The text contains a character that can't be displayed. Remove it.", field="doc")
    return text


def _reason(reason: str) -> str:
    """Return the suffix of the audit's reason."""
    text = " ".join(reason.split())
    if len(text) > MAX_REASON:
        raise InvalidInput(f"The reason has {len(text)} characters. At most {MAX_REASON} are allowed.", field="reason")
    if not text.isprintable():
        raise InvalidInput("The reason contains a character that can't be displayed. Remove it.", field="reason")
    return f": {text}" if text else ""
