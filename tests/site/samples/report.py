"""Sample pages: the compatibility report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dashboard.compare.proof import EditView, EvidenceNote, bytes_view
from dashboard.compatibility.forms import ReportForm
from dashboard.compatibility.presenters import (
    ClientAnswerRow,
    DataEvidence,
    DependantRow,
    LevelResult,
    LintGroup,
    LintLocation,
    MatrixCell,
    MatrixRow,
    PatchView,
    PolicyFinding,
    PolicyResult,
    ReplayResult,
    ReplayRow,
    ReportFinding,
    ReportResult,
)
from dashboard.compatibility.report import RegistryAnswer, ReportPage
from dashboard.components.badges import EvidenceKind, LintWeight, Verdict, Weight
from dashboard.components.diff import text_diff
from dashboard.components.widgets import Action, Crumb, Problem, Section
from dashboard.subjects.descriptions import TagChip
from registry.errors import InvalidReference, InvalidSchema, SchemadeskError
from registry.subjects.remote.remote_writer import RemoteVerdict
from tests.site.samples.cast import HOSTILE, ago, frame, subject_crumbs, subject_url
from tests.site.samples.comparison import AGAINST_LATEST, PARTINGS, RENAMES, STOPS, UNPROVED
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
LINT = (
    LintGroup(
        rule="OPTIONAL_WITHOUT_DEFAULT",
        weight=LintWeight.WARNING,
        why="It looks optional and isn’t: a reader that has it stops at data of a writer that doesn’t.",
        cure='put "null" first in the union and add "default": null',
        locations=(
            LintLocation(
                path=f"Order.{HOSTILE}",
                sentence='The field "note" may be null and has no default',
                position="line 12, column 9",
            ),
        ),
    ),
    LintGroup(
        rule="FIELD_WITHOUT_DOC",
        weight=LintWeight.INFO,
        why="The author knows what the name means. Others know only if it is documented.",
        locations=tuple(
            LintLocation(path=path, sentence=f'The field "{path}" isn’t described', cure=HOSTILE)
            for path in ("Order.id", "Order.customer.email", HOSTILE)
        ),
        more=180,
    ),
)
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
            parting="New reader, old data: the established rules reject this, but no breaking data was found.",
            proof=UNPROVED,
        ),
    ),
    profile="by the established rules",
    compared_with_data=6,
    partings=PARTINGS,
    policy=PolicyResult(
        title="Oracle NoSQL Database, the documented evolve rules",
        verdict=Verdict.BREAKS,
        word="Rejected",
        findings=tuple(
            PolicyFinding(
                anchor=f"policy-{weight.code}",
                rule="FIELD_RENAME_SUSPECTED",
                path=HOSTILE,
                weight=weight,
                sentence=f"{HOSTILE} is deleted",
                versions=versions,
                why="A rename loses the values.",
                remedy="keep the name",
            )
            for weight, versions in ((Weight.REFUSAL, (1, 2)), (Weight.FORCE, (1,)), (Weight.ADVICE, ()))
        ),
    ),
    renames=RENAMES,
    clients=(
        ClientAnswerRow(
            name=HOSTILE,
            verdict=Verdict.BREAKS,
            does="reads",
            version="3",
            contact=HOSTILE,
            sentence="can’t read what this version writes",
        ),
        ClientAnswerRow(
            name="billing",
            verdict=Verdict.UNKNOWN,
            does="reads and writes",
            sentence="has no version to compare",
        ),
    ),
    dependants=(
        DependantRow(subject=HOSTILE, url="/gallery/subject", version=3, verdict=Verdict.BREAKS, sentence="It breaks."),
        DependantRow(
            subject="b", url="/gallery/subject", version=1, verdict=Verdict.UNKNOWN, sentence="It can’t be read."
        ),
    ),
    patch=PatchView(
        titles=('give "channel" the default ""', f"restore the symbols {HOSTILE}"),
        edit=EditView(anchor="patched", title="give it a default", change=text_diff(OLD, NEW), text=NEW),
        passes=True,
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
        EvidenceNote(
            weight=EvidenceKind.ON_PAPER,
            path="Order.fax",
            sentence="Breaking in theory: Order.fax is null in all 2.1 million messages since 2026-11-01.",
        ),
        EvidenceNote(
            weight=EvidenceKind.CONTRADICTED,
            sentence="Compatible in theory, but 3.3 % of the last 300 messages would fail. First failure: offset 0 of partition "
            "0.",
        ),
        EvidenceNote(weight=EvidenceKind.PARTLY, path=HOSTILE, sentence=HOSTILE),
    ),
    replay=ReplayResult(
        topic="orders",
        sentence="Read the newest messages: 304 in 2.1 s: 1 without a value, 1 not framed.",
        rows=(
            ReplayRow(writer="version 3", messages=271, read=261, failed=10, foreign=0, first_failure=HOSTILE),
            ReplayRow(writer="guid 6f1a2b3c-0000-4000-8000-000000000001", messages=30, read=30, failed=0, foreign=0),
        ),
    ),
)
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
        partings=(),
        policy=None,
        renames=(),
        clients=(),
        dependants=(),
        patch=None,
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
        partings=(),
        policy=None,
        renames=(),
        clients=(),
        dependants=(),
        patch=None,
        matrix=(),
        first_version=True,
        lint=(),
        sentence="It parses and its references resolve.",
        levels=tuple(replace(item, verdict=Verdict.OK) for item in RESULT.levels),
    ),
)
