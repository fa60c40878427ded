"""A stored schema's text in another form than it is stored in."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from registry.formats.base import ParsedSchema
from registry.formats.tags import EntityTags, with_any_of
from registry.subjects import engines
from registry.subjects.models import Registry, Schema
from registry.subjects.selectors.parsed import parse_stored
from registry.subjects.selectors.versions import SchemaInfo


def _serialized(schema: ParsedSchema) -> str:
    """The descriptor in base64, as Python's and other clients without a compiler ask for it.

    A schema that only a child reads has none here; such a client gets the text, as from servers that know no forms.
    """
    found = getattr(schema.model, "proto", None)
    if found is None:
        return schema.canonical
    descriptor = type(found)()
    descriptor.CopyFrom(found)
    descriptor.ClearField("source_code_info")
    descriptor.name = _NAME
    _forget_undeclared(descriptor)
    return base64.b64encode(descriptor.SerializeToString(deterministic=True)).decode("ascii")


#: the name that the established server gives a descriptor
_NAME: Final = "default"


def _forget_undeclared(message: Any) -> None:
    """Removes options that nothing declares, as a client could make nothing of them."""
    for field, value in message.ListFields():
        if field.name == "options":
            value.ClearField("uninterpreted_option")
        elif field.message_type is not None:
            for item in value if field.is_repeated else (value,):
                _forget_undeclared(item)


#: format and form (None: any format) → the text in that form
FORMS: Final[Mapping[tuple[str | None, str], Callable[[ParsedSchema], str]]] = {
    (None, "resolved"): engines.self_contained,
    ("PROTOBUF", "serialized"): _serialized,
    ("PROTOBUF", "ignore_extensions"): engines.without_extensions,
}


def text_in_form(registry: Registry, schema: SchemaInfo, form: str) -> str:
    """The text in the form that is asked for; the stored one for a form that the schema's format doesn't have."""
    wanted = form.strip().lower()
    render = FORMS.get((schema.schema_type, wanted)) or FORMS.get((None, wanted))
    if render is None:
        return schema.text
    return render(_parsed(registry, schema))


def find_tags(registry: Registry, schema: SchemaInfo, wanted: Sequence[str]) -> tuple[EntityTags, ...]:
    """The records and fields of a schema that have one of the tags, or (`*`) any."""
    return with_any_of(engines.tags(_parsed(registry, schema)), wanted)


def _parsed(registry: Registry, schema: SchemaInfo) -> ParsedSchema:
    row = Schema.objects.get(context__registry=registry, context__name=schema.context, schema_id=schema.schema_id)
    return parse_stored([row])[0]
