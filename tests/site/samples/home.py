"""Sample pages: home in its states, messages."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from dashboard.components.badges import Health, ScanState
from dashboard.components.widgets import Action, Fact, Link, MessagePage, Problem, RemovedPage, Section
from dashboard.home.panels import ActivityItem, FirstStep, HealthItem, HealthLine, HomePage, StepCheck
from tests.site.samples.cast import HOSTILE, ago, frame
from tests.site.samples.drift import FINDINGS
from tests.site.samples.promotions import REQUESTS

LINES = (
    HealthLine(name="payments", url="/gallery/source", state=ScanState.FAILED, at=ago(hours=3)),
    HealthLine(name="orders, as every team that has ever written to it calls it", url="/gallery/source", state=ScanState.NEVER),
    HealthLine(name=HOSTILE, url="/gallery/source", state=ScanState.EMPTY, at=ago(minutes=9)),
    HealthLine(name="customer_totals", url="/gallery/source", state=ScanState.NEVER, word="Not in the last 24 hours", at=ago(days=3)),
)  # fmt: skip
HOME = HomePage(
    frame=frame("Home", Section.HOME), tour_url="/gallery/home",
    waiting=(
        replace(REQUESTS[0], impact="Breaking change, 1 failed check, 2 warnings, 1 of them about its users.", due="Waiting for more than 2 working days."),
        replace(REQUESTS[1], due=f"A freeze of prod starts at 2026-11-24 06:00 UTC: {HOSTILE}"),
    ),
    affected=(
        replace(REQUESTS[1], blocked="", impact="billing of customers-value is affected."),
        replace(REQUESTS[0], blocked="", impact=f"{HOSTILE} of {HOSTILE}, ledger of orders-value and 2 more are affected."),
    ),
    together_url="/ui/promotions?who=waiting", snooze_until=date(2026, 11, 30), snooze_from=date(2026, 11, 24),
    mine=REQUESTS[2:3],
    findings=tuple(
        replace(row, info=replace(row.info, id=number), may_snooze=True, requests=(12,) if number == 2 else ())
        for number, row in enumerate(FINDINGS[:4])
    ),
    findings_total=5,
    health=(
        HealthItem(label="Database", health=Health.UP),
        HealthItem(label="Spark", health=Health.UP, sentence="4.2.0, last scan", at=ago(minutes=2)),
        HealthItem(label="Kafka", health=Health.DEGRADED, sentence="1 of 2 clusters answers; since", at=ago(hours=3)),
        HealthItem(label="Scans", health=Health.DEGRADED, sentence="2 of 9 sources scanned in the last 24 h; 1 can’t be read: payments.", at=ago(minutes=2), url="/gallery/sources", lines=LINES, more=2),
        HealthItem(label="Workers", health=Health.UP, sentence="2 of 2, nothing queued"),
        HealthItem(label="Remote registries", health=Health.OFF, sentence="none connected"),
    ),
    activity=(
        ActivityItem(sentence="orders-value version 3 registered in dev", who="orders-producer", at=ago(minutes=4), url="/gallery/subject", channel="Confluent API"),
        ActivityItem(sentence="Scan 41 of orders: 4 findings", who="schedule", at=ago(minutes=2), url="/gallery/source"),
        ActivityItem(sentence=HOSTILE, who=HOSTILE, at=ago(days=1)),
    ),
)  # fmt: skip
HOME_QUIET = replace(
    HOME, frame=frame("Home", Section.HOME, busy=False), waiting=(), mine=(), findings=(), findings_total=0, activity=(),
    last_decision="You approved customers-value version 1 for prod 12 days ago.",
)  # fmt: skip
HOME_SIGNED_OUT = replace(
    HOME, signed_in=False, waiting=(), mine=(), demo_progress="Producers wrote 2,400 of 5,120 messages; the Spark query comes next.",
    problems=(Problem(what="Spark doesn’t answer: scans wait", where="sc://127.0.0.1:15002", cure="It is restarted by the supervisor; see its log.", since=ago(minutes=6)),),
)  # fmt: skip
STEPS = (
    FirstStep(
        title="Connect a registry, or use this one", sentence="An existing registry is mirrored read-only. Its address is tested before it is saved. Or point a producer at this server: any Confluent Schema Registry client works unchanged.",
        command="schema.registry.url=http://127.0.0.1:8081", action=Action(label="Test connection", url="/ui/registries/legacy/test", method="post"),
        tried=StepCheck(health=Health.DOWN, word="Not reachable", sentence=f"legacy can’t be read: {HOSTILE}", at=ago(minutes=6)),
    ),
    FirstStep(
        title="Set up your environments", sentence="Each environment is a registry. Versions are promoted through them in order.",
        action=Action(label="Environment rules", url="/ui/environments"),
        tried=StepCheck(health=Health.UP, word="Set up", sentence="dev → staging → prod. Only approved requests can change staging and prod."),
    ),
    FirstStep(
        title="Choose who approves", sentence="One person requests a promotion and another approves it. Rules set who approves which subjects and breaking changes.",
        action=Action(label="Rules of prod", url="/ui/environments/prod"),
        tried=StepCheck(health=Health.DEGRADED, word="Too few approvers", sentence="prod needs 2 approvals. 1 person can approve.", cure=Link(label="People and their roles", url="/ui/people")),
    ),
    FirstStep(title="Add a topic or a checkpoint", sentence="Schemadesk scans it on a schedule and compares its data with the registered schemas.", action=Action(label="Add a source", url="/ui/sources/add")),
)  # fmt: skip
HOME_FIRST = HomePage(
    frame=frame("Welcome to Schemadesk", Section.HOME, busy=False), first_steps=STEPS,
    demo=Action(label="Load the demo", url="/ui/demo", method="post", tone="primary", icon="play"),
)  # fmt: skip
HOME_FIRST_FORBIDDEN = replace(
    HOME_FIRST,
    demo=replace(
        HOME_FIRST.demo or STEPS[0].action,
        reason="Sign in as admin to load it: the password was printed at the first start.",
    ),
)  # type: ignore[type-var]
HOME_FIRST_LOADING = replace(
    HOME_FIRST, demo=None, demo_progress="Producers write orders and customers: 2,400 of 5,120 messages."
)
NOT_FOUND = MessagePage(
    frame=frame("That subject isn’t there", Section.SUBJECTS), status=404, request_id="7c1f0a",
    problem=Problem(what="There is no subject of that name in dev", where=HOSTILE, cure="Check the name: it is case-sensitive. It may be in another environment."),
    nearest=(Link(label="orders-value", url="/gallery/subject"), Link(label=HOSTILE, url="/gallery/subject")),
)  # fmt: skip
REMOVED = RemovedPage(
    frame=frame("The source was removed", Section.NONE), name=HOSTILE, who=HOSTILE, at=ago(hours=3), why=HOSTILE,
    facts=(Fact(label="Kind", value=HOSTILE),), nearest=(Link(label=HOSTILE, url="/ui/sources/2"),),
    links=(Link(label="Sources", url="/ui/sources"), Link(label="Audit log of this object", url="/ui/audit?table=drift_source&row_id=1")),
)  # fmt: skip
NO_ROLE = MessagePage(
    frame=frame("Not allowed", Section.NONE), status=403, home=False, problem=Problem(what="You need the admin, approver, reader or steward role to read schemas.", cure="Your account has no role yet, so you can’t open any page. Ask an admin for a role, then reload this page."),
)  # fmt: skip
FORBIDDEN = MessagePage(
    frame=frame("Not allowed", Section.NONE), status=403, problem=Problem(what="Your role is reader: approving takes the role approver", where="request 13", cure="Ask an admin for the role."),
)  # fmt: skip
