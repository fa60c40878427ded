"""Which names and addresses an account may have, and which count as the same."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount, SocialLogin
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import Group
from django.contrib.sessions.backends.db import SessionStore
from django.core.cache import cache
from django.core.checks import Tags, run_checks
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.test import Client, RequestFactory

from dashboard.people.oidc import IssuerAccounts
from dashboard.people.sign_in import ClosedAdapter
from registry.access.account_names import RESERVED, address_key, checked_username, issued_email
from registry.access.models import User
from registry.access.roles import Actor
from registry.access.services import add_person, ensure_person, make_group, set_email
from registry.audit.models import AuditEvent
from registry.errors import Conflict, InvalidInput
from tests.conftest import RawClient
from tests.services_plugin import as_owner

pytestmark = pytest.mark.requirement("CARD-4")
LOGIN = "/ui/accounts/login/"
INDEX = "one_username_ignoring_case"


MIGRATION: Any = import_module("registry.access.migrations.0005_account_names")


def make_index_again() -> None:
    with as_owner(), connection.schema_editor(atomic=False) as editor:
        editor.execute(f"DROP INDEX IF EXISTS {INDEX}")
        MIGRATION.make_index(apps, editor)


@pytest.fixture
def pair(registries: None, system: Actor) -> Iterator[dict[str, str]]:
    """Two accounts whose names differ only in case, from before the index, with their passwords."""
    cache.clear()
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX {INDEX}")
    passwords = {}
    for name in ("steward", "STEWARD"):
        passwords[name] = f"the password of {name}"
        user = User(username=name)
        user.set_password(passwords[name])
        user.save()
    yield passwords
    cache.clear()
    User.objects.filter(username__in=passwords).delete()
    make_index_again()


def sign_in(name: str, password: str) -> int:
    return RawClient().post(LOGIN, {"login": name, "password": password}).status_code


def test_a_name_in_other_letters_is_taken(api: Callable[[str], Client], person: Callable[[str], Actor]) -> None:
    person("steward")
    answer = api("admin").post("/api/v1/people", {"username": "STEWARD"}, content_type="application/json")
    assert (answer.status_code, answer.json()["details"]) == (409, {"field": "username"})
    assert "too similar to the existing username steward" in answer.json()["message"]
    assert not User.objects.filter(username="STEWARD").exists()


def test_the_page_says_at_the_field_that_a_name_is_taken(look: Callable[[str], Client]) -> None:
    answer = look("admin").post("/ui/people/change", {"do": "add", "username": "Admin"})
    assert answer.status_code == 409 or answer.status_code == 422
    assert "too similar to the existing username admin" in answer.content.decode()


def test_the_database_takes_a_name_once(registries: None) -> None:
    User.objects.create(username="ann")
    with pytest.raises(IntegrityError), transaction.atomic():
        User.objects.create(username="Ann")


def test_the_first_start_makes_no_second_account_of_a_name(registries: None, system: Actor) -> None:
    User.objects.create(username="Admin")
    assert ensure_person(username="admin", role="admin", by=system) is None
    assert [user.role_grants.count() for user in User.objects.all()] == [0]


@pytest.mark.django_db(transaction=True)
def test_two_accounts_of_one_name_sign_in(pair: dict[str, str]) -> None:
    assert {name: sign_in(name, password) for name, password in pair.items()} == dict.fromkeys(pair, 302)
    assert sign_in("steward", pair["STEWARD"]) == 200
    assert sign_in("Steward", pair["steward"]) == 200, "neither is that name exactly"


def test_a_name_in_other_letters_signs_in_where_it_fits_one_account(registries: None, system: Actor) -> None:
    cache.clear()
    password = ensure_person(username="steward", role="steward", by=system) or ""
    assert sign_in("Steward", password) == 302


@pytest.mark.django_db(transaction=True)
def test_the_upgrade_keeps_accounts_of_one_name(pair: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    make_index_again()
    assert "differ only in case: STEWARD, steward" in caplog.text
    User.objects.create(username="ann")
    with pytest.raises(IntegrityError), transaction.atomic():
        User.objects.create(username="ANN")
    assert User.objects.filter(username__iexact="steward").count() == 2


@pytest.mark.django_db(transaction=True)
def test_the_check_names_active_accounts_of_one_name(pair: dict[str, str]) -> None:
    (warning,) = run_checks(tags=[Tags.database], databases=["default"])
    assert warning.id == "schemadesk.W003" and warning.msg.endswith(": STEWARD, steward.")
    assert "Deactivate those that nobody needs" in (warning.hint or "")
    User.objects.filter(username="STEWARD").update(is_active=False)
    assert run_checks(tags=[Tags.database], databases=["default"]) == []


@pytest.mark.parametrize(
    "name",
    ["\u0430dmin", "adm\u0456n", "\u03bfps", "\u0645admin", "te\u0430m", "\uff41dmin", "\u0660\u0967"],
)
def test_a_name_keeps_to_one_script(person: Callable[[str], Actor], name: str) -> None:
    with pytest.raises(InvalidInput, match=r"mixes letters|Write the username as") as refused:
        add_person(username=name, by=person("admin"))
    assert refused.value.details["field"] == "username"


@pytest.mark.parametrize(
    "name",
    ["ann", "Jos\u00e9-2", "\u0418\u0432\u0430\u043d", "\u5c71\u7530\u3055\u3093", "\ud55c\uae00kim", "a.b+c@x_1"],
)
def test_names_of_one_language_are_allowed(name: str) -> None:
    assert checked_username(f" {name} ") == name


@pytest.mark.parametrize("name", ["\u0430\u0440\u0435", "\u0251pe", "\u0391\u03a1\u0395", "APE"])
def test_a_name_that_looks_like_another_is_taken(person: Callable[[str], Actor], name: str) -> None:
    User.objects.create(username="ape")
    with pytest.raises(Conflict, match="too similar to the existing username ape"):
        add_person(username=name, by=person("admin"))


def system_names() -> set[str]:
    """The names that the product's own code acts under, where a username could be the same."""
    calls = (
        node
        for folder in ("registry", "dashboard", "benchmarks")
        for path in (Path(settings.BASE_DIR) / folder).rglob("*.py")
        if "ctor(" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("system_actor", "Actor")
    )
    values = (next(iter([*call.args, *(each.value for each in call.keywords)]), None) for call in calls)
    names = {value.value for value in values if isinstance(value, ast.Constant)}
    return {name for name in names if " " not in name}


def test_no_account_has_the_name_of_a_system_actor(person: Callable[[str], Actor]) -> None:
    names = system_names()
    assert {"anonymous", "prepare", "schedule"} <= names
    assert names <= RESERVED
    for name in (*names, "System", "OPERATOR", "ROOT"):
        with pytest.raises(InvalidInput, match="reserved"):
            add_person(username=name, by=person("admin"))


def test_groups_have_names_that_differ(person: Callable[[str], Actor]) -> None:
    make_group(name="orders", by=person("admin"))
    for name in ("Orders", "\u043erders"):
        with pytest.raises(Conflict, match="too similar to the existing group orders"):
            make_group(name=name, by=person("admin"))
    with pytest.raises(Conflict, match="already exists"):
        make_group(name="orders", by=person("admin"))
    assert Group.objects.count() == 1


def first_sign_in(username: str, email: object = "") -> User:
    """What a first sign-in through the issuer makes of its claims."""
    user = User(username=username)
    try:
        ClosedAdapter().clean_username(username)
    except ValidationError:
        user.username = ""  # as allauth does
    login = SocialLogin(user=user, account=SocialAccount(provider="oidc-x", uid=f"subject of {username}"))
    login.claims = {"email": email}
    request = RequestFactory().get("/")
    request.session = SessionStore()
    return IssuerAccounts().save_user(request, login)


@pytest.mark.parametrize("name", ["Steward", "system", "\u0455teward", "ste\u0430rd"])
def test_an_issuer_gives_no_name_that_imitates_another(person: Callable[[str], Actor], name: str) -> None:
    person("steward")
    made = first_sign_in(name)
    assert made.username and made.username.lower() not in {"steward", "system"} and made.username.isascii()
    event = AuditEvent.objects.filter(table="access_user", operation="INSERT").latest("pk")
    assert event.actor == made.username, "the audit has the account's name, not what the issuer claims"


SAME = [
    "m@x.com\u200b",
    "m@x\u00ad.com",
    "m@x.c\u2060om",
    "\u200bm@x.com",
    "m@x.com\u3164",
    "m@x.com\ufe0f",
    "M@X.COM.",
]


@pytest.mark.parametrize("address", [*SAME, "m@x\u3002com"])
def test_invisible_characters_make_no_second_address(address: str) -> None:
    assert address_key(address) == "m@x.com"


def test_both_ways_to_write_a_domain_are_one_address() -> None:
    assert (
        address_key("Jos\u00e9@M\u00fcnchen.de")
        == address_key("jos\u00e9@xn--mnchen-3ya.de")
        == "jos\u00e9@xn--mnchen-3ya.de"
    )
    assert address_key("") == ""
    assert address_key("a@" + "\u00fc" * 70 + ".de") != address_key("a@" + "\u00fc" * 71 + ".de")


@pytest.mark.parametrize("address", [*SAME[:-1], "m@x .com", "m@x.com\x00", "m@x.com\u0378"])
def test_an_address_has_no_invisible_characters(person: Callable[[str], Actor], address: str) -> None:
    admin = person("admin")
    with pytest.raises(InvalidInput, match=r"invisible character \(U\+") as refused:
        set_email(username="admin", email=address, by=admin)
    assert refused.value.details["field"] == "email"


@pytest.mark.parametrize(
    ("claim", "stored"),
    [
        ("m@x.com", "m@x.com"),
        ("m@x.com\u200b", "m@x.com"),
        ("\u212a@x.com", "k@x.com"),
        ("nobody", ""),
        (7, ""),
        (None, ""),
    ],
)
def test_an_issuer_s_address_is_stored_as_it_is_compared(registries: None, claim: object, stored: str) -> None:
    assert first_sign_in("ann", claim).email == issued_email(claim) == stored
