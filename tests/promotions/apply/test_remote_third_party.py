"""A remote environment that isn't ours: franz-go's own registry, in memory, is promoted to step by step."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from registry.access.roles import Actor
from registry.errors import RemoteUnavailable
from registry.formats.base import Reference
from registry.promotions import services
from registry.promotions.apply.execution import apply_due
from registry.promotions.environments.locking import fresh
from registry.promotions.models import ApplyStep
from registry.subjects.models import Registry
from registry.subjects.services import set_config
from registry.subjects.versions.qualified_names import SubjectName
from tests.clients.programs import LANGUAGES, built
from tests.clients.test_foreign_registry import Foreign
from tests.promotions.factories import approve_shown
from tests.promotions.remote_registry import (
    NAME,
    ask_for_customers,
    failure_of,
    make_environment,
    proxy_to,
    register,
    releases_of,
    states_of,
)
from tests.toolchains import require_tools

Cast = Callable[[str], Actor]
pytestmark = [
    pytest.mark.clients,
    pytest.mark.slow,
    pytest.mark.requirement("CARD-4", "ORA-1"),
    pytest.mark.django_db(transaction=True),
]
MONEY = 'syntax = "proto3";\npackage shop;\n\nmessage Money {\n  int64 cents = 1;%s\n}\n'
PRICE = 'syntax = "proto3";\npackage shop;\n\nimport "money.proto";\n\nmessage Price {\n  shop.Money amount = 1;\n}\n'
USER = {"type": "object", "properties": {"email": {"type": "string"}}}


@pytest.fixture
def foreign(settings: Any) -> Iterator[Foreign]:
    require_tools(LANGUAGES["go"].client, LANGUAGES["go"].tools)
    settings.EGRESS_ALLOW = ("127.0.0.1",)
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    command = [*built("go"), "registry"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        yield Foreign(json.loads(process.stdout.readline())["url"])
        process.terminate()


@pytest.fixture
def cast(person: Cast) -> dict[str, Actor]:
    return {name: person(name) for name in ("steward", "approver", "admin")}


@pytest.fixture
def environment(foreign: Foreign, cast: dict[str, Actor], system: Actor) -> Any:
    return make_environment(foreign.url, system, secret="")


def promote(subject: str, cast: dict[str, Actor]) -> tuple[int, str]:
    number = services.request_promotion(
        source="dev", target=NAME, subject=SubjectName(".", subject), by=cast["steward"], reason="go live"
    )
    approve_shown(request_id=number, by=cast["approver"], comment="fine")
    assert services.apply(request_id=number, by=cast["approver"]) == "applying"
    return number, apply_due(request_id=number)


def test_references_and_config_arrive_and_are_released(
    foreign: Foreign, environment: Any, cast: dict[str, Actor]
) -> None:
    number = ask_for_customers("avro", cast)
    assert services.apply(request_id=number, by=cast["approver"]) == "applying"
    assert apply_due(request_id=number) == "applied", failure_of(number)
    found = foreign.call("GET", "/subjects/avro-customer/versions/1")
    assert found["references"] == [{"name": "shop.Address", "subject": "avro-address", "version": 1}]
    assert foreign.call("GET", "/config/avro-customer")["compatibilityLevel"] == "FULL"
    assert releases_of(number) == [("avro-address", 1, True), ("avro-customer", 1, True)]


@pytest.mark.parametrize("kind", ["PROTOBUF", "JSON"])
def test_other_formats_and_a_second_version(
    foreign: Foreign, environment: Any, cast: dict[str, Actor], kind: str
) -> None:
    set_config(registry="dev", subject=None, level="NONE", by=cast["admin"])
    texts: list[Any] = [MONEY % "", MONEY % "\n  string currency = 2;"]
    if kind == "JSON":
        texts = [USER, {**USER, "properties": {**USER["properties"], "phone": {"type": "string"}}}]
        foreign.call("PUT", "/config", {"compatibility": "NONE"})
        fresh(environment)
    for count, text in enumerate(texts, 1):
        register("money-value", text, cast["steward"], schema_type=kind)
        number, state = promote("money-value", cast)
        assert state == "applied", failure_of(number)
        assert foreign.call("GET", "/subjects/money-value/versions") == list(range(1, count + 1))
        assert releases_of(number) == [("money-value", count, True)]


def test_imports_of_protobuf(foreign: Foreign, environment: Any, cast: dict[str, Actor]) -> None:
    register("money", MONEY % "", cast["steward"], schema_type="PROTOBUF")
    references = (Reference("money.proto", "money", 1),)
    register("price-value", PRICE, cast["steward"], schema_type="PROTOBUF", references=references)
    number, state = promote("price-value", cast)
    assert state == "applied", failure_of(number)
    assert releases_of(number) == [("money", 1, True), ("price-value", 1, True)]


def test_what_the_remote_refuses_is_said_and_can_be_given_up(
    foreign: Foreign, environment: Any, cast: dict[str, Actor]
) -> None:
    number = ask_for_customers("refused", cast)
    assert services.apply(request_id=number, by=cast["approver"]) == "applying"

    def refusing(method: str, path: str) -> tuple[int, bytes] | None:
        is_refused = (method, path) == ("POST", "/subjects/refused-customer/versions")
        return (409, b'{"error_code": 409, "message": "not today"}') if is_refused else None

    with proxy_to(int(foreign.url.rpartition(":")[2])) as proxy:
        proxy.instead = refusing
        Registry.objects.filter(name=NAME).update(url=proxy.url)
        assert apply_due(request_id=number) == "failed"
    assert states_of(number) == ("failed", ["done", "failed", "waiting"])
    assert "Step 2 of 3 (register refused-customer version 1)" in failure_of(number)
    assert "status 409: not today" in ApplyStep.objects.get(request_id=number, position=1).said
    assert services.give_up(request_id=number, by=cast["approver"]) == "withdrawn"
    assert "Already written and kept: register refused-address version 1" in failure_of(number)
    assert [row[:2] for row in releases_of(number)] == [("refused-address", 1)]


def test_one_that_does_not_answer_is_said_and_nothing_is_begun(
    foreign: Foreign, environment: Any, cast: dict[str, Actor]
) -> None:
    number = ask_for_customers("away", cast)
    Registry.objects.filter(name=NAME).update(url="http://127.0.0.1:9")
    with pytest.raises(RemoteUnavailable, match="can't be read now"):
        services.apply(request_id=number, by=cast["approver"])
    assert states_of(number) == ("approved", [])
