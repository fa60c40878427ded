"""The world of the samples: one moment, three environments, a handful of people, one hostile name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlencode

from dashboard.components.badges import EnvironmentKind
from dashboard.components.widgets import Crumb, Environment, Frame, Section, SubPage

NOW = datetime(2026, 11, 21, 14, 30, 12, tzinfo=UTC)
HOSTILE = '<img src=x onerror="alert(1)"> "quoted" \u202eevil\u202c {{ 7*7 }}'
ARABIC = "طلبات-العملاء-value"
LONG = "com.example.logistics.warehouse.inventory.reconciliation.events.v2.StockLevelAdjustmentRequested-" + "x" * 200


def ago(**parts: float) -> datetime:
    """A moment before the samples' now."""
    return NOW - timedelta(**parts)


def places(current: str | None = "dev") -> tuple[Environment, ...]:
    """The three environments, one of them looked at."""
    kinds = {
        "dev": EnvironmentKind.DEVELOPMENT,
        "staging": EnvironmentKind.STAGING,
        "prod": EnvironmentKind.PRODUCTION,
    }
    return tuple(
        Environment(name=name, kind=kind, url=f"/ui/registries/{name}/subjects", current=name == current)
        for name, kind in kinds.items()
    )


DEV, STAGING, PROD = places(None)
PARTS = ("Versions", "Compare", "Check", "Usage", "References", "Drift", "Requests", "Activity")


def frame(
    title: str,
    section: Section,
    *crumbs: Crumb,
    current: str | None = "dev",
    code: bool = False,
    busy: bool = True,
    part: str = "",
) -> Frame:
    """The frame of a sample page; `part` is the one that it is of the pages about a subject."""
    return Frame(
        title=title,
        now=NOW,
        section=section,
        crumbs=crumbs,
        code=code,
        parts=tuple(SubPage(label=label, url="/gallery/subject", current=label == part) for label in PARTS if part),
        environments=places(current),
        open_findings=5 if busy else 0,
        waiting_requests=2 if busy else 0,
    )


def subject_crumbs(registry: str = "dev") -> tuple[Crumb, ...]:
    """The way to a subject."""
    return (Crumb(label="Subjects", url=f"/ui/registries/{registry}/subjects"),)


def subject_url(registry: str, subject: str, page: str = "", **query: object) -> str:
    """The address of a sample subject, without asking which addresses the site has."""
    given = urlencode({name.rstrip("_"): value for name, value in query.items()})
    return f"/ui/registries/{registry}/subjects/{quote(subject, safe='')}/{page}" + (f"?{given}" if given else "")
