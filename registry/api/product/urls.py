"""Addresses of the product's own API, and its description."""

from __future__ import annotations

from django.urls import path, re_path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from registry.api.product import compatibility, resolution, views

urlpatterns = [
    path("schema", SpectacularAPIView.as_view(authentication_classes=[]), name="openapi"),
    path("docs/", SpectacularSwaggerView.as_view(url_name="openapi", authentication_classes=[]), name="docs"),
    path("compatibility-reports", compatibility.CompatibilityReports.as_view()),
    path("resolutions", resolution.Resolutions.as_view()),
    path("simulations", resolution.Simulations.as_view()),
    path("hazards", resolution.Hazards.as_view()),
    path("config", compatibility.Configs.as_view()),
    path("sources", views.Sources.as_view()),
    path("sources/<int:source_id>/scans", views.Scans.as_view()),
    path("findings", views.Findings.as_view()),
    path("promotions", views.Promotions.as_view()),
    re_path(
        r"^promotions/(?P<request_id>[0-9]+)/(?P<decision>approve|reject|withdraw|apply)$", views.Decision.as_view()
    ),
]
