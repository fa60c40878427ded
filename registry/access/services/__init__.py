"""Every change of people, groups, owners and tokens; each stands in the audit with who made it."""

from registry.access.services.groups import (
    add_member,
    add_owner,
    grant_to_group,
    make_group,
    remove_group,
    remove_group_grant,
    remove_member,
    remove_owner,
)
from registry.access.services.people import add_person, ensure_person, grant, revoke_grant, set_active, set_email
from registry.access.services.tokens import IssuedToken, issue_token, make_token, revoke_token

__all__ = [
    "IssuedToken",
    "add_member",
    "add_owner",
    "add_person",
    "ensure_person",
    "grant",
    "grant_to_group",
    "issue_token",
    "make_group",
    "make_token",
    "remove_group",
    "remove_group_grant",
    "remove_member",
    "remove_owner",
    "revoke_grant",
    "revoke_token",
    "set_active",
    "set_email",
]
