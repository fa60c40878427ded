"""Applies a plan to a remote registry, step by step, with a commit before and after each step to make a crash visible.

The remote takes no part in our transactions. Before a step writes, the worker checks whether the remote has the result
already; afterwards it reads the result back and compares. So a step that was interrupted at any point can be repeated
safely. One worker has a request at a time, by a lease that it renews before every write.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from registry.access.egress import EgressPolicy, parse_connection
from registry.access.roles import Actor, require
from registry.audit.context import record
from registry.errors import InvalidReference, PlanChanged, RemoteUnavailable, SchemadeskError
from registry.formats.base import ParsedSchema, Reference, ResolvedReference
from registry.promotions.apply.local import (
    LEASE,
    SYNC_LEASE,
    ApplyClaim,
    ClaimLost,
    StepResult,
    in_words,
    record_releases,
    take,
)
from registry.promotions.environments.locking import fresh
from registry.promotions.events import tell
from registry.promotions.models import ApplyStep, PromotionRequest
from registry.promotions.plan import builder
from registry.promotions.plan.types import ADOPT, CONFIG, GIVEN_ID, NONE, REGISTER, REPEAT, Plan, PlanStep, step_from
from registry.promotions.requests.state_machine import move, refuse_failing, requested_subjects
from registry.promotions.reviews.eligibility import written_subjects
from registry.subjects.import_export.snapshot import VersionRecord
from registry.subjects.policy.data_contracts import without_version
from registry.subjects.remote.remote_writer import LATEST, RemoteWriter, SentSchema, settings_for_remote
from registry.subjects.versions.parsed_schemas import MAX_REFERENCE_DEPTH, parse_schema
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

MAX_FAILURE: Final = 2000
MAX_READ_BACK: Final = 500
#: a subject and a version of it
_Place = tuple[SubjectName, int]


class Remote:
    """The steps of a worker at the remote."""

    def __init__(self, writer: RemoteWriter, claim: ApplyClaim, count: int) -> None:
        self.writer = writer
        self.claim = claim
        self.count = count
        self._read: dict[_Place, VersionRecord] = {}

    def do(self, row: ApplyStep, step: PlanStep) -> None:
        """Do one step; it is committed as running before, and as done after it."""
        self._keep(row, step, state=ApplyStep.RUNNING, started_at=row.started_at or timezone.now(), said="")
        try:
            written = RUN[step.kind](self, with_numbers(step, self.claim.numbers))
        except SchemadeskError as error:
            self._keep(row, step, state=ApplyStep.FAILED, said=error.placed[:MAX_FAILURE])
            where = f"Step {row.position + 1} of {self.count} ({in_words(step)}): {error.placed}"
            raise RemoteUnavailable(where) from error
        self._keep(
            row,
            step,
            state=ApplyStep.DONE,
            said=written.note,
            version_number=written.version or None,
            schema_id=written.schema_id or None,
            done_at=timezone.now(),
        )

    def _keep(self, row: ApplyStep, step: PlanStep, **values: Any) -> None:
        """Commit the state of a step, if this worker still has the request. Raises ClaimLost."""
        with transaction.atomic():
            self.claim.locked()
            word = values.get("state", row.state)
            why = f"apply request {self.claim.request_id}, step {row.position + 1}: {in_words(step)}, {word}"
            record(by=self.claim.by, why=why)
            for name, value in values.items():
                setattr(row, name, value)
            row.save(update_fields=list(values))
            PromotionRequest.objects.filter(pk=self.claim.request_id).update(claim_until=timezone.now() + LEASE)

    def register(self, step: PlanStep) -> StepResult:
        """Register the schema, unless the subject has it."""
        subject = parse_subject(step.subject)
        sent = self._sent(step, subject)
        number = self.writer.find(subject, sent)
        note = "It already existed."
        if number is None:
            self.claim.renew()
            if step.id_outlook == GIVEN_ID:  # the subject is in the mode IMPORT there
                self.writer.register(subject, sent, schema_id=step.source_id, version=step.target_version)
            else:
                self.writer.register(subject, sent)
            number, note = self.writer.find(subject, sent), ""
        if number is None:
            raise RemoteUnavailable("The remote registry accepted the schema, but doesn't find it under its subject.")
        if number != step.target_version:
            note = f"{note} Its version is {number}, not {step.target_version}.".strip()
        return self.read_back(step, number, note)

    def repeat(self, step: PlanStep) -> StepResult:
        """Register the earlier text under a new number; the number tells whether it exists already."""
        subject = parse_subject(step.subject)
        if self.writer.version(subject, step.target_version) is not None:
            return self.read_back(step, step.target_version, "It already existed.")
        self.claim.renew()
        self.writer.register(subject, self._sent(step, subject), version=step.target_version)
        if self.writer.version(subject, step.target_version) is None:
            raise RemoteUnavailable(
                "The remote registry keeps the schema's earlier version and doesn't create version"
                f" {step.target_version}. It doesn't support versions that are sent with a schema."
            )
        return self.read_back(step, step.target_version, "")

    def configure(self, step: PlanStep) -> StepResult:
        """Set the subject's own settings; a note names those that the remote's API doesn't have."""
        subject = parse_subject(step.subject)
        settings, left = settings_for_remote(step.config or {})
        note = f"Not set, because the remote registry doesn't have these settings: {', '.join(left)}." if left else ""
        if _holds(self.writer.own_config(subject), settings):
            return StepResult(note=f"It was already set. {note}".strip())
        self.claim.renew()
        self.writer.put_config(subject, settings)
        stored = self.writer.own_config(subject)
        if not _holds(stored, settings):
            different = sorted(name for name in settings if not _holds(stored, {name: settings[name]}))
            raise RemoteUnavailable(
                f"The remote registry stored a different config than was sent: {', '.join(different)}."
            )
        return StepResult(note=note)

    def there(self, step: PlanStep) -> StepResult:
        """Write nothing, and read back what should exist."""
        return self.read_back(step, step.target_version, "")

    def read_back(self, step: PlanStep, number: int, note: str) -> StepResult:
        """Compare the meaning of what the remote has under that number with what was approved; the text may differ."""
        subject = parse_subject(step.subject)
        self._read.pop((subject, number), None)
        stored = self._version(subject, number)
        if (
            stored.subject != subject
            or stored.version != number
            or self._parsed(stored).fingerprint != step.fingerprint
        ):
            raise PlanChanged(f"{step.subject} version {number} in the remote registry is not the approved schema.")
        lost = [
            name
            for name, expected, actual in (
                ("metadata", without_version(step.metadata), stored.metadata),
                ("rule set", step.rule_set, stored.rule_set),
            )
            if not _holds(actual or {}, expected or {})
        ]
        if lost and step.writes:
            note = f"{note} The remote registry doesn't store its {' and '.join(lost)}.".strip()
        return StepResult(number, stored.schema_id, note)

    def _sent(self, step: PlanStep, subject: SubjectName) -> SentSchema:
        """Return the schema to send; an empty contract is sent only if the latest version has one.

        That is because a missing contract means the latest version's.
        """
        metadata, rule_set = step.metadata, step.rule_set
        if metadata == {} or rule_set == {}:
            latest = self.writer.version(subject, LATEST)
            metadata = metadata if metadata or (latest and latest.metadata) else None
            rule_set = rule_set if rule_set or (latest and latest.rule_set) else None
        return SentSchema(step.schema_type, step.text, step.references, metadata, rule_set)

    def _version(self, subject: SubjectName, number: int) -> VersionRecord:
        if (subject, number) not in self._read:
            if len(self._read) >= MAX_READ_BACK:
                raise InvalidReference(f"It refers to more than {MAX_READ_BACK} versions in the remote registry.")
            version = self.writer.version(subject, number)
            if version is None:
                raise RemoteUnavailable(f"The remote registry doesn't have {subject.qualified} version {number}.")
            self._read[subject, number] = version
        return self._read[subject, number]

    def _parsed(self, version: VersionRecord) -> ParsedSchema:
        return parse_schema(version.schema_type, version.text, self._resolved(version, {}, ()), is_new=False)

    def _resolved(
        self, version: VersionRecord, resolved: dict[_Place, ResolvedReference], above: tuple[_Place, ...]
    ) -> tuple[ResolvedReference, ...]:
        """Return the references of a version at the remote, as the remote has them; each is resolved once."""
        if len(above) > MAX_REFERENCE_DEPTH:
            raise InvalidReference(f"References are nested more than {MAX_REFERENCE_DEPTH} levels deep.")
        references = []
        for reference in version.references:
            key = parse_subject(reference.subject, context=version.subject.context), reference.version
            if key in above:
                raise InvalidReference(f"{key[0].qualified} version {key[1]} in the remote registry refers to itself.")
            if key not in resolved:
                there = self._version(*key)
                inner = self._resolved(there, resolved, (*above, key))
                resolved[key] = ResolvedReference(reference.name, reference.subject, there.version, there.text, inner)
            references.append(replace(resolved[key], name=reference.name, subject=reference.subject))
        return tuple(references)


#: kind of a step → the method that does it
RUN: Final[Mapping[str, Callable[[Remote, PlanStep], StepResult]]] = {
    REGISTER: Remote.register,
    REPEAT: Remote.repeat,
    CONFIG: Remote.configure,
    ADOPT: Remote.there,
    NONE: Remote.there,
}


def with_numbers(step: PlanStep, numbers: Mapping[tuple[str, int], int]) -> PlanStep:
    """Return the step, with the version numbers that the remote assigned in its references."""
    references = tuple(
        Reference(ref.name, ref.subject, numbers.get((ref.subject, ref.version), ref.version))
        for ref in step.references
    )
    return replace(step, references=references)


def _holds(actual: Any, expected: Any) -> bool:
    """Return whether `actual` contains everything in `expected`; servers may write or leave out empty values."""
    if isinstance(expected, dict):
        values = actual if isinstance(actual, dict) else {}
        return all(_holds(values.get(name), value) for name, value in expected.items())
    return actual == expected or (not actual and not expected and not isinstance(expected, bool))


logger = logging.getLogger(__name__)


def perform(*, request_id: int, policy: EgressPolicy | None = None) -> str:
    """Do the remaining steps of a request that is being applied; returns its state after that.

    Empty if there is nothing to do or another worker has it. Failures are stored with the step and the request.
    """
    claim = take(request_id)
    if claim is None:
        return ""
    try:
        return _perform(claim, policy)
    except ClaimLost:
        logger.warning("request %s was given to another worker", request_id)
        return ""
    except SchemadeskError as error:
        return _fail(claim, error.placed)
    except Exception as error:
        _fail(claim, f"Unexpected error: {type(error).__name__}. See the worker's log.")
        raise


def _perform(claim: ApplyClaim, policy: EgressPolicy | None) -> str:
    request = PromotionRequest.objects.select_related("target__registry").get(pk=claim.request_id)
    require_apply(request, claim.by)
    rows = list(request.steps.order_by("position"))
    if any(row.state != ApplyStep.WAITING or row.started_at for row in rows):
        claim.renew(SYNC_LEASE)
        fresh(request.target, policy=policy)
        claim.renew()
        _refuse_what_moved(request, rows)
    registry = request.target.registry
    connection = parse_connection(registry.url, user=registry.user, secret=registry.secret)
    with RemoteWriter(connection, policy=policy) as writer:
        remote = Remote(writer, claim, len(rows))
        for row in rows:
            step = step_from(row.step)
            if row.state != ApplyStep.DONE:
                remote.do(row, step)
            claim.numbers[step.subject, step.target_version] = row.version_number or step.target_version
    claim.renew(SYNC_LEASE)
    try:
        fresh(request.target, policy=policy)
    except RemoteUnavailable as error:
        raise RemoteUnavailable(f"Everything was written, but no release was recorded: {error.message}") from error
    return _finish(claim)


def require_apply(request: PromotionRequest, by: Actor) -> None:
    """Raise NotSignedIn or NotAllowed unless the person may apply to every subject that is requested or written."""
    for subject in dict.fromkeys((*requested_subjects(request), *written_subjects(request))):
        require(by, "promotion.apply", registry=request.target.registry.name, subject=subject)


def _refuse_what_moved(request: PromotionRequest, rows: Sequence[ApplyStep]) -> None:
    """Compare the remaining steps of an interrupted request with the approved ones: the remote may have changed.

    Raises PlanChanged, WrongState for a check that fails now, NotFound for what was deleted.
    """
    left = [row for row in rows if row.state != ApplyStep.DONE]
    if not left:
        return
    plan = builder.make_plan(builder.spec_of(request))
    now = {(step.kind == CONFIG, step.subject, step.fingerprint): step for step in plan.steps}
    numbers = {
        (row.step["subject"], row.step["target_version"]): row.version_number for row in rows if row.version_number
    }
    for row in left:
        was = step_from(row.step)
        if row.started_at and was.kind == REPEAT:
            continue  # a repetition that is written looks like one that isn't; only its number distinguishes them
        step = now.get((was.kind == CONFIG, was.subject, was.fingerprint))
        if step is None and was.kind == CONFIG:
            continue  # the subject has these settings already
        if step is not None and (step.kind == NONE or _is_same(with_numbers(was, numbers), step)):
            continue
        raise PlanChanged(
            f"The remaining steps are no longer the approved ones: {in_words(was)}. Give up this request and"
            " create a new one."
        )
    _refuse_by_checks(request, plan, {step.subject for step in (step_from(row.step) for row in left) if step.writes})


def _refuse_by_checks(request: PromotionRequest, plan: Plan, subjects: set[str]) -> None:
    """Refuse by the current checks of the remaining steps, except that nothing is left to do."""
    checks = [
        item.to_dict()
        for item in plan.checks
        if item.code != "something-to-do" and (not item.subject or item.subject in subjects)
    ]
    request.plan = {**request.plan, "checks": checks}
    refuse_failing(request)


def _is_same(was: PlanStep, now: PlanStep) -> bool:
    names = ("kind", "target_version", "fingerprint", "references", "config", "metadata", "rule_set")
    return all(getattr(was, name) == getattr(now, name) for name in names)


def written_steps(request: PromotionRequest) -> list[tuple[PlanStep, StepResult]]:
    """Return the steps of a request that are done, with their results."""
    return [
        (step_from(row.step), StepResult(row.version_number or 0, row.schema_id or 0, row.said))
        for row in request.steps.filter(state=ApplyStep.DONE).order_by("position")
    ]


def _finish(claim: ApplyClaim) -> str:
    """Everything is written and mirrored: record the releases and close the request."""
    with transaction.atomic():
        request = claim.locked()
        record(by=claim.by, why=f"apply request {request.pk}")
        try:
            record_releases(request, written_steps(request), claim.by)
        except LookupError as error:
            raise RemoteUnavailable(
                f"Everything was written, but the mirror of {request.target} doesn't have {error} yet, so no"
                " release was recorded. Resume the request when the mirror has it."
            ) from error
        state = move(request, PromotionRequest.APPLIED, claim_tag="", claim_until=None, apply_at=None, failure="")
        tell(request, "promotion.applied", f"{claim.by.name} applied it.", by=claim.by)
        return state


def _fail(claim: ApplyClaim, sentence: str) -> str:
    """Store with the request why it failed; steps that are done stay done."""
    try:
        with transaction.atomic():
            request = claim.locked()
            record(by=claim.by, why=f"apply request {request.pk}: it failed")
            written = sum(step.writes for step, _ in written_steps(request))
            part = f"{written} of its steps are written and kept" if written else "no step is known to be written"
            failure = f"{sentence} Until then {part}."[:MAX_FAILURE]
            state = move(request, PromotionRequest.FAILED, claim_tag="", claim_until=None, failure=failure)
            tell(request, "promotion.failed", failure, by=claim.by)
            return state
    except ClaimLost:
        logger.warning("request %s was given to another worker", claim.request_id)
        return ""


def begin_elsewhere(request: PromotionRequest, by: Actor) -> str:
    """Move the locked request to `applying`, with its steps waiting for a worker; returns the state."""
    for position, step in enumerate(request.plan["steps"]):
        ApplyStep.objects.create(request=request, position=position, step=step)
    return move(
        request,
        PromotionRequest.APPLYING,
        applied_by_id=by.user_id,
        apply_at=None,
        claim_tag="",
        claim_until=None,
        failure="",
    )


def again(request: PromotionRequest, by: Actor) -> str:
    """Let workers continue the locked request, for this person; returns the state."""
    request.steps.filter(state=ApplyStep.FAILED).update(state=ApplyStep.WAITING)
    return move(
        request, PromotionRequest.APPLYING, applied_by_id=by.user_id, claim_tag="", claim_until=None, failure=""
    )
