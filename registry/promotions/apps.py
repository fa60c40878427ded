"""Environments and the way between them."""

from __future__ import annotations

from django.apps import AppConfig


class PromotionsConfig(AppConfig):
    """Environments and the way between them."""

    name = "registry.promotions"
    label = "promotions"
