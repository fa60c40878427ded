"""The effective compatibility level and mode of a subject, and where they come from."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, TypeVar

from django.db import connection

from registry.errors import SubjectConfigNotFound, SubjectModeNotFound
from registry.formats.report import Profile
from registry.subjects.models import Config, Mode, Registry
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName

DEFAULT_LEVEL = "BACKWARD"
DEFAULT_MODE = "READWRITE"
#: the mode of every mirror
MIRROR_MODE = "READONLY_OVERRIDE"
NO_POLICY = "none"
#: from the nearest scope to the farthest
ORIGINS = ("subject", "context", "registry", "server default")
_Row = TypeVar("_Row", Config, Mode)
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class OwnConfig:
    """The settings of one scope; None is inherited. The names are those of `services.set_config`."""

    level: str | None = None
    normalize: bool | None = None
    profile: str | None = None
    policy: str | None = None
    compatibility_policy: str | None = None
    compatibility_group: str | None = None
    validate_fields: bool | None = None
    validate_new_schemas: bool | None = None
    validate_rules: bool | None = None
    alias: str | None = None
    alias_for_deks: str | None = None
    default_metadata: dict[str, Any] | None = None
    override_metadata: dict[str, Any] | None = None
    default_rule_set: dict[str, Any] | None = None
    override_rule_set: dict[str, Any] | None = None


#: setting → its column
COLUMNS = {setting.name: setting.name for setting in fields(OwnConfig)} | {"level": "compatibility_level"}
#: settings that only the nearest scope with a config determines, as in Confluent
NEAREST_SCOPE_ONLY = frozenset(
    {"alias", "alias_for_deks", "default_metadata", "override_metadata", "default_rule_set", "override_rule_set"}
)


@dataclass(frozen=True)
class EffectiveConfig:
    """The effective settings, and the scope that sets the level.

    `profile` says whose verdict counts, that of Confluent's rules (`confluent`) or of the data (`semantic`); `policy`
    names rules that apply in addition to the level.
    """

    level: str
    normalize: bool
    origin: str
    profile: Profile = "confluent"
    policy: str = NO_POLICY


@dataclass(frozen=True)
class EffectiveMode:
    """The effective mode, and the scope that sets it."""

    mode: str
    origin: str


#: the configs and modes that apply to a subject, as two JSON lists; also embedded in larger statements, with the
#: parameters of `scope_of`
SPOKEN: Final = ", ".join(
    f"""(SELECT jsonb_agg(to_jsonb(x)) FROM subjects_{kind} x WHERE x.registry_id = %(registry)s::bigint AND (
        x.context_id IS NULL
        OR (x.context_id = (SELECT id FROM named) AND x.subject_name IS NULL)
        OR (x.context_id = (SELECT id FROM named) AND x.subject_name = %(subject)s::text)))"""  # noqa: S608
    for kind in ("config", "mode")
)
#: precedes it in the statement: the context, which may not exist
NAMED: Final = """WITH named AS MATERIALIZED (
    SELECT id FROM subjects_context WHERE registry_id = %(registry)s::bigint AND name = %(context)s::text)"""


@dataclass(frozen=True)
class ScopeSettings:
    """The settings of all scopes that apply to one subject, nearest first, each with its scope's name."""

    configs: Sequence[tuple[str, OwnConfig]]
    modes: Sequence[tuple[str, str]]

    def config(self) -> EffectiveConfig:
        """Return the effective config: each setting from the nearest scope; the level defaults to BACKWARD."""
        return _config_of(self.configs)

    def settings(self) -> OwnConfig:
        """Return all effective settings, None if no scope sets one."""
        return _settings_in_scope([row for _, row in self.configs])

    def own(self, origin: str = ORIGINS[0]) -> OwnConfig | None:
        """Return the settings of one scope, by default the subject's own."""
        return dict(self.configs).get(origin)

    def own_mode(self, origin: str = ORIGINS[0]) -> str | None:
        """Return the mode of one scope, by default the subject's own."""
        return dict(self.modes).get(origin)

    def mode(self, registry: Registry) -> EffectiveMode:
        """Return the effective mode; see `effective_mode`."""
        return EffectiveMode(MIRROR_MODE, "registry") if registry.kind == Registry.REMOTE else _mode_of(self.modes)

    def stored_mode(self, registry: Registry) -> EffectiveMode:
        """Return the effective mode, but for a mirror the one that its remote registry has for the subject or context.

        The mode of a whole mirror is our own, and the remote's isn't stored.
        """
        is_mirror = registry.kind == Registry.REMOTE
        return _mode_of([(origin, mode) for origin, mode in self.modes if not is_mirror or origin != "registry"])

    def inherited(self) -> ScopeSettings:
        """Return what would apply without the subject's own config and mode."""
        configs = [(origin, own) for origin, own in self.configs if origin != ORIGINS[0]]
        return ScopeSettings(configs, [(origin, mode) for origin, mode in self.modes if origin != ORIGINS[0]])


def scope_of(registry: Registry, subject: SubjectName | None) -> dict[str, Any]:
    """Return the parameters of `SPOKEN`; without a subject those of the default context."""
    name = subject or SubjectName(DEFAULT_CONTEXT, "")
    return {"registry": registry.pk, "context": name.context, "subject": name.subject}


def spoken_from(configs: str | None, modes: str | None) -> ScopeSettings:
    """Parse the two columns of `SPOKEN`."""
    return ScopeSettings(
        configs=_nearest_first([(row, _own_of(row)) for row in json.loads(configs or "[]")]),
        modes=_nearest_first([(row, row["mode"]) for row in json.loads(modes or "[]")]),
    )


def _own_of(row: Mapping[str, Any]) -> OwnConfig:
    return OwnConfig(**{name: row[column] for name, column in COLUMNS.items()})


def _nearest_first(rows: list[tuple[Mapping[str, Any], _Value]]) -> list[tuple[str, _Value]]:
    by_origin = [
        (ORIGINS[2 if row["context_id"] is None else 1 if row["subject_name"] is None else 0], value)
        for row, value in rows
    ]
    return sorted(by_origin, key=lambda pair: ORIGINS.index(pair[0]))


def scope_settings(registry: Registry, subject: SubjectName | None) -> ScopeSettings:
    """Return the configs and modes that apply to a subject; one query."""
    with connection.cursor() as cursor:
        cursor.execute(f"{NAMED} SELECT {SPOKEN}", scope_of(registry, subject))
        configs, modes = cursor.fetchone()
    return spoken_from(configs, modes)


def effective_config(registry: Registry, subject: SubjectName | None = None) -> EffectiveConfig:
    """Return the effective config: each setting from the nearest scope that sets it; the level defaults to BACKWARD."""
    return scope_settings(registry, subject).config()


def config_and_settings(registry: Registry, subject: SubjectName | None) -> tuple[EffectiveConfig, OwnConfig]:
    """Return the effective config and all effective settings, None if no scope sets one; one query."""
    spoken = scope_settings(registry, subject)
    return spoken.config(), spoken.settings()


def effective_configs(registry: Registry, subjects: Collection[SubjectName]) -> dict[SubjectName, EffectiveConfig]:
    """Return the effective configs of many subjects, in one query."""
    return {subject: spoken.config() for subject, spoken in scope_settings_for_many(registry, subjects).items()}


def scope_settings_for_many(registry: Registry, subjects: Collection[SubjectName]) -> dict[SubjectName, ScopeSettings]:
    """Return the configs and modes that apply to each of the subjects; one query."""
    spoken = settings_in_scope([registry.pk], subjects)
    return {subject: spoken[registry.pk, subject] for subject in subjects}


#: the configs and modes that apply to any of the subjects in any of the registries
_SPOKEN_IN: Final = " UNION ALL ".join(
    f"""SELECT '{kind}', x.registry_id, c.name, x.subject_name, to_jsonb(x)
    FROM subjects_{kind} x LEFT JOIN subjects_context c ON c.id = x.context_id
    WHERE x.registry_id = ANY(%(registries)s) AND (
        x.subject_name IS NULL AND (x.context_id IS NULL OR c.name = ANY(%(contexts)s))
        OR x.subject_name = ANY(%(subjects)s))"""  # noqa: S608
    for kind in ("config", "mode")
)


def settings_in_scope(
    registries: Collection[int], subjects: Collection[SubjectName]
) -> dict[tuple[int, SubjectName], ScopeSettings]:
    """Return the configs and modes that apply to each subject in each registry, by keys; one query."""
    values: dict[str, list[Any]] = {
        "registries": list(registries),
        "contexts": list({subject.context for subject in subjects}),
        "subjects": list({subject.subject for subject in subjects}),
    }
    with connection.cursor() as cursor:
        cursor.execute(_SPOKEN_IN, values)
        rows = {tuple(scope): json.loads(row) for *scope, row in cursor.fetchall()}

    def scopes(kind: str, pk: int, name: SubjectName) -> Iterator[tuple[str, Any]]:
        places = [(name.context, name.subject), (name.context, None), (None, None)]
        for origin, place in zip(ORIGINS, places, strict=False):
            if (kind, pk, *place) in rows:
                yield origin, rows[kind, pk, *place]

    return {
        (pk, name): ScopeSettings(
            configs=[(origin, _own_of(row)) for origin, row in scopes("config", pk, name)],
            modes=[(origin, row["mode"]) for origin, row in scopes("mode", pk, name)],
        )
        for pk in registries
        for name in subjects
    }


def _config_of(scopes: Sequence[tuple[str, OwnConfig]]) -> EffectiveConfig:
    level, origin = next(((row.level, origin) for origin, row in scopes if row.level), (DEFAULT_LEVEL, ORIGINS[-1]))
    settings = _settings_in_scope([row for _, row in scopes])
    return EffectiveConfig(
        level=level,
        normalize=bool(settings.normalize),
        origin=origin,
        profile="semantic" if settings.profile == "semantic" else "confluent",
        policy=settings.policy or NO_POLICY,
    )


def _settings_in_scope(rows: Sequence[OwnConfig]) -> OwnConfig:
    """Return each setting from the nearest scope that sets it, but those of NEAREST_SCOPE_ONLY from the nearest scope."""
    if not rows:
        return OwnConfig()

    def speak(name: str) -> list[Any]:
        speaking = rows[:1] if name in NEAREST_SCOPE_ONLY else rows
        return [getattr(row, name) for row in speaking]

    return OwnConfig(**{name: next((v for v in speak(name) if v is not None), None) for name in COLUMNS})


def effective_mode(registry: Registry, subject: SubjectName | None = None) -> EffectiveMode:
    """Return the effective mode: subject, context, registry, READWRITE; an outer READONLY_OVERRIDE overrides all.

    A mirror is always READONLY_OVERRIDE, whatever modes are stored.
    """
    if registry.kind == Registry.REMOTE:
        return EffectiveMode(MIRROR_MODE, "registry")
    return scope_settings(registry, subject).mode(registry)


def _mode_of(scopes: Sequence[tuple[str, str]]) -> EffectiveMode:
    for origin, mode in reversed(scopes):
        if mode == MIRROR_MODE:
            return EffectiveMode(mode, origin)
    origin, mode = next(iter(scopes), (ORIGINS[-1], DEFAULT_MODE))
    return EffectiveMode(mode, origin)


def own_config(registry: Registry, subject: SubjectName) -> OwnConfig:
    """Return the settings of the subject, or (empty subject) the context. Raises SubjectConfigNotFound."""
    row = _own(Config, registry, subject)
    if row is None:
        raise SubjectConfigNotFound(
            f"Subject '{subject.qualified}' does not have subject-level compatibility configured",
            subject=subject.qualified,
        )
    return settings_of(row)


def settings_of(row: Config) -> OwnConfig:
    """Return a row's settings."""
    return OwnConfig(**{name: getattr(row, column) for name, column in COLUMNS.items()})


def own_mode(registry: Registry, subject: SubjectName) -> str:
    """Return the mode of the subject or context itself. Raises SubjectModeNotFound."""
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
