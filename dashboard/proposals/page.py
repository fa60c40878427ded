"""Proposed schemas: the reader's drafts, and the page on which one is written, checked and submitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.compatibility.presenters import ReferenceField
from dashboard.components.badges import format_name
from dashboard.components.frame import environment_of, make_frame, page_actor
from dashboard.components.widgets import Action, Choice, Crumb, Field, Link, Problem, Section
from dashboard.findings.finding_list import finding_origin
from dashboard.promotions.request_form import again_link
from dashboard.promotions.request_list import request_row
from dashboard.proposals.forms import DraftList, DraftRow, Form, ProposalPage
from dashboard.proposals.proposal_result import (
    check_action,
    check_proposal,
    draws_all,
    editor_url,
    syntax_report,
    view_of,
)
from registry.access.permission_filters import extent_of
from registry.access.roles import Actor, may_somewhere, refusal
from registry.errors import InvalidSchema, SchemadeskError
from registry.formats import FORMATS
from registry.promotions import selectors
from registry.promotions.models import PromotionRequest
from registry.promotions.selectors import DraftInfo

_EMPTY_ROWS: Final = 2
_RIGHT: Final = "promotion.request"


def draft_list(request: HttpRequest) -> DraftList:
    """The page of the reader's drafts and open proposals."""
    actor, order = page_actor(request), selectors.list_environments()
    reason = _refusal(actor)
    requests = selectors.list_requests(state="open", by=actor)
    proposed = [info for info in requests if info.kind == PromotionRequest.PROPOSE]
    return DraftList(
        frame=make_frame(request, title=gettext("Proposals"), section=Section.PROMOTIONS, crumbs=_crumbs()[:1]),
        rows=tuple(draft_row(info, order) for info in (selectors.list_drafts(actor.user_id) if actor.user_id else [])),
        open=tuple(request_row(info, order) for info in proposed),
        propose=Action(
            label=gettext("Propose a schema"),
            url=reverse("ui:propose"),
            allowed=not reason,
            reason=reason,
            tone="primary",
            icon="plus",
        ),
    )


def _refusal(actor: Actor) -> str:
    return "" if may_somewhere(actor, _RIGHT) else refusal(actor, _RIGHT)


def _crumbs() -> tuple[Crumb, ...]:
    return (
        Crumb(label=gettext("Promotions"), url=reverse("ui:promotions")),
        Crumb(label=gettext("Proposals"), url=reverse("ui:proposals")),
    )


def draft_row(info: DraftInfo, order: list[str]) -> DraftRow:
    """A draft of the reader in a list."""
    return DraftRow(
        url=reverse("ui:draft", args=[info.id]),
        subject=info.subject.qualified,
        environment=environment_of(info.registry, order),
        format=format_name(info.schema_type),
        origin=info.origin,
        changed_at=info.changed_at,
        delete=_delete(info.id, gettext("Delete")),
    )


def _delete(draft_id: int, label: str) -> Action:
    return Action(label=label, url=reverse("ui:draft_delete", args=[draft_id]), method="post", icon="x")


def proposal_page(
    request: HttpRequest, form: Form, *, check: bool = False, error: SchemadeskError | None = None
) -> ProposalPage:
    """The editor; with `check`, the report of its text. `error` is the error of saving or submitting."""
    actor, order = page_actor(request), selectors.list_environments()
    readable = extent_of(actor, "schema.read")
    names = [name for name in order if readable.has(name)]
    report = check_proposal(form, actor, is_whole=draws_all(request)) if check and error is None else None
    if isinstance(error, InvalidSchema):
        report = syntax_report(form.text, error)
    reason = _refusal(actor)
    return ProposalPage(
        frame=make_frame(
            request, title=gettext("Propose a schema"), section=Section.PROMOTIONS, crumbs=_crumbs(), order=order
        ),
        **_fields(form, names),
        references=tuple(
            ReferenceField(number=number, name=name, subject=subject, version=version)
            for number, (name, subject, version) in enumerate([*form.rows, *[("", "", "")] * _EMPTY_ROWS], start=1)
        ),
        action_url=editor_url(),
        check=check_action(),
        save=Action(label=gettext("Save as draft"), url=editor_url(), allowed=not reason, reason=reason),
        submit=Action(label=gettext("Submit for review"), url=editor_url(), allowed=not reason, reason=reason),
        draft=form.draft,
        draft_state=form.draft_state or "",
        origin=form.origin,
        finding=finding_origin(form.finding, actor),
        finding_number=form.finding,
        delete=_delete(form.draft, gettext("Delete draft")) if form.draft else None,
        problem=Problem(what=error.message) if error else None,
        starts=_starts(form, names),
        report=report,
        view=view_of(request),
        is_whole=draws_all(request),
        again_of=form.again_of,
        again=again_link(form.again_of),
    )


def _fields(form: Form, order: Sequence[str]) -> dict[str, Any]:
    def chosen(values: Sequence[tuple[str, str]], value: str) -> tuple[Choice, ...]:
        return tuple(Choice(value=item, label=label, selected=item == value) for item, label in values)

    return {
        "registry": Field(
            name="registry",
            label=gettext("Environment"),
            kind="select",
            choices=chosen([(name, name) for name in order], form.registry),
            required=True,
        ),
        "subject": Field(name="subject", label=gettext("Subject"), value=form.subject, code=True, required=True),
        "text": Field(
            name="schema", label=gettext("Text"), value=form.text, kind="textarea", rows=18, code=True, required=True
        ),
        "reason": Field(
            name="reason",
            label=gettext("Reason"),
            value=form.reason,
            kind="textarea",
            rows=3,
            help=gettext("What reviewers should know."),
        ),
        "accepted_files": ", ".join(
            sorted({".txt", *(end for item in FORMATS.values() for end in item.file_extensions)})
        ),
        "format_choices": chosen([(kind, format_name(kind)) for kind in sorted(FORMATS)], form.schema_type),
    }


def _starts(form: Form, order: Sequence[str]) -> tuple[Link, ...]:
    """Links that open the editor with the newest version of each environment."""
    if not form.subject:
        return ()
    url = reverse("ui:propose")
    return tuple(
        Link(
            label=gettext("the newest version of %(place)s") % {"place": environment},
            url=f"{url}?{urlencode({'registry': form.registry, 'subject': form.subject, 'from': f'{environment}:latest'})}",
        )
        for environment in order
    )
