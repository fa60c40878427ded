"""Changes in business terms, for people who know the data but not the schema: each field's change and tags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from django.utils.translation import gettext

from dashboard.compare.comparison import ChangeCard, VersionComparison
from dashboard.compatibility.presenters import ReportFinding
from dashboard.components.badges import Verdict
from dashboard.components.translation import gettext_lazy as _
from dashboard.subjects.descriptions import TagChip, tag_chips
from registry.formats import format_of
from registry.subjects import selectors
from registry.subjects.comparison.parsed_versions import tags_of_outline
from registry.subjects.lifecycle.notes import note_of
from registry.subjects.versions.lookup import Registry
from registry.subjects.versions.qualified_names import SubjectName

LONGEST: Final = 200
_Told = TypeVar("_Told", ChangeCard, ReportFinding)
_STEPS: Final = re.compile(r"\[\]|\{\}")
#: boundaries between words in camel case
_HUMPS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BETWEEN: Final = re.compile(r"[\W_]+")
_TECHNICAL: Final = _("%(field)s changes its form, but not its meaning")
_UNTOLD: Final = _("%(field)s changes so that not every reader can read it")
_GONE: Final = _("%(field)s is no longer allowed")
_ANOTHER_MEANING: Final = _("%(field)s is read with another meaning, such as a date or an amount")
_ANOTHER_KIND: Final = _("%(field)s becomes another type of value")
_ALWAYS: Final = _("%(field)s is now required")
_UNKNOWN_CHOICE: Final = _("%(field)s may have an option that readers don’t know")
_NUMBER: Final = _("%(field)s may occur a different number of times")
_NEW_VALUES: Final = _("%(field)s may have different values than before in places where it was not described")
#: rule of a difference → sentence about the field
PHRASES: Final[Mapping[str, str]] = {
    "FIELD_ADDED": _("%(field)s is new"),
    "FIELD_REMOVED": _("%(field)s is removed"),
    "FIELD_RENAMED": _("%(field)s is renamed"),
    "FIELD_RENAME_SUSPECTED": _("%(field)s may have been renamed"),
    "PROPERTY_RENAME_SUSPECTED": _("%(field)s may have been renamed"),
    "FIELD_RENUMBERED": _("%(field)s is written in another position, so old data is misread"),
    "NULL_ADDED": _("%(field)s is now optional"),
    "NULL_REMOVED": _("%(field)s must now have a value"),
    "REQUIRED_ADDED": _("%(field)s is now required"),
    "REQUIRED_REMOVED": _("%(field)s is now optional"),
    "LABEL_CHANGED": _("%(field)s may occur a different number of times"),
    "TYPE_WIDENED": _("%(field)s accepts a wider range of values"),
    "TYPE_NARROWED": _("%(field)s accepts a narrower range of values"),
    "TYPE_EXCHANGED": _("%(field)s is written as another type of value"),
    "TYPE_CHANGED": _("%(field)s becomes another type of value"),
    "TYPE_ADDED": _("%(field)s accepts one more type of value"),
    "TYPE_REMOVED": _("%(field)s accepts one type of value fewer"),
    "UNION_INTRODUCED": _("%(field)s can have several types"),
    "UNION_DISSOLVED": _("%(field)s has only one type"),
    "UNION_BRANCH_ADDED": _("%(field)s accepts one more type of value"),
    "UNION_BRANCH_REMOVED": _("%(field)s accepts one type of value fewer"),
    "ENUM_SYMBOL_ADDED": _("%(field)s gets one more option"),
    "ENUM_SYMBOL_REMOVED": _("%(field)s loses an option"),
    "ENUM_VALUE_ADDED": _("%(field)s gets one more option"),
    "ENUM_VALUE_REMOVED": _("%(field)s loses an option"),
    "ENUM_VALUE_RENAMED": _("%(field)s renames an option"),
    "ENUM_ADDED": _("%(field)s is limited to a list of options"),
    "ENUM_REMOVED": _("%(field)s is no longer limited to a list of options"),
    "DEFAULT_ADDED": _("%(field)s gets a default value"),
    "DEFAULT_REMOVED": _("%(field)s loses its default value"),
    "DEFAULT_CHANGED": _("%(field)s gets another default value"),
    "LOGICAL_TYPE_ADDED": _("%(field)s gets a meaning, such as a date or an amount"),
    "LOGICAL_TYPE_REMOVED": _("%(field)s loses its meaning, such as a date or an amount"),
    "LOGICAL_TYPE_CHANGED": _("%(field)s gets another meaning, such as a date or an amount"),
    "FORMAT_ADDED": _("%(field)s must now have a certain format"),
    "FORMAT_CHANGED": _("%(field)s must have another format"),
    "FORMAT_REMOVED": _("%(field)s may have any format"),
    "PATTERN_ADDED": _("%(field)s must now have a certain format"),
    "PATTERN_CHANGED": _("%(field)s must have another format"),
    "PATTERN_REMOVED": _("%(field)s may have any format"),
    "DOC_ADDED": _("%(field)s gets a description"),
    "DOC_REMOVED": _("%(field)s loses its description"),
    "DOC_CHANGED": _("%(field)s gets another description"),
    "DESCRIPTION_ADDED": _("%(field)s gets a description"),
    "DESCRIPTION_REMOVED": _("%(field)s loses its description"),
    "DESCRIPTION_CHANGED": _("%(field)s gets another description"),
    "DEPRECATED": _("%(field)s is now deprecated"),
    "DEPRECATED_ADDED": _("%(field)s is now deprecated"),
    "NO_LONGER_DEPRECATED": _("%(field)s is no longer deprecated"),
    "DEPRECATED_REMOVED": _("%(field)s is no longer deprecated"),
    "MESSAGE_ADDED": _("%(field)s is a new type of record"),
    "MESSAGE_REMOVED": _("%(field)s is a removed type of record"),
}
#: ending of a rule → sentence about the changed limit in JSON Schema
_LIMITS: Final[Mapping[str, str]] = {
    "_RAISED": _("%(field)s gets a higher limit"),
    "_INCREASED": _("%(field)s gets a higher limit"),
    "_LOWERED": _("%(field)s gets a lower limit"),
    "_DECREASED": _("%(field)s gets a lower limit"),
}
#: sentences for JSON Schema, whose properties are fields; in Avro, a property is an unknown attribute
_OF_JSON: Final[Mapping[str, str]] = {
    "PROPERTY_ADDED": _("%(field)s is new"),
    "PROPERTY_REMOVED": _("%(field)s is removed"),
}


#: rule of a finding → why data of another version can't be read, or is read differently
FINDINGS: Final[Mapping[str, str]] = {
    "FIELD_WITHOUT_DEFAULT": _("%(field)s is required by readers, and data without it can’t be read"),
    "NULL_NOT_ACCEPTED": _("%(field)s may be empty in data, but readers don’t expect that"),
    "ENUM_SYMBOL_MISSING": _UNKNOWN_CHOICE,
    "ENUM_VALUE_MISSING": _UNKNOWN_CHOICE,
    "CLOSED_ENUM_VALUE_MISSING": _UNKNOWN_CHOICE,
    "ENUM_CLOSED": _UNKNOWN_CHOICE,
    "ENUM_SYMBOL_DEFAULTED": _("%(field)s may have an option that readers mistake for another"),
    "ENUM_VALUE_RENUMBERED": _("%(field)s changes the numbers of its options, so readers mistake one for another"),
    "ENUM_ARRAY_NARROWED": _("%(field)s loses an option"),
    "ENUM_ARRAY_CHANGED": _("%(field)s has another list of options"),
    "UNION_BRANCH_MISSING": _("%(field)s may have a type of value that readers don’t know"),
    "UNION_BRANCH_AMBIGUOUS": _("%(field)s may be mistaken for another type of value"),
    "NAME_CHANGED": _("%(field)s has a type with another name for readers"),
    "JSON_NAME_CHANGED": _("%(field)s is renamed"),
    "FIXED_SIZE_CHANGED": _("%(field)s has another length"),
    "DECIMAL_PRECISION_NARROWED": _("%(field)s allows fewer digits"),
    "WIDENING_LOSES_PRECISION": _("%(field)s may lose its last digits"),
    "LOGICAL_TYPE_REINTERPRETED": _ANOTHER_MEANING,
    "KNOWN_TYPE_REINTERPRETED": _ANOTHER_MEANING,
    "DEFAULT_FILLED_DIFFERENTLY": _("%(field)s gets another default value in some programs"),
    "BYTES_READ_AS_DECIMAL": _("%(field)s is read as an amount, but it may not be one"),
    "BYTES_READ_AS_STRING": _("%(field)s is read as text, but it may not be text"),
    "FIELD_KIND_CHANGED": _ANOTHER_KIND,
    "FIELD_SCALAR_KIND_CHANGED": _ANOTHER_KIND,
    "FIELD_NAMED_TYPE_CHANGED": _ANOTHER_KIND,
    "WIRE_TYPE_CHANGED": _ANOTHER_KIND,
    "VALUE_NARROWED": _("%(field)s accepts a narrower range of values"),
    "FIELD_NUMERIC_LABEL_CHANGED": _NUMBER,
    "REPEATED_READ_AS_SINGLE": _NUMBER,
    "NUMBER_REUSED": _("%(field)s is written where another field was, so old data is misread"),
    "ONEOF_FIELD_REMOVED": _("%(field)s is removed"),
    "REQUIRED_FIELD_ADDED": _ALWAYS,
    "REQUIRED_ATTRIBUTE_ADDED": _ALWAYS,
    "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": _ALWAYS,
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": _ALWAYS,
    "REQUIRED_FIELD_REMOVED": _("%(field)s is no longer written, but readers require it"),
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL": _GONE,
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": _GONE,
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": _NEW_VALUES,
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": _NEW_VALUES,
    "SUM_TYPE_NARROWED": _("%(field)s accepts fewer types of values"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """The docs and tags of a field."""

    doc: str = ""
    tags: tuple[TagChip, ...] = ()


def in_business_words(shown: VersionComparison, facts: Mapping[str, Fact], schema_type: str) -> VersionComparison:
    """Return the comparison with business words on each card; `facts` are by path."""
    groups = tuple(
        replace(group, cards=tuple(_card(card, facts, schema_type) for card in group.cards)) for group in shown.groups
    )
    return replace(shown, groups=groups)


def findings_in_business_words(
    findings: Iterable[ReportFinding], facts: Mapping[str, Fact], schema_type: str
) -> tuple[ReportFinding, ...]:
    """Return a report's findings, each with business words; `facts` are by path."""
    return tuple(_card(finding, facts, schema_type) for finding in findings)


def _card(card: _Told, facts: Mapping[str, Fact], schema_type: str) -> _Told:
    """Add business words.

    A safe change without its own phrase is called technical; other changes without one get a neutral sentence.
    """
    fact = _fact(card.path, facts)
    tagged = ", ".join(tag.word for tag in fact.tags)
    unknown = _TECHNICAL if card.verdict is Verdict.OK else _UNTOLD
    sentence = phrase_of(card.rule, schema_type, unknown) % {"field": fact_name(card.path)}
    return replace(
        card,
        business=gettext("%(sentence)s – tagged %(tagged)s") % {"sentence": sentence, "tagged": tagged}
        if tagged
        else sentence,
        meaning=fact.doc if len(fact.doc) <= LONGEST else f"{fact.doc[: LONGEST - 1]}…",
        tags=fact.tags,
    )


def phrase_of(rule: str, schema_type: str, unknown: str = _TECHNICAL) -> str:
    """Return the sentence about `%(field)s` for a rule; `unknown` if the rule has none."""
    if rule in _OF_JSON and format_of(schema_type).has_properties:
        return _OF_JSON[rule]
    limit = next((phrase for end, phrase in _LIMITS.items() if rule.endswith(end)), "")
    return PHRASES.get(rule) or FINDINGS.get(rule) or limit or unknown


def fact_name(path: str) -> str:
    """Convert a path to a name: `Order.customer.eMail` is "Customer e mail"."""
    parts = [part for part in _STEPS.sub("", path).split(".") if part and part != "$"]
    parts_of_name = [word for part in parts[-2:] for word in _BETWEEN.split(_HUMPS.sub(" ", part)) if word]
    text = " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in parts_of_name)
    return text[:1].upper() + text[1:] if text else gettext("The whole record")


def _fact(path: str, facts: Mapping[str, Fact]) -> Fact:
    """Return the description of a path, or of its nearest described parent."""
    while path and path not in facts:
        path = path.rpartition(".")[0]
    return facts.get(path, Fact())


def facts_of(registry: Registry, name: SubjectName, version: str) -> dict[str, Fact]:
    """Return the docs and tags of a version's fields, by path. Raises SubjectNotFound, VersionNotFound."""
    info = selectors.get_version(registry, name, version, deleted=True)
    outline = selectors.outline_of(registry, name, info.version)
    tags = tags_of_outline(info.schema.schema_type, outline, info.schema.metadata, note_of(registry, name)).fields
    return {
        row.path: Fact(doc=row.doc, tags=tag_chips("", tags_of_field.tags))
        for row, tags_of_field in zip(outline, tags, strict=True)
    }
