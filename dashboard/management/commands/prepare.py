"""`manage.py prepare`: create what a fresh database needs besides its tables.

These are the three registries in their order, and under `up` the demo accounts.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from registry.access.account_names import checked_username
from registry.access.models import RoleGrant
from registry.access.roles import ADMIN, Actor, system_actor
from registry.access.services import ensure_person
from registry.errors import SchemadeskError, WrongState
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


def make_admin(name: str, *, by: Actor) -> str:
    """Create the first admin and return the password. Raises WrongState if there is one, InvalidInput for the name."""
    if RoleGrant.objects.filter(role=ADMIN, registry="", subject_pattern="*").exists():
        raise WrongState("There is an admin already. Admins create accounts on the page People and groups.")
    password = ensure_person(username=checked_username(name), role=ADMIN, by=by)
    if password is None:
        raise WrongState(f"An account called {name} exists already. Choose another name.")
    return password


class Command(BaseCommand):
    """Creates the missing registries and, only under `up`, the demo accounts."""

    help = "Create the registries dev, staging and prod, and under `up` an account for each role."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add --admin."""
        parser.add_argument("--admin", metavar="NAME", help="also create the first admin, and print the password once")

    def handle(self, *args: object, **options: Any) -> None:
        """Print what was created; a second run creates and prints nothing. Raises CommandError for a second admin."""
        by = system_actor("prepare", "command")
        for name in make_registries(by=by):
            self.stdout.write(f"registry {name} created")
        if options["admin"]:
            self._make_admin(options["admin"], by)
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

    def _make_admin(self, name: str, by: Actor) -> None:
        try:
            with transaction.atomic():
                password = make_admin(name, by=by)
                self.stdout.write(f"The admin {checked_username(name)} signs in with {password} (shown only once).")
                self.stdout.flush()
        except SchemadeskError as error:
            raise CommandError(error.message) from error
