"""How compatibility levels and modes of a registry changed, as the audit has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from registry.audit.models import AuditEvent
from registry.drift.judge.reading import milliseconds
from registry.subjects.models import Context, Registry
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName

Setting = Literal["level", "mode"]
#: table → what it sets, and the column that holds it
_TABLES: Final[Mapping[str, tuple[Setting, str]]] = {
    "subjects_config": ("level", "compatibility_level"),
    "subjects_mode": ("mode", "mode"),
}
MAX_CHANGES: Final = 5_000


@dataclass(frozen=True)
class SettingChange:
    """A level or mode that was set, changed or removed (None: inherited); `subject` is empty for a wider scope.

    `scope` is in words: `the registry`, `context .eu`, `subject orders-value`.
    """

    at: int
    setting: Setting
    context: str | None
    subject: str
    before: str | None
    after: str | None
    by: str
    door: str

    @property
    def scope(self) -> str:
        """Whose setting it is, in words."""
        return scope_words(self.context, self.subject)

    @property
    def qualified(self) -> str:
        """The qualified subject, empty for a wider scope."""
        return SubjectName(self.context or DEFAULT_CONTEXT, self.subject).qualified if self.subject else ""


def scope_words(context: str | None, subject: str) -> str:
    """A scope in words."""
    if subject:
        return f"subject {SubjectName(context or DEFAULT_CONTEXT, subject).qualified}"
    return f"context {context}" if context is not None else "the registry"


def setting_changes(registry: Registry, since: datetime) -> list[SettingChange]:
    """Changes of levels and modes since then, the oldest first, at most MAX_CHANGES of the newest; two queries."""
    contexts = dict(Context.objects.filter(registry=registry).values_list("pk", "name"))
    rows = AuditEvent.objects.filter(table__in=_TABLES, at__gte=since).order_by("-id")
    changes = []
    for row in rows.values("at", "actor", "door", "table", "before", "after")[:MAX_CHANGES]:
        change = _change(row, registry.pk, contexts)
        if change is not None:
            changes.append(change)
    return changes[::-1]


def _change(row: Mapping[str, Any], registry: int, contexts: Mapping[int, str]) -> SettingChange | None:
    setting, column = _TABLES[row["table"]]
    before, after = row["before"] or {}, row["after"] or {}
    scope = after or before
    if scope.get("registry_id") != registry or before.get(column) == after.get(column):
        return None
    return SettingChange(
        at=milliseconds(row["at"]),
        setting=setting,
        context=contexts.get(scope.get("context_id") or 0),
        subject=scope.get("subject_name") or "",
        before=before.get(column),
        after=after.get(column),
        by=row["actor"],
        door=row["door"],
    )
