"""`manage.py prepare`: create what a fresh database needs besides its tables.

These are the three registries in their order, and under `up` the demo accounts.
"""

from __future__ import annotations

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import transaction

from registry.access.roles import Actor, system_actor
from registry.access.services import ensure_person
from registry.promotions.services import ensure_environment
from registry.subjects.services import ensure_registry, set_mode
from registry.subjects.versions.lookup import get_registry

#: in promotion order; a closed one changes by releases and break-glass, and also starts as READONLY
ENVIRONMENTS = (("dev", False), ("staging", False), ("prod", True))
PEOPLE = ("reader", "steward", "approver", "admin")


def make_registries(*, by: Actor) -> list[str]:
    """Create the missing registries and return their names; prod starts as READONLY and closed."""
    made = []
    for position, (name, closed) in enumerate(ENVIRONMENTS, start=1):
        # In one transaction: a start killed in between would leave prod open, and the next skips existing ones.
        with transaction.atomic():
            if not ensure_registry(name=name, by=by):
                continue
            if closed:
                set_mode(registry=name, subject=None, by=by, mode="READONLY")
            ensure_environment(registry_id=get_registry(name).pk, position=position, by=by, is_closed=closed)
        made.append(name)
    return made


def make_people(*, by: Actor) -> dict[str, str]:
    """Create missing accounts, one per role; return the passwords of new ones, this one time."""
    passwords = {name: ensure_person(username=name, role=name, by=by) for name in PEOPLE}
    return {name: password for name, password in passwords.items() if password}


class Command(BaseCommand):
    """Creates the missing registries and, only under `up`, the demo accounts."""

    help = "Create the registries dev, staging and prod, and under `up` an account for each role."

    def handle(self, *args: object, **options: object) -> None:
        """Print what was created; a second run creates and prints nothing."""
        by = system_actor("prepare", "command")
        for name in make_registries(by=by):
            self.stdout.write(f"registry {name} created")
        if not settings.UNDER_UP:
            return
        # The passwords are printed before the commit, so that a killed start loses none of them.
        with transaction.atomic():
            passwords = make_people(by=by)
            if passwords:
                self.stdout.write("Accounts to sign in with. Their passwords are shown only once:")
            for name, password in passwords.items():
                self.stdout.write(f"  {name:<10}{password}")
            self.stdout.flush()
