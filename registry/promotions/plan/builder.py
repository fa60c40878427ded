"""Builds a plan from the current content of both environments."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from django.db.models import OuterRef, QuerySet, Subquery

from registry.errors import InvalidInput, InvalidReference, SubjectNotFound, VersionNotFound
from registry.formats.base import Reference
from registry.promotions.checks.consumers import consumers_check
from registry.promotions.checks.context import checks_around
from registry.promotions.checks.source_checks import checks_of_source
from registry.promotions.hook_points import checks_from_outside
from registry.promotions.models import Environment, PromotionRequest
from registry.promotions.plan.steps import plan_steps
from registry.promotions.plan.target_state import Settings, stale, target_of
from registry.promotions.plan.types import IncomingVersion, ItemText, Plan, PromotionSpec, SpecItem
from registry.subjects.models import SchemaVersion, VersionStatus
from registry.subjects.policy.effective_policy import OwnConfig, scope_settings_for_many, settings_in_scope
from registry.subjects.versions.lookup import Registry
from registry.subjects.versions.parsed_schemas import (
    ReferenceGraph,
    parse_schema,
    parser_of,
    read_graph,
    resolve_references,
)
from registry.subjects.versions.qualified_names import SubjectName, parse_subject
from registry.subjects.versions.versions import VersionInfo, infos_of

__all__ = ["MAX_VERSIONS", "make_plan", "spec_of", "stale"]
MAX_VERSIONS = 200
PROPOSE, PROMOTE, ADOPT = PromotionRequest.PROPOSE, PromotionRequest.PROMOTE, PromotionRequest.ADOPT
_Key = tuple[SubjectName, int]


def spec_of(request: PromotionRequest) -> PromotionSpec:
    """Return the spec of a stored request; a request from before items existed is for the version that it names."""
    rows = list(request.items.order_by("position")) if request.pk else []
    items = [
        SpecItem(
            SubjectName(row.context_name, row.subject_name),
            row.version_number,
            ItemText(row.schema_type, row.text, _references(row.references)) if not row.version_number else None,
        )
        for row in rows
    ]
    if not items:
        items = [SpecItem(SubjectName(request.context_name, request.subject_name), request.version_number)]
    return PromotionSpec(
        target=request.target,
        items=tuple(items),
        source=request.source,
        kind=request.kind,
        with_config=request.config is not None,
        request_id=request.pk or 0,
        answers=request.finding,
    )


def _references(stored: Iterable[Mapping[str, object]]) -> tuple[Reference, ...]:
    return tuple(Reference(str(ref["name"]), str(ref["subject"]), int(str(ref["version"]))) for ref in stored)


def make_plan(spec: PromotionSpec, *, thorough: bool = True, rows: Sequence[SchemaVersion] = ()) -> Plan:
    """Return the plan for the requested versions and everything they refer to; the order of the items doesn't matter.

    `rows` are the items' versions, if `planned_versions` has just read them. Without `thorough`, it lacks what isn't
    part of the hash: evidence from data, and what dependants would break. Raises SubjectNotFound, VersionNotFound,
    InvalidInput, InvalidSchema.
    """
    if not spec.items:
        raise InvalidInput("Name at least one version.")
    if len({item.subject for item in spec.items}) < len(spec.items):
        raise InvalidInput("Name each subject only once. A request has one version per subject.")
    names = [item.subject for item in spec.items]
    spoken = settings_in_scope([spec.target.registry_id], names) if spec.kind == PROPOSE else None
    requested = _versions(spec, rows) if spoken is None else _proposed(spec, spoken)
    target = target_of(spec.target, requested, spoken, releases=spec.kind == ADOPT)
    plan = plan_steps(spec.kind, requested, target)
    more = (
        *checks_from_outside(spec.target.registry, plan, spec.answers),
        *checks_around(spec, plan, requested, thorough=thorough),
        *checks_of_source(spec, plan, requested),
    )
    if not spec.target.drift_blocks:
        more = tuple(
            replace(item, verdict="warn") if item.code == "drift" and item.verdict == "fail" else item for item in more
        )
    whole = replace(plan, checks=(*plan.checks, *more))
    return replace(whole, checks=(*whole.checks, *consumers_check(spec, whole))) if thorough else whole


def planned_versions(registry: Registry) -> QuerySet[SchemaVersion]:
    """Return a registry's versions with what a plan reads of each, and their subject's newest trusted live version.

    Trusted means not quarantined.
    """
    live = SchemaVersion.objects.filter(subject=OuterRef("subject"), deleted_at=None)
    newest = live.exclude(status__status=VersionStatus.QUARANTINED).order_by("-version")
    rows = SchemaVersion.objects.filter(subject__context__registry=registry)
    joined = rows.select_related("schema__context", "subject__context", "status")
    return joined.annotate(newest=Subquery(newest.values("version")[:1]))


def newest_of(row: SchemaVersion) -> int:
    """Return the subject's newest trusted live version, for a row of `planned_versions`; 0 if there is none."""
    return getattr(row, "newest", None) or 0


def _versions(spec: PromotionSpec, known: Sequence[SchemaVersion]) -> list[IncomingVersion]:
    """Return the versions as their registry has them: the source, or (roll back, adopt) the target."""
    environment = spec.source or spec.target
    keys = {(item.subject, item.version) for item in spec.items}
    promotes = spec.kind == PROMOTE
    rows, infos, graph = _with_references(environment.registry, keys, known, follow=promotes)
    configs = scope_settings_for_many(environment.registry, {name for name, _ in keys}) if spec.with_config else {}
    parse = parser_of([row.schema for row in rows.values()], graph)
    versions = []
    for key, row in rows.items():
        info, name = infos[key], key[0]
        needs = tuple((_qualified(ref, name), ref.version) for ref in info.schema.references)
        own: OwnConfig | None = configs[name].own() if key in keys and name in configs else None
        versions.append(
            IncomingVersion(
                subject=name.qualified,
                version=key[1],
                schema=parse(row.schema),
                text=_faithful_text(environment.registry, info),
                schema_type=info.schema.schema_type,
                references=info.schema.references,
                needs=needs if promotes else (),
                metadata=info.schema.metadata or {},
                rule_set=info.schema.rule_set or {},
                source_id=info.schema.schema_id,
                requested=key in keys,
                status=_status(row),
                newest=newest_of(row),
                config=own,
            )
        )
    return versions


def _status(row: SchemaVersion) -> str:
    if row.deleted_at is not None:
        return "deleted"
    status = getattr(row, "status", None)
    return status.status if status else ""


def _with_references(
    registry: Registry, keys: Collection[_Key], known: Sequence[SchemaVersion], *, follow: bool
) -> tuple[dict[_Key, SchemaVersion], dict[_Key, VersionInfo], ReferenceGraph]:
    """Return the requested versions and, with `follow`, everything they refer to, with the graph of references.

    Two queries per level of references, without the versions that are known.
    """
    graph: ReferenceGraph | None = None
    rows_by_key: dict[_Key, SchemaVersion] = {}
    infos: dict[_Key, VersionInfo] = {}
    missing = set(keys)
    while missing:
        rows = _by_key(known) if known and not rows_by_key else _rows(registry, missing, deleted=bool(rows_by_key))
        _refuse_absent(registry, missing - rows.keys())
        rows_by_key |= rows
        if len(rows_by_key) > MAX_VERSIONS:
            raise InvalidInput(f"It refers to more than {MAX_VERSIONS} versions. Promote those first.")
        # the first level's graph contains everything that it refers to
        graph = graph or read_graph({row.schema_id for row in rows.values()})
        here = dict(zip(rows, infos_of(list(rows.values()), graph.references()), strict=True))
        infos |= here
        needs = {
            (parse_subject(_qualified(ref, info.subject)), ref.version)
            for info in here.values()
            for ref in info.schema.references
        }
        missing = needs - rows_by_key.keys() if follow else set()
    ordered = sorted(rows_by_key, key=lambda key: (key[0].qualified, key[1]))
    return {key: rows_by_key[key] for key in ordered}, infos, graph or read_graph(set())


def _rows(registry: Registry, keys: Collection[_Key], *, deleted: bool) -> dict[_Key, SchemaVersion]:
    """Return the versions with those keys, with what `infos_of` and the status need; may include soft-deleted ones."""
    rows = planned_versions(registry).filter(
        subject__context__name__in={name.context for name, _ in keys},
        subject__name__in={name.subject for name, _ in keys},
        version__in={number for _, number in keys},
    )
    if not deleted:
        rows = rows.filter(deleted_at=None)
    rows_by_key = _by_key(rows)
    return {key: rows_by_key[key] for key in keys if key in rows_by_key}


def _by_key(rows: Iterable[SchemaVersion]) -> dict[_Key, SchemaVersion]:
    return {(SubjectName(row.subject.context.name, row.subject.name), row.version): row for row in rows}


def _refuse_absent(registry: Registry, absent: Collection[_Key]) -> None:
    for name, number in sorted(absent, key=lambda key: (key[0].qualified, key[1])):
        there = SchemaVersion.objects.filter(
            subject__context__registry=registry,
            subject__context__name=name.context,
            subject__name=name.subject,
            deleted_at=None,
        )
        if not there.exists():
            raise SubjectNotFound(f"Subject '{name.qualified}' not found in {registry.name}.", subject=name.qualified)
        raise VersionNotFound(f"Version {number} of {name.qualified} not found in {registry.name}.", version=number)


def _qualified(reference: Reference, referrer: SubjectName) -> str:
    return parse_subject(reference.subject, context=referrer.context).qualified


def _faithful_text(registry: Registry, info: VersionInfo) -> str:
    """Return the submitted text if it means what is stored; the stored text if normalization changed the meaning."""
    if info.submitted == info.schema.text:
        return info.submitted
    targets = resolve_references(registry, info.schema.references, context=info.subject.context, deleted=True)
    resolved = tuple(reference for reference, _ in targets)
    submitted = parse_schema(info.schema.schema_type, info.submitted, resolved, is_new=False)
    return info.submitted if submitted.is_stored_as(info.schema.text) else info.schema.text


def _proposed(spec: PromotionSpec, spoken: Settings) -> list[IncomingVersion]:
    """Return the proposed texts with their references as they are at the target now. Raises InvalidSchema."""
    proposals = []
    for item in spec.items:
        if item.text is None:
            raise InvalidInput(f"A proposal needs the text for {item.subject.qualified}.")
        settings = spoken[spec.target.registry_id, item.subject].settings()
        is_new = settings.validate_new_schemas is not False
        proposals.append(_proposal(spec.target, item.subject, item.text, is_new=is_new))
    return proposals


def _proposal(target: Environment, subject: SubjectName, text: ItemText, *, is_new: bool) -> IncomingVersion:
    """Return a proposed text; if a reference doesn't resolve (any more) it has no schema, and `problem` says so."""
    bare = IncomingVersion(subject.qualified, 0, None, text.text, text.schema_type, text.references)
    try:
        targets = resolve_references(target.registry, text.references, context=subject.context)
    except InvalidReference as error:
        return replace(bare, problem=error.message)
    resolved = tuple(reference for reference, _ in targets)
    references = tuple(reference.reference for reference in resolved)
    schema = parse_schema(text.schema_type, text.text, resolved, is_new=is_new)
    return replace(bare, schema=schema, references=references)
