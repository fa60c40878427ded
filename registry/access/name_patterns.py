"""Name patterns such as `orders-*`: validation, matching, and SQL conditions.

Rights, owners, subscriptions, webhooks, mutes, deployments and review rules use them. `*` matches any text and `?` any
one character; other characters match themselves. A test forbids other modules to translate patterns.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from fnmatch import translate
from functools import lru_cache
from typing import Final

from django.contrib.postgres.fields import ArrayField
from django.db.models import BooleanField, F, Func, Q, TextField, Value
from django.db.models.expressions import Combinable

from registry.errors import InvalidInput

#: matches no row
NOTHING: Final = Q(pk__in=())
ALL: Final = "*"
MAX_LENGTH: Final = 255
MAX_STARS: Final = 10
_WILD: Final = re.compile(r"[*?]")
#: special characters of other pattern languages, and what to write instead
_REFUSED: Final = {
    "%": "'*' matches any text, '?' one character",
    ",": "enter one pattern, and add the others separately",
    "[": "sets of characters aren't supported; enter a pattern for each, or '?' for any one character",
}
_SIGNS: Final = {"*": "%", "?": "_", "%": "\\%", "_": "\\_", "\\": "\\\\"}
#: up to this many patterns are separate LIKEs, which can use an index; more are one LIKE ANY
_MAX_SEPARATE_LIKES: Final = 40


@dataclass(frozen=True)
class NamePattern:
    """A parsed pattern. `like` is its LIKE pattern; `name` is the one name that it matches, None with a wildcard.

    An earlier version could store a pattern with a set (`[ab]`). It `is_void`: it matches nothing and gives no right.
    """

    text: str
    like: str
    name: str | None
    is_void: bool
    _regex: re.Pattern[str] = field(compare=False, repr=False)

    def allows(self, name: str) -> bool:
        """Return whether the pattern matches a name."""
        return self.text == ALL or (not self.is_void and self._regex.match(name) is not None)

    def as_q(self, column: str) -> Q:
        """Return the condition that a column matches. Most patterns are a name or a prefix, which can use an index."""
        if self.is_void:
            return NOTHING
        if self.name is not None:
            return Q(**{column: self.name})
        if self.text[-1] == "*" and not _WILD.search(self.text[:-1]):
            return Q(**{f"{column}__startswith": self.text[:-1]})
        return Q(_like(F(column), Value(self.like)))


@lru_cache(maxsize=10_000)
def name_pattern(text: str) -> NamePattern:
    """Parse a pattern."""
    return NamePattern(
        text=text,
        like="".join(_SIGNS.get(sign, sign) for sign in text),
        name=None if _WILD.search(text) else text,
        is_void="[" in text,
        _regex=re.compile(translate(text.replace("[", "[[]"))),
    )


def covering_samples(pattern: str) -> tuple[str, ...]:
    """Return names that a pattern must all match to cover this one: a star may be nothing or several characters."""
    return tuple(pattern.replace("*", characters) for characters in ("*", "", "**"))


def any_allows(patterns: Iterable[str], name: str) -> bool:
    """Return whether any of the patterns matches a name."""
    return any(name_pattern(pattern).allows(name) for pattern in patterns)


def likes_any(name: Combinable, patterns: Collection[NamePattern]) -> Q:
    """Return the condition that an expression matches any of the patterns."""
    likes = [pattern.like for pattern in patterns if not pattern.is_void]
    if len(likes) > _MAX_SEPARATE_LIKES:
        listed = Value(likes, output_field=ArrayField(TextField()))
        template = "(%(expressions)s))"
        return Q(Func(name, listed, template=template, arg_joiner=" LIKE ANY (", output_field=BooleanField()))
    condition = Q() if likes else NOTHING
    for like in likes:
        condition |= Q(_like(name, Value(like)))
    return condition


def _like(name: Combinable, like: Value) -> Func:
    return Func(name, like, template="(%(expressions)s)", arg_joiner=" LIKE ", output_field=BooleanField())


def escaped(text: str) -> str:
    """Escape what LIKE reads as a wildcard."""
    return "".join(f"\\{sign}" if sign in "\\%_" else sign for sign in text)


def checked_pattern(text: str, what: str, *, longest: int = MAX_LENGTH, field: str = "") -> str:
    """Return the stripped and validated pattern; an empty one means all.

    `what` names it in the error, such as `subject`.

    Refuses a pattern that can't match a name, or not as its writer expects: it would look like a right and give none.
    Raises InvalidInput.
    """
    pattern = text.strip() or ALL
    problem = _problem(pattern, longest)
    if problem:
        shown = pattern[:60].encode("unicode_escape").decode()
        raise InvalidInput(
            f"The {what} pattern '{shown}' {problem}. A pattern is a name such as orders-value, or a partial"
            " name with '*' and '?', such as orders-*.",
            field=field or f"{what}_pattern",
        )
    return pattern


def _problem(pattern: str, longest: int) -> str:
    if len(pattern) > longest:
        return f"has {len(pattern)} characters, but at most {longest} are allowed"
    if pattern.count("*") > MAX_STARS:
        return f"has {pattern.count('*')} '*', but at most ten are allowed"
    for position, sign in enumerate(pattern, start=1):
        if sign.isspace():
            return f"has a space at position {position}; use '?' to match one character"
        if not sign.isprintable():
            return f"has an invisible character at position {position}"
        if sign in _REFUSED:
            return f"has {sign!r} at position {position}: {_REFUSED[sign]}"
    return ""


def pattern_of(name: str) -> str:
    """Return a pattern that matches a name; wildcards and characters that a pattern can't contain become '?'."""
    return "".join(
        "?" if sign.isspace() or not sign.isprintable() or sign in _REFUSED or sign in "*?" else sign for sign in name
    )
