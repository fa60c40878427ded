"""Oracle NoSQL Database's rules for schema evolution: stricter than Avro's resolution, against all enabled versions.

The table has two variants. The default is the documented rules: a field without a default can't be deleted, the type of
a field can't change, an added field needs a default, and a field can't be renamed. The product's own checker is laxer:
it accepts widenings and additions to unions and enums with force, and doesn't detect renames.

What force overrides: according to the document, an unsafe change is either rejected when the schema is added, or
possible only with a plan for upgrading the clients that use the schema. Force therefore overrides changes that leave
stored data readable with the new schema and harm only clients with an old one: a deletion of a field without a default,
a widening, an added branch or symbol, a rename. It never overrides changes that make stored data unreadable or change
its meaning. The caller decides who may force, and records it.

A field without a default in a new record is advice under the documented rules ("for best results"). The product's
checker requires force each time a version with such a field is added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

from registry.formats.avro.diff import DiffLocation
from registry.formats.avro.findings import root_path
from registry.formats.avro.model import AvroSchema, Record, RecordField, type_label
from registry.formats.base import Incompatibility, ParsedSchema, Severity
from registry.formats.policies.base import History, PolicyItem, PolicyReport, PolicyRule, Weight
from registry.formats.policies.oracle_nosql.rules import EVOLVE_RULES
from registry.formats.policies.oracle_nosql.schema_walk import RuleMatch, evolution, new_fields, why_default_is_invalid

Variant = Literal["document", "product"]
MAX_ITEMS: Final = 10_000

_SEVERITIES: Final[Mapping[Variant, Mapping[Weight, Severity]]] = {
    "document": {"advice": "warning", "force": "break", "refusal": "break"},
    "product": {"advice": "warning", "force": "warning", "refusal": "break"},
}


class OracleNosql:
    """The policy in one of its variants; stateless."""

    def __init__(self, name: str, title: str, variant: Variant) -> None:
        self.name = name
        self.title = title
        self.variant = variant

    @property
    def rules(self) -> Mapping[str, PolicyRule]:
        """The rules of the variant."""
        return {id: rule for id, rule in EVOLVE_RULES.items() if self._weight(id) is not None}

    def check(self, new: ParsedSchema, history: History) -> PolicyReport:
        """Return all items of a new schema, alone and against every enabled version, newest version first.

        `history` is in ascending order of versions. Returns at most MAX_ITEMS items. Raises InvalidSchema if two
        schemas have too many places to compare.
        """
        versions = tuple(version for version, _ in reversed(history))
        items: list[PolicyItem] = []
        for item in self._items(new, history):
            items.append(item)
            if len(items) == MAX_ITEMS:
                break
        return PolicyReport(self.name, tuple(items), versions)

    def _items(self, new: ParsedSchema, history: History) -> Iterator[PolicyItem]:
        if not _is_record(new):
            match = RuleMatch("NOT_A_RECORD", DiffLocation("", "", ""), after=_root_label(new), only_new=True)
            yield from self._named(None, [match])
            return
        yield from self._named(None, self._alone(new, history))
        for version, old in reversed(history):
            if _is_record(old):
                yield from self._named(version, evolution(old.model.root, new.model.root))
            else:
                location = DiffLocation(root_path(new.model.root), "", "")
                match = RuleMatch("VERSION_NOT_A_RECORD", location, before=_root_label(old), after=_root_label(new))
                yield from self._named(version, [match])

    def _alone(self, new: ParsedSchema, history: History) -> Iterator[RuleMatch]:
        """Yield matches of the new schema alone."""
        known_names = {name for _, old in history if isinstance(old.model, AvroSchema) for name in old.model.named}
        if history and self.variant == "document":
            known_names.update(old.model.root.full_name for _, old in history if _is_record(old))
            if _is_record(new):
                known_names.add(new.model.root.full_name)
        for record, field, path in new_fields(new.model.root):
            if field.has_default:
                reason = why_default_is_invalid(field)
                if reason is not None:
                    yield _of_field("DEFAULT_INVALID", record, field, path, reason)
            elif self.variant == "product" or record.full_name not in known_names:
                # Under the documented rules, a field that a known record gains without a default is rejected anyway.
                yield _of_field("FIELD_WITHOUT_DEFAULT", record, field, path)

    def _named(self, version: int | None, matches: Iterable[RuleMatch]) -> Iterator[PolicyItem]:
        for match in matches:
            weight = self._weight(match.rule)
            if weight is not None:
                severity = _SEVERITIES[self.variant][weight]
                yield PolicyItem(version, weight, _finding(match, severity, version), match.score, match.reasons)

    def _weight(self, rule: str) -> Weight | None:
        row = EVOLVE_RULES[rule]
        return row.document if self.variant == "document" else row.product


def _is_record(schema: ParsedSchema) -> bool:
    return isinstance(schema.model, AvroSchema) and isinstance(schema.model.root, Record)


def _root_label(schema: ParsedSchema) -> str:
    """Return the kind of the schema as a whole, for a sentence."""
    return (
        type_label(schema.model.root) if isinstance(schema.model, AvroSchema) else f"of the format {schema.schema_type}"
    )


def _of_field(rule: str, record: Record, field: RecordField, path: str, detail: str = "") -> RuleMatch:
    location = DiffLocation(path, "", field.pointer)
    label = type_label(field.type)
    return RuleMatch(rule, location, field.name, None, label, detail=detail, only_new=True, new_source=record.source)


def _finding(match: RuleMatch, severity: Severity, version: int | None) -> Incompatibility:
    row = EVOLVE_RULES[match.rule]
    values = {
        "name": match.name,
        "before": match.before,
        "after": match.after,
        "detail": match.detail,
        "score": match.score,
    }
    return Incompatibility(
        rule=match.rule,
        kind=row.requirement or match.rule,
        reader_pointer=None if match.only_old else match.location.new,
        writer_pointer=None if match.only_new or version is None else match.location.old,
        path=match.location.path,
        before=match.before,
        after=match.after,
        message=row.sentence.format_map(values),
        severity=severity,
        detail=match.detail,
        why=row.why,
        remedy_in_reader=row.remedy.format_map(values),
        reader_source=match.new_source,
        writer_source=match.old_source,
    )


ORACLE_NOSQL: Final = OracleNosql("oracle_nosql", "Oracle NoSQL Database, the documented evolve rules", "document")
ORACLE_NOSQL_LENIENT: Final = OracleNosql(
    "oracle_nosql_lenient", "Oracle NoSQL Database, the rules of the product's checker", "product"
)
