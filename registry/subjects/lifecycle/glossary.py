"""The glossary of business terms, and the terms that the fields of a subject mean."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.contrib.postgres.expressions import ArraySubquery
from django.db import IntegrityError, transaction
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce, JSONObject

from registry.access.permission_filters import READ
from registry.access.roles import Actor, may_somewhere, require
from registry.audit.context import record
from registry.errors import InvalidInput, NoteChanged, NotFound, first_few
from registry.subjects.history.version_presence import outline_of
from registry.subjects.lifecycle.notes import ACTION, ANY_STATE, NONE, Note, clean_doc, note_info
from registry.subjects.models import BusinessTerm, FieldTerm, Registry, Subject
from registry.subjects.models.glossary import MAX_MEANING, MAX_OWNER, MAX_TERM
from registry.subjects.registration.locks import retried
from registry.subjects.versions.lookup import get_registry, get_subject
from registry.subjects.versions.qualified_names import SubjectName

#: terms on a page, and fields of a term
MOST_TERMS: Final = 200
MOST_FIELDS: Final = 200


@dataclass(frozen=True)
class TermInfo:
    """A business term; `doc` is its meaning in Markdown."""

    id: int
    name: str
    doc: str
    owner: str
    updated_at: datetime
    updated_by: str

    @property
    def state(self) -> str:
        """A value that changes with every change; a writer passes the state that they read."""
        return self.updated_at.isoformat()


@dataclass(frozen=True)
class TermField:
    """A field that a term describes."""

    registry: str
    subject: str
    path: str


# -- what is read -----------------------------------------------------------------------------------------------------


def list_terms(*, by: Actor, text: str = "", limit: int = MOST_TERMS) -> tuple[list[tuple[TermInfo, int]], int]:
    """Return the terms with a text in their name, meaning or owner, each with its number of fields; and how many match.

    The numbers count fields that the actor may read. Raises NotSignedIn or NotAllowed for an actor who may read nothing.
    """
    require_reader(by)
    rows = BusinessTerm.objects.all()
    for word in text.split()[:8]:
        rows = rows.filter(name__icontains=word) | rows.filter(doc__icontains=word) | rows.filter(owner__icontains=word)
    fields = FieldTerm.objects.visible_to(by).filter(term=OuterRef("pk")).order_by().values("term")
    number = Coalesce(Subquery(fields.annotate(number=Count("pk")).values("number")), 0)
    listed = rows.annotate(number=number).order_by("name")[: limit + 1]
    terms = [(_info(row), row.number) for row in listed]
    return terms[:limit], rows.count() if len(terms) > limit else len(terms)


def get_term(name: str, *, by: Actor) -> TermInfo:
    """Return the term with a name, whatever its case. Raises NotFound, NotSignedIn, NotAllowed."""
    require_reader(by)
    return _info(_named(name))


def fields_of_term(term: TermInfo, *, by: Actor) -> list[TermField]:
    """Return the first fields of a term that the actor may read, by registry, subject and path; one query."""
    rows = FieldTerm.objects.visible_to(by).filter(term=term.id).select_related("subject__context__registry")
    return [
        TermField(
            row.subject.context.registry.name,
            SubjectName(row.subject.context.name, row.subject.name).qualified,
            row.path,
        )
        for row in rows.order_by("subject__context__registry__name", "subject__name", "path")[:MOST_FIELDS]
    ]


def terms_of(registry: Registry, subject: SubjectName) -> dict[str, str]:
    """Return the names of the terms of a subject's fields by path; one query."""
    return dict(_of_subject(registry, subject).order_by("path").values_list("path", "term__name"))


def note_and_terms(registry: Registry, subject: SubjectName) -> tuple[Note, dict[str, str]]:
    """Return `note_of` and `terms_of` with one query; both are empty for an unknown subject."""
    pairs = FieldTerm.objects.filter(subject=OuterRef("pk")).values(pair=JSONObject(path="path", term="term__name"))
    rows = Subject.objects.filter(context__registry=registry, context__name=subject.context, name=subject.subject)
    row = rows.select_related("note").annotate(pairs=ArraySubquery(pairs)).first()
    if row is None:
        return Note(), {}
    return note_info(getattr(row, "note", None)), {pair["path"]: pair["term"] for pair in row.pairs}  # type: ignore[attr-defined]


def term_of_field(registry: Registry, subject: SubjectName, path: str) -> TermInfo | None:
    """Return the term that a field means; one query."""
    row = _of_subject(registry, subject).filter(path=path).select_related("term").first()
    return _info(row.term) if row else None


def require_reader(by: Actor) -> None:
    """Raise NotSignedIn or NotAllowed for an actor who may read nothing: everybody else may read the glossary."""
    if not may_somewhere(by, READ):
        require(by, READ)


# -- what is written --------------------------------------------------------------------------------------------------


@retried
def set_term(*, name: str, doc: str, by: Actor, owner: str = "", expected: str = NONE, former: str = "") -> TermInfo:
    """Add a term or replace it; returns the result. `former` is its name so far, if that changes.

    `expected` is the state that the caller read (`TermInfo.state`), `none` for a new term, or `*` for any. Raises
    InvalidInput, NotAllowed, NotFound for an unknown `former`, and NoteChanged if somebody else changed it meanwhile.
    """
    require(by, ACTION)
    values = {"name": _line(name, "name", MAX_TERM), "doc": _meaning(doc), "owner": _line(owner, "owner", MAX_OWNER)}
    if not values["name"]:
        raise InvalidInput("Give the term a name.", field="name")
    row = BusinessTerm.objects.select_for_update().filter(name__iexact=former or values["name"]).first()
    if former and row is None:
        raise _unknown(former)
    state = NONE if row is None else _info(row).state
    if expected not in (state, ANY_STATE):
        raise NoteChanged(_changed(values["name"], row), subject=values["name"], state=state)
    if row and values == {name: getattr(row, name) for name in values}:
        return _info(row)
    record(by=by, why=f"describe the term {values['name']}")
    row = row or BusinessTerm()
    for attribute, value in {**values, "updated_by": by.name}.items():
        setattr(row, attribute, value)
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as error:
        raise InvalidInput(f"There is already a term {values['name']!r}.", field="name") from error
    return _info(row)


@retried
def remove_term(*, name: str, by: Actor) -> None:
    """Remove a term from the glossary and from its fields. Raises NotAllowed, NotFound."""
    require(by, ACTION)
    row = _named(name)
    record(by=by, why=f"remove the term {row.name}")
    row.delete()


@retried
def set_field_term(*, registry: str, subject: SubjectName, path: str, term: str, by: Actor) -> None:
    """Say which term a field means, "" for none. Raises InvalidInput, NotAllowed, RegistryNotFound, SubjectNotFound."""
    registry_row = get_registry(registry)
    require(by, ACTION, registry=registry_row.name, subject=subject.qualified)
    name = " ".join(term.split())
    row = BusinessTerm.objects.filter(name__iexact=name).first() if name else None
    if name and row is None:
        raise InvalidInput(f"There is no term {name[:80]!r} in the glossary. Add it there first.", field="term")
    subject_row = get_subject(registry_row, subject, deleted=True)
    here = FieldTerm.objects.filter(subject=subject_row, path=path)
    if row is None:
        if here.exists():
            record(by=by, why=f"remove the term of {subject.qualified}.{path} in {registry_row.name}")
            here.delete()
        return
    _require_field(registry_row, subject, path)
    record(by=by, why=f"{subject.qualified}.{path} in {registry_row.name} means {row.name}")
    FieldTerm.objects.update_or_create(subject=subject_row, path=path, defaults={"term": row})


def _require_field(registry: Registry, subject: SubjectName, path: str) -> None:
    """Raise InvalidInput unless the newest version has the field."""
    paths = [field.path for field in outline_of(registry, subject, None)]
    if path not in paths:
        raise InvalidInput(
            f"The newest version of {subject.qualified} has no field {path[:80]!r}. Its fields are {first_few(paths)}.",
            field="path",
        )


def _changed(name: str, row: BusinessTerm | None) -> str:
    if row is None:
        return f"The term {name!r} was removed after you opened it."
    return f"The term {name!r} was changed by {row.updated_by} after you opened it. Reload it and try again."


def _named(name: str) -> BusinessTerm:
    row = BusinessTerm.objects.filter(name__iexact=name).first() if "\0" not in name else None
    if row is None:
        raise _unknown(name)
    return row


def _unknown(name: str) -> NotFound:
    return NotFound(f"Term {name[:80]!r} not found.", term=name[:80])


def _of_subject(registry: Registry, subject: SubjectName) -> QuerySet[FieldTerm]:
    return FieldTerm.objects.filter(
        subject__context__registry=registry, subject__context__name=subject.context, subject__name=subject.subject
    )


def _line(value: str, field: str, most: int) -> str:
    text = " ".join(value.split())
    if len(text) > most:
        raise InvalidInput(f"The {field} has {len(text)} characters. At most {most} are allowed.", field=field)
    if not text.isprintable():
        raise InvalidInput(f"The {field} contains a character that can't be displayed. Remove it.", field=field)
    return text


def _meaning(doc: str) -> str:
    text = clean_doc(doc)
    if not text:
        raise InvalidInput("Say what the term means.", field="doc")
    if len(text) > MAX_MEANING:
        raise InvalidInput(
            f"The meaning has {len(text):,} characters. At most {MAX_MEANING:,} are allowed.", field="doc"
        )
    return text


def _info(row: BusinessTerm) -> TermInfo:
    return TermInfo(row.pk, row.name, row.doc, row.owner, row.updated_at, row.updated_by)
