"""All URLs: pages, the product's API, health, Spring's API below its path, Confluent's at the root."""

from __future__ import annotations

from django.conf import settings
from django.urls import include, path

from dashboard import health
from dashboard.metrics import metrics
from registry.api.spring.views import spring_addresses

handler400 = "dashboard.errors.views.bad_request"
handler403 = "dashboard.errors.views.permission_denied"
handler404 = "dashboard.errors.views.not_found"
handler500 = "dashboard.errors.views.server_error"

urlpatterns = [
    path("healthz", health.alive),
    path("readyz", health.ready),
    path("metrics", metrics),
    path("ui/accounts/", include("dashboard.people.views")),
    path("ui/", include("dashboard.page_urls")),
    path("api/v1/", include("registry.api.product.urls")),
    path("v1/projects/", include("registry.api.google.urls")),
    *spring_addresses(settings.SPRING_PATH),
    path("", health.site_or_api),
    path("", include("registry.api.confluent.urls")),
]
