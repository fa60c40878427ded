"""Sample pages: the biography of a field, the graph of references, and the change of several subjects."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

from django.http import QueryDict

from dashboard.components.widgets import Crumb, Fact, Link, Section
from dashboard.subjects.bulk import BulkPage, BulkRow, ChangeSeveralForm, DeprecateSeveralForm, SeveralPage, SeveralRow
from dashboard.subjects.descriptions import OwnerChip, TagChip
from dashboard.subjects.field_history import ChangeLine, ChapterRow, DayRow, FieldPage, OtherTypeRow, Sparkline
from dashboard.subjects.references import (
    GraphBox,
    GraphEdge,
    GraphPicture,
    ReferenceItem,
    ReferenceLists,
    ReferencesPage,
)
from tests.site.samples.cast import ARABIC, HOSTILE, LONG, ago, frame, subject_crumbs, subject_url

ORDERS = subject_url("dev", "orders-value")
HERE = (*subject_crumbs(), Crumb(label="orders-value", url=ORDERS, code=True))

# -- a field --------------------------------------------------------------------------------------------------------------

FIELD = FieldPage(
    frame=frame("Order.customer.email", Section.SUBJECTS, *HERE, code=True), path="Order.customer.email", subject="orders-value",
    subject_url=ORDERS, summary="A string since version 3; it was in 3.2 % of the messages of the last weeks null.",
    now=(Fact(label="Type", value="[null, string]", code=True), Fact(label="Default", value="null", code=True), Fact(label="Meaning", value=f"Where the bill goes. {HOSTILE}")),
    tags=("PII", "GDPR", HOSTILE),
    chapters=(
        ChapterRow(version=1, url=f"{ORDERS}?version=1", at=ago(days=90), by="steward", via="REST API", changes=(ChangeLine(icon="plus", sentence="It was added as a string."),), deleted=True),
        ChapterRow(
            version=3, url=f"{ORDERS}?version=3", at=ago(days=9), by=HOSTILE, via="page", compare_url=subject_url("dev", "orders-value", "compare", from_=2, to=3),
            changes=(ChangeLine(icon="arrow-left-right", sentence="Its name was mail before.", url="/ui/fields?path=Order.customer.mail"), ChangeLine(icon="pencil", sentence=f"Its doc became: {LONG}")),
        ),
    ),
    in_data="4,096 messages of two topics were looked at since 2026-11-01.", usage_url=subject_url("dev", "orders-value", "usage"),
    needed=f"Declared users: billing and {HOSTILE}. 2 more clients don’t list their fields.",
    days=(DayRow(day=date(2026, 11, 21), messages=4_000, missing="none", nulls="3.2 %"), DayRow(day=date(2026, 11, 20), messages=96, missing="1 %", nulls="none")),
    sparkline=Sparkline(
        points=((1.0, 2.0), (20.0, 21.4), (40.0, 20.1), (70.0, 12.0), (99.0, 21.4)),
        text="Share without a value per day, 2026-11-01 to 2026-11-21: 100 % on the first day, 3.2 % on the last day, minimum 3.2 %, maximum 100 %.",
    ),
    others=(
        OtherTypeRow(type="string", fields=(Link(label="Customer.email of customers-value", url=subject_url("dev", "customers-value")), Link(label=f"{ARABIC}.email", url=ORDERS)), more="and 12 more"),
        OtherTypeRow(type=LONG, fields=(Link(label=LONG, url=ORDERS),)),
    ),
    others_said="14 fields of 9 subjects are called email, with 2 types.", bounds=("Only the newest 200 versions were looked at.",),
)  # fmt: skip
FIELD_UNSEEN = replace(
    FIELD, days=(), sparkline=None, others=(), in_data="No scan has looked at this field.", others_said="No other field is called email.",
    bounds=(), chapters=FIELD.chapters[:1], now=(), tags=(),
)  # fmt: skip
FIELD_UNKNOWN = replace(
    FIELD, chapters=(), now=(), tags=(), days=(), sparkline=None, others=(), others_said="", bounds=(), summary="",
    problem="There is no field Order.customer.mial in any version.",
    nearest=(Link(label="Order.customer.mail", url="/ui/fields?path=a"), Link(label=HOSTILE, url="/ui/fields?path=b")),
)  # fmt: skip

# -- references -----------------------------------------------------------------------------------------------------------

ADDRESS = ReferenceItem(
    name="common.address-value", url=subject_url("dev", "common.address-value"), sentence="version 2, as shop.Address",
    behind="Version 4 is available.", items=(ReferenceItem(name="common.country-value", url="", sentence="version 1, as shop.Country"),), more="and 3 more",
)  # fmt: skip
GONE = ReferenceItem(name=HOSTILE, url=ORDERS, sentence="version 9, as shop.Gone", broken="Version 9 was deleted.")
INVOICES = ReferenceItem(
    name="invoices-value", url=subject_url("dev", "invoices-value"), sentence="version 5 refers to version 3"
)
PICTURE = GraphPicture(
    width=780, height=180, box_width=220, box_height=48, description="orders-value refers to 2 subjects; 1 refers to it.",
    boxes=(
        GraphBox(x=2, y=66, label="invoices-value", small="version 5", title="invoices-value version 5", url=subject_url("dev", "invoices-value")),
        GraphBox(x=280, y=66, label="orders-value", small="version 3", title="orders-value version 3", kind="root"),
        GraphBox(x=558, y=2, label="common.address-v…", small="version 2, latest 4", title="common.address-value version 2", url=subject_url("dev", "common.address-value")),
        GraphBox(x=558, y=66, label=HOSTILE[:18], small="deleted", title=HOSTILE, kind="broken", url=ORDERS),
        GraphBox(x=558, y=130, label="and 3 more", small="", title="and 3 more", kind="more"),
    ),
    edges=(GraphEdge(path="M222 90 C250 90 250 90 280 90"), GraphEdge(path="M500 90 C530 90 530 26 558 26"), GraphEdge(path="M500 90 C530 90 530 90 558 90", broken=True), GraphEdge(path="M500 90 C530 90 530 154 558 154")),
)  # fmt: skip
REFERENCES = ReferencesPage(
    frame=frame("References of orders-value", Section.SUBJECTS, *HERE, part="References"), subject="orders-value",
    version=3, lists=ReferenceLists(references=(ADDRESS, GONE), dependants=(INVOICES, replace(INVOICES, name=LONG)), more_dependants="and 17 more"),
    picture=PICTURE, versions=tuple((number, f"{ORDERS}references?version={number}", number == 3) for number in (3, 2, 1)),
)  # fmt: skip
REFERENCES_NONE = replace(
    REFERENCES, picture=None, lists=ReferenceLists(references=(), dependants=()), versions=((3, f"{ORDERS}references", True),)
)  # fmt: skip

# -- several subjects -----------------------------------------------------------------------------------------------------

PII, TEAM = TagChip(word="PII", url="/ui/registries/dev/subjects?tag=PII", personal=True), TagChip(word="team-orders", url="/ui/registries/dev/subjects?tag=team-orders")  # fmt: skip


def changed(**values: Any) -> ChangeSeveralForm:
    """The form of a change as it was sent."""
    data = QueryDict(mutable=True)
    data.update({"change": "add", "value": "team-orders"} | values)
    data.setlist("subject", ["orders-value", HOSTILE, LONG])
    form = ChangeSeveralForm(data)
    form.is_valid()
    return form


DESCRIBE = BulkPage(
    frame=frame("Change several subjects", Section.SUBJECTS, *subject_crumbs()), registry="dev", form=changed(),
    rows=(
        BulkRow(name="orders-value", before=(PII,), after=(PII, TEAM), owners=(OwnerChip(name="payments", url="/ui/registries/dev/subjects?owner=group:payments", group=True), OwnerChip(name="steward", url="/ui/registries/dev/subjects?owner=steward"))),
        BulkRow(name=HOSTILE, after=(TEAM,)), BulkRow(name=LONG, after=(TEAM,)),
    ),
)  # fmt: skip
DESCRIBE_REFUSED = replace(DESCRIBE, rows=(), form=changed(value=f"{HOSTILE} "))
DEPRECATE = SeveralPage(
    frame=frame("Deprecate several subjects", Section.SUBJECTS, *subject_crumbs()), registry="dev",
    form=DeprecateSeveralForm(initial={"subject": ["orders-value", HOSTILE]}),
    rows=(
        SeveralRow(name="orders-value", versions=3), SeveralRow(name=HOSTILE, why_not=HOSTILE), SeveralRow(name=LONG, versions=1, why_not="No live version."),
    ),
)  # fmt: skip
DEPRECATE_DONE = replace(DEPRECATE, done=True)
DEPRECATE_REFUSED = replace(DEPRECATE, rows=(), form=DeprecateSeveralForm(QueryDict("message=x")))
