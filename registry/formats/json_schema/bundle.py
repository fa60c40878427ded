"""One document that says what all documents of a schema say, for validators: no addresses, no reference to outside.

Every schema that a `$ref` leads to becomes a definition of the bundle, once; what decides nothing (annotations,
unknown keywords, definitions that nothing uses) is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from registry.formats.json_schema.drafts import (
    APPLICATORS,
    ASSERTIONS,
    NEWEST_DRAFT,
    REF_KEYWORDS,
    Draft,
    is_schema,
    knows_ref,
)
from registry.formats.json_schema.model import ROOT, Bundle, Document, Model, Place
from registry.formats.json_schema.modern import inexact_in_modern, modernized
from registry.formats.json_schema.resources import value_at
from registry.formats.pointer import join

_DEFINITIONS = ("definitions", "$defs")


def bundled(
    documents: tuple[Document, ...], targets: Mapping[Place, Place | str], dynamic: Mapping[str, tuple[Place, ...]]
) -> Bundle:
    """The bundle in the schema's own draft; in the newest one where its references have others."""
    drafts = {document.draft.number for document in documents}
    draft = documents[0].draft if len(drafts) == 1 else NEWEST_DRAFT
    return _Bundler(documents, targets, dynamic, draft).bundle()


def bundle_with_formats(model: Model) -> Bundle:
    """The bundle in the newest draft with the formats of texts, which decide nothing, for data that look real."""
    if "modern with formats" not in model.cache:
        bundler = _Bundler(model.documents, model.targets, model.dynamic, NEWEST_DRAFT, with_formats=True)
        model.cache["modern with formats"] = bundler.bundle()
    found: Bundle = model.cache["modern with formats"]
    return found


def modern_bundle(model: Model) -> Bundle:
    """The bundle in the newest draft, for comparing schemas of different drafts."""
    if model.bundle.draft is NEWEST_DRAFT:
        return model.bundle
    if "modern" not in model.cache:
        bundler = _Bundler(model.documents, model.targets, model.dynamic, NEWEST_DRAFT)
        model.cache["modern"] = bundler.bundle()
    found: Bundle = model.cache["modern"]
    return found


class _Bundler:
    """Writes the documents of a schema as one."""

    def __init__(
        self,
        documents: tuple[Document, ...],
        targets: Mapping[Place, Place | str],
        dynamic: Mapping[str, tuple[Place, ...]],
        draft: Draft,
        *,
        with_formats: bool = False,
    ) -> None:
        self._with_formats = with_formats
        self._documents = documents
        self._targets = targets
        self._dynamic = dynamic
        self._draft = draft
        self._inexact = ""
        places = dict.fromkeys(target for target in targets.values() if isinstance(target, Place))
        self._names = {place: f"d{number}" for number, place in enumerate(places)}

    def bundle(self) -> Bundle:
        """The document; definitions that only unused definitions refer to are in it as well."""
        root = self._schema(ROOT, self._documents[0].value, is_top=False)
        definitions = {
            name: self._schema(place, self._value(place), is_top=True) for place, name in self._names.items()
        }
        if definitions:
            root = {**root, self._draft.definitions: definitions} if isinstance(root, dict) else root
        origins = {name: place for place, name in self._names.items()}
        return Bundle(root, self._draft, origins, self._inexact)

    def _value(self, place: Place) -> Any:
        return value_at(self._documents[place.document].value, place.pointer)

    def _pointer(self, target: Place | str) -> str:
        return target if isinstance(target, str) else f"#/{self._draft.definitions}/{self._names[target]}"

    def _schema(self, place: Place, schema: Any, *, is_top: bool) -> Any:
        if not is_top and place in self._names:
            return {"$ref": self._pointer(place)}
        if not isinstance(schema, dict):
            return schema
        draft = self._documents[place.document].draft
        refs = [
            keyword for keyword in REF_KEYWORDS if isinstance(schema.get(keyword), str) and knows_ref(draft, keyword)
        ]
        if refs and draft.ref_hides_siblings:
            return {"$ref": self._ref(place, refs[0])}
        written: dict[str, Any] = {}
        for key, held in schema.items():
            if key in APPLICATORS[draft.number]:
                if key not in _DEFINITIONS:
                    written[key] = self._applied(place, key, held, draft)
            elif key in ASSERTIONS[draft.number] or (key == "format" and self._with_formats and isinstance(held, str)):
                written[key] = held
        if refs:
            written["$ref"] = self._ref(place, refs[0])
            if len(refs) > 1:
                written["allOf"] = [*written.get("allOf", []), *({"$ref": self._ref(place, ref)} for ref in refs[1:])]
        if draft is self._draft:
            return written
        self._inexact = self._inexact or inexact_in_modern(written, draft)
        return modernized(written, draft)

    def _applied(self, place: Place, key: str, held: Any, draft: Draft) -> Any:
        at = join(place.pointer, key)
        if is_schema(held) and APPLICATORS[draft.number][key].holds in ("schema", "schema or list"):
            return self._schema(Place(place.document, at), held, is_top=False)
        if isinstance(held, dict):
            return {
                name: self._schema(Place(place.document, join(at, name)), item, is_top=False)
                for name, item in held.items()
            }
        if isinstance(held, list):
            return [
                self._schema(Place(place.document, f"{at}/{index}"), item, is_top=False)
                for index, item in enumerate(held)
            ]
        return held

    def _ref(self, place: Place, keyword: str) -> str:
        target = self._targets[Place(place.document, join(place.pointer, keyword))]
        if keyword != "$ref" and isinstance(target, Place):
            self._check_dynamic(target, keyword)
        if isinstance(target, str) and keyword != "$ref":
            self._inexact = f"the {keyword} leads into a meta-schema"
        return self._pointer(target)

    def _check_dynamic(self, target: Place, keyword: str) -> None:
        """A dynamic reference is a plain one, unless several schemas carry the anchor that it means."""
        value = self._value(target)
        anchor = "" if keyword == "$recursiveRef" else value.get("$dynamicAnchor") if isinstance(value, dict) else None
        if anchor is not None and len(self._dynamic.get(anchor, ())) > 1 and target in self._dynamic[anchor]:
            self._inexact = f"the {keyword} means another schema in each place that leads to it"
