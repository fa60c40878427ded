"""Decisions on findings: acknowledge, reopen, assign, mute; each with its author and reason."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from difflib import get_close_matches
from typing import Final

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from registry.access.models import User
from registry.access.name_patterns import checked_pattern, name_pattern
from registry.access.permission_filters import READ, require_extent
from registry.access.roles import Actor, require
from registry.audit.context import record
from registry.drift.models import Finding, Mute
from registry.drift.rules import RULES
from registry.drift.scan.aggregation import MutePattern, is_muted
from registry.errors import FindingNotFound, InvalidInput, MuteNotFound, WrongState
from registry.subjects.versions.lookup import get_registry

MAX_REASON = 4000
MAX_STARS = 10
_DECISION: Final = ("state", "acknowledged_by", "acknowledged_reason", "acknowledged_until")
MAX_PATTERN: Final = {"rule": 64, "subject": 512, "location": 1024}


@transaction.atomic
def acknowledge(*, finding_id: int, reason: str, by: Actor, until: datetime | None = None) -> None:
    """Acknowledge a finding, with a reason, until a time (None: for as long as it is seen).

    Raises FindingNotFound, InvalidInput, WrongState, NotAllowed.
    """
    row = _decidable(finding_id, by)
    reason = _reason(reason, "Say why the finding can stay for now.")
    _require_future(until)
    if row.state != "open":
        raise WrongState(f"Finding {finding_id} is {row.state}; only an open one can be acknowledged.")
    record(by=by, why=f"acknowledge finding {finding_id}")
    row.state = "acknowledged"
    row.acknowledged_by, row.acknowledged_reason, row.acknowledged_until = by.name, reason, until
    row.save(update_fields=_DECISION)


@transaction.atomic
def reopen(*, finding_id: int, by: Actor) -> None:
    """Reopen a finding that was acknowledged or resolved. Raises FindingNotFound, WrongState, NotAllowed."""
    row = _decidable(finding_id, by)
    if row.state == "open":
        raise WrongState(f"Finding {finding_id} is already open.")
    record(by=by, why=f"reopen finding {finding_id}")
    row.reopened += 1
    _open(row)


@transaction.atomic
def assign(*, finding_id: int, to: str, by: Actor) -> None:
    """Assign a finding to a person by account name (empty: to nobody).

    Raises FindingNotFound, InvalidInput for an unknown account, NotAllowed.
    """
    row = _decidable(finding_id, by)
    if to and not User.objects.filter(username=to, is_active=True).exists():
        raise InvalidInput(f"There is no account named {to[:150]!r}. Give the name of an existing account.")
    record(by=by, why=f"assign finding {finding_id} to {to or 'nobody'}")
    row.assigned_to = to
    row.save(update_fields=["assigned_to"])


@transaction.atomic
def mute(
    *,
    registry: str,
    reason: str,
    by: Actor,
    rule: str = "",
    subject: str = "",
    location: str = "",
    until: datetime | None = None,
) -> int:
    """Mute a registry's present and future findings that match all of the shell patterns; returns the mute's number.

    A muted finding is stored and counted, but in no list of open findings. Raises InvalidInput, RegistryNotFound,
    NotAllowed.
    """
    registry_row = get_registry(registry)
    require(by, "finding.mute", registry=registry_row.name)
    reason = _reason(reason, "Say why these findings can be muted.")
    _require_future(until)
    patterns = {"rule": rule.strip(), "subject": subject.strip(), "location": location.strip()}
    if not any(patterns.values()):
        raise InvalidInput("Give a rule, a subject or a location: muting everything would hide all drift.")
    for name in ("rule", "subject"):
        if patterns[name]:
            checked_pattern(patterns[name], name, longest=MAX_PATTERN[name], field=name)
    _require_rule(patterns["rule"])
    for name, pattern in patterns.items():
        longest = MAX_PATTERN[name]
        if len(pattern) > longest or pattern.count("*") > MAX_STARS or not pattern.isprintable():
            raise InvalidInput(f"The {name} pattern must have at most {longest} characters and ten '*'.")
    if "[" in patterns["location"]:
        raise InvalidInput("The location pattern has a '[', which isn't supported. Enter '?' instead.")
    record(by=by, why="mute findings")
    row = Mute.objects.create(registry=registry_row, reason=reason, until=until, created_by=by.name, **patterns)
    _apply_mutes(registry_row.pk)
    return row.pk


def _require_rule(pattern: str) -> None:
    """Raise InvalidInput for a pattern that no rule's name matches."""
    if not pattern or any(name_pattern(pattern).allows(rule) for rule in RULES):
        return
    near = get_close_matches(pattern.upper(), RULES, n=1, cutoff=0.3)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise InvalidInput(f"No rule of findings is called {pattern!r}.{hint}", field="rule")


def hidden_by(mute_id: int) -> int:
    """Return how many open findings a mute hides."""
    row = Mute.objects.get(pk=mute_id)
    pattern = [MutePattern(row.rule, row.subject, row.location)]
    open_ones = Finding.objects.filter(source__registry_id=row.registry_id, state="open")
    return sum(is_muted(pattern, *values) for values in open_ones.values_list("rule", "subject_name", "location"))


@transaction.atomic
def unmute(*, mute_id: int, by: Actor) -> None:
    """End a mute: its findings are shown again unless another mute covers them. Raises MuteNotFound, NotAllowed."""
    row = Mute.objects.select_related("registry").select_for_update(of=("self",)).filter(pk=mute_id).first()
    if row is None:
        raise MuteNotFound(f"There is no mute {mute_id}.", mute=mute_id)
    require(by, "finding.mute", registry=row.registry.name)
    record(by=by, why=f"end mute {mute_id}")
    row.delete()
    _apply_mutes(row.registry_id)


@transaction.atomic
def expire_decisions(*, by: Actor) -> int:
    """Reopen findings whose acknowledgement has expired, and end expired mutes; returns the number of findings."""
    now = timezone.now()
    over = Finding.objects.select_for_update(skip_locked=True).filter(state="acknowledged", acknowledged_until__lte=now)
    numbers = list(over.values_list("pk", flat=True))
    ended = Mute.objects.filter(until__lte=now)
    registries = set(ended.values_list("registry_id", flat=True))
    if not numbers and not registries:
        return 0
    record(by=by, why="the end date of a decision has passed")
    Finding.objects.filter(pk__in=numbers).update(
        state="open", reopened=F("reopened") + 1, acknowledged_by="", acknowledged_reason="", acknowledged_until=None
    )
    ended.delete()
    for registry_id in registries:
        _apply_mutes(registry_id)
    return len(numbers)


def active_mutes(registry_id: int) -> list[MutePattern]:
    """Return the mutes of a registry that haven't expired."""
    rows = Mute.objects.filter(registry_id=registry_id).filter(Q(until=None) | Q(until__gt=timezone.now()))
    return [MutePattern(row.rule, row.subject, row.location) for row in rows]


def _apply_mutes(registry_id: int) -> None:
    """Update `muted` of a registry's findings from its current mutes."""
    mutes = active_mutes(registry_id)
    rows: Iterable[Finding] = Finding.objects.filter(source__registry_id=registry_id).only(
        "pk", "rule", "subject_name", "location", "muted"
    )
    outdated: dict[bool, list[int]] = {True: [], False: []}
    for row in rows:
        should = is_muted(mutes, row.rule, row.subject_name, row.location)
        if row.muted != should:
            outdated[should].append(row.pk)
    for should, numbers in outdated.items():
        if numbers:
            Finding.objects.filter(pk__in=numbers).update(muted=should)


def _open(row: Finding) -> None:
    row.opened_at = timezone.now() if row.state == "resolved" else row.opened_at
    row.state, row.resolved_at, row.clean_scans = "open", None, 0
    row.acknowledged_by, row.acknowledged_reason, row.acknowledged_until = "", "", None
    row.save(update_fields=[*_DECISION, "resolved_at", "opened_at", "clean_scans", "reopened"])


def _decidable(finding_id: int, by: Actor) -> Finding:
    """Return the finding's row, locked; one that they may not read counts as not found.

    Raises FindingNotFound, NotSignedIn, NotAllowed.
    """
    require_extent(by, READ)
    rows = Finding.objects.visible_to(by).select_for_update(of=("self",)).select_related("source__registry")
    row = rows.filter(pk=finding_id).first()
    if row is None:
        raise FindingNotFound(f"There is no finding {finding_id}.", finding=finding_id)
    require(by, "finding.decide", registry=row.source.registry.name, subject=row.subject_name)
    return row


def _reason(text: str, problem: str) -> str:
    reason = text.strip()
    if not reason:
        raise InvalidInput(problem)
    if len(reason) > MAX_REASON:
        raise InvalidInput(f"A reason must have at most {MAX_REASON} characters.")
    return reason


def _require_future(until: datetime | None) -> None:
    if until is not None and (until.tzinfo is None or until <= timezone.now()):
        raise InvalidInput("The end time is in the past. Give a later time, with its time zone.")
