"""The board: what differs between environments, what is known ahead, and what it costs."""

from __future__ import annotations

import itertools
import random
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.models import RoleGrant, User
from registry.access.roles import Actor, Grant, TokenLimit
from registry.drift.models import Finding, Source
from registry.errors import InvalidInput, InvalidName, NotAllowed
from registry.formats.base import Reference
from registry.promotions import services
from registry.promotions.board.readiness import environments_in_order, refresh_outlooks, work_out
from registry.promotions.board.rows import FILTERS, Board, BoardCell, board_rows
from registry.promotions.models import Environment, FreezeWindow, PromotionOutlook
from registry.promotions.selectors import environment_infos, environment_rows
from registry.promotions.tasks import refresh_outlooks as task
from registry.subjects.models import Association, Config, Registry, SchemaVersion, Subject, VersionStatus
from registry.subjects.services import delete_version, register_version, set_config, set_mode
from registry.subjects.versions.qualified_names import SubjectName
from tests.promotions.factories import record

pytestmark = [pytest.mark.requirement("CARD-4"), pytest.mark.django_db]

ORDERS, MONEY, SALES = (
    SubjectName(".", "orders-value"),
    SubjectName(".", "money"),
    SubjectName(".sales", "orders-value"),
)
V1, V2, OTHER = record(id="long"), record(id="long", note="string?"), record(other="int")


def register(text: str, by: Actor, registry: str = "dev", subject: SubjectName = ORDERS, **more: Any) -> None:
    register_version(registry=registry, subject=subject, text=text, by=by, release=True, **more)


def cells(board: Board, subject: SubjectName = ORDERS) -> dict[str, BoardCell]:
    (row,) = [row for row in board.rows if row.subject == subject]
    return {cell.place: cell for cell in row.cells}


def verdicts(by: Actor, subject: SubjectName = ORDERS) -> list[str]:
    return [cell.verdict for cell in cells(board_rows(by=by), subject).values()]


def names(board: Board) -> list[str]:
    return [row.subject.qualified for row in board.rows]


def test_a_cell_says_what_differs_from_the_environment_before_it(registries: None, system: Actor) -> None:
    register(OTHER, system, subject=MONEY)
    register(V1, system)
    register(V2, system)
    register(V1, system, "staging")
    register(V2, system, "prod")
    found = cells(board_rows(by=system))
    assert [(cell.version, cell.behind, cell.wanted) for cell in found.values()] == [
        (2, False, 0),
        (1, True, 2),
        (1, True, 1),
    ]
    assert [cell.other_content for cell in found.values()] == [(), (), (1,)]
    assert [cell.id_differs for cell in found.values()] == [False, True, False]
    assert [place.name for place in board_rows(by=system).environments] == ["dev", "staging", "prod"]


def test_a_target_that_was_rolled_back_is_behind(registries: None, system: Actor) -> None:
    for registry in ("dev", "staging"):
        register(V1, system, registry)
        register(V2, system, registry)
    assert names(board_rows(by=system, filters=["behind"])) == ["orders-value"], "prod has nothing yet"
    register(V1, system, "prod")
    register(V2, system, "prod")
    assert names(board_rows(by=system, filters=["behind"])) == []
    again = {"metadata": {"properties": {"again": "1"}}}
    register(V1, system, "prod", **again)
    prod = cells(board_rows(by=system))["prod"]
    assert (prod.version, prod.behind, prod.wanted, prod.rolled_back) == (3, True, 2, 2)
    assert names(board_rows(by=system, filters=["behind"])) == ["orders-value"]
    refresh_outlooks()
    assert names(board_rows(by=system, filters=["behind"])) == ["orders-value"], "so do the stored marks"
    prod = cells(board_rows(by=system))["prod"]
    assert (prod.verdict, [reason["code"] for reason in prod.reasons]) == ("no", ["rolled-back"])
    for registry in ("dev", "staging"):
        register(V1, system, registry, **again)
    assert names(board_rows(by=system, filters=["behind"])) == [], "all went back to the same schema"


def test_a_target_with_a_schema_that_the_source_never_had_is_not_behind(registries: None, system: Actor) -> None:
    register(V1, system)
    register(V1, system, "staging")
    register(V2, system, "staging")
    assert not cells(board_rows(by=system))["staging"].behind


def test_a_quarantined_version_is_not_the_one_that_is_wanted(registries: None, system: Actor) -> None:
    register(V1, system)
    register(V2, system)
    row = SchemaVersion.objects.get(version=2)
    VersionStatus.objects.create(version=row, status="quarantined", message="?", decided_by="tests")
    register(V1, system, "staging")
    found = cells(board_rows(by=system))
    assert (found["dev"].version, found["staging"].wanted, found["staging"].behind) == (2, 1, False)
    assert names(board_rows(by=system, filters=["behind"])) == ["orders-value"], "prod has nothing yet"
    register(V1, system, "prod")
    assert names(board_rows(by=system, filters=["behind"])) == []


MARKS: dict[str, Callable[[BoardCell], bool]] = {
    "behind": lambda cell: cell.behind,
    "blocked": lambda cell: cell.verdict == "no",
    "id differs": lambda cell: cell.id_differs,
    "different content": lambda cell: bool(cell.other_content),
}


def filtered_as_marked(by: Actor) -> Board:
    """Holds each set of filters against the marks of the cells; gives the board without a filter."""
    assert set(MARKS) == set(FILTERS)
    everything = board_rows(by=by, limit=100)
    assert everything.total == len(everything.rows)
    for names_of in itertools.chain.from_iterable(itertools.combinations(FILTERS, size) for size in (1, 2, 3, 4)):
        wanted = [row.subject for row in everything.rows if all(any(map(MARKS[name], row.cells)) for name in names_of)]
        found = board_rows(by=by, filters=names_of, limit=100)
        assert [row.subject for row in found.rows] == wanted, names_of
        assert found.total == len(wanted)
    return everything


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_there_a_filter_finds_what_the_cells_say(registries: None, system: Actor, seed: int) -> None:
    chance = random.Random(seed)
    texts = [V1, V2, record(id="long", more="int?"), OTHER]
    subjects = [SubjectName(chance.choice((".", ".sales")), f"s{number}") for number in range(8)]
    Config.objects.bulk_create(Config(registry=place, compatibility_level="NONE") for place in Registry.objects.all())
    for place in ("dev", "staging", "prod"):
        for name in chance.sample(subjects, 7):
            for text in chance.sample(texts, chance.randint(1, 3)):
                register(text, system, place, name)
    versions = list(SchemaVersion.objects.order_by("pk"))
    SchemaVersion.objects.filter(pk__in=[row.pk for row in chance.sample(versions, 6)]).update(
        deleted_at=timezone.now()
    )
    for row in chance.sample(versions, 12):
        status = chance.choice(VersionStatus.STATUSES)
        VersionStatus.objects.create(version=row, status=status, message="?", decided_by="tests")
    Config.objects.update(compatibility_level="BACKWARD")
    refresh_outlooks()
    rows = filtered_as_marked(system).rows
    assert {name for name in ("behind", "id differs", "different content") for row in rows if any(map(MARKS[name], row.cells))} == {
        "behind", "id differs", "different content"
    }, "the data has all marks"  # fmt: skip


def test_a_filter_leaves_the_planner_as_it_was(registries: None, system: Actor) -> None:
    def settings() -> list[tuple[str, ...]]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('enable_nestloop'), current_setting('work_mem')")
            return cursor.fetchall()

    before = settings()
    board_rows(by=system, filters=["behind"])
    assert settings() == before
    with pytest.raises(InvalidName):
        board_rows(by=system, filters=["behind"], after=":.nocolon")
    assert settings() == before


def test_a_cell_says_since_when_its_newest_version_is_there_and_what_was_decided_of_it(
    registries: None, system: Actor
) -> None:
    register(V1, system)
    register(V2, system)
    register(V1, system, "staging")
    rows = {row.version: row for row in SchemaVersion.objects.filter(subject__context__registry__name="dev")}
    long_ago = timezone.now() - timedelta(days=9)
    SchemaVersion.objects.filter(pk=rows[2].pk).update(created_at=long_ago)
    for number, status in ((1, "retired"), (2, "deprecated")):
        VersionStatus.objects.create(
            version=rows[number], status=status, message=f"of {number}", ends_at=long_ago, decided_by="tests"
        )
    dev, staging, prod = cells(board_rows(by=system)).values()
    assert dev.since == long_ago
    assert dev.status is not None
    assert (dev.status.status, dev.status.message, dev.status.ends_at) == ("deprecated", "of 2", long_ago)
    assert staging.since is not None and staging.status is None
    assert (prod.since, prod.status) == (None, None)


def test_each_filter_finds_the_rows_that_have_its_mark(registries: None, system: Actor) -> None:
    texts = [V1, V2, OTHER]
    register(record(first="int"), system, "staging", SubjectName(".", "first"))  # so that ids part
    for place in ("dev", "staging", "prod"):
        register(record(everywhere="int"), system, place, SubjectName(".", "same"))
    for number, (dev, staging) in enumerate(itertools.product([(0,), (0, 1), (1,)], [(), (0,), (1, 0), (2,)])):
        name = SubjectName(".", f"s{number:02}")
        for place, held in (("dev", dev), ("staging", staging)):
            for which in held:
                register(texts[which], system, place, name)
            if number in (3, 6):
                set_config(registry=place, subject=name, level="NONE", by=system)
    refresh_outlooks()
    assert len(filtered_as_marked(system).rows) == 14
    for name in FILTERS:
        assert 0 < board_rows(by=system, filters=[name]).total < 14, f"{name} finds some"


def test_pages_follow_each_other_by_name_and_search_takes_no_patterns(registries: None, system: Actor) -> None:
    for name in ("a", "B", "b_1", "bx1", "ü%"):
        register(V1, system, subject=SubjectName(".", name))
    register(V1, system, subject=SALES)
    first = board_rows(by=system, limit=4)
    second = board_rows(by=system, limit=4, after=first.after)
    assert names(first) + names(second) == ["B", "a", "b_1", "bx1", "ü%", ":.sales:orders-value"]
    assert (first.total, second.total, second.after) == (6, 6, "")
    assert names(board_rows(by=system, text="B_")) == ["b_1"]
    assert names(board_rows(by=system, text="%")) == ["ü%"]
    assert names(board_rows(by=system, text="1 x")) == ["bx1"]
    assert names(board_rows(by=system, text="\\")) == []


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"filters": ["nonsense"]}, InvalidInput),
        ({"text": "a\0b"}, InvalidInput),
        ({"text": "x" * 201}, InvalidInput),
        ({"after": ":.nocolon"}, InvalidName),
        ({"after": "a\0"}, InvalidName),
    ],
)
def test_what_makes_no_sense_is_refused(
    registries: None, system: Actor, given: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        board_rows(by=system, **given)


def test_who_may_read_a_part_sees_a_part(registries: None, system: Actor, person: Callable[[str], Actor]) -> None:
    for name in (ORDERS, MONEY, SALES):
        for place in ("dev", "staging", "prod"):
            register(V1, system, place, name)
    with pytest.raises(NotAllowed):
        board_rows(by=person("stranger"))
    reader = person("reader")
    assert len(board_rows(by=reader).rows) == 3
    some = replace(reader, grants=(Grant("reader", "dev", "orders*"), Grant("reader", "prod")))
    board = board_rows(by=some)
    assert [place.name for place in board.environments] == ["dev", "prod"]
    assert names(board) == ["money", "orders-value", ":.sales:orders-value"]
    assert [cell.version for cell in cells(board, MONEY).values()] == [0, 1]
    one = replace(reader, limit=TokenLimit(scope="read", registry="dev", subject_pattern="money"))
    assert (names(board_rows(by=one)), [p.name for p in board_rows(by=one).environments]) == (["money"], ["dev"])


def test_an_answer_is_unknown_until_it_was_worked_out_and_again_when_something_moved(
    registries: None, system: Actor
) -> None:
    register(V1, system)
    assert verdicts(system) == ["", "unknown", ""]
    task()
    assert verdicts(system) == ["", "needs approval", ""]
    register(OTHER, system, "staging")
    assert verdicts(system) == ["", "unknown", "unknown"]
    assert names(board_rows(by=system, filters=["blocked"])) == []
    task()
    assert verdicts(system) == ["", "no", "needs approval"]
    assert cells(board_rows(by=system))["staging"].reasons[0]["code"] == "compatibility"
    assert names(board_rows(by=system, filters=["blocked"])) == ["orders-value"]


def finding() -> Finding:
    now = timezone.now()
    place = Registry.objects.get(name="staging")
    source = Source.objects.create(registry=place, kind="registry", name="itself", created_by="tests")
    return Finding.objects.create(
        source=source, fingerprint="f", rule="r", severity="break", remedy="Repair it.", sentence="They don't match.",
        location="x", subject_name="orders-value", evidence={}, first_seen=now, last_seen=now,
    )  # fmt: skip


def change(name: str, **values: Any) -> Callable[[Actor], Any]:
    return lambda by: Environment.objects.filter(registry__name=name).update(**values)


def retire(by: Actor) -> None:
    row = SchemaVersion.objects.get(subject__context__registry__name="dev", subject__name="orders-value", version=1)
    VersionStatus.objects.create(version=row, status="retired", message="old", decided_by="tests")


#: what moves, and whether the subject without references hears of it
MOVEMENTS: dict[str, tuple[Callable[[Actor], Any], bool]] = {
    "version at the source": (lambda by: register(V2, by), True),
    "version at the target": (lambda by: register(V2, by, "staging"), True),
    "status": (retire, True),
    "level of the subject": (lambda by: set_config(registry="staging", subject=ORDERS, level="FULL", by=by), True),
    "level of the registry": (lambda by: set_config(registry="staging", subject=None, level="FULL", by=by), True),
    "mode of the subject": (lambda by: set_mode(registry="staging", subject=ORDERS, mode="READONLY", by=by), True),
    "mode of the registry": (lambda by: set_mode(registry="staging", subject=None, mode="READONLY", by=by), True),
    "approvals": (change("staging", reviews_needed=2), True),
    "rule": (
        lambda by: services.add_review_rule(environment="staging", by=by, reviewers="role", name="admin"), True
    ),
    "drift": (lambda by: finding(), True),
    "another subject": (lambda by: register(V2, by, "staging", MONEY), False),
    "another level": (lambda by: set_config(registry="staging", subject=MONEY, level="FULL", by=by), False),
    "the source's own level": (lambda by: set_config(registry="dev", subject=ORDERS, level="FULL", by=by), False),
}  # fmt: skip


@pytest.mark.parametrize("movement", list(MOVEMENTS))
def test_whatever_an_answer_depends_on_makes_it_unknown(registries: None, system: Actor, movement: str) -> None:
    register(V1, system)
    register(V1, system, subject=MONEY)
    refresh_outlooks()
    act, is_heard = MOVEMENTS[movement]
    act(system)
    assert cells(board_rows(by=system))["staging"].verdict in (("unknown", "") if is_heard else ("needs approval",))
    assert refresh_outlooks() >= is_heard
    assert cells(board_rows(by=system))["staging"].verdict != "unknown"


def test_a_subject_that_refers_to_others_hears_of_them(registries: None, system: Actor) -> None:
    register(record(cents="long"), system, subject=MONEY)
    text = '{"type": "record", "name": "Priced", "fields": [{"name": "price", "type": "Order"}]}'
    register(text, system, references=[Reference("Order", "money", 1)])
    refresh_outlooks()
    assert verdicts(system)[1] == "needs approval"
    register(OTHER, system, "staging", MONEY)
    assert verdicts(system)[1] == "unknown"
    refresh_outlooks()
    assert verdicts(system)[1] == "no", "money would break there"


NAMES, PRICES, RATES = SubjectName(".sales", "name"), SubjectName(".", "prices"), SubjectName(".", "rates")


def money_of_dev() -> QuerySet[SchemaVersion]:
    return SchemaVersion.objects.filter(subject__context__registry__name="dev", subject__name="money")


def deprecate(by: Actor) -> None:
    VersionStatus.objects.create(version=money_of_dev().get(), status="deprecated", message="?", decided_by="tests")


#: what moves, and whether a subject hears of it that refers to rates and to money, which refers to a name
MOVEMENTS_ALONG: dict[str, tuple[Callable[[Actor], Any], bool]] = {
    "version of the target": (lambda by: register(OTHER, by, "staging", MONEY), True),
    "version of the target, of what that refers to": (lambda by: register(OTHER, by, "staging", NAMES), True),
    "status": (deprecate, True),
    "level": (lambda by: set_config(registry="staging", subject=MONEY, level="FULL", by=by), True),
    "level of what that refers to": (lambda by: set_config(registry="staging", subject=NAMES, level="FULL", by=by), True),
    "mode": (lambda by: set_mode(registry="staging", subject=MONEY, mode="READONLY", by=by), True),
    "deletion": (lambda by: money_of_dev().update(deleted_at=timezone.now()), True),
    "owner": (lambda by: own(), True),
    "another subject": (lambda by: register(V2, by, "staging", ORDERS), False),
    "another subject of the source": (lambda by: register(V1, by, "dev", SALES), False),
    "another version of it": (lambda by: register(record(name="string", more="int?"), by, "dev", NAMES), False),
    "another level": (lambda by: set_config(registry="staging", subject=ORDERS, level="FULL", by=by), False),
}  # fmt: skip


def own() -> None:
    place = Registry.objects.get(name="staging")
    Association.objects.create(
        registry=place, subject=Subject.objects.get(context__registry=place, name="rates"), guid=uuid.uuid4(),
        resource_namespace="k", resource_name="t", resource_id="t", resource_type="topic", association_type="value",
        lifecycle="STRONG",
    )  # fmt: skip


@pytest.mark.parametrize("movement", list(MOVEMENTS_ALONG))
def test_a_subject_that_refers_to_others_hears_of_those_alone(registries: None, system: Actor, movement: str) -> None:
    register(record(name="string"), system, subject=NAMES)
    money = '{"type": "record", "name": "Money", "fields": [{"name": "of", "type": "Order"}]}'
    register(money, system, subject=MONEY, references=[Reference("Order", ":.sales:name", 1)])
    rates = '{"type": "record", "name": "Rates", "fields": [{"name": "at", "type": "int"}]}'
    for place in ("dev", "staging"):
        register(rates, system, place, RATES)
    fields = '[{"name": "price", "type": "Money"}, {"name": "rates", "type": "Rates"}]'
    prices = f'{{"type": "record", "name": "Priced", "fields": {fields}}}'
    used = [Reference("Money", "money", 1), Reference("Rates", "rates", 1)]
    register(prices, system, subject=PRICES, references=used)
    refresh_outlooks()
    assert verdicts(system, PRICES)[1] == "needs approval"
    act, is_heard = MOVEMENTS_ALONG[movement]
    act(system)
    assert (verdicts(system, PRICES)[1] == "unknown") == is_heard
    assert refresh_outlooks() >= is_heard
    assert verdicts(system, PRICES)[1] != "unknown"


def test_a_run_is_bounded_goes_on_where_it_ended_and_forgets_what_is_gone(registries: None, system: Actor) -> None:
    for number in range(5):
        register(V1, system, subject=SubjectName(".", f"s{number}"))
    assert refresh_outlooks(most=3) == 3
    assert refresh_outlooks(most=3) == 2
    assert refresh_outlooks(most=3) == 0
    register(V2, system, subject=SubjectName(".", "s0"))
    assert refresh_outlooks(seconds=0) == 1, "one at least, so that it gets on"
    name = SubjectName(".", "s4")
    assert work_out(environments_in_order(), [name]) == 0
    delete_version(registry="dev", subject=name, version=1, by=system)
    refresh_outlooks()
    assert PromotionOutlook.objects.filter(subject_name="s4").count() == 0
    assert PromotionOutlook.objects.count() == 4


def test_rows_on_the_page_are_worked_out_alone(registries: None, system: Actor) -> None:
    register(V1, system)
    register(V1, system, subject=MONEY)
    assert work_out(environments_in_order(), [MONEY]) == 1
    assert (verdicts(system, MONEY)[1], verdicts(system, ORDERS)[1]) == ("needs approval", "unknown")


def test_a_frozen_environment_blocks_and_says_until_when(
    registries: None, system: Actor, person: Callable[[str], Actor]
) -> None:
    register(V1, system)
    refresh_outlooks()
    now = timezone.now()
    FreezeWindow.objects.create(
        environment=Environment.objects.get(registry__name="staging"), reason="sales", ends_at=now + timedelta(days=1),
        made_by_id=person("admin").user_id, starts_at=now - timedelta(days=1),
    )  # fmt: skip
    board = board_rows(by=system, filters=["blocked"])
    assert names(board) == ["orders-value"]
    assert [bool(place.frozen) for place in board.environments] == [False, True, False]
    assert cells(board)["staging"].verdict == "needs approval", "the answer is of the schema; the column is frozen"


def test_an_open_request_is_on_the_board(registries: None, system: Actor, person: Callable[[str], Actor]) -> None:
    register(V1, system)
    number = services.request_promotion(source="dev", target="staging", subject=ORDERS, version=1, by=person("steward"))
    found = cells(board_rows(by=system))
    assert [(cell.request, cell.request_state) for cell in found.values()] == [
        (None, ""),
        (number, "in review"),
        (None, ""),
    ]


@pytest.mark.parametrize("filters", [(), *((name,) for name in FILTERS), FILTERS])
def test_the_number_of_queries_is_constant(registries: None, system: Actor, filters: tuple[str, ...]) -> None:
    def fill(numbers: range) -> None:
        for number in numbers:
            register(V1, system, subject=SubjectName(".", f"s{number}"))
            register(OTHER, system, "staging", SubjectName(".", f"s{number}"))
        refresh_outlooks()

    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            board_rows(by=system, filters=filters)
        return len(caught)

    fill(range(2))
    few = queries()
    fill(range(2, 12))
    assert queries() == few
    assert few <= 13


def test_who_has_read_the_environments_already_reads_them_once(
    registries: None, system: Actor, django_assert_num_queries: Any
) -> None:
    register(V1, system)
    FreezeWindow.objects.create(
        environment=Environment.objects.get(registry__name="prod"), reason="sales", made_by=User.objects.create(),
        starts_at=timezone.now(), ends_at=timezone.now() + timedelta(days=1),
    )  # fmt: skip
    with CaptureQueriesContext(connection) as caught:
        alone = board_rows(by=system)
    with django_assert_num_queries(5):
        rows = environment_rows()
        infos = environment_infos(rows)
    assert infos == environment_infos()
    with django_assert_num_queries(len(caught) - 5):
        assert board_rows(by=system, rows=rows) == alone
    assert "sales" in alone.environments[2].frozen


def test_programs_read_the_board_as_the_page_has_it(
    registries: None, system: Actor, api: Callable[[str], Client]
) -> None:
    for name in (ORDERS, MONEY, SALES):
        register(V1, system, "dev", name)
    register(V1, system, "staging", MONEY)
    client = api("reader")
    whole = client.get("/api/v1/board?limit=2").json()
    assert [place["name"] for place in whole["environments"]] == ["dev", "staging", "prod"]
    assert [row["subject"] for row in whole["subjects"]] == ["money", "orders-value"]
    assert (whole["total"], whole["after"]) == (3, "orders-value")
    cells_of = whole["subjects"][0]["cells"]
    assert [(cell["place"], cell["version"], cell["versions"], cell["behind"]) for cell in cells_of] == [
        ("dev", 1, [1], False), ("staging", 1, [1], False), ("prod", 0, [], True),
    ]  # fmt: skip
    found = client.get("/api/v1/board?show=behind&text=orders&after=orders-value").json()
    assert [row["subject"] for row in found["subjects"]] == [":.sales:orders-value"]
    assert client.get("/api/v1/board?show=nonsense").status_code == 422
    RoleGrant.objects.filter(user__username="reader").update(subject_pattern="mon*")
    assert [row["subject"] for row in client.get("/api/v1/board").json()["subjects"]] == ["money"]
    assert api("stranger").get("/api/v1/board").status_code == 403


#: rights of dev → the subjects of it that the board has, among those of `test_who_may_read_a_part_…`
PARTS: dict[str, tuple[tuple[tuple[str, str], ...], list[str]]] = {
    "a beginning": ((("dev", "orders*"),), ["orders-value"]),
    "another context": ((("dev", ":.sales:*"),), [":.sales:orders-value"]),
    "letters": ((("dev", "mon?y"),), ["money"]),
    "a set of letters, which is not supported": ((("dev", "[m]oney"),), []),
    "a percent sign": ((("dev", "50%*"), ("dev", "%s")), ["%s", "50% off"]),
    "two": ((("dev", "money"), ("", "*value")), ["money", "orders-value", ":.sales:orders-value"]),
    "of elsewhere": ((("staging", "money"),), []),
    "all": ((("dev", "*"), ("dev", "money")), ["%s", "50% off", "money", "orders-value", ":.sales:orders-value"]),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("filters", [(), (FILTERS[0],), FILTERS])
def test_what_may_be_read_is_a_condition_of_the_query(
    registries: None, system: Actor, person: Callable[[str], Actor], part: str, filters: tuple[str, ...]
) -> None:
    for name in (ORDERS, MONEY, SALES, SubjectName(".", "50% off"), SubjectName(".", "%s")):
        register(V1, system, subject=name)
    grants, wanted = PARTS[part]
    some = replace(person("reader"), grants=tuple(Grant("reader", place, pattern) for place, pattern in grants))
    board = board_rows(by=some, filters=filters)
    if not filters:
        assert names(board) == wanted
        assert (names(board_rows(by=some, limit=1)), board_rows(by=some, limit=1).total) == (wanted[:1], len(wanted))
    everything = board_rows(by=some)
    fitting = [row for row in everything.rows if all(_has(row.cells, name) for name in filters)]
    assert list(board.rows) == fitting


def _has(cells: tuple[BoardCell, ...], name: str) -> bool:
    marks = dict(
        zip(
            FILTERS,
            (
                any(cell.behind for cell in cells),
                any(cell.verdict == "no" for cell in cells),
                any(cell.id_differs for cell in cells),
                any(cell.other_content for cell in cells),
            ),
            strict=True,
        )
    )
    return marks[name]


def test_a_page_for_a_reader_of_a_part_reads_no_more_rows_than_it_shows(
    registries: None, system: Actor, person: Callable[[str], Actor]
) -> None:
    for number in range(20):
        register(V1, system, subject=SubjectName(".", f"s{number:02}"))
    some = replace(person("reader"), grants=(Grant("reader", "dev", "s*"),))
    read: list[int] = []

    def count(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        answer = execute(sql, params, many, context)
        read.append(context["cursor"].rowcount)
        return answer

    with connection.execute_wrapper(count):
        board = board_rows(by=some, limit=3)
    assert (names(board), board.total) == (["s00", "s01", "s02"], 20)
    assert max(read) <= 4, "the page, and one more to know whether another follows"
