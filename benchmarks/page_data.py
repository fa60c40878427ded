"""What the pages show that the large data set lacks: a little of each kind of thing, made once in a filled database."""

from __future__ import annotations

import json
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.test import override_settings
from django.utils import timezone

from benchmarks import dataset
from benchmarks.state import write_checkpoint
from registry.access.models import Ownership, User
from registry.access.roles import Actor
from registry.access.services import issue_token
from registry.checkpoints import read_checkpoint
from registry.checkpoints.plans import parse_plan
from registry.drift.models import Cluster, Finding, Scan, Source
from registry.drift.services import mute
from registry.errors import Conflict
from registry.notifications.digests import stop_token
from registry.notifications.models import JobRun, Webhook
from registry.notifications.services import subscribe
from registry.promotions.board.readiness import refresh_outlooks
from registry.promotions.models import Draft, PromotionRequest
from registry.promotions.services import add_freeze, request_promotion, save_draft
from registry.streams.models import StateCheck, StateVariable, StreamQuery
from registry.streams.scan_result import ScannedInput, scanned_query
from registry.streams.services import check_planned_state, start_plan
from registry.streams.state_history import keep_query
from registry.subjects.models import ArchivedCopy, BusinessTerm, Registry, SchemaVersion, Subject
from registry.subjects.selectors import subject_rows
from registry.subjects.services import register_version, set_config
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName

#: by which what was made here is found again
MARK: Final = "to measure the pages"
SOURCE: Final = "bench-orders"
MIRROR: Final = "bench-theirs"
REQUESTS: Final = 50
FINDINGS: Final = 200
#: of a checkpoint that evolved for long
SCHEMA_FILES: Final = 32
VARIABLES: Final = 10


def furnish(by: Actor, user: User) -> dict[str, Any]:
    """Makes what is missing; gives the names and numbers that the pages' addresses are filled with.

    Raises Conflict where the data set isn't there: `bench fill` makes it.
    """
    wide = _widest()
    usual, referred = _subject(lambda number: number % 10 == 2), _subject(dataset.is_referring)
    # an owner's subjects are found by names, here by the dearest kind of pattern
    Ownership.objects.get_or_create(registry="dev", subject_pattern="*customer*", user=user)
    _add_mirror()
    if not Source.objects.filter(name=SOURCE).exists():
        _furnish(by, user, wide)
        refresh_outlooks()
    request = PromotionRequest.objects.filter(reason=MARK).order_by("pk").first()
    source = Source.objects.get(name=SOURCE)
    query = StreamQuery.objects.earliest("pk")
    scan, finding = source.scans.first(), source.findings.first()
    webhook = Webhook.objects.filter(owner=user).first()
    if not (request and scan and finding and webhook):
        raise Conflict("What the pages show is there in part alone: fill another database.")
    return {
        "usual": usual, "wide": wide.subject, "referred": referred, "fields": f"{_count(wide):,}",
        "path": _path(usual), "wide_path": _path(wide.subject), "planned": _planned()[-1],
        "term": _term(user), "middle": _middle(), "person": user.username, "mirror": MIRROR, "run": _run().pk, "copy": _copy().pk,
        "request": request.pk, "draft": Draft.objects.filter(author=user).earliest("pk").pk, "source": source.pk, "scan": scan.pk,
        "cluster": source.cluster_id, "finding": finding.pk, "query": query.pk,
        "variable": StateVariable.objects.filter(query=query).earliest("pk").pk,
        "check": StateCheck.objects.earliest("pk").pk, "webhook": webhook.public_id, "stop": stop_token(user.pk),
    }  # fmt: skip


def changed_text(text: str) -> str:
    """A schema of which most fields are others: of five one is gone, one has another type, one another doc, one a name."""
    schema = json.loads(text)
    fields: list[dict[str, Any]] = []
    for index, item in enumerate(schema["fields"]):
        if index % 5 == 1:
            bare = {key: value for key, value in item.items() if key != "default"}
            fields.append({**bare, "type": "bytes" if item["type"] == "string" else "string"})
        elif index % 5 == 2:
            fields.append({**item, "doc": f"Changed: {item.get('doc', 'it had none')}."})
        elif index % 5 == 3:
            fields.append({**item, "name": f"{item['name']}_new"})
        elif index % 5 == 4:
            fields.append(item)
    return json.dumps({**schema, "fields": fields})


# -- what is found ------------------------------------------------------------------------------------------------------


def _term(user: User) -> str:
    values = {"doc": "What was **measured**.", "updated_by": user.username}
    return BusinessTerm.objects.get_or_create(name="Measured term", defaults=values)[0].name


def _held(registry: str = "dev") -> Any:
    return Subject.objects.filter(context__registry__name=registry, context__name=DEFAULT_CONTEXT)


def _number(name: str) -> int:
    return int(name.split("-")[-2])


def _subject(fits: Any) -> str:
    """The first subject of the data set whose number fits. Raises Conflict where there is none."""
    for name in _held().exclude(name=dataset.SHARED).order_by("pk").values_list("name", flat=True).iterator(100):
        if fits(_number(name)):
            return str(name)
    raise Conflict("The data set isn't there, or it is too small: fill an empty database by `bench fill`.")


def _widest() -> SubjectName:
    """The first subject with the most fields, or where there are too few subjects, one that the first environment has alone."""
    numbers = [number for number in (199, 19, 9) if _held().filter(name=dataset.name_of(number)).exists()]
    if not numbers:
        raise Conflict("The data set isn't there, or it is too small: fill an empty database by `bench fill`.")
    return SubjectName(DEFAULT_CONTEXT, dataset.name_of(numbers[0]))


def _version(subject: str, number: int) -> SchemaVersion:
    return SchemaVersion.objects.get(subject=_held().get(name=subject), version=number)


def _fields(subject: str) -> list[dict[str, Any]]:
    return list(json.loads(_version(subject, 1).submitted)["fields"])


def _count(subject: SubjectName) -> int:
    return len(_fields(subject.subject))


def _middle() -> str:
    """The cursor of a page in the middle of the list of subjects."""
    registry = get_registry("dev")
    return subject_rows(registry, offset=(subject_rows(registry, limit=1).total or 0) // 2, limit=1).after


def _path(subject: str) -> str:
    """A field in the middle of the subject, as its biography is asked for."""
    schema = json.loads(_version(subject, 1).submitted)
    fields = [item for item in schema["fields"] if isinstance(item["type"], str)]
    return f"{schema['name']}.{fields[len(fields) // 2]['name']}"


def _planned() -> list[str]:
    """Subjects of the first environment that the second one hasn't."""
    elsewhere = _held("staging").values("name")
    return list(_held().exclude(name__in=elsewhere).order_by("pk").values_list("name", flat=True)[: REQUESTS + 1])


# -- what is made -------------------------------------------------------------------------------------------------------


def _furnish(by: Actor, user: User, wide: SubjectName) -> None:
    subscribe(event="*", registry_pattern="dev", by=by)
    _change_the_widest(by, wide)
    names = [wide, *(SubjectName(DEFAULT_CONTEXT, name) for name in _planned()[:-1])]
    for name in dict.fromkeys(names):
        request_promotion(source="dev", target="staging", subject=name, version=2, by=by, reason=MARK)
    save_draft(registry="dev", subject=wide, text=changed_text(_version(wide.subject, 2).submitted), by=by)
    now = timezone.now()
    add_freeze(environment="prod", by=by, starts_at=now + timedelta(days=90), ends_at=now + timedelta(days=91), reason=MARK)  # fmt: skip
    Webhook.objects.create(owner=user, name=MARK, url="https://example.com/hook", host="example.com")
    issue_token(username=user.username, name=MARK, by=by)
    _add_query(by)
    _add_source(by)


def _change_the_widest(by: Actor, wide: SubjectName) -> None:
    """Its first version is in the next environment too; and it has a third one, most of whose fields are others."""
    register_version(registry="staging", subject=wide, text=_version(wide.subject, 1).submitted, by=by)
    set_config(registry="dev", subject=wide, by=by, level="NONE")
    register_version(registry="dev", subject=wide, text=changed_text(_version(wide.subject, 2).submitted), by=by)


def _add_source(by: Actor) -> None:
    """A source of a cluster that nobody asks, with a scan and its findings, and a mute."""
    registry = Registry.objects.get(name="dev")
    cluster = Cluster.objects.create(name="bench", bootstrap="localhost:9092", created_by=by.name)
    source = Source.objects.create(registry=registry, kind="kafka", name=SOURCE, cluster=cluster, created_by=by.name)
    now = timezone.now()
    scan = Scan.objects.create(
        source=source, state="done", queued_by=by.name, started_at=now - timedelta(minutes=2), finished_at=now,
        read={"nothing": False, "messages": 1200, "bytes": 34500, "seconds": 1.2, "bound_reached": None, "tombstones": 1,
              "partitions": [{"partition": number, "start": 0, "end": 100, "high": 100, "messages": 100} for number in range(12)],
              "ids": [{"side": "value", "schema_id": 1, "messages": 1200}]},
    )  # fmt: skip
    Finding.objects.bulk_create(
        Finding(
            source=source, fingerprint=f"page{number:060x}", rule="UNKNOWN_SCHEMA_ID", severity="break",
            sentence=f"3 messages of orders-{number} (value) carry schema id {900_000 + number}, which dev doesn't know.",
            remedy="Find the producer.", location=f"orders-{number}:0@17 (value)", subject_name="",
            evidence={"topic": f"orders-{number}", "side": "value", "schema_id": 900_000 + number, "messages": 3,
                      "partitions": [{"partition": 0, "messages": 3, "first_offset": 17, "last_offset": 19,
                                      "first_time": 1780000000000, "last_time": 1780000001000}]},
            first_seen=now, last_seen=now, first_scan=scan, last_scan=scan, count=3,
        )
        for number in range(FINDINGS)
    )  # fmt: skip
    mute(registry="dev", reason=MARK, by=by, location="orders-1:*")


def _add_mirror() -> None:
    """A mirror of a registry that is never read."""
    mirror = {"kind": Registry.REMOTE, "url": "https://registry.example.com", "every_seconds": 300}
    location = {"project": settings.DEFAULT_PROJECT, "location": settings.DEFAULT_LOCATION}
    Registry.objects.get_or_create(**location, name=MIRROR, defaults=mirror)


def _run() -> JobRun:
    """The run of a job with a whole log."""
    now = timezone.now()
    lines = [
        f"12:00:00 INFO registry.drift.scan.runner: scan 1: reading orders, {number} of 200" for number in range(200)
    ]
    ended = {"state": JobRun.DONE, "started_at": now, "finished_at": now, "seconds": 1.0, "lines": lines}
    row, _ = JobRun.objects.get_or_create(task="registry.drift.tasks.run_scan", key=MARK, defaults=ended)
    return row


def _copy() -> ArchivedCopy:
    """The copy of a subject with some versions that was deleted for good."""
    version = {"context": ".", "subject": MARK, "schemaType": "AVRO", "schema": '"int"', "created_by": "bench"}
    now = timezone.now()
    versions = [
        {**version, "version": number, "id": 900_000_000, "deleted_at": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
        for number in range(1, 21)
    ]
    beside = dict.fromkeys(("note", "config", "mode", "owners"))
    row, _ = ArchivedCopy.objects.get_or_create(
        registry=get_registry("dev"), kind=ArchivedCopy.DELETED, name=MARK,
        defaults={"versions": 20, "content": json.dumps({"versions": versions, **beside}), "made_at": now,
                  "made_by": "bench", "until": now + timedelta(days=3650)},
    )  # fmt: skip
    return row


def _add_query(by: Actor) -> None:
    """A streaming query as a scan of its checkpoint saw it, and a check of the state as it is."""
    with tempfile.TemporaryDirectory(prefix="schemadesk-bench-") as scratch:
        root = Path(scratch).resolve()
        path = str(write_checkpoint(root / "query", schema_files=SCHEMA_FILES, variables=VARIABLES))
        registry = Registry.objects.get(name="dev")
        source = Source.objects.create(registry=registry, kind="state_store", name=path, created_by=by.name)
        scanned = scanned_query(read_checkpoint(path, [root]), (ScannedInput("orders"),), {})
        keep_query(source_id=source.pk, registry=registry, scanned=scanned)
        with override_settings(CHECKPOINT_ROOTS=[root]):
            plan = start_plan(checkpoint=path, by=by)
            check_planned_state(checkpoint=path, plan=parse_plan(plan), document=plan, by=by)
