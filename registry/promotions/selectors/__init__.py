"""Requests, drafts and environments, for pages and programs."""

from registry.promotions.selectors.answers import Answers, answers_to, resolving
from registry.promotions.selectors.drafts import DraftInfo, get_draft, list_drafts
from registry.promotions.selectors.environments import (
    BreakGlassInfo,
    EnvironmentInfo,
    FreezeInfo,
    RecurringFreezeInfo,
    ReviewRuleInfo,
    break_glass_history,
    environment_info,
    environment_infos,
    environment_rows,
    open_break_glass_of,
)
from registry.promotions.selectors.ghosts import GhostInfo, ghosts_of
from registry.promotions.selectors.life import ReleaseOfVersion, RequestOfVersion, VersionLife, life_of
from registry.promotions.selectors.linked import LinkedRequest, linked_requests
from registry.promotions.selectors.request_infos import (
    AcknowledgementInfo,
    CommentInfo,
    ItemInfo,
    ReleaseInfo,
    RequestInfo,
    ReviewInfo,
    StepInfo,
    ThreadInfo,
)
from registry.promotions.selectors.requests import (
    get_environment,
    get_request,
    list_environments,
    list_requests,
    open_requests_of,
    releases_of,
    requested_by,
    requests_numbered,
    waiting_for,
)
from registry.promotions.selectors.waiting import count_waiting_for

__all__ = [
    "AcknowledgementInfo",
    "Answers",
    "BreakGlassInfo",
    "CommentInfo",
    "DraftInfo",
    "EnvironmentInfo",
    "FreezeInfo",
    "GhostInfo",
    "ItemInfo",
    "LinkedRequest",
    "RecurringFreezeInfo",
    "ReleaseInfo",
    "ReleaseOfVersion",
    "RequestInfo",
    "RequestOfVersion",
    "ReviewInfo",
    "ReviewRuleInfo",
    "StepInfo",
    "ThreadInfo",
    "VersionLife",
    "answers_to",
    "break_glass_history",
    "count_waiting_for",
    "environment_info",
    "environment_infos",
    "environment_rows",
    "get_draft",
    "get_environment",
    "get_request",
    "ghosts_of",
    "life_of",
    "linked_requests",
    "list_drafts",
    "list_environments",
    "list_requests",
    "open_break_glass_of",
    "open_requests_of",
    "releases_of",
    "requested_by",
    "requests_numbered",
    "resolving",
    "waiting_for",
]
