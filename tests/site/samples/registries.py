"""Sample data of the pages of registries."""

from __future__ import annotations

from dataclasses import replace

from dashboard.presenters.drift_parts import FieldGroup
from dashboard.presenters.frame import Action, Crumb, Environment, Field, Problem, Section
from dashboard.presenters.registries import (
    ConnectionTest,
    RegistriesPage,
    RegistryForm,
    RegistryRow,
    RegistryState,
    StepState,
    TestLine,
)
from tests.site.samples.cast import DEV, HOSTILE, LONG, PROD, ago, frame

ACTIONS = (
    Action(label="Refresh", url="/ui/registries/theirs/refresh", method="post", icon="refresh-cw"),
    Action(label="Test connection", url="/ui/registries/theirs/test", method="post", icon="play"),
    Action(label="Change", url="/gallery/registry-form", icon="pencil"),
    Action(label="Disconnect", url="/gallery/registry-form", icon="x"),
)
REFUSED = tuple(
    replace(each, allowed=False, reason="reader may not manage registries; it takes the role admin.")
    for each in ACTIONS
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
    connect=replace(LIST.connect, allowed=False, reason="reader may not manage registries; it takes the role admin."),
    rows=tuple(replace(row, actions=REFUSED if row.actions else ()) for row in LIST.rows),
)
NEW = RegistryForm(
    frame=frame("Connect a registry", Section.NONE, Crumb(label="Registries", url="/gallery/registries")),
    groups=(
        FieldGroup(
            title="Where",
            fields=(
                Field(name="name", label="Name", required=True, code=True, help="How it is called here, and in addresses."),
                Field(name="url", label="Address", required=True, code=True, placeholder="https://registry.example.com", value=HOSTILE),
                Field(name="every_seconds", label="Read every … seconds", required=True, value="300"),
            ),
        ),
        FieldGroup(
            title="Sign-in",
            fields=(Field(name="user", label="User"), Field(name="secret", label="Secret’s name", help="The name alone, never the password.")),
            note="With a user the secret is a password, without one a bearer token.",
        ),
    ),
    submit=Action(label="Connect", url="/ui/registries/connect", method="post", tone="primary"),
    secrets=("", "SCHEMADESK_SECRET_NAME"),
)  # fmt: skip
STEPS = (
    TestLine(label="Its address may be connected to", state=StepState.OK, said="registry.example.com is 203.0.113.7."),
    TestLine(label="It is reached", state=StepState.OK, said="registry.example.com answers."),
    TestLine(label="The sign-in is taken", state=StepState.OK, said="The sign-in is taken."),
    TestLine(label="It lists its subjects", state=StepState.OK, said="It lists 64 subjects."),
)
TESTED = replace(
    NEW,
    disconnect=Action(label="Disconnect", url="/gallery/registry-form"),
    tested=ConnectionTest(
        ok=True,
        sentence="It can be mirrored. Nothing was saved.",
        steps=STEPS,
        capabilities=(
            TestLine(label="Contexts", state=StepState.HAS, said="It has 2."),
            TestLine(
                label="Mode IMPORT: versions keep their ids", state=StepState.UNKNOWN, said="Its mode is READWRITE."
            ),
            TestLine(
                label="References", state=StepState.LACKS, said="It doesn't know …/referencedby, so neither references."
            ),
            TestLine(label="Avro", state=StepState.HAS),
        ),
    ),
)
FAILED = replace(
    NEW,
    problem=Problem(what="There is a registry theirs already.", cure="Change the form below. Nothing was saved."),
    tested=ConnectionTest(
        ok=False,
        sentence="It can’t be mirrored like this. Nothing was saved.",
        steps=(
            STEPS[0],
            TestLine(label="It is reached", state=StepState.FAILED, said=HOSTILE),
            TestLine(label="The sign-in is taken", state=StepState.SKIPPED),
            TestLine(label="It lists its subjects", state=StepState.SKIPPED, said=LONG),
        ),
    ),
)
