"""Sample data of the pages of registries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dashboard.components.widgets import Action, Crumb, Environment, Paging, Problem, Section
from dashboard.registries.archive import CopyPage, DeletedPage, ImportExportPage
from dashboard.registries.connections import ConnectForm, ConnectionPage, RegistriesPage, RegistryRow, TestConnectForm
from registry.subjects.archive.archive import CopyInfo
from registry.subjects.import_export.import_plan import Line, Plan, RestoreOptions
from registry.subjects.import_export.snapshot import Problem as ImportProblem
from registry.subjects.policy.registries import MirrorState, RegistryEntry
from registry.subjects.remote import connection_test as probing
from registry.subjects.remote.connection_test import Capability, Probe, Step
from registry.subjects.versions.qualified_names import SubjectName
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
CRUMBS = (Crumb(label="Subjects", url="/gallery/subjects"), Crumb(label="Export and import", url="/gallery/transfer"))
TRANSFER = ImportExportPage(
    frame=frame("Export and import", Section.POLICY, CRUMBS[0]),
    registry="dev",
    subjects=128,
    versions=431,
    waiting=tuple(
        CopyInfo(number, name, 431, ago(minutes=4), who, ago(hours=-2))
        for number, (name, who) in enumerate((("dev.jsonl", "anna"), (HOSTILE, HOSTILE), (LONG, LONG)), start=1)
    ),
    may_restore=True,
)
TRANSFER_EMPTY = replace(TRANSFER, subjects=0, versions=0, waiting=())
TRANSFER_REFUSED = replace(
    TRANSFER,
    refused="You need the admin role in dev to change modes.",
    waiting=(),
    may_restore=False,
    problem=Problem(
        what="dev.jsonl has no last line, so it is incomplete. Export it again.",
        cure="Nothing was changed. Choose another file.",
    ),
)
KEPT = CopyInfo(7, "orders-value", 3, ago(hours=3), "anna", ago(days=-29))
DELETED = DeletedPage(
    frame=frame("Permanently deleted", Section.SUBJECTS, *CRUMBS),
    registry="dev",
    days=30,
    rows=(
        KEPT,
        replace(KEPT, name=":.lab:payments-value", versions=12, made_by="ci"),
        replace(KEPT, name=HOSTILE, versions=1, made_by=HOSTILE),
        replace(KEPT, name=LONG, versions=1_204, made_by=LONG),
    ),
    paging=Paging(first=1, last=4, next_url="/gallery/deleted"),
)
DELETED_NONE = replace(DELETED, rows=(), paging=None)
DELETED_OFF = replace(DELETED_NONE, days=0)


def line(subject: str, version: int, schema_id: int, fate: Any, why: str = "") -> Line:
    """What becomes of a sample version."""
    return Line(SubjectName(".", subject), version, schema_id, fate, why)


NEW_LINES = tuple(line("orders-value", number, 11 + number, "created") for number in (1, 2, 3))
COPY = CopyPage(
    frame=frame(
        "Restore orders-value", Section.SUBJECTS, *CRUMBS, Crumb(label="Permanently deleted", url="/gallery/deleted")
    ),
    registry="dev",
    info=KEPT,
    is_deleted=True,
    ways=RestoreOptions(live=True),
    owners=("team-orders", "anna"),
    plan=Plan(NEW_LINES, ("settings of orders-value: level", "description of orders-value"), (), "0" * 64),
)
COPY_NOTHING = replace(COPY, plan=Plan(tuple(replace(each, fate="same") for each in NEW_LINES), (), (), "0" * 64))
COPY_CLOSED = replace(
    COPY,
    plan=None,
    problem=Problem(what="Registry prod is a closed environment: it takes a release.", cure="Nothing was changed."),
)
TAKEN = "schema id 8 is used by another schema (payments-value version 1) here."
COPY_IMPORT = replace(
    COPY,
    frame=frame("Import dev.jsonl", Section.SUBJECTS, *CRUMBS),
    is_deleted=False,
    info=replace(KEPT, name="dev.jsonl", versions=431, made_by=HOSTILE),
    ways=RestoreOptions(),
    owners=(),
    plan=Plan(
        (
            line(HOSTILE, 1, 7, "conflict", HOSTILE),
            line("orders-value", 2, 8, "conflict", TAKEN),
            line(LONG, 3, 2_000_000_001, "left", LONG),
            line("address-value", 1, 3, "changed"),
            *NEW_LINES,
            *(line("invoice-value", number, number, "same") for number in range(1_001, 1_110)),
        ),
        (
            "context .: ids go on from 412",
            f"settings of {HOSTILE}: level",
            *(f"description of subject-{number}" for number in range(1_000, 1_110)),
        ),
        (ImportProblem(f"note of {LONG}", "this subject doesn't exist here."), ImportProblem(HOSTILE, HOSTILE)),
        "0" * 64,
    ),
)
