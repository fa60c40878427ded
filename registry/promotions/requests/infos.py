"""The info objects of requests for pages and the API, and how rows become them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Prefetch, prefetch_related_objects

from registry.audit import time_travel
from registry.frozen_rows import row_info
from registry.promotions.checks.consumers import with_rule
from registry.promotions.checks.context import freezes_of, with_age, with_freeze, with_threads
from registry.promotions.checks.source_checks import source_breaks, with_source_breaks
from registry.promotions.models import (
    Acknowledgement,
    ApplyStep,
    Environment,
    PromotionRequest,
    Release,
    RequestItem,
    Review,
    Thread,
)
from registry.promotions.models.requests import readable_plan
from registry.promotions.plan.target_state import GONE, stale
from registry.promotions.plan.types import STOPPING, Check
from registry.promotions.reviews.eligibility import ReviewNeeds, needed_for_many, overridden, reason_of, rules_in
from registry.subjects.versions.qualified_names import SubjectName


@dataclass(frozen=True)
class ReviewInfo:
    """A review; `counts` is False for one of an earlier plan. `overrides` are the codes of checks that it overrides."""

    reviewer: str
    verdict: str
    comment: str
    at: datetime
    counts: bool
    override: str = ""
    overrides: tuple[str, ...] = ()
    reviewer_id: int = 0


@dataclass(frozen=True)
class ReleaseInfo:
    """A version that an applied request made live: a requested one, or one that it refers to."""

    version: int
    schema_id: int
    released_by: str
    released_at: datetime
    subject: SubjectName


@dataclass(frozen=True)
class ItemInfo:
    """A requested version; `version` 0 is a proposed text, which lists leave out."""

    subject: SubjectName
    version: int
    fingerprint: str
    schema_type: str
    text: str = ""
    references: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class CommentInfo:
    """A comment of a discussion."""

    id: int
    author: str
    author_id: int
    text: str
    at: datetime


@dataclass(frozen=True)
class ThreadInfo:
    """A discussion; `subject` and `path` are empty if it is about the request as a whole.

    `suggestion` is the text `suggested_on`, with a change; both are empty if it suggests none.
    """

    id: int
    subject: str
    path: str
    resolved_by: str
    resolved_at: datetime | None
    comments: tuple[CommentInfo, ...]
    suggestion: str = ""
    suggested_on: str = ""
    is_taken: bool = False

    @property
    def is_open(self) -> bool:
        """Whether it isn't resolved."""
        return self.resolved_at is None


@dataclass(frozen=True)
class AcknowledgementInfo:
    """An acknowledgement of a plan for a declared client; `counts` is False for one of an earlier plan."""

    subject: str
    client: str
    person: str
    person_id: int
    note: str
    at: datetime
    counts: bool


@dataclass(frozen=True)
class StepInfo:
    """A step of a plan that is being applied or was applied."""

    position: int
    state: str
    step: dict[str, Any]
    version: int | None
    schema_id: int | None
    said: str
    started_at: datetime | None
    done_at: datetime | None


@dataclass(frozen=True)
class RequestInfo:
    """A request with its stored plan, built at `planned_at`. `moved` is what voided earlier approvals.

    `stale` says what has changed since the plan was built, "" if nothing has. In a list the plan's steps have no texts,
    `stale`, `threads`, `acknowledgements` and `steps` are empty, and `open_threads` counts the open discussions.
    `needed` is empty for a closed request. `finding` is the number of the drift finding that it answers;
    `readable_findings` checks who may read it. `again_of` is the request that it resubmits; `resubmissions_of` checks
    who may read that.
    """

    id: int
    kind: str
    subject: SubjectName
    version: int
    items: tuple[ItemInfo, ...]
    source: str
    target: str
    state: str
    reason: str
    with_config: bool
    requested_by: str
    requested_by_id: int
    requested_at: datetime
    closed_at: datetime | None
    plan: dict[str, Any]
    plan_hash: str
    planned_at: datetime
    moved: str
    apply_at: datetime | None
    applied_by: str
    failure: str
    reviews_needed: int
    own_approval_allowed: bool
    reviews: tuple[ReviewInfo, ...]
    needed: ReviewNeeds
    stale: str
    open_threads: int
    threads: tuple[ThreadInfo, ...]
    steps: tuple[StepInfo, ...]
    releases: tuple[ReleaseInfo, ...]
    finding: int | None = None
    again_of: int | None = None
    acknowledgements: tuple[AcknowledgementInfo, ...] = ()
    labels: tuple[str, ...] = ()

    @property
    def others(self) -> int:
        """The number of requested subjects in addition to the first."""
        return max(0, len(self.items) - 1)

    @property
    def fingerprint_short(self) -> str:
        """The first twelve digits of the requested schema's fingerprint, enough for people."""
        return self.items[0].fingerprint[:12]

    @property
    def release(self) -> ReleaseInfo | None:
        """The release of the request's first subject."""
        return next((item for item in self.releases if item.subject == self.subject), None)

    @property
    def checks(self) -> list[dict[str, Any]]:
        """The plan's checks: code, name, verdict, sentence, cure, overridable, subject."""
        checks: list[dict[str, Any]] = self.plan["checks"]
        return checks

    @property
    def failing(self) -> list[dict[str, Any]]:
        """The checks that fail and that no approval of this plan overrides."""
        passed = {code for review in self.reviews if review.counts for code in review.overrides}
        return [item for item in self.checks if item["verdict"] in STOPPING and item.get("code") not in passed]

    @property
    def is_source_gone(self) -> bool:
        """Whether a requested version was deleted at its source, so that its checks can't run again."""
        return GONE in self.stale

    @property
    def can_run(self) -> bool:
        """Whether no check fails, except those that an approval overrides."""
        return not self.failing

    @property
    def is_breaking(self) -> bool:
        """Whether the plan is breaking."""
        return bool(self.plan.get("breaking"))

    @property
    def is_unreadable(self) -> bool:
        """Whether the stored plan is damaged; then `plan` is empty."""
        return bool(self.plan.get("unreadable"))

    @property
    def is_open(self) -> bool:
        """Whether the request is open."""
        return self.state in PromotionRequest.OPEN_STATES


def infos_of(rows: Sequence[PromotionRequest], environments: Sequence[Environment] = ()) -> list[RequestInfo]:
    """Return the infos of rows that were fetched with everything they show.

    `environments` are those of `environment_rows`, whose freezes needn't be read again.
    """
    for row in rows:
        if hasattr(row, "light_plan"):
            row.plan = readable_plan(row.light_plan)
    written = [row for row in rows if row.state not in PromotionRequest.UNWRITTEN_STATES]
    prefetch_related_objects(written, Prefetch("releases", Release.objects.select_related("released_by")))
    acknowledged = [row for row in rows if getattr(row, "is_acknowledged", False)]
    acknowledgements = Acknowledgement.objects.order_by("pk").select_related("person")
    prefetch_related_objects(acknowledged, Prefetch("acknowledgements", acknowledgements))
    reviewed = [row for row in rows if row.state not in PromotionRequest.CLOSED_STATES]
    reviews = [review for row in reviewed for review in row.reviews.all()]
    needed = needed_for_many(reviewed, rules_in(reviewed), reviews) if reviewed else {}
    targets = {row.target_id: row.target for row in reviewed}
    known = [environment for environment in environments if environment.pk in targets]
    freezes = (
        freezes_of(known or list(targets.values()), time_travel.present(), are_read=bool(known)) if targets else {}
    )
    breaks = source_breaks(reviewed)
    return [
        _info(row, needed.get(row.pk, ReviewNeeds()), _plan(row, freezes.get(row.target_id), breaks.get(row.pk)))
        for row in rows
    ]


def _info(row: PromotionRequest, needed: ReviewNeeds, plan: dict[str, Any]) -> RequestInfo:
    is_whole = not hasattr(row, "light_plan")
    is_written = row.state not in PromotionRequest.UNWRITTEN_STATES
    return row_info(
        RequestInfo,
        row,
        subject=SubjectName(row.context_name, row.subject_name),
        version=row.version_number,
        items=tuple(_item(item, is_whole=is_whole) for item in row.items.all()),
        source=row.source.registry.name if row.source else "",
        target=row.target.registry.name,
        with_config=row.config is not None,
        requested_by=row.requested_by.get_username(),
        plan=plan,
        applied_by=row.applied_by.get_username() if row.applied_by else "",
        reviews_needed=row.target.reviews_needed,
        own_approval_allowed=row.target.own_approval_allowed,
        reviews=tuple(_review(review, row) for review in row.reviews.all()),
        needed=needed,
        stale=stale(row) if is_whole else "",
        threads=tuple(_thread(thread) for thread in row.threads.all()) if is_whole else (),
        steps=tuple(_step(step) for step in row.steps.all()) if is_whole and is_written else (),
        releases=tuple(_release(release) for release in row.releases.all()) if is_written else (),
        again_of=row.again_of_id,
        labels=tuple(row.labels or ()),
        acknowledgements=tuple(
            _acknowledgement_info(acknowledgement, row) for acknowledgement in row.acknowledgements.all()
        )
        if getattr(row, "is_acknowledged", False)
        else (),
    )


def _plan(row: PromotionRequest, freeze: Check | None, breaks: Mapping[str, int] | None) -> dict[str, Any]:
    """Return the stored plan; for an open request, with the current state of what may have changed since.

    That is its target's freeze, its discussions, the age of its evidence, whether affected clients must be
    acknowledged, and the open break findings at its source.
    """
    plan: dict[str, Any] = row.plan
    if row.state in PromotionRequest.CLOSED_STATES:
        return plan
    count: int = row.open_threads  # type: ignore[attr-defined]  # annotated
    talked = with_threads(with_freeze(plan, freeze), count, blocks=row.target.threads_block)
    ruled = with_rule(talked, blocks=row.target.clients_block)
    if row.source is not None and breaks is not None:
        ruled = with_source_breaks(ruled, row.source.registry.name, breaks)
    return with_age(ruled, row.target.evidence_rule, time_travel.present())


def _item(row: RequestItem, *, is_whole: bool) -> ItemInfo:
    return ItemInfo(
        subject=SubjectName(row.context_name, row.subject_name),
        version=row.version_number,
        fingerprint=row.fingerprint,
        schema_type=row.schema_type,
        text=row.text if is_whole else "",
        references=tuple(row.references) if is_whole else (),
    )


def _review(row: Review, request: PromotionRequest) -> ReviewInfo:
    return ReviewInfo(
        reviewer=row.reviewer.get_username(),
        verdict=row.verdict,
        comment=row.comment,
        at=row.at,
        counts=row.plan_hash == request.plan_hash,
        override=reason_of(row),
        overrides=tuple(sorted(overridden(row))),
        reviewer_id=row.reviewer_id,
    )


def _acknowledgement_info(row: Acknowledgement, request: PromotionRequest) -> AcknowledgementInfo:
    return AcknowledgementInfo(
        subject=row.subject,
        client=row.client,
        person=row.person.get_username(),
        person_id=row.person_id,
        note=row.note,
        at=row.at,
        counts=row.plan_hash == request.plan_hash,
    )


def _thread(row: Thread) -> ThreadInfo:
    return ThreadInfo(
        id=row.pk,
        subject=row.subject,
        path=row.path,
        resolved_by=row.resolved_by.get_username() if row.resolved_by else "",
        resolved_at=row.resolved_at,
        comments=tuple(
            CommentInfo(item.pk, item.author.get_username(), item.author_id, item.text, item.at)
            for item in row.comments.all()
        ),
        suggestion=row.suggestion or "",  # the past before suggestions has none
        suggested_on=row.suggested_on or "",
        is_taken=bool(row.is_taken),
    )


def _step(row: ApplyStep) -> StepInfo:
    return row_info(StepInfo, row, version=row.version_number)


def _release(row: Release) -> ReleaseInfo:
    return ReleaseInfo(
        version=row.version_number,
        schema_id=row.schema_id,
        released_by=row.released_by.get_username(),
        released_at=row.released_at,
        subject=SubjectName(row.context_name, row.subject_name),
    )
