"""The filters of the list of findings: from the address, to choices with their counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.pages.numbers import whole_number
from dashboard.pages.sources_words import given_text
from dashboard.presenters.drift_parts import Tally
from dashboard.presenters.frame import ActiveFilter, Choice, Filter, Search
from dashboard.presenters.looks import Severity, Shown, SourceKind
from dashboard.texts import later
from registry.drift.selectors import OpenCounts

STATES: Final = {
    "": later("Open"),
    "acknowledged": later("Acknowledged"),
    "resolving": later("Resolving, by an open request"),
    "resolved": later("Resolved"),
    "all": later("All states"),
}
MUTED: Final = {"": later("Without muted"), "only": later("Muted alone"), "all": later("With muted")}
#: name in the address → the name that a chip shows
NAMES: Final = {
    "q": later("text"),
    "state": later("state"),
    "severity": later("severity"),
    "kind": later("kind"),
    "registry": later("registry"),
    "rule": later("rule"),
    "subject": later("subject"),
    "topic": later("topic"),
    "assignee": later("assigned to"),
    "source": later("source"),
    "muted": later("muted"),
}


@dataclass(frozen=True)
class Chosen:
    """What the address asks for, each value by its name there; empty ones aren't in it."""

    values: Mapping[str, str]

    @classmethod
    def of(cls, request: HttpRequest) -> Chosen:
        """The filters of an address; values that a filter can't have count as none."""
        given = {name: given_text(request.GET, name)[:300] for name in NAMES}
        allowed = {"state": STATES, "muted": MUTED, "severity": {each.code for each in Severity}}
        for name, known in allowed.items():
            if given[name] not in known:
                given[name] = ""
        if whole_number(given["source"]) is None:
            given["source"] = ""
        return cls({name: value for name, value in given.items() if value})

    def get(self, name: str) -> str:
        """One of them; empty where it isn't chosen."""
        return self.values.get(name, "")

    @property
    def is_resolving(self) -> bool:
        """Whether those are asked for that an open request answers: no state of their own, so that the caller finds them."""
        return self.get("state") == "resolving"

    def arguments(self) -> dict[str, Any]:
        """As the selector takes them."""
        state = self.get("state") or "open"
        return {
            "state": "" if state == "all" or self.is_resolving else state,
            "severity": self.get("severity"),
            "kind": self.get("kind"),
            "source_id": whole_number(self.get("source")),
            "registry": self.get("registry"),
            "subject": self.get("subject"),
            "topic": self.get("topic"),
            "rule": self.get("rule"),
            "assigned_to": self.get("assignee"),
            "muted": {"": False, "only": True, "all": None}[self.get("muted")],
            "text": self.get("q"),
        }

    def url(self, **changes: str) -> str:
        """The list with these filters changed; an empty value takes one out."""
        values = {name: value for name, value in {**self.values, **changes}.items() if value}
        base = reverse("ui:findings")
        return f"{base}?{urlencode(values)}" if values else base


def finding_search(chosen: Chosen, counts: OpenCounts) -> Search:
    """The search box and filters; numbers beside the choices are of open findings."""
    filters = (
        _filter(chosen, "state", gettext("State"), STATES),
        _filter(
            chosen, "severity", gettext("Severity"), {"": gettext("Any severity"), **_words(Severity)}, counts.by(0)
        ),
        _filter(chosen, "kind", gettext("Source"), {"": gettext("Any source"), **_words(SourceKind)}, counts.by(1)),
        _filter(
            chosen,
            "registry",
            gettext("Registry"),
            _of(gettext("Any registry"), counts.by(3), chosen.get("registry")),
            counts.by(3),
        ),
        _filter(
            chosen, "rule", gettext("Rule"), _of(gettext("Any rule"), counts.by(2), chosen.get("rule")), counts.by(2)
        ),
        _filter(
            chosen,
            "assignee",
            gettext("Assigned to"),
            _of(gettext("Anybody"), counts.by(4), chosen.get("assignee")),
            counts.by(4),
        ),
        _filter(chosen, "muted", gettext("Muted"), MUTED),
    )
    return Search(
        url=reverse("ui:findings"),
        query=chosen.get("q"),
        label=gettext("Search findings"),
        placeholder="orders",
        filters=filters,
        active=tuple(
            ActiveFilter(label=f"{NAMES[name]}: {value}", url=chosen.url(**{name: ""}))
            for name, value in chosen.values.items()
        ),
    )


def _words(looks: Iterable[Shown]) -> dict[str, str]:
    return {each.code: each.look.word for each in looks}


def _of(anything: str, counts: Counter[str], chosen: str) -> dict[str, str]:
    """The values that open findings have, and the chosen one."""
    names = {name for name in counts if name} | ({chosen} if chosen else set())
    return {"": anything, **{name: name for name in sorted(names)}}


def _filter(
    chosen: Chosen, name: str, label: str, values: Mapping[str, str], counts: Counter[str] | None = None
) -> Filter:
    return Filter(
        name=name,
        label=label,
        choices=tuple(
            Choice(
                value=value,
                label=words,
                selected=value == chosen.get(name),
                count=counts[value] if counts is not None and value else None,
            )
            for value, words in values.items()
        ),
    )


def tallies(chosen: Chosen, name: str, looks: Iterable[Shown], counts: Counter[str]) -> tuple[Tally, ...]:
    """Open findings by severity or by kind, each with the list that shows them; kinds without any are left out."""
    return tuple(
        Tally(
            look=look,
            count=counts[look.code],
            url=chosen.url(**{name: "" if chosen.get(name) == look.code else look.code}),
            current=chosen.get(name) == look.code,
        )
        for look in looks
        if counts[look.code] or name == "severity"
    )
