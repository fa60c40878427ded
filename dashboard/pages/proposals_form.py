"""What the editor of proposals holds: as it opens, as it was sent, and as a draft keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext

from dashboard.pages.numbers import whole_number
from dashboard.pages.sources_words import given_text
from dashboard.pages.subjects import for_people
from registry.access.roles import Actor, require
from registry.drift.proposable import can_propose, propose_from, subject_of
from registry.drift.selectors import get_finding
from registry.errors import InvalidInput, InvalidReference, NotFound
from registry.formats.base import Reference
from registry.promotions import selectors
from registry.promotions.origins import readable_findings
from registry.promotions.selectors import DraftInfo, RequestInfo
from registry.promotions.selectors.readable import readable_request
from registry.subjects import selectors as subjects
from registry.subjects.names import parse_subject
from registry.subjects.selectors.places import get_registry

MAX_REFERENCES: Final = 100
_LATEST: Final = ("latest", "-1", "")
_FINDING: Final = "finding:"
#: endings of files that are of one format alone
_FORMAT_OF: Final = {"avsc": "AVRO", "proto": "PROTOBUF"}


@dataclass(frozen=True)
class Form:
    """What the editor holds; a row of references as it was typed, `draft` the draft that it is of.

    `finding` is the drift finding that it answers, `again_of` the request that it asks for again. `seen` is the state of the draft that was read, empty for none, None
    where the sender doesn't say.
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
    seen: str | None = ""
    again_of: int | None = None

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
        seen=info.state,
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
        # a suggested fix takes the place of what stands in the editor
        text=(posted.get("fixed") or posted.get("schema", "")).replace("\r\n", "\n"),
        schema_type=posted.get("format", "AVRO"),
        rows=rows,
        reason=given_text(posted, "reason"),
        origin=given_text(posted, "origin"),
        draft=whole_number(given_text(posted, "draft")),
        finding=whole_number(given_text(posted, "finding")),
        seen=posted.get("seen", "")[:40] if "seen" in posted else None,
        again_of=whole_number(given_text(posted, "again_of")),
    )


def with_file(request: HttpRequest, form: Form) -> Form:
    """The form with the text of the file that was sent along, if one was; its name may say the format.

    Raises InvalidInput for a file that is too large or no text.
    """
    file = request.FILES.get("file")
    if file is None or request.POST.get("fixed"):
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
    """The editor as the address opens it: empty, with a version (`from=prod:3`, `from=3`), after a finding, or
    with what a request asked for (`again_of=12`).

    Raises NotAllowed, SubjectNotFound, VersionNotFound, FindingNotFound, RequestNotFound, InvalidInput.
    """
    order = selectors.list_environments()
    start = given_text(request.GET, "from")
    if start.startswith(_FINDING):
        return _after_finding(start.removeprefix(_FINDING), actor, order)
    again_of = whole_number(given_text(request.GET, "again_of"))
    if again_of is not None:
        return _asked_again(readable_request(again_of, actor), actor)
    registry = given_text(request.GET, "registry") or (order[0] if order else "")
    subject = given_text(request.GET, "subject")
    if not subject:
        return Form(registry, "")
    place, _, version = start.rpartition(":")
    return _from_version(Form(registry, subject), place or registry, version or "latest", actor, asked=bool(start))


def _asked_again(info: RequestInfo, actor: Actor) -> Form:
    """The text that a request proposed, to be changed; of another kind of request the target's."""
    form = Form(info.target, info.subject.qualified, reason=info.reason, again_of=info.id)
    item = info.items[0] if info.items else None
    if item is None or not item.text:
        return replace(_from_version(form, info.target, "latest", actor, asked=False), again_of=info.id)
    return replace(
        form,
        text=item.text,
        schema_type=item.schema_type,
        rows=tuple((str(ref["name"]), str(ref["subject"]), str(ref["version"])) for ref in item.references),
        origin=gettext("from request %(number)s") % {"number": info.id},
        finding=info.finding if readable_findings([info.finding], actor) else None,
    )


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
        for_people(info),
        info.schema.schema_type,
        rows,
        reason=form.reason,
        origin=gettext("from version %(version)s of %(place)s") % {"version": info.version, "place": place},
    )


def _after_finding(number: str, actor: Actor, order: Sequence[str]) -> Form:
    """What is declared, to be changed to what was seen; the finding says in the reason what that is."""
    found = get_finding(whole_number(number) or 0, by=actor)
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
