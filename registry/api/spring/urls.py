"""Spring's addresses, below the root path that the setting SPRING_PATH names.

The root addresses register the converter `segment`: one path segment, decoded after the split. Each address works with
a slash at its end, as in the released server.
"""

from __future__ import annotations

from django.urls import path, re_path

from registry.api.spring import views

calls = {
    "schemas/<segment:schema_id>": views.SchemaOfId,
    "<segment:subject>": views.Subject,
    "<segment:subject>/<segment:schema_format>": views.SpringVersions,
    "<segment:subject>/<segment:schema_format>/<segment:version>": views.SpringVersion,
}
urlpatterns = [
    path("", views.Root.as_view()),
    *(path(f"{address}{end}", view.as_view()) for address, view in calls.items() for end in ("", "/")),
    re_path("", views.Nothing.as_view()),
]
