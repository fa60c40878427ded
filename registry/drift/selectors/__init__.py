"""Clusters, sources, scans, topics and findings, for pages and programs."""

from registry.drift.selectors.deployments import (
    DeploymentInfo,
    Gate,
    check_rollout_gate,
    deployments_about,
    list_deployments,
)
from registry.drift.selectors.finding_offsets import MEDIA, FindingOffsets, finding_offsets, offsets_file, offsets_of
from registry.drift.selectors.findings import (
    FindingGroup,
    FindingInfo,
    MuteInfo,
    OpenCounts,
    count_findings,
    decidable_group,
    findings_by_day,
    get_finding,
    list_finding_groups,
    list_findings,
    list_mutes,
    open_counts,
    open_findings_by_subject,
    open_findings_of,
)
from registry.drift.selectors.sources import (
    LATELY,
    ClusterInfo,
    ScanInfo,
    SourceInfo,
    TopicCoverage,
    TopicInfo,
    checkpoint_sources,
    cluster_at,
    find_source,
    get_cluster,
    get_scan,
    get_source,
    list_clusters,
    list_scans,
    list_sources,
    list_topics,
    topic_coverage,
)
