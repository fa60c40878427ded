"""People, their roles, and the tokens of programs."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.db import models

from registry.access.roles import ROLES


class User(AbstractUser):
    """A person or a program with an account."""


class RoleGrant(models.Model):
    """A role that a user has in one registry (empty: in all), for the subjects that a pattern names."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="role_grants")
    role = models.CharField(max_length=16, choices=[(role, role) for role in ROLES])
    registry = models.CharField(max_length=255, blank=True)
    subject_pattern = models.CharField(max_length=255, default="*")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "role", "registry", "subject_pattern"], name="one_grant"),
            models.CheckConstraint(condition=models.Q(role__in=ROLES), name="known_role"),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.role}"


class ApiToken(models.Model):
    """A token of 256 random bits; only its SHA-256 is kept, so a copy of the database opens nothing."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(digest__regex="^[0-9a-f]{64}$"), name="sha256_digest")]

    def __str__(self) -> str:
        return f"{self.user}: {self.name}"
