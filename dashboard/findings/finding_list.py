"""The list of findings, its rows, and its filters with their counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import partial
from typing import Any, Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from dashboard.components.badges import BadgeState, FindingState, Severity, SourceBadge
from dashboard.components.chart import Chart, day_chart, first_day
from dashboard.components.frame import environment_of, make_frame, page_actor
from dashboard.components.links import form_text, whole_number, with_query
from dashboard.components.tables import ListFilter, active_filters, read_filters
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Environment, Frame, Link, Paging, SearchBox, Section
from dashboard.promotions.presenters import FindingOrigin
from dashboard.sources.coverage import Unreadable, clean_of, coverage_of, unreadable_of
from dashboard.sources.labels import source_badge, source_badges
from registry.access.permission_filters import extent_of, require_extent
from registry.access.roles import Actor, refusal
from registry.drift import selectors
from registry.drift.selectors import FindingGroup, FindingInfo, OpenCounts
from registry.errors import InvalidInput
from registry.promotions.hook_points import readable_findings
from registry.promotions.selectors import list_environments, resolving

FILTERS: Final = {
    item.name: item
    for item in (
        ListFilter(name="q", chip=_("text")),
        ListFilter(
            name="state",
            chip=_("state"),
            label=_("State"),
            values={
                "": _("Open"),
                "acknowledged": _("Acknowledged"),
                "resolving": _("Resolving by an open request"),
                "resolved": _("Resolved"),
                "all": _("All states"),
            },
        ),
        ListFilter(
            name="severity",
            chip=_("severity"),
            label=_("Severity"),
            values={"": _("Any severity"), **{severity.code: severity.look.word for severity in Severity}},
        ),
        ListFilter(name="kind", chip=_("kind"), label=_("Source"), values={"": _("Any source")}),
        ListFilter(name="registry", chip=_("registry"), label=_("Registry"), values={"": _("Any registry")}),
        ListFilter(name="rule", chip=_("rule"), label=_("Rule"), values={"": _("Any rule")}),
        ListFilter(name="subject", chip=_("subject")),
        ListFilter(name="topic", chip=_("topic")),
        ListFilter(name="assignee", chip=_("assigned to"), label=_("Assigned to"), values={"": _("Anybody")}),
        ListFilter(name="source", chip=_("source")),
        ListFilter(name="group", chip=_("same cause as finding")),
        ListFilter(
            name="muted",
            chip=_("muted"),
            label=_("Muted"),
            values={"": _("Excluding muted"), "only": _("Only muted"), "all": _("Including muted")},
        ),
    )
}


@dataclass(frozen=True)
class FindingFilters:
    """The filters in the URL by their names there, without empty ones."""

    values: Mapping[str, str]

    @classmethod
    def of(cls, request: HttpRequest) -> FindingFilters:
        """Read the filters from a URL. Raises InvalidInput for a value that a filter doesn't have."""
        form = request.GET.dict()
        if form_text(form, "state") == "open":
            del form["state"]  # open is the default
        values = read_filters(FILTERS.values(), form)
        if values["source"] and whole_number(values["source"]) is None:
            raise InvalidInput(gettext("“source” must be the number of a source."), field="source")
        if values["group"] and whole_number(values["group"]) is None:
            raise InvalidInput(gettext("“group” must be the number of a finding."), field="group")
        return cls({name: value for name, value in values.items() if value})

    def get(self, name: str) -> str:
        """Return the value of a filter; "" if not set."""
        return self.values.get(name, "")

    @property
    def is_resolving(self) -> bool:
        """Whether to list findings answered by an open request; the caller finds them, as this isn't a stored state."""
        return self.get("state") == "resolving"

    def arguments(self) -> dict[str, Any]:
        """Return the arguments for the selector."""
        state = self.get("state") or "open"
        return {
            "state": "" if state == "all" or self.is_resolving else state,
            "severity": self.get("severity"),
            "kind": self.get("kind"),
            "source_id": whole_number(self.get("source")),
            "registry": self.get("registry"),
            "subject": self.get("subject"),
            "topic": self.get("topic"),
            "group_of": whole_number(self.get("group")),
            "rule": self.get("rule"),
            "assigned_to": self.get("assignee"),
            "muted": {"": False, "only": True, "all": None}[self.get("muted")],
            "text": self.get("q"),
        }

    def url(self, **changes: str) -> str:
        """Return the URL of the list with these filters changed; an empty value removes one."""
        return with_query(reverse("ui:findings"), {**self.values, **changes})


def finding_search(chosen: FindingFilters, counts: OpenCounts) -> SearchBox:
    """Return the search box and filters; the counts are of open findings."""
    found = {
        "kind": {badge.code: badge.look.word for badge in source_badges()},
        "registry": _found(counts.by(3), chosen.get("registry")),
        "rule": _found(counts.by(2), chosen.get("rule")),
        "assignee": _found(counts.by(4), chosen.get("assignee")),
    }
    numbers = {
        name: counts.by(place) for place, name in enumerate(("severity", "kind", "rule", "registry", "assignee"))
    }
    return SearchBox(
        url=reverse("ui:findings"),
        query=chosen.get("q"),
        label=gettext("Search findings"),
        placeholder="orders",
        filters=tuple(
            item.select(chosen.get(name), found.get(name), partial(_count, numbers.get(name)))
            for name, item in FILTERS.items()
            if item.label
        ),
        active=active_filters(FILTERS.values(), chosen.values, lambda values: chosen.url(**values)),
    )


def _count(counts: Counter[str] | None, value: str) -> int | None:
    """Return the number of open findings with a value."""
    return counts[value] if counts is not None and value else None


def _found(counts: Counter[str], chosen: str) -> dict[str, str]:
    """Return the values of open findings, and the selected one."""
    names = {name for name in counts if name} | ({chosen} if chosen else set())
    return {name: name for name in sorted(names)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """A state with its count; `url` lists them, `current` says that the list shows them."""

    look: BadgeState | SourceBadge
    count: int
    url: str
    current: bool = False


def tallies(
    chosen: FindingFilters, name: str, looks: Iterable[BadgeState | SourceBadge], counts: Counter[str]
) -> tuple[Tally, ...]:
    """Return the counts of open findings by severity or kind, each with its list; kinds without any are omitted."""
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


RESOLVED: Final = "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRow:
    """A finding in a list, with those that probably have its cause: `numbers` are all of them.

    `requests` are open ones that answer it, `may_snooze` shows a form to acknowledge it.
    """

    info: FindingInfo
    environment: Environment
    numbers: tuple[int, ...] = ()
    requests: tuple[int, ...] = ()
    may_snooze: bool = False

    @property
    def severity(self) -> Severity:
        """The severity."""
        return Severity.of(self.info.severity)

    @property
    def state(self) -> FindingState:
        """The state."""
        return FindingState.of(self.info.state)

    @property
    def group(self) -> str:
        """The number of findings with one cause, and their title; "" for a finding on its own."""
        if len(self.numbers) < 2:
            return ""
        return gettext("%(count)s findings, probably with one cause: %(title)s") % {
            "count": f"{len(self.numbers):,}",
            "title": self.info.cause_group,
        }

    @property
    def group_url(self) -> str:
        """The list of the findings with this cause."""
        return with_query(reverse("ui:findings"), {"group": self.info.id})

    @property
    def chosen(self) -> str:
        """The numbers that the row's checkbox selects."""
        return ",".join(map(str, self.numbers or [self.info.id]))

    @property
    def sentence(self) -> str:
        """The finding's sentence, which counts the last scan's messages; it says so if all scans saw more."""
        if self.info.last_scan_count in (None, self.info.count):
            return self.info.sentence
        return gettext("In the last scan that saw it: %(sentence)s") % {"sentence": self.info.sentence}

    @property
    def kind(self) -> SourceBadge:
        """The kind of the source."""
        return source_badge(self.info.source_kind)

    @property
    def producer(self) -> str:
        """The evidence that points to a producer; "" if there is none."""
        hint = self.info.producer_hint
        if hint is None:
            return ""
        return gettext("all in partition %(partition)s of %(of)s") % {"partition": hint.partition, "of": hint.of}

    @property
    def rebaselined(self) -> str:
        """A note that a newer detector found it; "" for others."""
        if self.info.rebaselined_from is None:
            return ""
        return gettext("Re-baselined: found by detector %(detector)s; earlier scans used %(earlier)s.") % {
            "detector": self.info.detector,
            "earlier": self.info.rebaselined_from,
        }

    @property
    def resolving(self) -> list[Link]:
        """Links to the requests."""
        return [Link(label=f"#{number}", url=reverse("ui:promotion", args=[number])) for number in self.requests]


def finding_row(
    info: FindingInfo, order: list[str], requests: Iterable[int] = (), numbers: tuple[int, ...] = ()
) -> FindingRow:
    """Return a finding in a list; `requests` are open ones that answer it, ignored if it is resolved."""
    answers = () if info.state == RESOLVED else tuple(requests)
    return FindingRow(info=info, environment=environment_of(info.registry, order), requests=answers, numbers=numbers)


def finding_origin(number: int | None, actor: Actor) -> FindingOrigin | None:
    """Return the finding that a draft or a request answers; None if it is gone or the reader may not read it."""
    finding = readable_findings([number], actor).get(number or 0)
    if finding is None:
        return None
    return FindingOrigin(
        url=reverse("ui:finding", args=[finding.id]),
        sentence=finding.sentence,
        severity=Severity.of(finding.severity),
        state=FindingState.of(finding.state),
    )


PAGE: Final = 50
MOST: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingList:
    """The list of findings.

    If there are none, `clean` says what was scanned and when, and `next_scan_at` the next scan. If nothing was scanned,
    `clean` is "" and the page says "not scanned" instead of showing green. The tallies count open findings. `refused`
    says why the reader may not decide on several, which returns to `back`.
    """

    frame: Frame
    search: SearchBox
    rows: tuple[FindingRow, ...]
    paging: Paging
    clean: str = ""
    clean_at: datetime | None = None
    next_scan_at: datetime | None = None
    coverage: str = ""
    unreadable: tuple[Unreadable, ...] = ()
    by_severity: tuple[Tally, ...] = ()
    by_kind: tuple[Tally, ...] = ()
    muted: int = 0
    muted_url: str = ""
    refused: str = ""
    back: str = ""
    over_time: Chart | None = None


def over_time(actor: Actor) -> Chart | None:
    """Return the findings that began and that were resolved by day."""
    today = timezone.now().astimezone(UTC).date()
    begin = datetime.combine(first_day(today), time.min, tzinfo=UTC)
    return day_chart(
        key="findings",
        title=gettext("Findings over time"),
        note=gettext("First seen and resolved, by day (UTC)"),
        series=[gettext("first seen"), gettext("resolved")],
        values=selectors.findings_by_day(actor, since=begin),
        today=today,
        csv_url=f"{reverse('ui:findings')}?as=csv",
        stacked=False,
    )


def _groups(query: Mapping[str, Any], offset: int, actor: Actor) -> list[FindingGroup]:
    """Return a page of findings and one more: grouped by cause, or those of one cause each on its own."""
    if query["group_of"] is None:
        return selectors.list_finding_groups(**query, offset=offset, limit=PAGE + 1, by=actor)
    findings = selectors.list_findings(**query, limit=offset + PAGE + 1, by=actor)
    return [FindingGroup(info, (info.id,)) for info in findings[offset:]]


def finding_list(request: HttpRequest) -> FindingList:
    """Return the findings that the reader may read, filtered by the query; by default open and not muted.

    Raises NotAllowed.
    """
    chosen = FindingFilters.of(request)
    registry, actor = chosen.get("registry"), page_actor(request)
    require_extent(actor, "schema.read", registry=registry)
    offset = min(whole_number(request.GET.get("offset", "")) or 0, MOST - PAGE) // PAGE * PAGE
    arguments = chosen.arguments()
    if chosen.is_resolving:
        arguments["unresolved_of"] = resolving(actor)
    groups = _groups(arguments, offset, actor)
    page = groups[:PAGE]
    requests = resolving(actor, [group.worst.id for group in page])
    counts = selectors.open_counts(registry, by=actor)
    order, sources = list_environments(), selectors.list_sources(registry=registry, by=actor)
    topics = selectors.topic_coverage([source.id for source in sources])
    scanned = [source.last_ended for source in sources if source.last_ended and source.last_ended.verdict == "scanned"]
    newest = max((scan.finished_at for scan in scanned if scan.finished_at), default=None)
    return FindingList(
        frame=make_frame(request, title=gettext("Findings"), section=Section.FINDINGS, order=order),
        search=finding_search(chosen, counts),
        rows=tuple(finding_row(group.worst, order, requests.get(group.worst.id, ()), group.numbers) for group in page),
        paging=Paging(
            first=offset + 1 if page else 0,
            last=offset + len(page),
            total=None if len(groups) > PAGE else offset + len(page),
            previous_url=chosen.url(offset=str(offset - PAGE) if offset > PAGE else "") if offset else "",
            next_url=chosen.url(offset=str(offset + PAGE)) if len(groups) > PAGE and offset + PAGE < MOST else "",
        ),
        clean=clean_of(scanned),
        clean_at=newest,
        next_scan_at=min((source.next_scan_at for source in sources if source.next_scan_at), default=None),
        coverage=coverage_of(sources, topics),
        unreadable=unreadable_of(sources, topics),
        by_severity=tallies(chosen, "severity", Severity, counts.by(0)),
        by_kind=tallies(chosen, "kind", source_badges(), counts.by(1)),
        muted=counts.muted,
        muted_url=chosen.url(muted="only"),
        refused=""
        if extent_of(actor, "finding.decide").within(registry).parts
        else refusal(actor, "finding.decide", registry=registry),
        back=chosen.url(offset=str(offset) if offset else ""),
        over_time=None if request.GET else over_time(actor),
    )
