"""A steward of some subjects: lists show these, no link leads to a refusal, and their findings are theirs to decide on."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urljoin

import pytest
from django.test import Client

from registry.access.models import RoleGrant, User
from registry.access.roles import Actor, Grant, refusal
from registry.drift.models import Finding
from registry.formats.base import Reference
from registry.subjects.lifecycle.notes import set_note
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName, parse_subject
from tests.conftest import RawClient
from tests.dashboard.findings.test_every_rule import keep
from tests.drift.judge.real_findings import findings_by_rule

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-4")]
MONEY = '{"type":"record","name":"Money","fields":[{"name":"amount","type":"long"}]}'
CLAIM = '{"type":"record","name":"Claim","fields":[{"name":"sum","type":"Money"}]}'
LIST = "/ui/registries/dev/subjects"
#: where such a person goes; every link of these pages must lead to a page
PAGES = ("/ui/", LIST, f"{LIST}/claims-value/", f"{LIST}/claims-value/?tab=settings", f"{LIST}/claims-value/usage", f"{LIST}/claims-value/references", "/ui/findings", "/ui/sources", "/ui/queries", "/ui/registries", "/ui/environments", "/ui/promotions", "/ui/audit")  # fmt: skip
_LINK = re.compile(r'<a\b[^>]*?\bhref="(/ui/[^"#]*|\?[^"#]*)', re.DOTALL)


@pytest.fixture
def finding(registries: None, system: Actor) -> Finding:
    """A finding of claims-value, beside the subjects."""
    register_version(registry="dev", subject=SubjectName(".", "money"), text=MONEY, by=system)
    register_version(registry="dev", subject=SubjectName(".", "secret-value"), text='"string"', by=system)
    reference = (Reference("Money", "money", 1),)
    register_version(
        registry="dev", subject=SubjectName(".", "claims-value"), text=CLAIM, references=reference, by=system
    )
    register_version(registry="dev", subject=parse_subject(":.team:claims-key"), text='"int"', by=system)
    for name in ("claims-value", "secret-value"):
        set_note(registry="dev", subject=SubjectName(".", name), tags=[f"tag-{name}"], doc="", expected="*", by=system)
    made = replace(findings_by_rule()["SCHEMA_VIOLATED"], subject="claims-value", severity="break")
    return keep(made, system)


@pytest.fixture
def client(finding: Finding, person: Callable[[str], Actor], api: Callable[[str], Client]) -> Client:
    """Of a steward of claims-*, both with a session and with a token."""
    api("steward")
    user = User.objects.get(username="steward")
    RoleGrant.objects.filter(user=user).update(registry="dev", subject_pattern="claims-*")
    client = RawClient()
    client.force_login(user)
    return client


def test_no_link_leads_to_a_refusal(client: Client) -> None:
    pages: dict[str, str] = {}
    for address in PAGES:
        response = client.get(address, follow=True)
        assert response.status_code == 200, address
        links = _LINK.findall(response.content.decode())
        assert links, address
        pages |= {urljoin(address, link.replace("&amp;", "&")): address for link in links}
    refused = {link: page for link, page in pages.items() if client.get(link, follow=True).status_code >= 400}
    assert refused == {}


@pytest.mark.parametrize("query", ["", "?sort=name", "?sort=changed", "?sort=versions", "?q=value", "?counts=1", "?state=deleted", "?attention=unowned", "?lacks=channel"])  # fmt: skip
def test_the_list_has_what_matches_and_nothing_else(client: Client, query: str) -> None:
    page = client.get(f"{LIST}{query}").content.decode()
    assert ("claims-value" in page) is (query != "?state=deleted")
    assert all(name not in page for name in ("secret-value", "money", "claims-key"))


def test_the_api_lists_the_same(client: Client, api: Callable[[str], Client]) -> None:
    program = api("steward")
    rows = program.get("/api/v1/registries/dev/subjects").json()
    assert ([row["subject"] for row in rows["subjects"]], rows["total"]) == (["claims-value"], 1)
    for query in ("sort=name", "q=secret", "state=deleted"):
        assert "secret-value" not in program.get(f"/api/v1/registries/dev/subjects?{query}").content.decode()
    (entry,) = program.get("/api/v1/registries").json()
    assert (entry["name"], entry["subjects"], entry["versions"]) == ("dev", 1, 1)
    assert program.get("/api/v1/registries/dev").json() == entry
    assert program.get("/api/v1/registries/staging/subjects").status_code == 403


def test_figures_count_what_the_reader_may_see(client: Client, api: Callable[[str], Client]) -> None:
    answer = api("steward").get("/api/v1/registries/dev/team-figures").json()
    assert ([(row["owner"], row["subjects"]) for row in answer["owners"]], answer["days"]) == (
        [("all", 1), ("unowned", 1)],
        [],
    )
    page = client.get("/ui/descriptions")
    assert [row.figures.subjects for row in page.context["page"].rows] == [1, 1]
    assert "The trend needs the right to read the whole registry" in page.content.decode()
    assert client.get("/ui/descriptions?registry=staging").status_code == 403


def test_pages_state_nothing_of_what_is_out_of_sight(client: Client) -> None:
    home, registries = (client.get(address).content.decode() for address in ("/ui/", "/ui/registries"))
    assert "No sources yet" not in home + client.get("/ui/sources").content.decode()
    assert "No registries that you can read" not in registries
    assert "empty name" not in client.get(f"{LIST}/claims-value/usage").content.decode()


def test_a_refusal_says_that_the_role_covers_only_some_subjects(client: Client) -> None:
    page = client.get("/ui/registries/dev/policy")
    assert page.status_code == 403
    assert "Your role there covers only some subjects." in page.content.decode()
    some = Actor("a", "ui", 1, (Grant("steward", "dev", "claims-*"),))
    assert "covers only some" not in refusal(some, "schema.read", registry="staging")
    assert "covers only some" not in refusal(some, "mode.change", registry="dev")


@pytest.mark.parametrize(("pattern", "status"), [("claims-*", 200), ("money", 404)])
def test_a_finding_is_decided_on_by_the_steward_of_its_subject(
    client: Client, api: Callable[[str], Client], finding: Finding, pattern: str, status: int
) -> None:
    RoleGrant.objects.filter(user__username="steward").update(subject_pattern=pattern)
    answer = api("steward").post(
        f"/api/v1/findings/{finding.pk}/acknowledge", {"reason": "known"}, content_type="application/json"
    )
    assert answer.status_code == status, answer.content
    finding.refresh_from_db()
    assert (finding.state == "acknowledged") is (status == 200)
    RoleGrant.objects.filter(user__username="steward").update(role="reader", subject_pattern="claims-*")
    assert (
        api("steward").post(f"/api/v1/findings/{finding.pk}/reopen", {}, content_type="application/json").status_code
        == 403
    )
