"""The numbers beside the filters of the list of subjects: each is what choosing that value leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from registry.access.models import Group, Ownership, User
from registry.access.roles import Actor
from registry.drift.models import Source, Topic
from registry.drift.usage.unused_subjects import find_unused_subjects
from registry.formats.base import Reference
from registry.promotions.services import request_promotion
from registry.search.facets import are_quick, facet_counts
from registry.search.subject_list import Page, SubjectFilter, find_subjects
from registry.subjects.lifecycle.notes import change_tags
from registry.subjects.models import Registry
from registry.subjects.policy.effective_policy import scope_settings_for_many
from registry.subjects.services import delete_subject, register_version, set_config, set_mode, set_version_status
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-2")]

TEXTS = {"AVRO": '"int"', "JSON": '{"type": "string"}'}
NAMES = ("orders.a", "orders.b", "crm.a", "crm.b%", ":.x:orders.a", ":.x:z", "other")


@pytest.fixture
def dev(registries: None, system: Actor, person: Callable[[str], Actor]) -> Registry:
    """Subjects of two formats, with levels, statuses, tags, owners and a request, and a deleted one."""
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
    set_mode(registry="dev", subject=SubjectName(".", "crm.a"), mode="READONLY", by=system)
    set_mode(registry="dev", subject=SubjectName(".x", ""), mode="READONLY_OVERRIDE", by=system)
    set_mode(registry="dev", subject=SubjectName(".x", "z"), mode="IMPORT", by=system, force=True)
    source = Source.objects.create(registry=Registry.objects.get(name="dev"), kind="registry", name="t", created_by="x")
    Topic.objects.create(source=source, name="topic", subjects={"value": ["orders.a", ":.x:z"]})
    refers = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "Known"}]}'
    known = '{"type": "enum", "name": "Known", "symbols": ["A"]}'
    register_version(registry="dev", subject=SubjectName(".", "known"), text=known, by=system)
    register_version(
        registry="dev",
        subject=SubjectName(".", "refers"),
        text=refers,
        references=[Reference("Known", "known", 1)],
        by=system,
    )
    set_version_status(
        registry="dev", subject=SubjectName(".", "crm.a"), version=1, status="retired", message="x", by=system
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


#: facets that are counted before names are held against owners
USUAL = {"format", "level", "mode", "level_from", "state", "attention", "references", "use", "tag"}
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
    {"mode": "READONLY"},
    {"mode": "READWRITE", "level_from": "own"},
    {"level_from": "inherited"},
    {"references": "refers"},
    {"references": "referred", "level": "BACKWARD"},
    {"use": "unused"},
    {"use": "unused", "text": "a"},
    {"lacks": "description"},
    {"lacks": "channel", "owner": "group:team"},
]


def test_a_number_is_what_choosing_the_value_leaves(dev: Registry) -> None:
    for chosen in CHOSEN:
        numbers_are_right(dev, chosen)
    # a pattern that the database doesn't have
    Ownership.objects.create(subject_pattern="o[st]her", group=Group.objects.get(name="team"))
    for chosen in CHOSEN:
        numbers_are_right(dev, chosen)


def numbers_are_right(dev: Registry, chosen: dict[str, str]) -> None:
    def total(**more: Any) -> int:
        return find_subjects(dev, SubjectFilter(**{**chosen, **more}), Page()).total

    facets = facet_counts(dev, SubjectFilter(**chosen))
    found = facets.counts
    assert facets.is_whole and facets.total == total(), chosen
    for facet, values in {
        "format": ("AVRO", "JSON", "PROTOBUF"),
        "level": ("BACKWARD", "FULL", "NONE", "FORWARD"),
        "state": ("retired", "deprecated"),
        "attention": ("drift", "pending", "unowned"),
        "tag": ("pii", "t1", "t3"),
        "owner": ("group:team", "user:reader"),
        "mode": ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD"),
        "level_from": ("own", "inherited"),
        "references": ("refers", "referred"),
        "use": ("unused",),
    }.items():
        assert {value: found[facet][value] for value in values} == {
            value: total(**{facet: value}) for value in values
        }, (chosen, facet)


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


def test_without_owners_everything_is_without_one(dev: Registry) -> None:
    Ownership.objects.all().delete()
    assert facet_counts(dev, SubjectFilter()).counts["attention"]["unowned"] == len(NAMES) + 2


@pytest.mark.parametrize(
    ("part", "counted"),
    [
        ("_PARTS", set()),
        ("_OWNERS", USUAL),
        ("_UNOWNED", USUAL),
    ],
)
def test_what_takes_too_long_isnt_reported(
    dev: Registry, monkeypatch: pytest.MonkeyPatch, part: str, counted: set[str]
) -> None:
    slow = "SELECT 'format', 'AVRO', 1 FROM pg_sleep(9)"
    monkeypatch.setattr(f"registry.search.facets.{part}", {"format": slow} if part == "_PARTS" else slow)
    found = facet_counts(dev, SubjectFilter(), seconds=0.5)
    assert set(found.counts) == counted and not found.is_whole
    assert (found.total is None) == (not counted)
    assert "unowned" not in found.counts.get("attention", {}), "no number, which isn't none"
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() != ("500ms",), "nothing else is hurried"


@pytest.mark.parametrize(("looks", "patterns", "quick"), [(99, 1, True), (98, 1, False), (99, 2, False), (0, 0, False)])
def test_subjects_and_patterns_decide_whether_a_page_has_the_time(
    dev: Registry, monkeypatch: pytest.MonkeyPatch, looks: int, patterns: int, quick: bool
) -> None:
    monkeypatch.setattr("registry.search.facets.MAX_PATTERN_MATCHES", looks)
    assert are_quick(dev, patterns) is quick


def test_the_filters_are_what_the_pages_of_each_say(dev: Registry, system: Actor) -> None:
    """By the selectors that tell one subject's mode, level and need."""
    whole = [row.subject for row in find_subjects(dev, SubjectFilter(sort="name"), Page()).rows]

    def left(**chosen: str) -> set[str]:
        return {row.subject.qualified for row in find_subjects(dev, SubjectFilter(**chosen), Page()).rows}

    modes = {name.qualified: spoken.mode(dev).mode for name, spoken in scope_settings_for_many(dev, whole).items()}
    assert set(modes.values()) == {"READWRITE", "READONLY", "READONLY_OVERRIDE"}
    for mode in ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT"):
        assert left(mode=mode) == {name for name, its in modes.items() if its == mode}, mode
    assert left(level_from="own") == {"orders.a", ":.x:z"}
    assert left(references="refers") == {"refers"} and left(references="referred") == {"known"}
    assert left(use="unused") == {row.subject.qualified for row in find_unused_subjects(dev, by=system).rows}
    assert not {"orders.a", ":.x:z", "known"} & left(use="unused") and "other" in left(use="unused")
    set_mode(registry="dev", subject=None, mode="READONLY_OVERRIDE", by=system)
    assert left(mode="READONLY") == set() and len(left(mode="READONLY_OVERRIDE")) == len(whole)
    assert facet_counts(dev, SubjectFilter()).counts["mode"] == {"READONLY_OVERRIDE": len(whole)}


def test_of_what_isnt_scanned_nothing_is_known(dev: Registry) -> None:
    Topic.objects.all().delete()
    assert find_subjects(dev, SubjectFilter(use="unused"), Page()).rows == []
    assert not facet_counts(dev, SubjectFilter()).counts["use"]
