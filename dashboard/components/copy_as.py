"""Where programs get what a list of the pages shows: the line of a shell that asks an API for it.

There is no link to the address: a session opens no API, so in the browser it would answer 401.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, urlencode

from django.http import HttpRequest

from dashboard.components.translation import later


@dataclass(frozen=True, slots=True)
class CopyAs:
    """The token in the command is a variable of the shell, never a value."""

    command: str
    note: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class _List:
    """A list: its path with what varies, the page's filters as the API calls them, and values that it says otherwise.

    `switches` are choices of the page that the API has a switch of its own for. `note` says what the answer doesn't do as the page does it; `title` what is copied where a page has more than one.
    """

    path: str
    filters: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[tuple[str, str], str] = field(default_factory=dict)
    switches: Mapping[tuple[str, str], str] = field(default_factory=dict)
    note: str = ""
    title: str = ""


_LISTS: Final[Mapping[str, _List]] = {
    "subjects": _List(
        "/api/v1/registries/{registry}/subjects",
        {
            "q": "text",
            **{
                name: name
                for name in (
                    *(
                        "format",
                        "level",
                        "level_from",
                        "mode",
                        "references",
                        "use",
                        "tag",
                        "owner",
                        "state",
                        "attention",
                    ),
                    *("sort", "after", "before", "at"),
                )
            },
        },
    ),
    "can-promote": _List(
        "/api/v1/can-promote?subject={subject}&from={source}&to={target}&format=badge",
        note=later("An image for a README. Without format=badge you get the result with its reasons."),
        title=later("Badge: can it be promoted?"),
    ),
    "versions": _List("/api/v1/registries/{registry}/subjects/{subject}/life", {"at": "at"}),
    "policy": _List("/api/v1/registries/{registry}/policy", {"cursor": "cursor", "at": "at"}),
    "what-if": _List(
        "/api/v1/registries/{registry}/what-if",
        {name: name for name in ("level", "context", "subject", "cursor")},
    ),
    "requests": _List(
        "/api/v1/promotions",
        {"q": "subject", "state": "state", "target": "target", "label": "label", "before": "after", "at": "at"},
        switches={("who", "mine"): "mine", ("who", "waiting"): "waiting"},
    ),
    "findings": _List(
        "/api/v1/findings",
        {
            "q": "text",
            "assignee": "assigned_to",
            "source": "source_id",
            **{name: name for name in ("state", "severity", "kind", "registry", "rule", "subject", "topic", "muted")},
        },
        {("state", "all"): "", ("state", "resolving"): "", ("muted", "only"): "true", ("muted", "all"): "null"},
    ),
    "board": _List("/api/v1/board", {"q": "text", "show": "show", "after": "after", "at": "at"}),
    "ghosts": _List("/api/v1/ghosts", {"q": "text", **{name: name for name in ("environment", "state", "before")}}),
    "usage": _List("/api/v1/registries/{registry}/subjects/{subject}/usage"),
    "orphans": _List("/api/v1/registries/{registry}/orphans", {"after": "after"}),
    "search": _List("/api/v1/search", {name: name for name in ("q", "group", "cursor")}),
    "inbox": _List(
        "/api/v1/notifications",
        {"show": "unread", "before": "before"},
        {("show", "unread"): "true", ("show", "all"): ""},
    ),
    "registries": _List("/api/v1/registries"),
    "moving": _List("/api/v1/registries/{registry}/export", note=later("One JSON object per line.")),
    "deleted": _List("/api/v1/registries/{registry}/copies", {"before": "before"}),
    "webhooks": _List("/api/v1/webhooks"),
    "deliveries": _List("/api/v1/webhooks/{webhook}/deliveries", {"before": "before"}),
    "subscriptions": _List("/api/v1/notifications/subscriptions"),
    "clients": _List(
        "/api/v1/registries/{registry}/subjects/{subject}/clients", title=later("Clients: copy as curl / JSON")
    ),
    "variables": _List("/api/v1/queries/{query}/variables"),
    "tokens": _List("/api/v1/tokens", {"of": "of"}),
    "mutes": _List("/api/v1/mutes", {"registry": "registry"}),
    "people": _List("/api/v1/people", {"q": "q"}),
    "groups": _List("/api/v1/groups"),
    "same-person": _List("/api/v1/same-person"),
    "scans": _List("/api/v1/sources/{source}/scans"),
    "drafts": _List("/api/v1/drafts"),
    "sources": _List("/api/v1/sources", {"registry": "registry"}),
    "queries": _List("/api/v1/queries"),
    "audit": _List(
        "/api/v1/audit",
        {
            "q": "text",
            **{name: name for name in ("actor", "door", "table", "row_id", "registry", "subject", "since", "until")},
            "at": "until",
        },
        note=later("All events, oldest first, one per line."),
    ),
}
#: characters of a filter that are taken over
_LONGEST: Final = 1_300


def copy_as(request: HttpRequest, name: str, **parameters: str) -> CopyAs:
    """Where programs get the list of that name with the filters of this page. Raises KeyError for one that isn't known."""
    listed = _LISTS[name]
    path = listed.path.format(
        **{parameter: quote(value, safe="", errors="replace") for parameter, value in parameters.items()}
    )
    filters = {
        theirs: listed.values.get((ours, value), value)
        for ours, theirs in listed.filters.items()
        if (value := request.GET.get(ours, "").replace("\0", "")[:_LONGEST])
    }
    filters |= {switch: "true" for (ours, value), switch in listed.switches.items() if request.GET.get(ours) == value}
    url = f"{path}?{urlencode(filters, errors='replace')}" if filters else path
    whole = shlex.quote(request.build_absolute_uri("/").rstrip("/") + url)
    return CopyAs(f'curl -H "Authorization: Bearer $TOKEN" {whole}', listed.note, listed.title)
