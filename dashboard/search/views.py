"""The search page: results of a query, and recognition of pasted schemas and messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from dashboard.components import translation
from dashboard.components.badges import RequestKind, RequestState, format_name, missing_words
from dashboard.components.forms import LongTextField, StyledField
from dashboard.components.frame import environment_of, make_frame, page_actor
from dashboard.components.links import subject_url, term_url
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import ActiveFilter, Environment, Frame, Link, Problem, Section
from dashboard.search.suggestions import exact_url
from dashboard.subjects.page import field_url
from registry.errors import InvalidInput
from registry.promotions.selectors import list_environments
from registry.search.query import OPERATORS, Query, Term, parse_query
from registry.search.results import (
    DOCS,
    FIELDS,
    IDS,
    MOST_COUNTED,
    REQUESTS,
    SUBJECTS,
    TAGS,
    TERMS,
    TYPES,
    FieldHit,
    Group,
    IdHit,
    Pasted,
    RequestHit,
    SearchResult,
    SubjectHit,
    TagHit,
    TermHit,
    TypeHit,
)
from registry.search.selectors import find_pasted, looks_pasted, search_group
from registry.search.selectors import search as run_search
from registry.search.selectors.conditions import require_sight
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """A line of the help: what an operator finds, with an example that links to its results."""

    name: str
    finds: str
    example: Link


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """A hit. `title` is what was found and `above` its parent; `similar` marks an inexact match.

    `facts` and `tags` are short. `problem` says why no details are known.
    """

    title: str
    url: str
    environment: Environment | None = None
    above: str = ""
    above_url: str = ""
    facts: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    text: str = ""
    problem: str = ""
    similar: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultGroup:
    """Hits of a kind. `count` is in words ("1,000+"); `all_url` lists all of them, `next_url` is the next page."""

    code: str
    title: str
    icon: str
    count: str
    rows: tuple[ResultRow, ...]
    all_url: str = ""
    first_url: str = ""
    next_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastedPart:
    """The recognised kind of a pasted text.

    `equal` and `nearest` are schemas like a pasted one; `decode_url` opens the page that decodes a `message`.
    """

    what: str
    facts: tuple[str, ...] = ()
    problem: Problem | None = None
    equal: tuple[ResultRow, ...] = ()
    nearest: tuple[ResultRow, ...] = ()
    decode_url: str = ""
    message: str = ""


class PasteForm(forms.Form):
    """The form of a schema or a message to recognise."""

    bound_field_class = StyledField

    pasted = LongTextField(
        label=_("A schema or a message"),
        rows=6,
        code=True,
        help_text=_(
            "A schema finds the subjects that have it and the most similar subjects. A message (hexadecimal or "
            "base64) finds the version that wrote it. The pasted text is not stored."
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """The search with its results. `query` is as typed, `chips` are its parts, each of which can be removed.

    `only` is the group that is shown alone, "" for all.
    """

    frame: Frame
    url: str
    query: str
    chips: tuple[ActiveFilter, ...] = ()
    groups: tuple[ResultGroup, ...] = ()
    only: str = ""
    suggestions: tuple[Link, ...] = ()
    problem: Problem | None = None
    indexing: bool = False
    operators: tuple[OperatorRow, ...] = ()
    pasted: PastedPart | None = None
    paste: PasteForm | None = None
    is_asked: bool = False


PAGE_ROWS: Final = 50
#: group → label, icon
GROUPS: Final[Mapping[str, tuple[str, str]]] = {
    SUBJECTS: (_("Subjects"), "layers"),
    FIELDS: (_("Fields"), "list-tree"),
    TYPES: (_("Types"), "braces"),
    DOCS: (_("Fields by description"), "file-text"),
    IDS: (_("Ids"), "scan-search"),
    REQUESTS: (_("Requests"), "git-pull-request-arrow"),
    TAGS: (_("Tags"), "circle-dot"),
    TERMS: (_("Business terms"), "file-text"),
}


def search_page(request: HttpRequest) -> SearchPage:
    """Return the results for a query or a pasted text. Raises NotSignedIn, NotAllowed."""
    actor = page_actor(request)
    require_sight(actor)
    text = request.GET.get("q", "").strip() if request.method != "POST" else ""
    pasted_text = request.POST.get("pasted", "") if request.method == "POST" else text if looks_pasted(text) else ""
    results, problem, pasted = SearchResult(query=""), None, None
    groups: tuple[ResultGroup, ...] = ()
    only, order = request.GET.get("group", ""), list_environments()
    try:
        if pasted_text.strip():
            pasted = _pasted(find_pasted(pasted_text, by=actor), pasted_text, order)
        elif request.method == "POST":
            raise InvalidInput(gettext("Paste a schema, or a message with its schema id as hexadecimal or base64."))
        elif only:
            cursor = request.GET.get("cursor", "")
            page = search_group(text, only, by=actor, cursor=cursor, limit=PAGE_ROWS)
            groups = (_group(page, text, order, only),)
        else:
            results = run_search(text, by=actor)
            groups = tuple(_group(group, text, order) for group in results.groups if group.hits)
    except InvalidInput as error:
        problem = Problem(what=error.message)
    return SearchPage(
        frame=make_frame(request, title=gettext("Search"), section=Section.SEARCH),
        url=reverse("ui:search"),
        query=text,
        chips=() if problem or pasted_text else _chips(text),
        groups=groups,
        only=only if only in GROUPS and not problem else "",
        suggestions=tuple(
            Link(label=name, url=_url(Query((Term("field", name),)).text)) for name in results.suggestions
        ),
        problem=problem,
        indexing=results.indexing,
        operators=tuple(
            OperatorRow(name=row.name, finds=row.finds, example=Link(label=row.example, url=_url(row.example)))
            for row in OPERATORS.values()
        ),
        pasted=pasted,
        paste=PasteForm(initial={"pasted": pasted_text[:10_000] if request.method == "POST" else ""}),
        is_asked=bool(text or pasted_text),
    )


def _url(query: str, **more: str) -> str:
    return reverse("ui:search") + "?" + urlencode({"q": query, **more})


def _chips(text: str) -> tuple[ActiveFilter, ...]:
    """Return a chip for each part of the query, linked to the query without it."""
    query = parse_query(text)
    if len(query.terms) < 2 and not query.has_operators:
        return ()
    return tuple(
        ActiveFilter(label=term.text, url=_url(query.without(number).text)) for number, term in enumerate(query.terms)
    )


def _group(group: Group, text: str, order: list[str], only: str = "") -> ResultGroup:
    title, icon = GROUPS[group.name]
    return ResultGroup(
        code=group.name,
        title=title,
        icon=icon,
        count=counted(group.total, more=group.more),
        rows=_rows(group.hits, order),
        all_url="" if only or not group.cursor else _url(text, group=group.name),
        first_url=_url(text) if only else "",
        next_url=_url(text, group=group.name, cursor=group.cursor) if only and group.cursor else "",
    )


def counted(total: int | None, *, more: bool) -> str:
    """Format a count; "" if unknown."""
    if total is None:
        return ""
    return f"{min(total, MOST_COUNTED):,}{'+' if more else ''}"


def _subject(hit: SubjectHit, order: list[str]) -> ResultRow:
    shared = (
        (
            gettext("%(shared)s shared names, %(share)s of both")
            % {"shared": f"{hit.shared:,}", "share": f"{hit.share:.0%}"},
        )
        if hit.shared
        else ()
    )
    is_untold = hit.problem or missing_words(hit.schema_type, "outline")
    size = () if is_untold else (translation.counted(hit.field_count, "%(n)s field", "%(n)s fields"),)
    return ResultRow(
        title=hit.subject,
        url=subject_url(hit.registry, hit.subject),
        environment=environment_of(hit.registry, order),
        facts=(gettext("version %(version)s") % {"version": hit.version}, format_name(hit.schema_type), *size, *shared),
        tags=hit.tags,
        text=hit.doc,
        problem=hit.problem,
        similar=hit.similar,
    )


def _field(hit: FieldHit, order: list[str]) -> ResultRow:
    return ResultRow(
        title=hit.path,
        url=field_url(hit.registry, hit.subject, hit.version, hit.position),
        environment=environment_of(hit.registry, order),
        above=hit.subject,
        above_url=subject_url(hit.registry, hit.subject),
        facts=(hit.type, gettext("version %(version)s") % {"version": hit.version}),
        tags=hit.tags,
        text=hit.doc,
        similar=hit.similar,
    )


def _type(hit: TypeHit, order: list[str]) -> ResultRow:
    query = Query((Term("type", hit.type),)).text
    return ResultRow(
        title=hit.type,
        url=_url(query),
        facts=(gettext("%(field_count)s fields") % {"field_count": counted(hit.field_count, more=hit.more)},),
    )


def _id(hit: IdHit, order: list[str]) -> ResultRow:
    context = () if hit.context == DEFAULT_CONTEXT else (gettext("context %(context)s") % {"context": hit.context},)
    return ResultRow(
        title=gettext("%(subject)s version %(version)s") % {"subject": hit.subject, "version": hit.version},
        url=subject_url(hit.registry, hit.subject, version=hit.version),
        environment=environment_of(hit.registry, order),
        facts=(
            gettext("schema id %(schema_id)s") % {"schema_id": hit.schema_id},
            *context,
            *((gettext("soft-deleted"),) if hit.deleted else ()),
        ),
        text=gettext("GUID %(guid)s") % {"guid": hit.guid},
    )


def _request(hit: RequestHit, order: list[str]) -> ResultRow:
    about = (
        gettext("%(subject)s version %(version)s") % {"subject": hit.subject, "version": hit.version}
        if hit.version
        else hit.subject
    )
    return ResultRow(
        title=f"#{hit.id} {about}",
        url=reverse("ui:promotion", args=[hit.id]),
        environment=environment_of(hit.target, order),
        facts=(RequestKind.of(hit.kind).look.word, RequestState.of(hit.state).look.word),
        text=hit.reason,
    )


def _tag(hit: TagHit, order: list[str]) -> ResultRow:
    query = Query((Term("tag", hit.tag),)).text
    subjects = counted(hit.subject_count, more=hit.more)
    fact = ngettext("%(n)s subject", "%(n)s subjects", 1 if subjects == "1" else 2) % {"n": subjects}
    return ResultRow(title=hit.tag, url=_url(query), facts=(fact,))


def _term(hit: TermHit, order: list[str]) -> ResultRow:
    fields = translation.counted(hit.field_count, "%(n)s field", "%(n)s fields")
    return ResultRow(
        title=hit.name, url=term_url(hit.name), facts=tuple(filter(None, (hit.owner, fields))), text=hit.doc
    )


_ROWS: Final[Mapping[type, Callable[[Any, list[str]], ResultRow]]] = {
    SubjectHit: _subject,
    FieldHit: _field,
    TypeHit: _type,
    IdHit: _id,
    RequestHit: _request,
    TagHit: _tag,
    TermHit: _term,
}


# -- pasted ------------------------------------------------------------------------------------------------------------


def _marked(kind: str, value: object) -> str:
    sentence = gettext("schema id %(value)s") if kind == "id" else gettext("schema GUID %(value)s")
    return sentence % {"value": value}


def _pasted(match: Pasted, text: str, order: list[str]) -> PastedPart:
    if match.what == "message":
        return PastedPart(
            what=gettext("Message"),
            facts=(_marked(match.mark.kind, match.mark.value),) if match.mark else (),
            problem=Problem(what=match.problem) if match.problem else None,
            equal=_rows(match.ids, order),
            decode_url=reverse("ui:decode"),
            message=text,
        )
    return PastedPart(
        what=gettext("Schema"),
        facts=(
            gettext("%(schema_type)s, %(fields)s field names")
            % {"schema_type": format_name(match.schema_type), "fields": f"{match.fields:,}"},
            gettext("fingerprint %(fingerprint)s") % {"fingerprint": match.fingerprint},
        )
        if not match.problem
        else (),
        problem=Problem(
            what=gettext("The pasted text looks like a schema but can’t be read as one."), detail=match.problem
        )
        if match.problem
        else None,
        equal=_rows(match.equal, order),
        nearest=_rows(match.nearest, order),
    )


def _rows(hits: Sequence[Any], order: list[str]) -> tuple[ResultRow, ...]:
    """Convert hits to rows; `order` are the environments' names."""
    return tuple(_ROWS[type(hit)](hit, order) for hit in hits)


@sensitive_post_parameters("pasted")
@require_http_methods(["GET", "HEAD", "POST"])
def search(request: HttpRequest) -> HttpResponse:
    """Show the results of a query; on POST, recognise a pasted schema or message, which isn't stored.

    With `go`, as the box of every page sends it, the exact name of a subject opens the subject.
    """
    if request.GET.get("go") and (url := exact_url(request.GET.get("q", ""), page_actor(request))):
        return redirect(url)
    page = search_page(request)
    return render(request, "search/search.html", {"page": page}, status=422 if page.problem else 200)
