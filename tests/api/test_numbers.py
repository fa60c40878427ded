"""Numbers that can't be taken, in every property and address of a dialect that has a number."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from registry.access.roles import Actor
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName

pytestmark = pytest.mark.requirement("GOO-4")

GOOGLE = "/v1/projects/local/locations/local/schemaRegistries/dev"
TOO_LARGE, FRACTION = "a number that is too large to be read", "1.5, which isn't written as a whole number"
HUGE = str(2**63)
#: a number in a body, and what every dialect says of it
ALL = {"1e999": TOO_LARGE, "-1e999": TOO_LARGE, "1.5": FRACTION, "true": "true", "false": "false", HUGE: HUGE}
NO_JSON = {"NaN": "NaN is not JSON", "Infinity": "Infinity is not JSON", "-Infinity": "-Infinity is not JSON"}
LONG = {"9" * 5000: "a whole number has too many digits"}

REFERENCE = '{"schema": "\\"x\\"", "references": [{"name": "r", "subject": "s", "version": %s}]}'
#: method, address, body with a number, and the name of its property in the dialect
CONFLUENT = [
    ("POST", "/subjects/orders/versions", '{"schema": "\\"long\\"", "id": %s}', "/id"),
    ("POST", "/subjects/orders/versions", '{"schema": "\\"long\\"", "version": %s}', "/version"),
    ("POST", "/subjects/orders/versions", REFERENCE, "/references/0/version"),
    ("POST", "/subjects/orders", REFERENCE, "/references/0/version"),
    ("POST", "/compatibility/subjects/orders/versions/1", REFERENCE, "/references/0/version"),
    ("POST", "/subjects/orders/versions/1/tags", '{"newVersion": %s}', "/newVersion"),
]
GOOGLE_CASES = [
    ("POST", f"{GOOGLE}/subjects/orders/versions", '{"schema": "\\"long\\"", "id": %s}', "id"),
    ("POST", f"{GOOGLE}/subjects/orders/versions", '{"schema": "\\"long\\"", "version": %s}', "version"),
    ("POST", f"{GOOGLE}/subjects/orders/versions", REFERENCE, "references[0].version"),
    ("POST", f"{GOOGLE}/subjects/orders:lookupVersion", REFERENCE, "references[0].version"),
    ("POST", f"{GOOGLE}/compatibility/subjects/orders/versions/1", REFERENCE, "references[0].version"),
]
PRODUCT = [
    ("POST", "/api/v1/tokens", '{"name": "x", "days": %s}', "days"),
    (
        "POST",
        "/api/v1/promotions",
        '{"source": "dev", "target": "prod", "reason": "x", "subject": "orders", "version": %s}',
        "version",
    ),
    ("POST", "/api/v1/notifications/read", '{"up_to": %s}', "up_to"),
    ("POST", "/api/v1/notifications/read", '{"ids": [%s]}', "ids[0]"),
    ("PUT", "/api/v1/notifications/digest", '{"hour": %s}', "hour"),
]


@pytest.fixture
def client(person: Callable[[str], Actor], api: Callable[[str], Client]) -> Client:
    register_version(registry="dev", subject=SubjectName(".", "orders"), text='"string"', by=person("steward"))
    return api("admin")


def _send(client: Client, method: str, path: str, body: str) -> tuple[int, str]:
    response = client.generic(method, path, body, content_type="application/json")
    error: Any = json.loads(response.content)
    return response.status_code, str(error.get("message") or error.get("error", {}).get("message"))


@pytest.mark.parametrize("case", [*CONFLUENT, *GOOGLE_CASES, *PRODUCT], ids=lambda case: f"{case[1]} {case[3]}")
def test_a_number_that_cannot_be_taken_is_named_with_what_is_wrong(
    client: Client, case: tuple[str, str, str, str]
) -> None:
    method, path, body, name = case
    failures = []
    for number, words in (ALL | NO_JSON | LONG).items():
        status, message = _send(client, method, path, body % number)
        is_named = name in message or number not in ALL
        is_vague = "is a number; it must be a number" in message
        if status not in (400, 422) or words not in message or not is_named or is_vague:
            failures.append((number[:30], status, message))
    status, message = _send(client, method, path, body % "-1")
    if status >= 500:
        failures.append(("-1", status, message))
    assert not failures, "\n".join(map(str, failures))


NUMBERS = ("1e999", "NaN", "Infinity", "1.5", HUGE, "true", "-1", "9" * 5000)
ADDRESSES = [
    "/schemas/ids/%s",
    "/subjects/orders/versions/%s",
    "/subjects?limit=%s",
    "/subjects?offset=%s",
    "/schemas?offset=%s",
    f"{GOOGLE}/schemas/ids/%s",
    f"{GOOGLE}/subjects/orders/versions/%s",
    "/spring/schemas/%s",
    "/spring/orders/avro/v%s",
    "/api/v1/promotions/%s",
    "/api/v1/promotions?limit=%s",
    "/api/v1/promotions?after=%s",
    "/api/v1/findings/%s",
    "/api/v1/findings?source_id=%s",
    "/api/v1/search?q=x&limit=%s",
    "/api/v1/notifications?before=%s",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_number_in_an_address_is_no_fault_of_the_server(client: Client, address: str) -> None:
    for number in NUMBERS:
        status = client.get(address % number).status_code
        assert status < 500 and (status != 200 or number in ("-1", HUGE)), (address, number[:30], status)


def test_a_property_of_metadata_is_never_infinite(client: Client) -> None:
    body = '{"schema": "\\"long\\"", "metadata": {"properties": {"size": %s}}}'
    status, message = _send(client, "POST", "/subjects/sizes/versions", body % "1e999")
    assert (status, message) == (
        422,
        "/metadata/properties/size is a number that is too large to be read; write it as a string.",
    )
    assert _send(client, "POST", "/subjects/sizes/versions", body % "1.5")[0] == 200
