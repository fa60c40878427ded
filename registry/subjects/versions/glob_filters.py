"""Shell patterns of qualified names as conditions of the database, and a qualified name in SQL."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from django.contrib.postgres.fields import ArrayField
from django.db.models import BooleanField, Case, F, Func, Q, Subquery, TextField, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Concat
from django.db.models.lookups import Exact

from registry.errors import InvalidName
from registry.subjects.models import Context, Registry, Subject
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName, parse_subject


def escaped(text: str) -> str:
    """A text with nothing in it that LIKE reads as a pattern."""
    return "".join(f"\\{sign}" if sign in "\\%_" else sign for sign in text)


def like(pattern: str) -> str:
    """A shell pattern without brackets as one of LIKE."""
    return "".join({"*": "%", "?": "_"}.get(sign) or escaped(sign) for sign in pattern)


def qualified(context: Any, subject: Any) -> Case:
    """The name of a subject in a context, both expressions; for rights and owners, whose patterns are of such names."""
    context_name, name = Cast(context, TextField()), Cast(subject, TextField())
    elsewhere = Concat(Value(":"), context_name, Value(":"), name, output_field=TextField())
    return Case(
        When(Exact(context_name, Value(DEFAULT_CONTEXT)), then=name), default=elsewhere, output_field=TextField()
    )


#: so many are asked one by one, each of which an index may answer; more are one list
_MOST_LIKES: Final = 40
_PARTS: Final = re.compile(
    r"\[(?P<literal>[^\]!]|[\]!](?=\]))\]|(?P<set>\[)|(?P<wild>[*?])|(?P<plain>[^\[*?]+)", re.DOTALL
)


@dataclass(frozen=True)
class _Pattern:
    """A pattern as LIKE has it; `name` where it means one name alone. Neither for one with a set of characters."""

    like: str
    name: str | None
    is_set: bool = False

    @property
    def may_be_elsewhere(self) -> bool:
        """Whether names of another context than the default one may fit, which begin with a colon."""
        return self.like[:1] in (":", "%", "_")


def among(names: Collection[SubjectName], at: str) -> Q:
    """The subjects of these names: as many conditions as there are contexts among them."""
    by_context: dict[str, set[str]] = {}
    for name in names:
        by_context.setdefault(name.context, set()).add(name.subject)
    condition = Q(pk__in=())
    for context, subjects in by_context.items():
        condition |= Q(**{f"{at}context__name": context, f"{at}name__in": subjects})
    return condition


def fits(registry: Registry, patterns: Collection[str], at: str) -> Q:
    """Whether one of the patterns fits the qualified name; `at` is how the rows get to the subject."""
    if not patterns:
        return Q(pk__in=())
    if "*" in patterns:
        return ~Q(pk__in=())
    read = [_read(pattern) for pattern in sorted(set(patterns))]
    condition = among([name for pattern in read if pattern.name is not None for name in _names(pattern.name)], at)
    wild = [pattern for pattern in read if pattern.name is None and not pattern.is_set]
    if not wild:
        return condition | _of_sets(registry, patterns, at)
    # by its number: then the contexts needn't be joined to every name
    default = Subquery(Context.objects.filter(registry=registry, name=DEFAULT_CONTEXT).values("pk"))
    condition |= Q(_any(F(f"{at}name"), wild), **{f"{at}context": default})
    elsewhere = [pattern for pattern in wild if pattern.may_be_elsewhere]
    if elsewhere:
        qualified = Concat(Value(":"), f"{at}context__name", Value(":"), f"{at}name", output_field=TextField())
        condition |= ~Q(**{f"{at}context": default}) & Q(_any(qualified, elsewhere))
    return condition | _of_sets(registry, patterns, at)


def likes_of(patterns: Collection[str]) -> list[str]:
    """The patterns as LIKE has them, for the qualified name; but those with a set of characters, which it hasn't."""
    return [pattern.like for pattern in map(_read, patterns) if not pattern.is_set]


def subjects_of_sets(registry: Registry, owned: Iterable[Collection[str]]) -> list[list[int]]:
    """The numbers of the subjects that patterns with sets of characters fit, of each collection of patterns by itself.

    PostgreSQL reads sets otherwise. A query where there are any.
    """
    sets = [[pattern for pattern in patterns if _read(pattern).is_set] for patterns in owned]
    if not any(sets):
        return [[] for _ in sets]
    rows = Subject.objects.filter(context__registry=registry).values_list("pk", "context__name", "name")
    names = [(pk, SubjectName(context, name).qualified) for pk, context, name in rows]
    return [
        [pk for pk, name in names if any(fnmatchcase(name, one) for one in globs)] if globs else [] for globs in sets
    ]


def _names(text: str) -> Iterable[SubjectName]:
    """The subject of a name, none for what can be no name."""
    try:
        name = parse_subject(text)
    except InvalidName:
        return ()
    return (name,) if name.qualified == text else ()


def _any(name: Combinable, patterns: Collection[_Pattern]) -> Q:
    """Whether one of them fits. Not as a regular expression: LIKE is told twenty times as fast."""
    likes = [pattern.like for pattern in patterns]
    if len(likes) > _MOST_LIKES:
        listed = Value(likes, output_field=ArrayField(TextField()))
        return Q(
            Func(name, listed, template="(%(expressions)s))", arg_joiner=" LIKE ANY (", output_field=BooleanField())
        )
    condition = Q()
    for like in likes:
        condition |= Q(
            Func(name, Value(like), template="(%(expressions)s)", arg_joiner=" LIKE ", output_field=BooleanField())
        )
    return condition


def _read(pattern: str) -> _Pattern:
    like, name = "", ""
    wild = False
    for part in _PARTS.finditer(pattern):
        if part["set"]:
            return _Pattern("", None, is_set=True)
        if part["wild"]:
            wild = True
            like += "%" if part["wild"] == "*" else "_"
            continue
        text = part["literal"] or part["plain"]
        name += text
        like += escaped(text)
    return _Pattern(like, None if wild else name)


def _of_sets(registry: Registry, patterns: Collection[str], at: str) -> Q:
    (fitting,) = subjects_of_sets(registry, [patterns])
    return Q(**{f"{at.removesuffix('__') or 'pk'}__in": fitting})
