"""Pages of the use of versions, declared clients, pasted messages, and of retiring a version or a subject."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.components.badges import format_name
from dashboard.components.forms import end_of_day
from dashboard.components.frame import make_frame, page_actor, render_page
from dashboard.components.links import given_text, subject_url
from dashboard.components.translation import later
from dashboard.components.widgets import Action, Choice, Field, Problem, Section
from dashboard.environments.views import loosening_response
from dashboard.usage import page as uses
from dashboard.usage import retirement as pages
from dashboard.usage import retirement_result
from dashboard.usage.page import FRAMINGS, given_client, usage_url
from dashboard.usage.presenters import Decoded, DecodePage, MeantVersion
from registry.access.roles import Actor, refusal, require
from registry.drift.selectors.messages import ENCODINGS, DecodedMessage, decode_message
from registry.errors import (
    ClientNotFound,
    Conflict,
    Forbidden,
    InvalidInput,
    SchemadeskError,
    SecondPersonRequired,
    VersionNotFound,
)
from registry.promotions.requests.state_machine import refuse_strangers
from registry.subjects.lifecycle.retirement import RIGHTS, retire
from registry.subjects.selectors import registry_names
from registry.subjects.usage.clients import ACTION, declare_client, withdraw_client
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, check_context, parse_subject

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


@require_safe
def usage(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Whether versions can be retired; htmx gets the answer alone, with what the clusters say now."""
    require(page_actor(request), "schema.read", registry=registry, subject=parse_subject(subject).qualified)
    return render_page(request, "subjects/usage.html", uses.usage_page(request, registry, subject), {"usage": "usage"})


@require_POST
def client_declare(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Declare a client, or change what is said of one; what is refused stays in the form."""
    name, actor = parse_subject(subject), page_actor(request)
    require(actor, ACTION, registry=registry, subject=name.qualified)
    try:
        values = given_client(request)
        is_new = declare_client(registry=registry, subject=name, by=actor, **values)
    except (InvalidInput, VersionNotFound) as error:
        page = uses.usage_page(request, registry, subject, refused_values=request.POST.dict(), refused=error.message)
        return render(request, "subjects/usage.html", {"page": page}, status=422)
    except SecondPersonRequired as error:
        return loosening_response(request, error)
    message = gettext("%(name)s was declared.") if is_new else gettext("%(name)s was updated.")
    messages.success(request, message % {"name": values["name"]})
    return redirect(f"{uses.usage_url(registry, name.qualified)}#clients-title")


@require_POST
def client_withdraw(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """A client is gone; that it was withdrawn already is no error."""
    name, client = parse_subject(subject), given_text(request.POST, "name")
    try:
        withdraw_client(registry=registry, subject=name, name=client, by=page_actor(request))
    except SecondPersonRequired as error:
        return loosening_response(request, error)
    except ClientNotFound as error:
        messages.info(request, error.message)
    else:
        messages.success(request, gettext("%(name)s was withdrawn.") % {"name": client})
    return redirect(f"{uses.usage_url(registry, name.qualified)}#clients-title")


@sensitive_post_parameters("message", "headers")
@require_http_methods(["GET", "HEAD", "POST"])
def decode(request: HttpRequest) -> HttpResponse:
    """From a message to its schema and value; nothing of it is kept."""
    page = decode_page(request)
    return render(request, "drift/decode.html", {"page": page}, status=422 if page.problem else 200)


TEMPLATE = "subjects/retire.html"


def _require_reader(request: HttpRequest, registry: str, subject: str) -> None:
    require(page_actor(request), "schema.read", registry=registry, subject=parse_subject(subject).qualified)


@require_safe
def evidence(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Step 1: what is known of the use."""
    _require_reader(request, registry, subject)
    return render(
        request, TEMPLATE, {"page": pages.evidence_page(request, pages.retirement_target(request, registry, subject))}
    )


@require_safe
def choose(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Step 2: what to do."""
    _require_reader(request, registry, subject)
    return render(
        request, TEMPLATE, {"page": pages.choose_page(request, pages.retirement_target(request, registry, subject))}
    )


@require_http_methods(["GET", "HEAD", "POST"])
def confirm(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Step 3: the form, and doing it."""
    _require_reader(request, registry, subject)
    choice = given_text(request.GET, "do")
    if request.method != "POST":
        page = pages.confirm_page(request, pages.retirement_target(request, registry, subject), choice)
        return render(request, TEMPLATE, {"page": page})
    name, actor = parse_subject(subject), page_actor(request)
    require(actor, RIGHTS.get(choice, "version.delete"), registry=registry, subject=name.qualified)
    what = pages.retirement_target(request, registry, subject)
    try:
        done = retire(
            registry=registry,
            subject=name,
            choice=choice,
            by=actor,
            version=what.version,
            confirmed=given_text(request.POST, "confirmed"),
            message=given_text(request.POST, "message"),
            ends_at=end_of_day(request.POST.get("ends_at", "")),
            force=given_text(request.POST, "force"),
        )
    except (Conflict, InvalidInput) as error:
        page = pages.confirm_page(request, what, choice, error)
        return render(request, TEMPLATE, {"page": page}, status=422)
    return redirect(retirement_result.done_url(what.registry, name, done))


@require_safe
def done(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """What there is now."""
    _require_reader(request, registry, subject)
    return render(request, TEMPLATE, {"page": retirement_result.done_page(request, registry, subject)})


@require_safe
def orphans(request: HttpRequest, registry: str) -> HttpResponse:
    """The subjects that nothing is known to need."""
    refuse_strangers(page_actor(request))
    return render(request, "subjects/orphans.html", {"page": retirement_result.orphans_page(request, registry)})
