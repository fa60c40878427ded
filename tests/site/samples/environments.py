"""Sample pages: the board of environments and one environment; drafts and the page on which a schema is proposed."""

from __future__ import annotations

from dataclasses import replace
from datetime import time
from typing import Any

from dashboard.compatibility.presenters import LevelResult, SyntaxProblem, snippet
from dashboard.components.badges import BreakGlassState, EnvironmentChangeState, Outlook, Verdict
from dashboard.components.forms import fill_choices, forms_by_name
from dashboard.components.widgets import Action, ActiveFilter, Choice, Crumb, Filter, Link, Paging, SearchBox, Section
from dashboard.environments.board import BoardCell, BoardRow, EnvironmentBoard, EnvironmentRule
from dashboard.environments.forms import SHOWN, LooseningForm, RulesForm
from dashboard.environments.views import BreakGlassRow, ChangeRow, EnvironmentPage
from dashboard.proposals.forms import ProposalForm, SaveForm
from dashboard.proposals.page import DraftList, ProposalPage, ProposalReport
from registry.errors import InvalidInput, SchemadeskError
from registry.formats.compatibility import LEVELS
from registry.promotions.environments.selectors import (
    BreakGlassInfo,
    EnvironmentChangeInfo,
    EnvironmentInfo,
    FreezeInfo,
    RecurringFreezeInfo,
    ReviewRuleInfo,
)
from registry.promotions.models.environments import SETTINGS
from registry.promotions.selectors import DraftInfo
from registry.subjects.versions.qualified_names import SubjectName
from tests.site.samples.cast import DEV, HOSTILE, LONG, PROD, STAGING, ago, frame
from tests.site.samples.comparison import COMPARISON
from tests.site.samples.promotions import ORIGIN, REQUESTS, check
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
            BoardCell(environment=PROD, version=1, schema_id=1, url=HERE, behind="missing version 3 from dev", outlook=Outlook.UNKNOWN, promote=Action(label="Promote", url="", reason="reader may not request promotions.")))),
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
    preview=replace(BOARD.preview, reason="You need the approver or steward role to request promotions."),
)  # type: ignore[type-var]

GLASS = BreakGlassInfo(
    id=4, environment="prod", reason="The order service can’t start: version 9 was withdrawn by mistake.", opened_by="admin", opened_by_id=1, opened_at=ago(minutes=10), ends_at=ago(minutes=-50),
    uses=1, confirmed_by="", confirmed_at=None, comment="", confirm_until=ago(days=-1), is_open=True, is_red=False,
)  # fmt: skip
CHANGE = EnvironmentChangeInfo(
    id=3, environment="prod", action="change", values={"reviews_needed": 1}, before={"reviews_needed": 2}, sentence="change the rules of prod (reviews_needed 2 → 1)", reason=HOSTILE, state="open",
    requested_by="admin", requested_by_id=1, requested_at=ago(minutes=3), decided_by="", decided_at=None, comment="",
)  # fmt: skip
RECURRING = RecurringFreezeInfo(
    id=1, kind="weekly", zone="Europe/Berlin", from_day=4, from_time=time(16), to_day=0, to_time=time(7), last_days=None, reason="Nobody is there", made_by="admin",
    sentence="Every week from Friday 16:00 to Monday 07:00, Europe/Berlin", starts_at=ago(days=-2), ends_at=ago(days=-5), is_now=False,
)  # fmt: skip
INFO = EnvironmentInfo(
    name="prod", position=3, mode="READONLY", level="FULL_TRANSITIVE", is_closed=True, is_remote=False, settings=dict.fromkeys(SETTINGS, False) | {"is_closed": True, "drift_blocks": True, "reviews_needed": 1, "max_evidence_hours": 24},
    rules=(ReviewRuleInfo(1, "payments-*", "any", "owners", "", 1), ReviewRuleInfo(2, "*", "breaking", "group", HOSTILE, 2)),
    freezes=(FreezeInfo(1, ago(hours=4), ago(hours=-20), "Black Friday", "admin", True), FreezeInfo(2, ago(days=-20), ago(days=-30), HOSTILE, HOSTILE, False)),
    recurring=(RECURRING, replace(RECURRING, id=2, sentence="Every month on the last 3 days, UTC", starts_at=ago(hours=4), ends_at=ago(days=-2), reason=HOSTILE, made_by=HOSTILE, is_now=True)),
    frozen=None, break_glass=(GLASS,),
)  # fmt: skip
OWN = "You opened it, so another person must confirm it."
PAGE = EnvironmentPage(
    frame=frame("prod", Section.ENVIRONMENTS, Crumb(label="Environments", url="/ui/environments"), current="prod"),
    info=INFO, number=3, count=3, refused="", open_refused="", forms=forms_by_name(SHOWN) | {"RulesForm": RulesForm.of(INFO)},
    break_glass=(
        BreakGlassRow(info=GLASS, state=BreakGlassState.OPEN, until="ended at 2026-11-21 06:30 UTC", confirm_refused=OWN),
        BreakGlassRow(info=replace(GLASS, id=3, is_open=False, opened_at=ago(hours=9), ends_at=ago(hours=8), reason="Repairing the subject’s alias.", uses=2), state=BreakGlassState.WAITING, until="ended at 2026-11-21 06:30 UTC", confirm_refused=""),
        BreakGlassRow(info=replace(GLASS, id=2, is_open=False, is_red=True, opened_by=HOSTILE, opened_at=ago(days=9), ends_at=ago(days=9), reason=HOSTILE, uses=7), state=BreakGlassState.RED, until="ended at 2026-11-21 06:30 UTC", confirm_refused=""),
        BreakGlassRow(info=replace(GLASS, id=1, is_open=False, opened_at=ago(days=29), ends_at=ago(days=29), reason="First set-up.", uses=0, confirmed_by="maria", confirmed_at=ago(days=28), comment="It was right."), state=BreakGlassState.CONFIRMED, until="ended at 2026-11-21 06:30 UTC", confirm_refused=""),
    ),
    changes=(
        ChangeRow(info=CHANGE, state=EnvironmentChangeState.OPEN, decide_refused="", withdraw_refused=""),
        ChangeRow(info=replace(CHANGE, id=2, sentence=HOSTILE, reason="We are two.", state="approved", requested_by=HOSTILE, requested_at=ago(days=2), decided_by="maria", decided_at=ago(days=1), comment="Fine."), state=EnvironmentChangeState.APPROVED, decide_refused="", withdraw_refused=""),
        ChangeRow(info=replace(CHANGE, id=1, sentence="end the freeze of prod", reason="The sale is over.", state="rejected", requested_at=ago(days=3), decided_by=HOSTILE, decided_at=ago(days=3), comment="It isn’t."), state=EnvironmentChangeState.REJECTED, decide_refused="", withdraw_refused=""),
    ),
    loosening=LooseningForm(initial={"action": "change", "values": '{"reviews_needed": 1}'}), loosening_sentence="prod is closed, and this loosens it.",
)  # fmt: skip
REFUSED = "You need the admin role in dev to manage registries."
#: refused, with what was sent
RULES_SENT = RulesForm({"reviews_needed": "", "max_evidence_hours": "24.5"})
PAGE_OPEN = replace(
    PAGE, frame=frame("dev", Section.ENVIRONMENTS, Crumb(label="Environments", url="/ui/environments"), current="dev"),
    info=replace(INFO, name="dev", is_closed=False, rules=(), freezes=(), recurring=()), number=1, break_glass=(), changes=(), loosening=None,
    forms=forms_by_name(SHOWN, RULES_SENT), problem=RULES_SENT.problem,
)  # fmt: skip
PAGE_READER = replace(
    PAGE, refused=REFUSED, open_refused=REFUSED, loosening=None, info=replace(INFO, freezes=(), recurring=()),
    break_glass=tuple(replace(row, confirm_refused=REFUSED) for row in PAGE.break_glass), changes=tuple(replace(row, decide_refused=REFUSED, withdraw_refused=REFUSED) for row in PAGE.changes),
)  # fmt: skip


def draft(number: int, subject: str, schema_type: str, origin: str) -> DraftInfo:
    """A draft of the reader."""
    return DraftInfo(
        id=number, registry="dev", subject=SubjectName(".", subject), schema_type=schema_type, text="{", references=(),
        reason="", origin=origin, finding=None, again_of=None, made_at=ago(days=4), changed_at=ago(minutes=12),
    )  # fmt: skip


DRAFTS = DraftList(
    frame=frame("Proposals", Section.PROMOTIONS, Crumb(label="Promotions", url="/ui/promotions")),
    drafts=(
        draft(3, "orders-value", "AVRO", "from version 3 of dev"),
        draft(4, HOSTILE, "JSON", HOSTILE),
    ),
    open=REQUESTS[2:3], refused="",
)  # fmt: skip
DRAFTS_EMPTY = replace(DRAFTS, drafts=(), open=(), refused=REFUSED)
ORDER = '{\n  "type": "record",\n  "name": "Order",\n  "fields": []\n}'


def editor(
    error: SchemadeskError | None = None, form: type[ProposalForm] = ProposalForm, **values: Any
) -> ProposalForm:
    """The editor as it was sent, with what its service raised."""
    rows = [("com.example.Address", "address", "2"), (HOSTILE, HOSTILE, "9")]
    data = {
        "registry": "prod",
        "subject": "orders-value",
        "text": ORDER,
        "references": rows,
        "origin": "from version 3 of dev",
    }
    shown = form(data | values)
    fill_choices([shown], registry=("dev", "prod"))
    if shown.is_valid() and error:
        shown.add_service_error(error)
    return shown


EDITOR = ProposalPage(
    frame=frame("Propose a schema", Section.PROMOTIONS, Crumb(label="Promotions", url="/ui/promotions"), Crumb(label="Proposals", url="/ui/proposals")),
    form=editor(references=()), starts=("dev", HOSTILE),
)  # fmt: skip
LEVELS_TOLD = tuple(LevelResult(level=name, verdict=Verdict.OK if name in ("NONE", "FORWARD") else Verdict.BREAKS, configured=name == "BACKWARD") for name in LEVELS)  # fmt: skip
EDITOR_RESULT = replace(
    EDITOR, draft_id=3, again_of=7, finding=ORIGIN, form=editor(draft_id="3", finding="12", again_of="7", origin="after finding 12"),
    report=ProposalReport(
        registry="prod", subject="orders-value", schema_type="AVRO",
        levels=LEVELS_TOLD, lint=LINT, comparison=COMPARISON,
        changes=tuple(card for group in COMPARISON.groups for card in group.cards)[:6],
        verdict=Verdict.BREAKS, headline="Breaks BACKWARD at prod", sentence="1 version would be written to prod.",
        checks=(check("fail", "compatibility of orders-value", f"Breaks in 1 place: {HOSTILE}", cure="Give it a default."),),
    ),
)  # fmt: skip
EDITOR_SYNTAX = replace(
    EDITOR, report=ProposalReport(
        syntax=SyntaxProblem(message=f"Expecting property name: {HOSTILE}", line=2, column=3, snippet=snippet(f"{{\n  {HOSTILE}\n}}", 2, 3))
    ),
)  # fmt: skip
REFUSED_DRAFT = editor(InvalidInput(HOSTILE, field="reason"), SaveForm, subject=HOSTILE, reason=HOSTILE)
EDITOR_EQUAL = replace(
    EDITOR, form=REFUSED_DRAFT, problem=REFUSED_DRAFT.problem, refused=REFUSED,
    report=ProposalReport(
        registry="prod", subject=HOSTILE, schema_type="AVRO", equal=4,
        verdict=Verdict.OK, headline="prod already has it", sentence="0 versions would be registered.",
    ),
)  # fmt: skip
