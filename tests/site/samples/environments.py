"""Sample pages: the board of environments and one environment; drafts and the page on which a schema is proposed."""

from __future__ import annotations

from dataclasses import replace

from dashboard.compatibility.presenters import LevelResult, ReferenceField, SyntaxProblem, snippet
from dashboard.components.badges import Check, Outlook, Verdict
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
from dashboard.environments.board import BoardCell, BoardRow, EnvironmentBoard, EnvironmentRule
from dashboard.environments.change_requests import (
    BreakGlassView,
    ChangeView,
    EnvironmentPage,
    FreezeView,
    LooseningForm,
    RecurringView,
    RuleView,
)
from dashboard.promotions.plan import CheckRow
from dashboard.proposals.forms import ChangeLine, DraftList, DraftRow, ProposalPage, ProposalReport, ProposalResult
from registry.formats.compatibility import LEVELS
from tests.site.samples.cast import DEV, HOSTILE, LONG, PROD, STAGING, ago, frame
from tests.site.samples.comparison import COMPARISON
from tests.site.samples.promotions import ORIGIN, REQUESTS
from tests.site.samples.report import LINT

HERE = "/gallery/subject"
ASK = "/ui/promotions/request"
BOARD = EnvironmentBoard(
    frame=frame("Environments", Section.ENVIRONMENTS),
    rules=(
        EnvironmentRule(environment=DEV, rule="Open: programs and people register directly.", url="/gallery/environment", subjects=452, level="BACKWARD", mode="READWRITE"),
        EnvironmentRule(environment=STAGING, rule="Open. Requests take 1 review; the requester may approve.", url="/gallery/environment", subjects=398, level="BACKWARD", mode="READWRITE"),
        EnvironmentRule(environment=PROD, rule="Closed: it changes by releases. 1 review by somebody else.", url="/gallery/environment", subjects=377, level="FULL_TRANSITIVE", mode="READONLY", alarm="Break-glass is open until 14:20, opened by admin."),
    ),
    search=SearchBox(
        url="/ui/environments", placeholder="orders", label="Search subjects", active=(ActiveFilter(label="show: behind", url="/ui/environments"),),
        filters=(Filter(name="show", label="Show", choices=(Choice(value="", label="All subjects"), Choice(value="behind", label="Behind", selected=True), Choice(value="blocked", label="Blocked"), Choice(value="id differs", label="Schema id differs"), Choice(value="different content", label="Same version number, different content"))),),
    ),
    rows=(
        BoardRow(subject="orders-value", url=HERE, cells=(
            BoardCell(environment=DEV, version=3, schema_id=14, url=HERE, since=ago(minutes=4), seen_at=ago(minutes=1)),
            BoardCell(environment=STAGING, version=2, schema_id=5, url=HERE, since=ago(days=8), seen_older="messages use version 1", behind="missing version 3 from dev", outlook=Outlook.NEEDS_APPROVAL, reasons=("It takes 1 review.",), promote=Action(label="Promote version 3", url=ASK)),
            BoardCell(environment=PROD, version=2, schema_id=2, url=HERE, since=ago(days=7), behind="missing version 3 from dev", outlook=Outlook.NO, reasons=("Breaks FULL_TRANSITIVE in 2 places. Give “note” a default.",), notes=("id differs",)))),
        BoardRow(subject="customers-value", url=HERE, cells=(
            BoardCell(environment=DEV, version=2, schema_id=6, url=HERE, since=ago(days=9)),
            BoardCell(environment=STAGING, version=2, schema_id=31, url=HERE, notes=("same number, different content", "deprecated until 1 Dec"), outlook=Outlook.NEEDS_APPROVAL, request=Link(label="request 13", url="/gallery/promotion")),
            BoardCell(environment=PROD, version=1, schema_id=1, url=HERE, behind="missing version 3 from dev", outlook=Outlook.UNKNOWN, promote=Action(label="Promote", url="", allowed=False, reason="reader may not request promotions.")))),
        BoardRow(subject=HOSTILE, url=HERE, cells=(BoardCell(environment=DEV, version=1, schema_id=77, url=HERE), BoardCell(environment=STAGING, outlook=Outlook.YES, promote=Action(label="Promote version 1", url=ASK)), BoardCell(environment=PROD))),
        BoardRow(subject=LONG, url=HERE, cells=(BoardCell(environment=DEV), BoardCell(environment=STAGING, version=1, schema_id=3, url=HERE, notes=(HOSTILE,)), BoardCell(environment=PROD)), markable=False),
    ),
    paging=Paging(first=1, last=4, total=452, next_url="?after=3"),
    ways=(Choice(value="dev>staging", label="from dev to staging", selected=True), Choice(value="staging>prod", label="from staging to prod")),
    preview=Action(label="Preview plan", url=ASK), export_url="/ui/promotions/plan.json",
)  # fmt: skip
BOARD_EMPTY = replace(BOARD, rows=(), search=SearchBox(url="/ui/environments"), paging=Paging(first=0, last=0))
BOARD_NO_MATCH = replace(BOARD, rows=(), paging=Paging(first=0, last=0))
BOARD_ALONE = replace(BOARD_EMPTY, rules=BOARD.rules[:1], ways=(), preview=None, alone=True)
BOARD_READER = replace(
    BOARD,
    preview=replace(
        BOARD.preview, allowed=False, reason="You need the approver or steward role to request promotions."
    ),
)  # type: ignore[type-var]

DOWN = Action(label="Remove", url="/ui/environments/prod/rules/1/remove", method="post")
PAGE = EnvironmentPage(
    frame=frame("prod", Section.ENVIRONMENTS, Crumb(label="Environments", url="/ui/environments"), current="prod"),
    environment=PROD, closed=True, headline="Closed", sentence="Versions, settings, modes and aliases can only be changed by releasing an approved request. This applies to all channels.",
    facts=(Fact(label="Environment order", value="3 of 3"), Fact(label="Level", value="FULL_TRANSITIVE", code=True), Fact(label="Mode", value="READONLY", code=True)),
    links=(Link(label="Subjects", url="/gallery/subjects"), Link(label="Requests to prod", url="/gallery/promotions")),
    settings=(Field(name="reviews_needed", label="Approvals required", kind="number", value="1", required=True), Field(name="max_evidence_hours", label="Maximum age of evidence (hours)", kind="number", value="24", help="Older evidence voids approvals and blocks the release until the topic is scanned again. Leave empty for no limit.")),
    switches=(Choice(value="is_closed", label="Closed: only releases can change versions, settings, modes and aliases", selected=True), Choice(value="own_approval_allowed", label="Requesters can approve their own requests"), Choice(value="owners_only", label="Only owners of a subject can request its promotion"), Choice(value="drift_blocks", label="Open drift findings for a subject fail its requests", selected=True), Choice(value="threads_block", label="Unresolved discussions block the release"), Choice(value="clients_block", label="Affected clients block the release until they are acknowledged"), Choice(value="evidence_required", label="Releases need evidence from data")),
    change=Action(label="Save", url="/ui/environments/prod/change", method="post"),
    rules=(RuleView(sentence="1 of the owners, for every request about payments-*", remove=DOWN), RuleView(sentence=f"2 of the group {HOSTILE}, for breaking requests about *", remove=DOWN)),
    rule_fields=(
        Field(name="subject_pattern", label="Subjects", value="*", code=True, required=True, help="A shell pattern."),
        Field(name="verdict", label="For", kind="select", choices=(Choice(value="any", label="every request"), Choice(value="breaking", label="breaking ones")), required=True),
        Field(name="reviewers", label="Approved by", kind="select", choices=(Choice(value="owners", label="Owners of the subject"), Choice(value="role", label="People with a role"), Choice(value="group", label="Members of a group")), required=True),
        Field(name="name", label="Role or group"), Field(name="count", label="Number of approvals", kind="number", value="1", required=True),
    ),
    add_rule=Action(label="Add rule", url="/ui/environments/prod/rules", method="post"),
    freezes=(FreezeView(starts_at=ago(hours=4), ends_at=ago(hours=-20), reason="Black Friday", made_by="admin", remove=DOWN, now=True), FreezeView(starts_at=ago(days=-20), ends_at=ago(days=-30), reason=HOSTILE, made_by=HOSTILE, remove=DOWN)),
    freeze_fields=(Field(name="starts_at", label="From (UTC)", kind="datetime-local", required=True), Field(name="ends_at", label="To (UTC)", kind="datetime-local", required=True), Field(name="why_frozen", label="Reason", required=True)),
    add_freeze=Action(label="Add freeze window", url="/ui/environments/prod/freezes", method="post"),
    recurring=(RecurringView(sentence="Every week from Friday 16:00 to Monday 07:00, Europe/Berlin", starts_at=ago(days=-2), ends_at=ago(days=-5), reason="Nobody is there", made_by="admin", remove=DOWN), RecurringView(sentence="Every month on the last 3 days, UTC", starts_at=ago(hours=4), ends_at=ago(days=-2), reason=HOSTILE, made_by=HOSTILE, remove=DOWN, now=True)),
    recurring_fields=(Field(name="recurs", label="Repeats", kind="select", choices=(Choice(value="weekly", label="Every week"), Choice(value="monthly", label="On the last days of every month")), required=True), Field(name="zone", label="Time zone", value="UTC", code=True, required=True, help="A name like Europe/Berlin."), Field(name="from_time", label="Start time", kind="time", value="16:00", required=True), Field(name="why_recurring", label="Reason", required=True)),
    add_recurring=Action(label="Add recurring freeze", url="/ui/environments/prod/recurring-freezes", method="post"),
    break_glass=(
        BreakGlassView(number=4, opened_by="admin", opened_at=ago(minutes=10), ends_at=ago(minutes=-50), reason="The order service can’t start: version 9 was withdrawn by mistake.", uses=1, mark="open", sentence="open for 50 min more", close=Action(label="Close it", url="/ui/environments/prod/break-glass/4/close", method="post"), confirm=Action(label="Confirm", url="", allowed=False, reason="You opened it, so another person must confirm it.")),
        BreakGlassView(number=3, opened_by="admin", opened_at=ago(hours=9), ends_at=ago(hours=8), reason="Repairing the subject’s alias.", uses=2, mark="waiting", sentence="until 8 h ago", confirm=Action(label="Confirm", url="/ui/environments/prod/break-glass/3/confirm", method="post")),
        BreakGlassView(number=2, opened_by=HOSTILE, opened_at=ago(days=9), ends_at=ago(days=9), reason=HOSTILE, uses=7, mark="red", sentence="until 9 d ago", confirmed_by="maria", confirmed_at=ago(days=3), comment="Late, but right."),
        BreakGlassView(number=1, opened_by="admin", opened_at=ago(days=29), ends_at=ago(days=29), reason="First set-up.", uses=0, mark="confirmed", sentence="until 29 d ago", confirmed_by="maria", confirmed_at=ago(days=28)),
    ),
    loosening=LooseningForm(sentence="prod is closed, and this loosens it.", url="/ui/environments/prod/changes", action="change", values='{"reviews_needed": 1}', fields=(Field(name="why_loosen", label="Reason", kind="textarea", rows=3, required=True, help="Reviewers of prod are notified."),)),
    changes=(
        ChangeView(number=3, sentence="change the rules of prod (reviews_needed 2 → 1)", reason=HOSTILE, state="open", state_words="Waiting for confirmation", requested_by="admin", requested_at=ago(minutes=3), approve=Action(label="Approve change", url="/ui/environments/prod/changes/3/approve", method="post"), reject=Action(label="Reject change", url="/ui/environments/prod/changes/3/reject", method="post"), withdraw=Action(label="Withdraw change", url="/ui/environments/prod/changes/3/withdraw", method="post")),
        ChangeView(number=2, sentence=HOSTILE, reason="We are two.", state="approved", state_words="Approved", requested_by=HOSTILE, requested_at=ago(days=2), decided_by="maria", decided_at=ago(days=1), comment="Fine."),
        ChangeView(number=1, sentence="end the freeze of prod", reason="The sale is over.", state="rejected", state_words="Rejected", requested_by="admin", requested_at=ago(days=3), decided_by=HOSTILE, decided_at=ago(days=3), comment="It isn’t."),
    ),
    break_glass_fields=(Field(name="glass_reason", label="Why it can’t wait for a release", kind="textarea", rows=3, required=True), Field(name="minutes", label="Duration (minutes)", kind="number", value="60", required=True, help="240 at most.")),
    open_break_glass=Action(label="Open break-glass in prod", url="/ui/environments/prod/break-glass", method="post", tone="danger"),
)  # fmt: skip
REFUSED = "You need the admin role in dev to manage registries."
PAGE_OPEN = replace(
    PAGE, frame=frame("dev", Section.ENVIRONMENTS, Crumb(label="Environments", url="/ui/environments"), current="dev"), environment=DEV, closed=False,
    headline="Open", sentence="Programs and people with the right change it directly; requests are possible too.", rules=(), freezes=(), break_glass=(), open_break_glass=None, changes=(), loosening=None,
    problem=Problem(what="“Approvals required” is a number from 0 to 20."),
)  # fmt: skip
PAGE_READER = replace(
    PAGE, change=replace(PAGE.change, allowed=False, reason=REFUSED), add_rule=replace(PAGE.add_rule, allowed=False, reason=REFUSED), add_freeze=replace(PAGE.add_freeze, allowed=False, reason=REFUSED),
    open_break_glass=replace(PAGE.open_break_glass, allowed=False, reason=REFUSED),  # type: ignore[type-var]
    rules=tuple(replace(row, remove=replace(DOWN, allowed=False, reason=REFUSED)) for row in PAGE.rules), freezes=(), recurring=(), add_recurring=replace(PAGE.add_recurring, allowed=False, reason=REFUSED),
)  # fmt: skip

PROPOSE = Action(label="Propose a schema", url="/ui/proposals/new", tone="primary", icon="plus")
DRAFTS = DraftList(
    frame=frame("Proposals", Section.PROMOTIONS, Crumb(label="Promotions", url="/ui/promotions")),
    rows=(
        DraftRow(url="/gallery/propose", subject="orders-value", environment=DEV, format="Avro", origin="from version 3 of dev", changed_at=ago(minutes=12), delete=Action(label="Delete", url="/ui/proposals/3/delete", method="post")),
        DraftRow(url="/gallery/propose", subject=HOSTILE, environment=PROD, format="JSON Schema", origin=HOSTILE, changed_at=ago(days=3), delete=Action(label="Delete", url="/ui/proposals/4/delete", method="post")),
    ),
    open=REQUESTS[2:3], propose=PROPOSE,
)  # fmt: skip
DRAFTS_EMPTY = replace(DRAFTS, rows=(), open=(), propose=replace(PROPOSE, allowed=False, reason=REFUSED))
EDITOR = ProposalPage(
    frame=frame("Propose a schema", Section.PROMOTIONS, Crumb(label="Promotions", url="/ui/promotions"), Crumb(label="Proposals", url="/ui/proposals")),
    registry=Field(name="registry", label="For", kind="select", choices=(Choice(value="dev", label="dev"), Choice(value="prod", label="prod", selected=True)), required=True),
    subject=Field(name="subject", label="Subject", value="orders-value", code=True, required=True),
    text=Field(name="schema", label="Text", value='{\n  "type": "record",\n  "name": "Order",\n  "fields": []\n}', kind="textarea", rows=14, code=True, required=True),
    reason=Field(name="reason", label="Reason", kind="textarea", rows=2, help="What reviewers should know."),
    format_choices=(Choice(value="AVRO", label="Avro", selected=True), Choice(value="JSON", label="JSON Schema")),
    references=(ReferenceField(number=1, name="com.example.Address", subject="address", version="2"), ReferenceField(number=2)),
    action_url="/ui/proposals/new", check=Action(label="Check", url=""), save=Action(label="Save as draft", url=""), submit=Action(label="Submit for review", url=""),
    origin="from version 3 of dev", starts=(Link(label="version 3 of dev", url="/ui/proposals/new?from=dev:3"),),
)  # fmt: skip
LEVELS_TOLD = tuple(LevelResult(level=name, verdict=Verdict.OK if name in ("NONE", "FORWARD") else Verdict.BREAKS, configured=name == "BACKWARD") for name in LEVELS)  # fmt: skip
EDITOR_RESULT = replace(
    EDITOR, draft=3, origin="after finding 12", finding=ORIGIN, finding_number=12, delete=Action(label="Delete draft", url="/ui/proposals/3/delete", method="post"),
    report=ProposalReport(
        summary=f"Breaks BACKWARD at prod: {HOSTILE}", parsed="The text parses as Avro.", levels=LEVELS_TOLD, lint=LINT, comparison=COMPARISON,
        changes=tuple(
            ChangeLine(verdict=card.verdict, path=card.path, sentence=card.sentence, anchor=card.anchor)
            for group in COMPARISON.groups for card in group.cards
        )[:6],
        result=ProposalResult(verdict=Verdict.BREAKS, headline="Breaks BACKWARD at prod", sentence="1 version would be written to prod.", report_url="/gallery/report",
            checks=(CheckRow(check=Check.FAILED, name="compatibility of orders-value", sentence=f"Breaks in 1 place: {HOSTILE}", cure="Give it a default."),)),
    ),
)  # fmt: skip
EDITOR_SYNTAX = replace(
    EDITOR, report=ProposalReport(
        summary="", syntax=SyntaxProblem(message=f"Expecting property name: {HOSTILE}", line=2, column=3, snippet=snippet(f"{{\n  {HOSTILE}\n}}", 2, 3))
    ),
)  # fmt: skip
EDITOR_EQUAL = replace(
    EDITOR, subject=replace(EDITOR.subject, value=HOSTILE), submit=Action(label="Submit for review", url="", allowed=False, reason=REFUSED),
    report=ProposalReport(
        summary="", parsed="The text parses as Avro.", equal=Link(label="version 4 of prod", url="/gallery/subject"),
        result=ProposalResult(verdict=Verdict.OK, headline="prod already has it", sentence="0 versions would be registered."),
    ),
)  # fmt: skip
