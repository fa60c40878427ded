"""The forms that add a source, change how it is scanned, and remove it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.sources_fields import (
    NUMBERS,
    bounds_fields,
    groups_of,
    mode_field,
    patterns_fields,
    schedule_field,
    store_groups,
    text_field,
)
from dashboard.pages.sources_values import STORE
from dashboard.presenters.drift import SourceForm
from dashboard.presenters.drift_parts import ConfirmPage, FieldGroup
from dashboard.presenters.frame import Action, Crumb, Link, Problem, Section
from dashboard.presenters.looks import SourceKind
from dashboard.texts import counted, later
from registry.access.extent import refusal_in_any
from registry.access.roles import refusal
from registry.drift import selectors
from registry.drift.selectors import SourceInfo
from registry.drift.sources import SOURCES
from registry.errors import SchemadeskError

_LEDE: Final = later(
    "Patterns hold from the next scan on: topics that they leave out keep their findings and positions."
)


def source_form(request: HttpRequest, problem: SchemadeskError | None) -> SourceForm:
    """The form for the kind that the address names, with what was sent."""
    given = request.POST if request.method == "POST" else request.GET
    asked = given.get("kind", "kafka")
    kind = SourceKind.of(asked if asked in SOURCES else "kafka")
    actor = page_actor(request)
    reason = refusal_in_any(actor, "source.manage")
    return SourceForm(
        frame=make_frame(
            request,
            title=gettext("Add a source"),
            section=Section.SOURCES,
            crumbs=(Crumb(label=gettext("Sources"), url=reverse("ui:sources")),),
        ),
        kind=kind,
        kinds=tuple(
            (each, f"{reverse('ui:source_add')}?kind={each.value}") for each in SourceKind if each.value in SOURCES
        ),
        groups=groups_of(kind, given, actor),
        submit=Action(
            label=gettext("Add and scan"),
            url=reverse("ui:source_add"),
            method="post",
            allowed=not reason,
            reason=reason,
            tone="primary",
        ),
        back_url=reverse("ui:sources"),
        problem=Problem(what=problem.message) if problem else None,
        also=_also(kind),
    )


def _also(kind: SourceKind) -> Link | None:
    if kind is not SourceKind.STATE_STORE:
        return None
    return Link(label=gettext("Find checkpoints below a folder"), url=reverse("ui:source_discover"))


def edit_form(request: HttpRequest, source_id: int, problem: SchemadeskError | None) -> SourceForm:
    """The form that changes how a source is scanned. Raises SourceNotFound, NotAllowed."""
    actor = page_actor(request)
    source = selectors.get_source(source_id, by=actor)
    given: Mapping[str, str] = request.POST if request.method == "POST" else _stored(source)
    groups = [FieldGroup(title=gettext("Schedule"), fields=(schedule_field(given),))]
    if source.cluster:
        groups = [
            FieldGroup(title=gettext("What is read"), fields=patterns_fields(given)),
            FieldGroup(
                title=gettext("How"),
                fields=(text_field(given, "context", gettext("Context")), mode_field(given), schedule_field(given)),
            ),
            bounds_fields(given),
        ]
    groups += store_groups(given) if source.store else ()
    reason = refusal(actor, "source.manage", registry=source.registry)
    return SourceForm(
        frame=make_frame(
            request,
            title=gettext("Change %(source)s") % {"source": source.name},
            section=Section.SOURCES,
            crumbs=_crumbs(source),
        ),
        kind=SourceKind.of(source.kind),
        kinds=(),
        groups=tuple(groups),
        submit=Action(
            label=gettext("Save"),
            url=reverse("ui:source_edit", args=[source.id]),
            method="post",
            allowed=not reason,
            reason=reason,
            tone="primary",
        ),
        back_url=reverse("ui:source", args=[source.id]),
        lede=_LEDE if source.cluster else "",
        problem=Problem(what=problem.message) if problem else None,
    )


def _crumbs(source: SourceInfo) -> tuple[Crumb, ...]:
    return (
        Crumb(label=gettext("Sources"), url=reverse("ui:sources")),
        Crumb(label=source.name, url=reverse("ui:source", args=[source.id]), code=True),
    )


def _stored(source: SourceInfo) -> dict[str, str]:
    """A source's settings as its form sends them."""
    return {
        "context": source.context,
        "include": "\n".join(source.include),
        "exclude": "\n".join(source.exclude),
        "mode": source.mode,
        "every_seconds": str(source.every_seconds or ""),
        "keep_samples": "yes" if source.keep_samples else "no",
        **{name: str(getattr(source, name)) for name in NUMBERS},
        **({field: getattr(source.store, name) for field, name in STORE.items()} if source.store else {}),
    }


def remove_page(request: HttpRequest, source_id: int, problem: SchemadeskError | None) -> ConfirmPage:
    """What removing a source loses. Raises SourceNotFound, NotAllowed."""
    actor = page_actor(request)
    source = selectors.get_source(source_id, by=actor)
    reason = refusal(actor, "source.manage", registry=source.registry)
    losses = [
        gettext("its findings, %(open_findings)s of them open, with every decision on them")
        % {"open_findings": f"{source.open_findings:,}"},
        gettext("its scans"),
    ]
    if source.cluster:
        losses.append(
            counted(
                source.topics,
                "the read positions of %(n)s topic, and what they tell of versions in use",
                "the read positions of %(n)s topics, and what they tell of versions in use",
            )
        )
    return ConfirmPage(
        frame=make_frame(
            request,
            title=gettext("Remove %(name)s") % {"name": source.name},
            section=Section.SOURCES,
            crumbs=_crumbs(source),
        ),
        sentence=gettext("%(source)s will no longer be scanned. This can’t be taken back.") % {"source": source.name},
        losses=tuple(losses),
        stays=(
            gettext("the data: nothing is written to topics, checkpoints or databases"),
            gettext("the audit of what was decided"),
        ),
        confirm=Action(
            label=gettext("Remove the source"),
            url=reverse("ui:source_remove", args=[source.id]),
            method="post",
            allowed=not reason,
            reason=reason,
            tone="danger",
        ),
        back_url=reverse("ui:source", args=[source.id]),
        problem=Problem(what=problem.message) if problem else None,
    )
