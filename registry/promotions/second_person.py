"""What loosens a closed environment takes a second person, or break-glass: asked by every service that could loosen one.

An approved change is carried out by the same services that refused it: while it is, `approved(change)` is set for the
environment, and they let it pass with its number in the audit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from registry.access.roles import Actor
from registry.audit.services import record, recorded
from registry.errors import SecondPersonRequired
from registry.notifications.services import notify
from registry.promotions.gatekeeping import use_break_glass
from registry.promotions.models import Environment

MANAGE: Final = "registry.manage"
#: begins the reason in the audit of everything that loosens a closed environment
LOOSENS: Final = "LOOSENS A CLOSED ENVIRONMENT"


@dataclass
class Passage:
    """An approved change, or a trial of one, in one environment; `asked` says whether anything needed it."""

    environment: int
    why: str = ""
    asked: list[str] = field(default_factory=list)


_PASSAGE: ContextVar[Passage | None] = ContextVar("passage", default=None)


@contextmanager
def passing(environment: Environment, why: str = "") -> Iterator[Passage]:
    """Let what loosens this environment pass, within the block; `why` stands in the audit before each change."""
    passage = Passage(environment.pk, why)
    token = _PASSAGE.set(passage)
    try:
        yield passage
    finally:
        _PASSAGE.reset(token)


def require_second_person(
    environment: Environment, by: Actor, sentence: str, action: str, values: Mapping[str, Any]
) -> None:
    """Let a change pass that loosens a closed environment, or raise SecondPersonRequired.

    It passes as an approved change and with the person's open break-glass. Call it in the change's transaction after
    `record` and before the first write, with the environment's row locked. `action` and `values` are the service and its
    arguments, to ask another person for.
    """
    name, doing = environment.registry.name, recorded()
    passage = _PASSAGE.get()
    if passage is not None and passage.environment == environment.pk:
        passage.asked.append(sentence)
        record(by=by, why=f"{LOOSENS}: {passage.why}; {doing}")
        return
    if use_break_glass(MANAGE, environment.registry, "", by):
        record(by=by, why=f"{LOOSENS}: {recorded()}")
        tell_loosened(environment, f"{by.name} used break-glass to {sentence}.", by=by)
        return
    raise SecondPersonRequired(
        f"{name} is closed, and this loosens it: to {sentence} takes the approval of another person who may review"
        f" there. Ask for it on /ui/environments/{name} or with POST /api/v1/environments/{name}/changes, or open"
        " break-glass.",
        environment=name,
        action=action,
        values=dict(values),
        sentence=sentence,
    )


def tell_loosened(environment: Environment, sentence: str, *, by: Actor, **data: Any) -> None:
    """Tell those who review for an environment that its rules are looser now."""
    name = environment.registry.name
    notify(
        event="environment.loosened",
        registry=name,
        subject="",
        text=f"The rules of the closed environment {name} are looser now. {sentence}",
        url=f"/ui/environments/{name}",
        data={"by": by.name, **data},
        by=by.user_id,
    )
