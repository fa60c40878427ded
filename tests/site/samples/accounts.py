"""Sample pages: the inbox, subscriptions, webhooks, people, tokens."""

from __future__ import annotations

from dataclasses import replace

from dashboard.components.badges import Look
from dashboard.components.widgets import (
    Action,
    ActiveFilter,
    Choice,
    Crumb,
    Fact,
    Filter,
    Frame,
    Paging,
    Problem,
    SearchBox,
    Section,
)
from dashboard.notifications.forms import DigestForm, SubscribeForm, WebhookForm
from dashboard.notifications.page import (
    DeliveryRow,
    InboxPage,
    StopPage,
    SubscriptionsPage,
    WebhookFormPage,
    WebhookPage,
    WebhookRow,
    WebhooksPage,
)
from dashboard.people.forms import FORMS, TokenForm, people_forms
from dashboard.people.views import PeoplePage, TokenPage
from registry.access.selectors import GrantInfo, GroupInfo, OwnershipInfo, PersonInfo, TokenInfo
from registry.access.services import IssuedToken
from registry.notifications.digests import DigestInfo
from registry.notifications.selectors import AttemptInfo, DeliveryInfo, EntryInfo, SubscriptionInfo, WebhookInfo
from registry.promotions.reviews.linked_accounts import SamePersonInfo
from tests.site.samples.cast import ARABIC, HOSTILE, LONG, ago, frame

IDLE = Paging(first=1, last=3)
REFUSED = Problem(what="That isn’t possible", where=HOSTILE, cure="Give a name of at most 150 characters.")


def own(title: str, *crumbs: Crumb, unread: int = 2) -> Frame:
    """The frame of a page that belongs to a person and to no registry."""
    return replace(frame(title, Section.NONE, *crumbs, current=None), unread=unread)


def notice(number: int, text: str, **more: object) -> EntryInfo:
    """A notice of the inbox."""
    base = EntryInfo(
        id=number, event="promotion.requested", title="Approval is asked for", registry="prod", subject="orders-value", text=text,
        url="/gallery/promotion", at=ago(minutes=number), read=False,
    )  # fmt: skip
    return replace(base, **more)  # type: ignore[arg-type]


INBOX = InboxPage(
    frame=own("Inbox"),
    entries=(
        notice(9, "steward asks to promote orders-value version 3 to prod."),
        notice(8, HOSTILE, subject=HOSTILE, registry=HOSTILE, url=""),
        notice(2, "customers-value version 1 is live in prod.", title="Promoted", read=True, at=ago(days=3)),
    ),
    unread=2, only_unread=False, paging=Paging(first=1, last=3, next_url="?before=2"), newest=9, back="/ui/inbox",
)  # fmt: skip
INBOX_EMPTY = replace(INBOX, frame=own("Inbox", unread=0), entries=(), unread=0, paging=IDLE)
INBOX_READ = replace(INBOX_EMPTY, only_unread=True)

DIGEST = DigestInfo(
    every="daily", hour=7, zone="Europe/Berlin", next_at=ago(hours=-9), address="steward@example.com", is_sent=True,
    last_state="failed", last_at=ago(hours=15), last_error="The mail server can't be used.",
)  # fmt: skip
STOP = StopPage(
    frame=own("Turn off the email digest?"),
    stop=Action(label="Turn off digest", url="/ui/digest/stop/x", method="post", tone="primary"),
)
STOPPED = StopPage(frame=own("Email digest turned off"))
SUBSCRIPTIONS = SubscriptionsPage(
    frame=own("Subscriptions", Crumb(label="Inbox", url="/ui/inbox")),
    subscriptions=(
        SubscriptionInfo(1, "version.registered", "A version was registered", "prod", "orders-*", wanted=True),
        SubscriptionInfo(2, "finding.opened", "Drift was found", "*", HOSTILE, wanted=False),
    ),
    form=SubscribeForm(), digest=DIGEST, digest_form=DigestForm(initial={"every": "daily", "hour": 7}),
    defaults=(Fact(label="Approval is asked for", value="who may approve it"),),
)  # fmt: skip
SUBSCRIPTIONS_EMPTY = replace(SUBSCRIPTIONS, subscriptions=(), digest=replace(DIGEST, is_sent=False, next_at=None))
#: refused, with what was sent
SUBSCRIBE_SENT = SubscribeForm({"event": "*", "registry_pattern": HOSTILE, "subject_pattern": ""})
SUBSCRIPTIONS_REFUSED = replace(
    SUBSCRIPTIONS, digest=replace(DIGEST, address=""), form=SUBSCRIBE_SENT, problem=SUBSCRIBE_SENT.problem
)

ON, OFF = Look("ok", "circle-check", "On"), Look("care", "ban", "Turned off")
HOOK = WebhookInfo(
    id="wh_01J", name="ci", owner="steward", url="https://hooks.example.com/" + "a" * 300, host="hooks.example.com", kind="signed", events=("version.registered",),
    registry_pattern="prod", subject_pattern="orders-*", active=True, key_version=1, disabled_reason="", failing_since=None, created_at=ago(days=3),
)  # fmt: skip
HOOK_ROW = WebhookRow(
    info=HOOK, kind="Signed JSON events, for a program", events="3 events", scope="prod, orders-*", state=ON
)
WEBHOOKS = WebhooksPage(
    frame=own("Webhooks"),
    rows=(
        HOOK_ROW,
        WebhookRow(info=replace(HOOK, name=HOSTILE, host=LONG, owner=HOSTILE, active=False), kind="Messages, for Slack or Mattermost", events="all events", scope=HOSTILE, state=OFF),
    ),
    add=Action(label="Add a webhook", url="/ui/webhooks", tone="primary", icon="plus"),
)  # fmt: skip
WEBHOOKS_EMPTY = replace(WEBHOOKS, rows=())
WEBHOOK_FORM = WebhookFormPage(
    frame=own("Add a webhook", Crumb(label="Webhooks", url="/ui/webhooks")), url="/ui/webhooks", back_url="/ui/webhooks",
    form=WebhookForm(initial={"name": HOSTILE, "url": "http://10.0.0.1/", "events": ["version.registered"]}),
)  # fmt: skip
WEBHOOK_FORM_REFUSED = replace(WEBHOOK_FORM, form=WebhookForm({"name": "", "url": HOSTILE, "kind": "slack"}))
DELIVERY = DeliveryInfo(
    id=2, message_id="msg_01J", event="version.registered", text="orders-value version 3 in prod", state="delivered", attempts=1, created_at=ago(minutes=4),
    next_attempt_at=None, finished_at=ago(minutes=4), tries=(AttemptInfo(ago(minutes=4), 200, "", "", 0.2),),
)  # fmt: skip
RETRIED = replace(
    DELIVERY, id=1, text=HOSTILE, state="failed", next_attempt_at=ago(minutes=-9),
    tries=(AttemptInfo(ago(minutes=3), 500, "", HOSTILE, 2.0), AttemptInfo(ago(minutes=2), None, "No answer within 10 s", "", 10.0)),
)  # fmt: skip
WEBHOOK = WebhookPage(
    frame=own("ci", Crumb(label="Webhooks", url="/ui/webhooks")), webhook=replace(HOOK_ROW, info=replace(HOOK, failing_since=ago(hours=2))), refused="",
    deliveries=(
        DeliveryRow(info=DELIVERY, state=Look("ok", "circle-check", "Delivered"), is_done=True),
        DeliveryRow(info=RETRIED, state=Look("breaks", "octagon-x", "Failed"), is_done=False),
    ),
    paging=Paging(first=1, last=2, next_url="?before=1"),
)  # fmt: skip
WEBHOOK_NEW = replace(
    WEBHOOK, secret="whsec_" + "A" * 43, webhook=replace(HOOK_ROW, info=replace(HOOK, key_version=2)), deliveries=(), paging=Paging(first=0, last=0),
)  # fmt: skip
WEBHOOK_OFF = replace(
    WEBHOOK, refused="Only its owner or an admin may.",
    webhook=replace(HOOK_ROW, info=replace(HOOK, active=False, disabled_reason="Every attempt of five days failed: " + HOSTILE), state=OFF),
)  # fmt: skip

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
    groups=(GroupInfo("data office", ("steward", HOSTILE), GRANTS[:1], "#data-office"),),
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
