"""The page that tries a data contract's rule on the newest messages of a subject's topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext

from dashboard.components.forms import NOT_OF_RIGHTS, CodeField, FormPage, FormPageView, LongTextField, ServiceForm
from dashboard.components.frame import page_actor, subject_frame
from dashboard.components.links import subject_url
from dashboard.components.translation import gettext_lazy as _
from registry.access.roles import refusal, require
from registry.drift.replay.rule_trial import DEFAULT_MESSAGES, MOST_MESSAGES, RuleTrial, try_rule
from registry.drift.scan_context.contract_rules import TYPES
from registry.errors import NotAllowed
from registry.subjects.versions.qualified_names import parse_subject


class RuleTrialForm(ServiceForm):
    """A form that evaluates a rule."""

    service = staticmethod(try_rule)
    label = _("Try")
    refusals = (*NOT_OF_RIGHTS, NotAllowed)
    lede: ClassVar[str] = _("Evaluates a rule of a data contract as a scan does. Nothing is stored.")

    expression = LongTextField(
        label=_("Expression"),
        rows=3,
        code=True,
        placeholder="message.amount > 0",
        help_text=_("An expression in CEL, such as message.amount > 0, or guard ; expression."),
    )
    type = forms.ChoiceField(
        label=_("Type"),
        choices=tuple(zip(TYPES, (_("CEL: reads the message"), _("CEL_FIELD: reads each field")), strict=True)),
    )
    tags = CodeField(label=_("Tags"), required=False, help_text=_("Of the fields to read, separated by commas."))
    topic = CodeField(label=_("Topic"), required=False, help_text=_("If several topics carry the subject."))
    messages = forms.IntegerField(
        label=_("Newest messages to read"), initial=DEFAULT_MESSAGES, min_value=1, max_value=MOST_MESSAGES
    )

    def clean_tags(self) -> list[str]:
        """Return the tags."""
        text: str = self.cleaned_data["tags"]
        return [tag.strip() for tag in text.split(",") if tag.strip()]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTrialPage(FormPage):
    """The form, and the result of a trial."""

    result: RuleTrial | None = None

    @property
    def unchecked(self) -> int:
        """The number of messages on which the rule couldn't be evaluated."""
        return sum(self.result.not_checked.values()) if self.result else 0


class RuleTrialView(FormPageView):
    """Shows the form, and the result below it; nothing is stored."""

    form_class = RuleTrialForm
    template = "subjects/try_rule.html"

    def dispatch(self, request: HttpRequest, *args: Any, **route: Any) -> HttpResponse:
        """Check that the reader may read the subject, and on POST that they may read its messages."""
        name = parse_subject(route["subject"]).qualified
        right = "source.scan" if request.method == "POST" else "schema.read"
        require(page_actor(request), right, registry=route["registry"], subject=name)
        return super().dispatch(request, *args, **route)  # type: ignore[return-value]

    def target(self, **route: Any) -> dict[str, Any]:
        """Return the subject."""
        return {"registry": route["registry"], "subject": parse_subject(route["subject"])}

    def page(self, form: ServiceForm, **route: Any) -> RuleTrialPage:
        """Return the page with the result."""
        registry, name = route["registry"], parse_subject(route["subject"])
        return RuleTrialPage(
            frame=subject_frame(self.request, registry, name, title=gettext("Try a rule on messages")),
            form=form,
            back_url=subject_url(registry, name.qualified),
            refused=refusal(page_actor(self.request), "source.scan", registry=registry, subject=name.qualified),
            result=form.result,
        )

    def done(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Show the result."""
        return self.show(form, **route)
