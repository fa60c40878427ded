"""Setting and unsetting compatibility levels and modes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from django.conf import settings as site
from django.db.models import Q

from registry.access.roles import Actor, require
from registry.audit.context import record
from registry.errors import InvalidCompatibility, InvalidInput, InvalidMode, OperationNotPermitted
from registry.subjects.events import CONFIG, MODE, changed, tell_of_setting
from registry.subjects.lifecycle.deletion import refuse_referenced, remove_versions
from registry.subjects.models import (
    FORWARD,
    LEVELS,
    MODES,
    POLICIES,
    PROFILES,
    Config,
    Context,
    Mode,
    Registry,
    SchemaVersion,
    Subject,
)
from registry.subjects.policy import change_guard
from registry.subjects.policy.data_contracts import read_metadata, read_rule_set
from registry.subjects.policy.effective_policy import (
    COLUMNS,
    OwnConfig,
    effective_mode,
    own_config,
    own_mode,
    settings_of,
)
from registry.subjects.registration.locks import lock_context, lock_policy, retried
from registry.subjects.versions.lookup import find_context, get_registry
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName, parse_subject

IMPORT = "IMPORT"
COMPATIBILITY_POLICIES = ("STRICT", "LENIENT", "LOGICAL")


def _boolean(setting: str) -> Callable[[Any], bool]:
    def read(value: Any) -> bool:
        if not isinstance(value, bool):
            raise InvalidInput(f"/{setting} must be true or false.", setting=setting)
        return value

    return read


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInput("The setting must be a string.")
    return value


def _alias(value: Any) -> str:
    """Check that it is a subject's name, or empty for no alias."""
    parse_subject(_text(value))
    return str(value)


def _one_of(setting: str, value: Any, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise InvalidInput(
            f"{str(value)[:40]!r} is not a valid {setting}: use one of {', '.join(choices)}.", setting=setting
        )
    return str(value)


def parse_level(text: str) -> str:
    """Return the level's name in capitals. Raises InvalidCompatibility, which lists the seven."""
    level = text.upper() if isinstance(text, str) else ""
    if level not in LEVELS:
        raise InvalidCompatibility(
            "Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive,"
            " forward_transitive, and full_transitive",
            level=str(text)[:40],
        )
    return level


#: setting → the function that converts a given value to the stored one, or raises
_READERS: dict[str, Callable[[Any], Any]] = {
    "level": parse_level,
    "normalize": _boolean("normalize"),
    "profile": lambda value: _one_of("profile", value, PROFILES),
    "policy": lambda value: _one_of("policy", value, POLICIES),
    "compatibility_policy": lambda value: _one_of("compatibilityPolicy", _text(value).upper(), COMPATIBILITY_POLICIES),
    "compatibility_group": _text,
    "validate_fields": _boolean("validateFields"),
    "validate_new_schemas": _boolean("validateNewSchemas"),
    "validate_rules": _boolean("validateRules"),
    "alias": _alias,
    "alias_for_deks": _alias,
    "default_metadata": lambda value: read_metadata(value, "defaultMetadata"),
    "override_metadata": lambda value: read_metadata(value, "overrideMetadata"),
    "default_rule_set": lambda value: read_rule_set(value, "defaultRuleSet"),
    "override_rule_set": lambda value: read_rule_set(value, "overrideRuleSet"),
}


@retried
def set_config(
    *,
    registry: str,
    subject: SubjectName | None,
    by: Actor,
    unset: Collection[str] = (),
    release: bool = False,
    **settings: Any,
) -> OwnConfig:
    """Set the config of a registry (no subject), a context (empty subject) or a subject.

    `settings` are those of OwnConfig: None or a missing one stays as it is, one in `unset` is inherited again. Only an
    approved promotion sets `release`: it passes READONLY, but not READONLY_OVERRIDE. Raises InvalidCompatibility,
    InvalidInput, InvalidRuleSet, InvalidName, OperationNotPermitted, ReleaseRequired, NotAllowed.
    """
    columns = columns_of(settings, unset)
    registry_row, context, passes = _begin(registry, subject, by, "config.change", "set compatibility", release=release)
    _refuse_readonly(registry_row, subject, passes=passes)
    before, after = _store(registry_row, context, subject, columns)
    _tell_of_config(registry_row, subject, before, after, by)
    return after


_Row = TypeVar("_Row", Config, Mode)


def bring_settings(
    registry: Registry, model: type[_Row], columns_by_scope: Mapping[SubjectName | None, Mapping[str, Any]]
) -> None:
    """Copy columns of many scopes from another registry, in any mode; the caller holds the registry's exclusive lock.

    A row that sets nothing is deleted. The number of queries grows with the contexts and changed rows, not with the
    scopes.
    """
    contexts = {name: lock_context(registry, name) for name in {scope.context for scope in columns_by_scope if scope}}
    places = {
        scope: (contexts[scope.context].pk if scope else None, _subject_name(scope)) for scope in columns_by_scope
    }
    named = Q(subject_name__in={name for _, name in places.values()}) | Q(subject_name=None)
    rows = {(row.context_id, row.subject_name): row for row in model.objects.filter(named, registry=registry)}
    added, gone = list[_Row](), []
    for scope, columns in columns_by_scope.items():
        context_id, name = places[scope]
        row = rows.get(places[scope]) or model(registry=registry, context_id=context_id, subject_name=name)
        for column, value in columns.items():
            setattr(row, column, value)
        is_set = row.mode if isinstance(row, Mode) else settings_of(row) != OwnConfig()
        if row.pk and is_set:
            row.save()
        elif is_set:
            added.append(row)
        elif row.pk:
            gone.append(row.pk)
    model.objects.bulk_create(added)
    model.objects.filter(pk__in=gone).delete()


def columns_of(settings: Mapping[str, Any], unset: Collection[str]) -> dict[str, Any]:
    """Return the columns of settings that are set or inherited again.

    Raises InvalidCompatibility, InvalidInput, InvalidRuleSet, InvalidName.
    """
    unknown = {*settings, *unset} - COLUMNS.keys()
    if unknown:
        raise TypeError(f"no such setting: {', '.join(sorted(unknown))}")
    columns: dict[str, Any] = {COLUMNS[name]: None for name in unset}
    return columns | {COLUMNS[name]: _READERS[name](value) for name, value in settings.items() if value is not None}


def _store(
    registry: Registry, context: Context | None, subject: SubjectName | None, columns: Mapping[str, Any]
) -> tuple[OwnConfig, OwnConfig]:
    """Write the settings and return the scope's before and after; the caller holds the registry's exclusive lock."""
    where: dict[str, Any] = {"registry": registry, "context": context, "subject_name": _subject_name(subject)}
    row = Config.objects.filter(**where).first() or Config(**where)
    before = settings_of(row) if row.pk else OwnConfig()
    for column, value in columns.items():
        setattr(row, column, value)
    after = settings_of(row)
    if after != OwnConfig():
        row.save()
    elif row.pk:
        row.delete()  # a config without settings has no row
    return before, after


def _tell_of_config(
    registry: Registry, subject: SubjectName | None, before: OwnConfig, after: OwnConfig, by: Actor
) -> None:
    was, becomes = changed(before, after)
    tell_of_setting(registry, subject, CONFIG, before=was, after=becomes, by=by)


@retried
def delete_config(*, registry: str, subject: SubjectName | None, by: Actor, release: bool = False) -> OwnConfig:
    """Unset the config and return its settings; `release` as for `set_config`.

    Raises SubjectConfigNotFound if a subject had none, OperationNotPermitted, ReleaseRequired.
    """
    registry_row, context, passes = _begin(
        registry, subject, by, "config.change", "unset compatibility", release=release
    )
    _refuse_readonly(registry_row, subject, passes=passes)
    rows = Config.objects.filter(registry=registry_row, context=context, subject_name=_subject_name(subject))
    row = rows.first()
    old = settings_of(row) if row else None
    if old is None:
        old = own_config(registry_row, subject) if subject else OwnConfig()
    rows.delete()
    if row is not None:
        _tell_of_config(registry_row, subject, old, OwnConfig(), by)
    return old


@retried
def set_mode(
    *, registry: str, subject: SubjectName | None, by: Actor, mode: str, force: bool = False, release: bool = False
) -> str:
    """Set the mode of a registry, a context or a subject.

    IMPORT accepts ids and versions unchecked, so its scope may have no live versions, unless it is forced; soft-deleted
    ones are deleted permanently. FORWARD accepts them too, for a whole registry that another one writes to, and keeps
    existing versions. `release` as for `set_config`. Raises InvalidMode, OperationNotPermitted, ReleaseRequired,
    ReferenceExists, NotAllowed.
    """
    new_mode = mode.upper()
    if new_mode not in MODES:
        raise InvalidMode(
            "Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, IMPORT and FORWARD.", mode=mode[:40]
        )
    if new_mode == FORWARD and subject is not None:
        raise InvalidMode("Forward mode only supported on global level", mode=new_mode)
    registry_row, context = _begin_mode(registry, subject, by, f"set mode {new_mode}", release=release)
    if new_mode == IMPORT and not force and effective_mode(registry_row, subject).mode != IMPORT:
        _clear_for_import(registry_row, subject)
    where: dict[str, Any] = {"registry": registry_row, "context": context, "subject_name": _subject_name(subject)}
    before = Mode.objects.filter(**where).values_list("mode", flat=True).first()
    Mode.objects.update_or_create(**where, defaults={"mode": new_mode})
    tell_of_setting(registry_row, subject, MODE, before={"mode": before}, after={"mode": new_mode}, by=by)
    return new_mode


@retried
def delete_mode(
    *, registry: str, subject: SubjectName | None, by: Actor, recursive: bool = False, release: bool = False
) -> str:
    """Unset the mode and return it; with `recursive` also unset those of a context's subjects.

    Without a subject, `recursive` applies to the default context. Raises SubjectModeNotFound if a subject had none
    (with `recursive` it returns "" instead), OperationNotPermitted, ReleaseRequired, NotAllowed.
    """
    registry_row, context = _begin_mode(registry, subject, by, "unset mode", release=release)
    rows = Mode.objects.filter(registry=registry_row, context=context, subject_name=_subject_name(subject))
    row = rows.first()
    if row is None and subject is not None and not recursive:
        own_mode(registry_row, subject)
    rows.delete()
    gone = 0
    if recursive and _subject_name(subject) is None:
        inner = subject.context if subject else DEFAULT_CONTEXT
        gone, _ = Mode.objects.filter(registry=registry_row, context__name=inner).delete()
    if row is not None or gone:
        before = {"mode": row.mode if row else None} | ({"subjects": gone} if gone else {})
        tell_of_setting(registry_row, subject, MODE, before=before, after=dict.fromkeys(before), by=by)
    if row is not None:
        return row.mode
    return "READWRITE" if subject is None else ""


def _begin_mode(
    registry: str, subject: SubjectName | None, by: Actor, why: str, *, release: bool
) -> tuple[Registry, Context | None]:
    if not site.MODE_MUTABILITY:
        raise OperationNotPermitted("Mode changes are not allowed")
    return _begin(registry, subject, by, "mode.change", why, release=release)[:2]


def _clear_for_import(registry: Registry, subject: SubjectName | None) -> None:
    """Refuse a scope with live versions; delete its soft-deleted ones, whose ids and numbers an import brings again."""
    versions = SchemaVersion.objects.filter(subject__context__registry=registry)
    if subject is not None:
        versions = versions.filter(subject__context__name=subject.context)
        if subject.subject:
            versions = versions.filter(subject__name=subject.subject)
    if versions.filter(deleted_at=None).exists():
        raise OperationNotPermitted("Cannot import since found existing subjects")
    versions_by_subject: dict[Subject, list[SchemaVersion]] = {}
    for row in versions.select_related("subject__context").order_by("subject_id", "version"):
        versions_by_subject.setdefault(row.subject, []).append(row)
    for holder, rows in versions_by_subject.items():
        refuse_referenced(SubjectName(holder.context.name, holder.name), rows, deleted=True)
        remove_versions(holder, rows, keep_settings=True)


def _begin(
    registry: str, subject: SubjectName | None, by: Actor, action: str, why: str, *, release: bool
) -> tuple[Registry, Context | None, bool]:
    """Return the scope under the policy lock, and whether the change passes READONLY."""
    registry_row, name = get_registry(registry), subject.qualified if subject else ""
    require(by, "promotion.apply" if release else action, registry=registry_row.name, subject=name)
    record(by=by, why=f"{why} of {name or registry_row.name}")
    lock_policy(registry_row, exclusive=True)
    passes = change_guard.ask(action, registry_row, name, by, release=release)
    if subject is None:
        return registry_row, None, passes
    return (
        registry_row,
        find_context(registry_row, subject.context) or lock_context(registry_row, subject.context),
        passes,
    )


def _refuse_readonly(registry: Registry, subject: SubjectName | None, *, passes: bool) -> None:
    mode = effective_mode(registry, subject).mode
    if change_guard.stops(mode, passes=passes):
        raise OperationNotPermitted(f"Subject {subject.qualified if subject else None} is in read-only mode", mode=mode)


def _subject_name(subject: SubjectName | None) -> str | None:
    return (subject.subject or None) if subject else None
