"""Where else a subject is: told of the registries alone in which its reader may read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from registry.access.models import RoleGrant, User
from registry.access.roles import Actor
from registry.access.selectors import actor_of_user
from registry.promotions import selectors, services
from registry.promotions.models import Environment, PromotionRequest
from registry.subjects.models import Mode, Registry
from tests.conftest import RawClient
from tests.promotions.factories import ORDERS, PEOPLE, V1, V2, Cast, register

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-4")]
SUBJECT = "/ui/registries/dev/subjects/orders-value"
#: none of these pages may lead to what prod or staging has, nor say that they have it
PAGES = (f"{SUBJECT}/", f"{SUBJECT}/?tab=settings", f"{SUBJECT}/retire", "/ui/registries/dev/subjects", "/ui/registries/dev/subjects?sort=name")  # fmt: skip
#: the rights of a reader → the environments that they may hear of
RIGHTS: dict[str, tuple[list[dict[str, str]], tuple[str, ...]]] = {
    "dev alone": ([{"registry": "dev"}], ()),
    "other subjects of staging": ([{"registry": "dev"}, {"registry": "staging", "subject_pattern": "other-*"}], ()),
    "the subject in staging": ([{"registry": "dev"}, {"registry": "staging", "subject_pattern": "ord*"}], ("staging",)),
    "all": ([{}], ("staging", "prod")),
}


@pytest.fixture
def cast(person: Callable[[str], Actor]) -> Cast:
    return {name: person(name) for name in PEOPLE}


@pytest.fixture
def spread(cast: Cast) -> None:
    """The subject in all three, with a release and an open request, and a content that prod has alone."""
    register(V1, cast["steward"])
    asked: dict[str, Any] = {"source": "dev", "subject": ORDERS, "version": 1, "by": cast["steward"]}
    number = services.request_promotion(target="staging", **asked)
    services.approve(request_id=number, by=cast["approver"], plan_hash=selectors.get_request(number).plan_hash)
    services.apply(request_id=number, by=cast["approver"])
    services.request_promotion(target="prod", **asked)
    Environment.objects.filter(registry__name="prod").update(is_closed=False)
    Mode.objects.filter(registry__name="prod").delete()
    register(V2, cast["admin"], registry="prod")


def reader(rights: list[dict[str, str]]) -> Client:
    user = User.objects.get(username="reader")
    RoleGrant.objects.filter(user=user).delete()
    for given in rights:
        RoleGrant.objects.create(user=user, role="reader", **given)
    client = RawClient()
    client.force_login(user)
    return client


@pytest.mark.parametrize("rights", RIGHTS)
def test_pages_tell_of_no_registry_that_is_out_of_sight(spread: None, rights: str) -> None:
    grants, seen = RIGHTS[rights]
    client, wrong = reader(grants), []
    for path in PAGES:
        answer = client.get(path)
        assert answer.status_code == 200, path
        for place in ("staging", "prod"):
            main = answer.content.decode().partition("<main")[2]
            if f"/ui/registries/{place}/subjects/orders-value" in main and place not in seen:
                wrong.append(f"{path} leads to {place}")
    page = client.get(PAGES[0]).context["page"]
    lanes = [lane.environment.name for lane in page.lanes.lanes]
    assert lanes == ["dev", *seen]
    assert {head.elsewhere for head in page.lanes.heads} == ({"", "prod"} if "prod" in seen else {""})
    (row,) = client.get("/ui/registries/dev/subjects").context["page"].table.rows
    assert set(row.info.versions) == {"dev", *seen}
    assert wrong == []


@pytest.mark.parametrize("rights", RIGHTS)
def test_the_life_of_versions_has_what_may_be_read(spread: None, rights: str) -> None:
    grants, seen = RIGHTS[rights]
    reader(grants)
    by = actor_of_user(User.objects.get(username="reader"), channel="ui")
    (life,) = selectors.timelines_of(Registry.objects.get(name="dev"), ORDERS, by=by)
    assert {release.environment for release in life.releases} == {"staging"} & set(seen)
    assert {request.target for request in life.requests} == {"prod"} & set(seen)


@pytest.mark.parametrize("rights", RIGHTS)
def test_a_list_leads_to_requests_that_may_be_read(spread: None, rights: str) -> None:
    grants, seen = RIGHTS[rights]
    number = PromotionRequest.objects.get(target__registry__name="prod").pk
    answer = reader(grants).get("/ui/registries/dev/subjects")
    (row,) = answer.context["page"].table.rows
    text = answer.content.decode()
    assert (f'href="/ui/promotions/{number}"' in text) is ("prod" in seen)
    assert (row.request, row.has_request) == (number if "prod" in seen else None, True)
    assert (f"request {number}" if "prod" in seen else "open request") in text


def test_the_newest_that_may_be_read_comes_first(spread: None, cast: Cast) -> None:
    register({**V1, "doc": "next"}, cast["steward"])
    number = services.request_promotion(source="dev", target="staging", subject=ORDERS, by=cast["steward"])
    newer = services.request_promotion(source="dev", target="prod", subject=ORDERS, by=cast["steward"])
    for grants, wanted in (([{}], newer), ([{"registry": "dev"}, {"registry": "staging"}], number)):
        (row,) = reader(grants).get("/ui/registries/dev/subjects").context["page"].table.rows
        assert row.request == wanted
