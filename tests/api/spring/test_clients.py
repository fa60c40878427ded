"""Spring's released clients and message converter, unmodified, against our server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.core.signals import request_started

from tests.api.spring.conversation import Conversation, compiled
from tests.api.spring.record import record
from tests.api.spring.spring_calls import RECORDED
from tests.toolchains import JAVA, require_tools

pytestmark = [pytest.mark.clients, pytest.mark.slow]

V1 = json.dumps({"type": "record", "name": "User", "namespace": "desk", "fields": [{"name": "name", "type": "string"}]})
V2 = json.dumps(
    {
        "type": "record",
        "name": "User",
        "namespace": "desk",
        "fields": [{"name": "name", "type": "string"}, {"name": "age", "type": "int", "default": -1}],
    }
)
INCOMPATIBLE = json.dumps(
    {
        "type": "record",
        "name": "User",
        "namespace": "desk",
        "fields": [{"name": "name", "type": "string"}, {"name": "email", "type": "string"}],
    }
)


@dataclass
class Requests:
    """What our server was asked, counted there."""

    seen: list[str] = field(default_factory=list)

    def taken(self) -> list[str]:
        """The requests since the last call."""
        taken, self.seen = self.seen, []
        return taken


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Conversation]:
    """One process for all tests; each begins with a client of its own."""
    require_tools("Spring's clients", JAVA)
    folder = tmp_path_factory.mktemp("java")
    with (folder / "log").open("wb") as log:
        conversation = Conversation(compiled(folder), log)
        yield conversation
        conversation.close()


@pytest.fixture
def requests(live_server: Any) -> Iterator[Requests]:
    found = Requests()

    def count(sender: Any, environ: dict[str, Any], **rest: Any) -> None:
        found.seen.append(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}")

    request_started.connect(count)
    yield found
    request_started.disconnect(count)


@pytest.fixture
def server(live_server: Any, registries: None, settings: Any) -> str:
    """Our server, open to callers without a token as under `up`; the address of the Spring dialect."""
    settings.ANONYMOUS_ROLE = "steward"
    return f"{live_server.url}/spring"


@pytest.mark.requirement("SCS-1", "SCS-2")
def test_the_default_client_registers_and_fetches(server: str, talk: Conversation, requests: Requests) -> None:
    talk.do("client", kind="default", endpoint=server)
    first = talk.do("register", subject="user", format="avro", definition=V1)
    second = talk.do("register", subject="user", format="avro", definition=V2)
    again = talk.do("register", subject="user", format="avro", definition=V1)
    assert (first["subject"], first["version"], first["format"]) == ("user", 1, "avro")
    assert second["version"] == 2
    assert again == first
    assert talk.do("fetch", subject="user", version=1, format="avro")["definition"] == V1
    assert talk.do("fetch", id=second["id"])["definition"] == V2
    assert requests.taken() == [
        *["POST /spring"] * 3,
        "GET /spring/user/avro/v1",
        f"GET /spring/schemas/{second['id']}",
    ]


@pytest.mark.requirement("SCS-1")
def test_the_default_client_gets_refusals(server: str, talk: Conversation) -> None:
    talk.do("client", kind="default", endpoint=server)
    talk.do("register", subject="user", format="avro", definition=V1)
    assert talk.tell("register", subject="user", format="avro", definition=INCOMPATIBLE)["error"] == "Conflict"
    assert talk.tell("register", subject="user", format="avro", definition="{")["error"] == "BadRequest"
    assert talk.tell("register", subject="user", format="thrift", definition=V1)["error"] == "BadRequest"
    assert talk.tell("fetch", subject="user", version=2, format="avro")["error"] == "NotFound"
    assert talk.tell("fetch", id=2**31 - 1)["error"] == "NotFound"


@pytest.mark.requirement("SCS-1")
def test_a_token_goes_in_as_basic_authentication(
    server: str, talk: Conversation, token: Callable[[str], str], settings: Any
) -> None:
    settings.ANONYMOUS_ROLE = ""
    talk.do("client", kind="default", endpoint=server)
    assert talk.tell("register", subject="user", format="avro", definition=V1)["error"] == "Unauthorized"
    talk.do("client", kind="default", endpoint=server, token=token("reader"))
    assert talk.tell("register", subject="user", format="avro", definition=V1)["error"] == "Forbidden"
    talk.do("client", kind="default", endpoint=server, token=token("steward"))
    assert talk.do("register", subject="user", format="avro", definition=V1)["version"] == 1


@pytest.mark.requirement("SCS-4")
@pytest.mark.parametrize(("cached", "asked"), [(True, 1), (False, 2)])
def test_an_application_finds_its_client_by_configuration(
    server: str, talk: Conversation, requests: Requests, cached: bool, asked: int
) -> None:
    talk.do("client", kind="default", endpoint=server)
    made = talk.do("register", subject="user", format="avro", definition=V1)
    talk.do("client", kind="configured", endpoint=server, cached=cached)
    requests.taken()
    for _ in range(2):
        assert talk.do("fetch", id=made["id"])["definition"] == V1
    assert requests.taken() == [f"GET /spring/schemas/{made['id']}"] * asked


@pytest.mark.requirement("SCS-3", "SCS-4")
@pytest.mark.parametrize("kind", ["default", "confluent"])
def test_a_reader_on_v2_fills_the_defaults_of_what_v1_wrote_and_asks_once(
    server: str, talk: Conversation, requests: Requests, kind: str
) -> None:
    endpoint = server if kind == "default" else server.removesuffix("/spring")
    talk.do("client", kind=kind, endpoint=endpoint)
    talk.do("converter")
    first = talk.do("write", schema=V1, values={"name": "Ada"})
    assert first["contentType"] == "application/vnd.user.v1+avro"
    assert len(requests.taken()) == {"default": 1, "confluent": 2}[kind]
    second = talk.do("write", schema=V1, values={"name": "Grace"})
    assert second["contentType"] == first["contentType"]
    assert requests.taken() == [], "the writer's second message asked the server"

    talk.do("converter")  # another application, whose caches are empty
    assert talk.do("read", **first, **{"as": "specific"})["values"] == {"name": "Ada", "age": -1}
    fetched = {"default": "GET /spring/user/avro/v1", "confluent": "GET /subjects/user/versions/1"}
    assert requests.taken() == [fetched[kind]]
    assert talk.do("read", **second, **{"as": "specific"})["values"] == {"name": "Grace", "age": -1}
    assert requests.taken() == [], "the reader's second message asked the server"


@pytest.mark.requirement("SCS-3", "SCS-4")
def test_each_version_is_asked_for_once(server: str, talk: Conversation, requests: Requests) -> None:
    talk.do("client", kind="default", endpoint=server)
    talk.do("converter", prefix="acme")
    one = talk.do("write", schema=V1, values={"name": "Ada"})
    two = talk.do("write", schema=V2, values={"name": "Grace", "age": 45})
    assert two["contentType"] == "application/acme.user.v2+avro"
    requests.taken()
    talk.do("converter", prefix="acme")
    found = [talk.do("read", **message, **{"as": "specific"})["values"] for message in (one, two, one, two)]
    assert [values["age"] for values in found] == [-1, 45, -1, 45]
    assert requests.taken() == ["GET /spring/user/avro/v1", "GET /spring/user/avro/v2"]


@pytest.mark.requirement("SCS-4")
def test_a_fixed_reader_schema_overrides_look_ups(server: str, talk: Conversation, requests: Requests) -> None:
    talk.do("client", kind="default", endpoint=server)
    talk.do("converter")
    message = talk.do("write", schema=V2, values={"name": "Grace", "age": 45})
    requests.taken()
    talk.do("converter", readerSchema=V2)
    assert talk.do("read", **message, **{"as": "generic"})["values"] == {"name": "Grace", "age": 45}
    assert requests.taken() == []


@pytest.mark.requirement("SCS-4")
def test_schemas_of_the_application_are_registered_at_its_start(
    server: str, talk: Conversation, requests: Requests
) -> None:
    talk.do("client", kind="default", endpoint=server)
    talk.do("converter", schemaLocation=V1)
    assert requests.taken() == ["POST /spring"]
    assert talk.do("fetch", subject="user", version=1, format="avro")["definition"]


@pytest.mark.requirement("SCS-5")
def test_the_confluent_client_does_its_round_trip(server: str, talk: Conversation) -> None:
    talk.do("client", kind="confluent", endpoint=server.removesuffix("/spring"))
    first = talk.do("register", subject="user", format="avro", definition=V1)
    assert talk.do("register", subject="user", format="avro", definition=V2)["version"] == 2
    assert talk.do("register", subject="user", format="avro", definition=V1) == first
    assert json.loads(talk.do("fetch", id=first["id"])["definition"]) == json.loads(V1)
    assert json.loads(talk.do("fetch", subject="user", version=2, format="avro")["definition"]) == json.loads(V2)
    assert talk.tell("register", subject="user", format="avro", definition=INCOMPATIBLE)["error"] == "RuntimeException"
    assert talk.tell("fetch", id=2**31 - 1)["error"] == "SchemaNotFoundException"


@pytest.mark.requirement("SCS-1", "SCS-5")
def test_what_one_client_registers_the_other_fetches(server: str, talk: Conversation) -> None:
    talk.do("client", kind="confluent", endpoint=server.removesuffix("/spring"))
    talk.do("register", subject="user", format="avro", definition=V1)
    talk.do("client", kind="default", endpoint=server)
    assert json.loads(talk.do("fetch", subject="user", version=1, format="avro")["definition"]) == json.loads(V1)
    assert talk.do("register", subject="user", format="avro", definition=V2)["version"] == 2
    talk.do("client", kind="confluent", endpoint=server.removesuffix("/spring"))
    assert json.loads(talk.do("fetch", subject="user", version=2, format="avro")["definition"]) == json.loads(V2)


@pytest.mark.requirement("SCS-1")
def test_the_released_server_answers_as_recorded() -> None:
    require_tools("Spring's schema server", JAVA)
    recorded = json.loads(RECORDED.read_text())
    for scenario, answers in record().items():
        for now, then in zip(answers, recorded["scenarios"][scenario], strict=True):
            assert comparable(now) == comparable(then)


def comparable(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what the Java that runs the server says in its own words."""
    if answer["status"] != 500:
        return answer
    return {**answer, "body": {**answer["body"], "message": ""}}
