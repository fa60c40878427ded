"""Checkpoints discovered below a folder or an address, each of which can be added as a source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.frame import make_frame, page_actor
from dashboard.components.translation import counted
from dashboard.components.widgets import Action, Crumb, Frame, Problem, Section
from dashboard.sources.form_fields import discover_groups
from dashboard.sources.labels import given_text, listed
from dashboard.sources.presenters import FieldGroup
from registry.access.permission_filters import refusal_in_any
from registry.checkpoints import Checkpoint, Discovery, Found
from registry.drift.selectors import checkpoint_sources
from registry.drift.sources.state_store import StateStore
from registry.errors import SchemadeskError


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRow:
    """A checkpoint. `summary` says what its query keeps, `refused` why it can't be read: one of the two is empty.

    `source_url` is set where it is a source of the registry already; else `sent` is what its form sends.
    """

    path: str
    summary: str
    refused: str
    source_url: str = ""
    sent: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverPage:
    """The form that searches, and what was found; `sentence` is empty where nothing was searched yet.

    `add` is the button of each row. `passed_over` names folders that couldn't be looked into, with the reason.
    """

    frame: Frame
    groups: tuple[FieldGroup, ...]
    submit: Action
    add: Action
    back_url: str
    sentence: str = ""
    rows: tuple[FoundRow, ...] = ()
    passed_over: tuple[str, ...] = ()
    problem: Problem | None = None


#: what of the search's form goes along with each row's
_KEPT: Final = ("registry", "every_seconds", *(item.in_form for item in StateStore.fields))
MAX_REASON: Final = 400  # characters that are drawn


def discover_page(request: HttpRequest, discovery: Discovery | None, problem: SchemadeskError | None) -> DiscoverPage:
    """The form with what was sent, and what the search found."""
    form = request.POST if request.method == "POST" else request.GET
    registry = given_text(form, "registry")
    actor = page_actor(request)
    reason = refusal_in_any(actor, "source.manage", registry=registry)
    sources = checkpoint_sources(registry) if discovery else {}
    return DiscoverPage(
        frame=make_frame(
            request,
            title=gettext("Find checkpoints"),
            section=Section.SOURCES,
            crumbs=(Crumb(label=gettext("Sources"), url=reverse("ui:sources")),),
        ),
        groups=discover_groups(form, actor),
        submit=_action(gettext("Search"), "ui:source_discover", reason, icon="search"),
        add=_action(gettext("Add and scan"), "ui:source_add", reason, icon="plus"),
        back_url=f"{reverse('ui:source_add')}?kind=state_store",
        sentence=_discovery_sentence(discovery) if discovery else "",
        rows=tuple(_row(match, form, sources) for match in discovery.found) if discovery else (),
        passed_over=tuple(reason[:MAX_REASON] for reason in discovery.passed_over) if discovery else (),
        problem=Problem(what=problem.message) if problem else None,
    )


def _action(label: str, name: str, reason: str, *, icon: str) -> Action:
    return Action(
        label=label, url=reverse(name), method="post", allowed=not reason, reason=reason, tone="primary", icon=icon
    )


def _row(match: Found, form: Mapping[str, str], sources: Mapping[str, int]) -> FoundRow:
    source = sources.get(match.path)
    return FoundRow(
        path=match.path,
        summary=_summary(match.checkpoint) if match.checkpoint else "",
        refused=(match.refused or "")[:MAX_REASON],
        source_url=reverse("ui:source", args=[source]) if source else "",
        sent=(
            ("kind", "state_store"),
            ("name", match.path),
            *((name, given_text(form, name)) for name in _KEPT if name in form),
        ),
    )


def _summary(checkpoint: Checkpoint) -> str:
    variables = sum(len(operator.variables) for operator in checkpoint.operators)
    if checkpoint.is_starting:
        return gettext("starting: no batch committed yet, so its state is unknown")
    operators = listed(sorted({operator.description for operator in checkpoint.operators})) or gettext(
        "no stateful operators"
    )
    batch = checkpoint.last_committed_batch
    done = gettext("batch %(n)s") % {"n": f"{batch:,}"}
    return f"{operators}; {counted(variables, '%(n)s state variable', '%(n)s state variables')}; {done}"


def _discovery_sentence(discovery: Discovery) -> str:
    sentence = gettext("%(checkpoints)s in %(folders)s") % {
        "checkpoints": counted(len(discovery.found), "%(n)s checkpoint", "%(n)s checkpoints"),
        "folders": counted(discovery.folders, "%(n)s folder", "%(n)s folders"),
    }
    if not discovery.ended_early:
        return f"{sentence}."
    return gettext("%(said)s; the search stopped at its limit: %(bound)s.") % {
        "said": sentence,
        "bound": discovery.ended_early,
    }
