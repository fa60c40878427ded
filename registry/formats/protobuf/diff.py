"""All differences between two schemas, for people, with pointers and paths, in the order of the new text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from registry.formats.base import Difference
from registry.formats.json_pointer import join
from registry.formats.protobuf.compiler import KNOWN_NAMES
from registry.formats.protobuf.differences import (
    DifferencePath,
    difference,
    doc_differences,
    enum_differences,
    extension_differences,
    extension_range_differences,
    field_differences,
    option_differences,
    renamed_oneofs,
)
from registry.formats.protobuf.model import Enum, Message, Method, Schema, Service


def diff_schemas(old: Schema, new: Schema) -> tuple[Difference, ...]:
    """Return all differences between two schemas."""
    return tuple(_Diff(old, new).all())


class _Diff:
    def __init__(self, old: Schema, new: Schema) -> None:
        self._old = old
        self._new = new

    def all(self) -> Iterator[Difference]:
        old, new = self._old.main, self._new.main
        if old.syntax != new.syntax:
            yield difference("SYNTAX_CHANGED", DifferencePath("", "/syntax", "/syntax"), old.syntax, new.syntax)
        if old.package != new.package:
            location = DifferencePath("", "/package" if old.package else "", "/package" if new.package else "")
            yield difference("PACKAGE_CHANGED", location, old.package, new.package)
        yield from self._imports(old.imports, new.imports)
        yield from option_differences(old.options, new.options, DifferencePath("", "/options", "/options"), "the file")
        yield from self._messages(old.messages, new.messages, DifferencePath("", "", ""))
        yield from self._enums(old.enums, new.enums, DifferencePath("", "", ""))
        yield from extension_differences(old.extensions, new.extensions)
        yield from self._services(old.services, new.services)

    def _imports(self, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Difference]:
        for name, kind in new.items():
            pointer = join("/imports", name)
            location = DifferencePath("", pointer if name in old else None, pointer)
            if name not in old:
                yield difference("IMPORT_ADDED", location, None, name, name=name)
            elif old[name] != kind:
                shown = old[name] or "private", kind or "private"
                yield difference("IMPORT_KIND_CHANGED", location, *shown, name=name)
        for name in old:
            if name not in new:
                yield difference(
                    "IMPORT_REMOVED", DifferencePath("", join("/imports", name), None), name, None, name=name
                )
        ours = {proto.name: proto for proto in self._new.protos[:-1]}
        for proto in self._old.protos[:-1]:
            other = ours.get(proto.name)
            if other is not None and proto.name not in KNOWN_NAMES and proto != other:
                pointers = (join("/imports", proto.name) if proto.name in side else None for side in (old, new))
                yield difference("IMPORT_CONTENT_CHANGED", DifferencePath("", *pointers), None, None, name=proto.name)

    def _messages(
        self, old: dict[str, Message], new: dict[str, Message], outside: DifferencePath
    ) -> Iterator[Difference]:
        for name, after in new.items():
            before = old.get(name)
            if after.is_map_entry:
                continue
            if before is None or before.is_map_entry:
                location = DifferencePath(after.local_name, None, after.pointer)
                yield difference("MESSAGE_ADDED", location, None, name, name=after.local_name)
            else:
                yield from self._message(before, after)
        for name, before in old.items():
            if not before.is_map_entry and (name not in new or new[name].is_map_entry):
                location = DifferencePath(before.local_name, before.pointer, None)
                yield difference("MESSAGE_REMOVED", location, name, None, name=before.local_name)
        orders = (
            [name for name, message in side.items() if not message.is_map_entry and name in other]
            for side, other in ((old, new), (new, old))
        )
        before_order, after_order = orders
        if before_order != after_order:
            yield difference("MESSAGES_REORDERED", outside, before_order, after_order)

    def _message(self, old: Message, new: Message) -> Iterator[Difference]:
        location = DifferencePath(new.local_name, old.pointer, new.pointer)
        yield from doc_differences(old.doc, new.doc, location)
        yield from option_differences(old.options, new.options, location, new.local_name)
        yield from self._oneofs(old, new)
        yield from field_differences(old, new)
        yield from extension_range_differences(old, new, location)
        yield from self._messages(old.messages, new.messages, location)
        yield from self._enums(old.enums, new.enums, location)
        yield from extension_differences(old.extensions, new.extensions)

    def _oneofs(self, old: Message, new: Message) -> Iterator[Difference]:
        renamed = renamed_oneofs(old, new)
        for name, after in new.oneofs.items():
            before = old.oneofs.get(renamed.get(name, name))
            path = f"{new.local_name}.{name}"
            if before is None:
                yield difference("ONEOF_ADDED", DifferencePath(path, None, after.pointer), None, name, name=name)
                continue
            location = DifferencePath(path, before.pointer, after.pointer)
            if before.name != name:
                yield difference("ONEOF_RENAMED", location, before.name, name)
            yield from doc_differences(before.doc, after.doc, location)
            yield from option_differences(before.options, after.options, location, name)
        for before in old.oneofs.values():
            if before.name in new.oneofs or before.name in renamed.values():
                continue
            location = DifferencePath(f"{old.local_name}.{before.name}", before.pointer, None)
            yield difference("ONEOF_REMOVED", location, before.name, None, name=before.name)

    def _enums(self, old: dict[str, Enum], new: dict[str, Enum], outside: DifferencePath) -> Iterator[Difference]:
        for name, after in new.items():
            if name in old:
                yield from enum_differences(old[name], after)
            else:
                location = DifferencePath(after.local_name, None, after.pointer)
                yield difference("ENUM_ADDED", location, None, after.numbers, name=after.local_name)
        for name, before in old.items():
            if name not in new:
                location = DifferencePath(before.local_name, before.pointer, None)
                yield difference("ENUM_REMOVED", location, before.numbers, None, name=before.local_name)

    def _services(self, old: dict[str, Service], new: dict[str, Service]) -> Iterator[Difference]:
        for name, after in new.items():
            if name not in old:
                yield difference("SERVICE_ADDED", DifferencePath(name, None, after.pointer), None, name, name=name)
            else:
                yield from self._service(old[name], after)
        for name, before in old.items():
            if name not in new:
                yield difference("SERVICE_REMOVED", DifferencePath(name, before.pointer, None), name, None, name=name)

    def _service(self, old: Service, new: Service) -> Iterator[Difference]:
        location = DifferencePath(new.name, old.pointer, new.pointer)
        yield from doc_differences(old.doc, new.doc, location)
        yield from option_differences(old.options, new.options, location, new.name)
        for name, after in new.methods.items():
            before, path = old.methods.get(name), f"{new.name}.{name}"
            shown = self._signature(after, self._new)
            if before is None:
                yield difference("METHOD_ADDED", DifferencePath(path, None, after.pointer), None, shown, name=name)
                continue
            here = DifferencePath(path, before.pointer, after.pointer)
            was = self._signature(before, self._old)
            if was != shown:
                yield difference("METHOD_CHANGED", here, was, shown, name=name)
            yield from doc_differences(before.doc, after.doc, here)
            yield from option_differences(before.options, after.options, here, name)
        for name, before in old.methods.items():
            if name not in new.methods:
                here, was = (
                    DifferencePath(f"{old.name}.{name}", before.pointer, None),
                    self._signature(before, self._old),
                )
                yield difference("METHOD_REMOVED", here, was, None, name=name)

    @staticmethod
    def _signature(method: Method, schema: Schema) -> str:
        """Return request and response types, without the schema's own package, whose change is reported once."""
        names = []
        for full_name, is_stream in (
            (method.request, method.is_client_streaming),
            (method.response, method.is_server_streaming),
        ):
            message = schema.messages.get(full_name)
            own = message is not None and message.source is None
            names.append(("stream " if is_stream else "") + (message.local_name if message and own else full_name))
        return f"({names[0]}) returns ({names[1]})"
