"""Who answers for a subject."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from django.db.models import Q

from registry.access.models import Ownership, User


@dataclass(frozen=True, order=True)
class Owner:
    """An active person who owns a subject; `groups` are those by which they do, empty for one who is named."""

    username: str
    user_id: int
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Owners:
    """The owners of a subject: the people, by name, and the groups that are named (empty ones too)."""

    people: tuple[Owner, ...] = ()
    groups: tuple[str, ...] = ()

    @property
    def user_ids(self) -> frozenset[int]:
        """The people's numbers."""
        return frozenset(owner.user_id for owner in self.people)


def owners_of(registry: str, subject: str) -> Owners:
    """The owners of a subject, given by its qualified name: everybody whom a pattern that fits it names. Two queries."""
    return owners_of_many(registry, [subject])[subject]


def owners_of_many(registry: str, subjects: Iterable[str]) -> dict[str, Owners]:
    """The owners of each of the subjects, in two queries however many they are."""
    rules = list(Ownership.objects.filter(registry__in=("", registry)).select_related("user", "group").order_by("pk"))
    members = _members({rule.group_id for rule in rules if rule.group_id})
    return {
        subject: _together([rule for rule in rules if fnmatchcase(subject, rule.subject_pattern)], members)
        for subject in subjects
    }


def owner_names(registry: str) -> list[tuple[str, str]]:
    """Who owns anything there, as (`user` or `group`, name), sorted; one query."""
    rules = Ownership.objects.filter(registry__in=("", registry)).select_related("user", "group")
    return sorted({("group", rule.group.name) if rule.group else ("user", str(rule.user)) for rule in rules})


def patterns_of(registry: str, kind: str, name: str) -> tuple[str, ...]:
    """The patterns of what a `user` owns, by themselves or by a group, or a `group`; none for an unknown one; one query."""
    if kind not in ("user", "group") or "\0" in name:
        return ()
    rules = Ownership.objects.filter(registry__in=("", registry))
    whose = Q(group__name=name) if kind == "group" else Q(user__username=name) | Q(group__user__username=name)
    return tuple(sorted(set(rules.filter(whose).values_list("subject_pattern", flat=True))))


def patterns_by_owner(registry: str) -> dict[tuple[str, str], tuple[str, ...]]:
    """What everybody owns there, by (`user` or `group`, name) in that order: as `patterns_of` each; two queries."""
    rules = list(Ownership.objects.filter(registry__in=("", registry)).select_related("user", "group"))
    members = User.objects.filter(groups__in={rule.group_id for rule in rules if rule.group_id})
    of_group: dict[int, list[str]] = {}
    for group, name in members.values_list("groups", "username"):
        of_group.setdefault(group, []).append(name)
    named = {("group", rule.group.name) if rule.group else ("user", str(rule.user)) for rule in rules}
    found: dict[tuple[str, str], set[str]] = {owner: set() for owner in named}
    for rule in rules:
        whose = [("group", rule.group.name)] if rule.group else [("user", str(rule.user))]
        whose += [("user", name) for name in of_group.get(rule.group_id or 0, ())]
        for owner in whose:
            if owner in found:
                found[owner].add(rule.subject_pattern)
    return {owner: tuple(sorted(patterns)) for owner, patterns in sorted(found.items())}


def all_patterns(registry: str) -> tuple[str, ...]:
    """The patterns of what anybody owns there; one query."""
    rules = Ownership.objects.filter(registry__in=("", registry))
    return tuple(rules.order_by("subject_pattern").values_list("subject_pattern", flat=True).distinct())


def _members(group_ids: set[int]) -> dict[int, list[tuple[int, str]]]:
    found: dict[int, list[tuple[int, str]]] = {}
    rows = User.objects.filter(is_active=True, groups__in=group_ids).values_list("groups", "pk", "username")
    for group_id, user_id, username in rows:
        found.setdefault(group_id, []).append((user_id, username))
    return found


def _together(rules: list[Ownership], members: dict[int, list[tuple[int, str]]]) -> Owners:
    people: dict[int, tuple[str, set[str]]] = {}
    named: set[int] = set()
    groups: set[str] = set()
    for rule in rules:
        if rule.group is not None:
            groups.add(rule.group.name)
            for user_id, username in members.get(rule.group.pk, ()):
                people.setdefault(user_id, (username, set()))[1].add(rule.group.name)
        elif rule.user is not None and rule.user.is_active:
            people.setdefault(rule.user.pk, (rule.user.get_username(), set()))
            named.add(rule.user.pk)
    found = (
        Owner(username, user_id, () if user_id in named else tuple(sorted(through)))
        for user_id, (username, through) in people.items()
    )
    return Owners(people=tuple(sorted(found)), groups=tuple(sorted(groups)))
