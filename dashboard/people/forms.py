"""The forms on the pages of people and of tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final

from django import forms

from dashboard.components.forms import CodeField, NameChoiceField, ServiceForm, fill_choices
from dashboard.components.translation import later, later_filled
from registry.access import services
from registry.access.roles import ROLES, SCOPE_WORDS
from registry.access.tokens import DEFAULT_DAYS, MAX_DAYS
from registry.errors import Conflict, InvalidInput, NotFound
from registry.promotions.reviews.linked_accounts import state_same_person, withdraw_same_person

MANAGE: Final = "people.manage"


class PeopleForm(ServiceForm):
    """A form on the people page, identified by `do` in the POST.

    A form with a `title` is below the lists. The others are buttons in rows; `loses` says what they remove.
    """

    permission = MANAGE
    refusals = (Conflict, InvalidInput, NotFound)
    do: ClassVar[str]
    title: ClassVar[str] = ""
    loses: ClassVar[str] = ""


def _person(label: str = later("Person")) -> NameChoiceField:
    return NameChoiceField(label=label)


def _group() -> NameChoiceField:
    return NameChoiceField(label=later("Group"))


class _ScopedForm(PeopleForm):
    registry = NameChoiceField(label=later("Registry"), empty_label=later("all"))
    subject_pattern = CodeField(
        label=later("Subjects"), initial="*", required=False, help_text=later("A pattern such as orders-*.")
    )


class _RoleForm(_ScopedForm):
    role = forms.ChoiceField(label=later("Role"), choices=[(role, role) for role in ROLES])
    label = later("Grant role")
    success = later("Role granted.")


class AddPersonForm(PeopleForm):
    """A form that creates an account; the result is its password."""

    do, service = "add", staticmethod(services.add_person)
    title, label, success = later("Add a person"), later("Add person"), later("Person added.")

    username = forms.CharField(label=later("Username"))


class GrantForm(_RoleForm):
    """A form that grants a role to a person."""

    do, service = "grant", staticmethod(services.grant)
    title = later("Grant a role to a person")

    username = _person()
    field_order = ("username", "role", "registry", "subject_pattern")


class EmailForm(PeopleForm):
    """A form that sets a person's email address."""

    do, service = "mail", staticmethod(services.set_email)
    title = later("Set a person’s email address")
    label, success = later("Save address"), later("Email address saved.")

    username = _person()
    email = forms.CharField(
        label=later("Email address"), required=False, help_text=later("Leave empty to send no email.")
    )


class MakeGroupForm(PeopleForm):
    """A form that creates a group."""

    do, service = "make_group", staticmethod(services.make_group)
    title, label, success = later("Create a group"), later("Create group"), later("Group created.")

    name = forms.CharField(label=later("Name"))


class OwnerForm(_ScopedForm):
    """A form that makes a person an owner."""

    do, service = "own", staticmethod(services.add_owner)
    title, label, success = later("Add a person as owner"), later("Add owner"), later("Owner added.")

    username = _person()
    field_order = ("username", "registry", "subject_pattern")


class SamePersonForm(PeopleForm):
    """A form that links two accounts of one person."""

    do, service = "same", staticmethod(state_same_person)
    title = later("Link two accounts of the same person")
    label, success = later("Link accounts"), later("Accounts linked.")

    one = _person(later("Account"))
    other = _person(later("Other account of the same person"))
    reason = forms.CharField(
        label=later("Reason"),
        help_text=later(
            "Recorded in the audit log. After this, neither account can approve what the other one requested."
        ),
    )


class GroupGrantForm(_RoleForm):
    """A form that grants a role to a group."""

    do, service = "grant_to_group", staticmethod(services.grant_to_group)
    title = later("Grant a role to a group")

    group = _group()
    field_order = ("group", "role", "registry", "subject_pattern")


class JoinForm(PeopleForm):
    """A form that adds a person to a group."""

    do, service = "join", staticmethod(services.add_member)
    title, label, success = later("Add a person to a group"), later("Add member"), later("Member added.")

    group = _group()
    username = _person()


class GroupOwnerForm(_ScopedForm):
    """A form that makes a group an owner."""

    do, service = "own_group", staticmethod(services.add_owner)
    title, label, success = later("Add a group as owner"), later("Add owner"), later("Owner added.")

    group = _group()
    field_order = ("group", "registry", "subject_pattern")


class ShutForm(PeopleForm):
    """A form that deactivates an account."""

    do, service = "shut", staticmethod(services.set_active)
    label, success = later("Deactivate account"), later("Account deactivated.")
    loses = later(
        "This person is signed out and can no longer sign in. Their API tokens are revoked and stay revoked"
        " after a reactivation."
    )
    active: ClassVar[bool] = False

    username = forms.CharField()

    def arguments(self) -> dict[str, Any]:
        """Return the service's arguments."""
        return {**self.cleaned_data, "active": self.active}


class ReopenForm(ShutForm):
    """A form that reactivates an account."""

    do, active = "open", True
    label, success, loses = later("Reactivate account"), later("Account reactivated."), ""


class RevokeForm(PeopleForm):
    """A form that revokes a role of a person."""

    do, service = "revoke", staticmethod(services.revoke_grant)
    label, success = later("Revoke role"), later("Role revoked.")
    loses = later("This person loses the permissions of this role there.")

    grant_id = forms.IntegerField()


class GroupRevokeForm(RevokeForm):
    """A form that revokes a role of a group."""

    do, service = "revoke_from_group", staticmethod(services.remove_group_grant)
    loses = later("All members lose the permissions of this role there.")


class LeaveForm(PeopleForm):
    """A form that removes a person from a group."""

    do, service = "leave", staticmethod(services.remove_member)
    label, success = later("Remove member"), later("Member removed.")
    loses = later("This person loses the roles and subjects that come from the group.")

    group = forms.CharField()
    username = forms.CharField()


class RemoveGroupForm(PeopleForm):
    """A form that removes a group."""

    do, service = "remove_group", staticmethod(services.remove_group)
    label, success = later("Remove group"), later("Group removed.")
    loses = later("Its members lose the group’s roles, and the group no longer owns its subjects.")

    name = forms.CharField()


class DisownForm(PeopleForm):
    """A form that removes an owner."""

    do, service = "disown", staticmethod(services.remove_owner)
    label, success = later("Remove owner"), later("Owner removed.")
    loses = later("This owner is no longer asked about these subjects or notified of changes.")

    ownership_id = forms.IntegerField()


class UnlinkForm(PeopleForm):
    """A form that unlinks two accounts."""

    do, service = "two", staticmethod(withdraw_same_person)
    label, success = later("Unlink accounts"), later("Accounts unlinked.")
    loses = later("After this, each account can approve what the other one requested.")

    statement_id = forms.IntegerField()


FORMS: Final[dict[str, type[PeopleForm]]] = {
    form.do: form
    for form in (
        *(AddPersonForm, GrantForm, EmailForm, MakeGroupForm, OwnerForm, SamePersonForm),
        *(GroupGrantForm, JoinForm, GroupOwnerForm),
        *(ShutForm, ReopenForm, RevokeForm, GroupRevokeForm, LeaveForm, RemoveGroupForm, DisownForm, UnlinkForm),
    )
}


def people_forms(
    people: Iterable[str], groups: list[str], registries: Iterable[str], sent: ServiceForm | None = None
) -> dict[str, ServiceForm]:
    """Return the page's forms by `do`, with their choices; those for groups only if there are groups."""
    page = {do: sent if type(sent) is kind else kind() for do, kind in FORMS.items()}
    names = list(people)
    fill_choices(page.values(), username=names, one=names, other=names, group=groups, registry=registries)
    return {
        do: form for do, form in page.items() if groups or not isinstance(form.fields.get("group"), NameChoiceField)
    }


class TokenForm(ServiceForm):
    """A form that creates a token."""

    service = staticmethod(services.make_token)
    label = later("Create token")

    name = forms.CharField(label=later("Name"), widget=forms.TextInput(attrs={"placeholder": "orders CI"}))
    scope = forms.ChoiceField(
        label=later("Scope"),
        choices=[(name, f"{name}: {words}") for name, words in SCOPE_WORDS.items()],
        initial="read",
        help_text=later("A token never has more rights than you do."),
    )
    registry = NameChoiceField(label=later("Registry"), empty_label=later("all"))
    subject_pattern = CodeField(
        label=later("Subjects"),
        initial="*",
        required=False,
        help_text=later("A pattern such as orders-*. Use * for all subjects."),
    )
    days = forms.IntegerField(
        label=later("Expires after (days)"),
        initial=DEFAULT_DAYS,
        help_text=later_filled(later("Up to %(max_days)s."), max_days=MAX_DAYS),
    )
