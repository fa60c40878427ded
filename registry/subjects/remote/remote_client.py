"""Reads another registry by Confluent's REST API, through the egress policy; errors name the place of a wrong type."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from registry.access.egress import Connection, EgressPolicy
from registry.access.http_client import HttpLimits, OutgoingClient, ResponseTooLarge
from registry.errors import InvalidSnapshot, RemoteUnavailable, SchemadeskError
from registry.formats import DEFAULT_FORMAT, FORMATS
from registry.formats.base import UNSTORABLE, Reference
from registry.subjects.import_export.snapshot import Problem, Scope, Snapshot, VersionKey, VersionRecord, scope_key
from registry.subjects.models.policy import MODES
from registry.subjects.policy.data_contracts import read_metadata, read_rule_set
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName, check_context, parse_subject

MOST = 2**31 - 1
MAX_REFERENCES = 1000
#: property of a config, in the order of responses → setting
SETTINGS: Mapping[str, str] = {
    "alias": "alias",
    "aliasForDeks": "alias_for_deks",
    "normalize": "normalize",
    "validateFields": "validate_fields",
    "validateNewSchemas": "validate_new_schemas",
    "validateRules": "validate_rules",
    "compatibilityLevel": "level",
    "compatibilityPolicy": "compatibility_policy",
    "compatibilityGroup": "compatibility_group",
    "defaultMetadata": "default_metadata",
    "overrideMetadata": "override_metadata",
    "defaultRuleSet": "default_rule_set",
    "overrideRuleSet": "override_rule_set",
}


def read_version(item: Mapping[str, Any]) -> VersionRecord:
    """Return a version from the entity `Schema`. Raises InvalidSnapshot, InvalidName, InvalidInput, InvalidRuleSet."""
    refuse_unusable_text(item)
    subject = parse_subject(_text(item, "subject"))
    if not subject.subject:
        raise InvalidSnapshot("/subject is empty. A subject needs a name.")
    schema_type = (_text(item, "schemaType", DEFAULT_FORMAT) or DEFAULT_FORMAT).upper()
    if schema_type not in FORMATS:
        raise InvalidSnapshot(f"/schemaType is {schema_type[:40]!r}. It must be one of {', '.join(FORMATS)}.")
    references = item.get("references") or []
    if not isinstance(references, list) or len(references) > MAX_REFERENCES:
        raise InvalidSnapshot(f"/references is not an array with at most {MAX_REFERENCES} items.")
    rules = item.get("ruleSet") if item.get("ruleSet") is not None else item.get("ruleset")
    return VersionRecord(
        subject=subject,
        version=_number(item, "version"),
        schema_id=_number(item, "id"),
        schema_type=schema_type,
        text=_text(item, "schema"),
        references=tuple(_reference(entry, position) for position, entry in enumerate(references)),
        metadata=read_metadata(item.get("metadata")) or None,
        rule_set=read_rule_set(rules) or None,
        deleted=item.get("deleted") is True,
    )


def read_settings(value: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the settings in a config, and the names of unknown ones. Raises InvalidSnapshot."""
    if not isinstance(value, Mapping):
        raise InvalidSnapshot("it is not an object.")
    refuse_unusable_text(value)
    # The earliest servers call it `compatibility` here.
    properties = {"compatibilityLevel" if name == "compatibility" else name: item for name, item in value.items()}
    settings = {SETTINGS[name]: item for name, item in properties.items() if name in SETTINGS and item is not None}
    if isinstance(settings.get("level"), str):
        settings["level"] = settings["level"].upper()
    return settings, sorted(str(name) for name in properties.keys() - SETTINGS.keys())


def read_mode(value: Any) -> str:
    """Return the mode. Raises InvalidSnapshot for an unknown one."""
    mode = value.get("mode") if isinstance(value, Mapping) else None
    if mode not in MODES:
        raise InvalidSnapshot(f"{str(mode)[:40]!r} is not a supported mode. The modes are {', '.join(MODES)}.")
    return str(mode)


def refuse_unusable_text(value: Any) -> None:
    """Raise InvalidSnapshot for a JSON value with text that no database can store: a NUL, or an unpaired surrogate."""
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            if UNSTORABLE.search(item):
                raise InvalidSnapshot(f"the text {item[:40]!r} can't be stored: it contains an invalid character.")
        elif isinstance(item, Mapping):
            left += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            left += item


def _reference(item: Any, position: int) -> Reference:
    if not isinstance(item, Mapping):
        raise InvalidSnapshot(f"/references/{position} is not an object.")
    return Reference(_text(item, "name"), _text(item, "subject"), _number(item, "version"))


def _text(item: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = item.get(name, default)
    if not isinstance(value, str):
        raise InvalidSnapshot(f"/{name} is not a string.")
    return value


def _number(item: Mapping[str, Any], name: str) -> int:
    value = item.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST:
        raise InvalidSnapshot(f"/{name} is {str(value)[:40]}. It must be a number from 1 to 2^31-1.")
    return value


PAGE = 1000
MAX_VERSIONS = 1_000_000
MAX_BYTES = 1024 * 1024 * 1024
MAX_PROBLEMS = 1000
READ_SECONDS = 1800.0
LIMITS = HttpLimits()
EVERY_CONTEXT = ":*:"
#: called with the number of things read and their name
Progress = Callable[[int, str], None]


class RemoteRegistry:
    """A registry at a URL; `read` returns its contents and the problems."""

    def __init__(
        self,
        connection: Connection,
        *,
        policy: EgressPolicy | None = None,
        limits: HttpLimits = LIMITS,
        seconds: float = READ_SECONDS,
        on_progress: Progress = lambda count, what: None,
    ) -> None:
        self.client = OutgoingClient(connection, policy=policy, limits=limits)
        self.problems: list[Problem] = []
        self._until = time.monotonic() + seconds
        self._progress = on_progress

    def read(self) -> tuple[Snapshot, list[Problem]]:
        """Return the registry's contents and the problems. Raises AddressRefused, InvalidSecret, RemoteUnavailable."""
        with self.client:
            contexts = self._contexts()
            versions = self._versions(self._prefixes(contexts))
            names = {DEFAULT_CONTEXT, *(contexts or ()), *(key[0].context for key in versions)}
            named = {SubjectName(name, "") for name in names - {DEFAULT_CONTEXT}} | {key[0] for key in versions}
            scopes: list[Scope] = [None, *sorted(named, key=scope_key)]
            configs = dict(self._settings(scopes))
            modes = dict(self._modes(scopes))
            counters = {name: self._next_id(name, versions) for name in names}
        return Snapshot(tuple(versions.values()), counters, configs, modes), self.problems

    def still_there(self, records: Collection[VersionRecord]) -> set[VersionKey]:
        """Return the versions that are still listed under their subjects: paging may skip what moves meanwhile.

        Uses `GET /schemas` if it exists, because an alias redirects other calls to another subject.
        """
        keys: set[VersionKey] = set()
        with self.client:
            for subject in sorted({record.subject for record in records}, key=scope_key):
                listed = self._listed({"subjectPrefix": subject.qualified}, deleted=True)
                if listed is None:
                    path = f"/subjects/{quote(subject.qualified, safe='')}/versions"
                    numbers = {str(number) for number in self._list(path, deleted="true") or ()}
                else:
                    numbers = {number for name, number in listed[0] if name == subject.qualified}
                keys |= {item.key for item in records if item.subject == subject and str(item.version) in numbers}
        return keys

    def _get(self, path: str, /, **query: str) -> tuple[int, Any]:
        """Call, and return status and JSON; only 200, 404 and 405 are returned."""
        if time.monotonic() > self._until:
            raise RemoteUnavailable(f"{self.client.connection.netloc} is too slow to be read completely.")
        if self.client.received > MAX_BYTES:
            raise RemoteUnavailable(f"{self.client.connection.netloc} sent more than {MAX_BYTES} bytes.")
        accept = {"Accept": "application/vnd.schemaregistry.v1+json, application/json; q=0.9"}
        response = self.client.call("GET", path, query=query, headers=accept)
        where = f"{self.client.connection.netloc}: the answer to {path}"
        if response.status in (401, 403):
            raise RemoteUnavailable(
                f"{self.client.connection.netloc} rejects the sign-in ({response.status}). Check the user and the secret.",
                status=response.status,
            )
        if response.status in (404, 405):
            return response.status, None
        if response.status != 200:
            raise RemoteUnavailable(f"{where} has status {response.status}.", status=response.status)
        return 200, response.json(where)

    def _list(self, path: str, /, **query: str) -> list[Any] | None:
        """Return a JSON array, None if the server doesn't support the path."""
        status, value = self._get(path, **query)
        if status != 200:
            return None
        if not isinstance(value, list):
            raise RemoteUnavailable(f"{self.client.connection.netloc}: the answer to {path} is not an array.")
        return value

    def _note(self, what: str, why: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(what, why))

    def _contexts(self) -> list[str] | None:
        listed = self._list("/contexts")
        if listed is None:
            return None
        names = []
        for item in listed:
            try:
                names.append(check_context(str(item)))
            except SchemadeskError as error:
                self._note(f"context {str(item)[:80]!r}", error.message)
        return names

    def _prefixes(self, contexts: list[str] | None) -> list[dict[str, str]]:
        """Return the queries that cover every context: one wildcard, or each context if it finds nothing.

        The wildcard is Confluent's; other servers treat it as a name's prefix.
        """
        every = {"subjectPrefix": EVERY_CONTEXT}
        if contexts is None:
            return [{}]
        if self._list("/subjects", deleted="true", limit="1", **every):
            return [every]
        return [{}, *({"subjectPrefix": f":{name}:"} for name in contexts if name != DEFAULT_CONTEXT)]

    def _versions(self, prefixes: list[dict[str, str]]) -> dict[VersionKey, VersionRecord]:
        records: dict[VersionKey, VersionRecord] = {}
        for prefix in prefixes:
            listed = self._listed(prefix, deleted=True)
            if listed is None:
                self._walk(prefix, records)
                continue
            items, tells = listed
            if not tells:
                live, _ = self._listed(prefix, deleted=False) or ({}, False)
                for key, item in items.items():
                    item["deleted"] = key not in live
            for item in items.values():
                self._keep(records, item)
        return records

    def _listed(
        self, prefix: dict[str, str], *, deleted: bool
    ) -> tuple[dict[tuple[str, str], dict[str, Any]], bool] | None:
        """Read `GET /schemas` page by page, by subject and number; and return whether it says which are deleted.

        None if the server doesn't support the call. A server that ignores offset and limit sends everything in one
        response.
        """
        items: dict[tuple[str, str], dict[str, Any]] = {}
        offset, limit, tells = 0, PAGE, False
        while True:
            query = {**prefix, "deleted": str(deleted).lower(), "offset": str(offset), "limit": str(limit)}
            try:
                page = self._list("/schemas", **query)
            except ResponseTooLarge:
                if limit == 1:
                    raise
                limit = max(1, limit // 4)
                continue
            if page is None:
                return None
            before = len(items)
            for item in page:
                if not isinstance(item, dict):
                    self._note("an entry of /schemas", "it is not an object.")
                    continue
                tells = tells or "deleted" in item
                items[str(item.get("subject")), str(item.get("version"))] = item
            if len(items) > MAX_VERSIONS:
                raise RemoteUnavailable(f"{self.client.connection.netloc} has more than {MAX_VERSIONS} versions.")
            offset += len(page)
            self._progress(len(items), "versions listed")
            if len(items) == before:  # a short page may not be the last: a server may have a lower limit
                return items, tells

    def _walk(self, prefix: dict[str, str], records: dict[VersionKey, VersionRecord]) -> None:
        """Read subject by subject, version by version: for servers without `GET /schemas`."""
        subjects = self._list("/subjects", deleted="true", **prefix)
        if subjects is None:
            raise RemoteUnavailable(
                f"{self.client.connection.url} is not a schema registry: it supports neither /schemas nor /subjects."
            )
        for subject in subjects:
            path = f"/subjects/{quote(str(subject), safe='')}/versions"
            live = self._list(path) or []
            every = self._list(path, deleted="true")
            for number in live if every is None else every:
                status, item = self._get(f"{path}/{quote(str(number), safe='')}", deleted="true")
                if status == 200 and isinstance(item, dict):
                    self._keep(records, {**item, "deleted": number not in live})
                else:
                    self._note(f"{subject} version {number}"[:200], "the server lists it but doesn't return it.")
            if len(records) > MAX_VERSIONS:
                raise RemoteUnavailable(f"{self.client.connection.netloc} has more than {MAX_VERSIONS} versions.")
            self._progress(len(records), "versions read")

    def _keep(self, records: dict[VersionKey, VersionRecord], item: dict[str, Any]) -> None:
        try:
            record = read_version(item)
        except SchemadeskError as error:
            self._note(f"{item.get('subject')} version {item.get('version')}"[:200], error.message)
            return
        records[record.key] = record

    def _settings(self, scopes: list[Scope]) -> Iterator[tuple[Scope, dict[str, Any]]]:
        for scope, value in self._of_scopes("config", scopes):
            try:
                settings, unknown = read_settings(value)
            except SchemadeskError as error:
                self._note(f"config of {_title(scope)}", error.message)
                continue
            if unknown:
                self._note(f"config of {_title(scope)}", f"{', '.join(unknown)[:200]}: no such setting here.")
            if settings:
                yield scope, settings

    def _modes(self, scopes: list[Scope]) -> Iterator[tuple[Scope, str]]:
        for scope, value in self._of_scopes("mode", scopes):
            try:
                yield scope, read_mode(value)
            except SchemadeskError as error:
                self._note(f"mode of {_title(scope)}", error.message)

    def _of_scopes(self, call: str, scopes: list[Scope]) -> Iterator[tuple[Scope, Any]]:
        """Yield each scope's own settings; skips all if the server doesn't support the call for the registry."""
        for count, scope in enumerate(scopes):
            name = "" if scope is None else f"/{quote(_address(scope), safe='')}"
            status, value = self._get(f"/{call}{name}")
            if status == 200:
                yield scope, value
            elif scope is None:
                return
            self._progress(count + 1, f"{call}s asked for")

    def _next_id(self, context: str, versions: dict[VersionKey, VersionRecord]) -> int:
        """Return the lowest id that the context never assigned, as far as the server says."""
        ids = [record.schema_id for record in versions.values() if record.subject.context == context]
        if not ids:
            return 1
        scope = {} if context == DEFAULT_CONTEXT else {"subject": f":{context}:"}
        _, value = self._get(f"/schemas/ids/{max(ids)}", fetchMaxId="true", **scope)
        max_id = value.get("maxId") if isinstance(value, dict) else None
        highest = max_id if isinstance(max_id, int) and not isinstance(max_id, bool) and max_id < 2**31 - 1 else 0
        return max(highest, *ids) + 1


def _address(scope: SubjectName) -> str:
    """Return the scope's name in the API."""
    return scope.qualified if scope.subject else f":{scope.context}:"


def _title(scope: Scope) -> str:
    return "the registry" if scope is None else _address(scope)
