"""Sample pages of findings with decisions, and of mutes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from dashboard.components.badges import Severity
from dashboard.components.chart import day_chart
from dashboard.components.forms import fill_choices
from dashboard.components.widgets import Crumb, Link, Section
from dashboard.findings.decisions import MuteForm, MutePage, MuteRow
from dashboard.findings.evidence_tables import Bar, BarTable
from dashboard.findings.finding_list import Tally
from dashboard.findings.page import Command, HistoryRow
from dashboard.sources.labels import source_badge
from registry.audit.selectors import AuditEntry
from registry.drift.selectors import MuteInfo
from tests.site.samples import drift
from tests.site.samples.cast import DEV, HOSTILE, LONG, NOW, PROD, ago, frame
from tests.site.samples.comparison import AGAINST_LATEST
from tests.site.samples.environments import DRAFTS
from tests.site.samples.promotions import REQUESTS

FINDINGS = Crumb(label="Findings", url="/ui/findings")
READER = "You need the admin, approver or steward role to decide on findings."


def mute_form(data: dict[str, str] | None = None) -> MuteForm:
    """The form, with what can be chosen."""
    form = MuteForm(data, initial={"location": "orders:*"})
    fill_choices([form], registry=["dev"])
    return form


DEV_MUTE = MuteInfo(
    id=1, registry="dev", rule="UNFRAMED_DATA", subject="", location="load-test-*", reason="The load test writes plain JSON.", until=None,
    created_at=ago(days=2), created_by="steward",
)  # fmt: skip
PROD_MUTE = MuteInfo(
    id=2, registry="prod", rule="", subject=HOSTILE, location="", reason=HOSTILE, until=ago(days=-5), created_at=ago(days=9), created_by=HOSTILE
)  # fmt: skip
MUTES = MutePage(
    frame=frame("Mutes", Section.FINDINGS, FINDINGS),
    form=mute_form(),
    back_url="/ui/mutes",
    rows=(
        MuteRow(info=DEV_MUTE, environment=DEV, refused=""),
        MuteRow(info=PROD_MUTE, environment=PROD, refused="You need the admin, approver or steward role in prod to mute findings."),
    ),
    preview="Matches 3 of 6 findings, and future ones.",
    covered=(drift.FINDINGS[0].info, drift.FINDINGS[5].info),
)  # fmt: skip
MUTES_READER = replace(MUTES, refused=READER)
MUTES_EMPTY = replace(MUTES, form=mute_form({"registry": "dev"}), rows=(), preview="", covered=(), refused=READER)

FINDING_LIST = replace(
    drift.FINDING_LIST,
    over_time=day_chart(
        key="findings", title="Findings over time", note="First seen and resolved, by day (UTC)", series=["first seen", "resolved"],
        values={NOW.date() - timedelta(days=ago): [ago * 7 % 5, ago * 5 % 4] for ago in range(30)}, today=NOW.date(), stacked=False,
    ),
    rows=tuple(
        replace(row, info=replace(
            row.info, id=number, subject="orders-value", assigned_to="steward" if number == 2 else "", muted=number == 5,
            cause="Began with version 3, registered 4 minutes before." if number == 1 else "",
        ))
        for number, row in enumerate(drift.FINDINGS, start=1)
    ),
    by_severity=tuple(Tally(look=look, count=count, url=f"/ui/findings?severity={look.code}", current=count == 2) for look, count in zip(Severity, (2, 2, 0), strict=True)),
    by_kind=(Tally(look=source_badge("kafka"), count=3, url="/ui/findings?kind=kafka"), Tally(look=source_badge("state_store"), count=1, url="/ui/findings?kind=state_store")),
    muted=7, muted_url="/ui/findings?muted=only", back="/ui/findings",
)  # fmt: skip
FINDING_LIST_READER = replace(FINDING_LIST, refused=READER)

PLACES = replace(
    drift.FINDING.evidence[0],
    rows=(
        ("orders", "0", "402", "1642", "41", "2026-11-19 14:02:11 UTC"),
        ("orders", "1", "880", "880", "1", "2026-11-21 14:02:11 UTC"),
    ),
    spans=((0, 62), (97, 3)),
    spans_label="When",
)


def event(who: str, why: str, when: datetime) -> AuditEntry:
    """A sample event of a finding."""
    return AuditEntry(
        id=1, transaction_id=1, at=when, actor=who, channel="ui", origin="", why=why, operation="UPDATE", table="drift_finding", row_id="1",
        before={}, after={}, position=None, seal="",
    )  # fmt: skip


FINDING = replace(
    drift.FINDING,
    evidence=(PLACES,),
    bars=(
        BarTable(title="Messages by timestamp", label="Hour (UTC)", note="Based on scanned messages.", bars=(Bar(label="2026-11-21 08:00", count=0, percent=0, marks=("08:57 billing 4.2.0", f"08:58 {HOSTILE}")), Bar(label="2026-11-21 09:00", count=31, percent=100), Bar(label="2026-11-21 10:00", count=10, percent=32, marks=("10:40 billing 4.1.9",)))),
        BarTable(title="Types seen", label="Type", bars=(Bar(label="string", count=4959, percent=100), Bar(label="long", count=41, percent=1), Bar(label=HOSTILE, count=2, percent=1))),
    ),
    finding=replace(drift.FINDINGS[0], info=replace(
        drift.FINDINGS[0].info, reopened=1, subject="orders-value",
        cause="Most likely version 3 of orders-value: it was registered 4 minutes before the first of these messages.",
    )),
    commands=(Command(label="Partition 0, from offset 402", text="kcat -C -b 127.0.0.1:9092 -t orders -p 0 -o 402 -c 100 -e -f '%p@%o %T %k %s\\n'"),),
    observed=replace(AGAINST_LATEST, text=None, extras=()), observed_note="coupon (in 25%): seen in 10 of 40 messages.",
    drafts=DRAFTS.drafts, requests=(*REQUESTS[2:3], *REQUESTS[5:7]),
    released=(Link(label="orders-value version 3 in dev", url="/gallery/subject"), Link(label=f"{LONG} version 12 in prod", url="/gallery/subject")),
    history=(
        HistoryRow(event=event("steward", "acknowledge finding 1", ago(hours=1)), what=("state: acknowledged", "reason: known since May")),
        HistoryRow(event=event(HOSTILE, "scan 41", ago(days=2)), what=("found",)),
    ),
    propose_refused="",
)  # fmt: skip
FINDING_READER = replace(FINDING, decide_refused=READER)
FINDING_ACKNOWLEDGED = replace(
    FINDING_READER, mute_refused=READER,
    finding=replace(FINDING.finding, info=replace(
        FINDING.finding.info, state="acknowledged", acknowledged_by="steward", acknowledged_until=ago(days=-5),
        acknowledged_reason="The old producer is switched off on Friday.",
    )),
)  # fmt: skip
