"""From the text of a JSON Schema to its model, strictly: the draft's meta-schema, patterns, and every `$ref`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urldefrag, urljoin

from registry.errors import InvalidSchema
from registry.formats.base import ResolvedReference
from registry.formats.json_schema.bundle import bundled
from registry.formats.json_schema.drafts import REF_KEYWORDS, Draft, draft_of, knows_ref
from registry.formats.json_schema.model import Document, Model, Place
from registry.formats.json_schema.resources import MISSING, Resources, value_at
from registry.formats.json_schema.text import read_json
from registry.formats.json_schema.validators import check_meta_schema
from registry.formats.json_source import SchemaProblem, invalid
from registry.formats.pointer import join

MAX_REFERENCES: Final = 1_000
MAX_REFS: Final = 20_000
MAX_TOTAL_TEXT: Final = 8 * 1_048_576
MAX_REF_LENGTH: Final = 2_000


def parse_schema(text: str, references: Sequence[ResolvedReference] = ()) -> Model:
    """The model of a schema text with its references; raises InvalidSchema."""
    value = read_json(text)
    try:
        draft = _checked(value)
        documents = _documents(value, draft, references)
        resources = Resources(documents)
        for number in range(len(documents)):
            resources.add_document(number)
        targets = _Links(resources).targets()
    except SchemaProblem as problem:
        raise invalid(problem, text) from None
    documents_read = tuple(documents)
    dynamic = {name: tuple(places) for name, places in resources.dynamic.items()}
    return Model(documents_read, targets, dynamic, bundled(documents_read, targets, dynamic))


def _checked(value: Any, default: Draft | None = None) -> Draft:
    """The draft of a schema that its meta-schema accepts; raises SchemaProblem."""
    if not isinstance(value, (dict, bool)):
        raise SchemaProblem("a JSON Schema is an object, true or false", "")
    draft = draft_of(value) if default is None else draft_of(value, default)
    check_meta_schema(value, draft)
    return draft


def _documents(value: Any, draft: Draft, references: Sequence[ResolvedReference]) -> list[Document]:
    """The schema itself, then each referenced text once; raises InvalidSchema that names the reference."""
    ordered = _in_order(references)
    numbers = {_key(reference): number for number, reference in enumerate(ordered, start=1)}
    base = _own_address(value, draft, "")
    documents = [Document(value, draft, base, None, _names(references, numbers, base))]
    total = 0
    for reference in ordered:
        total += len(reference.text)
        if total > MAX_TOTAL_TEXT:
            raise InvalidSchema(f"the references hold more than {MAX_TOTAL_TEXT:,} characters in all")
        documents.append(_read_reference(reference, draft, base, numbers))
    return documents


def _read_reference(
    reference: ResolvedReference, draft: Draft, base: str, numbers: dict[tuple[str, int, str], int]
) -> Document:
    place = f'the reference "{reference.name}" (subject {reference.subject}, version {reference.version})'
    try:
        value = read_json(reference.text)
        own_draft = _checked(value, draft)
    except SchemaProblem as problem:
        raise InvalidSchema(f"in {place}: {invalid(problem, reference.text).message}") from None
    except InvalidSchema as error:
        raise InvalidSchema(f"in {place}: {error.message}") from None
    address = _join(base, reference.name)
    own = _own_address(value, own_draft, address)
    return Document(value, own_draft, own, reference, _names(reference.references, numbers, own))


def _own_address(value: Any, draft: Draft, base: str) -> str:
    named = value.get(draft.id_keyword) if isinstance(value, dict) else None
    return urldefrag(_join(base, named))[0] if isinstance(named, str) else urldefrag(base)[0]


def _join(base: str, name: str) -> str:
    try:
        return urljoin(base, name)
    except ValueError as error:
        raise SchemaProblem(f'"{name[:120]}" is no address: {error}', "") from None


def _names(
    references: Sequence[ResolvedReference], numbers: dict[tuple[str, int, str], int], base: str
) -> dict[str, int]:
    names: dict[str, int] = {}
    for reference in references:
        number = numbers[_key(reference)]
        plain = urldefrag(reference.name)[0] or reference.name
        for name in (plain, _join(base, plain), plain.removeprefix("./")):
            names.setdefault(name, number)
    return names


def _in_order(references: Sequence[ResolvedReference]) -> list[ResolvedReference]:
    """Each referenced text once, what it refers to before it; without recursion."""
    ordered: list[ResolvedReference] = []
    seen: set[tuple[str, int, str]] = set()
    stack = [(reference, False) for reference in reversed(references)]
    while stack:
        reference, is_expanded = stack.pop()
        key = _key(reference)
        if is_expanded:
            ordered.append(reference)
        elif key not in seen:
            seen.add(key)
            if len(seen) > MAX_REFERENCES:
                raise InvalidSchema(f"the schema refers to more than {MAX_REFERENCES:,} others, directly or not")
            stack.append((reference, True))
            stack.extend((inner, False) for inner in reversed(reference.references))
    return ordered


def _key(reference: ResolvedReference) -> tuple[str, int, str]:
    return reference.subject, reference.version, reference.text


class _Links:
    """Follows every `$ref` of every document to the schema that it means."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._targets: dict[Place, Place | str] = {}

    def targets(self) -> dict[Place, Place | str]:
        """From the place of each reference to the schema that it means; raises SchemaProblem or InvalidSchema."""
        places = list(self._resources.bases)
        while places:
            found: list[Place] = []
            for place in places:
                found.extend(self._follow(place))
            places = found
        return self._targets

    def _follow(self, place: Place) -> list[Place]:
        """Notes where the reference of one schema leads; gives schemas that were never walked before."""
        document = self._resources.documents[place.document]
        schema = value_at(document.value, place.pointer)
        if not isinstance(schema, dict):
            return []
        found: list[Place] = []
        for keyword in REF_KEYWORDS:
            reference = schema.get(keyword)
            if isinstance(reference, str) and knows_ref(document.draft, keyword):
                found.extend(self._link(place, keyword, reference))
        return found

    def _link(self, place: Place, keyword: str, reference: str) -> list[Place]:
        if len(self._targets) >= MAX_REFS:
            raise SchemaProblem(f"the schema has more than {MAX_REFS:,} references", place.pointer)
        target = self._resources.resolve(place, reference) if len(reference) <= MAX_REF_LENGTH else None
        if target is None:
            raise self._unresolved(place, keyword, reference)
        self._targets[Place(place.document, join(place.pointer, keyword))] = target
        if isinstance(target, str) or target in self._resources.bases:
            return []
        value = value_at(self._resources.documents[target.document].value, target.pointer)
        base = self._resources.documents[target.document].base
        return [] if value is MISSING else [found for found, _ in self._resources.walk(target, value, base)]

    def _unresolved(self, place: Place, keyword: str, reference: str) -> Exception:
        cure = (
            "define it in the schema"
            if reference.startswith("#")
            else "register what it names as a subject and add a reference with that name; addresses are never fetched"
        )
        message = f'the {keyword} "{reference[:200]}" leads nowhere: {cure}'
        pointer = join(place.pointer, keyword)
        owner = self._resources.documents[place.document].reference
        if owner is None:
            return SchemaProblem(f"{message}, at {pointer or '/'}", pointer)
        return InvalidSchema(f'in the reference "{owner.name}" at {pointer}: {message}', pointer=pointer)
