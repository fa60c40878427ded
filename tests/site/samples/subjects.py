"""Sample pages: the list of subjects, one subject."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

from dashboard.compatibility.presenters import snippet
from dashboard.components.badges import Severity, Verdict
from dashboard.components.tables import ColumnOrder, ListTable
from dashboard.components.widgets import (
    Action,
    ActiveFilter,
    Choice,
    Environment,
    Export,
    Filter,
    Link,
    Paging,
    Problem,
    SearchBox,
    Section,
    Travel,
)
from dashboard.subjects.bulk import BulkForm
from dashboard.subjects.descriptions import NoteForm, NotePart, TagChip
from dashboard.subjects.lifecycle import (
    AdoptForm,
    MinimumForm,
    MinimumPart,
    RollBackForm,
    StatusForm,
    StatusPart,
    VersionMark,
    VersionState,
)
from dashboard.subjects.presenters import (
    ExamplePanel,
    FieldMarkLink,
    FieldRow,
    InData,
    Lane,
    LaneCell,
    LaneHead,
    LaneStrip,
    LivePlace,
    ReferenceRow,
    SeenField,
    SelectedVersion,
    Structure,
    SubjectList,
    SubjectNumbers,
    SubjectPage,
    SubjectSetting,
    SubjectVersionRow,
    TopicLink,
    TopicLinks,
    Tree,
)
from dashboard.subjects.tables import SubjectLine, columns
from registry.drift.services.minimum_version import MinimumVersionInfo
from registry.drift.usage.subject_topics import SubjectCarriers
from registry.formats.base import OutlineField
from registry.promotions.board.readiness import Reason
from registry.subjects.lifecycle.notes import Note
from registry.subjects.selectors import SubjectRow as SubjectInfo
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import SchemaInfo, VersionInfo
from tests.site.samples.cast import (
    ARABIC,
    DEV,
    HOSTILE,
    LONG,
    NOW,
    PROD,
    STAGING,
    ago,
    frame,
    subject_crumbs,
    subject_url,
)

OLD = """{
  "type": "record",
  "name": "Order",
  "namespace": "com.example.shop",
  "doc": "An order as the shop accepted it.",
  "fields": [
    {"name": "id", "type": "string"},
    {"name": "customer_id", "type": "long"},
    {"name": "amount", "type": "int"},
    {"name": "currency", "type": "string", "default": "EUR"},
    {"name": "fax", "type": ["null", "string"], "default": null},
    {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID"]}},
    {"name": "placed_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "note", "type": ["null", "string"], "default": null}
  ]
}
"""
NEW = (
    OLD.replace('"amount", "type": "int"', '"amount", "type": "long"')
    .replace('    {"name": "fax", "type": ["null", "string"], "default": null},\n', "")
    .replace('["NEW", "PAID"]', '["NEW", "PAID", "REFUNDED"]')
    .replace(
        '    {"name": "note", "type": ["null", "string"], "default": null}\n',
        '    {"name": "note", "type": ["null", "string"], "default": null},\n'
        '    {"name": "channel", "type": "string"},\n'
        '    {"name": "email", "type": ["null", "string"], "default": null, "doc": "Where the receipt goes."}\n',
    )
)


COLUMNS = (DEV, STAGING, PROD)


def line(name: str, versions: tuple[int | None, int | None, int | None], **more: Any) -> SubjectLine:
    """A subject in the list; what isn't of the line itself is of its domain object."""
    context, level = more.pop("context", "."), more.pop("level", "")
    info = SubjectInfo(
        subject=SubjectName(context, name),
        schema_type=more.pop("schema_type", "AVRO"),
        latest_version=max(number or 0 for number in versions),
        live_versions=1,
        versions={place.name: number for place, number in zip(COLUMNS, versions, strict=True) if number},
        schemas={place.name: f"schema {number}" for place, number in zip(COLUMNS, versions, strict=True)},
        level=level or "BACKWARD",
        level_is_own=bool(level),
        changed_at=more.pop("changed_at", ago(hours=2)),
        changed_by=more.pop("changed_by", "reader@shop"),
        deleted=more.pop("deleted", False),
    )
    return SubjectLine(registry="dev", info=info, now=NOW, **more)


ROWS = (
    line(
        "orders-value",
        (3, 2, 2),
        level="BACKWARD_TRANSITIVE",
        signs=("drift", "unowned"),
        findings=3,
        carriers=SubjectCarriers(topics=2, queries=1, last_seen=ago(hours=3)),
        changed_at=ago(minutes=4),
        changed_by="orders-producer",
    ),
    line("orders-key", (1, 1, 1), has_request=True, changed_at=ago(days=12), changed_by="orders-producer"),
    line("customers-value", (2, 2, 1), signs=("request",), request=12, has_request=True, changed_by="steward"),
    line(
        "payments-value", (7, 6, 5), carriers=SubjectCarriers(topics=1), level="FULL_TRANSITIVE", changed_at=ago(days=3)
    ),
    line(
        "shipments-value", (4, None, None), schema_type="PROTOBUF", changed_at=ago(hours=31), changed_by="ci-logistics"
    ),
    line("returns/refunds & more-value", (1, None, None), context=".warehouse", schema_type="JSON"),
    line(HOSTILE, (1, None, None), signs=("unowned",), changed_by=HOSTILE, changed_at=ago(seconds=40)),
    line(ARABIC, (2, 1, None), changed_at=ago(days=45), changed_by="steward"),
    line(LONG, (12, 12, 12), level="NONE", signs=("unchecked",)),
)


def words_filters(*filters: tuple[str, str, tuple[str, ...]]) -> tuple[Filter, ...]:
    """Filters of a few words each, the first of them chosen."""
    return tuple(
        Filter(
            name=name,
            label=label,
            choices=tuple(
                Choice(
                    value=str(place) if place else "",
                    label=value,
                    count=place * 31 if place else None,
                    selected=not place,
                )
                for place, value in enumerate(words)
            ),
        )
        for name, label, words in filters
    )


SEARCH = SearchBox(
    url="/ui/registries/dev/subjects",
    label="Search subjects",
    placeholder="orders",
    filters=(
        Filter(
            name="format",
            label="Format",
            choices=(
                Choice(value="", label="Any format", selected=True),
                Choice(value="AVRO", label="Avro", count=412),
                Choice(value="PROTOBUF", label="Protobuf", count=31),
                Choice(value="JSON", label="JSON Schema", count=9),
            ),
        ),
        Filter(
            name="level",
            label="Compatibility",
            choices=(
                Choice(value="", label="Any level", selected=True),
                Choice(value="BACKWARD", label="BACKWARD", count=398),
                Choice(value="NONE", label="NONE", count=1_000),
            ),
        ),
        *words_filters(
            ("state", "State", ("Any state", "Deprecated", "Retired")),
            ("attention", "Needs attention", ("Any findings or requests", "Open drift findings", "Open request")),
            ("tag", "Tag", ("Any tag", "pii")),
            ("owner", "Owner", ("Any owner", "reader")),
            ("sort", "Order", ("Needs attention first", "Last change first", "By name")),
        ),
    ),
    rarer=words_filters(
        ("level_from", "Source of the level", ("Own or inherited level", "Own level", "Inherited level")),
        ("mode", "Mode", ("Any mode", "READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")),
        ("references", "References", ("With or without references", "Refers to others", "Referred to by others")),
        ("use", "Use", ("Used or unused", "Unused")),
    ),
)


def uncounted(filters: tuple[Filter, ...]) -> tuple[Filter, ...]:
    """The same whose numbers are yet to come."""
    return tuple(
        replace(
            one,
            choices=tuple(
                replace(choice, count=None, id=f"{one.name}-{number}") for number, choice in enumerate(one.choices)
            ),
        )
        for one in filters
    )


def field_row(
    name: str, path: str, anchor: str, type: str, since: int, *, depth: int = 0, required: bool = False,
    default: str | None = None, doc: str = "", aliases: tuple[str, ...] = (),
) -> FieldRow:  # fmt: skip
    """A field in the tree."""
    item = OutlineField(name, path, type, depth, required, default, doc, aliases)
    return FieldRow(item=item, anchor=anchor, since=since)


TABLE = ListTable(
    caption="Subjects of the registry dev",
    columns=columns(COLUMNS),
    rows=ROWS,
    orders={
        "health": ColumnOrder(url="?sort="),
        "name": ColumnOrder(url="?sort=name", is_on=True, is_up=True),
        "changed": ColumnOrder(url="?sort=changed"),
    },
    pick="subject",
    pick_form="bulk",
    value_of=lambda row: row.qualified,
)
NO_ROWS = replace(TABLE, rows=())
LIST = SubjectList(
    frame=frame("Subjects", Section.SUBJECTS),
    registry="dev",
    search=SEARCH,
    table=TABLE,
    paging=Paging(first=1, last=9, total=452, next_url="?after=9"),
    bulk=BulkForm(
        url="/ui/registries/dev/subjects/describe",
        export_url="/ui/registries/dev/export",
        deprecate_url="/ui/registries/dev/deprecate",
        choices=(
            Choice(value="add", label="Add tag", selected=True),
            Choice(value="remove", label="Remove tag"),
        ),
    ),
    links=(
        Link(label=f"Search everything for “{HOSTILE}”", url="/ui/search?q=x"),
        Link(label="Unused subjects", url="/gallery/unused-subjects"),
        Link(label="Deprecated", url="/gallery/subjects?state=deprecated"),
        Link(label="Soft-deleted", url="/gallery/subjects-deleted"),
    ),
)
LIST_LARGE = replace(
    LIST,
    paging=Paging(first=1, last=50, total=50_001, next_url="?after=50"),
    search=replace(
        SEARCH,
        filters=uncounted(SEARCH.filters),
        rarer=uncounted(SEARCH.rarer),
        is_later=True,
    ),
    numbers=SubjectNumbers(url="/ui/registries/dev/subjects?later", count_url="/gallery/subjects?counts=1"),
    unowned=Link(
        label="Subjects without an owner are listed first only if they are among the last 10,000 changed. Show all",
        url="/gallery/subjects?attention=unowned",
    ),
)
LIST_COUNTED = replace(
    LIST_LARGE, search=replace(SEARCH, is_later=True), numbers=SubjectNumbers(at=ago(seconds=40), is_whole=False)
)
LIST_DELETED = replace(
    LIST,
    search=replace(SEARCH, active=(ActiveFilter(label="state: Soft-deleted", url="?"),)),
    table=replace(TABLE, rows=tuple(replace(row, info=replace(row.info, deleted=True)) for row in ROWS[:3]), pick=""),
    paging=Paging(first=1, last=3, total=3),
    bulk=None,
)
LIST_PROD = replace(
    LIST,
    frame=frame("Subjects", Section.SUBJECTS, current="prod"),
    registry="prod",
)
LIST_EMPTY = replace(
    LIST,
    search=SearchBox(url="/ui/registries/dev/subjects", placeholder="orders"),
    table=NO_ROWS,
    paging=Paging(first=0, last=0, total=0),
    add_command="python3 manage.py add_schema --registry dev --subject orders-value order.avsc",
)
LIST_UNANSWERED = replace(
    LIST,
    search=replace(SEARCH, query="compat:SOMETIMES", active=(ActiveFilter(label="text: compat:SOMETIMES", url="?"),)),
    table=NO_ROWS,
    paging=Paging(first=0, last=0, total=0),
    unanswered=f"compat: needs one of NONE, BACKWARD, FULL, not {HOSTILE}.",
)
LIST_NO_MATCH = replace(
    LIST,
    search=replace(
        SEARCH,
        query=HOSTILE,
        active=(ActiveFilter(label="mode: READONLY", url="?"),),
        rarer=tuple(
            replace(one, choices=tuple(replace(each, selected=each.label == "READONLY") for each in one.choices))
            for one in SEARCH.rarer
        ),
    ),
    table=NO_ROWS,
    paging=Paging(first=0, last=0, total=0),
)

FIELDS = (
    field_row(
        name="id",
        path="Order.id",
        anchor="f-id",
        type="string",
        required=True,
        since=1,
        doc="Given by the shop; never reused.",
    ),
    field_row(name="customer_id", path="Order.customer_id", anchor="f-customer", type="long", required=True, since=1),
    field_row(
        name="amount", path="Order.amount", anchor="f-amount", type="long", required=True, since=1, doc="In cents."
    ),
    field_row(name="currency", path="Order.currency", anchor="f-currency", type="string", default='"EUR"', since=1),
    field_row(
        name="status",
        path="Order.status",
        anchor="f-status",
        type="enum Status {NEW, PAID, REFUNDED}",
        required=True,
        since=1,
    ),
    field_row(
        name="placed_at",
        path="Order.placed_at",
        anchor="f-placed",
        type="timestamp-millis (long)",
        required=True,
        since=1,
    ),
    field_row(name="items", path="Order.items", anchor="f-items", type="array of record Item", required=True, since=2),
    field_row(
        name="sku",
        path="Order.items[].sku",
        anchor="f-sku",
        type="string",
        depth=1,
        required=True,
        since=2,
        aliases=("article", "stock_keeping_unit"),
    ),
    field_row(
        name="price",
        path="Order.items[].price",
        anchor="f-price",
        type="decimal(12, 2) (bytes)",
        depth=1,
        required=True,
        since=2,
    ),
    field_row(
        name="discount",
        path="Order.items[].discount",
        anchor="f-discount",
        type="null or record Discount",
        depth=1,
        default="null",
        since=3,
    ),
    field_row(
        name="percent",
        path="Order.items[].discount.percent",
        anchor="f-percent",
        type="double",
        depth=2,
        required=True,
        since=3,
    ),
    field_row(
        name="email", path="Order.email", anchor="f-email", type="null or string", default="null", since=3, doc=HOSTILE
    ),
)


def live(environment: Environment, version: int, schema_id: int, days: int = 9) -> LivePlace:
    """A version in an environment."""
    return LivePlace(
        environment=environment, version=version, schema_id=schema_id, since=ago(days=days), url="/gallery/subject"
    )


def version(number: int, schema_id: int, print_: str, at: datetime, who: str) -> VersionInfo:
    """A version of the sample subject."""
    schema = SchemaInfo(schema_id, ".", "AVRO", "{}", "", print_ * 32, (), None, None)
    return VersionInfo(number, SubjectName(".", "orders-value"), number, schema, "{}", at, who, "confluent", False)


def versions(selected: int) -> tuple[SubjectVersionRow, ...]:
    """The versions of the sample subject."""

    def url(version: int) -> str:
        return subject_url("dev", "orders-value", version=version)

    return (
        SubjectVersionRow(
            info=version(3, 14, "3f", ago(minutes=4), "orders-producer"),
            url=url(3),
            summary="+2 fields, −1 field, amount widened, 1 symbol added.",
            verdict=Verdict.BREAKS,
            compare_url=subject_url("dev", "orders-value", "compare", from_=2, to=3),
            via="REST API, token ci-orders",
            live_in=(live(DEV, 3, 14, 0),),
            selected=selected == 3,
        ),
        SubjectVersionRow(
            info=version(2, 9, "2f", ago(days=9), "steward"),
            url=url(2),
            summary="+1 field with a default.",
            verdict=Verdict.OK,
            compare_url=subject_url("dev", "orders-value", "compare", from_=1, to=2),
            via="request 7",
            live_in=(live(DEV, 2, 9), live(STAGING, 1, 5), live(PROD, 1, 2, 2)),
            selected=selected == 2,
        ),
        SubjectVersionRow(
            info=version(1, 3, "1f", ago(days=80), "orders-producer"),
            url=url(1),
            summary="First version, 8 fields.",
            via="REST API",
            live_in=(live(DEV, 1, 3, 80),),
            selected=selected == 1,
        ),
    )


def tabs(version: int) -> tuple[tuple[str, str, str], ...]:
    """The tabs of a version."""
    names = (("structure", "Structure"), ("source", "Source"), ("settings", "Compatibility and mode"))
    return tuple((code, label, f"/gallery/subject-{code}?version={version}") for code, label in names)


TODAY = ago(days=0).date()
EMPTIER = FieldMarkLink(
    word="filled less often",
    sentence="Field email is empty in 41 of 5,000 messages of orders (value).",
    severity=Severity.RISK,
    url="/gallery/finding",
)
SEEN = {
    "Order.id": SeenField(filled="all", messages=5_120, last_day=TODAY),
    "Order.currency": SeenField(filled="99.9 %", messages=5_120, present="99.9 %", nulls="0 %", last_day=TODAY),
    "Order.items[].discount": SeenField(filled="none", never=True, messages=5_120, present="0 %", nulls="0 %"),
    "Order.status": SeenField(marks=(replace(EMPTIER, word="unlisted value", sentence=HOSTILE),)),
    "Order.email": SeenField(
        filled="3.2 %", messages=5_120, present="100 %", nulls="96.8 %", last_day=TODAY, marks=(EMPTIER,)
    ),
}
TREE = Tree(
    url="/gallery/subject",
    version=3,
    hidden=12,
    open_all_url="/gallery/subject?open=all",
    shows_users=True,
    users=("2 subjects refer to this version and so to all its fields.",),
    usage_url="/gallery/usage",
    example_url="/gallery/subject-words",
)
USERS = {"Order.id": ("billing", HOSTILE), "Order.email": ("newsletter",)}
SELECTED = SelectedVersion(
    info=version(3, 14, "9f", ago(minutes=4), "orders-producer"),
    tab="structure",
    tab_urls=tabs(3),
    structure=Structure(
        fields=tuple(
            replace(
                row,
                data=SEEN.get(row.item.path),
                fact=f"Order {row.item.name}",
                used_by=USERS.get(row.item.path, ()),
                used_by_more=3 if row.item.path == "Order.id" else 0,
                inside=2 if row.item.name == "percent" else 0,
                toggle_url="/gallery/subject?open=11#f-percent" if row.item.name == "percent" else "",
            )
            for row in FIELDS
        ),
        in_data=InData(
            is_scanned=True,
            days=30,
            undeclared=(replace(EMPTIER, word="not declared", path="loyalty.tier"), replace(EMPTIER, path=HOSTILE)),
            more_undeclared=2,
        ),
        words_url="/gallery/subject-words",
        tree=TREE,
        paging=Paging(first=1, last=8, total=2_000, next_url="/gallery/subject?fields=100"),
    ),
    source=NEW,
    raw_url="/schemas/ids/14/schema",
    references=(ReferenceRow(name="com.example.shop.Item", subject="items-value", version=4, url="/gallery/subject"),),
    settings=(
        SubjectSetting(
            label="Compatibility level",
            value="BACKWARD_TRANSITIVE",
            origin="set for this subject; the registry’s is BACKWARD",
            sentence="A new schema must read the data of all 3 versions. Upgrade consumers first.",
            own=True,
            inherited="BACKWARD",
            change=Action(label="Change level …", url="/gallery/policy", icon="pencil"),
            reset=Action(label="Reset to inherited …", url="/gallery/policy", icon="undo-2"),
        ),
        SubjectSetting(
            label="Mode",
            value="READWRITE",
            origin="inherited from the registry dev",
            sentence="New versions can be registered and settings changed.",
            change=Action(label="Change mode …", url="", reason=HOSTILE),
            why=(Reason("rights", "Your role is steward.", "Ask somebody who has the right."),),
        ),
    ),
)


def cell(version: int, there: int, schema_id: int, days: int, **more: bool) -> LaneCell:
    """A version in a lane."""
    since = ago(days=days)
    return LaneCell(version=version, there=there, schema_id=schema_id, since=since, url="/gallery/subject", **more)


PROMOTE = Action(
    label="Promote version 3",
    url="/ui/promotions/request?subject=orders-value&version=3",
    tone="primary",
    icon="git-pull-request-arrow",
)
ACTIONS = (
    PROMOTE,
    Action(label="Propose version", url="/gallery/propose", icon="pencil"),
    Action(label="Check new version", url="/gallery/report", icon="shield-check"),
)
MORE = (
    Action(label="Simulate with data", url="/gallery/simulate", icon="play"),
    Action(label="Describe", url="#note", icon="message-square"),
    Action(label="Subscribe", url="/gallery/subscriptions", icon="inbox"),
    Action(label="Policy", url="/gallery/policy", icon="lock"),
    Action(label="Retire …", url="/gallery/retire", icon="x"),
)
STRIP = LaneStrip(
    heads=(
        *(LaneHead(version=number, since=ago(days=days)) for number, days in ((1, 80), (2, 9), (3, 0))),
        LaneHead(version=4, since=ago(hours=2), elsewhere="prod"),
    ),
    lanes=(
        Lane(
            environment=DEV,
            cells=(
                cell(1, 1, 3, 80, direct=True),
                cell(2, 2, 9, 9),
                cell(3, 3, 14, 0, direct=True, current=True),
                LaneCell(version=4),
            ),
        ),
        Lane(
            environment=STAGING,
            cells=(LaneCell(version=1), cell(2, 1, 5, 9, linked=True), LaneCell(version=3), LaneCell(version=4)),
        ),
        Lane(
            environment=PROD,
            cells=(
                LaneCell(version=1),
                cell(2, 1, 2, 2, linked=True),
                LaneCell(version=3),
                cell(4, 4, 21, 0, direct=True, current=True),
            ),
        ),
    ),
    total=1_206,
)
#: the choices of a side of the compare page
SIDES = tuple(Choice(value=str(v), label=f"version {v}", selected=v == 2) for v in (3, 2, 1))
SUBJECT = SubjectPage(
    frame=frame("orders-value", Section.SUBJECTS, *subject_crumbs(), code=True, part="Versions"),
    registry="dev",
    subject="orders-value",
    format="Avro",
    level="BACKWARD_TRANSITIVE",
    level_origin="own setting; the default is BACKWARD",
    level_asks="A new schema must read the data of all 3 versions.",
    upgrade_order="Upgrade consumers first",
    versions=versions(3),
    compare_url=subject_url("dev", "orders-value", "compare"),
    actions=(*ACTIONS,),
    more=MORE,
    export=Export(url="/ui/registries/dev/export", subject=HOSTILE),
    state=VersionMark(
        state=VersionState.RELEASED, word="Released to prod", sentence="Version 3 came there by a request."
    ),
    topics=TopicLinks(
        topics=(
            TopicLink(name="orders", side="values", by="by TopicName", url="/gallery/source"),
            TopicLink(name=HOSTILE, side="keys", by="by its name only"),
        ),
        more=4,
        more_url="/gallery/usage",
    ),
    lanes=STRIP,
    versions_paging=Paging(
        first=1, last=50, total=1_204, next_url="/ui/registries/dev/subjects/orders-value/?version=3&before=1155"
    ),
    selected=SELECTED,
    open_findings=3,
    findings_url="/ui/findings?subject=orders-value",
)
SUBJECT_WORDS = replace(
    SUBJECT,
    selected=replace(
        SELECTED,
        in_business_words=True,
        structure=replace(
            SELECTED.structure,
            words_url="/gallery/subject",
            tree=replace(
                TREE,
                filter=HOSTILE,
                kept_parameters=(("words", "business"),),
                summary="12 of 2,000 fields match.",
                clear_url="/gallery/subject",
                open_all_url="",
                example=ExamplePanel(
                    text=json.dumps({"id": "(personal data)", HOSTILE: 1}, indent=2),
                    note="1 value is a placeholder because its field is tagged as personal data.",
                    refused=f"The placeholders don’t match the schema. Replace them with real values: {HOSTILE}",
                ),
            ),
            in_data=InData(),
            fields=(
                replace(SELECTED.structure.fields[0], tags=(TagChip(word="PII", personal=True),), personal=True),
                *SELECTED.structure.fields[1:],
            ),
        ),
    ),
)
SUBJECT_SOURCE = replace(
    SUBJECT,
    note=NotePart(
        note=Note(("PII",), f"Orders of the shop.\n\n{HOSTILE}", ago(days=2), HOSTILE),
        tags=(TagChip(word="PII", personal=True),),
        inherited=(TagChip(word=HOSTILE),),
        in_fields=(TagChip(word="sales"),),
        owners=(),
        channels=(
            Link(label="https://chat.example/orders", url="https://chat.example/orders"),
            Link(label="#orders", url=""),
        ),
        form=NoteForm(initial={"tags": HOSTILE, "doc": HOSTILE}),
    ),
    selected=replace(SELECTED, tab="source"),
    status=StatusPart(
        version=2,
        marks=(
            VersionMark(
                state=VersionState.RELEASED, word="Released to prod", sentence=HOSTILE, url="/gallery/promotion"
            ),
        ),
        says=("Deprecated since 2026-11-02, by steward.", HOSTILE),
        form=StatusForm(initial={"message": HOSTILE}),
        adopt=AdoptForm(),
        roll_back=RollBackForm(),
    ),
)
MINIMUM = MinimumPart(
    info=MinimumVersionInfo(2, f"Amounts were floats before. {HOSTILE}", HOSTILE, ago(days=3)),
    is_over=False,
    form=MinimumForm(initial={"version": 2}),
)
SUBJECT_SETTINGS = replace(
    SUBJECT,
    frame=frame("orders-value", Section.SUBJECTS, *subject_crumbs("prod"), code=True, part="Versions", current="prod"),
    mode="READONLY",
    selected=replace(SELECTED, tab="settings", minimum=MINIMUM),
    actions=ACTIONS[1:],
)
SUBJECT_BROKEN = replace(
    SUBJECT,
    frame=frame(HOSTILE, Section.SUBJECTS, *subject_crumbs(), code=True, part="Versions"),
    subject=HOSTILE,
    versions=(
        replace(versions(3)[0], problem=HOSTILE, verdict=Verdict.UNKNOWN, verdict_note="can’t be checked"),
        *versions(3)[2:],
    ),
    lanes=None,
    selected=replace(
        SELECTED,
        structure=replace(SELECTED.structure, fields=()),
        references=(),
        problem=Problem(
            what="Version 3 can’t be read as Avro.",
            where="line 3, column 14",
            cure="Its text is shown as stored. Register a valid version after it, and retire this one.",
            detail='unknown type "Nope"',
        ),
        snippet=snippet(NEW, 3, 14),
    ),
    actions=(
        replace(PROMOTE, reason="Your role is reader: stewards and admins request promotions."),
        replace(ACTIONS[1], reason="Your role is reader: stewards and admins request promotions."),
        *ACTIONS[2:],
    ),
)
SUBJECT_THEN = replace(
    SUBJECT,
    frame=replace(
        SUBJECT.frame,
        travel=Travel(at=ago(days=53), moment="2026-10-01 12:00 UTC", value="2026-10-01T12:00", now_url="?tab=source",
                      hidden=(("tab", "source"), (HOSTILE, HOSTILE))),
    ),
    actions=tuple(
        replace(each, reason="You are viewing a past state. Go back to now.")
        for each in SUBJECT.actions
    ),
)  # fmt: skip
SUBJECT_DELETED = replace(
    SUBJECT,
    frame=frame(LONG, Section.SUBJECTS, *subject_crumbs(), code=True, part="Versions"),
    subject=LONG,
    versions=tuple(replace(row, info=replace(row.info, deleted=True), verdict=None, live_in=()) for row in versions(3)),
    lanes=None,
    state=VersionMark(state=VersionState.DELETED, word="Soft-deleted", sentence="All versions are soft-deleted."),
    actions=(ACTIONS[2], *ACTIONS[4:]),
    restore=Action(label="Restore …", url="/gallery/retire", tone="primary", icon="undo-2"),
    problem=Problem(
        what="All versions of this subject are soft-deleted.",
        cure="Restore them: they come back with their numbers and schema ids.",
    ),
)
