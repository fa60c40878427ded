"""Strict parsing of a JSON Schema text into its model, and its self-contained text and fingerprint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote, urldefrag, urljoin

from registry.errors import InvalidSchema
from registry.formats.base import ResolvedReference, graph_fingerprint
from registry.formats.json_pointer import SchemaProblem, invalid, join, unescape
from registry.formats.json_schema.drafts import REF_KEYWORDS, Draft, draft_of, knows_ref, subschemas
from registry.formats.json_schema.model import MISSING, Document, Model, Resources, SchemaLocation, value_at
from registry.formats.json_schema.text import compact, read_json
from registry.formats.json_schema.validators import bundled, check_meta_schema

_FRAGMENT = "/~!$&'()*+,;=:@-._"


def fingerprint(model: Model, canonical: str, references: Sequence[ResolvedReference]) -> str:
    """Return the fingerprint of a text with everything it refers to; each referenced text is written once."""
    documents = model.documents[1:]
    return graph_fingerprint(
        canonical,
        references,
        ((item.reference, compact(item.value)) for item in documents if item.reference is not None),
    )


def self_contained_text(model: Model) -> str:
    """Return the schema with every reference as a definition, and every `$ref` as a pointer within the text.

    If the references have other drafts, return the bundle in the newest draft, without annotations.
    """
    if len(model.documents) == 1:
        return compact(model.root)
    if not isinstance(model.root, dict):
        return compact(model.root)
    if len({document.draft.number for document in model.documents}) > 1:
        value = model.bundle.value
        return compact({"$schema": model.bundle.draft.uri, **value} if isinstance(value, dict) else value)
    return compact(_Embedding(model).document())


class _Embedding:
    """A writer that embeds the documents of a model into one."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._container = model.draft.definitions
        definitions = model.root.get(self._container)
        self._own = dict(definitions) if isinstance(definitions, dict) else {}
        taken = set(self._own)
        self._names: dict[int, str] = {}
        for number, document in enumerate(model.documents[1:], start=1):
            self._names[number] = _free_name(document, taken)
            taken.add(self._names[number])

    def document(self) -> dict[str, Any]:
        """Return the root with the referenced documents among its definitions."""
        root: dict[str, Any] = self._rewritten(0)
        inside = {self._names[number]: self._rewritten(number) for number in self._names}
        root[self._container] = {**root.get(self._container, {}), **inside}
        return root

    def _rewritten(self, number: int) -> Any:
        document = self._model.documents[number]
        value = _copy(document.value)
        for location, target in self._model.targets.items():
            if location.document == number:
                self._point(value, location, target)
        _without_addresses(value, document.draft, is_root=number == 0)
        return value

    def _point(self, value: Any, location: SchemaLocation, target: SchemaLocation | str) -> None:
        if isinstance(target, str):
            return
        holder = value
        *path, keyword = [unescape(token) for token in location.pointer.split("/")[1:]]
        for token in path:
            holder = holder[int(token)] if isinstance(holder, list) else holder[token]
        if target.document == 0:
            pointer = target.pointer
        else:
            pointer = join("", self._container, self._names[target.document]) + target.pointer
        if keyword != "$ref":
            del holder[keyword]
        holder["$ref"] = "#" + quote(pointer, safe=_FRAGMENT)


def _free_name(document: Document, taken: set[str]) -> str:
    name = document.reference.name if document.reference is not None else ""
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name}-{number}", number + 1
    return candidate


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _without_addresses(value: Any, draft: Draft, *, is_root: bool) -> None:
    """Remove what gives an inner schema its own base URI, because pointers are relative to the nearest one."""
    stack = [(value, is_root)]
    while stack:
        schema, keeps = stack.pop()
        if not isinstance(schema, dict):
            continue
        if not keeps:
            for keyword in (draft.id_keyword, "$schema", "$anchor", "$dynamicAnchor", "$recursiveAnchor"):
                if keyword in schema and not (keyword == "id" and not isinstance(schema["id"], str)):
                    del schema[keyword]
        stack.extend((child, False) for _, child in subschemas(schema, draft.number))


MAX_REFERENCES: Final = 1_000
MAX_REFS: Final = 20_000
MAX_TOTAL_TEXT: Final = 8 * 1_048_576
MAX_REF_LENGTH: Final = 2_000


def parse_schema(text: str, references: Sequence[ResolvedReference] = ()) -> Model:
    """Return the model of a schema text with its references; raises InvalidSchema."""
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
    dynamic = {name: tuple(locations) for name, locations in resources.dynamic.items()}
    return Model(documents_read, targets, dynamic, bundled(documents_read, targets, dynamic))


def _checked(value: Any, default: Draft | None = None) -> Draft:
    """Return the draft of a schema that its meta-schema accepts; raises SchemaProblem."""
    if not isinstance(value, (dict, bool)):
        raise SchemaProblem("a JSON Schema is an object, true or false", "")
    draft = draft_of(value) if default is None else draft_of(value, default)
    check_meta_schema(value, draft)
    return draft


def _documents(value: Any, draft: Draft, references: Sequence[ResolvedReference]) -> list[Document]:
    """Return the schema, then each referenced text once; raises InvalidSchema with the name of the reference."""
    ordered = _in_order(references)
    numbers = {_key(reference): number for number, reference in enumerate(ordered, start=1)}
    base = _own_address(value, draft, "")
    documents = [Document(value, draft, base, None, _names(references, numbers, base))]
    total = 0
    for reference in ordered:
        total += len(reference.text)
        if total > MAX_TOTAL_TEXT:
            raise InvalidSchema(f"the references have more than {MAX_TOTAL_TEXT:,} characters in total")
        documents.append(_read_reference(reference, draft, base, numbers))
    return documents


def _read_reference(
    reference: ResolvedReference, draft: Draft, base: str, numbers: dict[tuple[str, int, str], int]
) -> Document:
    label = f'the reference "{reference.name}" (subject {reference.subject}, version {reference.version})'
    try:
        value = read_json(reference.text)
        own_draft = _checked(value, draft)
    except SchemaProblem as problem:
        raise InvalidSchema(f"in {label}: {invalid(problem, reference.text).message}") from None
    except InvalidSchema as error:
        raise InvalidSchema(f"in {label}: {error.message}") from None
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
        raise SchemaProblem(f'"{name[:120]}" is not a URI: {error}', "") from None


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
    """Return each referenced text once, after its own references; without recursion."""
    ordered: list[ResolvedReference] = []
    visited: set[tuple[str, int, str]] = set()
    stack = [(reference, False) for reference in reversed(references)]
    while stack:
        reference, is_expanded = stack.pop()
        key = _key(reference)
        if is_expanded:
            ordered.append(reference)
        elif key not in visited:
            visited.add(key)
            if len(visited) > MAX_REFERENCES:
                raise InvalidSchema(f"the schema refers to more than {MAX_REFERENCES:,} others, directly or not")
            stack.append((reference, True))
            stack.extend((inner, False) for inner in reversed(reference.references))
    return ordered


def _key(reference: ResolvedReference) -> tuple[str, int, str]:
    return reference.subject, reference.version, reference.text


class _Links:
    """A resolver of every `$ref` of every document to its target schema."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._targets: dict[SchemaLocation, SchemaLocation | str] = {}

    def targets(self) -> dict[SchemaLocation, SchemaLocation | str]:
        """Map the place of each reference to its target schema; raises SchemaProblem or InvalidSchema."""
        pending = list(self._resources.bases)
        while pending:
            reached: list[SchemaLocation] = []
            for location in pending:
                reached.extend(self._follow(location))
            pending = reached
        return self._targets

    def _follow(self, location: SchemaLocation) -> list[SchemaLocation]:
        """Record the targets of one schema's references; return schemas that weren't visited before."""
        document = self._resources.documents[location.document]
        schema = value_at(document.value, location.pointer)
        if not isinstance(schema, dict):
            return []
        reached: list[SchemaLocation] = []
        for keyword in REF_KEYWORDS:
            reference = schema.get(keyword)
            if isinstance(reference, str) and knows_ref(document.draft, keyword):
                reached.extend(self._link(location, keyword, reference))
        return reached

    def _link(self, location: SchemaLocation, keyword: str, reference: str) -> list[SchemaLocation]:
        if len(self._targets) >= MAX_REFS:
            raise SchemaProblem(f"the schema has more than {MAX_REFS:,} references", location.pointer)
        target = self._resources.resolve(location, reference) if len(reference) <= MAX_REF_LENGTH else None
        if target is None:
            raise self._unresolved(location, keyword, reference)
        self._targets[SchemaLocation(location.document, join(location.pointer, keyword))] = target
        if isinstance(target, str) or target in self._resources.bases:
            return []
        value = value_at(self._resources.documents[target.document].value, target.pointer)
        base = self._resources.documents[target.document].base
        return [] if value is MISSING else [inner for inner, _ in self._resources.walk(target, value, base)]

    def _unresolved(self, location: SchemaLocation, keyword: str, reference: str) -> Exception:
        cure = (
            "define it in the schema"
            if reference.startswith("#")
            else (
                "register the schema that it names as a subject, and add a reference with that name; URIs are never "
                "fetched"
            )
        )
        message = f"""the {keyword} "{reference[:200]}" can\'t be resolved: {cure}"""
        pointer = join(location.pointer, keyword)
        owner = self._resources.documents[location.document].reference
        if owner is None:
            return SchemaProblem(f"{message}, at {pointer or '/'}", pointer)
        return InvalidSchema(f'in the reference "{owner.name}" at {pointer}: {message}', pointer=pointer)
