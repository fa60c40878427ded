"""Sample pages: the wizard that retires a version or a subject, and the subjects that nothing needs."""

from __future__ import annotations

from dataclasses import replace

from dashboard.components.widgets import Crumb, Export, Link, Paging, Section
from dashboard.usage.forms import DeletePermanentlyForm, DeprecateForm
from dashboard.usage.retirement import ReadBack, RetireChoice, RetireEvidence, RetirePage, RetireStep
from dashboard.usage.retirement_result import UnusedSubjectsPage
from registry.drift.usage.unused_subjects import UnusedSubject
from registry.errors import InvalidInput
from registry.subjects.usage.evidence import Evidence
from registry.subjects.versions.qualified_names import SubjectName
from tests.site.samples.cast import DEV, HOSTILE, LONG, NOW, PROD, ago, frame
from tests.site.samples.usage import NO, UNKNOWN

URL = "/ui/registries/dev/subjects/orders-value/retire"
FIRST, SECOND, THIRD = (RetireStep(label=label) for label in ("Known uses", "Action", "Confirm"))
EVIDENCE = RetirePage(
    frame=frame("Retire orders-value", Section.SUBJECTS, Crumb(label="Subjects", url="/gallery/subjects"), Crumb(label="orders-value", url="/gallery/subject", code=True)),
    registry="dev", subject="orders-value", what="version 3", back_url="/gallery/subject", steps=(replace(FIRST, current=True), SECOND, THIRD),
    known=RetireEvidence(
        retirement=NO, messages=1204, last_time=ago(minutes=2), referrers=("invoices-value version 2", HOSTILE, LONG), hidden_referrers=7,
        evidence=(
            Evidence("data", "yes", "1,204 messages of orders need it.", as_of=ago(minutes=2)),
            Evidence("state", "unknown", f"What {HOSTILE} knows can't be told."),
            Evidence("state", "no", "No scanned state has its shape.", as_of=ago(hours=1)),
        ),
        environments=((DEV, "version 3"), (PROD, "version 2")),
        coverage=("orders was last scanned at 2026-11-21 14:28 UTC: 5,120 messages in total.", HOSTILE),
    ),
    next_url=f"{URL}/choose", scopes=(Link(label="the whole subject", url=URL), Link(label="version 2", url=f"{URL}?version=2")),
)  # fmt: skip
NOTHING = replace(
    EVIDENCE, subject=HOSTILE, what="the whole subject", scopes=(),
    known=RetireEvidence(retirement=UNKNOWN, messages=0, last_time=None, referrers=(), hidden_referrers=0, evidence=(), environments=(), coverage=()),
)  # fmt: skip
CHOOSE = replace(
    EVIDENCE, known=None, next_url="", scopes=(), steps=(replace(FIRST, url=URL), replace(SECOND, current=True), THIRD),
    choices=(
        RetireChoice(button="Restore …", icon="undo-2", url=f"{URL}/confirm?do=restore", label="Restore", consequence="Soft-deleted versions are restored with their numbers and ids, if they are still compatible with newer versions."),
        RetireChoice(button="Deprecate …", icon="clock", url=f"{URL}/confirm?do=deprecate", label="Deprecate", consequence="Nothing stops working. The message and the date are shown to readers in a header and to people on pages. Owners are notified."),
        RetireChoice(button="Soft-delete …", icon="ban", url=f"{URL}/confirm?do=soft", label="Soft-delete", consequence="Clients can’t use it by name for new data. Messages with schema id 14 stay readable by id. It can be restored."),
        RetireChoice(button="Delete permanently …", icon="x", url="/gallery/retire", refused="Soft-delete version 3 first.", label="Delete permanently", consequence="A copy is kept for 30 days. During that time, it can be restored where its numbers and ids are free. Messages with schema id 14 become unreadable until it is restored: 1,204 were seen by scans, some until at least 2026-11-28."),
    ),
)  # fmt: skip
CONFIRM = replace(
    CHOOSE, choices=(), steps=(replace(FIRST, url=URL), replace(SECOND, url=f"{URL}/choose"), replace(THIRD, current=True)),
    form=DeletePermanentlyForm(subject="orders-value", what="version 3"), icon="x",
    sentence="A copy is kept for 30 days. During that time, it can be restored where its numbers and ids are free. Messages with schema id 14 become unreadable until it is restored: 1,204 were seen by the scans.",
    export=Export(url="/ui/registries/dev/export", subject=HOSTILE),
)  # fmt: skip


def refused() -> DeletePermanentlyForm:
    form = DeletePermanentlyForm({"confirmed": "order"}, subject="orders-value", what="version 3")
    form.is_valid()
    form.add_service_error(
        InvalidInput("To confirm the deletion, type the name of the subject: orders-value", field="confirmed")
    )
    return form


REFUSED = replace(CONFIRM, form=refused())
DEPRECATE = replace(
    CONFIRM,
    form=DeprecateForm(subject="orders-value", what="version 3"),
    icon="clock",
    sentence="Nothing stops working.",
    export=None,
)
NOT_ALLOWED = replace(CONFIRM, refused="You need the admin role in dev to delete versions permanently.")
DONE = replace(
    CHOOSE, choices=(), steps=(), what="1 version of it",
    read_back=ReadBack(headline="Verified: soft-deleted", good=True, at=NOW, lines=("Version 3 is soft-deleted.",), restore=RetireChoice(button="Restore …", url=f"{URL}/confirm?do=restore", icon="undo-2")),
)  # fmt: skip
DONE_BADLY = replace(
    DONE,
    read_back=ReadBack(headline="Incomplete: not everything is permanently deleted", good=False, at=NOW, lines=("Version 3 exists.", "Schema id 14 still exists because another version uses it: messages with it can be read.")),
)  # fmt: skip

ROW = UnusedSubject(SubjectName(".", "old-orders-value"), versions=3, newest=4, since=ago(days=400))
UNUSED = UnusedSubjectsPage(
    frame=frame("Unused subjects", Section.SUBJECTS, Crumb(label="Subjects", url="/gallery/subjects")),
    registry="dev", sentence="Based on 12 topics; messages were read from 11 of them. The content of all other topics is unknown.", is_known=True,
    rows=(ROW, replace(ROW, subject=SubjectName(".", HOSTILE)), replace(ROW, subject=SubjectName(".sales", LONG), versions=1)), paging=Paging(first=1, last=3, total=60, next_url="?after=x"), may_deprecate=True,
)  # fmt: skip
UNUSED_NONE = replace(UNUSED, rows=(), paging=Paging(first=0, last=0, total=0))
UNUSED_UNKNOWN = replace(
    UNUSED_NONE,
    is_known=False,
    sentence="No topic of this registry’s sources has ever been scanned, so it is unknown which subjects are in use.",
)
