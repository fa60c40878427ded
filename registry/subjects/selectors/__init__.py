"""Reading what is registered. Everything here gives frozen values, never models."""

from registry.subjects.selectors.comparison import (
    Comparison,
    SubjectState,
    Verdict,
    check_proposal,
    compare_versions,
    faithful_text,
    report_proposal,
    state_of_subject,
    stored_version,
)
from registry.subjects.selectors.effective import effective_config, effective_mode, own_config, own_mode
from registry.subjects.selectors.listing import SubjectRow, list_contexts, list_registries, list_subjects, subject_rows
from registry.subjects.selectors.presence import (
    SubjectPresence,
    field_origins,
    outline_of,
    presence_of,
    summarize_versions,
)
from registry.subjects.selectors.schemas import VersionOfId, all_versions, self_contained_schemas
from registry.subjects.selectors.versions import (
    VersionInfo,
    find_schema,
    find_version,
    get_schema,
    get_version,
    list_versions,
    referenced_by,
    version_infos,
    versions_of_schema,
)

__all__ = [
    "Comparison",
    "SubjectPresence",
    "SubjectRow",
    "SubjectState",
    "Verdict",
    "VersionInfo",
    "VersionOfId",
    "all_versions",
    "check_proposal",
    "compare_versions",
    "effective_config",
    "effective_mode",
    "faithful_text",
    "field_origins",
    "find_schema",
    "find_version",
    "get_schema",
    "get_version",
    "list_contexts",
    "list_registries",
    "list_subjects",
    "list_versions",
    "outline_of",
    "own_config",
    "own_mode",
    "presence_of",
    "referenced_by",
    "report_proposal",
    "self_contained_schemas",
    "state_of_subject",
    "stored_version",
    "subject_rows",
    "summarize_versions",
    "version_infos",
    "versions_of_schema",
]
