"""Configs and modes of a registry, a context or a subject. The subject need not exist yet."""

from __future__ import annotations

from django.db import models

from registry.subjects.models.registries import Context, Registry

LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
PROFILES = ("confluent", "semantic")
POLICIES = ("none", "oracle_nosql", "oracle_nosql_lenient")
MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
#: accepts what another registry writes, like IMPORT, but needn't be empty first; only for a whole registry
FORWARD = "FORWARD"
#: these modes accept only versions with their ids, unchecked
MODES_WITH_IDS = frozenset({"IMPORT", FORWARD})


class Scoped(models.Model):
    """A row for a registry (no context), a context (no subject) or a subject in a context."""

    registry = models.ForeignKey(Registry, on_delete=models.CASCADE, related_name="+")
    context = models.ForeignKey(Context, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    subject_name = models.CharField(max_length=1024, db_collation="C", null=True, blank=True)

    class Meta:
        abstract = True
        constraints = [
            models.UniqueConstraint(
                fields=["registry", "context", "subject_name"], nulls_distinct=False, name="one_%(class)s_a_scope"
            ),
            models.CheckConstraint(
                condition=models.Q(subject_name=None) | models.Q(context__isnull=False),
                name="%(class)s_of_a_subject_has_a_context",
            ),
        ]


class Config(Scoped):
    """Compatibility level and related settings; null means inherited."""

    compatibility_level = models.CharField(max_length=20, null=True, blank=True)
    normalize = models.BooleanField(null=True, blank=True)
    alias = models.TextField(null=True, blank=True, help_text="the subject that calls for this one mean")
    alias_for_deks = models.TextField(null=True, blank=True)
    validate_fields = models.BooleanField(null=True, blank=True, help_text="reserved fields stay reserved and unused")
    validate_new_schemas = models.BooleanField(null=True, blank=True)
    validate_rules = models.BooleanField(null=True, blank=True)
    compatibility_policy = models.CharField(max_length=16, null=True, blank=True)
    compatibility_group = models.TextField(null=True, blank=True)
    default_metadata = models.JSONField(null=True, blank=True)
    override_metadata = models.JSONField(null=True, blank=True)
    default_rule_set = models.JSONField(null=True, blank=True)
    override_rule_set = models.JSONField(null=True, blank=True)
    profile = models.CharField(max_length=16, null=True, blank=True, help_text="whose verdict counts")
    policy = models.CharField(max_length=32, null=True, blank=True, help_text="rules that hold beside the level")

    class Meta(Scoped.Meta):
        constraints = [
            *Scoped.Meta.constraints,
            models.CheckConstraint(
                condition=models.Q(compatibility_level=None) | models.Q(compatibility_level__in=LEVELS),
                name="known_level",
            ),
            models.CheckConstraint(
                condition=models.Q(profile=None) | models.Q(profile__in=PROFILES), name="known_profile"
            ),
            models.CheckConstraint(
                condition=models.Q(policy=None) | models.Q(policy__in=POLICIES), name="known_policy"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject_name or 'all'}: {self.compatibility_level}"


class Mode(Scoped):
    """Whether versions can be added."""

    mode = models.CharField(max_length=20)

    class Meta(Scoped.Meta):
        constraints = [
            *Scoped.Meta.constraints,
            models.CheckConstraint(condition=models.Q(mode__in=MODES), name="known_mode"),
            models.CheckConstraint(
                condition=~models.Q(mode=FORWARD) | models.Q(context__isnull=True), name="forward_is_of_a_registry"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject_name or 'all'}: {self.mode}"
