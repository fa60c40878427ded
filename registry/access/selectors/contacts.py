"""Whom a text names as somebody to talk to: people by their names or addresses of mail, and the members of groups."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Lower

from registry.access.models import User


@dataclass(frozen=True, order=True)
class Named:
    """An active person whom a contact names."""

    username: str
    user_id: int


def people_named(contacts: Iterable[str]) -> dict[str, tuple[Named, ...]]:
    """Contact → the active people whom it names, those known by the issuer where there is one; two queries.

    A contact may name several, with commas between them: an account, an address of mail, or a group, whatever their case.
    What isn't known here, such as a channel of a chat, names nobody.
    """
    keys = {contact: _keys(contact) for contact in contacts}
    wanted = sorted({key for found in keys.values() for key in found})
    if not wanted:
        return dict.fromkeys(keys, ())
    active = User.objects.filter(is_active=True)
    if settings.OIDC_ISSUER:
        active = active.filter(socialaccount__isnull=False)
    people: dict[str, set[Named]] = {}
    own = active.alias(name=Lower("username"), mail=Lower("email")).filter(Q(name__in=wanted) | Q(mail__in=wanted))
    for number, username, email in own.values_list("pk", "username", "email").distinct():
        for key in (username.lower(), email.lower()):
            people.setdefault(key, set()).add(Named(username, number))
    members = active.annotate(group_key=Lower("groups__name")).filter(group_key__in=wanted)
    for key, number, username in members.values_list("group_key", "pk", "username"):
        people.setdefault(key, set()).add(Named(username, number))
    return {
        contact: tuple(sorted({one for key in found for one in people.get(key, ())})) for contact, found in keys.items()
    }


def _keys(contact: str) -> set[str]:
    """What it may name, in small letters; what can't be a name is left out."""
    parts = (part.strip().lower() for part in re.split("[,;]", contact))
    found = {part.removeprefix("mailto:").removeprefix("@").strip() for part in parts}
    return {part for part in found if part and part.isprintable()}
