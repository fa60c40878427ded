"""jsonschema_rs, held to limits: never online, patterns with a bounded engine, formats as annotations."""

from __future__ import annotations

from typing import Any, Final

import jsonschema_rs

from registry.formats.json_schema.bundle import bundle_with_formats
from registry.formats.json_schema.drafts import DRAFTS, Draft
from registry.formats.json_schema.model import Bundle, Model
from registry.formats.json_source import SchemaProblem
from registry.formats.pointer import join

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
    """Raises SchemaProblem, at the place that is wrong, if a schema isn't one of its draft."""
    if isinstance(value, bool) and draft.number >= 6:
        return
    try:
        found = next(iter(_META[draft.number].iter_errors(value)), None)
    except ValueError as error:
        raise SchemaProblem(f"the schema can't be checked: {plain(error)}", "") from None
    if found is None:
        return
    pointer = join("", *found.instance_path)
    raise SchemaProblem(f"not a schema of {draft.name}, at {pointer or '/'}: {_shortened(found.message)}", pointer)


def compiled(bundle: Bundle, *, with_formats: bool = False) -> jsonschema_rs.Validator:
    """A validator of a bundle; raises ValueError where the library refuses it (a pattern that is too large …).

    `with_formats` lets it refuse texts that aren't of their format, which else is an annotation.
    """
    return _CLASSES[bundle.draft.number](
        bundle.value, offline=True, validate_formats=with_formats, pattern_options=PATTERN_OPTIONS
    )


def validator_of(model: Model) -> jsonschema_rs.Validator:
    """The validator of a schema, made once; raises ValueError where the library refuses it."""
    if "validator" not in model.cache:
        model.cache["validator"] = compiled(model.bundle)
    found: jsonschema_rs.Validator = model.cache["validator"]
    return found


def keeps_formats(model: Model, value: Any) -> bool:
    """Whether a value that is valid under a schema is so if the formats of texts are checked too."""
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
    """The canonical form of a bundle for containment; raises ValueError where the library refuses it."""
    return jsonschema_rs.canonicalize(
        bundle.value,
        draft=bundle.draft.code,
        offline=True,
        validate_formats=False,
        pattern_options=PATTERN_OPTIONS,
    )


def plain(error: BaseException) -> str:
    """The first line of an error's message, shortened."""
    message = getattr(error, "message", None) or str(error)
    return _shortened(message.splitlines()[0] if message else type(error).__name__)


def _shortened(message: str) -> str:
    return message if len(message) <= 300 else message[:299] + "…"
