"""Sample pages: the simulator."""

from __future__ import annotations

from dataclasses import replace

from dashboard.compare.proof import bytes_view
from dashboard.compatibility.read_modify_write import (
    DatumReading,
    FateTable,
    FieldFate,
    HazardRow,
    ModifyForm,
    ModifyPart,
    ReadForm,
    ReadPart,
    RoundTrip,
    SimulatorPage,
    StepView,
)
from dashboard.components.badges import VersionOutcome
from dashboard.components.widgets import Crumb, Problem, Section
from registry.errors import InvalidDatum
from registry.formats.read_modify_write import Remedy
from tests.site.samples.cast import ARABIC, HOSTILE, LONG, frame, subject_crumbs

ENCODED = b"\x08text<script>alert(1)</script>".hex()
DATUM = '{\n  "name": "text",\n  "age": 41\n}'


def read_form(text: str = DATUM, error: str = "") -> ReadForm:
    """The form as it was sent."""
    form = ReadForm({"datum": text}, writer=2)
    form.is_valid()
    if error:
        form.add_service_error(InvalidDatum(error))
    return form


def modify_form(*errors: InvalidDatum) -> ModifyForm:
    """The form as it was sent, with what its service raised."""
    form = ModifyForm({"datum": DATUM, "pointer": "/name", "value": '"text changed"'}, writer=2)
    form.read_as({"name": HOSTILE, "age": 41, HOSTILE: 1})
    form.is_valid()
    for error in errors:
        form.add_service_error(error)
    return form


FATES = FateTable(
    before_label="Written by version 2",
    after_label="Read by version 3",
    rows=(
        FieldFate(path="Person.name", fate=VersionOutcome.KEPT, before='"text"', after='"text"'),
        FieldFate(path=HOSTILE, fate=VersionOutcome.FILLED, before=None, after="-1"),
        FieldFate(path=LONG, fate=VersionOutcome.DROPPED, before=f'"{ARABIC}"', after=None),
        FieldFate(
            path="Person.size",
            fate=VersionOutcome.CONVERTED,
            before="16777217",
            after="16777216.0",
            note="loses digits",
        ),
    ),
    hidden=12,
)
BASE = SimulatorPage(
    frame=frame(
        "Simulate with data",
        Section.SUBJECTS,
        *subject_crumbs(),
        Crumb(label="person-value", url="/gallery/subject", code=True),
    ),
    registry="dev",
    subject="person-value",
    url="/gallery/simulate",
    post_url="/gallery/simulate?writer=2&reader=3",
    part="read",
    offered=(3, 2, 1),
)
READ = replace(
    BASE,
    read=ReadPart(
        writer=2,
        reader=3,
        form=read_form(),
        reading=DatumReading(
            sentence="4 fields: 1 kept, 1 filled from the default, 1 dropped, 1 converted",
            written=DATUM,
            encoded=bytes_view(ENCODED, "bytes-written"),
            read='{\n  "name": "text",\n  "age": -1\n}',
            fates=FATES,
        ),
    ),
)
assert READ.read is not None and READ.read.reading is not None
READ_STOPS = replace(
    READ,
    read=replace(
        READ.read,
        reading=replace(
            READ.read.reading, fates=None, read="", error=f"SchemaResolutionError: no default for {HOSTILE}"
        ),
    ),
)
READ_ERROR = replace(
    READ,
    read=replace(
        READ.read,
        reading=None,
        form=read_form('{"name": "text", "age": "x"}', f"Person.age: expected an int, not {HOSTILE}"),
    ),
)
STEPS = (
    StepView(
        number=1,
        who="Client on version 2",
        what="writes the record",
        value=DATUM,
        encoded=bytes_view(ENCODED, "bytes-step-1", width=8),
    ),
    StepView(
        number=2,
        who="Client on version 1",
        what=f"reads it, changes name to {HOSTILE} and writes it back",
        value='{\n  "name": "text"\n}',
        encoded=bytes_view("0874657874", "bytes-step-2", width=8),
        fates=FATES,
    ),
    StepView(
        number=3,
        who="Client on version 2",
        what="reads the record again",
        value='{\n  "name": "text",\n  "age": -1\n}',
        encoded=bytes_view("0874657874", "bytes-step-3", width=8),
        fates=FateTable(
            rows=(
                FieldFate(path="Person.name", fate=VersionOutcome.KEPT, before='"text"', after='"text"'),
                FieldFate(
                    path="Person.age", fate=VersionOutcome.RESET, before="41", after="-1", note="reset to the default"
                ),
            )
        ),
    ),
)
MODIFY = replace(
    BASE,
    part="modify",
    modify=ModifyPart(
        in_use=(1, 3),
        hazards=(
            HazardRow(
                path="Person.age",
                known_in=(3, 2),
                lost_in=1,
                before="41",
                after="-1",
                is_default=True,
                example=3,
                selected=True,
            ),
            HazardRow(
                path=HOSTILE, known_in=(3,), lost_in=2, before="[1, 2]", after="[1]", is_default=False, example=3
            ),
        ),
        hazards_hidden=4,
        written_by=2,
        modified_by=1,
        form=modify_form(),
        remedies=(
            Remedy("", "Upgrade first, use later", f"Upgrade every client before any sets {HOSTILE}."),
            Remedy("", "Freeze the writers that lose it", "Let clients on version 1 only read."),
            Remedy("", "Give the field an owner", "Keep it in a record of its own."),
        ),
        round=RoundTrip(
            steps=STEPS,
            resets=(
                FieldFate(
                    path="Person.age", fate=VersionOutcome.RESET, before="41", after="-1", note="reset to the default"
                ),
                FieldFate(path=HOSTILE, fate=VersionOutcome.RESET, before='"a"', after="null", note=""),
            ),
        ),
    ),
)
assert MODIFY.modify is not None
MODIFY_SAFE = replace(
    MODIFY,
    modify=replace(
        MODIFY.modify, hazards=(), hazards_hidden=0, remedies=(), round=RoundTrip(steps=STEPS[:2], resets=())
    ),
)
MODIFY_STOPS = replace(
    MODIFY,
    modify=replace(
        MODIFY.modify,
        hazards=(),
        stops=(f"Data of version 2 can’t be read by version 1 {HOSTILE}.",),
        round=RoundTrip(
            steps=(STEPS[0], replace(STEPS[1], value="", fates=None, error=f"no default for {HOSTILE}")),
            resets=(),
            error=f"no default for {HOSTILE}",
        ),
    ),
)
MODIFY_ERROR = replace(
    MODIFY,
    modify=replace(
        MODIFY.modify,
        round=None,
        form=modify_form(InvalidDatum("the change points to a missing value", pointer="/name"), InvalidDatum(HOSTILE)),
    ),
)
TOO_FEW = replace(
    BASE, part="modify", too_few="Version 1 is the only version in Avro, so no other version can reset its fields."
)
PROBLEM = replace(BASE, problem=Problem(what=f"Reading the schema {HOSTILE} takes more than 2 s."))
