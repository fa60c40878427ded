"""Checkpoints found below a folder or an address, to be added as sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.sources_fields import discover_groups
from dashboard.pages.sources_values import STORE
from dashboard.pages.sources_words import given_text, listed
from dashboard.presenters.discovery import DiscoverPage, FoundRow
from dashboard.presenters.frame import Action, Crumb, Problem, Section
from dashboard.texts import counted
from registry.access.extent import refusal_in_any
from registry.checkpoints import Checkpoint, Discovery, Found
from registry.drift.selectors import checkpoint_sources
from registry.errors import SchemadeskError

#: what of the search's form goes along with each row's
_KEPT: Final = ("registry", "every_seconds", *STORE)
MAX_REASON: Final = 400  # characters that are drawn


def discover_page(request: HttpRequest, found: Discovery | None, problem: SchemadeskError | None) -> DiscoverPage:
    """The form with what was sent, and what the search found."""
    given = request.POST if request.method == "POST" else request.GET
    registry = given_text(given, "registry")
    actor = page_actor(request)
    reason = refusal_in_any(actor, "source.manage", registry=registry)
    known = checkpoint_sources(registry) if found else {}
    return DiscoverPage(
        frame=make_frame(
            request,
            title=gettext("Find checkpoints"),
            section=Section.SOURCES,
            crumbs=(Crumb(label=gettext("Sources"), url=reverse("ui:sources")),),
        ),
        groups=discover_groups(given, actor),
        submit=_action(gettext("Search"), "ui:source_discover", reason, icon="search"),
        add=_action(gettext("Add and scan"), "ui:source_add", reason, icon="plus"),
        back_url=f"{reverse('ui:source_add')}?kind=state_store",
        said=_said(found) if found else "",
        rows=tuple(_row(each, given, known) for each in found.found) if found else (),
        passed_over=tuple(each[:MAX_REASON] for each in found.passed_over) if found else (),
        problem=Problem(what=problem.message) if problem else None,
    )


def _action(label: str, name: str, reason: str, *, icon: str) -> Action:
    return Action(
        label=label, url=reverse(name), method="post", allowed=not reason, reason=reason, tone="primary", icon=icon
    )


def _row(found: Found, given: Mapping[str, str], known: Mapping[str, int]) -> FoundRow:
    source = known.get(found.path)
    return FoundRow(
        path=found.path,
        summary=_summary(found.checkpoint) if found.checkpoint else "",
        refused=(found.refused or "")[:MAX_REASON],
        source_url=reverse("ui:source", args=[source]) if source else "",
        sent=(
            ("kind", "state_store"),
            ("name", found.path),
            *((name, given_text(given, name)) for name in _KEPT if name in given),
        ),
    )


def _summary(checkpoint: Checkpoint) -> str:
    variables = sum(len(each.variables) for each in checkpoint.operators)
    if checkpoint.is_starting:
        return gettext("starting: no batch committed yet, its state is not known")
    operators = listed(sorted({each.description for each in checkpoint.operators})) or gettext("no stateful operator")
    batch = checkpoint.last_committed_batch
    done = gettext("batch %(n)s") % {"n": f"{batch:,}"}
    return f"{operators}; {counted(variables, '%(n)s state variable', '%(n)s state variables')}; {done}"


def _said(found: Discovery) -> str:
    said = gettext("%(checkpoints)s in %(folders)s") % {
        "checkpoints": counted(len(found.found), "%(n)s checkpoint", "%(n)s checkpoints"),
        "folders": counted(found.folders, "%(n)s folder", "%(n)s folders"),
    }
    if not found.ended_early:
        return f"{said}."
    return gettext("%(said)s; the search ended at its bound: %(bound)s.") % {"said": said, "bound": found.ended_early}
