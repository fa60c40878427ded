"""The texts of a schema: canonical, with everything inside, and the fingerprint of its content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from registry.formats.base import ResolvedReference, graph_fingerprint
from registry.formats.json_schema.drafts import Draft, subschemas
from registry.formats.json_schema.model import Document, Model, Place
from registry.formats.json_schema.text import compact
from registry.formats.pointer import join, unescape

_FRAGMENT = "/~!$&'()*+,;=:@-._"


def fingerprint(model: Model, canonical: str, references: Sequence[ResolvedReference]) -> str:
    """The fingerprint of a text with what it refers to; each referenced text is written once."""
    documents = model.documents[1:]
    return graph_fingerprint(
        canonical,
        references,
        ((item.reference, compact(item.value)) for item in documents if item.reference is not None),
    )


def self_contained_text(model: Model) -> str:
    """The schema with every reference as a definition inside, and every `$ref` a pointer into the text itself.

    Where the references are of other drafts, it is the bundle in the newest draft, without annotations.
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
    """Puts the documents of a model into one."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._container = model.draft.definitions
        held = model.root.get(self._container)
        self._own = dict(held) if isinstance(held, dict) else {}
        taken = set(self._own)
        self._names: dict[int, str] = {}
        for number, document in enumerate(model.documents[1:], start=1):
            self._names[number] = _free_name(document, taken)
            taken.add(self._names[number])

    def document(self) -> dict[str, Any]:
        """The root with the referenced documents among its definitions."""
        root: dict[str, Any] = self._rewritten(0)
        inside = {self._names[number]: self._rewritten(number) for number in self._names}
        root[self._container] = {**root.get(self._container, {}), **inside}
        return root

    def _rewritten(self, number: int) -> Any:
        document = self._model.documents[number]
        value = _copy(document.value)
        for place, target in self._model.targets.items():
            if place.document == number:
                self._point(value, place, target)
        _without_addresses(value, document.draft, is_root=number == 0)
        return value

    def _point(self, value: Any, place: Place, target: Place | str) -> None:
        if isinstance(target, str):
            return
        holder = value
        *path, keyword = [unescape(token) for token in place.pointer.split("/")[1:]]
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
    found, number = name, 2
    while found in taken:
        found, number = f"{name}-{number}", number + 1
    return found


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _without_addresses(value: Any, draft: Draft, *, is_root: bool) -> None:
    """Takes out what gives a schema inside an address of its own, as pointers count from the nearest address."""
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
