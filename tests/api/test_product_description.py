"""The OpenAPI description of the product API names what each endpoint reads and answers."""

from __future__ import annotations

import inspect
import json
import re
from functools import cache
from typing import Any

import jsonschema_rs
import pytest
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator

from registry.api.product.base import ProductRenderer

WRITING = ("POST", "PUT", "PATCH")
#: the calls that answer without a body
BODILESS = {
    ("put", "/api/v1/registries/{registry}/subjects/{subject}/clients/{name}", "201"),
    ("post", "/api/v1/webhooks/{webhook}/deliveries/{delivery_id}/replay", "202"),
}


@cache
def _generator() -> tuple[SchemaGenerator, dict[str, Any]]:
    generator = SchemaGenerator()
    return generator, generator.get_schema(request=None, public=True)


def _writes() -> dict[str, tuple[str, str, Any]]:
    """Each write endpoint below /api/v1 by name, with its path, method and view."""
    generator, _ = _generator()
    rows = generator._get_paths_and_endpoints()
    return {
        f"{method} {path}": (path, method, view)
        for path, _, method, view in rows
        if method in WRITING and path.startswith("/api/v1/")
    }


def _read(view: Any, method: str) -> set[str]:
    """The fields of the serializers that the view's method, or a method of the view that it calls, passes the body to."""
    source = inspect.getsource(getattr(type(view), method.lower()))
    for helper in re.findall(r"self\.(_\w+)\(", source):
        source += inspect.getsource(getattr(type(view), helper))
    module = inspect.getmodule(type(view))
    module = getattr(module, "bodies", module)
    names = re.findall(r"self\.valid\(\s*(?:bodies\.)?(\w+)", source)
    return {field for name in names if hasattr(module, name) for field in getattr(module, name)().fields}


def _described(path: str, method: str) -> dict[str, Any]:
    """The properties of the body in the description."""
    _, description = _generator()
    body = description["paths"][path][method.lower()].get("requestBody")
    if body is None:
        return {}
    schema = next(iter(body["content"].values()))["schema"]
    if "$ref" in schema:
        schema = description["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return dict(schema.get("properties", {}))


@cache
def _paths() -> dict[str, str]:
    """Django's route of each path of the description."""
    return {regex.replace("/^", "/"): path for path, regex, _, _ in _generator()[0]._get_paths_and_endpoints()}


def _responses(route: str, method: str) -> dict[str, Any]:
    responses: dict[str, Any] = _generator()[1]["paths"][_paths()[route]][method.lower()]["responses"]
    return responses


def declared_statuses(route: str, method: str) -> set[int]:
    """The success statuses that the description has for a call; the route is Django's."""
    return {int(status) for status in _responses(route, method) if status.startswith("2")}


@cache
def _body_validator(route: str, method: str, status: int) -> jsonschema_rs.Validator | None:
    """What validates a JSON body of the call strictly; None where the description has none."""
    media = _responses(route, method)[str(status)].get("content", {}).get("application/json")
    return media and jsonschema_rs.validator_for({**_strict(media["schema"]), "components": _strict_components()})


@cache
def _strict_components() -> Any:
    return _strict(_generator()[1]["components"])


def _strict(node: Any) -> Any:
    """A schema of OpenAPI 3.0 as JSON Schema, in which an object has no property that isn't described."""
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    schema = {name: _strict(value) for name, value in node.items()}
    if isinstance(schema.get("properties"), dict):
        schema.setdefault("additionalProperties", False)
    return {"anyOf": [schema, {"type": "null"}]} if schema.pop("nullable", False) is True else schema


def check_body(route: str, method: str, status: int, data: Any) -> None:
    """Raise AssertionError where the body of a response isn't as the description has it."""
    body = json.loads(ProductRenderer().render(data) or "null")
    validator = _body_validator(route, method, status)
    problems = (
        [f"{error.instance_path}: {error.message[:300]}" for error in validator.iter_errors(body)] if validator else []
    )
    assert (validator or body is None) and not problems, (method, route, status, problems)


STATUSES = {
    ("POST", "api/v1/people"): {201},
    ("PATCH", "api/v1/people/<str:username>"): {204},
    ("DELETE", "api/v1/grants/<int:grant_id>"): {204},
    ("POST", "api/v1/deployments"): {200, 201},
    ("POST", "api/v1/registries/<segment:registry>/refresh"): {202},
    ("DELETE", "api/v1/config"): {200},
    ("POST", "api/v1/webhooks/<slug:webhook>/test"): {202},
    ("GET", "api/v1/people"): {200},
}


@pytest.mark.parametrize("call", STATUSES, ids=" ".join)
def test_the_description_has_the_statuses_that_the_view_answers_with(call: tuple[str, str]) -> None:
    """tests/conftest.py compares it with every answer that a test gets."""
    method, route = call
    assert declared_statuses(route, method) == STATUSES[call]


def test_the_description_is_generated_without_a_warning() -> None:
    GENERATOR_STATS.reset()
    SchemaGenerator().get_schema(request=None, public=True)
    assert not GENERATOR_STATS


def test_every_response_has_a_schema() -> None:
    """tests/conftest.py validates every body that a test gets."""
    bare = {
        (method, path, status)
        for path, calls in _generator()[1]["paths"].items()
        for method, call in calls.items()
        for status, response in call["responses"].items()
        if status != "204"
        and not all(media["schema"] for media in response.get("content", {"": {"schema": None}}).values())
    }
    assert bare == BODILESS


@pytest.mark.parametrize(
    ("path", "method", "name"),
    [
        ("/api/v1/clusters", "get", "clusters_list"),
        ("/api/v1/clusters/{name}", "get", "clusters_retrieve"),
        ("/api/v1/findings", "get", "findings_list"),
        ("/api/v1/promotions/{request_id}/{decision}", "post", "promotions_decide"),
    ],
)
def test_operations_have_names_of_their_own(path: str, method: str, name: str) -> None:
    assert _generator()[1]["paths"][path][method]["operationId"] == name


@pytest.mark.parametrize("endpoint", sorted(_writes()))
def test_the_description_has_every_field_that_the_endpoint_reads(endpoint: str) -> None:
    path, method, view = _writes()[endpoint]
    read = _read(view, method)
    if read:
        assert set(_described(path, method)) == read


def test_every_field_of_a_decision_has_a_description() -> None:
    fields = _described("/api/v1/promotions/{request_id}/{decision}", "POST")
    assert set(fields) == {"comment", "plan_hash", "override", "typed", "at", "move_on", "resolve"}
    assert all(field.get("description") for field in fields.values())
