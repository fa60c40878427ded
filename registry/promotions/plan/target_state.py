"""The state of a plan's subjects in a registry, in a constant number of queries, and whether a stored plan is stale.

The staleness test is cheap, for pages; only a new plan is certain.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Exists, FilteredRelation, OuterRef, Q

from registry.formats.compatibility import LEVELS
from registry.promotions.models import Environment, PromotionRequest, Release
from registry.promotions.plan.types import (
    CONFIG,
    Ids,
    IncomingVersion,
    PlanStep,
    Target,
    TargetState,
    TargetVersion,
    settings_dict,
    steps_of,
)
from registry.subjects.associations.rules import is_owned
from registry.subjects.models import Context, Registry, Schema, SchemaReference, SchemaVersion
from registry.subjects.policy.effective_policy import NO_POLICY, ScopeSettings, settings_in_scope
from registry.subjects.versions.parsed_schemas import parse_stored
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

_COLUMNS = (
    "subject__context__registry",
    "subject__context__name",
    "subject__name",
    "version",
    "deleted_at",
    "schema__fingerprint",
    "schema__identity",
    "schema__schema_id",
    "schema__metadata",
    "schema__rule_set",
    "status__status",
    "schema_id",
    "is_owned",
)

_Subjects = Mapping[Registry, Collection[SubjectName]]


#: the result of `settings_in_scope`
Settings = Mapping[tuple[int, SubjectName], ScopeSettings]


@dataclass(frozen=True)
class _Row:
    """A version at the target, unparsed, with its schema's key and whether a resource owns its subject."""

    version: TargetVersion
    is_live: bool
    schema_pk: int
    is_owned: bool


def target_of(
    environment: Environment,
    versions: Sequence[IncomingVersion],
    spoken: Settings | None = None,
    *,
    releases: bool = False,
) -> Target:
    """Return the environment's state of all incoming subjects, parsed as far as the levels there need it.

    With `releases` each version says whether it was released. `spoken` are the subjects' settings, if they are known.
    """
    registry, names = environment.registry, {parse_subject(item.subject) for item in versions}
    rows = _rows({registry: names})[registry]
    states = _states({registry: rows}, spoken)[registry]
    schemas = _parsed({pk for name, state in states.items() for pk in _named(state, rows[name])})
    released = _released(environment, names) if releases else frozenset()

    def whole(name: SubjectName, state: TargetState) -> TargetState:
        live = [row for row in rows[name] if row.is_live]
        history = tuple(
            replace(
                row.version,
                schema=schemas.get(row.schema_pk),
                is_released=(name.context, name.subject, row.version.version) in released,
            )
            for row in live
        )
        return replace(state, history=history)

    return Target(
        subjects={name.qualified: whole(name, state) for name, state in states.items()},
        ids=_ids(registry, names, versions),
        owned=frozenset(name.qualified for name, of in rows.items() if of and of[0].is_owned),
        is_mirror=registry.kind == Registry.REMOTE,
    )


def states_of(subjects: _Subjects) -> dict[Registry, dict[str, TargetState]]:
    """Return the states of subjects without parsed schemas: enough to see whether anything has changed. Two queries."""
    states = _states(_rows(subjects))
    return {registry: {name.qualified: state for name, state in of.items()} for registry, of in states.items()}


def named_in(names: Iterable[SubjectName], prefix: str) -> Q:
    """Return the condition that a row belongs to one of these subjects; `prefix` is the path to its subject."""
    condition = Q(pk__in=())
    for name in names:
        condition |= Q(**{f"{prefix}context__name": name.context, f"{prefix}name": name.subject})
    return condition


def _rows(subjects: _Subjects) -> dict[Registry, dict[SubjectName, list[_Row]]]:
    """Return every version of the subjects of each registry, deleted ones too, ascending."""
    rows: dict[Registry, dict[SubjectName, list[_Row]]] = {
        registry: {name: [] for name in names} for registry, names in subjects.items()
    }
    by_key = {registry.pk: of for registry, of in rows.items()}
    everything = {name for names in subjects.values() for name in names}
    query = SchemaVersion.objects.filter(
        subject__context__registry__in=by_key,
        subject__context__name__in={name.context for name in everything},
        subject__name__in={name.subject for name in everything},
    ).annotate(is_owned=is_owned("subject"))
    for key, context, subject, *columns in query.order_by("version").values_list(*_COLUMNS):
        name = SubjectName(context, subject)
        if name in by_key[key]:
            by_key[key][name].append(_row(columns))
    return rows


def _row(columns: Sequence[Any]) -> _Row:
    version, deleted_at, fingerprint, identity, schema_id, metadata, rule_set, status, pk, owned = columns
    stored = TargetVersion(version, fingerprint, None, identity, schema_id, metadata, rule_set, status or "")
    return _Row(stored, deleted_at is None, pk, owned)


def _states(
    rows: Mapping[Registry, Mapping[SubjectName, Sequence[_Row]]], spoken: Settings | None = None
) -> dict[Registry, dict[SubjectName, TargetState]]:
    spoken = spoken or settings_in_scope(
        [registry.pk for registry in rows], {name for of in rows.values() for name in of}
    )
    return {
        registry: {name: _state(registry, versions, spoken[registry.pk, name]) for name, versions in of.items()}
        for registry, of in rows.items()
    }


def _state(registry: Registry, versions: Sequence[_Row], spoken: ScopeSettings) -> TargetState:
    config = spoken.config()
    return TargetState(
        level=config.level,
        mode=spoken.stored_mode(registry).mode,
        history=tuple(row.version for row in versions if row.is_live),
        next_version=versions[-1].version.version + 1 if versions else 1,
        profile=config.profile,
        policy=config.policy,
        settings=spoken.settings(),
        own=spoken.own(),
    )


def _named(state: TargetState, rows: Sequence[_Row]) -> list[int]:
    """Return the keys of the schemas that the level, a compatibility group or a policy compares with."""
    live = [row.schema_pk for row in rows if row.is_live]
    names_all = LEVELS[state.level].scope == "all" or state.settings.compatibility_group or state.policy != NO_POLICY
    return live if names_all else live[-1:]


def _parsed(pks: Collection[int]) -> dict[int, Any]:
    if not pks:
        return {}
    rows = list(
        Schema.objects.filter(pk__in=pks).annotate(refers=Exists(SchemaReference.objects.filter(schema=OuterRef("pk"))))
    )
    refer = any(getattr(row, "refers", True) for row in rows)
    return dict(zip((row.pk for row in rows), parse_stored(rows, refer=refer), strict=True))


def _released(environment: Environment, names: Collection[SubjectName]) -> frozenset[tuple[str, str, int]]:
    rows = Release.objects.filter(
        environment=environment,
        context_name__in={name.context for name in names},
        subject_name__in={name.subject for name in names},
    )
    return frozenset(rows.values_list("context_name", "subject_name", "version_number"))


def _ids(registry: Registry, names: Collection[SubjectName], versions: Sequence[IncomingVersion]) -> dict[str, Ids]:
    """Return the next ids of the contexts, and the existing ids and definitions that the plan may reuse."""
    contexts = {name.context for name in names}
    matters = Q(schemas__fingerprint__in={item.schema.fingerprint if item.schema else "" for item in versions})
    matters |= Q(schemas__schema_id__in={item.source_id for item in versions if item.source_id is not None})
    rows = Context.objects.filter(registry=registry, name__in=contexts)
    following: dict[str, int] = {}
    of_identity: dict[str, dict[str, int]] = {name: {} for name in contexts}
    identity_of: dict[str, dict[int, str]] = {name: {} for name in contexts}
    columns = ("name", "next_schema_id", "matching__schema_id", "matching__identity")
    matching = rows.annotate(matching=FilteredRelation("schemas", condition=matters)).order_by("matching__schema_id")
    for context, next_id, schema_id, identity in matching.values_list(*columns):
        following[context] = next_id
        if schema_id is not None:
            of_identity[context].setdefault(identity, schema_id)
            identity_of[context][schema_id] = identity
    return {name: Ids(following.get(name, 1), of_identity[name], identity_of[name]) for name in contexts}


#: part of a stored state → its name in sentences
_WORDS = {"level": "level", "mode": "mode", "profile": "profile", "policy": "policy"}
#: the end of `stale`'s sentence for a requested version that was deleted at its source
GONE = "no longer exists"
_OLD_PLAN = "The plan was made by an earlier release of Schemadesk. Run the checks again."


def stale(request: PromotionRequest) -> str:
    """Return what has changed since the request's plan was built, as a sentence; "" if nothing. Two queries.

    The request's environments should be joined already. The plan of a closed request is never stale.
    """
    if request.state in PromotionRequest.CLOSED_STATES:
        return ""
    if "target" not in request.plan:
        return _OLD_PLAN
    target, steps = request.target.registry, _steps_from_source(request)
    source = (request.source or request.target).registry
    planned = {parse_subject(name) for name in request.plan["target"]}
    promoted = {parse_subject(step.subject) for step in steps}
    states = states_of({source: promoted, target: planned} if source != target else {target: planned | promoted})
    now = {name.qualified: states[target][name.qualified].to_dict() for name in planned}
    moved = what_moved(request.plan["target"], now)
    return f"{moved} in {target.name}." if moved else _moved_at_source(source, steps, states[source])


def what_moved(before: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the first difference between a target's old and current state, as a sentence's start; "" if none."""
    return next(_movements(before, now), "")


def _movements(before: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for subject in sorted(before.keys() | now.keys()):
        if subject not in before or subject not in now:
            yield f"The plan {'now includes' if subject in now else 'no longer includes'} {subject}"
            continue
        old, new = before[subject], now[subject]
        for part, word in _WORDS.items():
            if old[part] != new[part]:
                yield f"The {word} of {subject} was {old[part]} and is {new[part]}"
        yield from _moved_versions(subject, dict(old["versions"]), dict(new["versions"]))
        if old["settings"] != new["settings"]:
            changed = {name for name in old["settings"].keys() | new["settings"].keys()
                       if old["settings"].get(name) != new["settings"].get(name)}  # fmt: skip
            yield f"The settings of {subject} have changed ({', '.join(sorted(changed))})"
        if old["next_version"] != new["next_version"]:
            yield f"The next version of {subject} was {old['next_version']} and is {new['next_version']}"


def _moved_versions(subject: str, old: Mapping[int, str], new: Mapping[int, str]) -> Iterator[str]:
    for number in sorted(new.keys() - old.keys()):
        yield f"Version {number} of {subject} was added"
    for number in sorted(old.keys() - new.keys()):
        yield f"Version {number} of {subject} was removed"
    for number in sorted(old.keys() & new.keys()):
        if old[number] != new[number]:
            yield f"Version {number} of {subject} is now a different schema"


def _steps_from_source(request: PromotionRequest) -> list[PlanStep]:
    return [step for step in steps_of(request.plan) if step.source_version and request.kind != PromotionRequest.PROPOSE]


def _moved_at_source(source: Registry, steps: Sequence[PlanStep], states: Mapping[str, TargetState]) -> str:
    """Return what has changed at the source: a version was deleted, or a status or settings have changed."""
    for step in steps:
        state = states[step.subject]
        if step.kind == CONFIG:
            moved = _moved_config(step, settings_dict(state.own))
        else:
            version = next((version for version in state.history if version.version == step.source_version), None)
            moved = _moved_version(step, version.fingerprint if version else "", version.status if version else "")
        if moved:
            return f"{moved} in {source.name}."
    return ""


def _moved_config(step: PlanStep, own: Mapping[str, Any]) -> str:
    changed = [name for name, value in (step.config or {}).items() if own.get(name) != value]
    return f"The settings of {step.subject} have changed ({', '.join(changed)})" if changed else ""


def _moved_version(step: PlanStep, fingerprint: str, status: str) -> str:
    version = f"Version {step.source_version} of {step.subject}"
    if not fingerprint:
        return f"{version} {GONE}" if step.asked else ""
    if fingerprint != step.fingerprint:
        return f"{version} is now a different schema"
    return f"{version} is now {status}" if status and step.adds else ""


#: live versions of a subject in an environment, ascending: number and fingerprint of the schema
Line = Sequence[tuple[int, str]]


def rolled_back_from(before: Line, here: Line, version: int) -> int:
    """Return the target's number of a version of the source that it went back from; 0 if it didn't go back.

    It went back if the source had the target's newest schema before that version, and not since.
    """
    last = {fingerprint: number for number, fingerprint in before}
    wanted = dict(before).get(version)
    if not here or wanted is None or last.get(here[-1][1], version) >= version:
        return 0
    return max((number for number, fingerprint in here if fingerprint == wanted), default=0)


@dataclass(frozen=True)
class WentBack:
    """A target that went back from a version of the source: its own number of that version, and its newest one."""

    target: str
    subject: SubjectName
    version: int
    newest: int

    @property
    def sentence(self) -> str:
        """The current state, as a sentence."""
        there = f"{self.target} has this schema as version {self.version}, but was rolled back"
        return f"{there}: its newest version {self.newest} has an earlier schema."

    @property
    def cure(self) -> str:
        """The call that makes the version current again; the version's page has it too."""
        values = {"environment": self.target, "subject": self.subject.qualified, "version": self.version}
        body = json.dumps(values | {"reason": "…"}, ensure_ascii=False)
        return f"Request a rollback to version {self.version}, on its page or with POST /api/v1/roll-backs {body}."


def went_back(source: Environment, target: Environment, subject: SubjectName, version: int) -> WentBack | None:
    """Return whether the target was rolled back from that version of the source, and how; one query."""
    rows = SchemaVersion.objects.filter(
        subject__context__registry__in=(source.registry_id, target.registry_id),
        subject__context__name=subject.context,
        subject__name=subject.subject,
        deleted_at=None,
    ).order_by("version")
    lines: dict[int, list[tuple[int, str]]] = {source.registry_id: [], target.registry_id: []}
    for registry, number, fingerprint in rows.values_list(
        "subject__context__registry", "version", "schema__fingerprint"
    ):
        lines[registry].append((number, fingerprint))
    here = lines[target.registry_id]
    there = rolled_back_from(lines[source.registry_id], here, version)
    return WentBack(target.registry.name, subject, there, here[-1][0]) if there else None
