"""Can it go on? A table of situations, and the doors that the question is asked at."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from xml.etree import ElementTree

import pytest
from django.contrib.auth.models import Group
from django.core.management import ManagementUtility, call_command
from django.db import DatabaseError, connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from registry.access.roles import Actor
from registry.drift.models import Finding, Source
from registry.errors import NotAllowed, RegistryNotFound, SubjectNotFound, VersionNotFound, WrongState
from registry.promotions import services
from registry.promotions.board import readiness as module
from registry.promotions.board.readiness import Readiness, can_promote
from registry.promotions.management.commands import can_promote as command
from registry.promotions.models import Environment, FreezeWindow, PromotionRequest
from registry.promotions.plan.builder import make_plan, spec_of
from registry.subjects.models import Registry, SchemaVersion, VersionStatus
from registry.subjects.services import register_version, set_mode
from registry.subjects.versions.qualified_names import SubjectName
from tests.promotions.factories import approve_shown, record

pytestmark = [pytest.mark.requirement("CARD-4"), pytest.mark.django_db]

ORDERS = SubjectName(".", "orders-value")
V1, V2, OTHER = record(id="long"), record(id="long", note="string?"), record(other="int")
Cast = dict[str, Actor]


@pytest.fixture
def cast(person: Callable[[str], Actor], system: Actor) -> Cast:
    found = {name: person(name) for name in ("reader", "steward", "approver", "admin", "stranger")}
    return {**found, "system": system}


def register(text: str, cast: Cast, registry: str = "dev") -> None:
    register_version(registry=registry, subject=ORDERS, text=text, by=cast["system"], release=True)


def ask(cast: Cast, by: str = "steward", source: str = "dev", target: str = "staging", **more: Any) -> Readiness:
    return can_promote(subject=ORDERS, source=source, target=target, by=cast[by], **more)


def environment(**values: Any) -> None:
    Environment.objects.filter(registry__name="staging").update(**values)


def nothing(cast: Cast) -> None:
    """As it is."""


def there(cast: Cast) -> None:
    register(V1, cast, "staging")


def breaks(cast: Cast) -> None:
    register(OTHER, cast, "staging")


def override(cast: Cast) -> None:
    set_mode(registry="staging", subject=None, mode="READONLY_OVERRIDE", by=cast["admin"])


def status(word: str) -> Callable[[Cast], None]:
    def decide(cast: Cast) -> None:
        row = SchemaVersion.objects.get(subject__context__registry__name="dev")
        VersionStatus.objects.create(version=row, status=word, message="said", decided_by="tests")

    return decide


def drift(severity: str, *, blocks: bool = True) -> Callable[[Cast], None]:
    def find(cast: Cast) -> None:
        environment(drift_blocks=blocks)
        now, place = timezone.now(), Registry.objects.get(name="staging")
        source = Source.objects.create(registry=place, kind="registry", name="itself", created_by="tests")
        Finding.objects.create(
            source=source, fingerprint="f", rule="r", severity=severity, remedy="Repair.", sentence="It doesn't match.",
            location="x", subject_name="orders-value", evidence={}, first_seen=now, last_seen=now,
        )  # fmt: skip

    return find


def freeze(cast: Cast) -> None:
    now = timezone.now()
    FreezeWindow.objects.create(
        environment=Environment.objects.get(registry__name="staging"), reason="sales", starts_at=now,
        ends_at=now + timedelta(hours=1), made_by_id=cast["admin"].user_id,
    )  # fmt: skip


def requested(cast: Cast) -> None:
    services.request_promotion(source="dev", target="staging", subject=ORDERS, version=1, by=cast["steward"])


def approved(cast: Cast) -> None:
    requested(cast)
    row = PromotionRequest.objects.get()
    services.approve(request_id=row.pk, by=cast["approver"], plan_hash=row.plan_hash)


def rejected(cast: Cast) -> None:
    requested(cast)
    services.reject(request_id=PromotionRequest.objects.get().pk, by=cast["approver"], comment="no")


def then(*steps: Callable[[Cast], None]) -> Callable[[Cast], None]:
    def run(cast: Cast) -> None:
        for step in steps:
            step(cast)

    return run


def moved(cast: Cast) -> None:
    register(record(id="long", a="int?"), cast, "staging")


#: the situation at dev → staging, with version 1 at dev; the verdict and the codes of the reasons, in order
SITUATIONS: dict[str, tuple[Callable[[Cast], None], str, list[str]]] = {
    "nothing there yet": (nothing, "needs approval", ["approval"]),
    "there already": (there, "yes", ["already-there"]),
    "breaks the level": (breaks, "no", ["compatibility"]),
    "a mode that stops releases": (override, "no", ["mode"]),
    "deprecated": (status("deprecated"), "no", ["status"]),
    "retired": (status("retired"), "no", ["status"]),
    "open break": (drift("break"), "no", ["drift"]),
    "open break that doesn't block": (drift("break", blocks=False), "needs approval", ["approval", "drift"]),
    "open risk": (drift("risk"), "needs approval", ["approval", "drift"]),
    "frozen": (freeze, "no", ["freeze"]),
    "requested": (requested, "needs approval", ["approval"]),
    "approved": (approved, "yes", ["approved"]),
    "approved, then frozen": (then(approved, freeze), "no", ["freeze"]),
    "approved, then moved": (then(approved, moved), "needs approval", ["approval", "approval"]),
    "approved, then broken": (then(approved, breaks), "no", ["compatibility"]),
    "rejected": (rejected, "needs approval", ["approval"]),
    "several": (then(breaks, override, freeze), "no", ["mode", "compatibility", "freeze"]),
}


def test_a_target_that_was_rolled_back_is_not_ready(cast: Cast) -> None:
    for text in (V1, V2):
        register(text, cast)
        register(text, cast, "staging")
    assert ask(cast).verdict == "yes"
    back = services.request_roll_back(
        environment="staging", subject=ORDERS, version=1, by=cast["steward"], reason="version 2 loses notes"
    )
    approve_shown(request_id=back, by=cast["approver"], comment="agreed")
    services.apply(request_id=back, by=cast["approver"])
    answer = ask(cast)
    assert (answer.verdict, [reason.code for reason in answer.reasons]) == ("no", ["rolled-back"])
    assert "as version 2, but was rolled back: its newest version 3" in answer.reasons[0].sentence
    assert 'POST /api/v1/roll-backs {"environment": "staging"' in answer.reasons[0].cure
    assert ask(cast, version=1).verdict == "yes", "that is what it has now"
    with pytest.raises(WrongState, match=r"was rolled back.*Request a rollback to version 2"):
        services.request_promotion(source="dev", target="staging", subject=ORDERS, version=2, by=cast["steward"])
    again = services.request_roll_back(
        environment="staging", subject=ORDERS, version=2, by=cast["steward"], reason="notes are kept now"
    )
    assert again, "the next step that it names is possible"


@pytest.mark.parametrize("situation", list(SITUATIONS))
def test_the_answer_and_its_reasons(cast: Cast, situation: str) -> None:
    make, verdict, codes = SITUATIONS[situation]
    register(V1, cast)
    make(cast)
    answer = ask(cast, version=1)
    assert (answer.verdict, [reason.code for reason in answer.reasons]) == (verdict, codes)
    assert all(reason.sentence for reason in answer.reasons)
    changeable = [reason for reason in answer.reasons if reason.code not in ("already-there", "approved")]
    assert all(reason.cure for reason in changeable), "each says what would change it"


def test_the_plan_is_the_one_that_a_request_shows(cast: Cast) -> None:
    register(V1, cast)
    register(V1, cast, "staging")
    register(V2, cast)
    answer = ask(cast)
    services.request_promotion(source="dev", target="staging", subject=ORDERS, version=2, by=cast["steward"])
    row = PromotionRequest.objects.select_related("source__registry", "target__registry").get()
    assert answer.plan_hash == row.plan_hash == make_plan(spec_of(row)).hash


def test_the_latest_is_the_newest_that_is_not_quarantined(cast: Cast) -> None:
    register(V1, cast)
    register(V2, cast)
    rows = SchemaVersion.objects.order_by("version")
    assert ask(cast).version == 2
    VersionStatus.objects.create(version=rows[1], status="quarantined", message="?", decided_by="tests")
    assert (ask(cast).version, ask(cast, version=2).verdict) == (1, "no")
    VersionStatus.objects.create(version=rows[0], status="quarantined", message="?", decided_by="tests")
    with pytest.raises(VersionNotFound, match="quarantined"):
        ask(cast)


@pytest.mark.parametrize(("source", "target"), [("staging", "dev"), ("dev", "dev")])
def test_the_order_of_the_environments(cast: Cast, source: str, target: str) -> None:
    for place in ("dev", "staging"):
        register(V1, cast, place)
    answer = ask(cast, source=source, target=target)
    assert (answer.verdict, answer.reasons[0].code) == ("no", "order")


def test_rules_are_named_as_far_as_they_match(cast: Cast) -> None:
    rules = [
        ("orders*", "any", "group", "payments", 2),
        ("*", "breaking", "owners", "", 1),
        ("money", "any", "owners", "", 1),
    ]
    Group.objects.get_or_create(name="payments")
    for pattern, verdict, reviewers, name, count in rules:
        services.add_review_rule(
            environment="staging", by=cast["admin"], subject_pattern=pattern, verdict=verdict, reviewers=reviewers,
            name=name, count=count,
        )  # fmt: skip
    register(V1, cast)
    assert ask(cast).reasons[0].sentence == "staging needs 1 approval, 2 from the group payments."


@pytest.mark.parametrize("who", ["reader", "approver"])
def test_who_cannot_request_it_sees_why(cast: Cast, who: str) -> None:
    register(V1, cast)
    codes = [reason.code for reason in ask(cast, by=who).reasons]
    assert codes == (["approval", "rights"] if who == "reader" else ["approval"])
    environment(owners_only=True)
    assert [reason.code for reason in ask(cast, by="approver").reasons] == ["approval", "rights"]


def test_what_is_not_there_and_who_may_not_read(cast: Cast) -> None:
    with pytest.raises(SubjectNotFound):
        ask(cast)
    with pytest.raises(RegistryNotFound):
        ask(cast, target="moon")
    for target in ("staging", "moon"):
        with pytest.raises(NotAllowed, match="read"):
            ask(cast, by="stranger", target=target)


def test_the_number_of_queries_does_not_grow_with_the_versions(cast: Cast) -> None:
    register(V1, cast, "staging")
    register(V2, cast)

    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            ask(cast)
        return len(caught)

    few = queries()
    for number in range(4):
        register(record(id="long", **{f"f{number}": "string?"}), cast, "staging")
        register(record(id="long", **{f"g{number}": "string?"}), cast)
    assert queries() == few
    assert few <= 25


# -- the doors ---------------------------------------------------------------------------------------------------------

ADDRESS = "/api/v1/can-promote"
QUERY = {"subject": "orders-value", "from": "dev", "to": "staging"}


def test_the_api_answers_with_reasons(cast: Cast, api: Callable[[str], Client]) -> None:
    register(V1, cast)
    given = api("steward").get(ADDRESS, QUERY)
    assert given.status_code == 200
    body = given.json()
    assert (body["verdict"], body["version"], body["subject"]) == ("needs approval", 1, "orders-value")
    assert set(body["reasons"][0]) == {"code", "sentence", "cure"}
    assert len(body["plan_hash"]) == 64


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"from": "dev", "to": "staging"}, 422),
        ({**QUERY, "to": "moon"}, 404),
        ({**QUERY, "subject": "none"}, 404),
        ({**QUERY, "version": "9"}, 404),
        ({**QUERY, "version": "x"}, 422),
        ({**QUERY, "format": "png"}, 422),
        ({**QUERY, "subject": "a\0b"}, 422),
        ({**QUERY, "from": "d\0"}, 422),
        ({**QUERY, "subject": "x" * 2000}, 422),
    ],
)
def test_the_api_refuses_what_it_cannot_answer(
    cast: Cast, api: Callable[[str], Client], query: dict[str, str], status: int
) -> None:
    register(V1, cast)
    given = api("reader").get(ADDRESS, query)
    assert given.status_code == status, given.content
    assert given["Content-Type"].startswith("application/json")


def test_a_stranger_learns_nothing(cast: Cast, api: Callable[[str], Client]) -> None:
    register(V1, cast)
    answers = {
        (given.status_code, given.content.replace(b"moon", b"staging"))
        for given in (
            api("stranger").get(ADDRESS, query)
            for query in (QUERY, {**QUERY, "subject": "none"}, {**QUERY, "to": "moon"})
        )
    }
    assert len(answers) == 1
    assert answers.pop()[0] == 403


def test_the_badge_is_an_image_without_anything_that_runs(cast: Cast, api: Callable[[str], Client]) -> None:
    hostile = SubjectName(".", '<script>alert("1")</script>&\'')
    register_version(registry="dev", subject=hostile, text=V1, by=cast["system"])
    given = api("reader").get(ADDRESS, {**QUERY, "subject": hostile.subject, "format": "badge"})
    assert given.status_code == 200
    assert given["Content-Type"] == "image/svg+xml; charset=utf-8"
    assert "default-src 'none'" in given["Content-Security-Policy"]
    tree = ElementTree.fromstring(given.content)
    tags = {element.tag.rpartition("}")[2] for element in tree.iter()}
    assert tags == {"svg", "title", "rect", "g", "text"}
    assert not [name for element in tree.iter() for name in element.attrib if name.startswith("on") or "href" in name]
    texts = ["".join(element.itertext()) for element in tree.iter() if element.tag.endswith("}text")]
    assert texts == [f"{hostile.subject} v1 → staging", "needs approval"]


def test_the_badge_shortens_what_is_long_and_keeps_the_whole_as_its_title(cast: Cast) -> None:
    from registry.api.product.board import badge

    made = ElementTree.fromstring(badge(Readiness("x" * 300, 1, "dev", "prod", "no", ())))
    title = next(element for element in made.iter() if element.tag.endswith("title"))
    assert title.text is not None
    assert "x" * 300 in title.text
    assert int(made.attrib["width"]) < 600


@contextmanager
def ends_with(code: int) -> Iterator[None]:
    with pytest.raises(SystemExit) as ended:
        yield
    assert ended.value.code == code


@pytest.fixture(autouse=True)
def connected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that is run as from a shell ends by closing what the test needs."""
    monkeypatch.setattr(connections, "close_all", lambda: None)


def run(*arguments: str) -> None:
    ManagementUtility(["manage.py", "can_promote", *arguments]).execute()


def test_the_command_ends_with_the_code_of_the_answer(cast: Cast, capsys: pytest.CaptureFixture[str]) -> None:
    register(V1, cast)
    with ends_with(1):
        run("orders-value", "dev", "staging")
    assert capsys.readouterr().out.splitlines()[:2] == [
        "orders-value version 1, dev → staging: needs approval",
        "  approval: staging needs 1 approval.",
    ]
    register(V1, cast, "staging")
    call_command("can_promote", "orders-value", "dev", "staging")
    assert "yes" in capsys.readouterr().out
    register(OTHER, cast, "prod")
    with ends_with(2):
        run("orders-value", "dev", "prod", "--version", "1", "--json")
    told = json.loads(capsys.readouterr().out)
    assert (told["verdict"], told["reasons"][0]["code"]) == ("no", "compatibility")
    assert told["reasons"][0]["cure"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["orders-value", "dev", "moon"], 3, "moon"),
        (["none", "dev", "staging"], 3, "none"),
        (["orders-value", "dev", "staging", "--version", "x"], 3, "not a valid version"),
        (["orders-value"], 64, "required"),
        (["orders-value", "dev", "staging", "--nonsense"], 64, "nonsense"),
    ],
)
def test_an_error_is_none_of_the_answers(
    cast: Cast, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, said: str
) -> None:
    register(V1, cast)
    with ends_with(code):
        run(*arguments)
    assert said in capsys.readouterr().err


def test_a_database_that_is_away_is_no_answer_either(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def away(**_: Any) -> None:
        raise DatabaseError("connection refused")

    monkeypatch.setattr(command, "can_promote", away)
    with ends_with(3):
        run("orders-value", "dev", "staging")
    assert "connection refused" in capsys.readouterr().err
    assert set(command.EXIT) == {module.YES, module.NEEDS_APPROVAL, module.NO}
    assert not {command.FAILED, command.USAGE} & set(command.EXIT.values())
