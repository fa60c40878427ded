"""What somebody who is refused asks for, and whom."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext

from dashboard.texts import listing
from registry.access.roles import ACTIONS, ADMIN, ROLES, Actor, may_somewhere
from registry.access.selectors import admin_names
from registry.errors import NotAllowed, SchemadeskError

#: admins that are named
SHOWN: Final = 3


def cure_of(error: SchemadeskError, actor: Actor) -> str:
    """What to do about a refusal for want of a role; "" for any other error.

    Admins are named to whoever has a role already, and to nobody else.
    """
    action = error.details.get("action")
    if not isinstance(error, NotAllowed) or actor.user_id is None or actor.past or action not in ACTIONS:
        return ""
    if not may_somewhere(actor, "schema.read"):
        return gettext(
            "Your account has no role yet, so that no page is open to it. Ask an admin to give it one, for a registry or"
            " for some subjects, and load this page again."
        )
    roles = [role for role in ROLES if role in ACTIONS[action] and role != ADMIN] or [ADMIN]
    said = {"names": listing(name[:40] for name in admin_names(SHOWN)), "roles": listing(roles)}
    if not said["names"]:
        return gettext("Ask an admin for a role that may: %(roles)s.") % said
    return gettext("Ask an admin (%(names)s) for a role that may: %(roles)s.") % said
