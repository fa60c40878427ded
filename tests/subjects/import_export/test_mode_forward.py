"""The mode FORWARD: a registry that another one writes to takes its versions with their ids, as they come."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from registry.access.roles import Actor
from registry.errors import InvalidMode, OperationNotPermitted
from registry.subjects.models import Mode, Registry
from registry.subjects.policy.effective_policy import effective_mode
from registry.subjects.services import delete_subject, register_version, set_config, set_mode
from registry.subjects.versions.lookup import find_context
from registry.subjects.versions.qualified_names import SubjectName

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.requirement("GOO-6")]
ORDERS = SubjectName(".", "orders-value")
CONTENT = "application/vnd.schemaregistry.v1+json"
GLOBAL = "/mode/:.__GLOBAL:"


@pytest.fixture
def forwarded(registries: None, system: Actor) -> Actor:
    """dev has a version, and is in FORWARD: it needn't be empty."""
    register_version(registry="dev", subject=ORDERS, text='"int"', by=system)
    assert set_mode(registry="dev", subject=None, mode="forward", by=system) == "FORWARD"
    return system


def test_versions_come_with_their_ids_unchecked(forwarded: Actor) -> None:
    brought = register_version(registry="dev", subject=ORDERS, text='"string"', schema_id=70, version=5, by=forwarded)
    assert (brought.schema_id, brought.version) == (70, 5)
    for subject in (ORDERS, SubjectName(".", "new-value"), SubjectName(".ctx", "new-value")):
        with pytest.raises(OperationNotPermitted, match="is not in read-write mode"):
            register_version(registry="dev", subject=subject, text='"bytes"', by=forwarded)
        assert (
            register_version(registry="dev", subject=subject, text='"long"', schema_id=71, by=forwarded).schema_id == 71
        )


def test_what_changes_otherwise_goes_on(forwarded: Actor) -> None:
    assert set_config(registry="dev", subject=ORDERS, level="FULL", by=forwarded).level == "FULL"
    assert delete_subject(registry="dev", subject=ORDERS, by=forwarded) == [1]
    register_version(registry="dev", subject=ORDERS, text='"int"', schema_id=1, by=forwarded)
    with pytest.raises(OperationNotPermitted, match="found existing subjects"):
        set_mode(registry="dev", subject=None, mode="IMPORT", by=forwarded)


def test_a_subjects_own_mode_counts(forwarded: Actor) -> None:
    set_mode(registry="dev", subject=ORDERS, mode="READWRITE", by=forwarded)
    assert effective_mode(Registry.objects.get(name="dev"), ORDERS).mode == "READWRITE"
    assert effective_mode(Registry.objects.get(name="dev"), SubjectName(".", "b")).mode == "FORWARD"


@pytest.mark.parametrize("scope", [ORDERS, SubjectName(".ctx", ""), SubjectName(".ctx", "orders-value")])
def test_no_subject_or_context_has_it(forwarded: Actor, scope: SubjectName) -> None:
    with pytest.raises(InvalidMode, match="Forward mode only supported on global level"):
        set_mode(registry="dev", subject=scope, mode="FORWARD", by=forwarded)
    place = Registry.objects.get(name="dev")
    with pytest.raises(IntegrityError, match="forward_is_of_a_registry"), transaction.atomic():
        Mode.objects.create(registry=place, context=find_context(place), subject_name="x", mode="FORWARD")


def send(client: Client, path: str, mode: str) -> tuple[int, dict[str, object]]:
    answer = client.put(path, json.dumps({"mode": mode}), content_type=CONTENT)
    return answer.status_code, answer.json()


def test_the_api_takes_it_for_all_contexts_alone(registries: None, api: Callable[[str], Client]) -> None:
    admin = api("admin")
    for path in ("/mode", "/mode/orders-value", "/mode/:.ctx:", "/mode/:.:", "/contexts/.ctx/mode"):
        for mode in ("FORWARD", "forward"):
            said = {"error_code": 42204, "message": "Forward mode only supported on global level"}
            assert send(admin, path, mode) == (422, said), path
    assert send(admin, GLOBAL, "FORWARD") == (200, {"mode": "FORWARD"})
    assert admin.get("/mode").json() == admin.get(GLOBAL).json() == {"mode": "FORWARD"}
    assert admin.get("/mode/orders-value?defaultToGlobal=true").json() == {"mode": "FORWARD"}
    data = {"schema": '"int"', "id": 9, "version": 3}
    answer = admin.post("/subjects/orders-value/versions", json.dumps(data), content_type=CONTENT).json()
    assert (answer["id"], answer["version"]) == (9, 3)
    refused = admin.post("/subjects/orders-value/versions", json.dumps({"schema": '"long"'}), content_type=CONTENT)
    assert (refused.status_code, refused.json()["error_code"]) == (422, 42205)
    google = "/v1/projects/local/locations/local/schemaRegistries/dev/mode"
    assert admin.get(google).json() == {"mode": "IMPORT"}, "the mode of that dialect with the same effect"
    assert admin.put(google, json.dumps({"mode": "FORWARD"}), content_type="application/json").status_code == 400
    assert admin.delete(GLOBAL).json() == {"mode": "FORWARD"}
    assert admin.get("/mode").json() == {"mode": "READWRITE"}
    assert "IMPORT and FORWARD" in str(send(admin, "/mode", "SIDEWAYS")[1]["message"])
