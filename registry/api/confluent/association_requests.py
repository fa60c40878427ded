"""What the calls about associations carry, checked: each wrong type is named with its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rest_framework.request import Request

from registry.api.confluent.requests import flag, read_schema_body, typed
from registry.errors import InvalidInput
from registry.subjects.association_errors import InvalidAssociation
from registry.subjects.associations import LIFECYCLES, TOPIC, AskedAssociation, AskedSchema, Resource, check_type
from registry.subjects.names import DEFAULT_CONTEXT, check_context

#: the most requests of one batch
MAX_BATCH = 1000
CREATE, UPSERT, DELETE = "CREATE", "UPSERT", "DELETE"
#: what `lifecycle` may name in a search of schemas: those that nobody uses too
NONE = "NONE"


@dataclass(frozen=True)
class Filter:
    """Which associations a call is about; empty parts take all."""

    resource_type: str
    types: tuple[str, ...]
    lifecycle: str = ""


@dataclass(frozen=True)
class Operation:
    """A step of a batch: what to associate together, or (`DELETE`) one type to take back."""

    kind: str
    asked: tuple[AskedAssociation, ...]
    cascade: bool = False


def filters(request: Request) -> Filter:
    """The parameters `resourceType`, `associationType` and `lifecycle`. Raises InvalidInput."""
    parameters = request.query_params
    lifecycle = parameters.get("lifecycle", "")
    if lifecycle and lifecycle not in LIFECYCLES:
        raise InvalidInput(f"The parameter lifecycle is {lifecycle[:40]!r}; it takes {' or '.join(LIFECYCLES)}.")
    types = tuple(text for text in parameters.getlist("associationType") if text)
    return Filter(parameters.get("resourceType") or TOPIC, types, lifecycle)


def search_filters(request: Request) -> tuple[Filter, frozenset[str]] | None:
    """The same for a search of schemas, whose lifecycles are several, NONE among them; None where nothing is asked."""
    parameters = request.query_params
    lifecycles = frozenset(text for text in parameters.getlist("lifecycle") if text)
    unknown = sorted(lifecycles - {*LIFECYCLES, NONE})
    if unknown:
        raise InvalidInput(f"The parameter lifecycle is {unknown[0][:40]!r}; it takes STRONG, WEAK or NONE.")
    types = tuple(text for text in parameters.getlist("associationType") if text)
    if not (lifecycles or types or "resourceType" in parameters):
        return None
    return Filter(parameters.get("resourceType", ""), types), lifecycles


def context_of(request: Request, address: str) -> str:
    """The context of the subjects that name none: the parameter's, or else the address's. Raises InvalidName."""
    text = request.query_params.get("context", "")
    return check_context(text) if text and address == DEFAULT_CONTEXT else address


def dry_run(request: Request) -> bool:
    """The parameter `dryRun`. Raises InvalidInput."""
    return flag(request, "dryRun")


def read_resource(body: dict[str, Any], resource_id: str | None = None) -> Resource:
    """The resource of a body; an id in the address must be the body's. Raises InvalidInput, InvalidAssociation."""
    name, namespace, kind = (
        typed(body, part, str, "") for part in ("resourceName", "resourceNamespace", "resourceType")
    )
    own = typed(body, "resourceId", str, None)
    if own is not None and resource_id is not None and own != resource_id:
        raise InvalidAssociation(
            "resourceId", "Resource ID in the path parameter does not match the resource ID in the request body"
        )
    return Resource(name, namespace, resource_id if own is None else own, kind)


def read_associations(body: dict[str, Any]) -> tuple[AskedAssociation, ...]:
    """The associations of a body. Raises InvalidInput, InvalidRuleSet."""
    items = typed(body, "associations", list, [])
    return tuple(_association(item, f"associations/{position}/") for position, item in enumerate(items))


def read_operations(body: dict[str, Any]) -> tuple[Operation, ...]:
    """The steps of one request of a batch: neighbours of one kind go together. Raises InvalidInput, InvalidAssociation."""
    found: list[Operation] = []
    for position, item in enumerate(typed(body, "associations", list, [])):
        where = f"associations/{position}/"
        if not isinstance(item, dict):
            raise InvalidInput(f"/{where.rstrip('/')} takes an object.")
        kind = typed(item, "opType", str, "", where)
        if kind not in (CREATE, UPSERT, DELETE):
            raise InvalidInput(f"/{where}opType is {kind[:40]!r}; it takes CREATE, UPSERT or DELETE.")
        if kind == DELETE:
            cascade = typed(item, "cascadeLifecycle", bool, False, where)
            asked = AskedAssociation(check_type(typed(item, "associationType", str, "", where)))
            found.append(Operation(DELETE, (asked,), cascade=cascade))
            continue
        asked = _association(item, where)
        if found and found[-1].kind == kind:
            found[-1] = Operation(kind, (*found[-1].asked, asked))
        else:
            found.append(Operation(kind, (asked,)))
    _refuse_twice([item.association_type or "value" for step in found for item in step.asked])
    return tuple(found)


def read_batch(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The requests of a batch. Raises InvalidAssociation, InvalidInput."""
    requests: list[dict[str, Any]] = typed(body, "requests", list, [])
    if not requests:
        raise InvalidAssociation("requests", "cannot be null or empty")
    if len(requests) > MAX_BATCH:
        raise InvalidAssociation("requests", f"has {len(requests)} items; {MAX_BATCH} are taken at once")
    for position, item in enumerate(requests):
        if not isinstance(item, dict):
            raise InvalidInput(f"/requests/{position} takes an object.")
    return requests


def _refuse_twice(types: list[str]) -> None:
    twice = next((kind for kind in types if types.count(kind) > 1), None)
    if twice is not None:
        raise InvalidAssociation(
            "associationType", f"may only appear once per request, but '{twice}' appears more than once"
        )


def _association(item: Any, where: str) -> AskedAssociation:
    if not isinstance(item, dict):
        raise InvalidInput(f"/{where.rstrip('/')} takes an object.")
    lifecycle = typed(item, "lifecycle", str, None, where)
    if lifecycle is not None and lifecycle not in LIFECYCLES:
        raise InvalidInput(f"/{where}lifecycle is {lifecycle[:40]!r}; it takes {' or '.join(LIFECYCLES)}.")
    return AskedAssociation(
        association_type=typed(item, "associationType", str, "", where),
        subject=typed(item, "subject", str, None, where),
        lifecycle=lifecycle,
        frozen=typed(item, "frozen", bool, None, where),
        schema=_schema(typed(item, "schema", dict, None, where)),
        normalize=typed(item, "normalize", bool, False, where),
    )


def _schema(body: dict[str, Any] | None) -> AskedSchema | None:
    if body is None:
        return None
    read = read_schema_body(body)
    return AskedSchema(
        text=read.text,
        schema_type=read.schema_type,
        references=read.references,
        metadata=read.metadata,
        rule_set=read.rule_set,
        version=read.version,
        schema_id=read.schema_id,
        tags_to_add=read.tags_to_add,
        tags_to_remove=read.tags_to_remove,
        propagate_tags=read.propagate_tags,
    )
