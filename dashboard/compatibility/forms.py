"""Forms with a schema text, and the initial schema of a compatibility report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext

from dashboard.compatibility.presenters import SyntaxProblem, snippet
from dashboard.components.badges import format_name
from dashboard.components.diff import laid_out
from dashboard.components.forms import LongTextField, ServiceForm
from dashboard.components.frame import page_actor
from dashboard.components.links import whole_number
from dashboard.components.translation import gettext_lazy as _
from dashboard.subjects.page import for_people
from registry.access.roles import require
from registry.errors import InvalidReference, InvalidSchema, NotFound, SchemadeskError
from registry.formats import DEFAULT_FORMAT, FORMATS, format_of
from registry.formats.base import Reference
from registry.formats.compatibility import LEVELS
from registry.formats.report import Profile
from registry.promotions.selectors import get_draft
from registry.subjects import selectors
from registry.subjects.versions.lookup import Registry, get_registry
from registry.subjects.versions.qualified_names import SubjectName

MAX_REFERENCES: Final = 100
#: above this length, JSON is formatted in lines of LINE_WIDTH: a line per item would be thousands
LONG_TEXT: Final = 50_000
LINE_WIDTH: Final = 120
_LATEST: Final = ("latest", "-1", "")
_EMPTY_ROWS: Final = 2
_COLUMNS: Final = ("ref_name", "ref_subject", "ref_version")
_PROFILES: Final[tuple[tuple[Profile, str], ...]] = (
    ("confluent", _("the established rules (confluent)")),
    ("semantic", _("effects on data (semantic)")),
)
#: URL parameters of a report's text and options
_LINK: Final = ("version", "from", "draft", "profile", "level")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRow:
    """A reference as typed; `number` counts from 1."""

    number: int
    name: str = ""
    subject: str = ""
    version: str = ""
    error: str = ""


class ReferencesInput(forms.Widget):
    """Rows of three inputs (`components/references.html`); the value is the rows as typed."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[tuple[str, ...]]:
        """Return the rows that aren't empty."""
        if not hasattr(data, "getlist"):
            return list(data.get(name, ()))
        columns = [[text.strip() for text in data.getlist(column)] for column in _COLUMNS]
        return [row for row in zip(*columns, strict=False) if row[0] or row[1]]


class ReferencesField(forms.Field):
    """References to other subjects."""

    widget = ReferencesInput

    def to_python(self, value: Any) -> list[Reference]:
        """Return the references; the code of an error is the name of its reference."""
        rows = value or ()
        if len(rows) > MAX_REFERENCES:
            raise forms.ValidationError(
                gettext("This form can’t send more than %(max_references)s references.")
                % {"max_references": MAX_REFERENCES}
            )
        return [Reference(name, subject, _version(name, version)) for name, subject, version in rows]


def _version(name: str, version: str) -> int:
    number = -1 if version in _LATEST else whole_number(version, digits=10)
    if number is None:
        message = gettext("%(version)s is not a valid version. Enter a number or latest.")
        raise forms.ValidationError(message % {"version": repr(version[:20])}, code=name)
    return number


def typed_rows(references: Iterable[Reference]) -> list[tuple[str, str, str]]:
    """Convert references to rows of the form."""
    return [(item.name, item.subject, str(item.version)) for item in references]


def _formats() -> list[tuple[str, str]]:
    return [(kind, format_name(kind)) for kind in sorted(FORMATS)]


class SchemaForm(ServiceForm):
    """A form of a schema with its format and references; `error` is the service's error."""

    conditional = ("text",)
    refusals: ClassVar[tuple[type[SchemadeskError], ...]] = (SchemadeskError,)
    error: SchemadeskError | None = None

    schema_type = forms.ChoiceField(label=_("Format"), choices=_formats, required=False, initial=DEFAULT_FORMAT)
    text = LongTextField(label=_("Text"), rows=18, code=True, required=False, strip=False)
    references = ReferencesField(required=False)

    def __init__(self, data: Any = None, **options: Any) -> None:
        super().__init__(data, **options)
        self.fields["text"].widget.attrs["required"] = True

    def clean_schema_type(self) -> str:
        """Return the format, the default one if empty."""
        return self.cleaned_data["schema_type"] or DEFAULT_FORMAT

    def clean_text(self) -> str:
        """Return the text with the original line endings; a browser sends CRLF."""
        text: str = self.cleaned_data["text"]
        return text.replace("\r\n", "\n")

    def add_service_error(self, error: SchemadeskError) -> None:
        """Keep the error; an error of a reference is added to its row."""
        self.error = error
        if isinstance(error, InvalidReference):
            code = str(error.details.get("reference", ""))
            self.add_error("references", forms.ValidationError(error.message, code=code))
        else:
            super().add_service_error(error)

    @property
    def rows(self) -> list[ReferenceRow]:
        """Return the references as typed, and a few empty rows."""
        errors = self.errors.get("references")
        failing = {error.code: " ".join(error.messages) for error in errors.as_data()} if errors else {}
        typed = [*(self["references"].value() or ()), *[("", "", "")] * _EMPTY_ROWS]
        return [
            ReferenceRow(
                number=number, name=name, subject=subject, version=version, error=failing.get(name, "") if name else ""
            )
            for number, (name, subject, version) in enumerate(typed, start=1)
        ]

    @property
    def syntax(self) -> SyntaxProblem | None:
        """The syntax error, if that is the error."""
        return syntax_problem(self.cleaned_data["text"], self.error) if isinstance(self.error, InvalidSchema) else None

    @property
    def schema(self) -> dict[str, Any]:
        """The text, format and references as arguments."""
        return {name: self.cleaned_data[name] for name in ("text", "schema_type", "references")}


def syntax_problem(text: str, error: InvalidSchema) -> SyntaxProblem:
    """Return the error with the lines of the text around it."""
    return SyntaxProblem(
        message=error.message,
        line=error.line,
        column=error.column,
        snippet=snippet(text, error.line, error.column) if error.line else (),
    )


class ReportForm(SchemaForm):
    """A form that reports what registering the schema would do; `level` is empty for the one in force.

    `link` are the URL parameters that open the form with this text; empty if the text has no URL.
    """

    service: ClassVar[Callable[..., object]] = staticmethod(selectors.report_proposal)
    link: Mapping[str, str] = {}

    level = forms.ChoiceField(label=_("Level"), required=False)
    profile = forms.ChoiceField(label=_("Verdict by"), choices=_PROFILES, required=False)
    text = LongTextField(
        label=_("Schema"),
        rows=16,
        code=True,
        required=False,
        strip=False,
        help_text=_("The full text. It starts as the newest version. Edit it or paste your own."),
    )

    def __init__(self, data: Any = None, *, current: str, **options: Any) -> None:
        """Create the form; `current` is the level in force."""
        super().__init__(data, **options)
        label = gettext("%(level)s (current)") % {"level": current}
        cast(forms.ChoiceField, self.fields["level"]).choices = [("", label), *((name, name) for name in LEVELS)]

    def arguments(self) -> dict[str, Any]:
        """Return the schema and the options."""
        return self.schema | {name: self.cleaned_data[name] or None for name in ("profile", "level")}

    @property
    def wishes(self) -> dict[str, str]:
        """The selected profile and level."""
        return {name: self[name].value() or "" for name in ("profile", "level")}

    @property
    def carried(self) -> list[tuple[str, str]]:
        """Return all values but the text, for a form that sends another text."""
        values = [("schema_type", self["schema_type"].value() or ""), *self.wishes.items()]
        rows = [pair for row in self["references"].value() or () for pair in zip(_COLUMNS, row, strict=True)]
        return [*values, *rows]


def newest_values(registry: Registry, name: SubjectName) -> dict[str, Any]:
    """Return the form's initial values: the newest version, if any."""
    try:
        return _version_values(selectors.get_version(registry, name, "latest"))
    except NotFound:
        return {}


def linked_values(request: HttpRequest, registry: Registry, name: SubjectName) -> dict[str, Any] | None:
    """Return the values of the text that the URL names; None if it names none.

    `version=3` is a version of the subject here, `from=dev:3` one of the same subject in another registry, `draft=7`
    one of the reader's drafts. Raises NotAllowed, VersionNotFound, DraftNotFound, RegistryNotFound.
    """
    query, actor = request.GET, page_actor(request)
    if draft := query.get("draft"):
        info = get_draft(whole_number(draft) or 0, user_id=actor.user_id or 0)
        rows = typed_rows(info.references)
        return {"text": info.text, "schema_type": info.schema_type, "references": rows}
    start = query.get("from") or query.get("version")
    if not start:
        return None
    where, _, version = start.rpartition(":")
    source = get_registry(where) if where else registry
    require(actor, "schema.read", registry=source.name, subject=name.qualified)
    return _version_values(selectors.get_version(source, name, version))


def link_of(request: HttpRequest) -> dict[str, str]:
    """Return the URL parameters of the text and options."""
    return {name: request.GET[name] for name in _LINK if request.GET.get(name)}


def _version_values(info: selectors.VersionInfo) -> dict[str, Any]:
    schema = info.schema
    # a long text is wrapped to the width: each line in a text field costs the browser time
    is_short = not format_of(schema.schema_type).is_json or len(schema.text) < LONG_TEXT
    text = for_people(info) if is_short else laid_out(schema.text, width=LINE_WIDTH)
    return {"text": text, "schema_type": schema.schema_type, "references": typed_rows(schema.references)}
