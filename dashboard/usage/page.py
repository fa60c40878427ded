"""The page of a subject's usage: versions in use, whether they can be retired, and clients."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext

from dashboard.components.chart import Chart, day_chart, first_day
from dashboard.components.frame import page_actor, subject_frame
from dashboard.components.links import subject_url
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Frame, Problem
from dashboard.sources.labels import format_duration
from dashboard.usage.forms import DeclareClientForm
from registry.access.roles import refusal
from registry.drift.usage.retirement import SubjectRetirement, retirement_of
from registry.drift.usage.retirement_rules import Retirement
from registry.drift.usage.version_usage import (
    Coverage,
    PartitionUse,
    SubjectUse,
    TopicUse,
    VersionUse,
    traffic_by_day,
    versions_by_day,
)
from registry.subjects.models import Registry
from registry.subjects.usage.clients import ACTION, ClientInfo, clients_of
from registry.subjects.usage.evidence import Evidence
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

#: clients on the page
SHOWN: Final = 100
SHOWN_TOPICS: Final = 50
SHOWN_PARTITIONS: Final = 50
#: topics of a version, and scanned topics, shown before the rest is expanded
TOPICS: Final = 6
COVERED: Final = 12
FRAMINGS: Final = {"id": _("schema id"), "guid": _("GUID"), "content_type": _("content type")}


@dataclass(frozen=True, slots=True)
class TopicRow:
    """Messages in keys or values of a topic that name the version."""

    info: TopicUse

    @property
    def mark(self) -> str:
        """How messages name the schema."""
        return f"{FRAMINGS.get(self.info.framing, self.info.framing)} {self.info.mark}"

    @property
    def share(self) -> str:
        """The share of the topic's messages, in words."""
        share = self.info.share
        if share is None:
            return gettext("unknown")
        if 0 < share < 0.001:
            return gettext("under 0.1 %")
        return "100 %" if share == 1 else f"{share * 100:.1f} %"

    @property
    def percent(self) -> int:
        """The share for the bar."""
        return 0 if self.info.share is None else max(1, round(self.info.share * 100))

    @property
    def partitions(self) -> tuple[PartitionUse, ...]:
        """The partitions to show."""
        return self.info.partitions[:SHOWN_PARTITIONS]

    @property
    def hidden(self) -> int:
        """The number of omitted partitions."""
        return max(0, len(self.info.partitions) - SHOWN_PARTITIONS)


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """A topic that the answer is based on."""

    info: Coverage

    @property
    def is_known(self) -> bool:
        """Whether it was read completely: every partition from its first offset."""
        topic = self.info
        if topic.problem or topic.gone_at is not None or topic.read_at is None:
            return False
        return len(topic.read_from) >= topic.partitions and not any(offset > 0 for offset in topic.read_from.values())

    @property
    def keeps(self) -> str:
        """The retention in words."""
        retention = self.info.retention_ms
        if self.info.compacted:
            return gettext("compacted")
        if retention is None:
            return gettext("unknown")
        return gettext("unlimited") if retention < 0 else format_duration(max(1, retention // 1000))


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A version: whether it can be retired, and the three kinds of evidence."""

    use: VersionUse
    retirement: Retirement
    evidence: tuple[Evidence, ...] = ()

    @property
    def state(self) -> list[Evidence]:
        """The evidence from state of queries."""
        return [item for item in self.evidence if item.kind == "state"]

    @property
    def clients(self) -> list[Evidence]:
        """The evidence from clients."""
        return [item for item in self.evidence if item.kind == "clients"]

    @property
    def topics_shown(self) -> list[TopicRow]:
        """The topics that are always shown."""
        return list(map(TopicRow, self.use.topics[:TOPICS]))

    @property
    def topics_folded(self) -> list[TopicRow]:
        """The topics that are collapsed."""
        return list(map(TopicRow, self.use.topics[TOPICS:SHOWN_TOPICS]))

    @property
    def topics_hidden(self) -> int:
        """The number of omitted topics."""
        return max(0, len(self.use.topics) - SHOWN_TOPICS) + self.use.topics_hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class UsagePage:
    """The usage of a subject's versions, newest first, and its clients with a form to declare one.

    `is_asked`: the clusters were queried now; otherwise only scan results are used.
    """

    frame: Frame
    retirement: SubjectRetirement
    clients: tuple[ClientInfo, ...]
    form: DeclareClientForm
    refused: str = ""
    is_asked: bool = False
    hidden_clients: int = 0
    traffic: Chart | None = None

    @property
    def versions(self) -> list[VersionRow]:
        """The versions with their evidence."""
        whole = self.retirement
        return [
            VersionRow(use, whole.versions[use.version], whole.evidence.get(use.version, ()))
            for use in reversed(whole.use.versions)
        ]

    @property
    def coverage_shown(self) -> list[CoverageRow]:
        """The topics that are always shown."""
        return list(map(CoverageRow, self.retirement.use.coverage[:COVERED]))

    @property
    def coverage_folded(self) -> list[CoverageRow]:
        """The topics that are collapsed."""
        return list(map(CoverageRow, self.retirement.use.coverage[COVERED:]))

    @property
    def data_as_of(self) -> datetime | None:
        """The oldest of the last scan times of the subject's topics; None without a scan."""
        read = [topic for topic in self.retirement.use.coverage if topic.is_own and topic.read_at]
        return min((topic.checked_at for topic in read if topic.checked_at), default=None)

    @property
    def api(self) -> str:
        """The API path where a program declares itself."""
        registry, subject = (
            quote(name, safe="") for name in (self.retirement.use.registry, self.retirement.use.subject)
        )
        return f"/api/v1/registries/{registry}/subjects/{subject}/clients/NAME"

    @property
    def problems(self) -> list[Problem]:
        """The clusters that didn't answer."""
        return [
            Problem(
                what=gettext("Some sources couldn’t be checked: %(problem)s") % {"problem": problem},
                cure=gettext("Results of the last scans are used instead."),
            )
            for problem in self.retirement.problems
        ]


def usage_page(request: HttpRequest, registry: str, subject: str, sent: DeclareClientForm | None = None) -> UsagePage:
    """Return the usage of a subject's versions; with `ask=1`, the clusters are queried, for a few seconds each.

    `sent` is a refused form. Raises SubjectNotFound, RegistryNotFound.
    """
    registry_row, name, actor = get_registry(registry), parse_subject(subject), page_actor(request)
    is_asked = request.GET.get("ask") == "1"
    retirement = retirement_of(registry_row, name, by=actor, ask=is_asked)
    clients, form = clients_of(registry_row, name), sent or DeclareClientForm()
    form.offer_versions(use.version for use in retirement.use.versions if not use.deleted)
    return UsagePage(
        frame=subject_frame(
            request, registry_row.name, name, "usage", title=gettext("Use of %(name)s") % {"name": name.qualified}
        ),
        retirement=retirement,
        clients=tuple(clients[:SHOWN]),
        hidden_clients=max(0, len(clients) - SHOWN),
        form=form,
        refused=refusal(actor, ACTION, registry=registry_row.name, subject=name.qualified),
        is_asked=is_asked,
        traffic=traffic_chart(registry_row, name, retirement.use),
    )


def traffic_chart(registry: Registry, name: SubjectName, use: SubjectUse) -> Chart | None:
    """Return the messages of each version by day, with the days on which versions were registered; two queries."""
    today = timezone.now().astimezone(UTC).date()
    since = first_day(today)
    counts = traffic_by_day(use, since=since)
    numbers = sorted({number for day in counts.values() for number in day}, reverse=True)
    registered = versions_by_day(registry, name, since=since) if numbers else {}
    marks = {
        day: [gettext("version %(version)s registered") % {"version": version} for version in versions]
        for day, versions in registered.items()
    }
    return day_chart(
        key="traffic",
        title=gettext("Versions in traffic"),
        note=gettext("Messages that scans decoded, by the day of the scan"),
        series=[gettext("version %(version)s") % {"version": number} for number in numbers],
        values={day: [row.get(number, 0) for number in numbers] for day, row in counts.items()},
        today=today,
        marks=marks,
        csv_url=subject_url(registry.name, name.qualified, "usage", as_="csv"),
    )
