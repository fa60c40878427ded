"""URLs of requests: the list, the form, a request with the forms on its page, and bulk approval."""

from __future__ import annotations

from typing import Final

from django.urls import path

from dashboard.promotions import forms, replay, views

#: path below the request's URL, name, form
_FORMS: Final[tuple[tuple[str, str, type[forms.RequestForm]], ...]] = (
    ("approve", "approve", forms.ApproveForm),
    ("changes", "changes", forms.ChangesForm),
    ("reject", "reject", forms.RejectForm),
    ("submit", "submit", forms.SubmitForm),
    ("again", "again", forms.ResubmitForm),
    ("recheck", "recheck", forms.RecheckForm),
    ("withdraw", "withdraw", forms.WithdrawForm),
    ("apply", "apply", forms.ApplyForm),
    ("schedule", "schedule", forms.ScheduleForm),
    ("unschedule", "unschedule", forms.UnscheduleForm),
    ("resume", "resume", forms.ResumeForm),
    ("give-up", "give_up", forms.GiveUpForm),
    ("acknowledge", "acknowledge", forms.AcknowledgeForm),
    ("acknowledge/take-back", "take_back", forms.TakeBackForm),
    ("labels", "labels", forms.LabelsForm),
    ("threads", "threads", forms.ThreadForm),
    ("threads/<int:thread_id>/answer", "thread_answer", forms.ReplyForm),
    ("threads/<int:thread_id>/resolve", "thread_resolve", forms.ResolveForm),
    ("threads/<int:thread_id>/reopen", "thread_reopen", forms.ReopenForm),
)
urlpatterns = [
    path("promotions", views.request_list, name="promotions"),
    path("promotions/request", views.promotion_request, name="promotion_request"),
    path("promotions/approve", views.approve_together, name="promotions_approve"),
    path("promotions/plan.json", views.plan, name="promotion_plan"),
    path("promotions/<int:request_id>", views.promotion, name="promotion"),
    path("promotions/<int:request_id>/evidence.html", views.evidence_html, name="promotion_evidence_html"),
    path("promotions/<int:request_id>/evidence.json", views.evidence_json, name="promotion_evidence_json"),
    path("promotions/<int:request_id>/replay", replay.replay, name="promotion_replay"),
    *(
        path(
            f"promotions/<int:request_id>/{route}",
            views.RequestFormView.as_view(form_class=form),
            name=f"promotion_{name}",
        )
        for route, name, form in _FORMS
    ),
]
