"""Sample pages: promotion requests, the audit log."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from dashboard.audit.views import AuditList, AuditRow
from dashboard.compare.comparison import TextSwitch
from dashboard.components.badges import Acknowledged, FindingState, RequestState, Severity, StepState, Verdict
from dashboard.components.diff import text_diff
from dashboard.components.forms import fill_choices
from dashboard.components.translation import gettext_lazy as _
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
from dashboard.promotions.forms import (
    AcknowledgeForm,
    ApproveForm,
    LabelsForm,
    NewRequestForm,
    ReplyForm,
    ScheduleForm,
    ThreadForm,
)
from dashboard.promotions.plan import (
    ApprovalRow,
    BulkApprovalPage,
    ExcludedRow,
    IdPlan,
    IdRow,
    RequestList,
    RequestRow,
    StepRow,
)
from dashboard.promotions.presenters import (
    Changes,
    ConsumerRow,
    FindingOrigin,
    ItemLink,
    LinkedRow,
    NewSchemaView,
    PromotionPage,
    ReviewPanel,
    StateMark,
    ThreadRow,
    TimelineEntry,
)
from dashboard.promotions.request_form import PromotionForm
from dashboard.registries.policy_forms import WhyNot
from registry.access.selectors import ContactPerson
from registry.audit.selectors import AuditEntry
from registry.formats.base import OutlineField, Reference
from registry.promotions.checks.consumers import AffectedClient
from registry.promotions.plan.types import PlanStep
from registry.promotions.requests.infos import CommentInfo, ItemInfo, ReviewInfo
from registry.promotions.requests.linked_requests import LinkedRequest
from registry.promotions.requests.resubmit import RequestSummary
from registry.promotions.requests.schema_changes import NewSchema
from registry.promotions.reviews.affected_consumers import Consumer
from registry.promotions.reviews.eligibility import Reviewer, ReviewNeeds, RuleState
from registry.promotions.selectors import AcknowledgementInfo, RequestInfo, ThreadInfo
from registry.subjects.usage.clients import ClientInfo
from registry.subjects.versions.qualified_names import SubjectName
from tests.site.samples.cast import ARABIC, DEV, HOSTILE, LONG, PROD, STAGING, ago, frame
from tests.site.samples.comparison import COMPARISON

REQUEST = Action(
    label="Request a promotion", url="/ui/promotions/request", tone="primary", icon="git-pull-request-arrow"
)


LABELS = ("checkout", "q4", HOSTILE[:40])


CUSTOMERS = SubjectName(".", "customers-value")
REVIEWERS = (Reviewer("approver", 2), Reviewer("admin", 1))
NEEDED = ReviewNeeds(
    rules=(
        RuleState("1 approval from another person", 1, 0, who=REVIEWERS),
        RuleState("1 approval from the owners of customers-value", 1, 1, who=(Reviewer("maria", 3),)),
    ),
    eligible=REVIEWERS,
)
ITEM = ItemInfo(CUSTOMERS, 2, "5f0c9a1e77aa", "AVRO")
INFO = RequestInfo(
    id=13, kind="promote", subject=CUSTOMERS, version=2, items=(ITEM,), source="staging", target="prod", state="in review",
    reason="The checkout needs loyalty_tier from Monday.\nConsumers were upgraded last week.", with_config=False,
    requested_by="steward", requested_by_id=4, requested_at=ago(hours=5), closed_at=None, plan={"steps": [], "checks": []},
    plan_hash="5f0c9a1e77aa", planned_at=ago(minutes=4), moved="", apply_at=None, applied_by="", failure="", reviews_needed=1,
    own_approval_allowed=False, reviews=(), needed=NEEDED, stale="", open_threads=2, threads=(), steps=(), releases=(), labels=LABELS[:2],
)  # fmt: skip


def request(number: int, subject: str, what: str, state: RequestState, **more: object) -> RequestRow:
    """A sample request; what isn't the row's is its info's."""
    own = {name: more.pop(name) for name in tuple(more) if name in RequestRow.__dataclass_fields__}
    info = replace(INFO, id=number, subject=SubjectName(".", subject), state=state.code, **{"labels": ()} | more)  # type: ignore[arg-type]
    base = RequestRow(info=info, what=what, source=STAGING, target=PROD, verdict=Verdict.OK, reviews="0 of 1")
    return replace(base, **own)  # type: ignore[arg-type]


REQUESTS = (
    request(14, "orders-value", "version 3", RequestState.IN_REVIEW, source=DEV, target=STAGING, verdict=Verdict.BREAKS, requested_at=ago(minutes=3), items=(ITEM,) * 5,
            blocked="A check fails: it breaks BACKWARD_TRANSITIVE at staging in 1 place."),
    request(13, "customers-value", "version 2", RequestState.IN_REVIEW, blocked="Waits for 1 review by somebody else than steward.", labels=LABELS[:2]),
    request(12, "payments-value", "a proposed text", RequestState.APPROVED, source=None, reviews="1 of 1", verdict=Verdict.CARE, blocked="Approved: ready to be applied."),
    request(15, "refunds-value", "version 4 again", RequestState.SCHEDULED, source=None, reviews="1 of 1", blocked="Will be applied in 6 h."),
    request(16, "carts-value", "version 1", RequestState.DRAFT, blocked="Not submitted yet."),
    request(11, ARABIC, "version 1", RequestState.APPLIED, reviews="1 of 1", requested_at=ago(days=2)),
    request(10, HOSTILE, "version 1", RequestState.REJECTED, requested_by=HOSTILE, verdict=Verdict.UNKNOWN, requested_at=ago(days=3), labels=LABELS),
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
        request(17, LONG, "version 2", RequestState.IN_REVIEW), replace(request(10, HOSTILE, "version 1", RequestState.IN_REVIEW), alone=f"A check warns, so it must be reviewed separately: {HOSTILE}"),
    ),
)  # fmt: skip
LIST_WAITING_NONE = replace(
    LIST_WAITING, rows=LIST_WAITING.rows[:1], together=replace(TOGETHER, reason="Each of these must be reviewed separately."),
)  # fmt: skip
CHOSEN = (
    ApprovalRow(request=REQUESTS[1]),
    ApprovalRow(request=request(17, LONG, "version 2", RequestState.IN_REVIEW, items=(ITEM,) * 4, reason=""), note="prod is frozen until 2026-11-24 06:00 UTC: a sale."),
    ApprovalRow(request=request(11, ARABIC, "version 1", RequestState.IN_REVIEW, reason=HOSTILE)),
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
    request=replace(REQUEST, reason="Your role is reader: stewards and admins request promotions."),
)
LIST_NO_MATCH = replace(
    LIST,
    rows=(),
    search=replace(
        SEARCH, query="nothing", active=(ActiveFilter(label="state: open", url="/ui/promotions?q=nothing"),)
    ),
    paging=Paging(first=0, last=0),
)


def check(verdict: str, name: str, sentence: str, **more: object) -> dict[str, object]:
    """A sample check, as plans store it."""
    return {"verdict": verdict, "name": name, "sentence": sentence, **more}


CHECKS = (
    check("pass", "mode of prod", "prod accepts new versions."),
    check("pass", "references", "items-value version 4 is there with the same content."),
    check("pass", "compatibility of customers-value", "Compatible with versions 1 in the target under BACKWARD."),
    check("warn", "schema id", "prod will give id 88, staging has 31: consumers that pin ids will notice.", cure="With prod in mode IMPORT the id could be kept."),
    check("stale", "data at prod", "The newest scan is 9 days old.", cure="Scan orders again."),
    check("skipped", "Spark state", "No query keeps state of this subject."),
)  # fmt: skip
FAILING = (
    *CHECKS[:2],
    check("fail", "compatibility of orders-value", "Breaks BACKWARD_TRANSITIVE in the target in 1 place, compared with versions 2 and 3.", cure="Give “note” a default, or lower the level of prod."),
    check("fail", "drift at prod", f"2 findings are open at {HOSTILE}.", cure="Decide on them.", overridable=True, code="drift", subject=HOSTILE),
)  # fmt: skip
IMPACT = (
    check("warn", "subjects that refer to it", "baskets-value and invoices-value refer to version 1; both still resolve."),
    check("pass", "evidence from data", "5,120 messages of the last hour were read with the new schema, none failed. Seen 12 minutes ago."),
    check("skipped", "evidence from Spark state", "No query keeps state of this subject."),
)  # fmt: skip
PLAN = (
    StepRow(sentence="items-value version 4 is in prod already.", detail="same content, its version 2 there", needed=False),
    StepRow(sentence="Register customers-value version 2 as version 2 of prod.", detail="Avro, fingerprint 5f0c 9a1e"),
)  # fmt: skip
IDS = IdPlan(sentence="prod will give id 88, not 31 as in staging.", verdict=Verdict.CARE)
IDS_MANY = IdPlan(
    sentence="2 of 3 ids are expected to differ. Ids are assigned when the request is applied.",
    source="staging",
    target="prod",
    verdict=Verdict.CARE,
    rows=(
        IdRow(subject="items-value", there="12", here="12", outlook="the same", verdict=Verdict.OK),
        IdRow(subject="customers-value", there="31", here="88", outlook="differs", verdict=Verdict.CARE),
        IdRow(subject=HOSTILE, there="32", here="—", outlook="not known", verdict=Verdict.UNKNOWN),
    ),
)


def filled(form: NewRequestForm) -> NewRequestForm:
    """The form with the choices of the samples."""
    fill_choices([form], source=["dev", "staging"], target=["staging", "prod"])
    return form


SENT = {
    "items": "customers-value 2\nitems-value",
    "source": "staging",
    "target": "prod",
    "labels": "checkout, q4",
    "with_config": True,
}
FORM = PromotionForm(
    frame=frame("Request a promotion", Section.PROMOTIONS, Crumb(label="Promotions", url="/ui/promotions")),
    form=filled(NewRequestForm(SENT | {"again_of": 12})), headline="Can be promoted", sentence="1 version would be written to prod without breaking changes.",
    verdict=Verdict.OK, checks=CHECKS, plan=PLAN, ids=IDS_MANY, plan_hash="5f0c9a1e77aa00bb11cc", export_url="/ui/promotions/request?as=json",
)  # fmt: skip
WRONG = filled(NewRequestForm(SENT | {"items": ""}))
FORM_EMPTY = replace(
    FORM, checks=(), plan=(), ids=None, headline="", form=WRONG, problem=WRONG.problem, refused="You need the steward role to request promotions.",
)  # fmt: skip
APPROVE = Action(label="Approve", url="/ui/promotions/13/approve", method="post", tone="primary")
CHANGES = Action(label="Request changes", url="/ui/promotions/13/changes", method="post")
REJECT = Action(label="Reject", url="/ui/promotions/13/reject", method="post", tone="danger")
REVIEW_FORM = ApproveForm()
del REVIEW_FORM.fields["override"], REVIEW_FORM.fields["typed"]
REVIEW_FORM.fields["comment"].help_text = _("Required to request changes or to reject.")
REVIEW = ReviewPanel(approve=APPROVE, changes=CHANGES, reject=REJECT, form=REVIEW_FORM)
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


def thread(number: int, *said: tuple[str, str], subject: str = "", path: str = "", resolved_by: str = "") -> ThreadInfo:
    """A sample discussion: who said what."""
    comments = tuple(
        CommentInfo(id=n, author=author, author_id=n, text=text, at=ago(hours=2 - n))
        for n, (author, text) in enumerate(said)
    )
    resolved_at = ago(minutes=30) if resolved_by else None
    return ThreadInfo(number, subject, path, resolved_by, resolved_at, comments)


THREADS = (
    ThreadRow(
        info=thread(1, ("approver", "Is the default really empty?\nThe billing job reads it."), ("steward", HOSTILE), subject="customers-value", path="Customer.email"),
        place_url="#c-2", reply=ReplyForm(key=1), change=text_diff('{"name": "note"}\n', f'{{"name": "remark", "doc": "{HOSTILE}"}}\n'), can_take=True,
    ),
    ThreadRow(info=thread(2, ("admin", "Fine for me."), resolved_by="steward"), reply=ReplyForm(key=2)),
    ThreadRow(info=thread(3, (HOSTILE, LONG), subject=HOSTILE, path=LONG), reply=ReplyForm({"text": ""}, key=3), switch_refused="A reviewer can resolve it."),
)  # fmt: skip
CHANGED = replace(
    COMPARISON, verdict=Verdict.OK, headline="Upgrade consumers first", sentence="2 changes, both safe for new readers.",
    old=replace(COMPARISON.old, environment=PROD, version=1), new=replace(COMPARISON.new, environment=STAGING, version=2),
    directions=tuple(replace(way, verdict=Verdict.OK, failing=0) for way in COMPARISON.directions),
    groups=(replace(COMPARISON.groups[0], cards=tuple(replace(card, comment_url="?about=note#comment", threads=(Link(label="1 discussion", url="#thread-1"),) if number == 0 else ()) for number, card in enumerate(COMPARISON.groups[0].cards[3:]))),),
    breaking=0, care=0, safe=2,
)  # fmt: skip


def consumer(name: str, contact: str, *people: str, subject: str = "customers-value") -> Consumer:
    """A sample client that a plan breaks."""
    declared = ClientInfo(name, True, False, 1, 1, (), contact, ago(days=9), contact, ago(days=1), False)
    return Consumer(AffectedClient(subject, name), declared, tuple(ContactPerson(each, 1) for each in people))


def word(client: str, person: str, note: str = "", *, counts: bool = True) -> AcknowledgementInfo:
    """A sample acknowledgement."""
    return AcknowledgementInfo("customers-value", client, person, 1, note, ago(minutes=9), counts)


CONSUMERS = (
    ConsumerRow(consumer=consumer("billing", "payments", "maria", "reader"), does="reads version 1", state=Acknowledged.WAITING, form=AcknowledgeForm(key=1)),
    ConsumerRow(consumer=consumer("ledger", "#ledger"), does="writes version 1", state=Acknowledged.VOID, acknowledgement=word("ledger", "approver", counts=False), form=AcknowledgeForm(key=2), refused="You need the admin or approver role in prod to review promotions."),
    ConsumerRow(consumer=consumer("exporter", "reader", "reader"), does="reads version 2", state=Acknowledged.DONE, acknowledgement=word("exporter", "reader"), is_own=True),
    ConsumerRow(consumer=consumer("audit-export", "data-platform@shop.example", "maria"), does="reads and writes version 2", state=Acknowledged.DONE, acknowledgement=word("audit-export", "maria", "We take version 2 from tonight’s release on.")),
    ConsumerRow(consumer=consumer(HOSTILE, HOSTILE, HOSTILE, LONG, subject=LONG), does="since withdrawn", state=Acknowledged.DONE, acknowledgement=word(HOSTILE, HOSTILE, HOSTILE + LONG)),
)  # fmt: skip
ORIGIN = FindingOrigin(
    url="/gallery/finding", sentence="Field loyalty_tier appears in 412 of 1,600 messages of customers under schema id 31, and no schema declares it.",
    severity=Severity.RISK, state=FindingState.OPEN,
)  # fmt: skip
ORIGIN_HOSTILE = replace(ORIGIN, sentence=HOSTILE + LONG, severity=Severity.BREAK, state=FindingState.RESOLVED)
REPLAY = Action(label="Replay check", url="/ui/promotions/13/replay?item=customers-value", method="post", icon="play")


def review(who: str, verdict: str, comment: str = "", *, counts: bool = True, override: str = "") -> ReviewInfo:
    """A sample review."""
    return ReviewInfo(who, verdict, comment, ago(hours=1), counts, override)


STEP = PlanStep("register", "customers-value", 2, 2)
PROMOTION = PromotionPage(
    frame=frame("#13 Promote customers-value version 2 to prod", Section.PROMOTIONS, Crumb(label="Promotions", url="/ui/promotions"), current="prod"),
    info=INFO, source=STAGING, target=PROD, here_url="/gallery/promotion", verdict=Verdict.OK, headline="Can be promoted",
    sentence="customers-value version 2 becomes version 2 of prod. 2 changes against what prod has, none breaking.", finding=ORIGIN,
    facts=(Fact(label="Level at prod", value="BACKWARD", code=True), Fact(label="Becomes", value="version 2 of prod"), Fact(label="Evidence", value="12 min old")),
    changes=Changes(comparison=CHANGED, chosen=STEP), states=STATES, replay=REPLAY,
    unified_url="/gallery/promotion", split_url="/gallery/promotion?view=split", checks=CHECKS,
    recheck=Action(label="Run checks again", url="/ui/promotions/13/recheck", method="post", icon="refresh-cw"), impact=IMPACT, plan=PLAN, ids=IDS,
    policy=("Closed: only releases can change it.", "Open drift findings for a subject fail its requests.", "Frozen from 24 Dec to 2 Jan."),
    review=REVIEW, timeline=TIMELINE, threads=THREADS, comment=ThreadForm(), labels=LabelsForm(initial={"labels": "checkout, q4"}),
)  # fmt: skip
WITHDRAW = Action(label="Withdraw", url="/ui/promotions/13/withdraw", method="post", icon="undo-2")
OWN = "You requested it: somebody else has to approve."
WHY_OWN = (
    WhyNot(code="own-request", sentence=OWN, cure="Possible reviewers: approver, admin.", fix=Link(label="Reviewers of prod", url="/ui/environments")),
    WhyNot(code="stale", sentence="The checks are out of date: Version 3 of customers-value was added in prod.", cure="Run the checks again.", fix=Link(label="Checks", url="#checks")),
    WhyNot(code="drift", sentence=f"A check fails: Open in the target: {HOSTILE}", cure="Resolve or acknowledge the open findings, or have a reviewer override the check with a reason.", fix=Link(label="Open findings", url="/ui/findings")),
)  # fmt: skip
WHY_NOT_APPLIED = (
    WhyNot(code="approval", sentence="It is not approved yet.", fix=Link(label="Reviewers of prod", url="/ui/environments")),
    WhyNot(code="freeze", sentence="A check fails: prod is frozen until 2026-11-24 06:00 UTC: a sale.", fix=Link(label="Freezes of prod", url="/ui/environments")),
)  # fmt: skip
LINKED = (
    LinkedRow(request=LinkedRequest(12, "in review", SubjectName(".", "address-value"), 1, ("address-value",)), sentence="It includes address-value, which this request refers to and prod doesn’t have. Apply it first."),
    LinkedRow(request=LinkedRequest(16, "approved", SubjectName(".", LONG), 1), sentence="It refers to a schema in this request. Apply this request first."),
)  # fmt: skip
PROMOTION_OWN = replace(
    PROMOTION, threads=(), impact=(), finding=None, linked=LINKED, apply_why=WHY_NOT_APPLIED,
    review=replace(REVIEW, why=WHY_OWN, approve=replace(APPROVE, reason=OWN), changes=replace(CHANGES, reason="Withdraw it instead."), reject=replace(REJECT, reason="Withdraw it instead.")),
    withdraw=WITHDRAW,
    apply=Action(label="Apply to prod", url="", reason="It isn’t approved yet.", icon="rocket"),
)  # fmt: skip
SET = tuple(
    ItemLink(subject=name, what=f"version {number} becomes version {number - 1} of staging", url=f"?item={number}", verdict=verdict, chosen=chosen, open_threads=threads)
    for name, number, verdict, chosen, threads in (("items-value", 4, Verdict.OK, False, 0), ("orders-value", 3, Verdict.BREAKS, True, 2), (HOSTILE, 2, Verdict.UNKNOWN, False, 0), (LONG, 9, Verdict.CARE, False, 0))
)  # fmt: skip


def breaks_form(sent: dict[str, str] | None = None) -> ApproveForm:
    """The form of a decision on a breaking change; `sent` is what was refused."""
    form = ApproveForm(sent, key="breaks")
    form.fields["comment"].help_text = _("Required, because this is a breaking change.")
    form.fields["typed"].required = True
    return form


BREAKS_SENT = breaks_form({"comment": ""})
PROMOTION_BREAKS = replace(
    PROMOTION, verdict=Verdict.BREAKS, headline="It would break consumers of prod", sentence="2 checks fail. One of them can be overridden with a reason.",
    info=replace(INFO, items=(ITEM,) * 4, reason=HOSTILE, labels=LABELS, needed=replace(NEEDED, nobody_can="Nobody with the right to review is left: name an owner of orders-value, or give somebody the role approver.")),
    checks=FAILING, changes=Changes(items=SET, hidden=3, comparison=replace(COMPARISON, hidden_changes=12), chosen=replace(STEP, subject="orders-value")), all_url="/gallery/promotion-breaks?all=1",
    unchanged_url="/gallery/promotion-breaks?unchanged=1", text_switch=TextSwitch(as_submitted=False, laid_out_url="/gallery/promotion-breaks", submitted_url="/gallery/promotion-breaks?text=submitted"),
    glass=True,
    facts=(*PROMOTION.facts, Fact(label="Affected clients", value="2 of 5: billing and ledger", url="#impact")), consumers=CONSUMERS, channels=(Link(label="#orders", url=""), Link(label=LONG, url="https://chat.example/x")), labels_refused="Only the requester and reviewers can change the labels.", items_title="7 schemas would be written", words_url="/gallery/promotion", ids=IDS_MANY, finding=ORIGIN_HOSTILE,
    voided_title="Earlier approvals no longer count", voided="prod moved at 10:02: customers-value got version 3, registered by release 12. 1 approval no longer counts.",
    review=replace(REVIEW, why=WHY_OWN[1:], approve=replace(APPROVE, reason=WHY_OWN[1].sentence), form=breaks_form()),
    comment=ThreadForm(initial={"subject": "orders-value", "path": "Order.customer.email"}),
)  # fmt: skip
PROMOTION_REFUSED = replace(PROMOTION_BREAKS, refused=BREAKS_SENT.problem, review=replace(REVIEW, form=BREAKS_SENT))
PROMOTION_REJECTED = replace(
    PROMOTION, headline="Closed: rejected", sentence="It was turned down; nothing was written.", verdict=Verdict.UNKNOWN,
    info=replace(INFO, state="rejected", needed=ReviewNeeds(), reviews=(review("approver", "reject", "Not before the sale."),)),
    review=None, recheck=None, comment=None, states=(*(replace(mark, mood="done") for mark in STATES[:2]), StateMark(state=RequestState.REJECTED, mood="bad", at=ago(hours=1), who="approver")),
    threads=tuple(replace(row, reply=None) for row in THREADS), again=Action(label="Request again…", url="/gallery/promotion-form", icon="refresh-cw"),
    linked=(LinkedRow(request=RequestSummary(21, "in review", CUSTOMERS, 13), sentence="It requests this again."),),
)  # fmt: skip
NEW = NewSchema(HOSTILE, "AVRO", (Reference(HOSTILE, LONG, 1), Reference("Money", "money-value", 2)), (OutlineField("id", "Order.id", "long", 0, True, None, HOSTILE), OutlineField("currency", LONG, "string", 0, False, '"EUR"', "")))  # fmt: skip
PROMOTION_APPROVED = replace(
    PROMOTION, review=None,
    info=replace(
        INFO, state="approved", reviews=(
            review("approver", "approve", "Consumers are on 2.4, fine.", override="The two findings are of a test topic."),
            review("maria", "changes", "Give it a default.", counts=False),
        ),
    ),
    source_note="1 open break finding for orders-value in dev.", source_findings=(Link(label=HOSTILE, url="/gallery/finding"),),
    changes=Changes(
        note="prod has no version of this subject yet: there is nothing to compare with.",
        new=NewSchemaView(schema=NEW, references=((NEW.references[0], "/gallery/subject"), (NEW.references[1], "")), fields_hidden=3),
    ),
    states=(*(replace(mark, mood="done") for mark in STATES[:2]), replace(STATES[2], mood="now", at=ago(hours=1), who="approver"), *STATES[3:]),
    apply=Action(label="Apply to prod", url="/ui/promotions/13/apply", method="post", tone="primary", icon="rocket"),
    schedule=ScheduleForm(initial={"at": ago(hours=-9)}), withdraw=WITHDRAW,
    timeline=(TIMELINE[0], TimelineEntry(sentence="Plan changed: prod moved to version 1, 1 approval dismissed", at=ago(hours=2), mood="bad"), TimelineEntry(sentence="Approved", who="approver", at=ago(hours=1), comment="Consumers are on 2.4, fine."), TimelineEntry(sentence="Waiting to be applied", mood="now")),
)  # fmt: skip
PROMOTION_SCHEDULED = replace(
    PROMOTION_APPROVED, info=replace(PROMOTION_APPROVED.info, state="scheduled", apply_at=ago(hours=-6), reason=""), apply=None, schedule=None,
    unschedule=Action(label="Cancel schedule", url="/ui/promotions/13/unschedule", method="post", icon="undo-2"),
)  # fmt: skip
PROMOTION_FAILED = replace(
    PROMOTION_APPROVED, info=replace(PROMOTION_APPROVED.info, state="failed"), apply=None, schedule=None, withdraw=None,
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


def audit_row(
    number: int, at: datetime, who: str, channel: str, what: tuple[str, str], row: str, *, why: str = "", url: str = "",
    sealed: int | None = None, before: dict[str, Any] | None = None, after: dict[str, Any] | None = None,
    others: tuple[AuditRow, ...] = (),
) -> AuditRow:  # fmt: skip
    """An event; `what` is its table and operation."""
    table, operation = what
    entry = AuditEntry(
        number, 1, at, who, channel, "", why, operation, table, row, before or {}, after or {}, sealed, ""
    )
    return AuditRow(entry, url, others)


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
        audit_row(912, ago(minutes=3), "steward", "page", ("promotions_promotionrequest", "INSERT"), "14", url="/gallery/promotion",
                  why="orders-value 3 to staging", after={"state": "in review", "subject_name": "orders-value"}),
        audit_row(911, ago(minutes=4), "orders-producer", "Confluent API", ("subjects_schemaversion", "INSERT"), "14", after={"version": "3"},
                  others=(audit_row(913, ago(minutes=4), "orders-producer", "Confluent API", ("subjects_subject", "INSERT"), HOSTILE, sealed=7),)),
        audit_row(910, ago(hours=2), "admin", "command", ("subjects_config", "UPDATE"), "orders-value", url="/ui/registries/dev/policy",
                  why="agreed with the shop team", before={"level": "BACKWARD"}, after={"level": "BACKWARD_TRANSITIVE"}),
        audit_row(909, ago(days=1), HOSTILE, "page", ("drift_finding", "UPDATE"), LONG, why=HOSTILE, before={"reason": ""}, after={"reason": HOSTILE}),
    ),
    paging=Paging(first=1, last=4, next_url="?before=909"),
)  # fmt: skip
AUDIT_EMPTY = replace(AUDIT, rows=(), search=SearchBox(url="/ui/audit"), paging=Paging(first=0, last=0))
