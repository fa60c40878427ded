"""`manage.py prepare`: what a fresh database needs besides its tables."""

from __future__ import annotations

from django.conf import settings
from django.core.management.base import BaseCommand

from dashboard.management.initial_data import make_people, make_registries
from registry.access.roles import system_actor


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
        passwords = make_people(by=by)
        if passwords:
            self.stdout.write("Accounts to sign in with. Their passwords are shown only once:")
        for name, password in passwords.items():
            self.stdout.write(f"  {name:<10}{password}")
