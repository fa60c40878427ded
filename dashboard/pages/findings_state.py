"""What a finding about a query's state leads to: the variable before and after, the query, and the check of a restart."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext

from dashboard.pages.streams import check_action
from dashboard.pages.streams_compare import fields_as_ddl
from dashboard.presenters.drift_parts import BeforeAfter
from dashboard.presenters.frame import Link
from dashboard.presenters.text_diff import text_diff
from registry.access.roles import Actor
from registry.drift.selectors import FindingInfo
from registry.streams.infos import QueryInfo, VariableInfo
from registry.streams.queries import get_query, query_of_source, variables_with_schemas


def before_after(info: FindingInfo) -> BeforeAfter | None:
    """The value of a state variable as two schemas had it; None where the evidence has none."""
    old, new = info.evidence.get("old_schema"), info.evidence.get("new_schema")
    if not old or not new:
        return None
    return BeforeAfter(
        variable=str(info.evidence.get("variable", "")),
        batch=info.evidence.get("batch"),
        text=text_diff("\n".join(fields_as_ddl(old)), "\n".join(fields_as_ddl(new))),
    )


def state_links(info: FindingInfo, actor: Actor) -> tuple[Link, ...]:
    """The query, the variable, its two schemas and the check of a restart; none for other findings.

    For those who may read all of the registry: a query is of no subject alone.
    """
    number = query_of_source(info.source_id) if info.source_kind == "state_store" else None
    if number is None:
        return ()
    query = get_query(number, by=actor)
    links = [Link(label=gettext("Query %(query)s") % {"query": query.name}, url=reverse("ui:query", args=[query.id]))]
    variable = _variable(query, info.evidence)
    if variable is not None:
        links += _of_variable(query, variable, info.evidence)
    check = check_action(actor, query.path)
    if check.allowed:
        links.append(Link(label=check.label, url=check.url))
    return tuple(links)


def _variable(query: QueryInfo, evidence: dict[str, Any]) -> VariableInfo | None:
    place = (evidence.get("operator"), evidence.get("variable"))
    same = [each for each in variables_with_schemas(query.id) if (each.operator, each.name) == place]
    return next((each for each in same if each.removed_at is None), same[-1] if same else None)


def _of_variable(query: QueryInfo, variable: VariableInfo, evidence: dict[str, Any]) -> list[Link]:
    label = gettext("State variable %(variable)s") % {"variable": variable.label}
    links = [Link(label=label, url=reverse("ui:state_variable", args=[query.id, variable.id]))]
    numbers = [
        next((each.version for each in variable.schemas if _is_same(each.value_schema, evidence.get(side))), None)
        for side in ("old_schema", "new_schema")
    ]
    if None not in numbers and numbers[0] != numbers[1]:
        url = reverse("ui:state_variable_compare", args=[query.id, variable.id])
        label = gettext("Compare versions %(old)s and %(new)s of the variable") % {"old": numbers[0], "new": numbers[1]}
        links.append(Link(label=label, url=f"{url}?{urlencode({'from': numbers[0], 'to': numbers[1]})}"))
    return links


def _is_same(one: str, other: str | None) -> bool:
    """Whether two schemas say the same, however Spark wrote them."""
    try:
        return other is not None and json.loads(one) == json.loads(other)
    except ValueError:
        return one == other
