"""What calls cost in queries: constant for lists, few for what clients ask all the time."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

CONTENT = "application/vnd.schemaregistry.v1+json"
#: who calls is asked first: the token with its user, the user's grants
SIGN_IN = 2
#: call → the most queries beside those; the number of subjects and versions plays no part
READS = {
    "/subjects": 3,
    "/subjects?deletedOnly=true": 3,
    "/subjects/s0/versions": 3,
    "/subjects/s0/versions?deletedAsNegative=true": 8,
    "/schemas": 5,
    "/schemas?subjectPrefix=:*:&latestOnly=true&aliases=true&ruleType=CEL": 6,
    "/schemas/ids/1/subjects": 4,
    "/schemas/ids/1/versions": 4,
    "/subjects/s0/versions/1/referencedby": 5,
    "/contexts": 2,
}
#: what running clients ask: by id, by version, the latest, look-up, and the same schema registered again
HOT = {
    ("GET", "/schemas/ids/1"): 3,
    ("GET", "/schemas/ids/1?subject=s0"): 3,
    ("GET", "/subjects/s0/versions/1"): 3,
    ("GET", "/subjects/s0/versions/latest"): 3,
    ("GET", "/subjects/s0/versions/1/schema"): 3,
    ("POST", "/subjects/s0"): 6,
    ("POST", "/subjects/s0/versions"): 8,
}


def order(fields: int) -> str:
    """A record with so many fields, each with a default."""
    columns = [{"name": f"f{number}", "type": "int", "default": 0} for number in range(fields)]
    return json.dumps({"type": "record", "name": "Order", "fields": columns}, separators=(",", ":"))


@pytest.fixture
def fill(api: Callable[[str], Client]) -> Callable[[int], Client]:
    """So many subjects, in two contexts, each with so many versions; some are soft-deleted, one is referred to."""

    def make(count: int) -> Client:
        client = api("admin")
        using = {"schema": '{"type":"record","name":"U","fields":[{"name":"o","type":"Order"}]}'}
        for context in ("", ":.lab:"):
            for number in range(count):
                for fields in range(1, count + 1):
                    post(client, f"/subjects/{context}s{number}/versions", {"schema": order(fields)})
                post(client, f"/subjects/{context}u{number}/versions", {
                    **using, "references": [{"name": "Order", "subject": "s0", "version": 1}],
                    "ruleSet": {"domainRules": [{"name": f"r{number}", "type": "CEL"}]},
                })  # fmt: skip
            client.delete(f"/subjects/{context}s0/versions/{count}")
        return client

    return make


def post(client: Client, path: str, body: dict[str, Any]) -> None:
    assert client.post(path, json.dumps(body), content_type=CONTENT).status_code == 200


def cost(client: Client, method: str, path: str, body: str = "") -> int:
    """The number of queries of a call."""
    with CaptureQueriesContext(connection) as queries:
        answer = client.generic(method, path, body, content_type=CONTENT)
    assert answer.status_code == 200, answer.content
    told = [query["sql"] for query in queries if "SAVEPOINT" not in query["sql"]]
    return len(told) - SIGN_IN


@pytest.mark.parametrize("count", [2, 5])
def test_lists_cost_the_same_whatever_their_length(fill: Callable[[int], Client], count: int) -> None:
    client = fill(count)
    found = {path: cost(client, "GET", path) for path in READS}
    assert {path: number for path, number in found.items() if number > READS[path]} == {}


def test_what_clients_ask_all_the_time_is_cheap(fill: Callable[[int], Client]) -> None:
    client = fill(3)
    body = json.dumps({"schema": order(1)})
    found = {call: cost(client, *call, body) for call in HOT}
    assert {call: number for call, number in found.items() if number > HOT[call]} == {}
