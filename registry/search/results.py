"""What a search finds, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

SUBJECTS, FIELDS, TYPES, DOCS, IDS, REQUESTS, TAGS = "subjects", "fields", "types", "docs", "ids", "requests", "tags"
GROUPS: Final = (SUBJECTS, FIELDS, TYPES, DOCS, IDS, REQUESTS, TAGS)
#: counted to here; beyond it is "1,000+"
MOST_COUNTED: Final = 1_000
MAX_LIMIT: Final = 100


@dataclass(frozen=True)
class SubjectHit:
    """A subject; `similar` where its name is only like what was asked for. `problem` says why it has no fields."""

    registry: str
    subject: str
    schema_type: str
    version: int
    field_count: int
    doc: str = ""
    tags: tuple[str, ...] = ()
    problem: str = ""
    similar: bool = False
    #: how much of the pasted schema's fields it has, and how many
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
    """A type that fields have, and how many (up to MOST_COUNTED, then `more`)."""

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


Hit = SubjectHit | FieldHit | TypeHit | IdHit | RequestHit | TagHit


@dataclass(frozen=True)
class Group:
    """A part of what is found. `total` is None on later pages; `more`: there are more than `total`.

    `cursor` gives the next page, "" on the last one.
    """

    name: str
    hits: tuple[Hit, ...] = ()
    total: int | None = 0
    more: bool = False
    cursor: str = ""


@dataclass(frozen=True)
class Mark:
    """What a pasted message says of its schema."""

    kind: Literal["id", "guid"]
    value: str


@dataclass(frozen=True)
class Pasted:
    """A pasted schema or message: what it was taken for, what is wrong with it, and the subjects equal and near."""

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
    """All that a search found; `suggestions` are names to try instead, where nothing was found."""

    query: str
    groups: tuple[Group, ...] = ()
    suggestions: tuple[str, ...] = ()
    pasted: Pasted | None = None
    #: whether subjects wait for being indexed; told to those who may read everything
    indexing: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found at all."""
        return self.pasted is None and not any(group.hits for group in self.groups)


def counted(keys: Sequence[Any], more: bool = False) -> tuple[int, bool]:
    """How many rows there are, of up to one more than are counted, and whether there are more."""
    return min(len(keys), MOST_COUNTED), more or len(keys) > MOST_COUNTED
