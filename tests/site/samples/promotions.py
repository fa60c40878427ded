"""Sample pages: promotion requests, the audit log."""

from __future__ import annotations

from dataclasses import replace

from dashboard.audit.views import AuditChange, AuditList, AuditRow
from dashboard.compare.comparison import TextSwitch
from dashboard.components.badges import (
    Acknowledged,
    Check,
    FindingState,
    RequestState,
    ReviewState,
    Severity,
    StepState,
    Verdict,
)
from dashboard.components.widgets import (
    Action,
    ActiveFilter,
    Choice,
    Crumb,
    Fact,
    Field,
    Filter,
    Link,
    Paging,
    Problem,
    SearchBox,
    Section,
)
from dashboard.promotions.plan import (
    ApprovalRow,
    BulkApprovalPage,
    CheckRow,
    ExcludedRow,
    IdPlan,
    IdRow,
    PromotionForm,
    RequestList,
    RequestRow,
    StepRow,
)
from dashboard.promotions.presenters import (
    CommentForm,
    CommentRow,
    ConsumerRow,
    ItemLink,
    LabelForm,
    LinkedRow,
    NewField,
    NewReference,
    NewSchemaView,
    PromotionPage,
    ReviewForm,
    ReviewRow,
    RuleRow,
    ScheduleForm,
    StateMark,
    ThreadView,
    TimelineEntry,
)
from dashboard.registries.policy_forms import WhyNot
from dashboard.sources.presenters import FindingOrigin
from tests.site.samples.cast import ARABIC, DEV, HOSTILE, LONG, PROD, STAGING, ago, frame
from tests.site.samples.comparison import COMPARISON

REQUEST = Action(
    label="Request a promotion", url="/ui/promotions/request", tone="primary", icon="git-pull-request-arrow"
)


LABEL_LINKS = tuple(Link(label=label, url="/gallery/promotions") for label in ("checkout", "q4", HOSTILE[:40]))


def request(number: int, subject: str, what: str, state: RequestState, **more: object) -> RequestRow:
    """A sample request."""
    base = RequestRow(
        number=number, url="/gallery/promotion", subject=subject, what=what, source=STAGING, target=PROD, state=state,
        requested_by="steward", requested_at=ago(hours=5), verdict=Verdict.OK, reviews="0 of 1",
    )  # fmt: skip
    return replace(base, **more)  # type: ignore[arg-type]


REQUESTS = (
    request(14, "orders-value", "version 3", RequestState.IN_REVIEW, source=DEV, target=STAGING, verdict=Verdict.BREAKS, requested_at=ago(minutes=3), more=4,
            blocked="A check fails: it breaks BACKWARD_TRANSITIVE at staging in 1 place."),
    request(13, "customers-value", "version 2", RequestState.IN_REVIEW, blocked="Waits for 1 review by somebody else than steward.", labels=LABEL_LINKS[:2]),
    request(12, "payments-value", "a proposed text", RequestState.APPROVED, source=None, reviews="1 of 1", verdict=Verdict.CARE, blocked="Approved: ready to be applied."),
    request(15, "refunds-value", "version 4 again", RequestState.SCHEDULED, source=None, reviews="1 of 1", blocked="Will be applied in 6 h."),
    request(16, "carts-value", "version 1", RequestState.DRAFT, blocked="Not submitted yet."),
    request(11, ARABIC, "version 1", RequestState.APPLIED, reviews="1 of 1", requested_at=ago(days=2)),
    request(10, HOSTILE, "version 1", RequestState.REJECTED, requested_by=HOSTILE, verdict=Verdict.UNKNOWN, requested_at=ago(days=3), labels=LABEL_LINKS),
    request(9, LONG, "version 12", RequestState.FAILED, requested_at=ago(days=40), blocked="1 of 3 steps is done: prod didn’t answer."),
    request(8, "orders-key", "version 1", RequestState.WITHDRAWN, requested_at=ago(days=41)),
)  # fmt: skip
SEARCH = SearchBox(
    url="/ui/promotions", placeholder="orders-value", label="Search requests",
    filters=(
        Filter(name="state", label="State", choices=(Choice(value="", label="Any status", selected=True), Choice(value="open", label="Open", count=3))),
        Filter(name="target", label="Target", choices=(Choice(value="", label="Any target", selected=True), Choice(value="prod", label="to prod"))),
        Filter(name="who", label="Whose", choices=(Choice(value="", label="Anybody’s", selected=True), Choice(value="mine", label="Mine"), Choice(value="waiting", label="Waiting for me"))),
    ),
    fields=(Field(name="label", label="Label"),),
)  # fmt: skip
LIST = RequestList(
    frame=frame("Promotions", Section.PROMOTIONS),
    search=SEARCH,
    rows=REQUESTS,
    paging=Paging(first=1, last=9, next_url="?before=8"),
    request=REQUEST,
    drafts=Link(label="Proposals", url="/ui/proposals"),
)
TOGETHER = Action(label="Approve selected…", url="/ui/promotions/approve", tone="primary", icon="check")
LIST_WAITING = replace(
    LIST, together=TOGETHER,
    rows=(
        replace(REQUESTS[0], alone="It is a breaking change, so its approval needs a comment. Review it separately."), REQUESTS[1],
        replace(REQUESTS[1], number=17, subject=LONG), replace(REQUESTS[6], state=RequestState.IN_REVIEW, alone=f"A check warns, so it must be reviewed separately: {HOSTILE}"),
    ),
)  # fmt: skip
LIST_WAITING_NONE = replace(
    LIST_WAITING, rows=LIST_WAITING.rows[:1], together=replace(TOGETHER, allowed=False, reason="Each of these must be reviewed separately."),
)  # fmt: skip
CHOSEN = tuple(
    ApprovalRow(request=row, plan=f"{row.number}:5f0c9a1e", plan_hash="5f0c9a1e77aa", reason=reason, note="" if reason else "prod is frozen until 2026-11-24 06:00 UTC: a sale.")
    for row, reason in ((REQUESTS[1], "The checkout needs loyalty_tier from Monday."), (replace(REQUESTS[1], number=17, subject=LONG, more=3), ""), (replace(REQUESTS[5], state=RequestState.IN_REVIEW), HOSTILE))
)  # fmt: skip
TOGETHER_PAGE = BulkApprovalPage(
    frame=frame("Approve several requests", Section.PROMOTIONS, Crumb(label="Promotions", url="/ui/promotions")), rows=CHOSEN,
    left=(
        ExcludedRow(number=14, reason="It is a breaking change, so its approval needs a comment. Review it separately.", request=REQUESTS[0]),
        ExcludedRow(number=10, reason=HOSTILE, request=REQUESTS[6]), ExcludedRow(number=99, reason="Request not found."),
    ),
    submit=Action(label="Approve 3 requests", url="/ui/promotions/approve", method="post", tone="primary", icon="check"), back_url="/ui/promotions?who=waiting",
)  # fmt: skip
TOGETHER_NONE = replace(TOGETHER_PAGE, rows=(), left=())
TOGETHER_ALL_LEFT = replace(TOGETHER_PAGE, rows=())
LIST_EMPTY = replace(
    LIST,
    rows=(),
    search=SearchBox(url="/ui/promotions"),
    paging=Paging(first=0, last=0),
    request=replace(REQUEST, allowed=False, reason="Your role is reader: stewards and admins request promotions."),
)
LIST_NO_MATCH = replace(
    LIST,
    rows=(),
    search=replace(
        SEARCH, query="nothing", active=(ActiveFilter(label="state: open", url="/ui/promotions?q=nothing"),)
    ),
    paging=Paging(first=0, last=0),
)

CHECKS = (
    CheckRow(check=Check.PASSED, name="mode of prod", sentence="prod accepts new versions."),
    CheckRow(check=Check.PASSED, name="references", sentence="items-value version 4 is there with the same content."),
    CheckRow(check=Check.PASSED, name="compatibility of customers-value", sentence="Compatible with versions 1 in the target under BACKWARD."),
    CheckRow(check=Check.WARNED, name="schema id", sentence="prod will give id 88, staging has 31: consumers that pin ids will notice.", cure="With prod in mode IMPORT the id could be kept."),
    CheckRow(check=Check.STALE, name="data at prod", sentence="The newest scan is 9 days old.", cure="Scan orders again."),
    CheckRow(check=Check.SKIPPED, name="Spark state", sentence="No query keeps state of this subject."),
)  # fmt: skip
FAILING = (
    *CHECKS[:2],
    CheckRow(
        check=Check.FAILED,
        name="compatibility of orders-value",
        sentence="Breaks BACKWARD_TRANSITIVE in the target in 1 place, compared with versions 2 and 3.",
        cure="Give “note” a default, or lower the level of prod.",
    ),
    CheckRow(
        check=Check.FAILED, name="drift at prod", sentence=f"2 findings are open at {HOSTILE}.", cure="Decide on them.", overridable=True,
    ),
)  # fmt: skip
IMPACT = (
    CheckRow(check=Check.WARNED, name="subjects that refer to it", sentence="baskets-value and invoices-value refer to version 1; both still resolve."),
    CheckRow(check=Check.PASSED, name="evidence from data", sentence="5,120 messages of the last hour were read with the new schema, none failed. Seen 12 minutes ago."),
    CheckRow(check=Check.SKIPPED, name="evidence from Spark state", sentence="No query keeps state of this subject."),
)  # fmt: skip
PLAN = (
    StepRow(sentence="items-value version 4 is in prod already.", detail="same content, its version 2 there", needed=False),
    StepRow(sentence="Register customers-value version 2 as version 2 of prod.", detail="Avro, fingerprint 5f0c 9a1e"),
)  # fmt: skip
IDS = IdPlan(sentence="prod will give id 88, not 31 as in staging.", verdict=Verdict.CARE)
IDS_MANY = IdPlan(
    sentence="2 of 3 ids will differ.",
    source="staging",
    target="prod",
    verdict=Verdict.CARE,
    rows=(
        IdRow(subject="items-value", there="12", here="12", outlook="the same", verdict=Verdict.OK),
        IdRow(subject="customers-value", there="31", here="88", outlook="differs", verdict=Verdict.CARE),
        IdRow(subject=HOSTILE, there="32", here="—", outlook="not known", verdict=Verdict.UNKNOWN),
    ),
)
FORM = PromotionForm(
    frame=frame("Request a promotion", Section.PROMOTIONS, Crumb(label="Promotions", url="/ui/promotions")),
    again_of=12, again=Link(label="request 12", url="/gallery/promotion-rejected"),
    fields=(
        Field(name="items", label="What", kind="textarea", rows=4, required=True, code=True, value="customers-value 2\nitems-value", help="A subject a line, with a version or the latest."),
        Field(name="source", label="From", kind="select", required=True, choices=(Choice(value="staging", label="staging"),)),
        Field(name="target", label="To", kind="select", required=True, choices=(Choice(value="prod", label="prod"),)),
        Field(name="reason", label="Reason", kind="textarea", rows=2, help="What reviewers should know."),
        Field(name="labels", label="Labels", value="checkout, q4", help="Up to 10, separated by commas. Everyone who can read the request sees them."),
    ),
    submit=Action(label="Request review", url="/ui/promotions/request", method="post"),
    draft=Action(label="Save as draft", url="/ui/promotions/request", method="post"),
    preview_url="/ui/promotions/request", with_config=True, headline="Can be promoted", sentence="1 version would be written to prod without breaking changes.",
    verdict=Verdict.OK, checks=CHECKS, plan=PLAN, ids=IDS_MANY, plan_hash="5f0c9a1e77aa00bb11cc", export_url="/ui/promotions/request?as=json",
)  # fmt: skip
FORM_EMPTY = replace(
    FORM, checks=(), plan=(), ids=None, headline="", with_config=False,
    fields=(replace(FORM.fields[0], value="missing-value", errors=(f"staging has no subject {HOSTILE}.",)), *FORM.fields[1:4], replace(FORM.fields[4], value="a" * 41, errors=("A label can have 1 to 40 characters, not 41.",))),
    submit=replace(FORM.submit, allowed=False, reason="You need the steward role to request promotions."),
)  # fmt: skip
APPROVE = Action(label="Approve", url="/ui/promotions/13/approve", method="post", tone="primary")
CHANGES = Action(label="Request changes", url="/ui/promotions/13/changes", method="post")
REJECT = Action(label="Reject", url="/ui/promotions/13/reject", method="post", tone="danger")
REVIEW = ReviewForm(
    approve=APPROVE, changes=CHANGES, reject=REJECT, plan_hash="5f0c9a1e",
    comment=Field(name="comment", label="Comment", kind="textarea", rows=2, help="Required to request changes or to reject."),
)  # fmt: skip
TIMELINE = (
    TimelineEntry(sentence="Requested", who="steward", at=ago(hours=5)),
    TimelineEntry(sentence="Waiting for review", mood="now"),
)
STATES = (
    StateMark(state=RequestState.DRAFT, mood="done", at=ago(hours=6), who="steward"),
    StateMark(state=RequestState.IN_REVIEW, mood="now", at=ago(hours=5)),
    StateMark(state=RequestState.APPROVED),
    StateMark(state=RequestState.APPLYING),
    StateMark(state=RequestState.APPLIED),
)
THREADS = (
    ThreadView(
        number=1, subject="customers-value", path="Customer.email", place_url="#c-2",
        comments=(
            CommentRow(author="approver", text="Is the default really empty?\nThe billing job reads it.", at=ago(hours=2)),
            CommentRow(author="steward", text=HOSTILE, at=ago(minutes=40)),
        ),
        reply=Action(label="Answer", url="/ui/promotions/13/threads/1/answer", method="post"),
        switch=Action(label="Resolve", url="/ui/promotions/13/threads/1/resolve", method="post", icon="check"),
    ),
    ThreadView(
        number=2, comments=(CommentRow(author="admin", text="Fine for me.", at=ago(hours=1)),), resolved_by="steward", resolved_at=ago(minutes=30),
        switch=Action(label="Reopen", url="/ui/promotions/13/threads/2/reopen", method="post", icon="undo-2"),
    ),
    ThreadView(number=3, subject=HOSTILE, path=LONG, comments=(CommentRow(author=HOSTILE, text=LONG, at=ago(days=2)),),
               reply=Action(label="Answer", url="", allowed=False, reason="The request is closed.")),
)  # fmt: skip
COMMENT = CommentForm(open=Action(label="Start discussion", url="/ui/promotions/13/threads", method="post"))
CHANGED = replace(
    COMPARISON, verdict=Verdict.OK, headline="Upgrade consumers first", sentence="2 changes, both safe for new readers.",
    old=replace(COMPARISON.old, environment=PROD, version=1), new=replace(COMPARISON.new, environment=STAGING, version=2),
    directions=tuple(replace(way, verdict=Verdict.OK, failing=0) for way in COMPARISON.directions),
    groups=(replace(COMPARISON.groups[0], cards=tuple(replace(card, comment_url="?about=note#comment", threads=(Link(label="1 discussion", url="#thread-1"),) if number == 0 else ()) for number, card in enumerate(COMPARISON.groups[0].cards[3:]))),),
    breaking=0, care=0, safe=2,
)  # fmt: skip
ACKNOWLEDGE = Action(
    label="Acknowledge", url="/ui/promotions/13/acknowledge", method="post", tone="primary", icon="check"
)
CONSUMERS = (
    ConsumerRow(client="billing", subject="customers-value", does="reads version 1", contact="payments", people=("maria", "reader"), state=Acknowledged.WAITING, acknowledge=ACKNOWLEDGE),
    ConsumerRow(client="ledger", subject="customers-value", does="writes version 1", contact="#ledger", state=Acknowledged.VOID, who="approver", at=ago(hours=2), acknowledge=replace(ACKNOWLEDGE, allowed=False, reason="You need the admin or approver role in prod to review promotions.")),
    ConsumerRow(client="exporter", subject="customers-value", does="reads version 2", contact="reader", people=("reader",), state=Acknowledged.DONE, who="reader", at=ago(minutes=3), take_back=Action(label="Withdraw acknowledgement", url="/ui/promotions/13/acknowledge/take-back", method="post", icon="undo-2")),
    ConsumerRow(client="audit-export", subject="customers-value", does="reads and writes version 2", contact="data-platform@shop.example", people=("maria",), state=Acknowledged.DONE, who="maria", at=ago(minutes=9), note="We take version 2 from tonight’s release on."),
    ConsumerRow(client=HOSTILE, subject=LONG, does="since withdrawn", contact=HOSTILE, people=(HOSTILE, LONG), state=Acknowledged.DONE, who=HOSTILE, at=ago(days=1), note=HOSTILE + LONG),
)  # fmt: skip
LABELS = LabelForm(
    labels=LABEL_LINKS[:2], written=Field(name="labels", label="Labels", value="checkout, q4", help="Up to 10, separated by commas. Everyone who can read the request sees them."),
    change=Action(label="Save labels", url="/ui/promotions/13/labels", method="post", icon="check"),
)  # fmt: skip
ORIGIN = FindingOrigin(
    url="/gallery/finding", sentence="Field loyalty_tier appears in 412 of 1,600 messages of customers under schema id 31, and no schema declares it.",
    severity=Severity.RISK, state=FindingState.OPEN,
)  # fmt: skip
ORIGIN_HOSTILE = replace(ORIGIN, sentence=HOSTILE + LONG, severity=Severity.BREAK, state=FindingState.RESOLVED)
REPLAY = Action(label="Replay check", url="/ui/promotions/13/replay?item=customers-value", method="post", icon="play")
PROMOTION = PromotionPage(
    frame=frame("#13 Promote customers-value version 2 to prod", Section.PROMOTIONS, Crumb(label="Promotions", url="/ui/promotions"), current="prod"),
    number=13, state=RequestState.IN_REVIEW, subject="customers-value", subject_url="/gallery/subject", what="version 2", source=STAGING, target=PROD,
    requested_by="steward", requested_at=ago(hours=5), verdict=Verdict.OK, headline="Can be promoted",
    sentence="customers-value version 2 becomes version 2 of prod. 2 changes against what prod has, none breaking.",
    reason="The checkout needs loyalty_tier from Monday.\nConsumers were upgraded last week.", finding=ORIGIN,
    facts=(Fact(label="Level at prod", value="BACKWARD", code=True), Fact(label="Becomes", value="version 2 of prod"), Fact(label="Evidence", value="12 min old")),
    comparison=CHANGED, comparison_of="customers-value", states=STATES, replay=REPLAY,
    unified_url="/gallery/promotion", split_url="/gallery/promotion?view=split", checks=CHECKS, checked_at=ago(minutes=4),
    recheck=Action(label="Run checks again", url="/ui/promotions/13/recheck", method="post", icon="refresh-cw"), impact=IMPACT, plan=PLAN, plan_hash="5f0c9a1e77aa", ids=IDS,
    rules=(RuleRow(sentence="1 approval from another person", needed=1, approvals=0, who=("approver", "admin")), RuleRow(sentence="1 approval from the owners of customers-value", needed=1, approvals=1, who=("maria",))),
    eligible=("approver", "admin"), policy=("Closed: only releases can change it.", "Open drift findings for a subject fail its requests.", "Frozen from 24 Dec to 2 Jan."),
    review=REVIEW, timeline=TIMELINE, threads=THREADS, comment=COMMENT, labels=LABELS,
    packs=(Link(label="HTML file", url="/ui/promotions/13/evidence.html"), Link(label="JSON", url="/ui/promotions/13/evidence.json")),
)  # fmt: skip
WITHDRAW = Action(label="Withdraw", url="/ui/promotions/13/withdraw", method="post", icon="undo-2")
OWN = "You requested it: somebody else has to approve."
WHY_OWN = (
    WhyNot(code="own-request", sentence=OWN, cure="Possible reviewers: approver, admin.", fix=Link(label="Reviewers of prod", url="/ui/environments")),
    WhyNot(code="stale", sentence="The checks are out of date: Version 3 of customers-value was added in prod.", cure="Run the checks again.", fix=Link(label="Checks", url="#checks")),
    WhyNot(code="drift", sentence=f"A check fails: Open in the target: {HOSTILE}", cure="Resolve or acknowledge the open findings, or have a reviewer override the check with a reason.", fix=Link(label="Open findings", url="/ui/findings")),
)  # fmt: skip
WHY_NOT_APPLIED = (
    WhyNot(code="approval", sentence="It is not approved yet. Needs 1 approval from a reviewer of prod (0 so far).", cure="Possible reviewers: approver, admin.", fix=Link(label="Reviewers of prod", url="/ui/environments")),
    WhyNot(code="freeze", sentence="A check fails: prod is frozen until 2026-11-24 06:00 UTC: a sale.", fix=Link(label="Freezes of prod", url="/ui/environments")),
)  # fmt: skip
LINKED = (
    LinkedRow(number=12, url="/gallery/promotion", subject="address-value", state=RequestState.IN_REVIEW, sentence="It includes address-value, which this request refers to and prod doesn’t have. Apply it first.", goes_first=True),
    LinkedRow(number=16, url="/gallery/promotion", subject=LONG, state=RequestState.APPROVED, sentence="It refers to a schema in this request. Apply this request first."),
)  # fmt: skip
PROMOTION_OWN = replace(
    PROMOTION, threads=(), impact=(), finding=None, linked=LINKED, apply_why=WHY_NOT_APPLIED,
    review=replace(REVIEW, why=WHY_OWN, approve=replace(APPROVE, allowed=False, reason=OWN), changes=replace(CHANGES, allowed=False, reason="Withdraw it instead."), reject=replace(REJECT, allowed=False, reason="Withdraw it instead.")),
    withdraw=WITHDRAW,
    apply=Action(label="Apply to prod", url="", allowed=False, reason="It isn’t approved yet.", icon="rocket"),
)  # fmt: skip
SET = tuple(
    ItemLink(subject=name, what=f"version {number} becomes version {number - 1} of staging", url=f"?item={number}", verdict=verdict, chosen=chosen, open_threads=threads)
    for name, number, verdict, chosen, threads in (("items-value", 4, Verdict.OK, False, 0), ("orders-value", 3, Verdict.BREAKS, True, 2), (HOSTILE, 2, Verdict.UNKNOWN, False, 0), (LONG, 9, Verdict.CARE, False, 0))
)  # fmt: skip
PROMOTION_BREAKS = replace(
    PROMOTION, verdict=Verdict.BREAKS, headline="It would break consumers of prod", sentence="2 checks fail. One of them can be overridden with a reason.",
    checks=FAILING, comparison=replace(COMPARISON, hidden_changes=12), comparison_of="orders-value", all_url="/gallery/promotion-breaks?all=1",
    unchanged_url="/gallery/promotion-breaks?unchanged=1", text_switch=TextSwitch(as_submitted=False, laid_out_url="/gallery/promotion-breaks", submitted_url="/gallery/promotion-breaks?text=submitted"),
    glass=Link(label="Open break-glass in prod", url="/gallery/environment#glass-title"),
    facts=(*PROMOTION.facts, Fact(label="Affected clients", value="2 of 5: billing and ledger", url="#impact")), consumers=CONSUMERS, labels=replace(LABELS, labels=LABEL_LINKS, change=replace(ACKNOWLEDGE, label="Save labels", allowed=False, reason="Only the requester and reviewers can change the labels.")), items=SET, items_title="7 schemas would be written", items_hidden=3, words_url="/gallery/promotion", more=3, ids=IDS_MANY, reason=HOSTILE, finding=ORIGIN_HOSTILE,
    voided="prod moved at 10:02: customers-value got version 3, registered by release 12. 1 approval no longer counts.",
    nobody="Nobody with the right to review is left: name an owner of orders-value, or give somebody the role approver.",
    review=replace(
        REVIEW, why=WHY_OWN[1:], approve=replace(APPROVE, allowed=False, reason=WHY_OWN[1].sentence),
        comment=replace(REVIEW.comment, label="Comment", required=True, help="Needed: the change breaks."),
        override=Field(name="override", label="Reason to override failing checks", kind="textarea", rows=2),
        typed=Field(name="typed", label="Type the subject’s name to approve", code=True, help="It breaks, and prod is closed."),
    ),
    comment=replace(COMMENT, subject="orders-value", path="Order.customer.email", whole_url="/gallery/promotion"),
)  # fmt: skip
PROMOTION_REJECTED = replace(
    PROMOTION, state=RequestState.REJECTED, headline="Closed: rejected", sentence="It was turned down; nothing was written.", verdict=Verdict.UNKNOWN,
    review=None, rules=(), eligible=(), recheck=None, comment=None, states=(*(replace(mark, mood="done") for mark in STATES[:2]), StateMark(state=RequestState.REJECTED, mood="bad", at=ago(hours=1), who="approver")),
    reviews=(ReviewRow(reviewer="approver", state=ReviewState.REJECTED, comment="Not before the sale.", at=ago(hours=1)),),
    again=Action(label="Request again…", url="/gallery/promotion-form", icon="refresh-cw"),
    linked=(LinkedRow(number=21, url="/gallery/promotion", subject="customers-value", state=RequestState.IN_REVIEW, sentence="It requests this again."),),
)  # fmt: skip
PROMOTION_APPROVED = replace(
    PROMOTION, state=RequestState.APPROVED, review=None, comparison=None, comparison_note="prod has no version of this subject yet: there is nothing to compare with.",
    source_note="1 open break finding for orders-value in dev.", source_findings=(Link(label=HOSTILE, url="/gallery/finding"),),
    new_schema=NewSchemaView(text=HOSTILE, format="AVRO", references=(NewReference(name=HOSTILE, subject=LONG, version=1, url="/gallery/subject"), NewReference(name="Money", subject="money-value", version=2)), fields=(NewField(path="Order.id", type="long", required=True, doc=HOSTILE), NewField(path=LONG, type="string", required=False, default='"EUR"')), fields_hidden=3),
    states=(*(replace(mark, mood="done") for mark in STATES[:2]), replace(STATES[2], mood="now", at=ago(hours=1), who="approver"), *STATES[3:]),
    reviews=(
        ReviewRow(reviewer="approver", state=ReviewState.APPROVED, comment="Consumers are on 2.4, fine.", override="The two findings are of a test topic.", at=ago(hours=1)),
        ReviewRow(reviewer="maria", state=ReviewState.CHANGES, comment="Give it a default.", at=ago(hours=2), counts=False),
        ReviewRow(reviewer="admin", state=ReviewState.DISMISSED, at=ago(hours=3), counts=False),
    ),
    apply=Action(label="Apply to prod", url="/ui/promotions/13/apply", method="post", tone="primary", icon="rocket"),
    schedule=ScheduleForm(schedule=Action(label="Schedule", url="/ui/promotions/13/schedule", method="post"), value="2026-10-02T06:00", minimum="2026-10-01T12:00"),
    withdraw=WITHDRAW,
    timeline=(TIMELINE[0], TimelineEntry(sentence="Plan changed: prod moved to version 1, 1 approval dismissed", at=ago(hours=2), mood="bad"), TimelineEntry(sentence="Approved", who="approver", at=ago(hours=1), comment="Consumers are on 2.4, fine."), TimelineEntry(sentence="Waiting to be applied", mood="now")),
)  # fmt: skip
PROMOTION_SCHEDULED = replace(
    PROMOTION_APPROVED, state=RequestState.SCHEDULED, apply=None, schedule=None, apply_at=ago(hours=-6), reason="",
    unschedule=Action(label="Cancel schedule", url="/ui/promotions/13/unschedule", method="post", icon="undo-2"),
)  # fmt: skip
PROMOTION_FAILED = replace(
    PROMOTION_APPROVED, state=RequestState.FAILED, apply=None, schedule=None, withdraw=None,
    states=(*(replace(mark, mood="done") for mark in STATES[:3]), StateMark(state=RequestState.FAILED, mood="bad", at=ago(minutes=2)), STATES[4]),
    plan=(
        StepRow(sentence="Register items-value version 4 as version 2 of prod", state=StepState.DONE, note="version 2 with id 87", at=ago(minutes=3)),
        StepRow(sentence="Register customers-value version 2 as version 2 of prod", state=StepState.FAILED, note="registry.example answered 503: the leader isn’t elected", at=ago(minutes=2)),
        StepRow(sentence="Settings of customers-value", state=StepState.WAITING),
    ),
    resume=Action(label="Resume", url="/ui/promotions/13/resume", method="post", tone="primary", icon="play"),
    give_up=Action(label="Give up", url="/ui/promotions/13/give-up", method="post", tone="danger", icon="x"),
    problem=Problem(what="1 of 3 steps is done", where="prod", cure="Resume, or give up: what was written stays.", detail="registry.example answered 503: the leader isn’t elected"),
)  # fmt: skip

AUDIT = AuditList(
    frame=frame("Audit", Section.AUDIT), search=SearchBox(
        url="/ui/audit", placeholder="steward", label="Search the log",
        filters=(
            Filter(name="door", label="Through", choices=(Choice(value="", label="Any channel", selected=True), Choice(value="ui", label="this site"))),
            Filter(name="table", label="What", choices=(Choice(value="", label="Any", selected=True), Choice(value="subjects_config", label="compatibility"))),
            Filter(name="registry", label="Registry", choices=(Choice(value="", label="Any registry"), Choice(value="dev", label="dev", selected=True))),
        ),
        fields=(
            Field(name="actor", label="Who"), Field(name="subject", label="Subject", value=LONG),
            Field(name="since", label="From (UTC)", kind="date"), Field(name="until", label="Before (UTC)", kind="date", value="2026-10-01"),
        ),
        active=(ActiveFilter(label="registry: dev", url="/ui/audit"), ActiveFilter(label=f"subject: {LONG}", url="/ui/audit?registry=dev")),
    ),
    exports=(Link(label="Download CSV", url="/ui/audit/export?as=csv"), Link(label="Download JSON Lines", url="/ui/audit/export?as=jsonl")),
    rows=(
        AuditRow(number=912, at=ago(minutes=3), who="steward", door="page", what="Promotion request created", row="promotionrequest 14", why="orders-value 3 to staging", url="/gallery/promotion",
                 changes=(AuditChange(column="state", before=None, after="in review"), AuditChange(column="subject_name", before=None, after="orders-value"))),
        AuditRow(number=911, at=ago(minutes=4), who="orders-producer", door="Confluent API", what="Version registered", row="schemaversion 14",
                 changes=(AuditChange(column="version", before=None, after="3"),)),
        AuditRow(number=910, at=ago(hours=2), who="admin", door="command", what="Compatibility level changed", row="config orders-value", why="agreed with the shop team",
                 then_url="/ui/registries/dev/policy?at=2026-10-01T12%3A00%3A01Z",
                 changes=(AuditChange(column="level", before="BACKWARD", after="BACKWARD_TRANSITIVE"),)),
        AuditRow(number=909, at=ago(days=1), who=HOSTILE, door="page", what="Finding acknowledged", row=LONG, why=HOSTILE,
                 changes=(AuditChange(column="reason", before="", after=HOSTILE),)),
    ),
    paging=Paging(first=1, last=4, next_url="?before=909"),
)  # fmt: skip
AUDIT_EMPTY = replace(AUDIT, rows=(), search=SearchBox(url="/ui/audit"), paging=Paging(first=0, last=0))
