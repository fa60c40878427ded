"""Promotion requests: the list, the form with its preview, and the parts that these share with the page of one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.presenters.frame import Action, Environment, Field, Frame, Link, Paging, Problem, Search
from dashboard.presenters.looks import Check, RequestState, StepState, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRow:
    """A request in a list. `what` is what it brings ("version 3", "a proposed text", "version 2 again").

    `more` counts the subjects beside the named one; `source` is None where the target alone is concerned. `blocked` is
    one sentence on what it waits for, "" where nothing holds it. `alone` is why it can't be chosen to be approved with
    others, in a list that asks; `impact` what its checks say of whom it concerns, `due` why its review is due.
    """

    number: int
    url: str
    subject: str
    what: str
    target: Environment
    state: RequestState
    requested_by: str
    requested_at: datetime
    source: Environment | None = None
    more: int = 0
    verdict: Verdict = Verdict.UNKNOWN
    reviews: str = ""
    blocked: str = ""
    alone: str = ""
    impact: str = ""
    due: str = ""
    labels: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestList:
    """All requests that the reader may see, newest first; `is_partial` says that there may be others.

    `together` leads those that are chosen to one confirmation, in the reader's own list.
    """

    frame: Frame
    search: Search
    rows: tuple[RequestRow, ...]
    paging: Paging
    request: Action | None = None
    drafts: Link | None = None
    together: Action | None = None
    is_partial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenRow:
    """A request that would be approved with others: `plan` is its number with the hash of the plan that is shown.

    `note` is what will stand against applying it.
    """

    request: RequestRow
    plan: str
    plan_hash: str
    reason: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A request that was chosen and isn't approved with the others, and why; `request` is None for one not to be read."""

    number: int
    reason: str
    request: RequestRow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TogetherPage:
    """What one confirmation approves: each request with its plan, and those that were chosen and are left out."""

    frame: Frame
    rows: tuple[ChosenRow, ...]
    left: tuple[LeftOut, ...]
    submit: Action
    back_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRow:
    """A check of the plan with its outcome in a sentence.

    `cure` is what would change it, `overridable` whether a reviewer may approve in spite of it; `findings_url` leads to
    the open findings that it is about, `clients_url` to the clients that haven't acknowledged it.
    """

    check: Check
    name: str
    sentence: str
    cure: str = ""
    overridable: bool = False
    findings_url: str = ""
    clients_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """A step of the plan in words ("Register orders-value version 3 as version 3 of prod"); `detail` below it.

    `state` is None until it is applied; then `said` is what the target answered, and `at` when.
    """

    sentence: str
    detail: str = ""
    needed: bool = True
    state: StepState | None = None
    said: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdRow:
    """What becomes of one schema id: "31" there, "88" here, and whether that is known and equal, in words."""

    subject: str
    there: str
    here: str
    outlook: str
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class IdPlan:
    """The ids that the target will give: one sentence, and the mapping where there is more than one.

    Of a row `there` is the id in the source and `here` the one that the target will give.
    """

    sentence: str
    verdict: Verdict
    source: str = ""
    target: str = ""
    rows: tuple[IdRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionForm:
    """The form of a new request, and what it would come to once enough is chosen (`plan_hash` names that plan).

    `headline` says it in words; `preview_url` is the same form sent with GET, which writes nothing; `export_url` the
    plan as a file.
    """

    frame: Frame
    fields: tuple[Field, ...]
    submit: Action
    draft: Action
    preview_url: str
    with_config: bool = False
    again_of: int | None = None
    again: Link | None = None
    headline: str = ""
    sentence: str = ""
    verdict: Verdict = Verdict.UNKNOWN
    checks: tuple[CheckRow, ...] = ()
    plan: tuple[PlanStep, ...] = ()
    ids: IdPlan | None = None
    plan_hash: str = ""
    export_url: str = ""
    problem: Problem | None = None
