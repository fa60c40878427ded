"""Lint: advice on one schema alone. The table of rules, checks of naming style and meaning, and the findings.

A rule gives its message, why it matters, and the cure. No rule affects a verdict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal

from registry.formats.base import values_of

Weight = Literal["warning", "info"]

_ALL: Final = ("AVRO", "PROTOBUF", "JSON")


@dataclass(frozen=True, slots=True)
class LintRule:
    """A lint rule: its message (a template over the values of a place), reason and cure, and its formats."""

    id: str
    weight: Weight
    sentence: str
    why: str
    cure: str
    formats: tuple[str, ...] = _ALL


_ROWS: Final = (
    LintRule(
        "NO_NAMESPACE",
        "warning",
        'the type "{name}" has no namespace',
        "Its full name is only its simple name. It clashes with other types of the same name, and generated "
        "classes have no package.",
        'add a "namespace", for example com.example.orders',
        ("AVRO",),
    ),
    LintRule(
        "NO_PACKAGE",
        "warning",
        "the file has no package",
        "Its messages clash with messages of the same name in other imported files.",
        "add `package example.orders;` before the schema is used, because the package is part of each message's name",
        ("PROTOBUF",),
    ),
    LintRule(
        "NO_SCHEMA_KEYWORD",
        "warning",
        "the schema doesn't declare its draft",
        "Validators then use their own default draft, and keywords have different meanings in different drafts.",
        'add "$schema", for example "https://json-schema.org/draft/2020-12/schema"',
        ("JSON",),
    ),
    LintRule(
        "NO_TITLE",
        "info",
        "the schema has no title",
        "Readers and generated classes have no name for the described data.",
        'add a one-word "title"',
        ("JSON",),
    ),
    LintRule(
        "NO_TYPE",
        "warning",
        '"{name}" has no type, so any value is accepted',
        "A property without a type, an enum or a reference checks nothing, and adding one later is a breaking change.",
        'give it a "type"',
        ("JSON",),
    ),
    LintRule(
        "OPENNESS_UNSAID",
        "info",
        "the object doesn't declare whether it accepts other properties",
        "Open objects accept any value under an undeclared name, so adding a typed property may be a breaking "
        "change. Closed objects reject undeclared properties.",
        'set "additionalProperties" to false, or to true if others may add properties',
        ("JSON",),
    ),
    LintRule(
        "OPTIONAL_WITHOUT_DEFAULT",
        "warning",
        'the field "{name}" may be null and has no default',
        "It looks optional but isn't: if the writer schema lacks the field, decoding fails.",
        'put "null" first in the union and add "default": null',
        ("AVRO",),
    ),
    LintRule(
        "DEFAULT_OF_LATER_BRANCH",
        "warning",
        'the default of the field "{name}" isn\'t of the first branch of its union',
        "Before Avro 1.12, Java rejects a schema whose default isn't of the first branch.",
        "put the branch of the default first in the union",
        ("AVRO",),
    ),
    LintRule(
        "FIELD_HAS_NO_DEFAULT",
        "info",
        'the field "{name}" has no default',
        "A field without a default can't be removed while any reader schema still has it.",
        "give it a default, if readers can work without the value",
        ("AVRO",),
    ),
    LintRule(
        "ENUM_WITHOUT_DEFAULT",
        "info",
        'the enum "{name}" has no default symbol',
        "If a symbol is added later, decoding fails for every reader that doesn't know it yet.",
        'add a "default" to the enum, for example a symbol UNKNOWN',
        ("AVRO",),
    ),
    LintRule(
        "TIME_WITHOUT_LOGICAL_TYPE",
        "info",
        'the field "{name}" looks like a time but is a plain number',
        "The schema doesn't say whether it counts seconds, milliseconds or microseconds, so programs have to guess.",
        "use a logical type, for example timestamp-millis",
        ("AVRO",),
    ),
    LintRule(
        "MONEY_AS_FLOAT",
        "warning",
        'the field "{name}" looks like money but is a binary floating-point number',
        "It can't represent 0.10 exactly, so sums are off by cents.",
        "use a decimal, or an integer number of cents",
        ("AVRO", "PROTOBUF"),
    ),
    LintRule(
        "ZERO_NOT_UNSPECIFIED",
        "warning",
        'the value 0 of the enum is "{name}"',
        "An unset field, and in some readers an unknown value, reads as 0. The value 0 should therefore have no "
        "meaning.",
        "name the value 0 {prefix}_UNSPECIFIED",
        ("PROTOBUF",),
    ),
    LintRule(
        "NUMBERS_NOT_RESERVED",
        "info",
        "the numbers {numbers} are neither used nor reserved",
        "If an old field had one of these numbers, a new field with that number misreads old data.",
        "add `reserved {numbers};` if they were ever used",
        ("PROTOBUF",),
    ),
    LintRule(
        "REQUIRED_FIELD",
        "warning",
        'the field "{name}" is required',
        "A required field can never be removed, and readers reject any message without it.",
        "make it optional, and check it in the application",
        ("PROTOBUF",),
    ),
    LintRule(
        "TYPE_NAME_STYLE",
        "info",
        'the name "{name}" isn\'t in PascalCase',
        "Generated classes use the name unchanged.",
        "rename it to {better} before any data exists, because the name is part of the schema",
        ("AVRO", "PROTOBUF"),
    ),
    LintRule(
        "FIELD_NAME_STYLE",
        "info",
        'the name "{name}" isn\'t in lower_snake_case',
        "Code generators derive accessors and JSON names from the underscores in the name.",
        "rename it to {better}",
        ("PROTOBUF",),
    ),
    LintRule(
        "NAMES_MIXED",
        "warning",
        'the name "{name}" is in {style}, most others are in {usual}',
        "People who write queries or mappings have to look up each name.",
        "rename it to {better}",
        ("AVRO", "JSON"),
    ),
    LintRule(
        "FIELD_WITHOUT_DOC",
        "info",
        'the field "{name}" has no description',
        "The author knows what the name means. Others know only if it is documented.",
        "add a description: `doc` in Avro, a comment in Protobuf, `description` in JSON Schema",
    ),
    LintRule(
        "PERSONAL_WITHOUT_TAG",
        "warning",
        'the name "{name}" looks like personal data, but the field has no tag',
        "Fields that are tagged as personal data are masked in samples and can be found by searches. Untagged "
        "fields are shown.",
        "tag it as PII, or with another tag to confirm that it isn't personal data",
    ),
)
LINT_RULES: Final[Mapping[str, LintRule]] = {rule.id: rule for rule in _ROWS}
#: rules that a tag on the whole subject satisfies
TAG_RULES: Final = frozenset({"PERSONAL_WITHOUT_TAG"})


_SNAKE, _CAMEL, _PASCAL, _UPPER, _KEBAB = "snake_case", "camelCase", "PascalCase", "UPPER_CASE", "kebab-case"
_STYLES: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    (_SNAKE, re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)+")),
    (_CAMEL, re.compile(r"[a-z][a-z0-9]*([A-Z][A-Za-z0-9]*)+")),
    (_UPPER, re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")),
    (_PASCAL, re.compile(r"([A-Z][a-z0-9]+){1,}[A-Z]?")),
    (_KEBAB, re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")),
)
_LONGEST: Final = 200
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]*|[a-z]+|[0-9]+")
_PERSONAL: Final = frozenset(
    {"email", "phone", "mobile", "surname", "lastname", "firstname", "birthday", "birthdate", "dob", "passport", "ssn",
     "iban", "salary", "gender", "religion", "fullname"}
)  # fmt: skip
_PERSONAL_PAIRS: Final = frozenset(
    {("first", "name"), ("last", "name"), ("family", "name"), ("given", "name"), ("full", "name"), ("e", "mail"),
     ("birth", "date"), ("date", "of", "birth"), ("home", "address"), ("street", "address"), ("postal", "address"),
     ("ip", "address"), ("social", "security"), ("tax", "id"), ("credit", "card"), ("card", "number"),
     ("bank", "account"), ("account", "holder"), ("national", "id")}
)  # fmt: skip
_MONEY: Final = frozenset({"amount", "price", "cost", "total", "balance", "fee", "salary", "tax"})
_TIMES: Final = frozenset({"at", "time", "timestamp", "date", "ts", "datetime"})


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name in lower case: `firstName` and `first_name` have the same two."""
    return _words(name[:_LONGEST])


@lru_cache(maxsize=4_000)  # several rules need the words of each name
def _words(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORDS.findall(name))


def looks_personal(name: str) -> bool:
    """Return whether the name suggests personal data."""
    words = words_of(name)
    pairs = {words[at : at + size] for size in (2, 3) for at in range(len(words) - size + 1)}
    return not _PERSONAL.isdisjoint(words) or not _PERSONAL_PAIRS.isdisjoint(pairs)


def looks_like_money(name: str) -> bool:
    """Return whether the name ends with a word for money."""
    return bool(words := words_of(name)) and words[-1] in _MONEY


def looks_like_time(name: str) -> bool:
    """Return whether the name ends with a word for a point in time."""
    return len(words := words_of(name)) > 1 and words[-1] in _TIMES


def style_of(name: str) -> str:
    """Return the style of a name; empty for a single word, which could be in several styles, or for no known style."""
    return next((style for style, pattern in _STYLES if pattern.fullmatch(name[:_LONGEST])), "")


def in_style(name: str, style: str) -> str:
    """Return the same words in another style."""
    words = words_of(name)
    if style in (_CAMEL, _PASCAL):
        return "".join(
            word if style == _CAMEL and number == 0 else word.capitalize() for number, word in enumerate(words)
        )
    joined = ("-" if style == _KEBAB else "_").join(words)
    return joined.upper() if style == _UPPER else joined


def is_pascal(name: str) -> bool:
    """Return whether the name starts with a capital and has no underscore."""
    return name[:1].isupper() and "_" not in name


def is_lower_snake(name: str) -> bool:
    """Return whether the name is in lower case."""
    return name == name.lower()


#: places of one rule that are reported one by one, so that a schema without any comments isn't flooded
MAX_PLACES: Final = 20
_ORDER: Final = {
    rule.id: number for number, rule in enumerate(sorted(LINT_RULES.values(), key=lambda rule: rule.weight == "info"))
}


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One piece of advice; the last reported place of a rule has the number of further places in `more`."""

    rule: str
    weight: Weight
    path: str
    line: int | None
    column: int | None
    message: str
    why: str
    cure: str
    more: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the advice as JSON values."""
        return values_of(self)


@dataclass(frozen=True, slots=True)
class LintViolation:
    """A place that violates a rule: its path for people, its pointer, and the values for the sentence."""

    rule: str
    path: str
    pointer: str | None
    values: Mapping[str, str] = field(default_factory=dict)


def findings_at(
    violations: Iterable[LintViolation], position: Callable[[str], tuple[int, int] | None]
) -> tuple[LintFinding, ...]:
    """Return findings, warnings first: the first places of each rule; the last one has the number left out."""
    by_rule: dict[str, list[LintViolation]] = {}
    for violation in violations:
        by_rule.setdefault(violation.rule, []).append(violation)
    return tuple(
        _finding(LINT_RULES[rule], violation, position, len(by_rule[rule]) - MAX_PLACES if number == MAX_PLACES else 0)
        for rule in sorted(by_rule, key=_ORDER.__getitem__)
        for number, violation in enumerate(by_rule[rule][:MAX_PLACES], start=1)
    )


def _finding(
    rule: LintRule, violation: LintViolation, position: Callable[[str], tuple[int, int] | None], more: int
) -> LintFinding:
    line, column = (position(violation.pointer) if violation.pointer is not None else None) or (None, None)
    return LintFinding(
        rule=rule.id,
        weight=rule.weight,
        path=violation.path,
        line=line,
        column=column,
        message=rule.sentence.format_map(violation.values),
        why=rule.why,
        cure=rule.cure.format_map(violation.values),
        more=more,
    )


def mixed_names(named: Sequence[tuple[str, str, str | None]]) -> list[LintViolation]:
    """Return the (name, path, pointer) items that deviate from the most common style; none if styles tie."""
    counts: dict[str, int] = {}
    for name, _, _ in named:
        if style := style_of(name):
            counts[style] = counts.get(style, 0) + 1
    ranked = sorted(counts.values(), reverse=True)
    if len(ranked) < 2 or ranked[0] == ranked[1]:
        return []
    usual = max(counts, key=counts.__getitem__)
    return [
        LintViolation(
            "NAMES_MIXED",
            path,
            pointer,
            {"name": name, "style": style, "usual": usual, "better": in_style(name, usual)},
        )
        for name, path, pointer in named
        if (style := style_of(name)) and style != usual
    ]
