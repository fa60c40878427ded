"""What was done shortly before a finding began, as suspicions with links."""

from __future__ import annotations

from typing import Final

from django.urls import reverse

from dashboard.links import subject_url
from dashboard.presenters.drift_parts import Suspected, SuspectedList
from dashboard.texts import counted, later
from registry.drift.selectors import FindingInfo
from registry.drift.suspicions import Suspicion, suspicions_of

_SENTENCES: Final = {
    "released": later("version %(version)s was released by request %(request)s"),
    "registered": later("version %(version)s was registered"),
    "ghost": later("version %(version)s was registered without a request"),
    "deleted": later("version %(version)s was deleted"),
    "restored": later("version %(version)s was restored"),
    "level": later("the compatibility level was set to %(name)s"),
    "mode": later("the mode was set to %(name)s"),
    "client": later("client %(name)s was declared"),
    "client_changed": later("client %(name)s moved to another version"),
    "source": later("how this source is scanned was changed"),
    "deployed": later("%(name)s was deployed"),
}


def suspected(info: FindingInfo) -> SuspectedList | None:
    """What is suspected of a finding; None where nothing was done."""
    found = suspicions_of(info.id)
    if not found.found:
        return None
    return SuspectedList(began=found.began, rows=tuple(_row(item, info) for item in found.found))


def _row(item: Suspicion, info: FindingInfo) -> Suspected:
    values = {"version": item.version, "request": item.request, "name": item.name or later("what is inherited")}
    sentence = _SENTENCES[item.kind] % values
    if item.kind == "deployed":
        return Suspected(before=_span(item.seconds_before), sentence=sentence, url=item.url, elsewhere=True)
    return Suspected(before=_span(item.seconds_before), sentence=sentence, url=_url(item, info))


def _span(seconds: int) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return counted(max(0, seconds), "%(n)s second before", "%(n)s seconds before")
    return counted(minutes, "%(n)s minute before", "%(n)s minutes before")


def _url(item: Suspicion, info: FindingInfo) -> str:
    if item.kind == "released" and item.request is not None:
        return reverse("ui:promotion", args=[item.request])
    if item.kind == "source":
        return reverse("ui:source", args=[info.source_id]) if info.source_name else ""
    if item.kind in ("client", "client_changed"):
        return subject_url(info.registry, item.subject, "usage") + "#clients-title"
    if item.subject and item.kind in ("registered", "ghost"):
        return subject_url(info.registry, item.subject, version=item.version)
    if item.subject and item.kind in ("level", "mode"):
        return subject_url(info.registry, item.subject, tab="settings")
    if item.subject:
        return subject_url(info.registry, item.subject)
    return reverse("ui:policy", args=[info.registry])
