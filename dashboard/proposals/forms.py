"""The editor of a proposed schema: its initial, sent and drafted state, and its page objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext

from dashboard.compare.comparison import VersionComparison
from dashboard.compare.proof import EditView
from dashboard.compatibility.presenters import LevelResult, LintGroup, ReferenceField, SyntaxProblem
from dashboard.components.badges import Verdict
from dashboard.components.links import whole_number
from dashboard.components.widgets import Action, Choice, Environment, Field, Frame, Link, Problem
from dashboard.promotions.plan import RequestRow
from dashboard.sources.labels import given_text
from dashboard.sources.presenters import FindingOrigin
from dashboard.subjects.page import for_people
from registry.access.roles import Actor, require
from registry.drift.proposals.observed_schema import can_propose, propose_from, subject_of
from registry.drift.selectors import get_finding
from registry.errors import InvalidInput, InvalidReference, NotFound
from registry.formats import DEFAULT_FORMAT
from registry.formats.base import Reference
from registry.formats.schema_format import format_of_file
from registry.promotions import selectors
from registry.promotions.requests.finding_links import readable_findings
from registry.promotions.requests.selectors import readable_request
from registry.promotions.selectors import DraftInfo, RequestInfo
from registry.subjects import selectors as subjects
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import parse_subject

MAX_REFERENCES: Final = 100
_LATEST: Final = ("latest", "-1", "")
_FINDING: Final = "finding:"


@dataclass(frozen=True)
class Form:
    """The content of the editor; `rows` are the references as typed, `draft` the number of its draft.

    `finding` is the drift finding that it answers, `again_of` the request that it resubmits. `draft_state` is the state of
    the draft that was read, empty for none, None if the sender doesn't say.
    """

    registry: str
    subject: str
    text: str = ""
    schema_type: str = DEFAULT_FORMAT
    rows: tuple[tuple[str, str, str], ...] = ()
    reason: str = ""
    origin: str = ""
    draft: int | None = None
    finding: int | None = None
    draft_state: str | None = ""
    again_of: int | None = None

    def references(self) -> list[Reference]:
        """The rows as references. Raises InvalidReference for an invalid version."""
        references = []
        for name, subject, version in self.rows:
            number = -1 if version in _LATEST else whole_number(version, digits=10)
            if number is None:
                raise InvalidReference(
                    gettext("%(version)s is not a valid version. Enter a number or latest.")
                    % {"version": repr(version[:20])},
                    reference=name,
                )
            references.append(Reference(name, subject, number))
        return references


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
        draft_state=info.state,
        finding=info.finding,
        again_of=info.again_of,
    )


def form_sent(request: HttpRequest) -> Form:
    """The editor as it was sent."""
    posted = request.POST
    columns = [[text.strip() for text in posted.getlist(f"ref_{part}")] for part in ("name", "subject", "version")]
    rows = tuple(row for row in zip(*columns, strict=False) if row[0] or row[1])[:MAX_REFERENCES]
    return Form(
        registry=given_text(posted, "registry"),
        subject=given_text(posted, "subject"),
        # a suggested fix replaces the editor's text
        text=(posted.get("fixed") or posted.get("schema", "")).replace("\r\n", "\n"),
        schema_type=posted.get("format", DEFAULT_FORMAT),
        rows=rows,
        reason=given_text(posted, "reason"),
        origin=given_text(posted, "origin"),
        draft=whole_number(given_text(posted, "draft")),
        finding=whole_number(given_text(posted, "finding")),
        draft_state=posted.get("seen", "")[:40] if "seen" in posted else None,
        again_of=whole_number(given_text(posted, "again_of")),
    )


def with_file(request: HttpRequest, form: Form) -> Form:
    """The form with the text of an uploaded file, if there is one; its extension may tell the format.

    Raises InvalidInput for a file that is too large or not text.
    """
    file = request.FILES.get("file")
    if file is None or request.POST.get("fixed"):
        return form
    most, size = settings.SCHEMA_MAX_BYTES, file.size or 0
    if size > most:
        raise InvalidInput(
            gettext("The file is too large. It has %(size)s bytes. The maximum is %(most)s (SCHEMA_MAX_BYTES).")
            % {"size": size, "most": most}
        )
    try:
        text = file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            gettext("The file is not valid UTF-8 at byte %(place)s. Save it as UTF-8 and upload it again.")
            % {"place": error.start + 1}
        ) from error
    name = file.name or ""
    return replace(
        form,
        text=text.replace("\r\n", "\n"),
        schema_type=format_of_file(name, form.schema_type),
        origin=gettext("from the file %(name)s") % {"name": name[:80]},
    )


def form_started(request: HttpRequest, actor: Actor) -> Form:
    """The editor as the address opens it: empty, with a version (`from=prod:3`, `from=3`), for a finding, or with
    the text of a request (`again_of=12`).

    Raises NotAllowed, SubjectNotFound, VersionNotFound, FindingNotFound, RequestNotFound, InvalidInput.
    """
    order = selectors.list_environments()
    start = given_text(request.GET, "from")
    if start.startswith(_FINDING):
        return _after_finding(start.removeprefix(_FINDING), actor, order)
    again_of = whole_number(given_text(request.GET, "again_of"))
    if again_of is not None:
        return _from_request(readable_request(again_of, actor), actor)
    registry = given_text(request.GET, "registry") or (order[0] if order else "")
    subject = given_text(request.GET, "subject")
    if not subject:
        return Form(registry, "")
    registry_of_version, _, version = start.rpartition(":")
    return _from_version(
        Form(registry, subject), registry_of_version or registry, version or "latest", actor, required=bool(start)
    )


def _from_request(info: RequestInfo, actor: Actor) -> Form:
    """The text that a request proposed; for another kind of request, the target's newest version."""
    form = Form(info.target, info.subject.qualified, reason=info.reason, again_of=info.id)
    item = info.items[0] if info.items else None
    if item is None or not item.text:
        return replace(_from_version(form, info.target, "latest", actor, required=False), again_of=info.id)
    return replace(
        form,
        text=item.text,
        schema_type=item.schema_type,
        rows=tuple((str(ref["name"]), str(ref["subject"]), str(ref["version"])) for ref in item.references),
        origin=gettext("from request %(number)s") % {"number": info.id},
        finding=info.finding if readable_findings([info.finding], actor) else None,
    )


def _from_version(form: Form, registry: str, version: str, actor: Actor, *, required: bool) -> Form:
    """The form with a version's text; without, if the version is missing and not `required`."""
    name = parse_subject(form.subject)
    require(actor, "schema.read", registry=registry, subject=name.qualified)
    try:
        info = subjects.get_version(get_registry(registry), name, version)
    except NotFound:
        if required:
            raise
        return form
    rows = tuple((item.name, item.subject, str(item.version)) for item in info.schema.references)
    return Form(
        form.registry,
        form.subject,
        for_people(info),
        info.schema.schema_type,
        rows,
        reason=form.reason,
        origin=gettext("from version %(version)s of %(place)s") % {"version": info.version, "place": registry},
    )


def _after_finding(number: str, actor: Actor, order: Sequence[str]) -> Form:
    """The declared schema, changed to what was observed if possible, with the finding's text as the reason."""
    finding = get_finding(whole_number(number) or 0, by=actor)
    target = finding.registry if finding.registry in order else next(iter(order), "")
    observed = (
        gettext("Seen in the data at %(location)s: %(sentence)s %(remedy)s")
        % {"location": finding.location, "sentence": finding.sentence, "remedy": finding.remedy}
    ).strip()
    # a reader of the subject alone may start from the observed data, but not refer to the finding
    number_kept = finding.id if finding.id in readable_findings([finding.id], actor) else None
    origin = gettext("after finding %(id)s") % {"id": finding.id}
    form = Form(target, subject_of(finding), reason=observed, origin=origin, finding=number_kept)
    if not form.subject:
        return form
    filled = _from_version(form, finding.registry, "latest", actor, required=False)
    text, schema_type, note = filled.text, filled.schema_type, ""
    if can_propose(finding):
        try:
            proposed = propose_from(finding)
            text, schema_type, note = proposed.text, proposed.schema_type, proposed.note
        except InvalidInput as error:
            note = error.message
    return Form(
        target,
        form.subject,
        text,
        schema_type,
        filled.rows,
        reason=f"{observed} {note}".strip(),
        origin=origin,
        finding=number_kept,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftRow:
    """A draft of the reader; nobody else sees it."""

    url: str
    subject: str
    environment: Environment
    format: str
    origin: str
    changed_at: datetime
    delete: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftList:
    """The reader's drafts, and proposals that are open."""

    frame: Frame
    rows: tuple[DraftRow, ...]
    open: tuple[RequestRow, ...]
    propose: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalResult:
    """The result of a check: verdict and sentence, and the checks of the plan."""

    verdict: Verdict
    headline: str
    sentence: str
    checks: tuple[Mapping[str, Any], ...] = ()
    report_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLine:
    """A change in one line; `anchor` leads to its details."""

    verdict: Verdict
    path: str
    sentence: str
    anchor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalReport:
    """The report of a check; `summary` is all of it in a sentence, for screen readers.

    Either `syntax` or `problem` says why there is no report, or `parsed` that the text can be parsed. `equal` is a version
    with the same meaning, so that nothing would be registered. `levels` are all seven. `comparison` is with the newest
    version, None if there is none, and `changes` are its first changes. `fixes` are edits that the editor can apply.
    """

    summary: str
    syntax: SyntaxProblem | None = None
    problem: Problem | None = None
    parsed: str = ""
    equal: Link | None = None
    result: ProposalResult | None = None
    levels: tuple[LevelResult, ...] = ()
    lint: tuple[LintGroup, ...] = ()
    no_lint: str = ""
    comparison: VersionComparison | None = None
    changes: tuple[ChangeLine, ...] = ()
    fixes: tuple[Fix, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """Edits that fix a refused text, completely or in part; the editor gets the whole text of `edit`.

    `passes` says whether the text would pass the level then; None if that is unknown.
    """

    titles: tuple[str, ...]
    edit: EditView
    passes: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePart:
    """The report beside and below the editor while somebody writes; the names are those of the whole page."""

    report: ProposalReport | None
    check: Action
    action_url: str
    view: str
    is_whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalPage:
    """The editor; `report` is the report of a check, and `problem` the error of saving or submitting.

    `draft_state` is the state of the draft that was read. `finding_number` is the form's hidden value, `finding` what the
    reader may see of it. `again` is the resubmitted request; `is_whole` draws all changes.
    """

    frame: Frame
    registry: Field
    subject: Field
    text: Field
    reason: Field
    format_choices: tuple[Choice, ...]
    references: tuple[ReferenceField, ...]
    action_url: str
    check: Action
    save: Action
    submit: Action
    accepted_files: str = ".txt"
    draft: int | None = None
    draft_state: str = ""
    origin: str = ""
    finding: FindingOrigin | None = None
    finding_number: int | None = None
    delete: Action | None = None
    problem: Problem | None = None
    starts: tuple[Link, ...] = ()
    report: ProposalReport | None = None
    view: str = "unified"
    is_whole: bool = False
    again_of: int | None = None
    again: Link | None = None
