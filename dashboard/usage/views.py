"""Views of versions in use, declared clients, decoding messages, and retiring a version or a subject."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from dashboard.components.chart import chart_csv
from dashboard.components.forms import FormPage, FormPageView, ServiceForm
from dashboard.components.frame import make_frame, page_actor, render_page
from dashboard.components.links import form_text
from dashboard.components.widgets import Section
from dashboard.environments.views import loosening_response
from dashboard.subjects.views import SubjectFormView
from dashboard.usage import retirement as pages
from dashboard.usage import retirement_result
from dashboard.usage.forms import ENCODING_LABELS, DeclareClientForm, DecodeForm, RetireForm
from dashboard.usage.page import FRAMINGS, usage_page
from registry.access.roles import refusal, require
from registry.drift.selectors.messages import DecodedMessage
from registry.errors import ClientNotFound, SecondPersonRequired
from registry.promotions.requests.state_machine import require_any_permission
from registry.subjects.lifecycle.retirement import RIGHTS
from registry.subjects.selectors import registry_names
from registry.subjects.usage.clients import withdraw_client
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, parse_subject

MOST_CHARACTERS: Final = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodePage(FormPage):
    """The form, and the decoded message if one was sent; `masked` says why personal data is masked."""

    registry: str = ""
    result: DecodedMessage | None = None
    masked: str = ""

    @property
    def framing(self) -> str:
        """How the message names its schema, in words."""
        return FRAMINGS.get(self.result.framing, "none") if self.result else ""

    @property
    def encoding(self) -> str:
        """The text encoding of the pasted message, in words."""
        return ENCODING_LABELS.get(self.result.encoding, self.result.encoding) if self.result else ""

    @property
    def context(self) -> str:
        """The context of its schema; "" for the default one."""
        return self.result.context if self.result and self.result.context != DEFAULT_CONTEXT else ""

    @property
    def has_value(self) -> bool:
        """Whether there is a value, possibly null."""
        return self.result is not None and (self.result.value is not None or not self.result.error)

    @property
    def value(self) -> str:
        """The beginning of the value as JSON."""
        return self._text[:MOST_CHARACTERS]

    @property
    def is_cut(self) -> bool:
        """Whether the value is longer."""
        return len(self._text) > MOST_CHARACTERS

    @property
    def logical(self) -> list[tuple[str, str]]:
        """Paths and the logical values there."""
        return list(self.result.logical.items()) if self.result else []

    @property
    def _text(self) -> str:
        return json.dumps(self.result.value, indent=2, ensure_ascii=False, default=str) if self.result else ""


@method_decorator(sensitive_post_parameters("message", "headers"), name="dispatch")
class DecodeView(FormPageView):
    """Decodes a message to its schema and value; nothing is stored."""

    template = "drift/decode.html"

    def make_form(self, data: Any, **route: Any) -> DecodeForm:
        """Return the form for the given registry, else for the first one. Raises NotAllowed."""
        actor = page_actor(self.request)
        names, given = registry_names(actor), data if data is not None else self.request.GET
        registry = form_text(given, "registry") or (names[0] if names else "")
        require(actor, "schema.read", registry=registry)
        return DecodeForm(data, registries=names, initial={**self.request.GET.dict(), "registry": registry})

    def page(self, form: ServiceForm, **route: Any) -> DecodePage:
        """Return the page with the decoded message."""
        result, registry = form.result, form.cleaned_data.get("registry", "") if form.is_bound else ""
        is_masked = result is not None and result.masked
        return DecodePage(
            frame=make_frame(self.request, title=gettext("Decode a message"), section=Section.SUBJECTS),
            form=form,
            back_url="",
            registry=registry,
            result=result,
            masked=refusal(page_actor(self.request), "sample.personal", registry=registry) if is_masked else "",
        )

    def done(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Show the result."""
        return self.show(form, **route)


@require_safe
def usage(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Show whether versions can be retired; htmx gets only the answer, after querying the clusters."""
    require(page_actor(request), "schema.read", registry=registry, subject=parse_subject(subject).qualified)
    page = usage_page(request, registry, subject)
    if request.GET.get("as") == "csv":
        return chart_csv(page.traffic, "traffic")
    return render_page(request, "subjects/usage.html", page, {"usage": "usage"})


class DeclareClientView(SubjectFormView):
    """Declares or changes a client; a refused form keeps its input."""

    form_class = DeclareClientForm

    def post(self, request: HttpRequest, **route: Any) -> HttpResponse:
        """Declare the client, or redirect to the form that requests a second person's approval."""
        try:
            return super().post(request, **route)
        except SecondPersonRequired as error:
            return loosening_response(request, error)

    def show(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Show the usage with the form's errors."""
        assert isinstance(form, DeclareClientForm)
        page = usage_page(self.request, route["registry"], route["subject"], form)
        return render(self.request, "subjects/usage.html", {"page": page}, status=422)

    def back(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Redirect to the clients."""
        return _to_clients(**route)


def _to_clients(registry: str, subject: str) -> HttpResponse:
    return redirect(f"{pages.usage_url(registry, parse_subject(subject).qualified)}#clients-title")


@require_POST
def client_withdraw(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Withdraw a client; it is no error if it is already withdrawn."""
    name, client = parse_subject(subject), form_text(request.POST, "name")
    try:
        withdraw_client(registry=registry, subject=name, name=client, by=page_actor(request))
    except SecondPersonRequired as error:
        return loosening_response(request, error)
    except ClientNotFound as error:
        messages.info(request, error.message)
    else:
        messages.success(request, gettext("%(name)s was withdrawn.") % {"name": client})
    return _to_clients(registry, subject)


TEMPLATE = "subjects/retire.html"


def _require_reader(request: HttpRequest, registry: str, subject: str) -> None:
    require(page_actor(request), "schema.read", registry=registry, subject=parse_subject(subject).qualified)


@require_safe
def evidence(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Show step 1: the evidence."""
    _require_reader(request, registry, subject)
    page = pages.evidence_page(request, pages.retirement_target(request, registry, subject))
    return render(request, TEMPLATE, {"page": page})


@require_safe
def choose(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Show step 2: the choices."""
    _require_reader(request, registry, subject)
    page = pages.choose_page(request, pages.retirement_target(request, registry, subject))
    return render(request, TEMPLATE, {"page": page})


class ConfirmRetirementView(FormPageView):
    """Step 3: shows the form, and carries out the choice on POST."""

    template = TEMPLATE

    def dispatch(self, request: HttpRequest, *args: Any, **route: Any) -> HttpResponse:
        """Check that the reader may read the subject, and on POST that they have the step's permission."""
        _require_reader(request, **route)
        if request.method == "POST":
            right = RIGHTS.get(form_text(request.GET, "do"), "version.delete")
            name = parse_subject(route["subject"]).qualified
            require(page_actor(request), right, registry=route["registry"], subject=name)
        self.what = pages.retirement_target(request, **route)
        return super().dispatch(request, *args, **route)  # type: ignore[return-value]

    def make_form(self, data: Any, **route: Any) -> RetireForm:
        """Return the form of the step in the URL. Raises InvalidInput."""
        return pages.retire_form(self.what, form_text(self.request.GET, "do"), data)

    def target(self, **route: Any) -> dict[str, Any]:
        """Return the version or the subject."""
        return {"registry": route["registry"], "subject": self.what.name, "version": self.what.version}

    def page(self, form: ServiceForm, **route: Any) -> Any:
        """Return the page of the step."""
        assert isinstance(form, RetireForm)
        return pages.confirm_page(self.request, self.what, form)

    def done(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Redirect to the result."""
        return redirect(retirement_result.done_url(self.what.registry, self.what.name, form.result))


@require_safe
def done(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Show the present state after a step."""
    _require_reader(request, registry, subject)
    return render(request, TEMPLATE, {"page": retirement_result.done_page(request, registry, subject)})


@require_safe
def unused_subjects(request: HttpRequest, registry: str) -> HttpResponse:
    """Show the unused subjects."""
    require_any_permission(page_actor(request))
    page = retirement_result.unused_subjects_page(request, get_registry(registry))
    return render(request, "subjects/unused_subjects.html", {"page": page})
