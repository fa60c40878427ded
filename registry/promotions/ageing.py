"""Evidence that is too old for an environment: what rests on it is stale until it is seen again. Pure.

An environment that has this rule binds approvals to what the evidence said: the checks of evidence are part of the
plan's hash there, so that another word of the data voids an approval, and so does its having become too old.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from registry.promotions.evidence_rule import EvidenceRule
from registry.promotions.plan import FAIL, STALE, Check

CODE: Final = "evidence.data"
_CURE: Final = "Scan the topic again, then run the checks again; or have a reviewer override it with a reason."


def aged(check: Check, rule: EvidenceRule, now: datetime, *, has_versions: bool = True) -> Check:
    """The check as the rule has it: stale where what it rests on is too old, failing where there has to be something.

    Without a version at the target there is nothing that messages could have been written with.
    """
    if not rule.binds or not has_versions:
        return check
    bound = replace(check, binding=True)
    if said := _too_old(check.as_of, check.sentence, rule, now):
        return replace(bound, verdict=STALE, sentence=said, cure=_CURE, overridable=True)
    if rule.required and not check.as_of:
        said = f"{check.sentence} {rule.environment} takes nothing without evidence from data."
        return replace(bound, verdict=FAIL, sentence=said, cure=_CURE, overridable=True)
    return bound


def with_age(plan: Mapping[str, Any], rule: EvidenceRule, now: datetime) -> dict[str, Any]:
    """A stored plan whose evidence is as old as it is now: it ages without the plan's being made again."""
    if not rule.hours:
        return dict(plan)
    return {**plan, "checks": [_aged_row(row, rule, now) for row in plan["checks"]]}


def _aged_row(row: Mapping[str, Any], rule: EvidenceRule, now: datetime) -> Mapping[str, Any]:
    if row.get("code") != CODE or row["verdict"] == STALE:
        return row
    said = _too_old(str(row.get("as_of") or ""), str(row["sentence"]), rule, now)
    return {**row, "verdict": STALE, "sentence": said, "cure": _CURE, "overridable": True} if said else row


def too_old(plan: Mapping[str, Any], rule: EvidenceRule, now: datetime) -> str:
    """The first sentence of a stored plan that rests on evidence that is too old by now; "" where none does."""
    rows = with_age(plan, rule, now)["checks"]
    return next((str(row["sentence"]) for row in rows if row.get("code") == CODE and row["verdict"] == STALE), "")


def _too_old(as_of: str, sentence: str, rule: EvidenceRule, now: datetime) -> str:
    """The sentence of what is too old; "" for what isn't, and for what was never seen."""
    if not rule.hours or not as_of:
        return ""
    seen = datetime.fromisoformat(as_of).astimezone(UTC)
    if now - seen <= timedelta(hours=rule.hours):
        return ""
    return (
        f"Too old to go by: the data were last looked at {seen:%Y-%m-%d %H:%M} UTC, and {rule.environment} takes no"
        f" evidence older than {rule.longest}. Then: {sentence}"
    )
