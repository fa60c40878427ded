"""The model of a parsed schema: documents, base URIs and anchors, the target of each `$ref`, and paths."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from registry.errors import SchemaTooCostly
from registry.formats.base import ResolvedReference
from registry.formats.json_pointer import join, unescape
from registry.formats.json_schema.drafts import DRAFTS, Draft, is_schema, subschemas


class SchemaLocation(NamedTuple):
    """The place of a schema: the number of its document (0 is the text itself) and its JSON Pointer."""

    document: int
    pointer: str


ROOT = SchemaLocation(0, "")


@dataclass(frozen=True, slots=True)
class Document:
    """One text: the schema itself, or a referenced one; `names` maps its references' names to document numbers."""

    value: Any
    draft: Draft
    base: str
    reference: ResolvedReference | None = None
    names: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bundle:
    """One self-contained document for a validator: all its references are to its own definitions.

    `origins` maps the name of a definition to its original place. `inexact` says what couldn't be converted exactly; it
    is empty if the bundle means the same as the documents. `draft` is the draft of the bundle.
    """

    value: Any
    draft: Draft
    origins: Mapping[str, SchemaLocation]
    inexact: str = ""


@dataclass(frozen=True, slots=True)
class Model:
    """A schema with everything it refers to.

    `targets` maps the place of each `$ref` to the target schema, or to the URI of a draft's meta-schema.
    """

    documents: tuple[Document, ...]
    targets: Mapping[SchemaLocation, SchemaLocation | str]
    dynamic: Mapping[str, tuple[SchemaLocation, ...]]
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

    def at(self, location: SchemaLocation) -> Any:
        """Return the schema at a place, as JSON."""
        value = self.documents[location.document].value
        for token in location.pointer.split("/")[1:]:
            value = value[int(token)] if isinstance(value, list) else value[unescape(token)]
        return value

    def source(self, location: SchemaLocation) -> str | None:
        """Return the name of the reference that a place is in; None for the schema's own text."""
        reference = self.documents[location.document].reference
        return None if reference is None else reference.name


_ANCHORS: Final = ("$anchor", "$dynamicAnchor")
_META_SCHEMAS: Final = {draft.uri.removesuffix("#"): draft.uri for draft in DRAFTS.values()}
MISSING: Final = object()
MAX_SCHEMAS: Final = 12_000


@dataclass(slots=True)
class Resources:
    """The base URIs of all documents; `bases` maps every visited schema to its base URI."""

    documents: list[Document]
    addresses: dict[str, SchemaLocation] = field(default_factory=dict)
    anchors: dict[tuple[str, str], SchemaLocation] = field(default_factory=dict)
    bases: dict[SchemaLocation, str] = field(default_factory=dict)
    dynamic: dict[str, list[SchemaLocation]] = field(default_factory=dict)

    def add_document(self, number: int) -> None:
        """Walk a document, and record its URIs and anchors."""
        document = self.documents[number]
        self.addresses.setdefault(document.base, SchemaLocation(number, ""))
        for _ in self.walk(SchemaLocation(number, ""), document.value, document.base):
            pass

    def walk(self, location: SchemaLocation, value: Any, base: str) -> Iterator[tuple[SchemaLocation, Any]]:
        """Yield every schema inside a schema that wasn't visited before; records its URIs and anchors."""
        number = self.documents[location.document].draft.number
        stack = [(location, value, base)]
        while stack:
            here, schema, outer = stack.pop()
            if here in self.bases:
                continue
            inner = self._note(here, schema, outer)
            if len(self.bases) > MAX_SCHEMAS:
                raise SchemaTooCostly(
                    f"the schema and its references contain more than {MAX_SCHEMAS:,} schemas: split it, or share definitions"
                )
            yield here, schema
            children = [
                (SchemaLocation(here.document, here.pointer + at), child, inner)
                for at, child in subschemas(schema, number)
            ]
            stack.extend(reversed(children))

    def _note(self, location: SchemaLocation, schema: Any, outer: str) -> str:
        """Return the base URI inside a schema; records the schema's own URI and anchors."""
        self.bases[location] = outer
        if not isinstance(schema, dict):
            return outer
        draft = self.documents[location.document].draft
        named = schema.get(draft.id_keyword)
        base = outer
        if isinstance(named, str) and not (draft.ref_hides_siblings and "$ref" in schema and location.pointer):
            address, fragment = urldefrag(_joined(outer, named))
            if fragment and named.startswith("#"):
                self.anchors.setdefault((outer, fragment), location)
            else:
                base = address
                self.addresses.setdefault(base, location)
                self.bases[location] = base
        for keyword in _ANCHORS:
            anchor = schema.get(keyword)
            if isinstance(anchor, str):
                self.anchors.setdefault((base, anchor), location)
        if isinstance(schema.get("$dynamicAnchor"), str):
            self.dynamic.setdefault(schema["$dynamicAnchor"], []).append(location)
        if schema.get("$recursiveAnchor") is True:
            self.dynamic.setdefault("", []).append(location)
        return base

    def resolve(self, location: SchemaLocation, reference: str) -> SchemaLocation | str | None:
        """Return the target of a reference from a place: a place, the URI of a meta-schema, or None."""
        base = self.bases[location]
        address, fragment = urldefrag(reference)
        absolute = urldefrag(_joined(base, address))[0] if address else base
        start = self._document(location, address, absolute)
        if start is None:
            meta = _META_SCHEMAS.get(
                absolute.replace("https://json-schema.org/draft-", "http://json-schema.org/draft-")
            )
            return meta if meta is not None and not fragment else None
        return self._inside(start, absolute, unquote(fragment))

    def _document(self, location: SchemaLocation, address: str, absolute: str) -> SchemaLocation | None:
        if not address:
            return self._resource_root(location)
        names = self.documents[location.document].names
        for name in (address, absolute, address.removeprefix("./")):
            if name in names:
                return SchemaLocation(names[name], "")
        for name in (absolute, address, address.removeprefix("./")):
            if name in self.addresses:
                return self.addresses[name]
        return None

    def _resource_root(self, location: SchemaLocation) -> SchemaLocation:
        """Return the schema that a bare fragment is relative to: the nearest enclosing one with a URI of its own."""
        base = self.bases[location]
        root = self.addresses.get(base)
        if root is not None and root.document == location.document and location.pointer.startswith(root.pointer):
            return root
        return SchemaLocation(location.document, "")

    def _inside(self, start: SchemaLocation, absolute: str, fragment: str) -> SchemaLocation | None:
        if not fragment:
            return start
        if fragment.startswith("/"):
            return self._by_pointer(start, fragment)
        base = self.bases.get(start, absolute)
        return self.anchors.get((base, fragment)) or self.anchors.get((absolute, fragment))

    def _by_pointer(self, start: SchemaLocation, fragment: str) -> SchemaLocation | None:
        for candidate in _candidates(fragment):
            target = SchemaLocation(start.document, _canonical(start.pointer, candidate))
            value = value_at(self.documents[start.document].value, target.pointer)
            if value is not MISSING and is_schema(value):
                return target
        return None


def _candidates(fragment: str) -> Iterator[str]:
    """Yield the pointer; `#/$defs/X` also finds X under `definitions`, as in Confluent's registry."""
    yield fragment
    if fragment.startswith("/$defs/"):
        yield "/definitions/" + fragment.removeprefix("/$defs/")


def _canonical(start: str, fragment: str) -> str:
    return join(start, *(unescape(token) for token in fragment.split("/")[1:]))


def _joined(base: str, reference: str) -> str:
    try:
        return urljoin(base, reference)
    except ValueError:
        return reference


def value_at(value: Any, pointer: str) -> Any:
    """Return the target of a JSON Pointer in a JSON value; MISSING if there is none."""
    for token in pointer.split("/")[1:]:
        key = unescape(token)
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isascii() and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return MISSING
    return value


_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


def root_path(model: Model) -> str:
    """Return the start of every path: the schema's title if that is one word, otherwise `$`."""
    title = model.root.get("title") if isinstance(model.root, dict) else None
    return title if isinstance(title, str) and _NAME.fullmatch(title) else "$"
