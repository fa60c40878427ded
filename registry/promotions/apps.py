"""Environments and the way between them."""

from __future__ import annotations

from django.apps import AppConfig


class PromotionsConfig(AppConfig):
    """Environments and the way between them."""

    name = "registry.promotions"
    label = "promotions"

    def ready(self) -> None:
        """Keeps the gate of the registries that are closed environments, and tells which versions came past requests."""
        from registry.access import hooks
        from registry.promotions.environments.change_guard import KEEPER, keep_closed
        from registry.promotions.requests.timeline import unrequested
        from registry.promotions.reviews import reviewers
        from registry.subjects.policy.change_guard import keep, tell_unrequested

        keep(KEEPER, keep_closed)
        hooks.keep(reviewers.KEEPER, reviewers.keep_reviewers)
        tell_unrequested(KEEPER, unrequested)
