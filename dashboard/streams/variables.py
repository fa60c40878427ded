"""A state variable: its versions, the schemas of one, statistics of its rows, and a comparison of two versions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.compare.change_cards import MAX_CARDS, present_comparison
from dashboard.compare.comparison import VersionComparison
from dashboard.components.badges import Look
from dashboard.components.diff import TextDiff, text_diff
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import whole_number
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Action, Crumb, Frame, Problem, Section
from dashboard.sources.labels import sized
from dashboard.streams.queries import VariableRow, check_action, crumbs
from dashboard.streams.restart_check import EFFECT_LOOKS, ReportedChange
from registry.checkpoints.plans.model import to_ddl
from registry.errors import InvalidSchema, NotFound, SchemadeskError
from registry.formats.policies.spark_state import StateChange, schema_changes
from registry.formats.policies.spark_state.rules import EFFECTS
from registry.streams.selectors import FieldInfo, QueryInfo, SchemaInfo, VariableInfo, get_query, get_variable
from registry.subjects import selectors
from registry.subjects.engine import schema_engine
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import SchemaInfo as DefinitionInfo
from registry.subjects.versions.versions import VersionInfo

SAFE: Final = Look("ok", "circle-check", _("Safe"))
DRAWN_VERSIONS: Final = 200
NAMED_CHANGES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRow:
    """A version of a variable's schemas; `look` is the worst change since the version `before`, None for the first."""

    info: SchemaInfo
    before: int | None
    summary: str
    look: Look | None


@dataclass(frozen=True, slots=True)
class FieldRow:
    """Statistics of a field in a variable's rows."""

    info: FieldInfo

    @property
    def held(self) -> int:
        """The number of rows with a value."""
        return self.info.rows - self.info.nulls

    @property
    def percent(self) -> int:
        """The percentage of rows with a value."""
        return int(100 * self.info.filled)

    @property
    def range(self) -> str:
        """The minimum and maximum, masked."""
        ends = [limit for limit in (self.info.minimum, self.info.maximum) if limit is not None]
        if len(ends) == 2 and ends[0] != ends[1]:
            return gettext("%(first)s to %(last)s") % {"first": ends[0], "last": ends[1]}
        return ends[0] if ends else ""

    @property
    def size(self) -> str:
        """The size of its values."""
        return "" if self.info.bytes is None else sized(self.info.bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class VariablePage:
    """A state variable with its versions; `schemas` are (label, text) of the selected version.

    `old` and `new` are the versions to compare by default.
    """

    frame: Frame
    query: QueryInfo
    variable: VariableRow
    versions: tuple[SchemaRow, ...]
    selected: SchemaInfo | None
    schemas: tuple[tuple[str, str], ...]
    fields: tuple[FieldRow, ...]
    old: int
    new: int
    check: Action

    @property
    def size(self) -> str:
        """The size of its rows."""
        size = self.variable.info.bytes
        return "" if size is None else sized(size)

    @property
    def expiry(self) -> list[datetime | None]:
        """The times when the first and the last row expire; empty if unknown."""
        expiry = self.variable.info.expiry
        return [_time(expiry.get(end)) for end in ("earliest", "latest")] if expiry else []


@dataclass(frozen=True, slots=True, kw_only=True)
class StateComparePage:
    """Two versions of a variable: the effect of the change in Spark, and the Avro schemas that Spark derives."""

    frame: Frame
    query: QueryInfo
    variable: VariableRow
    old: int
    new: int
    look: Look
    sentence: str
    changes: tuple[ReportedChange, ...]
    comparison: VersionComparison | None
    text: TextDiff
    view: str
    unified_url: str
    split_url: str
    problem: Problem | None
    all_url: str = ""


def variable_page(request: HttpRequest, query_id: int, variable_id: int) -> VariablePage:
    """Return the page of a variable; `version` in the query selects a version. Raises NotFound, NotAllowed."""
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
        query=query,
        variable=VariableRow(variable),
        versions=tuple(_rows(variable)),
        selected=selected,
        schemas=tuple(_schemas(selected)) if selected else (),
        fields=tuple(map(FieldRow, variable.fields)),
        old=before.version if before else 0,
        new=newest.version if newest else 0,
        check=check_action(actor, query.path),
    )


def query_crumb(query: QueryInfo) -> Crumb:
    """Return the breadcrumb of a variable's query."""
    return Crumb(label=query.name, url=reverse("ui:query", args=[query.id]), code=True)


def version_of(variable: VariableInfo, number: int | None) -> SchemaInfo:
    """Return a version. Raises NotFound."""
    schema = next((candidate for candidate in variable.schemas if candidate.version == number), None)
    if schema is None:
        raise NotFound(
            gettext("State variable %(label)s doesn’t have this version.") % {"label": variable.label[:200]},
            version=number,
        )
    return schema


def _selected(variable: VariableInfo, number: str) -> SchemaInfo | None:
    if number:
        return version_of(variable, whole_number(number))
    return variable.schemas[-1] if variable.schemas else None


def changes_between(variable: VariableInfo, old: SchemaInfo, new: SchemaInfo) -> tuple[StateChange, ...]:
    """Return the effects of the value's change in Spark, worst first; empty for an invalid schema."""
    try:
        changes = schema_changes(old.value_schema, new.value_schema, has_evolution=variable.encoding == "avro")
    except InvalidSchema:
        return ()
    return tuple(sorted(changes, key=lambda change: -EFFECTS.index(change.effect)))


def look_of(changes: Sequence[StateChange]) -> Look:
    """Return the look of the worst change."""
    worst = max((EFFECTS.index(change.effect) for change in changes), default=0)
    return EFFECT_LOOKS[EFFECTS[worst]] if worst else SAFE


def _rows(variable: VariableInfo) -> list[SchemaRow]:
    rows = []
    before: SchemaInfo | None = None
    for schema in variable.schemas[-DRAWN_VERSIONS:]:
        changes = changes_between(variable, before, schema) if before else ()
        rows.append(
            SchemaRow(
                info=schema,
                before=before.version if before else None,
                summary=_summary(before, schema, changes),
                look=look_of(changes) if before else None,
            )
        )
        before = schema
    return rows[::-1]


def _summary(before: SchemaInfo | None, new: SchemaInfo, changes: Sequence[StateChange]) -> str:
    if before is None:
        return gettext("first version")
    messages = [change.message for change in changes[:NAMED_CHANGES]]
    if len(changes) > NAMED_CHANGES:
        messages.append(gettext("and %(n)s more") % {"n": len(changes) - NAMED_CHANGES})
    if not messages:
        is_key = (before.key_schema, before.map_key_schema) != (new.key_schema, new.map_key_schema)
        messages = [gettext("key changed") if is_key else gettext("no fields changed")]
    return "; ".join(messages)


def _schemas(version: SchemaInfo) -> list[tuple[str, str]]:
    shown = [(gettext("Value"), ddl(version.value_schema)), (gettext("Key"), ddl(version.key_schema))]
    if version.map_key_schema:
        shown.append((gettext("Map key"), ddl(version.map_key_schema)))
    if version.avro_schema:
        text = json.dumps(json.loads(version.avro_schema), indent=2, ensure_ascii=False)
        shown.append((gettext("Avro schema derived by Spark"), text))
    return shown


def ddl(schema: str) -> str:
    """Convert a schema to DDL, a field per line; return other text unchanged."""
    try:
        value: Any = json.loads(schema)
        return to_ddl(value) or gettext("(no fields)")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InvalidSchema):
        return schema


def _time(milliseconds: Any) -> datetime | None:
    if not isinstance(milliseconds, int) or not 0 <= milliseconds < 253_402_300_800_000:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def compare_page(request: HttpRequest, query_id: int, variable_id: int) -> StateComparePage:
    """Return the page of `?from=1&to=2`, by default of the newest version and the previous one.

    Raises NotFound, NotAllowed.
    """
    query = get_query(query_id, by=page_actor(request))
    variable = get_variable(query_id, variable_id)
    numbers = [schema.version for schema in variable.schemas]
    numbers_asked = {side: whole_number(request.GET.get(side, "")) for side in ("from", "to")}
    new = version_of(variable, numbers_asked["to"] if request.GET.get("to") else max(numbers, default=None))
    earlier = [number for number in numbers if number < new.version]
    old = version_of(variable, numbers_asked["from"] if request.GET.get("from") else (earlier or [new.version])[-1])
    changes = changes_between(variable, old, new)
    is_whole, view = request.GET.get("all") == "1", request.GET.get("view") or ""
    comparison, problem = _avro(query, variable, old, new, is_whole=is_whole)
    here = reverse("ui:state_variable_compare", args=[query.id, variable.id])
    variable_url = reverse("ui:state_variable", args=[query.id, variable.id])

    def url(**more: str) -> str:
        return f"{here}?{urlencode({'from': old.version, 'to': new.version, **more})}"

    whole = {"all": "1"} if is_whole else {}
    return StateComparePage(
        frame=make_frame(
            request,
            title=gettext("Compare version %(old)s and version %(new)s") % {"old": old.version, "new": new.version},
            section=Section.QUERIES,
            crumbs=(*crumbs(), query_crumb(query), Crumb(label=variable.label, url=variable_url, code=True)),
        ),
        query=query,
        variable=VariableRow(variable),
        old=old.version,
        new=new.version,
        look=look_of(changes),
        sentence=_sentence(variable, old, new, len(changes)),
        changes=tuple(ReportedChange(change.to_dict()) for change in changes),
        comparison=comparison,
        text=text_diff(ddl_lines(old), ddl_lines(new)),
        view="split" if view == "split" else "unified",
        unified_url=url(**whole),
        split_url=url(view="split", **whole),
        problem=problem,
        all_url="" if is_whole else url(**({"view": "split"} if view == "split" else {}), all="1"),
    )


def ddl_lines(version: SchemaInfo) -> str:
    """Return the keys and value of a version as DDL, a column per line."""
    value = fields_as_ddl(version.value_schema)
    keys = [gettext("key: %(ddl)s") % {"ddl": ddl(version.key_schema)}]
    if version.map_key_schema:
        keys.append(gettext("map key: %(ddl)s") % {"ddl": ddl(version.map_key_schema)})
    return "\n".join([*keys, *value])


def fields_as_ddl(schema: str) -> list[str]:
    """Return each field of a struct as DDL; other text unchanged."""
    try:
        return [ddl(json.dumps({"type": "struct", "fields": [field]})) for field in json.loads(schema)["fields"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return [schema]


def _sentence(variable: VariableInfo, old: SchemaInfo, new: SchemaInfo, changes: int) -> str:
    if not changes:
        return gettext("Rows written with the older version are read unchanged.")
    by = (
        gettext("by name as in Avro")
        if variable.encoding == "avro"
        else gettext("by position, because values don’t evolve here")
    )
    values = {"old": old.version, "new": new.version, "by": by}
    if new.batch is None:
        return gettext("Spark reads rows of version %(old)s with version %(new)s, matching fields %(by)s.") % values
    return gettext(
        "From batch %(batch)s, Spark reads rows of version %(old)s with version %(new)s, matching fields %(by)s."
    ) % {
        **values,
        "batch": f"{new.batch:,}",
    }


def _avro(
    query: QueryInfo, variable: VariableInfo, old: SchemaInfo, new: SchemaInfo, *, is_whole: bool
) -> tuple[VersionComparison | None, Problem | None]:
    """Compare the derived Avro schemas like versions of a subject; return a problem if there are none."""
    for side in (old, new):
        if not side.avro_schema:
            return None, Problem(
                what=gettext("Version %(version)s has no Avro schema: %(why_no_avro)s")
                % {"version": side.version, "why_no_avro": side.why_no_avro}
            )
    infos = [_as_version(query, variable, side) for side in (old, new)]
    try:
        before, after = (schema_engine.parse("AVRO", side.avro_schema, is_new=False) for side in (old, new))
        backward, forward = schema_engine.check_both(after, (old.version, before), profile="confluent")
        comparison = selectors.Comparison(
            infos[0],
            infos[1],
            differences=schema_engine.diff(before, after),
            same_meaning=before.fingerprint == after.fingerprint,
            backward=backward,
            forward=forward,
        )
    except SchemadeskError as error:
        return None, Problem(
            what=gettext("The derived Avro schemas can’t be compared: %(message)s") % {"message": error.message}
        )
    limit = None if is_whole else MAX_CARDS
    shown = present_comparison(comparison, query.registry, query.registry, level="BACKWARD", limit=limit)
    # The sides aren't versions of a subject: use the variable's URLs.
    url = reverse("ui:state_variable", args=[query.id, variable.id])
    sides = [
        replace(side, url=f"{url}?version={side.version}", schema_id=None, registered_at=None)
        for side in (shown.old, shown.new)
    ]
    return replace(shown, old=sides[0], new=sides[1]), None


def _as_version(query: QueryInfo, variable: VariableInfo, version: SchemaInfo) -> VersionInfo:
    """Return a derived schema as a version for the comparison; it has no number in any registry."""
    definition = DefinitionInfo(version.schema_id, ".", "AVRO", version.avro_schema, "", "", (), None, None)
    return VersionInfo(
        id=0,
        subject=SubjectName(".", variable.label),
        version=version.version,
        schema=definition,
        submitted=version.avro_schema,
        created_at=version.written_at or _EPOCH,
        created_by=query.name,
        channel="state",
        deleted=False,
    )
