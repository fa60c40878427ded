"""Sample pages: what the subjects of each owner lack."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

from dashboard.components.widgets import Section
from dashboard.subjects.team_figures import DescriptionsPage, TeamRow, trend_chart
from registry.search.team_figures import DAYS, DayFigures, OwnerFigures
from tests.site.samples.cast import ARABIC, HOSTILE, LONG, frame

TODAY = date(2026, 3, 1)


def row(owner: str, name: str, *numbers: int, shown: bool = False) -> TeamRow:
    """A row of the table."""
    return TeamRow(
        kind=owner.partition(":")[0],
        name=name,
        figures=OwnerFigures(owner, *numbers),
        subjects_url="/gallery/subjects",
        no_description_url="/gallery/subjects?lacks=description",
        no_channel_url="/gallery/subjects?lacks=channel",
        trend_url="/gallery/descriptions?registry=dev",
        is_shown=shown,
    )


ALL = row("all", "All subjects", 3_204, 2_100, 3_000, 900, 51_204, 30_100, shown=True)
ROWS = (
    ALL,
    row("unowned", "No owner", 204, 0, 0, 0, 2_040, 12),
    row("group:payments", "payments", 2_000, 1_900, 2_000, 2_000, 40_000, 25_000),
    row(f"group:{HOSTILE}", HOSTILE, 12, 3, 12, 0, 0, 0),
    row(f"user:{LONG}", LONG, 1, 0, 1, 0, 7, 7),
    row(f"user:{ARABIC}", ARABIC, 987, 197, 987, 1, 9_157, 5_081),
)
DESCRIPTIONS = DescriptionsPage(
    frame=frame("Descriptions by team", Section.SUBJECTS),
    registry="dev",
    rows=ROWS,
    trend=trend_chart(
        [
            DayFigures("all", 3_000 + day, 1_500 + 7 * day, 2_500 + 5 * day, 300 + 7 * day, 50_000, 30_000 + 100 * day, day=TODAY - timedelta(days=DAYS - day))
            for day in range(12, DAYS + 1)
        ],
        ALL,
        today=TODAY,
    ),
    is_whole=True,
)  # fmt: skip
DESCRIPTIONS_NONE = replace(DESCRIPTIONS, rows=(row("all", "All subjects"), row("unowned", "No owner")), trend=None)
DESCRIPTIONS_SOME = replace(DESCRIPTIONS, rows=(ALL, ROWS[2]), trend=None, is_whole=False)
