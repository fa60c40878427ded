"""Which open requests another compatibility level at their target would let in, or keep out."""

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
from registry.promotions.plan import ADDING
from registry.promotions.stored_plan import STEPS
from registry.subjects import engines
from registry.subjects.contracts import Contract, property_of
from registry.subjects.models import Registry, Schema, Subject
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.comparison import LENIENT_POLICY
from registry.subjects.selectors.effective import ORIGINS, EffectiveConfig, OwnConfig, configs_and_settings
from registry.subjects.selectors.parsed import parse_schema, parser_of, resolve_references
from registry.subjects.selectors.what_if import held_versions, read_versions

#: requests that are looked at, newest first
MAX_REQUESTS: Final = 50
SECONDS: Final = 2.0
#: those that wait to be decided or applied, and add versions
_STATES: Final = (PromotionRequest.IN_REVIEW, PromotionRequest.APPROVED, PromotionRequest.SCHEDULED)
_KINDS: Final = (PromotionRequest.PROMOTE, PromotionRequest.PROPOSE, PromotionRequest.ROLL_BACK)
#: bytes of texts of the target that are read
_MAX_BYTES: Final = 16_000_000


@dataclass(frozen=True)
class ChangedRequest:
    """A request whose compatibility is judged otherwise under the level; `subject` is the one that decides."""

    request: int
    subject: str
    passes_now: bool
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """The request as JSON values."""
        return dict(vars(self))


@dataclass(frozen=True)
class RequestsUnder:
    """Of `total` open requests at the place `looked_at` were judged; `changed` have another verdict under the level.

    `stopped` says why not all were looked at.
    """

    total: int
    looked_at: int
    changed: tuple[ChangedRequest, ...]
    stopped: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON values."""
        return {
            "total": self.total,
            "looked_at": self.looked_at,
            "changed": [item.to_dict() for item in self.changed],
            "stopped": self.stopped,
        }


def requests_under(
    registry: Registry, level: str, scope: SubjectName | None = None, *, by: Actor, seconds: float = SECONDS
) -> RequestsUnder:
    """The open requests to a registry that a level at a scope would judge otherwise, of those that somebody may read.

    A constant number of queries, but for proposals that refer to other subjects. Raises InvalidCompatibility.
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
    asked = [_Asked(pk, kind, _steps(steps)) for pk, kind, steps in light[:MAX_REQUESTS]]
    readable = [item for item in asked if item.may_be_read(by, registry)]
    hidden = len(asked) - len(readable)
    judging = _Judging(registry, chosen, scope, readable)
    looked_at, changed, stopped = 0, [], ""
    until = time.monotonic() + seconds
    for item in readable:
        if looked_at and time.monotonic() >= until:
            stopped = "The time for one answer was over."
            break
        try:
            found = judging.change_of(item)
        except (InvalidSchema, InvalidReference, Unavailable) as error:
            stopped = f"Request {item.number} can’t be judged: {error.message}"
            continue
        looked_at += 1
        if found is not None:
            changed.append(found)
    if not stopped and total - hidden > looked_at:
        stopped = f"The newest {looked_at} were looked at."
    return RequestsUnder(total - hidden, looked_at, tuple(changed), stopped)


class _Adding(Func):
    """Of a stored plan the steps that add a version, without their texts."""

    template = (
        "(SELECT coalesce(jsonb_agg(jsonb_build_object('kind', coalesce(step -> 'kind', '\"register\"'), 'subject',"  # noqa: S608
        " step -> 'subject', 'fingerprint', step -> 'fingerprint', 'metadata', step -> 'metadata') ORDER BY place),"
        f" '[]') FROM jsonb_array_elements({STEPS}) WITH ORDINALITY AS steps (step, place)"
        " WHERE jsonb_typeof(step) = 'object')"
    )
    output_field = JSONField()


@dataclass(frozen=True)
class _Step:
    """A version that a request adds."""

    subject: SubjectName
    fingerprint: str
    metadata: Contract | None


@dataclass(frozen=True)
class _Asked:
    """A request with what it adds, in order."""

    number: int
    kind: str
    steps: tuple[_Step, ...]

    def may_be_read(self, by: Actor, registry: Registry) -> bool:
        """Whether somebody may read all that it asks for."""
        names = {step.subject.qualified for step in self.steps}
        return all(may(by, "schema.read", registry=registry.name, subject=name) for name in names)


def _steps(stored: Iterable[Mapping[str, Any]]) -> tuple[_Step, ...]:
    return tuple(
        _Step(parse_subject(step["subject"]), str(step["fingerprint"]), step["metadata"])
        for step in stored
        if step["kind"] in ADDING
    )


@dataclass(frozen=True)
class _Past:
    """A version that a new one is held against."""

    version: int
    metadata: Contract | None
    schema: Callable[[], ParsedSchema]


@dataclass
class _Judging:
    """What the target holds of all that is asked for, read at once; a schema is parsed when it is compared."""

    registry: Registry
    level: Level
    scope: SubjectName | None
    asked: Sequence[_Asked]
    configs: dict[SubjectName, tuple[EffectiveConfig, OwnConfig, OwnConfig | None]] = field(init=False)
    held: dict[SubjectName, list[_Past]] = field(init=False)
    wanted: dict[str, Callable[[], ParsedSchema]] = field(init=False)
    proposed: dict[tuple[int, SubjectName], RequestItem] = field(init=False)

    def __post_init__(self) -> None:
        names = {step.subject for item in self.asked for step in item.steps}
        self.configs = configs_and_settings(self.registry, names)
        self.held = self._held(names)
        self.wanted = _by_fingerprint({step.fingerprint for item in self.asked for step in item.steps})
        numbers = [item.number for item in self.asked if item.kind == PromotionRequest.PROPOSE]
        rows = RequestItem.objects.filter(request__in=numbers) if numbers else ()
        self.proposed = {(row.request_id, SubjectName(row.context_name, row.subject_name)): row for row in rows}

    def change_of(self, asked: _Asked) -> ChangedRequest | None:
        """What changes for a request, None where nothing does. Raises InvalidSchema, InvalidReference, Unavailable."""
        now, under = self._first_break(asked, under=False), self._first_break(asked, under=True)
        if (now is None) == (under is None):
            return None
        step, report = under or now or (None, None)
        if step is None or report is None:
            return None
        first = report.breaks[0]
        said = first.message if first.named_path in first.message else f"{first.message} at {first.named_path}"
        sentence = (
            f"would break {report.level}: {said}." if under else f"breaks {report.level} now, and no longer would."
        )
        return ChangedRequest(asked.number, step.subject.qualified, now is None, sentence)

    def _first_break(self, asked: _Asked, *, under: bool) -> tuple[_Step, Report] | None:
        """The first step that the levels refuse, those in force or (`under`) with the chosen one where it counts."""
        added: dict[SubjectName, list[_Past]] = {}
        for step in asked.steps:
            config, settings, _ = self.configs[step.subject]
            level = self.level if under and self._counts(step.subject, config) else level_named(config.level)
            past = [*self.held.get(step.subject, ()), *added.get(step.subject, ())]
            metadata = step.metadata if step.metadata is not None or not past else past[-1].metadata
            group = settings.compatibility_group
            if group:
                past = [item for item in past if property_of(item.metadata, group) == property_of(metadata, group)]
            named = {"none": [], "latest": past[-1:], "all": past}[level.scope]
            schema = self._schema_of(asked, step)
            added.setdefault(step.subject, []).append(_Past(0, metadata, schema))
            if not named:
                continue
            report = engines.check(
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
        """Whether a level that is set at the scope would be the one in force for a subject."""
        if self.scope is None:
            return ORIGINS.index(config.origin) >= ORIGINS.index("registry")
        if self.scope.context != subject.context:
            return False
        if self.scope.subject:
            return self.scope == subject
        return ORIGINS.index(config.origin) >= ORIGINS.index("context")

    def _schema_of(self, asked: _Asked, step: _Step) -> Callable[[], ParsedSchema]:
        """What gives the schema of a step: registered somewhere, or proposed."""
        known = self.wanted.get(step.fingerprint)
        item = self.proposed.get((asked.number, step.subject))
        if known is not None:
            return known
        if item is None:
            raise InvalidReference(f"the version of {step.subject.qualified} that it asks for is gone")
        return lambda: self._parse_proposed(item, step.subject)

    def _parse_proposed(self, item: RequestItem, subject: SubjectName) -> ParsedSchema:
        references = [Reference(str(r["name"]), str(r["subject"]), int(r["version"])) for r in item.references]
        found = resolve_references(self.registry, references, context=subject.context) if references else ()
        return parse_schema(item.schema_type, item.text, tuple(reference for reference, _ in found), is_new=False)

    def _held(self, names: Iterable[SubjectName]) -> dict[SubjectName, list[_Past]]:
        """The newest live versions of the subjects at the target; those that don't fit in are refused as too much."""
        wanted = Q(pk__in=())
        for name in names:
            wanted |= Q(context__name=name.context, name=name.subject)
        rows = Subject.objects.filter(wanted, context__registry=self.registry).values_list(
            "pk", "context__name", "name"
        )
        subjects = {pk: SubjectName(context, name) for pk, context, name in rows}
        sizes, room, chosen = held_versions(subjects), _MAX_BYTES, list[int]()
        for held in sizes.values():
            room -= held.size
            if room >= 0:
                chosen += held.versions
        texts, parse = read_versions(chosen)
        found = {
            name: [_Past(row.version, row.schema.metadata, _later(parse, row.schema)) for row in texts.get(pk, ())]
            for pk, name in subjects.items()
        }
        left_out = {subjects[pk] for pk, held in sizes.items() if held.versions and not texts.get(pk)}
        return {name: [_too_much(name)] if name in left_out else past for name, past in found.items()}


def _later(parse: Callable[[Schema], ParsedSchema], row: Schema) -> Callable[[], ParsedSchema]:
    return lambda: parse(row)


def _too_much(name: SubjectName) -> _Past:
    """Stands for versions that weren't read: to compare with them says so."""

    def refuse() -> ParsedSchema:
        raise InvalidSchema(f"the versions of {name.qualified} are more than one answer reads")

    return _Past(0, None, refuse)


def _by_fingerprint(fingerprints: Iterable[str]) -> dict[str, Callable[[], ParsedSchema]]:
    """Registered schemas of those contents, whichever registry has them: equal contents read equally."""
    rows = list(
        Schema.objects.filter(fingerprint__in=set(fingerprints)).order_by("fingerprint", "pk").distinct("fingerprint")
    )
    parse = parser_of(rows)
    return {row.fingerprint: _later(parse, row) for row in rows}
