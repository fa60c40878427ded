"""Details of a comparison: findings by change, versions in between, and changes outside the schema text.

The latter are metadata, the rule set, and the targets of references.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from django.utils.translation import gettext

from dashboard.compare.comparison import ExtraChange
from dashboard.components.badges import ChangeKind
from dashboard.components.translation import counted, listing
from dashboard.components.translation import gettext_lazy as _
from registry.formats.base import Difference
from registry.formats.report import Report, ReportItem
from registry.promotions.selectors import list_environments
from registry.subjects import selectors
from registry.subjects.selectors import SubjectPresence, VersionInfo

#: words in rule names that say how something changed, or are too common
_COMMON_WORDS: Final = frozenset({"ADDED", "REMOVED", "CHANGED", "MISSING", "FIELD", "PROPERTY", "TO", "OF"})
#: opens items, values or branches in a path
_INSIDE: Final = re.compile(r"[\[{<]")


@dataclass
class ChangeLocation:
    """A future card: a difference (None: only a finding) with its findings in each direction."""

    difference: Difference | None
    path: str
    backward: list[ReportItem] = field(default_factory=list)
    forward: list[ReportItem] = field(default_factory=list)


def places_of(
    comparison: selectors.Comparison, differences: Sequence[Difference], backward: Report, forward: Report
) -> list[ChangeLocation]:
    """Return a place per difference, and one per finding without a difference, so that none is hidden."""
    has_renames = isinstance(comparison, selectors.ProvedComparison) and bool(comparison.renames)
    shown = [item for item in differences if item.score is None or not has_renames]
    change_places = [ChangeLocation(item, item.path) for item in shown]
    by_path: dict[str, _PathPlaces] = {}
    for change_place in change_places:
        by_path.setdefault(change_place.path, _PathPlaces()).add(change_place)
    for report, side in ((backward, "backward"), (forward, "forward")):
        for item in report.items:
            fitting = _fitting(by_path, item)
            if not fitting:
                fitting = [ChangeLocation(None, item.named_path)]
                change_places.extend(fitting)
                by_path[item.named_path] = _PathPlaces()
                by_path[item.named_path].add(fitting[0])
            for change_place in fitting:
                getattr(change_place, side).append(item)
    return change_places


class _PathPlaces:
    """The places on one path by rule and pointer; a path can have thousands of branches."""

    def __init__(self) -> None:
        self._of_rule: dict[str, list[ChangeLocation]] = {}
        # Key: rule, side, prefix of a pointer. Value: the steps of the shortest pointers, and their places.
        self._nearest: dict[tuple[str, str, str], tuple[int, list[ChangeLocation]]] = {}

    def add(self, change_place: ChangeLocation) -> None:
        """Add a place."""
        difference = change_place.difference
        rule = difference.rule if difference else ""
        self._of_rule.setdefault(rule, []).append(change_place)
        pointers = (("new", difference.pointer_new), ("old", difference.pointer_old)) if difference else ()
        for side, pointer in pointers:
            for _side, begin in _beginnings(pointer):
                length = (pointer or "").count("/") + 1
                shortest, places = self._nearest.get((rule, side, begin), (length + 1, []))
                if length < shortest:
                    self._nearest[rule, side, begin] = (length, [change_place])
                elif length == shortest:
                    places.append(change_place)

    def near(self, item: ReportItem) -> Iterator[tuple[tuple[int, int, int], list[ChangeLocation]]]:
        """Yield scores of places for a finding, with the places.

        A score has the common words of the rules, the common steps, and minus the steps beyond those.
        """
        for rule, places in self._of_rule.items():
            words = len(_words_of_rule(rule) & _words_of_rule(item.rule))
            marks = [
                ((words, steps, steps - self._nearest[key][0]), self._nearest[key][1])
                for side, pointer in (("new", item.json_pointer_new), ("old", item.json_pointer_old))
                for steps, begin in _beginnings(pointer)
                if (key := (rule, side, begin)) in self._nearest
            ]
            yield from marks or [((words, 0, 0), places)]


def _beginnings(pointer: str | None) -> Iterator[tuple[int, str]]:
    """Yield the pointer and its prefixes, each with its number of steps."""
    steps = pointer.split("/") if pointer is not None else []
    return ((count, "/".join(steps[:count])) for count in range(len(steps), 0, -1))


def _fitting(by_path: Mapping[str, _PathPlaces], item: ReportItem) -> list[ChangeLocation]:
    """Return the places that a finding belongs to: those with the most similar rule, then the nearest."""
    near = [marked for path in _same_places(item.named_path) if path in by_path for marked in by_path[path].near(item)]
    best = max((mark for mark, _ in near), default=None)
    return list({id(place): place for mark, places in near if mark == best for place in places}.values())


@lru_cache(maxsize=512)
def _words_of_rule(rule: str) -> frozenset[str]:
    """Return the specific words of a rule's name."""
    return frozenset(rule.split("_")) - _COMMON_WORDS if rule else frozenset()


def _same_places(reported: str) -> list[str]:
    """Return the path that a finding names, and the paths that contain its items, values or branches."""
    return [reported, *(reported[: match.start()] for match in _INSIDE.finditer(reported))]


def shown_value(value: Any) -> str | None:
    """Return a side of a change as text: plain strings unchanged, else JSON; None if absent."""
    if value is None:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


#: displayed changes of each of the three kinds
MAX_EXTRAS: Final = 200
METADATA: Final = _("Metadata")
RULES: Final = _("Rules")
REFERENCE: Final = _("Reference")
Flat = dict[str, Any]


def extras_of(old: VersionInfo, new: VersionInfo) -> tuple[ExtraChange, ...]:
    """Return the changes of metadata, rules and references, in this order."""
    sections = (
        (METADATA, _metadata(old.schema.metadata), _metadata(new.schema.metadata)),
        (RULES, _rules(old.schema.rule_set), _rules(new.schema.rule_set)),
        (RULES, *_orders(old.schema.rule_set, new.schema.rule_set)),
        (REFERENCE, _references(old), _references(new)),
    )
    return tuple(change for label, before, after in sections for change in _changes(label, before, after))


def _changes(label: str, before: Flat, after: Flat) -> list[ExtraChange]:
    names = [name for name in dict.fromkeys([*before, *after]) if before.get(name) != after.get(name)]
    return [
        ExtraChange(
            part=label,
            name=name,
            kind=_kind(before.get(name), after.get(name)),
            before=shown_value(before.get(name)),
            after=shown_value(after.get(name)),
        )
        for name in names[:MAX_EXTRAS]
    ]


def _kind(before: Any, after: Any) -> ChangeKind:
    if before is None:
        return ChangeKind.ADDED
    return ChangeKind.REMOVED if after is None else ChangeKind.CHANGED


def _metadata(metadata: Mapping[str, Any] | None) -> Flat:
    """Flatten metadata: properties, tags of paths, and sensitive names: `properties.owner`, `tags.Order.email`."""
    flat: Flat = {}
    for part, content in sorted((metadata or {}).items()):
        if isinstance(content, Mapping):
            flat |= {f"{part}.{name}": value for name, value in sorted(content.items())}
        elif content:
            flat[part] = content
    return flat


def _rules(rule_set: Mapping[str, Any] | None) -> Flat:
    """Return the rules by their list and name."""
    flat: Flat = {}
    for part, content in sorted((rule_set or {}).items()):
        if isinstance(content, list):
            flat |= {f"{part}.{name}": rule for name, rule in _named(content)}
        elif content:
            flat[part] = content
    return flat


def _orders(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> tuple[Flat, Flat]:
    """Return the order of the rules in each list that both versions have, because rules run in that order."""
    before, after = Flat(), Flat()
    for part in sorted((old or {}).keys() & (new or {}).keys()):
        lists = [[name for name, _ in _named(side[part])] for side in (old or {}, new or {}) if _is_list(side[part])]
        if len(lists) == 2:
            name = gettext("order of %(part)s") % {"part": part}
            before[name] = ", ".join(rule for rule in lists[0] if rule in lists[1])
            after[name] = ", ".join(rule for rule in lists[1] if rule in lists[0])
    return before, after


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _named(rules: list[Any]) -> Iterator[tuple[str, Any]]:
    for number, rule in enumerate(rules, start=1):
        yield (str(rule.get("name") or number) if isinstance(rule, Mapping) else str(number)), rule


def _references(info: VersionInfo) -> Flat:
    return {
        item.name: gettext("%(subject)s version %(version)s") % {"subject": item.subject, "version": item.version}
        for item in info.schema.references
    }


_NAMED: Final = 8


def skipped_between(
    presence: SubjectPresence,
    old: tuple[str, VersionInfo],
    new: tuple[str, VersionInfo],
    *,
    order: list[str] | None = None,
) -> str:
    """Name the versions between the old and the new side; "" if there are none.

    Each side is a registry and its version. For two environments, the new side's versions count, after the one with the
    old side's content. `order` are the environments' names, if already read.
    """
    (there, before), (here, after) = old, new
    if there == here:
        between = _between(presence, here, before.version, after.version)
        return _listed(gettext("It skips"), between)
    order = list_environments() if order is None else order
    if not {there, here} <= set(order) or order.index(here) > order.index(there):
        return ""
    base = _base(presence, here, there, before.schema.fingerprint, after.version)
    if base is None:
        return ""
    start = gettext("Promoting %(here)s %(new)s over %(there)s %(old)s skips") % {
        "here": here,
        "new": after.version,
        "there": there,
        "old": before.version,
    }
    return _listed(start, _between(presence, here, base, after.version))


def _base(presence: SubjectPresence, here: str, there: str, fingerprint: str, limit: int) -> int | None:
    """Return the newest version here below the limit with the old side's content, else with any content there."""
    fingerprints = {number: mark for number, mark in presence.fingerprints.get(here, {}).items() if number < limit}
    same = [number for number, mark in fingerprints.items() if mark == fingerprint]
    any_there = set(presence.fingerprints.get(there, {}).values())
    return max(same or [number for number, mark in fingerprints.items() if mark in any_there], default=None)


def _between(presence: SubjectPresence, registry: str, old: int, new: int) -> list[int]:
    return sorted(number for number in presence.fingerprints.get(registry, {}) if old < number < new)


def _listed(start: str, numbers: Sequence[int]) -> str:
    if not numbers:
        return ""
    more = len(numbers) - _NAMED
    named = [str(number) for number in numbers[:_NAMED]]
    if more > 0:
        named.append(counted(more, "%(n)s more", "%(n)s more"))
    return counted(
        len(numbers),
        "%(start)s version %(numbers)s.",
        "%(start)s versions %(numbers)s.",
        start=start,
        numbers=listing(named),
    )
