"""Models of promotions: environments with their rules, requests with their parts, releases."""

from registry.promotions.models.board import BoardChange, BoardState, BoardSubject, PromotionOutlook
from registry.promotions.models.decisions import Acknowledgement, RenameDecision, SamePerson
from registry.promotions.models.environments import (
    BreakGlass,
    Environment,
    EnvironmentChange,
    FreezeWindow,
    RecurringFreeze,
    ReviewRule,
)
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
