"""The models: registries, contexts, subjects, schemas, versions, references, configs, modes."""

from registry.subjects.models.glossary import BusinessTerm, FieldTerm
from registry.subjects.models.policy import FORWARD, LEVELS, MODES, MODES_WITH_IDS, POLICIES, PROFILES, Config, Mode
from registry.subjects.models.registries import (
    Association,
    Client,
    Context,
    Registry,
    Subject,
    SubjectActivity,
    SubjectNote,
)
from registry.subjects.models.versions import ArchivedCopy, Schema, SchemaReference, SchemaVersion, VersionStatus
