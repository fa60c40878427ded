"""A format that is added as docs/how-to/add-a-format.md says, by the code of that page alone."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import invalidate_caches
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

import pytest
from django.test import Client

from registry.access.roles import Actor
from registry.drift.proposals.observed_schema import Declaration, propose
from registry.drift.rules import RULES
from registry.drift.scan_context.versions import writers_for
from registry.errors import InvalidInput, InvalidReference, InvalidSchema
from registry.formats import FORMATS, format_of
from registry.formats.avro import AvroFormat
from registry.formats.base import ResolvedReference
from registry.formats.schema_format import load_formats, loaded_paths, register
from registry.observations import Bounds, KafkaConnection, Profile, SchemaNotUsed, TopicScan
from registry.pipeline.profile import Profiler
from registry.promotions import services
from registry.promotions.models import PromotionRequest
from registry.search.services import index_stale
from registry.subjects.engine import schema_engine, schema_workers
from registry.subjects.selectors import get_version
from registry.subjects.versions import parsed_schemas
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName
from tests.drift.scans import make_source
from tests.promotions.factories import approve_shown

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/how-to/add-a-format.md"
PATH = "csv_format.CSV_HEADER"
CONTENT = "application/vnd.schemaregistry.v1+json"
CUSTOMERS = SubjectName(".", "customers-value")
PAGE = "/ui/registries/dev/subjects/customers-value/"
V1, V2, BROKEN = "id:int,name:text?", "id:int,name:text?,city:text?", "id:text,name:text?"


def end_children() -> None:
    """The next child begins with the formats of now, as those of a server do that loads them at its start."""
    schema_workers.pool().close()
    schema_workers.pool.cache_clear()


@pytest.fixture
def guided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The module of the guide on the path, and the format registered as the setting does it."""
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    (tmp_path / "csv_format.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    load_formats([PATH])
    end_children()
    yield tmp_path
    end_children()
    FORMATS.pop("CSV")
    loaded_paths.remove(PATH)
    sys.modules.pop("csv_format")


@pytest.fixture
def steward(api: Callable[[str], Client], guided: Path) -> Client:
    """A client of the Confluent API."""
    return api("steward")


def send(client: Client, path: str, text: str) -> Any:
    """Post a text of the format."""
    return client.post(path, json.dumps({"schema": text, "schemaType": "CSV"}), content_type=CONTENT)


def text_of(response: Any) -> str:
    """What a page says, without markup; 422 is a page that says why it can't do what it was asked for."""
    assert response.status_code in (200, 422), response.content
    text = re.sub(r"</?(?:b|bdi|code|del|ins|kbd|span|svg|use|wbr)\b[^>]*>", "", response.content.decode())
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


@pytest.fixture
def registered(steward: Client, look: Callable[[str], Client], person: Callable[[str], Actor]) -> Client:
    """A browser of the steward, who registered version 1 through Confluent's API and version 2 through the page."""
    assert send(steward, "/subjects/customers-value/versions", V1).status_code == 200
    browser = look("steward")
    form = {"registry": "dev", "subject": "customers-value", "schema_type": "CSV", "text": V2, "reason": "cities"}
    assert "The text parses as CSV header." in text_of(browser.post("/ui/proposals/new", {**form, "do": "check"}))
    assert browser.post("/ui/proposals/new", {**form, "do": "submit"}).status_code == 302
    number = PromotionRequest.objects.latest("pk").pk
    approve_shown(request_id=number, by=person("approver"), comment="agreed")
    services.apply(request_id=number, by=person("approver"))
    return browser


def test_it_is_registered_by_api_and_page_and_an_incompatible_one_is_refused(
    steward: Client, registered: Client
) -> None:
    assert steward.get("/schemas/types").json() == ["AVRO", "CSV", "JSON", "PROTOBUF"]
    assert steward.get("/subjects/customers-value/versions").json() == [1, 2]
    latest = steward.get("/subjects/customers-value/versions/latest").json()
    assert (latest["schema"], latest["schemaType"]) == (V2, "CSV")
    refused = send(steward, "/subjects/customers-value/versions", BROKEN)
    assert refused.status_code == 409
    assert "the reader needs id as text, but the data has it as int" in refused.json()["message"]
    assert send(steward, "/subjects/customers-value/versions", "no header").status_code == 422


def test_a_dry_run_of_the_api_says_why(steward: Client, registered: Client) -> None:
    path = "/compatibility/subjects/customers-value/versions/latest?verbose=true"
    verdict = send(steward, path, BROKEN).json()
    assert verdict["is_compatible"] is False
    assert "the reader needs id as text" in verdict["messages"][0]
    assert send(steward, path, V1).json()["is_compatible"] is True


def test_its_pages_render_and_say_what_is_not_available(registered: Client) -> None:
    subject = text_of(registered.get(PAGE))
    assert "Version 2 schema id 2 · CSV header" in subject
    assert "No fields Not available for CSV header." in subject
    for tab in ("source", "references", "settings"):
        text = text_of(registered.get(f"{PAGE}?version=1&tab={tab}"))
        assert V1 in text or tab != "source"
    compare = text_of(registered.get(f"{PAGE}compare?from=1&to=2"))
    assert "1 change: 1 safe" in compare and "City is added" in compare
    back = text_of(registered.get(f"{PAGE}compare?from=2&to=1"))
    assert "City is removed" in back
    assert "proof" not in f"{compare} {back}" and "tested with data" not in compare
    assert "Not available for CSV header." in text_of(registered.get(f"{PAGE}simulate?writer=1&reader=2"))


def test_the_report_goes_by_the_rules_and_claims_no_proof(registered: Client) -> None:
    form = {"text": BROKEN, "schema_type": "CSV", "profile": "confluent"}
    report = text_of(registered.post(f"{PAGE}report", form))
    assert "Incompatible under BACKWARD" in report
    assert "The reader needs id as text, but the data has it as int" in report
    assert "Schema advice Advice doesn’t affect the verdict. Not available for CSV header." in report
    assert "tested with data" not in report and "Rules and data disagree" not in report
    semantic = text_of(registered.post(f"{PAGE}report", {**form, "text": V1, "profile": "semantic"}))
    assert "Whether all data can be read is unknown (data checks aren't available for CSV header)" in semantic
    assert '<option value="CSV"' in registered.get(f"{PAGE}report").content.decode()


def test_the_search_and_the_filter_find_it(steward: Client, registered: Client) -> None:
    index_stale()
    assert "customers-value" in text_of(registered.get(f"/ui/search?{urlencode({'q': 'customers'})}"))
    assert "customers-value" in text_of(registered.get("/ui/registries/dev/subjects?format=CSV"))
    assert "customers-value" not in text_of(registered.get("/ui/registries/dev/subjects?format=JSON"))
    listed = steward.get("/api/v1/registries/dev/subjects?format=CSV")
    assert listed.status_code == 200 and "customers-value" in listed.content.decode()


def test_it_is_promoted(registered: Client, person: Callable[[str], Actor]) -> None:
    number = services.request_promotion(
        source="dev", target="staging", subject=CUSTOMERS, version=2, by=person("steward")
    )
    request = text_of(registered.get(f"/ui/promotions/{number}"))
    assert "lint Not available for CSV header." in request and "No lint warnings" not in request
    approve_shown(request_id=number, by=person("approver"), comment="agreed")
    assert services.apply(request_id=number, by=person("approver")) == "applied"
    promoted = get_version(get_registry("staging"), CUSTOMERS, "latest").schema
    assert (promoted.schema_type, promoted.text) == ("CSV", V2)


def test_a_scan_says_that_its_messages_were_not_checked(registered: Client) -> None:
    source = make_source(registry=get_registry("dev"))
    writers = writers_for(source, ["customers"])
    assert {(writer.kind, writer.text) for writer in writers} == {("CSV", V1), ("CSV", V2)}
    spec = TopicScan(
        connection=KafkaConnection("127.0.0.1:1"), topics=(), bounds=Bounds(), profile=Profile(), writers=writers
    )
    profiler = Profiler(cast("Any", None), spec, cast("Any", None))
    unread = list(profiler._profiles.observations({}))
    assert {item.reason for item in unread if isinstance(item, SchemaNotUsed)} == {"Not available for CSV header"}
    assert "were not checked: {reason}" in RULES["SCHEMA_NOT_DECODED"].sentence
    with pytest.raises(InvalidInput, match="No schema is proposed for CSV header: the format can"):
        propose([], Declaration("CSV", V1), name="customers-value")


def test_a_message_of_it_is_not_decoded(steward: Client, registered: Client) -> None:
    number = steward.get("/subjects/customers-value/versions/2").json()["id"]
    message = f"00{number:08x}312c416461"
    page = text_of(registered.post("/ui/decode", {"registry": "dev", "message": message}))
    assert "CSV header" in page and "Not available for CSV header." in page


def test_a_large_schema_is_read_in_a_child_that_knows_the_format(guided: Path) -> None:
    wide = ",".join(f"{'a' * 8}_{chr(97 + number % 26)}{'b' * (number // 26)}:int" for number in range(3_000))
    assert len(wide) > 60_000
    parsed = schema_engine.parse("CSV", wide)
    assert (parsed.schema_type, parsed.model) == ("CSV", None)
    assert schema_engine.check(parsed, [(1, parsed)], "FULL").is_compatible


def test_what_it_cannot_do_is_refused_in_a_sentence(guided: Path) -> None:
    with pytest.raises(InvalidReference, match="References: Not available for CSV header"):
        schema_engine.parse("CSV", V1, [ResolvedReference("a", "a", 1, V1)])
    parsed = schema_engine.parse("CSV", V1)
    assert schema_engine.truth(parsed, parsed).answer == "unknown"


def test_the_setting_registers_it_at_the_start(guided: Path) -> None:
    code = "import django; django.setup(); from registry.formats import FORMATS; print(*FORMATS)"
    paths = os.pathsep.join((str(ROOT), str(guided)))
    environment = {
        **os.environ,
        "SECRET_KEY": "of the tests",
        "PYTHONPATH": paths,
        "SCHEMA_FORMATS": PATH,
        "DJANGO_SETTINGS_MODULE": "dashboard.settings",
    }
    done = subprocess.run([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split() == ["AVRO", "PROTOBUF", "JSON", "CSV"]


def test_an_installed_package_registers_it(guided: Path) -> None:
    FORMATS.pop("CSV")
    about = guided / "csv_format-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: csv-format\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[schemadesk.formats]\ncsv = csv_format:CSV_HEADER\n")
    invalidate_caches()
    load_formats([])
    loaded_paths.remove("csv_format:CSV_HEADER")
    assert str(FORMATS["CSV"]) == "CSV header"


def test_a_name_that_is_taken_or_cannot_be_one_stops_the_start(guided: Path) -> None:
    for path in ("csv_format.NOTHING", "no_such_module.CSV", ""):
        with pytest.raises(ValueError, match=f"The schema format {path} can't be loaded: .* Check SCHEMA_FORMATS"):
            load_formats([path])
    with pytest.raises(TypeError, match="is not a SchemaFormat"):
        load_formats(["csv_format.CsvHeader"])

    class Other(AvroFormat):
        """Another one."""

    with pytest.raises(ValueError, match="AVRO is taken"):
        register(Other())
    Other.name = "an xsd"
    with pytest.raises(ValueError, match="is not a format name"):
        register(Other())


def test_a_stored_schema_of_a_format_that_is_gone_is_shown_and_not_checked(registered: Client) -> None:
    FORMATS.pop("CSV")
    try:
        schema_engine.forget()
        parsed_schemas._cache.clear()
        assert V2 in text_of(registered.get(PAGE))
        assert "breaking" not in text_of(registered.get(f"{PAGE}compare?from=1&to=2"))
        with pytest.raises(InvalidSchema, match="this server knows AVRO, JSON, PROTOBUF"):
            format_of("CSV").parse(V1)
    finally:
        load_formats([PATH])
