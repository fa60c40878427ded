"""The search box's page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext, ngettext

from dashboard import texts
from dashboard.links import subject_url
from dashboard.pages.frame import environment_of, make_frame, page_actor
from dashboard.pages.subjects import field_url
from dashboard.presenters.frame import Action, ActiveFilter, Field, Link, Problem, Section
from dashboard.presenters.looks import RequestKind, RequestState, format_name
from dashboard.presenters.search import OperatorRow, PastedPart, ResultGroup, ResultRow, SearchPage
from dashboard.texts import later
from registry.errors import InvalidInput
from registry.promotions.selectors import list_environments
from registry.search.found import (
    DOCS,
    FIELDS,
    IDS,
    MOST_COUNTED,
    REQUESTS,
    SUBJECTS,
    TAGS,
    TYPES,
    FieldHit,
    Found,
    Group,
    IdHit,
    Pasted,
    RequestHit,
    SubjectHit,
    TagHit,
    TypeHit,
)
from registry.search.query import OPERATORS, Query, Term, parse_query
from registry.search.selectors import find_pasted, looks_pasted, search, search_group
from registry.search.sight import require_sight
from registry.subjects.names import DEFAULT_CONTEXT

PAGE_ROWS: Final = 50
#: group → what it is called, and its icon
GROUPS: Final[Mapping[str, tuple[str, str]]] = {
    SUBJECTS: (later("Subjects"), "layers"),
    FIELDS: (later("Fields"), "list-tree"),
    TYPES: (later("Types"), "braces"),
    DOCS: (later("Fields by description"), "file-text"),
    IDS: (later("Ids"), "scan-search"),
    REQUESTS: (later("Requests"), "git-pull-request-arrow"),
    TAGS: (later("Tags"), "circle-dot"),
}


def search_page(request: HttpRequest) -> SearchPage:
    """What a query or a pasted text finds. Raises NotSignedIn, NotAllowed."""
    actor = page_actor(request)
    require_sight(actor)
    text = request.GET.get("q", "").strip() if request.method != "POST" else ""
    given = request.POST.get("pasted", "") if request.method == "POST" else text if looks_pasted(text) else ""
    found, problem, pasted = Found(query=""), None, None
    groups: tuple[ResultGroup, ...] = ()
    only, order = request.GET.get("group", ""), list_environments()
    try:
        if given.strip():
            pasted = _pasted(find_pasted(given, by=actor), given, order)
        elif request.method == "POST":
            raise InvalidInput(gettext("Paste a schema, or a message that names its schema, as hexadecimal or base64."))
        elif only:
            cursor = request.GET.get("cursor", "")
            page = search_group(text, only, by=actor, cursor=cursor, limit=PAGE_ROWS)
            groups = (_group(page, text, order, only),)
        else:
            found = search(text, by=actor)
            groups = tuple(_group(group, text, order) for group in found.groups if group.hits)
    except InvalidInput as error:
        problem = Problem(what=error.message)
    return SearchPage(
        frame=make_frame(request, title=gettext("Search"), section=Section.SEARCH),
        url=reverse("ui:search"),
        query=text,
        chips=() if problem or given else _chips(text),
        groups=groups,
        only=only if only in GROUPS and not problem else "",
        suggestions=tuple(Link(label=name, url=_url(Query((Term("field", name),)).text)) for name in found.suggestions),
        problem=problem,
        indexing=found.indexing,
        operators=tuple(
            OperatorRow(name=row.name, finds=row.finds, example=Link(label=row.example, url=_url(row.example)))
            for row in OPERATORS.values()
        ),
        pasted=pasted,
        paste=Field(
            name="pasted",
            label=gettext("A schema or a message"),
            kind="textarea",
            rows=6,
            code=True,
            required=True,
            value=given[:10_000] if request.method == "POST" else "",
            help=gettext(
                "A schema finds the subjects that have it and those nearest to it; a message, as hexadecimal or base64,"
                " the version that wrote it. Nothing of it is kept."
            ),
        ),
        submit=Action(label=gettext("Find"), url=reverse("ui:search"), method="post"),
        asked=bool(text or given),
    )


def _url(query: str, **more: str) -> str:
    return reverse("ui:search") + "?" + urlencode({"q": query, **more})


def _chips(text: str) -> tuple[ActiveFilter, ...]:
    """Each part of the query, with the query without it."""
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
    """A count in words; "" where it isn't known."""
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
    size = () if hit.problem else (texts.counted(hit.field_count, "%(n)s field", "%(n)s fields"),)
    return ResultRow(
        title=hit.subject,
        url=subject_url(hit.registry, hit.subject),
        place=environment_of(hit.registry, order),
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
        place=environment_of(hit.registry, order),
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
        place=environment_of(hit.registry, order),
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
        place=environment_of(hit.target, order),
        facts=(RequestKind.of(hit.kind).look.word, RequestState.of(hit.state).look.word),
        text=hit.reason,
    )


def _tag(hit: TagHit, order: list[str]) -> ResultRow:
    query = Query((Term("tag", hit.tag),)).text
    subjects = counted(hit.subject_count, more=hit.more)
    fact = ngettext("%(n)s subject", "%(n)s subjects", 1 if subjects == "1" else 2) % {"n": subjects}
    return ResultRow(title=hit.tag, url=_url(query), facts=(fact,))


_ROWS: Final[Mapping[type, Callable[[Any, list[str]], ResultRow]]] = {
    SubjectHit: _subject,
    FieldHit: _field,
    TypeHit: _type,
    IdHit: _id,
    RequestHit: _request,
    TagHit: _tag,
}


# -- pasted -------------------------------------------------------------------------------------------------------------


def _marked(kind: str, value: object) -> str:
    said = gettext("its schema has the id %(value)s") if kind == "id" else gettext("its schema has the GUID %(value)s")
    return said % {"value": value}


def _pasted(found: Pasted, given: str, order: list[str]) -> PastedPart:
    if found.what == "message":
        return PastedPart(
            what=gettext("A message"),
            facts=(_marked(found.mark.kind, found.mark.value),) if found.mark else (),
            problem=Problem(what=found.problem) if found.problem else None,
            equal=_rows(found.ids, order),
            decode_url=reverse("ui:decode"),
            message=given,
        )
    return PastedPart(
        what=gettext("A schema"),
        facts=(
            gettext("%(schema_type)s, %(fields)s names of fields")
            % {"schema_type": format_name(found.schema_type), "fields": f"{found.fields:,}"},
            gettext("fingerprint %(fingerprint)s") % {"fingerprint": found.fingerprint},
        )
        if not found.problem
        else (),
        problem=Problem(
            what=gettext("The pasted text looks like a schema and can't be read as one."), detail=found.problem
        )
        if found.problem
        else None,
        equal=_rows(found.equal, order),
        nearest=_rows(found.nearest, order),
    )


def _rows(hits: Sequence[Any], order: list[str]) -> tuple[ResultRow, ...]:
    """The hits as rows; `order` is that of the environments."""
    return tuple(_ROWS[type(hit)](hit, order) for hit in hits)
