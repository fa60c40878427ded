"""Rights for a registry that doesn't exist are refused, with those that do; for subjects to come there is a warning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from registry.access.roles import Actor
from registry.access.services import add_owner, grant, grant_to_group, make_group, make_token
from registry.errors import InvalidInput
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import signed_in

pytestmark = pytest.mark.requirement("CARD-4")

Person = Callable[[str], Actor]


def _grant(by: Actor, **scope: str) -> None:
    grant(username="stranger", role="steward", by=by, **scope)


def _grant_to_group(by: Actor, **scope: str) -> None:
    grant_to_group(group="orders", role="steward", by=by, **scope)


def _own(by: Actor, **scope: str) -> None:
    add_owner(group="orders", by=by, **{"subject_pattern": "*", **scope})


def _token(by: Actor, **scope: str) -> None:
    make_token(username="admin", name="program", by=by, **scope)


SERVICES = [_grant, _grant_to_group, _own, _token]
#: registry, pattern, the error
REFUSED = [
    (
        "devv",
        "*",
        "There is no registry 'devv'. The registries are dev, staging, prod. Leave the registry empty to mean",
    ),
    ("*", "*", "There is no registry '*'. The registries are dev, staging, prod."),
    ("devv", ":.lab:*", "There is no registry 'devv'."),
    ("dev", ":.:orders-*", "names in the default context have no prefix. Leave ':.:' out."),
]
ACCEPTED = [
    ("dev", "*"),
    ("", "*"),
    ("dev", "later-*"),
    ("dev", ":.lab:*"),
    ("", ":.later:*"),
    ("prod", ":.lab:orders"),
]


@pytest.fixture
def admin(person: Person) -> Actor:
    admin = person("admin")
    person("stranger")
    make_group(name="orders", by=admin)
    register_version(registry="dev", subject=SubjectName(".lab", "orders-value"), text='"string"', by=person("steward"))
    return admin


@pytest.mark.parametrize("service", SERVICES)
def test_only_a_registry_that_does_not_exist_is_refused(admin: Actor, service: Any) -> None:
    for registry, pattern, error in REFUSED:
        with pytest.raises(InvalidInput) as caught:
            service(admin, registry=registry, subject_pattern=pattern)
        assert error in caught.value.message
    for registry, pattern in ACCEPTED:
        service(admin, registry=registry, subject_pattern=pattern)


def test_a_maker_of_tokens_learns_of_no_registry_that_they_may_not_read(admin: Actor, person: Person) -> None:
    grant(username="stranger", role="reader", registry="staging", by=admin)
    for registry in ("dev", "devv"):
        with pytest.raises(InvalidInput) as caught:
            make_token(username="stranger", name="program", registry=registry, by=person("stranger"))
        assert f"There is no registry {registry!r}. The registry is staging." in caught.value.message


@pytest.mark.parametrize(
    ("registry", "pattern", "warning"),
    [
        ("dev", "*", None),
        ("dev", ":.lab:orders-*", None),
        ("", ":.lab:orders-*", None),
        ("prod", ":.lab:orders-*", "The pattern ':.lab:orders-*' fits no subject of prod so far."),
        ("", ":.later:*", "The pattern ':.later:*' fits no subject of any registry so far."),
        ("dev", "later-*", "The pattern 'later-*' fits no subject of dev so far."),
    ],
)
def test_a_pattern_that_fits_nothing_yet_is_taken_with_a_warning(
    admin: Actor, api: Callable[[str], Client], registry: str, pattern: str, warning: str | None
) -> None:
    scope = {"registry": registry, "subject_pattern": pattern}
    for path, body in (
        ("people/stranger/grants", {"role": "steward"}),
        ("groups/orders/grants", {"role": "steward"}),
        ("owners", {"group": "orders"}),
        ("tokens", {"name": "program"}),
    ):
        response = api("admin").post(f"/api/v1/{path}", {**body, **scope}, content_type="application/json")
        assert (response.status_code, response.json().get("warning")) == (201, warning), response.content


def test_the_page_gives_the_warning_too(admin: Actor) -> None:
    client = signed_in("admin")
    form = {"do": "grant", "username": "stranger", "role": "reader"}
    for registry, pattern, status, text in (
        ("dev", ":.later:*", 200, "The pattern &#x27;:.later:*&#x27; fits no subject of dev so far."),
        ("devv", "*", 422, "There is no registry &#x27;devv&#x27;. The registries are dev, staging, prod."),
    ):
        body = {**form, "registry": registry, "subject_pattern": pattern}
        response = client.post("/ui/people/change", body, follow=True)
        assert (response.status_code, text in response.content.decode()) == (status, True)
        assert ('id="GrantForm_registry_error"' in response.content.decode()) == (status == 422)
    client.post("/ui/people/change", {**form, "registry": "dev", "subject_pattern": "*"})
    assert "fits no subject" not in client.get("/ui/people").content.decode()
