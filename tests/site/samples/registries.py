"""Sample data of the pages of registries."""

from __future__ import annotations

from dataclasses import replace

from dashboard.components.widgets import Action, Crumb, Environment, Fact, Field, Paging, Problem, Section
from dashboard.registries.archive import ComingRow, CopyPage, CopyRow, DeletedPage, ImportFate, MovingPage, Way
from dashboard.registries.page import (
    ConnectionTest,
    RegistriesPage,
    RegistryForm,
    RegistryRow,
    RegistryState,
    StepState,
    TestLine,
)
from dashboard.sources.presenters import FieldGroup
from tests.site.samples.cast import DEV, HOSTILE, LONG, PROD, ago, frame

ACTIONS = (
    Action(label="Refresh", url="/ui/registries/theirs/refresh", method="post", icon="refresh-cw"),
    Action(label="Test connection", url="/ui/registries/theirs/test", method="post", icon="play"),
    Action(label="Change", url="/gallery/registry-form", icon="pencil"),
    Action(label="Disconnect", url="/gallery/registry-form", icon="x"),
)
REFUSED = tuple(
    replace(each, allowed=False, reason="You need the admin role to manage registries.") for each in ACTIONS
)
LIST = RegistriesPage(
    frame=frame("Registries", Section.NONE),
    connect=Action(label="Connect a registry", url="/gallery/registry-form", tone="primary", icon="plus"),
    rows=(
        RegistryRow(environment=DEV, url="/gallery/subjects", state=RegistryState.OURS, subjects=128, versions=431),
        RegistryRow(environment=PROD, url="/gallery/subjects", state=RegistryState.OURS, subjects=100_000, versions=212_430),
        RegistryRow(
            environment=Environment(name="theirs"), url="/gallery/subjects", state=RegistryState.FRESH, subjects=64,
            versions=210, address="https://registry.example.com", every="every 5 minutes", synced_at=ago(seconds=40), actions=ACTIONS,
        ),
        RegistryRow(
            environment=Environment(name="old"), url="/gallery/subjects", state=RegistryState.FAILING, subjects=12, versions=12,
            address="https://old.example.com:8443/" + "a" * 200, every="every 1 minute", synced_at=ago(hours=7), since=ago(hours=6),
            problem="old.example.com:8443 can't be reached: Connection refused.", actions=ACTIONS,
        ),
        RegistryRow(
            environment=Environment(name=HOSTILE), url="/gallery/subjects", state=RegistryState.RUNNING, subjects=0, versions=0,
            address=LONG, every="every 1 minute", problem=HOSTILE, actions=ACTIONS,
        ),
    ),
)  # fmt: skip
EMPTY = replace(LIST, rows=())
READER = replace(
    LIST,
    connect=replace(LIST.connect, allowed=False, reason="You need the admin role to manage registries."),
    rows=tuple(replace(row, actions=REFUSED if row.actions else ()) for row in LIST.rows),
)
NEW = RegistryForm(
    frame=frame("Connect a registry", Section.NONE, Crumb(label="Registries", url="/gallery/registries")),
    groups=(
        FieldGroup(
            title="Where",
            fields=(
                Field(name="name", label="Name", required=True, code=True, help="Its name here and in URLs."),
                Field(name="url", label="Address", required=True, code=True, placeholder="https://registry.example.com", value=HOSTILE),
                Field(name="every_seconds", label="Sync interval in seconds", required=True, value="300"),
            ),
        ),
        FieldGroup(
            title="Sign-in",
            fields=(Field(name="user", label="User"), Field(name="secret", label="Name of the secret", help="Only the name, never the password.")),
            note="With a user, the secret is a password. Without a user, it is a bearer token.",
        ),
    ),
    submit=Action(label="Connect", url="/ui/registries/connect", method="post", tone="primary"),
    secrets=("", "SCHEMADESK_SECRET_NAME"),
)  # fmt: skip
STEPS = (
    TestLine(label="Address allowed", state=StepState.OK, sentence="registry.example.com is 203.0.113.7."),
    TestLine(label="Server reached", state=StepState.OK, sentence="registry.example.com answers."),
    TestLine(label="Sign-in accepted", state=StepState.OK, sentence="The sign-in is taken."),
    TestLine(label="Subjects listed", state=StepState.OK, sentence="It lists 64 subjects."),
)
TESTED = replace(
    NEW,
    disconnect=Action(label="Disconnect", url="/gallery/registry-form"),
    tested=ConnectionTest(
        ok=True,
        sentence="This registry can be mirrored. Nothing was saved.",
        steps=STEPS,
        capabilities=(
            TestLine(label="Contexts", state=StepState.HAS, sentence="It has 2."),
            TestLine(
                label="Mode IMPORT (versions keep their ids)",
                state=StepState.UNKNOWN,
                sentence="Its mode is READWRITE.",
            ),
            TestLine(
                label="References",
                state=StepState.LACKS,
                sentence="It doesn't support …/referencedby, and so no references.",
            ),
            TestLine(label="Avro", state=StepState.HAS),
        ),
    ),
)
FAILED = replace(
    NEW,
    problem=Problem(what="A registry named theirs already exists.", cure="Correct the form below. Nothing was saved."),
    tested=ConnectionTest(
        ok=False,
        sentence="This registry can’t be mirrored with these settings. Nothing was saved.",
        steps=(
            STEPS[0],
            TestLine(label="Server reached", state=StepState.FAILED, sentence=HOSTILE),
            TestLine(label="Sign-in accepted", state=StepState.SKIPPED),
            TestLine(label="Subjects listed", state=StepState.SKIPPED, sentence=LONG),
        ),
    ),
)
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
