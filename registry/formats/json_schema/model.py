"""A schema that has been read: its documents, where each `$ref` leads, and one document that says the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from registry.formats.base import ResolvedReference
from registry.formats.json_schema.drafts import Draft
from registry.formats.pointer import unescape


class Place(NamedTuple):
    """Where a schema stands: the number of its document (0 is the text itself) and its JSON Pointer."""

    document: int
    pointer: str


ROOT = Place(0, "")


@dataclass(frozen=True, slots=True)
class Document:
    """One text: the schema itself, or one that it refers to. `names` leads from its references to documents."""

    value: Any
    draft: Draft
    base: str
    reference: ResolvedReference | None = None
    names: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bundle:
    """One document with everything inside, for a validator: all its references are its own definitions.

    `origins` leads from the name of a definition to the place it was written. `inexact` says what couldn't be
    carried over, empty if it says exactly what the documents say; `draft` is the draft that it is written in.
    """

    value: Any
    draft: Draft
    origins: Mapping[str, Place]
    inexact: str = ""


@dataclass(frozen=True, slots=True)
class Model:
    """A schema with all it refers to. `targets` leads from the place of each `$ref` to the schema meant,
    or to the address of a draft's meta-schema."""

    documents: tuple[Document, ...]
    targets: Mapping[Place, Place | str]
    dynamic: Mapping[str, tuple[Place, ...]]
    bundle: Bundle
    cache: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def draft(self) -> Draft:
        """The draft of the schema itself."""
        return self.documents[0].draft

    @property
    def root(self) -> Any:
        """The schema itself, as JSON."""
        return self.documents[0].value

    def at(self, place: Place) -> Any:
        """The schema at a place, as JSON."""
        value = self.documents[place.document].value
        for token in place.pointer.split("/")[1:]:
            value = value[int(token)] if isinstance(value, list) else value[unescape(token)]
        return value

    def source(self, place: Place) -> str | None:
        """The name of the reference that a place is in, None for the schema's own text."""
        reference = self.documents[place.document].reference
        return None if reference is None else reference.name
