"""Roles as a table, and `may()`: the one place that decides, for every door."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from registry.errors import NotAllowed, NotSignedIn

READER, STEWARD, APPROVER, ADMIN = "reader", "steward", "approver", "admin"
ROLES = (READER, STEWARD, APPROVER, ADMIN)

_EVERYONE = frozenset(ROLES)
_STEWARDS = frozenset({STEWARD, ADMIN})
_APPROVERS = frozenset({APPROVER, ADMIN})
_ADMINS = frozenset({ADMIN})

#: action → the roles that may
ACTIONS: dict[str, frozenset[str]] = {
    "schema.read": _EVERYONE,
    "version.register": _STEWARDS,
    "version.force": _ADMINS,
    "version.delete": _STEWARDS,
    "version.delete_permanently": _ADMINS,
    "config.change": _STEWARDS,
    "mode.change": _ADMINS,
    "registry.manage": _ADMINS,
    "promotion.request": frozenset({STEWARD, APPROVER, ADMIN}),
    "promotion.review": _APPROVERS,
    "promotion.apply": _APPROVERS,
    "source.manage": _STEWARDS,
    "source.scan": _STEWARDS,
    "finding.decide": frozenset({STEWARD, APPROVER, ADMIN}),
    "audit.read": _EVERYONE,
}

#: what a person reads when it is refused
ACTION_WORDS = {
    "schema.read": "read schemas",
    "version.register": "register versions",
    "version.force": "register versions that break the level",
    "version.delete": "delete versions",
    "version.delete_permanently": "delete versions permanently",
    "config.change": "change compatibility settings",
    "mode.change": "change modes",
    "registry.manage": "manage registries",
    "promotion.request": "request promotions",
    "promotion.review": "review promotions",
    "promotion.apply": "apply promotions",
    "source.manage": "add and change scan sources",
    "source.scan": "start scans",
    "finding.decide": "decide on findings",
    "audit.read": "read the audit log",
}


@dataclass(frozen=True)
class Grant:
    """A role in a registry (empty: in all) for the subjects that a shell pattern names."""

    role: str
    registry: str = ""
    subject_pattern: str = "*"


@dataclass(frozen=True)
class Actor:
    """Who calls, through which door (`confluent`, `google`, `spring`, `product`, `ui`, `task`, `command`)."""

    name: str
    door: str
    user_id: int | None = None
    grants: tuple[Grant, ...] = field(default=())


def system_actor(name: str, door: str = "task") -> Actor:
    """The actor of a task or command that runs on the product's own behalf, with every right."""
    return Actor(name=name, door=door, grants=(Grant(ADMIN),))


def may(actor: Actor, action: str, *, registry: str = "", subject: str = "") -> bool:
    """Whether the actor may do the action there; raises KeyError for an action that the table doesn't have."""
    roles = ACTIONS[action]
    return any(grant.role in roles and _covers(grant, registry, subject) for grant in actor.grants)


def _covers(grant: Grant, registry: str, subject: str) -> bool:
    if grant.registry and grant.registry != registry:
        return False
    return grant.subject_pattern == "*" or (bool(subject) and fnmatchcase(subject, grant.subject_pattern))


def refusal(actor: Actor, action: str, *, registry: str = "", subject: str = "") -> str:
    """Why the actor may not, as a sentence; empty when they may. Pages show it beside a disabled button."""
    if may(actor, action, registry=registry, subject=subject):
        return ""
    needed = " or ".join(sorted(ACTIONS[action]))
    where = f" in registry {registry}" if registry else ""
    if actor.user_id is None:
        return f"Sign in to {ACTION_WORDS[action]}{where}; it takes the role {needed}."
    return f"{actor.name} may not {ACTION_WORDS[action]}{where}; it takes the role {needed}."


def require(actor: Actor, action: str, *, registry: str = "", subject: str = "") -> None:
    """Raise NotSignedIn or NotAllowed unless the actor may."""
    reason = refusal(actor, action, registry=registry, subject=subject)
    if not reason:
        return
    raise (NotSignedIn if actor.user_id is None else NotAllowed)(reason, action=action)
