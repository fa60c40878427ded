"""What the approver of an environment change relies on: it is stored with the request and compared when they decide.

A change names a group or an account, and what it does depends on who is in the group or what the account has by then. So
the resolved people and rights are stored with the request and named in its sentence, and a request is outdated once they
differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from registry.access.models import GroupGrant, Ownership, RoleGrant, User
from registry.access.permission_filters import place_words
from registry.promotions.models import Environment, EnvironmentChange, SamePerson

Facts = dict[str, list[str]]
_PLACE: Final = ("role", "registry", "subject_pattern")


def facts_of(environment: Environment, action: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """What the change replaces or depends on: settings by field, or lists of people and rights by kind."""
    if action == "change":
        return {field: getattr(environment, field) for field in values}
    return dict(_RESOLVED[action](values)) if action in _RESOLVED else {}


def outdated_reason(change: EnvironmentChange) -> str:
    """Why an open change can't be approved, as a sentence: what it depends on has changed; "" if it can."""
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
    """The sentence of a change with the people and rights that it is about."""
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
    """What the members of these groups may do and own."""
    grants = GroupGrant.objects.filter(group__name__in=groups).order_by("pk").values_list(*_PLACE)
    owned = Ownership.objects.filter(group__name__in=groups).order_by("pk").values_list("registry", "subject_pattern")
    return {"roles": _roles(grants), "ownerships": [place_words(*place) for place in owned]}


def _roles(grants: Any) -> list[str]:
    return [f"{role} for {place_words(registry, pattern)}" for role, registry, pattern in grants]


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
    """What an account that is reactivated may do again."""
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


#: action → what it depends on besides its own arguments
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
