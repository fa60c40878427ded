"""Sample pages: the wizard that retires a version or a subject, and the subjects that nothing needs."""

from __future__ import annotations

from dataclasses import replace

from dashboard.components.widgets import Action, Crumb, Export, Field, Link, Paging, Problem, Section
from dashboard.usage.presenters import (
    ConfirmForm,
    EvidenceLine,
    InUse,
    OrphanRow,
    OrphansPage,
    ReadBack,
    RetireChoice,
    RetireEvidence,
    RetirePage,
    RetirePlace,
    RetireStep,
)
from tests.site.samples.cast import DEV, HOSTILE, LONG, NOW, PROD, ago, frame
from tests.site.samples.usage import NO, UNKNOWN

URL = "/ui/registries/dev/subjects/orders-value/retire"
FIRST, SECOND, THIRD = (RetireStep(label=label) for label in ("Known uses", "Action", "Confirm"))
EVIDENCE = RetirePage(
    frame=frame("Retire orders-value", Section.SUBJECTS, Crumb(label="Subjects", url="/gallery/subjects"), Crumb(label="orders-value", url="/gallery/subject", code=True)),
    subject="orders-value", what="version 3", back_url="/gallery/subject", steps=(replace(FIRST, current=True), SECOND, THIRD),
    evidence=RetireEvidence(
        verdict=NO, messages=1204, last_time=ago(minutes=2), referrers=("invoices-value version 2", HOSTILE, LONG), hidden_referrers=7, usage_url="/gallery/usage",
        lines=(
            EvidenceLine(in_use=InUse.YES, sentence="1,204 messages of orders need it.", as_of=ago(minutes=2)),
            EvidenceLine(in_use=InUse.UNKNOWN, sentence=f"What {HOSTILE} knows can't be told."),
            EvidenceLine(in_use=InUse.NO, sentence="No scanned state has its shape.", as_of=ago(hours=1)),
        ),
        environments=(RetirePlace(environment=DEV, sentence="version 3"), RetirePlace(environment=PROD, sentence="version 2")),
        coverage=("orders was last scanned at 2026-11-21 14:28 UTC: 5,120 messages in total.", HOSTILE),
    ),
    next_url=f"{URL}/choose", scopes=(Link(label="the whole subject", url=URL), Link(label="version 2", url=f"{URL}?version=2")),
)  # fmt: skip
NOTHING = replace(
    EVIDENCE, subject=HOSTILE, what="the whole subject", scopes=(),
    evidence=RetireEvidence(verdict=UNKNOWN, messages=0, last_time=None, referrers=(), hidden_referrers=0, usage_url="/gallery/usage", lines=(), environments=(), coverage=()),
)  # fmt: skip
CHOOSE = replace(
    EVIDENCE, evidence=None, next_url="", scopes=(), steps=(replace(FIRST, url=URL), replace(SECOND, current=True), THIRD),
    choices=(
        RetireChoice(label="Restore", icon="undo-2", consequence="Soft-deleted versions are restored with their numbers and ids, if they are still compatible with newer versions.", action=Action(label="Restore …", url=f"{URL}/confirm?do=restore")),
        RetireChoice(label="Deprecate", icon="clock", consequence="Nothing stops working. The message and the date are shown to readers in a header and to people on pages. Owners are notified.", action=Action(label="Deprecate …", url=f"{URL}/confirm?do=deprecate")),
        RetireChoice(label="Soft-delete", icon="ban", consequence="Clients can’t use it by name for new data. Messages with schema id 14 stay readable by id. It can be restored.", action=Action(label="Soft-delete …", url=f"{URL}/confirm?do=soft")),
        RetireChoice(label="Delete permanently", icon="x", consequence="A copy is kept for 30 days. During that time, it can be restored where its numbers and ids are free. Messages with schema id 14 become unreadable until it is restored: 1,204 were seen by scans, some until at least 2026-11-28.", action=Action(label="Delete permanently …", url="", allowed=False, reason="Soft-delete version 3 first.")),
    ),
)  # fmt: skip
CONFIRM = replace(
    CHOOSE, choices=(), steps=(replace(FIRST, url=URL), replace(SECOND, url=f"{URL}/choose"), replace(THIRD, current=True)),
    form=ConfirmForm(
        sentence="A copy is kept for 30 days. During that time, it can be restored where its numbers and ids are free. Messages with schema id 14 become unreadable until it is restored: 1,204 were seen by the scans.",
        fields=(Field(name="confirmed", label="Type orders-value to confirm", required=True, code=True), Field(name="force", label="Reason to force it", help="Where it is or may be in use.")),
        confirm=Action(label="Delete for good: version 3", url=f"{URL}/confirm?do=hard", method="post", tone="danger", icon="x"),
    ),
    export=Export(url="/ui/registries/dev/export", subject=HOSTILE),
)  # fmt: skip
REFUSED = replace(CONFIRM, problem=Problem(what="To confirm the deletion, type the name of the subject: orders-value"))
DEPRECATE = replace(
    CONFIRM,
    form=ConfirmForm(
        sentence="Nothing stops working.",
        fields=(Field(name="message", label="Reason, and what to use instead", kind="textarea", rows=3, required=True, value="<b>Use</b> payments-value"), Field(name="ends_at", label="End date", kind="date")),
        confirm=Action(label="Deprecate: version 3", url=f"{URL}/confirm?do=deprecate", method="post", tone="primary", icon="clock"),
    ),
)  # fmt: skip
NOT_ALLOWED = replace(
    CONFIRM,
    form=replace(CONFIRM.form, confirm=Action(label="Delete for good: version 3", url="", allowed=False, icon="x", reason="You need the admin role in dev to delete versions permanently.")),  # type: ignore[type-var]
)  # fmt: skip
DONE = replace(
    CHOOSE, choices=(), steps=(), what="1 version of it",
    read_back=ReadBack(headline="Verified: soft-deleted", good=True, at=NOW, lines=("Version 3 is soft-deleted.",), restore=Action(label="Restore …", url=f"{URL}/confirm?do=restore", icon="undo-2")),
)  # fmt: skip
DONE_BADLY = replace(
    DONE,
    read_back=ReadBack(headline="Incomplete: not everything is permanently deleted", good=False, at=NOW, lines=("Version 3 exists.", "Schema id 14 still exists because another version uses it: messages with it can be read.")),
)  # fmt: skip

ROW = OrphanRow(
    subject="old-orders-value",
    url="/gallery/subject",
    versions=3,
    newest=4,
    since=ago(days=400),
    retire=Action(label="Retire …", url=URL),
)
ORPHANS = OrphansPage(
    frame=frame("Unused subjects", Section.SUBJECTS, Crumb(label="Subjects", url="/gallery/subjects")),
    sentence="Based on 12 topics; messages were read from 11 of them. The content of all other topics is unknown.", is_known=True,
    rows=(ROW, replace(ROW, subject=HOSTILE), replace(ROW, subject=LONG, versions=1)), paging=Paging(first=1, last=3, total=60, next_url="?after=x"), sources_url="/ui/sources", deprecate_url="/ui/registries/dev/deprecate",
)  # fmt: skip
ORPHANS_NONE = replace(ORPHANS, rows=(), paging=Paging(first=0, last=0, total=0))
ORPHANS_UNKNOWN = replace(
    ORPHANS_NONE,
    is_known=False,
    sentence="No topic of this registry’s sources has ever been scanned, so it is unknown which subjects are in use.",
)
