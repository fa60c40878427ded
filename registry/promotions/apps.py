"""Environments and the way between them."""

from __future__ import annotations

from django.apps import AppConfig


class PromotionsConfig(AppConfig):
    """Environments and the way between them."""

    name = "registry.promotions"
    label = "promotions"

    def ready(self) -> None:
        """Keeps the gate of the registries that are closed environments, and tells which versions came past requests."""
        from registry.promotions.gatekeeping import KEEPER, keep_closed
        from registry.promotions.selectors.ghosts import unrequested
        from registry.subjects.arrivals import tell_unrequested
        from registry.subjects.gate import keep

        keep(KEEPER, keep_closed)
        tell_unrequested(KEEPER, unrequested)
