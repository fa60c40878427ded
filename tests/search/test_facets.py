"""The numbers beside the filters of the list of subjects: each is what choosing that value leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from registry.access.models import Group, Ownership, User
from registry.access.roles import Actor
from registry.promotions.services import request_promotion
from registry.search.facets import facet_counts
from registry.search.subject_list import Page, SubjectFilter, find_subjects
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.services import delete_subject, register_version, set_config, set_standing
from registry.subjects.services.notes import change_tags

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-2")]

TEXTS = {"AVRO": '"int"', "JSON": '{"type": "string"}'}
NAMES = ("orders.a", "orders.b", "crm.a", "crm.b%", ":.x:orders.a", ":.x:z", "other")


@pytest.fixture
def dev(registries: None, system: Actor, person: Callable[[str], Actor]) -> Registry:
    """Subjects of two formats, with levels, standings, tags, owners and a request, and a deleted one."""
    for number, text in enumerate(NAMES):
        name = parse_subject(text)
        schema_type = "JSON" if number % 3 == 0 else "AVRO"
        register_version(registry="dev", subject=name, text=TEXTS[schema_type], schema_type=schema_type, by=system)
        if number % 2:
            change_tags(registry="dev", subjects=[name], add=["PII", f"t{number}"], by=system)
    register_version(registry="dev", subject=SubjectName(".", "orders.gone"), text='"int"', by=system)
    delete_subject(registry="dev", subject=SubjectName(".", "orders.gone"), by=system)
    set_config(registry="dev", subject=SubjectName(".", "orders.a"), level="FULL", by=system)
    set_config(registry="dev", subject=SubjectName(".x", ""), level="NONE", by=system)
    set_config(registry="dev", subject=SubjectName(".x", "z"), level="FULL", by=system)
    set_standing(
        registry="dev", subject=SubjectName(".", "crm.a"), version=1, standing="retired", message="x", by=system
    )
    person("reader")
    group = Group.objects.create(name="team")
    reader = User.objects.get(username="reader")
    for pattern, owner in {"orders.*": {"group": group}, "crm.b%": {"user": reader}, ":.x:*": {"user": reader}}.items():
        Ownership.objects.create(subject_pattern=pattern, **owner)
    request_promotion(
        source="dev", target="prod", subject=SubjectName(".", "orders.b"), version=1, by=person("steward"), reason="x"
    )
    return Registry.objects.get(name="dev")


CHOSEN: list[dict[str, str]] = [
    {},
    {"format": "AVRO"},
    {"level": "FULL"},
    {"level": "BACKWARD"},
    {"tag": "pii"},
    {"state": "retired"},
    {"attention": "unowned"},
    {"attention": "pending"},
    {"owner": "group:team"},
    {"owner": "user:reader"},
    {"text": "orders"},
    {"text": "nothing has this"},
    {"text": "orders", "owner": "group:team", "level": "BACKWARD"},
    {"format": "JSON", "attention": "unowned", "tag": "pii"},
]


@pytest.mark.parametrize("chosen", CHOSEN, ids=str)
@pytest.mark.parametrize("sets", [False, True])
def test_a_number_is_what_choosing_the_value_leaves(dev: Registry, chosen: dict[str, str], sets: bool) -> None:
    if sets:  # a pattern that isn't counted in the database
        Ownership.objects.create(subject_pattern="o[st]her", group=Group.objects.get(name="team"))

    def total(**more: Any) -> int:
        return find_subjects(dev, SubjectFilter(**{**chosen, **more}), Page()).total

    facets = facet_counts(dev, SubjectFilter(**chosen))
    found = facets.counts
    assert facets.total == total()
    for facet, values in {
        "format": ("AVRO", "JSON", "PROTOBUF"),
        "level": ("BACKWARD", "FULL", "NONE", "FORWARD"),
        "state": ("retired", "deprecated"),
        "attention": ("drift", "pending", "unowned"),
        "tag": ("pii", "t1", "t3"),
        "owner": ("user:reader",) if sets else ("group:team", "user:reader"),
    }.items():
        assert {value: found[facet][value] for value in values} == {
            value: total(**{facet: value}) for value in values
        }, facet


def test_those_without_an_owner_are_counted_up_to_a_limit(dev: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    Ownership.objects.all().delete()
    monkeypatch.setattr("registry.search.facets.MOST_COUNTED", 5)
    found = facet_counts(dev, SubjectFilter())
    assert found.unowned_beyond and found.counts["attention"]["unowned"] == 5


def test_nothing_is_counted_of_deleted_ones(dev: Registry) -> None:
    assert facet_counts(dev, SubjectFilter(state="deleted")).counts == {}


def test_more_subjects_and_owners_take_no_more_queries(dev: Registry, system: Actor) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            facet_counts(dev, SubjectFilter(text="orders", format="AVRO"))
        return len(seen)

    before = queries()
    for number in range(5):
        register_version(registry="dev", subject=SubjectName(f".n{number}", "orders"), text='"int"', by=system)
        Ownership.objects.create(subject_pattern=f"n{number}*", group=Group.objects.get(name="team"))
    assert queries() == before


def test_where_names_times_patterns_are_too_many_owners_are_not_counted(
    dev: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("registry.search.facets.MOST_LOOKS", 1)
    found = facet_counts(dev, SubjectFilter())
    assert not found.counts["owner"]
    assert "unowned" not in found.counts["attention"], "no number, which isn't none"
    assert found.total == found.counts["format"].total() > 1


def test_in_a_large_registry_nothing_is_counted(dev: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("registry.search.facets.MOST_SUBJECTS", 2)
    found = facet_counts(dev, SubjectFilter())
    assert (found.total, found.counts) == (None, {})
