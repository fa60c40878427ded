"""Where schemas live: a registry has contexts, a context has subjects."""

from __future__ import annotations

from django.db import models


class Registry(models.Model):
    """A registry of ours, or the mirror of a remote one. Unique by project, location and name."""

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
    """A namespace of subjects and of schema ids; `.` is the default one, the others are `.name`."""

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


class Subject(models.Model):
    """A name under which versions follow each other. Its row goes when its last version is deleted permanently."""

    # the unique index below begins with it, so it has none of its own
    context = models.ForeignKey(Context, on_delete=models.CASCADE, related_name="subjects", db_index=False)
    name = models.CharField(max_length=1024, db_collation="C")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        # the number beside the name: a list of names then reads nothing but the index
        constraints = [models.UniqueConstraint(fields=["context", "name"], include=["id"], name="one_subject")]

    def __str__(self) -> str:
        return self.name
