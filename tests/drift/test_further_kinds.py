"""A kind of source that the product doesn't have, added as docs/how-to/add-a-source.md says, with the code from there."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from registry.access.roles import Actor
from registry.drift import services, tasks
from registry.drift.models import Finding, Scan, Source
from registry.drift.rules import RULES
from registry.drift.sources import SOURCES, register_kinds
from registry.errors import InvalidSource
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.conftest import RawClient, signed_in
from tests.drift.scans import make_source

pytestmark = [pytest.mark.requirement("CARD-3"), pytest.mark.django_db]
GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "add-a-source.md"
CLASS, RULE = "exchanged_files.ExchangedFiles", "FILE_WITHOUT_SUBJECT"
Api = Callable[[str], Client]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The guide's module, in a folder on the Python path."""
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    path = tmp_path / "code" / "exchanged_files.py"
    path.parent.mkdir()
    path.write_text(code)
    monkeypatch.syspath_prepend(str(path.parent))
    return path


@pytest.fixture
def folder(module: Path, tmp_path: Path, registries: None, system: Actor) -> Iterator[Path]:
    """The kind is registered; its folder has a file with a subject and one without."""
    kinds, rules = dict(SOURCES), dict(RULES)
    register_kinds([CLASS])
    exchanged = tmp_path / "partners"
    exchanged.mkdir()
    for name in ("orders", "returns"):
        (exchanged / f"{name}.json").write_text("{}")
    register_version(registry="dev", subject=SubjectName(".", "orders"), text='"string"', by=system)
    yield exchanged
    for table, before in ((SOURCES, kinds), (RULES, rules)):
        table.clear()
        table.update(before)  # type: ignore[call-overload]  # of the same table
    sys.modules.pop("exchanged_files", None)


def post(client: Client, path: str, body: object) -> Any:
    return client.post(path, json.dumps(body), content_type="application/json")


def seen(client: Client, path: str) -> str:
    """What a person reads of a page."""
    response = client.get(path)
    assert response.status_code == 200, path
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", response.content.decode())).split())


def scanned(source_id: int, by: Actor) -> Scan:
    """A scan of it, by the task that workers run."""
    number = services.queue_scan(source_id=source_id, by=by)
    tasks.run_scan.apply(args=[number]).get()
    return Scan.objects.get(pk=number)


@pytest.fixture
def steward(person: Callable[[str], Actor]) -> Client:
    person("steward")
    return signed_in("steward")


def test_the_api_adds_changes_and_scans_it(folder: Path, api: Api, system: Actor) -> None:
    body: dict[str, Any] = {"kind": "files", "name": "partners", "registry": "dev"}
    for config, words in (
        (None, "needs a config"),
        ({"suffix": ".json"}, "folder of a config must not be empty"),
        ({"folder": 7}, "folder of a config must be text"),
        ({"folder": "/", "suffix": "x" * 21}, "suffix of a config must have at most 20 characters"),
        ({"folder": "/", "color": "red"}, "no setting 'color'; it has folder, suffix"),
        ({"folder": "/nowhere"}, "no folder /nowhere"),
    ):
        refused = post(api("steward"), "/api/v1/sources", body | ({"config": config} if config else {}))
        assert (refused.status_code, words in refused.json()["message"]) == (422, True), refused.json()
    foreign = post(api("steward"), "/api/v1/sources", body | {"connector": {"connect_url": "x", "name": "y"}})
    assert "A source of kind files has no connector" in foreign.json()["message"]
    added = post(api("steward"), "/api/v1/sources", body | {"config": {"folder": str(folder)}})
    assert added.status_code == 201, added.json()
    assert added.json()["config"] == {"folder": str(folder), "suffix": ".json"}
    source = added.json()["id"]
    assert Scan.objects.get(source=source).state == "queued", "as from the page"
    assert scanned(source, system).state == "done"
    (finding,) = [row for row in api("reader").get("/api/v1/findings").json() if row["source_id"] == source]
    assert (finding["rule"], finding["severity"], finding["state"]) == (RULE, "risk", "open")
    assert finding["sentence"] == "returns.json is exchanged, but dev has no subject returns."
    changed = api("steward").patch(
        f"/api/v1/sources/{source}", json.dumps({"config": {"folder": str(folder), "suffix": ".csv"}}),
        content_type="application/json",
    )  # fmt: skip
    assert changed.json()["config"]["suffix"] == ".csv"
    assert scanned(source, system).read == {"nothing": True, "files": 0}


def test_the_page_adds_it_and_shows_its_finding(folder: Path, steward: Client, system: Actor) -> None:
    form = steward.get("/ui/sources/add?kind=files").content.decode()
    assert "Exchanged files" in seen(steward, "/ui/sources/add?kind=files")
    assert {"folder", "suffix", "name", "registry", "every_seconds"} <= set(re.findall(r'name="(\w+)"', form))
    sent = {"kind": "files", "name": "partners", "registry": "dev", "every_seconds": "", "suffix": ".json"}
    refused = steward.post("/ui/sources/add", sent | {"folder": "/nowhere"})
    assert (refused.status_code, "There is no folder /nowhere" in refused.content.decode()) == (422, True)
    added = steward.post("/ui/sources/add", sent | {"folder": str(folder)})
    assert added.status_code == 302, added.content.decode()
    source = Source.objects.get()
    tasks.run_scan.apply(args=[source.scans.get().pk]).get()
    sentence = "returns.json is exchanged, but dev has no subject returns."
    page = seen(steward, f"/ui/sources/{source.pk}")
    assert (sentence in page, "2 files" in page, str(folder) in page) == (True, True, True)
    assert sentence in seen(steward, "/ui/findings?kind=files")
    finding = seen(steward, f"/ui/findings/{Finding.objects.get().pk}")
    assert sentence in finding
    assert "Register its schema as returns, or remove the file." in finding
    assert "Exchanged files" in seen(steward, "/ui/sources")
    edited = steward.post(
        f"/ui/sources/{source.pk}/edit", {"folder": str(folder), "suffix": ".csv", "every_seconds": ""}
    )
    assert edited.status_code == 302
    source.refresh_from_db()
    assert source.config == {"folder": str(folder), "suffix": ".csv"}


def test_a_finding_that_is_gone_is_resolved(folder: Path, system: Actor) -> None:
    source = services.add_source(
        registry="dev", kind="files", name="partners", config={"folder": str(folder)}, clean_scans=1, by=system
    )
    scanned(source, system)
    (folder / "returns.json").unlink()
    scanned(source, system)
    assert Finding.objects.get().state == "resolved"


def test_the_description_of_the_api_has_its_fields(folder: Path) -> None:
    schemas = json.loads(RawClient().get("/api/v1/schema", headers={"accept": "application/json"}).content)[
        "components"
    ]["schemas"]
    kind = schemas["SourceRequest"]["properties"]["kind"]
    assert "files" in (kind.get("enum") or schemas[kind["$ref"].rsplit("/")[-1]]["enum"])
    assert schemas["SourceRequest"]["properties"]["config"]["oneOf"] == [
        {"$ref": "#/components/schemas/FilesConfigRequest"}
    ]
    assert schemas["FilesConfigRequest"]["properties"]["folder"]["description"] == "The folder with the files."
    assert schemas["FilesConfigRequest"]["required"] == ["folder"]


def test_a_kind_that_is_not_installed_any_more(registries: None, steward: Client, system: Actor) -> None:
    source = make_source(kind="gone", name="left", cluster=None)
    row = scanned(source.pk, system)
    assert (row.state, "no class is registered" in row.error) == ("failed", True)
    for path in ("/ui/sources", f"/ui/sources/{source.pk}", f"/ui/sources/{source.pk}/edit"):
        assert "left" in seen(steward, path)
    services.remove_source(source_id=source.pk, by=system)


def test_a_name_or_a_rule_is_registered_once(folder: Path, module: Path, system: Actor) -> None:
    register_kinds([CLASS])
    module.with_name("others.py").write_text(module.read_text().replace('"files"', '"kafka"'))
    with pytest.raises(ValueError, match="kafka exists already"):
        register_kinds(["others.ExchangedFiles"])
    with pytest.raises(InvalidSource, match="not a kind of source"):
        services.add_source(registry="dev", kind="pigeons", name="x", by=system)


@pytest.mark.slow
def test_startup_registers_the_classes_of_the_setting(module: Path, settings: Any) -> None:
    shown = subprocess.run(
        [
            sys.executable, "-c",
            "import django; django.setup(); from registry.drift.sources import SOURCES; print(*SOURCES)",
        ],
        env=os.environ | {"SECRET_KEY": settings.SECRET_KEY, "SCHEMADESK_SOURCE_KINDS": CLASS, "PYTHONPATH": str(module.parent), "DJANGO_SETTINGS_MODULE": "dashboard.settings"},
        cwd=GUIDE.parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert shown.stdout.split() == [*SOURCES, "files"], shown.stderr
