"""A compatibility level simulated on past versions of a registry, a context or a subject, and on open requests."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import Verdict
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import given_text, subject_url, subjects_crumb
from dashboard.components.translation import counted
from dashboard.components.widgets import Crumb, Section
from dashboard.registries.policy import place_words
from dashboard.registries.policy_forms import (
    FailingRow,
    RequestChange,
    TrialRow,
    WhatIfOutcome,
    WhatIfPage,
    scoped_url,
    what_if_form,
)
from dashboard.subjects.page import level_order
from registry.errors import InvalidCompatibility, InvalidName
from registry.formats.compatibility import LEVELS
from registry.promotions.requests.level_simulation import RequestsUnder, requests_under
from registry.subjects.history.level_history import SubjectTrial, WhatIf, what_if
from registry.subjects.policy.registries import mirror_of
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName

#: failing versions of a subject that are listed
MAX_FAILING: Final = 20


def what_if_page(request: HttpRequest, registry: str, scope: SubjectName | None) -> WhatIfPage:
    """The page of `?level=FULL&subject=…`; without a level its form alone. Raises SubjectNotFound, RegistryNotFound."""
    registry_row = get_registry(registry)
    level, cursor = given_text(request.GET, "level").upper(), given_text(request.GET, "cursor")
    outcome, error = None, ""
    if level:
        try:
            simulation = what_if(registry_row, level, scope, cursor=cursor)
            under = None if cursor else requests_under(registry_row, level, scope, by=page_actor(request))
            outcome = _outcome(registry, simulation, under)
        except (InvalidCompatibility, InvalidName) as refused:
            error = refused.message
    crumbs = [
        subjects_crumb(registry),
        Crumb(label=gettext("Policy"), url=reverse("ui:policy", args=[registry])),
    ]
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
        scope=place_words(registry, scope),
        form=what_if_form(registry, scope, level if level in LEVELS else ""),
        outcome=outcome,
        error=error,
    )


def _outcome(registry: str, simulation: WhatIf, under: RequestsUnder | None) -> WhatIfOutcome:
    judged = counted(simulation.transitions, "%(n)s existing change", "%(n)s existing changes")
    is_all = not simulation.cursor and not simulation.stopped and all(item.is_whole for item in simulation.subjects)
    if simulation.failing:
        verdict = Verdict.BREAKS
        sentence = gettext("With %(level)s, %(failing)s of %(judged)s would fail.") % {
            "level": simulation.level,
            "failing": f"{simulation.failing:,}",
            "judged": judged,
        }
    else:
        verdict = Verdict.OK if is_all else Verdict.UNKNOWN
        values = {"level": simulation.level, "judged": judged}
        if not simulation.transitions:
            sentence = gettext("With %(level)s, there are no changes to check.") % values
        elif is_all:
            sentence = gettext("With %(level)s, none of %(judged)s would fail.") % values
        else:
            sentence = gettext("With %(level)s, none of the %(judged)s checked so far would fail.") % values
    return WhatIfOutcome(
        verdict=verdict,
        sentence=sentence,
        consequence=f"{LEVELS[simulation.level].description} {level_order(simulation.level)}.",
        progress=_progress(simulation),
        rows=tuple(_trial(registry, item) for item in simulation.subjects),
        requests_sentence=_requests_said(under) if under else "",
        requests=tuple(
            RequestChange(
                label=gettext("Request %(number)s") % {"number": item.request},
                url=reverse("ui:promotion", args=[item.request]),
                sentence=f"{item.subject} {item.sentence}",
                verdict=Verdict.BREAKS if item.passes_now else Verdict.OK,
            )
            for item in (under.changed if under else ())
        ),
        stopped=simulation.stopped,
        next_url=scoped_url("ui:what_if", registry, simulation.scope, level=simulation.level, cursor=simulation.cursor)
        if simulation.cursor
        else "",
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


def _trial(registry: str, trial: SubjectTrial) -> TrialRow:
    name = trial.subject.qualified
    failing = trial.failing[:MAX_FAILING]
    notes = [
        gettext("Version %(version)s can’t be checked: %(sentence)s")
        % {"version": item.version, "sentence": item.sentence}
        for item in trial.unjudged[:MAX_FAILING]
    ]
    if trial.left_out:
        notes.append(
            counted(trial.left_out, "%(n)s older version was not checked.", "%(n)s older versions were not checked.")
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
    return TrialRow(
        name=name,
        url=subject_url(registry, name),
        level=trial.level,
        sentence=counted(
            trial.judged,
            "%(failing)s of %(n)s change would fail. The current level is %(level)s.",
            "%(failing)s of %(n)s changes would fail. The current level is %(level)s.",
            failing=f"{len(trial.failing):,}",
            level=trial.level,
        ),
        failing=tuple(
            FailingRow(
                version=item.version,
                sentence=item.sentence,
                compare_url=subject_url(registry, name, "compare", from_=item.against[0], to=item.version),
                compare_label=_against(item.against),
                is_known=item.fails_now,
            )
            for item in failing
        ),
        notes=tuple(notes),
    )


def _against(numbers: tuple[int, ...]) -> str:
    values = {"version": numbers[0], "n": len(numbers) - 1}
    if len(numbers) == 1:
        return gettext("version %(version)s") % values
    return gettext("version %(version)s and %(n)s more") % values


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
