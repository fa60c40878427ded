"""The rows of a recorded release: a shop's registries, made through the services. Run by `python -m tests.upgrade.record`."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from registry.access.roles import Actor
from registry.access.services import issue_token
from registry.audit.hash_chain import seal_events
from registry.promotions import services
from registry.promotions.models import PromotionRequest
from tests.migrated_database import dump
from tests.promotions.factories import approve_shown
from tests.stories.shop import ORDERS, PAYMENTS, SHIPMENTS, Shop
from tests.upgrade.definitions import RECORDING

#: commands of newer servers, and the rights and owners that `migrate` and the loading role bring
LEFT_OUT = re.compile(r"^(SET transaction_timeout|GRANT |REVOKE |ALTER DEFAULT PRIVILEGES|ALTER .* OWNER TO )")


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("RECORD_RELEASE" not in os.environ, reason="writes a file")
def test_record(
    person: Callable[[str], Actor], system: Actor, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path
) -> None:
    shop = Shop(person)
    shop.scan_customers(monkeypatch)
    shop.scan_state(settings, tmp_path)
    shop.propose_coupon()
    applied = shop.request(ORDERS, "The checkout needs orders in staging.")
    approved = shop.request(PAYMENTS, "Adds an optional note.")
    shop.request(SHIPMENTS, "Adds an optional note.")
    for number in (applied, approved):
        approve_shown(request_id=number, by=shop.approver)
    services.apply(request_id=applied, by=shop.approver)
    assert PromotionRequest.objects.get(pk=applied).state == "applied"
    issue_token(username="steward", name="a pipeline", by=system)
    while seal_events():
        pass
    name = connection.settings_dict["NAME"]
    lines = dump(name, "--column-inserts").splitlines(keepends=True)
    text = "".join(line for line in lines if not LEFT_OUT.match(line))
    text = f"-- Schemadesk {settings.PRODUCT_VERSION}\n{text}"
    RECORDING.write_bytes(gzip.compress(text.encode(), mtime=0))
