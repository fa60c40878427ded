"""The steps of a plan at a registry of ours: all of them in one transaction, each read back, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from django.utils import timezone

from registry.access.roles import Actor
from registry.audit.services import record
from registry.errors import PlanChanged, SchemadeskError
from registry.promotions.models import ApplyStep, PromotionRequest
from registry.promotions.notes import carry_notes
from registry.promotions.plan import ADOPT, CONFIG, GIVEN_ID, NONE, REGISTER, REPEAT, Step, steps_of
from registry.promotions.services.current import move, person
from registry.promotions.services.releasing import Written, in_words, record_releases
from registry.promotions.telling import tell
from registry.subjects.names import parse_subject
from registry.subjects.selectors import own_config, stored_version
from registry.subjects.services import RegisteredVersion, register_version, set_config


class StepFailed(Exception):
    """A step that couldn't be done; nothing of the whole is kept. `cause` is what a person is told."""

    def __init__(self, sentence: str, cause: SchemadeskError) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.cause = cause


def write_here(request: PromotionRequest, by: Actor, force: str) -> str:
    """Do all steps of the locked request's plan in the caller's transaction, and close it; gives the state.

    `force` is the reason of an approval in spite of the level, empty for none. Raises StepFailed.
    """
    steps = steps_of(request.plan)
    done: list[tuple[Step, Written]] = []
    for position, step in enumerate(steps):
        try:
            written = RUN[step.kind](request, step, by, force)
        except SchemadeskError as error:
            where = f"Step {position + 1} of {len(steps)} ({in_words(step)})"
            raise StepFailed(f"{where} failed, so nothing was written: {error.placed}", error) from error
        record(by=by, why=f"apply request {request.pk}, step {position + 1}: {in_words(step)}")
        _keep(request, position, step, written)
        done.append((step, written))
    carry_notes(request, steps, by)
    record(by=by, why=f"apply request {request.pk}")
    record_releases(request, done, by)
    state = move(request, PromotionRequest.APPLIED, applied_by_id=person(by), apply_at=None, failure="")
    tell(request, "promotion.applied", f"{by.name} applied it.", by=by)
    return state


def _keep(request: PromotionRequest, position: int, step: Step, written: Written) -> None:
    now = timezone.now()
    ApplyStep.objects.create(
        request=request,
        position=position,
        state=ApplyStep.DONE,
        step=step.to_dict(),
        version_number=written.version or None,
        schema_id=written.schema_id or None,
        said=written.said,
        started_at=now,
        done_at=now,
    )


def _register(request: PromotionRequest, step: Step, by: Actor, force: str) -> Written:
    given = step.id_outlook == GIVEN_ID
    done = _registered(
        request,
        step,
        by,
        force,
        schema_id=step.source_id if given else None,
        version=step.target_version if given else 0,
    )
    return _read_back(request, step, done.version)


def _repeat(request: PromotionRequest, step: Step, by: Actor, force: str) -> Written:
    """The earlier text under a number of its own, which makes it another schema than the earlier version's."""
    done = _registered(request, step, by, force, schema_id=None, version=step.target_version)
    return _read_back(request, step, done.version)


def _registered(
    request: PromotionRequest, step: Step, by: Actor, force: str, *, schema_id: int | None, version: int
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


def _configure(request: PromotionRequest, step: Step, by: Actor, force: str) -> Written:
    registry, subject, wanted = request.target.registry, parse_subject(step.subject), step.config or {}
    set_config(registry=registry.name, subject=subject, by=by, release=True, **wanted)
    found = own_config(registry, subject)
    different = sorted(name for name, value in wanted.items() if getattr(found, name) != value)
    if different:
        raise PlanChanged(f"The config of {step.subject} isn't the one that was approved: {', '.join(different)}.")
    return Written(said=f"Set {', '.join(sorted(wanted))}.")


def _there(request: PromotionRequest, step: Step, by: Actor, force: str) -> Written:
    """Nothing to write: what should be there is read, as after a write."""
    return _read_back(request, step, step.target_version)


def _read_back(request: PromotionRequest, step: Step, version: int) -> Written:
    """What is stored now has to be what was approved: its number, and by its fingerprint its text and references."""
    info, schema = stored_version(request.target.registry, parse_subject(step.subject), version)
    if version != step.target_version or schema.fingerprint != step.fingerprint:
        raise PlanChanged(f"{step.subject} version {version} isn't the schema that was approved.")
    return Written(version, info.schema.schema_id)


#: kind of a step → what does it
RUN: Final[Mapping[str, Callable[[PromotionRequest, Step, Actor, str], Written]]] = {
    REGISTER: _register,
    REPEAT: _repeat,
    CONFIG: _configure,
    ADOPT: _there,
    NONE: _there,
}
