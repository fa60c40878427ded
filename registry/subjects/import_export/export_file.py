"""The export file: JSON lines in UTF-8, in a fixed order, so equal registries give equal bytes; and its uploads."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import IO, Any, Final

from registry.errors import InvalidSnapshot, SchemadeskError
from registry.formats.base import Reference
from registry.subjects.import_export.snapshot import NoteRecord, Scope, Snapshot, VersionRecord, scope_key
from registry.subjects.policy.data_contracts import read_metadata, read_rule_set
from registry.subjects.remote.remote_client import read_mode, refuse_unusable_text
from registry.subjects.versions.qualified_names import SubjectName

FORMAT = "schemadesk registry export"
FORMAT_VERSION = 1
MEDIA_TYPE = "application/jsonl"
MAX_LINE = 16 * 1024 * 1024


def write_snapshot(snapshot: Snapshot, file: IO[bytes]) -> int:
    """Write the file and return the number of versions in it."""
    ordered = sorted(snapshot.versions, key=lambda row: (row.subject.context, row.subject.subject, row.version))
    return write_in_order(snapshot, ordered, file)


def write_in_order(around: Snapshot, versions: Iterable[VersionRecord], file: IO[bytes]) -> int:
    """Write versions that arrive one by one, in the order of contexts, subjects and numbers."""
    digest, count, written = hashlib.sha256(), 0, 0
    for line in _lines(around, versions):
        data = _line(line)
        digest.update(data)
        file.write(data)
        count += 1
        written += line["kind"] == "version"
    file.write(_line({"kind": "end", "lines": count, "sha256": digest.hexdigest()}))
    return written


def _lines(snapshot: Snapshot, versions: Iterable[VersionRecord]) -> Iterator[dict[str, Any]]:
    yield {"kind": "header", "format": FORMAT, "format_version": FORMAT_VERSION}
    for name in sorted(snapshot.contexts):
        yield {"kind": "context", "name": name, "next_schema_id": snapshot.contexts[name]}
    for scope in sorted(snapshot.configs, key=scope_key):
        yield {"kind": "config", **_scope(scope), "settings": dict(snapshot.configs[scope])}
    for scope in sorted(snapshot.modes, key=scope_key):
        yield {"kind": "mode", **_scope(scope), "mode": snapshot.modes[scope]}
    for subject in sorted(snapshot.notes, key=scope_key):
        note = snapshot.notes[subject]
        yield {"kind": "note", **_scope(subject), "tags": list(note.tags), "doc": note.doc}
    for record in versions:
        yield {"kind": "version", **_version(record)}


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def _scope(scope: Scope) -> dict[str, Any]:
    return {"context": scope.context if scope else None, "subject": (scope.subject or None) if scope else None}


def _version(record: VersionRecord) -> dict[str, Any]:
    values = {
        "context": record.subject.context,
        "subject": record.subject.subject,
        "version": record.version,
        "id": record.schema_id,
        "schemaType": record.schema_type,
        "schema": record.text,
        "references": [{"name": r.name, "subject": r.subject, "version": r.version} for r in record.references],
        "metadata": record.metadata,
        "ruleSet": record.rule_set,
        "submitted": record.submitted if record.submitted != record.text else None,
        "created_at": record.created_at.isoformat() if record.created_at else None,
        "created_by": record.created_by,
        "door": record.channel,
        "deleted_at": record.deleted_at.isoformat() if record.deleted_at else None,
    }
    return {name: value for name, value in values.items() if value not in (None, [], {})}


def read_snapshot(file: IO[bytes], name: str) -> Snapshot:
    """Return the contents of the file. Raises InvalidSnapshot, which names the line."""
    reader = _Reader(name)
    for line in _whole_lines(file, name):
        reader.take(line)
    return reader.finish()


def _whole_lines(file: IO[bytes], name: str) -> Iterator[bytes]:
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise InvalidSnapshot(f"{name}, line {number} has more than {MAX_LINE} bytes.")
        yield line


def _problem(error: Exception) -> str:
    """Describe in words what is wrong with a line."""
    if isinstance(error, json.JSONDecodeError):
        return f"it isn't JSON at column {error.colno} ({error.msg.removesuffix(' starting at')})"
    words: dict[type[Exception], str] = {
        KeyError: f"{str(error)[:80]} is missing or not known",
        RecursionError: "it is nested too deeply",
        UnicodeDecodeError: "it isn't UTF-8",
        ValueError: str(error)[:80],
    }
    return words.get(type(error), "a value has another type than an export writes")


class _Reader:
    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.digest = hashlib.sha256()
        self.ended = False
        self.contexts: dict[str, int] = {}
        self.configs: dict[Scope, dict[str, Any]] = {}
        self.modes: dict[Scope, str] = {}
        self.notes: dict[SubjectName, NoteRecord] = {}
        self.versions: dict[tuple[SubjectName, int], VersionRecord] = {}

    def take(self, line: bytes) -> None:
        if self.ended:
            raise self._line_error("comes after the end of the export")
        try:
            value = json.loads(line)
            refuse_unusable_text(value)
            kind = value["kind"]
            if self.count == 0 and (kind, value.get("format")) != ("header", FORMAT):
                raise ValueError(f"is not the first line of a {FORMAT}")
            getattr(self, _KINDS[kind])(value)
        except SchemadeskError as error:
            raise self._line_error(f"can't be read: {error.message.removesuffix('.')}") from error
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise self._line_error(f"can't be read: {_problem(error)}") from error
        self.digest.update(line)
        self.count += 1

    def finish(self) -> Snapshot:
        if not self.ended:
            raise InvalidSnapshot(f"{self.name} has no last line, so it is incomplete. Export it again.")
        return Snapshot(tuple(self.versions.values()), self.contexts, self.configs, self.modes, self.notes)

    def header(self, value: dict[str, Any]) -> None:
        if value["format_version"] != FORMAT_VERSION:
            raise ValueError(f"format_version is {value['format_version']!r}; this program reads {FORMAT_VERSION}")

    def context(self, value: dict[str, Any]) -> None:
        self.contexts[_text(value["name"])] = _number(value["next_schema_id"])

    def config(self, value: dict[str, Any]) -> None:
        self.configs[_read_scope(value)] = {_text(name): setting for name, setting in value["settings"].items()}

    def mode(self, value: dict[str, Any]) -> None:
        self.modes[_read_scope(value)] = read_mode(value)

    def note(self, value: dict[str, Any]) -> None:
        subject = SubjectName(_text(value["context"]), _text(value["subject"]))
        if subject in self.notes:
            raise ValueError(f"repeats the note of {subject.qualified}")
        self.notes[subject] = NoteRecord(tuple(_text(tag) for tag in _list(value["tags"])), _text(value["doc"]))

    def version(self, value: dict[str, Any]) -> None:
        record = version_of(value)
        if record.key in self.versions:
            raise ValueError(f"repeats {record.title}")
        self.versions[record.key] = record

    def end(self, value: dict[str, Any]) -> None:
        if (value["lines"], value["sha256"]) != (self.count, self.digest.hexdigest()):
            raise ValueError("doesn't match the lines before it: the file was changed or is incomplete")
        self.ended = True

    def _line_error(self, what: str) -> InvalidSnapshot:
        return InvalidSnapshot(f"{self.name}, line {self.count + 1} {what}.")


def version_of(value: Mapping[str, Any]) -> VersionRecord:
    """Return the version in a line. Raises TypeError, ValueError, KeyError, and the errors of invalid contracts."""
    return VersionRecord(
        subject=SubjectName(_text(value["context"]), _text(value["subject"])),
        version=_number(value["version"]),
        schema_id=_number(value["id"]),
        schema_type=_text(value["schemaType"]),
        text=_text(value["schema"]),
        references=tuple(
            Reference(_text(item["name"]), _text(item["subject"]), _number(item["version"]))
            for item in value.get("references", [])
        ),
        metadata=read_metadata(value.get("metadata")) or None,
        rule_set=read_rule_set(value.get("ruleSet")) or None,
        deleted="deleted_at" in value,
        deleted_at=_time(value.get("deleted_at")),
        submitted=_text(value.get("submitted", value["schema"])),
        created_at=_time(value.get("created_at")),
        created_by=_text(value.get("created_by", "")),
        channel=_text(value.get("door", "")),
    )


#: kind of line → the method that reads it
_KINDS = {name: name for name in ("header", "context", "config", "mode", "note", "version", "end")}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a text was expected")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("a list was expected")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -1 <= value <= 2**31:
        raise TypeError("a number was expected")
    return value


def _time(value: Any) -> datetime | None:
    if value is None:
        return None
    moment = datetime.fromisoformat(_text(value))
    if moment.tzinfo is None:
        raise ValueError("a time needs its offset")
    return moment


def _read_scope(value: Mapping[str, Any]) -> Scope:
    context, subject = value["context"], value["subject"]
    return None if context is None else SubjectName(_text(context), _text(subject or ""))


#: bytes of an upload, packed and unpacked
MAX_SENT: Final = 16 * 1024 * 1024
MAX_UNPACKED: Final = 32 * 1024 * 1024
MAX_NAME: Final = 200
COMMAND: Final = "python3 manage.py import_registry --from FILE"


def read_sent(data: bytes, name: str, *, size: int) -> Snapshot:
    """Return the contents of an uploaded file; `size` is its full size, because the data of a too large one may be cut.

    Raises InvalidSnapshot, which names the place or the limit.
    """
    if max(size, len(data)) > MAX_SENT:
        raise InvalidSnapshot(
            f"The file has more than {MAX_SENT // 2**20} MiB. Import larger files with the command: {COMMAND}"
        )
    return read_snapshot(io.BytesIO(_unpacked(data)), shown_name(name))


def shown_name(name: str) -> str:
    """Return the name that a file is shown with: the last part of its name, on one line."""
    last = name.replace("\\", "/").rpartition("/")[2]
    printable = "".join(char for char in last if char.isprintable())[:MAX_NAME].strip()
    return printable or "the file"


def _unpacked(data: bytes) -> bytes:
    if data[:2] == b"\x1f\x8b":
        return _gunzipped(data)
    if data[:4] == b"PK\x03\x04":
        return _unzipped(data)
    return data


def _gunzipped(data: bytes) -> bytes:
    reader = zlib.decompressobj(wbits=31)
    try:
        content = reader.decompress(data, MAX_UNPACKED + 1)
    except zlib.error as error:
        raise InvalidSnapshot("The file is a gzip file that can't be unpacked: it is damaged.") from error
    if len(content) > MAX_UNPACKED:
        raise _too_large()
    if not reader.eof:
        raise InvalidSnapshot("The gzip file is incomplete. Send it again.")
    if reader.unused_data:
        raise InvalidSnapshot("There is more data after the end of the gzip file. Send a single file.")
    return content


def _unzipped(data: bytes) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if len(entries) != 1:
                raise InvalidSnapshot(f"The ZIP has {len(entries)} files, but an export has one.")
            if entries[0].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # partially readable
                raise zipfile.BadZipFile(f"packed by method {entries[0].compress_type}")
            with archive.open(entries[0]) as inside:
                return _bounded(inside)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise InvalidSnapshot(
            "The ZIP can't be unpacked: it is damaged, encrypted or uses an unsupported compression."
        ) from error


def _bounded(file: IO[bytes]) -> bytes:
    content = file.read(MAX_UNPACKED + 1)
    if len(content) > MAX_UNPACKED:
        raise _too_large()
    return content


def _too_large() -> InvalidSnapshot:
    return InvalidSnapshot(
        f"Unpacked, the file has more than {MAX_UNPACKED // 2**20} MiB. Import larger files with the command: {COMMAND}"
    )
