"""Proposed schemas: the reader's drafts, and the page on which one is written, checked and submitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.against_latest import against_latest
from dashboard.pages.finding_row import finding_origin
from dashboard.pages.frame import environment_of, make_frame, page_actor
from dashboard.pages.numbers import whole_number
from dashboard.pages.promotions import request_row
from dashboard.pages.promotions_plan import check_rows, worst
from dashboard.pages.report_result import level_results
from dashboard.pages.sources_words import given_text
from dashboard.pages.subjects import pretty
from dashboard.presenters.comparison import Comparison
from dashboard.presenters.frame import Action, Choice, Crumb, Field, Link, Problem, Section
from dashboard.presenters.looks import Verdict, format_name
from dashboard.presenters.proposals import DraftList, DraftRow, ProposalPage, ProposalResult
from dashboard.presenters.report import LevelResult, ReferenceField, SyntaxProblem, snippet
from dashboard.texts import counted
from registry.access.roles import Actor, may_somewhere, refusal, require
from registry.drift.proposable import can_propose, propose_from, subject_of
from registry.drift.selectors import get_finding
from registry.errors import InvalidInput, InvalidReference, InvalidSchema, NotFound, SchemadeskError
from registry.formats import FORMATS
from registry.formats.base import Reference
from registry.promotions import selectors, services
from registry.promotions.models import PromotionRequest
from registry.promotions.origins import readable_findings
from registry.promotions.plan import Plan
from registry.promotions.selectors import DraftInfo
from registry.promotions.selectors.readable import may_see
from registry.subjects import selectors as subjects
from registry.subjects.names import parse_subject
from registry.subjects.selectors.places import get_registry

MAX_REFERENCES: Final = 100
_EMPTY_ROWS: Final = 2
_LATEST: Final = ("latest", "-1", "")
_FINDING: Final = "finding:"
_RIGHT: Final = "promotion.request"
#: endings of files that are of one format alone
_FORMAT_OF: Final = {"avsc": "AVRO", "proto": "PROTOBUF"}


@dataclass(frozen=True)
class Form:
    """What the editor holds; a row of references as it was typed, `draft` the draft that it is of.

    `finding` is the drift finding that it answers.
    """

    registry: str
    subject: str
    text: str = ""
    schema_type: str = "AVRO"
    rows: tuple[tuple[str, str, str], ...] = ()
    reason: str = ""
    origin: str = ""
    draft: int | None = None
    finding: int | None = None

    def references(self) -> list[Reference]:
        """The rows as references; raises InvalidReference for a version that is none."""
        found = []
        for name, subject, version in self.rows:
            number = -1 if version in _LATEST else whole_number(version, digits=10)
            if number is None:
                raise InvalidReference(
                    gettext("%(version)s is no version: a number or latest.") % {"version": repr(version[:20])},
                    reference=name,
                )
            found.append(Reference(name, subject, number))
        return found


def draft_list(request: HttpRequest) -> DraftList:
    """The reader's drafts, and proposals that are open."""
    actor, order = page_actor(request), selectors.list_environments()
    reason = _refusal(actor)
    found = selectors.list_requests(state="open", viewer=actor.user_id)
    proposed = [info for info in found if info.kind == PromotionRequest.PROPOSE and may_see(actor, info)]
    return DraftList(
        frame=make_frame(request, title=gettext("Proposals"), section=Section.PROMOTIONS, crumbs=_crumbs()[:1]),
        rows=tuple(draft_row(info, order) for info in (selectors.list_drafts(actor.user_id) if actor.user_id else [])),
        open=tuple(request_row(info, order) for info in proposed),
        propose=Action(
            label=gettext("Propose a schema"),
            url=reverse("ui:propose"),
            allowed=not reason,
            reason=reason,
            tone="primary",
            icon="plus",
        ),
    )


def _refusal(actor: Actor) -> str:
    return "" if may_somewhere(actor, _RIGHT) else refusal(actor, _RIGHT)


def _crumbs() -> tuple[Crumb, ...]:
    return (
        Crumb(label=gettext("Promotions"), url=reverse("ui:promotions")),
        Crumb(label=gettext("Proposals"), url=reverse("ui:proposals")),
    )


def draft_row(info: DraftInfo, order: list[str]) -> DraftRow:
    """A draft of the reader in a list."""
    return DraftRow(
        url=reverse("ui:draft", args=[info.id]),
        subject=info.subject.qualified,
        environment=environment_of(info.registry, order),
        format=format_name(info.schema_type),
        origin=info.origin,
        changed_at=info.changed_at,
        delete=_delete(info.id, gettext("Throw away")),
    )


def _delete(draft_id: int, label: str) -> Action:
    return Action(label=label, url=reverse("ui:draft_delete", args=[draft_id]), method="post", icon="x")


def form_of_draft(info: DraftInfo) -> Form:
    """The editor with a draft."""
    rows = tuple((item.name, item.subject, str(item.version)) for item in info.references)
    return Form(
        registry=info.registry,
        subject=info.subject.qualified,
        text=info.text,
        schema_type=info.schema_type,
        rows=rows,
        reason=info.reason,
        origin=info.origin,
        draft=info.id,
        finding=info.finding,
    )


def form_sent(request: HttpRequest) -> Form:
    """The editor as it was sent."""
    posted = request.POST
    columns = [[text.strip() for text in posted.getlist(f"ref_{part}")] for part in ("name", "subject", "version")]
    rows = tuple(row for row in zip(*columns, strict=False) if row[0] or row[1])[:MAX_REFERENCES]
    return Form(
        registry=given_text(posted, "registry"),
        subject=given_text(posted, "subject"),
        text=posted.get("schema", "").replace("\r\n", "\n"),
        schema_type=posted.get("format", "AVRO"),
        rows=rows,
        reason=given_text(posted, "reason"),
        origin=given_text(posted, "origin"),
        draft=whole_number(given_text(posted, "draft")),
        finding=whole_number(given_text(posted, "finding")),
    )


def with_file(request: HttpRequest, form: Form) -> Form:
    """The form with the text of the file that was sent along, if one was; its name may say the format.

    Raises InvalidInput for a file that is too large or no text.
    """
    file = request.FILES.get("file")
    if file is None:
        return form
    most, size = settings.SCHEMA_MAX_BYTES, file.size or 0
    if size > most:
        raise InvalidInput(
            gettext("The file is too large: it has %(size)s bytes, %(most)s are taken (SCHEMA_MAX_BYTES).")
            % {"size": size, "most": most}
        )
    try:
        text = file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            gettext("The file is no text in UTF-8: byte %(place)s. Save it in UTF-8, and send it again.")
            % {"place": error.start + 1}
        ) from error
    name = file.name or ""
    return replace(
        form,
        text=text.replace("\r\n", "\n"),
        schema_type=_FORMAT_OF.get(name.rpartition(".")[2].lower(), form.schema_type),
        origin=gettext("from the file %(name)s") % {"name": name[:80]},
    )


def form_started(request: HttpRequest, actor: Actor) -> Form:
    """The editor as the address opens it: empty, with a version (`from=prod:3`, `from=3`) or after a finding.

    Raises NotAllowed, SubjectNotFound, VersionNotFound, FindingNotFound, InvalidInput.
    """
    order = selectors.list_environments()
    start = given_text(request.GET, "from")
    if start.startswith(_FINDING):
        return _after_finding(start.removeprefix(_FINDING), actor, order)
    registry = given_text(request.GET, "registry") or (order[0] if order else "")
    subject = given_text(request.GET, "subject")
    if not subject:
        return Form(registry, "")
    place, _, version = start.rpartition(":")
    return _from_version(Form(registry, subject), place or registry, version or "latest", actor, asked=bool(start))


def _from_version(form: Form, place: str, version: str, actor: Actor, *, asked: bool) -> Form:
    """With a version's text; where none was asked for and there is none, without."""
    name = parse_subject(form.subject)
    require(actor, "schema.read", registry=place, subject=name.qualified)
    try:
        info = subjects.get_version(get_registry(place), name, version)
    except NotFound:
        if asked:
            raise
        return form
    rows = tuple((item.name, item.subject, str(item.version)) for item in info.schema.references)
    return Form(
        form.registry,
        form.subject,
        pretty(info),
        info.schema.schema_type,
        rows,
        reason=form.reason,
        origin=gettext("from version %(version)s of %(place)s") % {"version": info.version, "place": place},
    )


def _after_finding(number: str, actor: Actor, order: Sequence[str]) -> Form:
    """What is declared, to be changed to what was seen; the finding says in the reason what that is."""
    if not may_somewhere(actor, "schema.read"):
        require(actor, "schema.read")
    found = get_finding(whole_number(number) or 0)
    require(actor, "schema.read", registry=found.registry, subject=found.subject)
    target = found.registry if found.registry in order else next(iter(order), "")
    seen = (
        gettext("Seen in the data at %(location)s: %(sentence)s %(remedy)s")
        % {"location": found.location, "sentence": found.sentence, "remedy": found.remedy}
    ).strip()
    # whoever may read the subject alone may begin from what was seen there, but not point at the finding
    number_kept = found.id if found.id in readable_findings([found.id], actor) else None
    origin = gettext("after finding %(id)s") % {"id": found.id}
    form = Form(target, subject_of(found), reason=seen, origin=origin, finding=number_kept)
    if not form.subject:
        return form
    filled = _from_version(form, found.registry, "latest", actor, asked=False)
    text, schema_type, note = filled.text, filled.schema_type, ""
    if can_propose(found):
        try:
            proposed = propose_from(found)
            text, schema_type, note = proposed.text, proposed.schema_type, proposed.note
        except InvalidInput as error:
            note = error.message
    return Form(
        target,
        form.subject,
        text,
        schema_type,
        filled.rows,
        reason=f"{seen} {note}".strip(),
        origin=origin,
        finding=number_kept,
    )


def proposal_page(
    request: HttpRequest, form: Form, *, check: bool = False, error: SchemadeskError | None = None
) -> ProposalPage:
    """The editor; with `check` what the plan says of its text. `error` is what saving or submitting met."""
    actor, order = page_actor(request), selectors.list_environments()
    plan: Plan | None = None
    told: _Told | None = None
    if check and error is None:
        try:
            plan = _previewed(form, actor)
            told = _told(form, actor)
        except SchemadeskError as found:
            error = found
    reason = _refusal(actor)
    return ProposalPage(
        frame=make_frame(request, title=gettext("Propose a schema"), section=Section.PROMOTIONS, crumbs=_crumbs()),
        **_fields(form, order),
        references=tuple(
            ReferenceField(number=number, name=name, subject=subject, version=version)
            for number, (name, subject, version) in enumerate([*form.rows, *[("", "", "")] * _EMPTY_ROWS], start=1)
        ),
        action_url=reverse("ui:propose"),
        check=Action(label=gettext("Check"), url=reverse("ui:propose")),
        save=Action(label=gettext("Save as a draft"), url=reverse("ui:propose"), allowed=not reason, reason=reason),
        submit=Action(label=gettext("Submit for review"), url=reverse("ui:propose"), allowed=not reason, reason=reason),
        draft=form.draft,
        origin=form.origin,
        finding=finding_origin(form.finding, actor),
        finding_number=form.finding,
        delete=_delete(form.draft, gettext("Throw the draft away")) if form.draft else None,
        equal=_equal(plan, form) if plan else None,
        syntax=_syntax(form.text, error) if isinstance(error, InvalidSchema) else None,
        result=_result(plan, form) if plan else None,
        problem=Problem(what=error.message) if error and not isinstance(error, InvalidSchema) else None,
        starts=_starts(form, order),
        levels=told.levels if told else (),
        comparison=told.comparison if told else None,
    )


def _previewed(form: Form, actor: Actor) -> Plan:
    return services.preview_proposal(
        target=form.registry,
        subject=parse_subject(form.subject),
        text=form.text,
        by=actor,
        schema_type=form.schema_type,
        references=form.references(),
    )


@dataclass(frozen=True)
class _Told:
    """What is told beside the plan: all seven levels, and the changes against the newest version."""

    levels: tuple[LevelResult, ...]
    comparison: Comparison | None


def _told(form: Form, actor: Actor) -> _Told:
    registry, name = get_registry(form.registry), parse_subject(form.subject)
    config, strip = subjects.levels_of_text(
        registry, name, text=form.text, schema_type=form.schema_type, references=form.references()
    )
    comparison = against_latest(
        registry,
        name,
        by=actor,
        text=form.text,
        schema_type=form.schema_type,
        references=form.references(),
        level=config.level,
    )
    return _Told(level_results(strip, config.level), comparison)


def _fields(form: Form, order: Sequence[str]) -> dict[str, Any]:
    def chosen(values: Sequence[tuple[str, str]], value: str) -> tuple[Choice, ...]:
        return tuple(Choice(value=each, label=label, selected=each == value) for each, label in values)

    return {
        "registry": Field(
            name="registry",
            label=gettext("For"),
            kind="select",
            choices=chosen([(name, name) for name in order], form.registry),
            required=True,
        ),
        "subject": Field(name="subject", label=gettext("Subject"), value=form.subject, code=True, required=True),
        "text": Field(
            name="schema", label=gettext("Text"), value=form.text, kind="textarea", rows=18, code=True, required=True
        ),
        "reason": Field(
            name="reason",
            label=gettext("Why"),
            value=form.reason,
            kind="textarea",
            rows=3,
            help=gettext("What the reviewer should know."),
        ),
        "format_choices": chosen([(kind, format_name(kind)) for kind in sorted(FORMATS)], form.schema_type),
    }


def _equal(plan: Plan, form: Form) -> Link | None:
    """The version that has the text's meaning already."""
    if plan.has_work:
        return None
    number = plan.steps[-1].target_version
    return Link(
        label=gettext("version %(number)s of %(registry)s") % {"number": number, "registry": form.registry},
        url=subject_url(form.registry, form.subject, version=number),
    )


def _result(plan: Plan, form: Form) -> ProposalResult:
    stored = plan.to_dict()["checks"]
    checks = [check for check in stored if plan.has_work or check["code"] != "something-to-do"]
    if not plan.has_work:
        verdict, headline = Verdict.OK, gettext("%(registry)s has it already") % {"registry": form.registry}
    elif plan.failing:
        verdict = Verdict.BREAKS
        headline = (
            gettext("It would break what %(registry)s has") % {"registry": form.registry}
            if plan.breaking
            else gettext("Checks fail")
        )
    else:
        verdict, headline = worst(checks), gettext("%(registry)s would take it") % {"registry": form.registry}
    return ProposalResult(
        verdict=verdict,
        headline=headline,
        sentence=plan.failing[0].sentence
        if plan.failing and plan.has_work
        else counted(
            sum(step.adds for step in plan.steps),
            "%(n)s version would be registered.",
            "%(n)s versions would be registered.",
        ),
        checks=check_rows(checks),
        report_url=subject_url(form.registry, form.subject, "report"),
    )


def _syntax(text: str, error: InvalidSchema) -> SyntaxProblem:
    return SyntaxProblem(
        message=error.message,
        line=error.line,
        column=error.column,
        snippet=snippet(text, error.line, error.column) if error.line else (),
    )


def _starts(form: Form, order: Sequence[str]) -> tuple[Link, ...]:
    """Addresses that open the editor with the newest version of each environment."""
    if not form.subject:
        return ()
    url = reverse("ui:propose")
    return tuple(
        Link(
            label=gettext("the newest version of %(place)s") % {"place": place},
            url=f"{url}?{urlencode({'registry': form.registry, 'subject': form.subject, 'from': f'{place}:latest'})}",
        )
        for place in order
    )
