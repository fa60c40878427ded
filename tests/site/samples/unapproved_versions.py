"""Sample pages: versions that came into an environment without a request."""

from __future__ import annotations

from dataclasses import replace

from dashboard.components.widgets import ActiveFilter, Choice, Filter, Paging, SearchBox, Section
from dashboard.environments.unapproved_versions import QuarantineForm, UnapprovedVersionRow, UnapprovedVersionsPage
from dashboard.subjects.lifecycle import AdoptForm, VersionMark, VersionState
from registry.promotions.requests.timeline import UnapprovedVersion
from registry.subjects.versions.qualified_names import SubjectName
from tests.site.samples.cast import HOSTILE, LONG, ago, frame

INFO = UnapprovedVersion(
    id=71, environment="prod", subject=SubjectName(".", "orders-value"), version=3, schema_id=14, schema_type="AVRO",
    fingerprint="", registered_at=ago(minutes=40), registered_by="orders-producer", channel="confluent", status=None, request=None,
)  # fmt: skip
ROW = UnapprovedVersionRow(
    info=INFO, seen_at=ago(minutes=2), adopt=AdoptForm(key=71), quarantine=QuarantineForm(key=71)
)
ASKED = replace(ROW, info=replace(INFO, id=66, environment="staging", version=2, request=13), seen_at=None, adopt=None, quarantine=QuarantineForm(key=66))  # fmt: skip
HELD = replace(
    ROW, info=replace(INFO, id=60), adopt=AdoptForm(key=60), quarantine=None, mark=VersionMark(state=VersionState.QUARANTINED, word="Quarantined", sentence=HOSTILE)
)  # fmt: skip


def other(number: int, name: str) -> UnapprovedVersionRow:
    """A version of another subject, by somebody of that name."""
    info = replace(INFO, id=number, subject=SubjectName(".", name), registered_by=name)
    return replace(ROW, info=info, adopt=AdoptForm(key=number), quarantine=QuarantineForm(key=number))


UNAPPROVED = UnapprovedVersionsPage(
    frame=frame("Unapproved versions", Section.PROMOTIONS),
    search=SearchBox(
        url="/ui/unapproved-versions", label="Search subjects", placeholder="orders",
        filters=(Filter(name="state", label="Decided", choices=(Choice(value="", label="Any"), Choice(value="undecided", label="Undecided"))),),
    ),
    rows=(ROW, ASKED, HELD, other(51, HOSTILE), other(50, LONG)),
    paging=Paging(first=1, last=5, next_url="/ui/unapproved-versions?before=50"), back="/ui/unapproved-versions",
)  # fmt: skip
NO = "You need the admin, approver or steward role to request promotions."
UNAPPROVED_READER = replace(
    UNAPPROVED,
    rows=(replace(ROW, adopt_refused=NO, quarantine_refused=NO),),
)
UNAPPROVED_NONE = replace(UNAPPROVED, rows=(), paging=Paging(first=0, last=0))
UNAPPROVED_ALONE = replace(UNAPPROVED_NONE, alone=True)
UNAPPROVED_NO_MATCH = replace(
    UNAPPROVED_NONE,
    search=replace(UNAPPROVED.search, active=(ActiveFilter(label="state: Undecided", url="/ui/unapproved-versions"),)),
)
