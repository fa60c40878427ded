"""Changes in the words of those who know the data and not the schema: what happens to which fact, and how it is tagged.

A field is called by its own name and that of what it is in ("Customer email"); what its docs say stands beside it. Where
a change is one of form alone, that is said; the schema's words are below each card.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from django.utils.translation import gettext

from dashboard.presenters.comparison import ChangeCard, Comparison
from dashboard.presenters.notes import TagChip
from dashboard.texts import later

LONGEST: Final = 200
_STEPS: Final = re.compile(r"\[\]|\{\}")
#: between two words of a name that is written in one
_HUMPS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BETWEEN: Final = re.compile(r"[\W_]+")
_TECHNICAL: Final = later("changes in form alone, not in meaning")
#: rule of a difference → what happens to the fact
PHRASES: Final[Mapping[str, str]] = {
    "FIELD_ADDED": later("is new"),
    "FIELD_REMOVED": later("is no longer there"),
    "FIELD_RENAMED": later("gets another name"),
    "FIELD_RENAME_SUSPECTED": later("may have got another name"),
    "PROPERTY_RENAME_SUSPECTED": later("may have got another name"),
    "FIELD_RENUMBERED": later("is written in another place, so old data are misread"),
    "NULL_ADDED": later("becomes optional"),
    "NULL_REMOVED": later("must always be filled"),
    "REQUIRED_ADDED": later("must always be given"),
    "REQUIRED_REMOVED": later("becomes optional"),
    "LABEL_CHANGED": later("may be there another number of times"),
    "TYPE_WIDENED": later("takes a wider range of values"),
    "TYPE_NARROWED": later("takes a narrower range of values"),
    "TYPE_EXCHANGED": later("is written as another kind of value"),
    "TYPE_CHANGED": later("becomes another kind of value"),
    "TYPE_ADDED": later("takes one more kind of value"),
    "TYPE_REMOVED": later("takes one kind of value less"),
    "UNION_INTRODUCED": later("may be of several kinds"),
    "UNION_DISSOLVED": later("is of one kind only"),
    "UNION_BRANCH_ADDED": later("takes one more kind of value"),
    "UNION_BRANCH_REMOVED": later("takes one kind of value less"),
    "ENUM_SYMBOL_ADDED": later("gets one more choice"),
    "ENUM_SYMBOL_REMOVED": later("loses a choice"),
    "ENUM_VALUE_ADDED": later("gets one more choice"),
    "ENUM_VALUE_REMOVED": later("loses a choice"),
    "ENUM_VALUE_RENAMED": later("calls a choice otherwise"),
    "ENUM_ADDED": later("is limited to a list of choices"),
    "ENUM_REMOVED": later("is no longer limited to a list of choices"),
    "DEFAULT_ADDED": later("gets a value that stands in where none is given"),
    "DEFAULT_REMOVED": later("loses the value that stood in where none was given"),
    "DEFAULT_CHANGED": later("gets another value that stands in where none is given"),
    "LOGICAL_TYPE_ADDED": later("gets a meaning, such as a date or an amount"),
    "LOGICAL_TYPE_REMOVED": later("loses its meaning, such as a date or an amount"),
    "LOGICAL_TYPE_CHANGED": later("gets another meaning, such as a date or an amount"),
    "FORMAT_ADDED": later("must be written in a certain way"),
    "FORMAT_CHANGED": later("must be written in another way"),
    "FORMAT_REMOVED": later("may be written in any way"),
    "PATTERN_ADDED": later("must be written in a certain way"),
    "PATTERN_CHANGED": later("must be written in another way"),
    "PATTERN_REMOVED": later("may be written in any way"),
    "DOC_ADDED": later("is described now"),
    "DOC_REMOVED": later("is no longer described"),
    "DOC_CHANGED": later("is described otherwise"),
    "DESCRIPTION_ADDED": later("is described now"),
    "DESCRIPTION_REMOVED": later("is no longer described"),
    "DESCRIPTION_CHANGED": later("is described otherwise"),
    "DEPRECATED": later("should no longer be used"),
    "DEPRECATED_ADDED": later("should no longer be used"),
    "NO_LONGER_DEPRECATED": later("may be used again"),
    "DEPRECATED_REMOVED": later("may be used again"),
    "MESSAGE_ADDED": later("is a new kind of record"),
    "MESSAGE_REMOVED": later("is no longer a kind of record"),
}
#: how a limit of JSON Schema changes, by the end of the rule
_LIMITS: Final[Mapping[str, str]] = {
    "_RAISED": later("gets a higher limit"),
    "_LOWERED": later("gets a lower limit"),
}
#: Avro calls what it doesn't know a property, JSON Schema a field
_OF_JSON: Final[Mapping[str, str]] = {
    "PROPERTY_ADDED": later("is new"),
    "PROPERTY_REMOVED": later("is no longer there"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What is known of a field: its docs and tags."""

    doc: str = ""
    tags: tuple[TagChip, ...] = ()


def in_business_words(shown: Comparison, facts: Mapping[str, Fact], schema_type: str) -> Comparison:
    """The comparison with each card in business words too; `facts` are by path."""
    groups = tuple(
        replace(group, cards=tuple(_card(card, facts, schema_type) for card in group.cards)) for group in shown.groups
    )
    return replace(shown, groups=groups)


def _card(card: ChangeCard, facts: Mapping[str, Fact], schema_type: str) -> ChangeCard:
    fact = _fact(card.path, facts)
    tagged = ", ".join(tag.word for tag in fact.tags)
    said = {"field": fact_name(card.path), "phrase": phrase_of(card.rule, schema_type)}
    sentence = gettext("%(field)s %(phrase)s") % said
    return replace(
        card,
        business=gettext("%(sentence)s – tagged %(tagged)s") % {"sentence": sentence, "tagged": tagged}
        if tagged
        else sentence,
        meaning=fact.doc if len(fact.doc) <= LONGEST else f"{fact.doc[: LONGEST - 1]}…",
        tags=fact.tags,
    )


def phrase_of(rule: str, schema_type: str) -> str:
    """What happens, as the end of a sentence."""
    if schema_type == "JSON" and rule in _OF_JSON:
        return _OF_JSON[rule]
    limit = next((words for end, words in _LIMITS.items() if rule.endswith(end)), "")
    return PHRASES.get(rule) or limit or _TECHNICAL


def fact_name(path: str) -> str:
    """A path as a name: `Order.customer.eMail` is "Customer e mail"."""
    parts = [part for part in _STEPS.sub("", path).split(".") if part and part != "$"]
    words = [word for part in parts[-2:] for word in _BETWEEN.split(_HUMPS.sub(" ", part)) if word]
    text = " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in words)
    return text[:1].upper() + text[1:] if text else gettext("The whole record")


def _fact(path: str, facts: Mapping[str, Fact]) -> Fact:
    """What is known of a path, or of the nearest field around it."""
    while path and path not in facts:
        path = path.rpartition(".")[0]
    return facts.get(path, Fact())
