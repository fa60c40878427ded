"""What two versions differ in beside the schema: metadata, the rule set, and what their references lead to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.utils.translation import gettext

from dashboard.pages.values import shown_value
from dashboard.presenters.comparison import ExtraChange
from dashboard.presenters.looks import ChangeKind
from dashboard.texts import later
from registry.subjects.selectors import VersionInfo

#: changes of one of the three that a page draws
MAX_EXTRAS: Final = 200
METADATA: Final = later("Metadata")
RULES: Final = later("Rules")
REFERENCE: Final = later("Reference")
Flat = dict[str, Any]


def extras_of(old: VersionInfo, new: VersionInfo) -> tuple[ExtraChange, ...]:
    """The changes of metadata, rules and references, in this order."""
    found = (
        (METADATA, _metadata(old.schema.metadata), _metadata(new.schema.metadata)),
        (RULES, _rules(old.schema.rule_set), _rules(new.schema.rule_set)),
        (RULES, *_orders(old.schema.rule_set, new.schema.rule_set)),
        (REFERENCE, _references(old), _references(new)),
    )
    return tuple(change for label, before, after in found for change in _changes(label, before, after))


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
    """Each property, the tags of each path, and the names of what is sensitive: `properties.owner`, `tags.Order.email`."""
    found: Flat = {}
    for part, held in sorted((metadata or {}).items()):
        if isinstance(held, Mapping):
            found |= {f"{part}.{name}": value for name, value in sorted(held.items())}
        elif held:
            found[part] = held
    return found


def _rules(rule_set: Mapping[str, Any] | None) -> Flat:
    """Each rule by its list and its name."""
    found: Flat = {}
    for part, held in sorted((rule_set or {}).items()):
        if isinstance(held, list):
            found |= {f"{part}.{name}": rule for name, rule in _named(held)}
        elif held:
            found[part] = held
    return found


def _orders(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> tuple[Flat, Flat]:
    """The order of the rules that both have, of each list: they run in it."""
    before, after = Flat(), Flat()
    for part in sorted((old or {}).keys() & (new or {}).keys()):
        lists = [[name for name, _ in _named(side[part])] for side in (old or {}, new or {}) if _is_list(side[part])]
        if len(lists) == 2:
            name = gettext("order of %(part)s") % {"part": part}
            before[name] = ", ".join(rule for rule in lists[0] if rule in lists[1])
            after[name] = ", ".join(rule for rule in lists[1] if rule in lists[0])
    return before, after


def _is_list(held: Any) -> bool:
    return isinstance(held, list)


def _named(rules: list[Any]) -> Iterator[tuple[str, Any]]:
    for number, rule in enumerate(rules, start=1):
        yield (str(rule.get("name") or number) if isinstance(rule, Mapping) else str(number)), rule


def _references(info: VersionInfo) -> Flat:
    return {
        item.name: gettext("%(subject)s version %(version)s") % {"subject": item.subject, "version": item.version}
        for item in info.schema.references
    }
