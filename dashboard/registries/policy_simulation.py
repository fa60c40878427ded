"""Simulates a compatibility level on past versions of a registry, context or subject, and on open requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import Verdict
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import crumb, form_text, subject_url, subjects_crumb
from dashboard.components.translation import counted
from dashboard.components.widgets import Crumb, Frame, Section
from dashboard.registries.policy_forms import WhatIfForm, describe_scope, scoped_url
from dashboard.subjects.page import level_order
from registry.errors import InvalidCompatibility, InvalidName
from registry.formats.compatibility import LEVELS
from registry.promotions.requests.level_simulation import RequestsUnder, requests_under
from registry.subjects.history.level_history import FailingVersion, SubjectTrial, WhatIf, what_if
from registry.subjects.policy.registries import mirror_of
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName

#: listed failing versions of a subject
MAX_FAILING: Final = 20


@dataclass(frozen=True, slots=True)
class TrialRow:
    """The result for one subject."""

    info: SubjectTrial

    @property
    def sentence(self) -> str:
        """The number of its changes that would fail, in words."""
        return counted(
            self.info.judged,
            "%(failing)s of %(n)s change would fail. The current level is %(level)s.",
            "%(failing)s of %(n)s changes would fail. The current level is %(level)s.",
            failing=f"{len(self.info.failing):,}",
            level=self.info.level,
        )

    @property
    def failing(self) -> tuple[FailingVersion, ...]:
        """The failing versions to list."""
        return self.info.failing[:MAX_FAILING]

    @property
    def notes(self) -> list[str]:
        """Sentences on what wasn't checked, with the reason."""
        trial = self.info
        notes = [
            gettext("Version %(version)s can’t be checked: %(sentence)s")
            % {"version": item.version, "sentence": item.sentence}
            for item in trial.unjudged[:MAX_FAILING]
        ]
        if trial.left_out:
            notes.append(
                counted(
                    trial.left_out, "%(n)s older version was not checked.", "%(n)s older versions were not checked."
                )
            )
        elif trial.judged + len(trial.unjudged) < trial.transitions:
            notes.append(
                counted(
                    trial.transitions,
                    "%(judged)s of %(n)s change was checked, newest first.",
                    "%(judged)s of %(n)s changes were checked, newest first.",
                    judged=f"{trial.judged:,}",
                )
            )
        if len(trial.failing) > MAX_FAILING:
            notes.append(
                gettext("%(number)s more would fail. The API lists all.")
                % {"number": f"{len(trial.failing) - MAX_FAILING:,}"}
            )
        return notes


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfOutcome:
    """The result: on versions, and (None on further pages) on open requests."""

    registry: str
    simulation: WhatIf
    under: RequestsUnder | None = None

    @property
    def is_whole(self) -> bool:
        """Whether everything was checked."""
        simulation = self.simulation
        is_cut = simulation.cursor or simulation.stopped
        return not is_cut and all(item.is_whole for item in simulation.subjects)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict."""
        if self.simulation.failing:
            return Verdict.BREAKS
        return Verdict.OK if self.is_whole else Verdict.UNKNOWN

    @property
    def sentence(self) -> str:
        """The result in a sentence."""
        simulation = self.simulation
        judged = counted(simulation.transitions, "%(n)s existing change", "%(n)s existing changes")
        values = {"level": simulation.level, "judged": judged, "failing": f"{simulation.failing:,}"}
        if simulation.failing:
            return gettext("With %(level)s, %(failing)s of %(judged)s would fail.") % values
        if not simulation.transitions:
            return gettext("With %(level)s, there are no changes to check.") % values
        if self.is_whole:
            return gettext("With %(level)s, none of %(judged)s would fail.") % values
        return gettext("With %(level)s, none of the %(judged)s checked so far would fail.") % values

    @property
    def consequence(self) -> str:
        """The requirements of the level."""
        level = self.simulation.level
        return f"{LEVELS[level].description} {level_order(level)}."

    @property
    def progress(self) -> str:
        """The extent of the check, in words."""
        return _progress(self.simulation)

    @property
    def requests_sentence(self) -> str:
        """The result on open requests, in words."""
        return _requests_said(self.under) if self.under else ""

    @property
    def rows(self) -> list[TrialRow]:
        """The subjects with more to say than that all changes would pass."""
        return list(map(TrialRow, self.simulation.subjects))

    @property
    def next_url(self) -> str:
        """The URL of the next page, "" on the last."""
        simulation = self.simulation
        if not simulation.cursor:
            return ""
        query = {"level": simulation.level, "cursor": simulation.cursor}
        return scoped_url("ui:what_if", self.registry, simulation.scope, **query)


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfPage:
    """A level simulated in a scope; `outcome` is None before a level is selected, `error` says what is invalid."""

    frame: Frame
    registry: str
    scope: str
    form: WhatIfForm
    outcome: WhatIfOutcome | None = None
    error: str = ""


def what_if_page(request: HttpRequest, registry: str, scope: SubjectName | None) -> WhatIfPage:
    """Return the page of `?level=FULL&subject=…`; without a level only the form.

    Raises SubjectNotFound, RegistryNotFound.
    """
    registry_row = get_registry(registry)
    level, cursor = form_text(request.GET, "level").upper(), form_text(request.GET, "cursor")
    outcome, error = None, ""
    if level:
        try:
            simulation = what_if(registry_row, level, scope, cursor=cursor)
            under = None if cursor else requests_under(registry_row, level, scope, by=page_actor(request))
            outcome = WhatIfOutcome(registry=registry, simulation=simulation, under=under)
        except (InvalidCompatibility, InvalidName) as refused:
            error = refused.message
    crumbs = [subjects_crumb(registry), crumb(gettext("Policy"), "policy", registry)]
    if scope is not None and scope.subject:
        crumbs.append(Crumb(label=scope.qualified, url=subject_url(registry, scope.qualified), code=True))
    return WhatIfPage(
        frame=make_frame(
            request,
            title=gettext("What if"),
            section=Section.POLICY,
            registry=registry,
            crumbs=tuple(crumbs),
            url_in=lambda other: reverse("ui:what_if", args=[other]),
            mirror=mirror_of(registry_row),
        ),
        registry=registry,
        scope=describe_scope(registry, scope),
        form=WhatIfForm(registry, scope, level if level in LEVELS else "FULL"),
        outcome=outcome,
        error=error,
    )


def _progress(simulation: WhatIf) -> str:
    if simulation.scope is not None and simulation.scope.subject:
        return ""
    looked = counted(
        simulation.total,
        "Checked %(looked)s of %(n)s subject",
        "Checked %(looked)s of %(n)s subjects",
        looked=f"{simulation.looked_at:,}",
    )
    if not simulation.keeping:
        return f"{looked}."
    return counted(
        simulation.keeping,
        "%(looked)s. %(n)s more has its own level and keeps it.",
        "%(looked)s. %(n)s more have their own levels and keep them.",
        looked=looked,
    )


def _requests_said(under: RequestsUnder) -> str:
    if not under.total:
        return gettext("No open requests.")
    changed = len(under.changed)
    requests = counted(under.total, "%(n)s open request", "%(n)s open requests")
    if under.stopped:
        requests = gettext("%(looked)s of %(requests)s") % {"looked": f"{under.looked_at:,}", "requests": requests}
    sentence = gettext("The verdict would change for %(changed)s of %(requests)s.") % {
        "requests": requests,
        "changed": changed or gettext("none"),
    }
    return f"{sentence} {under.stopped}".strip()
