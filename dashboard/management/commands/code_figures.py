"""`manage.py code_figures`: the size, the names and the structure of the code, beside their limits and goals."""

from __future__ import annotations

import sys

from django.conf import settings
from django.core.management.base import BaseCommand

from dashboard.management.code_figures import LIMITS, measure


class Command(BaseCommand):
    """Prints each figure and ends with 1 if one is over its limit."""

    help = "Print code metrics with their limits and goals."
    requires_system_checks: list[str] = []

    def handle(self, *args: object, **options: object) -> None:
        """Print a line for each figure: its state, its value, its limit, its goal."""
        figures = measure(settings.BASE_DIR)
        for name, value in figures.items():
            limit = LIMITS[name]
            state = "OVER" if value > limit.limit else "open" if value > limit.goal else "ok"
            self.stdout.write(f"{state:4} {name}: {value:,} (limit {limit.limit:,}, goal {limit.goal:,})")
        if any(value > LIMITS[name].limit for name, value in figures.items()):
            sys.exit(1)
