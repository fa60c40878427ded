"""What is stored: registries, contexts, subjects, schemas, versions, references, configs, modes."""

from registry.subjects.models.activity import SubjectActivity
from registry.subjects.models.associations import Association
from registry.subjects.models.clients import Client
from registry.subjects.models.copies import KeptCopy
from registry.subjects.models.notes import SubjectNote
from registry.subjects.models.places import Context, Registry, Subject
from registry.subjects.models.policy import (
    FORWARD,
    LEVELS,
    MODES,
    MODES_WITH_IDS,
    POLICIES,
    PROFILES,
    Config,
    Mode,
)
from registry.subjects.models.schemas import Schema, SchemaReference, SchemaVersion
from registry.subjects.models.standing import VersionStanding

__all__ = [
    "FORWARD",
    "LEVELS",
    "MODES",
    "MODES_WITH_IDS",
    "POLICIES",
    "PROFILES",
    "Association",
    "Client",
    "Config",
    "Context",
    "KeptCopy",
    "Mode",
    "Registry",
    "Schema",
    "SchemaReference",
    "SchemaVersion",
    "Subject",
    "SubjectActivity",
    "SubjectNote",
    "VersionStanding",
]
