"""Sample pages: the use of versions, and a pasted message."""

from __future__ import annotations

from dataclasses import replace

from dashboard.components.widgets import Action, Choice, Crumb, Field, Problem, Section
from dashboard.usage.presenters import (
    ClientRow,
    Clients,
    CoverageRow,
    Decoded,
    DecodePage,
    EvidenceLine,
    InUse,
    MeantVersion,
    PartitionUseRow,
    Retire,
    RetireReason,
    RetireVerdict,
    TopicUseRow,
    UsagePage,
    VersionUsage,
)
from tests.site.samples.cast import HOSTILE, LONG, ago, frame

ROW = TopicUseRow(
    topic="orders", side="value", cluster="local", source="orders", mark="schema id 14", messages=1204, share="23.5 %", percent=24,
    first_time=ago(days=9), last_time=ago(minutes=2),
    partitions=(PartitionUseRow(partition=0, messages=700, first_offset=402, last_offset=1730, first_time=ago(days=9), last_time=ago(minutes=2)), PartitionUseRow(partition=2, messages=504, first_offset=12, last_offset=1686, first_time=ago(days=9), last_time=ago(minutes=4))),
)  # fmt: skip
NO = RetireVerdict(
    outcome=Retire.NO, sentence="No: Producers still write with it: the last message in orders is from 2026-11-21 14:28 UTC.",
    reasons=(
        RetireReason(outcome=Retire.NO, sentence="Producers still write with it: the last message in orders is from 2026-11-21 14:28 UTC."),
        RetireReason(outcome=Retire.NO, sentence="It is the newest version: producers that use the latest version write with it."),
        RetireReason(outcome=Retire.NOT_BEFORE, sentence="1,204 messages of orders need the version; the last one expires at 2026-11-28 14:28 UTC at the "
            "earliest."),
    ),
)  # fmt: skip
NOT_BEFORE = RetireVerdict(
    outcome=Retire.NOT_BEFORE,
    date=ago(days=-5),
    sentence="Not before 2026-11-26 14:30 UTC: 3,913 messages of orders need the version; the last one expires at "
    "2026-11-26 14:30 UTC at the earliest.",
)
UNKNOWN = RetireVerdict(
    outcome=Retire.UNKNOWN,
    sentence="Not known: Parts of orders have never been scanned: offsets 0 to 401 of partition 0.",
)
YES = RetireVerdict(outcome=Retire.YES, sentence="Yes: All 12 messages with it have been removed from orders.")
VERSIONS = (
    VersionUsage(
        version=4, schema_id=14, url="/gallery/subject", verdict=NO, data=(ROW, replace(ROW, topic=HOSTILE, cluster=HOSTILE, foreign=True, partitions=(), share="under 0.1 %", percent=1)),
        state=(EvidenceLine(in_use=InUse.YES, sentence="State variable totals of order-totals carries its shape since batch 5.", as_of=ago(minutes=2)),),
        clients=(EvidenceLine(in_use=InUse.UNKNOWN, sentence="Nobody has reported for 40 days."),), messages=1204, latest=True, first_time=ago(days=9), last_time=ago(minutes=2),
        referrers=("invoices-value version 2",),
    ),
    VersionUsage(version=3, schema_id=9, url="/gallery/subject", verdict=NOT_BEFORE, data=(replace(ROW, mark="schema id 9", messages=3913, share="76.4 %", percent=76),), state=(), clients=(), messages=3913, first_time=ago(days=80), last_time=ago(days=2)),
    VersionUsage(version=2, schema_id=5, url="/gallery/subject", verdict=UNKNOWN, data=(), state=(), clients=(), shared_with=(f"{LONG} version 1",), shared_hidden=2, referrers_hidden=1),
    VersionUsage(version=1, schema_id=2, url="/gallery/subject", verdict=YES, data=(), state=(EvidenceLine(in_use=InUse.NO, sentence="No scanned state has its shape.", as_of=ago(hours=1)),), clients=(), deleted=True),
)  # fmt: skip
LONG_USE = VersionUsage(
        version=5, schema_id=15, url="/gallery/subject", latest=True, verdict=NO, messages=1204, first_time=ago(days=9), last_time=ago(minutes=2), topics_hidden=31,
        data=tuple(replace(ROW, topic=f"orders-{number}", partitions=()) for number in range(9)), referrers=tuple(f"invoices-{number}-value version 1" for number in range(14)),
        state=tuple(EvidenceLine(in_use=InUse.YES, sentence=f"State variable totals of order-totals-{number} carries its shape since batch 5.") for number in range(8)),
        clients=tuple(EvidenceLine(in_use=InUse.UNKNOWN, sentence=f"billing-{number} has not reported for 40 days.") for number in range(6)),
    )  # fmt: skip
WITHDRAW = Action(label="Withdraw", url="/gallery/usage", method="post", tone="danger")
CLIENT = ClientRow(
    name="billing", does="reads", version="3", version_url="/gallery/subject", fields=("id", "amount_cents"), contact="#billing",
    seen_at=ago(hours=3), declared_by="steward", lapsed=False, withdraw=WITHDRAW,
)  # fmt: skip
DECLARED = Clients(
    rows=(
        CLIENT,
        replace(CLIENT, name=HOSTILE, contact=HOSTILE, does="reads and writes", version="newest (currently 4)", fields=(HOSTILE, *(f"field_{n}" for n in range(9)))),
        replace(CLIENT, name=LONG, contact="", fields=(), seen_at=ago(days=120), lapsed=True, withdraw=replace(WITHDRAW, allowed=False, reason="You need the admin or steward role in dev to declare which programs read and write a subject's data.")),
    ),
    fields=(
        Field(name="name", label="Name", required=True, help="For example, the name of its consumer group or service."),
        Field(name="does", label="Access", kind="select", choices=(Choice(value="reads", label="reads", selected=True), Choice(value="both", label="reads and writes"))),
        Field(name="fields", label="Fields it uses", kind="textarea", rows=3, code=True, help="Their paths, one a line. Empty: nothing is said of fields."),
    ),
    declare=Action(label="Declare client", url="/gallery/usage", method="post", tone="primary"),
    api="/api/v1/registries/dev/subjects/orders-value/clients/NAME", hidden=2,
)  # fmt: skip
USAGE = UsagePage(
    frame=frame("Use of orders-value", Section.SUBJECTS, Crumb(label="Subjects", url="/gallery/subjects"), Crumb(label="orders-value", url="/gallery/subject", code=True), part="Usage"),
    subject="orders-value", subject_url="/gallery/subject", decode_url="/ui/decode", declared=DECLARED, retire_url="/gallery/retire", orphans_url="/gallery/orphans", versions=(LONG_USE, replace(VERSIONS[0], latest=False), *VERSIONS[1:]), whole=NO, asked_at=ago(seconds=4), data_as_of=ago(minutes=2),
    coverage=(
        CoverageRow(topic="orders", cluster="local", source="orders", keeps="7 days", is_known=True, sentence="orders was last scanned at 2026-11-21 14:28 UTC: 5,120 messages in total."),
        CoverageRow(topic=HOSTILE, cluster="payments", source="all", keeps="compacted", is_known=False, sentence=f"The last scan couldn't read {HOSTILE}: Not authorized."),
    ),
)  # fmt: skip
USAGE_STORED = replace(
    USAGE, ask_url="/ui/registries/dev/subjects/orders-value/usage?ask=1", asked_at=None, whole=NOT_BEFORE
)
USAGE_PROBLEM = replace(
    USAGE,
    declared=replace(DECLARED, problem=Problem(what="Version 7 of orders-value isn't there.")),
    whole=UNKNOWN,
    problems=(
        Problem(
            what="Some sources couldn’t be checked: payments: No Kafka broker answers at broker-1:9093.",
            cure="Results of the last scans are used instead.",
        ),
    ),
)
USAGE_NOTHING = replace(
    USAGE, declared=replace(DECLARED, rows=(), hidden=0, declare=replace(DECLARED.declare, allowed=False, reason="You need the role reader for that.")), coverage=(), versions=(replace(VERSIONS[2], shared_with=(), verdict=replace(UNKNOWN, sentence="Not known: No topic of this registry’s sources carries the subject, so nothing is known of its data.")),),
    whole=UNKNOWN, subject=HOSTILE, asked_at=None, ask_url="/ui/registries/dev/subjects/orders-value/usage?ask=1", data_as_of=None,
)  # fmt: skip

DECODE = DecodePage(
    frame=frame("Decode a message", Section.SUBJECTS),
    fields=(
        Field(name="message", label="Message", kind="textarea", rows=8, code=True, required=True, placeholder="00 00 00 00 09 02 06 61 62 63", help="Hexadecimal, base64, the output of a tool, or JSON. The message is not stored."),
        Field(name="registry", label="Registry", kind="select", required=True, choices=(Choice(value="dev", label="dev"),)),
        Field(name="side", label="Part", kind="select", required=True, choices=(Choice(value="value", label="value"),)),
    ),
    more=(Field(name="headers", label="Headers", kind="textarea", rows=3, code=True), Field(name="context", label="Context", code=True)),
    submit=Action(label="Decode", url="/ui/decode", method="post", tone="primary"),
)  # fmt: skip
DECODED = replace(
    DECODE,
    result=Decoded(
        framing="schema id", mark="14", encoding="hexadecimal", size=17, body_size=12, schema_id=14, guid="0f5c6a3e-2f1a-4b77-9a57-1d9f1f3b2a11", format="Avro",
        versions=(MeantVersion(label="orders-value version 4", url="/gallery/subject", usage_url="/gallery/usage"), MeantVersion(label=f"{HOSTILE} version 1", url="/gallery/subject", usage_url="/gallery/usage", deleted=True)),
        value='{\n  "id": 7,\n  "note": "' + HOSTILE + '"\n}', has_value=True, type_name="shop.Order", indexes="0",
    ),
)  # fmt: skip
DECODED_UNKNOWN = replace(
    DECODE,
    result=Decoded(framing="schema id", mark="9001", encoding="base64", size=17, body_size=12, error="dev has no schema with schema id 9001 in context . ", elsewhere=("prod .", HOSTILE)),
)  # fmt: skip
DECODED_JSON = replace(
    DECODE,
    result=Decoded(framing="none", mark="", encoding="text (JSON)", size=9, body_size=9, value='{\n  "a": 1\n}', has_value=True, cut=True, problems=("$.a: 1 is not of type string",), error="The message is JSON and doesn't name its schema."),
)  # fmt: skip
DECODE_REFUSED = replace(
    DECODE, problem=Problem(what="'x' at character 3 is not a hexadecimal digit. Paste hexadecimal, base64 or JSON.")
)
