"""What an applied request leaves: a release for every version that it made live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from registry.access.roles import Actor
from registry.promotions.models import PromotionRequest, Release
from registry.promotions.plan import ADOPT, REGISTER, REPEAT, Step
from registry.promotions.services.current import person
from registry.subjects.models import SchemaVersion
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.services.standing import leave_quarantine

#: the kinds of steps after which a version is live by this request
RELEASING: Final = frozenset({REGISTER, REPEAT, ADOPT})


@dataclass(frozen=True)
class Written:
    """What a step left at the target: its version and id there, 0 for a step that is of no version, and what was said."""

    version: int = 0
    schema_id: int = 0
    said: str = ""


def in_words(step: Step) -> str:
    """The step as a short phrase, for the audit and for messages."""
    if step.kind == "config":
        return f"config of {step.subject}"
    return f"{step.kind} {step.subject} version {step.target_version}"


def record_releases(
    request: PromotionRequest, done: Sequence[tuple[Step, Written]], by: Actor, *, only_if_there: bool = True
) -> int:
    """A release for each step that made a version live, in the caller's transaction; gives how many.

    The version is the one of our registry or of the mirror. Raises LookupError where it isn't there, unless
    `only_if_there` is False: then the release stands without it.
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


def _row(request: PromotionRequest, name: SubjectName, written: Written) -> SchemaVersion | None:
    return SchemaVersion.objects.filter(
        subject__context__registry=request.target.registry_id,
        subject__context__name=name.context,
        subject__name=name.subject,
        version=written.version,
        schema__schema_id=written.schema_id,
        deleted_at=None,
    ).first()
