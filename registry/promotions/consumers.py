"""Which declared clients a plan hurts, and whether their people have acknowledged it: the check, and its rule. Pure.

An acknowledgement is of one plan, as an approval is: when the target moves or the text is another one, it no longer
counts. It isn't part of the plan, so that no approval is voided by it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from registry.promotions.clients import CODE as CLIENTS
from registry.promotions.plan import FAIL, PASS, WARN, Check, Verdict

CODE: Final = "acknowledged"
#: what the audit's reason begins with where somebody takes back what they said
TAKEN_BACK: Final = "take back the acknowledgement of"
_NAME: Final = "consumers acknowledged"
#: clients that are named in a sentence
_NAMED: Final = 5


@dataclass(frozen=True, order=True)
class Hurt:
    """A declared client of a subject that doesn't go on with what a plan brings."""

    subject: str
    client: str

    @property
    def words(self) -> str:
        """The client with its subject."""
        return f"{self.client} of {self.subject}"


def hurt_by(checks: Iterable[Mapping[str, Any]]) -> tuple[Hurt, ...]:
    """The clients that don't go on, as stored checks have them."""
    return tuple(
        Hurt(str(check.get("subject") or ""), str(name))
        for check in checks
        if check.get("code") == CLIENTS
        for name in check.get("concerned") or ()
    )


def acknowledged_check(
    hurt: Collection[Hurt], given: Collection[Hurt], voided: Collection[Hurt] = (), *, blocks: bool
) -> list[Check]:
    """Whether each of them has been acknowledged; no check where none is hurt.

    `given` are those of which somebody has acknowledged this plan, `voided` those of which only an earlier one.
    `concerned` are those that are left, of `asked`.
    """
    if not hurt:
        return []
    left = [each for each in hurt if each not in given]
    number = len(hurt)
    if not left:
        return [Check(CODE, _NAME, PASS, f"Acknowledged for {_listed(hurt)}.", asked=number)]
    lost = sum(each in voided for each in left)
    void = f" {lost} {'was' if lost == 1 else 'were'} acknowledged for an earlier plan, which no longer counts."
    said = f"{number - len(left)} of {number} acknowledged. Not yet: {_listed(left)}.{void if lost else ''}"
    cure = "Have somebody of theirs read what it meets, and acknowledge it on the request's page."
    names = tuple(each.client for each in left)
    verdict: Verdict = FAIL if blocks else WARN
    return [Check(CODE, _NAME, verdict, said, cure, overridable=blocks, concerned=names, asked=number)]


def with_rule(plan: Mapping[str, Any], *, blocks: bool) -> dict[str, Any]:
    """A stored plan whose check has the verdict that the environment gives it now."""
    return {**plan, "checks": [_ruled(check, blocks=blocks) for check in plan["checks"]]}


def _ruled(check: Mapping[str, Any], *, blocks: bool) -> Mapping[str, Any]:
    if check.get("code") != CODE or check["verdict"] == PASS:
        return check
    return {**check, "verdict": FAIL if blocks else WARN, "overridable": blocks}


def _listed(found: Collection[Hurt]) -> str:
    names = [each.words for each in list(found)[:_NAMED]]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(names) + more
