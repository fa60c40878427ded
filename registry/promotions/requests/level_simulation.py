"""Simulates another compatibility level for a target: which open requests it would let in, or keep out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db.models import F, Func, JSONField, Q

from registry.access.roles import Actor, may
from registry.errors import InvalidReference, InvalidSchema, Unavailable
from registry.formats.base import ParsedSchema, Reference
from registry.formats.compatibility import Level, level_named
from registry.formats.report import Report
from registry.promotions.models import PromotionRequest, RequestItem
from registry.promotions.models.requests import STEPS
from registry.promotions.plan.types import ADDING
from registry.subjects.comparison.comparison import LENIENT_POLICY
from registry.subjects.engine import schema_engine
from registry.subjects.history.level_history import newest_versions, read_versions
from registry.subjects.models import Registry, Schema, Subject
from registry.subjects.policy.data_contracts import Contract, property_of
from registry.subjects.policy.effective_policy import ORIGINS, EffectiveConfig, ScopeSettings, scope_settings_for_many
from registry.subjects.versions.parsed_schemas import parse_schema, parser_of, resolve_references
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

#: the most requests that are examined, newest first
MAX_REQUESTS: Final = 50
SECONDS: Final = 2.0
#: requests in these states wait for a decision or for being applied
_STATES: Final = (PromotionRequest.IN_REVIEW, PromotionRequest.APPROVED, PromotionRequest.SCHEDULED)
_KINDS: Final = (PromotionRequest.PROMOTE, PromotionRequest.PROPOSE, PromotionRequest.ROLL_BACK)
#: the most bytes of schema texts that are read from the target
_MAX_BYTES: Final = 16_000_000


@dataclass(frozen=True)
class ChangedRequest:
    """A request whose compatibility changes under the level; `subject` is the deciding one."""

    request: int
    subject: str
    passes_now: bool
    sentence: str


@dataclass(frozen=True)
class RequestsUnder:
    """Of `total` open requests in the scope, `looked_at` were checked; `changed` have another verdict under the level.

    `stopped` says why some weren't checked.
    """

    total: int
    looked_at: int
    changed: tuple[ChangedRequest, ...]
    stopped: str = ""


def requests_under(
    registry: Registry, level: str, scope: SubjectName | None = None, *, by: Actor, seconds: float = SECONDS
) -> RequestsUnder:
    """Return the open requests to a registry, readable for `by`, whose verdict a level at a scope would change.

    A constant number of queries, except for proposals that refer to other subjects. Raises InvalidCompatibility.
    """
    chosen = level_named(level.upper())
    rows = PromotionRequest.objects.filter(target__registry=registry, state__in=_STATES, kind__in=_KINDS)
    if scope is not None:
        items = RequestItem.objects.filter(context_name=scope.context)
        if scope.subject:
            items = items.filter(subject_name=scope.subject)
        rows = rows.filter(pk__in=items.values("request"))
    total = rows.count()
    light = rows.annotate(adding=_Adding(F("plan"))).order_by("-pk").values_list("pk", "kind", "adding")
    requests = [_OpenRequest(pk, kind, _steps(steps)) for pk, kind, steps in light[:MAX_REQUESTS]]
    readable = [item for item in requests if item.may_be_read(by, registry)]
    hidden = len(requests) - len(readable)
    judging = _LevelSimulation(registry, chosen, scope, readable)
    looked_at, changed, stopped = 0, [], ""
    until = time.monotonic() + seconds
    for item in readable:
        if looked_at and time.monotonic() >= until:
            stopped = "The time limit was reached."
            break
        try:
            change = judging.change_of(item)
        except (InvalidSchema, InvalidReference, Unavailable) as error:
            stopped = f"Request {item.number} can’t be checked: {error.message}"
            continue
        looked_at += 1
        if change is not None:
            changed.append(change)
    if not stopped and total - hidden > looked_at:
        stopped = f"Only the newest {looked_at} were checked."
    return RequestsUnder(total - hidden, looked_at, tuple(changed), stopped)


class _Adding(Func):
    """The steps of a stored plan that add a version, without their texts."""

    template = (
        "(SELECT coalesce(jsonb_agg(jsonb_build_object('kind', coalesce(step -> 'kind', '\"register\"'), 'subject',"  # noqa: S608
        " step -> 'subject', 'fingerprint', step -> 'fingerprint', 'metadata', step -> 'metadata') ORDER BY place),"
        f" '[]') FROM jsonb_array_elements({STEPS}) WITH ORDINALITY AS steps (step, place)"
        " WHERE jsonb_typeof(step) = 'object')"
    )
    output_field = JSONField()


@dataclass(frozen=True)
class _AddedVersion:
    """A version that a request adds."""

    subject: SubjectName
    fingerprint: str
    metadata: Contract | None


@dataclass(frozen=True)
class _OpenRequest:
    """A request with the versions that it adds, in order."""

    number: int
    kind: str
    steps: tuple[_AddedVersion, ...]

    def may_be_read(self, by: Actor, registry: Registry) -> bool:
        """Return whether the actor may read all of its subjects."""
        names = {step.subject.qualified for step in self.steps}
        return all(may(by, "schema.read", registry=registry.name, subject=name) for name in names)


def _steps(stored: Iterable[Mapping[str, Any]]) -> tuple[_AddedVersion, ...]:
    return tuple(
        _AddedVersion(parse_subject(step["subject"]), str(step["fingerprint"]), step["metadata"])
        for step in stored
        if step["kind"] in ADDING
    )


@dataclass(frozen=True)
class _ComparedVersion:
    """A version that a new one is compared with."""

    version: int
    metadata: Contract | None
    schema: Callable[[], ParsedSchema]


@dataclass
class _LevelSimulation:
    """The target's state of all requested subjects, read together; schemas are parsed when they are compared."""

    registry: Registry
    level: Level
    scope: SubjectName | None
    requests: Sequence[_OpenRequest]
    spoken: dict[SubjectName, ScopeSettings] = field(init=False)
    versions: dict[SubjectName, list[_ComparedVersion]] = field(init=False)
    registered: dict[str, Callable[[], ParsedSchema]] = field(init=False)
    proposed: dict[tuple[int, SubjectName], RequestItem] = field(init=False)

    def __post_init__(self) -> None:
        names = {step.subject for item in self.requests for step in item.steps}
        self.spoken = scope_settings_for_many(self.registry, names)
        self.versions = self._read_versions(names)
        self.registered = _by_fingerprint({step.fingerprint for item in self.requests for step in item.steps})
        numbers = [item.number for item in self.requests if item.kind == PromotionRequest.PROPOSE]
        rows = RequestItem.objects.filter(request__in=numbers) if numbers else ()
        self.proposed = {(row.request_id, SubjectName(row.context_name, row.subject_name)): row for row in rows}

    def change_of(self, request: _OpenRequest) -> ChangedRequest | None:
        """Return the change for a request, or None. Raises InvalidSchema, InvalidReference, Unavailable."""
        now, under = self._first_break(request, under=False), self._first_break(request, under=True)
        if (now is None) == (under is None):
            return None
        step, report = under or now or (None, None)
        if step is None or report is None:
            return None
        first = report.breaks[0]
        problem = first.message if first.named_path in first.message else f"{first.message} at {first.named_path}"
        sentence = (
            f"would break {report.level}: {problem}."
            if under
            else f"breaks {report.level} now, but would be compatible."
        )
        return ChangedRequest(request.number, step.subject.qualified, now is None, sentence)

    def _first_break(self, request: _OpenRequest, *, under: bool) -> tuple[_AddedVersion, Report] | None:
        """Return the first step that fails its level: the effective one or (`under`) the simulated one in its scope."""
        added: dict[SubjectName, list[_ComparedVersion]] = {}
        for step in request.steps:
            spoken = self.spoken[step.subject]
            config, settings = spoken.config(), spoken.settings()
            level = self.level if under and self._counts(step.subject, config) else level_named(config.level)
            past = [*self.versions.get(step.subject, ()), *added.get(step.subject, ())]
            metadata = step.metadata if step.metadata is not None or not past else past[-1].metadata
            group = settings.compatibility_group
            if group:
                past = [item for item in past if property_of(item.metadata, group) == property_of(metadata, group)]
            named = {"none": [], "latest": past[-1:], "all": past}[level.scope]
            schema = self._schema_of(request, step)
            added.setdefault(step.subject, []).append(_ComparedVersion(0, metadata, schema))
            if not named:
                continue
            report = schema_engine.check(
                schema(),
                [(item.version, item.schema()) for item in named],
                level.name,
                profile=config.profile,
                lenient=settings.compatibility_policy == LENIENT_POLICY,
            )
            if not report.is_compatible:
                return step, report
        return None

    def _counts(self, subject: SubjectName, config: EffectiveConfig) -> bool:
        """Return whether a level that is set at the scope would be the effective one for a subject."""
        if self.scope is None:
            return ORIGINS.index(config.origin) >= ORIGINS.index("registry")
        if self.scope.context != subject.context:
            return False
        if self.scope.subject:
            return self.scope == subject
        return ORIGINS.index(config.origin) >= ORIGINS.index("context")

    def _schema_of(self, request: _OpenRequest, step: _AddedVersion) -> Callable[[], ParsedSchema]:
        """Return a function that returns the schema of a step, registered somewhere or proposed."""
        registered = self.registered.get(step.fingerprint)
        item = self.proposed.get((request.number, step.subject))
        if registered is not None:
            return registered
        if item is None:
            raise InvalidReference(f"the requested version of {step.subject.qualified} no longer exists")
        return lambda: self._parse_proposed(item, step.subject)

    def _parse_proposed(self, item: RequestItem, subject: SubjectName) -> ParsedSchema:
        references = [Reference(str(r["name"]), str(r["subject"]), int(r["version"])) for r in item.references]
        targets = resolve_references(self.registry, references, context=subject.context) if references else ()
        return parse_schema(item.schema_type, item.text, tuple(reference for reference, _ in targets), is_new=False)

    def _read_versions(self, names: Iterable[SubjectName]) -> dict[SubjectName, list[_ComparedVersion]]:
        """Return the newest live versions of the subjects at the target; comparing with too large ones fails."""
        condition = Q(pk__in=())
        for name in names:
            condition |= Q(context__name=name.context, name=name.subject)
        rows = Subject.objects.filter(condition, context__registry=self.registry).values_list(
            "pk", "context__name", "name"
        )
        subjects = {pk: SubjectName(context, name) for pk, context, name in rows}
        sizes, room, chosen = newest_versions(subjects), _MAX_BYTES, list[int]()
        for size in sizes.values():
            room -= size.size
            if room >= 0:
                chosen += size.versions
        texts, parse = read_versions(chosen)
        versions = {
            name: [
                _ComparedVersion(row.version, row.schema.metadata, _later(parse, row.schema))
                for row in texts.get(pk, ())
            ]
            for pk, name in subjects.items()
        }
        left_out = {subjects[pk] for pk, size in sizes.items() if size.versions and not texts.get(pk)}
        return {name: [_too_much(name)] if name in left_out else past for name, past in versions.items()}


def _later(parse: Callable[[Schema], ParsedSchema], row: Schema) -> Callable[[], ParsedSchema]:
    return lambda: parse(row)


def _too_much(name: SubjectName) -> _ComparedVersion:
    """Return a stand-in for versions that weren't read; comparing with it raises InvalidSchema."""

    def refuse() -> ParsedSchema:
        raise InvalidSchema(f"{name.qualified} has too many versions to check")

    return _ComparedVersion(0, None, refuse)


def _by_fingerprint(fingerprints: Iterable[str]) -> dict[str, Callable[[], ParsedSchema]]:
    """Return registered schemas with those fingerprints, from any registry: equal contents parse equally."""
    rows = list(
        Schema.objects.filter(fingerprint__in=set(fingerprints)).order_by("fingerprint", "pk").distinct("fingerprint")
    )
    parse = parser_of(rows)
    return {row.fingerprint: _later(parse, row) for row in rows}
