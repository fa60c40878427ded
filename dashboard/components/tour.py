"""The tour: what each step shows. A page of a step carries its number as `?tour=`; dashboard/home/tour.py finds the pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest
from django.urls import reverse

from dashboard.components.translation import gettext_lazy as _

PARAMETER: Final = "tour"


@dataclass(frozen=True, slots=True)
class TourStep:
    """A step: its key, its heading and what to look at on its page."""

    key: str
    title: str
    sentence: str


STEPS: Final = (
    TourStep(
        "release",
        _("A release in review"),
        _(
            "Someone asked to promote a version to another environment. The page shows what changes, whether old data"
            " and old readers still work, and who has to approve. Nothing is written before that."
        ),
    ),
    TourStep(
        "finding",
        _("A drift finding"),
        _(
            "A scan read real messages and compared them with the registered schemas. The page names the messages by"
            " offset, the probable cause, and what to do about it."
        ),
    ),
    TourStep(
        "state",
        _("A restart that would lose state"),
        _(
            "A streaming query keeps state with a schema of its own. Schemadesk reads its checkpoint and says what a"
            " restart with changed code does to that state, before anyone restarts it."
        ),
    ),
    TourStep(
        "compare",
        _("A comparison of two versions"),
        _(
            "Each change says whether it is safe for data that is already written and for consumers that are already"
            " deployed, and who has to be upgraded first."
        ),
    ),
    TourStep(
        "map",
        _("The map"),
        _(
            "What flows where: tables, connectors, topics, subjects, queries and clients, as found by scans or declared."
            " Each box leads to its page. You can also show a box with its surroundings alone."
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class TourBar:
    """The bar of a step above its page."""

    number: int
    step: TourStep

    @property
    def total(self) -> int:
        """The number of steps."""
        return len(STEPS)

    @property
    def next_url(self) -> str:
        """The address that finds the next step's page, "" after the last."""
        return reverse("ui:tour", args=[self.number + 1]) if self.number < self.total else ""


def tour_bar(request: HttpRequest) -> TourBar | None:
    """Return the bar for a page that was opened as a step of the tour."""
    text = request.GET.get(PARAMETER, "")
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 3 else 0
    return TourBar(number, STEPS[number - 1]) if 1 <= number <= len(STEPS) else None
