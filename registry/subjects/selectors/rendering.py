"""A stored schema's text in another form than it is stored in."""

from __future__ import annotations

from collections.abc import Callable

from registry.formats import FORMATS
from registry.formats.base import ParsedSchema
from registry.subjects import engines
from registry.subjects.models import Registry, Schema
from registry.subjects.selectors.parsed import parse_stored
from registry.subjects.selectors.versions import SchemaInfo

#: form → the text of a schema in it, for all formats
FORMS: dict[str, Callable[[ParsedSchema], str]] = {"resolved": engines.self_contained}


def text_in_form(registry: Registry, schema: SchemaInfo, form: str) -> str:
    """The text in the form that is asked for; the stored one for a form that the schema's format doesn't have."""
    render = FORMS.get(form.strip().lower()) or _own_form(schema.schema_type, form)
    if render is None:
        return schema.text
    row = Schema.objects.get(context__registry=registry, context__name=schema.context, schema_id=schema.schema_id)
    return render(parse_stored([row])[0])


def _own_form(schema_type: str, form: str) -> Callable[[ParsedSchema], str] | None:
    """A form that one format alone has: its engine names them in `forms` (form → function of a parsed schema)."""
    forms: dict[str, Callable[[ParsedSchema], str]] = getattr(FORMATS[schema_type], "forms", {})
    return forms.get(form.strip().lower())
