"""Clusters, sources, scans, and decisions on findings."""

from registry.drift.services.findings import acknowledge, assign, expire_decisions, hidden_by, mute, reopen, unmute
from registry.drift.services.scans import (
    MAX_ATTEMPTS,
    RETRIES,
    ScanClaim,
    cancel_scan,
    claim_scan,
    fail_scan,
    has_backlog,
    lost_tags,
    note_progress,
    postpone_scan,
    prune_deployments,
    queue_due_scans,
    queue_rest,
    queue_scan,
    reclaim_lost_scans,
    renew_lease,
    report_deployment,
    shrink_first_slice,
)
from registry.drift.services.sources import (
    add_source,
    cluster_at,
    connect_cluster,
    remove_cluster,
    remove_source,
    try_cluster,
    update_cluster,
    update_source,
)
