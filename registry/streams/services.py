"""Checking planned state before a restart."""

from __future__ import annotations

import json
from typing import Any, Final

from django.conf import settings
from django.db import transaction

from registry.access.roles import Actor, require
from registry.audit.services import record
from registry.checkpoints.plans import (
    StatePlan,
    check_markdown,
    check_state,
    check_text,
    parse_plan,
    plan_as_is,
    read_plan,
)
from registry.checkpoints.plans.report import StateCheck as Report
from registry.errors import InvalidInput
from registry.streams.models import StateCheck
from registry.streams.queries import filled_of

MAX_REPORT: Final = 16 * 1024 * 1024  # characters of JSON


def check_planned_state(*, checkpoint: str, plan: StatePlan, given: str, by: Actor) -> int:
    """Check what a restart with the plan would do to a checkpoint, and keep the report; gives its number.

    `given` is the plan as it was sent. What the last scan of the checkpoint's rows found in each field counts. Nothing is started, and the checkpoint is only read. Raises InvalidCheckpoint,
    InvalidInput, InvalidSchema, NotSignedIn, NotAllowed.
    """
    require(by, "state.check")
    report = check_state(checkpoint, settings.CHECKPOINT_ROOTS, plan, filled=filled_of(checkpoint))
    values = report.to_dict() | {"texts": _texts(report)}
    if len(json.dumps(values)) > MAX_REPORT:
        raise InvalidInput("The report of this plan is too large to be kept; check fewer variables at a time.")
    with transaction.atomic():
        record(by=by, why=f"check planned state of {report.path[:200]}")
        row = StateCheck.objects.create(
            created_by=by.name,
            checkpoint=report.path,
            query_id=report.query_id[:200],
            verdict=report.verdict,
            plan=given.replace("\0", "\ufffd"),
            report=values,
        )
    return row.pk


def check_document(*, checkpoint: str, plan: Any, by: Actor) -> int:
    """The same for a plan document: its JSON text, or its values. Raises what check_planned_state does."""
    require(by, "state.check")
    read = parse_plan(plan) if isinstance(plan, str) else read_plan(plan)
    given = plan if isinstance(plan, str) else json.dumps(plan, indent=2, ensure_ascii=False)
    return check_planned_state(checkpoint=checkpoint, plan=read, given=given, by=by)


def _texts(report: Report) -> dict[str, str]:
    return {"text": check_text(report), "markdown": check_markdown(report)}


def start_plan(*, checkpoint: str, by: Actor) -> str:
    """A plan document that declares a checkpoint's state as it is, to be changed. Raises what check_planned_state does."""
    require(by, "state.check")
    return plan_as_is(checkpoint, settings.CHECKPOINT_ROOTS)
