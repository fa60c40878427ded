"""The declared clients of a subject: who reads and writes it, and how a new schema affects them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from itertools import zip_longest
from typing import Any, Final

from django.db.models import OuterRef, Subquery
from django.utils import timezone

from registry import hooks
from registry.access.roles import Actor, refusal, require
from registry.access.selectors import ContactPerson, people_named
from registry.audit.context import record
from registry.errors import (
    ClientNotFound,
    InvalidInput,
    InvalidReference,
    InvalidSchema,
    NotAllowed,
    SchemaTooCostly,
    VersionNotFound,
    first_few,
)
from registry.formats.assessment import ClientAnswer
from registry.formats.base import Answer, ParsedSchema
from registry.frozen_rows import row_info
from registry.subjects.engine import schema_engine
from registry.subjects.models import Client, Registry, SchemaVersion, Subject
from registry.subjects.models.registries import MAX_CONTACT, MAX_FIELD, MAX_FIELDS, MAX_NAME
from registry.subjects.registration.locks import retried
from registry.subjects.usage.evidence import Evidence
from registry.subjects.versions.lookup import among, get_registry, get_subject
from registry.subjects.versions.parsed_schemas import parser_of
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import MAX_VERSION

#: a client that hasn't been seen for this long may no longer exist
LAPSES: Final = timedelta(days=90)


@dataclass(frozen=True)
class ClientInfo:
    """A client of a subject; `version` is None if it uses the newest, `number` is its current version.

    `has_lapsed`: it hasn't been seen for so long that it may no longer exist.
    """

    name: str
    reads: bool
    writes: bool
    version: int | None
    number: int | None
    fields: tuple[str, ...]
    contact: str
    declared_at: datetime
    declared_by: str
    seen_at: datetime
    has_lapsed: bool

    @property
    def does(self) -> str:
        """What it does with the data, in words."""
        return "reads and writes" if self.reads and self.writes else "reads" if self.reads else "writes"

    @property
    def declaration(self) -> str:
        """What it declared, in words, without the contact."""
        version = "newest version" if self.version is None else f"version {self.version}"
        return f"{self.does} {version}{', fields ' if self.fields else ''}{', '.join(self.fields)}"


def clients_of(registry: Registry, subject: SubjectName) -> list[ClientInfo]:
    """Return the clients of a subject by name; one query."""
    return clients_of_several(registry, [subject]).get(subject, [])


def clients_of_several(registry: Registry, subjects: Collection[SubjectName]) -> dict[SubjectName, list[ClientInfo]]:
    """Return the clients of each subject that has any, by name; one query."""
    newest = SchemaVersion.objects.filter(subject=OuterRef("subject"), deleted_at=None).order_by("-version")
    rows = Client.objects.filter(
        subject__context__registry=registry,
        subject__context__name__in={name.context for name in subjects},
        subject__name__in={name.subject for name in subjects},
    ).select_related("subject__context")
    now, clients = timezone.now(), dict[SubjectName, list[ClientInfo]]()
    for row in rows.annotate(newest=Subquery(newest.values("version")[:1])).order_by("name"):
        name = SubjectName(row.subject.context.name, row.subject.name)
        if name in subjects:
            clients.setdefault(name, []).append(_info(row, row.newest, now))
    return clients


def _info(row: Client, newest: int | None, now: datetime) -> ClientInfo:
    return row_info(
        ClientInfo,
        row,
        number=newest if row.version is None else row.version,
        fields=tuple(row.fields),
        has_lapsed=row.seen_at < now - LAPSES,
    )


#: the clients of a version that are listed one by one
SHOWN: Final = 20


def client_evidence(registry: Registry, subject: SubjectName, versions: Sequence[int]) -> Mapping[int, list[Evidence]]:
    """Return the clients' evidence on each version, for `registry.subjects.usage.evidence`; one query."""
    evidence: dict[int, list[Evidence]] = {number: [] for number in versions}
    for client in clients_of(registry, subject):
        if client.number in evidence:
            evidence[client.number].append(_evidence(client))
    return {number: [*items[:SHOWN], *_rest(items)] for number, items in evidence.items()}


def _rest(items: Sequence[Evidence]) -> list[Evidence]:
    """Return one line for those beyond the first ones; in use if one of them is."""
    rest = items[SHOWN:]
    if not rest:
        return []
    is_used = any(item.in_use == "yes" for item in rest)
    return [Evidence("clients", "yes" if is_used else "unknown", f"{len(rest)} other clients do too.")]


def _evidence(client: ClientInfo) -> Evidence:
    follows = ", which uses the newest version," if client.version is None else ""
    ask = f" Ask {client.contact}." if client.contact else ""
    if client.has_lapsed:
        sentence = (
            f"{client.name}{follows} {client.does} it (last declared on {client.seen_at.astimezone(UTC):%Y-%m-%d})."
        )
        return Evidence("clients", "unknown", f"{sentence}{ask}", as_of=client.seen_at)
    return Evidence("clients", "yes", f"{client.name}{follows} {client.does} it.{ask}", as_of=client.seen_at)


#: the clients in a report; incompatible ones come first
MAX_CLIENTS: Final = 100
#: what a client does → the level whose report shows its breaks, and their wording
_SIDES: Final = (
    ("reads", "FORWARD_TRANSITIVE", "can't read data of this version"),
    ("writes", "BACKWARD_TRANSITIVE", "writes data that this version can't read"),
)
_WORST_FIRST: Final = ("no", "unknown", "yes")
Versions = Mapping[int, ParsedSchema]


@dataclass(frozen=True)
class ClientBreak:
    """A break for a client in one direction, in words."""

    client: ClientInfo
    side: str
    sentence: str


def breaks_for(clients: Iterable[ClientInfo], schema: ParsedSchema, versions: Versions) -> list[ClientBreak]:
    """Return the breaks of each client under the schema; skips clients whose version doesn't exist.

    Raises SchemaTooCostly.
    """
    there = [client for client in clients if client.number in versions]
    harms = [harm for side in _SIDES for harm in _on(side, schema, there, versions)]
    unreadable = {harm.client.name for harm in harms if harm.side == "reads"}
    readers = [client for client in there if client.reads and client.fields and client.name not in unreadable]
    return [*harms, *_without_fields(readers, schema, versions)]


def _on(
    side: tuple[str, str, str], schema: ParsedSchema, clients: Sequence[ClientInfo], versions: Versions
) -> list[ClientBreak]:
    does, level, verb = side
    concerned = [client for client in clients if getattr(client, does)]
    numbers = sorted({client.number for client in concerned if client.number is not None})
    if not numbers:
        return []
    report = schema_engine.check(schema, [(number, versions[number]) for number in numbers], level)
    first: dict[int, str] = {}
    for item in report.breaks:
        first.setdefault(item.against_version, f"{item.message} at {item.named_path or 'its root'}")
    return [
        ClientBreak(client, does, f"{verb}: {first[client.number]}")
        for client in concerned
        if client.number is not None and client.number in first
    ]


def _without_fields(clients: Sequence[ClientInfo], schema: ParsedSchema, versions: Versions) -> list[ClientBreak]:
    """Return the clients that can read the new data but use fields that it no longer has."""
    there = {item.key for item in _fields_in(schema)} if clients else set()
    harms = []
    for client in clients:
        used = [item for item in _fields_in(versions[client.number or 0]) if any(map(item.is_used_by, client.fields))]
        gone = {item.key: item for item in used if item.key not in there}
        # fields inside a removed field are removed with it
        removed = [item for key, item in gone.items() if key[:-1] not in gone]
        if removed:
            harms.append(ClientBreak(client, "reads", _removed(removed)))
    return harms


def _removed(fields: Sequence[_SchemaField]) -> str:
    if len(fields) > 1:
        return f"reads {first_few([item.path for item in fields])}, which are removed"
    default = fields[0].default
    effect = "new data doesn't have it" if default is None else f"it will always read the default {default[:100]}"
    return f"reads {fields[0].path}, which is removed: {effect}"


#: the most fields that a sentence names
MAX_NAMED: Final = 5
#: the row limit of an outline
_LONGEST_OUTLINE: Final = 2_000
_Key = tuple[int | str, ...]


@dataclass(frozen=True)
class _SchemaField:
    """A field of a version, as clients declare it. `path` is without the root's name, `whole` with it.

    `key` identifies the field and its ancestors in data: by numbers in Protobuf, otherwise by names.
    """

    path: str
    whole: str
    key: _Key
    default: str | None
    has_parts: bool

    def is_used_by(self, declared: str) -> bool:
        """Return whether a client's path is this field, contains it, or points into a value without a schema."""
        sought = _plain(declared)
        return any(
            mine == sought or mine.startswith(f"{sought}.") or (not self.has_parts and sought.startswith(f"{mine}."))
            for mine in (_plain(self.path), _plain(self.whole))
        )


def is_part_of_field(path: str, declared: str) -> bool:
    """Return whether a client's path is this field, a part of it or a parent of it; the record's name may be omitted."""
    sought = _plain(declared)
    return any(
        mine == sought or mine.startswith(f"{sought}.") or sought.startswith(f"{mine}.")
        for mine in (_plain(path), _plain(path.partition(".")[2]))
        if mine
    )


def _plain(path: str) -> str:
    """Return a path without the marks of arrays and maps, which people omit."""
    return path.replace("[]", "").replace("{}", "")


def _fields_in(schema: ParsedSchema) -> list[_SchemaField]:
    """Return the fields of a schema, nested ones after their parent. Raises SchemaTooCostly."""
    rows = schema_engine.outline(schema)
    around: list[tuple[str, _Key]] = []
    fields, root = [], ""
    for row, after in zip_longest(rows, rows[1:]):
        del around[row.depth :]
        if not around:
            root = row.path.removesuffix(f".{row.name}")
        # field numbers are unique per message, so its name is part of the key; another root's name isn't
        path, outer = around[-1] if around else (root, () if row.number is None else (root,))
        key = (*outer, _plain(row.path.removeprefix(path)).lstrip(".") if row.number is None else row.number)
        around.append((row.path, key))
        has_parts = after is not None and after.depth > row.depth
        fields.append(_SchemaField(row.path.removeprefix(f"{root}."), row.path, key, row.default, has_parts))
    return fields


def versions_of_clients(
    registry: Registry, clients: Mapping[SubjectName, Sequence[ClientInfo]]
) -> dict[SubjectName, dict[int, ParsedSchema]]:
    """Return the versions that clients use, by number, including soft-deleted ones; one query and one for references.

    Unreadable versions are left out: a client's version makes no report and no plan fail.
    """
    if not clients:
        return {}
    numbers = {client.number for group in clients.values() for client in group if client.number is not None}
    rows = list(
        SchemaVersion.objects.filter(
            among(clients.keys(), "subject__"), subject__context__registry=registry, version__in=numbers
        ).select_related("schema", "subject__context")
    )
    versions: dict[SubjectName, dict[int, ParsedSchema]] = {}
    parse = parser_of([row.schema for row in rows])
    for row in rows:
        try:
            schema = parse(row.schema)
        except (InvalidSchema, InvalidReference):
            continue
        versions.setdefault(SubjectName(row.subject.context.name, row.subject.name), {})[row.version] = schema
    return versions


def clients_against(registry: Registry, subject: SubjectName, schema: ParsedSchema) -> tuple[ClientAnswer, ...]:
    """Return whether each declared client is compatible with the schema, at most 100, incompatible ones first.

    One query if there are no clients, otherwise a constant number.
    """
    clients = clients_of(registry, subject)
    versions = versions_of_clients(registry, {subject: clients}).get(subject, {}) if clients else {}
    return client_answers(clients, versions, schema)[:MAX_CLIENTS]


def client_answers(clients: Sequence[ClientInfo], versions: Versions, schema: ParsedSchema) -> tuple[ClientAnswer, ...]:
    """Return whether each client is compatible with the schema, incompatible ones first."""
    try:
        harms = breaks_for([client for client in clients if not client.has_lapsed], schema, versions)
    except SchemaTooCostly as error:
        return tuple(_client_answer(client, "unknown", error.message) for client in clients)
    met: dict[str, list[str]] = {}
    for harm in harms:
        met.setdefault(harm.client.name, []).append(harm.sentence)
    answers = [_judged(client, met.get(client.name, []), versions) for client in clients]
    return tuple(sorted(answers, key=lambda item: _WORST_FIRST.index(item.answer)))


def _judged(client: ClientInfo, met: Sequence[str], versions: Versions) -> ClientAnswer:
    if client.has_lapsed:
        sentence = f"was last seen on {client.seen_at.astimezone(UTC):%Y-%m-%d}: it is unknown whether it still exists"
        return _client_answer(client, "unknown", sentence)
    if client.number not in versions:
        return _client_answer(client, "unknown", "has no version to compare")
    return _client_answer(client, "no", "; it ".join(met)) if met else _client_answer(client, "yes", "is compatible")


def _client_answer(client: ClientInfo, verdict: Answer, message: str) -> ClientAnswer:
    return ClientAnswer(client.name, client.does, client.number, client.contact, verdict, message)


ACTION: Final = "client.declare"
#: for a client that somebody else declared
CHANGE: Final = "client.change"
#: the most clients of a subject
MOST: Final = 500
#: how often "still there" is written, because many processes may report at each start
REPORT_INTERVAL: Final = timedelta(hours=1)


@retried
def declare_client(
    *,
    registry: str,
    subject: SubjectName,
    name: str,
    by: Actor,
    reads: bool = True,
    writes: bool = False,
    version: int | None = None,
    fields: Iterable[str] = (),
    contact: str = "",
) -> bool:
    """Declare what a program does with a subject's data, or that it still exists; returns whether it is new.

    `version` None: it uses the newest at each start. Raises InvalidInput, NotAllowed, NotSignedIn, RegistryNotFound,
    SubjectNotFound, VersionNotFound for a version that isn't live, and for another's client as `withdraw_client` does.
    """
    paths = _fields(fields)
    values = {
        "reads": reads,
        "writes": writes,
        "version": _number(version),
        "fields": paths,
        "contact": _text(contact, "contact", MAX_CONTACT),
    }
    name = _text(name, "name", MAX_NAME)
    if not name:
        raise InvalidInput(
            "Give the client a name, for example the name of its consumer group or service.", field="name"
        )
    if not (reads or writes):
        raise InvalidInput("A client reads or writes. Declare at least one of them.", field="reads")
    registry_row = get_registry(registry)
    require(by, ACTION, registry=registry_row.name, subject=subject.qualified)
    unlocked = get_subject(registry_row, subject)
    _refuse_unknown_fields(unlocked, name, version, paths)
    row = Subject.objects.select_for_update().get(pk=unlocked.pk)  # locked, so that the limit holds
    if version is not None and not row.versions.filter(version=version, deleted_at=None).exists():
        raise VersionNotFound(f"Version {version} of {subject.qualified} doesn't exist.", version=version)
    now = timezone.now()
    there = Client.objects.filter(subject=row, name=name).first()
    record(by=by, why=f"declare client {name} of {subject.qualified} in {registry_row.name}")
    if there is None:
        if Client.objects.filter(subject=row).count() >= MOST:
            raise InvalidInput(
                f"{subject.qualified} already has {MOST} clients. Withdraw clients that no longer exist.", field="name"
            )
        Client.objects.create(subject=row, name=name, declared_by=by.name, seen_at=now, **values)
        return True
    changed = [field for field, value in values.items() if getattr(there, field) != value]
    if changed:
        _require_speaker(there, registry_row, subject, by, "declare_client", **values)
    if changed or now - there.seen_at >= REPORT_INTERVAL:  # an unchanged declaration is written only now and then
        _change(there, {field: values[field] for field in changed}, now)
    return False


def _refuse_unknown_fields(subject: Subject, client: str, version: int | None, paths: Sequence[str]) -> None:
    """Raise InvalidInput for a field that the declared version doesn't have.

    Fields that the client declared before are accepted: a program that repeats them at its start mustn't fail because
    the newest version has changed. An unreadable version, or one too long to be listed, refuses nothing.
    """
    known = (
        Client.objects.filter(subject=subject, name=client, version=version).values_list("fields", flat=True).first()
    )
    unknown = sorted(set(paths) - set(known or ()))
    rows = subject.versions.filter(deleted_at=None) if version is None else subject.versions.filter(version=version)
    row = rows.select_related("schema").order_by("-version").first() if unknown else None
    if row is None:
        return
    try:
        fields = _fields_in(parser_of([row.schema])(row.schema))
    except (InvalidSchema, InvalidReference, SchemaTooCostly):
        return
    absent = [path for path in unknown if not any(item.is_used_by(path) for item in fields)]
    if absent and 0 < len(fields) < _LONGEST_OUTLINE:
        near = get_close_matches(absent[0], [item.path for item in fields], n=1)
        hint = f"Did you mean {near[0]}?" if near else f"It has {', '.join(item.path for item in fields[:MAX_NAMED])}."
        raise InvalidInput(f"Version {row.version} has no field {absent[0]!r}. {hint}", field="fields")


def _change(there: Client, values: Mapping[str, object], now: datetime) -> None:
    """Update a client's declaration; it keeps its declarer, whoever changes it."""
    for field, value in values.items():
        setattr(there, field, value)
    there.seen_at = now
    there.save(update_fields=[*values, "seen_at"])


def _require_speaker(
    client: Client, registry: Registry, subject: SubjectName, by: Actor, action: str, **values: Any
) -> None:
    """Require the client's declarer, a person in its contact, or the permission to change others' clients.

    With only that permission, other apps may require a second person for the `action`, a service of this module;
    `values` are the declaration. Raises NotAllowed, NotSignedIn, SecondPersonRequired.
    """
    if _speaks_for(client, by, people_named([client.contact])[client.contact]):
        return
    if refused := _others_refusal(client, registry, subject, by):
        raise NotAllowed(refused, action=CHANGE)
    sentence = f"{'change' if values else 'withdraw'} the client {client.name} of {subject.qualified}"
    sentence += f", which {client.declared_by} declared"
    if values:
        now = _info(Client(seen_at=client.seen_at, **values), None, client.seen_at)
        sentence += f", to: {now.declaration}; contact: {now.contact or 'none'}"
    given = {name: value for name, value in values.items() if value is not None}
    for client_guard in hooks.client_guards:
        client_guard(registry, action, {"subject": subject.qualified, "name": client.name, **given}, sentence, by)


def _speaks_for(client: Client, by: Actor, named: Iterable[ContactPerson]) -> bool:
    """Return whether it is the actor's own client, or its contact names them; an anonymous actor matches nothing."""
    return by.user_id is not None and (client.declared_by == by.name or by.user_id in {one.user_id for one in named})


def _others_refusal(client: Client, registry: Registry, subject: SubjectName, by: Actor) -> str:
    if client.declared_by == by.name or not refusal(by, CHANGE, registry=registry.name, subject=subject.qualified):
        return ""
    contacts = f", its contact {client.contact}" if client.contact else ""
    return f"{client.name} was declared by {client.declared_by}. Only they{contacts} or a steward can change or withdraw it."


@retried
def withdraw_client(*, registry: str, subject: SubjectName, name: str, by: Actor) -> None:
    """Remove the declaration of a program that no longer exists.

    Its declarer, its contacts and stewards can do that; if affected clients block a closed environment, a steward needs
    a second person. Raises ClientNotFound, SubjectNotFound, RegistryNotFound, NotAllowed, NotSignedIn,
    SecondPersonRequired.
    """
    registry_row = get_registry(registry)
    require(by, ACTION, registry=registry_row.name, subject=subject.qualified)
    row = get_subject(registry_row, subject, deleted=True)
    record(by=by, why=f"withdraw client {name[:MAX_NAME]} of {subject.qualified} in {registry_row.name}")
    client = Client.objects.filter(subject=row, name=name[: MAX_NAME + 1].replace("\0", "")).first()
    if client is None:
        raise ClientNotFound(f"{subject.qualified} has no client named {name[:MAX_NAME]!r}.", name=name[:MAX_NAME])
    _require_speaker(client, registry_row, subject, by, "withdraw_client")
    client.delete()


def _number(version: int | None) -> int | None:
    if version is not None and not 1 <= version <= MAX_VERSION:
        raise InvalidInput(
            f"The version is {str(version)[:40]}, but it must be a number from 1 to 2^31-1.", field="version"
        )
    return version


def _fields(fields: Iterable[str]) -> list[str]:
    """Return each path once, sorted."""
    paths = sorted({_text(path, "fields", MAX_FIELD) for path in fields} - {""})
    if len(paths) > MAX_FIELDS:
        raise InvalidInput(f"There are {len(paths)} fields. At most {MAX_FIELDS} are allowed.", field="fields")
    return paths


def _text(text: str, what: str, most: int) -> str:
    line = " ".join(text.split())
    if len(line) > most:
        raise InvalidInput(f"The {what} has {len(line)} characters. At most {most} are allowed.", field=what)
    if not line.isprintable():
        raise InvalidInput(f"The {what} contains a character that can't be displayed. Remove it.", field=what)
    return line
