"""Clusters, sources, scans, and what becomes of findings."""

from registry.drift.services.clusters import cluster_at, connect_cluster, remove_cluster, try_cluster, update_cluster
from registry.drift.services.deployments import prune_deployments, tell_deployment
from registry.drift.services.findings import acknowledge, assign, end_what_is_over, mute, reopen, unmute
from registry.drift.services.scans import (
    LEASE,
    MAX_ATTEMPTS,
    RETRIES,
    Claim,
    begin_smaller,
    cancel_scan,
    claim_scan,
    fail_scan,
    lost_tags,
    note_progress,
    postpone_scan,
    queue_due_scans,
    queue_scan,
    reclaim_lost_scans,
    renew_lease,
)
from registry.drift.services.sources import SHORTEST_INTERVAL, add_source, remove_source, update_source

__all__ = [
    "LEASE",
    "MAX_ATTEMPTS",
    "RETRIES",
    "SHORTEST_INTERVAL",
    "Claim",
    "acknowledge",
    "add_source",
    "assign",
    "begin_smaller",
    "cancel_scan",
    "claim_scan",
    "cluster_at",
    "connect_cluster",
    "end_what_is_over",
    "fail_scan",
    "lost_tags",
    "mute",
    "note_progress",
    "postpone_scan",
    "prune_deployments",
    "queue_due_scans",
    "queue_scan",
    "reclaim_lost_scans",
    "remove_cluster",
    "remove_source",
    "renew_lease",
    "reopen",
    "tell_deployment",
    "try_cluster",
    "unmute",
    "update_cluster",
    "update_source",
]
