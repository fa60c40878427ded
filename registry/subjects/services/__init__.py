"""Changing what is registered: one call each, for every door."""

from registry.subjects.services.associations import associate, dissociate
from registry.subjects.services.contexts import delete_context
from registry.subjects.services.deletion import delete_subject, delete_version
from registry.subjects.services.notes import change_tags, set_note
from registry.subjects.services.policy import delete_config, delete_mode, set_config, set_mode
from registry.subjects.services.registration import RegisteredVersion, register_version
from registry.subjects.services.registries import ensure_registry
from registry.subjects.services.removal import remove_subject, remove_version
from registry.subjects.services.standing import clear_standing, set_standing

__all__ = [
    "RegisteredVersion",
    "associate",
    "change_tags",
    "clear_standing",
    "delete_config",
    "delete_context",
    "delete_mode",
    "delete_subject",
    "delete_version",
    "dissociate",
    "ensure_registry",
    "register_version",
    "remove_subject",
    "remove_version",
    "set_config",
    "set_mode",
    "set_note",
    "set_standing",
]
