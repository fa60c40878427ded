"""Guards closed environments: they change by releases, by break-glass, or with the approval of a second person.

Every service that could loosen one calls `require_second_person`. The same service makes an approved change: within
`passing(environment)` it is allowed, and its number is in the audit. A change of rules loosens if it would let a
request be approved or applied that couldn't be before; a table over the fields says which changes do.

A change names a group or an account, and what it does depends on who is in the group or what the account has at that
time. So the resolved people and rights are stored with its request and named in its sentence, and it is outdated once
they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from django.db import connection
from django.db.models import F, QuerySet
from django.utils import timezone

from registry.access.models import GroupGrant, Ownership, RoleGrant, User
from registry.access.permission_filters import describe_scope
from registry.access.roles import ACTION_WORDS, Actor, may
from registry.audit.context import record, recorded
from registry.errors import ReleaseRequired, SecondPersonRequired
from registry.notifications.services import notify
from registry.promotions.models import BreakGlass, Environment, EnvironmentChange, SamePerson
from registry.promotions.models.environments import SETTINGS
from registry.subjects.models import Registry
from registry.subjects.usage.clients import clients_of
from registry.subjects.versions.qualified_names import parse_subject

MIRROR_CHANNEL: Final = "task"
CLOSED: Final = "EXISTS (SELECT FROM promotions_environment WHERE registry_id = %(registry)s::bigint AND is_closed)"


def guard_closed_environment(action: str, registry: Registry, subject: str, by: Actor) -> bool:
    """Return whether the change may ignore READONLY: yes in a closed environment with break-glass, no in an open one.

    Break-glass ends by itself, whereas a changed mode would leave the environment writable. Raises ReleaseRequired in a
    closed environment without break-glass.
    """
    if _is_mirroring(registry, by) or not _is_closed(registry):
        return False
    if not use_break_glass(action, registry, subject, by):
        raise ReleaseRequired(closed_refusal(action, registry, subject), registry=registry.name, action=action)
    return True


def guard_result(registry: Registry, by: Actor) -> tuple[bool, bool]:
    """Return whether `guard_closed_environment` would refuse this person, and whether it would let them ignore READONLY.

    Has no side effects: it is for showing in advance what would be refused.
    """
    if _is_mirroring(registry, by) or not _is_closed(registry):
        return False, False
    has_glass = _glass_of(registry, by).exists()
    return not has_glass, has_glass


def keep_clients(registry: Registry, action: str, values: Mapping[str, Any], sentence: str, by: Actor) -> None:
    """Raise SecondPersonRequired for another's client, if affected clients block the closed environment."""
    rows = Environment.objects.filter(registry=registry, is_closed=True, clients_block=True)
    environment = rows.select_related("registry").select_for_update(of=("self",)).first()
    if environment is not None:
        require_second_person(environment, by, sentence, action, values)


def _is_closed(registry: Registry) -> bool:
    """Return whether it is a closed environment."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {CLOSED}", {"registry": registry.pk})
        (exists,) = cursor.fetchone()
    return bool(exists)


def _glass_of(registry: Registry, by: Actor) -> QuerySet[BreakGlass]:
    """Return the person's open break-glass; none without the right to it."""
    if by.user_id is None or not may(by, "registry.manage", registry=registry.name):
        return BreakGlass.objects.none()
    return BreakGlass.objects.filter(
        environment__registry=registry, opened_by_id=by.user_id, ends_at__gt=timezone.now()
    )


def _is_mirroring(registry: Registry, by: Actor) -> bool:
    """Return whether the product itself updates the mirror of a remote; no person uses that channel."""
    return registry.kind == Registry.REMOTE and by.channel == MIRROR_CHANNEL and by.user_id is None


def use_break_glass(action: str, registry: Registry, subject: str, by: Actor) -> bool:
    """Use the person's open break-glass, if there is one; its row is locked, so that it isn't closed meanwhile."""
    glass = _glass_of(registry, by).select_for_update(of=("self",)).first()
    if glass is None:
        return False
    reason = f"break-glass {glass.pk}: {glass.reason}"
    doing = recorded().removeprefix(f"{reason}; ")
    record(by=by, why=f"{reason}; {doing}" if doing else reason)
    BreakGlass.objects.filter(pk=glass.pk).update(uses=F("uses") + 1)
    notify(
        event="breakglass.used",
        registry=registry.name,
        subject=subject,
        text=f"{by.name} used break-glass {glass.pk} to {ACTION_WORDS[action]} in {registry.name}: {doing}."
        f" Its reason: {glass.reason}",
        url=f"/ui/environments/{registry.name}",
        data={"break_glass": glass.pk, "action": action, "by": by.name},
        by=by.user_id,
    )
    return True


def closed_refusal(action: str, registry: Registry, subject: str) -> str:
    """Return the refusal of a direct change of a closed environment, as a sentence."""
    query = urlencode({"target": registry.name} | ({"subject": subject} if subject else {}))
    return (
        f"Registry {registry.name} is a closed environment. Only a release can {ACTION_WORDS[action]}"
        f" there. Request a promotion at /ui/promotions/request?{query}, or ask an admin to open"
        f" break-glass at /ui/environments/{registry.name}."
    )


MANAGE: Final = "registry.manage"
#: prefix of the audit's reason for everything that loosens a closed environment
LOOSENS: Final = "LOOSENS A CLOSED ENVIRONMENT"
#: what follows it if an admin adds the first other reviewer alone
FIRST_REVIEWER: Final = "the first other reviewer of"


@dataclass
class ApprovedChange:
    """An approved change, or a trial of one, in one environment; `loosenings` are the changes that needed it.

    `requester` and `approver` are accounts; a trial has no approver.
    """

    environment: Environment
    why: str
    requester: int
    approver: int | None
    loosenings: list[str] = field(default_factory=list)


_PASSAGE: ContextVar[ApprovedChange | None] = ContextVar("passage", default=None)


def current_passage() -> ApprovedChange | None:
    """Return the approved change that is being made, or tried out."""
    return _PASSAGE.get()


@contextmanager
def passing(
    environment: Environment, why: str, *, requester: int, approver: int | None = None
) -> Iterator[ApprovedChange]:
    """Allow changes that loosen this environment within the block; `why` precedes each reason in the audit."""
    passage = ApprovedChange(environment, why, requester, approver)
    token = _PASSAGE.set(passage)
    try:
        yield passage
    finally:
        _PASSAGE.reset(token)


def require_second_person(
    environment: Environment, by: Actor, sentence: str, action: str, values: Mapping[str, Any]
) -> None:
    """Allow a change that loosens a closed environment, or raise SecondPersonRequired.

    An approved change is allowed, and one with the person's open break-glass. Call it in the change's transaction after
    `record` and before the first write, with the environment's row locked. `action` and `values` are the service and
    its arguments, with which another person's approval can be requested.
    """
    name, doing = environment.registry.name, recorded()
    passage = _PASSAGE.get()
    if passage is not None and passage.environment.pk == environment.pk:
        passage.loosenings.append(sentence)
        record(by=by, why=f"{LOOSENS}: {passage.why}; {doing}")
        return
    if use_break_glass(MANAGE, environment.registry, "", by):
        record(by=by, why=f"{LOOSENS}: {recorded()}")
        tell_loosened(environment, f"{by.name} used break-glass to {sentence}.", by=by)
        return
    raise SecondPersonRequired(
        f"{name} is closed, and this change loosens its rules: {sentence}. It needs approval from another"
        f" reviewer of {name}. Request it on /ui/environments/{name} or with POST"
        f" /api/v1/environments/{name}/changes, or open break-glass.",
        environment=name,
        action=action,
        values=dict(values),
        sentence=sentence,
    )


def tell_loosened(environment: Environment, sentence: str, *, by: Actor, **data: Any) -> None:
    """Notify the reviewers of an environment that its rules are looser now."""
    name = environment.registry.name
    notify(
        event="environment.loosened",
        registry=name,
        subject="",
        text=f"The rules of the closed environment {name} were loosened. {sentence}",
        url=f"/ui/environments/{name}",
        data={"by": by.name, **data},
        by=by.user_id,
    )


def loosened(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the settings of `after` that loosen what `before` has, in order. Raises KeyError for another field."""
    return tuple(field for field, value in after.items() if SETTINGS[field].loosens(before[field], value))


#: the services of another's declared client
CLIENT_ACTIONS: Final = frozenset({"declare_client", "withdraw_client"})
Facts = dict[str, list[str]]
_PLACE: Final = ("role", "registry", "subject_pattern")


def facts_of(environment: Environment, action: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the change replaces or depends on: settings by field, or lists of people and rights by kind."""
    if action == "change":
        return {field: getattr(environment, field) for field in values}
    if action in CLIENT_ACTIONS:
        present = "present " if action == "declare_client" else ""
        return {f"{present}{kind}": names for kind, names in _of_client(environment.registry, values).items()}
    return dict(_RESOLVED[action](values)) if action in _RESOLVED else {}


def outdated_reason(change: EnvironmentChange) -> str:
    """Return why an open change can't be approved, as a sentence: what it depends on changed; "" if it can."""
    if change.state != EnvironmentChange.OPEN:
        return ""
    now = facts_of(change.environment, change.action, change.values)
    if now == change.before:
        return ""
    if change.action == "change":
        return "The settings have changed since this was requested."
    differences = [
        f"{kind}: {_difference(change.before.get(kind, []), now.get(kind, []))}"
        for kind in sorted({*change.before, *now})
        if change.before.get(kind, []) != now.get(kind, [])
    ]
    return f"What this depends on has changed since it was requested ({'; '.join(differences)})."


def with_facts(sentence: str, action: str, facts: Mapping[str, Any]) -> str:
    """Return the sentence of a change with the people and rights that it is about."""
    if action == "change" or not facts:
        return sentence
    named = "; ".join(f"{kind}: {', '.join(names) or 'none'}" for kind, names in facts.items())
    return f"{sentence} ({named})"


def _difference(before: Sequence[str], now: Sequence[str]) -> str:
    added = [f"{name} was added" for name in now if name not in before]
    return ", ".join([*added, *(f"{name} was removed" for name in before if name not in now)])


def _members(name: str) -> Facts:
    return {
        "members": list(User.objects.filter(groups__name=name).order_by("username").values_list("username", flat=True))
    }


def _given_by(groups: Sequence[str]) -> Facts:
    """Return the roles and ownerships that these groups give their members."""
    grants = GroupGrant.objects.filter(group__name__in=groups).order_by("pk").values_list(*_PLACE)
    owned = Ownership.objects.filter(group__name__in=groups).order_by("pk").values_list("registry", "subject_pattern")
    return {"roles": _roles(grants), "ownerships": [describe_scope(*place) for place in owned]}


def _roles(grants: Any) -> list[str]:
    return [f"{role} for {describe_scope(registry, pattern)}" for role, registry, pattern in grants]


def _of_group(values: Mapping[str, Any]) -> Facts:
    return _members(values["group"]) if values.get("group") else {}


def _of_group_grant(values: Mapping[str, Any]) -> Facts:
    grant = GroupGrant.objects.filter(pk=values["grant_id"]).select_related("group").first()
    return _members(grant.group.name) if grant else {}


def _of_membership(values: Mapping[str, Any]) -> Facts:
    return _given_by([values["group"]])


def _of_removed_group(values: Mapping[str, Any]) -> Facts:
    name = values["name"]
    return _members(name) | _given_by([name])


def _of_account(values: Mapping[str, Any]) -> Facts:
    """Return the groups, roles and ownerships that a reactivated account would have again."""
    user = User.objects.filter(username=values["username"]).first()
    if user is None:
        return {}
    groups = list(user.groups.order_by("name").values_list("name", flat=True))
    through, own = _given_by(groups), RoleGrant.objects.filter(user=user).order_by("pk").values_list(*_PLACE)
    return {"groups": groups, **through, "roles": [*_roles(own), *through["roles"]]}


def _of_address(values: Mapping[str, Any]) -> Facts:
    rows = User.objects.filter(username=values["username"]).values_list("email", flat=True)
    return {"present address": [address for address in rows if address]}


def _of_link(values: Mapping[str, Any]) -> Facts:
    rows = SamePerson.objects.filter(pk=values["statement_id"]).values_list("reason", flat=True)
    return {"reason of the link": list(rows)}


def _of_client(registry: Registry, values: Mapping[str, Any]) -> Facts:
    clients = clients_of(registry, parse_subject(values["subject"]))
    client = next((one for one in clients if one.name == values["name"]), None)
    if client is None:
        return {}
    return {"declaration": [client.declaration], "contact": [client.contact] if client.contact else []}


#: action → what it depends on in addition to its own arguments
_RESOLVED: Final[Mapping[str, Callable[[Mapping[str, Any]], Facts]]] = {
    "grant_to_group": _of_group,
    "add_owner": _of_group,
    "add_member": _of_membership,
    "remove_member": _of_membership,
    "remove_group": _of_removed_group,
    "remove_group_grant": _of_group_grant,
    "set_active": _of_account,
    "set_email": _of_address,
    "withdraw_same_person": _of_link,
}
