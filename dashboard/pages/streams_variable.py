"""One state variable: its timeline, the schemas of a version, and what its rows hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.numbers import whole_number
from dashboard.pages.sources_words import sized
from dashboard.pages.streams import (
    EVOLVES,
    FIXED,
    REMOVED,
    check_action,
    crumbs,
    kind_words,
    meter,
)
from dashboard.presenters.frame import Choice, Crumb, Fact, Link, Section
from dashboard.presenters.looks import Look
from dashboard.presenters.state import EFFECT_LOOKS
from dashboard.presenters.streams import FieldRow, SchemaRow, VariablePage
from dashboard.texts import later
from registry.checkpoints.plans.ddl_text import to_ddl
from registry.errors import InvalidSchema, NotFound
from registry.formats.policies.spark_state import StateChange, schema_changes
from registry.formats.policies.spark_state.rules import EFFECTS
from registry.streams.infos import FieldInfo, QueryInfo, SchemaInfo, VariableInfo
from registry.streams.queries import get_query, get_variable

SAFE: Final = Look("ok", "circle-check", later("Safe"))
DRAWN_VERSIONS: Final = 200
NAMED_CHANGES: Final = 3
#: said wherever a variable has evolved
NOT_KNOWABLE: Final = later(
    "not knowable: Spark’s reader gives every row in the newest form, whichever version it is stored in"
)


def variable_page(request: HttpRequest, query_id: int, variable_id: int) -> VariablePage:
    """A variable; `version` in the query selects one of its versions. Raises NotFound, NotAllowed."""
    actor = page_actor(request)
    query = get_query(query_id, by=actor)
    variable = get_variable(query_id, variable_id)
    selected = _selected(variable, request.GET.get("version", ""))
    newest = variable.schemas[-1] if variable.schemas else None
    before = variable.schemas[-2] if len(variable.schemas) > 1 else newest
    return VariablePage(
        frame=make_frame(
            request,
            title=variable.label,
            section=Section.QUERIES,
            code=True,
            crumbs=(*crumbs(), query_crumb(query)),
        ),
        name=variable.label,
        kind=kind_words(variable),
        state=REMOVED if variable.removed_at is not None else FIXED if variable.why_fixed else EVOLVES,
        why_fixed=variable.why_fixed,
        versions=tuple(_rows(query, variable, selected)),
        selected=selected.version if selected else 0,
        schemas=tuple(_schemas(selected)) if selected else (),
        no_avro=selected.why_no_avro if selected else "",
        facts=tuple(_facts(query, variable)),
        budget=meter(variable.budget),
        rows_facts=tuple(_rows_facts(variable)),
        rows_at=variable.rows_at,
        rows_problem=variable.rows_problem,
        fields=tuple(_field(each) for each in variable.fields),
        compare_url=reverse("ui:state_variable_compare", args=[query.id, variable.id]),
        compare_from=choices(variable, before),
        compare_to=choices(variable, newest),
        check=check_action(actor, query.path),
    )


def query_crumb(query: QueryInfo) -> Crumb:
    """The step to a variable's query."""
    return Crumb(label=query.name, url=reverse("ui:query", args=[query.id]), code=True)


def choices(variable: VariableInfo, chosen: SchemaInfo | None) -> tuple[Choice, ...]:
    """The versions of a select, newest first."""
    return tuple(
        Choice(
            value=str(each.version),
            label=gettext("version %(version)s") % {"version": each.version},
            selected=each is chosen,
        )
        for each in reversed(variable.schemas)
    )


def version_of(variable: VariableInfo, number: int | None) -> SchemaInfo:
    """One version. Raises NotFound."""
    found = next((each for each in variable.schemas if each.version == number), None)
    if found is None:
        raise NotFound(
            gettext("State variable %(label)s has no such version.") % {"label": variable.label[:200]}, version=number
        )
    return found


def _selected(variable: VariableInfo, asked: str) -> SchemaInfo | None:
    if asked:
        return version_of(variable, whole_number(asked))
    return variable.schemas[-1] if variable.schemas else None


def changes_between(variable: VariableInfo, old: SchemaInfo, new: SchemaInfo) -> tuple[StateChange, ...]:
    """What Spark makes of the change of the value, worst first; nothing for what it has no name for."""
    try:
        found = schema_changes(old.value_schema, new.value_schema, has_evolution=variable.encoding == "avro")
    except InvalidSchema:
        return ()
    return tuple(sorted(found, key=lambda each: -EFFECTS.index(each.effect)))


def look_of(changes: Sequence[StateChange]) -> Look:
    """The worst of the changes."""
    worst = max((EFFECTS.index(each.effect) for each in changes), default=0)
    return EFFECT_LOOKS[EFFECTS[worst]] if worst else SAFE


def _rows(query: QueryInfo, variable: VariableInfo, selected: SchemaInfo | None) -> list[SchemaRow]:
    here = reverse("ui:state_variable", args=[query.id, variable.id])
    compare = reverse("ui:state_variable_compare", args=[query.id, variable.id])
    rows = []
    before: SchemaInfo | None = None
    for each in variable.schemas[-DRAWN_VERSIONS:]:
        changes = changes_between(variable, before, each) if before else ()
        rows.append(
            SchemaRow(
                version=each.version,
                url=f"{here}?version={each.version}#schemas",
                selected=each is selected,
                summary=_summary(before, each, changes),
                look=look_of(changes) if before else None,
                compare_url=f"{compare}?from={before.version}&to={each.version}" if before else "",
                schema_id=each.schema_id,
                batch="–" if each.batch is None else f"{each.batch:,}",
                start="–" if each.start is None else gettext("start %(start)s") % {"start": each.start},
                written_at=each.written_at,
                carries=tuple(
                    Link(
                        label=f"{carried.subject.qualified} v{carried.version}",
                        url=subject_url(query.registry, carried.subject.qualified, version=carried.version),
                    )
                    for carried in each.carried
                ),
            )
        )
        before = each
    return rows[::-1]


def _summary(before: SchemaInfo | None, new: SchemaInfo, changes: Sequence[StateChange]) -> str:
    if before is None:
        return gettext("first version")
    told = [each.message for each in changes[:NAMED_CHANGES]]
    if len(changes) > NAMED_CHANGES:
        told.append(gettext("and %(n)s more") % {"n": len(changes) - NAMED_CHANGES})
    if not told:
        is_key = (before.key_schema, before.map_key_schema) != (new.key_schema, new.map_key_schema)
        told = [gettext("its key changed") if is_key else gettext("no field changed")]
    return "; ".join(told)


def _schemas(version: SchemaInfo) -> list[tuple[str, str]]:
    shown = [(gettext("Value"), ddl(version.value_schema)), (gettext("Key"), ddl(version.key_schema))]
    if version.map_key_schema:
        shown.append((gettext("Map key"), ddl(version.map_key_schema)))
    if version.avro_schema:
        text = json.dumps(json.loads(version.avro_schema), indent=2, ensure_ascii=False)
        shown.append((gettext("The Avro schema that Spark derives"), text))
    return shown


def ddl(schema: str) -> str:
    """A schema as DDL, a field a line; as it is where it isn't one."""
    try:
        value: Any = json.loads(schema)
        return to_ddl(value) or gettext("(no fields)")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InvalidSchema):
        return schema


def _facts(query: QueryInfo, variable: VariableInfo) -> list[Fact]:
    facts = [
        Fact(label=gettext("Query"), value=query.name, code=True),
        Fact(label=gettext("Operator"), value=str(variable.operator)),
        Fact(label=gettext("Kind"), value=kind_words(variable)),
        Fact(label=gettext("Encoding"), value=variable.encoding, code=True),
    ]
    if variable.removed_at is not None:
        facts.append(
            Fact(
                label=gettext("Removed"),
                value=gettext("with batch %(removed_at)s") % {"removed_at": f"{variable.removed_at:,}"},
            )
        )
    return facts


def _rows_facts(variable: VariableInfo) -> list[Fact]:
    if variable.rows is None:
        return []
    facts = [Fact(label=gettext("Rows"), value=f"{variable.rows:,}")]
    if variable.keys is not None:
        keys = f"{variable.keys:,}"
        is_rough = variable.kind in ("list", "map")
        facts.append(Fact(label=gettext("Keys"), value=gettext("about %(n)s") % {"n": keys} if is_rough else keys))
    if variable.bytes is not None:
        facts.append(
            Fact(
                label=gettext("Size"),
                value=gettext("%(sized)s as read, before compression") % {"sized": sized(variable.bytes)},
            )
        )
    if variable.rows_batch is not None and variable.rows_batch >= 0:
        facts.append(Fact(label=gettext("As of"), value=gettext("batch %(n)s") % {"n": f"{variable.rows_batch:,}"}))
    if variable.expiry:
        ends = [_time(variable.expiry.get(end)) for end in ("earliest", "latest")]
        facts.append(
            Fact(label=gettext("Expires"), value=gettext("%(first)s to %(last)s") % {"first": ends[0], "last": ends[1]})
        )
        facts.append(Fact(label=gettext("Without expiry"), value=f"{variable.expiry.get('without') or 0:,}"))
    if len(variable.schemas) > 1:
        facts.append(Fact(label=gettext("Rows stored in an earlier version"), value=NOT_KNOWABLE))
    return facts


def _time(milliseconds: Any) -> str:
    if not isinstance(milliseconds, int) or not 0 <= milliseconds < 253_402_300_800_000:
        return gettext("never")
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def _range(ends: Sequence[str]) -> str:
    if len(ends) == 2 and ends[0] != ends[1]:
        return gettext("%(first)s to %(last)s") % {"first": ends[0], "last": ends[1]}
    return ends[0] if ends else ""


def _field(field: FieldInfo) -> FieldRow:
    percent = int(100 * field.filled)
    ends = [each for each in (field.minimum, field.maximum) if each is not None]
    return FieldRow(
        path=field.path,
        type=field.type,
        filled=gettext("%(number)s of %(rows)s")
        % {"number": f"{field.rows - field.nulls:,}", "rows": f"{field.rows:,}"},
        percent=percent,
        range=_range(ends),
        size="" if field.bytes is None else sized(field.bytes),
    )
