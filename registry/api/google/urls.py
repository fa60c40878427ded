"""Google's URLs below `/v1/projects/`.

The root URLconf registers the converter `segment`: one path segment, decoded after the split.
"""

from __future__ import annotations

from django.urls import include, path, re_path
from django.urls.resolvers import URLPattern, URLResolver

from registry.api.google import registry_views, subject_views
from registry.api.google.base import RegistryView


def _policy(name: str, view: type[RegistryView]) -> list[URLPattern]:
    # Google's Python client can't send a path that ends with `/config`, because its pattern requires more after it; but
    # it can append a slash.
    return [
        re_path(rf"^{name}/{{0,2}}$", view.as_view()),
        path(f"{name}/<segment:subject>", view.as_view()),
    ]


calls: list[URLPattern | URLResolver] = [
    path("subjects", subject_views.GoogleSubjects.as_view()),
    path("subjects/<segment:subject>", subject_views.SubjectByName.as_view()),
    path("subjects/<segment:subject>/versions", subject_views.GoogleVersions.as_view()),
    path("subjects/<segment:subject>/versions/<segment:version>", subject_views.GoogleVersion.as_view()),
    path("subjects/<segment:subject>/versions/<segment:version>/schema", subject_views.VersionText.as_view()),
    path("subjects/<segment:subject>/versions/<segment:version>/referencedby", subject_views.ReferencedBy.as_view()),
    path("schemas/types", subject_views.SchemaTypes.as_view()),
    path("schemas/ids/<segment:schema>", subject_views.SchemaById.as_view()),
    path("schemas/ids/<segment:schema>/schema", subject_views.SchemaText.as_view()),
    path("schemas/ids/<segment:schema>/subjects", subject_views.SubjectsOfSchema.as_view()),
    path("schemas/ids/<segment:schema>/versions", subject_views.VersionsOfSchema.as_view()),
    path("compatibility/subjects/<segment:subject>/versions", subject_views.Compatibility.as_view()),
    path("compatibility/subjects/<segment:subject>/versions/<segment:version>", subject_views.Compatibility.as_view()),
    *_policy("config", registry_views.Config),
    *_policy("mode", registry_views.Mode),
]
below: list[URLPattern | URLResolver] = [
    path("", registry_views.RegistryByName.as_view()),
    path("/contexts", registry_views.Contexts.as_view()),
    path("/contexts/<segment:context>", registry_views.ContextByName.as_view()),
    path("/contexts/<segment:context>/", include(calls)),
    path("/", include(calls)),
]
urlpatterns = [
    path("<segment:project>/locations", registry_views.Locations.as_view()),
    path("<segment:project>/locations/<segment:location>", registry_views.LocationByName.as_view()),
    path("<segment:project>/locations/<segment:location>/operations", registry_views.Operations.as_view()),
    path(
        "<segment:project>/locations/<segment:location>/operations/<segment:operation>",
        registry_views.OperationByName.as_view(),
    ),
    path("<segment:project>/locations/<segment:location>/schemaRegistries", registry_views.Registries.as_view()),
    path("<segment:project>/locations/<segment:location>/schemaRegistries/<segment:registry>", include(below)),
    re_path("", registry_views.Nowhere.as_view()),
]
