"""Requesting, reviewing and applying; what pages, dialects and tasks call."""

from registry.promotions.services.acknowledging import acknowledge, take_back
from registry.promotions.services.adopting import request_adoption
from registry.promotions.services.applying import apply, give_up, resume
from registry.promotions.services.approving_together import approve_together
from registry.promotions.services.asking_again import ask_again
from registry.promotions.services.break_glass import close_break_glass, confirm_break_glass, open_break_glass
from registry.promotions.services.discussing import answer, open_thread, reopen, resolve
from registry.promotions.services.drafts import delete_draft, save_draft
from registry.promotions.services.environment_changes import (
    approve_environment_change,
    reject_environment_change,
    request_environment_change,
    withdraw_environment_change,
)
from registry.promotions.services.environments import (
    add_review_rule,
    change_environment,
    ensure_environment,
    remove_review_rule,
)
from registry.promotions.services.freezing import (
    add_freeze,
    add_recurring_freeze,
    remove_freeze,
    remove_recurring_freeze,
)
from registry.promotions.services.labelling import set_labels
from registry.promotions.services.previewing import preview_promotion, preview_proposal
from registry.promotions.services.requesting import propose_version, recheck, request_promotion, submit, withdraw
from registry.promotions.services.reviewing import approve, reject, request_changes
from registry.promotions.services.rolling_back import request_roll_back
from registry.promotions.services.scheduling import claim_due, schedule, unschedule

__all__ = [
    "acknowledge",
    "add_freeze",
    "add_recurring_freeze",
    "add_review_rule",
    "answer",
    "apply",
    "approve",
    "approve_environment_change",
    "approve_together",
    "ask_again",
    "change_environment",
    "claim_due",
    "close_break_glass",
    "confirm_break_glass",
    "delete_draft",
    "ensure_environment",
    "give_up",
    "open_break_glass",
    "open_thread",
    "preview_promotion",
    "preview_proposal",
    "propose_version",
    "recheck",
    "reject",
    "reject_environment_change",
    "remove_freeze",
    "remove_recurring_freeze",
    "remove_review_rule",
    "reopen",
    "request_adoption",
    "request_changes",
    "request_environment_change",
    "request_promotion",
    "request_roll_back",
    "resolve",
    "resume",
    "save_draft",
    "schedule",
    "set_labels",
    "submit",
    "take_back",
    "unschedule",
    "withdraw",
    "withdraw_environment_change",
]
