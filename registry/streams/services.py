"""Checking planned state before a restart, and looking for checkpoints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from django.db import transaction

from registry.access.roles import Actor, require
from registry.audit.services import record
from registry.checkpoints import Bounds, Discovery, find_checkpoints
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
from registry.streams.stores import Place, place_of_known, why_rows_are_not_readable
from registry.subjects.selectors.places import get_registry

MAX_REPORT: Final = 16 * 1024 * 1024  # characters of JSON
#: somebody waits for the answer
SEARCH: Final = Bounds(checkpoints=200, folders=2_000, depth=6, seconds=20.0)


def check_planned_state(
    *, checkpoint: str, plan: StatePlan, given: str, by: Actor, store: Mapping[str, Any] | None = None
) -> int:
    """Check what a restart with the plan would do to a checkpoint, and keep the report; gives its number.

    `given` is the plan as it was sent, `store` the object store of an address (the names are those of stores.FIELDS)
    that is no source; of one that is, the source tells. What the last scan of the checkpoint's rows found in each
    field counts. Nothing is started, and the checkpoint is only read. Raises InvalidCheckpoint, InvalidInput,
    InvalidSchema, InvalidSecret, AddressRefused, RemoteUnavailable, NotSignedIn, NotAllowed.
    """
    place = _place(checkpoint, store, by)
    found = place.resolved
    report = check_state(
        place.path,
        place.roots,
        plan,
        filled=filled_of(found),
        unread=why_rows_are_not_readable(found),
        store=place.store,
    )
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


def check_document(*, checkpoint: str, plan: Any, by: Actor, store: Mapping[str, Any] | None = None) -> int:
    """The same for a plan document: its JSON text, or its values. Raises what check_planned_state does."""
    require(by, "state.check")
    read = parse_plan(plan) if isinstance(plan, str) else read_plan(plan)
    given = plan if isinstance(plan, str) else json.dumps(plan, indent=2, ensure_ascii=False)
    return check_planned_state(checkpoint=checkpoint, plan=read, given=given, by=by, store=store)


def _texts(report: Report) -> dict[str, str]:
    return {"text": check_text(report), "markdown": check_markdown(report)}


def start_plan(*, checkpoint: str, by: Actor, store: Mapping[str, Any] | None = None) -> str:
    """A plan document that declares a checkpoint's state as it is, to be changed. Raises what check_planned_state does."""
    place = _place(checkpoint, store, by)
    return plan_as_is(place.path, place.roots, store=place.store)


def discover(*, path: str, registry: str, by: Actor, store: Mapping[str, Any] | None = None) -> Discovery:
    """The checkpoints at and below a folder or an address, each with what is known of it; bounded by SEARCH.

    For who may add them as sources of the registry. `store` as in check_planned_state. Raises InvalidCheckpoint,
    InvalidInput, InvalidSecret, AddressRefused, RemoteUnavailable, RegistryNotFound, NotSignedIn, NotAllowed.
    """
    require(by, "source.manage", registry=get_registry(registry).name)
    place = place_of_known(path, store)
    return find_checkpoints(place.path, place.roots, store=place.store, cache=place.cache, bounds=SEARCH)


def _place(checkpoint: str, store: Mapping[str, Any] | None, by: Actor) -> Place:
    """Where to read; naming an object store, and a secret for it, is for who may do so with sources."""
    require(by, "state.check")
    if store is not None:
        require(by, "source.manage")
    return place_of_known(checkpoint, store)
