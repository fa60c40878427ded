"""Addresses of findings, the decisions on them, and mutes."""

from __future__ import annotations

from django.urls import path

from dashboard.findings import decisions, views

_DECISIONS = (
    ("acknowledge", decisions.AcknowledgeForm),
    ("reopen", decisions.ReopenFindingForm),
    ("assign", decisions.AssignForm),
)
urlpatterns = [
    path("findings", views.finding_list, name="findings"),
    path("findings/decide", views.findings_decide, name="findings_decide"),
    path("findings/<int:finding_id>", views.finding_page, name="finding"),
    *(
        path(
            f"findings/<int:finding_id>/{name}",
            views.FindingFormView.as_view(form_class=form),
            name=f"finding_{name}",
        )
        for name, form in _DECISIONS
    ),
    path("mutes", views.MuteView.as_view(), name="mutes"),
    path("mutes/<int:mute_id>/end", views.mute_end, name="mute_end"),
]
