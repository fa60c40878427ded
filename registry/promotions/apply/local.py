"""Applying a plan to a local registry in one transaction, each step read back; with worker leases and release records.

Leases, which a worker takes by a conditional update, and release records are used for remote registries too.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from registry.access.models import User
from registry.access.roles import Actor
from registry.access.selectors import actor_of_user
from registry.audit.context import record
from registry.errors import PlanChanged, SchemadeskError
from registry.promotions.checks.advisory import carry_notes
from registry.promotions.events import tell
from registry.promotions.models import ApplyStep, PromotionRequest, Release
from registry.promotions.plan.types import ADOPT, CONFIG, GIVEN_ID, NONE, REGISTER, REPEAT, PlanStep, steps_of
from registry.promotions.requests.state_machine import locked, move, person
from registry.subjects.lifecycle.retirement import leave_quarantine
from registry.subjects.models import SchemaVersion
from registry.subjects.selectors import own_config, stored_version
from registry.subjects.services import RegisteredVersion, register_version, set_config
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

#: the kinds of steps that make a version live
RELEASING: Final = frozenset({REGISTER, REPEAT, ADOPT})


@dataclass(frozen=True)
class StepResult:
    """The result of a step: version and id at the target, 0 if the step has no version, and a note."""

    version: int = 0
    schema_id: int = 0
    note: str = ""


def in_words(step: PlanStep) -> str:
    """Return the step as a short phrase, for the audit and messages."""
    if step.kind == "config":
        return f"config of {step.subject}"
    return f"{step.kind} {step.subject} version {step.target_version}"


def record_releases(
    request: PromotionRequest, done: Sequence[tuple[PlanStep, StepResult]], by: Actor, *, only_if_there: bool = True
) -> int:
    """Record a release for each step that made a version live, in the caller's transaction; returns how many.

    The version is in the local registry or the mirror. Raises LookupError if it is missing, unless `only_if_there` is
    False: then the release has no version.
    """
    made = 0
    for step, written in done:
        if step.kind not in RELEASING:
            continue
        name = parse_subject(step.subject)
        row = _row(request, name, written)
        if row is None and only_if_there:
            raise LookupError(f"{step.subject} version {written.version} with the id {written.schema_id}")
        _, created = Release.objects.get_or_create(
            request=request,
            context_name=name.context,
            subject_name=name.subject,
            version_number=written.version,
            defaults={
                "environment": request.target,
                "version": row,
                "schema_id": written.schema_id,
                "fingerprint": step.fingerprint,
                "released_by_id": person(by),
            },
        )
        made += created
        if step.kind == ADOPT and row is not None:
            leave_quarantine(row.pk)
    return made


def _row(request: PromotionRequest, name: SubjectName, written: StepResult) -> SchemaVersion | None:
    return SchemaVersion.objects.filter(
        subject__context__registry=request.target.registry_id,
        subject__context__name=name.context,
        subject__name=name.subject,
        version=written.version,
        schema__schema_id=written.schema_id,
        deleted_at=None,
    ).first()


class StepFailed(Exception):
    """A step failed, so everything is rolled back. `cause` is the error for the caller."""

    def __init__(self, sentence: str, cause: SchemadeskError) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.cause = cause


def write_here(request: PromotionRequest, by: Actor, force: str) -> str:
    """Do all steps of the locked request's plan in the caller's transaction, and close it; returns the state.

    `force` is the reason of an approval that overrides the level, empty for none. Raises StepFailed.
    """
    steps = steps_of(request.plan)
    done: list[tuple[PlanStep, StepResult]] = []
    for position, step in enumerate(steps):
        try:
            written = RUN[step.kind](request, step, by, force)
        except SchemadeskError as error:
            where = f"Step {position + 1} of {len(steps)} ({in_words(step)})"
            raise StepFailed(f"{where} failed. Nothing was written: {error.placed}", error) from error
        record(by=by, why=f"apply request {request.pk}, step {position + 1}: {in_words(step)}")
        _keep(request, position, step, written)
        done.append((step, written))
    carry_notes(request, steps, by)
    record(by=by, why=f"apply request {request.pk}")
    record_releases(request, done, by)
    state = move(request, PromotionRequest.APPLIED, applied_by_id=person(by), apply_at=None, failure="")
    tell(request, "promotion.applied", f"{by.name} applied it.", by=by)
    return state


def _keep(request: PromotionRequest, position: int, step: PlanStep, written: StepResult) -> None:
    now = timezone.now()
    ApplyStep.objects.create(
        request=request,
        position=position,
        state=ApplyStep.DONE,
        step=step.to_dict(),
        version_number=written.version or None,
        schema_id=written.schema_id or None,
        said=written.note,
        started_at=now,
        done_at=now,
    )


def _register(request: PromotionRequest, step: PlanStep, by: Actor, force: str) -> StepResult:
    has_given_id = step.id_outlook == GIVEN_ID
    done = _registered(
        request,
        step,
        by,
        force,
        schema_id=step.source_id if has_given_id else None,
        version=step.target_version if has_given_id else 0,
    )
    return _read_back(request, step, done.version)


def _repeat(request: PromotionRequest, step: PlanStep, by: Actor, force: str) -> StepResult:
    """Register the earlier text under a new number, which makes it a different schema than the earlier version."""
    done = _registered(request, step, by, force, schema_id=None, version=step.target_version)
    return _read_back(request, step, done.version)


def _registered(
    request: PromotionRequest, step: PlanStep, by: Actor, force: str, *, schema_id: int | None, version: int
) -> RegisteredVersion:
    return register_version(
        registry=request.target.registry.name,
        subject=parse_subject(step.subject),
        text=step.text,
        by=by,
        schema_type=step.schema_type,
        references=step.references,
        normalize=False,  # the text is the one that was approved, as it is
        metadata=step.metadata,
        rule_set=step.rule_set,
        schema_id=schema_id,
        version=version,
        release=True,
        force=force,
    )


def _configure(request: PromotionRequest, step: PlanStep, by: Actor, force: str) -> StepResult:
    registry, subject, settings = request.target.registry, parse_subject(step.subject), step.config or {}
    set_config(registry=registry.name, subject=subject, by=by, release=True, **settings)
    stored = own_config(registry, subject)
    different = sorted(name for name, value in settings.items() if getattr(stored, name) != value)
    if different:
        raise PlanChanged(f"The config of {step.subject} differs from the approved one: {', '.join(different)}.")
    return StepResult(note=f"Set {', '.join(sorted(settings))}.")


def _there(request: PromotionRequest, step: PlanStep, by: Actor, force: str) -> StepResult:
    """Write nothing, and read back what should exist, as after a write."""
    return _read_back(request, step, step.target_version)


def _read_back(request: PromotionRequest, step: PlanStep, version: int) -> StepResult:
    """Compare what is stored now with what was approved: the number, and by fingerprint the text and references."""
    info, schema = stored_version(request.target.registry, parse_subject(step.subject), version)
    if version != step.target_version or schema.fingerprint != step.fingerprint:
        raise PlanChanged(f"{step.subject} version {version} is not the approved schema.")
    return StepResult(version, info.schema.schema_id)


#: kind of a step → the function that does it
RUN: Final[Mapping[str, Callable[[PromotionRequest, PlanStep, Actor, str], StepResult]]] = {
    REGISTER: _register,
    REPEAT: _repeat,
    CONFIG: _configure,
    ADOPT: _there,
    NONE: _there,
}


#: longer than two calls of the remote can take; after that another worker may take a crashed worker's request
LEASE: Final = timedelta(seconds=90)
#: as long as the mirror's own lease
SYNC_LEASE: Final = timedelta(minutes=15)


class ClaimLost(Exception):
    """Another worker has the request now, so this one stops."""


@dataclass
class ApplyClaim:
    """A worker's claim on a request that is being applied, and the person it acts for."""

    request_id: int
    tag: str
    by: Actor
    #: (qualified subject, number in the plan) → number that the remote gave
    numbers: dict[tuple[str, int], int] = field(default_factory=dict)

    def renew(self, lease: timedelta = LEASE) -> None:
        """Extend the claim by a lease. Raises ClaimLost."""
        row = PromotionRequest.objects.filter(pk=self.request_id, claim_tag=self.tag, state=PromotionRequest.APPLYING)
        with transaction.atomic():
            record(by=self.by, why=f"apply request {self.request_id}: still at it")
            if not row.update(claim_until=timezone.now() + lease):
                raise ClaimLost

    def locked(self) -> PromotionRequest:
        """Return the request's row, locked. Raises ClaimLost."""
        request = locked(self.request_id)
        if request.claim_tag != self.tag or request.state != PromotionRequest.APPLYING:
            raise ClaimLost
        return request


def is_claimed(request: PromotionRequest, now: datetime) -> bool:
    """Return whether a worker has claimed the request."""
    return request.claim_until is not None and request.claim_until > now


def take(request_id: int) -> ApplyClaim | None:
    """Claim the request for a worker; None if there is nothing to do or another worker has it."""
    row = PromotionRequest.objects.filter(pk=request_id, state=PromotionRequest.APPLYING).first()
    user = User.objects.filter(pk=row.applied_by_id).first() if row and row.applied_by_id else None
    if user is None:
        return None
    now = timezone.now()
    claim = ApplyClaim(request_id, uuid.uuid4().hex, actor_of_user(user, channel="task"))
    free = PromotionRequest.objects.filter(
        Q(claim_until=None) | Q(claim_until__lt=now), pk=request_id, state=PromotionRequest.APPLYING
    )
    with transaction.atomic():
        record(by=claim.by, why=f"apply request {request_id}: a worker takes it")
        return claim if free.update(claim_tag=claim.tag, claim_until=now + LEASE) else None
