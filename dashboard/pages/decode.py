"""A pasted message: which schema it names, whose that is, and its value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.sources_words import given_text
from dashboard.pages.usage import FRAMINGS, usage_url
from dashboard.presenters.frame import Action, Choice, Field, Problem, Section
from dashboard.presenters.looks import format_name
from dashboard.presenters.usage import Decoded, DecodePage, MeantVersion
from dashboard.texts import later
from registry.access.roles import Actor, refusal, require
from registry.drift.messages import DecodedMessage, decode_message
from registry.drift.pasted import ENCODINGS
from registry.errors import Forbidden, SchemadeskError
from registry.subjects.names import DEFAULT_CONTEXT, check_context
from registry.subjects.selectors import registry_names
from registry.subjects.selectors.places import get_registry

MOST_CHARACTERS: Final = 200_000
WORDS: Final = {
    "auto": later("find out"),
    "hex": later("hexadecimal"),
    "base64": "base64",
    "text": later("text (JSON)"),
}


def decode_page(request: HttpRequest) -> DecodePage:
    """The form; sent, with what the message is. Raises NotAllowed."""
    given: Mapping[str, str] = request.POST if request.method == "POST" else request.GET
    actor = page_actor(request)
    names = registry_names(actor)
    registry = given_text(given, "registry") or (names[0] if names else "")
    require(actor, "schema.read", registry=registry)
    result, problem = None, None
    if request.method == "POST":
        try:
            result = _decoded(request, registry)
        except Forbidden:
            raise
        except SchemadeskError as error:
            problem = Problem(what=error.message)
    return DecodePage(
        frame=make_frame(request, title=gettext("Decode a message"), section=Section.SUBJECTS),
        fields=_fields(given, names, registry),
        more=_more(given),
        submit=Action(label=gettext("Decode"), url=reverse("ui:decode"), method="post", tone="primary"),
        result=result,
        problem=problem,
    )


def _decoded(request: HttpRequest, registry: str) -> Decoded:
    post = request.POST
    context = given_text(post, "context")
    found = decode_message(
        get_registry(registry),
        text=post.get("message", ""),
        headers=post.get("headers", ""),
        side="key" if post.get("side") == "key" else "value",
        encoding=post.get("encoding", "auto"),
        context=check_context(context) if context else DEFAULT_CONTEXT,
        by=page_actor(request),
    )
    return _shown(found, registry, page_actor(request))


def _shown(found: DecodedMessage, registry: str, actor: Actor) -> Decoded:
    text = json.dumps(found.value, indent=2, ensure_ascii=False, default=str)
    has_value = found.value is not None or not found.error
    return Decoded(
        framing=FRAMINGS.get(found.framing, "none"),
        mark=found.mark,
        encoding=WORDS.get(found.encoding, found.encoding),
        size=found.bytes,
        body_size=found.body_bytes,
        schema_id=found.schema_id,
        guid=found.guid,
        context=found.context if found.context != DEFAULT_CONTEXT else "",
        format=format_name(found.schema_type),
        type_name=found.type_name,
        indexes=", ".join(map(str, found.indexes)),
        versions=tuple(
            MeantVersion(
                label=gettext("%(subject)s version %(version)s")
                % {"subject": version.subject, "version": version.version},
                url=subject_url(registry, version.subject, version=version.version),
                usage_url=usage_url(registry, version.subject),
                deleted=version.deleted,
            )
            for version in found.versions
        ),
        value=text[:MOST_CHARACTERS] if has_value else "",
        cut=has_value and len(text) > MOST_CHARACTERS,
        problems=found.problems,
        error=found.error,
        elsewhere=found.elsewhere,
        has_value=has_value,
        masked=refusal(actor, "sample.personal", registry=registry) if found.masked else "",
    )


def _fields(given: Mapping[str, str], names: list[str], registry: str) -> tuple[Field, ...]:
    choices = tuple(Choice(value=name, label=name, selected=name == registry) for name in names)
    return (
        Field(
            name="message",
            label=gettext("Message"),
            kind="textarea",
            rows=8,
            value=given.get("message", ""),
            code=True,
            required=True,
            placeholder="00 00 00 00 09 02 06 61 62 63",
            help=gettext("Hexadecimal, base64, the dump of a tool, or JSON. Nothing of it is kept."),
        ),
        Field(name="registry", label=gettext("Registry"), kind="select", choices=choices, required=True),
        _select(given, "side", gettext("It is a"), {"value": gettext("value"), "key": gettext("key")}, "value"),
        _select(given, "encoding", gettext("Written as"), {name: WORDS.get(name, name) for name in ENCODINGS}, "auto"),
    )


def _more(given: Mapping[str, str]) -> tuple[Field, ...]:
    return (
        Field(
            name="headers",
            label=gettext("Headers"),
            kind="textarea",
            rows=3,
            value=given.get("headers", ""),
            code=True,
            placeholder="contentType: application/vnd.orders.v2+avro",
            help=gettext("A line each, name: value. Those that name a schema count."),
        ),
        Field(
            name="context",
            label=gettext("Context"),
            value=given.get("context", ""),
            code=True,
            placeholder=".",
            help=gettext("Whose schema ids it carries; empty: the default one."),
        ),
    )


def _select(given: Mapping[str, str], name: str, label: str, values: Mapping[str, str], usual: str) -> Field:
    chosen = given.get(name, usual)
    choices = tuple(Choice(value=value, label=words, selected=value == chosen) for value, words in values.items())
    return Field(name=name, label=label, kind="select", choices=choices, required=True)
