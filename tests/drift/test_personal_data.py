"""Values of fields that are tagged as personal data: never kept, and shown to those alone who have the right to."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from registry.access.models import User
from registry.access.roles import ADMIN, STEWARD, Actor, Grant
from registry.drift import selectors, services
from registry.drift.models import FieldStatistic, Finding, Source
from registry.drift.scan.personal_data import without_personal
from registry.drift.scan.runner import perform_scan
from registry.drift.selectors.messages import decode_message
from registry.drift.sources import kafka
from registry.drift.sources.base import ScannedTopic
from registry.drift.sources.kafka_offsets import TopicPlan
from registry.drift.sources.kafka_survey import Survey
from registry.formats.personal_data import MASK
from registry.observations import (
    FieldProfile,
    FramedMessages,
    Observation,
    PartitionRead,
    RankedMessages,
    Sample,
    ScanTotals,
    Span,
    TopicTotals,
)
from registry.subjects.models import Registry, Schema
from registry.subjects.services import register_version, set_note
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import RawClient, signed_in
from tests.drift.scans import judged, make_source, scan

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-4")]
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "email", "type": "string", "confluent:tags": ["PII"]},
        {"name": "illness", "confluent:tags": ["gdpr"],
         "type": {"type": "enum", "name": "Illness", "symbols": ["NONE", "DIABETES"]}},
        {"name": "ward", "type": {"type": "enum", "name": "Ward", "symbols": ["NORTH", "SOUTH"]}},
    ],
}  # fmt: skip
MASKED = '{"id": "1e0", "email": "aaa@aaa.aaa (11)", "illness": "AAAAAAAA (8)", "ward": "AAAAA (5)"}'
SECRETS = ("aaa@aaa.aaa", "DIABETES", "AAAAAAAA (8)", "11 characters")


@pytest.fixture
def source(registries: None) -> Source:
    return make_source(keep_samples=True)


@pytest.fixture
def number(source: Source, system: Actor) -> int:
    """The schema id of a tagged schema, which is another subject's than the topic's."""
    register_version(registry="dev", subject=SubjectName(".", "orders-value"), text='"int"', by=system)
    text = json.dumps(SCHEMA)
    return register_version(registry="dev", subject=SubjectName(".", "patients-value"), text=text, by=system).schema_id


def profile(number: int, path: str, **more: Any) -> FieldProfile:
    base: dict[str, Any] = {"minimum": None, "maximum": None, "values": {}, "kinds": {"string": 5}}
    return FieldProfile("orders", "value", "id", str(number), path, 5, 5, 0, distinct=2, **(base | more))


def observed(number: int) -> list[Observation]:
    span = Span(5, 50, 0, 4, 1_000, 1_004)
    return [
        PartitionRead("orders", 0, 0, 5, 0, 5, 5),
        FramedMessages("orders", "value", 0, "id", str(number), span),
        profile(number, "id", minimum="1e0", maximum="1e3"),
        profile(number, "email", minimum="9 characters", maximum="11 characters"),
        profile(number, "illness", values={"DIABETES": 5}),
        profile(number, "ward", values={"NORTH": 5}),
        Sample("orders", "value", 0, 2, 1_002, "id", str(number), MASKED, revealed=False),
        TopicTotals("orders", 5, 50, None),
        ScanTotals(1, 5, 50, None, 0.1),
    ]


@pytest.fixture
def scanned(source: Source, number: int, system: Actor, monkeypatch: pytest.MonkeyPatch) -> Finding:
    """What a scan left that saw those messages in the topic of another subject; only broker and Spark are not there."""
    survey = Survey({"orders": ScannedTopic("orders", partitions=1)}, {"orders": TopicPlan(())}, ("orders",))
    monkeypatch.setattr(kafka, "survey_cluster", lambda source: survey)
    monkeypatch.setattr(kafka, "observe", lambda *args, **named: observed(number))
    assert perform_scan(services.queue_scan(source_id=source.pk, by=system)) == "done"
    return Finding.objects.get(rule="ID_OF_OTHER_SUBJECT")


def test_nothing_of_a_personal_field_is_kept(scanned: Finding) -> None:
    stored = {row.path: (row.minimum, row.maximum, row.values) for row in FieldStatistic.objects.all()}
    assert stored == {
        "id": ("1e0", "1e3", {}),
        "email": ("", "", {}),
        "illness": ("", "", {}),
        "ward": ("", "", {"NORTH": 5}),
    }
    (sample,) = scanned.evidence["samples"]
    assert json.loads(sample["value"]) == {"id": "1e0", "email": MASK, "illness": MASK, "ward": "AAAAA (5)"}
    everything = json.dumps([[row.sentence, row.remedy, row.evidence] for row in Finding.objects.all()])
    assert not [secret for secret in SECRETS if secret in everything]


def test_what_an_earlier_scan_kept_goes_with_the_next_one(
    source: Source, number: int, scanned: Finding, system: Actor
) -> None:
    subject = SubjectName(".", "patients-value")
    set_note(registry="dev", subject=subject, tags=["personal"], doc="", by=system, expected="*")
    cleaned = without_personal(source, observed(number))
    assert not FieldStatistic.objects.exclude(values={}, minimum="", maximum="").exists()
    assert not [item for item in cleaned if isinstance(item, FieldProfile) and (item.values or item.minimum)]
    assert [item.text for item in cleaned if isinstance(item, Sample)] == [json.dumps(dict.fromkeys(
        ("id", "email", "illness", "ward"), MASK))]  # fmt: skip


def test_ranks_of_personal_fields_are_not_compared(source: Source, number: int) -> None:
    ranked = RankedMessages("orders", "value", "id", str(number), ("email", "id"), ((0, 7, (110_000, 4_000)),))
    (cleaned,) = without_personal(source, [ranked])
    assert isinstance(cleaned, RankedMessages)
    assert (cleaned.paths, cleaned.rows) == (("id",), ((0, 7, (4_000,)),))


def test_a_sample_that_was_cut_is_not_kept_at_all(source: Source, number: int) -> None:
    cut = Sample("orders", "value", 0, 2, 1_002, "id", str(number), MASKED[:60] + "…", revealed=False)
    assert [item.text for item in without_personal(source, [cut]) if isinstance(item, Sample)] == [MASK]


def test_plain_json_is_masked_as_the_topic_s_subject_says(source: Source, system: Actor) -> None:
    text = json.dumps({"type": "object", "properties": {"email": {"type": "string", "confluent:tags": ["PII"]},
                                                        "id": {"type": "integer"}}})  # fmt: skip
    register_version(registry="dev", subject=SubjectName(".", "plain-value"), text=text, schema_type="JSON", by=system)
    bare = Sample("plain", "value", 0, 1, 1, None, "", '{"email": "a@a (3)", "id": "1e0"}', revealed=False)
    other = Sample("free", "value", 0, 1, 1, None, "", '{"email": "a@a (3)"}', revealed=False)
    cleaned = without_personal(source, [bare, other])
    assert [json.loads(item.text) for item in cleaned if isinstance(item, Sample)] == [
        {"email": MASK, "id": "1e0"},
        {"email": "a@a (3)"},
    ]


def test_the_tags_that_mean_personal_data_are_a_setting(source: Source, number: int, settings: Any) -> None:
    settings.PERSONAL_TAGS = ("GDPR",)
    cleaned = without_personal(source, observed(number))
    maxima = {item.path: item.maximum for item in cleaned if isinstance(item, FieldProfile)}
    assert maxima["email"] == "11 characters"
    assert not [item for item in cleaned if isinstance(item, FieldProfile) and "DIABETES" in item.values]


def test_many_schemas_take_as_many_queries_as_one(source: Source, number: int, system: Actor) -> None:
    def queries(observations: Sequence[Observation]) -> int:
        with CaptureQueriesContext(connection) as caught:
            without_personal(source, observations)
        return len(caught)

    few = queries(observed(number))
    more = list(observed(number))
    for name in ("a", "b", "c"):
        schema = {**SCHEMA, "name": name}
        subject = SubjectName(".", f"{name}-value")
        more += observed(
            register_version(registry="dev", subject=subject, text=json.dumps(schema), by=system).schema_id
        )
    assert queries(more) == few


# -- what was kept before the field was tagged ----------------------------------------------------------------------


def kept_before(source: Source, system: Actor) -> Finding:
    register_version(registry="dev", subject=SubjectName(".", "orders-value"), text=json.dumps(SCHEMA), by=system)
    samples = [{"partition": 0, "offset": 17, "time": 1, "value": MASKED}]
    scan(source, system, judged(evidence={"topic": "orders", "side": "value", "samples": samples}))
    return Finding.objects.get()


@pytest.mark.parametrize(("name", "sees"), [("steward", False), ("approver", False), ("admin", True)])
def test_samples_are_masked_at_every_channel_but_for_those_with_the_right(
    source: Source, system: Actor, token: Callable[[str], str], name: str, sees: bool
) -> None:
    finding = kept_before(source, system)
    client, headers = RawClient(), {"HTTP_AUTHORIZATION": f"Bearer {token(name)}"}
    channels = [f"/api/v1/findings/{finding.pk}", "/api/v1/findings", "/api/v1/findings?fail_on=break"]
    contents = [client.get(address, **headers).content.decode() for address in channels]  # type: ignore[arg-type]
    client.force_login(User.objects.get(username=name))
    contents.append(client.get(f"/ui/findings/{finding.pk}").content.decode())
    for text in contents:
        assert ("aaa@aaa.aaa" in text) is sees
        assert ("AAAAA (5)" in text) is True  # what is not tagged
        assert (MASK in text) is not sees


def test_a_list_of_findings_takes_as_many_queries_for_many(source: Source, system: Actor) -> None:
    kept_before(source, system)
    by = Actor("s", "ui", user_id=1, grants=(Grant(STEWARD),))

    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            selectors.list_findings(by=by)
        return len(caught)

    few = queries()
    samples = [{"partition": 0, "offset": 17, "time": 1, "value": MASKED}]
    scan(source, system, *(judged(name, evidence={"topic": "orders", "samples": samples}) for name in "bcdef"))
    assert queries() == few


def test_findings_of_a_subject_that_is_not_there_are_shown_as_they_are(source: Source, system: Actor) -> None:
    samples = [{"partition": 0, "offset": 17, "time": 1, "value": MASKED}]
    scan(source, system, judged(subject="nowhere-value", evidence={"samples": samples}))
    by = Actor("s", "ui", user_id=1, grants=(Grant(STEWARD),))
    assert selectors.get_finding(Finding.objects.get().pk, by=by).evidence["samples"] == samples


# -- pasted messages ------------------------------------------------------------------------------------------------


def pasted(number: int) -> str:
    return f"00{number:08x}" + "0e" + "16" + b"ada@ada.org".hex() + "02" + "02"


def test_a_pasted_message_is_decoded_without_what_is_personal(number: int) -> None:
    registry = get_registry("dev")
    steward, admin = (Actor("x", "ui", user_id=1, grants=(Grant(role),)) for role in (STEWARD, ADMIN))
    message = decode_message(registry, text=pasted(number), by=steward)
    assert (message.value, message.masked) == ({"id": 7, "email": MASK, "illness": MASK, "ward": "SOUTH"}, True)
    whole = decode_message(registry, text=pasted(number), by=admin)
    assert whole.value["email"] == "ada@ada.org"
    assert not whole.masked


def test_the_page_says_that_values_are_masked(number: int, person: Callable[[str], Actor]) -> None:
    person("steward")
    client = signed_in("steward")
    page = client.post("/ui/decode", {"registry": "dev", "message": pasted(number)}).content.decode()
    assert "ada@ada.org" not in page.partition("Personal data is masked")[2]
    assert "see values of fields tagged as personal data" in page
    assert "SOUTH" in page


def test_what_a_json_schema_says_against_a_value_does_not_tell_it(registries: None, system: Actor) -> None:
    text = json.dumps({"type": "object", "properties": {"email": {"type": "integer", "confluent:tags": ["PII"]}}})
    done = register_version(
        registry="dev", subject=SubjectName(".", "j-value"), text=text, schema_type="JSON", by=system
    )
    body = b'{"email": "ada@ada.org"}'.hex()
    by = Actor("x", "ui", user_id=1, grants=(Grant(STEWARD),))
    message = decode_message(get_registry("dev"), text=f"00{done.schema_id:08x}{body}", by=by)
    assert message.problems
    assert "ada" not in json.dumps(message.to_dict())
    assert Schema.objects.filter(context__registry=Registry.objects.get(name="dev")).exists()
