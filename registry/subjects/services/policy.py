"""Setting and unsetting compatibility and modes."""

from __future__ import annotations

from registry.access.roles import Actor, require
from registry.audit.services import record
from registry.errors import InvalidCompatibility, InvalidMode, OperationNotPermitted
from registry.subjects.models import LEVELS, MODES, Config, Context, Mode, Registry
from registry.subjects.names import SubjectName
from registry.subjects.selectors.effective import OwnConfig, effective_mode, own_config, own_mode
from registry.subjects.selectors.places import find_context, get_registry
from registry.subjects.services.locks import lock_context, lock_policy, retried


@retried
def set_config(
    *, registry: str, subject: SubjectName | None, by: Actor, level: str | None = None, normalize: bool | None = None
) -> OwnConfig:
    """Set the level or `normalize` of a registry (no subject), a context (empty subject) or a subject.

    What is None stays as it is. Raises InvalidCompatibility, OperationNotPermitted, NotAllowed.
    """
    wanted = None if level is None else parse_level(level)
    place, context = _begin(registry, subject, by, "config.change", "set compatibility")
    _refuse_readonly(place, subject)
    values = {"compatibility_level": wanted, "normalize": normalize}
    given = {name: value for name, value in values.items() if value is not None}
    row, _ = Config.objects.update_or_create(
        registry=place, context=context, subject_name=_subject_name(subject), defaults=given
    )
    return OwnConfig(row.compatibility_level, row.normalize)


@retried
def delete_config(*, registry: str, subject: SubjectName | None, by: Actor) -> OwnConfig:
    """Unset it and give what it was. Raises SubjectConfigNotFound where a subject had none, OperationNotPermitted."""
    place, context = _begin(registry, subject, by, "config.change", "unset compatibility")
    _refuse_readonly(place, subject)
    rows = Config.objects.filter(registry=place, context=context, subject_name=_subject_name(subject))
    found = rows.first()
    old = OwnConfig(found.compatibility_level, found.normalize) if found else None
    if old is None:
        old = own_config(place, subject) if subject else OwnConfig(None, None)
    rows.delete()
    return old


@retried
def set_mode(*, registry: str, subject: SubjectName | None, by: Actor, mode: str) -> str:
    """Set the mode of a registry, a context or a subject. Raises InvalidMode, NotAllowed."""
    wanted = mode.upper()
    if wanted not in MODES:
        raise InvalidMode(
            "Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE and IMPORT.", mode=mode
        )
    place, context = _begin(registry, subject, by, "mode.change", f"set mode {wanted}")
    Mode.objects.update_or_create(
        registry=place, context=context, subject_name=_subject_name(subject), defaults={"mode": wanted}
    )
    return wanted


@retried
def delete_mode(*, registry: str, subject: SubjectName | None, by: Actor) -> str:
    """Unset the mode and give what it was. Raises SubjectModeNotFound where a subject had none."""
    place, context = _begin(registry, subject, by, "mode.change", "unset mode")
    rows = Mode.objects.filter(registry=place, context=context, subject_name=_subject_name(subject))
    found = rows.first()
    if found is None and subject is not None:
        own_mode(place, subject)
    rows.delete()
    return found.mode if found else "READWRITE"


def parse_level(text: str) -> str:
    """The level's name in capitals. Raises InvalidCompatibility, which lists the seven."""
    level = text.upper() if isinstance(text, str) else ""
    if level not in LEVELS:
        raise InvalidCompatibility(
            "Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive,"
            " forward_transitive, and full_transitive",
            level=str(text)[:40],
        )
    return level


def _begin(
    registry: str, subject: SubjectName | None, by: Actor, action: str, why: str
) -> tuple[Registry, Context | None]:
    place = get_registry(registry)
    require(by, action, registry=place.name, subject=subject.qualified if subject else "")
    record(by=by, why=f"{why} of {subject.qualified if subject else place.name}")
    lock_policy(place, exclusive=True)
    if subject is None:
        return place, None
    return place, find_context(place, subject.context) or lock_context(place, subject.context)


def _refuse_readonly(registry: Registry, subject: SubjectName | None) -> None:
    mode = effective_mode(registry, subject).mode
    if mode.startswith("READONLY"):
        raise OperationNotPermitted(f"Subject {subject.qualified if subject else None} is in read-only mode", mode=mode)


def _subject_name(subject: SubjectName | None) -> str | None:
    return (subject.subject or None) if subject else None
