"""What the subjects of each owner have: the figures agree with the lists that they lead to, and with what one may read."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from registry.access.models import Ownership, User
from registry.access.roles import Actor
from registry.access.services import set_group_channel
from registry.errors import InvalidInput, NotAllowed, NotSignedIn
from registry.search import services, tasks, team_figures
from registry.search.models import TeamFigure
from registry.search.subject_list import Page, SubjectFilter, find_subjects
from registry.search.team_figures import DAYS, DayFigures, OwnerFigures, days_of, keep_figures
from registry.subjects.lifecycle.glossary import set_field_term, set_term
from registry.subjects.models import Registry
from registry.subjects.services import delete_subject, register_version, set_note
from registry.subjects.versions.qualified_names import parse_subject

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-4")]
FIELDS = [
    {"name": "id", "type": "long", "doc": "Unique."},
    {"name": "total", "type": "double"},
    {"name": "at", "type": "long"},
]
TEXT = json.dumps({"type": "record", "name": "Order", "fields": FIELDS})


@pytest.fixture
def dev(registries: None, system: Actor, person: Callable[[str], Actor]) -> Registry:
    """Three subjects of a group with a channel, of which a person owns one, and one of nobody; and a deleted one."""
    for name in ("orders.a", "orders.b", ":.crm:orders.c", "spare_", "gone"):
        register_version(
            registry="dev", subject=parse_subject(name), text=TEXT if "orders" in name else '"int"', by=system
        )
    delete_subject(registry="dev", subject=parse_subject("gone"), by=system)
    register_version(registry="staging", subject=parse_subject("orders.a"), text=TEXT, by=system)
    person("reader")
    group, silent = (Group.objects.create(name=name) for name in ("team", "silent"))
    reader = User.objects.get(username="reader")
    for pattern, owner in {
        "*orders.?": {"group": group},
        "orders.a": {"user": reader},
        "no-*": {"group": silent},
    }.items():
        Ownership.objects.create(subject_pattern=pattern, **owner)
    set_group_channel(group="team", channel="#team", by=system)
    set_note(registry="dev", subject=parse_subject("orders.a"), tags=[], doc="Orders.", expected="*", by=system)
    set_note(
        registry="dev", subject=parse_subject("spare_"), tags=[], doc="", channel="#spare", expected="*", by=system
    )
    set_term(name="Net revenue", doc="Without tax.", by=system)
    for path in ("Order.total", "Order.id"):
        set_field_term(registry="dev", subject=parse_subject("orders.b"), path=path, term="Net revenue", by=system)
    services.index_stale()
    return Registry.objects.get(name="dev")


def figures(by: Actor) -> dict[str, OwnerFigures]:
    return {row.owner: row for row in team_figures.team_figures("dev", by=by)}


def test_the_figures_of_each_owner(dev: Registry, system: Actor) -> None:
    assert list(figures(system).values()) == [
        OwnerFigures("all", 4, 1, 3, 4, 9, 4),
        OwnerFigures("unowned", 1, 0, 0, 1, 0, 0),
        OwnerFigures("group:silent", 0, 0, 0, 0, 0, 0),
        OwnerFigures("group:team", 3, 1, 3, 3, 9, 4),
        OwnerFigures("user:reader", 1, 1, 1, 1, 3, 1),
    ]


def test_a_figure_is_what_the_list_has(dev: Registry, system: Actor) -> None:
    set_group_channel(group="team", channel="", by=system)

    def total(owner: str, **more: Any) -> int:
        chosen = {"all": {}, "unowned": {"attention": "unowned"}}.get(owner, {"owner": owner})
        return find_subjects(dev, SubjectFilter(**chosen, **more), Page()).total

    rows = figures(system)
    assert {
        owner: (row.subjects, row.subjects - row.described, row.subjects - row.with_channel)
        for owner, row in rows.items()
    } == {owner: (total(owner), total(owner, lacks="description"), total(owner, lacks="channel")) for owner in rows}
    assert rows["all"].with_channel == 1
    with pytest.raises(InvalidInput, match="not a valid lacks"):
        total("all", lacks="docs")


def test_it_takes_as_many_queries_for_many_owners(dev: Registry, system: Actor) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            figures(system)
        return len([query for query in seen if "SAVEPOINT" not in query["sql"]])

    # the registry, the owners, and the figures between two statements that limit their time
    assert queries() == 5
    for number in range(30):
        group = Group.objects.create(name=f"g{number}")
        Ownership.objects.create(subject_pattern=f"*{number}*", group=group)
    assert queries() == 5


def test_only_what_one_may_read_is_counted(dev: Registry, limited: Callable[..., Actor]) -> None:
    some = limited(("dev", "orders.b"))
    assert figures(some) == {
        "all": OwnerFigures("all", 1, 0, 1, 1, 3, 2),
        "unowned": OwnerFigures("unowned"),
        "group:team": OwnerFigures("group:team", 1, 0, 1, 1, 3, 2),
    }
    keep_figures()
    assert days_of("dev", "all", by=some) == ()
    with pytest.raises(NotAllowed):
        team_figures.team_figures("staging", by=some)
    with pytest.raises(NotSignedIn):
        days_of("dev", "all", by=Actor("", "ui"))


def test_a_task_keeps_the_figures_once_a_day(dev: Registry, system: Actor) -> None:
    tasks.sweep_index()
    kept = TeamFigure.objects.count()
    assert keep_figures() == 0, "each registry has those of today"
    assert TeamFigure.objects.count() == kept
    (today,) = days_of("dev", "group:team", by=system)
    assert today == DayFigures("group:team", 3, 1, 3, 3, 9, 4, day=today.day)
    assert [row.subjects for row in days_of("staging", "all", by=system)] == [1]
    assert days_of("dev", "group:nobody", by=system) == ()


def test_old_days_are_left_out_and_then_removed(dev: Registry, system: Actor) -> None:
    keep_figures()
    row = TeamFigure.objects.get(registry_id=dev.pk, owner="all")
    for days in (DAYS - 1, DAYS, team_figures.KEPT_DAYS, team_figures.KEPT_DAYS + 1):
        row.pk, row.day = None, row.day - timedelta(days=days)
        row.save(force_insert=True)
        row.day += timedelta(days=days)
    assert len(days_of("dev", "all", by=system)) == 2
    keep_figures()
    assert TeamFigure.objects.filter(registry_id=dev.pk, owner="all").count() == 4


def test_a_registry_that_takes_too_long_is_left_out(
    dev: Registry, system: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(team_figures, "_FIGURES", f"SELECT pg_sleep(1) FROM ({team_figures._FIGURES}) slow")
    monkeypatch.setattr(team_figures, "_SECONDS", 0.05)
    monkeypatch.setattr(team_figures, "_TASK_SECONDS", 0.05)
    with pytest.raises(InvalidInput, match="too many subjects and owners"):
        figures(system)
    assert keep_figures() == 0
    assert not TeamFigure.objects.exists()


def test_the_api_gives_the_same(dev: Registry, system: Actor, api: Callable[[str], Client]) -> None:
    keep_figures()
    client, address = api("reader"), "/api/v1/registries/dev/team-figures"
    answer = client.get(f"{address}?owner=group:team").json()
    assert [OwnerFigures(**row) for row in answer["owners"]] == list(figures(system).values())
    assert [row["subjects"] for row in answer["days"]] == [3]
    listed = client.get("/api/v1/registries/dev/subjects?owner=group:team&lacks=description").json()
    assert sorted(row["subject"] for row in listed["subjects"]) == [":.crm:orders.c", "orders.b"]
    assert client.get("/api/v1/registries/nowhere/team-figures").status_code == 404
    assert client.get(f"{address}?at=2026-01-01T00:00:00Z").status_code in (400, 422)


PAGE = "/ui/descriptions"


def test_the_page_leads_to_the_lists_and_shows_the_trend(dev: Registry, look: Callable[[str], Client]) -> None:
    client = look("reader")
    assert "No trend yet" in client.get(PAGE).content.decode()
    keep_figures()
    page = client.get(f"{PAGE}?owner=group:team")
    rows = page.context["page"].rows
    assert [(row.name, row.kind, row.no_description, row.no_channel, row.documented) for row in rows] == [
        ("All subjects", "all", 3, 0, "44 %"),
        ("No owner", "unowned", 1, 0, "—"),
        ("silent", "group", 0, 0, "—"),
        ("team", "group", 2, 0, "44 %"),
        ("reader", "user", 0, 0, "33 %"),
    ]
    for row in rows:
        for url, number in ((row.subjects_url, row.figures.subjects), (row.no_description_url, row.no_description), (row.no_channel_url, row.no_channel)):  # fmt: skip
            assert client.get(url).context["page"].paging.total == number, url
    assert "Trend of team" in page.content.decode()
    lines = client.get(f"{PAGE}?registry=dev&owner=group:team&as=csv").content.decode().splitlines()
    assert (lines[0], lines[1].split(",")[1:5]) == (
        "day,description,owner,channel,documented fields,marks",
        ["33", "100", "100", "44"],
    )
    assert client.get(f"{PAGE}?owner=group:nobody").status_code == 422
    assert client.get(f"{PAGE}?registry=nowhere").status_code == 404
    assert client.get(f"{PAGE}?at=2026-01-01T00:00:00Z").status_code == 422


def test_the_page_takes_as_many_queries_for_many_owners(
    dev: Registry, look: Callable[[str], Client], django_assert_max_num_queries
) -> None:
    client = look("reader")
    keep_figures()
    client.get(PAGE)
    for _ in range(2):
        with django_assert_max_num_queries(18):
            client.get(PAGE)
        for number in range(30):
            Ownership.objects.get_or_create(
                subject_pattern=f"*{number}*", group=Group.objects.get_or_create(name=f"g{number}")[0]
            )
