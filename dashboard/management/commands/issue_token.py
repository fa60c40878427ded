"""`manage.py issue_token USER NAME`: create a token for a program and print it once."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from registry.access.roles import ALL, SCOPE_WORDS, system_actor
from registry.access.services import issue_token
from registry.access.tokens import DEFAULT_DAYS, MAX_DAYS
from registry.errors import SchemadeskError


class Command(BaseCommand):
    """Creates a token; only its hash is stored."""

    help = "Create an API token for a user and print it once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add USER, NAME and the options that limit the token."""
        scopes = "; ".join(f"{name}: {description}" for name, description in SCOPE_WORDS.items())
        parser.add_argument("user", help="the user; the token never has more rights than the user")
        parser.add_argument("name", help="what the token is for")
        parser.add_argument("--scope", default=ALL, choices=list(SCOPE_WORDS), help=f"the token's scope ({scopes})")
        parser.add_argument("--registry", default="", help="the only registry that the token is for (default: all)")
        parser.add_argument(
            "--subjects", default="*", help="a pattern for the subjects that the token is for, such as orders-*"
        )
        parser.add_argument(
            "--days", default=DEFAULT_DAYS, type=int, help=f"how long it is good, at most {MAX_DAYS} (%(default)s)"
        )

    def handle(self, *args: object, **options: Any) -> None:
        """Print the token."""
        try:
            token = issue_token(
                username=options["user"],
                name=options["name"],
                scope=options["scope"],
                registry=options["registry"],
                subject_pattern=options["subjects"],
                days=options["days"],
                by=system_actor("command", "command"),
            )
        except SchemadeskError as error:
            raise CommandError(error.message) from error
        self.stdout.write(token)
