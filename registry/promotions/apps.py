"""Environments and the way between them."""

from __future__ import annotations

from django.apps import AppConfig


class PromotionsConfig(AppConfig):
    """Environments and the way between them."""

    name = "registry.promotions"
    label = "promotions"

    def ready(self) -> None:
        """Keeps the gate of the registries that are closed environments, and tells which versions came past requests."""
        from registry.access import guard
        from registry.promotions import reviewer_guard
        from registry.promotions.gatekeeping import KEEPER, keep_closed
        from registry.promotions.selectors.ghosts import unrequested
        from registry.subjects.arrivals import tell_unrequested
        from registry.subjects.gate import keep

        keep(KEEPER, keep_closed)
        guard.keep(reviewer_guard.KEEPER, reviewer_guard.keep_reviewers)
        tell_unrequested(KEEPER, unrequested)
