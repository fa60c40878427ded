"""Sample pages: two versions compared."""

from __future__ import annotations

from dataclasses import replace

from dashboard.compare.comparison import (
    ChangeCard,
    ChangeGroup,
    ChoiceGroup,
    ComparedSide,
    ComparePage,
    DirectionSummary,
    ExtraChange,
    TextSwitch,
    TextTools,
    UnchangedField,
    VersionComparison,
)
from dashboard.compare.proof import DisagreementNote, EditView, Proof, RenameView, bytes_view
from dashboard.components.badges import ChangeKind, Verdict
from dashboard.components.diff import text_diff
from dashboard.components.tour import STEPS, TourBar
from dashboard.components.widgets import Choice, Crumb, Link, Problem, Section
from dashboard.subjects.descriptions import TagChip
from registry.drift.replay.evidence import EvidenceLine
from registry.formats.base import Edit
from registry.formats.suggested_edits import SuspectedRename
from registry.promotions.requests.schema_changes import RenameInfo
from tests.site.samples.cast import DEV, HOSTILE, ago, frame, subject_crumbs, subject_url
from tests.site.samples.subjects import NEW, OLD, SIDES

STOPS = Proof(
    direction="New reader, old data",
    is_found=True,
    datum='{\n  "id": "A-1",\n  "note": "' + HOSTILE.replace('"', '\\"') + '"\n}',
    encoded=bytes_view(b"\x06A-1\x02<img src=x>".hex(), "bytes-stops"),
    error=f"SchemaResolutionError: No default value for field {HOSTILE}",
)
CHANGES = Proof(
    direction="Old reader, new data",
    is_found=True,
    datum="16777217",
    encoded=bytes_view("82808010", "bytes-changes"),
    read="16777216.0",
    reason="16777217 is read as 16777216",
)
UNPROVED = Proof(
    direction="New reader, old data",
    is_found=False,
    reason=f"the pattern {HOSTILE} allows no example within the limits",
)
ALIASED = NEW.replace('"customer_id"', '"client_id", "aliases": ["customer_id"]')
CLIENT_ID = SuspectedRename(
    path="Order.client_id", message="the field “customer_id” may have been renamed to “client_id”", score=0.71,
    reasons=("the same type", "alike names (58 %)", HOSTILE), edit=Edit('add the alias "customer_id"', ALIASED), before="customer_id",
    after="client_id", passes=False,
)  # fmt: skip
NOT_RENAMED = RenameInfo("dev", HOSTILE, HOSTILE, False, HOSTILE, HOSTILE, ago(days=2))
RENAMED = replace(NOT_RENAMED, is_rename=True, reason="One amount, under its business name.", decided_by="maria", decided_at=ago(hours=3))  # fmt: skip
RENAMES = (
    RenameView(
        info=CLIENT_ID,
        edit=EditView(anchor="rename-1", title='add the alias "customer_id"', change=text_diff(NEW, ALIASED), text=ALIASED),
        registry="dev",
        subject="orders-value",
    ),
    RenameView(
        info=replace(CLIENT_ID, path=HOSTILE, message="it may have been renamed", score=0.52, edit=None), registry="dev", subject="orders-value", decided=NOT_RENAMED,
    ),
    RenameView(
        info=replace(CLIENT_ID, path="Order.total", before="sum", after="total", edit=None, cure=HOSTILE), registry="dev", subject="orders-value",
        decided=RENAMED, refused="You need the admin or steward role in dev to describe subjects.",
    ),
)  # fmt: skip
DISAGREEMENTS = (
    DisagreementNote(
        title="Old reader, new data: the rules accept it, but data changes",
        sentence="Whether version 2 reads data of the new schema: the established rules accept it; data is lost.",
        proof=replace(CHANGES, encoded=bytes_view("82808010", "bytes-disagreement")),
    ),
)

CARDS = (
    ChangeCard(
        anchor="c-1",
        rule="FIELD_ADDED_WITHOUT_DEFAULT",
        kind=ChangeKind.ADDED,
        path="Order.channel",
        verdict=Verdict.BREAKS,
        sentence="The field channel was added and has no default.",
        new_reads_old=Verdict.BREAKS,
        old_reads_new=Verdict.OK,
        after='{"name": "channel", "type": "string"}',
        why="Data written before this version doesn’t hold channel, and a new reader has nothing to fill it with.",
        remedy='give it a default, for example "default": "web", or make it ["null", "string"] with default null.',
        evidence=(
            EvidenceLine(
                weight="confirmed",
                sentence=f"Order.channel is absent in 24.1 % of 5,000 messages since 2026-11-01. {HOSTILE}",
            ),
        ),
        proofs=(STOPS,),
    ),
    ChangeCard(
        anchor="c-2",
        rule="TYPE_WIDENED",
        kind=ChangeKind.CHANGED,
        path="Order.amount",
        verdict=Verdict.CARE,
        sentence="The type of amount was widened from int to long.",
        new_reads_old=Verdict.OK,
        old_reads_new=Verdict.BREAKS,
        before="int",
        after="long",
        why="A reader on version 2 can’t read a long as an int.",
        remedy="upgrade every consumer before the first producer; or add amount_cents as long and keep amount.",
        disagreement="Old reader, new data: the established rules accept this, but data changes.",
        example="16777217 is read as 16777216",
        evidence=(
            EvidenceLine(weight="on_paper", sentence="A risk in theory: Order.amount is null in all 5,000 messages."),
        ),
        proofs=(CHANGES, UNPROVED),
    ),
    ChangeCard(
        anchor="c-3",
        rule="ENUM_SYMBOL_ADDED",
        kind=ChangeKind.ADDED,
        path="Order.status.REFUNDED",
        verdict=Verdict.CARE,
        sentence="The symbol REFUNDED was added to the enum Status.",
        new_reads_old=Verdict.OK,
        old_reads_new=Verdict.BREAKS,
        after="REFUNDED",
        why="The old reader’s enum has no default for a symbol that it doesn’t know.",
    ),
    ChangeCard(
        anchor="c-4",
        rule="FIELD_REMOVED",
        kind=ChangeKind.REMOVED,
        path="Order.fax",
        verdict=Verdict.OK,
        sentence="The field fax was removed; it had a default.",
        new_reads_old=Verdict.OK,
        old_reads_new=Verdict.OK,
        before='{"name": "fax", "type": ["null", "string"], "default": null}',
    ),
    ChangeCard(
        anchor="c-5",
        rule="FIELD_ADDED",
        kind=ChangeKind.ADDED,
        path="Order.email",
        verdict=Verdict.OK,
        sentence="The field email was added with the default null.",
        new_reads_old=Verdict.OK,
        old_reads_new=Verdict.OK,
        after='{"name": "email", "type": ["null", "string"], "default": null}',
    ),
)
COMPARISON = VersionComparison(
    old=ComparedSide(
        environment=DEV,
        version=2,
        url="/gallery/subject",
        schema_id=9,
        registered_at=ago(days=9),
        registered_by="steward",
    ),
    new=ComparedSide(
        environment=DEV,
        version=3,
        url="/gallery/subject",
        schema_id=14,
        registered_at=ago(minutes=4),
        registered_by="orders-producer",
    ),
    verdict=Verdict.BREAKS,
    headline="Neither order of deployment is safe",
    sentence="5 changes: 1 breaks new readers on old data, 2 break old readers on new data, 2 are safe.",
    directions=(
        DirectionSummary(
            label="New reader, old data", who="consumers upgraded first", verdict=Verdict.BREAKS, failing=1
        ),
        DirectionSummary(
            label="Old reader, new data", who="producers upgraded first", verdict=Verdict.BREAKS, failing=2
        ),
    ),
    groups=(ChangeGroup(name="com.example.shop.Order", cards=CARDS),),
    breaking=1,
    care=2,
    safe=2,
    text=text_diff(OLD, NEW),
    disagreements=DISAGREEMENTS,
    renames=RENAMES,
    unchanged=(UnchangedField("Order.id", "string"), UnchangedField(HOSTILE, "long"), UnchangedField("a" * 300, "int")),
)
EXTRAS = (
    ExtraChange(part="Metadata", name="properties.owner", kind=ChangeKind.CHANGED, before="sales", after=HOSTILE),
    ExtraChange(
        part="Rules", name="domainRules.check", kind=ChangeKind.ADDED, after='{"name": "check", "expr": "true"}'
    ),
    ExtraChange(part="Rules", name="order of migrationRules", kind=ChangeKind.CHANGED, before="a, b", after="b, a"),
    ExtraChange(part="Reference", name=HOSTILE, kind=ChangeKind.REMOVED, before="customers-value version 1"),
)
COMPARISON = replace(COMPARISON, extras=EXTRAS)
#: a text that isn't registered against the newest version, without proofs that others on a page may have too
AGAINST_LATEST = replace(
    COMPARISON,
    verdict=Verdict.OK,
    headline="Deploy in any order",
    sentence="2 changes: 2 safe. Promoting dev 5 over prod 2 skips versions 3, 4.",
    directions=tuple(replace(way, verdict=Verdict.OK, failing=0) for way in COMPARISON.directions),
    groups=(ChangeGroup(name="Order", cards=CARDS[3:]),),
    breaking=0,
    care=0,
    disagreements=(),
    renames=(),
)
TOOLS = TextTools(
    is_wrapped=True,
    wrapped_url="/gallery/compare",
    unwrapped_url="/gallery/compare-other",
    old_url="?as=old",
    new_url="?as=new",
)
COMPARE = ComparePage(
    frame=frame(
        "Compare versions 2 and 3",
        Section.SUBJECTS,
        *subject_crumbs(),
        Crumb(label="orders-value", url="/gallery/subject", code=True),
    ),
    registry="dev",
    subject="orders-value",
    subject_url="/gallery/subject",
    compare_url=subject_url("dev", "orders-value", "compare"),
    from_groups=(
        ChoiceGroup(label="dev", choices=SIDES),
        ChoiceGroup(label=HOSTILE, choices=()),
        ChoiceGroup(label="Your drafts", choices=(Choice(value="draft-12", label=f"{HOSTILE} · your draft 12"),)),
    ),
    to_groups=(ChoiceGroup(label="dev", choices=tuple(replace(each, selected=each.value == "3") for each in SIDES)),),
    swap_url="?from=3&to=2",
    unified_url="/gallery/compare",
    split_url="/gallery/compare-split",
    text_switch=TextSwitch(as_submitted=False, laid_out_url="/gallery/compare", submitted_url="/gallery/compare"),
    text_tools=TOOLS,
    other_places=(Choice(value="dev", label="dev", selected=True), Choice(value=HOSTILE, label=HOSTILE)),
    markdown_url="?as=markdown",
    simulate_url="/gallery/simulate",
    unchanged_url="/gallery/compare-split",
    words_url="/gallery/compare-words",
    comparison=COMPARISON,
)
COMPARE_WORDS = replace(
    COMPARE,
    frame=replace(COMPARE.frame, tour=TourBar(3, STEPS[2])),
    in_business_words=True,
    comparison=replace(
        COMPARISON,
        groups=tuple(
            replace(
                group,
                cards=tuple(
                    replace(card, business="Order channel is new", meaning=HOSTILE, tags=(TagChip(word="PII", personal=True),))
                    for card in group.cards
                ),
            )
            for group in COMPARISON.groups
        ),
    ),
)  # fmt: skip
COMPARE_SPLIT = replace(
    COMPARE,
    view="split",
    unchanged_shown=True,
    frame=replace(COMPARE.frame, environments=frame("", Section.NONE, current="prod").environments),
)
COMPARE_SAME = replace(
    COMPARE,
    comparison=replace(
        COMPARISON,
        verdict=Verdict.OK,
        headline="Same meaning",
        sentence="No reader and no writer notices a difference.",
        directions=(),
        groups=(),
        breaking=0,
        care=0,
        safe=0,
        same_meaning=True,
        extras=(),
        disagreements=(),
        renames=(),
        formatting_differs=True,
        text=text_diff(OLD, OLD.replace("An order", "One order")),
    ),
)
COMPARE_EQUAL = replace(
    COMPARE,
    comparison=replace(
        COMPARE_SAME.comparison or COMPARISON, headline="The same version twice", text=text_diff(OLD, OLD)
    ),
)
COMPARE_PROBLEM = replace(
    COMPARE,
    comparison=None,
    problem=Problem(
        what="Version 9 isn’t there",
        where=f"subject {HOSTILE} in dev",
        cure="Choose one of its versions: 1, 2 or 3.",
        links=(Link(label="orders-value", url="/gallery/subject"),),
    ),
)
COMPARE_OTHER = replace(
    COMPARE,
    other_subject=HOSTILE,
    other_error=f"dev has no subject {HOSTILE!r}.",
    same_subject_url="/gallery/compare",
    drawn=(("wrap", "no"),),
    text_tools=replace(TOOLS, is_wrapped=False),
    all_url="/gallery/compare",
    comparison=replace(
        COMPARISON,
        old=replace(COMPARISON.old, subject=HOSTILE),
        new=replace(COMPARISON.new, label="observed data", version=0, registered_at=None),
        formatting_differs=True,
        formatting_hidden=1_204,
        hidden_changes=1_804,
        hidden_renames=41,
        unproved=f"Reading and comparing the schema {HOSTILE} takes more than 2 s, which is the limit.",
    ),
)
COMPARE_FORMATS = replace(
    COMPARE,
    comparison=VersionComparison(
        old=COMPARISON.old,
        new=COMPARISON.new,
        verdict=Verdict.BREAKS,
        headline="Needs a new topic, or deploy both sides at once",
        sentence="Avro became JSON Schema.",
        text=text_diff(OLD, NEW),
        problem=Problem(what="Schemas in two formats can’t be compared field by field.", cure="The texts are below."),
    ),
)
COMPARE_ONE_SIDE = replace(COMPARE_PROBLEM, other_side=COMPARISON.new, other_text=NEW.replace("An order", HOSTILE))
