"""Sample pages: promotion requests, the board of environments, the audit log."""

from __future__ import annotations

from dataclasses import replace

from dashboard.presenters.audit import AuditChange, AuditList, AuditRow
from dashboard.presenters.frame import Action, Choice, Crumb, Fact, Field, Filter, Paging, Problem, Search, Section
from dashboard.presenters.looks import Check, RequestState, ReviewState, Verdict
from dashboard.presenters.promotions import (
    BoardCell,
    BoardRow,
    CheckRow,
    EnvironmentBoard,
    EnvironmentRule,
    PlanStep,
    PromotionForm,
    PromotionPage,
    RequestList,
    RequestRow,
    ReviewForm,
    ReviewRow,
    TimelineEntry,
)
from tests.site.samples.cast import ARABIC, DEV, HOSTILE, LONG, PROD, STAGING, ago, frame
from tests.site.samples.comparison import COMPARISON

REQUEST = Action(
    label="Request a promotion", url="/ui/promotions/request", tone="primary", icon="git-pull-request-arrow"
)


def request(number: int, subject: str, version: int, state: RequestState, **more: object) -> RequestRow:
    """A sample request."""
    base = RequestRow(
        number=number, url="/gallery/promotion", subject=subject, version=version, source=STAGING, target=PROD, state=state,
        requested_by="steward", requested_at=ago(hours=5), verdict=Verdict.OK, reviews="0 of 1",
    )  # fmt: skip
    return replace(base, **more)  # type: ignore[arg-type]


REQUESTS = (
    request(14, "orders-value", 3, RequestState.IN_REVIEW, source=DEV, target=STAGING, verdict=Verdict.BREAKS, requested_at=ago(minutes=3),
            blocked="A check fails: it breaks BACKWARD_TRANSITIVE at staging in 1 place."),
    request(13, "customers-value", 2, RequestState.IN_REVIEW, blocked="Waits for 1 review by somebody else than steward."),
    request(12, "payments-value", 6, RequestState.APPROVED, reviews="1 of 1", verdict=Verdict.CARE, blocked="Approved: ready to be applied."),
    request(11, ARABIC, 1, RequestState.APPLIED, reviews="1 of 1", requested_at=ago(days=2)),
    request(10, HOSTILE, 1, RequestState.REJECTED, requested_by=HOSTILE, verdict=Verdict.UNKNOWN, requested_at=ago(days=3)),
    request(9, LONG, 12, RequestState.FAILED, requested_at=ago(days=40)),
    request(8, "orders-key", 1, RequestState.WITHDRAWN, requested_at=ago(days=41)),
)  # fmt: skip
SEARCH = Search(
    url="/ui/promotions", placeholder="orders-value", label="Search requests",
    filters=(Filter(name="state", label="State", choices=(Choice(value="", label="Any state", selected=True), Choice(value="open", label="Open", count=3))),),
)  # fmt: skip
LIST = RequestList(
    frame=frame("Promotions", Section.PROMOTIONS),
    search=SEARCH,
    rows=REQUESTS,
    paging=Paging(first=1, last=7, total=7),
    request=REQUEST,
)
LIST_EMPTY = replace(
    LIST,
    rows=(),
    search=Search(url="/ui/promotions"),
    paging=Paging(first=0, last=0),
    request=replace(REQUEST, allowed=False, reason="Your role is reader: stewards and admins request promotions."),
)
LIST_NO_MATCH = replace(LIST, rows=(), search=replace(SEARCH, query="nothing"), paging=Paging(first=0, last=0))

CHECKS = (
    CheckRow(check=Check.PASSED, name="mode of prod", sentence="prod accepts new versions."),
    CheckRow(check=Check.PASSED, name="references", sentence="items-value version 4 is there with the same content."),
    CheckRow(check=Check.PASSED, name="compatibility of customers-value", sentence="Holds BACKWARD at the target, whose latest version is 1."),
    CheckRow(check=Check.WARNED, name="schema id", sentence="prod will give id 88, staging has 31: consumers that pin ids will notice."),
)  # fmt: skip
FAILING = (
    *CHECKS[:2],
    CheckRow(
        check=Check.FAILED,
        name="compatibility of orders-value",
        sentence="Breaks BACKWARD_TRANSITIVE at the target in 1 place.",
    ),
)
PLAN = (
    PlanStep(sentence="items-value version 4 is in prod already.", detail="same content, its version 2 there", needed=False),
    PlanStep(sentence="Register customers-value version 2 as version 2 of prod.", detail="Avro, fingerprint 5f0c 9a1e, schema id 88 expected"),
)  # fmt: skip
FORM = PromotionForm(
    frame=frame("Request a promotion", Section.PROMOTIONS, Crumb(label="Promotions", url="/ui/promotions")),
    fields=(
        Field(name="subject", label="Subject", required=True, code=True, value="customers-value"),
        Field(name="version", label="Version", kind="select", required=True, choices=(Choice(value="2", label="version 2, registered 9 days ago"),)),
        Field(name="from", label="From", kind="select", required=True, choices=(Choice(value="staging", label="staging"),)),
        Field(name="to", label="To", kind="select", required=True, choices=(Choice(value="prod", label="prod"),)),
        Field(name="reason", label="Why", kind="textarea", rows=3, help="What the reviewer should know."),
    ),
    submit=Action(label="Send the request", url="/ui/promotions/request", method="post"), checks=CHECKS, plan=PLAN,
)  # fmt: skip
FORM_EMPTY = replace(
    FORM, checks=(), plan=(), fields=(replace(FORM.fields[0], value=HOSTILE, errors=("No subject of that name is in staging.",)), *FORM.fields[1:]),
)  # fmt: skip
APPROVE = Action(label="Approve", url="/ui/promotions/13/approve", method="post", tone="primary")
REJECT = Action(label="Reject", url="/ui/promotions/13/reject", method="post", tone="danger")
REVIEW = ReviewForm(
    approve=APPROVE, reject=REJECT, plan_hash="5f0c9a1e",
    comment=Field(name="comment", label="Comment", kind="textarea", rows=3, help="Required to reject."),
)  # fmt: skip
TIMELINE = (
    TimelineEntry(sentence="Requested", who="steward", at=ago(hours=5)),
    TimelineEntry(sentence="In review", mood="now"),
    TimelineEntry(sentence="Applied to prod", mood=""),
)
PROMOTION = PromotionPage(
    frame=frame("#13 Promote customers-value version 2 to prod", Section.PROMOTIONS, Crumb(label="Promotions", url="/ui/promotions"), current="prod"),
    number=13, state=RequestState.IN_REVIEW, subject="customers-value", subject_url="/gallery/subject", version=2, source=STAGING, target=PROD,
    requested_by="steward", requested_at=ago(hours=5), verdict=Verdict.OK, headline="Compatible with prod: upgrade consumers first",
    sentence="customers-value version 2 becomes version 2 of prod. 2 changes against what prod has, none breaking.",
    reason="The checkout needs loyalty_tier from Monday.\nConsumers were upgraded last week.",
    facts=(Fact(label="Level at prod", value="BACKWARD", code=True), Fact(label="Schema id there", value="88 expected"), Fact(label="Skips", value="no version")),
    comparison=replace(
        COMPARISON, verdict=Verdict.OK, headline="Upgrade consumers first", sentence="2 changes, both safe for new readers.",
        old=replace(COMPARISON.old, environment=PROD, version=1), new=replace(COMPARISON.new, environment=STAGING, version=2),
        directions=tuple(replace(way, verdict=Verdict.OK, failing=0) for way in COMPARISON.directions),
        groups=(replace(COMPARISON.groups[0], cards=COMPARISON.groups[0].cards[3:]),), breaking=0, care=0, safe=2,
    ),
    unified_url="/gallery/promotion", split_url="/gallery/promotion?view=split", checks=CHECKS, plan=PLAN,
    rule="1 review by somebody else than steward.", review=REVIEW, timeline=TIMELINE,
    withdraw=None,
)  # fmt: skip
PROMOTION_OWN = replace(
    PROMOTION,
    review=replace(REVIEW, approve=replace(APPROVE, allowed=False, reason="You requested it: somebody else has to approve."), reject=replace(REJECT, allowed=False, reason="Withdraw it instead.")),
    withdraw=Action(label="Withdraw", url="/ui/promotions/13/withdraw", method="post", icon="undo-2"),
    apply=Action(label="Apply to prod", url="", allowed=False, reason="It isn’t approved yet."),
)  # fmt: skip
PROMOTION_BREAKS = replace(
    PROMOTION, verdict=Verdict.BREAKS, headline="It would break consumers of prod", sentence="1 check fails, so it can’t be approved: repair the schema, or change prod’s level first.",
    checks=FAILING, comparison=COMPARISON, reason=HOSTILE,
    review=replace(REVIEW, approve=replace(APPROVE, allowed=False, reason="A check fails: compatibility of orders-value.")),
)  # fmt: skip
PROMOTION_APPROVED = replace(
    PROMOTION, state=RequestState.APPROVED, review=None, comparison=None, comparison_note="prod has no version of this subject yet: there is nothing to compare with.",
    reviews=(
        ReviewRow(reviewer="approver", state=ReviewState.APPROVED, comment="Consumers are on 2.4, fine.", at=ago(hours=1)),
        ReviewRow(reviewer="admin", state=ReviewState.DISMISSED, at=ago(hours=3), counts=False),
    ),
    apply=Action(label="Apply to prod", url="/ui/promotions/13/apply", method="post", tone="primary", icon="play"),
    timeline=(TIMELINE[0], TimelineEntry(sentence="Plan changed: prod moved to version 1, 1 approval dismissed", at=ago(hours=2), mood="bad"), TimelineEntry(sentence="Approved", who="approver", at=ago(hours=1), comment="Consumers are on 2.4, fine."), TimelineEntry(sentence="Applied to prod", mood="")),
)  # fmt: skip
PROMOTION_FAILED = replace(
    PROMOTION_APPROVED, state=RequestState.FAILED, apply=None,
    problem=Problem(what="What was approved is not what would run now", where="customers-value in prod", cure="Look at the new plan, and ask for a review of it.", detail="PlanChanged: prod moved from version 1 to version 2 at 10:02"),
)  # fmt: skip

BOARD = EnvironmentBoard(
    frame=frame("Environments", Section.ENVIRONMENTS),
    rules=(
        EnvironmentRule(environment=DEV, rule="Open: programs and people register directly.", subjects=452, level="BACKWARD", mode="READWRITE"),
        EnvironmentRule(environment=STAGING, rule="1 review; the requester may approve.", subjects=398, level="BACKWARD", mode="READWRITE"),
        EnvironmentRule(environment=PROD, rule="1 review by somebody else; changes by release only.", subjects=377, level="FULL_TRANSITIVE", mode="READONLY"),
    ),
    search=Search(url="/ui/environments", placeholder="orders", label="Search subjects"),
    rows=(
        BoardRow(subject="orders-value", url="/gallery/subject", cells=(
            BoardCell(environment=DEV, version=3, schema_id=14, url="/gallery/subject", since=ago(minutes=4), promote=Action(label="Promote", url="/ui/promotions/request", icon="arrow-right")),
            BoardCell(environment=STAGING, version=2, schema_id=5, url="/gallery/subject", since=ago(days=8), behind=1),
            BoardCell(environment=PROD, version=2, schema_id=2, url="/gallery/subject", since=ago(days=7), behind=1))),
        BoardRow(subject="customers-value", url="/gallery/subject", cells=(
            BoardCell(environment=DEV, version=2, schema_id=6, url="/gallery/subject", since=ago(days=9)),
            BoardCell(environment=STAGING, version=2, schema_id=31, url="/gallery/subject", note="request 13 is in review", promote=Action(label="Promote", url="", allowed=False, reason="Request 13 asks for it already.")),
            BoardCell(environment=PROD, version=1, schema_id=1, url="/gallery/subject", behind=1))),
        BoardRow(subject=HOSTILE, url="/gallery/subject", cells=(BoardCell(environment=DEV, version=1, schema_id=77, url="/gallery/subject"), BoardCell(environment=STAGING), BoardCell(environment=PROD))),
    ),
    paging=Paging(first=1, last=3, total=452, next_url="?after=3"),
)  # fmt: skip
BOARD_EMPTY = replace(BOARD, rows=(), search=Search(url="/ui/environments"), paging=Paging(first=0, last=0))

AUDIT = AuditList(
    frame=frame("Audit", Section.AUDIT), search=Search(url="/ui/audit", placeholder="steward", label="Search the log"),
    rows=(
        AuditRow(number=912, at=ago(minutes=3), who="steward", door="page", what="Promotion request created", row="promotionrequest 14", why="orders-value 3 to staging", url="/gallery/promotion",
                 changes=(AuditChange(column="state", before=None, after="in review"), AuditChange(column="subject_name", before=None, after="orders-value"))),
        AuditRow(number=911, at=ago(minutes=4), who="orders-producer", door="Confluent API", what="Version registered", row="schemaversion 14",
                 changes=(AuditChange(column="version", before=None, after="3"),)),
        AuditRow(number=910, at=ago(hours=2), who="admin", door="command", what="Compatibility level changed", row="config orders-value", why="agreed with the shop team",
                 changes=(AuditChange(column="level", before="BACKWARD", after="BACKWARD_TRANSITIVE"),)),
        AuditRow(number=909, at=ago(days=1), who=HOSTILE, door="page", what="Finding acknowledged", row=LONG, why=HOSTILE,
                 changes=(AuditChange(column="reason", before="", after=HOSTILE),)),
    ),
    paging=Paging(first=1, last=4, next_url="?before=909"),
)  # fmt: skip
AUDIT_EMPTY = replace(AUDIT, rows=(), search=Search(url="/ui/audit"), paging=Paging(first=0, last=0))
