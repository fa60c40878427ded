"""Sample pages: the simulator."""

from __future__ import annotations

from dataclasses import replace

from dashboard.compare.proof import bytes_view
from dashboard.compatibility.read_modify_write import (
    DatumReading,
    FateTable,
    FieldFate,
    HazardRow,
    ModifyPart,
    ReadPart,
    RemedyLine,
    ResetLine,
    RoundTrip,
    SimulatorPage,
    StepView,
)
from dashboard.components.badges import Fate
from dashboard.components.widgets import Choice, Crumb, Field, Problem, Section
from tests.site.samples.cast import ARABIC, HOSTILE, LONG, frame, subject_crumbs

ENCODED = b"\x08text<script>alert(1)</script>".hex()
VERSIONS = (Choice(value="3", label="Version 3", selected=True), Choice(value="2", label="Version 2"))
DATUM = Field(
    name="datum",
    label="Record of version 2",
    kind="textarea",
    rows=6,
    code=True,
    required=True,
    value='{\n  "name": "text",\n  "age": 41\n}',
    help="As JSON. Missing fields get their default.",
)
FATES = FateTable(
    before_label="Written by version 2",
    after_label="Read by version 3",
    rows=(
        FieldFate(path="Person.name", fate=Fate.KEPT, before='"text"', after='"text"'),
        FieldFate(path=HOSTILE, fate=Fate.FILLED, before=None, after="-1"),
        FieldFate(path=LONG, fate=Fate.DROPPED, before=f'"{ARABIC}"', after=None),
        FieldFate(path="Person.size", fate=Fate.CONVERTED, before="16777217", after="16777216.0", note="loses digits"),
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
    subject_url="/gallery/subject",
    url="/gallery/simulate",
    post_url="/gallery/simulate?writer=2&reader=3",
    part="read",
    part_urls=(
        ("read", "What a reader gets", "/gallery/simulate"),
        ("modify", "Read, modify, write back", "/gallery/simulate-modify"),
    ),
    format="AVRO",
)
READ = replace(
    BASE,
    read=ReadPart(
        writer=2,
        reader=3,
        writer_choices=VERSIONS,
        reader_choices=VERSIONS,
        datum=DATUM,
        example_url="/gallery/simulate",
        swap_url="/gallery/simulate",
        compare_url="/gallery/compare",
        reading=DatumReading(
            sentence="4 fields: 1 kept, 1 filled from the default, 1 dropped, 1 converted",
            written=DATUM.value,
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
        datum=replace(DATUM, value='{"name": "text"', errors=(f"Person.age: expected an int, not {HOSTILE}",)),
    ),
)
STEPS = (
    StepView(
        number=1,
        who="Client on version 2",
        what="writes the record",
        value=DATUM.value,
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
                FieldFate(path="Person.name", fate=Fate.KEPT, before='"text"', after='"text"'),
                FieldFate(path="Person.age", fate=Fate.RESET, before="41", after="-1", note="reset to the default"),
            )
        ),
    ),
)
MODIFY = replace(
    BASE,
    part="modify",
    modify=ModifyPart(
        boxes=(*VERSIONS, Choice(value="1", label="Version 1", selected=True)),
        in_use=(1, 3),
        limit=10,
        hazards=(
            HazardRow(
                path="Person.age",
                known_in=(3, 2),
                lost_in=1,
                before="41",
                after="-1",
                is_default=True,
                url="/gallery/simulate-modify",
                selected=True,
            ),
            HazardRow(
                path=HOSTILE, known_in=(3,), lost_in=2, before="[1, 2]", after="[1]", is_default=False, url="/gallery/x"
            ),
        ),
        hazards_hidden=4,
        written_by=2,
        modified_by=1,
        written_choices=VERSIONS,
        modified_choices=VERSIONS,
        datum=DATUM,
        pointer=Field(
            name="pointer",
            label="Field to change",
            kind="select",
            required=True,
            choices=(Choice(value="", label="nothing"), Choice(value="/name", label=HOSTILE, selected=True)),
        ),
        value=Field(name="value", label="New value", code=True, required=True, value='"text changed"'),
        example_url="/gallery/simulate-modify",
        remedies=(
            RemedyLine(title="Upgrade first, use later", text=f"Upgrade every client before any sets {HOSTILE}."),
            RemedyLine(title="Freeze the writers that lose it", text="Let clients on version 1 only read."),
            RemedyLine(title="Give the field an owner", text="Keep it in a record of its own."),
        ),
        round=RoundTrip(
            steps=STEPS,
            resets=(
                ResetLine(path="Person.age", before="41", after="-1", is_default=True),
                ResetLine(path=HOSTILE, before='"a"', after="null", is_default=False),
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
        pointer=replace(MODIFY.modify.pointer, errors=("the change points to a missing value",)),
        value=replace(MODIFY.modify.value, errors=(HOSTILE,)),
    ),
)
TOO_FEW = replace(
    BASE, part="modify", too_few="Version 1 is the only version in Avro, so no other version can reset its fields."
)
PROBLEM = replace(BASE, problem=Problem(what=f"Reading the schema {HOSTILE} takes more than 2 s."))
