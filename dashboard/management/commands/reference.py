"""`manage.py reference`: print the reference pages from the tables."""

from __future__ import annotations

from django.core.management.base import BaseCommand

from dashboard.management.reference_docs import stale_pages


class Command(BaseCommand):
    """Writes what has changed and names it."""

    help = "Write the generated documentation from the tables and lock files that the code uses."
    requires_system_checks: list[str] = []

    def handle(self, *args: object, **options: object) -> None:
        """Name the pages that were written."""
        for name in stale_pages(write=True):
            self.stdout.write(f"{name} written")
