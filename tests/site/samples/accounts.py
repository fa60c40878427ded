"""Sample pages: the inbox, subscriptions, webhooks, people, tokens."""

from __future__ import annotations

from dataclasses import replace

from dashboard.components.badges import Look
from dashboard.components.widgets import (
    Action,
    ActiveFilter,
    Choice,
    Crumb,
    Field,
    Filter,
    Frame,
    Paging,
    Problem,
    SearchBox,
    Section,
)
from dashboard.notifications.inbox import (
    DefaultRow,
    DeliveryRow,
    DigestChoice,
    InboxPage,
    NoticeRow,
    StopPage,
    SubscriptionRow,
    SubscriptionsPage,
    TryRow,
    WebhookForm,
    WebhookPage,
    WebhookRow,
    WebhooksPage,
)
from dashboard.people.forms import FORMS, TokenForm, people_forms
from dashboard.people.page import PeoplePage, TokenPage
from registry.access.selectors import GrantInfo, GroupInfo, OwnershipInfo, PersonInfo, TokenInfo
from registry.access.services import IssuedToken
from registry.promotions.reviews.linked_accounts import SamePersonInfo
from tests.site.samples.cast import ARABIC, HOSTILE, LONG, ago, frame

IDLE = Paging(first=1, last=3)
REFUSED = Problem(what="That isn’t possible", where=HOSTILE, cure="Give a name of at most 150 characters.")


def own(title: str, *crumbs: Crumb, unread: int = 2) -> Frame:
    """The frame of a page that belongs to a person and to no registry."""
    return replace(frame(title, Section.NONE, *crumbs, current=None), unread=unread)


def notice(number: int, text: str, **more: object) -> NoticeRow:
    """A notice of the inbox."""
    base = NoticeRow(
        number=number, title="Approval is asked for", registry="prod", subject="orders-value", text=text,
        url="/gallery/promotion", at=ago(minutes=number), read=False,
    )  # fmt: skip
    return replace(base, **more)  # type: ignore[arg-type]


INBOX = InboxPage(
    frame=own("Inbox"),
    rows=(
        notice(9, "steward asks to promote orders-value version 3 to prod."),
        notice(8, HOSTILE, subject=HOSTILE, registry=HOSTILE, url=""),
        notice(2, "customers-value version 1 is live in prod.", title="Promoted", read=True, at=ago(days=3)),
    ),
    unread=2, only_unread=False, paging=Paging(first=1, last=3, next_url="?before=2"), newest=9, back="/ui/inbox",
)  # fmt: skip
INBOX_EMPTY = replace(INBOX, frame=own("Inbox", unread=0), rows=(), unread=0, paging=IDLE)
INBOX_READ = replace(INBOX_EMPTY, only_unread=True)

DIGEST = DigestChoice(
    fields=(
        Field(name="every", label="How often", kind="select", required=True, choices=(Choice(value="off", label="No mail"), Choice(value="daily", label="Every day", selected=True))),
        Field(name="hour", label="Time (Europe/Berlin)", kind="select", required=True, choices=(Choice(value="7", label="07:00"),)),
    ),
    submit=Action(label="Save", url="/ui/inbox/digest", method="post", tone="primary"),
    address="steward@example.com", next_at=ago(hours=-9), last="The last email couldn’t be sent", last_at=ago(hours=15),
    last_error="The mail server can't be used.",
)  # fmt: skip
STOP = StopPage(
    frame=own("Turn off the email digest?"),
    stop=Action(label="Turn off digest", url="/ui/digest/stop/x", method="post", tone="primary"),
)
STOPPED = StopPage(frame=own("Email digest turned off"))
SUBSCRIPTIONS = SubscriptionsPage(
    frame=own("Subscriptions", Crumb(label="Inbox", url="/ui/inbox")),
    rows=(
        SubscriptionRow(title="A version was registered", registry_pattern="prod", subject_pattern="orders-*", is_wanted=True, remove=Action(label="Remove", url="/ui/inbox", method="post")),
        SubscriptionRow(title="Drift was found", registry_pattern="*", subject_pattern=HOSTILE, is_wanted=False, remove=Action(label="Remove", url="/ui/inbox", method="post")),
    ),
    fields=(
        Field(name="event", label="Event", kind="select", required=True, choices=(Choice(value="", label="Everything"), Choice(value="a", label=HOSTILE))),
        Field(name="subject_pattern", label="Subjects", value="orders-*", code=True, errors=("The pattern is longer than 255 characters.",), help="A pattern such as orders-*."),
    ),
    submit=Action(label="Subscribe", url="/ui/subscriptions", method="post", tone="primary"),
    defaults=(DefaultRow(title="Approval is asked for", concerns="who may approve it"),),
    digest=DIGEST,
)  # fmt: skip
SUBSCRIPTIONS_EMPTY = replace(
    SUBSCRIPTIONS,
    rows=(),
    digest=replace(DIGEST, address="", reason="No mail server is set up here: nothing is sent.", next_at=None),
)
SUBSCRIPTIONS_REFUSED = replace(SUBSCRIPTIONS, problem=REFUSED)

ON, OFF = Look("ok", "circle-check", "On"), Look("care", "ban", "Turned off")
WEBHOOKS = WebhooksPage(
    frame=own("Webhooks"),
    rows=(
        WebhookRow(name="ci", url="/gallery/webhook", host="hooks.example.com", owner="steward", events="3 events", scope="prod, orders-*", state=ON),
        WebhookRow(name=HOSTILE, url="/gallery/webhook", host=LONG, owner=HOSTILE, events="all events", scope=HOSTILE, state=OFF),
    ),
    add=Action(label="Add a webhook", url="/ui/webhooks", tone="primary", icon="plus"),
)  # fmt: skip
WEBHOOKS_EMPTY = replace(WEBHOOKS, rows=())
WEBHOOK_FORM = WebhookForm(
    frame=own("Add a webhook", Crumb(label="Webhooks", url="/ui/webhooks")),
    fields=(
        Field(name="name", label="Name", value=HOSTILE, required=True, help="A name that people here recognize."),
        Field(name="url", label="Address", value="http://10.0.0.1/", kind="url", required=True, code=True, errors=("10.0.0.1 is an inner address: it isn’t called.",)),
    ),
    events=(Choice(value="a", label="A version was registered", selected=True), Choice(value="b", label="Drift was found")),
    submit=Action(label="Add", url="/ui/webhooks", method="post", tone="primary"),
    back_url="/ui/webhooks",
)  # fmt: skip
WEBHOOK_FORM_REFUSED = replace(WEBHOOK_FORM, problem=REFUSED)
DELIVERY = DeliveryRow(
    message_id="msg_01J", title="A version was registered", text="orders-value version 3 in prod", state=Look("ok", "circle-check", "Delivered"),
    created_at=ago(minutes=4), next_at=None, tries=(TryRow(at=ago(minutes=4), result="200", excerpt="", seconds="0.2 s"),),
    replay=Action(label="Resend", url="/ui/webhooks", method="post"),
)  # fmt: skip
WEBHOOK = WebhookPage(
    frame=own("ci", Crumb(label="Webhooks", url="/ui/webhooks")), id="wh_01J", url="https://hooks.example.com/" + "a" * 300, owner="steward", events="3 events",
    scope="prod, orders-*", key_version=1, state=ON, disabled_reason="", failing_since=ago(hours=2),
    actions=(
        Action(label="Send test message", url="/ui/webhooks", method="post"), Action(label="Change", url="/ui/webhooks"),
        Action(label="Remove", url="/ui/webhooks", allowed=False, reason="Only its owner or an admin may."),
    ),
    rows=(
        DELIVERY,
        replace(DELIVERY, text=HOSTILE, state=Look("breaks", "octagon-x", "Failed"), next_at=ago(minutes=-9), replay=None, tries=(TryRow(at=ago(minutes=3), result="500", excerpt=HOSTILE, seconds="2.0 s"), TryRow(at=ago(minutes=2), result="No answer within 10 s", excerpt="", seconds="10.0 s"))),
    ),
    paging=Paging(first=1, last=2, next_url="?before=1"),
)  # fmt: skip
WEBHOOK_NEW = replace(
    WEBHOOK, secret="whsec_" + "A" * 43, key_version=2, failing_since=None, rows=(), paging=Paging(first=0, last=0)
)
WEBHOOK_OFF = replace(WEBHOOK, state=OFF, disabled_reason="Every attempt of five days failed: " + HOSTILE)

GRANTS = (GrantInfo(1, "steward", "", "*"), GrantInfo(2, "approver", "prod", "orders-*", HOSTILE))
NAMES = ("steward", HOSTILE)
PEOPLE = PeoplePage(
    frame=own("People and groups"), search=SearchBox(url="/ui/people", label="Search people"),
    people=(
        PersonInfo("steward", "steward@example.com", True, ago(hours=1), ("password", "oidc"), ("data office", ARABIC), GRANTS),
        PersonInfo(HOSTILE, HOSTILE, False, None, ("oidc",), (), ()),
        PersonInfo("newcomer", "", True, None, ("password",), (), ()),
        PersonInfo("robot", "", False, None, (), (), ()),
    ),
    same=(SamePersonInfo(1, "maria", HOSTILE, "She said so when her sign-on came.", "admin", ago(days=3)),),
    groups=(GroupInfo("data office", ("steward", HOSTILE), GRANTS[:1]),),
    owners=(OwnershipInfo(1, "", "orders-*", "", LONG), OwnershipInfo(2, "prod", "*", "steward", "")),
    forms=people_forms(NAMES, [HOSTILE], ["dev", "prod"]),
)  # fmt: skip
PEOPLE_ALONE = replace(
    PEOPLE, people=PEOPLE.people[:1], groups=(), owners=(), same=(), made=("newcomer", "correct horse battery"), forms=people_forms(NAMES, [], ["dev"])
)  # fmt: skip
#: refused, with what was sent
SAME_SENT = FORMS["same"]({"do": "same", "one": "steward", "other": HOSTILE, "reason": ""})
PEOPLE_NO_MATCH = replace(
    PEOPLE, people=(), forms=people_forms(NAMES, [HOSTILE], ["dev"], SAME_SENT), problem=SAME_SENT.problem,
    search=replace(PEOPLE.search, query=HOSTILE, active=(ActiveFilter(label=HOSTILE, url="/ui/people"),), filters=(Filter(name="role", label="Role", choices=(Choice(value="", label="Any role", selected=True),)),)),
)  # fmt: skip

TOKEN = TokenInfo(
    token_id=1, name="orders CI", username="steward", scope="write", registry="prod", subject_pattern="orders-*", state="live", created_at=ago(days=3), expires_at=ago(days=-87),
    revoked_at=None, last_used_at=ago(minutes=2), last_used_from="10.1.2.3",
)  # fmt: skip
TOKENS = TokenPage(
    frame=own("API tokens"), form=TokenForm(), everybody=True, other_url="/ui/tokens",
    tokens=(TOKEN, replace(TOKEN, name=HOSTILE, username=HOSTILE, subject_pattern=HOSTILE, state="revoked", revoked_at=ago(days=1), last_used_at=None, last_used_from="")),
)  # fmt: skip
TOKENS_EMPTY = replace(TOKENS, tokens=(), everybody=False, other_url="")
TOKENS_MADE = replace(
    TOKENS, tokens=(TOKEN,), everybody=False, made=IssuedToken(1, "sd_" + "a" * 43, expires_at=ago(days=-90))
)
TOKENS_REFUSED = replace(
    TOKENS, form=TokenForm({"name": "", "scope": "write", "subject_pattern": HOSTILE, "days": "1.5"})
)
