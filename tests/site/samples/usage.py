"""Sample pages: the use of versions, and a pasted message."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from dashboard.components.chart import day_chart
from dashboard.components.widgets import Crumb, Section
from dashboard.usage.forms import DeclareClientForm, DecodeForm
from dashboard.usage.page import UsagePage
from dashboard.usage.rule_trial import RuleTrialForm, RuleTrialPage
from dashboard.usage.views import DecodePage
from registry.drift.replay.rule_trial import BrokenMessage, RuleTrial
from registry.drift.selectors.messages import DecodedMessage, MessageVersion
from registry.drift.usage.retirement import SubjectRetirement
from registry.drift.usage.retirement_rules import Reason, Retirement
from registry.drift.usage.version_usage import Coverage, PartitionUse, SubjectUse, TopicUse, VersionUse
from registry.errors import InvalidInput, SchemadeskError, VersionNotFound
from registry.subjects.usage.clients import ClientInfo
from registry.subjects.usage.evidence import Evidence
from tests.site.samples.cast import HOSTILE, LONG, NOW, ago, frame


def partition(number: int, messages: int, first: int, last: int, undecodable: int = 0) -> PartitionUse:
    return PartitionUse(number, messages, undecodable, 9_000, first, last, ago(days=9), ago(minutes=2))


ROW = TopicUse(
    1, "orders", "orders", "local", "value", "id", "14", "this", 1204, 0.235, ago(days=9), ago(minutes=2),
    (partition(0, 700, 402, 1730), partition(2, 504, 12, 1686, 3)),
)  # fmt: skip
STILL = "Producers still write with it: the last message in orders is from 2026-11-21 14:28 UTC."
EXPIRES = "messages of orders need the version; the last one expires at 2026-11-28 14:28 UTC at the earliest."
NO = Retirement(
    "no", None,
    (
        Reason("no", STILL),
        Reason("no", "It is the newest version: producers that use the latest version write with it."),
        Reason("not_before", f"1,204 {EXPIRES}"),
    ),
)  # fmt: skip
NOT_BEFORE = Retirement("not_before", ago(days=-5), (Reason("not_before", f"3,913 {EXPIRES}"),))
UNKNOWN = Retirement(
    "unknown",
    None,
    (Reason("unknown", "Parts of orders have never been scanned: offsets 0 to 401 of partition 0."),),
)
YES = Retirement("yes", None, (Reason("yes", "All 12 messages with it have been removed from orders."),))


def use(version: int, schema_id: int, **parts: Any) -> VersionUse:
    return VersionUse(version, schema_id, "", **{"deleted": False, "is_latest": False, **parts})


def state(sentence: str, in_use: Any = "yes", **when: Any) -> Evidence:
    return Evidence("state", in_use, sentence, **when)


VERSIONS = (
    use(1, 2, deleted=True),
    use(2, 5, shared_with=(f"{LONG} version 1",), shared_hidden=2, referrers_hidden=1),
    use(3, 9, topics=(replace(ROW, mark="9", messages=3913, share=0.764),), messages=3913, first_time=ago(days=80), last_time=ago(days=2)),
    use(
        4, 14, topics=(ROW, replace(ROW, topic=HOSTILE, cluster=HOSTILE, owner="other", partitions=(), share=0.0001)), messages=1204,
        first_time=ago(days=9), last_time=ago(minutes=2), referrers=("invoices-value version 2",),
    ),
    use(
        5, 15, is_latest=True, messages=1204, first_time=ago(days=9), last_time=ago(minutes=2), topics_hidden=31,
        topics=tuple(replace(ROW, topic=f"orders-{number}", partitions=()) for number in range(9)),
        referrers=tuple(f"invoices-{number}-value version 1" for number in range(14)),
    ),
)  # fmt: skip
EVIDENCE = {
    1: (state("No scanned state has its shape.", "no", as_of=ago(hours=1)),),
    4: (
        state("State variable totals of order-totals carries its shape since batch 5.", as_of=ago(minutes=2)),
        Evidence("clients", "unknown", "Nobody has reported for 40 days."),
    ),
    5: (
        *(state(f"State variable totals of order-totals-{number} carries its shape since batch 5.") for number in range(8)),
        *(Evidence("clients", "unknown", f"billing-{number} has not reported for 40 days.") for number in range(6)),
    ),
}  # fmt: skip


def coverage(topic: str, cluster: str, **parts: Any) -> Coverage:
    usual = {
        "topic_id": 1, "source": "orders", "is_own": True, "partitions": 1, "messages": 5120, "read_from": {0: 0}, "positions": {0: 9},
        "compacted": False, "retention_ms": 7 * 86_400_000, "checked_at": ago(minutes=2), "read_at": ago(minutes=2), "gone_at": None, "problem": "",
    }  # fmt: skip
    return Coverage(topic=topic, cluster=cluster, **{**usual, **parts})


RETIREMENT = SubjectRetirement(
    use=SubjectUse("dev", "orders-value", VERSIONS, (coverage("orders", "local"), coverage(HOSTILE, "payments", compacted=True, problem="Not authorized."))),
    versions={1: YES, 2: UNKNOWN, 3: NOT_BEFORE, 4: NO, 5: NO}, subject=NO, evidence=EVIDENCE, problems=(), asked_at=ago(seconds=4),
)  # fmt: skip
CLIENT = ClientInfo("billing", True, False, 3, 3, ("id", "amount_cents"), "#billing", ago(days=9), "steward", ago(hours=3), False)  # fmt: skip


def sent(error: SchemadeskError) -> DeclareClientForm:
    """The form of a client that was refused."""
    form = DeclareClientForm({"name": "billing", "does": "reads", "version": "7"})
    form.is_valid()
    form.add_service_error(error)
    return form


TRAFFIC = day_chart(
    key="traffic", title="Versions in traffic", note="Messages that scans decoded, by the day of the scan",
    series=[f"version {number}" for number in range(9, 1, -1)], today=NOW.date(), csv_url="/gallery/usage",
    values={NOW.date() - timedelta(days=ago): [max(0, 40_000 * (8 - n) - abs(28 - 4 * n - ago) * 9_000) for n in range(8)] for ago in range(30)},
    marks={NOW.date() - timedelta(days=9): ["version 9 registered", HOSTILE]},
)  # fmt: skip
USAGE = UsagePage(
    frame=frame("Use of orders-value", Section.SUBJECTS, Crumb(label="Subjects", url="/gallery/subjects"), Crumb(label="orders-value", url="/gallery/subject", code=True), part="Usage"),
    retirement=RETIREMENT, is_asked=True, form=DeclareClientForm(), hidden_clients=2, traffic=TRAFFIC,
    clients=(
        CLIENT,
        replace(CLIENT, name=HOSTILE, contact=HOSTILE, writes=True, version=None, number=4, fields=(HOSTILE, *(f"field_{n}" for n in range(9)))),
        replace(CLIENT, name=LONG, contact="", reads=False, writes=True, version=None, number=None, fields=(), seen_at=ago(days=120), has_lapsed=True),
    ),
)  # fmt: skip
USAGE_STORED = replace(USAGE, is_asked=False, retirement=replace(RETIREMENT, asked_at=None, subject=NOT_BEFORE))
USAGE_PROBLEM = replace(
    USAGE,
    form=sent(VersionNotFound("Version 7 of orders-value isn't there.")),
    retirement=replace(RETIREMENT, subject=UNKNOWN, problems=("payments: No Kafka broker answers at broker-1:9093.",)),
)
USAGE_NOTHING = replace(
    USAGE,
    clients=(),
    hidden_clients=0,
    refused="You need the role reader for that.",
    is_asked=False,
    retirement=replace(
        RETIREMENT,
        use=SubjectUse("dev", HOSTILE, (use(2, 5),)),
        versions={2: UNKNOWN},
        subject=UNKNOWN,
        evidence={},
        asked_at=None,
    ),
)

DECODE = DecodePage(
    frame=frame("Decode a message", Section.SUBJECTS), form=DecodeForm(registries=["dev"]), back_url="", registry="dev"
)
DECODED = replace(
    DECODE,
    result=DecodedMessage(
        encoding="hex", bytes=17, framing="id", mark="14", body_bytes=12, schema_id=14, guid="0f5c6a3e-2f1a-4b77-9a57-1d9f1f3b2a11", context=".sales",
        schema_type="AVRO", versions=(MessageVersion(".", "orders-value", 4, False), MessageVersion(".", HOSTILE, 1, True)),
        indexes=(0,), type_name="shop.Order", value={"id": 7, "note": HOSTILE}, masked=True,
    ),
    masked="You need the steward role in dev to see personal data.",
)  # fmt: skip
DECODED_UNKNOWN = replace(
    DECODE,
    result=DecodedMessage(
        encoding="base64", bytes=17, framing="id", mark="9001", body_bytes=12,
        error="dev has no schema with schema id 9001 in context . ", elsewhere=("prod .", HOSTILE),
    ),
)  # fmt: skip
DECODED_JSON = replace(
    DECODE,
    result=DecodedMessage(
        encoding="text", bytes=9, framing="none", mark="", body_bytes=9, value={"a": "x" * 200_001}, problems=("$.a: 1 is not of type string",),
        error="The message is JSON and doesn't name its schema.",
    ),
)  # fmt: skip


def refused_message() -> DecodeForm:
    form = DecodeForm({"message": "0x", "registry": "dev"}, registries=["dev"])
    form.is_valid()
    form.add_service_error(
        InvalidInput("'x' at character 3 is not a hexadecimal digit. Paste hexadecimal, base64 or JSON.")
    )
    return form


DECODE_REFUSED = replace(DECODE, form=refused_message())


TRY_RULE = RuleTrialPage(frame=frame("Try a rule on messages", Section.SUBJECTS), form=RuleTrialForm(), back_url="/ui")
RULE_TRIED = replace(
    TRY_RULE,
    result=RuleTrial(
        *("orders", 500, 498, 12, (BrokenMessage(0, 1_204, '{"mail": "aaa@aaa (7)"}'), BrokenMessage(1, 7, HOSTILE))),
        *({"buyer.mail": 11, HOSTILE: 1}, {"divide by zero": 2}),
    ),
)
RULE_NOT_CHECKED = replace(
    TRY_RULE, result=RuleTrial(HOSTILE, 500, 0, 0, (), {}, {"the expression isn't valid: 1:17: Syntax error": 500})
)
TRY_RULE_REFUSED = replace(TRY_RULE, refused="You need the steward role in dev to start scans.")
