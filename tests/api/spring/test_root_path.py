"""The path below which Spring's dialect hangs."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from dashboard.checks import spring_has_a_path_of_its_own
from dashboard.spring_path import problem_of, spring_addresses
from tests.api.spring.registering import V1, register


@pytest.mark.parametrize(
    "root", ["", "/", "//", "ui/", "subjects", "/schemas/x", "a b", "../x", "<segment:x>", "v1/spring"]
)
def test_the_path_can_not_hide_other_addresses(root: str, settings: Any) -> None:
    assert problem_of(root)
    assert spring_addresses(root) == []
    settings.SPRING_PATH = root
    (error,) = spring_has_a_path_of_its_own()
    assert error.id == "schemadesk.E001"


@pytest.mark.requirement("SCS-1")
@pytest.mark.parametrize("root", ["spring/", "/scs", "java/spring-cloud"])
def test_the_path_is_a_setting(root: str, steward: Client, settings: Any) -> None:
    settings.SPRING_PATH = root
    assert spring_has_a_path_of_its_own() == []
    settings.ROOT_URLCONF = tuple(spring_addresses(root))
    place = f"/{root.strip('/')}"
    made = register(steward, "user", V1, root=place)
    assert made["Location"] == f"http://testserver{place}/user/avro/v1"
    assert steward.get(f"{place}/user/avro/v1").json() == made.json()
    assert steward.get(f"{place}/user/avro/v2").json()["path"] == f"{place}/user/avro/v2"
