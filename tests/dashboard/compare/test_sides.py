"""What may stand on a side of the compare page: drafts, shapes seen in data, and subjects of other registries."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from typing import Any, Final

import pytest
from django.test import Client

from registry.access.models import RoleGrant, User
from registry.access.roles import Actor
from registry.drift.models import Finding
from registry.promotions import services
from registry.subjects.services import register_version, set_config, set_mode
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import RawClient
from tests.dashboard.compare.test_change_cards import finding, seen, topic_of
from tests.dashboard.compatibility.test_compatibility_pages import ORDERS, V1, V2
from tests.dashboard.compatibility.test_compatibility_pages import seen as read
from tests.markup import compact

pytestmark = pytest.mark.requirement("CARD-2")
COMPARE: Final = "/ui/registries/dev/subjects/orders-value/compare"
PAYMENT: Final = {"type": "record", "name": "Payment", "fields": [{"name": "id", "type": "long"}]}
DRAFTED: Final = {**V1, "fields": [*V1["fields"], {"name": "tip", "type": "int"}]}
Look = Callable[[str], Client]


@pytest.fixture
def steward(person: Callable[[str], Actor]) -> Actor:
    """Who registered orders in dev, and payments in prod alone."""
    by = person("steward")
    set_config(registry="dev", subject=ORDERS, level="NONE", by=by)
    for schema in (V1, V2):
        register_version(registry="dev", subject=ORDERS, text=json.dumps(schema), by=by)
    return by


@pytest.fixture
def payments(steward: Actor, system: Actor) -> None:
    """Payments are in staging alone."""
    register_version(registry="staging", subject=SubjectName(".", "payments"), text=json.dumps(PAYMENT), by=system)


@pytest.fixture
def draft(steward: Actor) -> int:
    """The steward's draft of orders."""
    return services.save_draft(registry="dev", subject=ORDERS, text=json.dumps(DRAFTED), by=steward)


def paths(response: Any) -> list[str]:
    """The paths of the cards."""
    return [card.path for group in response.context["page"].comparison.groups for card in group.cards]


def choices(response: Any) -> set[str]:
    """All that can be chosen for the new side."""
    return {choice.value for group in response.context["page"].to_groups for choice in group.choices}


@pytest.mark.parametrize(
    ("query", "title", "changed"),
    [
        ("from=1&to=draft-{}", "Compare version 1 and your draft {}", ["Order.tip"]),
        ("from=draft-{}&to=1", "Compare your draft {} and version 1", ["Order.tip"]),
        ("from=draft-{0}&to=draft-{0}", "Compare your draft {0} and your draft {0}", []),
    ],
)
def test_ones_own_draft_is_a_side(look: Look, draft: int, query: str, title: str, changed: list[str]) -> None:
    response = look("steward").get(f"{COMPARE}?{query.format(draft)}")
    assert title.format(draft) in read(response)
    assert paths(response) == changed
    assert f"draft-{draft}" in choices(response)
    assert f"/ui/proposals/{draft}" in response.content.decode()
    assert "version 0" not in read(response)


def test_a_draft_is_held_against_the_newest_version(look: Look, draft: int) -> None:
    assert f"Compare version 2 and your draft {draft}" in read(look("steward").get(f"{COMPARE}?to=draft-{draft}"))


def test_a_draft_as_markdown_and_as_text(look: Look, draft: int) -> None:
    browser = look("steward")
    markdown = browser.get(f"{COMPARE}?from=1&to=draft-{draft}&as=markdown").content.decode()
    assert markdown.startswith(f"# orders-value: dev version 1 → dev your draft {draft}\n")
    assert json.loads(browser.get(f"{COMPARE}?from=1&to=draft-{draft}&as=new").content) == DRAFTED
    assert json.loads(browser.get(f"{COMPARE}?from=1&to=draft-{draft}&as=old").content) == V1


@pytest.mark.parametrize("who", ["admin", "reader"])
def test_a_draft_of_somebody_else_is_not_there(look: Look, draft: int, who: str) -> None:
    browser, pages = look(who), set()
    for number in (draft, 999_999):
        for query in ("from=1&to=draft-{}", "from=prod:draft-{}&to=1", "from=1&to=draft-{}&as=markdown"):
            response = browser.get(f"{COMPARE}?{query.format(number)}")
            assert response.status_code == 404
            text = re.sub(r"Page loaded \S+ \S+", "", read(response))
            pages.add(re.sub(rf"(draft[ -]){number}\b", r"\1#", text))  # elsewhere the same digits may stand for others
            assert "tip" not in response.content.decode()
        assert browser.get(f"{COMPARE}?to=draft-{number}&as=new").status_code == 404
        assert f"draft-{draft}" not in choices(browser.get(COMPARE))
    assert len(pages) == 2 and all("You have no draft # of this subject." in page for page in pages)


def test_a_draft_of_another_subject_is_not_there(look: Look, steward: Actor, payments: None) -> None:
    number = services.save_draft(registry="dev", subject=SubjectName(".", "payments"), text="{}", by=steward)
    response = look("steward").get(f"{COMPARE}?from=1&to=draft-{number}")
    assert (response.status_code, "You have no draft" in read(response)) == (404, True)


def test_half_a_draft_is_shown_as_text(look: Look, steward: Actor) -> None:
    number = services.save_draft(registry="dev", subject=ORDERS, text='{"type": "rec', by=steward)
    response = look("steward").get(f"{COMPARE}?from=1&to=draft-{number}")
    assert response.status_code == 200
    assert "Compared as text only" in read(response)


def test_what_the_data_hold_is_a_side(look: Look, steward: Actor) -> None:
    topic = topic_of("dev")
    seen(topic, "tip", present=3_000, kinds={"string": 3_000})
    row = finding(topic)
    response = look("reader").get(f"{COMPARE}?from=2&to=observed-{row.pk}")
    assert f"observed data from finding {row.pk}" in read(response)
    assert "Order.tip" in paths(response)
    assert f"/ui/findings/{row.pk}" in response.content.decode()
    assert f"observed-{row.pk}" in choices(response)
    Finding.objects.update(state="resolved")
    assert f"observed-{row.pk}" not in choices(look("reader").get(COMPARE))


@pytest.mark.parametrize("change", [{"subject_name": "payments"}, {"rule": "NULL_SHARE_INCREASED"}])
def test_a_finding_of_something_else_is_not_there(look: Look, steward: Actor, change: dict[str, str]) -> None:
    row = finding(topic_of("dev"))
    Finding.objects.update(**change)
    for number in (row.pk, 999_999):
        response = look("reader").get(f"{COMPARE}?from=2&to=observed-{number}")
        assert response.status_code == 404
        assert f"Finding {number} has no data for this subject." in read(response)


@pytest.mark.parametrize("query", ["in=staging&with=payments", "from=staging:1&to=2&with=payments"])
def test_a_subject_of_another_registry_is_a_side(look: Look, payments: None, query: str) -> None:
    response = look("reader").get(f"{COMPARE}?{query}")
    assert "Compare version 1 in staging and version 2 in dev" in read(response)
    swap = html.unescape(
        re.findall(r'href="([^"]+)"[^>]*><svg[^>]*><use[^>]*></use></svg>Swap', compact(response.content.decode()))[0]
    )
    assert swap == "/ui/registries/staging/subjects/payments/compare?from=dev%3A2&to=1&with=orders-value"
    assert "Compare version 2 in dev and version 1 in staging" in read(look("reader").get(swap))


def test_a_registry_that_one_may_not_read_is_as_one_that_is_not_there(
    person: Callable[[str], Actor], payments: None
) -> None:
    person("stranger")
    user = User.objects.get(username="stranger")
    RoleGrant.objects.create(user=user, role="reader", registry="dev")
    client = RawClient()
    client.force_login(user)
    pages = set()
    for subject in ("payments", "nobody"):
        response = client.get(f"{COMPARE}?in=staging&with={subject}")
        text = re.sub(r"Page loaded \S+ \S+|registered (?:just now|\d+ \w+ ago)", "", read(response))
        pages.add(text.replace(subject, "#"))
        assert "Payment" not in response.content.decode()
    assert len(pages) == 1
    assert [choice.value for choice in response.context["page"].other_places] == ["dev"]


def test_a_sound_side_of_another_registry_is_shown(look: Look, steward: Actor, system: Actor) -> None:
    register_version(registry="staging", subject=ORDERS, text=json.dumps(V1), by=system)
    response = look("reader").get(f"{COMPARE}?from=staging:1&to=9")
    assert response.status_code == 404
    assert "Version 1 exists" in read(response) and "customer_name" in read(response)


def test_settings_that_differ_are_reported(look: Look, steward: Actor, system: Actor) -> None:
    register_version(registry="staging", subject=ORDERS, text=json.dumps(V1), by=system)
    set_config(registry="staging", subject=ORDERS, level="FULL", by=system)
    set_mode(registry="staging", subject=ORDERS, mode="READONLY", by=system)
    response = look("reader").get(f"{COMPARE}?from=staging:1&to=1")
    extras = {item.name: (item.before, item.after) for item in response.context["page"].comparison.extras}
    assert extras == {"Compatibility": ("FULL", "NONE"), "Mode": ("READONLY", "READWRITE")}
    assert "2 settings differ." in read(response)
    assert not look("reader").get(f"{COMPARE}?from=1&to=2").context["page"].comparison.extras


def test_hidden_formatting_is_counted_and_lines_are_wrapped_or_not(look: Look, steward: Actor) -> None:
    register_version(registry="dev", subject=SubjectName(".", "copy"), text=json.dumps(V2, indent=7), by=steward)
    lines = len(json.dumps(V2, indent=7).splitlines()) + 1  # and the one of the other text
    url = f"{COMPARE}?with=copy&from=1&to=2"
    assert f"Formatting differences hidden: {lines} lines" in read(look("reader").get(url))
    assert "Formatting differences hidden" not in read(look("reader").get(f"{url}&text=submitted"))
    assert "No formatting differences are hidden." in read(look("reader").get(f"{COMPARE}?from=1&to=1"))
    whole = compact(look("reader").get(f"{url}&wrap=no&text=submitted").content.decode())
    assert "diff-long" in whole and 'name="wrap" value="no"' in whole
    assert "diff-long" not in look("reader").get(f"{url}&text=submitted").content.decode()
    copied = look("reader").get(f"{url}&as=old&text=submitted").content.decode()
    assert copied == json.dumps(V2, indent=7)
