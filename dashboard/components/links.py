"""URLs of subjects' pages, their breadcrumbs and tabs, query values, and API calls for lists.

A list's page shows the shell command that requests the same list from an API. It isn't a link, because a session can't
authenticate to an API: the browser would get 401.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final
from urllib.parse import quote, urlencode

from django.conf import settings
from django.http import HttpRequest
from django.urls import get_script_prefix, reverse
from django.utils.translation import gettext

import registry.api.request_reading  # noqa: F401  # registers the converter `segment` of the paths that these links lead to
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Crumb, Export, Paging, SubPage
from registry.errors import InvalidInput
from registry.subjects.versions.qualified_names import SubjectName

PAGES = ("", "compare", "report", "simulate", "try-rule", "usage", "references", "retire")
"""What follows the subject in the path: its own page, two versions compared, a proposed schema checked, data tried,
a rule tried on messages, which versions are in use, what refers to what, and the way to retire it."""

# Browsers normalise these path segments away, even encoded; the name qualified with the default context is equivalent.
_FOLDED = ("", ".", "..")


def subject_url(registry: str, subject: str, page: str = "", **query: object) -> str:
    """Return the URL of a subject's page; `page` must be one of PAGES, else ValueError.

    `subject` may be qualified (`:.context:name`). In `query`, None is omitted, a list repeats the parameter, and a
    trailing underscore is removed from a name (`from_`).
    """
    if page not in PAGES:
        raise ValueError(f"no page of a subject is called {page!r}: it is one of {PAGES}")
    segment = quote(f":.:{subject}" if subject in _FOLDED else subject, safe="")
    path = f"{subjects_url(registry)}/{segment}/{page}"
    parameters = {name.rstrip("_"): value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(parameters, doseq=True)}" if parameters else path


def term_url(name: str) -> str:
    """Return the URL of the page of a business term."""
    return f"{reverse('ui:terms')}/{quote(name, safe='')}"


def switch_url(registry: str, subject: str, page: str = "") -> str:
    """Return the URL that switches to the same page in another registry, or to its list without the subject."""
    base, _, _ = subject_url(registry, subject).rpartition("/")
    return f"{base}/switch?{urlencode({'page': page})}" if page else f"{base}/switch"


def subjects_url(registry: str) -> str:
    """Return the URL of a registry's list of subjects."""
    return _subjects_url(registry, get_script_prefix(), settings.ROOT_URLCONF)


@lru_cache(maxsize=256)
def _subjects_url(registry: str, prefix: str, addresses: object) -> str:
    """Build the URL once per registry, because a list has hundreds; the arguments are everything that it depends on."""
    return f"{reverse('ui:home')}registries/{quote(registry, safe='')}/subjects"


#: the subject's own pages: one of PAGES → label
_OWN: Final = (
    ("", _("Versions")),
    ("compare", _("Compare")),
    ("report", _("Check")),
    ("usage", _("Usage")),
    ("references", _("References")),
)
#: lists of other objects about the subject: URL name, parameter, whether it takes the
#: registry too (a request is between two), label
_LISTS: Final = (
    ("findings", "subject", True, _("Drift")),
    ("promotions", "q", False, _("Requests")),
    ("audit", "subject", True, _("Activity")),
)


def subject_parts(registry: str, name: SubjectName, here: str) -> tuple[SubPage, ...]:
    """Return the tabs; `here` is the current page, one of PAGES."""
    own = (
        SubPage(label=label, url=subject_url(registry, name.qualified, page), current=page == here)
        for page, label in _OWN
    )
    lists = (
        SubPage(label=label, url=list_about(target, {key: name.qualified}, registry if placed else ""))
        for target, key, placed, label in _LISTS
    )
    return (*own, *lists)


def list_about(page: str, about: Mapping[str, str], registry: str = "") -> str:
    """Return the URL of a list filtered by a subject, and by a registry if given."""
    return f"{reverse(f'ui:{page}')}?{urlencode({**about, 'registry': registry} if registry else about)}"


def crumb(label: str, page: str, *arguments: object, code: bool = False) -> Crumb:
    """Return the breadcrumb of a page by its URL name."""
    return Crumb(label=label, url=reverse(f"ui:{page}", args=arguments), code=code)


def subjects_crumb(registry: str) -> Crumb:
    """Return the breadcrumb of the registry's list of subjects."""
    return Crumb(label=gettext("Subjects"), url=subjects_url(registry))


def subject_export(registry: str, name: SubjectName) -> Export:
    """Return the form that downloads the subject as a file."""
    return Export(url=reverse("ui:subjects_export", args=[registry]), subject=name.qualified)


def subject_crumbs(registry: str, name: SubjectName) -> tuple[Crumb, ...]:
    """Return the breadcrumbs of a page about the subject: the list, then the subject."""
    here = Crumb(label=name.qualified, url=subject_url(registry, name.qualified), code=True)
    return (subjects_crumb(registry), here)


def whole_number(text: str, *, digits: int = 9) -> int | None:
    """Parse at most `digits` ASCII digits; None for anything else, which would fit no column."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


def with_query(base: str, query: Mapping[str, object]) -> str:
    """Return the URL with the non-empty parameters."""
    parameters = {name: value for name, value in query.items() if value}
    return f"{base}?{urlencode(parameters)}" if parameters else base


def cursor_paging(
    rows: Sequence[object],
    base: str,
    query: Mapping[str, object],
    *,
    is_first: bool,
    total: int | None = None,
    **cursor: object,
) -> Paging:
    """Return the paging of a list that is read from a cursor: the next page's parameter, None or "" on the last."""
    return Paging(
        first=1 if rows else 0,
        last=len(rows),
        total=total,
        previous_url="" if is_first else with_query(base, query),
        next_url=with_query(base, {**query, **cursor}) if any(cursor.values()) else "",
    )


def offset_paging(begin: int, shown: int, total: int, size: int, url: Callable[[int], str]) -> Paging:
    """Return the paging of a list in pages of `size` rows, of which those from `begin` are shown."""
    return Paging(
        first=begin + 1 if shown else 0,
        last=begin + shown,
        total=total,
        previous_url=url(max(0, begin - size)) if begin else "",
        next_url=url(begin + size) if begin + shown < total else "",
    )


def map_url(focus: str) -> str:
    """Return the URL of the map around a node, by its id in `registry.lineage`."""
    return with_query(reverse("ui:map"), {"focus": focus})


def form_text(form: Mapping[str, str], name: str, usual: str = "") -> str:
    """Return a value from a URL or a form, stripped, without NUL, which PostgreSQL refuses."""
    return form.get(name, usual).replace("\0", "").strip()


def chosen_value(form: Mapping[str, str], name: str, values: Iterable[str]) -> str:
    """Return the value of a filter in a URL; empty if none. Raises InvalidInput with the valid values.

    A list that ignored an invalid value would look filtered but show everything.
    """
    value, known = form_text(form, name), [value for value in values if value]
    if value and value not in known:
        message = gettext("The filter “%(name)s” has no value “%(value)s”. It can be: %(values)s.")
        raise InvalidInput(message % {"name": name, "value": value[:40], "values": ", ".join(known)}, field=name)
    return value


@dataclass(frozen=True, slots=True)
class CopyAs:
    """A command to copy; its token is a shell variable, never a value."""

    command: str
    note: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class _List:
    """A list in the API: its path, the API's names of the page's filters, and values with other names.

    `switches` are values of the page's filters that are separate parameters in the API. `note` says how the answer
    differs from the page; `title` names the list if a page has several.
    """

    path: str
    filters: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[tuple[str, str], str] = field(default_factory=dict)
    switches: Mapping[tuple[str, str], str] = field(default_factory=dict)
    note: str = ""
    title: str = ""


_API_LISTS: Final[Mapping[str, _List]] = {
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
                        "lacks",
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
        note=_("An image for a README. Without format=badge you get the result with its reasons."),
        title=_("Badge: can it be promoted?"),
    ),
    "versions": _List("/api/v1/registries/{registry}/subjects/{subject}/timeline", {"at": "at"}),
    "policy": _List("/api/v1/registries/{registry}/policy", {"cursor": "cursor", "at": "at"}),
    "what-if": _List(
        "/api/v1/registries/{registry}/what-if", {name: name for name in ("level", "context", "subject", "cursor")}
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
    "unapproved_versions": _List(
        "/api/v1/unapproved-versions", {"q": "text", **{name: name for name in ("environment", "state", "before")}}
    ),
    "usage": _List("/api/v1/registries/{registry}/subjects/{subject}/usage"),
    "unused_subjects": _List("/api/v1/registries/{registry}/unused-subjects", {"after": "after"}),
    "search": _List("/api/v1/search", {name: name for name in ("q", "group", "cursor")}),
    "inbox": _List(
        "/api/v1/notifications",
        {"show": "unread", "before": "before"},
        {("show", "unread"): "true", ("show", "all"): ""},
    ),
    "registries": _List("/api/v1/registries"),
    "transfer": _List("/api/v1/registries/{registry}/export", note=_("One JSON object per line.")),
    "deleted": _List("/api/v1/registries/{registry}/copies", {"before": "before"}),
    "webhooks": _List("/api/v1/webhooks"),
    "deliveries": _List("/api/v1/webhooks/{webhook}/deliveries", {"before": "before"}),
    "subscriptions": _List("/api/v1/notifications/subscriptions"),
    "clients": _List(
        "/api/v1/registries/{registry}/subjects/{subject}/clients", title=_("Clients: copy as curl / JSON")
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
    "map": _List(
        "/api/v1/lineage",
        {"q": "text", **{name: name for name in ("registry", "owner", "focus", "distance")}},
        note=_("All nodes, without groups."),
    ),
    "audit": _List(
        "/api/v1/audit",
        {
            "q": "text",
            **{name: name for name in ("actor", "door", "table", "row_id", "registry", "subject", "since", "until")},
            "at": "until",
        },
        note=_("All events, oldest first, one per line."),
    ),
}
#: maximum characters of a filter
_LONGEST: Final = 1_300


def copy_as(request: HttpRequest, name: str, **parameters: str) -> CopyAs:
    """Return the command for the list with the filters of this page. Raises KeyError for an unknown list."""
    listed = _API_LISTS[name]
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
