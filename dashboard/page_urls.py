"""Addresses of the pages."""

from __future__ import annotations

from django.urls import path

from dashboard.views import drift, home, promotions, subjects

app_name = "ui"
urlpatterns = [
    path("", home.home, name="home"),
    path("demo", home.demo_load, name="demo_load"),
    path("theme", home.theme, name="theme"),
    path("environments", home.environments, name="environments"),
    path("audit", home.audit, name="audit"),
    path("registries/<segment:registry>/subjects", subjects.subject_list, name="subjects"),
    path("registries/<segment:registry>/subjects/<segment:subject>/", subjects.subject_page, name="subject"),
    path("registries/<segment:registry>/subjects/<segment:subject>/compare", subjects.compare, name="compare"),
    path(
        "registries/<segment:registry>/subjects/<segment:subject>/report", subjects.compatibility_report, name="report"
    ),
    path("registries/<segment:registry>/subjects/<segment:subject>/simulate", subjects.simulate, name="simulate"),
    path("sources", drift.source_list, name="sources"),
    path("sources/add", drift.source_add, name="source_add"),
    path("sources/<int:source_id>", drift.source_page, name="source"),
    path("sources/<int:source_id>/scan", drift.source_scan, name="source_scan"),
    path("scans/<int:scan_id>/progress", drift.scan_progress, name="scan_progress"),
    path("findings", drift.finding_list, name="findings"),
    path("findings/<int:finding_id>", drift.finding_page, name="finding"),
    path("findings/<int:finding_id>/acknowledge", drift.finding_acknowledge, name="finding_acknowledge"),
    path("promotions", promotions.request_list, name="promotions"),
    path("promotions/request", promotions.promotion_request, name="promotion_request"),
    path("promotions/<int:request_id>", promotions.promotion, name="promotion"),
    path("promotions/<int:request_id>/approve", promotions.approve, name="promotion_approve"),
    path("promotions/<int:request_id>/reject", promotions.reject, name="promotion_reject"),
    path("promotions/<int:request_id>/withdraw", promotions.withdraw, name="promotion_withdraw"),
    path("promotions/<int:request_id>/apply", promotions.apply, name="promotion_apply"),
]
