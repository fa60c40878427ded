"""The interface to the engines: cheap schemas run in this process, costly ones in worker processes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar, cast

from registry.errors import InvalidReference
from registry.formats import FORMATS, assessment, compatibility, format_of, read_modify_write, suggested_edits
from registry.formats.assessment import Assessment
from registry.formats.base import (
    DecodedBody,
    Difference,
    Edit,
    FieldEdit,
    Incompatibility,
    Judgement,
    OutlineField,
    ParsedSchema,
    Resolution,
    ResolvedReference,
    Truth,
    Witness,
)
from registry.formats.compatibility import History, LevelOverview
from registry.formats.cost import Cost, Place, estimate, place_of, place_of_pair
from registry.formats.json_change import Change
from registry.formats.lint import LintFinding
from registry.formats.policies import POLICIES, PolicyReport
from registry.formats.read_modify_write import Reset, Simulation
from registry.formats.report import Profile, Report
from registry.formats.schema_format import SchemaFormat
from registry.formats.suggested_edits import FindingRepairs, SuspectedRename
from registry.formats.tags import EntityTags, changes_of
from registry.sandbox import WeighedCache
from registry.sandbox.codec import Source
from registry.subjects.engine.schema_workers import label_of, run_in_child

#: the most characters of a new schema × comparisons with data that this process does: about 2 µs each
_PROVED_HERE: Final = 2_000_000
#: results that pages request repeatedly, by rows: fields of schemas, differences and resets
_outlines = WeighedCache[tuple[OutlineField, ...]](50_000, lambda fields: len(fields) + 1)
_differences = WeighedCache[tuple[Difference, ...]](30_000, lambda differences: len(differences) + 1)
_resets = WeighedCache[tuple[Reset, ...]](10_000, lambda resets: len(resets) + 1)
_pairs = WeighedCache[Any](60_000, lambda result: result.weight)
#: results of the rules, the data and the linter, by findings: a report is requested again with another level, view or
#: file
_judgements = WeighedCache[Judgement](30_000, lambda judgement: len(judgement.breaks) + len(judgement.hazards) + 1)
_truths = WeighedCache[Truth](30_000, lambda outcome: len(outcome.findings) + 1)
_advice = WeighedCache[tuple[LintFinding, ...]](30_000, lambda findings: len(findings) + 1)
#: whole reports without the subjects that refer to this one, by findings
_assessments = WeighedCache[Assessment](40_000, lambda report: report.weight)
#: the edits of suspected renames, by characters
_edits = WeighedCache[Edit | None](4_000_000, lambda edit: len(edit.text) if edit else 1)


class Heavy(Protocol):
    """A value with a number of rows."""

    @property
    def weight(self) -> int:
        """The number of rows."""


Made = TypeVar("Made", bound=Heavy)


@dataclass(frozen=True, slots=True)
class PlacedSchema(ParsedSchema):
    """A parsed schema with what decides where it is processed.

    `resolved` are its references with their texts.
    """

    resolved: tuple[ResolvedReference, ...] = field(default=(), compare=False, repr=False)
    cost: Cost = field(default_factory=lambda: Cost("", {}), compare=False, repr=False)


def parse(
    schema_type: str, text: str, references: Sequence[ResolvedReference] = (), *, is_new: bool = True
) -> PlacedSchema:
    """Parse a schema without a cache.

    If it isn't new, it was accepted earlier, here or elsewhere: its defaults aren't checked against their types, as in
    Confluent (`validateNewSchemas`). Raises InvalidSchema, SchemaTooCostly, InvalidReference, Unavailable.
    """
    resolved = tuple(references)
    if resolved and not format_of(schema_type).has_references:
        raise InvalidReference(f"References: {format_of(schema_type).unavailable}")
    cost = estimate(schema_type, text, resolved)
    if place_of(cost) == "process" or schema_type not in FORMATS:
        parsed = format_of(schema_type).parse(text, resolved, is_new=is_new)
    else:
        parsed = run_in_child(
            "parse", [Source(schema_type, text, resolved)], {"is_new": is_new}, label_of(schema_type, text)
        )
    return PlacedSchema(
        schema_type=schema_type,
        text=text,
        canonical=parsed.canonical,
        fingerprint=parsed.fingerprint,
        references=tuple(item.reference for item in resolved),
        earlier_canonical=parsed.earlier_canonical,
        missing_types=parsed.missing_types,
        model=parsed.model,
        resolved=resolved,
        cost=cost,
    )


def references_of(schema: ParsedSchema) -> tuple[ResolvedReference, ...]:
    """Return the references of a schema that was parsed here, with their texts."""
    if isinstance(schema, PlacedSchema):
        return schema.resolved
    if schema.references:
        raise TypeError("a schema with references goes through engines.parse, which keeps what they lead to")
    return ()


def _content(schema: ParsedSchema) -> tuple[str, str, str]:
    """Return what determines every result for people; includes comments, which the fingerprint omits."""
    return schema.schema_type, schema.fingerprint, schema.text


def _digest(history: History) -> bytes:
    """Return a digest of the content of many versions."""
    hasher = hashlib.sha256()
    for version, schema in history:
        for part in (str(version), *_content(schema)):
            hasher.update(hashlib.sha256(part.encode("utf-8", "surrogatepass")).digest())
    return hasher.digest()


def normalize(schema: ParsedSchema) -> str:
    """Return the text that `normalize=true` registers."""
    return str(_verb("normalize", schema))


def text_by(verb: str, schema: ParsedSchema) -> str:
    """Return the text in another form, by the format's method of that name: see `SchemaFormat.forms`."""
    return str(_verb(verb, schema))


def outline(schema: ParsedSchema) -> tuple[OutlineField, ...]:
    """Return the fields as a flat list, nested ones after their parent."""
    return _outlines.get(_content(schema), lambda: _verb("outline", schema))


def self_contained(schema: ParsedSchema) -> str:
    """Return the text with everything that it refers to included."""
    return str(_verb("self_contained", schema))


def example(schema: ParsedSchema) -> Any:
    """Return a datum of the schema in the format's JSON form. Raises InvalidDatum."""
    return _verb("example", schema)


def position(schema: ParsedSchema, pointer: str) -> tuple[int, int] | None:
    """Return line and column of a pointer's target."""
    line_and_column: tuple[int, int] | None = _verb("position", schema, pointer)
    return line_and_column


def diff(old: ParsedSchema, new: ParsedSchema) -> tuple[Difference, ...]:
    """Return all changes, for people, in the order of the text."""
    return _differences.get((_content(old), _content(new)), lambda: _verb("diff", old, new))


def of_pair(old: ParsedSchema, new: ParsedSchema, way: Hashable, make: Callable[[], Made]) -> Made:
    """Return a result that depends only on the content of two schemas and on `way`; cached by its number of rows."""
    result: Made = _pairs.get((_content(old), _content(new), way), make)
    return result


def lint(schema: ParsedSchema) -> tuple[LintFinding, ...]:
    """Return advice on the schema alone."""
    return _advice.get(_content(schema), lambda: _verb("lint", schema))


def judge(reader: ParsedSchema, writer: ParsedSchema) -> Judgement:
    """Return all breaks and hazards of reading the writer's data with the reader."""
    return _judgements.get((_content(reader), _content(writer)), lambda: _verb("judge", reader, writer))


def tags(schema: ParsedSchema) -> tuple[EntityTags, ...]:
    """Return the tagged records and fields with their tags, in the order of the text."""
    entities: tuple[EntityTags, ...] = _verb("tags", schema)
    return entities


def with_tags(schema: ParsedSchema, add: Sequence[EntityTags], remove: Sequence[EntityTags]) -> str:
    """Return the text with those tags added, then those removed. Raises InvalidSchema for an unknown entity."""
    return str(_verb("with_tags", schema, changes_of(add, remove)))


def has_top_level_field(schema: ParsedSchema, name: str) -> bool:
    """Return whether the schema itself, not a nested one, has a field of that name."""
    return bool(_verb("has_top_level_field", schema, name))


def incompatibilities(reader: ParsedSchema, writer: ParsedSchema) -> tuple[Incompatibility, ...]:
    """Return only the breaks."""
    return judge(reader, writer).breaks


def truth(reader: ParsedSchema, writer: ParsedSchema) -> Truth:
    """Return what really happens to the writer's data."""
    return _truths.get((_content(reader), _content(writer)), lambda: _verb("truth", reader, writer))


def witness(reader: ParsedSchema, writer: ParsedSchema, finding: Incompatibility | None = None) -> Witness:
    """Return proof of one finding, or of any break of the pair."""
    proof: Witness = _verb("witness", reader, writer, finding)
    return proof


def resolve(reader: ParsedSchema, writer: ParsedSchema, datum: Any) -> Resolution:
    """Read a datum with the reader. Raises InvalidDatum."""
    resolution: Resolution = _verb("resolve", reader, writer, datum)
    return resolution


def repair(schema: ParsedSchema, other: ParsedSchema, finding: Incompatibility, *, is_reader: bool) -> Edit | None:
    """Return the smallest edit of `schema` that removes the finding against `other`."""
    edit: Edit | None = _verb("repair", schema, other, finding, is_reader=is_reader)
    return edit


def accept_rename(old: ParsedSchema, new: ParsedSchema, suspected: Difference) -> Edit | None:
    """Return the edit of `new` that turns a suspected rename into a declared one."""
    key = (_content(old), _content(new), suspected.rule, suspected.pointer_old, suspected.pointer_new)
    return _edits.get(key, lambda: _verb("accept_rename", old, new, suspected))


def suspected_renames(old: ParsedSchema, new: ParsedSchema) -> tuple[SuspectedRename, ...]:
    """Return the suspected renames between two versions, likeliest first, with the edits that would declare them."""
    return suggested_edits.renames_of(
        diff(old, new), lambda item: accept_rename(old, new, item), lambda: len(outline(new))
    )


def edit_field(schema: ParsedSchema, path: str, edit: FieldEdit) -> Edit:
    """Return the schema with one field changed. Raises InvalidSchema."""
    edited: Edit = _verb("edit_field", schema, path, edit)
    return edited


def check(
    new: ParsedSchema, history: History, level: str, *, profile: Profile = "confluent", lenient: bool = False
) -> Report:
    """Check a new schema against the versions that the level requires; `lenient` is that of the compatibility policy.

    Raises InvalidCompatibility.
    """
    if _place([new, *(old for _, old in history)]) == "process":
        engine = FORMATS[new.schema_type]
        return compatibility.check(engine.lenient if lenient else engine, new, history, level, profile=profile)
    scope = compatibility.level_named(level).scope
    versions = {"none": [], "latest": history[-1:], "all": history}[scope]
    report: Report = _with_history("check", new, versions, level, profile=profile, lenient=lenient)
    return report


def check_both(new: ParsedSchema, old: tuple[int, ParsedSchema], *, profile: Profile) -> tuple[Report, Report]:
    """Return the reports of both directions against one version: the new schema reads its data, and vice versa."""
    if _place([new, old[1]]) == "process":
        checker = compatibility.Checker(_cached_format(new), new, [old], profile)
        return checker.report(compatibility.LEVELS["BACKWARD"]), checker.report(compatibility.LEVELS["FORWARD"])
    return check(new, [old], "BACKWARD", profile=profile), check(new, [old], "FORWARD", profile=profile)


def check_all_levels(new: ParsedSchema, history: History, *, profile: Profile = "confluent") -> LevelOverview:
    """Return the reports of all seven levels and the matrix of all versions."""
    if _place([new, *(old for _, old in history)]) == "process":
        return compatibility.check_all_levels(FORMATS[new.schema_type], new, history, profile=profile)
    strip: LevelOverview = _with_history("check_all_levels", new, history, profile=profile)
    return strip


def assess(
    new: ParsedSchema,
    history: History,
    level: str,
    *,
    references: Sequence[ResolvedReference] | None = None,
    profile: Profile = "confluent",
) -> Assessment:
    """Return the whole report of a new schema; pass its `references` if it wasn't parsed by this module."""
    key = (_content(new), _digest(history), level, profile)
    return _assessments.get(key, lambda: _assess(new, history, level, references, profile))


def _assess(
    new: ParsedSchema, history: History, level: str, references: Sequence[ResolvedReference] | None, profile: Profile
) -> Assessment:
    resolved = references_of(new) if references is None else tuple(references)
    compared = len(new.text) * min(2 * len(history), assessment.MAX_COMPARED_WITH_DATA)
    if compared <= _PROVED_HERE and _place([new, *(old for _, old in history)]) == "process":
        return assessment.assess(
            _cached_format(new),
            new,
            history,
            level,
            parse=lambda text: parse(new.schema_type, text, resolved),
            profile=profile,
        )
    report: Assessment = _with_history("assess", new, history, level, profile=profile)
    return report


def repairs_of(
    new: ParsedSchema, history: History, level: str, *, references: Sequence[ResolvedReference], profile: Profile
) -> tuple[FindingRepairs, ...]:
    """Return the edits that each remove one finding of a new schema, the safest first."""
    if _place([new, *(old for _, old in history)]) != "process":
        repairs: tuple[FindingRepairs, ...] = _with_history("repairs_of", new, history, level, profile=profile)
        return repairs
    return suggested_edits.repairs_of(
        _cached_format(new),
        new,
        history,
        level,
        parse=lambda text: parse(new.schema_type, text, references),
        profile=profile,
    )


def check_policy(policy: str, new: ParsedSchema, history: History) -> PolicyReport:
    """Check a new schema by a policy of `registry.formats.policies.POLICIES`."""
    if _place([new, *(old for _, old in history)]) == "process":
        return POLICIES[policy].check(new, history)
    report: PolicyReport = _with_history("check_policy", new, history, policy)
    return report


def decode_body(schema: ParsedSchema, body: bytes, indexes: tuple[int, ...] | None = None) -> DecodedBody:
    """Decode a message body, always in a child: a few bytes may declare anything. Raises InvalidDatum."""
    decoded: DecodedBody = _ask("decode_body", [schema], [_source(schema), body, indexes], {})
    return decoded


def simulate_read_modify_write(
    own: ParsedSchema, other: ParsedSchema, datum: Any, change: Change | None = None
) -> Simulation:
    """Modify a datum of `own` through `other` and read it again. Raises InvalidDatum."""
    if _place([own, other]) == "process":
        return read_modify_write.simulate_read_modify_write(FORMATS[own.schema_type], own, other, own, datum, change)
    sent = [_source(own), _source(other), _source(own), datum, change]
    simulation: Simulation = _ask("simulate_read_modify_write", [own, other], sent, {})
    return simulation


def find_resets(versions: History) -> tuple[Reset, ...]:
    """Return the fields that read-modify-writes by versions in use together reset."""
    content = tuple((number, _content(schema)) for number, schema in versions)
    return _resets.get(content, lambda: _find_resets(versions))


def _find_resets(versions: History) -> tuple[Reset, ...]:
    schemas = [schema for _, schema in versions]
    if all(_place([schema, *schemas]) == "process" for schema in schemas):
        return read_modify_write.find_resets(FORMATS[schemas[0].schema_type], versions)
    sent = [tuple((number, _source(schema)) for number, schema in versions)]
    resets: tuple[Reset, ...] = _ask("find_resets", schemas, sent, {})
    return resets


def forget() -> None:
    """Clear all cached results, so that the engines compute them again."""
    for cache in (_outlines, _differences, _resets, _pairs, _judgements, _truths, _advice, _assessments, _edits):
        cache.clear()


class _CachedFormat:
    """An engine that takes its results from this module where this module caches them."""

    _VERBS: Final = {
        "diff": diff,
        "outline": outline,
        "lint": lint,
        "judge": judge,
        "truth": truth,
        "accept_rename": accept_rename,
    }

    def __init__(self, engine: SchemaFormat) -> None:
        self._engine = engine
        self.name, self.position = engine.name, engine.position  # read for every finding

    def __getattr__(self, verb: str) -> Any:
        return self._VERBS.get(verb) or getattr(self._engine, verb)


def _cached_format(schema: ParsedSchema) -> SchemaFormat:
    return cast(SchemaFormat, _CachedFormat(FORMATS[schema.schema_type]))


# -- where, and how ---------------------------------------------------------------------------------------------------


def _place(schemas: Sequence[ParsedSchema]) -> Place:
    """Return where to compare the first schema with the others: one costly pair puts all in the child."""
    if any(schema.model is None for schema in schemas):
        return "child"
    first, *others = (_cost(schema) for schema in schemas)
    if place_of(first) == "child" or any(place_of_pair(first, other) == "child" for other in others):
        return "child"
    return "process"


def _cost(schema: ParsedSchema) -> Cost:
    return schema.cost if isinstance(schema, PlacedSchema) else estimate(schema.schema_type, schema.text)


def _verb(verb: str, *arguments: Any, **options: Any) -> Any:
    schemas = [argument for argument in arguments if isinstance(argument, ParsedSchema)]
    if _place(schemas) == "process":
        return getattr(FORMATS[schemas[0].schema_type], verb)(*arguments, **options)
    sent = [_source(item) if isinstance(item, ParsedSchema) else item for item in arguments]
    return _ask(verb, schemas, sent, options)


def _with_history(verb: str, new: ParsedSchema, history: History, *arguments: Any, **options: Any) -> Any:
    sent = tuple((version, _source(old)) for version, old in history)
    return _ask(verb, [new, *(old for _, old in history)], [_source(new), sent, *arguments], options)


def _ask(verb: str, schemas: Sequence[ParsedSchema], sent: Sequence[Any], options: Mapping[str, Any]) -> Any:
    return run_in_child(verb, sent, options, label_of(schemas[0].schema_type, schemas[0].text))


def _source(schema: ParsedSchema) -> Source:
    return Source(schema.schema_type, schema.text, references_of(schema))
