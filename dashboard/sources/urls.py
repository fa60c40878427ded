"""URLs of clusters, sources and scans."""

from __future__ import annotations

from django.urls import path

from dashboard.sources import views

urlpatterns = [
    path("clusters/add", views.ClusterFormView.as_view(), name="cluster_add"),
    path("clusters/<int:cluster_id>/edit", views.ClusterFormView.as_view(), name="cluster_edit"),
    path("clusters/<int:cluster_id>/remove", views.ClusterRemoveView.as_view(), name="cluster_remove"),
    path("sources", views.source_list, name="sources"),
    path("sources/add", views.SourceAddView.as_view(), name="source_add"),
    path("sources/discover", views.DiscoverView.as_view(), name="source_discover"),
    path("sources/<int:source_id>", views.source_page, name="source"),
    path("sources/<int:source_id>/edit", views.SourceEditView.as_view(), name="source_edit"),
    path("sources/<int:source_id>/remove", views.SourceRemoveView.as_view(), name="source_remove"),
    path("sources/<int:source_id>/scan", views.source_scan, name="source_scan"),
    path("scans/<int:scan_id>/progress", views.scan_progress, name="scan_progress"),
    path("scans/<int:scan_id>/cancel", views.scan_cancel, name="scan_cancel"),
]
