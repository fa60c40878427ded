"""Environments in promotion order, with rules, freezes and break-glass; and changes waiting for a second person."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.core.validators import MaxValueValidator
from django.db import models

#: a year
MAX_HOURS: Final = 8760
MAX_REVIEWS: Final = 20
_DAY: Final = 24


@dataclass(frozen=True)
class EvidenceRule:
    """What an environment requires of evidence: at most `hours` old (0: any age), and whether it is required."""

    environment: str
    hours: int = 0
    required: bool = False

    @property
    def binds(self) -> bool:
        """Whether it requires anything."""
        return bool(self.hours or self.required)

    @property
    def longest(self) -> str:
        """The age in words."""
        number, unit = (self.hours // _DAY, "day") if self.hours % _DAY == 0 else (self.hours, "hour")
        return f"{number} {unit}{'s' if number != 1 else ''}"


class Environment(models.Model):
    """A registry with its position in the promotion order. A closed one changes only by releases and break-glass.

    The registry may be a mirror: then plans are built from the mirror, and applying writes to the remote.
    """

    registry = models.OneToOneField("subjects.Registry", on_delete=models.CASCADE, related_name="environment")
    position = models.PositiveSmallIntegerField(unique=True)
    is_closed = models.BooleanField(default=False)
    reviews_needed = models.PositiveSmallIntegerField(default=1, validators=[MaxValueValidator(MAX_REVIEWS)])
    own_approval_allowed = models.BooleanField(default=False)
    owners_only = models.BooleanField(default=False, help_text="only owners of a subject may request it here")
    drift_blocks = models.BooleanField(default=True, help_text="open drift at a subject here fails its requests")
    threads_block = models.BooleanField(default=False, help_text="a discussion that isn't resolved stops the release")
    clients_block = models.BooleanField(
        default=False, help_text="a declared client that doesn't go on stops the release until it is acknowledged"
    )
    max_evidence_hours = models.PositiveSmallIntegerField(
        default=0,
        validators=[MaxValueValidator(MAX_HOURS)],
        help_text="how old evidence from data may be that a release rests on; 0 for any age",
    )
    evidence_required = models.BooleanField(default=False, help_text="a release rests on evidence from data")

    class Meta:
        ordering = ["position"]
        constraints = [
            models.CheckConstraint(condition=models.Q(max_evidence_hours__lte=8760), name="evidence_ages_within_a_year")
        ]

    def __str__(self) -> str:
        return self.registry.name

    @property
    def evidence_rule(self) -> EvidenceRule:
        """The rule for evidence from data; the registry should be joined."""
        return EvidenceRule(self.registry.name, self.max_evidence_hours, self.evidence_required)

    @property
    def settings(self) -> dict[str, int]:
        """The rules that people can change, by field."""
        return {name: getattr(self, name) for name in SETTINGS}


def _switched_off(before: Any, after: Any) -> bool:
    return bool(before) and not after


def _switched_on(before: Any, after: Any) -> bool:
    return not before and bool(after)


def _fewer(before: Any, after: Any) -> bool:
    return int(after) < int(before)


def _older(before: Any, after: Any) -> bool:
    """Return whether a limit in hours is looser, where 0 means no limit."""
    return before not in (0, after) and (after == 0 or after > before)


class EnvironmentSetting(NamedTuple):
    """A setting's name in sentences, and whether a change from the first value to the second loosens the rules."""

    label: str
    loosens: Callable[[Any, Any], bool]


#: field of `Environment` that people can change → the setting
SETTINGS: Final[Mapping[str, EnvironmentSetting]] = {
    "is_closed": EnvironmentSetting("closed", _switched_off),
    "reviews_needed": EnvironmentSetting("approvals required", _fewer),
    "own_approval_allowed": EnvironmentSetting("requesters can approve their own requests", _switched_on),
    "owners_only": EnvironmentSetting("only owners request", _switched_off),
    "drift_blocks": EnvironmentSetting("drift blocks", _switched_off),
    "threads_block": EnvironmentSetting("unresolved discussions block", _switched_off),
    "clients_block": EnvironmentSetting("affected clients block", _switched_off),
    "max_evidence_hours": EnvironmentSetting("maximum age of evidence in hours", _older),
    "evidence_required": EnvironmentSetting("evidence required", _switched_off),
}
_SWITCH: Final = {True: "yes", False: "no"}


def change_in_words(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return the settings of `after`, each with its old and new value, for sentences."""
    return ", ".join(
        f"{SETTINGS[field].label}: {_in_words(before[field])} → {_in_words(value)}" for field, value in after.items()
    )


def _in_words(value: Any) -> str:
    return _SWITCH[value] if isinstance(value, bool) else str(value)


def setting_type(name: str) -> type[int]:
    """Return the type of a setting's values: bool or int."""
    return bool if isinstance(Environment._meta.get_field(name), models.BooleanField) else int


class ReviewRule(models.Model):
    """Required approvals in addition to the environment's count: how many by owners, a role or a group."""

    ANY, BREAKING = "any", "breaking"
    OWNERS, ROLE, GROUP = "owners", "role", "group"

    environment = models.ForeignKey(Environment, on_delete=models.CASCADE, related_name="review_rules")
    subject_pattern = models.CharField(max_length=1024, default="*", help_text="a shell pattern of qualified names")
    verdict = models.CharField(max_length=8, default=ANY, help_text="for every request, or for breaking ones")
    reviewers = models.CharField(max_length=8)
    name = models.CharField(max_length=150, blank=True, help_text="the role's or the group's; empty for owners")
    count = models.PositiveSmallIntegerField(default=1)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["environment", "subject_pattern", "verdict", "reviewers", "name"], name="one_rule_a_kind"
            ),
            models.CheckConstraint(condition=models.Q(verdict__in=("any", "breaking")), name="known_rule_verdict"),
            models.CheckConstraint(
                condition=models.Q(reviewers="owners", name="")
                | models.Q(reviewers__in=("role", "group")) & ~models.Q(name=""),
                name="rule_names_its_reviewers",
            ),
            models.CheckConstraint(condition=models.Q(count__gte=1, count__lte=20), name="rule_asks_for_somebody"),
        ]

    def __str__(self) -> str:
        return f"{self.count} of {self.name or self.reviewers} for {self.subject_pattern}"


class FreezeWindow(models.Model):
    """A period in which nothing is applied to an environment."""

    environment = models.ForeignKey(Environment, on_delete=models.CASCADE, related_name="freeze_windows")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    reason = models.TextField()
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ["starts_at"]
        constraints = [
            models.CheckConstraint(condition=models.Q(ends_at__gt=models.F("starts_at")), name="freeze_ends_later")
        ]

    def __str__(self) -> str:
        return f"{self.environment}: {self.starts_at:%Y-%m-%d %H:%M} to {self.ends_at:%Y-%m-%d %H:%M}"


class RecurringFreeze(models.Model):
    """Recurring periods in which nothing is applied, in a time zone.

    Weekly: from a day (0 is Monday) and time to the next given day and time. Monthly: from a time on the first of a
    month's `last_days` to a time on the first day of the next month.
    """

    WEEKLY, MONTHLY = "weekly", "monthly"
    KINDS = (WEEKLY, MONTHLY)

    environment = models.ForeignKey(Environment, on_delete=models.CASCADE, related_name="recurring_freezes")
    kind = models.CharField(max_length=8)
    zone = models.CharField(max_length=64, help_text="a name of the time zone database, such as Europe/Berlin")
    from_day = models.PositiveSmallIntegerField(null=True, blank=True)
    from_time = models.TimeField()
    to_day = models.PositiveSmallIntegerField(null=True, blank=True)
    to_time = models.TimeField()
    last_days = models.PositiveSmallIntegerField(null=True, blank=True)
    reason = models.TextField()
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind="weekly", from_day__lte=6, to_day__lte=6, last_days=None)
                & models.Q(from_day__isnull=False, to_day__isnull=False)
                | models.Q(kind="monthly", from_day=None, to_day=None, last_days__gte=1, last_days__lte=28)
                & models.Q(last_days__isnull=False),
                name="freeze_recurs_weekly_or_monthly",
            ),
            models.CheckConstraint(
                condition=~models.Q(kind="weekly", from_day=models.F("to_day"), from_time=models.F("to_time")),
                name="recurring_freeze_ends",
            ),
            models.CheckConstraint(condition=~models.Q(reason=""), name="recurring_freeze_has_a_reason"),
        ]

    def __str__(self) -> str:
        return f"{self.environment}: {self.kind}, {self.zone}"


class BreakGlass(models.Model):
    """An admin's temporary access to a closed environment, with a reason.

    A second person confirms it within a day; until then, and permanently if nobody does, it is red.
    """

    environment = models.ForeignKey(Environment, on_delete=models.CASCADE, related_name="break_glass")
    reason = models.TextField()
    opened_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    opened_at = models.DateTimeField(auto_now_add=True)
    ends_at = models.DateTimeField()
    uses = models.PositiveIntegerField(default=0)
    confirmed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    confirmed_at = models.DateTimeField(null=True, blank=True)
    comment = models.TextField(blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=~models.Q(reason=""), name="break_glass_has_a_reason"),
            models.CheckConstraint(
                condition=models.Q(confirmed_by=None) | ~models.Q(confirmed_by=models.F("opened_by")),
                name="second_person_confirms",
            ),
            models.CheckConstraint(
                condition=models.Q(confirmed_by=None, confirmed_at=None)
                | models.Q(confirmed_by__isnull=False, confirmed_at__isnull=False),
                name="confirmed_by_and_at",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.environment}: {self.reason}"


class EnvironmentChange(models.Model):
    """A change that loosens a closed environment's rules, with its requester and decider.

    `action` and `values` are a service and its arguments; `before` is what it changes or depends on (change_guard.py).
    """

    OPEN, APPROVED, REJECTED, WITHDRAWN = "open", "approved", "rejected", "withdrawn"

    environment = models.ForeignKey(Environment, on_delete=models.CASCADE, related_name="changes")
    action = models.CharField(max_length=32)
    values = models.JSONField()
    before = models.JSONField(default=dict)
    digest = models.CharField(max_length=64, help_text="SHA-256 of the action with its values")
    sentence = models.TextField()
    reason = models.TextField()
    state = models.CharField(max_length=9, default=OPEN)
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    requested_at = models.DateTimeField(auto_now_add=True)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    decided_at = models.DateTimeField(null=True, blank=True)
    comment = models.TextField(blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=("open", "approved", "rejected", "withdrawn")), name="known_change_state"
            ),
            models.CheckConstraint(
                condition=models.Q(state="open", decided_by=None, decided_at=None)
                | ~models.Q(state="open") & models.Q(decided_by__isnull=False, decided_at__isnull=False),
                name="change_decided_by_and_at",
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=("open", "withdrawn")) | ~models.Q(decided_by=models.F("requested_by")),
                name="second_person_decides_change",
            ),
            models.CheckConstraint(condition=~models.Q(reason=""), name="environment_change_has_a_reason"),
            models.UniqueConstraint(
                fields=["environment", "digest"], condition=models.Q(state="open"), name="one_open_change"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.environment}: {self.sentence}"
