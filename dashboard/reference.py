"""The reference pages, printed from the tables that the code runs on, so that they can't part from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from django.conf import settings

from registry.access.roles import ACTION_WORDS, ACTIONS, ROLES
from registry.api.confluent.errors import CODES
from registry.drift.rules import RULES as DRIFT_RULES
from registry.formats.avro.difference_rules import DIFFERENCE_RULES
from registry.formats.avro.rules import RULES as AVRO_RULES
from registry.formats.compatibility import LEVELS

FOLDER = Path(settings.BASE_DIR) / "docs" / "reference"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    def line(cells: Sequence[object]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |\n"

    return line(head) + "|" + "---|" * len(head) + "\n" + "".join(line(row) for row in rows)


def _levels() -> str:
    rows = [(f"`{level.name}`", level.description, level.scope, level.upgrade_order) for level in LEVELS.values()]
    return "# Compatibility levels\n\n" + _table(("level", "what holds", "versions asked", "upgrade order"), rows)


def _avro() -> str:
    breaks = [
        (f"`{r.id}`", r.severity, f"`{r.kind}`" if r.kind else "", r.why, r.in_reader) for r in AVRO_RULES.values()
    ]
    changes = [(f"`{r.id}`", r.kind, r.sentence) for r in DIFFERENCE_RULES.values()]
    return (
        "# Avro: what breaks, and what is told as a change\n\n## Problems of reading\n\n"
        + _table(("rule", "severity", "name in `SchemaCompatibility`", "why", "cure in the reader"), breaks)
        + "\n## Differences\n\n"
        + _table(("rule", "kind", "sentence"), changes)
    )


def _drift() -> str:
    rows = [(f"`{rule.id}`", rule.severity, rule.sentence, rule.remedy) for rule in DRIFT_RULES.values()]
    return (
        "# Drift: the rules\n\n`break`: data is lost or unreadable now. `risk`: it will be, or it may already be in"
        " silence. `notice`: somebody should know.\n\n" + _table(("rule", "severity", "finding", "what to do"), rows)
    )


def _roles() -> str:
    rows = [
        (ACTION_WORDS[action], *("yes" if role in roles else "" for role in ROLES)) for action, roles in ACTIONS.items()
    ]
    return "# Who may do what\n\n" + _table(("to …", *ROLES), rows)


def _errors() -> str:
    rows = [(code, str(code)[:3], (kind.__doc__ or "").split("\n")[0]) for kind, code in CODES.items()]
    return (
        "# Error codes of the Confluent-compatible API\n\nAn incompatible schema is 409 with `error_code` 409"
        " (`INCOMPATIBLE_ERROR_CODE` sets another).\n\n" + _table(("error_code", "status", "when"), sorted(set(rows)))
    )


PAGES: dict[str, Callable[[], str]] = {
    "levels.md": _levels,
    "avro.md": _avro,
    "drift.md": _drift,
    "roles.md": _roles,
    "error-codes.md": _errors,
}


def stale_pages(*, write: bool) -> list[str]:
    """Names of the pages that differ from the tables; with `write` they are brought up to date."""
    stale = []
    for name, make in PAGES.items():
        path, text = FOLDER / name, f"<!-- printed by `manage.py reference`; don't edit -->\n{make()}"
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if write:
                path.write_text(text)
    return stale
