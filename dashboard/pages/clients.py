"""The programs that read and write a subject's data, on the page of its use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.frame import page_actor
from dashboard.pages.sources_words import given_text
from dashboard.presenters.frame import Action, Choice, Field, Problem
from dashboard.presenters.usage import ClientRow, Clients
from dashboard.texts import later
from registry.access.roles import refusal
from registry.errors import InvalidInput
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName
from registry.subjects.selectors.clients import ClientInfo, clients_of
from registry.subjects.services.clients import ACTION

SHOWN: Final = 100
#: what a client does → whether it reads, whether it writes
DOES: Final = {"reads": (True, False), "writes": (False, True), "both": (True, True)}
_WORDS: Final = {"reads": later("reads"), "writes": later("writes"), "both": later("reads and writes")}
#: the same by the words that `registry` has for it
DOES_WORDS: Final = {"reads": _WORDS["reads"], "writes": _WORDS["writes"], "reads and writes": _WORDS["both"]}


def clients_part(
    request: HttpRequest,
    place: Registry,
    name: SubjectName,
    versions: Sequence[int],
    *,
    given: Mapping[str, str] | None = None,
    problem: str = "",
) -> Clients:
    """The clients of a subject, and the form for one more with what was given; `versions` are the live ones."""
    reason = refusal(page_actor(request), ACTION, registry=place.name, subject=name.qualified)
    found = clients_of(place, name)
    return Clients(
        rows=tuple(_row(place, name, client, reason) for client in found[:SHOWN]),
        hidden=max(0, len(found) - SHOWN),
        fields=_fields(given or {}, versions),
        declare=Action(
            label=gettext("Declare it"),
            url=reverse("ui:client_declare", args=[place.name, name.qualified]),
            method="post",
            allowed=not reason,
            reason=reason,
            tone="primary",
        ),
        api=f"/api/v1/registries/{quote(place.name, safe='')}/subjects/{quote(name.qualified, safe='')}/clients/NAME",
        problem=Problem(what=problem) if problem else None,
    )


def given_client(request: HttpRequest) -> dict[str, Any]:
    """What a sent form says, as `declare_client` takes it. Raises InvalidInput."""
    reads, writes = DOES.get(given_text(request.POST, "does"), (False, False))
    version = given_text(request.POST, "version")
    if version and not (version.isascii() and version.isdigit() and len(version) < 11):
        raise InvalidInput(gettext("The version is no number."), field="version")
    return {
        "name": given_text(request.POST, "name"),
        "reads": reads,
        "writes": writes,
        "version": int(version) if version else None,
        "fields": request.POST.get("fields", "").replace(",", "\n").splitlines(),
        "contact": given_text(request.POST, "contact"),
    }


def _row(place: Registry, name: SubjectName, client: ClientInfo, reason: str) -> ClientRow:
    does = "both" if client.reads and client.writes else "reads" if client.reads else "writes"
    number = "" if client.number is None else str(client.number)
    return ClientRow(
        name=client.name,
        does=str(_WORDS[does]),
        version=number if client.version else gettext("the newest, now %(version)s") % {"version": number or "—"},
        version_url=subject_url(place.name, name.qualified, version=client.number) if client.number else "",
        fields=client.fields,
        contact=client.contact,
        seen_at=client.seen_at,
        declared_by=client.declared_by,
        lapsed=client.has_lapsed,
        withdraw=Action(
            label=gettext("Withdraw"),
            url=reverse("ui:client_withdraw", args=[place.name, name.qualified]),
            method="post",
            allowed=not reason,
            reason=reason,
            tone="danger",
        ),
    )


def _fields(given: Mapping[str, str], versions: Sequence[int]) -> tuple[Field, ...]:
    does, version = given.get("does", "reads"), given.get("version", "")
    return (
        Field(
            name="name",
            label=gettext("Name"),
            value=given.get("name", ""),
            required=True,
            help=gettext("As its consumer group or its service is called."),
        ),
        Field(
            name="does",
            label=gettext("What it does"),
            kind="select",
            choices=tuple(Choice(value=key, label=str(word), selected=key == does) for key, word in _WORDS.items()),
        ),
        Field(
            name="version",
            label=gettext("Version that it was built with"),
            kind="select",
            choices=(
                Choice(value="", label=gettext("the newest at each start"), selected=not version),
                *(Choice(value=str(n), label=str(n), selected=str(n) == version) for n in sorted(versions)[::-1]),
            ),
        ),
        Field(
            name="fields",
            label=gettext("Fields that it needs"),
            kind="textarea",
            rows=3,
            code=True,
            value=given.get("fields", ""),
            help=gettext("Their paths, one a line, such as Order.id. Empty: nothing is said of fields."),
        ),
        Field(
            name="contact",
            label=gettext("Whom to talk to"),
            value=given.get("contact", ""),
            help=gettext("A team, a channel or an address."),
        ),
    )
