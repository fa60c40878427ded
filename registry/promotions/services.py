"""Requesting, reviewing and applying: the calls of pages, dialects and tasks."""

from registry.promotions.apply.execution import apply, give_up, resume, schedule, unschedule
from registry.promotions.environments.change_requests import (
    approve_environment_change,
    reject_environment_change,
    request_environment_change,
    withdraw_environment_change,
)
from registry.promotions.environments.freezes import (
    add_freeze,
    add_recurring_freeze,
    remove_freeze,
    remove_recurring_freeze,
)
from registry.promotions.environments.services import (
    add_review_rule,
    change_environment,
    close_break_glass,
    confirm_break_glass,
    ensure_environment,
    open_break_glass,
    remove_review_rule,
)
from registry.promotions.requests.acknowledgements import acknowledge, withdraw_acknowledgement
from registry.promotions.requests.discussions import (
    open_thread,
    reopen,
    reply,
    resolve,
    set_labels,
    take_suggestion,
)
from registry.promotions.requests.drafts import delete_draft, save_draft
from registry.promotions.requests.resubmit import (
    ask_again,
    preview_promotion,
    preview_proposal,
    request_adoption,
    request_roll_back,
)
from registry.promotions.requests.submission import propose_version, recheck, request_promotion, submit, withdraw
from registry.promotions.reviews.decisions import approve, approve_together, reject, request_changes
