"""The audit log: filtered, with links to the objects of its events, and as a file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from dashboard.audit.event_links import links_of
from dashboard.components.badges import CHANNELS
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import form_text, whole_number, with_query
from dashboard.components.time_travel import travels, url_as_of
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import ActiveFilter, Choice, Field, Filter, Frame, Link, Paging, SearchBox, Section
from registry.access.permission_filters import extent_of
from registry.access.roles import Actor
from registry.audit import time_travel
from registry.audit.selectors import (
    LOOKED_AT,
    AuditEntry,
    AuditFilter,
    Export,
    export_events,
    list_events,
    newest_event,
    tables_of_audit,
)
from registry.errors import InvalidInput
from registry.search.audit_filter import TABLES as READABLE
from registry.search.audit_filter import events_shown
from registry.subjects.selectors import registry_names


@dataclass(frozen=True, slots=True)
class AuditChange:
    """The value of a column before and after; None if the row didn't exist."""

    column: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A change of a row; `url` is the page of its object, `others` are the action's other changes."""

    entry: AuditEntry
    url: str = ""
    others: tuple[AuditRow, ...] = ()

    @property
    def what(self) -> str:
        """The kind of row and the operation."""
        return changed(self.entry)

    @property
    def url_as_of(self) -> str:
        """The page of its object as of this change."""
        return url_as_of(self.url, self.entry.at)

    @property
    def changes(self) -> list[AuditChange]:
        """The changed values."""
        before, after = self.entry.before, self.entry.after
        return [AuditChange(name, _text(before, name), _text(after, name)) for name in {**before, **after}]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditList:
    """The log, newest first; `exports` download all matching events."""

    frame: Frame
    search: SearchBox
    rows: tuple[AuditRow, ...]
    paging: Paging
    exports: tuple[Link, ...] = ()


AUDIT_ROWS: Final = 50
LONGEST: Final = 1_300
#: maximum characters of a filter on its chip
CHIP: Final = 80
#: tables whose changes are a part of another's: of a version, or of a request
PARTS: Final = frozenset(
    {
        "subjects_context", "subjects_subject", "subjects_schema", "subjects_schemareference", "promotions_requestitem",
        "promotions_applystep",
    }
)  # fmt: skip
VERBS: Final = {"INSERT": _("added"), "UPDATE": _("changed"), "DELETE": _("removed")}
TABLES: Final = {
    "subjects_registry": _("registry"),
    "subjects_context": _("context"),
    "subjects_subject": _("subject"),
    "subjects_schema": _("schema"),
    "subjects_schemaversion": _("version"),
    "subjects_schemareference": _("reference"),
    "subjects_versionstanding": _("version status"),
    "subjects_subjectnote": _("description"),
    "subjects_businessterm": _("business term"),
    "subjects_fieldterm": _("term of a field"),
    "subjects_association": _("association"),
    "subjects_client": _("client"),
    "subjects_keptcopy": _("retained copy"),
    "subjects_config": _("compatibility"),
    "subjects_mode": _("mode"),
    "promotions_environment": _("environment"),
    "promotions_reviewrule": _("review rule"),
    "promotions_freezewindow": _("freeze"),
    "promotions_recurringfreeze": _("recurring freeze"),
    "promotions_breakglass": _("break-glass"),
    "promotions_sameperson": _("linked accounts"),
    "promotions_promotionrequest": _("promotion request"),
    "promotions_requestitem": _("request item"),
    "promotions_review": _("review"),
    "promotions_acknowledgement": _("acknowledgement"),
    "promotions_thread": _("discussion"),
    "promotions_comment": _("comment"),
    "promotions_applystep": _("apply step"),
    "promotions_release": _("release"),
    "promotions_renamedecision": _("rename"),
    "drift_cluster": _("cluster"),
    "drift_source": _("source"),
    "drift_connector": _("connector"),
    "drift_deployment": _("deployment"),
    "drift_finding": _("finding"),
    "drift_leastversion": _("minimum version"),
    "drift_mute": _("mute"),
    "streams_statecheck": _("state check"),
    "streams_runningdescription": _("description of a query"),
    "streams_checkpointstore": _("checkpoint store"),
    "notifications_subscription": _("subscription"),
    "notifications_webhook": _("webhook"),
    "notifications_digestwish": _("email digest"),
    "access_user": _("person"),
    "access_user_groups": _("group member"),
    "auth_group": _("group"),
    "access_rolegrant": _("role"),
    "access_groupgrant": _("group role"),
    "access_groupchannel": _("channel of a group"),
    "access_ownership": _("owner"),
    "access_apitoken": _("token"),
    "socialaccount_socialaccount": _("single sign-on"),
}
#: query parameter, as in the API → the label of its chip
NAMES: Final = {
    "q": _("text"),
    "actor": _("who"),
    "door": _("channel"),
    "table": _("what"),
    "row_id": _("row"),
    "registry": _("registry"),
    "subject": _("subject"),
    "since": _("from"),
    "until": _("before"),
}


@dataclass(frozen=True)
class AuditQuery:
    """The filters in a URL by query parameter, without empty ones."""

    values: Mapping[str, str]

    @classmethod
    def of(cls, request: HttpRequest) -> AuditQuery:
        """Read the filters from a request."""
        values = {name: form_text(request.GET, name)[:LONGEST] for name in NAMES}
        values["subject"] = request.GET.get("subject", "").replace("\0", "")[:LONGEST]  # a name may end with a space
        return cls({name: value for name, value in values.items() if value})

    def get(self, name: str) -> str:
        """Return the value of a filter; "" if not set."""
        return self.values.get(name, "")

    @property
    def until(self) -> datetime | None:
        """The end of the period, limited to the moment shown. Raises InvalidInput."""
        until, then = _moment(self.get("until")), time_travel.moment()
        return min(filter(None, (until, then)), default=None)

    def filter(self, by: Actor) -> AuditFilter:
        """Return the filter for the selectors, limited to events that the actor may read.

        Raises NotSignedIn, NotAllowed, InvalidInput, InvalidName, RegistryNotFound.
        """
        return AuditFilter(
            text=self.get("q"),
            actor=self.get("actor"),
            channel=self.get("door"),
            table=self.get("table"),
            row_id=self.get("row_id"),
            since=_moment(self.get("since")),
            until=self.until,
            about=events_shown(by, registry=self.get("registry"), subject=self.get("subject")),
        )

    def url(self, name: str = "audit", **changes: str) -> str:
        """Return the URL of a page with changed filters; an empty value removes one."""
        return with_query(reverse(f"ui:{name}"), {**self.values, **changes})


def _moment(text: str) -> datetime | None:
    """Parse a date or time in UTC; None if empty. Raises InvalidInput."""
    if not text:
        return None
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None:
        message = gettext("%(text)s is not a date or time. Enter it like 2026-10-01 or 2026-10-01T12:00.")
        raise InvalidInput(message % {"text": text[:40]})
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def audit_list(request: HttpRequest) -> AuditList:
    """Return the events that the reader may read, newest first, with keyset paging.

    Raises NotSignedIn, NotAllowed, InvalidInput, InvalidName, RegistryNotFound.
    """
    chosen, before, actor = AuditQuery.of(request), request.GET.get("before", ""), page_actor(request)
    before_id = whole_number(before, digits=18)
    event_filter, oldest = chosen.filter(actor), _oldest(chosen, actor, before_id)
    entries = list_events(chosen=event_filter, before_id=before_id, limit=AUDIT_ROWS, after_id=oldest)
    links = links_of(entries, actor)
    older = chosen.url(before=str(entries[-1].id)) if len(entries) == AUDIT_ROWS else ""
    if oldest and not older:
        older = chosen.url(before=str(oldest + 1))
    return AuditList(
        frame=make_frame(request, title=gettext("Audit"), section=Section.AUDIT),
        search=_search(chosen, actor),
        rows=tuple(_actions(entries, links)),
        paging=Paging(
            first=1 if entries else 0, last=len(entries), previous_url=chosen.url() if before else "", next_url=older
        ),
        exports=(
            Link(label=gettext("Download CSV"), url=_export_url(chosen, "csv")),
            Link(label=gettext("Download JSON Lines"), url=_export_url(chosen, "jsonl")),
        ),
    )


def _export_url(chosen: AuditQuery, form: str) -> str:
    """Return the URL that exports the matching events; in the past, until the moment shown."""
    until = {"until": chosen.until.isoformat()} if time_travel.moment() and chosen.until else {}
    return chosen.url("audit_export", **{"as": form, **until})


def _oldest(chosen: AuditQuery, actor: Actor, before_id: int | None) -> int:
    """Return the number of the newest event that the page doesn't read, 0 if it may read all.

    For a reader with limited permissions, a page examines a limited number of events; a subject or row has an index.
    """
    if chosen.get("subject") or chosen.get("row_id") or extent_of(actor, "audit.read").is_whole:
        return 0
    newest, since = newest_event(until=chosen.until), _moment(chosen.get("since"))
    oldest = (newest if before_id is None else min(newest, before_id - 1)) - LOOKED_AT
    return oldest if oldest > (newest_event(until=since) if since else 0) else 0


def exported_events(request: HttpRequest) -> Export:
    """Export all matching events that the reader may read. Raises the same errors as the log."""
    return export_events(AuditQuery.of(request).filter(page_actor(request)), form_text(request.GET, "as", "jsonl"))


def _search(chosen: AuditQuery, actor: Actor) -> SearchBox:
    names = tables_of_audit() if extent_of(actor, "audit.read").is_whole else READABLE
    tables = {name: str(TABLES.get(name, name)) for name in [*names, chosen.get("table")] if name}
    return SearchBox(
        url=reverse("ui:audit"),
        query=chosen.get("q"),
        label=gettext("Search people, changes and reasons"),
        placeholder="approver",
        filters=(
            _filter(chosen, "door", gettext("Channel"), gettext("Any channel"), CHANNELS),
            _filter(chosen, "table", gettext("What"), gettext("Any"), tables),
            _filter(
                chosen,
                "registry",
                gettext("Registry"),
                gettext("Any registry"),
                {name: name for name in registry_names(actor)},
            ),
        ),
        fields=(
            Field(name="actor", label=gettext("Who"), value=chosen.get("actor")),
            Field(name="subject", label=gettext("Subject"), value=chosen.get("subject")),
            Field(name="since", label=gettext("From (UTC)"), value=chosen.get("since")[:10], kind="date"),
            Field(name="until", label=gettext("Before (UTC)"), value=chosen.get("until")[:10], kind="date"),
        ),
        active=tuple(
            ActiveFilter(label=f"{NAMES[name]}: {_label_of(name, value)}", url=chosen.url(**{name: ""}))
            for name, value in chosen.values.items()
        ),
    )


def _label_of(name: str, value: str) -> str:
    labels: Mapping[str, str] = {"door": CHANNELS, "table": TABLES}.get(name, {})
    label = str(labels.get(value, value))
    return label if len(label) <= CHIP else f"{label[:CHIP]}…"


def _filter(chosen: AuditQuery, name: str, label: str, anything: str, values: Mapping[str, str]) -> Filter:
    selected = chosen.get(name)
    pairs: Iterable[tuple[str, str]] = sorted(values.items(), key=lambda pair: str(pair[1]))
    return Filter(
        name=name,
        label=label,
        choices=(
            Choice(value="", label=anything, selected=not selected),
            *(Choice(value=value, label=str(text), selected=value == selected) for value, text in pairs),
        ),
    )


def changed(entry: AuditEntry) -> str:
    """Describe the kind of row and the operation."""
    what = {"what": TABLES.get(entry.table, entry.table), "done": VERBS.get(entry.operation, entry.operation)}
    return gettext("%(what)s %(done)s") % what


def _actions(entries: Sequence[AuditEntry], links: Mapping[int, str]) -> Iterator[AuditRow]:
    """Yield a row per action: its main change, with the others inside. An action has one transaction and one reason."""
    for _key, group in groupby(entries, key=lambda entry: (entry.transaction_id, entry.why or entry.id)):
        main, *others = sorted(group, key=lambda entry: (entry.table in PARTS, entry.operation != "INSERT"))
        inside = tuple(AuditRow(replace(entry, why=""), links.get(entry.id, "")) for entry in others)
        yield AuditRow(main, links.get(main.id, ""), inside)


def _text(row: dict[str, Any], column: str) -> str | None:
    if column not in row:
        return None
    value = row[column]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@require_safe
@travels
def audit(request: HttpRequest) -> HttpResponse:
    """Show the log."""
    return render(request, "audit/list.html", {"page": audit_list(request)})


@require_safe
def audit_export(request: HttpRequest) -> StreamingHttpResponse:
    """Download all matching events."""
    export = exported_events(request)
    response = StreamingHttpResponse(export.text, content_type=export.media)
    response["Content-Disposition"] = f'attachment; filename="{export.name}"'
    return response
