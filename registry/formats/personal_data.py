"""The effective tags of a schema's fields, the fields with personal data, and placeholders for their values."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from registry.formats.base import OutlineField
from registry.formats.tags import joined

#: shown in place of a value
MASK: Final = "(personal data)"
DEFAULT_PERSONAL: Final = ("PII", "SENSITIVE", "GDPR", "PERSONAL")
#: the most (field, wildcard pattern) pairs that are compared; the tags of further patterns apply to every field
MAX_PAIRS: Final = 4_000
MAX_PATTERN: Final = 500
_WILD: Final = re.compile(r"[*?]")
_STEPS: Final = re.compile(r"\[\]|\{\}")
_ROOT: Final = re.compile(r"[^.\[{]*\.?")


@dataclass(frozen=True, slots=True)
class FieldTags:
    """A field with its effective tags; `data_path` is its path in data, without the root's name."""

    path: str
    data_path: str
    tags: tuple[str, ...]
    is_personal: bool


@dataclass(frozen=True)
class SchemaTags:
    """The tags of a schema's fields, in the order of its outline.

    `around` are the subject's tags, which apply to the whole schema. `is_personal` says that all of it is personal
    data.
    """

    fields: tuple[FieldTags, ...] = ()
    around: tuple[str, ...] = ()
    is_personal: bool = False
    #: whether a path may start at a message inside the root, as in Protobuf, whose messages name their type
    any_root: bool = False

    @property
    def everywhere(self) -> tuple[str, ...]:
        """The subject's tags, and those that every field has."""
        shared = set(self.fields[0].tags) if self.fields else set()
        for item in self.fields:
            shared &= set(item.tags)
        return joined(self.around, (tag for tag in (self.fields[0].tags if self.fields else ()) if tag in shared))

    @property
    def somewhere(self) -> tuple[str, ...]:
        """All tags of any field, sorted."""
        return tuple(sorted({tag for item in self.fields for tag in item.tags}))

    @property
    def has_personal(self) -> bool:
        """Whether any of it is personal data."""
        return self.is_personal or bool(self._personal)

    @cached_property
    def _personal(self) -> frozenset[str]:
        return frozenset(item.data_path for item in self.fields if item.is_personal)

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(item.data_path for item in self.fields)

    @cached_property
    def _maps(self) -> frozenset[str]:
        """The paths of maps whose values have declared fields."""
        return frozenset(path[: at.start()] for path in self._known for at in re.finditer(r"\{\}", path))

    @cached_property
    def _lists(self) -> frozenset[str]:
        """The paths of lists whose items have declared fields."""
        return frozenset(path[: at.start()] for path in self._known for at in re.finditer(r"\[\]", path))

    def covers(self, path: str) -> bool:
        """Return whether the value at a path of data (`customer.email`, `items[].sku`) is personal."""
        if not self.has_personal:
            return False
        if self.is_personal:
            return True
        while path not in self._known and path.endswith(("[]", "{}")):
            path = path[:-2]
        if path in self._personal or (self.any_root and any(field.endswith(f".{path}") for field in self._personal)):
            return True
        declared = path in self._known or path in self._maps or path in self._lists
        inside = self.any_root and any(field.endswith(f".{path}") for field in self._known)
        return bool(path) and not declared and not inside

    def masked(self, value: Any) -> Any:
        """Mask the personal values of a decoded value, which may be masked already; nulls stay."""
        return self._masked(value, "") if self.has_personal else value

    def _masked(self, value: Any, path: str) -> Any:
        if value is None:
            return None
        if isinstance(value, dict):
            if path and path not in self._maps and self.covers(path):
                return MASK
            return {name: self._masked(inner, self._step(path, str(name))) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            if path and path not in self._lists and self.covers(path):
                return MASK
            return [self._masked(inner, f"{path}[]") for inner in value]
        return MASK if self.covers(path) else value

    def _step(self, path: str, name: str) -> str:
        """Return the path of an entry: a declared field's, otherwise that of a map's values."""
        below = f"{path}.{name}" if path else name
        return f"{path}{{}}" if below not in self._known and path in self._maps else below


def effective_tags(
    outline: Sequence[OutlineField],
    *,
    metadata: Mapping[str, Any] | None = None,
    around: Iterable[str] = (),
    personal: Collection[str] = DEFAULT_PERSONAL,
    any_root: bool = False,
) -> SchemaTags:
    """Return the effective tags of each field; `around` are the subject's tags. `personal` ignores case.

    Fields that match a pattern in the metadata's `sensitive` are personal whatever their tags.
    """
    personal_tags, outer = {word.lower() for word in personal}, tuple(dict.fromkeys(around))
    tagging = _Patterns((metadata or {}).get("tags", {}), len(outline))
    hiding = _Patterns({name: [MASK] for name in (metadata or {}).get("sensitive", [])}, len(outline))
    as_a_whole = any(tag.lower() in personal_tags for tag in outer)
    has_patterns = bool(tagging or hiding)
    rows: list[FieldTags] = []
    open_rows: list[tuple[tuple[str, ...], bool]] = []  # of the enclosing rows, by depth
    for row in outline:
        pattern_tags: tuple[str, ...] = ()
        is_hidden = False
        if has_patterns:
            del open_rows[row.depth :]
            pattern_tags, is_hidden = open_rows[-1] if open_rows else ((), False)
            names = tuple(dict.fromkeys(_names(row)))
            pattern_tags, is_hidden = joined(pattern_tags, tagging.of(names)), is_hidden or bool(hiding.of(names))
            open_rows.append((pattern_tags, is_hidden))
        tags = joined(joined(outer, row.tags), pattern_tags) if row.tags or pattern_tags else outer
        is_personal = as_a_whole or is_hidden or any(tag.lower() in personal_tags for tag in tags)
        rows.append(FieldTags(row.path, _data_path(row.path), tags, is_personal))
    # Without fields, as in a schema of a plain string, any pattern applies to the whole schema.
    bare = not outline and bool(hiding or any(tag.lower() in personal_tags for tag in tagging.all))
    return SchemaTags(tuple(rows), outer, as_a_whole or bare, any_root)


def _data_path(path: str) -> str:
    """Return the path without the root's name: `Order.items[].sku` becomes `items[].sku`."""
    return path[_ROOT.match(path).end() :] if not path.startswith("[") else path  # type: ignore[union-attr]


def _names(row: OutlineField) -> Iterator[str]:
    """Yield the names by which a pattern may refer to a field or its record."""
    if row.entity:
        record, _, _ = row.entity.rpartition(".")
        yield row.entity
        yield f"{record.rpartition('.')[2]}.{row.name}"
        yield record
        yield record.rpartition(".")[2]
    for path in (row.path, _data_path(row.path)):
        yield path
        yield _STEPS.sub("", path)
    yield f"$.{_STEPS.sub('', _data_path(row.path))}"


class _Patterns:
    """Patterns with their tags; exact names are looked up, and few wildcard patterns are matched with each field."""

    def __init__(self, patterns: Mapping[str, Iterable[str]], fields: int) -> None:
        self.all: tuple[str, ...] = tuple(dict.fromkeys(word for tags in patterns.values() for word in tags))
        self._named: dict[str, tuple[str, ...]] = {}
        self._ends: dict[str, tuple[str, ...]] = {}
        self._wild: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        beyond: dict[str, None] = {}
        most = max(1, MAX_PAIRS // max(1, fields))
        for pattern, tags in patterns.items():
            tags_given = tuple(tags)
            end = pattern.removeprefix("**.")
            if not _WILD.search(pattern):
                self._named[pattern] = tags_given
            elif end != pattern and not _WILD.search(end):
                self._ends[end] = tags_given
            elif len(self._wild) < most and len(pattern) <= MAX_PATTERN:
                self._wild.append((tuple(re.findall(r"\*\*|.", pattern, re.DOTALL)), tags_given))
            else:
                beyond |= dict.fromkeys(tags_given)
        self._always = tuple(beyond)

    def __bool__(self) -> bool:
        return bool(self.all)

    def of(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the tags of all patterns that match one of the names."""
        if not self.all:
            return ()
        tags = dict.fromkeys(self._always)
        for name in names:
            tags |= dict.fromkeys(self._named.get(name, ()))
            for end in _ends(name) if self._ends else ():
                tags |= dict.fromkeys(self._ends.get(end, ()))
        for pattern, pattern_tags in self._wild:
            if any(_fits(pattern, name) for name in names):
                tags |= dict.fromkeys(pattern_tags)
        return tuple(tags)


def _ends(name: str) -> Iterator[str]:
    """Yield the name, and the rest after each of its dots."""
    yield name
    at = name.find(".")
    while at >= 0:
        yield name[at + 1 :]
        at = name.find(".", at + 1)


def _fits(pattern: tuple[str, ...], name: str) -> bool:
    """Return whether the name matches; at most one step for each character and place of the pattern."""
    positions = _opened({0}, pattern)
    for character in name[:MAX_PATTERN]:
        after: set[int] = set()
        for position in positions:
            if position == len(pattern):
                continue
            sign = pattern[position]
            if sign == "**" or (sign == "*" and character != "."):
                after.add(position)
            elif sign == character or (sign == "?" and character != "."):
                after.add(position + 1)
        positions = _opened(after, pattern)
        if not positions:
            return False
    return len(pattern) in positions or len(name) > MAX_PATTERN


def _opened(positions: set[int], pattern: tuple[str, ...]) -> set[int]:
    """Return the positions plus those reached without a character, because a star may match nothing."""
    stack, opened = list(positions), set(positions)
    while stack:
        position = stack.pop()
        if position < len(pattern) and pattern[position] in ("*", "**") and position + 1 not in opened:
            opened.add(position + 1)
            stack.append(position + 1)
    return opened


@dataclass
class Placeholders:
    """A replacement of personal values in a datum (in a format's JSON form) with placeholders; `put` counts them.

    `is_union_wrapped` says that a union's value is an object with one entry named after its branch, as in Avro's JSON
    encoding. The path has no step for that entry.
    """

    tags: SchemaTags
    is_union_wrapped: bool = False
    put: int = 0
    _paths: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._paths = frozenset(item.data_path for item in self.tags.fields)

    def of(self, value: Any) -> Any:
        """Return the datum with a placeholder for every personal value; nulls stay."""
        return self._of(value, "") if self.tags.has_personal else value

    def _of(self, value: Any, path: str) -> Any:
        if isinstance(value, dict):
            return {name: self._of(inner, self._step(path, str(name), value)) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._of(inner, f"{path}[]") for inner in value]
        if value is None or not self.tags.covers(path):
            return value
        self.put += 1
        return _placeholder_for(value)

    def _step(self, path: str, name: str, around: Mapping[str, Any]) -> str:
        below = f"{path}.{name}" if path else name
        if below in self._paths:
            return below
        # the name of a union's branch, or the key of a map whose values are declared
        if f"{path}{{}}" in self._paths or any(declared.startswith(f"{path}{{}}.") for declared in self._paths):
            return f"{path}{{}}"
        if self._is_below_known(path):
            return path
        return path if self.is_union_wrapped and len(around) == 1 else below

    def _is_below_known(self, path: str) -> bool:
        """Return whether the path is a declared field without declared parts, so its content is all the field's."""
        bare = path.removesuffix("[]")
        return bare in self._paths and not any(declared.startswith(f"{bare}.") for declared in self._paths)


def _placeholder_for(value: Any) -> Any:
    """Return a placeholder of the same kind, so that it passes checks of the kind alone."""
    if isinstance(value, bool):
        return False
    if isinstance(value, int | float):
        return 0
    text = str(value)
    return "0" if text.lstrip("-").isdigit() else MASK
