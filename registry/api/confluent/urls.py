"""Confluent's URLs, below the root, below a registry, and each below a context.

The root URLconf registers the converter `segment`: one path segment, decoded after the split. As in Confluent, a
trailing slash makes no difference.
"""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from registry.api.confluent import associations, policy_views, schema_views, subject_views
from registry.api.confluent.base import ConfluentView

_SUBJECT = "subjects/<segment:subject>"
_VERSION = f"{_SUBJECT}/versions/<segment:version>"
_CHECK = f"compatibility/{_SUBJECT}/versions"
_ID = "schemas/ids/<segment:schema_id>"
_GUID = "schemas/guids/<segment:guid>"

#: path → view
CALLS = {
    "schemas": schema_views.Schemas,
    "schemas/types": schema_views.SchemaTypes,
    _ID: schema_views.SchemaById,
    f"{_ID}/schema": schema_views.SchemaTextById,
    f"{_ID}/subjects": schema_views.SubjectsOfSchema,
    f"{_ID}/versions": schema_views.VersionsOfSchema,
    _GUID: schema_views.SchemaByGuid,
    f"{_GUID}/ids": schema_views.IdsOfGuid,
    "subjects": subject_views.ConfluentSubjects,
    _SUBJECT: subject_views.SubjectView,
    f"{_SUBJECT}/metadata": subject_views.SubjectMetadata,
    f"{_SUBJECT}/versions": subject_views.ConfluentVersions,
    _VERSION: subject_views.ConfluentVersion,
    f"{_VERSION}/schema": subject_views.VersionText,
    f"{_VERSION}/referencedby": subject_views.ReferencedBy,
    f"{_VERSION}/tags": subject_views.Tags,
    _CHECK: subject_views.Compatibility,
    f"{_CHECK}/<segment:version>": subject_views.Compatibility,
    "config": policy_views.ConfigView,
    "config/<segment:subject>": policy_views.ConfigView,
    "mode": policy_views.ModeView,
    "mode/<segment:subject>": policy_views.ModeView,
    "associations": associations.Associations,
    "associations:batch": associations.BatchOfChanges,
    "associations:batchMutate": associations.BatchOfChanges,
    "associations:batchGet": associations.BatchOfLookUps,
    "associations/subjects/<segment:subject>": associations.AssociationsOfSubject,
    "associations/resources/<segment:resource_id>": associations.AssociationsOfId,
    "associations/resources/<segment:namespace>/<segment:name>": associations.AssociationsOfName,
}
#: paths of a whole registry
WHOLE = {
    "contexts": schema_views.Contexts,
    "contexts/<segment:context>": schema_views.ContextView,
    "v1/metadata/id": schema_views.ClusterId,
    "v1/metadata/version": schema_views.ServerVersion,
    "v1/metadata/deployment": schema_views.Deployment,
}


def _addresses(table: dict[str, type[ConfluentView]]) -> list[URLPattern | URLResolver]:
    """Return the URLs grouped by first segment, so that a request is compared with few of them."""
    routes: list[URLPattern | URLResolver] = []
    below: dict[str, list[URLPattern]] = {}
    for address, view in table.items():
        word, _, rest = address.partition("/")
        if not rest:
            routes.append(path(word, view.as_view()))
        below.setdefault(word, []).extend(
            path(f"{rest}{end}", view.as_view()) for end in (("", "/") if rest else ("",))
        )
    return routes + [path(f"{word}/", include(patterns)) for word, patterns in below.items()]


calls = _addresses(CALLS)
below = [path("", schema_views.Root.as_view()), *calls, *_addresses(WHOLE)]
urlpatterns = [
    *below,
    path("contexts/<segment:context>/", include(calls)),
    path("registries/<segment:registry>/", include(below)),
    path("registries/<segment:registry>/contexts/<segment:context>/", include(calls)),
]
