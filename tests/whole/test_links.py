"""Every link of every page of the loaded demo opens, for each role and for nobody."""

from __future__ import annotations

import pytest

from tests.amounts import how_many
from tests.crawling import Visitor, crawl
from tests.whole.conftest import House

pytestmark = [pytest.mark.slow, pytest.mark.broker, pytest.mark.spark]


@pytest.mark.requirement("CARD-2")
@pytest.mark.parametrize("who", ["reader", "steward", "approver", "admin", "nobody"])
def test_every_link_of_the_demo_opens(house: House, who: str) -> None:
    visitor = Visitor(house.url)
    if who != "nobody":
        visitor.sign_in(who, house.passwords[who])
    # The reader opens many findings, subjects and registries; what the others see otherwise are kinds of pages.
    found = crawl(visitor.get, of_a_kind=how_many("pages of a kind that a reader opens") if who == "reader" else 2)
    assert found.opened > 100
    assert found.broken == []
