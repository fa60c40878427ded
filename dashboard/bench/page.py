"""The page of measurements: one section a subject, each written by its own command."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "benchmarks.md"
_HEAD: Final = "# Benchmarks\n\nWritten by `manage.py bench SUBJECT --write`, on the machine that each section names.\n"


def write_section(name: str, title: str, text: str, page: Path = PAGE) -> None:
    """Puts a section in its place on the page, or at the end if the page has none of that name."""
    known = page.read_text(encoding="utf-8") if page.exists() else _HEAD
    section = f"<!-- {name} -->\n## {title}\n\n{text.strip()}\n<!-- /{name} -->\n"
    old = re.compile(rf"<!-- {re.escape(name)} -->\n.*?<!-- /{re.escape(name)} -->\n", re.DOTALL)
    changed, count = old.subn(lambda _: section, known, count=1)
    page.write_text(changed if count else f"{known.rstrip()}\n\n{section}", encoding="utf-8")
