"""`manage.py issue_token USER NAME`: a token for a program, printed once."""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from registry.access.roles import system_actor
from registry.access.services import issue_token
from registry.errors import SchemadeskError


class Command(BaseCommand):
    """Makes a token; only its hash is kept."""

    help = "Make an API token for a user and print it, this one time."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """USER and NAME."""
        parser.add_argument("user", help="whose rights the token has")
        parser.add_argument("name", help="what the token is for")

    def handle(self, *args: object, **options: str) -> None:
        """Print the token."""
        try:
            token = issue_token(username=options["user"], name=options["name"], by=system_actor("command", "command"))
        except SchemadeskError as error:
            raise CommandError(error.message) from error
        self.stdout.write(token)
