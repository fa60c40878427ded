"""Reading a registry's contents. Everything here returns frozen values, never models."""

from registry.subjects.comparison.comparison import (
    Comparison,
    TextProblems,
    check_proposal,
    check_text,
    compare_versions,
    find_problems,
    report_proposal,
    stored_version,
)
from registry.subjects.comparison.parsed_versions import (
    Reading,
    earlier_peers,
    origins_of,
    parsed_of,
    read_whole,
    version_numbers,
)
from registry.subjects.comparison.simulation import (
    TrialVersions,
    find_hazards,
    load_for_trial,
    resolve_datum,
    simulate,
    version_formats,
)
from registry.subjects.comparison.version_pairs import ProvedComparison, Side, Text, compare_sides, compare_text
from registry.subjects.history.version_presence import (
    SubjectPresence,
    VersionSummary,
    outline_of,
    presence_of,
    summarize_versions,
)
from registry.subjects.listing.listing import (
    SubjectRow,
    SubjectRows,
    has_subjects,
    list_contexts,
    list_registries,
    newest_two_versions,
    registry_names,
    subject_rows,
)
from registry.subjects.permissions import list_subjects
from registry.subjects.policy.effective_policy import effective_config, effective_mode, own_config, own_mode
from registry.subjects.versions.one_version import get_schema, get_version, get_version_of_schema
from registry.subjects.versions.parsed_schemas import find_tags, self_contained_schemas, text_in_form
from registry.subjects.versions.version_search import AssociationFilter, search_versions
from registry.subjects.versions.versions import (
    VersionInfo,
    find_version,
    last_schema_id,
    latest_with_metadata,
    list_versions,
    referenced_by,
    version_infos,
)
