"""A pasted message: which schema it names, whose that is, and its value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import format_name
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import subject_url
from dashboard.components.translation import later
from dashboard.components.widgets import Action, Choice, Field, Problem, Section
from dashboard.sources.labels import given_text
from dashboard.usage.page import FRAMINGS, usage_url
from dashboard.usage.presenters import Decoded, DecodePage, MeantVersion
from registry.access.roles import Actor, refusal, require
from registry.drift.selectors.messages import ENCODINGS, DecodedMessage, decode_message
from registry.errors import Forbidden, SchemadeskError
from registry.subjects.selectors import registry_names
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, check_context

MOST_CHARACTERS: Final = 200_000
WORDS: Final = {
    "auto": later("detect"),
    "hex": later("hexadecimal"),
    "base64": "base64",
    "text": later("text (JSON)"),
}


def decode_page(request: HttpRequest) -> DecodePage:
    """The form; sent, with what the message is. Raises NotAllowed."""
    form: Mapping[str, str] = request.POST if request.method == "POST" else request.GET
    actor = page_actor(request)
    names = registry_names(actor)
    registry = given_text(form, "registry") or (names[0] if names else "")
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
        fields=_fields(form, names, registry),
        more=_more(form),
        submit=Action(label=gettext("Decode"), url=reverse("ui:decode"), method="post", tone="primary"),
        result=result,
        problem=problem,
    )


def _decoded(request: HttpRequest, registry: str) -> Decoded:
    post = request.POST
    context = given_text(post, "context")
    message = decode_message(
        get_registry(registry),
        text=post.get("message", ""),
        headers=post.get("headers", ""),
        side="key" if post.get("side") == "key" else "value",
        encoding=post.get("encoding", "auto"),
        context=check_context(context) if context else DEFAULT_CONTEXT,
        by=page_actor(request),
    )
    return _shown(message, registry, page_actor(request))


def _shown(message: DecodedMessage, registry: str, actor: Actor) -> Decoded:
    text = json.dumps(message.value, indent=2, ensure_ascii=False, default=str)
    has_value = message.value is not None or not message.error
    return Decoded(
        framing=FRAMINGS.get(message.framing, "none"),
        mark=message.mark,
        encoding=WORDS.get(message.encoding, message.encoding),
        size=message.bytes,
        body_size=message.body_bytes,
        schema_id=message.schema_id,
        guid=message.guid,
        context=message.context if message.context != DEFAULT_CONTEXT else "",
        format=format_name(message.schema_type),
        type_name=message.type_name,
        indexes=", ".join(map(str, message.indexes)),
        versions=tuple(
            MeantVersion(
                label=gettext("%(subject)s version %(version)s")
                % {"subject": version.subject, "version": version.version},
                url=subject_url(registry, version.subject, version=version.version),
                usage_url=usage_url(registry, version.subject),
                deleted=version.deleted,
            )
            for version in message.versions
        ),
        value=text[:MOST_CHARACTERS] if has_value else "",
        cut=has_value and len(text) > MOST_CHARACTERS,
        problems=message.problems,
        error=message.error,
        elsewhere=message.elsewhere,
        has_value=has_value,
        masked=refusal(actor, "sample.personal", registry=registry) if message.masked else "",
    )


def _fields(form: Mapping[str, str], names: list[str], registry: str) -> tuple[Field, ...]:
    choices = tuple(Choice(value=name, label=name, selected=name == registry) for name in names)
    return (
        Field(
            name="message",
            label=gettext("Message"),
            kind="textarea",
            rows=8,
            value=form.get("message", ""),
            code=True,
            required=True,
            placeholder="00 00 00 00 09 02 06 61 62 63",
            help=gettext("Hexadecimal, base64, the output of a tool, or JSON. The message is not stored."),
        ),
        Field(name="registry", label=gettext("Registry"), kind="select", choices=choices, required=True),
        _select(form, "side", gettext("Part"), {"value": gettext("value"), "key": gettext("key")}, "value"),
        _select(form, "encoding", gettext("Encoding"), {name: WORDS.get(name, name) for name in ENCODINGS}, "auto"),
    )


def _more(form: Mapping[str, str]) -> tuple[Field, ...]:
    return (
        Field(
            name="headers",
            label=gettext("Headers"),
            kind="textarea",
            rows=3,
            value=form.get("headers", ""),
            code=True,
            placeholder="contentType: application/vnd.orders.v2+avro",
            help=gettext("One header per line, as name: value. Only headers that identify a schema are used."),
        ),
        Field(
            name="context",
            label=gettext("Context"),
            value=form.get("context", ""),
            code=True,
            placeholder=".",
            help=gettext("The context of its schema ids. If empty, the default context."),
        ),
    )


def _select(form: Mapping[str, str], name: str, label: str, values: Mapping[str, str], usual: str) -> Field:
    chosen = form.get(name, usual)
    choices = tuple(Choice(value=value, label=text, selected=value == chosen) for value, text in values.items())
    return Field(name=name, label=label, kind="select", choices=choices, required=True)
