"""A finding about a query's state shows the variable before and after, and leads to the query and to a check."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from registry.drift.models import Finding
from tests.streams.test_scan_with_spark import FIXTURES, scan

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.requirement("CARD-3", "DBX-3", "DBX-6")]


@pytest.fixture
def findings(settings: Any, registries: None) -> dict[str, Finding]:
    """What a scan of the demo's checkpoint finds, without Spark, by rule."""
    settings.SPARK_REMOTE, settings.CHECKPOINT_ROOTS = "", [FIXTURES]
    scan(FIXTURES / "customer_totals")
    return {row.rule: row for row in Finding.objects.order_by("-pk")}


@pytest.mark.parametrize("rule", ["STATE_SCHEMA_EVOLVED", "RENAME_SUSPECTED"])
def test_it_shows_before_and_after_and_its_links_open(
    findings: dict[str, Finding], look: Callable[[str], Client], rule: str
) -> None:
    steward = look("steward")
    page = steward.get(f"/ui/findings/{findings[rule].pk}").content.decode()
    section = re.search(r'<section[^>]* id="before-after".*?</section>', page, re.DOTALL)
    assert section is not None
    changed = " ".join(re.findall(r"<td[^>]*>(.*?)</td>", section[0], re.DOTALL))
    text = html.unescape(re.sub(r"<[^>]+>", "", changed))
    for name in ("field", "added") if rule == "RENAME_SUSPECTED" else ():
        assert findings[rule].evidence[name] in text
    links = [html.unescape(link) for link in re.findall(r'href="(/ui/(?:queries|state-checks)/[^"]+)"', page)]
    assert any(re.fullmatch(r"/ui/queries/\d+", link) for link in links)
    assert any(re.fullmatch(r"/ui/queries/\d+/variables/\d+", link) for link in links)
    assert any("/compare?from=" in link for link in links)
    assert any(link.startswith("/ui/state-checks/new?checkpoint=") for link in links)
    assert {steward.get(link).status_code for link in links} == {200}


def test_who_may_not_read_the_registry_is_not_led_to_its_queries(
    findings: dict[str, Finding], look: Callable[[str], Client]
) -> None:
    response = look("stranger").get(f"/ui/findings/{findings['RENAME_SUSPECTED'].pk}")
    assert "/ui/queries/" not in response.content.decode()
