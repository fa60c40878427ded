"""What the server behind a mirror says of a text, beside our own verdict; asked only where the reader wants it."""

from __future__ import annotations

from django.http import HttpRequest

from dashboard.pages.frame import page_actor
from dashboard.pages.report_form import Form
from dashboard.presenters.report import RegistryAnswer
from registry.subjects.names import SubjectName
from registry.subjects.remote_verdict import ask_remote
from registry.subjects.selectors.places import Registry
from registry.subjects.selectors.remotes import mirror_of


def registry_answer(
    request: HttpRequest, place: Registry, name: SubjectName, form: Form, ours: bool
) -> RegistryAnswer | None:
    """The server's answer, or that it wasn't asked; None for a registry of ours."""
    mirror = mirror_of(place)
    if mirror is None:
        return None
    if request.POST.get("ask") != "registry":
        return RegistryAnswer(where=mirror.url)
    said = ask_remote(
        place,
        name,
        text=form.text,
        schema_type=form.schema_type,
        references=form.references(),
        by=page_actor(request),
    )
    if said is None:
        return None
    return RegistryAnswer(
        where=said.where,
        asked=True,
        agrees=None if said.is_compatible is None else said.is_compatible == ours,
        is_compatible=said.is_compatible,
        reason=said.reason,
        messages=said.messages,
    )
