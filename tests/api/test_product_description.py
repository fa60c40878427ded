"""The OpenAPI description of the product API names what each endpoint reads."""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator

WRITING = ("POST", "PUT", "PATCH")


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
    names = re.findall(r"self\.valid\(\s*(\w+)", source)
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


def declared_statuses(route: str, method: str) -> set[int]:
    """The success statuses that the description has for a call; the route is Django's."""
    responses = _generator()[1]["paths"][_paths()[route]][method.lower()]["responses"]
    return {int(status) for status in responses if status.startswith("2")}


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


@pytest.mark.parametrize("endpoint", sorted(_writes()))
def test_the_description_has_every_field_that_the_endpoint_reads(endpoint: str) -> None:
    path, method, view = _writes()[endpoint]
    read = _read(view, method)
    if read:
        assert set(_described(path, method)) == read


def test_every_field_of_a_decision_has_a_description() -> None:
    fields = _described("/api/v1/promotions/{request_id}/{decision}", "POST")
    assert set(fields) == {"comment", "plan_hash", "override", "typed", "at", "move_on"}
    assert all(field.get("description") for field in fields.values())
