"""Sample pages: versions that came into an environment without a request."""

from __future__ import annotations

from dataclasses import replace

from dashboard.components.widgets import Action, ActiveFilter, Choice, Field, Filter, Link, Paging, SearchBox, Section
from dashboard.environments.unapproved_versions import UnapprovedVersionRow, UnapprovedVersionsPage
from dashboard.subjects.lifecycle import LifeMark, LifeState
from tests.site.samples.cast import HOSTILE, LONG, PROD, STAGING, ago, frame

ADOPT = Action(label="Request adoption", url="/ui/registries/prod/subjects/orders-value/adopt", method="post")
QUARANTINE = Action(label="Quarantine", url="/ui/registries/prod/subjects/orders-value/standing", method="post")
ROW = UnapprovedVersionRow(
    number=71, environment=PROD, subject="orders-value", url="/gallery/subject", version=3, format="Avro", schema_id=14,
    at=ago(minutes=40), who="orders-producer", door="REST API", seen_at=ago(minutes=2), adopt=ADOPT, quarantine=QUARANTINE,
    adopt_field=Field(name="reason", label="How it was registered, and why to keep it", kind="textarea", rows=2, required=True),
    quarantine_field=Field(name="message", label="Reason for the quarantine", required=True, help="It is no longer promoted."),
)  # fmt: skip
ASKED = replace(ROW, number=66, environment=STAGING, version=2, seen_at=None, adopt=None,
                request=Link(label="request 13", url="/gallery/promotion"))  # fmt: skip
HELD = replace(
    ROW, number=60, quarantine=None, mark=LifeMark(state=LifeState.QUARANTINED, word="Quarantined", sentence=HOSTILE)
)
GHOSTS = UnapprovedVersionsPage(
    frame=frame("Unapproved versions", Section.PROMOTIONS),
    search=SearchBox(
        url="/ui/ghosts", label="Search subjects", placeholder="orders",
        filters=(Filter(name="state", label="Decided", choices=(Choice(value="", label="Any"), Choice(value="undecided", label="Undecided"))),),
    ),
    rows=(ROW, ASKED, HELD, replace(ROW, number=51, subject=HOSTILE, who=HOSTILE), replace(ROW, number=50, subject=LONG, who=LONG)),
    paging=Paging(first=1, last=5, next_url="/ui/ghosts?before=50"), back="/ui/ghosts",
)  # fmt: skip
NO = "You need the admin, approver or steward role to request promotions."
GHOSTS_READER = replace(
    GHOSTS,
    rows=(
        replace(
            ROW,
            adopt=replace(ADOPT, allowed=False, reason=NO),
            quarantine=replace(QUARANTINE, allowed=False, reason=NO),
        ),
    ),
)
GHOSTS_NONE = replace(GHOSTS, rows=(), paging=Paging(first=0, last=0))
GHOSTS_ALONE = replace(GHOSTS_NONE, alone=True)
GHOSTS_NO_MATCH = replace(
    GHOSTS_NONE, search=replace(GHOSTS.search, active=(ActiveFilter(label="state: Undecided", url="/ui/ghosts"),))
)
