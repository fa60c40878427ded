"""The list of subjects: its filters, its two orders, and those of which nothing live is left."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from itertools import pairwise

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.models import Ownership, User
from registry.access.roles import Actor
from registry.drift.models import Cluster, Finding, Scan, Source
from registry.errors import InvalidInput
from registry.promotions.models import Environment, PromotionRequest
from registry.promotions.services import request_promotion
from registry.search.subject_list import Page, SubjectFilter, find_subjects, read_health
from registry.subjects.listing.filters import SubjectNarrowing
from registry.subjects.listing.ranked_list import subject_rows_by_name
from registry.subjects.models import Registry
from registry.subjects.services import delete_subject, register_version, set_config, set_mode, set_version_status
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-2")]

NAMES = ("b", "a", ":.x:a", "d", ":.w:z", "c", ":.x:b", ":.W:q")
IN_ORDER = ["a", "b", "c", "d", ":.W:q", ":.w:z", ":.x:a", ":.x:b"]


@pytest.fixture
def dev(registries: None, system: Actor) -> Registry:
    """Eight subjects in four contexts."""
    for name in NAMES:
        register_version(registry="dev", subject=parse_subject(name), text='"int"', by=system)
    return Registry.objects.get(name="dev")


def names_of(place: Registry, page: Page | None = None, **chosen: str) -> list[str]:
    return [row.subject.qualified for row in find_subjects(place, SubjectFilter(**chosen), page or Page()).rows]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9])
def test_by_name_pages_lead_through_all_contexts_and_back(dev: Registry, size: int) -> None:
    seen, cursor, pages = [], "", []
    while True:
        found = find_subjects(dev, SubjectFilter(sort="name"), Page(after=cursor, limit=size))
        assert found.total == len(NAMES)
        assert found.skipped == len(seen)
        seen += [row.subject.qualified for row in found.rows]
        pages.append(found)
        if not found.after:
            break
        cursor = found.after
    assert seen == IN_ORDER
    for earlier, later in pairwise(pages):
        back = find_subjects(dev, SubjectFilter(sort="name"), Page(before=later.before, limit=size))
        assert back.rows == earlier.rows
        assert (back.skipped, bool(back.before)) == (earlier.skipped, bool(earlier.before))


def test_what_comes_and_goes_moves_no_row_over_the_edge(dev: Registry, system: Actor) -> None:
    first = find_subjects(dev, SubjectFilter(sort="name"), Page(limit=2))
    register_version(registry="dev", subject=SubjectName(".", "aa"), text='"int"', by=system)
    delete_subject(registry="dev", subject=SubjectName(".", "b"), by=system)
    assert names_of(dev, Page(after=first.after, limit=2), sort="name") == ["c", "d"]


@pytest.fixture
def troubled(dev: Registry, system: Actor, person: Callable[[str], Actor]) -> Registry:
    """Of the eight one has drift, one a request that breaks, and three have an owner; three have more versions."""
    source = Source.objects.create(registry=dev, kind="registry", name="t", created_by="steward")
    now = timezone.now()
    Finding.objects.create(
        source=source, fingerprint="0" * 64, rule="x", severity="break", sentence="x", remedy="y", location="t",
        subject_name=":.x:a", evidence={}, first_seen=now, last_seen=now, count=1,
    )  # fmt: skip
    steward = person("steward")
    for name, breaking in (("c", True), ("d", False)):
        asked = request_promotion(
            source="dev", target="prod", subject=SubjectName(".", name), version=1, by=steward, reason=name
        )
        row = PromotionRequest.objects.get(pk=asked)
        PromotionRequest.objects.filter(pk=row.pk).update(plan={**row.plan, "breaking": breaking, "checks": []})
    for pattern in ("a", "b", ":.w:*", ":.x:a"):
        Ownership.objects.create(user=User.objects.get(username="steward"), subject_pattern=pattern)
    for name in ("a", "c"):
        set_config(registry="dev", subject=SubjectName(".", name), level="NONE", by=system)
        register_version(registry="dev", subject=SubjectName(".", name), text='"long"', by=system)
    return dev


BY_HEALTH = [":.x:a", "c", ":.W:q", ":.x:b", "d", "a", ":.w:z", "b"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9])
@pytest.mark.parametrize("sort", ["", "versions"])
def test_pages_by_health_and_by_versions_lead_through_all_and_back(troubled: Registry, sort: str, size: int) -> None:
    wanted = SubjectFilter(sort=sort)
    seen, cursor, pages = [], "", []
    while True:
        found = find_subjects(troubled, wanted, Page(after=cursor, limit=size))
        assert (found.total, found.skipped) == (len(NAMES), len(seen))
        seen += [row.subject.qualified for row in found.rows]
        pages.append(found)
        if not found.after:
            break
        cursor = found.after
    if sort:
        assert [row.live_versions for page in pages for row in page.rows] == [2, 2, 1, 1, 1, 1, 1, 1]
        assert seen[:2] == ["a", "c"] and sorted(seen) == sorted(NAMES)
    else:
        assert seen == BY_HEALTH
    for earlier, later in pairwise(pages):
        back = find_subjects(troubled, wanted, Page(before=later.before, limit=size))
        assert back.rows == earlier.rows
        assert (back.skipped, bool(back.before)) == (earlier.skipped, bool(earlier.before))


@pytest.mark.parametrize("sort", ["", "versions"])
@pytest.mark.parametrize("chosen", [{"text": "a"}, {"text": "nothing has this"}, {"level": "BACKWARD"}], ids=str)
def test_few_and_many_found_are_in_the_same_order(
    troubled: Registry, monkeypatch: pytest.MonkeyPatch, sort: str, chosen: dict[str, str]
) -> None:
    def pages() -> list[list[str]]:
        found, cursor = [], ""
        while True:
            page = find_subjects(troubled, SubjectFilter(sort=sort, **chosen), Page(after=cursor, limit=2))
            found.append([f"{page.skipped} of {page.total}", *(row.subject.qualified for row in page.rows)])
            if not page.after:
                return found
            cursor = page.after

    few = pages()
    monkeypatch.setattr("registry.subjects.listing.ranked_list._MOST_KEYS", 0)
    assert pages() == few


def test_the_names_are_read_once_for_a_word(troubled: Registry) -> None:
    with CaptureQueriesContext(connection) as seen:
        assert find_subjects(troubled, SubjectFilter(text="a"), Page(limit=1)).total == 2
    assert sum("LIKE UPPER" in query["sql"] for query in seen) == 1


def test_those_without_an_owner_are_looked_for_among_the_last_that_changed(
    troubled: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("registry.search.subject_list.MAX_SCANNED", 4)
    whole = find_subjects(troubled, SubjectFilter(), Page())
    assert whole.looked == 4
    seen, cursor = [], ""
    while True:
        page = find_subjects(troubled, SubjectFilter(), Page(after=cursor, limit=3))
        seen += [row.subject.qualified for row in page.rows]
        if not (cursor := page.after):
            break
    names = [row.subject.qualified for row in whole.rows]
    assert seen == names and sorted(names) == sorted(NAMES)
    assert names[:4] == [":.x:a", "c", ":.W:q", ":.x:b"], "the last that changed"
    assert names[4:] == ["a", ":.w:z", "d", "b"], "d, which nobody owns, stands among the others"
    assert find_subjects(troubled, SubjectFilter(text="a"), Page()).looked is None


def test_health_is_the_worst_and_says_the_rest(troubled: Registry, system: Actor) -> None:
    def health(place: str) -> dict[str, tuple[str, ...]]:
        here = Registry.objects.get(name=place)
        signs = read_health(here)
        return {row.subject.qualified: signs.of(row) for row in find_subjects(here, SubjectFilter(), Page()).rows}

    assert {name: signs for name, signs in health("dev").items() if signs} == {
        ":.x:a": ("drift",), "c": ("request", "unowned"), "d": ("unowned",), ":.x:b": ("unowned",), ":.W:q": ("unowned",),
    }  # fmt: skip
    Environment.objects.filter(registry__name="prod").update(is_closed=False)
    set_mode(registry="prod", subject=None, by=system, mode="READWRITE")
    for name in ("a", "d"):
        register_version(registry="prod", subject=SubjectName(".", name), text='"int"', by=system)
    set_config(registry="prod", subject=SubjectName(".", "a"), level="NONE", by=system)
    assert health("prod") == {"a": ("unchecked",), "d": ("unowned",)}


@pytest.mark.parametrize("cursor", ["x", "1.2.3", "~", "0.99999999999.1~0", "1.1.1~" + "1" * 10])
def test_a_cursor_of_another_order_is_refused(dev: Registry, cursor: str) -> None:
    for page in (Page(after=cursor), Page(before=cursor)):
        with pytest.raises(InvalidInput):
            find_subjects(dev, SubjectFilter(sort="versions"), page)


@pytest.mark.parametrize("cursor", ["x", "~", "1~", "-1~a", "1" * 10 + "~a", "1~:.x"])
def test_a_cursor_that_is_none_is_refused(dev: Registry, cursor: str) -> None:
    for page in (Page(after=cursor), Page(before=cursor)):
        with pytest.raises(InvalidInput):
            find_subjects(dev, SubjectFilter(sort="name"), page)


def test_deleted_subjects_are_found_and_others_are_not(dev: Registry, system: Actor) -> None:
    for name in ("b", ":.x:a"):
        delete_subject(registry="dev", subject=parse_subject(name), by=system)
    found = find_subjects(dev, SubjectFilter(state="deleted"), Page())
    assert [row.subject.qualified for row in found.rows] == ["b", ":.x:a"]
    assert all(row.deleted and row.live_versions == 0 and row.latest_version == 1 for row in found.rows)
    assert names_of(dev, state="deleted", text="b") == ["b"]
    assert names_of(dev, state="deleted", format="JSON") == []
    assert not {"b", ":.x:a"} & set(names_of(dev))
    delete_subject(registry="dev", subject=SubjectName(".", "b"), permanent=True, by=system)
    assert names_of(dev, state="deleted") == [":.x:a"]


@pytest.mark.parametrize("status", ["deprecated", "retired", "quarantined"])
def test_a_status_is_that_of_a_live_version(dev: Registry, system: Actor, status: str) -> None:
    for name in ("b", ":.x:a"):
        set_version_status(
            registry="dev", subject=parse_subject(name), version=1, status=status, message="use another", by=system
        )
    assert sorted(names_of(dev, state=status)) == [":.x:a", "b"]
    assert names_of(dev, state=status, sort="name") == ["b", ":.x:a"]
    delete_subject(registry="dev", subject=SubjectName(".", "b"), by=system)
    assert names_of(dev, state=status) == [":.x:a"]


def test_open_drift_and_open_requests_are_those_of_the_very_subject(
    dev: Registry, person: Callable[[str], Actor]
) -> None:
    cluster = Cluster.objects.create(name="local", bootstrap="localhost:9092", created_by="steward")
    source = Source.objects.create(
        registry=dev, kind="kafka", name="t", every_seconds=60, created_by="steward", cluster=cluster
    )
    now = timezone.now()
    scan = Scan.objects.create(source=source, state="done", queued_by="steward")
    for number, (name, state) in enumerate([("a", "open"), (":.x:b", "open"), ("c", "resolved")]):
        Finding.objects.create(
            source=source, fingerprint=str(number) * 64, rule="UNKNOWN_SCHEMA_ID", severity="break", sentence="x",
            remedy="y", location="t", subject_name=name, state=state, evidence={}, first_seen=now, last_seen=now,
            first_scan=scan, last_scan=scan, count=1,
        )  # fmt: skip
    assert names_of(dev, attention="drift", sort="name") == ["a", ":.x:b"]
    assert sorted(names_of(dev, attention="drift")) == [":.x:b", "a"]
    request_promotion(
        source="dev", target="prod", subject=SubjectName(".x", "a"), version=1, by=person("steward"), reason="first"
    )
    assert names_of(dev, attention="pending") == [":.x:a"]
    assert names_of(dev, attention="pending", text="b") == []


PATTERNS = ["a", "b*", ":.x:*", "?", "*z", "a.b", "(", "\\", "d+", "*", ":.*", ":.w:*", "?:*", "%", "_", "a?b", "?*_*"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_without_an_owner_is_whom_no_pattern_fits(dev: Registry, person: Callable[[str], Actor], pattern: str) -> None:
    person("reader")
    reader = User.objects.get(username="reader")
    assert names_of(dev, attention="unowned", sort="name") == IN_ORDER
    Ownership.objects.create(user=reader, subject_pattern=pattern)
    Ownership.objects.create(user=reader, registry="prod", subject_pattern="*")
    owned = [name for name in IN_ORDER if fnmatchcase(name, pattern)]
    rest = [name for name in IN_ORDER if name not in owned]
    assert names_of(dev, attention="unowned", sort="name") == rest
    assert sorted(names_of(dev, attention="unowned")) == sorted(rest)
    assert names_of(dev, owner="user:reader", sort="name") == owned


def test_the_level_is_found_in_both_orders(dev: Registry, system: Actor) -> None:
    set_config(registry="dev", subject=SubjectName(".x", "a"), level="FULL", by=system)
    for sort in ("", "name", "changed", "versions"):
        assert names_of(dev, level="FULL", sort=sort) == [":.x:a"]
        assert len(names_of(dev, level="BACKWARD", sort=sort)) == len(NAMES) - 1


@pytest.mark.parametrize("base", ["", "FULL", "NONE"])
def test_the_level_of_a_context_counts_before_the_registrys(dev: Registry, system: Actor, base: str) -> None:
    if base:
        set_config(registry="dev", subject=None, level=base, by=system)
    set_config(registry="dev", subject=SubjectName(".x", ""), level="NONE", by=system)
    set_config(registry="dev", subject=SubjectName(".x", "b"), level="FULL", by=system)
    set_config(registry="dev", subject=SubjectName(".", "c"), level="BACKWARD", by=system)
    shown = {row.subject.qualified: row.level for row in find_subjects(dev, SubjectFilter(sort="name"), Page()).rows}
    for level in ("NONE", "FULL", "BACKWARD", "FORWARD"):
        assert names_of(dev, level=level, sort="name") == [name for name, its in shown.items() if its == level]


def test_more_patterns_than_are_asked_one_by_one(dev: Registry, person: Callable[[str], Actor]) -> None:
    person("reader")
    reader = User.objects.get(username="reader")
    Ownership.objects.bulk_create(
        Ownership(user=reader, subject_pattern=f"{name}*") for name in ("a", ":.x:", *map(str, range(100)))
    )
    assert names_of(dev, owner="user:reader", sort="name") == ["a", ":.x:a", ":.x:b"]


@pytest.mark.parametrize("chosen", [{"state": "gone"}, {"attention": "x"}, {"sort": "size"}])
def test_a_value_that_is_none_is_named(dev: Registry, chosen: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match=r"is not a valid .* Use one of "):
        find_subjects(dev, SubjectFilter(**chosen), Page())


def test_more_subjects_and_contexts_take_no_more_queries(dev: Registry, system: Actor) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            subject_rows_by_name(dev, SubjectNarrowing(), after="1~b", limit=50)
        return len(seen)

    before = queries()
    for number in range(12):
        register_version(registry="dev", subject=SubjectName(f".n{number}", "s"), text='"int"', by=system)
    assert queries() == before


def test_programs_get_the_same_list(dev: Registry, api: Callable[[str], Client], system: Actor) -> None:
    delete_subject(registry="dev", subject=SubjectName(".", "b"), by=system)
    base = "/api/v1/registries/dev/subjects"
    first = api("reader").get(f"{base}?sort=name&limit=2").json()
    assert [row["subject"] for row in first["subjects"]] == ["a", "c"]
    assert (first["total"], first["before"]) == (7, "")
    second = api("reader").get(base, {"sort": "name", "limit": 2, "after": first["after"]}).json()
    assert [row["subject"] for row in second["subjects"]] == ["d", ":.W:q"]
    deleted = api("reader").get(f"{base}?state=deleted").json()["subjects"]
    assert [(row["subject"], row["deleted"], row["versions"]) for row in deleted] == [("b", True, {})]
    for wrong in ("state=gone", "nothing=1", "limit=0", "after=x", "format=XML"):
        assert api("reader").get(f"{base}?{wrong}").status_code in (400, 422), wrong
    assert api("stranger").get(base).status_code == 403
    assert api("reader").get("/api/v1/registries/nowhere/subjects").status_code == 404
