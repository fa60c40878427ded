"""What is stored of promotions: environments with their rules, requests with their parts, releases."""

from registry.promotions.models.environments import BreakGlass, Environment, FreezeWindow, ReviewRule
from registry.promotions.models.outlooks import PromotionOutlook
from registry.promotions.models.requests import (
    ApplyStep,
    Comment,
    Draft,
    PromotionRequest,
    Release,
    RequestItem,
    Review,
    Thread,
)

__all__ = [
    "ApplyStep",
    "BreakGlass",
    "Comment",
    "Draft",
    "Environment",
    "FreezeWindow",
    "PromotionOutlook",
    "PromotionRequest",
    "Release",
    "RequestItem",
    "Review",
    "ReviewRule",
    "Thread",
]
