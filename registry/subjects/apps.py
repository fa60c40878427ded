"""Registries, contexts, subjects, versions."""

from __future__ import annotations

from django.apps import AppConfig


class SubjectsConfig(AppConfig):
    """Registries, contexts, subjects, versions."""

    name = "registry.subjects"
    label = "subjects"
