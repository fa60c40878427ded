"""Sample pages: the biography of a field, the graph of references, and the change of several subjects."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

from django.http import QueryDict

from dashboard.components.widgets import Crumb, Section
from dashboard.lineage.field_impact import ImpactLine, ImpactPanel
from dashboard.subjects.bulk import BulkPage, BulkRow, ChangeSeveralForm, DeprecateSeveralForm, SeveralPage, SeveralRow
from dashboard.subjects.descriptions import OwnerChip, TagChip
from dashboard.subjects.field_history import FieldPage
from dashboard.subjects.glossary import FieldTermForm
from dashboard.subjects.references import (
    GraphBox,
    GraphEdge,
    GraphPicture,
    ReferenceItem,
    ReferenceLists,
    ReferencesPage,
)
from registry.drift.replay.field_evidence import FieldOnDay
from registry.formats.base import FieldEdit, OutlineField
from registry.lineage.field_edits import EditEffect, ImpactRow
from registry.search.selectors.similar_names import Namesake, OtherType
from registry.subjects.history.field_history import Chapter, FieldChange, FieldHistory
from registry.subjects.versions.qualified_names import SubjectName
from tests.site.samples.cast import ARABIC, HOSTILE, LONG, ago, frame, subject_crumbs, subject_url
from tests.site.samples.glossary import REVENUE

ORDERS = subject_url("dev", "orders-value")
HERE = (*subject_crumbs(), Crumb(label="orders-value", url=ORDERS, code=True))

EDITS: tuple[FieldEdit, ...] = ("remove", "rename", "rename with alias", "change type")


def line(kind: str, name: str, *effects: str, evidence: str = "", marked: bool = False) -> ImpactLine:
    """A row of the table of effects, each as its answer and a sentence; without effects, one of what comes before."""
    each = tuple(
        EditEffect(edit, *effect.partition(": ")[::2])
        for edit, effect in zip(EDITS, effects, strict=bool(effects))  # type: ignore[arg-type]
    )
    return ImpactLine(
        ImpactRow(kind, name, each, evidence), "" if kind in ("readers", "writers", "level") else ORDERS, marked
    )  # type: ignore[arg-type]


IMPACT = ImpactPanel(
    version=7, map_url="/gallery/map-field", check_url=ORDERS, hidden=2, also=("Order.billing.email", LONG),
    columns=(("Removed", 'remove "email"'), ("Renamed", 'rename "email" to "email_renamed"'), ("Renamed with an alias", f'rename "{HOSTILE}"'), ("Another type", 'make "email" a boolean')),
    groups=(
        ("Data", (
            line("readers", "", *["care: They read the default null instead of data."] * 3, "breaks: Version 7: Order.email: the type boolean can't be read as string."),
            line("writers", "", "fine", "care: They don’t read the values under the old name.", "fine", "breaks: Version 7: the type string can't be read as boolean."),
        )),
        ("Uses it", (
            line("consumer", "billing", "breaks: It reads email, which is removed: it will always read the default null.", "breaks", "fine", "breaks", evidence="reads, uses email"),
            line("query", LONG, *["unknown: Whether its code uses the field is not known."] * 4, evidence="reads orders"),
            line("state", "totals", *["unknown: The state can follow."] * 3, f"breaks: {HOSTILE}", evidence="its value has the fields of version 7"),
            line("subject", HOSTILE, "fine", "fine", "fine", "breaks: Incompatible under FULL.", evidence="version 3 refers to this subject"),
        )),
        ("Registration", (
            line("level", "BACKWARD", "fine", "fine", "fine", "breaks", marked=True),
            line("level", "FULL_TRANSITIVE", "unknown: Not all versions were checked.", "breaks", "breaks", "breaks"),
        )),
    ),
    sources=(line("table", "shop.public.orders", evidence="Column email, as of the last scan."), line("topic", "orders", evidence="value, a scan found the subject in its messages")),
    requests=(line("request", "12"),), unchecked=("Versions that were not checked: 1, 2.",),
)  # fmt: skip

# -- a field --------------------------------------------------------------------------------------------------------------

EMAIL = OutlineField(
    "email",
    "Order.customer.email",
    "[null, string]",
    1,
    False,
    "null",
    f"Where the bill goes. {HOSTILE}",
    tags=("PII", "GDPR", HOSTILE),
)
HISTORY = FieldHistory(
    path="Order.customer.email", field=EMAIL, newest=3, looked_at=200, versions=212,
    chapters=(
        Chapter(1, ago(days=90), "steward", "confluent", True, (FieldChange("introduced", "It was added as a string."),)),
        Chapter(3, ago(days=9), HOSTILE, "ui", False, (FieldChange("changed", "Its name was mail before.", "Order.customer.mail"), FieldChange("changed", f"Its doc became: {LONG}"))),
    ),
)  # fmt: skip
FIELD = FieldPage(
    frame=frame("Order.customer.email", Section.SUBJECTS, *HERE, code=True), registry="dev", subject=SubjectName(".", "orders-value"),
    history=HISTORY, in_data="4,096 messages of two topics were looked at since 2026-11-01.",
    impact=IMPACT,
    days=(FieldOnDay(date(2026, 11, 21), 4_000, 4_000, 128), FieldOnDay(date(2026, 11, 20), 96, 95, 0)),
    others=(
        OtherType("string", 14, (Namesake("dev", "customers-value", 1, "Customer"), Namesake("dev", ARABIC, 1, ""))),
        OtherType(LONG, 1, (Namesake("dev", LONG, 1, ""),)),
    ),
    term=REVENUE, term_form=FieldTermForm(initial={"path": "Order.customer.email", "term": REVENUE.name}),
    others_said="14 fields of 9 subjects are called email, with 2 types.",
)  # fmt: skip
FIELD_UNSEEN = replace(
    FIELD, term=None, days=(), others=(), impact=ImpactPanel(later_url="/gallery/field"), in_data="No scan has looked at this field.", others_said="No other field is called email.",
    history=replace(HISTORY, chapters=HISTORY.chapters[:1], field=None, versions=200),
)  # fmt: skip
FIELD_UNKNOWN = replace(
    FIELD, days=(), others=(), impact=None, others_said="", term=None, term_form=None,
    history=replace(HISTORY, path="Order.customer.mial", chapters=(), field=None, versions=200, nearest=("Order.customer.mail", HOSTILE)),
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
