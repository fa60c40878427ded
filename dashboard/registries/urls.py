"""URLs of registries: their connections, archives and policy."""

from __future__ import annotations

from django.urls import path

from dashboard.registries import views

urlpatterns = [
    path("registries", views.registry_list, name="registries"),
    path("registries/connect", views.ConnectionView.as_view(), name="registry_connect"),
    path("registries/<segment:registry>/connection", views.ConnectionView.as_view(), name="registry_connection"),
    path("registries/<segment:registry>/test", views.ConnectionTestView.as_view(), name="registry_test"),
    path("registries/<segment:registry>/refresh", views.refresh, name="registry_refresh"),
    path("registries/<segment:registry>/disconnect", views.DisconnectView.as_view(), name="registry_disconnect"),
    path("registries/<segment:registry>/moving", views.moving, name="moving"),
    path("registries/<segment:registry>/moving/export", views.export, name="registry_export"),
    path("registries/<segment:registry>/moving/import", views.send, name="registry_import"),
    path("registries/<segment:registry>/deleted", views.deleted, name="deleted"),
    path("registries/<segment:registry>/copies/<int:copy_id>", views.copy, name="copy"),
    path("registries/<segment:registry>/copies/<int:copy_id>/file", views.copy_file, name="copy_file"),
    path("registries/<segment:registry>/copies/<int:copy_id>/bring", views.copy_bring, name="copy_bring"),
    path("registries/<segment:registry>/copies/<int:copy_id>/forget", views.copy_forget, name="copy_forget"),
    path("registries/<segment:registry>/policy", views.policy, name="policy"),
    path(
        "registries/<segment:registry>/policy/change", views.PolicyFormView.as_view(page="change"), name="policy_change"
    ),
    path("registries/<segment:registry>/policy/reset", views.PolicyFormView.as_view(page="reset"), name="policy_reset"),
    path("registries/<segment:registry>/what-if", views.what_if, name="what_if"),
]
