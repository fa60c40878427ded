"""A reader of some subjects alone: consumers with least rights decode, and learn nothing of what is outside."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext
from django.core.servers.basehttp import WSGIRequestHandler
from django.test import Client

from registry.access.models import RoleGrant, User
from registry.access.roles import Actor
from registry.access.services import issue_token
from registry.formats.base import Reference
from registry.subjects.associations.requests import AssociationSpec, Resource
from registry.subjects.associations.services import associate
from registry.subjects.models import SchemaVersion
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName, parse_subject
from tests.conftest import RawClient

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.requirement("CARD-4")]
CONTENT = "application/vnd.schemaregistry.v1+json"
GOOGLE = "/v1/projects/local/locations/local/schemaRegistries/dev"
GEO = '{"type":"record","name":"Geo","fields":[{"name":"lat","type":"double"}]}'
ADDRESS = '{"type":"record","name":"Address","fields":[{"name":"geo","type":"Geo"}]}'
ORDER = '{"type":"record","name":"Order","fields":[{"name":"to","type":"Address"}]}'
SECRET = '{"type":"record","name":"Secret","fields":[{"name":"key","type":["null","Geo"],"default":null}]}'
#: subject → schema and references, in the order of registration: ids are 1, 2, 3, …, and 1 in the context
SUBJECTS: tuple[tuple[str, str, tuple[Reference, ...]], ...] = (
    ("geo", GEO, ()),
    ("address", ADDRESS, (Reference("Geo", "geo", 1),)),
    ("s-orders-value", ORDER, (Reference("Address", "address", 1),)),
    ("hidden-value", SECRET, (Reference("Geo", "geo", 1),)),
    ("hidden-key", '"string"', ()),
    ("s-orders-key", '"string"', ()),
    (":.team:s-orders-value", '"int"', ()),
    (":.team:hidden-value", '"long"', ()),
)
GEO_ID, ADDRESS_ID, ORDER_ID, SECRET_ID, STRING_ID, ABSENT_ID = 1, 2, 3, 4, 5, 99


@pytest.fixture
def subjects(registries: None, system: Actor) -> dict[str, str]:
    """The subjects; GUIDs by subject."""
    for name, text, references in SUBJECTS:
        register_version(registry="dev", subject=parse_subject(name), text=text, references=references, by=system)
    rows = SchemaVersion.objects.select_related("schema", "subject__context")
    return {
        SubjectName(row.subject.context.name, row.subject.name).qualified: str(row.schema.guid)
        for row in rows.filter(version=1)
    }


@pytest.fixture
def secret_of(subjects: dict[str, str], system: Actor) -> Callable[..., str]:
    """A token of somebody whose role is for the subjects of a pattern in dev."""

    def make(pattern: str = "s-orders-*", role: str = "reader") -> str:
        user, _ = User.objects.get_or_create(username=f"{role}-of-some")
        RoleGrant.objects.update_or_create(
            user=user, defaults={"role": role, "registry": "dev", "subject_pattern": pattern}
        )
        return issue_token(username=user.username, name=pattern, by=system)

    return make


@pytest.fixture
def reader(secret_of: Callable[..., str]) -> Client:
    return RawClient(headers={"authorization": f"Bearer {secret_of()}", "accept": "*/*"})


def said(client: Client, path: str) -> tuple[int, Any]:
    answer = client.get(path)
    return answer.status_code, json.loads(answer.content) if answer.content else None


#: paths, and what is answered of the JSON: a status and a part of it
READ: dict[str, Any] = {
    f"/schemas/ids/{ORDER_ID}": {"schema": ORDER},
    f"/schemas/ids/{ORDER_ID}?subject=s-orders-value": {"schema": ORDER, "version": 1},
    f"/schemas/ids/{ORDER_ID}?subject=hidden-value": {"schema": ORDER},
    f"/schemas/ids/{ORDER_ID}?subject=nowhere-value": {"schema": ORDER},
    f"/schemas/ids/{ADDRESS_ID}": {"schema": ADDRESS},
    f"/schemas/ids/{GEO_ID}": {"schema": GEO},
    f"/contexts/./schemas/ids/{GEO_ID}": {"schema": GEO},
    "/subjects/address/versions/1": {"schema": ADDRESS, "version": 1},
    "/subjects/address/versions/1?deleted=true": {"schema": ADDRESS},
    "/subjects/geo/versions/1": {"schema": GEO},
    f"/schemas/ids/{ORDER_ID}/subjects": ["s-orders-value"],
    f"/schemas/ids/{ORDER_ID}/versions": [{"subject": "s-orders-value", "version": 1}],
    f"/schemas/ids/{STRING_ID}/subjects": ["s-orders-key"],
    f"/schemas/ids/{STRING_ID}/versions": [{"subject": "s-orders-key", "version": 1}],
    f"/schemas/ids/{GEO_ID}/versions": [],
    "/subjects": ["s-orders-key", "s-orders-value"],
    "/subjects?deleted=true": ["s-orders-key", "s-orders-value"],
    "/contexts": ["."],
    "/schemas/types": ["AVRO", "JSON", "PROTOBUF"],
    "/": {},
    f"{GOOGLE}/schemas/ids/{ORDER_ID}": {"schema": ORDER},
    f"{GOOGLE}/schemas/ids/{GEO_ID}": {"schema": GEO},
    f"{GOOGLE}/schemas/ids/{STRING_ID}/subjects": ["s-orders-key"],
    f"{GOOGLE}/subjects": ["s-orders-key", "s-orders-value"],
    f"{GOOGLE}/subjects/address/versions/1": {"schema": ADDRESS},
}  # fmt: skip
#: a path with what may not be read, and the same with what isn't there: both are answered alike
SAME: tuple[tuple[str, str], ...] = (
    (f"/schemas/ids/{SECRET_ID}", f"/schemas/ids/{ABSENT_ID}"),
    (f"/schemas/ids/{SECRET_ID}/schema", f"/schemas/ids/{ABSENT_ID}/schema"),
    (f"/schemas/ids/{SECRET_ID}/subjects", f"/schemas/ids/{ABSENT_ID}/subjects"),
    (f"/schemas/ids/{SECRET_ID}/versions", f"/schemas/ids/{ABSENT_ID}/versions"),
    (f"/schemas/ids/{SECRET_ID}?subject=hidden-value", f"/schemas/ids/{ABSENT_ID}?subject=hidden-value"),
    (f"/schemas/ids/{SECRET_ID}?subject=s-orders-value", f"/schemas/ids/{ABSENT_ID}?subject=s-orders-value"),
    ("/contexts/.team/schemas/ids/2", f"/contexts/.team/schemas/ids/{ABSENT_ID}"),
    ("/contexts/.team/schemas/ids/2", f"/contexts/.nowhere/schemas/ids/{ABSENT_ID}"),
    ("/schemas/guids/{hidden-value}", "/schemas/guids/00000000-0000-0000-0000-000000000000"),
    ("/schemas/guids/{hidden-value}/ids", "/schemas/guids/00000000-0000-0000-0000-000000000000/ids"),
    ("/subjects/hidden-value/versions/1", "/subjects/nowhere-value/versions/1"),
    ("/subjects/hidden-value/versions/latest", "/subjects/nowhere-value/versions/latest"),
    ("/subjects/geo/versions/latest", "/subjects/nowhere-value/versions/latest"),
    ("/subjects/geo/versions", "/subjects/nowhere-value/versions"),
    ("/subjects/geo/versions/2", "/subjects/nowhere-value/versions/2"),
    (f"{GOOGLE}/schemas/ids/{SECRET_ID}", f"{GOOGLE}/schemas/ids/{ABSENT_ID}"),
    (f"{GOOGLE}/subjects/hidden-value/versions/1", f"{GOOGLE}/subjects/nowhere-value/versions/1"),
)


@pytest.mark.parametrize("path", READ)
def test_what_its_subjects_need_is_read(reader: Client, path: str) -> None:
    status, body = said(reader, path)
    expected = READ[path]
    assert status == 200, body
    if isinstance(expected, dict):
        assert {name: body.get(name) for name in expected} == expected
    else:
        assert body == expected


def test_texts_and_guids_are_read(reader: Client, subjects: dict[str, str]) -> None:
    assert said(reader, f"/schemas/ids/{GEO_ID}/schema") == (200, json.loads(GEO))
    assert said(reader, "/subjects/geo/versions/1/schema") == (200, json.loads(GEO))
    for subject in ("s-orders-value", "address", "geo"):
        assert said(reader, f"/schemas/guids/{subjects[subject]}")[0] == 200
    assert said(reader, f"/schemas/guids/{subjects['geo']}/ids") == (200, [{"context": ".", "id": GEO_ID}])
    assert [item["subject"] for item in said(reader, "/schemas")[1]] == ["s-orders-key", "s-orders-value"]
    assert [item["subject"] for item in said(reader, "/schemas?latestOnly=true")[1]] == [
        "s-orders-key",
        "s-orders-value",
    ]


def test_how_many_other_schemas_there_are_is_not_reported(reader: Client) -> None:
    assert "maxId" not in said(reader, f"/schemas/ids/{ORDER_ID}?fetchMaxId=true")[1]


@pytest.mark.parametrize(("hidden", "absent"), SAME)
def test_what_may_not_be_read_is_as_if_it_were_not_there(
    reader: Client, subjects: dict[str, str], hidden: str, absent: str
) -> None:
    path = hidden.replace("{hidden-value}", subjects["hidden-value"])
    (status, body), (other, rest) = said(reader, path), said(reader, absent)
    assert status == other and status in (403, 404)
    tokens = (str(SECRET_ID), "hidden", "geo", subjects["hidden-value"], ".team", "2")
    text, told = (json.dumps(item) for item in (body, rest))
    for number, name in enumerate(sorted(tokens, key=len, reverse=True)):
        if f"/{name}" in path or f"={name}" in path:
            text = text.replace(name, f"<{number}>")
    for name in ("99", "nowhere", "00000000-0000-0000-0000-000000000000"):
        assert name not in text
    assert body["error_code" if "error_code" in body else "error"] is not None
    assert "Secret" not in text and "Secret" not in told


def test_a_pattern_of_a_context(secret_of: Callable[..., str]) -> None:
    client = RawClient(headers={"authorization": f"Bearer {secret_of(':.team:s-orders-*')}", "accept": "*/*"})
    assert said(client, "/contexts/.team/schemas/ids/1")[1]["schema"] == '"int"'
    assert said(client, "/schemas/ids/1?subject=:.team:s-orders-value")[1]["schema"] == '"int"'
    assert said(client, "/schemas/ids/1?subject=:.team:")[1]["schema"] == '"int"'
    for path in ("/schemas/ids/1", "/contexts/.team/schemas/ids/2", "/schemas/ids/2?subject=:.team:hidden-value"):
        assert said(client, path)[0] == 404
    assert said(client, "/subjects") == (200, [":.team:s-orders-value"])
    assert said(client, "/contexts") == (200, [".", ".team"])


def test_nobody_reads_by_referring(secret_of: Callable[..., str]) -> None:
    """A steward of the pattern can't refer to what it may not read, whatever the door; a reader can't ask so either."""
    client = RawClient(headers={"authorization": f"Bearer {secret_of(role='steward')}", "accept": "*/*"})
    text = '{"type":"record","name":"Own","fields":[{"name":"x","type":["null","Secret"],"default":null}]}'
    answers = []
    for subject in ("hidden-value", "nowhere-value"):
        reference = {"name": "Secret", "subject": subject, "version": 1}
        data = json.dumps({"schema": text, "references": [reference]})
        for path in (
            "/subjects/s-orders-own/versions",
            "/subjects/s-orders-value",
            "/compatibility/subjects/s-orders-own/versions",
            f"{GOOGLE}/subjects/s-orders-own/versions",
            f"{GOOGLE}/subjects/s-orders-value",
            f"{GOOGLE}/compatibility/subjects/s-orders-own/versions",
        ):
            content = "application/json" if path.startswith("/v1") else CONTENT
            answer = client.post(path, data, content_type=content)
            answers.append((path, answer.status_code, answer.content.decode().replace(subject, "SUBJECT")))
        own = {"schema": text, "references": [reference], "subject": "s-orders-own"}
        for path in ("/api/v1/compatibility-reports", "/api/v1/proposals", "/api/v1/drafts"):
            more = {"target": "dev", "reason": "why"} if path.endswith("proposals") else {"registry": "dev"}
            data = json.dumps({**own, **more})
            answer = client.post(path, data, content_type="application/json")
            answers.append((path, answer.status_code, answer.content.decode().replace(subject, "SUBJECT")))
    half = len(answers) // 2
    assert answers[:half] == answers[half:]
    assert [row for row in answers if "No schema reference found" not in row[2]] == []
    assert {status for _, status, _ in answers} <= {400, 422}
    assert said(client, "/subjects/hidden-value/versions/1")[0] == 403


def test_ids_that_refer_are_reported_as_far_as_they_may_be_read(secret_of: Callable[..., str]) -> None:
    client = RawClient(headers={"authorization": f"Bearer {secret_of('geo')}", "accept": "*/*"})
    assert said(client, "/subjects/geo/versions/1/referencedby") == (200, [])
    assert said(client, f"{GOOGLE}/subjects/geo/versions/1/referencedby") == (200, [])


def test_spring_ids_outside_are_as_absent_ones(reader: Client) -> None:
    rows = dict(SchemaVersion.objects.filter(subject__context__name=".").values_list("subject__name", "pk"))
    assert said(reader, f"/spring/schemas/{rows['s-orders-value']}")[0] == 200
    (status, hidden), (other, absent) = (said(reader, f"/spring/schemas/{n}") for n in (rows["geo"], 99_999))
    assert (status, other) == (404, 404)
    varies = {"path": "", "timestamp": "", "details": ""}
    assert {**hidden, **varies} == {**absent, **varies}
    assert hidden["details"].replace(str(rows["geo"]), "N") == absent["details"].replace("99999", "N")


@pytest.fixture
def live_reader(
    monkeypatch: pytest.MonkeyPatch, transactional_db: None, live_server: Any, secret_of: Callable[..., str]
) -> Iterator[SchemaRegistryClient]:
    """An unmodified client with the rights of the reader."""
    environ = WSGIRequestHandler.get_environ
    monkeypatch.setattr(WSGIRequestHandler, "get_environ", lambda self: {**environ(self), "RAW_URI": self.path})
    yield SchemaRegistryClient({"url": live_server.url, "basic.auth.user.info": f"any:{secret_of()}"})


def test_an_unmodified_client_decodes_with_least_rights(
    live_reader: SchemaRegistryClient, live_server: Any, token: Any
) -> None:
    admin = SchemaRegistryClient({"url": live_server.url, "basic.auth.user.info": f"any:{token('admin')}"})
    context = SerializationContext("s-orders", MessageField.VALUE)
    schema = Schema(ORDER, "AVRO", [SchemaReference("Address", "address", 1)])
    datum = {"to": {"geo": {"lat": 48.2}}}
    written = AvroSerializer(admin, schema)(datum, context)
    assert AvroDeserializer(live_reader)(written, context) == datum
    with pytest.raises(SchemaRegistryError) as refused:
        live_reader.get_schema(SECRET_ID)
    assert refused.value.http_status_code == 404


def test_associations_of_readable_subjects_are_reported(reader: Client, system: Actor) -> None:
    for number, topic in enumerate(("s-orders", "hidden")):
        associate(
            registry="dev",
            resource=Resource(name=topic, namespace="lkc", id=f"id-{number}", type="topic"),
            specs=[AssociationSpec(subject=f"{topic}-value", association_type="value", lifecycle="WEAK")],
            by=system,
            create=True,
        )
    assert [item["subject"] for item in said(reader, "/associations/resources/lkc/s-orders")[1]] == ["s-orders-value"]
    assert [item["subject"] for item in said(reader, "/associations/resources/id-0")[1]] == ["s-orders-value"]
    assert (
        said(reader, "/associations/resources/lkc/hidden")
        == said(reader, "/associations/resources/lkc/nowhere")
        == (200, [])
    )
    assert said(reader, "/associations/resources/id-1") == (200, [])
    batch = json.dumps({"requests": [{"resourceId": "id-1"}, {"resourceId": "id-0"}]})
    answer = reader.post("/associations:batchGet?includeSchemas=true", batch, content_type=CONTENT)
    assert answer.status_code == 207 and "hidden" not in answer.content.decode()
    assert reader.delete("/associations/resources/id-0").status_code == 403
