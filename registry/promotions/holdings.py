"""What a registry holds of the subjects of a plan, in a constant number of queries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Q

from registry.formats.compatibility import LEVELS
from registry.promotions.models import Environment, Release
from registry.promotions.plan import Held, Ids, Target, TargetState, Wanted
from registry.subjects.models import Context, Registry, Schema, SchemaVersion
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.associations import owned_subjects
from registry.subjects.selectors.effective import NO_POLICY, configs_and_settings, effective_modes
from registry.subjects.selectors.parsed import parse_stored

_COLUMNS = (
    "subject__context__name",
    "subject__name",
    "version",
    "deleted_at",
    "schema__fingerprint",
    "schema__identity",
    "schema__schema_id",
    "schema__metadata",
    "schema__rule_set",
    "standing__standing",
    "schema_id",
    "subject_id",
)


@dataclass(frozen=True)
class _Row:
    """A version at the target, with the keys of its schema and subject; nothing of it is parsed."""

    held: Held
    is_live: bool
    schema_pk: int
    subject_pk: int


def target_of(environment: Environment, wanted: Sequence[Wanted], *, releases: bool = False) -> Target:
    """What the environment holds of everything that is wanted, parsed as far as the levels there name it.

    With `releases` each version tells whether it was released.
    """
    registry, names = environment.registry, {parse_subject(item.subject) for item in wanted}
    rows = _rows(registry, names)
    states = _states(registry, rows)
    schemas = _parsed({pk for name, state in states.items() for pk in _named(state, rows[name])})
    released = _released(environment, names) if releases else frozenset()

    def whole(name: SubjectName, state: TargetState) -> TargetState:
        live = [row for row in rows[name] if row.is_live]
        history = tuple(
            replace(
                row.held,
                schema=schemas.get(row.schema_pk),
                is_released=(name.context, name.subject, row.held.version) in released,
            )
            for row in live
        )
        return replace(state, history=history)

    owned = owned_subjects({found[0].subject_pk for found in rows.values() if found})
    return Target(
        subjects={name.qualified: whole(name, state) for name, state in states.items()},
        ids=_ids(registry, names, wanted),
        owned=frozenset(name.qualified for name, found in rows.items() if found and found[0].subject_pk in owned),
        is_mirror=registry.kind == Registry.REMOTE,
    )


def states_of(registry: Registry, names: Collection[SubjectName]) -> dict[str, TargetState]:
    """The states of subjects with nothing parsed: enough to tell whether anything has moved. Three queries."""
    return {name.qualified: state for name, state in _states(registry, _rows(registry, names)).items()}


def named_in(names: Iterable[SubjectName], prefix: str) -> Q:
    """The condition that a row is of one of these subjects; `prefix` leads to its subject."""
    found = Q(pk__in=())
    for name in names:
        found |= Q(**{f"{prefix}context__name": name.context, f"{prefix}name": name.subject})
    return found


def _rows(registry: Registry, names: Collection[SubjectName]) -> dict[SubjectName, list[_Row]]:
    """Every version of the subjects, the deleted ones too, ascending."""
    found: dict[SubjectName, list[_Row]] = {name: [] for name in names}
    query = SchemaVersion.objects.filter(
        subject__context__registry=registry,
        subject__context__name__in={name.context for name in names},
        subject__name__in={name.subject for name in names},
    )
    for row in query.order_by("version").values_list(*_COLUMNS):
        name = SubjectName(row[0], row[1])
        if name in found:
            found[name].append(_row(row))
    return found


def _row(columns: Sequence[Any]) -> _Row:
    _, _, version, deleted_at, fingerprint, identity, schema_id, metadata, rule_set, standing, pk, subject_pk = columns
    held = Held(version, fingerprint, None, identity, schema_id, metadata, rule_set, standing or "")
    return _Row(held, deleted_at is None, pk, subject_pk)


def _states(registry: Registry, rows: Mapping[SubjectName, Sequence[_Row]]) -> dict[SubjectName, TargetState]:
    configs = configs_and_settings(registry, rows.keys())
    modes = effective_modes(registry, rows.keys(), as_stored=True)
    found = {}
    for name, versions in rows.items():
        config, settings, own = configs[name]
        found[name] = TargetState(
            level=config.level,
            mode=modes[name].mode,
            history=tuple(row.held for row in versions if row.is_live),
            next_version=versions[-1].held.version + 1 if versions else 1,
            profile=config.profile,
            policy=config.policy,
            settings=settings,
            own=own,
        )
    return found


def _named(state: TargetState, rows: Sequence[_Row]) -> list[int]:
    """The schemas of the versions that the level, a group or a policy names."""
    live = [row.schema_pk for row in rows if row.is_live]
    names_all = LEVELS[state.level].scope == "all" or state.settings.compatibility_group or state.policy != NO_POLICY
    return live if names_all else live[-1:]


def _parsed(pks: Collection[int]) -> dict[int, Any]:
    rows = list(Schema.objects.filter(pk__in=pks)) if pks else []
    return dict(zip((row.pk for row in rows), parse_stored(rows), strict=True)) if rows else {}


def _released(environment: Environment, names: Collection[SubjectName]) -> frozenset[tuple[str, str, int]]:
    rows = Release.objects.filter(
        environment=environment,
        context_name__in={name.context for name in names},
        subject_name__in={name.subject for name in names},
    )
    return frozenset(rows.values_list("context_name", "subject_name", "version_number"))


def _ids(registry: Registry, names: Collection[SubjectName], wanted: Sequence[Wanted]) -> dict[str, Ids]:
    """The next ids of the contexts, and what the ids and definitions stand for that the plan may give."""
    contexts = {name.context for name in names}
    following = dict(Context.objects.filter(registry=registry, name__in=contexts).values_list("name", "next_schema_id"))
    matters = Q(fingerprint__in={item.schema.fingerprint for item in wanted if item.schema})
    matters |= Q(schema_id__in={item.source_id for item in wanted if item.source_id is not None})
    rows = Schema.objects.filter(matters, context__registry=registry, context__name__in=contexts)
    of_identity: dict[str, dict[str, int]] = {name: {} for name in contexts}
    identity_of: dict[str, dict[int, str]] = {name: {} for name in contexts}
    for context, schema_id, identity in rows.order_by("schema_id").values_list(
        "context__name", "schema_id", "identity"
    ):
        of_identity[context].setdefault(identity, schema_id)
        identity_of[context][schema_id] = identity
    return {name: Ids(following.get(name, 1), of_identity[name], identity_of[name]) for name in contexts}
