"""Environments and the promotions between them."""

from __future__ import annotations

from django.apps import AppConfig


class PromotionsConfig(AppConfig):
    """Environments and the promotions between them."""

    name = "registry.promotions"
    label = "promotions"

    def ready(self) -> None:
        """Register the guards of closed environments and their reviewers, and the condition of unapproved versions."""
        from registry import hooks
        from registry.promotions.environments.change_guard import CLOSED, guard_closed_environment, keep_clients
        from registry.promotions.requests.timeline import unrequested
        from registry.promotions.reviews.linked_accounts import link_added_account
        from registry.promotions.reviews.reviewers import keep_reviewers
        from registry.subjects.policy.change_guard import ChangeGuard

        hooks.change_guards.register("closed environments", ChangeGuard(CLOSED, guard_closed_environment))
        hooks.client_guards.register("closed environments", keep_clients)
        hooks.added_accounts.register("linked accounts", link_added_account)
        hooks.rights_guards.register("reviewers of closed environments", keep_reviewers)
        hooks.unrequested_versions.register("closed environments", unrequested)
