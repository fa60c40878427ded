"""Calling every address as each of the cast, with things there and with things that aren't."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.test import Client

from registry.audit.models import AuditEvent
from tests.conftest import RawClient
from tests.rights.routes import Route

WHO = ("anonymous", "stranger", "reader", "steward", "approver", "admin")
REFUSED = (401, 403)
#: names in addresses → a value that nothing has
ABSENT = {
    "registry": "no-such", "subject": "absent-value", "context": ".absent", "guid": "0" * 8 + "-0000-0000-0000-" + "0" * 12,
    "schema_format": "avro", "schema": "999999",
    "name": "absent", "username": "absent", "namespace": "absent", "resource_id": "absent", "operation": "absent",
    "path": "Absent.path", "project": "absent", "location": "absent", "webhook": "999999", "version": "99", "decision": "",
}  # fmt: skip
#: a body that has what any call asks for; what a call doesn't know it leaves, or refuses after the right was asked
BODY: dict[str, Any] = {"schema": '"string"'}


@dataclass
class Caller:
    """A member of the cast with a session and a token; anonymous has neither."""

    name: str
    session: Client = field(default_factory=RawClient)
    token: str = ""

    def call(self, method: str, path: str, body: Any) -> tuple[int, str, int]:
        """Status and text of the answer, and how many governed rows it changed; whatever it changed is undone.

        A call that doesn't know the usual body's property is made again without it: rights come before all else then.
        """
        answer = self._undone(method, path, body)
        if body == BODY and answer[0] == 400 and "There is no property 'schema'" in answer[1]:
            return self._undone(method, path, {})
        return answer

    def _undone(self, method: str, path: str, body: Any) -> tuple[int, str, int]:
        with transaction.atomic():
            before = AuditEvent.objects.count()
            answer = self._call(method, path, body)
            changes = AuditEvent.objects.count() - before
            transaction.set_rollback(True)
        text = "" if getattr(answer, "streaming", False) else answer.content.decode(errors="replace")
        place = answer.get("Location", "")
        leads_to_sign_in = answer.status_code == 302 and "/accounts/login/" in place
        return 401 if leads_to_sign_in else answer.status_code, text, changes

    def _call(self, method: str, path: str, body: Any) -> Any:
        if path.startswith("/ui/"):
            client = RawClient(raise_request_exception=False)
            client.cookies.load({name: morsel.value for name, morsel in self.session.cookies.items()})
            return client.generic(
                method,
                path,
                "&".join(f"{key}={value}" for key, value in body.items()),
                "application/x-www-form-urlencoded",
            )
        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        client = RawClient(headers=headers, raise_request_exception=False)
        sent = "" if method in ("GET", "DELETE") else json.dumps(body)
        return client.generic(method, path, sent, "application/json")


def row_of(route: Route) -> str:
    """The row of the data file that an address belongs to.

    A slash at the end changes nothing, and Confluent's addresses stand also below a registry and below a context.
    """
    path = route.template.rstrip("/") or "/"
    if path.startswith("/registries/%(registry)s"):
        path = path.removeprefix("/registries/%(registry)s") or "/"
    if re.match(r"/contexts/%\(context\)s/", path):
        path = path.removeprefix("/contexts/%(context)s")
    return path


def address(route: Route, present: dict[str, str], *, absent: bool = False) -> str:
    """The address filled in; where `absent`, its last name (but those that choose an action) is of nothing there."""
    values = {name: present[name] for name in route.names}
    if absent:
        last = [name for name in route.names if name not in ("decision", "schema_format", "project", "location")][-1]
        values[last] = ABSENT.get(last, "999999")
    return route.template % values


def in_words(text: str, values: dict[str, str]) -> str:
    """A text without what differs anyway: names that were asked for, numbers, tokens of forms and times."""
    for value in sorted({*values.values(), *ABSENT.values()}, key=len, reverse=True):
        if len(value) > 1 and not value.isdigit():
            text = text.replace(value, "X")
    return re.sub(r'name="csrfmiddlewaretoken" value="[^"]*"|\d+|next=[^"]*', "", text)
