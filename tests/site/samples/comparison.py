"""Sample pages: two versions compared."""

from __future__ import annotations

from dataclasses import replace

from dashboard.presenters.comparison import (
    ChangeCard,
    ChangeGroup,
    ComparePage,
    Comparison,
    DirectionSummary,
    Side,
)
from dashboard.presenters.frame import (
    Crumb,
    Link,
    Problem,
    Section,
)
from dashboard.presenters.looks import ChangeKind, Verdict
from dashboard.presenters.text_diff import text_diff
from tests.site.samples.cast import DEV, HOSTILE, ago, frame, subject_crumbs, subject_url
from tests.site.samples.subjects import NEW, OLD, SUBJECT

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
        evidence="1,204 of the last 5,000 messages on orders were written with version 2 or older and lack it.",
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
COMPARISON = Comparison(
    old=Side(
        environment=DEV,
        version=2,
        url="/gallery/subject",
        schema_id=9,
        registered_at=ago(days=9),
        registered_by="steward",
    ),
    new=Side(
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
    from_choices=SUBJECT.compare_from,
    to_choices=SUBJECT.compare_to,
    swap_url="?from=3&to=2",
    unified_url="/gallery/compare",
    split_url="/gallery/compare-split",
    comparison=COMPARISON,
)
COMPARE_SPLIT = replace(
    COMPARE,
    view="split",
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
