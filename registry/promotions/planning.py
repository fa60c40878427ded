"""From what both environments hold now to a plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from registry.errors import InvalidInput, InvalidReference, SubjectNotFound, VersionNotFound
from registry.formats.base import Reference
from registry.promotions.acknowledged import consumers_check
from registry.promotions.holdings import target_of
from registry.promotions.models import Environment, PromotionRequest
from registry.promotions.outlook import checks_from_outside
from registry.promotions.plan import ItemText, Plan, Wanted, Wish, WishedItem
from registry.promotions.source_state import checks_of_source
from registry.promotions.staleness import stale
from registry.promotions.steps import plan_steps
from registry.promotions.surroundings import checks_around
from registry.subjects.models import SchemaVersion
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.effective import OwnConfig, config_and_settings, configs_and_settings
from registry.subjects.selectors.parsed import parse_schema, parse_stored, resolve_references
from registry.subjects.selectors.places import Registry
from registry.subjects.selectors.versions import VersionInfo, infos_of

__all__ = ["MAX_VERSIONS", "make_plan", "stale", "wish_of"]
MAX_VERSIONS = 200
PROPOSE, PROMOTE, ADOPT = PromotionRequest.PROPOSE, PromotionRequest.PROMOTE, PromotionRequest.ADOPT
_Key = tuple[SubjectName, int]


def wish_of(request: PromotionRequest) -> Wish:
    """What a stored request wants; one that was made before requests had items wants the version that it names."""
    rows = list(request.items.order_by("position")) if request.pk else []
    items = [
        WishedItem(
            SubjectName(row.context_name, row.subject_name),
            row.version_number,
            ItemText(row.schema_type, row.text, _references(row.references)) if not row.version_number else None,
        )
        for row in rows
    ]
    if not items:
        items = [WishedItem(SubjectName(request.context_name, request.subject_name), request.version_number)]
    return Wish(
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


def make_plan(wish: Wish, *, thorough: bool = True) -> Plan:
    """The plan for what is wished and all that it refers to; the same for every order of the items.

    Without `thorough` what has no part in the hash isn't looked for: evidence from data, and what becomes of those that
    refer to the subject. Raises SubjectNotFound, VersionNotFound, InvalidInput, InvalidSchema.
    """
    if not wish.items:
        raise InvalidInput("Name at least one version.")
    if len({item.subject for item in wish.items}) < len(wish.items):
        raise InvalidInput("Name each subject once: a request carries one version of it.")
    wanted = _proposed(wish) if wish.kind == PROPOSE else _versions(wish)
    target = target_of(wish.target, wanted, releases=wish.kind == ADOPT)
    plan = plan_steps(wish.kind, wanted, target)
    more = (
        *checks_from_outside(wish.target.registry, plan, wish.answers),
        *checks_around(wish, plan, wanted, thorough=thorough),
        *checks_of_source(wish, plan),
    )
    if not wish.target.drift_blocks:
        more = tuple(
            replace(item, verdict="warn") if item.code == "drift" and item.verdict == "fail" else item for item in more
        )
    whole = replace(plan, checks=(*plan.checks, *more))
    return replace(whole, checks=(*whole.checks, *consumers_check(wish, whole))) if thorough else whole


def _versions(wish: Wish) -> list[Wanted]:
    """The versions as the registry has them where they are: in the source, or (roll back, adopt) in the target."""
    place = wish.source or wish.target
    asked = {(item.subject, item.version) for item in wish.items}
    promotes = wish.kind == PROMOTE
    rows, infos = _with_references(place.registry, asked, follow=promotes)
    configs = configs_and_settings(place.registry, {name for name, _ in asked}) if wish.with_config else {}
    schemas = parse_stored([row.schema for row in rows.values()])
    found = []
    for (key, row), schema in zip(rows.items(), schemas, strict=True):
        info, name = infos[key], key[0]
        needs = tuple((_qualified(ref, name), ref.version) for ref in info.schema.references)
        own: OwnConfig | None = configs[name][2] if key in asked and name in configs else None
        found.append(
            Wanted(
                subject=name.qualified,
                version=key[1],
                schema=schema,
                text=_faithful_text(place.registry, info),
                schema_type=info.schema.schema_type,
                references=info.schema.references,
                needs=needs if promotes else (),
                metadata=info.schema.metadata or {},
                rule_set=info.schema.rule_set or {},
                source_id=info.schema.schema_id,
                asked=key in asked,
                standing=_standing(row),
                config=own,
            )
        )
    return found


def _standing(row: SchemaVersion) -> str:
    if row.deleted_at is not None:
        return "deleted"
    standing = getattr(row, "standing", None)
    return standing.standing if standing else ""


def _with_references(
    registry: Registry, asked: Collection[_Key], *, follow: bool
) -> tuple[dict[_Key, SchemaVersion], dict[_Key, VersionInfo]]:
    """The versions that are asked for and, with `follow`, all that they refer to: two queries a depth of references."""
    found: dict[_Key, SchemaVersion] = {}
    infos: dict[_Key, VersionInfo] = {}
    wanted = set(asked)
    while wanted:
        rows = _rows(registry, wanted, deleted=bool(found))
        _refuse_absent(registry, wanted - rows.keys())
        found |= rows
        if len(found) > MAX_VERSIONS:
            raise InvalidInput(f"It refers to more than {MAX_VERSIONS} versions; promote those first.")
        here = dict(zip(rows, infos_of(list(rows.values())), strict=True))
        infos |= here
        needs = {
            (parse_subject(_qualified(ref, info.subject)), ref.version)
            for info in here.values()
            for ref in info.schema.references
        }
        wanted = needs - found.keys() if follow else set()
    ordered = sorted(found, key=lambda key: (key[0].qualified, key[1]))
    return {key: found[key] for key in ordered}, infos


def _rows(registry: Registry, keys: Collection[_Key], *, deleted: bool) -> dict[_Key, SchemaVersion]:
    """The versions of those keys, with what `infos_of` and the standing need; a soft-deleted one may be referred to."""
    rows = SchemaVersion.objects.filter(
        subject__context__registry=registry,
        subject__context__name__in={name.context for name, _ in keys},
        subject__name__in={name.subject for name, _ in keys},
        version__in={number for _, number in keys},
    ).select_related("schema__context", "subject__context", "standing")
    if not deleted:
        rows = rows.filter(deleted_at=None)
    found = {(SubjectName(row.subject.context.name, row.subject.name), row.version): row for row in rows}
    return {key: found[key] for key in keys if key in found}


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
    """The text as it was submitted, where it says what is stored; the stored one where normalizing changed it."""
    if info.submitted == info.schema.text:
        return info.submitted
    found = resolve_references(registry, info.schema.references, context=info.subject.context, deleted=True)
    resolved = tuple(reference for reference, _ in found)
    submitted = parse_schema(info.schema.schema_type, info.submitted, resolved, is_new=False)
    return info.submitted if submitted.is_stored_as(info.schema.text) else info.schema.text


def _proposed(wish: Wish) -> list[Wanted]:
    """The proposed texts with their references as they are at the target now. Raises InvalidSchema."""
    found = []
    for item in wish.items:
        if item.text is None:
            raise InvalidInput(f"A proposal needs the text for {item.subject.qualified}.")
        found.append(_proposal(wish.target, item.subject, item.text))
    return found


def _proposal(target: Environment, subject: SubjectName, text: ItemText) -> Wanted:
    """A text that is wanted; one whose references lead nowhere (any more) has no schema, and says so."""
    bare = Wanted(subject.qualified, 0, None, text.text, text.schema_type, text.references)
    try:
        found = resolve_references(target.registry, text.references, context=subject.context)
    except InvalidReference as error:
        return replace(bare, problem=error.message)
    resolved = tuple(reference for reference, _ in found)
    references = tuple(reference.reference for reference in resolved)
    is_new = config_and_settings(target.registry, subject)[1].validate_new_schemas is not False
    schema = parse_schema(text.schema_type, text.text, resolved, is_new=is_new)
    return replace(bare, schema=schema, references=references)
