"""Descriptions that go along with a promotion: shown in its plan, written when it is applied, and what stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from registry.access.roles import Actor
from registry.audit.models import AuditEvent
from registry.promotions import services
from registry.promotions.models import PromotionRequest
from registry.promotions.plan.builder import make_plan, spec_of
from registry.promotions.plan.types import Check
from registry.subjects.lifecycle.notes import Note, note_of
from registry.subjects.services import register_version, set_note
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName

ORDERS = SubjectName(".", "orders-value")
TEXT = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long", "default": 0}]}'
BEFORE = '{"type": "record", "name": "Order", "fields": []}'
pytestmark = pytest.mark.requirement("CARD-4")


@pytest.fixture
def ask(person: Callable[[str], Actor]) -> Callable[..., int]:
    """A request to promote the first version to prod, with what is written about it in dev, and there ("" for none)."""
    steward = person("steward")

    def make(source: str, target: str = "", **options: Any) -> int:
        register_version(registry="dev", subject=ORDERS, text=TEXT, by=steward)
        if source:
            describe("dev", source, steward)
        if target:
            register_version(registry="prod", subject=ORDERS, text=BEFORE, by=person("admin"), release=True)
            describe("prod", target, steward)
        return services.request_promotion(
            source="dev", target="prod", subject=ORDERS, by=steward, reason="go live", **options
        )

    return make


def describe(registry: str, text: str, by: Actor) -> None:
    tags, _, doc = text.partition("|")
    set_note(registry=registry, subject=ORDERS, tags=tags.split(), doc=doc, by=by, expected="*")


def planned(number: int) -> list[Check]:
    made = make_plan(spec_of(PromotionRequest.objects.get(pk=number)))
    return [check for check in made.checks if check.code == "notes"]


def apply(number: int, person: Callable[[str], Actor]) -> Note:
    read = PromotionRequest.objects.get(pk=number).plan_hash
    services.approve(request_id=number, plan_hash=read, by=person("approver"))
    assert services.apply(request_id=number, by=person("approver")) == PromotionRequest.APPLIED
    return note_of(get_registry("prod"), ORDERS)


def test_a_description_goes_where_there_is_none(ask: Callable[..., int], person: Callable[[str], Actor]) -> None:
    number = ask("PII gold|Orders.")
    (check,) = planned(number)
    assert (check.verdict, check.sentence) == ("pass", "It is promoted to prod, tagged PII, gold.")
    note = apply(number, person)
    assert (note.tags, note.doc, note.updated_by) == (("PII", "gold"), "Orders.", "approver")
    event = AuditEvent.objects.filter(table="subjects_subjectnote").latest("id")
    assert event.why == f"apply request {number}: promote the description of orders-value"


def test_nothing_goes_along_where_nothing_is_written(ask: Callable[..., int], person: Callable[[str], Actor]) -> None:
    number = ask("")
    assert planned(number) == []
    assert apply(number, person) == Note()


def test_the_description_of_the_plan_is_no_part_of_what_is_approved(
    ask: Callable[..., int], person: Callable[[str], Actor]
) -> None:
    number = ask("PII|Before.")
    read = PromotionRequest.objects.get(pk=number).plan_hash
    describe("dev", "PII|After.", person("steward"))
    assert make_plan(spec_of(PromotionRequest.objects.get(pk=number))).hash == read
    assert apply(number, person).doc == "After."


@pytest.mark.parametrize(
    ("source", "target", "verdict", "said"),
    [
        ("gold|Ours.", "silver|Theirs.", "pass", "prod has a different description, which is kept."),
        ("PII|Ours.", "|Theirs.", "warn", "doesn't have the tags PII, which hide values of personal data"),
        ("PII|Ours.", "pii|Theirs.", "pass", "prod has a different description, which is kept."),
    ],
)
def test_another_description_stays_unless_the_settings_are_brought(
    ask: Callable[..., int], source: str, target: str, verdict: str, said: str
) -> None:
    (check,) = planned(ask(source, target))
    assert check.verdict == verdict
    assert said in check.sentence
    assert "Include the subjects' settings" in check.cure


@pytest.mark.parametrize(("with_config", "doc"), [(True, "Ours."), (False, "Theirs.")])
def test_what_is_in_the_target_afterwards(
    ask: Callable[..., int], person: Callable[[str], Actor], with_config: bool, doc: str
) -> None:
    number = ask("PII|Ours.", "PII|Theirs.", with_config=with_config)
    assert ("replaces the description" in planned(number)[0].sentence) is with_config
    assert apply(number, person).doc == doc


def test_the_same_description_is_not_spoken_of(ask: Callable[..., int]) -> None:
    assert planned(ask("PII|Ours.", "PII|Ours.")) == []
