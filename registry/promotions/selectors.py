"""Requests, drafts and environments, for pages and programs."""

from registry.promotions.environments.selectors import (
    BreakGlassInfo,
    EnvironmentInfo,
    break_glass_history,
    environment_info,
    environment_infos,
    environment_rows,
    open_break_glass_of,
)
from registry.promotions.requests.drafts import DraftInfo, get_draft, list_drafts
from registry.promotions.requests.infos import (
    AcknowledgementInfo,
    ReleaseInfo,
    RequestInfo,
    ReviewInfo,
    StepInfo,
    ThreadInfo,
)
from registry.promotions.requests.linked_requests import (
    FindingRequests,
    LinkedRequest,
    linked_requests,
    requests_for_finding,
    resolving,
)
from registry.promotions.requests.selectors import (
    count_waiting_for,
    get_environment,
    get_environments,
    get_request,
    home_requests,
    list_environments,
    list_requests,
    open_requests_of,
    releases_of,
    requests_numbered,
)
from registry.promotions.requests.timeline import VersionTimeline, timelines_of, unapproved_versions_of
