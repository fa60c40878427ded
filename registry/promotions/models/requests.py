"""Requests to promote between environments: items, labels, the stored plan, reviews, discussions, steps and releases.

A stored plan may be damaged by a disk fault or come from an old version of the program; `readable_plan` makes it safe
to read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.utils import timezone

from registry.access.permission_filters import READ, Extent, VisibleQuerySet, extent_of
from registry.access.roles import Actor
from registry.errors import InvalidInput
from registry.promotions.models.environments import Environment
from registry.subjects.models.registries import qualified

MAX_LABELS: Final = 10
MAX_LABEL: Final = 40


def clean_label(text: str) -> str:
    """Return a label as stored and searched: lower case, trimmed. Raises InvalidInput."""
    label = " ".join(text.split()).lower()
    if not label or len(label) > MAX_LABEL:
        raise InvalidInput(f"A label can have 1 to {MAX_LABEL} characters, not {len(label)}.", field="labels")
    if not label.isprintable() or "," in label:
        raise InvalidInput("A label has a comma or an invisible character. Remove it.", field="labels")
    return label


def written_labels(text: str) -> list[str]:
    """Return the labels of a comma-separated line, without empty ones."""
    return [label.strip() for label in text.split(",") if label.strip()]


def clean_labels(labels: Iterable[str]) -> list[str]:
    """Return the labels sorted, each once. Raises InvalidInput, also for too many."""
    cleaned = sorted({clean_label(label) for label in labels})
    if len(cleaned) > MAX_LABELS:
        raise InvalidInput(f"A request can have {MAX_LABELS} labels, not {len(cleaned)}.", field="labels")
    return cleaned


#: the steps in SQL, none if they aren't a list; for a template of a Func
STEPS: Final = (
    "CASE jsonb_typeof(%(expressions)s -> 'steps') WHEN 'array' THEN %(expressions)s -> 'steps' ELSE '[]' END"
)


def readable_plan(stored: Any) -> dict[str, Any]:
    """Return a stored plan; if it is damaged, an empty one whose `unreadable` is true.

    So no list and no page fails because of one damaged request. Nothing is applied from it, because the plan is built
    again before.
    """
    return dict(stored) if _is_readable(stored) else {"steps": [], "checks": [], "unreadable": True}


def _is_readable(stored: Any) -> bool:
    if not isinstance(stored, Mapping):
        return False
    named = (("steps", ("subject",)), ("checks", ("verdict", "name", "sentence")))
    return all(
        isinstance(stored.get(part), list)
        and all(isinstance(item, Mapping) and all(name in item for name in names) for item in stored[part])
        for part, names in named
    )


PERSON = settings.AUTH_USER_MODEL


class RequestQuerySet(VisibleQuerySet["PromotionRequest"]):
    """Requests, which are visible if all their subjects at the target are; a draft only to its requester."""

    def visible_to(self, actor: Actor, action: str = READ) -> Self:
        """Return the requests for which the actor may do the action on all subjects; of drafts only their own."""
        drafts = models.Q(state=PromotionRequest.DRAFT) & ~models.Q(requested_by_id=actor.user_id or 0)
        return self.exclude(drafts).covered_by(extent_of(actor, action))

    def covered_by(self, extent: Extent) -> Self:
        """Return the requests whose subjects are all in the extent."""
        if extent.is_whole:
            return self
        name = qualified(models.F("context_name"), models.F("subject_name"))
        items = RequestItem.objects.filter(request=models.OuterRef("pk")).alias(qualified=name)
        beyond = items.exclude(extent.subjects("request__target__registry__name", "qualified"))
        own = extent.subjects("target__registry__name", "qualified")
        return self.alias(qualified=name).filter(own, ~models.Exists(beyond))


class PromotionRequest(models.Model):
    """A request for one or more versions in an environment; a review binds to `plan_hash`.

    `version`, the names, number and fingerprint are those of the first item, which lists show.
    """

    DRAFT, IN_REVIEW, APPROVED, SCHEDULED, APPLYING, APPLIED, REJECTED, WITHDRAWN, FAILED = (
        "draft", "in review", "approved", "scheduled", "applying", "applied", "rejected", "withdrawn", "failed",
    )  # fmt: skip
    STATES = (DRAFT, IN_REVIEW, APPROVED, SCHEDULED, APPLYING, APPLIED, REJECTED, WITHDRAWN, FAILED)
    #: a failed request has written a part and can be resumed or given up
    OPEN_STATES = (DRAFT, IN_REVIEW, APPROVED, SCHEDULED, APPLYING, FAILED)
    CLOSED_STATES = (APPLIED, REJECTED, WITHDRAWN)
    #: states in which the plan is checked again and may change
    PLANNED_STATES = (IN_REVIEW, APPROVED, SCHEDULED)
    #: states in which nothing was written yet, so there are no steps and releases
    UNWRITTEN_STATES = (DRAFT, *PLANNED_STATES)

    PROMOTE, PROPOSE, ROLL_BACK, ADOPT = "promote", "propose", "roll back", "adopt"
    KINDS = (PROMOTE, PROPOSE, ROLL_BACK, ADOPT)

    kind = models.CharField(max_length=16, default=PROMOTE)
    source = models.ForeignKey(Environment, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    target = models.ForeignKey(Environment, on_delete=models.PROTECT, related_name="+")
    version = models.ForeignKey(
        "subjects.SchemaVersion", on_delete=models.SET_NULL, null=True, related_name="promotion_requests"
    )
    context_name = models.CharField(max_length=256)
    subject_name = models.CharField(max_length=1024)
    version_number = models.PositiveIntegerField(help_text="in the source; 0 for a proposed text")
    fingerprint = models.CharField(max_length=64)
    config = models.JSONField(null=True, blank=True, help_text="the subjects' config that comes along")
    reason = models.TextField(blank=True)
    state = models.CharField(max_length=16, default=IN_REVIEW)
    plan = models.JSONField()
    plan_hash = models.CharField(max_length=64)
    planned_at = models.DateTimeField(default=timezone.now, help_text="when the checks were last run")
    moved = models.TextField(blank=True, help_text="what voided the last approvals; empty when nothing did")
    requested_by = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="+")
    requested_at = models.DateTimeField(auto_now_add=True)
    apply_at = models.DateTimeField(null=True, blank=True, help_text="when a scheduled one is applied")
    applied_by = models.ForeignKey(PERSON, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    claim_tag = models.CharField(max_length=32, blank=True, help_text="of the worker that applies it")
    claim_until = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    failure = models.TextField(blank=True)
    finding = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="the number of the drift finding that it answers, which may be gone since"
    )
    labels = ArrayField(models.CharField(max_length=MAX_LABEL), default=list, blank=True)
    again_of = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="+",
        help_text="the one that was rejected or withdrawn, which this one asks for again",
    )  # fmt: skip

    @classmethod
    def from_db(
        cls, db: str | None, field_names: Collection[str], values: Collection[Any], **modes: Any
    ) -> PromotionRequest:
        """Return the row with a readable plan; a damaged plan becomes an empty one."""
        row = super().from_db(db, field_names, values, **modes)
        if "plan" in row.__dict__:
            row.plan = readable_plan(row.plan)
        return row

    objects = RequestQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(
                    state__in=(
                        "draft", "in review", "approved", "scheduled", "applying", "applied", "rejected", "withdrawn",
                        "failed",
                    )
                ),
                name="known_request_state",
            ),
            models.CheckConstraint(
                condition=models.Q(kind="promote", source__isnull=False) & ~models.Q(source=models.F("target"))
                | models.Q(kind__in=("propose", "roll back", "adopt"), source=None),
                name="two_environments",
            ),
            models.CheckConstraint(
                condition=~models.Q(state="scheduled") | models.Q(apply_at__isnull=False), name="scheduled_has_a_time"
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=("applied", "rejected", "withdrawn"), closed_at__isnull=False)
                | ~models.Q(state__in=("applied", "rejected", "withdrawn")) & models.Q(closed_at=None),
                name="closed_has_a_time",
            ),
            models.CheckConstraint(condition=~models.Q(again_of=models.F("id")), name="again_of_another"),
            models.CheckConstraint(condition=models.Q(labels__len__lte=MAX_LABELS), name="request_has_few_labels"),
        ]  # fmt: skip
        indexes = [
            models.Index(fields=["context_name", "subject_name"], name="request_by_subject"),
            models.Index(fields=["state", "apply_at"], name="request_by_state"),
            models.Index(fields=["finding"], condition=models.Q(finding__isnull=False), name="request_by_finding"),
            GinIndex(fields=["labels"], name="request_by_label"),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.subject_name} v{self.version_number}"


class RequestItem(models.Model):
    """A version or a proposed text (`version_number` 0) in a request. The plan adds what they refer to.

    `open_in` is the target while the request is open, so that a schema has only one open request there.
    """

    request = models.ForeignKey(PromotionRequest, on_delete=models.CASCADE, related_name="items")
    position = models.PositiveSmallIntegerField()
    open_in = models.ForeignKey(Environment, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    context_name = models.CharField(max_length=256)
    subject_name = models.CharField(max_length=1024)
    version_number = models.PositiveIntegerField()
    fingerprint = models.CharField(max_length=64)
    schema_type = models.CharField(max_length=16)
    text = models.TextField(blank=True, help_text="of a proposed one; a version's is where it is registered")
    references = models.JSONField(default=list)

    class Meta:
        ordering = ["request", "position"]
        constraints = [
            models.UniqueConstraint(fields=["request", "position"], name="one_item_a_position"),
            models.UniqueConstraint(fields=["request", "context_name", "subject_name"], name="one_item_a_subject"),
            models.UniqueConstraint(
                fields=["open_in", "context_name", "subject_name", "fingerprint"],
                condition=models.Q(open_in__isnull=False),
                name="one_open_request_a_schema",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject_name} v{self.version_number}"


class Review(models.Model):
    """One person's decision on one plan; a review of an earlier plan no longer counts.

    `override` is the reason for an approval despite failed checks that can be overridden.
    """

    APPROVE, CHANGES, REJECT = "approve", "changes", "reject"

    request = models.ForeignKey(PromotionRequest, on_delete=models.CASCADE, related_name="reviews")
    reviewer = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="+")
    verdict = models.CharField(max_length=8, choices=[(word, word) for word in (APPROVE, CHANGES, REJECT)])
    comment = models.TextField(blank=True)
    override = models.TextField(blank=True)
    plan_hash = models.CharField(max_length=64)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["request", "reviewer", "plan_hash"], name="one_review_a_person_and_plan")
        ]

    def __str__(self) -> str:
        return f"{self.reviewer}: {self.verdict}"


class Thread(models.Model):
    """A discussion of a request, anchored to a field of one of its subjects (both empty: to the whole request).

    It may suggest a change of a proposed text, which the requester can take.
    """

    request = models.ForeignKey(PromotionRequest, on_delete=models.CASCADE, related_name="threads")
    subject = models.CharField(max_length=1280, blank=True, help_text="the qualified name")
    path = models.TextField(blank=True, help_text="of the field, as the diff names it")
    resolved_by = models.ForeignKey(PERSON, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    resolved_at = models.DateTimeField(null=True, blank=True)
    suggestion = models.TextField(blank=True, default="", help_text="the proposed text, changed")
    suggested_on = models.TextField(blank=True, default="", help_text="the proposed text that the suggestion changes")
    is_taken = models.BooleanField(default=False)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(is_taken=False) | ~models.Q(suggestion=""), name="taken_has_a_suggestion"
            )
        ]

    def __str__(self) -> str:
        return f"{self.request_id} {self.path}"


class Comment(models.Model):
    """One contribution to a discussion."""

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="comments")
    author = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="+")
    text = models.TextField()
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [models.CheckConstraint(condition=~models.Q(text=""), name="comment_says_something")]

    def __str__(self) -> str:
        return f"{self.author}: {self.text[:40]}"


class ApplyStep(models.Model):
    """A step of a plan that is being applied, stored before and after it runs, so that a crash can be resumed."""

    WAITING, RUNNING, DONE, FAILED = "waiting", "running", "done", "failed"

    request = models.ForeignKey(PromotionRequest, on_delete=models.CASCADE, related_name="steps")
    position = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=8, default=WAITING)
    step = models.JSONField(help_text="as in the plan that was approved")
    version_number = models.PositiveIntegerField(null=True, blank=True, help_text="that the target gave")
    schema_id = models.PositiveIntegerField(null=True, blank=True, help_text="that the target gave")
    said = models.TextField(blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    done_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["request", "position"]
        constraints = [
            models.UniqueConstraint(fields=["request", "position"], name="one_step_a_position"),
            models.CheckConstraint(
                condition=models.Q(state__in=("waiting", "running", "done", "failed")), name="known_step_state"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.request_id}.{self.position} {self.state}"


class Release(models.Model):
    """A version, or a version that it refers to, that an approved request made live in an environment."""

    environment = models.ForeignKey(Environment, on_delete=models.PROTECT, related_name="releases")
    request = models.ForeignKey(PromotionRequest, on_delete=models.PROTECT, related_name="releases")
    version = models.ForeignKey("subjects.SchemaVersion", on_delete=models.SET_NULL, null=True, related_name="releases")
    context_name = models.CharField(max_length=256)
    subject_name = models.CharField(max_length=1024)
    version_number = models.PositiveIntegerField()
    schema_id = models.PositiveIntegerField()
    fingerprint = models.CharField(max_length=64)
    released_by = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="+")
    released_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["request", "context_name", "subject_name", "version_number"], name="one_release_a_request"
            )
        ]
        indexes = [models.Index(fields=["environment", "context_name", "subject_name"], name="release_by_subject")]

    def __str__(self) -> str:
        return f"{self.environment}: {self.subject_name} v{self.version_number}"


class Draft(models.Model):
    """A schema text in progress, kept until it is proposed or discarded; visible only to its author."""

    author = models.ForeignKey(PERSON, on_delete=models.CASCADE, related_name="+")
    registry = models.ForeignKey("subjects.Registry", on_delete=models.CASCADE, related_name="+")
    context_name = models.CharField(max_length=256)
    subject_name = models.CharField(max_length=1024)
    schema_type = models.CharField(max_length=16)
    text = models.TextField()
    references = models.JSONField(default=list)
    reason = models.TextField(blank=True, help_text="why it is to be there, for the request that it becomes")
    origin = models.TextField(blank=True, help_text="where it came from, in words")
    finding = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="the number of the drift finding that it answers, which may be gone since"
    )
    again_of = models.ForeignKey(
        PromotionRequest, on_delete=models.SET_NULL, null=True, blank=True, related_name="+",
        help_text="the request, rejected or withdrawn, that it will ask for again",
    )  # fmt: skip
    made_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-changed_at"]
        constraints = [
            models.UniqueConstraint(fields=["author", "registry", "context_name", "subject_name"], name="one_draft")
        ]

    def __str__(self) -> str:
        return f"draft of {self.subject_name}"
