"""Who somebody is, what they may, what they own."""

from registry.access.selectors.actors import (
    actor_of_token,
    actor_of_user,
    admin_names,
    anonymous_actor,
    approval_refusal,
    digest,
    full_admins,
    grants_of,
)
from registry.access.selectors.contacts import Named, people_named
from registry.access.selectors.owners import Owner, Owners, owner_names, owners_of, owners_of_many, patterns_of
from registry.access.selectors.people import (
    GrantInfo,
    GroupInfo,
    OwnershipInfo,
    PersonInfo,
    list_groups,
    list_ownerships,
    list_people,
)
from registry.access.selectors.tokens import TokenInfo, list_tokens

__all__ = [
    "GrantInfo",
    "GroupInfo",
    "Named",
    "Owner",
    "Owners",
    "OwnershipInfo",
    "PersonInfo",
    "TokenInfo",
    "actor_of_token",
    "actor_of_user",
    "admin_names",
    "anonymous_actor",
    "approval_refusal",
    "digest",
    "full_admins",
    "grants_of",
    "list_groups",
    "list_ownerships",
    "list_people",
    "list_tokens",
    "owner_names",
    "owners_of",
    "owners_of_many",
    "patterns_of",
    "people_named",
]
