"""Tables of roles and token scopes, `may()`, which decides for every channel, and the guards of changes of rights.

A token allows what both its scope and its person's roles allow. Other apps answer through `registry.hooks` whether a
change of rights needs a second person, and whether the registry and subjects of a right exist: promotions guards who
may review for closed environments. A service calls the guards after it has checked the permission and recorded the
change, before it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from registry import hooks
from registry.access.name_patterns import name_pattern
from registry.errors import InvalidInput, NotAllowed, NotSignedIn, first_few

ALL = "all"
_READ = frozenset({"schema.read", "audit.read"})
_REGISTER = _READ | {"version.register", "client.declare", "deployment.tell"}

#: scope → the actions that it allows; None: every action, including future ones
SCOPES: dict[str, frozenset[str] | None] = {
    "read": _READ,
    "register": _REGISTER,
    "write": _REGISTER | {"version.delete", "version.status", "subject.describe", "client.change", "config.change"},
    "scan": _READ
    | {"cluster.manage", "source.manage", "source.scan", "state.check", "query.describe"}
    | {"finding.decide", "finding.mute", "sample.read"},
    "promote": _READ | {"promotion.request", "promotion.apply", "deployment.tell", "state.check", "query.describe"},
    "report": frozenset({"query.report", "query.describe"}),
    ALL: None,
}

#: scope → its description beside the choice
SCOPE_WORDS = {
    "read": "Read schemas, findings, requests and the audit log.",
    "register": (
        "Read, register versions, declare clients and report deployments: for producers, consumers and builds."
    ),
    "write": (
        "Register versions, declare clients, report deployments, deprecate, describe, soft-delete, and"
        " change compatibility settings."
    ),
    "scan": "Read, including masked samples, manage clusters and sources, start scans and decide on findings.",
    "promote": (
        "Read, request promotions, apply approved ones, check restarts, report deployments and describe queries: for"
        " pipelines."
    ),
    "report": "Report how streaming queries run and describe them, and nothing else: for Spark jobs.",
    ALL: "Everything that the token’s owner can do.",
}


@dataclass(frozen=True)
class TokenLimit:
    """The limit of a token: the actions of its scope, in its registry (empty: in all), for its subjects."""

    scope: str = ALL
    registry: str = ""
    subject_pattern: str = "*"
    expires_at: datetime | None = None

    def has(self, action: str) -> bool:
        """Return whether the scope includes the action; an unknown scope includes none."""
        actions = SCOPES.get(self.scope, frozenset())
        return actions is None or action in actions

    @property
    def is_whole(self) -> bool:
        """Whether it limits nothing."""
        return self.scope == ALL and not self.registry and self.subject_pattern == "*"

    @property
    def place(self) -> str:
        """The subjects and registry that it covers, in words."""
        subjects = "all subjects" if self.subject_pattern == "*" else f"subjects {self.subject_pattern}"
        return f"{subjects} of {f'registry {self.registry}' if self.registry else 'all registries'}"


def scopes_with(action: str) -> list[str]:
    """Return the scopes that allow an action, narrowest first."""
    return [name for name in SCOPES if TokenLimit(scope=name).has(action)]


READER, STEWARD, APPROVER, ADMIN = "reader", "steward", "approver", "admin"
ROLES = (READER, STEWARD, APPROVER, ADMIN)

_EVERYONE = frozenset(ROLES)
_STEWARDS = frozenset({STEWARD, ADMIN})
_APPROVERS = frozenset({APPROVER, ADMIN})
_ADMINS = frozenset({ADMIN})

#: action → the roles that allow it
ACTIONS: dict[str, frozenset[str]] = {
    "schema.read": _EVERYONE,
    "version.register": _STEWARDS,
    "version.force": _ADMINS,
    "version.delete": _STEWARDS,
    "version.delete_permanently": _ADMINS,
    "version.status": _STEWARDS,
    "subject.describe": _STEWARDS,
    "client.declare": _EVERYONE,
    "client.change": _STEWARDS,
    "deployment.tell": _EVERYONE,
    "query.report": _EVERYONE,
    "config.change": _STEWARDS,
    "mode.change": _ADMINS,
    "registry.manage": _ADMINS,
    "registry.refresh": _STEWARDS,
    "promotion.request": frozenset({STEWARD, APPROVER, ADMIN}),
    "promotion.review": _APPROVERS,
    "promotion.apply": _APPROVERS,
    "cluster.manage": _STEWARDS,
    "source.manage": _STEWARDS,
    "source.scan": _STEWARDS,
    "state.check": _STEWARDS,
    "query.describe": _STEWARDS,
    "finding.decide": frozenset({STEWARD, APPROVER, ADMIN}),
    "finding.mute": frozenset({STEWARD, APPROVER, ADMIN}),
    "sample.read": frozenset({STEWARD, APPROVER, ADMIN}),
    "sample.personal": _ADMINS,
    "audit.read": _EVERYONE,
    "notification.subscribe": _EVERYONE,
    "webhook.manage": _STEWARDS,
    "token.own": _EVERYONE,
    "token.manage": _ADMINS,
    "people.manage": _ADMINS,
}

#: actions that are possible while the past is shown
READ_ONLY_ACTIONS: frozenset[str] = frozenset({"schema.read", "audit.read"})

#: action → its description in refusals
ACTION_WORDS = {
    "schema.read": "read schemas",
    "version.register": "register versions",
    "version.force": "register versions that break the level",
    "version.delete": "delete versions",
    "version.delete_permanently": "delete versions permanently",
    "version.status": "deprecate, retire and quarantine versions",
    "subject.describe": "describe and tag subjects",
    "client.declare": "declare which programs read and write a subject's data",
    "client.change": "change and withdraw clients that others declared",
    "deployment.tell": "report deployments",
    "query.report": "report how streaming queries run",
    "config.change": "change compatibility settings",
    "mode.change": "change modes",
    "registry.manage": "manage registries",
    "registry.refresh": "refresh mirrors",
    "promotion.request": "request promotions",
    "promotion.review": "review promotions",
    "promotion.apply": "apply promotions",
    "cluster.manage": "add and edit clusters",
    "source.manage": "add and edit scan sources",
    "source.scan": "start scans",
    "state.check": "check planned state schemas",
    "query.describe": "describe running queries",
    "finding.decide": "decide on findings",
    "finding.mute": "mute findings",
    "sample.read": "see samples of messages",
    "sample.personal": "see values of fields tagged as personal data",
    "audit.read": "read the audit log",
    "notification.subscribe": "subscribe to events",
    "webhook.manage": "add and edit webhooks",
    "token.own": "create and revoke their own tokens",
    "token.manage": "see and revoke everyone's tokens",
    "people.manage": "manage people, groups and owners",
}


@dataclass(frozen=True)
class Grant:
    """A role in a registry (empty: in all) for the subjects that match a pattern."""

    role: str
    registry: str = ""
    subject_pattern: str = "*"


@dataclass(frozen=True)
class Actor:
    """The caller; `channel` is where the call came in (`confluent`, `google`, `spring`, `product`, `ui`, `task`, `command`).

    `origin` is for the audit: the caller's address, and the name of the token. `signed_in_by` is how the person signed
    in: `password`, `oidc`, or "" if nobody did (a token that a command made, a task); a token has its maker's. `limit`
    is how a token limits the rights of its person. `past` says why nothing can be changed while the past is shown, else
    it is "".
    """

    name: str
    channel: str
    user_id: int | None = None
    grants: tuple[Grant, ...] = field(default=())
    origin: str = ""
    signed_in_by: str = ""
    limit: TokenLimit | None = None
    past: str = ""


def system_actor(name: str, channel: str = "task") -> Actor:
    """Return the actor of a task or command that runs on the product's own behalf, with all rights."""
    return Actor(name=name, channel=channel, grants=(Grant(ADMIN),))


def may(actor: Actor, action: str, *, registry: str = "", subject: str = "") -> bool:
    """Return whether the actor may do the action there. Raises KeyError for an unknown action.

    A token allows what both its person's roles *and* its scope allow there.
    """
    roles = ACTIONS[action]
    if actor.past and action not in READ_ONLY_ACTIONS:
        return False
    if actor.limit and not (actor.limit.has(action) and _covers(actor.limit, registry, subject)):
        return False
    return any(grant.role in roles and _covers(grant, registry, subject) for grant in actor.grants)


def may_somewhere(actor: Actor, action: str) -> bool:
    """Return whether the actor may do the action in any registry or for any subject at all."""
    roles = ACTIONS[action]
    allowed = (actor.limit is None or actor.limit.has(action)) and (not actor.past or action in READ_ONLY_ACTIONS)
    return allowed and any(grant.role in roles for grant in actor.grants)


def may_in(actor: Actor, action: str, registry: str) -> bool:
    """Return whether the actor may do the action for any subject of the registry."""
    named = replace(actor, grants=tuple(grant for grant in actor.grants if grant.registry in ("", registry)))
    in_limit = actor.limit is None or actor.limit.registry in ("", registry)
    return in_limit and may_somewhere(named, action)


def _covers(grant: Grant | TokenLimit, registry: str, subject: str) -> bool:
    if grant.registry and grant.registry != registry:
        return False
    return grant.subject_pattern == "*" or (bool(subject) and name_pattern(grant.subject_pattern).allows(subject))


def refusal(actor: Actor, action: str, *, registry: str = "", subject: str = "") -> str:
    """Return why the actor may not do the action, as a sentence; "" if they may.

    Pages show it beside a disabled button.
    """
    if may(actor, action, registry=registry, subject=subject):
        return ""
    if actor.past and action not in READ_ONLY_ACTIONS:
        return actor.past
    needed = roles_with(action)
    where = f" in {registry}" if registry else ""
    if actor.limit and not actor.limit.has(action):
        return (
            f"This token's scope is {actor.limit.scope}, which doesn't allow it to {ACTION_WORDS[action]}{where}."
            f" Use a token with the scope {_any_of(scopes_with(action))}."
        )
    if actor.limit and not _covers(actor.limit, registry, subject):
        return f"This token is limited to {actor.limit.place}, so it can't {ACTION_WORDS[action]}{where}."
    if actor.user_id is None:
        return f"Sign in to {ACTION_WORDS[action]}{where}. You need the {needed} role."
    part = " Your role there covers only some subjects." if registry and may_in(actor, action, registry) else ""
    return f"You need the {needed} role{where} to {ACTION_WORDS[action]}.{part}"


def require_whole_token(actor: Actor, what: str) -> None:
    """Raise NotAllowed for a token that is limited to a registry or to some subjects: `what` needs all of them."""
    limit = actor.limit
    if limit and (limit.registry or limit.subject_pattern != "*"):
        raise NotAllowed(f"This token is limited to {limit.place}, so it can't {what}. Use a token without this limit.")


def roles_with(action: str) -> str:
    """Return the roles that may do the action, as alternatives in a sentence."""
    return _any_of(sorted(ACTIONS[action]))


def _any_of(names: list[str]) -> str:
    """Join names as alternatives: "a", "a or b", "a, b or c"."""
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def require(actor: Actor, action: str, *, registry: str = "", subject: str = "") -> None:
    """Raise NotSignedIn or NotAllowed unless the actor may do the action."""
    reason = refusal(actor, action, registry=registry, subject=subject)
    if not reason:
        return
    raise (NotSignedIn if actor.user_id is None else NotAllowed)(reason, action=action)


MAX_LISTED: Final = 20


@dataclass(frozen=True)
class RightsChange:
    """A change that may affect who can approve: `action` and `values` are a service and its arguments.

    `sentence` describes it. `grants` are roles that `users` get, `groups` the names of groups that they join; with
    `owner` they become owners of subjects. `accounts` no longer count as one person; `joined` do from now on. With
    `removes` the users lose the grants instead.
    """

    action: str
    values: Mapping[str, Any]
    sentence: str
    users: tuple[int, ...] = ()
    grants: tuple[Grant, ...] = ()
    groups: tuple[str, ...] = ()
    owner: bool = False
    accounts: tuple[int, ...] = ()
    joined: tuple[int, ...] = ()
    removes: bool = False


def guard(change: RightsChange, by: Actor) -> None:
    """Raise SecondPersonRequired if the change needs another person's approval."""
    for rights_guard in hooks.rights_guards:
        rights_guard(change, by)


@dataclass(frozen=True)
class ScopeCatalog:
    """The registries and subjects that an actor may know of.

    `registries` lists names of registries; `has_subject` says whether a name pattern matches a subject of a registry
    ("": of any registry).
    """

    registries: Callable[[Actor], Sequence[str]]
    has_subject: Callable[[str, str, Actor], bool]


def refuse_unknown_registry(registry: str, by: Actor) -> None:
    """Raise InvalidInput, which lists the registries, for one that doesn't exist or that `by` can't see."""
    for catalog in hooks.scope_catalogs:
        if registry and registry not in (names := catalog.registries(by)):
            raise InvalidInput(
                f"There is no registry {registry[:60]!r}. {_listed(names)} Leave the registry empty to mean all.",
                field="registry",
            )


def scope_warning(registry: str, subject_pattern: str, by: Actor) -> str:
    """Return a warning if the pattern matches no subject yet, for example one of a future context; else ""."""
    registry, pattern = registry.strip(), subject_pattern.strip() or "*"
    if pattern == "*" or any(catalog.has_subject(registry, pattern, by) for catalog in hooks.scope_catalogs):
        return ""
    return f"The pattern {pattern[:60]!r} fits no subject of {registry or 'any registry'} so far."


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "There is no registry yet."
    return f"The {'registry is' if len(names) == 1 else 'registries are'} {first_few(names, MAX_LISTED)}."
