"""People and groups, their roles, their ownerships, and API tokens."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser, Group
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.crypto import salted_hmac

from registry.access.contact_channels import MAX_CHANNEL
from registry.access.roles import ALL, ROLES, SCOPES

_ROLES = [(role, role) for role in ROLES]


class User(AbstractUser):
    """An account of a person or a program; raising `session_epoch` ends all its sessions."""

    session_epoch = models.PositiveIntegerField(default=0, db_default=0)

    class Meta(AbstractUser.Meta):
        abstract = False
        constraints = [models.UniqueConstraint(Lower("username"), name="one_username_ignoring_case")]

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """Return the hash that a session must match: Django's in epoch 0, then one that includes the epoch."""
        if not self.session_epoch:
            plain: str = super()._get_session_auth_hash(secret)  # type: ignore[misc]  # not in the stubs
            return plain
        value = f"{self.session_epoch}:{self.password}"
        return salted_hmac("registry.access.User.session", value, secret=secret, algorithm="sha256").hexdigest()


class RoleGrant(models.Model):
    """A role of a user in one registry (empty: in all), for the subjects that match a pattern."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="role_grants")
    role = models.CharField(max_length=16, choices=_ROLES)
    registry = models.CharField(max_length=255, blank=True)
    subject_pattern = models.CharField(max_length=255, default="*")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "role", "registry", "subject_pattern"], name="one_grant"),
            models.CheckConstraint(condition=models.Q(role__in=ROLES), name="known_role"),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.role}"


class GroupGrant(models.Model):
    """A role of all members of a group in one registry (empty: in all), for the subjects that match a pattern."""

    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="role_grants")
    role = models.CharField(max_length=16, choices=_ROLES)
    registry = models.CharField(max_length=255, blank=True)
    subject_pattern = models.CharField(max_length=255, default="*")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["group", "role", "registry", "subject_pattern"], name="one_group_grant"),
            models.CheckConstraint(condition=models.Q(role__in=ROLES), name="known_group_role"),
        ]

    def __str__(self) -> str:
        return f"{self.group}: {self.role}"


class Ownership(models.Model):
    """A person or a group as owner of the subjects that match a pattern. It gives no rights by itself."""

    registry = models.CharField(max_length=255, blank=True)
    subject_pattern = models.CharField(max_length=255)
    user = models.ForeignKey(User, null=True, blank=True, on_delete=models.CASCADE, related_name="ownerships")
    group = models.ForeignKey(Group, null=True, blank=True, on_delete=models.CASCADE, related_name="ownerships")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["registry", "subject_pattern", "user", "group"], nulls_distinct=False, name="one_ownership"
            ),
            models.CheckConstraint(
                condition=models.Q(user=None, group__isnull=False) | models.Q(user__isnull=False, group=None),
                name="one_owner",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject_pattern}: {self.user or self.group}"


class GroupChannel(models.Model):
    """Where the members of a group talk. It is the channel of the subjects that the group owns and that have none.

    The migration makes the constraint to groups, which deletes the row with its group.
    """

    group = models.OneToOneField(Group, on_delete=models.CASCADE, db_constraint=False, related_name="channel")
    channel = models.CharField(max_length=MAX_CHANNEL)

    class Meta:
        constraints = [models.CheckConstraint(condition=~models.Q(channel=""), name="group_has_a_channel")]

    def __str__(self) -> str:
        return f"{self.group_id}: {self.channel}"


class ApiToken(models.Model):
    """A token of 256 random bits; only its SHA-256 is stored, so a copy of the database gives no access."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    scope = models.CharField(max_length=16, choices=[(scope, scope) for scope in SCOPES], default=ALL)
    registry = models.CharField(max_length=255, blank=True)
    subject_pattern = models.CharField(max_length=255, default="*")
    signed_in_by = models.CharField(max_length=16, blank=True)  # how its maker was signed in
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    last_used_from = models.CharField(max_length=64, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(digest__regex="^[0-9a-f]{64}$"), name="sha256_digest"),
            models.CheckConstraint(condition=models.Q(expires_at__gt=models.F("created_at")), name="token_expires"),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.name}"
