"""`manage.py messages`: collect the site's texts, and compile their translations."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    """Writes the template catalogue, updates every language's catalogue, and compiles the valid ones."""

    help = "Collect user-visible texts in locale/ and compile the translations."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options to begin a language, or only to check."""
        parser.add_argument(
            "--begin", metavar="LANGUAGE", help="create a catalogue for a language, such as de or pt_BR"
        )
        parser.add_argument("--check", action="store_true", help="write nothing; fail if anything is out of date")

    def handle(self, *args: object, **options: Any) -> None:
        """Print the files written. Raises CommandError for invalid translations, and with --check for stale files."""
        try:
            from dashboard.management import message_catalogue
        except ImportError as error:
            raise CommandError("messages needs Babel, which is one of the development packages") from error
        if options["check"]:
            return self._check()
        message_catalogue.FOLDER.mkdir(exist_ok=True)
        message_catalogue.TEMPLATE.write_text(message_catalogue.template_text())
        self.stdout.write(f"{message_catalogue.TEMPLATE.relative_to(message_catalogue.ROOT)} written")
        if options["begin"]:
            message_catalogue.begin(options["begin"])
        for path in message_catalogue.catalogues():
            message_catalogue.bring_up_to_date(path)
            if problems := message_catalogue.problems(path):
                raise CommandError(f"{path}:\n" + "\n".join(problems))
            path.with_suffix(".mo").write_bytes(message_catalogue.compiled(path))
            self.stdout.write(f"{path.relative_to(message_catalogue.ROOT)} brought up to date and compiled")
        return None

    def _check(self) -> None:
        from dashboard.management import message_catalogue

        stale = message_catalogue.stale()
        if stale:
            raise CommandError("out of date, run manage.py messages:\n" + "\n".join(stale))
