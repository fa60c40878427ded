"""The check of planned state through its doors: page, API and command, over the real database."""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from registry.audit.models import AuditEvent
from registry.drift.models import Source
from registry.streams.models import StateCheck
from registry.subjects.models import Registry

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "checkpoints" / "fixtures"
TOTALS = str(FIXTURES / "customer_totals")
DOCUMENTED = jsonschema_rs.validator_for(json.loads((ROOT / "docs/reference/state-check.schema.json").read_text()))
NEW = "/ui/state-checks/new"
RENAMED = {
    "variables": [
        {"name": "totals", "value_schema": "orders BIGINT, amount_cents BIGINT, state STRING, currency STRING"},
        {"name": "last_orders", "kind": "list", "value_schema": "order_id STRING, amount_cents BIGINT"},
        {"name": "by_status", "kind": "map", "user_key_schema": "status STRING", "value_schema": "orders INT"},
    ]
}
SAME = json.loads(json.dumps(RENAMED).replace("state STRING", "status STRING"))
NASTY = '<script>alert(1)</script>"'


@pytest.fixture(autouse=True)
def roots(settings: Any) -> None:
    """The fixtures' folder is one that may be read."""
    settings.CHECKPOINT_ROOTS = [FIXTURES]


def seen(response: Any) -> str:
    """What a person reads of a page: without markup, white space folded."""
    text = re.sub(r"</?(?:b|bdi|code|svg|use)\b[^>]*>", "", response.content.decode())
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def ask(client: Client, plan: Any, checkpoint: str = TOTALS) -> Any:
    body = json.dumps({"checkpoint": checkpoint, "plan": plan})
    return client.post("/api/v1/state-checks", body, content_type="application/json")


@pytest.mark.requirement("DBX-4")
def test_the_form_starts_from_what_is_stored_and_leads_to_a_report(look: Callable[[str], Client]) -> None:
    client = look("steward")
    assert "The check starts no query" in seen(client.get(NEW))
    loaded = client.post(NEW, {"path": TOTALS, "plan": "", "do": "load"})
    assert loaded.status_code == 200
    textarea = re.search(r"<textarea[^>]*>\s*(.*?)</textarea>", loaded.content.decode(), re.DOTALL)
    assert textarea
    plan = html.unescape(textarea[1])
    assert json.loads(plan) == {
        "api": "transformWithState",
        "language": "python",
        "operators": ["transformWithState (Python)"],
        "sources": [{"kind": "kafka", "topics": ["orders"]}],
        "output_mode": "Update",
        "time_mode": "None",
        "variables": sorted(({"kind": "value"} | e for e in SAME["variables"]), key=lambda e: str(e["name"])),
    }
    sent = client.post(
        NEW, {"path": TOTALS, "plan": plan.replace("status STRING, c", "state STRING, c"), "do": "check"}
    )
    assert sent.status_code == 302
    page = client.get(sent["Location"])
    text = seen(page)
    for phrase in (
        "Loses data",
        "removing status and adding state looks like a rename",
        "customer_totals",
        "2 → 3 of 16",
    ):
        assert phrase in text
    again = client.get(f"{NEW}?again={StateCheck.objects.get().pk}")
    assert "state STRING" in seen(again)
    assert "loses data" in seen(client.get(NEW))


def test_a_checkpoint_that_is_a_source_can_be_chosen(look: Callable[[str], Client]) -> None:
    client = look("steward")
    registry = Registry.objects.get(name="dev")
    Source.objects.create(registry=registry, kind="state_store", name=TOTALS, created_by="tests")
    assert "Known checkpoint" in seen(client.get(NEW))
    sent = client.post(NEW, {"checkpoint": TOTALS, "path": "", "plan": json.dumps(SAME), "do": "check"})
    assert StateCheck.objects.get().verdict == "safe"
    assert "Safe" in seen(client.get(sent["Location"]))


def test_many_changes_are_counted_and_not_all_drawn(look: Callable[[str], Client]) -> None:
    client = look("steward")
    columns = ", ".join(f"f{number} INT" for number in range(150))
    plan = {"variables": [{"name": "totals", "value_schema": columns}]}
    sent = client.post(NEW, {"path": TOTALS, "plan": json.dumps(plan), "do": "check"})
    assert "more changes not shown" in seen(client.get(sent["Location"]))


def test_the_report_comes_as_a_file_and_says_the_same(look: Callable[[str], Client]) -> None:
    client = look("steward")
    sent = client.post(NEW, {"path": TOTALS, "plan": json.dumps(RENAMED), "do": "check"})
    exported = client.get(f"{sent['Location']}/export?format=json")
    DOCUMENTED.validate(exported.json())
    assert exported["Content-Disposition"].endswith('.json"')
    assert "# State check" in client.get(f"{sent['Location']}/export?format=markdown").content.decode()
    assert client.get(f"{sent['Location']}/export?format=text").content.decode().startswith("Loses data: ")
    assert client.get(f"{sent['Location']}/export?format=pdf").status_code == 422


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({"path": TOTALS, "plan": "{"}, "not JSON"),
        ({"path": "", "plan": json.dumps(SAME)}, "Select a checkpoint"),
        ({"path": "/etc", "plan": json.dumps(SAME)}, "outside the allowed folders"),
        ({"path": f"{TOTALS}/../../../../..", "plan": json.dumps(SAME)}, "outside the allowed folders"),
        ({"path": TOTALS, "plan": '{\r\n"variables": [{"name": "v", "value_schema": "a INTT"}]}'}, "(line 2, column"),
        (
            {"path": TOTALS, "plan": json.dumps({"variables": [{"name": NASTY, "value_schema": "a"}]})},
            "expected a type",
        ),
    ],
)
def test_what_can_not_be_checked_is_said_and_kept_in_the_form(
    look: Callable[[str], Client], sent: dict[str, str], says: str
) -> None:
    response = look("steward").post(NEW, sent | {"do": "check"})
    assert response.status_code == 422
    assert says in seen(response)
    assert "<script>alert" not in response.content.decode()
    assert not StateCheck.objects.exists()


@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize("fixture", ["dedup_rocksdb", "aggregation_hdfs", "join_rocksdb", "session_windows"])
def test_other_operators_are_not_checked_in_one_word_everywhere(
    look: Callable[[str], Client], api: Callable[[str], Client], fixture: str, tmp_path: Path
) -> None:
    client = look("steward")
    path, plan = str(FIXTURES / fixture), {"variables": [{"name": "v", "value_schema": "a INT"}]}
    document = (
        api("steward")
        .post("/api/v1/state-checks", json.dumps({"checkpoint": path, "plan": plan}), content_type="application/json")
        .json()
    )
    report = document["report"]
    DOCUMENTED.validate(report)
    assert (document["verdict"], report["verdict"], report["starts"], report["error"]) == (
        "not checked", "not checked", None, "",
    )  # fmt: skip
    assert {variable["status"] for variable in report["variables"]} == {"not checked"}
    page = client.get(document["url"])
    texts = [
        seen(page),
        *(
            client.get(f"{document['url']}/export?format={kind}").content.decode()
            for kind in ("text", "markdown", "json")
        ),
    ]
    for text in texts:
        assert "not checked" in text.lower()
        assert not [
            phrase
            for phrase in ("Unchanged", "Nothing changes", "unchanged", "No evolution", "no evolution is")
            if phrase in text
        ]
    assert "verdict-unknown" in page.content.decode()
    assert "verdict-breaks" not in page.content.decode()
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(SystemExit) as ended:
        call_command("check_state", path, str(tmp_path / "plan.json"), stdout=StringIO())
    assert ended.value.code == 2


def test_a_query_that_is_starting_can_not_be_checked_yet(
    look: Callable[[str], Client], api: Callable[[str], Client], settings: Any, tmp_path: Path
) -> None:
    settings.CHECKPOINT_ROOTS = [tmp_path]
    starting = Path(shutil.copytree(TOTALS, tmp_path / "starting"))
    shutil.rmtree(starting / "commits")
    client = look("steward")
    sentence = "this query is starting: no batch has been committed"
    assert sentence in seen(client.post(NEW, {"path": str(starting), "plan": json.dumps(SAME), "do": "check"}))
    assert sentence in seen(client.post(NEW, {"path": str(starting), "plan": "", "do": "load"}))
    refused = ask(api("steward"), SAME, str(starting))
    assert refused.status_code == 422
    assert sentence in refused.json()["message"]
    assert not StateCheck.objects.exists()
    (tmp_path / "plan.json").write_text(json.dumps(SAME))
    with pytest.raises(CommandError, match=sentence) as ended:
        call_command("check_state", str(starting), str(tmp_path / "plan.json"), stdout=StringIO())
    assert ended.value.returncode == 2


@pytest.mark.requirement("DBX-4")
def test_the_script_comes_through_page_api_and_command(
    look: Callable[[str], Client], api: Callable[[str], Client], tmp_path: Path
) -> None:
    renamed = json.loads(json.dumps(SAME).replace('"totals"', '"sums"'))
    made = ask(api("steward"), renamed).json()
    assert made["verdict"] == "loses data"
    assert "migrate(" in made["script"]
    page = look("steward").get(made["url"])
    assert "Release in two steps" in seen(page)
    assert "Download the script" in seen(page)
    exported = look("steward").get(f"{made['url']}/export?format=script")
    assert exported.content.decode() == made["script"]
    assert exported["Content-Disposition"].endswith('.py"')
    (tmp_path / "plan.json").write_text(json.dumps(renamed))
    code, text = run(TOTALS, str(tmp_path / "plan.json"), "--script", str(tmp_path / "migrate.py"))
    assert (code, "what to do: Migrate the state. " in text) == (1, True)
    assert (tmp_path / "migrate.py").read_text() == made["script"]
    assert run(TOTALS, str(tmp_path / "plan.json"), "--script", str(tmp_path / "migrate.py"))[0] == 2
    safe = ask(api("steward"), SAME).json()
    assert (safe["script"], safe["report"]["ways_out"]) == ("", [])
    assert "What to do" not in seen(look("steward").get(safe["url"]))
    assert look("steward").get(f"{safe['url']}/export?format=script").status_code == 422


def test_hostile_names_stay_text_in_the_report(look: Callable[[str], Client]) -> None:
    client = look("steward")
    plan = {"variables": [{"name": NASTY, "value_schema": f"`{NASTY}\u202e` INT"}]}
    sent = client.post(NEW, {"path": TOTALS, "plan": json.dumps(plan), "do": "check"})
    content = client.get(sent["Location"]).content.decode()
    assert "<script>alert" not in content
    assert "&lt;script&gt;" in content


def test_who_may_check_and_who_may_read(look: Callable[[str], Client], api: Callable[[str], Client]) -> None:
    assert ask(api("reader"), SAME).status_code == 403
    assert ask(Client(), SAME).status_code == 401
    made = ask(api("steward"), SAME)
    assert made.status_code == 201
    reader = look("reader")
    assert reader.get(made.json()["url"]).status_code == 200
    assert reader.post(NEW, {"path": TOTALS, "plan": json.dumps(SAME), "do": "check"}).status_code == 403
    assert "You need the" in seen(reader.get(NEW))
    assert Client().get(made.json()["url"]).status_code in (302, 401, 403)
    assert reader.get("/ui/state-checks/999999").status_code == 404
    assert reader.get("/ui/state-checks/99999999999999999999999").status_code == 404


@pytest.mark.requirement("DBX-4")
def test_the_api_keeps_the_report_and_who_asked(api: Callable[[str], Client]) -> None:
    client = api("steward")
    response = ask(client, RENAMED)
    assert response.status_code == 201
    body = response.json()
    DOCUMENTED.validate(body["report"])
    assert (body["verdict"], body["created_by"]) == ("loses data", "steward")
    assert client.get(f"/api/v1/state-checks/{body['id']}").json() == body
    assert ask(client, json.dumps(SAME)).json()["verdict"] == "safe"
    event = AuditEvent.objects.filter(table="streams_statecheck").latest("id")
    assert (event.operation, event.actor, event.after["report"]) == ("INSERT", "steward", "(hidden)")


@pytest.mark.parametrize(
    ("plan", "checkpoint", "status"),
    [
        ({"variables": [{"name": "v", "value_schema": "a INTT"}]}, TOTALS, 422),
        ({"variables": []}, TOTALS, 422),
        ([], TOTALS, 422),
        (None, TOTALS, 422),
        (SAME, "/etc/passwd", 422),
        (SAME, "s3://bucket/checkpoint", 422),
        (SAME, "x" * 5_000, 422),
        (SAME, "a\0b", 422),
    ],
)
def test_the_api_refuses_what_can_not_be_checked(
    api: Callable[[str], Client], plan: Any, checkpoint: str, status: int
) -> None:
    response = ask(api("steward"), plan, checkpoint)
    assert response.status_code == status
    assert response.json()["message"]
    assert api("steward2").get("/api/v1/state-checks/4711").status_code == 404


def test_the_calls_stand_in_the_description(api: Callable[[str], Client]) -> None:
    response = api("reader").get("/api/v1/schema", headers={"accept": "application/json"})
    paths = response.json()["paths"]
    assert "post" in paths["/api/v1/state-checks"]
    assert "get" in paths["/api/v1/state-checks/{check_id}"]


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and output of the command."""
    out = StringIO()
    try:
        call_command("check_state", *arguments, stdout=out)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue()
    except CommandError as error:
        return error.returncode, str(error)
    return 0, out.getvalue()


@pytest.mark.requirement("DBX-4")
def test_the_command_ends_with_a_code_for_ci(tmp_path: Path) -> None:
    same, renamed, broken, source = (tmp_path / name for name in ("same.json", "renamed.json", "broken.json", "app.py"))
    same.write_text(json.dumps(SAME))
    renamed.write_text(json.dumps(RENAMED))
    broken.write_text("{")
    assert run(TOTALS, str(same))[0] == 0
    code, text = run(TOTALS, str(renamed))
    assert (code, text.startswith("Loses data: ")) == (1, True)
    code, text = run(TOTALS, str(renamed), "--format", "json")
    DOCUMENTED.validate(json.loads(text))
    assert run(TOTALS, str(broken))[0] == 2
    assert run(str(tmp_path), str(same))[0] == 2
    assert run(TOTALS, str(tmp_path / "missing.json"))[0] == 2
    limit = "spark.sql.streaming.stateStore.valueStateSchemaEvolutionThreshold"
    code, text = run(TOTALS, str(renamed), "--set", f"{limit}=2")
    assert (code, "THRESHOLD_EXCEEDED" in text) == (1, True)
    assert run(TOTALS, str(renamed), "--set", limit)[0] == 2
    source.write_text(
        "assert False, 'this file is never executed'\n"
        "class App:\n    def init(self, handle):\n"
        "        handle.getValueState('totals', 'orders BIGINT, amount_cents BIGINT, status STRING, currency STRING')\n"
    )
    code, text = run(TOTALS, str(source))
    assert (code, "totals (value): unchanged" in text) == (0, True)
    assert "no longer declares" in text
