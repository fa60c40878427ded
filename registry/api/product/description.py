"""The product's own API: its OpenAPI description, with the bodies of responses derived from dataclasses."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import asdict, fields, is_dataclass, make_dataclass
from datetime import date, datetime, time, timedelta
from functools import cache
from http import HTTPStatus
from types import GenericAlias, NoneType, UnionType
from typing import Any, Final, Literal, NotRequired, Union, get_args, get_origin, get_type_hints

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ComponentRegistry, ResolvedComponent, build_basic_type
from drf_spectacular.types import OpenApiTypes
from rest_framework.renderers import JSONRenderer

from registry.api.product.base import ProductView

#: for `responses` of a view that sends a file
FILE: Final = OpenApiTypes.BINARY
_TYPES: Final[dict[Any, dict[str, Any]]] = {
    Any: {},
    object: {},
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    time: {"type": "string"},
    timedelta: {"type": "string"},  # seconds
}


def shape(
    name: str,
    base: Any = None,
    /,
    *properties: str,
    without: Collection[str] = (),
    partial: bool = False,
    **others: Any,
) -> Any:
    """A dataclass for a body that isn't one: the fields of `base` but for some, some of its properties, and others.

    With `partial` each field of `base` may be missing. `others` are type hints, by name.
    """
    hints = {item: hint for item, hint in (hints_of(base) if base else {}).items() if item not in without}
    hints |= {item: get_type_hints(inspect.getattr_static(base, item).fget)["return"] for item in properties}
    if partial:
        hints = {item: NotRequired[hint] for item, hint in hints.items()}
    return make_dataclass(name, (hints | others).items())


def many(item: Any) -> Any:
    """The type of a list of a dataclass."""
    return GenericAlias(list, (item,))


def either(*items: Any) -> Any:
    """The type of a body that has one of several types, or None."""
    return Union[items]  # noqa: UP007 - of as many as there are


@cache
def hints_of(kind: Any) -> dict[str, Any]:
    """The type hints of a dataclass's fields, by name."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind)}


def body_of(kind: Any, value: Any, **others: Any) -> dict[str, Any]:
    """A value as the body that a shape describes: its attributes of these names, or those of `others`."""
    return {
        name: others[name] if name in others else _body_part(hint, getattr(value, name))
        for name, hint in hints_of(kind).items()
        if name in others or get_origin(hint) is not NotRequired
    }


def _body_part(hint: Any, value: Any) -> Any:
    """An attribute as its hint has it; a subject's name is a text where the hint is one."""
    if get_origin(hint) in (Union, UnionType):
        alternatives = [item for item in get_args(hint) if item is not NoneType]
        hint = alternatives[0] if value is not None and len(alternatives) == 1 else Any
    if get_origin(hint) in (list, tuple):
        return [_body_part(get_args(hint)[0], item) for item in value]
    if is_dataclass(hint):
        return body_of(hint, value)
    if hint is str:
        return getattr(value, "qualified", value)
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def schema_of(hint: Any, components: ComponentRegistry) -> dict[str, Any]:
    """The schema of a type hint; dataclasses become components. Raises TypeError for a type that JSON hasn't."""
    if is_dataclass(hint):
        return _component_of(hint, components)
    if hint in _TYPES:
        return dict(_TYPES[hint])
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin in (Union, UnionType, NotRequired):
        return _union(arguments, components)
    if inspect.isclass(origin) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(arguments[1], components)}
    if inspect.isclass(origin) and issubclass(origin, Collection):
        items = {item for item in arguments if item is not Ellipsis}
        return {"type": "array", "items": _union(tuple(items), components)}
    raise TypeError(f"{hint} has no JSON form.")


def _union(hints: tuple[Any, ...], components: ComponentRegistry) -> dict[str, Any]:
    schemas = [schema_of(hint, components) for hint in hints if hint is not NoneType]
    if NoneType not in hints:
        return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    if len(schemas) == 1 and "$ref" not in schemas[0]:
        return {**schemas[0], "nullable": True}
    return {"anyOf": schemas, "nullable": True}


def _component_of(kind: Any, components: ComponentRegistry) -> dict[str, Any]:
    component = ResolvedComponent(kind.__name__, ResolvedComponent.SCHEMA, {}, kind)  # type: ignore[no-untyped-call]
    if component not in components:
        components.register(component)
        hints = hints_of(kind)
        component.schema |= {
            "type": "object",
            "properties": {name: schema_of(hint, components) for name, hint in hints.items()},
            "required": [name for name, hint in hints.items() if get_origin(hint) is not NotRequired],
        }
    return component.ref


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """A token as Bearer, or as the password of Basic with any user name (registry/api/authentication.py)."""

    target_class = "registry.api.authentication.TokenAuthentication"
    name = ["bearerToken", "basicToken"]

    def get_security_requirement(self, auto_schema: Any) -> list[dict[str, list[Any]]]:
        """Either of them."""
        return [{name: []} for name in self.name]

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, Any]]:
        """Both, in the order of their names."""
        made = "Create one on the page API tokens. Operators can also run the command `issue_token USER NAME`."
        return [
            {"type": "http", "scheme": "bearer", "description": f"A token. {made}"},
            {"type": "http", "scheme": "basic", "description": f"Any user name, and a token as the password. {made}"},
        ]


def close_bodies(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Says in the description that a body has no other properties; a hook of drf-spectacular."""
    schemas = result["components"]["schemas"]
    pending = [
        part["requestBody"] for path in result["paths"].values() for part in path.values() if "requestBody" in part
    ]
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending += node
        elif isinstance(node, dict) and node.get("additionalProperties") is not False:
            if node.get("type") == "object" and "properties" in node:
                node["additionalProperties"] = False
            pending += [*node.values(), schemas.get(str(node.get("$ref", "")).rpartition("/")[2])]
    return result


class ProductSchema(AutoSchema):
    """Describes each call of the product API: its success statuses, and the body that it answers with as a type hint."""

    def get_operation_id(self) -> str:
        """`clusters_list` where the response is a list, else by the method."""
        name = super().get_operation_id()
        declared = self.get_response_serializers()
        first = next(iter(declared.values())) if isinstance(declared, dict) else declared
        is_list = self.method == "GET" and any(get_origin(hint) is list for hint in (first, *get_args(first)))
        return f"{name.removesuffix('_retrieve')}_list" if is_list else name

    def get_request_serializer(self) -> Any:
        """None: a call has the body that it declares."""
        return None if isinstance(self.view, ProductView) else super().get_request_serializer()

    def get_response_serializers(self) -> Any:
        """None, as of the request."""
        return None if isinstance(self.view, ProductView) else super().get_response_serializers()

    def _is_list_view(self, serializer: Any = None) -> bool:
        return False

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        declared = self.get_response_serializers()
        if not isinstance(self.view, ProductView):
            bodies: dict[str, Any] = super()._get_response_bodies(direction)
            return bodies
        by_status = declared if isinstance(declared, dict) else {200 if declared else 204: declared}
        responses: dict[str, Any] = {}
        for key, hint in by_status.items():
            status, *media_types = key if isinstance(key, tuple) else (key, JSONRenderer.media_type)
            response = responses.setdefault(str(status), {"description": HTTPStatus(status).phrase})
            if hint is not None:
                schema = build_basic_type(hint) if hint is FILE else schema_of(hint, self.registry)
                response.setdefault("content", {}).update({media: {"schema": schema} for media in media_types})
        return responses
