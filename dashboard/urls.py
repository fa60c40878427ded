"""Every address of the one port: pages, the product's API, health, Spring's API below its path, Confluent's at the root."""

from __future__ import annotations

from django.conf import settings
from django.urls import include, path, register_converter

from dashboard.spring_path import spring_addresses
from dashboard.views import health
from registry.api.raw_path import SegmentConverter

register_converter(SegmentConverter, "segment")

handler400 = "dashboard.views.errors.bad_request"
handler403 = "dashboard.views.errors.permission_denied"
handler404 = "dashboard.views.errors.not_found"
handler500 = "dashboard.views.errors.server_error"

urlpatterns = [
    path("healthz", health.alive),
    path("readyz", health.ready),
    path("metrics", health.metrics),
    path("ui/accounts/", include("dashboard.account_urls")),
    path("ui/", include("dashboard.page_urls")),
    path("api/v1/", include("registry.api.product.urls")),
    path("v1/projects/", include("registry.api.google.urls")),
    *spring_addresses(settings.SPRING_PATH),
    path("", health.site_or_api),
    path("", include("registry.api.confluent.urls")),
]
