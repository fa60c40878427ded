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
from registry.subjects.selectors.listing import SubjectRow, list_contexts, list_registries, subject_rows
from registry.subjects.selectors.names import list_subjects
from registry.subjects.selectors.presence import (
    SubjectPresence,
    field_origins,
    outline_of,
    presence_of,
    summarize_versions,
)
from registry.subjects.selectors.rendering import find_tags, text_in_form
from registry.subjects.selectors.resolution import Hazards, find_hazards, resolve_datum, simulate
from registry.subjects.selectors.schemas import VersionOfId, all_versions, self_contained_schemas
from registry.subjects.selectors.search import AssociationFilter, FoundVersion, search_versions
from registry.subjects.selectors.side_by_side import ProvedComparison, Side, compare_sides, compare_text
from registry.subjects.selectors.trial import TrialVersions, load_for_trial, version_formats
from registry.subjects.selectors.versions import (
    VersionInfo,
    elsewhere,
    find_schema,
    find_version,
    get_schema,
    get_version,
    get_version_of_schema,
    last_schema_id,
    latest_with_metadata,
    list_versions,
    referenced_by,
    schemas_of_guid,
    version_infos,
    versions_of_schema,
)

__all__ = [
    "AssociationFilter",
    "Comparison",
    "FoundVersion",
    "Hazards",
    "ProvedComparison",
    "Side",
    "SubjectPresence",
    "SubjectRow",
    "SubjectState",
    "TrialVersions",
    "Verdict",
    "VersionInfo",
    "VersionOfId",
    "all_versions",
    "check_proposal",
    "compare_sides",
    "compare_text",
    "compare_versions",
    "effective_config",
    "effective_mode",
    "elsewhere",
    "faithful_text",
    "field_origins",
    "find_hazards",
    "find_schema",
    "find_tags",
    "find_version",
    "get_schema",
    "get_version",
    "get_version_of_schema",
    "last_schema_id",
    "latest_with_metadata",
    "list_contexts",
    "list_registries",
    "list_subjects",
    "list_versions",
    "load_for_trial",
    "outline_of",
    "own_config",
    "own_mode",
    "presence_of",
    "referenced_by",
    "report_proposal",
    "resolve_datum",
    "schemas_of_guid",
    "search_versions",
    "self_contained_schemas",
    "simulate",
    "state_of_subject",
    "stored_version",
    "subject_rows",
    "summarize_versions",
    "text_in_form",
    "version_formats",
    "version_infos",
    "versions_of_schema",
]
