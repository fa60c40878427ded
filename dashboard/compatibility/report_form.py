"""The form of a compatibility report, and what the origin of a mirror says of the same text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest
from django.utils.translation import gettext

from dashboard.compatibility.presenters import RegistryAnswer
from dashboard.components.diff import laid_out
from dashboard.components.frame import page_actor
from dashboard.components.links import whole_number
from dashboard.subjects.page import for_people
from registry.access.roles import require
from registry.errors import InvalidInput, InvalidReference, NotFound
from registry.formats import DEFAULT_FORMAT, format_of
from registry.formats.base import Reference
from registry.promotions.selectors import get_draft
from registry.subjects import selectors
from registry.subjects.policy.registries import mirror_of
from registry.subjects.remote.remote_writer import ask_remote
from registry.subjects.versions.lookup import Registry, get_registry
from registry.subjects.versions.qualified_names import SubjectName

MAX_REFERENCES: Final = 100
#: characters of a text of which a line an item would be thousands of lines; and of a line then
LONG_TEXT: Final = 50_000
LINE_WIDTH: Final = 120
_LATEST: Final = ("latest", "-1", "")


@dataclass(frozen=True)
class Form:
    """What the form holds; a row of references as it was typed. `level` is empty for the one in force.

    `link` are the values of an address that opens the form like this and checks it; empty for a text that has none.
    """

    text: str
    schema_type: str
    profile: str
    rows: tuple[tuple[str, str, str], ...]
    level: str = ""
    link: tuple[tuple[str, str], ...] = ()

    @property
    def carried(self) -> tuple[tuple[str, str], ...]:
        """All but the text, for a form that sends another text."""
        names = ("ref_name", "ref_subject", "ref_version")
        rows = [pair for row in self.rows for pair in zip(names, row, strict=True)]
        return (("format", self.schema_type), ("profile", self.profile), ("level", self.level), *rows)

    def references(self) -> list[Reference]:
        """The rows as references; raises InvalidReference for a version that is none."""
        rows = []
        for name, subject, version in self.rows:
            number = -1 if version in _LATEST else whole_number(version, digits=10)
            if number is None:
                raise InvalidReference(
                    gettext("%(version)s is not a version. Enter a number or latest.")
                    % {"version": repr(version[:20])},
                    reference=name,
                )
            rows.append(Reference(name, subject, number))
        return rows


def form_sent(request: HttpRequest) -> Form:
    """The form as it was sent."""
    posted = request.POST
    columns = [[text.strip() for text in posted.getlist(f"ref_{part}")] for part in ("name", "subject", "version")]
    if len(columns[0]) > MAX_REFERENCES:
        raise InvalidInput(
            gettext("This form can’t send more than %(max_references)s references.")
            % {"max_references": MAX_REFERENCES}
        )
    rows = tuple(row for row in zip(*columns, strict=False) if row[0] or row[1])
    # A browser sends line ends as CRLF; places in the text are counted as they were typed.
    text = posted.get("schema", "").replace("\r\n", "\n")
    return Form(text, posted.get("format", DEFAULT_FORMAT), posted.get("profile", ""), rows, posted.get("level", ""))


def form_started(registry: Registry, name: SubjectName, profile: str) -> Form:
    """The form as it opens: with the newest version, if there is one."""
    try:
        newest = selectors.get_version(registry, name, "latest")
    except NotFound:
        return Form("", DEFAULT_FORMAT, profile, ())
    rows = tuple((item.name, item.subject, str(item.version)) for item in newest.schema.references)
    return Form(_editable(newest), newest.schema.schema_type, profile, rows)


def form_linked(request: HttpRequest, registry: Registry, name: SubjectName, profile: str) -> Form | None:
    """The form of an address that names its text; None for one that names none.

    `version=3` is a version of the subject here, `from=dev:3` one of the same subject elsewhere, `draft=7` a draft of the
    reader. Raises NotAllowed, VersionNotFound, DraftNotFound, RegistryNotFound.
    """
    query, actor = request.GET, page_actor(request)
    how = query.get("profile", "") or profile
    link = tuple((key, query[key]) for key in ("version", "from", "draft", "profile", "level") if query.get(key))
    if draft := query.get("draft"):
        saved_draft = get_draft(whole_number(draft) or 0, user_id=actor.user_id or 0)
        rows = tuple((item.name, item.subject, str(item.version)) for item in saved_draft.references)
        return Form(saved_draft.text, saved_draft.schema_type, how, rows, query.get("level", ""), link)
    start = query.get("from") or query.get("version")
    if not start:
        return None
    where, _, version = start.rpartition(":")
    source = get_registry(where) if where else registry
    require(actor, "schema.read", registry=source.name, subject=name.qualified)
    info = selectors.get_version(source, name, version)
    rows = tuple((item.name, item.subject, str(item.version)) for item in info.schema.references)
    return Form(_editable(info), info.schema.schema_type, how, rows, query.get("level", ""), link)


def _editable(info: selectors.VersionInfo) -> str:
    """The text to change. Of a long one what fits stays on a line: each line of a field costs a browser time."""
    text = info.schema.text
    is_short = not format_of(info.schema.schema_type).is_json or len(text) < LONG_TEXT
    return for_people(info) if is_short else laid_out(text, width=LINE_WIDTH)


def registry_answer(
    request: HttpRequest, registry: Registry, name: SubjectName, form: Form, ours: bool
) -> RegistryAnswer | None:
    """The server's answer, or that it wasn't asked; None for a registry of ours."""
    mirror = mirror_of(registry)
    if mirror is None:
        return None
    if request.POST.get("ask") != "registry":
        return RegistryAnswer(where=mirror.url)
    remote_answer = ask_remote(
        registry,
        name,
        text=form.text,
        schema_type=form.schema_type,
        references=form.references(),
        by=page_actor(request),
    )
    if remote_answer is None:
        return None
    return RegistryAnswer(
        where=remote_answer.where,
        is_asked=True,
        agrees=None if remote_answer.is_compatible is None else remote_answer.is_compatible == ours,
        is_compatible=remote_answer.is_compatible,
        reason=remote_answer.reason,
        messages=remote_answer.messages,
    )
