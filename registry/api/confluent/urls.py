"""Confluent's addresses, below the root, below a registry, and each below a context.

The root addresses register the converter `segment`: one path segment, decoded after the split.
"""

from __future__ import annotations

from django.urls import include, path

from registry.api.confluent import policy_views, views

calls = [
    path("schemas/types", views.SchemaTypes.as_view()),
    path("schemas/types/", views.SchemaTypes.as_view()),
    path("schemas/ids/<int:schema_id>", views.SchemaById.as_view()),
    path("schemas/ids/<int:schema_id>/schema", views.SchemaTextById.as_view()),
    path("schemas/ids/<int:schema_id>/subjects", views.SubjectsOfSchema.as_view()),
    path("schemas/ids/<int:schema_id>/versions", views.VersionsOfSchema.as_view()),
    path("subjects", views.Subjects.as_view()),
    path("subjects/", views.Subjects.as_view()),
    path("subjects/<segment:subject>", views.SubjectView.as_view()),
    path("subjects/<segment:subject>/versions", views.Versions.as_view()),
    path("subjects/<segment:subject>/versions/<segment:version>", views.Version.as_view()),
    path("subjects/<segment:subject>/versions/<segment:version>/schema", views.VersionText.as_view()),
    path("subjects/<segment:subject>/versions/<segment:version>/referencedby", views.ReferencedBy.as_view()),
    path("compatibility/subjects/<segment:subject>/versions", views.Compatibility.as_view()),
    path("compatibility/subjects/<segment:subject>/versions/<segment:version>", views.Compatibility.as_view()),
    path("config", policy_views.ConfigView.as_view()),
    path("config/", policy_views.ConfigView.as_view()),
    path("config/<segment:subject>", policy_views.ConfigView.as_view()),
    path("mode", policy_views.ModeView.as_view()),
    path("mode/", policy_views.ModeView.as_view()),
    path("mode/<segment:subject>", policy_views.ModeView.as_view()),
]
below = [path("", views.Root.as_view()), path("contexts", views.Contexts.as_view()), *calls]
urlpatterns = [
    *below,
    path("contexts/<segment:context>/", include(calls)),
    path("registries/<segment:registry>/", include(below)),
    path("registries/<segment:registry>/contexts/<segment:context>/", include(calls)),
]
