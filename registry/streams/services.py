"""Checks of planned state before a restart, searches for checkpoints, and the stores that checkpoints are read from.

A store is a folder or an object store. An object store's secret is one of `registry.access.http_client`, bound to the
endpoint's host. It is read when the store is opened and not kept; connections go only to addresses that the egress
policy allows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from django.conf import settings
from django.db import transaction

from registry.access.egress import Connection, current_policy, parse_connection
from registry.access.http_client import find_secret, refuse_other_host
from registry.access.roles import Actor, require
from registry.audit.context import record, storable_text
from registry.checkpoints import (
    Bounds,
    Checkpoint,
    Discovery,
    Location,
    ObjectStore,
    ReadCache,
    S3Endpoint,
    find_checkpoints,
    parse_location,
    s3_options,
)
from registry.checkpoints import why_rows_are_not_readable as why_not
from registry.checkpoints.files import CheckpointFiles
from registry.checkpoints.filesystem import LOCAL, OUTSIDE, as_spark_opens, location_of_root
from registry.checkpoints.plans import (
    StatePlan,
    check_markdown,
    check_state,
    check_text,
    parse_plan,
    plan_as_is,
    read_plan,
)
from registry.checkpoints.plans.model import StateCheck as Report
from registry.checkpoints.plans.operators import UNKNOWN_MEANING
from registry.errors import InvalidCheckpoint, InvalidInput
from registry.streams.descriptions import running_description, says_the_same
from registry.streams.models import CheckpointStore, StateCheck, StreamQuery
from registry.streams.selectors import non_null_counts
from registry.subjects.versions.lookup import get_registry

#: the settings of a store, with their defaults
FIELDS: Final[Mapping[str, str]] = {"endpoint": "", "region": "us-east-1", "access_key_id": "", "secret": ""}
#: for scans, which read the same checkpoints repeatedly: only what is new is read from an object store
CACHE: Final = ReadCache(checkpoints=500)


@dataclass(frozen=True)
class CheckpointLocation:
    """A checkpoint's path or address, the roots that it must be in, and the opened store of an address."""

    path: str
    roots: tuple[str, ...]
    store: ObjectStore | None = None

    @property
    def resolved(self) -> str:
        """The path with its links followed, as scans store it. Raises InvalidCheckpoint if it may not be read."""
        return CheckpointFiles(self.path, self.roots, store=self.store).path

    @property
    def cache(self) -> ReadCache | None:
        """The cache for scans of it; None for a disk, which needs none."""
        return CACHE if self.store else None


def checked_store(settings: Mapping[str, Any]) -> CheckpointStore:
    """Return an unsaved row with these settings (see FIELDS). It connects to nothing.

    Raises InvalidInput for invalid settings and for settings that don't fit together, InvalidSecret.
    """
    unknown = sorted(set(settings) - set(FIELDS))
    if unknown:
        raise InvalidInput(f"An object store has no setting {unknown[0][:40]!r}. The settings are {', '.join(FIELDS)}.")
    if not all(isinstance(value, str) for value in settings.values()):
        raise InvalidInput(f"The settings of an object store must be text: {', '.join(FIELDS)}.")
    values = {name: str(settings.get(name, "")).strip() or usual for name, usual in FIELDS.items()}
    connection = _connection(values["endpoint"], values["secret"])
    if bool(values["access_key_id"]) != bool(values["secret"]):
        raise InvalidInput("Give both the access key id and the secret's name, or neither for a public bucket.")
    S3Endpoint(connection.url, values["region"], values["access_key_id"])
    _secret(connection)
    return CheckpointStore(**values | {"endpoint": connection.url})


def store_of_address(address: str) -> CheckpointStore | None:
    """Return the store of the sources with this address, None if there are none.

    Raises InvalidInput if their stores differ.
    """
    rows = list(CheckpointStore.objects.filter(source__name=address).order_by("pk")[:100])
    addresses = {(row.endpoint, row.region, row.access_key_id, row.secret) for row in rows}
    if len(addresses) > 1:
        raise InvalidInput(f"Several sources have {address[:300]} in different object stores. Give its endpoint.")
    return rows[0] if rows else None


def location_of(path: str) -> Location:
    """Parse a path or an address of an allowed protocol. Raises InvalidCheckpoint."""
    return parse_location(path, settings.CHECKPOINT_PROTOCOLS)


def checkpoint_location(
    path: str, store: CheckpointStore | None = None, *, also: tuple[str, ...] = ()
) -> CheckpointLocation:
    """Return where to read a checkpoint, with its object store opened.

    `also` are roots beyond those of the settings. The roots are checked first, so that an address outside of them
    connects to nothing. Raises InvalidCheckpoint, InvalidInput, InvalidSecret, AddressRefused, RemoteUnavailable.
    """
    location = location_of(path)
    if location.protocol == LOCAL:
        if store is not None:
            raise InvalidInput(
                "A local folder has no object store. Leave the endpoint empty, or write s3://BUCKET/FOLDER."
            )
        return CheckpointLocation(path.strip(), (*map(str, settings.CHECKPOINT_ROOTS), *also))
    roots = (*settings.CHECKPOINT_ADDRESSES, *also)
    if not any(location.is_below(location_of_root(root)) for root in roots):
        raise InvalidCheckpoint(OUTSIDE)
    if store is None:
        raise InvalidInput(
            f"{location.text[:300]} is in an object store. Give its endpoint, such as https://s3.example.com."
        )
    return CheckpointLocation(location.text, roots, open_store(store))


def known_checkpoint_location(path: str, settings: Mapping[str, Any] | None = None) -> CheckpointLocation:
    """Return the same; the store of an address has these `settings`, else it is that of the source with the address."""
    if settings is not None:
        return checkpoint_location(path, checked_store(settings))
    location = location_of(path)
    return checkpoint_location(path, None if location.protocol == LOCAL else store_of_address(location.text))


def open_store(store: CheckpointStore) -> ObjectStore:
    """Open an object store after checking its endpoint. Raises InvalidSecret, AddressRefused, RemoteUnavailable."""
    import s3fs  # lazy: it is slow to load, and most deployments read only folders

    connection = _connection(store.endpoint, store.secret)
    addresses = current_policy().addresses(connection)
    endpoint = S3Endpoint(connection.url, store.region, store.access_key_id)
    options = s3_options(endpoint, _secret(connection), addresses)
    return ObjectStore("s3", s3fs.S3FileSystem(**options), name=endpoint.name)


def spark_path(path: str) -> str:
    """Return the checkpoint's path as the Spark server opens it.

    Call it only if `why_rows_are_not_readable` is empty.
    """
    return as_spark_opens(path, _spark_roots())


def why_rows_are_not_readable(path: str) -> str:
    """Return why the Spark server can't open a checkpoint, by the settings alone; "" if it can."""
    return why_not(path, _spark_roots()) or ""


def _spark_roots() -> tuple[str, ...]:
    return tuple(map(str, settings.CHECKPOINT_SPARK_ROOTS or settings.CHECKPOINT_ROOTS))


def _connection(endpoint: str, secret: str) -> Connection:
    connection = parse_connection(endpoint, secret=secret)
    if connection.path:
        raise InvalidInput("An endpoint must be only http(s)://HOST[:PORT]. Put the bucket and folder in the address.")
    return connection


def _secret(connection: Connection) -> str:
    """Return the secret key, "" if none is named. Raises InvalidSecret if it is missing or isn't for this host."""
    if not connection.secret:
        return ""
    secret = find_secret(connection.secret)
    refuse_other_host(secret, connection)
    return secret.value


NEVER_SENT: Final = (
    "No running query of this checkpoint has sent its description, and the checkpoint alone doesn't say what the state "
    "means. Send it after the next start, or add it to the plan as `running`."
)
MAX_REPORT: Final = 16 * 1024 * 1024  # characters of JSON
#: bounds of a search that somebody waits for
SEARCH: Final = Bounds(checkpoints=200, folders=2_000, depth=6, seconds=20.0)


def check_planned_state(
    *, checkpoint: str, plan: StatePlan, document: str, by: Actor, store: Mapping[str, Any] | None = None
) -> int:
    """Check what a restart with the plan would do to a checkpoint, and store the report; return its id.

    `document` is the plan as it was sent. `store` has the settings (see FIELDS) of an address's object store; for an
    address of a source it can be None. The check uses what the last scan of the checkpoint's rows found in each field.
    Nothing is started, and the checkpoint is only read. Raises InvalidCheckpoint, InvalidInput, InvalidSchema,
    InvalidSecret, AddressRefused, RemoteUnavailable, NotSignedIn, NotAllowed.
    """
    report = checked_restart(_place(checkpoint, store, by), plan)
    values = _storable(report.to_dict() | {"texts": _texts(report)})
    if len(json.dumps(values)) > MAX_REPORT:
        raise InvalidInput("The report of this plan is too large to save. Check fewer variables at a time.")
    with transaction.atomic():
        record(by=by, why=f"check planned state of {report.path[:200]}")
        row = StateCheck.objects.create(
            created_by=by.name,
            checkpoint=_storable(report.path),
            query_id=_storable(report.query_id[:200]),
            verdict=report.verdict,
            plan=_storable(document),
            report=values,
        )
    return row.pk


def _storable(value: Any) -> Any:
    """Return JSON values whose texts PostgreSQL can store: NUL and lone surrogates are replaced."""
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, Mapping):
        return {_storable(name): _storable(each) for name, each in value.items()}
    return [_storable(each) for each in value] if isinstance(value, list | tuple) else value


def release_restart(query: StreamQuery, plan: StatePlan) -> Report:
    """Return what a restart means for a release: the worse result, if the query and the plan describe it differently.

    Raises what checked_restart does.
    """
    location = known_checkpoint_location(query.path)
    sent = running_description(query.path, query=query)
    reports = [checked_restart(location, plan, query=query)]
    if plan.running is not None and sent is not None and not says_the_same(sent.description, plan.running):
        reports.append(checked_restart(location, replace(plan, running=None), query=query))
    return max(reports, key=lambda report: (not report.is_safe) + (report.verdict not in ("safe", "not checked")))


def checked_restart(location: CheckpointLocation, plan: StatePlan, *, query: StreamQuery | None = None) -> Report:
    """Return what a restart with the plan would do, compared with what the running query last sent of itself.

    A plan that has a description of the running query keeps its own. With `query`, only what was sent for that one of
    several with this checkpoint counts. Raises InvalidCheckpoint, InvalidInput, InvalidSchema, RemoteUnavailable.
    """
    address = location.resolved
    needs_running = plan.query is not None and plan.running is None
    sent = running_description(address, query=query) if needs_running else None
    report = check_state(
        location.path,
        location.roots,
        plan if sent is None or sent.is_stale else replace(plan, running=sent.description),
        filled=non_null_counts(address),
        unread=why_rows_are_not_readable(address),
        store=location.store,
    )
    if sent is not None:
        return replace(report, notes=(sent.sentence, *report.notes))
    is_unknown = needs_running and any(UNKNOWN_MEANING in doubt for doubt in report.not_checked)
    return replace(report, notes=(NEVER_SENT, *report.notes)) if is_unknown else report


def check_document(*, checkpoint: str, plan: Any, by: Actor, store: Mapping[str, Any] | None = None) -> int:
    """Do the same for a plan document: its JSON text, or its values. Raises what check_planned_state does."""
    require(by, "state.check")
    read = parse_plan(plan) if isinstance(plan, str) else read_plan(plan)
    document = plan if isinstance(plan, str) else json.dumps(plan, indent=2, ensure_ascii=False)
    return check_planned_state(checkpoint=checkpoint, plan=read, document=document, by=by, store=store)


def _texts(report: Report) -> dict[str, str]:
    return {"text": check_text(report), "markdown": check_markdown(report), "script": report.script}


def start_plan(*, checkpoint: str, by: Actor, store: Mapping[str, Any] | None = None) -> str:
    """Return a plan document that declares a checkpoint's state as it is, to be edited.

    Raises what check_planned_state does.
    """
    location = _place(checkpoint, store, by)
    return plan_as_is(location.path, location.roots, store=location.store)


def discover(*, path: str, registry: str, by: Actor, store: Mapping[str, Any] | None = None) -> Discovery:
    """Find the checkpoints in and below a folder or an address, and describe each; bounded by SEARCH.

    For people who may add them as sources of the registry. `store` is as in check_planned_state. Raises
    InvalidCheckpoint, InvalidInput, InvalidSecret, AddressRefused, RemoteUnavailable, RegistryNotFound, NotSignedIn,
    NotAllowed.
    """
    require(by, "source.manage", registry=get_registry(registry).name)
    location = known_checkpoint_location(path, store)
    return find_checkpoints(location.path, location.roots, store=location.store, cache=location.cache, bounds=SEARCH)


def _place(checkpoint: str, store: Mapping[str, Any] | None, by: Actor) -> CheckpointLocation:
    """Return where to read; naming an object store and its secret requires the permission to manage sources."""
    require(by, "state.check")
    if store is not None:
        require(by, "source.manage")
    return known_checkpoint_location(checkpoint, store)


def discovery_dict(done: Discovery, sources: Mapping[str, int]) -> dict[str, Any]:
    """Return a search as JSON values; `sources` maps the paths that are sources already to their ids."""
    checkpoints = [
        {
            "path": item.path,
            "source": sources.get(item.path),
            "refused": item.refused,
            "checkpoint": _checkpoint_dict(item.checkpoint) if item.checkpoint else None,
        }
        for item in done.found
    ]
    return {
        "found": checkpoints,
        "folders": done.folders,
        "ended_early": done.ended_early,
        "passed_over": list(done.passed_over),
    }


def _checkpoint_dict(checkpoint: Checkpoint) -> dict[str, Any]:
    return {
        "operators": [
            {
                "operator": operator.number,
                "name": operator.name,
                "description": operator.description,
                "variables": [variable.name for variable in operator.variables],
            }
            for operator in checkpoint.operators
        ],
        "last_committed_batch": checkpoint.last_committed_batch,
    }
