"""Renamed rules: their findings, mutes and filters go on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib import import_module

import pytest
from django.db import connection
from django.test import Client

from registry.access.roles import Actor
from registry.drift.judge.model import fingerprint_of
from registry.drift.models import Finding, Mute
from registry.drift.rules import FORMER, RULES
from tests.drift.scans import judged, make_source, scan

MIGRATION = "registry.drift.migrations.0013_rule_names"


def test_no_id_is_used_again() -> None:
    assert FORMER == import_module(MIGRATION).NAMES
    assert not set(FORMER) & set(RULES)
    assert len({rule.first_id for rule in RULES.values()}) == len(RULES)


def test_a_finding_of_a_renamed_rule_keeps_its_fingerprint() -> None:
    former = hashlib.sha256("\x1f".join(("FRAME_CUT", "orders", "value")).encode()).hexdigest()
    assert fingerprint_of("FRAME_TRUNCATED", ("orders", "value")) == former


@pytest.mark.django_db
def test_findings_and_mutes_get_the_new_names(registries: None, system: Actor) -> None:
    source = make_source()
    for name in "abc":
        scan(source, system, judged(name, rule="UNFRAMED_DATA", evidence={"topic": "orders"}))
    old = (
        ("ID_BELOW_LEAST", {"standing": "below the least version", "least": 3}),
        ("CHECK_LIMITED", {"rule": "FRAME_CUT"}),
        ("ID_RETIRED", {"standing": "retired", "until": None}),
    )
    for number, (rule, evidence) in zip(Finding.objects.order_by("pk").values_list("pk", flat=True), old, strict=True):
        Finding.objects.filter(pk=number).update(rule=rule, evidence=evidence)
    for pattern in ("FRAME_CUT", "KEY_*", "TABLE?GONE", "ID_*", "x%"):
        Mute.objects.create(registry=source.registry, rule=pattern, reason="known", created_by="ada")
    with connection.cursor() as cursor:
        for statement in import_module(MIGRATION).SQL:
            cursor.execute(*([statement] if isinstance(statement, str) else statement))
    assert list(Finding.objects.order_by("pk").values_list("rule", "evidence")) == [
        ("ID_BELOW_MINIMUM_VERSION", {"status": "below the minimum version", "minimum_version": 3}),
        ("CHECK_LIMITED", {"rule": "FRAME_TRUNCATED"}),
        ("ID_RETIRED", {"status": "retired", "until": None}),
    ]
    assert sorted(Mute.objects.values_list("rule", flat=True)) == sorted(
        ["FRAME_TRUNCATED", "KEY_*", "TABLE_WITHOUT_KEY", "TABLE?GONE", "TABLE_DROPPED", "ID_*", "x%"]
    )


@pytest.mark.django_db
@pytest.mark.parametrize("rule", ["FRAME_CUT", "FRAME_TRUNCATED"])
def test_a_filter_takes_both_names(rule: str, registries: None, system: Actor, api: Callable[[str], Client]) -> None:
    source = make_source()
    scan(source, system, judged("a", rule="FRAME_TRUNCATED"), judged("b", rule="UNFRAMED_DATA"))
    rows = api("reader").get("/api/v1/findings", {"rule": rule}).json()
    assert [row["rule"] for row in rows] == ["FRAME_TRUNCATED"]
