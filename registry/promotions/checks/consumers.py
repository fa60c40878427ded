"""Checks about declared clients: who would fail to read or write after the promotion, and who has acknowledged that.

An acknowledgement counts for one plan, as an approval does: when the target moves or the text changes it no longer
counts. It is not part of the plan, so it voids no approval. Where affected clients block, an approval also binds to
what the affected clients declare: one that is declared, changed or withdrawn since voids it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django.db.models import Q

from registry.audit.models import AuditEvent
from registry.errors import SchemaTooCostly, first_few
from registry.formats.base import ParsedSchema
from registry.promotions.models import Acknowledgement, PromotionRequest
from registry.promotions.plan.types import FAIL, PASS, SKIPPED, WARN, Check, Plan, PromotionSpec, Verdict
from registry.subjects.models import Registry, Subject
from registry.subjects.usage.clients import ClientBreak, ClientInfo, breaks_for, clients_of_several, versions_of_clients
from registry.subjects.versions.qualified_names import parse_subject

CLIENTS: Final = "clients"


def checks_of_clients(registry: Registry, subjects: Sequence[str], schemas: Mapping[str, ParsedSchema]) -> list[Check]:
    """Return a check for each subject with declared clients at the target; a constant number of queries.

    Clients that haven't been seen for long don't count, and are mentioned separately.
    """
    names = {parse_subject(subject): subject for subject in subjects if subject in schemas}
    clients = clients_of_several(registry, names.keys()) if names else {}
    history = versions_of_clients(registry, clients)
    return [
        _check(names[name], schemas[names[name]], declared, history.get(name, {}))
        for name, declared in sorted(clients.items(), key=lambda pair: pair[0].qualified)
    ]


def _check(
    subject: str, schema: ParsedSchema, clients: Sequence[ClientInfo], versions: Mapping[int, ParsedSchema]
) -> Check:
    name = f"clients of {subject}"
    there = [client for client in clients if not client.has_lapsed]
    lapsed = len(clients) - len(there)
    quiet = f" {_counted(lapsed)} not seen for a long time." if lapsed else ""
    try:
        hurt = breaks_for(there, schema, versions)
    except SchemaTooCostly as error:
        return Check(CLIENTS, name, SKIPPED, error.message, subject=subject)
    if hurt:
        concerned = tuple(dict.fromkeys(harm.client.name for harm in hurt))
        cure = "Contact their owners before it is applied. Move the clients to a compatible version first."
        sentence = f"{first_few([_described(harm) for harm in hurt], between='; ')}.{quiet}"
        declared = {f"{harm.client.name}: {harm.client.declaration}; {harm.client.contact}" for harm in hurt}
        return Check(
            CLIENTS, name, WARN, sentence, cure, subject=subject, concerned=concerned, asked=len(there),
            facts=tuple(sorted(declared)),
        )  # fmt: skip
    if not there:
        return Check(CLIENTS, name, SKIPPED, f"No declared client was seen recently.{quiet}", subject=subject)
    names = first_few([client.name for client in there])
    return Check(
        CLIENTS, name, PASS, f"Compatible with what {names} declared.{quiet}", subject=subject, asked=len(there)
    )


def _described(harm: ClientBreak) -> str:
    client = harm.client
    contact = f", {client.contact}" if client.contact else ""
    return f"{client.name} ({client.does} version {client.number}{contact}) {harm.sentence}"


def _counted(number: int) -> str:
    return "One client was" if number == 1 else f"{number} clients were"


CONSUMERS: Final = "acknowledged"
#: how the audit's reason begins when somebody withdraws an acknowledgement
TAKEN_BACK: Final = "take back the acknowledgement of"
_NAME: Final = "client acknowledgements"


@dataclass(frozen=True, order=True)
class AffectedClient:
    """A declared client of a subject that the plan breaks."""

    subject: str
    client: str

    @property
    def label(self) -> str:
        """The client with its subject."""
        return f"{self.client} of {self.subject}"


def affected_clients(checks: Iterable[Mapping[str, Any]]) -> tuple[AffectedClient, ...]:
    """Return the clients that the plan breaks, from stored checks."""
    return tuple(
        AffectedClient(str(check.get("subject") or ""), str(name))
        for check in checks
        if check.get("code") == CLIENTS
        for name in check.get("concerned") or ()
    )


def acknowledged_check(
    hurt: Collection[AffectedClient],
    acknowledged: Collection[AffectedClient],
    voided: Collection[AffectedClient] = (),
    *,
    blocks: bool,
) -> list[Check]:
    """Return the check of the acknowledgements for affected clients; none without affected clients.

    `acknowledged` are the clients for which this plan was acknowledged, `voided` those for which only an earlier one
    was.
    """
    if not hurt:
        return []
    left = [consumer for consumer in hurt if consumer not in acknowledged]
    number = len(hurt)
    if not left:
        return [
            Check(
                CONSUMERS,
                _NAME,
                PASS,
                f"Acknowledged for {first_few([consumer.label for consumer in hurt])}.",
                asked=number,
            )
        ]
    lost = sum(consumer in voided for consumer in left)
    void = f" {lost} acknowledgement{'' if lost == 1 else 's'} of an earlier plan no longer count{'s' if lost == 1 else ''}."
    sentence = f"{number - len(left)} of {number} acknowledged. Not yet: {first_few([consumer.label for consumer in left])}.{void if lost else ''}"
    cure = "Ask a contact of each client to check the effects and acknowledge them on the request's page."
    names = tuple(consumer.client for consumer in left)
    verdict: Verdict = FAIL if blocks else WARN
    return [Check(CONSUMERS, _NAME, verdict, sentence, cure, overridable=blocks, concerned=names, asked=number)]


_VERBS: Final = {"INSERT": "declared", "UPDATE": "changed", "DELETE": "withdrew"}


def clients_moved(registry: Registry, old: Mapping[str, Any], new: Plan, since: datetime) -> str:
    """Return who declared, changed or withdrew an affected client since a stored plan, as a sentence; "" if nobody."""
    before, after = (_bound_to(checks) for checks in (old["checks"], [check.to_dict() for check in new.checks]))
    for client in sorted({client for client, _ in before ^ after}):
        event = _last_change(registry, client, since)
        if event is not None:
            at = f"{event.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
            verb = _VERBS[event.operation]
            return f"The plan has changed: {event.actor} {verb} the affected client {client.label} at {at}."
    return ""


def _bound_to(checks: Sequence[Mapping[str, Any]]) -> set[tuple[AffectedClient, str]]:
    """Return the affected clients of stored checks with what each declares."""
    declared = {(str(check.get("subject") or ""), fact) for check in checks for fact in check.get("facts") or ()}
    return {
        (client, fact)
        for client in affected_clients(checks)
        for subject, fact in declared
        if subject == client.subject and fact.startswith(f"{client.client}: ")
    }


def _last_change(registry: Registry, client: AffectedClient, since: datetime) -> AuditEvent | None:
    name = parse_subject(client.subject)
    subjects = Subject.objects.filter(context__registry=registry, context__name=name.context, name=name.subject)
    numbers = list(subjects.values_list("pk", flat=True))
    row = Q(before__name=client.client, before__subject_id__in=numbers)
    row |= Q(after__name=client.client, after__subject_id__in=numbers)
    return AuditEvent.objects.filter(row, table="subjects_client", at__gt=since).first()


def with_rule(plan: Mapping[str, Any], *, blocks: bool) -> dict[str, Any]:
    """Return a stored plan whose check has the verdict of the environment's current rule."""
    return {**plan, "checks": [_ruled(check, blocks=blocks) for check in plan["checks"]]}


def _ruled(check: Mapping[str, Any], *, blocks: bool) -> Mapping[str, Any]:
    if check.get("code") != CONSUMERS or check["verdict"] == PASS:
        return check
    return {**check, "verdict": FAIL if blocks else WARN, "overridable": blocks}


def consumers_check(spec: PromotionSpec, plan: Plan) -> list[Check]:
    """Return the check for a plan that is otherwise complete; one query if a client is affected, else none."""
    hurt = affected_clients([check.to_dict() for check in plan.checks if check.concerned])
    if not hurt:
        return []
    acknowledged, voided = _acknowledgements(spec.request_id, plan.hash) if spec.request_id else (set(), set())
    return acknowledged_check(hurt, acknowledged, voided, blocks=spec.target.clients_block)


def check_of(request: PromotionRequest) -> list[Check]:
    """Return the same check for a request's stored plan; its target must be joined."""
    hurt = affected_clients(request.plan["checks"])
    if not hurt:
        return []
    return acknowledged_check(
        hurt, *_acknowledgements(request.pk, request.plan_hash), blocks=request.target.clients_block
    )


def with_current_acknowledgements(request: PromotionRequest) -> dict[str, Any]:
    """Return the stored plan of a request with the current state of that check."""
    others = [check for check in request.plan["checks"] if check.get("code") != CONSUMERS]
    return {**request.plan, "checks": [*others, *(check.to_dict() for check in check_of(request))]}


def _acknowledgements(request_id: int, plan_hash: str) -> tuple[set[AffectedClient], set[AffectedClient]]:
    """Return the clients for which this plan was acknowledged, and those for which only another one was."""
    rows = Acknowledgement.objects.filter(request_id=request_id).values_list("subject", "client", "plan_hash")
    acknowledged, voided = set[AffectedClient](), set[AffectedClient]()
    for subject, client, said_of in rows:
        (acknowledged if said_of == plan_hash else voided).add(AffectedClient(subject, client))
    return acknowledged, voided
