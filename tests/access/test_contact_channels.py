"""Where people talk: what is a channel, and the channels of groups."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from registry.access.contact_channels import channel_url, clean_channel
from registry.access.models import GroupChannel, Ownership
from registry.access.roles import Actor
from registry.access.selectors import list_groups, owners_of, ownerships_in
from registry.access.services import add_owner, make_group, remove_group, set_group_channel
from registry.audit.models import AuditEvent
from registry.errors import InvalidInput, NotAllowed, NotFound

pytestmark = pytest.mark.requirement("CARD-4")
VALID = {
    "": "",
    " #orders ": "",
    "#größe-1": "",
    "https://chat.example/orders?a=1#x": "https://chat.example/orders?a=1#x",
    "HTTP://chat:8065/team": "HTTP://chat:8065/team",
    "http://[::1]:8065/team": "http://[::1]:8065/team",
    "orders@example.com": "mailto:orders@example.com",
    "a.b+c@host": "mailto:a.b+c@host",
}
INVALID = (
    "javascript:alert(1)", "JAVASCRIPT:alert(1)//https://a", "data:text/html,x", "https://", "https://a b", "https://me:pw@chat.example",
    "https://chat.example\\@evil.example", "//chat.example", "https:///x", "mailto:a@b", "a@b?bcc=c@d", "a@b,c@d", "orders", "#", "# orders",
    "#a\u202eb", "https://a/\u202eb", "#a\nb", "https://a/\0", '#"', "https://a/<b>", "https://a/" + "x" * 300, "@orders", "/ui/home",
    "http://[::1", "https://chat.example:70000/",
)  # fmt: skip


@pytest.mark.parametrize("text", VALID)
def test_a_channel_is_a_url_a_mail_address_or_a_name(text: str) -> None:
    assert clean_channel(text) == text.strip()
    assert channel_url(clean_channel(text)) == VALID[text]


@pytest.mark.parametrize("text", INVALID)
def test_nothing_else_is_a_channel(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        clean_channel(text)
    assert refused.value.details["field"] == "channel"


@pytest.fixture
def admin(person: Callable[[str], Actor]) -> Actor:
    """An admin, and a group that owns subjects."""
    admin = person("admin")
    make_group(name="payments", by=admin)
    make_group(name="silent", by=admin)
    for group in ("payments", "silent"):
        add_owner(subject_pattern="orders-*", group=group, by=admin)
    return admin


def test_a_groups_channel_is_that_of_its_subjects(admin: Actor, django_assert_num_queries) -> None:
    set_group_channel(group="payments", channel=" #payments ", by=admin)
    set_group_channel(group="payments", channel="#pay", by=admin)
    with django_assert_num_queries(1):
        assert owners_of("dev", "orders-value").channels == ("#pay",)
    assert ownerships_in("dev").of("other").channels == ()
    assert [(info.name, info.channel) for info in list_groups()] == [("payments", "#pay"), ("silent", "")]
    events = AuditEvent.objects.filter(table="access_groupchannel").order_by("pk")
    assert [(event.operation, event.actor, event.why) for event in events] == [
        ("INSERT", "admin", "set the channel of the group payments"),
        ("UPDATE", "admin", "set the channel of the group payments"),
    ]
    set_group_channel(group="payments", channel="", by=admin)
    assert not GroupChannel.objects.exists()


def test_only_admins_set_it_and_it_goes_with_its_group(admin: Actor, person: Callable[[str], Actor]) -> None:
    with pytest.raises(NotAllowed):
        set_group_channel(group="payments", channel="#x", by=person("steward"))
    with pytest.raises(NotFound):
        set_group_channel(group="nobody", channel="#x", by=admin)
    with pytest.raises(InvalidInput):
        set_group_channel(group="payments", channel="javascript:x", by=admin)
    set_group_channel(group="payments", channel="#x", by=admin)
    set_group_channel(group="silent", channel="#y", by=admin)
    remove_group(name="payments", by=admin)
    Ownership.objects.all().delete()
    Group.objects.filter(name="silent")._raw_delete(
        using="default"
    )  # as the last release does, which knows no channels
    assert not GroupChannel.objects.exists()


def test_the_page_and_the_api_set_it(admin: Actor, look: Callable[[str], Client], api: Callable[[str], Client]) -> None:
    page = look("admin")
    wrong = page.post("/ui/people/change", {"do": "group_channel", "group": "payments", "channel": "javascript:x"})
    assert (wrong.status_code, "Give the URL of a chat" in wrong.content.decode()) == (422, True)
    assert (
        page.post("/ui/people/change", {"do": "group_channel", "group": "payments", "channel": "#pay"}).status_code
        == 302
    )
    assert "#pay" in page.get("/ui/people").content.decode()
    address, client = "/api/v1/groups/payments", api("admin")
    assert client.patch(address, {"channel": "ftp://x"}, content_type="application/json").status_code == 422
    assert client.patch(address, {"channel": "pay@example.com"}, content_type="application/json").status_code == 204
    assert client.get("/api/v1/groups").json()[0]["channel"] == "pay@example.com"
    assert client.get("/api/v1/owners?registry=dev&subject=orders-value").json()["channels"] == ["pay@example.com"]
    assert api("steward").patch(address, {"channel": "#x"}, content_type="application/json").status_code == 403
