"""URLs of the board, of environments with their forms, and of unapproved versions."""

from __future__ import annotations

from typing import Final

from django.urls import path

from dashboard.components.forms import ServiceForm
from dashboard.environments import forms, views
from registry.subjects.usage.clients import CHANGE

#: path below the environment's URL, name, form
_FORMS: Final[tuple[tuple[str, str, type[ServiceForm]], ...]] = (
    ("change", "change", forms.RulesForm),
    ("changes", "changes", forms.LooseningForm),
    ("changes/<int:change_id>/approve", "change_approve", forms.ApproveChangeForm),
    ("changes/<int:change_id>/reject", "change_reject", forms.RejectChangeForm),
    ("changes/<int:change_id>/withdraw", "change_withdraw", forms.WithdrawChangeForm),
    ("rules", "rules", forms.ReviewRuleForm),
    ("rules/<int:rule_id>/remove", "rule_remove", forms.RemoveRuleForm),
    ("freezes", "freezes", forms.FreezeForm),
    ("freezes/<int:freeze_id>/remove", "freeze_remove", forms.RemoveFreezeForm),
    ("recurring-freezes", "recurring_freezes", forms.RecurringFreezeForm),
    ("recurring-freezes/<int:freeze_id>/remove", "recurring_freeze_remove", forms.RemoveRecurringFreezeForm),
    ("break-glass", "break_glass", forms.BreakGlassForm),
    ("break-glass/<int:break_glass_id>/close", "break_glass_close", forms.CloseBreakGlassForm),
    ("break-glass/<int:break_glass_id>/confirm", "break_glass_confirm", forms.ConfirmBreakGlassForm),
)
urlpatterns = [
    path("environments", views.board, name="environments"),
    path("environments/<segment:registry>", views.environment, name="environment"),
    *(
        path(
            f"environments/<segment:registry>/{route}",
            views.EnvironmentFormView.as_view(form_class=form, action=CHANGE if form is forms.LooseningForm else ""),
            name=f"environment_{name}",
        )
        for route, name, form in _FORMS
    ),
    path("ghosts", views.ghosts, name="ghosts"),
]
