"""Validators of jsonschema_rs with limits: one self-contained document, always offline, a bounded pattern engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import jsonschema_rs

from registry.formats.json_pointer import SchemaProblem, join
from registry.formats.json_schema.drafts import (
    APPLICATORS,
    ASSERTIONS,
    DRAFTS,
    NEWEST_DRAFT,
    REF_KEYWORDS,
    Draft,
    inexact_in_modern,
    is_schema,
    knows_ref,
    modernized,
)
from registry.formats.json_schema.model import ROOT, Bundle, Document, Model, SchemaLocation, value_at

_DEFINITIONS = ("definitions", "$defs")


def bundled(
    documents: tuple[Document, ...],
    targets: Mapping[SchemaLocation, SchemaLocation | str],
    dynamic: Mapping[str, tuple[SchemaLocation, ...]],
) -> Bundle:
    """Return the bundle in the schema's own draft, or in the newest if its references have other drafts."""
    drafts = {document.draft.number for document in documents}
    draft = documents[0].draft if len(drafts) == 1 else NEWEST_DRAFT
    return _Bundler(documents, targets, dynamic, draft).bundle()


def bundle_with_formats(model: Model) -> Bundle:
    """Return the bundle in the newest draft with string formats, which decide nothing, for realistic data."""
    if "modern with formats" not in model.cache:
        bundler = _Bundler(model.documents, model.targets, model.dynamic, NEWEST_DRAFT, with_formats=True)
        model.cache["modern with formats"] = bundler.bundle()
    bundle: Bundle = model.cache["modern with formats"]
    return bundle


def modern_bundle(model: Model) -> Bundle:
    """Return the bundle in the newest draft, for comparing schemas of different drafts."""
    if model.bundle.draft is NEWEST_DRAFT:
        return model.bundle
    if "modern" not in model.cache:
        bundler = _Bundler(model.documents, model.targets, model.dynamic, NEWEST_DRAFT)
        model.cache["modern"] = bundler.bundle()
    bundle: Bundle = model.cache["modern"]
    return bundle


class _Bundler:
    """A writer of the documents of a schema as one."""

    def __init__(
        self,
        documents: tuple[Document, ...],
        targets: Mapping[SchemaLocation, SchemaLocation | str],
        dynamic: Mapping[str, tuple[SchemaLocation, ...]],
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
        locations = dict.fromkeys(target for target in targets.values() if isinstance(target, SchemaLocation))
        self._names = {location: f"d{number}" for number, location in enumerate(locations)}

    def bundle(self) -> Bundle:
        """Return the document, including definitions that only unused definitions refer to."""
        root = self._schema(ROOT, self._documents[0].value, is_top=False)
        definitions = {
            name: self._schema(location, self._value(location), is_top=True) for location, name in self._names.items()
        }
        if definitions:
            root = {**root, self._draft.definitions: definitions} if isinstance(root, dict) else root
        origins = {name: location for location, name in self._names.items()}
        return Bundle(root, self._draft, origins, self._inexact)

    def _value(self, location: SchemaLocation) -> Any:
        return value_at(self._documents[location.document].value, location.pointer)

    def _pointer(self, target: SchemaLocation | str) -> str:
        return target if isinstance(target, str) else f"#/{self._draft.definitions}/{self._names[target]}"

    def _schema(self, location: SchemaLocation, schema: Any, *, is_top: bool) -> Any:
        if not is_top and location in self._names:
            return {"$ref": self._pointer(location)}
        if not isinstance(schema, dict):
            return schema
        draft = self._documents[location.document].draft
        refs = [
            keyword for keyword in REF_KEYWORDS if isinstance(schema.get(keyword), str) and knows_ref(draft, keyword)
        ]
        if refs and draft.ref_hides_siblings:
            return {"$ref": self._ref(location, refs[0])}
        written: dict[str, Any] = {}
        for key, value in schema.items():
            if key in APPLICATORS[draft.number]:
                if key not in _DEFINITIONS:
                    written[key] = self._applied(location, key, value, draft)
            elif key in ASSERTIONS[draft.number] or (key == "format" and self._with_formats and isinstance(value, str)):
                written[key] = value
        if refs:
            written["$ref"] = self._ref(location, refs[0])
            if len(refs) > 1:
                written["allOf"] = [
                    *written.get("allOf", []),
                    *({"$ref": self._ref(location, ref)} for ref in refs[1:]),
                ]
        if draft is self._draft:
            return written
        self._inexact = self._inexact or inexact_in_modern(written, draft)
        return modernized(written, draft)

    def _applied(self, location: SchemaLocation, key: str, value: Any, draft: Draft) -> Any:
        at = join(location.pointer, key)
        if is_schema(value) and APPLICATORS[draft.number][key].holds in ("schema", "schema or list"):
            return self._schema(SchemaLocation(location.document, at), value, is_top=False)
        if isinstance(value, dict):
            return {
                name: self._schema(SchemaLocation(location.document, join(at, name)), item, is_top=False)
                for name, item in value.items()
            }
        if isinstance(value, list):
            return [
                self._schema(SchemaLocation(location.document, f"{at}/{index}"), item, is_top=False)
                for index, item in enumerate(value)
            ]
        return value

    def _ref(self, location: SchemaLocation, keyword: str) -> str:
        target = self._targets[SchemaLocation(location.document, join(location.pointer, keyword))]
        if keyword != "$ref" and isinstance(target, SchemaLocation):
            self._check_dynamic(target, keyword)
        if isinstance(target, str) and keyword != "$ref":
            self._inexact = f"the {keyword} refers to a meta-schema"
        return self._pointer(target)

    def _check_dynamic(self, target: SchemaLocation, keyword: str) -> None:
        """Treat a dynamic reference as a plain one, unless several schemas have the anchor."""
        value = self._value(target)
        anchor = "" if keyword == "$recursiveRef" else value.get("$dynamicAnchor") if isinstance(value, dict) else None
        if anchor is not None and len(self._dynamic.get(anchor, ())) > 1 and target in self._dynamic[anchor]:
            self._inexact = f"the {keyword} refers to a different schema depending on where it is used"


BACKTRACK_LIMIT: Final = 20_000
_PATTERN_BYTES: Final = 2 * 1_048_576

PATTERN_OPTIONS: Final = jsonschema_rs.FancyRegexOptions(
    backtrack_limit=BACKTRACK_LIMIT, size_limit=_PATTERN_BYTES, dfa_size_limit=_PATTERN_BYTES
)
_CLASSES: Final = {
    4: jsonschema_rs.Draft4Validator,
    6: jsonschema_rs.Draft6Validator,
    7: jsonschema_rs.Draft7Validator,
    2019: jsonschema_rs.Draft201909Validator,
    2020: jsonschema_rs.Draft202012Validator,
}
_META: Final = {number: _CLASSES[number]({"$ref": draft.uri}, offline=True) for number, draft in DRAFTS.items()}


def check_meta_schema(value: Any, draft: Draft) -> None:
    """Raise SchemaProblem, with the place of the error, if a schema isn't valid in its draft."""
    if isinstance(value, bool) and draft.number >= 6:
        return
    try:
        violation = next(iter(_META[draft.number].iter_errors(value)), None)
    except ValueError as error:
        raise SchemaProblem(f"the schema can't be checked: {plain(error)}", "") from None
    if violation is None:
        return
    pointer = join("", *violation.instance_path)
    raise SchemaProblem(f"not a schema of {draft.name}, at {pointer or '/'}: {_shortened(violation.message)}", pointer)


def compiled(bundle: Bundle, *, with_formats: bool = False) -> jsonschema_rs.Validator:
    """Return a validator of a bundle; raises ValueError if the library rejects it (for example, a pattern too large).

    `with_formats` makes it reject strings that don't match their format, which is otherwise an annotation.
    """
    return _CLASSES[bundle.draft.number](
        bundle.value, offline=True, validate_formats=with_formats, pattern_options=PATTERN_OPTIONS
    )


def validator_of(model: Model) -> jsonschema_rs.Validator:
    """Return the validator of a schema; cached. Raises ValueError if the library rejects the schema."""
    if "validator" not in model.cache:
        model.cache["validator"] = compiled(model.bundle)
    validator: jsonschema_rs.Validator = model.cache["validator"]
    return validator


def keeps_formats(model: Model, value: Any) -> bool:
    """Return whether a valid value also matches the formats of its strings."""
    if "validator of formats" not in model.cache:
        try:
            model.cache["validator of formats"] = compiled(bundle_with_formats(model), with_formats=True)
        except ValueError:
            model.cache["validator of formats"] = None
    validator: jsonschema_rs.Validator | None = model.cache["validator of formats"]
    try:
        return validator is not None and validator.is_valid(value)
    except (ValueError, RecursionError):
        return False


def canonicalized(bundle: Bundle) -> jsonschema_rs.CanonicalSchema:
    """Return the canonical form of a bundle for containment; raises ValueError if the library rejects it."""
    return jsonschema_rs.canonicalize(
        bundle.value,
        draft=bundle.draft.code,
        offline=True,
        validate_formats=False,
        pattern_options=PATTERN_OPTIONS,
    )


def plain(error: BaseException) -> str:
    """Return the first line of an error's message, shortened."""
    message = getattr(error, "message", None) or str(error)
    return _shortened(message.splitlines()[0] if message else type(error).__name__)


def _shortened(message: str) -> str:
    return message if len(message) <= 300 else message[:299] + "…"
