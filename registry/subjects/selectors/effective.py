"""Which compatibility level and which mode count for a subject, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from django.db.models import Q

from registry.errors import SubjectConfigNotFound, SubjectModeNotFound
from registry.subjects.models import Config, Mode, Registry
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName

DEFAULT_LEVEL = "BACKWARD"
DEFAULT_MODE = "READWRITE"
#: from the nearest scope to the farthest
ORIGINS = ("subject", "context", "registry", "server default")
_Row = TypeVar("_Row", Config, Mode)


@dataclass(frozen=True)
class EffectiveConfig:
    """The level that counts, whether schemas are normalized, and the scope that says the level."""

    level: str
    normalize: bool
    origin: str


@dataclass(frozen=True)
class EffectiveMode:
    """The mode that counts, and the scope that says it."""

    mode: str
    origin: str


@dataclass(frozen=True)
class OwnConfig:
    """What one scope itself sets; None is inherited."""

    level: str | None
    normalize: bool | None


def effective_config(registry: Registry, subject: SubjectName | None = None) -> EffectiveConfig:
    """Subject before context before registry before BACKWARD, each setting by itself."""
    scopes = scoped_rows(Config, registry, subject)
    level, origin = next(
        ((row.compatibility_level, origin) for origin, row in scopes if row.compatibility_level),
        (DEFAULT_LEVEL, ORIGINS[-1]),
    )
    normalize = next((row.normalize for _, row in scopes if row.normalize is not None), False)
    return EffectiveConfig(level=level, normalize=normalize, origin=origin)


def effective_mode(registry: Registry, subject: SubjectName | None = None) -> EffectiveMode:
    """Subject before context before registry before READWRITE; a READONLY_OVERRIDE farther out wins over them all."""
    scopes = scoped_rows(Mode, registry, subject)
    for origin, row in reversed(scopes):
        if row.mode == "READONLY_OVERRIDE":
            return EffectiveMode(row.mode, origin)
    origin, mode = next(((origin, row.mode) for origin, row in scopes), (ORIGINS[-1], DEFAULT_MODE))
    return EffectiveMode(mode, origin)


def own_config(registry: Registry, subject: SubjectName) -> OwnConfig:
    """What the subject (or, with an empty subject, the context) sets itself. Raises SubjectConfigNotFound."""
    row = _own(Config, registry, subject)
    if row is None:
        raise SubjectConfigNotFound(
            f"Subject '{subject.qualified}' does not have subject-level compatibility configured",
            subject=subject.qualified,
        )
    return OwnConfig(row.compatibility_level, row.normalize)


def own_mode(registry: Registry, subject: SubjectName) -> str:
    """The mode that the subject (or context) sets itself. Raises SubjectModeNotFound."""
    row = _own(Mode, registry, subject)
    if row is None:
        raise SubjectModeNotFound(
            f"Subject '{subject.qualified}' does not have subject-level mode configured", subject=subject.qualified
        )
    return row.mode


def _own(model: type[_Row], registry: Registry, subject: SubjectName) -> _Row | None:
    return model.objects.filter(
        registry=registry, context__name=subject.context, subject_name=subject.subject or None
    ).first()


def scoped_rows(model: type[_Row], registry: Registry, subject: SubjectName | None) -> list[tuple[str, _Row]]:
    """The rows that may speak for a subject, nearest scope first, in one query."""
    context = subject.context if subject else DEFAULT_CONTEXT
    scope = Q(context=None) | Q(context__name=context, subject_name=None)
    if subject and subject.subject:
        scope |= Q(context__name=context, subject_name=subject.subject)
    rows = model.objects.filter(scope, registry=registry)
    origins = [
        ("registry" if row.context_id is None else "context" if row.subject_name is None else "subject", row)
        for row in rows
    ]
    return sorted(origins, key=lambda pair: ORIGINS.index(pair[0]))
