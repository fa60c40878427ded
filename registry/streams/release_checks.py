"""Whether the streaming queries that are released together with a schema could be restarted on their state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from registry.access.roles import Actor, require
from registry.checkpoints.plans import StateCheck, StatePlan, read_plan
from registry.checkpoints.plans.model import LABELS, VERDICTS
from registry.errors import InvalidSchema, SchemadeskError
from registry.formats.policies.spark_state import StateChange
from registry.promotions.hook_points import JobRelease
from registry.promotions.plan.types import FAIL, PASS, SKIPPED, Check
from registry.streams.descriptions import find_query
from registry.streams.models import StreamQuery
from registry.streams.services import checked_restart, known_checkpoint_location
from registry.subjects.models import Registry

CODE: Final = "restart"
#: changes that a sentence names, the worst ones
MAX_NAMED: Final = 3
_UNCHECKED: Final = "Run the restart check for the whole report, and decide before the release."


def restart_checks(target: Registry, releases: Sequence[JobRelease], by: Actor) -> list[Check]:
    """Return a check for each release of a query of the target; its checkpoint is read.

    One that can't be read isn't checked. Raises NotSignedIn, NotAllowed, NotFound, InvalidInput, InvalidSchema.
    """
    require(by, "state.check", registry=target.name)
    planned = [(find_query(release.query, by=by, registry=target.name), _plan(release)) for release in releases]
    return [_check(query, plan) for query, plan in planned]


def _plan(release: JobRelease) -> StatePlan:
    try:
        return read_plan(release.description)
    except InvalidSchema as error:
        raise InvalidSchema(f"The description of {release.query[:200]}: {error.placed}") from None


def _check(query: StreamQuery, plan: StatePlan) -> Check:
    name = f"restart of {query.path}"
    try:
        report = checked_restart(known_checkpoint_location(query.path), plan)
    except SchemadeskError as error:
        return Check(CODE, name, SKIPPED, f"{query.path}: Not checked. {error.placed}", _UNCHECKED)
    compared = report.notes[:1] if plan.query and plan.running is None else ()
    sentence = " ".join([f"{query.path}: {LABELS[report.verdict]}.", *_sentences(report), *compared])
    if report.is_fine:
        return Check(CODE, name, PASS, sentence)
    if report.verdict == "not checked":
        return Check(CODE, name, SKIPPED, sentence, _UNCHECKED)
    cures = dict.fromkeys(_capital(each.remedy) for each in _worst(report))
    return Check(CODE, name, FAIL, sentence, " ".join(cures) or _UNCHECKED)


def _sentences(report: StateCheck) -> Iterator[str]:
    """Yield the verdict, the worst changes and the error class."""
    yield report.sentence if report.verdict == "not checked" else VERDICTS[report.verdict]
    yield from (_capital(each.message) for each in _worst(report))
    if report.error:
        yield f"Spark's error: {report.error}."


def _worst(report: StateCheck) -> list[StateChange]:
    """Return the changes that decide the verdict."""
    changes = [*report.changes, *(each for variable in report.variables for each in variable.changes)]
    return [each for each in changes if each.effect == report.verdict][:MAX_NAMED]


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
