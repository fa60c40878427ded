"""Archives of a registry's contents: export, import, and restoring copies of permanently deleted versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import BadgeState
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import crumb, cursor_paging, form_text, subjects_crumb, whole_number
from dashboard.components.translation import counted, listing
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Crumb, Fact, Frame, Paging, Problem, Section
from registry.access.roles import Actor, may, may_in, refusal
from registry.errors import Conflict, InvalidInput
from registry.subjects.archive.archive import RIGHTS, CopyInfo, deleted_copies, waiting_files
from registry.subjects.archive.restore import MOST, open_copy, plan_open
from registry.subjects.import_export.export_file import MAX_SENT
from registry.subjects.import_export.import_plan import Line, Plan, RestoreOptions
from registry.subjects.models import ArchivedCopy, Registry
from registry.subjects.policy.registries import amounts_of
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName


class ImportFate(BadgeState):
    """The outcome for a version when a copy is imported."""

    CONFLICT = ("conflict", "breaks", "octagon-x", _("Can’t be imported"))
    LEFT = ("left", "care", "triangle-alert", _("Unchanged here"))
    CHANGED = ("changed", "care", "pencil", _("To change"))
    CREATED = ("created", "ok", "plus", _("To import"))
    SAME = ("same", "unknown", "circle-check", _("Already exists"))

    @property
    def is_here(self) -> bool:
        """Whether the version already exists."""
        return self in (ImportFate.LEFT, ImportFate.CHANGED, ImportFate.SAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportExportPage:
    """The export and import of a registry, and files to confirm; `refused` says why the reader may not import."""

    frame: Frame
    registry: str
    subjects: int
    versions: int
    unread: str = ""
    refused: str = ""
    waiting: tuple[CopyInfo, ...] = ()
    may_restore: bool = False
    problem: Problem | None = None

    @property
    def limits(self) -> str:
        """The limits of an import, in words."""
        return gettext(
            "At most %(sent)s MiB and %(versions)s versions to import. For larger files, use the command %(command)s."
        ) % {"sent": MAX_SENT // 2**20, "versions": f"{MOST:,}", "command": "import_registry"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedPage:
    """The copies of permanently deleted versions; they are kept for `days`, 0: not at all."""

    frame: Frame
    registry: str
    days: int
    rows: tuple[CopyInfo, ...]
    paging: Paging | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyPage:
    """A copy with the plan of importing it, which `hidden` identifies for the confirm button.

    `plan` is None if it couldn't be made; `problem` says why.
    """

    frame: Frame
    registry: str
    info: CopyInfo
    is_deleted: bool
    ways: RestoreOptions
    owners: tuple[str, ...] = ()
    plan: Plan | None = None
    problem: Problem | None = None

    @property
    def facts(self) -> list[Fact]:
        """The facts about the copy."""
        info = self.info
        who = gettext("Deleted by") if self.is_deleted else gettext("Uploaded by")
        facts = [
            (gettext("Versions"), f"{info.versions:,}"),
            (who, info.made_by),
            (gettext("Time"), gettext("%(at)s UTC") % {"at": f"{info.made_at:%Y-%m-%d %H:%M}"}),
            (gettext("Kept until"), gettext("%(at)s UTC") % {"at": f"{info.until:%Y-%m-%d %H:%M}"}),
            *([(gettext("Owned by"), listing(self.owners))] if self.owners else ()),
        ]
        return [Fact(label=label, value=value) for label, value in facts]

    @property
    def way_sentence(self) -> str:
        """The effect of the selected options."""
        return _way_sentence(self.ways, is_deleted=self.is_deleted)

    @property
    def verdict(self) -> ImportFate | None:
        """The worst outcome in the plan."""
        return _verdict(self.plan) if self.plan else None

    @property
    def sentence(self) -> str:
        """The plan's outcome in words."""
        return _sentence(self.plan) if self.plan else ""

    @property
    def lines(self) -> list[tuple[Line, ImportFate]]:
        """The first versions with their outcomes."""
        return [(line, ImportFate.of(line.fate)) for line in self.plan.lines[:DRAWN]] if self.plan else []

    @property
    def more(self) -> int:
        """The number of omitted versions."""
        return max(0, len(self.plan.lines) - DRAWN) if self.plan else 0

    @property
    def more_settings(self) -> int:
        """The number of omitted other changes."""
        return max(0, len(self.plan.settings) - DRAWN) if self.plan else 0

    @property
    def refused(self) -> str:
        """The reason why the plan can't be confirmed; "" if it can."""
        if self.plan and self.plan.is_empty:
            return gettext("There is nothing to import.")
        if self.plan and self.plan.stops and not self.ways.only_missing and not self.is_deleted:
            return gettext("Some of it can’t be imported. Choose “Only what is missing”.")
        return ""

    @property
    def hidden(self) -> dict[str, str]:
        """The plan and the options, for the form."""
        only, live = "missing" if self.ways.only_missing else "", "" if self.ways.live else "deleted"
        return {"plan": self.plan.digest if self.plan else "", "only": only, "as": live}


ROWS: Final = 50
#: versions and other changes shown of a plan
DRAWN: Final = 100


def copy_url(registry: str, number: int, **query: str) -> str:
    """Return the URL of a copy."""
    base = reverse("ui:copy", args=[registry, number])
    return f"{base}?{urlencode(query)}" if query else base


def asked_ways(request: HttpRequest) -> RestoreOptions:
    """Read the options from the URL or the form."""
    form = request.POST if request.method == "POST" else request.GET
    return RestoreOptions(only_missing=form_text(form, "only") == "missing", live=form_text(form, "as") != "deleted")


def deleted_page(request: HttpRequest, registry: str) -> DeletedPage:
    """Return a page of permanently deleted versions. Raises RegistryNotFound, NotAllowed."""
    registry_row = get_registry(registry)
    before = whole_number(form_text(request.GET, "before"), digits=18)
    copies = deleted_copies(registry_row, by=page_actor(request), before=before, limit=ROWS + 1)
    base, shown = reverse("ui:deleted", args=[registry]), copies[:ROWS]
    following = shown[-1].number if len(copies) > ROWS else None
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
        rows=tuple(shown),
        paging=cursor_paging(shown, base, {}, is_first=not before, before=following) if before or following else None,
    )


def newest_copy(registry: Registry, name: SubjectName, actor: Actor) -> CopyInfo | None:
    """Return the newest copy of a permanently deleted subject, if the actor may restore it."""
    if not may(actor, RIGHTS[ArchivedCopy.DELETED], registry=registry.name, subject=name.qualified):
        return None
    return next(iter(deleted_copies(registry, by=actor, subject=name.qualified, limit=1)), None)


def restore_label(copy: CopyInfo) -> str:
    """Return the label of the link to a copy."""
    return gettext("Restore until %(date)s …") % {"date": f"{copy.until:%Y-%m-%d}"}


def moving_crumb(registry: str) -> Crumb:
    """Return the breadcrumb of the export and import page."""
    return crumb(gettext("Export and import"), "transfer", registry)


def copy_page(request: HttpRequest, registry: str, number: int) -> CopyPage:
    """Return a copy and its plan. Raises RegistryNotFound, CopyNotFound, NotAllowed."""
    actor = page_actor(request)
    copy = open_copy(registry=registry, number=number, by=actor)
    row, ways, plan, problem = copy.row, asked_ways(request), None, None
    try:
        plan = plan_open(copy, ways=ways, by=actor)
    except (Conflict, InvalidInput) as error:
        problem = Problem(what=error.placed, cure=gettext("Nothing was changed."))
    is_deleted = row.kind == ArchivedCopy.DELETED
    return CopyPage(
        frame=_frame(request, registry, row.name, is_deleted=is_deleted),
        registry=registry,
        info=CopyInfo(number, row.name, row.versions, row.made_at, row.made_by, row.until),
        is_deleted=is_deleted,
        ways=ways,
        owners=tuple(copy.contents.owners) if is_deleted else (),
        plan=plan,
        problem=problem,
    )


def _frame(request: HttpRequest, registry: str, name: str, *, is_deleted: bool) -> Frame:
    crumbs = [subjects_crumb(registry), moving_crumb(registry)]
    if is_deleted:
        crumbs.append(crumb(gettext("Permanently deleted"), "deleted", registry))
    title = gettext("Restore %(name)s") if is_deleted else gettext("Import %(name)s")
    return make_frame(
        request, title=title % {"name": name}, section=Section.SUBJECTS, registry=registry, crumbs=tuple(crumbs)
    )


def _way_sentence(ways: RestoreOptions, *, is_deleted: bool) -> str:
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


def _verdict(plan: Plan) -> ImportFate:
    """Return the worst outcome in the plan."""
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


def transfer_page(request: HttpRequest, registry: str, *, error: str = "") -> ImportExportPage:
    """Return the page, with the error of an uploaded file. Raises RegistryNotFound."""
    registry_row, actor = get_registry(registry), page_actor(request)
    subjects, versions = amounts_of(registry_row)
    return ImportExportPage(
        frame=make_frame(
            request,
            title=gettext("Export and import"),
            section=Section.POLICY,
            registry=registry,
            crumbs=(subjects_crumb(registry),),
            url_in=lambda other: reverse("ui:transfer", args=[other]),
        ),
        registry=registry,
        subjects=subjects,
        versions=versions,
        unread=refusal(actor, "schema.read", registry=registry),
        refused=_import_refused(registry_row, actor),
        waiting=tuple(waiting_files(registry_row, by=actor)),
        may_restore=may_in(actor, RIGHTS[ArchivedCopy.DELETED], registry),
        problem=Problem(what=error, cure=gettext("Nothing was changed. Choose another file.")) if error else None,
    )


def _import_refused(registry: Registry, actor: Actor) -> str:
    reason = refusal(actor, RIGHTS[ArchivedCopy.SENT], registry=registry.name)
    if not reason and registry.kind == Registry.REMOTE:
        return gettext("This registry is a mirror. Nothing can be imported into it.")
    return reason
