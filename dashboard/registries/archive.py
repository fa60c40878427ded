"""Archives of a registry's contents: export, import, and copies of what was deleted for good, to be restored."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import Shown
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import given_text, subject_url, subjects_crumb, whole_number
from dashboard.components.translation import counted, later, listing
from dashboard.components.widgets import Action, Crumb, Fact, Frame, Paging, Problem, Section
from registry.access.roles import Actor, may, may_in, refusal
from registry.errors import Conflict, InvalidInput
from registry.subjects.archive.archive import RIGHTS, CopyInfo, OpenCopy, deleted_copies, waiting_files
from registry.subjects.archive.restore import MOST, open_copy, plan_open
from registry.subjects.import_export.export_file import MAX_SENT
from registry.subjects.import_export.import_plan import Plan, Ways
from registry.subjects.models import KeptCopy, Registry
from registry.subjects.policy.registries import amounts_of
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName


class ImportFate(Shown):
    """What becomes of a version when a copy is brought in."""

    CONFLICT = ("conflict", "breaks", "octagon-x", later("Can’t be imported"))
    LEFT = ("left", "care", "triangle-alert", later("Unchanged here"))
    CHANGED = ("changed", "care", "pencil", later("To change"))
    CREATED = ("created", "ok", "plus", later("To import"))
    SAME = ("same", "unknown", "circle-check", later("Already exists"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyRow:
    """A copy in a list; `open` leads to its plan."""

    name: str
    versions: int
    made_at: datetime
    made_by: str
    until: datetime
    open: Action
    file_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingPage:
    """The ways out of a registry and into it; `holds` says how much there is now, `waiting` which files aren't confirmed.

    `upload` is the form's button, `limits` what it takes.
    """

    frame: Frame
    registry: str
    holds: str
    export: Action
    upload: Action
    limits: str
    waiting: tuple[CopyRow, ...] = ()
    deleted_url: str = ""
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedPage:
    """What was deleted for good and is kept still; `days` for how long, 0: nothing is kept."""

    frame: Frame
    registry: str
    days: int
    rows: tuple[CopyRow, ...]
    paging: Paging | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way of bringing a copy in, as a link."""

    label: str
    url: str
    current: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ComingRow:
    """A version of the copy, and what becomes of it."""

    subject: str
    url: str
    version: int
    schema_id: int
    coming: ImportFate
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyPage:
    """A copy with the plan of bringing it in; `hidden` names the plan that the button confirms.

    `verdict` is what the plan comes to, None where none could be made: then `problem` says why.
    """

    frame: Frame
    is_deleted: bool
    about: str
    facts: tuple[Fact, ...]
    until: datetime
    file_url: str
    forget: Action
    ways: tuple[Way, ...] = ()
    verdict: ImportFate | None = None
    sentence: str = ""
    way_sentence: str = ""
    rows: tuple[ComingRow, ...] = ()
    more: int = 0
    settings: tuple[str, ...] = ()
    more_settings: int = 0
    confirm: Action | None = None
    hidden: tuple[tuple[str, str], ...] = ()
    problem: Problem | None = None
    problems: tuple[str, ...] = ()


ROWS: Final = 50
#: versions, and other changes, that a plan draws
DRAWN: Final = 100


def copy_url(registry: str, number: int, page: str = "copy", **query: str) -> str:
    """The address of a copy, or of what is done with it."""
    base = reverse(f"ui:{page}", args=[registry, number])
    return f"{base}?{urlencode(query)}" if query else base


def asked_ways(request: HttpRequest) -> Ways:
    """How the address or the form wants it."""
    form = request.POST if request.method == "POST" else request.GET
    return Ways(only_missing=given_text(form, "only") == "missing", live=given_text(form, "as") != "deleted")


def deleted_page(request: HttpRequest, registry: str) -> DeletedPage:
    """A page of what was deleted for good. Raises RegistryNotFound, NotAllowed."""
    registry_row = get_registry(registry)
    before = whole_number(given_text(request.GET, "before"), digits=18)
    copies = deleted_copies(registry_row, by=page_actor(request), before=before, limit=ROWS + 1)
    base, shown = reverse("ui:deleted", args=[registry]), copies[:ROWS]
    following = f"{base}?{urlencode({'before': shown[-1].number})}" if len(copies) > ROWS else ""
    return DeletedPage(
        frame=make_frame(
            request,
            title=gettext("Permanently deleted"),
            section=Section.SUBJECTS,
            registry=registry,
            crumbs=(subjects_crumb(registry), moving_crumb(registry)),
            url_in=lambda other: reverse("ui:deleted", args=[other]),
        ),
        registry=registry,
        days=settings.DELETED_COPY_DAYS,
        rows=tuple(copy_row(registry, copy, is_deleted=True) for copy in shown),
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
            label=gettext("Restore …") if is_deleted else gettext("Review …"),
            url=copy_url(registry, copy.number),
            icon="undo-2" if is_deleted else "arrow-right",
        ),
        file_url=copy_url(registry, copy.number, "copy_file"),
    )


def newest_copy(registry: Registry, name: SubjectName, actor: Actor) -> CopyInfo | None:
    """The newest copy of a subject that was deleted for good, for whoever may bring it back."""
    if not may(actor, RIGHTS[KeptCopy.DELETED], registry=registry.name, subject=name.qualified):
        return None
    return next(iter(deleted_copies(registry, by=actor, subject=name.qualified, limit=1)), None)


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
    registry_row, row = copy.registry, copy.row
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
            label=gettext("Delete copy now"),
            url=copy_url(registry, number, "copy_forget"),
            method="post",
            tone="danger",
            icon="x",
        ),
        ways=_ways_of(registry, number, ways, is_deleted=is_deleted),
        way_sentence=_way_sentence(ways, is_deleted=is_deleted),
        problem=problem,
        **(_planned(registry_row, number, plan, ways, is_deleted=is_deleted) if plan else {}),  # type: ignore[arg-type]
    )


def _frame(request: HttpRequest, registry: str, row: KeptCopy) -> Frame:
    is_deleted = row.kind == KeptCopy.DELETED
    crumbs = [subjects_crumb(registry), moving_crumb(registry)]
    if is_deleted:
        crumbs.append(Crumb(label=gettext("Permanently deleted"), url=reverse("ui:deleted", args=[registry])))
    title = gettext("Restore %(name)s") if is_deleted else gettext("Import %(name)s")
    return make_frame(
        request, title=title % {"name": row.name}, section=Section.SUBJECTS, registry=registry, crumbs=tuple(crumbs)
    )


def _facts(copy: OpenCopy) -> tuple[Fact, ...]:
    row = copy.row
    facts = [
        Fact(label=gettext("Versions"), value=f"{row.versions:,}"),
        Fact(
            label=gettext("Deleted by") if row.kind == KeptCopy.DELETED else gettext("Uploaded by"), value=row.made_by
        ),
        Fact(label=gettext("Time"), value=gettext("%(at)s UTC") % {"at": f"{row.made_at:%Y-%m-%d %H:%M}"}),
        Fact(label=gettext("Kept until"), value=gettext("%(at)s UTC") % {"at": f"{row.until:%Y-%m-%d %H:%M}"}),
    ]
    owners = copy.contents.owners if row.kind == KeptCopy.DELETED else ()
    return (*facts, *([Fact(label=gettext("Owned by"), value=listing(owners))] if owners else ()))


def _ways_of(registry: str, number: int, ways: Ways, *, is_deleted: bool) -> tuple[Way, ...]:
    url = copy_url(registry, number)
    if is_deleted:
        return (
            Way(label=gettext("Live"), url=url, current=ways.live),
            Way(label=gettext("Soft-deleted, as before"), url=f"{url}?as=deleted", current=not ways.live),
        )
    return (
        Way(label=gettext("Everything, as in the file"), url=url, current=not ways.only_missing),
        Way(label=gettext("Only what is missing"), url=f"{url}?only=missing", current=ways.only_missing),
    )


def _way_sentence(ways: Ways, *, is_deleted: bool) -> str:
    if is_deleted:
        return gettext(
            "Versions are restored with their numbers and ids where these are free. Existing data is not changed."
        )
    if ways.only_missing:
        return gettext("Existing data is not changed. Anything that can’t be imported is skipped.")
    return gettext(
        "Everything in the file is imported exactly: versions, deletions, levels, modes, tags and descriptions. "
        "Data that exists only here stays. If any part can’t be imported, nothing is imported."
    )


def _planned(registry: Registry, number: int, plan: Plan, ways: Ways, *, is_deleted: bool) -> dict[str, object]:
    """What the page shows of a plan."""
    refused = _refused(plan, ways, is_deleted=is_deleted)
    label = gettext("Restore") if is_deleted else gettext("Import")
    return {
        "verdict": _verdict(plan),
        "sentence": _sentence(plan),
        "rows": tuple(
            ComingRow(
                subject=line.subject.qualified,
                url=subject_url(registry.name, line.subject.qualified)
                if line.fate in ("same", "left", "changed")
                else "",
                version=line.version,
                schema_id=line.schema_id,
                coming=ImportFate.of(line.fate),
                why=line.why,
            )
            for line in plan.lines[:DRAWN]
        ),
        "more": max(0, len(plan.lines) - DRAWN),
        "settings": plan.settings[:DRAWN],
        "more_settings": max(0, len(plan.settings) - DRAWN),
        "problems": tuple(str(problem) for problem in plan.problems[:DRAWN]),
        "confirm": Action(
            label=label,
            url=copy_url(registry.name, number, "copy_bring"),
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
        return gettext("There is nothing to import.")
    if plan.stops and not ways.only_missing and not is_deleted:
        return gettext("Some of it can’t be imported. Choose “Only what is missing”.")
    return ""


def _verdict(plan: Plan) -> ImportFate:
    """The worst that there is, of what would be done."""
    if plan.stops:
        return ImportFate.CONFLICT
    if plan.is_empty:
        return ImportFate.SAME
    return ImportFate.CHANGED if plan.count("changed") else ImportFate.CREATED


def _sentence(plan: Plan) -> str:
    if not plan.lines:
        return gettext("No versions.")
    number = {coming: plan.count(coming.code) for coming in ImportFate}  # type: ignore[arg-type]
    labels = {
        ImportFate.CONFLICT: counted(number[ImportFate.CONFLICT], "%(n)s can’t be imported", "%(n)s can’t be imported"),
        ImportFate.LEFT: counted(number[ImportFate.LEFT], "%(n)s unchanged here", "%(n)s unchanged here"),
        ImportFate.CHANGED: counted(number[ImportFate.CHANGED], "%(n)s to change", "%(n)s to change"),
        ImportFate.CREATED: counted(number[ImportFate.CREATED], "%(n)s to import", "%(n)s to import"),
        ImportFate.SAME: counted(number[ImportFate.SAME], "%(n)s already exists", "%(n)s already exist"),
    }
    versions = counted(len(plan.lines), "%(n)s version", "%(n)s versions")
    parts = listing(label for coming, label in labels.items() if number[coming])
    return gettext("Of %(versions)s: %(parts)s.") % {"versions": versions, "parts": parts}


def moving_page(request: HttpRequest, registry: str, *, error: str = "") -> MovingPage:
    """The page, with what was wrong with a file that was sent. Raises RegistryNotFound."""
    registry_row, actor = get_registry(registry), page_actor(request)
    subjects, versions = amounts_of(registry_row)
    unread = refusal(actor, "schema.read", registry=registry)
    return MovingPage(
        frame=make_frame(
            request,
            title=gettext("Export and import"),
            section=Section.POLICY,
            registry=registry,
            crumbs=(subjects_crumb(registry),),
            url_in=lambda other: reverse("ui:moving", args=[other]),
        ),
        registry=registry,
        holds=gettext("Currently %(subjects)s with %(versions)s")
        % {
            "subjects": counted(subjects, "%(n)s subject", "%(n)s subjects"),
            "versions": counted(versions, "%(n)s live version", "%(n)s live versions"),
        },
        export=Action(
            label=gettext("Export everything"),
            url=reverse("ui:registry_export", args=[registry]),
            method="post",
            allowed=not unread,
            reason=unread,
            tone="primary",
            icon="file-text",
        ),
        upload=_upload(registry_row, actor),
        limits=gettext(
            "At most %(sent)s MiB and %(versions)s versions to import. For larger files, use the command %(command)s."
        )
        % {"sent": MAX_SENT // 2**20, "versions": f"{MOST:,}", "command": "import_registry"},
        waiting=tuple(copy_row(registry, copy, is_deleted=False) for copy in waiting_files(registry_row, by=actor)),
        deleted_url=reverse("ui:deleted", args=[registry]) if may_in(actor, RIGHTS[KeptCopy.DELETED], registry) else "",
        problem=Problem(what=error, cure=gettext("Nothing was changed. Choose another file.")) if error else None,
    )


def _upload(registry: Registry, actor: Actor) -> Action:
    reason = refusal(actor, RIGHTS[KeptCopy.SENT], registry=registry.name)
    if not reason and registry.kind == Registry.REMOTE:
        reason = gettext("This registry is a mirror. Nothing can be imported into it.")
    return Action(
        label=gettext("Upload and review"),
        url=reverse("ui:registry_import", args=[registry.name]),
        method="post",
        allowed=not reason,
        reason=reason,
        tone="primary",
        icon="arrow-right",
    )
