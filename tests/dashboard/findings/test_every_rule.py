"""A finding of every rule, as its judge makes it: kept, then shown on its page, by the API, as a notice and by a webhook."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from typing import Any, get_args, get_origin

import pytest
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboard.findings import evidence as findings_evidence
from dashboard.findings.evidence_tables import COUNTED, bar_tables
from dashboard.templatetags.desk import visible
from registry.access.roles import Actor
from registry.drift.evidence import FORMS, fields_of_rule, read_evidence
from registry.drift.judge import JudgedFinding
from registry.drift.models import Finding, Source
from registry.drift.rules import RULES, TABLES
from registry.notifications.models import Delivery
from registry.notifications.webhook_delivery import deliver
from tests.drift.judge.real_findings import findings_by_rule
from tests.drift.scans import make_source, scan, topic
from tests.drift.test_evidence import JSON
from tests.notifications.conftest import hook, server
from tests.notifications.endpoint import Endpoint

__all__ = ["hook", "server"]  # fixtures of the tests of notifications

pytestmark = pytest.mark.requirement("CARD-3", "CARD-4")
#: table of rules → kind of source whose scans judge by them
KINDS = {
    "Topics": "kafka",
    "Fields of decoded messages": "kafka",
    "The registry itself": "registry",
    "State of streaming queries": "state_store",
    "Change events from PostgreSQL": "debezium",
}
KIND_OF_RULE = {rule.id: KINDS[title] for title, table in TABLES.items() for rule in table}


def keep(finding: JudgedFinding, by: Actor) -> Finding:
    """The finding as a scan of the right kind of source keeps it."""
    kind = KIND_OF_RULE[finding.rule]
    more: dict[str, Any] = {} if kind in ("kafka", "debezium") else {"cluster": None}
    source: Source = make_source(kind=kind, name=f"a {kind}", **more)
    names = {finding.topic} - {""}
    scan(source, by, finding, topics=tuple(topic(name) for name in names))
    return Finding.objects.get(source=source)


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_finding_of_the_rule_reaches_everybody(
    rule: str,
    look: Callable[[str], Client],
    api: Callable[[str], Client],
    system: Actor,
    hook: str,
    server: Endpoint,
    person: Callable[[str], Actor],
) -> None:
    approver = person("approver")
    row = keep(findings_by_rule()[rule], system)

    response = look("admin").get(f"/ui/findings/{row.pk}")
    page = html.unescape(response.content.decode())
    assert response.status_code == 200
    assert str(visible(row.sentence)) in response.content.decode()
    for title in titles(rule, row.evidence):
        assert title in page, f"the page of {rule} doesn't show {title}"

    api_response = api("admin").get(f"/api/v1/findings/{row.pk}")
    assert api_response.status_code == 200
    assert api_response.json()["evidence"] == row.evidence

    inbox = look(approver.name).get("/ui/inbox")
    assert inbox.status_code == 200
    assert (str(visible(row.sentence)) in inbox.content.decode()) == (row.severity == "break")

    deliveries = list(Delivery.objects.values_list("pk", flat=True))
    if row.severity == "notice":
        assert deliveries == []
        return
    assert deliver(*deliveries) == "delivered"
    message = json.loads(server.got[-1].body)
    assert (message["type"], message["data"]["text"]) == ("finding.opened", row.sentence)
    details = message["data"]["details"]
    assert (details["rule"], details["severity"]) == (rule, row.severity)


#: values that the page shows elsewhere: a variable's comparison, notes of bars, times of partitions
ELSEWHERE = {"old_schema", "new_schema", "ids_by_hour_spread", "ids_by_hour_earlier", "first_time", "last_time"}


def is_counted(kind: Any) -> bool:
    """Whether the type is counts by name, shown as bars."""
    return get_origin(kind) is dict and get_args(kind)[1] is int


def titles(rule: str, evidence: dict[str, Any]) -> list[str]:
    """What the page has to say of each field that the evidence has."""
    listed = []
    for name, kind in fields_of_rule(rule).items():
        if name in ELSEWHERE or evidence.get(name) in (None, "", [], {}):
            continue
        if is_counted(kind):
            listed.append(str(COUNTED[name][0]))
        elif name == "says" or findings_evidence.row_of(kind) is not None:
            listed.append(str(findings_evidence.TITLES[name]))
        else:
            listed.append(str(findings_evidence.LABELS[name]))
    return listed


@pytest.mark.parametrize("rule", sorted(FORMS))
def test_the_page_has_a_label_for_every_field_of_the_form(rule: str) -> None:
    for name, kind in fields_of_rule(rule).items():
        if name in ELSEWHERE:
            continue
        row = findings_evidence.row_of(kind)
        if row is not None:
            assert name in findings_evidence.TITLES
            assert {column for _, column in findings_evidence.COLUMNS[row]} | {"hours", "time"} >= set(
                row.__annotations__
            )
        elif is_counted(kind):
            assert name in COUNTED
        else:
            assert name in findings_evidence.LABELS or name == "says"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(FORMS)), st.data())
def test_whatever_an_older_release_kept_the_page_can_show_the_rest(rule: str, data: st.DataObject) -> None:
    stored = data.draw(st.dictionaries(st.sampled_from(sorted(fields_of_rule(rule))), JSON, max_size=6))
    evidence = read_evidence(rule, stored)
    findings_evidence.evidence_facts(rule, evidence)
    findings_evidence.evidence_tables(rule, evidence)
    bar_tables(evidence)
