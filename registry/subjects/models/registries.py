"""Registries, contexts and subjects, and a subject's data other than its versions."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Self, TypeVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Cast, Concat, Length
from django.db.models.lookups import Exact, LessThanOrEqual

from registry.access.contact_channels import MAX_CHANNEL
from registry.access.permission_filters import Extent, VisibleQuerySet
from registry.subjects.associations.requests import ASSOCIATION_TYPES, LIFECYCLES, RESOURCE_TYPES, STRONG
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT

_Row = TypeVar("_Row", bound=models.Model)
_QUALIFIED: Final = "qualified_name_to_see"


def qualified(context: Any, subject: Any) -> models.Case:
    """Return a subject's qualified name, from two expressions, for matching the patterns of rights and owners."""
    context_name, name = Cast(context, models.TextField()), Cast(subject, models.TextField())
    elsewhere = Concat(models.Value(":"), context_name, models.Value(":"), name, output_field=models.TextField())
    default = models.When(Exact(context_name, models.Value(DEFAULT_CONTEXT)), then=name)
    return models.Case(default, default=elsewhere, output_field=models.TextField())


class SubjectLinkedQuerySet(VisibleQuerySet[_Row]):
    """Subjects, or rows of a subject, which are visible if it is."""

    subject: ClassVar[str] = ""

    def covered_by(self, extent: Extent) -> Self:
        """Return the rows of subjects in the extent."""
        if extent.is_whole:
            return self
        context = f"{self.subject}context__"
        name = qualified(models.F(f"{context}name"), models.F(f"{self.subject}name"))
        return self.alias(**{_QUALIFIED: name}).filter(extent.subjects(f"{context}registry__name", _QUALIFIED))


class RegistryQuerySet(VisibleQuerySet["Registry"]):
    """Registries, which are visible if any of their subjects is."""

    def covered_by(self, extent: Extent) -> Self:
        """Return the registries in which the extent covers anything."""
        return self.filter(extent.any_of_registries("name"))


class Registry(models.Model):
    """A local registry, or the mirror of a remote one. Unique by project, location and name."""

    LOCAL, REMOTE = "local", "remote"

    project = models.CharField(max_length=63)
    location = models.CharField(max_length=63)
    name = models.CharField(max_length=255)
    kind = models.CharField(max_length=6, choices=[(LOCAL, LOCAL), (REMOTE, REMOTE)], default=LOCAL)
    url = models.URLField(max_length=2048, blank=True, help_text="base address of a remote registry")
    user = models.CharField(max_length=255, blank=True, help_text="who signs in there")
    secret = models.CharField(max_length=64, blank=True, help_text="name of the secret that signs in, not the secret")
    every_seconds = models.PositiveIntegerField(null=True, blank=True, help_text="how often it is mirrored")
    next_sync_at = models.DateTimeField(null=True, blank=True)
    sync_tag = models.CharField(max_length=32, blank=True, help_text="whose the sync is that runs")
    sync_lease_until = models.DateTimeField(null=True, blank=True)
    synced_at = models.DateTimeField(null=True, blank=True, help_text="when it was last read as a whole")
    sync_error = models.TextField(blank=True)
    failing_since = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = RegistryQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "location", "name"], name="one_registry"),
            models.CheckConstraint(
                condition=(models.Q(kind="local") & models.Q(url="")) | (models.Q(kind="remote") & ~models.Q(url="")),
                name="remote_registry_has_url",
            ),
            models.CheckConstraint(condition=~models.Q(name=""), name="registry_has_name"),
            models.CheckConstraint(
                condition=models.Q(sync_error="", failing_since=None)
                | (~models.Q(sync_error="") & models.Q(failing_since__isnull=False)),
                name="failing_since_its_error",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Context(models.Model):
    """A namespace of subjects and schema ids; `.` is the default, the names of others start with a dot."""

    registry = models.ForeignKey(Registry, on_delete=models.CASCADE, related_name="contexts")
    name = models.CharField(max_length=256)
    next_schema_id = models.PositiveIntegerField(default=1, help_text="ids are given once and never reused")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["registry", "name"], name="one_context"),
            models.CheckConstraint(condition=models.Q(name__startswith="."), name="context_begins_with_dot"),
            models.CheckConstraint(condition=models.Q(next_schema_id__gte=1), name="schema_ids_from_one"),
        ]

    def __str__(self) -> str:
        return f"{self.registry_id}/{self.name}"


class SubjectQuerySet(SubjectLinkedQuerySet["Subject"]):
    """Subjects."""


class Subject(models.Model):
    """A name with a sequence of versions. Its row is deleted with its last version."""

    # no index of its own: the unique index below starts with this column
    context = models.ForeignKey(Context, on_delete=models.CASCADE, related_name="subjects", db_index=False)
    name = models.CharField(max_length=1024, db_collation="C")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SubjectQuerySet.as_manager()

    class Meta:
        # includes the id, so that a list of names is an index-only scan
        constraints = [models.UniqueConstraint(fields=["context", "name"], include=["id"], name="one_subject")]

    def __str__(self) -> str:
        return self.name


class SubjectActivity(models.Model):
    """A subject with a live version: how many it has, when the last was added, and the newest one's format.

    Triggers write the rows in the transaction of a version's change; nothing else writes them. They refer to subjects
    and registries without a constraint, so that they never block a deletion.
    """

    subject = models.OneToOneField(
        Subject, on_delete=models.DO_NOTHING, primary_key=True, db_constraint=False, related_name="activity"
    )
    registry_id = models.BigIntegerField()
    live_versions = models.PositiveIntegerField()
    changed_at = models.DateTimeField()
    schema_type = models.CharField(max_length=16)

    class Meta:
        indexes = [
            # formats are counted with an index-only scan; a separate index would slow down every registration
            models.Index(
                fields=["registry_id", "-changed_at", "subject"], include=["schema_type"], name="subjects_by_change"
            )
        ]

    def __str__(self) -> str:
        return f"{self.subject_id}: {self.live_versions} live, {self.changed_at}"


class Association(models.Model):
    """A resource's use of a subject. STRONG: the resource owns the subject. WEAK: others may use it too.

    A STRONG association is frozen: it is deleted with its resource, and so is the subject.
    """

    registry = models.ForeignKey(Registry, on_delete=models.CASCADE, related_name="associations")
    subject = models.ForeignKey(Subject, on_delete=models.RESTRICT, related_name="associations")
    guid = models.UUIDField(unique=True)
    resource_namespace = models.CharField(max_length=256, db_collation="C")
    resource_name = models.CharField(max_length=256, db_collation="C")
    resource_id = models.CharField(max_length=1024, db_collation="C")
    resource_type = models.CharField(max_length=16, choices=[(kind, kind) for kind in RESOURCE_TYPES])
    association_type = models.CharField(max_length=8, choices=[(kind, kind) for kind in ASSOCIATION_TYPES])
    lifecycle = models.CharField(max_length=6, choices=[(kind, kind) for kind in LIFECYCLES])
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["registry", "resource_id", "resource_type", "association_type"],
                name="one_association_a_resource_id",
            ),
            models.UniqueConstraint(
                fields=[
                    "registry",
                    "resource_namespace",
                    "resource_name",
                    "resource_type",
                    "association_type",
                    "subject",
                ],
                name="one_association_a_name",
            ),
            models.UniqueConstraint(
                fields=["subject"], condition=models.Q(lifecycle=STRONG), name="one_owner_a_subject"
            ),
            models.CheckConstraint(condition=models.Q(lifecycle__in=LIFECYCLES), name="known_lifecycle"),
            models.CheckConstraint(
                condition=models.Q(association_type__in=ASSOCIATION_TYPES), name="known_association_type"
            ),
            models.CheckConstraint(condition=~models.Q(resource_id=""), name="association_has_resource_id"),
        ]

    def __str__(self) -> str:
        return f"{self.resource_name} {self.association_type} → {self.subject_id}"


MAX_NAME = 128
MAX_CONTACT = 200
MAX_FIELD = 512
MAX_FIELDS = 200


class Client(models.Model):
    """A program, and the version of the subject that it was built with; None: it loads the newest at each start.

    `fields` are the paths of the fields that it reads; empty if it declares no fields. `seen_at` is when it was last
    declared or reported, which a program may do at each start.
    """

    subject = models.ForeignKey(Subject, on_delete=models.CASCADE, related_name="clients")
    name = models.CharField(max_length=MAX_NAME)
    reads = models.BooleanField()
    writes = models.BooleanField()
    version = models.PositiveIntegerField(null=True, blank=True)
    fields = ArrayField(models.CharField(max_length=MAX_FIELD), default=list, blank=True)
    contact = models.CharField(max_length=MAX_CONTACT, blank=True, help_text="whom to talk to")
    declared_at = models.DateTimeField(auto_now_add=True)
    declared_by = models.TextField()
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["subject", "name"], name="one_client_of_a_name"),
            models.CheckConstraint(
                condition=models.Q(reads=True) | models.Q(writes=True), name="client_reads_or_writes"
            ),
            models.CheckConstraint(
                condition=models.Q(version=None) | models.Q(version__gte=1), name="client_version_counts_from_one"
            ),
            models.CheckConstraint(condition=models.Q(fields__len__lte=MAX_FIELDS), name="client_has_few_fields"),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.subject_id}"


MAX_TAGS = 32
MAX_TAG = 64
MAX_DOC = 20_000


class SubjectNote(models.Model):
    """The tags, the description and the contact channel of a subject; a subject without a row has none of them.

    Information on a version is in its schema: docs and tags in the text, and metadata. A tag has ASCII letters, digits
    and `_ . : -`; each tag occurs once, sorted by code point. `updated_at` changes with every change: a writer passes
    the state that they read.
    """

    subject = models.OneToOneField(Subject, on_delete=models.CASCADE, related_name="note")
    tags = ArrayField(models.CharField(max_length=MAX_TAG), default=list, blank=True)
    doc = models.TextField(blank=True)
    updated_at = models.DateTimeField(auto_now=True)
    updated_by = models.TextField()
    channel = models.CharField(max_length=MAX_CHANNEL, blank=True, default="", db_default="")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(tags__len__lte=32), name="note_has_few_tags"),
            models.CheckConstraint(condition=LessThanOrEqual(Length("doc"), 20_000), name="note_is_short"),
            models.CheckConstraint(condition=~models.Q(tags=[], doc="", channel=""), name="note_says_something"),
        ]

    def __str__(self) -> str:
        return f"{self.subject_id}: {', '.join(self.tags)}"
