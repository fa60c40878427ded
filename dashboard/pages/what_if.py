"""A level tried on the past of a registry, a context or a subject, and on the requests that are open there."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest
from django.urls import reverse

from dashboard.links import subject_url
from dashboard.pages.frame import make_frame, page_actor, subjects_url
from dashboard.pages.policy import place_words
from dashboard.pages.sources_words import given_text
from dashboard.pages.subjects import level_order
from dashboard.pages.what_if_form import scoped_url, what_if_form
from dashboard.presenters.frame import Crumb, Section
from dashboard.presenters.looks import Verdict
from dashboard.presenters.policy import FailingRow, RequestChange, TrialRow, WhatIfOutcome, WhatIfPage
from registry.errors import InvalidCompatibility, InvalidName
from registry.formats.compatibility import LEVELS
from registry.promotions.selectors.what_if import RequestsUnder, requests_under
from registry.subjects.names import SubjectName
from registry.subjects.selectors.places import get_registry
from registry.subjects.selectors.remotes import mirror_of
from registry.subjects.selectors.what_if import SubjectTrial, WhatIf, what_if

#: failing versions of a subject that are listed
MAX_FAILING: Final = 20


def what_if_page(request: HttpRequest, registry: str, scope: SubjectName | None) -> WhatIfPage:
    """The page of `?level=FULL&subject=…`; without a level its form alone. Raises SubjectNotFound, RegistryNotFound."""
    place = get_registry(registry)
    level, cursor = given_text(request.GET, "level").upper(), given_text(request.GET, "cursor")
    outcome, error = None, ""
    if level:
        try:
            found = what_if(place, level, scope, cursor=cursor)
            under = None if cursor else requests_under(place, level, scope, by=page_actor(request))
            outcome = _outcome(registry, found, under)
        except (InvalidCompatibility, InvalidName) as refused:
            error = refused.message
    crumbs = [
        Crumb(label="Subjects", url=subjects_url(registry)),
        Crumb(label="Policy", url=reverse("ui:policy", args=[registry])),
    ]
    if scope is not None and scope.subject:
        crumbs.append(Crumb(label=scope.qualified, url=subject_url(registry, scope.qualified), code=True))
    return WhatIfPage(
        frame=make_frame(
            request,
            title="What if",
            section=Section.POLICY,
            registry=registry,
            crumbs=tuple(crumbs),
            url_in=lambda other: reverse("ui:what_if", args=[other]),
            mirror=mirror_of(place),
        ),
        registry=registry,
        place=place_words(registry, scope),
        form=what_if_form(registry, scope, level if level in LEVELS else ""),
        outcome=outcome,
        error=error,
    )


def _outcome(registry: str, found: WhatIf, under: RequestsUnder | None) -> WhatIfOutcome:
    judged = _count(found.transitions, "existing transition")
    is_all = not found.cursor and not found.stopped and all(item.is_whole for item in found.subjects)
    if found.failing:
        verdict = Verdict.BREAKS
        sentence = f"With {found.level}, {found.failing:,} of {judged} would fail."
    else:
        verdict = Verdict.OK if is_all else Verdict.UNKNOWN
        none = f"none of {judged} would fail" if found.transitions else "there is no transition to look at"
        sentence = f"With {found.level}, {none}{'' if is_all else ' of those that were looked at'}."
    return WhatIfOutcome(
        verdict=verdict,
        sentence=sentence,
        consequence=f"{LEVELS[found.level].description} {level_order(found.level)}.",
        progress=_progress(found),
        rows=tuple(_trial(registry, item) for item in found.subjects),
        requests_sentence=_requests_said(under) if under else "",
        requests=tuple(
            RequestChange(
                label=f"Request {item.request}",
                url=reverse("ui:promotion", args=[item.request]),
                sentence=f"{item.subject} {item.sentence}",
                verdict=Verdict.BREAKS if item.passes_now else Verdict.OK,
            )
            for item in (under.changed if under else ())
        ),
        stopped=found.stopped,
        next_url=scoped_url("ui:what_if", registry, found.scope, level=found.level, cursor=found.cursor)
        if found.cursor
        else "",
    )


def _progress(found: WhatIf) -> str:
    if found.scope is not None and found.scope.subject:
        return ""
    looked = f"Looked at {found.looked_at:,} of {_count(found.total, 'subject')}"
    if not found.keeping:
        return f"{looked}."
    keep = "has a level of its own and keeps it" if found.keeping == 1 else "have a level of their own and keep it"
    return f"{looked}; {found.keeping:,} more {keep}."


def _trial(registry: str, trial: SubjectTrial) -> TrialRow:
    name = trial.subject.qualified
    failing = trial.failing[:MAX_FAILING]
    notes = [f"Version {item.version} can’t be judged: {item.sentence}" for item in trial.unjudged[:MAX_FAILING]]
    if trial.left_out:
        notes.append(f"{_count(trial.left_out, 'older version')} weren’t looked at.")
    elif trial.judged + len(trial.unjudged) < trial.transitions:
        notes.append(f"{trial.judged:,} of {_count(trial.transitions, 'transition')} were looked at, newest first.")
    if len(trial.failing) > MAX_FAILING:
        notes.append(f"{len(trial.failing) - MAX_FAILING:,} more fail; the API lists all.")
    return TrialRow(
        name=name,
        url=subject_url(registry, name),
        level=trial.level,
        sentence=f"{len(trial.failing):,} of {_count(trial.judged, 'transition')} would fail; {trial.level} is in force.",
        failing=tuple(
            FailingRow(
                version=item.version,
                sentence=item.sentence,
                compare_url=subject_url(registry, name, "compare", from_=item.against[0], to=item.version),
                compare_label=_against(item.against),
                known=item.fails_now,
            )
            for item in failing
        ),
        notes=tuple(notes),
    )


def _against(numbers: tuple[int, ...]) -> str:
    more = f" and {len(numbers) - 1} more" if len(numbers) > 1 else ""
    return f"version {numbers[0]}{more}"


def _requests_said(under: RequestsUnder) -> str:
    if not under.total:
        return "No request is open here."
    changed = len(under.changed)
    counted = (
        f"{under.looked_at:,} of {_count(under.total, 'open request')}"
        if under.stopped
        else _count(under.total, "open request")
    )
    said = f"Of {counted}, {changed or 'none'} would be judged otherwise."
    return f"{said} {under.stopped}".strip()


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
