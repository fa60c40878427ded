"""The detector's version: nobody changes what is found without saying so, and what a newer one brings up is no alarm."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from registry.access.roles import Actor
from registry.api.product.description import body_of
from registry.api.product.drift import SCAN
from registry.drift import selectors
from registry.drift.models import Finding, Scan, Source
from registry.drift.rules import RULES, detector
from registry.drift.rules.detector import DETECTOR, Detector
from registry.drift.scan import persistence
from tests.drift.scans import judged, make_source, scan

pytestmark = pytest.mark.requirement("CARD-3")


def test_whoever_changes_what_is_found_says_so() -> None:
    """`python -m registry.drift.rules.detector` where all findings stay the same, else with `--raise` and the rules."""
    assert DETECTOR.digest == detector.digest()
    assert max(DETECTOR.changed) == DETECTOR.version
    assert {rule for rules in DETECTOR.changed.values() for rule in rules} <= {*RULES, detector.ALL_RULES}


@pytest.mark.parametrize(
    ("text", "is_same"),
    [
        ('"""Another."""\nimport os\n# words\ndef f(a):\n    """Says."""\n    return a  >  1\n', True),
        ("def f(a): return a > 2\n", False),
        ("def f(a): return a >= 1\n", False),
    ],
)
def test_words_and_layout_are_no_other_detector(tmp_path: Path, text: str, is_same: bool) -> None:
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    one.write_text("def f(a):\n    return a > 1\n")
    other.write_text(text)
    assert ast.parse(text)
    assert (detector._decisions(one) == detector._decisions(other)) is is_same


def test_a_severity_is_a_part_of_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    before = detector.digest()
    monkeypatch.setattr(detector, "RULES", {name: rule for name, rule in RULES.items() if name != "UNDECODABLE"})
    assert detector.digest() != before


@pytest.mark.parametrize(
    ("rule", "earlier", "is_new"),
    [
        ("A", 6, True), ("B", 6, False), ("B", 5, True), ("A", 7, False), ("C", 5, False), ("C", 3, True), ("A", None, False),
    ],
)  # fmt: skip
def test_which_rules_a_version_changed(rule: str, earlier: int | None, is_new: bool) -> None:
    """Version 4 changed all, 6 changed B, 7 changed A."""
    assert Detector(7, "", {4: ("*",), 6: ("B",), 7: ("A",)}).is_new_in(rule, earlier) is is_new


@pytest.fixture
def source(registries: None) -> Source:
    return make_source()


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A newer detector, which judges by that rule otherwise."""

    def comes(rule: str) -> None:
        version = DETECTOR.version + 1
        detector = Detector(version, DETECTOR.digest, {**DETECTOR.changed, version: (rule,)})
        monkeypatch.setattr(persistence, "DETECTOR", detector)
        monkeypatch.setattr("registry.drift.scan.persistence.DETECTOR", detector)

    return comes


def of(rule: str) -> Finding:
    return Finding.objects.get(rule=rule)


def test_every_scan_and_finding_says_which_detector_looked(source: Source, system: Actor) -> None:
    scan(source, system, judged("a"))
    assert Scan.objects.get().detector == DETECTOR.version
    assert (Finding.objects.get().detector, Finding.objects.get().rebaselined_from) == (DETECTOR.version, None)


def test_what_a_newer_detector_brings_up_alarms_nobody(
    source: Source, system: Actor, newer: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    scan(source, system, judged("a", rule="UNDECODABLE", severity="break"))
    rules: list[str] = []
    monkeypatch.setattr(
        "registry.drift.scan.persistence.notify_opened",
        lambda _source, *, opened, reopened: rules.extend(row.rule for row in (*opened, *reopened)),
    )
    newer("UNFRAMED_DATA")
    scan(
        source, system, judged("a", rule="UNDECODABLE", severity="break"),
        judged("b", rule="UNFRAMED_DATA", severity="break"), judged("c", rule="FRAME_TRUNCATED", severity="break"),
    )  # fmt: skip
    new = DETECTOR.version + 1
    assert (of("UNFRAMED_DATA").detector, of("UNFRAMED_DATA").rebaselined_from) == (new, DETECTOR.version)
    assert of("FRAME_TRUNCATED").rebaselined_from is None, "a rule that judges as before finds what is new"
    assert of("UNDECODABLE").detector == DETECTOR.version
    assert of("UNFRAMED_DATA").state == "open"
    assert rules == ["FRAME_TRUNCATED"]


def test_the_first_scan_and_scans_without_a_version_excuse_nothing(
    source: Source, system: Actor, newer: Callable[[str], None]
) -> None:
    newer("UNFRAMED_DATA")
    scan(source, system, judged("a", rule="UNFRAMED_DATA"))
    assert of("UNFRAMED_DATA").rebaselined_from is None
    Scan.objects.update(detector=None)
    scan(source, system, judged("a", rule="UNFRAMED_DATA"), judged("b", rule="UNFRAMED_DATA"))
    assert set(Finding.objects.values_list("rebaselined_from", flat=True)) == {None}


def test_a_scan_that_read_nothing_is_none_before(source: Source, system: Actor, newer: Callable[[str], None]) -> None:
    scan(source, system, judged("a", rule="UNDECODABLE"))
    newer("UNFRAMED_DATA")
    Scan.objects.create(
        source=source, state="done", queued_by="tests", read={"nothing": True}, detector=DETECTOR.version + 1
    )
    scan(source, system, judged("b", rule="UNFRAMED_DATA"))
    assert of("UNFRAMED_DATA").rebaselined_from == DETECTOR.version


@pytest.mark.django_db
def test_the_database_takes_no_older_detector_as_the_newer(source: Source, system: Actor) -> None:
    scan(source, system, judged("a"))
    with pytest.raises(IntegrityError), transaction.atomic():
        Finding.objects.update(detector=3, rebaselined_from=3)


def test_page_list_and_api_say_so(source: Source, system: Actor, look: Callable[[str], Client]) -> None:
    scan(source, system, judged("a"))
    Finding.objects.update(detector=7, rebaselined_from=6)
    row, client = Finding.objects.get(), look("reader")
    sentence = "Re-baselined: found by detector 7; earlier scans used 6."
    assert sentence in client.get(f"/ui/findings/{row.pk}").content.decode()
    assert sentence in client.get("/ui/findings").content.decode()
    assert f"detector {DETECTOR.version}" in client.get(f"/ui/sources/{source.pk}").content.decode()
    assert body_of(SCAN, selectors.list_scans(source.pk)[0])["detector"] == DETECTOR.version
    assert asdict(selectors.get_finding(row.pk))["rebaselined_from"] == 6
