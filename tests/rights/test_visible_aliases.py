"""The alias of a subject names another subject: only who may read that one is told."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable

import pytest
from django.test import Client

from registry.access.models import RoleGrant, User
from registry.access.roles import Actor
from registry.access.selectors import actor_of_user
from registry.access.services import issue_token
from registry.subjects.lifecycle.bulk import export_subjects
from registry.subjects.services import set_config
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import RawClient
from tests.promotions.factories import V1, register

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-4")]
OPEN, PLAIN, SECRET = (SubjectName(".", name) for name in ("open-orders", "open-plain", "secret-orders"))
GOOGLE = "/v1/projects/local/locations/local/schemaRegistries/dev"
PATTERNS = {"open-*": False, "*": True}


@pytest.fixture
def browser(person: Callable[[str], Actor], system: Actor) -> Callable[[str], tuple[Client, Actor]]:
    """A steward of the subjects that match a pattern."""
    for name in (OPEN, PLAIN, SECRET):
        register(V1, person("admin"), subject=name)
    set_config(registry="dev", subject=OPEN, level="FULL", alias="secret-orders", by=person("admin"))
    set_config(registry="dev", subject=PLAIN, level="FULL", by=person("admin"))

    def make(pattern: str) -> tuple[Client, Actor]:
        person("steward")
        user = User.objects.get(username="steward")
        RoleGrant.objects.filter(user=user).update(registry="dev", subject_pattern=pattern)
        secret = issue_token(username="steward", name="t", by=system)
        client = RawClient(headers={"authorization": f"Bearer {secret}"})
        client.force_login(user)
        return client, actor_of_user(user, channel="api")

    return make


@pytest.mark.parametrize(
    ("method", "address"),
    [
        ("GET", "/config/open-orders"),
        ("GET", "/config/open-orders?defaultToGlobal=true"),
        ("DELETE", "/config/open-orders"),
        ("GET", f"{GOOGLE}/config/open-orders"),
        ("DELETE", f"{GOOGLE}/config/open-orders"),
        ("DELETE", "/api/v1/config?registry=dev&subject=open-orders"),
    ],
)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_settings_name_no_alias_that_is_out_of_sight(
    browser: Callable[[str], tuple[Client, Actor]], pattern: str, method: str, address: str
) -> None:
    client, _ = browser(pattern)
    answer = client.generic(method, address)
    assert answer.status_code == 200, answer.content
    assert "FULL" in answer.content.decode()
    assert ("secret-orders" in answer.content.decode()) is PATTERNS[pattern]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_neither_the_audit_nor_an_export_names_it(browser: Callable[[str], tuple[Client, Actor]], pattern: str) -> None:
    client, actor = browser(pattern)
    events = client.get("/api/v1/audit").getvalue().decode()
    assert "open-plain" in events
    assert ("secret-orders" in events) is PATTERNS[pattern]
    file = io.BytesIO()
    export_subjects(registry="dev", subjects=[OPEN], file=file, by=actor)
    with zipfile.ZipFile(file) as archive:
        content = archive.read("subjects.jsonl").decode()
    assert "FULL" in content
    assert ("secret-orders" in content) is PATTERNS[pattern]


def test_no_call_for_the_alias_tells_its_name(browser: Callable[[str], tuple[Client, Actor]]) -> None:
    client, _ = browser("open-*")
    for address in ("versions", "versions/latest", "versions/1/referencedby", "metadata"):
        assert "secret-orders" not in client.get(f"/subjects/open-orders/{address}").content.decode(), address
    for address in ("/schemas?aliases=true", "/schemas?subjectPrefix=open&aliases=true", "/subjects", "/ui/registries/dev/subjects/open-orders/?tab=settings", "/ui/audit"):  # fmt: skip
        assert "secret-orders" not in client.get(address).getvalue().decode(), address


@pytest.mark.parametrize(
    ("method", "address"),
    [
        ("GET", "/subjects/{name}/versions"),
        ("GET", "/subjects/{name}/versions/1"),
        ("GET", "/subjects/{name}/versions/latest"),
        ("GET", "/subjects/{name}/metadata"),
        ("POST", "/subjects/{name}"),
        ("POST", "/subjects/{name}/versions"),
        ("POST", "/compatibility/subjects/{name}/versions"),
        ("GET", GOOGLE + "/subjects/{name}/versions"),
        ("GET", GOOGLE + "/subjects/{name}/versions/1"),
        ("POST", GOOGLE + "/subjects/{name}:lookupVersion"),
        ("GET", "/spring/{name}/avro"),
        ("GET", "/spring/{name}/avro/v1"),
    ],
)
def test_nothing_tells_that_an_alias_with_a_name_out_of_sight_exists(
    browser: Callable[[str], tuple[Client, Actor]], person: Callable[[str], Actor], method: str, address: str
) -> None:
    set_config(registry="dev", subject=SubjectName(".", "secret-alias"), alias="open-plain", by=person("admin"))
    client, _ = browser("open-*")
    body = json.dumps({"schema": V1})
    there, missing = (
        client.generic(method, address.format(name=name), body, content_type="application/json")
        for name in ("secret-alias", "secret-absent")
    )
    assert (there.status_code, missing.status_code) == (403, 403)
    texts = [re.sub(r'"timestamp":"[^"]*"', "", answer.content.decode()) for answer in (there, missing)]
    assert texts[0].replace("alias", "absent") == texts[1]
