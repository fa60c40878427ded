"""The page of what the subjects of each owner lack, and how that changes by day."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from dashboard.components.chart import Chart, ChartStep, chart_csv, step_chart
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import chosen_value, form_text, subjects_url, with_query
from dashboard.components.widgets import Frame, Section
from registry.access.permission_filters import READ, require_extent
from registry.search.subject_list import CHANNEL, DESCRIPTION
from registry.search.subject_list import UNOWNED as NO_OWNER
from registry.search.team_figures import ALL_SUBJECTS, DAYS, UNOWNED, DayFigures, OwnerFigures, days_of, team_figures
from registry.subjects.selectors import registry_names

#: the filter of the list that leaves what a row counts, for rows that aren't an owner's
_FILTERS: Final = {ALL_SUBJECTS: {}, UNOWNED: {"attention": NO_OWNER}}


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamRow:
    """The figures of an owner, `name`; the URLs list the subjects that each counts. `kind` is `all` for all subjects."""

    kind: str
    name: str
    figures: OwnerFigures
    subjects_url: str
    no_description_url: str
    no_channel_url: str
    trend_url: str
    is_shown: bool = False

    @property
    def no_description(self) -> int:
        """The number of subjects without a description."""
        return self.figures.subjects - self.figures.described

    @property
    def no_channel(self) -> int:
        """The number of subjects without a channel."""
        return self.figures.subjects - self.figures.with_channel

    @property
    def documented(self) -> str:
        """The share of documented fields."""
        return _percent(self.figures.documented, self.figures.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptionsPage:
    """What each owner's subjects lack; `trend` is that of one row. `is_whole`: the reader may read the whole registry."""

    frame: Frame
    registry: str
    rows: tuple[TeamRow, ...]
    trend: Chart | None
    is_whole: bool

    @property
    def is_empty(self) -> bool:
        """Whether there is no subject to count."""
        return not self.rows[0].figures.subjects


@require_safe
def descriptions(request: HttpRequest) -> HttpResponse:
    """Show the figures, or download the trend as CSV."""
    page = descriptions_page(request)
    if request.GET.get("as") == "csv":
        return chart_csv(page.trend, "descriptions")
    return render(request, "subjects/descriptions.html", {"page": page})


def descriptions_page(request: HttpRequest) -> DescriptionsPage:
    """Return the page of a registry. Raises NotSignedIn, NotAllowed, RegistryNotFound, InvalidInput."""
    actor = page_actor(request)
    require_extent(actor, READ)
    registry = form_text(request.GET, "registry") or next(iter(registry_names(actor)), settings.DEFAULT_REGISTRY)
    figures = team_figures(registry, by=actor)
    owner = chosen_value(request.GET, "owner", [row.owner for row in figures]) or ALL_SUBJECTS
    rows = tuple(_row(registry, row, owner) for row in figures)
    shown = next(row for row in rows if row.is_shown)
    days = days_of(registry, owner, by=actor)
    return DescriptionsPage(
        frame=make_frame(
            request, title=gettext("Descriptions by team"), section=Section.SUBJECTS, registry=registry, url_in=_url
        ),
        registry=registry,
        rows=rows,
        trend=trend_chart(days, shown, today=timezone.now().astimezone(UTC).date()),
        is_whole=require_extent(actor, READ, registry=registry).has_all_of(registry),
    )


def trend_chart(days: Iterable[DayFigures], row: TeamRow, *, today: date) -> Chart | None:
    """Draw the shares of a row's subjects and fields by week, each as of its last figures; None without any."""
    by_week = {(today - figures.day).days // 7: figures for figures in days if figures.day}  # oldest first
    weeks = reversed(range(DAYS // 7 + 1))
    steps = [ChartStep((today - timedelta(weeks=week)).isoformat(), _shares(by_week.get(week)), ()) for week in weeks]
    series = [gettext("description"), gettext("owner"), gettext("channel"), gettext("documented fields")]
    last = _shares(by_week.get(min(by_week, default=0)))
    parts = ", ".join(f"{name}: {share} %" for name, share in zip(series, last, strict=True))
    return step_chart(
        rows=steps,
        series=series,
        stacked=False,
        key="descriptions",
        title=gettext("Trend of %(name)s") % {"name": row.name},
        note=gettext("Percent of the subjects and fields that have it, by week"),
        summary=gettext("Last: %(parts)s.") % {"parts": parts},
        csv_url=f"{row.trend_url}&as=csv",
        step=gettext("Week until"),
        mark="",
    )


def _shares(figures: DayFigures | None) -> tuple[int, ...]:
    if figures is None:
        return (0, 0, 0, 0)
    parts = (figures.described, figures.owned, figures.with_channel)
    of_subjects = [100 * part // figures.subjects if figures.subjects else 0 for part in parts]
    return (*of_subjects, 100 * figures.documented // figures.fields if figures.fields else 0)


def _row(registry: str, figures: OwnerFigures, shown: str) -> TeamRow:
    kind, _, name = figures.owner.partition(":")
    names = {ALL_SUBJECTS: gettext("All subjects"), UNOWNED: gettext("No owner")}
    chosen = _FILTERS.get(figures.owner, {"owner": figures.owner})
    base = subjects_url(registry)
    return TeamRow(
        kind=kind,
        name=names.get(figures.owner, name),
        figures=figures,
        subjects_url=with_query(base, chosen),
        no_description_url=with_query(base, {**chosen, "lacks": DESCRIPTION}),
        no_channel_url=with_query(base, {**chosen, "lacks": CHANNEL}),
        trend_url=with_query(reverse("ui:descriptions"), {"registry": registry, "owner": figures.owner}),
        is_shown=figures.owner == shown,
    )


def _url(registry: str) -> str:
    return with_query(reverse("ui:descriptions"), {"registry": registry})


def _percent(part: int, whole: int) -> str:
    return f"{100 * part // whole} %" if whole else "—"
