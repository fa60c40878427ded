"""Google's addresses below `/v1/projects/`.

The root addresses register the converter `segment`: one path segment, decoded after the split.
"""

from __future__ import annotations

from django.urls import include, path, re_path
from django.urls.resolvers import URLPattern, URLResolver

from registry.api.google import policy_views, registries, subjects
from registry.api.google.base import RegistryView


def _policy(name: str, view: type[RegistryView]) -> list[URLPattern]:
    # The Python client can't send an address that ends with `/config`, as its own pattern wants more after it:
    # a slash is what it can add.
    return [
        re_path(rf"^{name}/{{0,2}}$", view.as_view()),
        path(f"{name}/<segment:subject>", view.as_view()),
    ]


calls: list[URLPattern | URLResolver] = [
    path("subjects", subjects.Subjects.as_view()),
    path("subjects/<segment:subject>", subjects.SubjectByName.as_view()),
    path("subjects/<segment:subject>/versions", subjects.Versions.as_view()),
    path("subjects/<segment:subject>/versions/<segment:version>", subjects.Version.as_view()),
    path("subjects/<segment:subject>/versions/<segment:version>/schema", subjects.VersionText.as_view()),
    path("subjects/<segment:subject>/versions/<segment:version>/referencedby", subjects.ReferencedBy.as_view()),
    path("schemas/types", subjects.SchemaTypes.as_view()),
    path("schemas/ids/<segment:schema>", subjects.SchemaById.as_view()),
    path("schemas/ids/<segment:schema>/schema", subjects.SchemaText.as_view()),
    path("schemas/ids/<segment:schema>/subjects", subjects.SubjectsOfSchema.as_view()),
    path("schemas/ids/<segment:schema>/versions", subjects.VersionsOfSchema.as_view()),
    path("compatibility/subjects/<segment:subject>/versions", subjects.Compatibility.as_view()),
    path("compatibility/subjects/<segment:subject>/versions/<segment:version>", subjects.Compatibility.as_view()),
    *_policy("config", policy_views.Config),
    *_policy("mode", policy_views.Mode),
]
below: list[URLPattern | URLResolver] = [
    path("", registries.RegistryByName.as_view()),
    path("/contexts", registries.Contexts.as_view()),
    path("/contexts/<segment:context>", registries.ContextByName.as_view()),
    path("/contexts/<segment:context>/", include(calls)),
    path("/", include(calls)),
]
urlpatterns = [
    path("<segment:project>/locations", registries.Locations.as_view()),
    path("<segment:project>/locations/<segment:location>", registries.LocationByName.as_view()),
    path("<segment:project>/locations/<segment:location>/operations", registries.Operations.as_view()),
    path(
        "<segment:project>/locations/<segment:location>/operations/<segment:operation>",
        registries.OperationByName.as_view(),
    ),
    path("<segment:project>/locations/<segment:location>/schemaRegistries", registries.Registries.as_view()),
    path("<segment:project>/locations/<segment:location>/schemaRegistries/<segment:registry>", include(below)),
    re_path("", registries.Nowhere.as_view()),
]
