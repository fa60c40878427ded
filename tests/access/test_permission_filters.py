"""Where somebody may do something, as SQL has it, against `may()`, which decides."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from registry.access.permission_filters import extent_of, require_extent
from registry.access.roles import Actor, Grant, TokenLimit, may
from registry.drift.models import Finding, Source
from registry.errors import NotAllowed, NotSignedIn
from registry.subjects.models import Registry

pytestmark = pytest.mark.requirement("CARD-4")

READ = "schema.read"
NAMES = (
    "", "orders-value", "Orders-value", "orders", "orders-", "customers-value", ":.billing:orders", ":.billing:b", "a", "b", "c",
    "d", "B", "a-", "ab", "[x]", "x", "x%y", "xzy", "x_y", "x\\y", "é", "order.s", "order1s", "a]b", "(a|b)", "a{1}", "a^", "^", " a",
    "日本-value",
)  # fmt: skip
PATTERNS = (
    "*", "**", "?", "??*", "orders-*", "*-value", "*orders*", "o?ders*", "orders", "Orders*", ":.billing:*", "x%y", "x_y", "x\\y", "x_*",
    "x%*", "*_y", "a]b", "order.s", "(a|b)", "a{1}", "a^*", "é", "?", "日本*", " a",
)  # fmt: skip
#: stored by an earlier version: they match nothing
WITH_SETS = ("[a-c]", "[!a-c]", "[]a]", "[x]", "[", "[[:alpha:]]", "*[", "[!-~]*")


@pytest.fixture
def rows(registries: None) -> None:
    """A finding of each name in two registries."""
    now = timezone.now()
    for place in ("dev", "prod"):
        source = Source.objects.create(registry=Registry.objects.get(name=place), kind="registry", name="x")
        Finding.objects.bulk_create(
            Finding(
                source=source,
                fingerprint=str(number),
                rule="X",
                severity="risk",
                sentence="x",
                remedy="",
                location="",
                subject_name=name,
                evidence={},
                first_seen=now,
                last_seen=now,
            )
            for number, name in enumerate(NAMES)
        )


def _actor(*grants: Grant, **more: Any) -> Actor:
    return Actor("somebody", "product", user_id=1, grants=grants, **more)


def _by_sql(by: Actor) -> set[tuple[str, str]]:
    wanted = extent_of(by, READ).subjects("source__registry__name", "subject_name")
    return set(Finding.objects.filter(wanted).values_list("source__registry__name", "subject_name"))


def _by_may(by: Actor) -> set[tuple[str, str]]:
    return {(place, name) for place in ("dev", "prod") for name in NAMES if may(by, READ, registry=place, subject=name)}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_sql_has_the_subjects_that_may_allows(rows: None, pattern: str) -> None:
    for by in (
        _actor(Grant("reader", "dev", pattern)),
        _actor(Grant("reader", "", pattern)),
        _actor(Grant("reader", "prod", pattern), Grant("steward", "dev", "a*")),
        _actor(Grant("reader"), limit=TokenLimit("read", "dev", pattern)),
        _actor(Grant("reader", "dev", "*a*"), limit=TokenLimit("all", "", pattern)),
    ):
        assert _by_sql(by) == _by_may(by), by


@pytest.mark.parametrize("pattern", WITH_SETS)
def test_a_set_gives_no_right(rows: None, pattern: str) -> None:
    by = _actor(Grant("reader", "", pattern))
    assert _by_sql(by) == _by_may(by) == set()


@pytest.mark.parametrize(
    ("by", "whole", "registries"),
    [
        (_actor(), False, set()),
        (_actor(Grant("reader")), True, {"dev", "prod"}),
        (_actor(Grant("reader", "dev")), False, {"dev"}),
        (_actor(Grant("reader", "dev", "orders*"), Grant("reader", "prod")), False, {"prod"}),
        (_actor(Grant("reader"), limit=TokenLimit("read", "prod")), False, {"prod"}),
        (_actor(Grant("reader", "dev"), limit=TokenLimit("read", "prod")), False, set()),
        (_actor(Grant("reader", "dev"), Grant("reader", "prod"), limit=TokenLimit("read", "prod")), False, {"prod"}),
        (_actor(Grant("reader"), limit=TokenLimit("unknown")), False, set()),
        (_actor(Grant("reader", "", "orders*")), False, set()),
        (_actor(Grant("reader"), past="It is the past."), True, {"dev", "prod"}),
    ],
)
def test_whole_registries(by: Actor, whole: bool, registries: set[str]) -> None:
    extent = extent_of(by, READ)
    assert extent.is_whole is whole
    assert {name for name in ("dev", "prod") if extent.has_all_of(name)} == registries
    assert {name for name in ("dev", "prod") if may(by, READ, registry=name)} == registries


def test_nothing_is_changed_in_the_past() -> None:
    assert not extent_of(_actor(Grant("admin"), past="It is the past."), "finding.decide").parts


def test_a_registry_that_is_not_there_is_refused_as_one_that_is() -> None:
    by = _actor(Grant("reader", "dev"))
    said = []
    for name in ("prod", "nowhere"):
        with pytest.raises(NotAllowed) as refused:
            require_extent(by, READ, registry=name)
        said.append(refused.value.message.replace(name, "X"))
    assert said[0] == said[1]
    with pytest.raises(NotSignedIn):
        require_extent(Actor("anonymous", "ui"), READ)
