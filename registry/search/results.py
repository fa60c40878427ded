"""The results of a search, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

SUBJECTS, FIELDS, TYPES, DOCS, IDS, REQUESTS = "subjects", "fields", "types", "docs", "ids", "requests"
TAGS, TERMS = "tags", "terms"
GROUPS: Final = (SUBJECTS, FIELDS, TYPES, DOCS, IDS, REQUESTS, TAGS, TERMS)
#: the limit of counts; beyond it is "1,000+"
MOST_COUNTED: Final = 1_000
MAX_LIMIT: Final = 100


@dataclass(frozen=True)
class SubjectHit:
    """A subject; `similar` if its name is only similar to the query. `problem` says why it has no fields."""

    registry: str
    subject: str
    schema_type: str
    version: int
    field_count: int
    doc: str = ""
    tags: tuple[str, ...] = ()
    problem: str = ""
    similar: bool = False
    #: how many of the pasted schema's fields it has, and their share of the fields of both
    shared: int = 0
    share: float = 0.0
    equal: bool = False


@dataclass(frozen=True)
class FieldHit:
    """A field of the latest live version of a subject; `position` is its row in the version's structure."""

    registry: str
    subject: str
    version: int
    position: int
    name: str
    path: str
    type: str
    doc: str = ""
    tags: tuple[str, ...] = ()
    similar: bool = False


@dataclass(frozen=True)
class TypeHit:
    """A type, and how many fields have it (up to MOST_COUNTED, then `more`)."""

    type: str
    field_count: int
    more: bool


@dataclass(frozen=True)
class IdHit:
    """A version whose schema has the id, the GUID or the fingerprint."""

    registry: str
    subject: str
    version: int
    schema_id: int
    guid: str
    context: str
    deleted: bool


@dataclass(frozen=True)
class RequestHit:
    """A promotion request."""

    id: int
    kind: str
    subject: str
    version: int
    target: str
    state: str
    reason: str


@dataclass(frozen=True)
class TagHit:
    """A tag, and how many subjects have it, on themselves or on a field (up to MOST_COUNTED, then `more`)."""

    tag: str
    subject_count: int
    more: bool


@dataclass(frozen=True)
class TermHit:
    """A business term of the glossary; `doc` is its meaning."""

    name: str
    doc: str
    owner: str
    field_count: int


Hit = SubjectHit | FieldHit | TypeHit | IdHit | RequestHit | TagHit | TermHit


@dataclass(frozen=True)
class Group:
    """One group of results. `total` is None on later pages; `more`: there are more than `total`.

    `cursor` gives the next page, "" on the last one.
    """

    name: str
    hits: tuple[Hit, ...] = ()
    total: int | None = 0
    more: bool = False
    cursor: str = ""


@dataclass(frozen=True)
class Mark:
    """The schema id or GUID in a pasted message."""

    kind: Literal["id", "guid"]
    value: str


@dataclass(frozen=True)
class Pasted:
    """A pasted schema or message: what it was recognized as, what is wrong with it, and equal and similar subjects."""

    what: Literal["schema", "message"]
    schema_type: str = ""
    fingerprint: str = ""
    fields: int = 0
    problem: str = ""
    mark: Mark | None = None
    equal: tuple[SubjectHit, ...] = ()
    nearest: tuple[SubjectHit, ...] = ()
    ids: tuple[IdHit, ...] = ()


@dataclass(frozen=True)
class SearchResult:
    """All results of a search; `suggestions` are names to try instead, if nothing was found."""

    query: str
    groups: tuple[Group, ...] = ()
    suggestions: tuple[str, ...] = ()
    pasted: Pasted | None = None
    #: whether subjects wait to be indexed; set only for people who may read everything
    indexing: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found."""
        return self.pasted is None and not any(group.hits for group in self.groups)


def counted(keys: Sequence[Any], more: bool = False) -> tuple[int, bool]:
    """Return the number of rows, at most MOST_COUNTED, and whether there are more; `keys` has up to one row more."""
    return min(len(keys), MOST_COUNTED), more or len(keys) > MOST_COUNTED
