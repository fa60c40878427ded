"""The wizard that retires a version or a subject: the evidence, the choice, and the typed confirmation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext

from dashboard.components.badges import Look, Retire
from dashboard.components.frame import environment_of, page_actor, subject_frame
from dashboard.components.links import form_text, subject_export, subject_url, whole_number
from dashboard.components.translation import counted
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Environment, Export, Frame, Link, Problem
from dashboard.usage.forms import LABELS, RETIRE_FORMS, RetireForm
from registry.access.roles import Actor, refusal
from registry.drift.usage.retirement import SubjectRetirement, data_evidence, retirement_of
from registry.drift.usage.retirement_rules import Retirement
from registry.drift.usage.version_usage import VersionUse
from registry.errors import InvalidInput
from registry.promotions.environments.change_guard import closed_refusal, guard_result
from registry.promotions.selectors import list_environments
from registry.subjects.lifecycle.retirement import CHOICES, DEPRECATE, HARD, RESTORE, RIGHTS, SOFT
from registry.subjects.models import Registry
from registry.subjects.selectors import presence_of
from registry.subjects.usage.evidence import Evidence
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

STEPS: Final = {"": _("Known uses"), "choose": _("Action"), "confirm": _("Confirm")}
ICONS: Final = {DEPRECATE: "clock", SOFT: "ban", HARD: "x", RESTORE: "undo-2"}
SHOWN: Final = 20


def usage_url(registry: str, subject: str) -> str:
    """Return the URL of a subject's usage."""
    return subject_url(registry, subject, "usage")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireStep:
    """One of the three steps; `url` is "" if it isn't reached yet."""

    label: str
    url: str = ""
    current: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireEvidence:
    """The evidence: the answer, its kinds, referring versions, and the versions in other environments."""

    retirement: Retirement
    evidence: tuple[Evidence, ...]
    messages: int
    last_time: datetime | None
    referrers: tuple[str, ...]
    hidden_referrers: int
    environments: tuple[tuple[Environment, str], ...]
    coverage: tuple[str, ...]

    @property
    def look(self) -> Look:
        """The look of the answer."""
        return Retire.of(self.retirement.answer).look


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireChoice:
    """A choice: its button, its URL, its consequence in a sentence, and why the reader may not choose it."""

    button: str
    icon: str
    url: str
    refused: str = ""
    label: str = ""
    consequence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBack:
    """The state of the registry afterwards; `restore` undoes it, None if that is impossible."""

    headline: str
    good: bool
    lines: tuple[str, ...]
    at: datetime
    restore: RetireChoice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetirePage:
    """A step of the wizard, with the parts of that step; `export` downloads a copy of what will be deleted."""

    frame: Frame
    registry: str
    subject: str
    what: str
    back_url: str
    steps: tuple[RetireStep, ...] = ()
    scopes: tuple[Link, ...] = ()
    known: RetireEvidence | None = None
    next_url: str = ""
    choices: tuple[RetireChoice, ...] = ()
    form: RetireForm | None = None
    sentence: str = ""
    icon: str = ""
    refused: str = ""
    read_back: ReadBack | None = None
    export: Export | None = None

    @property
    def problem(self) -> Problem | None:
        """The error of the submitted form."""
        return self.form.problem if self.form and self.form.is_bound else None


@dataclass(frozen=True)
class RetirementTarget:
    """The version or subject to retire; `use` has that version, or all of them."""

    registry: Registry
    name: SubjectName
    version: int | None
    retirement: SubjectRetirement
    use: tuple[VersionUse, ...]

    @property
    def what(self) -> str:
        """The target in words."""
        return (
            gettext("the whole subject")
            if self.version is None
            else gettext("version %(version)s") % {"version": self.version}
        )

    @property
    def live(self) -> list[VersionUse]:
        """The versions that aren't deleted."""
        return [use for use in self.use if not use.deleted]

    @property
    def referrers(self) -> list[str]:
        """Live versions that refer to it, except those that would be retired with it."""
        named = {name: None for use in self.use for name in use.referrers}
        return [
            name for name in named if self.version is not None or name.rpartition(" version ")[0] != self.name.qualified
        ]

    @property
    def referrers_hidden(self) -> int:
        """The number of referring live versions that the reader may not read."""
        return sum(use.referrers_hidden for use in self.use)

    @property
    def unshared(self) -> list[VersionUse]:
        """The versions whose schema id isn't used elsewhere in the registry."""
        return [use for use in self.use if not use.is_shared]

    def evidence(self) -> list[Evidence]:
        """Return the evidence from messages, state and clients."""
        numbers = [use.version for use in self.use]
        data = data_evidence(self.registry, self.name, numbers)
        return [
            item for number in numbers for item in (*data.get(number, ()), *self.retirement.evidence.get(number, ()))
        ]

    def url(self, step: str = "", **query: object) -> str:
        """Return the URL of a step."""
        base = subject_url(self.registry.name, self.name.qualified, "retire", version=self.version, **query)
        path, _, parameters = base.partition("?")
        return f"{path}{f'/{step}' if step else ''}{f'?{parameters}' if parameters else ''}"


def retirement_target(request: HttpRequest, registry: str, subject: str) -> RetirementTarget:
    """Return the target in the URL. Raises SubjectNotFound, VersionNotFound, RegistryNotFound, InvalidInput."""
    registry_row, name = get_registry(registry), parse_subject(subject)
    version_text = form_text(request.GET, "version")
    version = whole_number(version_text, digits=10) if version_text else None
    if version_text and version is None:
        raise InvalidInput(
            gettext("%(given)s is not a version. Give a number.") % {"given": repr(version_text[:20])}, field="version"
        )
    retirement = retirement_of(registry_row, name, by=page_actor(request), ask=False)
    use = retirement.use.versions if version is None else (retirement.use.version(version),)
    return RetirementTarget(registry_row, name, version, retirement, tuple(use))


def evidence_page(request: HttpRequest, what: RetirementTarget) -> RetirePage:
    """Return step 1: the evidence."""
    return _page(
        request, what, "", known=_evidence(what, page_actor(request)), next_url=what.url("choose"), scopes=_scopes(what)
    )


def choose_page(request: HttpRequest, what: RetirementTarget) -> RetirePage:
    """Return step 2: the choices and their consequences."""
    actor = page_actor(request)
    return _page(request, what, "choose", choices=tuple(_choice(what, name, actor) for name in _possible(what)))


def retire_form(what: RetirementTarget, choice: str, data: Any = None) -> RetireForm:
    """Return the form of a choice. Raises InvalidInput for an unknown one."""
    if choice not in CHOICES:
        raise InvalidInput(
            gettext("%(choice)s is not an action. Choose one of %(choices)s.")
            % {"choice": repr(choice[:40]), "choices": ", ".join(CHOICES)},
            field="do",
        )
    return RETIRE_FORMS[choice](data, subject=what.name.qualified, what=what.what)


def confirm_page(request: HttpRequest, what: RetirementTarget, form: RetireForm) -> RetirePage:
    """Return step 3: the form of a choice."""
    choice = form.choice
    return _page(
        request,
        what,
        "confirm",
        form=form,
        sentence=_consequence(what, choice),
        icon=ICONS[choice],
        refused=_refused(what, choice, page_actor(request)),
        export=subject_export(what.registry.name, what.name) if choice in (SOFT, HARD) else None,
    )


# -- parts -------------------------------------------------------------------------------------------------------------


def _page(request: HttpRequest, what: RetirementTarget, step: str, **parts: object) -> RetirePage:
    reached = list(STEPS).index(step)
    return RetirePage(
        frame=retire_frame(request, what.registry, what.name),
        registry=what.registry.name,
        subject=what.name.qualified,
        what=what.what,
        steps=tuple(
            RetireStep(label=label, url=what.url(name) if number < reached else "", current=name == step)
            for number, (name, label) in enumerate(STEPS.items())
        ),
        back_url=subject_url(what.registry.name, what.name.qualified, version=what.version),
        **parts,  # type: ignore[arg-type]
    )


def retire_frame(request: HttpRequest, registry: Registry, name: SubjectName) -> Frame:
    """Return the frame of the wizard's pages."""
    title = gettext("Retire %(qualified)s") % {"qualified": name.qualified}
    return subject_frame(request, registry.name, name, "retire", title=title)


def _scopes(what: RetirementTarget) -> tuple[Link, ...]:
    """Return links to the other versions and to the whole subject."""
    base = what.retirement.use
    whole = (Link(label=gettext("the whole subject"), url=subject_url(base.registry, base.subject, "retire")),)
    links = tuple(
        Link(
            label=gettext("version %(version)s") % {"version": use.version},
            url=subject_url(base.registry, base.subject, "retire", version=use.version),
        )
        for use in reversed(base.versions)
        if use.version != what.version
    )
    return (*(whole if what.version is not None else ()), *links[:SHOWN])


def _evidence(what: RetirementTarget, actor: Actor) -> RetireEvidence:
    retirements = what.retirement
    retirement = retirements.subject if what.version is None else retirements.versions[what.version]
    order = list_environments()
    versions_by_registry = presence_of(what.registry, what.name).visible_to(actor, what.name).fingerprints
    own = versions_by_registry.get(what.registry.name, {})
    prints = set(own.values()) if what.version is None else {own[what.version]} if what.version in own else set()
    environments = [
        (
            environment_of(name, order, url=subject_url(name, what.name.qualified)),
            gettext("version %(listed)s")
            % {"listed": _listed(sorted(n for n, print_ in versions.items() if print_ in prints))},
        )
        for name, versions in sorted(
            versions_by_registry.items(), key=lambda item: order.index(item[0]) if item[0] in order else 99
        )
        if prints & set(versions.values())
    ]
    referrers = what.referrers
    return RetireEvidence(
        retirement=retirement,
        evidence=tuple(dict.fromkeys(what.evidence()))[:SHOWN],
        messages=sum(use.messages for use in what.use),
        last_time=max((use.last_time for use in what.use if use.last_time), default=None),
        referrers=tuple(referrers[:SHOWN]),
        hidden_referrers=max(0, len(referrers) - SHOWN) + what.referrers_hidden,
        environments=tuple(environments),
        coverage=tuple(topic.sentence for topic in retirements.use.coverage if topic.is_own)[:SHOWN],
    )


def _possible(what: RetirementTarget) -> list[str]:
    """Return the applicable choices: restoring if something is deleted, then the others in order."""
    restorable = [RESTORE] if len(what.live) < len(what.use) else []
    return [*restorable, *([DEPRECATE, SOFT] if what.live else []), HARD]


def _choice(what: RetirementTarget, choice: str, actor: Actor) -> RetireChoice:
    return RetireChoice(
        button=f"{LABELS[choice]} …",
        icon=ICONS[choice],
        url=what.url("confirm", do=choice),
        refused=_refused(what, choice, actor),
        label=LABELS[choice],
        consequence=_consequence(what, choice),
    )


def _refused(what: RetirementTarget, choice: str, actor: Actor) -> str:
    """Say why a choice isn't possible, like the services; "" if it is."""
    action, subject = RIGHTS[choice], what.name.qualified
    lacking = refusal(actor, action, registry=what.registry.name, subject=subject)
    if lacking:
        return lacking
    if guard_result(what.registry, actor)[0]:
        return closed_refusal(action, what.registry, subject)
    if choice == HARD and what.live:
        return gettext("Soft-delete %(what)s first.") % {"what": what.what}
    if choice in (DEPRECATE, SOFT) and not what.live:
        return gettext("Already soft-deleted.")
    if choice in (SOFT, HARD) and what.referrers:
        return gettext("%(referrers)s refers to it. Delete or change that first.") % {"referrers": what.referrers[0]}
    if choice in (SOFT, HARD) and what.referrers_hidden:
        return gettext("A subject that you can’t read refers to it. That subject must be deleted or changed first.")
    return ""


def _consequence(what: RetirementTarget, choice: str) -> str:
    """Describe the consequence of a choice."""
    ids = _ids(what.unshared)
    if choice == DEPRECATE:
        return gettext(
            "Nothing stops working. The message and the date are shown to readers in a header and to people on "
            "pages. Owners are notified."
        )
    if choice == RESTORE:
        return gettext(
            "Soft-deleted versions are restored with their numbers and ids, if they are still compatible with newer "
            "versions."
        )
    all_its_own = len(what.unshared) == len(what.use)
    if choice == SOFT:
        readable = (
            gettext("Messages with %(ids)s stay readable") % {"ids": ids}
            if ids
            else gettext("All messages stay readable")
        )
        return gettext("Clients can’t use it by name for new data. %(readable)s by id. It can be restored.") % {
            "readable": readable
        }
    back = _coming_back()
    if not ids:
        return f"{back} {gettext('Other subjects have the same schema ids, so messages stay readable.')}"
    unreadable = gettext("Messages with %(ids)s become permanently unreadable: %(how_many)s.")
    if settings.DELETED_COPY_DAYS:
        unreadable = gettext("Messages with %(ids)s become unreadable until it is restored: %(how_many)s.")
    sentence = f"{back} {unreadable % {'ids': ids, 'how_many': _how_many(what)}}"
    return (
        sentence
        if all_its_own
        else f"{sentence} {gettext('Messages with schema ids that other subjects also have stay readable.')}"
    )


def _coming_back() -> str:
    days = settings.DELETED_COPY_DAYS
    if not days:
        return gettext("It can’t be restored.")
    return counted(
        days,
        "A copy is kept for %(n)s day. During that time, it can be restored where its numbers and ids are free.",
        "A copy is kept for %(n)s days. During that time, it can be restored where its numbers and ids are free.",
    )


def _how_many(what: RetirementTarget) -> str:
    messages = sum(use.messages for use in what.unshared)
    retirement = what.retirement.subject if what.version is None else what.retirement.versions[what.version]
    if messages:
        if not retirement.date:
            return gettext("%(seen)s were seen by scans") % {"seen": f"{messages:,}"}
        return gettext("%(seen)s were seen by scans, some until at least %(date)s") % {
            "seen": f"{messages:,}",
            "date": f"{retirement.date:%Y-%m-%d}",
        }
    if not any(topic.is_own for topic in what.retirement.use.coverage):
        return gettext("their number is unknown because none of its topics is scanned")
    return gettext("none were seen by scans")


def _ids(use: Sequence[VersionUse]) -> str:
    numbers = sorted({item.schema_id for item in use})
    return gettext("schema id %(listed)s") % {"listed": _listed(numbers)} if numbers else ""


def _listed(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:5]))
    return (
        gettext("%(shown)s and %(number)s more") % {"shown": shown, "number": len(numbers) - 5}
        if len(numbers) > 5
        else shown
    )
