"""Sample data of the pages of registries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dashboard.components.widgets import Action, Crumb, Environment, Fact, Paging, Problem, Section
from dashboard.registries.archive import ComingRow, CopyPage, CopyRow, DeletedPage, ImportFate, MovingPage, Way
from dashboard.registries.connections import ConnectForm, ConnectionPage, RegistriesPage, RegistryRow, TestConnectForm
from registry.subjects.policy.registries import MirrorState, RegistryEntry
from registry.subjects.remote import connection_test as probing
from registry.subjects.remote.connection_test import Capability, Probe, Step
from tests.site.samples.cast import DEV, HOSTILE, LONG, PROD, ago, frame

READER = "You need the admin role to manage registries."
REFRESH = Action(label="Refresh", url="/ui/registries/theirs/refresh", method="post", icon="refresh-cw")


def row(environment: Environment, subjects: int, versions: int, mirror: dict[str, Any] | None = None) -> RegistryRow:
    """A sample registry."""
    state = None
    if mirror is not None:
        base = MirrorState(
            registry=environment.name, kind="confluent", url="https://registry.example.com", every_seconds=300, synced_at=None, age=None, error="",
            failing_since=None, is_running=False, is_stale=False,
        )  # fmt: skip
        state = replace(base, **mirror)
    entry = RegistryEntry(environment.name, "remote" if mirror else "local", subjects, versions, ago(days=9), state)
    return RegistryRow(info=entry, environment=environment, refresh=REFRESH if mirror else None)


LIST = RegistriesPage(
    frame=frame("Registries", Section.NONE),
    refused="",
    rows=(
        row(DEV, 128, 431),
        row(PROD, 100_000, 212_430),
        row(Environment(name="theirs"), 64, 210, {"synced_at": ago(seconds=40)}),
        row(
            Environment(name="old"), 12, 12,
            {"url": "https://old.example.com:8443/" + "a" * 200, "synced_at": ago(hours=7), "failing_since": ago(hours=6),
             "error": "old.example.com:8443 can't be reached: Connection refused."},
        ),
        row(Environment(name=HOSTILE), 0, 0, {"url": LONG, "error": HOSTILE, "is_running": True}),
    ),
)  # fmt: skip
EMPTY = replace(LIST, rows=())
READERS = tuple(replace(each, refused=READER, refresh=None) if each.refresh else each for each in LIST.rows)
LIST_READER = replace(LIST, refused=READER, rows=READERS)
SENT = {"name": "theirs", "url": HOSTILE, "every_seconds": "300"}
STEPS = (
    Step(probing.ADDRESS, True, "registry.example.com is 203.0.113.7."),
    Step(probing.REACHED, True, "registry.example.com answers."),
    Step(probing.SIGNED_IN, True, "The sign-in is taken."),
    Step(probing.SUBJECTS, True, "It lists 64 subjects."),
)
NEW = ConnectionPage(
    frame=frame("Connect a registry", Section.NONE, Crumb(label="Registries", url="/gallery/registries")),
    form=ConnectForm(), label="Connect", back_url="/gallery/registries",
)  # fmt: skip
TESTED = replace(
    NEW,
    form=TestConnectForm(SENT),
    registry="theirs",
    tested=Probe("https://registry.example.com", STEPS, (
        Capability(probing.CONTEXTS, True, "It has 2."),
        Capability(probing.IMPORT, None, "Its mode is READWRITE."),
        Capability(probing.REFERENCES, False, "It doesn't support …/referencedby, and so no references."),
        Capability(f"{probing.FORMAT}AVRO", True, ""),
    )),
)  # fmt: skip
_TAKEN = ConnectForm(SENT)
_TAKEN.add_error(None, "A registry named theirs already exists.")
FAILED = replace(
    NEW,
    form=_TAKEN,
    tested=Probe(
        HOSTILE,
        (STEPS[0], Step(probing.REACHED, False, HOSTILE), Step(probing.SIGNED_IN, None, ""), Step(probing.SUBJECTS, None, LONG)),
    ),
)  # fmt: skip
CRUMBS = (Crumb(label="Subjects", url="/gallery/subjects"), Crumb(label="Export and import", url="/gallery/moving"))
MOVING = MovingPage(
    frame=frame("Export and import", Section.POLICY, CRUMBS[0]),
    registry="dev",
    holds="128 subjects with 431 live versions now",
    export=Action(label="Export everything", url="/ui/registries/dev/moving/export", method="post", tone="primary", icon="file-text"),
    upload=Action(label="Upload and review", url="/ui/registries/dev/moving/import", method="post", tone="primary", icon="arrow-right"),
    limits="At most 16 MiB and 500 versions to import. For larger files, use the command import_registry.",
    waiting=tuple(
        CopyRow(
            name=name, versions=431, made_at=ago(minutes=4), made_by=who, until=ago(hours=-2),
            open=Action(label="Review …", url="/gallery/copy-import", icon="arrow-right"),
        )
        for name, who in (("dev.jsonl", "anna"), (HOSTILE, HOSTILE), (LONG, LONG))
    ),
    deleted_url="/gallery/deleted",
)  # fmt: skip
MOVING_EMPTY = replace(MOVING, holds="0 subjects with 0 live versions now", waiting=())
MOVING_REFUSED = replace(
    MOVING,
    upload=replace(MOVING.upload, allowed=False, reason="You need the admin role in dev to change modes."),
    waiting=(), deleted_url="", problem=Problem(what="dev.jsonl has no last line, so it is incomplete. Export it again.", cure="Nothing was changed. Choose another file."),
)  # fmt: skip
DELETED = DeletedPage(
    frame=frame("Permanently deleted", Section.SUBJECTS, *CRUMBS),
    registry="dev",
    days=30,
    rows=tuple(
        CopyRow(
            name=name, versions=versions, made_at=ago(hours=3), made_by=who, until=ago(days=-29),
            open=Action(label="Restore …", url="/gallery/copy", icon="undo-2"), file_url="/gallery/copy",
        )
        for name, versions, who in (("orders-value", 3, "anna"), (":.lab:payments-value", 12, "ci"), (HOSTILE, 1, HOSTILE), (LONG, 1_204, LONG))
    ),
    paging=Paging(first=1, last=4, next_url="/gallery/deleted"),
)  # fmt: skip
DELETED_NONE = replace(DELETED, rows=(), paging=None)
DELETED_OFF = replace(DELETED_NONE, days=0)
COPY = CopyPage(
    frame=frame("Restore orders-value", Section.SUBJECTS, *CRUMBS, Crumb(label="Permanently deleted", url="/gallery/deleted")),
    is_deleted=True,
    about="orders-value",
    facts=(
        Fact(label="Versions", value="3"), Fact(label="Deleted by", value="anna"), Fact(label="At", value="2026-11-20 09:12 UTC"),
        Fact(label="Kept until", value="2026-12-20 09:12 UTC"), Fact(label="Owned by", value="team-orders, anna"),
    ),
    until=ago(days=-27),
    file_url="/gallery/copy",
    forget=Action(label="Delete copy now", url="/ui/registries/dev/copies/7/forget", method="post", tone="danger", icon="x"),
    ways=(Way(label="Live again", url="/gallery/copy", current=True), Way(label="Soft-deleted, as before", url="/gallery/copy")),
    verdict=ImportFate.CREATED,
    sentence="Of 3 versions: 3 come.",
    way_sentence="Versions are restored with their numbers and ids where these are free. Existing data is not changed.",
    rows=tuple(
        ComingRow(subject="orders-value", url="", version=number, schema_id=11 + number, coming=ImportFate.CREATED) for number in (1, 2, 3)
    ),
    settings=("settings of orders-value: level", "description of orders-value"),
    confirm=Action(label="Restore", url="/ui/registries/dev/copies/7/bring", method="post", tone="primary", icon="undo-2"),
    hidden=(("plan", "0" * 64), ("only", ""), ("as", "")),
)  # fmt: skip
COPY_NOTHING = replace(
    COPY, verdict=ImportFate.SAME, sentence="Of 3 versions: 3 are there already.", settings=(),
    rows=tuple(replace(row, coming=ImportFate.SAME, url="/gallery/subject") for row in COPY.rows),
    confirm=replace(COPY.confirm, allowed=False, reason="There is nothing to import."),
)  # fmt: skip
COPY_CLOSED = replace(
    COPY, verdict=None, sentence="", rows=(), settings=(), confirm=None, hidden=(),
    problem=Problem(what="Registry prod is a closed environment: it takes a release.", cure="Nothing was changed."),
)  # fmt: skip
COPY_IMPORT = replace(
    COPY,
    frame=frame("Import dev.jsonl", Section.SUBJECTS, *CRUMBS),
    is_deleted=False,
    about="dev.jsonl",
    facts=(Fact(label="Versions", value="431"), Fact(label="Uploaded by", value=HOSTILE), Fact(label="Kept until", value="2026-12-20 09:12 UTC")),
    ways=(Way(label="Everything, as in the file", url="/gallery/copy-import", current=True), Way(label="Only what is missing", url="/gallery/copy-import")),
    verdict=ImportFate.CONFLICT,
    sentence="Of 431 versions: 2 can’t come, 1 stays as it is here, 1 changes, 3 come, 424 are there already.",
    way_sentence="What the file has is here as it is there afterwards. What is here alone stays. If one part can’t come, nothing does.",
    rows=(
        ComingRow(subject=HOSTILE, url="", version=1, schema_id=7, coming=ImportFate.CONFLICT, why=HOSTILE),
        ComingRow(subject="orders-value", url="", version=2, schema_id=8, coming=ImportFate.CONFLICT, why="schema id 8 is used by another schema (payments-value version 1) here."),
        ComingRow(subject=LONG, url="/gallery/subject", version=3, schema_id=2_000_000_001, coming=ImportFate.LEFT, why=LONG),
        ComingRow(subject="address-value", url="/gallery/subject", version=1, schema_id=3, coming=ImportFate.CHANGED),
        *(ComingRow(subject="customer-value", url="", version=number, schema_id=20 + number, coming=ImportFate.CREATED) for number in (1, 2, 3)),
        ComingRow(subject="invoice-value", url="/gallery/subject", version=1, schema_id=4, coming=ImportFate.SAME),
    ),
    more=423,
    settings=("context .: ids go on from 412", f"settings of {HOSTILE}: level", f"description of {LONG}"),
    more_settings=12,
    problems=(f"note of {LONG}: this subject doesn't exist here.", HOSTILE),
    confirm=replace(COPY.confirm, label="Import", icon="check", allowed=False, reason="Some of it can’t be imported. Choose “Only what is missing”."),
)  # fmt: skip
