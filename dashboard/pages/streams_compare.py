"""Two versions of a state variable: what Spark makes of the change, then the Avro schemas that it derives."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.pages.change_cards import MAX_CARDS, present_comparison
from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.numbers import whole_number
from dashboard.pages.state import present_change
from dashboard.pages.streams import crumbs
from dashboard.pages.streams_variable import changes_between, choices, ddl, look_of, query_crumb, version_of
from dashboard.presenters.comparison import Comparison
from dashboard.presenters.frame import Crumb, Problem, Section
from dashboard.presenters.streams import StateComparePage
from dashboard.presenters.text_diff import text_diff
from registry.errors import SchemadeskError
from registry.streams.infos import QueryInfo, SchemaInfo, VariableInfo
from registry.streams.queries import get_query, get_variable
from registry.subjects import engines, selectors
from registry.subjects.names import SubjectName
from registry.subjects.selectors.versions import SchemaInfo as DefinitionInfo
from registry.subjects.selectors.versions import VersionInfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def compare_page(request: HttpRequest, query_id: int, variable_id: int) -> StateComparePage:
    """The page of `?from=1&to=2`; without them the newest version and the one before. Raises NotFound, NotAllowed."""
    query = get_query(query_id, by=page_actor(request))
    variable = get_variable(query_id, variable_id)
    numbers = [each.version for each in variable.schemas]
    asked = {side: whole_number(request.GET.get(side, "")) for side in ("from", "to")}
    new = version_of(variable, asked["to"] if request.GET.get("to") else max(numbers, default=None))
    earlier = [number for number in numbers if number < new.version]
    old = version_of(variable, asked["from"] if request.GET.get("from") else (earlier or [new.version])[-1])
    changes = changes_between(variable, old, new)
    is_whole, view = request.GET.get("all") == "1", request.GET.get("view") or ""
    comparison, problem = _avro(query, variable, old, new, is_whole=is_whole)
    here = reverse("ui:state_variable_compare", args=[query.id, variable.id])
    place = reverse("ui:state_variable", args=[query.id, variable.id])

    def url(**more: str) -> str:
        return f"{here}?{urlencode({'from': old.version, 'to': new.version, **more})}"

    whole = {"all": "1"} if is_whole else {}
    return StateComparePage(
        frame=make_frame(
            request,
            title=gettext("Compare version %(old)s and version %(new)s") % {"old": old.version, "new": new.version},
            section=Section.QUERIES,
            crumbs=(*crumbs(), query_crumb(query), Crumb(label=variable.label, url=place, code=True)),
        ),
        look=look_of(changes),
        sentence=_sentence(variable, old, new, len(changes)),
        changes=tuple(present_change(each.to_dict()) for each in changes),
        compare_url=here,
        compare_from=choices(variable, old),
        compare_to=choices(variable, new),
        comparison=comparison,
        text=text_diff(ddl_lines(old), ddl_lines(new)),
        view="split" if view == "split" else "unified",
        unified_url=url(**whole),
        split_url=url(view="split", **whole),
        problem=problem,
        all_url="" if is_whole else url(**({"view": "split"} if view == "split" else {}), all="1"),
    )


def ddl_lines(version: SchemaInfo) -> str:
    """Value and keys of a version as DDL, a column a line."""
    value = fields_as_ddl(version.value_schema)
    keys = [gettext("key: %(ddl)s") % {"ddl": ddl(version.key_schema)}]
    if version.map_key_schema:
        keys.append(gettext("map key: %(ddl)s") % {"ddl": ddl(version.map_key_schema)})
    return "\n".join([*keys, *value])


def fields_as_ddl(schema: str) -> list[str]:
    """Each field of a struct as DDL; the text itself where it isn't a struct."""
    try:
        return [ddl(json.dumps({"type": "struct", "fields": [each]})) for each in json.loads(schema)["fields"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return [schema]


def _sentence(variable: VariableInfo, old: SchemaInfo, new: SchemaInfo, changes: int) -> str:
    if not changes:
        return gettext("Rows written with the older version read as they were written.")
    by = (
        gettext("by name, as Avro does")
        if variable.encoding == "avro"
        else gettext("by position, as values don't evolve here")
    )
    said = {"old": old.version, "new": new.version, "by": by}
    if new.batch is None:
        return gettext("Spark reads rows of version %(old)s with version %(new)s, field %(by)s.") % said
    return gettext(
        "Spark reads rows of version %(old)s with version %(new)s from batch %(batch)s on, field %(by)s."
    ) % {
        **said,
        "batch": f"{new.batch:,}",
    }


def _avro(
    query: QueryInfo, variable: VariableInfo, old: SchemaInfo, new: SchemaInfo, *, is_whole: bool
) -> tuple[Comparison | None, Problem | None]:
    """The comparison of the derived Avro schemas, as for a subject's versions; a problem where there is none."""
    for side in (old, new):
        if not side.avro_schema:
            return None, Problem(
                what=gettext("Version %(version)s has no Avro form: %(why_no_avro)s")
                % {"version": side.version, "why_no_avro": side.why_no_avro}
            )
    infos = [_as_version(query, variable, side) for side in (old, new)]
    try:
        before, after = (engines.parse("AVRO", side.avro_schema, is_new=False) for side in (old, new))
        backward, forward = engines.check_both(after, (old.version, before), profile="confluent")
        found = selectors.Comparison(
            infos[0],
            infos[1],
            differences=engines.diff(before, after),
            same_meaning=before.fingerprint == after.fingerprint,
            backward=backward,
            forward=forward,
        )
    except SchemadeskError as error:
        return None, Problem(
            what=gettext("The derived Avro schemas can't be compared: %(message)s") % {"message": error.message}
        )
    limit = None if is_whole else MAX_CARDS
    shown = present_comparison(found, query.registry, query.registry, level="BACKWARD", limit=limit)
    # The two sides are no versions of a subject: their addresses are the variable's own.
    place = reverse("ui:state_variable", args=[query.id, variable.id])
    sides = [
        replace(side, url=f"{place}?version={side.version}", schema_id=None, registered_at=None)
        for side in (shown.old, shown.new)
    ]
    return replace(shown, old=sides[0], new=sides[1]), None


def _as_version(query: QueryInfo, variable: VariableInfo, version: SchemaInfo) -> VersionInfo:
    """A derived schema in the form that comparisons take; it has no number in any registry."""
    definition = DefinitionInfo(version.schema_id, ".", "AVRO", version.avro_schema, "", "", (), None, None)
    return VersionInfo(
        id=0,
        subject=SubjectName(".", variable.label),
        version=version.version,
        schema=definition,
        submitted=version.avro_schema,
        created_at=version.written_at or _EPOCH,
        created_by=query.name,
        door="state",
        deleted=False,
    )
