"""Views of sources, scans and clusters."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from dashboard.components.badges import SourceBadge
from dashboard.components.forms import ConfirmPage, ConfirmView, FormPage, FormPageView, ServiceForm, fill_choices
from dashboard.components.frame import make_frame, page_actor, render_page
from dashboard.components.translation import counted
from dashboard.components.widgets import Frame, Section
from dashboard.sources import page as pages
from dashboard.sources.cluster_forms import ClusterEditForm, ClusterForm, ClusterTestForm, RemoveClusterForm
from dashboard.sources.forms import DiscoverForm, RemoveSourceForm, SourceEditForm, SourceForm
from dashboard.sources.labels import listed, read_by, source_badge, source_badges
from registry.access.permission_filters import refusal_in_any
from registry.access.roles import refusal, require
from registry.checkpoints import Discovery, Found
from registry.drift import selectors, services
from registry.drift.selectors import ClusterInfo, SourceInfo
from registry.drift.sources import SOURCES
from registry.drift.tasks import interrupt_scan, run_scan
from registry.errors import Conflict, NotSignedIn
from registry.subjects.selectors import registry_names


@require_safe
def source_list(request: HttpRequest) -> HttpResponse:
    """Show all clusters and sources with their last scans."""
    return render(request, "drift/sources.html", {"page": pages.source_list(request)})


@require_safe
def source_page(request: HttpRequest, source_id: int) -> HttpResponse:
    """Show a source: its topics, its last scans with what they read, its findings; htmx gets only the topics."""
    return render_page(request, "drift/source.html", pages.source_page(request, source_id), {"topics": "topics"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFormPage(FormPage):
    """The form of a source; the kind of a new one is chosen among `kinds`."""

    kind: SourceBadge
    kinds: tuple[SourceBadge, ...] = ()
    lede: str = ""
    discovers: bool = False


class SourceAddView(FormPageView):
    """The form of a new source, which is then scanned immediately."""

    action = "source.manage"
    template = "drift/source_add.html"

    def make_form(self, data: Any, **route: Any) -> SourceForm:
        """Return the form for the given kind."""
        actor = page_actor(self.request)
        if actor.user_id is None:
            raise NotSignedIn(gettext("Sign in to add a source."))
        given = data or self.request.GET
        kind = SOURCES.get(given.get("kind", ""), SOURCES["kafka"])
        form = SourceForm(data, kind=kind, initial=given.dict())
        names = [info.name for info in selectors.list_clusters(actor)] if "cluster" in form.fields else []
        fill_choices([form], registry=registry_names(actor), cluster=names)
        return form

    def page(self, form: ServiceForm, **route: Any) -> FormPage:
        """Return the page with the kinds."""
        kind = cast(SourceForm, form).kind
        return SourceFormPage(
            frame=_frame(self.request, gettext("Add a source")),
            form=form,
            refused=refusal_in_any(page_actor(self.request), "source.manage"),
            back_url=reverse("ui:sources"),
            kind=source_badge(kind.name),
            kinds=source_badges(),
            discovers=kind.keeps_state,
        )

    def done(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Queue the first scan and redirect to the source."""
        run_scan.delay_on_commit(services.queue_scan(source_id=form.result, by=page_actor(self.request)))
        return redirect("ui:source", form.result)


class SourceEditView(FormPageView):
    """The form that edits how a source is scanned."""

    template = "drift/source_add.html"

    def make_form(self, data: Any, **route: Any) -> SourceEditForm:
        """Return the form with the source's settings. Raises SourceNotFound, NotAllowed."""
        return SourceEditForm(data, source=selectors.get_source(route["source_id"], by=page_actor(self.request)))

    def page(self, form: ServiceForm, **route: Any) -> FormPage:
        """Return the page of the form."""
        source = cast(SourceEditForm, form).source
        lede = gettext("Patterns apply from the next scan. Excluded topics keep their findings and read positions.")
        return SourceFormPage(
            frame=_frame(self.request, gettext("Edit %(source)s") % {"source": source.name}, source),
            form=form,
            refused=refusal(page_actor(self.request), "source.manage", registry=source.registry),
            back_url=reverse("ui:source", args=[source.id]),
            kind=source_badge(source.kind),
            lede=lede if source.cluster else "",
        )

    def after(self, **route: Any) -> HttpResponse:
        """Redirect to the source."""
        return redirect("ui:source", route["source_id"])


class SourceRemoveView(ConfirmView):
    """The confirmation of removing a source."""

    form_class = RemoveSourceForm
    next_page = "ui:sources"

    def page(self, form: ServiceForm, **route: Any) -> FormPage:
        """Return the page. Raises SourceNotFound, NotAllowed."""
        actor = page_actor(self.request)
        source = selectors.get_source(route["source_id"], by=actor)
        positions = counted(
            source.topics,
            "the read positions of %(n)s topic and its data on version usage",
            "the read positions of %(n)s topics and their data on version usage",
        )
        findings = gettext("its findings (%(open_findings)s open) and all decisions about them")
        losses = (findings % {"open_findings": f"{source.open_findings:,}"}, gettext("its scans"))
        return ConfirmPage(
            frame=_frame(self.request, gettext("Remove %(name)s") % {"name": source.name}, source),
            form=form,
            refused=refusal(actor, "source.manage", registry=source.registry),
            back_url=reverse("ui:source", args=[source.id]),
            sentence=gettext("%(source)s will no longer be scanned. You can’t undo this.") % {"source": source.name},
            losses=(*losses, positions) if source.cluster else losses,
            stays=(
                gettext("the data: nothing is written to topics, checkpoints or databases"),
                gettext("the audit log of decisions"),
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRow:
    """A found checkpoint, and the number of the source that already reads it."""

    info: Found
    source: int | None = None

    @property
    def summary(self) -> str:
        """The operators, state and batch of its query, in words."""
        checkpoint = self.info.checkpoint
        if checkpoint is None:
            return ""
        if checkpoint.is_starting:
            return gettext("starting: no batch committed yet, so its state is unknown")
        operators = listed(sorted({operator.description for operator in checkpoint.operators}))
        count = sum(len(operator.variables) for operator in checkpoint.operators)
        variables = counted(count, "%(n)s state variable", "%(n)s state variables")
        batch = gettext("batch %(n)s") % {"n": f"{checkpoint.last_committed_batch:,}"}
        return f"{operators or gettext('no stateful operators')}; {variables}; {batch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverPage(FormPage):
    """The form that searches for checkpoints, and the result."""

    discovery: Discovery | None = None
    rows: tuple[FoundRow, ...] = ()

    @property
    def sentence(self) -> str:
        """The result in words; empty before a search."""
        discovery = self.discovery
        if discovery is None:
            return ""
        sentence = gettext("%(checkpoints)s in %(folders)s") % {
            "checkpoints": counted(len(discovery.found), "%(n)s checkpoint", "%(n)s checkpoints"),
            "folders": counted(discovery.folders, "%(n)s folder", "%(n)s folders"),
        }
        if not discovery.ended_early:
            return f"{sentence}."
        values = {"said": sentence, "bound": discovery.ended_early}
        return gettext("%(said)s; the search stopped at its limit: %(bound)s.") % values


class DiscoverView(FormPageView):
    """The checkpoints below a path, each with a form that adds it as a source."""

    action = "source.manage"
    template = "drift/discover.html"

    def make_form(self, data: Any, **route: Any) -> DiscoverForm:
        """Return the search form."""
        actor = page_actor(self.request)
        if actor.user_id is None:
            raise NotSignedIn(gettext("Sign in to find checkpoints."))
        form = DiscoverForm(data, initial=self.request.GET.dict())
        fill_choices([form], registry=registry_names(actor))
        return form

    def page(self, form: ServiceForm, **route: Any) -> FormPage:
        """Return the page with the result."""
        registry = str(form.data.get("registry", "")).strip()
        sources = selectors.checkpoint_sources(registry) if form.result else {}
        return DiscoverPage(
            frame=_frame(self.request, gettext("Find checkpoints")),
            form=form,
            refused=refusal_in_any(page_actor(self.request), "source.manage", registry=registry),
            back_url=f"{reverse('ui:source_add')}?kind=state_store",
            discovery=form.result,
            rows=tuple(FoundRow(info=one, source=sources.get(one.path)) for one in form.result.found)
            if form.result
            else (),
        )

    def done(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Show the result."""
        return self.show(form)


@require_POST
def source_scan(request: HttpRequest, source_id: int) -> HttpResponse:
    """Queue a scan; htmx gets its progress, other browsers are redirected to the source."""
    scan_id = services.queue_scan(source_id=source_id, by=page_actor(request))
    run_scan.delay_on_commit(scan_id)
    return _progress(request, scan_id) if getattr(request, "htmx", None) else redirect("ui:source", source_id)


@require_safe
def scan_progress(request: HttpRequest, scan_id: int) -> HttpResponse:
    """Show the progress of a scan, a part of the source's page that reloads while the scan runs."""
    return _progress(request, scan_id, watched=True)


@require_POST
def scan_cancel(request: HttpRequest, scan_id: int) -> HttpResponse:
    """Cancel a scan; findings of earlier scans are kept."""
    source_id = selectors.get_scan(scan_id, by=page_actor(request)).source_id
    try:
        tag = services.cancel_scan(scan_id=scan_id, by=page_actor(request))
    except Conflict as error:
        messages.warning(request, error.message)
    else:
        if tag:
            interrupt_scan.delay_on_commit(tag)
        messages.success(request, gettext("Scan cancelled. Findings of earlier scans don’t change."))
    return redirect("ui:source", source_id)


def _progress(request: HttpRequest, scan_id: int, *, watched: bool = False) -> HttpResponse:
    """Show the progress of a scan; when a `watched` one has ended, reload the whole page."""
    actor = page_actor(request)
    scan = selectors.get_scan(scan_id, by=actor)
    progress = pages.scan_row(actor, scan, selectors.get_source(scan.source_id))
    response = render(request, "drift/progress.html", {"progress": progress})
    if watched and getattr(request, "htmx", None) and not scan.unfinished:
        response["HX-Refresh"] = "true"
    return response


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPage(FormPage):
    """The form of a cluster; `is_read` if sources read it, `label` is its button, `answered` the result of a test."""

    label: str
    is_read: bool = False
    answered: str = ""


class ClusterFormView(FormPageView):
    """The form of a cluster, which tests the connection, or saves the cluster if it answers."""

    action = "cluster.manage"
    template = "drift/cluster_form.html"
    next_page = "ui:sources"

    @cached_property
    def cluster(self) -> ClusterInfo | None:
        """The cluster to edit, if any. Raises ClusterNotFound."""
        return selectors.cluster_at(self.kwargs["cluster_id"]) if self.kwargs else None

    def make_form(self, data: Any, **route: Any) -> ClusterForm:
        """Return the form that connects, edits or tests. Raises ClusterNotFound."""
        actor = page_actor(self.request)
        if actor.user_id is None:
            raise NotSignedIn(gettext("Sign in to connect a cluster."))
        require(actor, "schema.read")
        is_test = data and data.get("do") == "test"
        kind = ClusterTestForm if is_test else ClusterEditForm if self.cluster else ClusterForm
        return kind(data, initial=asdict(self.cluster) if self.cluster else {})

    def target(self, **route: Any) -> dict[str, Any]:
        """Return the cluster to edit."""
        is_test = self.request.POST.get("do") == "test"
        return {"name": self.cluster.name} if self.cluster and not is_test else {}

    def page(self, form: ServiceForm, **route: Any) -> FormPage:
        """Return the page of the form."""
        info = self.cluster
        title = gettext("Edit %(info)s") % {"info": info.name} if info else gettext("Connect a cluster")
        return ClusterPage(
            frame=_frame(self.request, title),
            form=form,
            refused=refusal(page_actor(self.request), "cluster.manage"),
            back_url=reverse("ui:sources"),
            label=gettext("Save") if info else gettext("Connect"),
            is_read=bool(info and info.sources),
            answered=form.answer if isinstance(form, ClusterTestForm) else "",
        )

    def done(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Show the result of a test, or redirect to the list."""
        return self.show(form, **route) if isinstance(form, ClusterTestForm) else super().done(form, **route)


class ClusterRemoveView(ConfirmView):
    """The confirmation of removing a cluster."""

    action = "cluster.manage"
    form_class = RemoveClusterForm
    next_page = "ui:sources"

    def target(self, **route: Any) -> dict[str, Any]:
        """Return the cluster."""
        require(page_actor(self.request), "schema.read")
        return {"name": selectors.cluster_at(route["cluster_id"]).name}

    def page(self, form: ServiceForm, **route: Any) -> FormPage:
        """Return the page. Raises ClusterNotFound."""
        actor = page_actor(self.request)
        require(actor, "schema.read")
        info = selectors.cluster_at(route["cluster_id"])
        in_use = read_by(info.sources) if info.sources else ""
        return ConfirmPage(
            frame=_frame(self.request, gettext("Remove %(name)s") % {"name": info.name}),
            form=form,
            refused=refusal(actor, "cluster.manage") or in_use,
            back_url=reverse("ui:sources"),
            sentence=gettext("Schemadesk forgets how to connect to %(info)s.") % {"info": info.name},
            losses=(gettext("its address, user and secret name"),),
            stays=(
                gettext("the secret itself, which the operator stores"),
                gettext("the cluster: nothing is written to it"),
            ),
        )


def _frame(request: HttpRequest, title: str, source: SourceInfo | None = None) -> Frame:
    return make_frame(request, title=title, section=Section.SOURCES, crumbs=pages.source_crumbs(source))
