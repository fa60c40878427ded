"""A finding that names versions of other subjects: who may read its own subject alone learns nothing of those."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from registry.access.models import RoleGrant, User
from registry.access.roles import Actor
from registry.access.services import add_owner
from registry.drift.findings.redaction import (
    NAMING_FIELDS,
    NAMING_RULES,
    redacted_cause,
    redacted_evidence,
    redacted_text,
)
from registry.drift.judge import JudgedFinding
from registry.drift.models import Finding
from registry.notifications.models import InboxEntry
from tests.dashboard.findings.test_every_rule import keep
from tests.drift.judge.real_findings import findings_by_rule
from tests.services_plugin import as_owner

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-4")]
SECRET = "customers-value"
OWNERS = f"{SECRET} version 2, orders-value version 1"
#: rules whose findings name versions, of those that are about a subject
NAMING = sorted(
    rule
    for rule, made in findings_by_rule().items()
    if made.subject and any(made.evidence.get(field) for field in NAMING_FIELDS)
)


def of_orders(rule: str) -> JudgedFinding:
    """A real finding of the rule about orders-value that names a version of another subject too."""
    made = findings_by_rule()[rule]
    field = next(name for name in NAMING_FIELDS if made.evidence.get(name))
    sentence = made.sentence.replace(made.evidence[field], OWNERS)
    return replace(
        made, subject="orders-value", sentence=sentence, severity="break", evidence=made.evidence | {field: OWNERS}
    )


def test_rules_name_versions() -> None:
    assert {"ID_OF_OTHER_SUBJECT", "UNDECODABLE", "UNKNOWN_SCHEMA_ID"} <= set(NAMING)


@pytest.mark.slow
@pytest.mark.parametrize("rule", NAMING)
def test_no_channel_names_another_subject(
    rule: str,
    person: Callable[[str], Actor],
    look: Callable[[str], Client],
    api: Callable[[str], Client],
    system: Actor,
) -> None:
    person("reader")
    user = User.objects.get(username="reader")
    RoleGrant.objects.filter(user=user).update(registry="dev", subject_pattern="orders-*")
    add_owner(username="reader", registry="dev", subject_pattern="orders-*", by=system)
    row: Finding = keep(of_orders(rule), system)
    number = row.pk

    answers: dict[str, Any] = {
        path: api("reader").get(f"/api/v1/{path}") for path in ("findings", f"findings/{number}", "audit")
    }
    answers |= {path: look("reader").get(path) for path in (f"/ui/findings/{number}", "/ui/findings", "/ui/inbox")}
    assert {answer.status_code for answer in answers.values()} == {200}
    texts = {path: answer.getvalue().decode() for path, answer in answers.items()}
    for path, text in texts.items():
        assert SECRET not in text, path
    assert ("drift_finding" in texts["audit"]) == (rule not in NAMING_RULES)
    assert "orders-value version 1" in texts[f"findings/{number}"]
    assert InboxEntry.objects.filter(user=user).exists()
    assert SECRET in api("steward").get(f"/api/v1/findings/{number}").content.decode(), "who may read all is told"


@pytest.mark.parametrize(
    ("owners", "shown"),
    [
        ("orders-value version 3", "orders-value version 3"),
        ("a, b version 1, orders-value version 3", "orders-value version 3, another subject"),
        ("orders-value version 3, 4 more", "orders-value version 3, another subject"),
        ("secret version 1", "another subject"),
        ("what an earlier release wrote", "another subject"),
    ],
)
def test_versions_of_the_own_subject_stay(owners: str, shown: str) -> None:
    evidence = {"owners": owners}
    assert redacted_text(f"It is {owners}.", evidence, "orders-value") == f"It is {shown}."
    assert redacted_evidence(evidence, "orders-value") == {"owners": shown}


def test_a_name_that_occurs_elsewhere_in_a_sentence_hides_it() -> None:
    text = redacted_text("Began after secret was registered.", {"owners": "secret version 1"}, "orders-value")
    assert text == "This text names subjects that you can’t read."
    assert redacted_text("Topic secrets.", {"owners": "secret version 1"}, "orders-value") == "Topic secrets."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("3 messages have no key, although orders-value or secret is registered.", "3 messages have no key, although orders-value or another subject is registered."),
        ("After version 3 of orders-value was registered by bob at noon", "After version 3 of orders-value was registered by bob at noon"),
    ],
)  # fmt: skip
def test_other_subjects_of_the_topic_and_of_a_cause_are_hidden(text: str, shown: str) -> None:
    evidence = {"expected": "orders-value or secret"}
    assert redacted_text(text, evidence, "orders-value") == shown
    assert redacted_evidence(evidence, "orders-value") == {"expected": "orders-value or another subject"}
    after = "After version 3 of any was released by bob"
    assert redacted_cause(after, "any", evidence, "orders-value") == "This text names subjects that you can’t read."
    assert [redacted_cause(after, of, evidence, "orders-value") for of in ("", "orders-value")] == [after, after]
    assert redacted_evidence({"expected": "orders-value"}, "orders-value") == {"expected": "orders-value"}


SAMPLE = {"partition": 0, "offset": 17, "time": 1, "value": '{"secret_field": "aaa"}'}


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["ID_OF_OTHER_SUBJECT", "FIELD_UNDECLARED"])
@pytest.mark.parametrize(("owners", "shown"), [(SECRET, False), ("orders-value", True)])
def test_no_channel_shows_what_another_subject_s_schema_decodes(
    rule: str,
    owners: str,
    shown: bool,
    person: Callable[[str], Actor],
    look: Callable[[str], Client],
    api: Callable[[str], Client],
    system: Actor,
) -> None:
    person("steward")
    made = findings_by_rule()[rule]
    field = {"field": "secret_field"} if "field" in made.evidence else {}
    evidence = made.evidence | field | {"owners": f"{owners} version 1", "samples": [SAMPLE]}
    sentence = f"Field secret_field isn't declared by {owners} version 1."
    row = keep(
        replace(made, subject="orders-value", sentence=sentence if field else "It is wrong.", evidence=evidence), system
    )
    addresses = (
        f"/api/v1/findings/{row.pk}",
        "/api/v1/findings",
        f"/ui/findings/{row.pk}",
        "/ui/findings",
        "/api/v1/audit",
    )

    def texts() -> str:
        return "".join(
            (look if address.startswith("/ui") else api)("steward").get(address).getvalue().decode()
            for address in addresses
        )

    assert "secret_field" in texts(), "who may read the whole registry sees it"
    RoleGrant.objects.filter(user__username="steward").update(registry="dev", subject_pattern="orders-*")
    assert ("secret_field" in texts()) is shown
    assert SECRET not in texts()


@pytest.mark.parametrize(
    ("evidence", "shown"),
    [
        ({"framing": "id", "mark": "7", "owners": "orders-value version 3"}, True),
        ({"framing": "id", "mark": "7", "owners": "secret version 3"}, False),
        ({"framing": "id", "mark": "7"}, False),
        ({"framing": "", "mark": ""}, True),
        ({"framing": "subject", "mark": "orders-value"}, True),
        ({"framing": "subject", "mark": "secret"}, False),
    ],
)
def test_fields_and_samples_are_those_of_the_own_schema(evidence: dict[str, Any], shown: bool) -> None:
    whole = evidence | {"field": "total", "messages": 3, "samples": [SAMPLE]}
    redacted = redacted_evidence(whole, "orders-value")
    assert ("field" in redacted, "samples" in redacted, "mark" in redacted) == (shown, shown, shown)
    assert redacted["messages"] == 3
    assert ("total" in redacted_text("Field total is missing.", whole, "orders-value")) is shown


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_old", [False, True], ids=["now", "before causes had a subject"])
@pytest.mark.parametrize(("of", "is_shown"), [(SECRET, False), ("orders-value", True)])
def test_the_audit_hides_a_cause_of_another_subject(
    of: str, is_shown: bool, is_old: bool, person: Callable[[str], Actor], api: Callable[[str], Client], system: Actor
) -> None:
    person("reader")
    RoleGrant.objects.filter(user__username="reader").update(registry="dev", subject_pattern="orders-*")
    made = findings_by_rule()["OLD_VERSION_WRITTEN"]
    cause = f"After version 3 of {of} was registered by bob"
    keep(replace(made, subject="orders-value", cause=cause, cause_subject=of), system)
    if is_old:
        with as_owner(), connection.cursor() as cursor:
            cursor.execute(
                "UPDATE audit_auditevent SET after = after - 'cause_subject', before = before - 'cause_subject'"
            )
    text = api("reader").get("/api/v1/audit").getvalue().decode()
    assert ("was registered by bob" in text) == (is_shown and not is_old)
    assert SECRET not in text
