"""What the form of a compatibility report holds: as it opens, as it was sent, and as an address names it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest
from django.utils.translation import gettext

from dashboard.pages.frame import page_actor
from dashboard.pages.numbers import whole_number
from dashboard.pages.subjects import for_people
from dashboard.presenters.json_layout import laid_out
from registry.access.roles import require
from registry.errors import InvalidInput, InvalidReference, NotFound
from registry.formats import FORMATS
from registry.formats.base import Reference
from registry.promotions.selectors import get_draft
from registry.subjects import selectors
from registry.subjects.names import SubjectName
from registry.subjects.selectors.places import Registry, get_registry

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


def form_sent(request: HttpRequest) -> Form:
    """The form as it was sent."""
    posted = request.POST
    columns = [[text.strip() for text in posted.getlist(f"ref_{part}")] for part in ("name", "subject", "version")]
    if len(columns[0]) > MAX_REFERENCES:
        raise InvalidInput(
            gettext("More than %(max_references)s references can't be sent by this form.")
            % {"max_references": MAX_REFERENCES}
        )
    rows = tuple(row for row in zip(*columns, strict=False) if row[0] or row[1])
    # A browser sends line ends as CRLF; places in the text are counted as they were typed.
    text = posted.get("schema", "").replace("\r\n", "\n")
    return Form(text, posted.get("format", "AVRO"), posted.get("profile", ""), rows, posted.get("level", ""))


def form_started(place: Registry, name: SubjectName, profile: str) -> Form:
    """The form as it opens: with the newest version, if there is one."""
    try:
        newest = selectors.get_version(place, name, "latest")
    except NotFound:
        return Form("", next(iter(FORMATS)), profile, ())
    rows = tuple((item.name, item.subject, str(item.version)) for item in newest.schema.references)
    return Form(_editable(newest), newest.schema.schema_type, profile, rows)


def form_linked(request: HttpRequest, place: Registry, name: SubjectName, profile: str) -> Form | None:
    """The form of an address that names its text; None for one that names none.

    `version=3` is a version of the subject here, `from=dev:3` one of the same subject elsewhere, `draft=7` a draft of the
    reader. Raises NotAllowed, VersionNotFound, DraftNotFound, RegistryNotFound.
    """
    asked, actor = request.GET, page_actor(request)
    how = asked.get("profile", "") or profile
    link = tuple((key, asked[key]) for key in ("version", "from", "draft", "profile", "level") if asked.get(key))
    if draft := asked.get("draft"):
        kept = get_draft(whole_number(draft) or 0, user_id=actor.user_id or 0)
        rows = tuple((item.name, item.subject, str(item.version)) for item in kept.references)
        return Form(kept.text, kept.schema_type, how, rows, asked.get("level", ""), link)
    start = asked.get("from") or asked.get("version")
    if not start:
        return None
    where, _, version = start.rpartition(":")
    source = get_registry(where) if where else place
    require(actor, "schema.read", registry=source.name, subject=name.qualified)
    found = selectors.get_version(source, name, version)
    rows = tuple((item.name, item.subject, str(item.version)) for item in found.schema.references)
    return Form(_editable(found), found.schema.schema_type, how, rows, asked.get("level", ""), link)


def _editable(info: selectors.VersionInfo) -> str:
    """The text to change. Of a long one what fits stays on a line: each line of a field costs a browser time."""
    text = info.schema.text
    is_short = info.schema.schema_type == "PROTOBUF" or len(text) < LONG_TEXT
    return for_people(info) if is_short else laid_out(text, width=LINE_WIDTH)
