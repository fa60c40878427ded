"""The forms that add a source, change how it is scanned, and remove it; and what they send, as the services take it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Any, Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import whole_number
from dashboard.components.translation import counted, later
from dashboard.components.widgets import Action, Crumb, Link, Problem, Section
from dashboard.findings.presenters import SourceForm
from dashboard.sources.form_fields import (
    NUMBERS,
    bounds_fields,
    form_text,
    groups_of,
    mode_field,
    own_groups,
    patterns_fields,
    schedule_field,
    text_field,
)
from dashboard.sources.labels import given_text, source_badge, source_badges
from dashboard.sources.presenters import ConfirmPage, FieldGroup
from registry.access.permission_filters import refusal_in_any
from registry.access.roles import refusal
from registry.drift import selectors
from registry.drift.selectors import SourceInfo
from registry.drift.sources import SOURCES, SourceField, SourceKind, kind_of
from registry.errors import InvalidInput, SchemadeskError


def lines_of(text: str) -> list[str]:
    """The lines of a text field that aren't empty."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def scan_values(post: Mapping[str, str]) -> dict[str, Any]:
    """How a source is scanned, from those fields that the form has. Raises InvalidInput for what is no number."""
    values: dict[str, Any] = {}
    for name in ("include", "exclude"):
        if name in post:
            values[name] = lines_of(post[name])
    for name in ("context", "mode"):
        if name in post:
            values[name] = given_text(post, name)
    if "keep_samples" in post:
        values["keep_samples"] = post["keep_samples"] != "no"
    if "every_seconds" in post:
        values["every_seconds"] = (
            _number(post["every_seconds"], "every_seconds") if post["every_seconds"].strip() else None
        )
    for name in NUMBERS:
        if post.get(name, "").strip():
            values[name] = _number(post[name], name)
    return values


def config_values(kind: SourceKind, post: Mapping[str, str]) -> dict[str, Any]:
    """The values of the fields that a kind declares, under its name for them; none where none was filled in.

    Raises InvalidInput.
    """
    if not any(given_text(post, item.in_form) for item in kind.fields):
        return {}
    return {kind.config_name: {item.name: _value_of(item, given_text(post, item.in_form)) for item in kind.fields}}


def _value_of(item: SourceField, text: str) -> str | int | bool:
    if isinstance(item.default, bool):
        return text != "no"
    if isinstance(item.default, int):
        return _number(text or str(item.default), item.name)
    return text


def _number(text: str, name: str) -> int:
    number = whole_number(text.strip(), digits=14)
    if number is None:
        raise InvalidInput(
            gettext("%(text)s is not a number of %(unit)s (%(name)s).")
            % {"text": repr(text.strip()[:20]), "unit": _UNITS.get(name, gettext("units")), "name": name}
        )
    return number


_UNITS: Final = {
    "every_seconds": later("seconds"),
    "window_seconds": later("seconds"),
    "max_seconds": later("seconds"),
    "max_bytes": later("bytes"),
}


def end_of_day(text: str) -> datetime | None:
    """The end of the day that a date field names, in UTC; None for an empty one. Raises InvalidInput."""
    if not text.strip():
        return None
    try:
        day = date.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(
            gettext("%(text)s is not a date. Write it as 2026-12-31.") % {"text": repr(text.strip()[:20])}
        ) from None
    return datetime.combine(day, time.max, tzinfo=UTC)


_LEDE: Final = later("Patterns apply from the next scan. Excluded topics keep their findings and read positions.")


def source_form(request: HttpRequest, problem: SchemadeskError | None) -> SourceForm:
    """The form for the kind that the address names, with what was sent."""
    form = request.POST if request.method == "POST" else request.GET
    kind = SOURCES.get(form.get("kind", ""), SOURCES["kafka"])
    actor = page_actor(request)
    reason = refusal_in_any(actor, "source.manage")
    return SourceForm(
        frame=make_frame(
            request,
            title=gettext("Add a source"),
            section=Section.SOURCES,
            crumbs=(Crumb(label=gettext("Sources"), url=reverse("ui:sources")),),
        ),
        kind=source_badge(kind.name),
        kinds=tuple((badge, f"{reverse('ui:source_add')}?kind={badge.code}") for badge in source_badges()),
        groups=groups_of(kind, form, actor),
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
    if not kind.keeps_state:
        return None
    return Link(label=gettext("Find checkpoints below a folder"), url=reverse("ui:source_discover"))


def edit_form(request: HttpRequest, source_id: int, problem: SchemadeskError | None) -> SourceForm:
    """The form that changes how a source is scanned. Raises SourceNotFound, NotAllowed."""
    actor = page_actor(request)
    source = selectors.get_source(source_id, by=actor)
    form: Mapping[str, str] = request.POST if request.method == "POST" else _stored(source)
    groups = [FieldGroup(title=gettext("Schedule"), fields=(schedule_field(form),))]
    if source.cluster:
        groups = [
            FieldGroup(title=gettext("What to read"), fields=patterns_fields(form)),
            FieldGroup(
                title=gettext("How"),
                fields=(text_field(form, "context", gettext("Context")), mode_field(form), schedule_field(form)),
            ),
            FieldGroup(title=gettext("Bounds"), fields=bounds_fields(form), folded=True),
        ]
    groups += own_groups(kind_of(source.kind), form) if source.store or source.config else ()
    reason = refusal(actor, "source.manage", registry=source.registry)
    return SourceForm(
        frame=make_frame(
            request,
            title=gettext("Edit %(source)s") % {"source": source.name},
            section=Section.SOURCES,
            crumbs=_crumbs(source),
        ),
        kind=source_badge(source.kind),
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
        **{
            item.in_form: form_text(source.config.get(item.name, getattr(source.store, item.name, item.default)))
            for item in kind_of(source.kind).fields
        },
    }


def remove_page(request: HttpRequest, source_id: int, problem: SchemadeskError | None) -> ConfirmPage:
    """What removing a source loses. Raises SourceNotFound, NotAllowed."""
    actor = page_actor(request)
    source = selectors.get_source(source_id, by=actor)
    reason = refusal(actor, "source.manage", registry=source.registry)
    losses = [
        gettext("its findings (%(open_findings)s open) and all decisions about them")
        % {"open_findings": f"{source.open_findings:,}"},
        gettext("its scans"),
    ]
    if source.cluster:
        losses.append(
            counted(
                source.topics,
                "the read positions of %(n)s topic and its data on version usage",
                "the read positions of %(n)s topics and their data on version usage",
            )
        )
    return ConfirmPage(
        frame=make_frame(
            request,
            title=gettext("Remove %(name)s") % {"name": source.name},
            section=Section.SOURCES,
            crumbs=_crumbs(source),
        ),
        sentence=gettext("%(source)s will no longer be scanned. You can’t undo this.") % {"source": source.name},
        losses=tuple(losses),
        stays=(
            gettext("the data: nothing is written to topics, checkpoints or databases"),
            gettext("the audit log of decisions"),
        ),
        confirm=Action(
            label=gettext("Remove source"),
            url=reverse("ui:source_remove", args=[source.id]),
            method="post",
            allowed=not reason,
            reason=reason,
            tone="danger",
        ),
        back_url=reverse("ui:source", args=[source.id]),
        problem=Problem(what=problem.message) if problem else None,
    )
