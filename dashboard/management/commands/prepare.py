"""`manage.py prepare`: what a fresh database needs besides its tables.

It makes the three registries in their order, and on one's own machine the demo people.
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

#: in the order of promotion; a closed one changes by releases and break-glass, and starts READONLY besides
ENVIRONMENTS = (("dev", False), ("staging", False), ("prod", True))
PEOPLE = ("reader", "steward", "approver", "admin")


def make_registries(*, by: Actor) -> list[str]:
    """Make the registries that are missing and give their names; prod starts READONLY and closed, the mode first."""
    made = []
    for position, (name, closed) in enumerate(ENVIRONMENTS, start=1):
        # All or nothing: a start that is killed in between would leave prod open, and the next one skips what exists.
        with transaction.atomic():
            if not ensure_registry(name=name, by=by):
                continue
            if closed:
                set_mode(registry=name, subject=None, by=by, mode="READONLY")
            ensure_environment(registry_id=get_registry(name).pk, position=position, by=by, is_closed=closed)
        made.append(name)
    return made


def make_people(*, by: Actor) -> dict[str, str]:
    """Make a person a role where missing; gives the passwords of the new ones, this one time."""
    passwords = {name: ensure_person(username=name, role=name, by=by) for name in PEOPLE}
    return {name: password for name, password in passwords.items() if password}


class Command(BaseCommand):
    """Makes the registries that are missing and, under `up` alone, the demo people with their passwords."""

    help = "Create the registries dev, staging and prod, and under `up` an account for each role."

    def handle(self, *args: object, **options: object) -> None:
        """Print what was made; a second run makes and prints nothing."""
        by = system_actor("prepare", "command")
        for name in make_registries(by=by):
            self.stdout.write(f"registry {name} created")
        if not settings.UNDER_UP:
            return
        # The passwords are shown before the accounts exist for good, so that a start that is killed loses none of them.
        with transaction.atomic():
            passwords = make_people(by=by)
            if passwords:
                self.stdout.write("Accounts to sign in with. Their passwords are shown only once:")
            for name, password in passwords.items():
                self.stdout.write(f"  {name:<10}{password}")
            self.stdout.flush()
