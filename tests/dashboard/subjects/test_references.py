"""The graph of references around a subject: both directions, pins, what was deleted, and how wide it may be."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from playwright.sync_api import Page, expect

from registry.access.models import RoleGrant, User
from registry.access.roles import Actor
from registry.errors import InvalidVersion, SubjectNotFound, VersionNotFound
from registry.formats.base import Reference
from registry.subjects.models import Context, Registry, Schema, SchemaReference, SchemaVersion, Subject
from registry.subjects.references.reference_graph import ReferenceNode, reference_graph
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.markup import compact

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("GOO-5"), pytest.mark.requirement("CARD-4")]

QUERIES = json.loads((Path(__file__).parents[1] / "query_counts.json").read_text())
NASTY = "<b>/%2F\u202e&"


@pytest.fixture
def dev(registries: None) -> Registry:
    return Registry.objects.get(name="dev")


@pytest.fixture
def add(registries: None, system: Actor) -> Callable[..., None]:
    """Registers a version of a subject that refers to versions of others, each by its name."""

    def make(subject: str, *targets: tuple[str, int], marker: str = "") -> None:
        name = re.sub(r"\W", "_", subject)
        fields: list[dict[str, Any]] = [
            {"name": f"f{number}", "type": f"of.{re.sub(r'[^A-Za-z0-9]', '_', target)}"}
            for number, (target, _) in enumerate(targets)
        ]
        if marker:
            fields.append({"name": marker, "type": "long", "default": 0})
        text = json.dumps(
            {"type": "record", "name": re.sub(r"[^A-Za-z0-9]", "_", name), "namespace": "of", "fields": fields}
        )
        references = [
            Reference(f"of.{re.sub(r'[^A-Za-z0-9]', '_', target)}", target, version) for target, version in targets
        ]
        register_version(
            registry="dev", subject=SubjectName(".", subject), text=text, references=references, by=system, force=True
        )

    return make


@pytest.fixture
def shop(add: Callable[..., None]) -> None:
    """country ← address ← customer, order; order ← invoice; address moved on since."""
    add("country")
    add("address", ("country", 1))
    add("customer", ("address", 1))
    add("order", ("address", 1), ("customer", 1))
    add("invoice", ("order", 1))
    add("report", ("invoice", 1))
    add("address", ("country", 1), marker="floor")


def outline(nodes: tuple[ReferenceNode, ...]) -> dict[str, Any]:
    """Names, as nested as the nodes."""
    return {node.subject.qualified: outline(node.nodes) for node in nodes}


def page_of(subject: str, query: str = "") -> str:
    return f"/ui/registries/dev/subjects/{subject}/references{query}"


def text_of(response: Any) -> str:
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", response.content.decode())))


def test_two_steps_each_way_with_pins(shop: None, dev: Registry, system: Actor) -> None:
    graph = reference_graph(dev, SubjectName(".", "address"), by=system)
    assert (graph.version, graph.latest) == (2, 2)
    assert outline(graph.references) == {"country": {}}
    assert outline(graph.dependants) == {"customer": {"order": {}}, "order": {"invoice": {}}}
    customer, order = graph.dependants
    assert (customer.version, customer.pins, order.latest) == (1, (1,), 1)
    (invoice,) = order.nodes
    assert invoice.more == 1, "report refers to it, a step too far"
    order_graph = reference_graph(dev, SubjectName(".", "order"), by=system)
    assert outline(order_graph.references) == {"address": {"country": {}}, "customer": {"address": {}}}
    (address, _) = order_graph.references
    assert (address.version, address.latest, address.name) == (1, 2, "of.address")
    assert reference_graph(dev, SubjectName(".", "order"), by=system, steps=1).references[0].nodes == ()


def test_a_dependant_is_its_newest_version_that_refers(add: Callable[..., None], dev: Registry, system: Actor) -> None:
    add("base")
    add("base", marker="more")
    add("user", ("base", 1))
    add("user", ("base", 2), marker="x")
    add("user", marker="y")
    (user,) = reference_graph(dev, SubjectName(".", "base"), by=system).dependants
    assert (user.version, user.latest, user.pins) == (2, 3, (2,))


def test_a_reference_to_what_was_deleted_is_marked(
    shop: None, dev: Registry, system: Actor, look: Callable[[str], Client]
) -> None:
    SchemaVersion.objects.filter(subject__name="address", version=1).update(deleted_at=timezone.now())
    graph = reference_graph(dev, SubjectName(".", "customer"), by=system)
    (address,) = graph.references
    assert (address.version, address.broken, address.latest) == (1, (1,), 2)
    response = look("reader").get(page_of("customer"))
    assert "Version 1 was deleted." in text_of(response)
    assert response.content.decode().count("edge-broken") == 1
    assert response.content.decode().count("box-broken") == 1
    into = look("reader").get(page_of("address"))
    assert "version 1 refers to version 1" in text_of(into)
    assert "Version 1 was deleted." in text_of(into)


def test_a_subject_that_refers_to_its_own_past_comes_to_an_end(
    add: Callable[..., None], dev: Registry, system: Actor, look: Callable[[str], Client]
) -> None:
    add("tree")
    text = json.dumps({"type": "record", "name": "Wrap", "fields": [{"name": "t", "type": "of.tree"}]})
    register_version(
        registry="dev", subject=SubjectName(".", "tree"), text=text, references=[Reference("of.tree", "tree", 1)],
        by=system, force=True,
    )  # fmt: skip
    graph = reference_graph(dev, SubjectName(".", "tree"), by=system)
    assert (outline(graph.references), graph.dependants) == ({"tree": {}}, ())
    assert look("reader").get(page_of("tree")).status_code == 200


def many(dev: Registry, target: str, count: int) -> None:
    """Subjects that refer to version 1 of one, written at once."""
    pinned = SchemaVersion.objects.get(subject__name=target, version=1)
    context = pinned.subject.context
    Context.objects.filter(pk=context.pk).update(next_schema_id=20_000)
    schemas = Schema.objects.bulk_create(
        Schema(context=context, schema_id=10_000 + number, schema_type="AVRO", canonical='"long"', identity=f"{number:064}", fingerprint=f"{number:064}", guid=f"{number:032}")
        for number in range(count)
    )  # fmt: skip
    subjects = Subject.objects.bulk_create(Subject(context=context, name=f"d{number:05}") for number in range(count))
    SchemaVersion.objects.bulk_create(
        SchemaVersion(subject=subject, version=1, schema=schema, submitted="", created_by="x", channel="x")
        for subject, schema in zip(subjects, schemas, strict=True)
    )
    SchemaReference.objects.bulk_create(
        SchemaReference(schema=schema, position=0, name="n", subject_name=target, target=pinned) for schema in schemas
    )


def test_a_thousand_dependants_are_counted_and_few_are_drawn(
    shop: None, dev: Registry, system: Actor, look: Callable[[str], Client]
) -> None:
    many(dev, "country", 1_000)
    graph = reference_graph(dev, SubjectName(".", "country"), by=system)
    assert (len(graph.dependants), graph.more_dependants) == (50, 951)
    around = reference_graph(dev, SubjectName(".", "address"), 1, by=system)
    assert around.references[0].nodes == ()
    response = look("reader").get(page_of("country"))
    page = response.content.decode()
    assert len(page) < 60_000
    assert page.count('class="box') <= 20
    assert "+993" in page
    assert "and 951 more" in text_of(response)


def test_as_many_queries_for_a_thousand_as_for_three(shop: None, dev: Registry, look: Callable[[str], Client]) -> None:
    client = look("reader")

    def count(address: str) -> int:
        client.get(address)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(address).status_code == 200
        return len(queries)

    tab = "/ui/registries/dev/subjects/country/?tab=references"
    before = count(page_of("country")), count(tab)
    many(dev, "country", 300)
    assert (count(page_of("country")), count(tab)) == before
    assert before[0] <= QUERIES["references"]


def test_the_page_is_a_picture_and_the_same_as_a_list(shop: None, look: Callable[[str], Client]) -> None:
    page = look("reader").get(page_of("order")).content.decode()
    drawn = re.search(r'<svg\s+class="graph".*?</svg>\s*</div>', page, re.DOTALL)
    assert drawn is not None
    picture = drawn[0]
    listed = page[page.index('id="refers-to"') :]
    for subject in ("address", "customer", "country", "invoice", "report"):
        link = f'href="/ui/registries/dev/subjects/{subject}/?version=1"'
        assert link in picture, subject
        assert link in listed, subject
    assert re.search(r'<title id="graph-name">\s*References of order\s*</title>', picture)
    assert "refers to 2 and is referred to by 1" in picture
    assert "Version 2 is available." in listed
    assert "latest is v2" in picture
    assert len(re.findall(r'class="edge', picture)) == 6
    assert " style=" not in page


def test_the_subject_page_lists_both_directions_and_leads_to_the_graph(
    shop: None, look: Callable[[str], Client]
) -> None:
    response = look("reader").get("/ui/registries/dev/subjects/address/?tab=references")
    text = text_of(response)
    assert "country version 1, as of.country" in text
    assert "customer version 1 refers to version 1" in text
    assert 'href="/ui/registries/dev/subjects/address/references?version=2"' in response.content.decode()
    nothing = text_of(look("reader").get("/ui/registries/dev/subjects/country/?tab=references"))
    assert "None. The schema is self-contained." in nothing


def test_a_subject_alone_has_no_picture(add: Callable[..., None], look: Callable[[str], Client]) -> None:
    add("alone")
    response = look("reader").get(page_of("alone"))
    assert "No other subjects" in text_of(response)
    assert '<svg class="graph"' not in compact(response.content.decode())


def test_hostile_names_are_shown_harmlessly_and_links_lead_there(
    add: Callable[..., None], look: Callable[[str], Client]
) -> None:
    add(NASTY)
    add("user", (NASTY, 1))
    client = look("reader")
    page = client.get(page_of("user")).content.decode()
    assert "<b>/" not in page
    assert "\u202e" not in page
    (link,) = set(re.findall(r'href="([^"]*%3Cb%3E[^"]*)"', page))
    assert client.get(html.unescape(link)).status_code == 200
    back = client.get(page_of("%3Cb%3E%2F%252F%E2%80%AE%26"))
    assert back.status_code == 200
    assert "user" in text_of(back)


def test_who_may_read_one_subject_learns_no_other_name_by_it(
    shop: None, dev: Registry, look: Callable[[str], Client], person: Callable[[str], Actor]
) -> None:
    client = look("stranger")
    assert client.get(page_of("address")).status_code == 403
    RoleGrant.objects.create(user=User.objects.get(username="stranger"), role="reader", subject_pattern="address")
    text = text_of(client.get(page_of("address")))
    assert "customer" not in text
    assert "invoice" not in text
    assert "and 2 more" in text
    assert "country" in text, "the schema itself says so"
    graph = reference_graph(dev, SubjectName(".", "address"), by=person("stranger"))
    assert graph.references[0].latest is None


def test_what_is_not_there_is_said(shop: None, dev: Registry, system: Actor, look: Callable[[str], Client]) -> None:
    client = look("reader")
    assert client.get(page_of("absent")).status_code == 404
    assert client.get(page_of("order", "?version=9")).status_code == 404
    assert client.get(page_of("order", "?version=x")).status_code == 422
    for version, error in ((9, VersionNotFound), ("x", InvalidVersion)):
        with pytest.raises(error):
            reference_graph(dev, SubjectName(".", "order"), version, by=system)
    with pytest.raises(SubjectNotFound):
        reference_graph(dev, SubjectName(".", "absent"), by=system)


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_the_graph_is_walked_by_keyboard(shop: None, window: Callable[..., Page], width: int) -> None:
    page = window(viewport={"width": width, "height": 900})
    page.goto(page_of("order"))
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    page.get_by_role("region", name="Graph of references").focus()
    names = []
    for _ in range(6):
        page.keyboard.press("Tab")
        names.append(page.evaluate("document.activeElement.getAttribute('aria-label') || ''"))
    assert any(name.startswith("address: version 1") for name in names)
    page.locator(".graph a", has_text="invoice").first.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/subjects/invoice/"))
