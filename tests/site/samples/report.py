"""Sample pages: the compatibility report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dashboard.compare.proof import EditView, bytes_view
from dashboard.compatibility.forms import ReportForm
from dashboard.compatibility.presenters import (
    DataEvidence,
    LevelResult,
    LintGroup,
    MatrixCell,
    MatrixRow,
    PolicyFinding,
    PolicyResult,
    ReportFinding,
    ReportResult,
)
from dashboard.compatibility.report import RegistryAnswer, ReportPage
from dashboard.components.badges import Verdict
from dashboard.components.diff import text_diff
from dashboard.components.widgets import Action, Crumb, Problem, Section
from dashboard.subjects.descriptions import TagChip
from registry.drift.replay.evidence import EvidenceLine
from registry.drift.replay.schema_replay import Failure, ReplayReport, WriterReplay
from registry.errors import InvalidReference, InvalidSchema, SchemadeskError
from registry.formats.assessment import ClientAnswer, Dependant
from registry.formats.base import Incompatibility
from registry.formats.lint import LintFinding
from registry.formats.policies import PolicyItem
from registry.formats.policies.base import Weight
from registry.formats.suggested_edits import Patch
from registry.subjects.remote.remote_writer import RemoteVerdict
from tests.site.samples.cast import HOSTILE, ago, frame, subject_crumbs, subject_url
from tests.site.samples.comparison import AGAINST_LATEST, DISAGREEMENTS, RENAMES, STOPS, UNPROVED
from tests.site.samples.subjects import NEW, OLD

PROPOSED = NEW.replace('"type": "long", "logicalType"', '"type": "long" "logicalType"')
REPORT_EMPTY = ReportPage(
    frame=frame(
        "Check new version",
        Section.SUBJECTS,
        *subject_crumbs(),
        Crumb(label="orders-value", url="/gallery/subject", code=True),
    ),
    registry="dev",
    subject="orders-value",
    report_url=subject_url("dev", "orders-value", "report"),
    level="BACKWARD_TRANSITIVE",
    form=ReportForm(initial={"text": OLD}, current="BACKWARD_TRANSITIVE"),
)


def sent(error: SchemadeskError | None = None, **values: Any) -> ReportForm:
    """The form as it was sent, with what its service raised."""
    form = ReportForm({"references": (), "profile": "confluent", "text": NEW, **values}, current="FULL")
    form.is_valid()
    if error:
        form.add_service_error(error)
    return form


REPORT_SYNTAX = replace(
    REPORT_EMPTY,
    form=sent(InvalidSchema("expected a comma or a closing brace", line=12, column=54), text=PROPOSED),
)
OPTIONAL = LintFinding(
    rule="OPTIONAL_WITHOUT_DEFAULT",
    weight="warning",
    path=f"Order.{HOSTILE}",
    line=12,
    column=9,
    message='the field "note" may be null and has no default',
    why="It looks optional and isn’t: a reader that has it stops at data of a writer that doesn’t.",
    cure='put "null" first in the union and add "default": null',
)
NO_DOC = LintFinding(
    rule="FIELD_WITHOUT_DOC",
    weight="info",
    path="Order.id",
    line=None,
    column=None,
    message="the field isn’t described",
    why="The author knows what the name means. Others know only if it is documented.",
    cure="describe the field",
)
LINT = (
    LintGroup((OPTIONAL,)),
    LintGroup(
        (NO_DOC, replace(NO_DOC, path="Order.customer.email", cure=HOSTILE), replace(NO_DOC, path=HOSTILE, more=180))
    ),
)
POLICY_VERSIONS: dict[Weight, tuple[int, ...]] = {"refusal": (1, 2), "force": (1,), "advice": ()}
TYPE_CHANGED = ReportFinding(
    anchor="r-3",
    rule="TYPE_CHANGED",
    path=f"Order.{HOSTILE}",
    verdict=Verdict.BREAKS,
    sentence="The type long can’t be read as string",
    direction="New reader, old data",
    versions=(1,),
    before="long",
    after="string",
    why="Avro has no conversion between the two.",
    remedy="keep long (as a union of both, if you need string too), or add a new field of type string",
)
COUNTS = "\n".join(f'{{\n  "name": "count_{number}",\n  "type": "long"\n}},' for number in range(12))
RESULT = ReportResult(
    lint=LINT,
    verdict=Verdict.BREAKS,
    headline="A new topic, or repair it",
    level="BACKWARD_TRANSITIVE",
    checked_at=ago(seconds=2),
    checker="0.1.0",
    sentence="A reader with this schema fails on the data of 2 of the 3 versions. It would pass under NONE and FORWARD.",
    levels=tuple(
        LevelResult(
            level=level,
            verdict=Verdict.OK if level in ("NONE", "FORWARD") else Verdict.BREAKS,
            configured=level == "BACKWARD_TRANSITIVE",
        )
        for level in (
            "NONE",
            "BACKWARD",
            "BACKWARD_TRANSITIVE",
            "FORWARD",
            "FORWARD_TRANSITIVE",
            "FULL",
            "FULL_TRANSITIVE",
        )
    ),
    matrix=(
        MatrixRow(
            version=3,
            url="/gallery/subject",
            note="newest",
            new_reads_old=MatrixCell(verdict=Verdict.OK),
            old_reads_new=MatrixCell(verdict=Verdict.OK, is_asked=False),
        ),
        MatrixRow(
            version=2,
            url="/gallery/subject",
            new_reads_old=MatrixCell(verdict=Verdict.BREAKS, failures=1),
            old_reads_new=MatrixCell(verdict=Verdict.BREAKS, failures=2, is_asked=False),
        ),
        MatrixRow(
            version=1,
            url="/gallery/subject",
            new_reads_old=MatrixCell(verdict=Verdict.BREAKS, failures=1),
            old_reads_new=MatrixCell(verdict=Verdict.UNKNOWN, is_asked=False),
        ),
    ),
    findings=(
        ReportFinding(
            anchor="r-1",
            rule="READER_FIELD_MISSING_DEFAULT",
            path="Order.channel",
            verdict=Verdict.BREAKS,
            sentence="The reader has the field channel without a default, and the writer doesn’t have it.",
            direction="New reader, old data",
            versions=(1, 2),
            why="Old data holds no channel and there is nothing to fill it with.",
            remedy="give the field a default.",
            position="line 14, column 5",
            after='{"name": "channel", "type": "string"}',
            proof=STOPS,
        ),
        ReportFinding(
            anchor="r-2",
            rule="DEFAULT_MISSING",
            path="Order.channel",
            verdict=Verdict.CARE,
            sentence="A field without a default can’t be removed later.",
            direction="Both directions",
            versions=(),
            remedy="give every new field a default.",
            disagreement="New reader, old data: the established rules reject this, but no breaking data was found.",
            proof=UNPROVED,
        ),
        *(
            replace(
                TYPE_CHANGED,
                anchor=f"r-{3 + number}",
                path=f"Order.count_{number}",
                proof=replace(STOPS, encoded=bytes_view("06", f"bytes-{number}")),
            )
            for number in range(12)
        ),
    ),
    profile="by the established rules",
    compared_with_data=6,
    disagreements=DISAGREEMENTS,
    policy=PolicyResult(
        title="Oracle NoSQL Database, the documented evolve rules",
        verdict=Verdict.BREAKS,
        word="Rejected",
        findings=tuple(
            PolicyFinding(
                anchor=f"policy-{weight}",
                item=PolicyItem(
                    None,
                    weight,
                    Incompatibility(
                        rule="FIELD_RENAME_SUSPECTED",
                        kind="",
                        reader_pointer=None,
                        writer_pointer=None,
                        path=HOSTILE,
                        before=None,
                        after=None,
                        message=f"{HOSTILE} is deleted",
                        why="A rename loses the values.",
                        remedy_in_reader="keep the name",
                    ),
                ),
                versions=versions,
            )
            for weight, versions in POLICY_VERSIONS.items()
        ),
    ),
    renames=RENAMES,
    clients=(
        ClientAnswer(HOSTILE, "reads", 3, HOSTILE, "no", "can’t read what this version writes"),
        ClientAnswer("billing", "reads and writes", None, "", "unknown", "has no version to compare"),
    ),
    dependants=(Dependant(HOSTILE, 3, "no", "It breaks."), Dependant("b", 1, "unknown", "It can’t be read.")),
    patch=Patch(
        (*["restore the type long"] * 12, 'give "channel" the default ""', f"restore the symbols {HOSTILE}"),
        NEW,
        "",
        True,
        ("Old data is read unchanged, and old readers get what they expect.",) * 12,
    ),
    patch_edit=EditView(
        anchor="patched",
        title="restore the type long",
        change=text_diff(COUNTS.replace("long", "string"), COUNTS),
        text=COUNTS,
    ),
    beyond=(
        ReportFinding(
            anchor="beyond-1",
            rule="TYPE_NARROWED",
            path=HOSTILE,
            verdict=Verdict.CARE,
            sentence="The type is narrowed from float to int",
            direction="Old reader, new data",
            versions=(2,),
            before="int",
            after="float",
        ),
    ),
)
EVIDENCE = DataEvidence(
    notes=(
        EvidenceLine(
            weight="on_paper",
            path="Order.fax",
            sentence="Breaking in theory: Order.fax is null in all 2.1 million messages since 2026-11-01.",
        ),
        EvidenceLine(
            weight="contradicted",
            sentence="Compatible in theory, but 3.3 % of the last 300 messages would fail. First failure: offset 0 of partition "
            "0.",
        ),
        EvidenceLine(weight="partly", path=HOSTILE, sentence=HOSTILE),
    ),
    replay=ReplayReport(
        topic="orders", cluster="local", side="value", asked=304, looked_at=304, messages=301, read=291, failed=10, unreadable=1, no_value=1,
        unframed=1, unknown=0, too_large=0, not_tried=0, seconds=2.1, ranges=((0, 0, 304),),
        writers=(
            WriterReplay("id", "14", (3,), 271, 261, 10, 1, (Failure(0, 12, HOSTILE),), (), {}),
            WriterReplay("guid", "6f1a2b3c-0000-4000-8000-000000000001", (), 30, 30, 0, 0, (), (), {}),
        ),
    ),
)  # fmt: skip
REPORT = replace(
    REPORT_EMPTY,
    result=RESULT,
    comparison=AGAINST_LATEST,
    evidence=EVIDENCE,
    form=sent(),
    propose=Action(label="Propose this schema", url="/gallery/propose", icon="pencil"),
    registry_answer=RegistryAnswer(
        where="registry.example.com:8081",
        agrees=False,
        verdict=RemoteVerdict("registry.example.com:8081", True, (HOSTILE, "{compatibility: 'BACKWARD'}")),
    ),
)
REPORT_WORDS = replace(
    REPORT,
    result=replace(
        RESULT,
        in_business_words=True,
        findings=tuple(
            replace(item, business="Order channel is asked for by readers", meaning=HOSTILE, tags=(TagChip(word="PII", personal=True),))
            for item in RESULT.findings
        ),
    ),
)  # fmt: skip
REPORT_SEMANTIC = replace(
    REPORT,
    form=sent(InvalidReference(f"No schema reference {HOSTILE}", reference=HOSTILE), references=[(HOSTILE, "a", "9")]),
    result=replace(
        RESULT,
        hidden_findings=1,
        hidden_beyond=7_200,
        policy=PolicyResult(title="A policy", verdict=Verdict.OK, word="Accepted", findings=()),
        patch=replace(RESULT.patch, passes=False) if RESULT.patch else None,
        findings=(
            replace(RESULT.findings[0], proof=replace(STOPS, encoded=bytes_view("", "bytes-none"), datum='{"a": 1}')),
        ),
    ),
)
REPORT_OK = replace(
    REPORT,
    link="/gallery/report",
    whole_link=f"http://127.0.0.1/ui/registries/dev/subjects/{'x' * 400}/report?version=2",
    registry_answer=RegistryAnswer(where="registry.example.com:8081"),
    evidence=DataEvidence(
        notes=(),
        refusal="You need the admin or steward role in dev to start scans.",
        problem=Problem(
            what="No Kafka broker answers at 127.0.0.1:1. Check the address and that the broker is running."
        ),
    ),
    result=replace(
        RESULT,
        verdict=Verdict.OK,
        headline="Deploy consumers first",
        findings=(),
        beyond=(),
        disagreements=(),
        policy=None,
        renames=(),
        clients=(),
        dependants=(),
        patch=None,
        patch_edit=None,
        sentence="A reader with this schema reads the data of all 3 versions.",
        levels=tuple(replace(item, verdict=Verdict.OK) for item in RESULT.levels),
        matrix=tuple(
            replace(
                item,
                new_reads_old=MatrixCell(verdict=Verdict.OK),
                old_reads_new=MatrixCell(verdict=Verdict.OK, is_asked=False),
            )
            for item in RESULT.matrix
        ),
        identical_to=2,
        identical_url="/gallery/subject",
    ),
)
REPORT_FIRST = replace(
    REPORT,
    registry_answer=RegistryAnswer(where=HOSTILE, verdict=RemoteVerdict(HOSTILE, None, reason=HOSTILE)),
    keep_refused="You need the admin, approver or steward role to request promotions.",
    result=replace(
        RESULT,
        verdict=Verdict.OK,
        headline="",
        findings=(),
        beyond=(),
        disagreements=(),
        policy=None,
        renames=(),
        clients=(),
        dependants=(),
        patch=None,
        patch_edit=None,
        matrix=(),
        first_version=True,
        lint=(),
        sentence="It parses and its references resolve.",
        levels=tuple(replace(item, verdict=Verdict.OK) for item in RESULT.levels),
    ),
)
