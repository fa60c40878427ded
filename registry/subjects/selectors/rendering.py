"""A stored schema's text in another form than it is stored in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from registry.formats.base import ParsedSchema
from registry.formats.tags import EntityTags, with_any_of
from registry.subjects import engines
from registry.subjects.models import Registry, Schema
from registry.subjects.selectors.parsed import parse_stored
from registry.subjects.selectors.versions import SchemaInfo

#: format and form (None: any format) → the text in that form
FORMS: Final[Mapping[tuple[str | None, str], Callable[[ParsedSchema], str]]] = {
    (None, "resolved"): engines.self_contained,
    ("PROTOBUF", "serialized"): engines.serialized,
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
