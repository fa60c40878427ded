"""Changing a registry's contents: the calls that all APIs and pages use."""

from registry.subjects.associations.services import associate
from registry.subjects.lifecycle.deletion import delete_subject, delete_version, remove_subject, remove_version
from registry.subjects.lifecycle.notes import change_tags, set_note
from registry.subjects.lifecycle.retirement import clear_version_status, set_version_status
from registry.subjects.policy.policy_settings import delete_config, delete_mode, set_config, set_mode
from registry.subjects.policy.registries import delete_context, ensure_registry
from registry.subjects.registration.registration import RegisteredVersion, register_version
