"""Where names lead: base addresses, `$id`, anchors and JSON Pointers over all documents of a schema.

Nothing is ever fetched. A `$ref` leads into the schema itself, into a reference (by the name it is registered under,
as it stands or resolved against the base address, or by the reference's own `$id`), or to a draft's meta-schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin

from registry.errors import SchemaTooCostly
from registry.formats.json_schema.drafts import DRAFTS, is_schema, subschemas
from registry.formats.json_schema.model import Document, Place
from registry.formats.pointer import join, unescape

_ANCHORS: Final = ("$anchor", "$dynamicAnchor")
_META_SCHEMAS: Final = {draft.uri.removesuffix("#"): draft.uri for draft in DRAFTS.values()}
MISSING: Final = object()
MAX_SCHEMAS: Final = 12_000


@dataclass(slots=True)
class Resources:
    """The addresses of all documents; `bases` has the base address of every schema that was walked."""

    documents: list[Document]
    addresses: dict[str, Place] = field(default_factory=dict)
    anchors: dict[tuple[str, str], Place] = field(default_factory=dict)
    bases: dict[Place, str] = field(default_factory=dict)
    dynamic: dict[str, list[Place]] = field(default_factory=dict)

    def add_document(self, number: int) -> None:
        """Walks a document and notes its addresses and anchors."""
        document = self.documents[number]
        self.addresses.setdefault(document.base, Place(number, ""))
        for _ in self.walk(Place(number, ""), document.value, document.base):
            pass

    def walk(self, place: Place, value: Any, base: str) -> Iterator[tuple[Place, Any]]:
        """Every schema in a schema that wasn't walked before; notes what each is called."""
        number = self.documents[place.document].draft.number
        stack = [(place, value, base)]
        while stack:
            here, schema, outer = stack.pop()
            if here in self.bases:
                continue
            inner = self._note(here, schema, outer)
            if len(self.bases) > MAX_SCHEMAS:
                raise SchemaTooCostly(
                    f"the schema and its references hold more than {MAX_SCHEMAS:,} schemas: split it, or share definitions"
                )
            yield here, schema
            children = [
                (Place(here.document, here.pointer + at), child, inner) for at, child in subschemas(schema, number)
            ]
            stack.extend(reversed(children))

    def _note(self, place: Place, schema: Any, outer: str) -> str:
        """The base address inside of a schema; notes its own address and anchors."""
        self.bases[place] = outer
        if not isinstance(schema, dict):
            return outer
        draft = self.documents[place.document].draft
        named = schema.get(draft.id_keyword)
        base = outer
        if isinstance(named, str) and not (draft.ref_hides_siblings and "$ref" in schema and place.pointer):
            address, fragment = urldefrag(_joined(outer, named))
            if fragment and named.startswith("#"):
                self.anchors.setdefault((outer, fragment), place)
            else:
                base = address
                self.addresses.setdefault(base, place)
                self.bases[place] = base
        for keyword in _ANCHORS:
            anchor = schema.get(keyword)
            if isinstance(anchor, str):
                self.anchors.setdefault((base, anchor), place)
        if isinstance(schema.get("$dynamicAnchor"), str):
            self.dynamic.setdefault(schema["$dynamicAnchor"], []).append(place)
        if schema.get("$recursiveAnchor") is True:
            self.dynamic.setdefault("", []).append(place)
        return base

    def resolve(self, place: Place, reference: str) -> Place | str | None:
        """Where a reference leads from a place: a place, the address of a meta-schema, or None."""
        base = self.bases[place]
        address, fragment = urldefrag(reference)
        absolute = urldefrag(_joined(base, address))[0] if address else base
        start = self._document(place, address, absolute)
        if start is None:
            meta = _META_SCHEMAS.get(
                absolute.replace("https://json-schema.org/draft-", "http://json-schema.org/draft-")
            )
            return meta if meta is not None and not fragment else None
        return self._inside(start, absolute, unquote(fragment))

    def _document(self, place: Place, address: str, absolute: str) -> Place | None:
        if not address:
            return self._resource_root(place)
        names = self.documents[place.document].names
        for name in (address, absolute, address.removeprefix("./")):
            if name in names:
                return Place(names[name], "")
        for name in (absolute, address, address.removeprefix("./")):
            if name in self.addresses:
                return self.addresses[name]
        return None

    def _resource_root(self, place: Place) -> Place:
        """The schema that a bare fragment is counted from: the nearest one around with an address of its own."""
        base = self.bases[place]
        root = self.addresses.get(base)
        if root is not None and root.document == place.document and place.pointer.startswith(root.pointer):
            return root
        return Place(place.document, "")

    def _inside(self, start: Place, absolute: str, fragment: str) -> Place | None:
        if not fragment:
            return start
        if fragment.startswith("/"):
            return self._by_pointer(start, fragment)
        base = self.bases.get(start, absolute)
        return self.anchors.get((base, fragment)) or self.anchors.get((absolute, fragment))

    def _by_pointer(self, start: Place, fragment: str) -> Place | None:
        for candidate in _candidates(fragment):
            target = Place(start.document, _canonical(start.pointer, candidate))
            value = value_at(self.documents[start.document].value, target.pointer)
            if value is not MISSING and is_schema(value):
                return target
        return None


def _candidates(fragment: str) -> Iterator[str]:
    """The pointer itself; `#/$defs/X` also finds what stands under `definitions`, as in the established registry."""
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
    """What a JSON Pointer leads to in a JSON value, MISSING where there is nothing."""
    for token in pointer.split("/")[1:]:
        key = unescape(token)
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isascii() and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return MISSING
    return value
