"""Samples of messages in every channel, shown to those alone who may see them, and links on a source's page."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from registry.access.models import User
from registry.access.roles import Actor
from registry.access.services import issue_token
from registry.audit.models import AuditEvent
from registry.drift import selectors
from registry.drift.models import FieldStatistic, Finding, Scan, Source
from registry.drift.rules import RULES
from registry.drift.services import acknowledge
from registry.drift.sources import SOURCES
from registry.drift.sources.base import ScanResult
from registry.notifications.models import Notice
from registry.notifications.services import subscribe
from registry.streams.models import StreamQuery
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import RawClient, signed_in
from tests.drift.scans import READ, judged, make_source, scan, topic
from tests.drift.test_scan_runner import Fake

pytestmark = pytest.mark.django_db
VALUE = '{"mail": "aaa@aaaaaaa.aaa (15)"}'
SAMPLES = [{"partition": 0, "offset": 17, "time": 1, "value": VALUE}]
#: who, and whether samples are theirs to see
WHO = {"reader": False, "stranger": False, "steward": True, "approver": True, "admin": True}


@pytest.fixture
def source(registries: None) -> Source:
    return make_source()


@pytest.fixture
def finding(source: Source, system: Actor) -> Finding:
    scan(source, system, judged(evidence={"topic": "orders", "side": "value", "samples": SAMPLES}))
    return Finding.objects.get()


@pytest.mark.requirement("CARD-3")
@pytest.mark.parametrize("name", WHO)
def test_the_page_and_the_api_show_samples_to_those_who_may(
    finding: Finding, token: Callable[[str], str], name: str
) -> None:
    client, headers = RawClient(), {"HTTP_AUTHORIZATION": f"Bearer {token(name)}"}
    for address in ("/api/v1/findings", f"/api/v1/findings/{finding.pk}", "/api/v1/findings?fail_on=break"):
        content = client.get(address, **headers).content.decode()  # type: ignore[arg-type]
        assert ("aaa@aaaaaaa.aaa" in content) is WHO[name], address
    client.force_login(User.objects.get(username=name))
    page = client.get(f"/ui/findings/{finding.pk}").content.decode()
    assert ("aaa@aaaaaaa.aaa" in page) is WHO[name]
    if name == "reader":
        assert "to see samples of messages" in page


def test_nobody_who_isn_t_signed_in_sees_a_sample(finding: Finding, settings: Any) -> None:
    settings.ANONYMOUS_ROLE = "reader"
    client = RawClient()
    for address in ("/api/v1/findings", f"/api/v1/findings/{finding.pk}", f"/ui/findings/{finding.pk}", "/ui/findings"):
        response = client.get(address)
        assert response.status_code == 200
        assert "aaa@aaaaaaa.aaa" not in response.content.decode()


@pytest.mark.parametrize(("scope", "sees"), [("read", False), ("scan", True), ("promote", False), ("all", True)])
def test_a_token_s_scope_says_too(
    finding: Finding, person: Callable[[str], Actor], system: Actor, scope: str, sees: bool
) -> None:
    person("steward")
    headers = {"HTTP_AUTHORIZATION": f"Bearer {issue_token(username='steward', name='t', by=system, scope=scope)}"}
    content = RawClient().get(f"/api/v1/findings/{finding.pk}", **headers).content.decode()  # type: ignore[arg-type]
    assert ("aaa@aaaaaaa.aaa" in content) is sees


def test_samples_are_in_no_audit_no_notice_and_no_printed_scan(
    source: Source, person: Callable[[str], Actor], system: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribe(event="*", by=person("steward"))
    scan(source, system, judged(evidence={"topic": "orders", "side": "value", "samples": SAMPLES}))
    finding = Finding.objects.get()
    acknowledge(finding_id=finding.pk, reason="later", until=None, by=person("steward"))
    events = AuditEvent.objects.filter(table="drift_finding")
    assert {event.operation for event in events} == {"INSERT", "UPDATE"}
    assert all("aaa@" not in json.dumps([event.before, event.after]) for event in events)
    assert Notice.objects.exists(), "a breaking finding is told"
    assert all("aaa@" not in json.dumps([notice.text, notice.data]) for notice in Notice.objects.all())
    finding_b = judged("b", evidence={"topic": "orders", "samples": SAMPLES})
    monkeypatch.setitem(SOURCES, "kafka", Fake(lambda _: ScanResult((finding_b,), READ, True, (topic(),))))
    out = io.StringIO()
    call_command("scan_source", "topics", "--fail-on", "never", "--format", "json", stdout=out)
    assert "finding b" in out.getvalue()
    assert "aaa@" not in out.getvalue()


def test_by_default_a_selector_gives_none(finding: Finding, person: Callable[[str], Actor]) -> None:
    assert "samples" not in selectors.get_finding(finding.pk).evidence
    assert selectors.get_finding(finding.pk).samples_hidden
    whole = selectors.get_finding(finding.pk, by=person("steward"))
    assert (whole.evidence["samples"], whole.samples_hidden) == (SAMPLES, False)


# ---- a schema from what was seen -----------------------------------------------------------------------------------


def statistic(finding: Finding, path: str, kinds: dict[str, int], **more: Any) -> None:
    values = {"side": "value", "framing": "", "mark": "", "messages": 40, "present": 40, "nulls": 0} | more
    FieldStatistic.objects.create(topic=finding.topic, path=path, day=finding.last_seen.date(), kinds=kinds, **values)


@pytest.mark.requirement("CARD-3")
def test_a_finding_leads_to_a_schema_that_has_what_was_seen(
    source: Source, person: Callable[[str], Actor], system: Actor
) -> None:
    declared = '{"type": "object", "properties": {"id": {"type": "string"}}}'
    register_version(
        registry="dev", subject=SubjectName(".", "orders-value"), text=declared, by=system, schema_type="JSON"
    )
    evidence = {"topic": "orders", "side": "value", "framing": "id", "mark": "1", "field": "coupon"}
    scan(source, system, judged(rule="FIELD_UNDECLARED", severity="risk", evidence=evidence))
    finding = Finding.objects.get()
    statistic(finding, "id", {"string": 40}, framing="id", mark="1")
    statistic(finding, "coupon", {"integer": 10}, framing="id", mark="1", present=10)
    statistic(finding, "other", {"integer": 10})
    client = RawClient()
    person("steward")
    client.force_login(User.objects.get(username="steward"))
    page = client.get(f"/ui/findings/{finding.pk}")
    assert "Propose schema" in page.content.decode()
    found = page.context["page"]
    assert found.propose_refused == ""
    editor = client.get(found.propose_url).context["page"]
    document = json.loads(editor.form["text"].value())
    assert document["properties"] == {"id": {"type": "string"}, "coupon": {"type": "integer"}}
    assert editor.form["subject"].value() == "orders-value"
    assert "coupon (in 25%)" in editor.form["reason"].value()


def test_a_topic_that_nothing_describes_gets_a_schema_of_its_own(
    source: Source, person: Callable[[str], Actor], system: Actor
) -> None:
    evidence = {"topic": "orders", "side": "value", "looks_like": {"json_object": 40}}
    scan(source, system, judged(rule="TOPIC_WITHOUT_SUBJECT", severity="notice", subject="", evidence=evidence))
    finding = Finding.objects.get()
    client = RawClient()
    person("steward")
    client.force_login(User.objects.get(username="steward"))
    url = client.get(f"/ui/findings/{finding.pk}").context["page"].propose_url
    editor = client.get(url).context["page"]
    assert "Scan the source again" in editor.form["reason"].value()
    statistic(finding, "page", {"string": 40})
    editor = client.get(url).context["page"]
    assert editor.form["subject"].value() == "orders-value"
    assert json.loads(editor.form["text"].value())["properties"] == {"page": {"type": "string"}}
    said = "Before you register the schema, have the producers use a serializer that writes schema ids."
    assert (
        said in editor.form["reason"].value()
        and "unless you mute that rule for the subject" in editor.form["reason"].value()
    )
    assert "mute UNFRAMED_DATA for it before you register" in RULES["TOPIC_WITHOUT_SUBJECT"].remedy
    assert "If no producer writes schema ids and the subject only documents" in RULES["UNFRAMED_DATA"].remedy


def test_a_finding_about_something_else_proposes_nothing(finding: Finding, person: Callable[[str], Actor]) -> None:
    client = RawClient()
    person("steward")
    client.force_login(User.objects.get(username="steward"))
    assert client.get(f"/ui/findings/{finding.pk}").context["page"].propose_refused is None


def page_of(person: Callable[[str], Actor], number: int) -> Any:
    person("reader")
    client = signed_in("reader")
    return client.get(f"/ui/sources/{number}")


def test_a_checkpoint_leads_to_its_query_and_says_why_rows_weren_t_read(
    registries: None, person: Callable[[str], Actor]
) -> None:
    source = make_source(kind="state_store", name="/data/totals", cluster=None)
    assert b"View query and state" not in page_of(person, source.pk).content
    query = StreamQuery.objects.create(
        source=source, registry=source.registry, path="/data/totals", query_id="q", scanned_at=timezone.now(),
        allowed_value_schemas=16, allowed_schema_files=128,
    )  # fmt: skip
    read = {"nothing": False, "rows": 0, "seconds": 1, "variables": [], "rows_problem": "Spark isn't there <b>"}
    Scan.objects.create(source=source, state="done", queued_by="s", read=read)
    content = page_of(person, source.pk).content.decode()
    assert f'href="/ui/queries/{query.pk}"' in content
    assert "Spark isn&#x27;t there &lt;b&gt;." in content


def test_topics_lead_to_no_query(registries: None, person: Callable[[str], Actor]) -> None:
    assert b"View query and state" not in page_of(person, make_source().pk).content
