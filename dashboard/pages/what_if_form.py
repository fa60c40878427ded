"""Places in addresses, and the form that tries a level at one."""

from __future__ import annotations

from urllib.parse import urlencode

from django.urls import reverse

from dashboard.presenters.frame import Choice
from dashboard.presenters.policy import WhatIfForm
from registry.formats.compatibility import LEVELS
from registry.subjects.names import SubjectName


def scoped_url(page: str, registry: str, scope: SubjectName | None, **query: str) -> str:
    """The address of a page about a registry, a context or a subject."""
    given = {**query, **scope_query(scope)}
    return reverse(page, args=[registry]) + (f"?{urlencode(given)}" if given else "")


def scope_query(scope: SubjectName | None) -> dict[str, str]:
    """A place as the query has it."""
    if scope is None:
        return {}
    return {"subject": scope.qualified} if scope.subject else {"context": scope.context}


def what_if_form(registry: str, scope: SubjectName | None, chosen: str = "") -> WhatIfForm:
    """The form that tries a level at a place."""
    names = scope_query(scope)
    return WhatIfForm(
        url=reverse("ui:what_if", args=[registry]),
        levels=tuple(Choice(value=name, label=name, selected=name == (chosen or "FULL")) for name in LEVELS),
        context=names.get("context", ""),
        subject=names.get("subject", ""),
    )
