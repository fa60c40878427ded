"""Kept copies: what was deleted for good, files that wait, and the plan of bringing one of them in."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.numbers import whole_number
from dashboard.pages.sources_words import given_text
from dashboard.pages.subject_parts import subjects_crumb
from dashboard.presenters.frame import Action, Crumb, Fact, Frame, Paging, Problem, Section
from dashboard.presenters.moving import Coming, ComingRow, CopyPage, CopyRow, DeletedPage, Way
from dashboard.texts import counted, listing
from registry.access.roles import Actor, may
from registry.errors import Conflict, InvalidInput
from registry.subjects.kept_copy import OpenCopy
from registry.subjects.models import KeptCopy, Registry
from registry.subjects.names import SubjectName
from registry.subjects.plan_of_copy import Plan, Ways
from registry.subjects.selectors.copies import CopyInfo, deleted_copies
from registry.subjects.selectors.places import get_registry
from registry.subjects.services.bringing import open_copy, plan_open
from registry.subjects.services.keeping import RIGHTS

ROWS: Final = 50
#: versions, and other changes, that a plan draws
DRAWN: Final = 100


def copy_url(registry: str, number: int, page: str = "copy", **query: str) -> str:
    """The address of a copy, or of what is done with it."""
    base = reverse(f"ui:{page}", args=[registry, number])
    return f"{base}?{urlencode(query)}" if query else base


def asked_ways(request: HttpRequest) -> Ways:
    """How the address or the form wants it."""
    given = request.POST if request.method == "POST" else request.GET
    return Ways(only_missing=given_text(given, "only") == "missing", live=given_text(given, "as") != "deleted")


def deleted_page(request: HttpRequest, registry: str) -> DeletedPage:
    """A page of what was deleted for good. Raises RegistryNotFound, NotAllowed."""
    place = get_registry(registry)
    before = whole_number(given_text(request.GET, "before"), digits=18)
    found = deleted_copies(place, by=page_actor(request), before=before, limit=ROWS + 1)
    base, shown = reverse("ui:deleted", args=[registry]), found[:ROWS]
    following = f"{base}?{urlencode({'before': shown[-1].number})}" if len(found) > ROWS else ""
    return DeletedPage(
        frame=make_frame(
            request,
            title=gettext("Deleted for good"),
            section=Section.SUBJECTS,
            registry=registry,
            crumbs=(subjects_crumb(registry), moving_crumb(registry)),
            url_in=lambda other: reverse("ui:deleted", args=[other]),
        ),
        registry=registry,
        days=settings.DELETED_COPY_DAYS,
        rows=tuple(copy_row(registry, each, is_deleted=True) for each in shown),
        paging=Paging(first=1 if shown else 0, last=len(shown), previous_url=base if before else "", next_url=following)
        if before or following
        else None,
    )


def copy_row(registry: str, copy: CopyInfo, *, is_deleted: bool) -> CopyRow:
    """A copy in a list."""
    return CopyRow(
        name=copy.name,
        versions=copy.versions,
        made_at=copy.made_at,
        made_by=copy.made_by,
        until=copy.until,
        open=Action(
            label=gettext("Restore …") if is_deleted else gettext("Look and confirm …"),
            url=copy_url(registry, copy.number),
            icon="undo-2" if is_deleted else "arrow-right",
        ),
        file_url=copy_url(registry, copy.number, "copy_file"),
    )


def newest_copy(place: Registry, name: SubjectName, actor: Actor) -> CopyInfo | None:
    """The newest copy of a subject that was deleted for good, for whoever may bring it back."""
    if not may(actor, RIGHTS[KeptCopy.DELETED], registry=place.name, subject=name.qualified):
        return None
    return next(iter(deleted_copies(place, by=actor, subject=name.qualified, limit=1)), None)


def restore_label(copy: CopyInfo) -> str:
    """What leads to a copy."""
    return gettext("Restore until %(date)s …") % {"date": f"{copy.until:%Y-%m-%d}"}


def moving_crumb(registry: str) -> Crumb:
    """The step to the page of the ways out and in."""
    return Crumb(label=gettext("Export and import"), url=reverse("ui:moving", args=[registry]))


def copy_page(request: HttpRequest, registry: str, number: int) -> CopyPage:
    """A copy and its plan. Raises RegistryNotFound, CopyNotFound, NotAllowed."""
    actor = page_actor(request)
    copy = open_copy(registry=registry, number=number, by=actor)
    place, row = copy.place, copy.row
    ways, plan, problem = asked_ways(request), None, None
    try:
        plan = plan_open(copy, ways=ways, by=actor)
    except (Conflict, InvalidInput) as error:
        problem = Problem(what=error.placed, cure=gettext("Nothing was changed."))
    is_deleted = row.kind == KeptCopy.DELETED
    return CopyPage(
        frame=_frame(request, registry, row),
        is_deleted=is_deleted,
        about=row.name,
        facts=_facts(copy),
        until=row.until,
        file_url=copy_url(registry, number, "copy_file"),
        forget=Action(
            label=gettext("Forget the copy now"),
            url=copy_url(registry, number, "copy_forget"),
            method="post",
            tone="danger",
            icon="x",
        ),
        ways=_ways_of(registry, number, ways, is_deleted=is_deleted),
        way_sentence=_way_sentence(ways, is_deleted=is_deleted),
        problem=problem,
        **(_planned(place, number, plan, ways, is_deleted=is_deleted) if plan else {}),  # type: ignore[arg-type]
    )


def _frame(request: HttpRequest, registry: str, row: KeptCopy) -> Frame:
    is_deleted = row.kind == KeptCopy.DELETED
    crumbs = [subjects_crumb(registry), moving_crumb(registry)]
    if is_deleted:
        crumbs.append(Crumb(label=gettext("Deleted for good"), url=reverse("ui:deleted", args=[registry])))
    title = gettext("Restore %(name)s") if is_deleted else gettext("Import %(name)s")
    return make_frame(
        request, title=title % {"name": row.name}, section=Section.SUBJECTS, registry=registry, crumbs=tuple(crumbs)
    )


def _facts(copy: OpenCopy) -> tuple[Fact, ...]:
    row = copy.row
    found = [
        Fact(label=gettext("Versions"), value=f"{row.versions:,}"),
        Fact(label=gettext("Deleted by") if row.kind == KeptCopy.DELETED else gettext("Sent by"), value=row.made_by),
        Fact(label=gettext("At"), value=gettext("%(at)s UTC") % {"at": f"{row.made_at:%Y-%m-%d %H:%M}"}),
        Fact(label=gettext("Kept until"), value=gettext("%(at)s UTC") % {"at": f"{row.until:%Y-%m-%d %H:%M}"}),
    ]
    owners = copy.contents.owners if row.kind == KeptCopy.DELETED else ()
    return (*found, *([Fact(label=gettext("Owned by"), value=listing(owners))] if owners else ()))


def _ways_of(registry: str, number: int, ways: Ways, *, is_deleted: bool) -> tuple[Way, ...]:
    url = copy_url(registry, number)
    if is_deleted:
        return (
            Way(label=gettext("Live again"), url=url, current=ways.live),
            Way(label=gettext("Soft-deleted, as before"), url=f"{url}?as=deleted", current=not ways.live),
        )
    return (
        Way(label=gettext("All of it, as in the file"), url=url, current=not ways.only_missing),
        Way(label=gettext("Only what is missing"), url=f"{url}?only=missing", current=ways.only_missing),
    )


def _way_sentence(ways: Ways, *, is_deleted: bool) -> str:
    if is_deleted:
        return gettext(
            "Versions come back with their numbers and ids where these are free; nothing that is there is changed."
        )
    if ways.only_missing:
        return gettext("What is there stays as it is. What can’t come is passed over.")
    return gettext(
        "What the file has is here as it is there afterwards: versions, deletions, levels, modes, tags and descriptions."
        " What is here alone stays. If one part can’t come, nothing does."
    )


def _planned(place: Registry, number: int, plan: Plan, ways: Ways, *, is_deleted: bool) -> dict[str, object]:
    """What the page shows of a plan."""
    refused = _refused(plan, ways, is_deleted=is_deleted)
    label = gettext("Restore it") if is_deleted else gettext("Bring it in")
    return {
        "verdict": _verdict(plan),
        "sentence": _sentence(plan),
        "rows": tuple(
            ComingRow(
                subject=line.subject.qualified,
                url=subject_url(place.name, line.subject.qualified) if line.fate in ("same", "left", "changed") else "",
                version=line.version,
                schema_id=line.schema_id,
                coming=Coming.of(line.fate),
                why=line.why,
            )
            for line in plan.lines[:DRAWN]
        ),
        "more": max(0, len(plan.lines) - DRAWN),
        "settings": plan.settings[:DRAWN],
        "more_settings": max(0, len(plan.settings) - DRAWN),
        "problems": tuple(str(each) for each in plan.problems[:DRAWN]),
        "confirm": Action(
            label=label,
            url=copy_url(place.name, number, "copy_bring"),
            method="post",
            allowed=not refused,
            reason=refused,
            tone="primary",
            icon="undo-2" if is_deleted else "check",
        ),
        "hidden": (
            ("plan", plan.digest),
            ("only", "missing" if ways.only_missing else ""),
            ("as", "" if ways.live else "deleted"),
        ),
    }


def _refused(plan: Plan, ways: Ways, *, is_deleted: bool) -> str:
    if plan.is_empty:
        return gettext("There is nothing to bring in.")
    if plan.stops and not ways.only_missing and not is_deleted:
        return gettext("Something of it can’t come: choose “Only what is missing”.")
    return ""


def _verdict(plan: Plan) -> Coming:
    """The worst that there is, of what would be done."""
    if plan.stops:
        return Coming.CONFLICT
    if plan.is_empty:
        return Coming.SAME
    return Coming.CHANGED if plan.count("changed") else Coming.CREATED


def _sentence(plan: Plan) -> str:
    if not plan.lines:
        return gettext("It has no versions.")
    number = {coming: plan.count(coming.code) for coming in Coming}  # type: ignore[arg-type]
    said = {
        Coming.CONFLICT: counted(number[Coming.CONFLICT], "%(n)s can’t come", "%(n)s can’t come"),
        Coming.LEFT: counted(number[Coming.LEFT], "%(n)s stays as it is here", "%(n)s stay as they are here"),
        Coming.CHANGED: counted(number[Coming.CHANGED], "%(n)s changes", "%(n)s change"),
        Coming.CREATED: counted(number[Coming.CREATED], "%(n)s comes", "%(n)s come"),
        Coming.SAME: counted(number[Coming.SAME], "%(n)s is there already", "%(n)s are there already"),
    }
    versions = counted(len(plan.lines), "%(n)s version", "%(n)s versions")
    parts = listing(words for coming, words in said.items() if number[coming])
    return gettext("Of %(versions)s: %(parts)s.") % {"versions": versions, "parts": parts}
