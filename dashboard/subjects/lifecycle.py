"""The life cycle of versions: states, forms that change the status, and the minimum version for producers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Final

from django import forms
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import BadgeState
from dashboard.components.forms import EndOfDayField, LongTextField, ServiceForm
from dashboard.components.translation import gettext_lazy as _
from registry.access.roles import Actor, refusal
from registry.audit.time_travel import moment
from registry.drift.services import minimum_version
from registry.promotions.models import PromotionRequest
from registry.promotions.selectors import VersionTimeline
from registry.promotions.services import request_adoption, request_roll_back
from registry.subjects.lifecycle.retirement import clear_version_status, set_version_status
from registry.subjects.models import Registry, VersionStatus
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import StatusInfo

STATUS: Final = "version.status"
REQUEST: Final = "promotion.request"


class VersionState(BadgeState):
    """The state of a version; the last two apply to whole subjects."""

    DRAFT = ("draft", "unknown", "pencil", _("Draft"))
    ASKED = ("in review", "info", "git-pull-request-arrow", _("In review"))
    APPROVED = ("approved", "info", "circle-check", _("Approved"))
    SCHEDULED = ("scheduled", "info", "clock", _("Scheduled"))
    APPLYING = ("applying", "info", "loader", _("Applying"))
    FAILED = ("failed", "breaks", "octagon-x", _("Partly failed"))
    RELEASED = ("released", "ok", "rocket", _("Released"))
    UNAPPROVED = ("unapproved", "care", "circle-question-mark", _("Unapproved"))
    DEPRECATED = ("deprecated", "care", "hourglass", _("Deprecated"))
    RETIRED = ("retired", "unknown", "circle-slash", _("Retired"))
    QUARANTINED = ("quarantined", "breaks", "ban", _("Quarantined"))
    REGISTERED = ("registered", "ok", "circle-check", _("Registered"))
    DELETED = ("deleted", "unknown", "circle-x", _("Soft-deleted"))


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionMark:
    """A state of a version: its label `word` ("Released to prod"), a `sentence`, and a `url` with the details."""

    state: VersionState
    word: str
    sentence: str
    url: str = ""


class SubjectForm(ServiceForm):
    """A form about one subject."""

    anchor: ClassVar[str] = ""

    def place(self) -> dict[str, Any]:
        """Return the query of the part of the subject's page to redirect to."""
        return {}


class VersionForm(SubjectForm):
    """A form about the version shown on its page."""

    anchor = "#status"
    version = forms.CharField(widget=forms.HiddenInput)

    def place(self) -> dict[str, Any]:
        """Return the version."""
        return {"version": self["version"].value() or None}


class StatusForm(VersionForm):
    """A form that deprecates, retires or quarantines a version."""

    service: ClassVar[Callable[..., object]] = staticmethod(set_version_status)
    label = _("Set status")
    success = _("Version %(version)s is %(status)s. Readers see this in a header.")
    permission = STATUS

    status = forms.ChoiceField(
        label=_("Status"),
        choices=(
            (VersionStatus.DEPRECATED, _("Deprecated: use another version, before the end date at the latest")),
            (VersionStatus.RETIRED, _("Retired: not for new data, still readable")),
            (VersionStatus.QUARANTINED, _("Quarantined: registered without a request and not trusted")),
        ),
    )
    message = LongTextField(  # type: ignore[assignment]
        label=_("Reason, and what to use instead"),
        rows=2,
        help_text=_("Shown to readers in a header, and to people on pages."),
    )
    ends_at = EndOfDayField(label=_("End date"), help_text=_("Only for deprecated versions."))


class ReactivateForm(VersionForm):
    """A form that makes a version active again."""

    service = staticmethod(clear_version_status)
    label = _("Reactivate")
    success = _("Version %(version)s is active again.")
    permission = STATUS


class AdoptForm(VersionForm):
    """A form that requests the review of an unapproved version."""

    service: ClassVar[Callable[..., object]] = staticmethod(
        lambda registry, **values: request_adoption(environment=registry, **values)
    )
    label = _("Request adoption")
    success = _("Created request %(result)s to adopt version %(version)s.")
    permission = REQUEST

    reason = LongTextField(label=_("How it was registered, and why to keep it"), rows=2)


class RollBackForm(AdoptForm):
    """A form that requests to make an earlier version current again."""

    service = staticmethod(lambda registry, **values: request_roll_back(environment=registry, **values))
    success = _("Created request %(result)s to roll back to version %(version)s.")

    reason = LongTextField(
        label=_("What is wrong with the newer version"),
        rows=2,
        help_text=_(
            "This creates a request. Once it is applied, this schema is registered again under the next version "
            "number. Nothing is deleted."
        ),
    )


class MinimumForm(SubjectForm):
    """A form that sets the minimum version for producers."""

    anchor = "#minimum-version"
    service: ClassVar[Callable[..., object]] = staticmethod(minimum_version.set_minimum_version)
    label = _("Set minimum version")
    success = _("From now on, scans report producers that write versions older than %(version)s.")
    permission = STATUS

    version = forms.IntegerField(label=_("Minimum version"))
    reason = LongTextField(label=_("Why producers should no longer write older versions"), rows=2)

    def place(self) -> dict[str, Any]:
        """Return the settings tab."""
        return {"tab": "settings"}


class ClearMinimumForm(SubjectForm):
    """A form that lets producers write any version again."""

    anchor, place = MinimumForm.anchor, MinimumForm.place
    service = staticmethod(minimum_version.clear_minimum_version)
    label = _("Remove minimum version")
    success = _("Producers may write any version again.")
    permission = STATUS


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusPart:
    """The status of the selected version, and the forms that change it.

    `says` is the status in full. `refused` says why the reader may not change it, `request_refused` why they may not
    make a request. `adopt` requests the review of an unapproved version, `roll_back` makes an earlier version current
    again; each is None if not applicable.
    """

    version: int
    marks: tuple[VersionMark, ...]
    says: tuple[str, ...]
    form: StatusForm
    refused: str = ""
    request_refused: str = ""
    adopt: AdoptForm | None = None
    roll_back: RollBackForm | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimumPart:
    """The minimum version for producers (None: any), and the form that sets it.

    `is_over`: neither that version nor a later one is live, so that the minimum applies to none. `set_refused` says why
    no minimum can be set, `refused` why the reader may not set one.
    """

    info: minimum_version.MinimumVersionInfo | None
    is_over: bool
    form: MinimumForm
    refused: str = ""
    set_refused: str = ""


def version_mark(state: VersionState, sentence: str) -> VersionMark:
    """Return the mark of a state under its own label."""
    return VersionMark(state=state, word=state.look.word, sentence=sentence)


def marks_of(life: VersionTimeline) -> tuple[VersionMark, ...]:
    """Return the states shown in a version's row; releases are shown by environment instead."""
    marks = []
    if life.is_unapproved:
        sentence = gettext("It was registered without a request. Request its adoption, or quarantine it.")
        marks.append(version_mark(VersionState.UNAPPROVED, sentence))
    marks += [
        VersionMark(
            state=VersionState.of(request.state),
            word=gettext("%(word)s for %(target)s")
            % {"word": VersionState.of(request.state).look.word, "target": request.target},
            sentence=gettext("Request %(id)s for %(target)s is %(state)s.")
            % {"id": request.id, "target": request.target, "state": request.state},
            url=reverse("ui:promotion", args=[request.id]),
        )
        for request in life.requests
    ]
    if life.status is not None:
        marks.append(status_mark(life.status))
    return tuple(marks)


def status_mark(status: StatusInfo) -> VersionMark:
    """Return the mark of a version's status."""
    state = VersionState.of(status.status)
    word = str(state.look.word)
    if status.ends_at:
        word = gettext("%(state)s until %(date)s") % {"state": word, "date": f"{status.ends_at:%Y-%m-%d}"}
    return VersionMark(state=state, word=word, sentence=status.message)


def status_part(
    actor: Actor, registry: str, name: SubjectName, life: VersionTimeline, *, newest: int = 0
) -> StatusPart:
    """Return the status of the selected version, and the forms that change it.

    `newest` is the current version of an environment, 0 if the registry isn't one.
    """
    status = life.status
    releases = tuple(
        VersionMark(
            state=VersionState.RELEASED,
            word=gettext("Released to %(environment)s") % {"environment": release.environment},
            sentence=gettext("As version %(version)s, by %(released_by)s on %(released_at)s UTC.")
            % {
                "version": release.version,
                "released_by": release.released_by,
                "released_at": f"{release.released_at:%Y-%m-%d %H:%M}",
            },
            url=reverse("ui:promotion", args=[release.request]),
        )
        for release in life.releases
    )
    is_lost = life.deleted_at is not None
    asked = {request.kind for request in life.requests if request.target == registry}
    is_adoptable = life.is_unapproved and PromotionRequest.ADOPT not in asked and not is_lost
    is_earlier = life.version < newest and PromotionRequest.ROLL_BACK not in asked and not is_lost
    roll_back = RollBackForm() if is_earlier else None
    if roll_back:
        roll_back.label = gettext("Request rollback to version %(version)s") % {"version": life.version}
    return StatusPart(
        version=life.version,
        marks=(*releases, *marks_of(life)),
        says=_says(status),
        form=StatusForm(initial=asdict(status) if status else {}),
        refused=refusal(actor, STATUS, registry=registry, subject=name.qualified),
        request_refused=refusal(actor, REQUEST, registry=registry, subject=name.qualified)
        if is_adoptable or is_earlier
        else "",
        adopt=AdoptForm() if is_adoptable else None,
        roll_back=roll_back,
    )


def _says(status: StatusInfo | None) -> tuple[str, ...]:
    if status is None:
        return ()
    since = gettext("%(word)s since %(decided_at)s, by %(decided_by)s.") % {
        "word": VersionState.of(status.status).look.word,
        "decided_at": f"{status.decided_at:%Y-%m-%d}",
        "decided_by": status.decided_by,
    }
    until = (
        (gettext("Use it until %(ends_at)s at the latest.") % {"ends_at": f"{status.ends_at:%Y-%m-%d}"},)
        if status.ends_at
        else ()
    )
    return (since, *until, status.message)


def minimum_part(registry: Registry, name: SubjectName, newest: int, actor: Actor) -> MinimumPart | None:
    """Return the minimum version and its form; None in the past, which has no minimums.

    `newest` is the newest live version.
    """
    if moment() is not None:
        return None
    info = minimum_version.minimum_version_of(registry, name)
    refused = refusal(actor, STATUS, registry=registry.name, subject=name.qualified)
    form = MinimumForm(initial={"version": info.version, "reason": info.reason} if info else {})
    form.fields["version"].help_text = gettext("From 2 to %(newest)s.") % {"newest": newest}
    return MinimumPart(
        info=info,
        is_over=info is not None and info.version > newest,
        form=form,
        refused=refused,
        set_refused=refused or (gettext("There is no older version to exclude.") if newest < 2 else ""),
    )
