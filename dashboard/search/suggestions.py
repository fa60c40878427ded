"""The search box of every page: names that fit what is typed, and the subject that an exact name opens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.components.frame import page_actor
from dashboard.components.links import subject_url
from registry.access.roles import Actor
from registry.errors import InvalidInput
from registry.promotions.selectors import list_environments
from registry.search.query import parse_query
from registry.search.results import SUBJECTS, SubjectHit
from registry.search.selectors import looks_pasted, search_group
from registry.search.selectors.conditions import require_sight

SHORTEST: Final = 2
MOST_NAMES: Final = 8
#: hits that are read: a name has one for each registry
MOST_HITS: Final = 40


@require_safe
def suggest(request: HttpRequest) -> HttpResponse:
    """Return the options of the search box for what is typed so far. Raises NotSignedIn, NotAllowed."""
    actor = page_actor(request)
    require_sight(actor)
    names: dict[str, list[str]] = {}
    for hit in _hits(request.GET.get("q", ""), actor):
        names.setdefault(hit.subject, []).append(hit.registry)
    options = [(name, ", ".join(registries)) for name, registries in list(names.items())[:MOST_NAMES]]
    return render(request, "search/options.html", {"options": options})


def exact_url(text: str, actor: Actor) -> str:
    """Return the page of the subject of exactly this name, in the first environment that has it; "" if none does."""
    found = {hit.registry: hit for hit in _hits(text, actor) if hit.subject == text.strip()}
    order = list_environments() if found else []
    first = min(found, key=lambda name: (order.index(name) if name in order else len(order), name), default="")
    return subject_url(first, found[first].subject) if first else ""


def _hits(text: str, actor: Actor) -> Sequence[SubjectHit]:
    """Return the subjects whose names have the text; none for a short or pasted text, or one with operators."""
    text = text.strip()
    if len(text) < SHORTEST or looks_pasted(text):
        return ()
    try:
        if parse_query(text).has_operators:
            return ()
        hits = search_group(text, SUBJECTS, by=actor, limit=MOST_HITS).hits
    except InvalidInput:  # not a query yet
        return ()
    return [hit for hit in hits if isinstance(hit, SubjectHit) and not hit.similar]
