"""What every client has to see, by the format of the schemas, and by the refusal."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from registry.formats.base import Reference
from tests.clients.programs import SCHEMAS

CUSTOMERS = "customers-value"
VALUE = {"name": "Ada", "home": {"city": "Wien"}}


@dataclass(frozen=True)
class Format:
    """The subject of the address, how customers refer to it, and the bytes of VALUE without a header."""

    folder: str
    ending: str
    subject: str
    reference: str
    payload: bytes

    def text(self, name: str) -> str:
        """One of the schemas, as the programs send it."""
        return (SCHEMAS / self.folder / f"{name}.{self.ending}").read_text()

    @property
    def references(self) -> tuple[Reference, ...]:
        """What every customer refers to."""
        return (Reference(self.reference, self.subject, 1),)


FORMATS = {
    "AVRO": Format("avro", "avsc", "shop.Address", "shop.Address", b"\x06Ada\x08Wien"),
    "JSON": Format("json", "json", "address.json", "https://shop.example/address.json", json.dumps(VALUE).encode()),
    "PROTOBUF": Format(
        "protobuf", "proto", "shop/address.proto", "shop/address.proto", b"\x0a\x03Ada\x12\x06\x0a\x04Wien"
    ),
}

#: step → (status, error code, what the message says)
REFUSALS = {
    "incompatible": (409, 409, r"incompatible with an earlier schema"),
    "broken": (422, 42201, r"strung"),
    "compatible with no version": (404, 40402, r"Version 99 not found\."),
    "look up of another": (404, 40403, r"Schema not found"),
    "unknown subject": (404, 40401, r"Subject 'nobody-value' not found\."),
    "unknown version": (404, 40402, r"Version 99 not found\."),
    "unknown id": (404, 40403, r"Schema 2147483647 not found"),
    "unknown guid": (404, 40403, r"Schema 00000000-0000-0000-0000-000000000000 not found"),
    "subject permanent before soft": (404, 40405, r"Subject 'customers-value' was not deleted first"),
    "version permanent before soft": (404, 40407, r"Version 1 was not deleted first"),
    "referenced": (422, 42206, r"One or more references exist to the schema"),
    "version twice": (404, 40406, r"Version 1 was soft deleted"),
    "subject twice": (404, 40404, r"Subject 'customers-value' was soft deleted"),
    "nothing left": (404, 40401, r"Subject 'customers-value' not found\."),
    "no level of its own": (404, 40408, r"does not have subject-level compatibility configured"),
    "level after reset": (404, 40408, r"does not have subject-level compatibility configured"),
    "reset twice": (404, 40401, r"not found\."),
    "no mode of its own": (404, 40409, r"does not have subject-level mode configured"),
    "mode after reset": (404, 40409, r"does not have subject-level mode configured"),
    "register in READONLY": (422, 42205, r"read-only"),
    "given id outside IMPORT": (422, 42205, r"import mode"),
    "IMPORT with schemas there": (422, 42205, r"Cannot import since found existing subjects"),
    "compatible with a slash": (404, 404, r"HTTP 404 Not Found"),
    "context that isn't empty": (422, 42211, r"is not empty"),
}


def is_refused(steps: dict[str, dict[str, Any]], step: str, expected: tuple[int, int, str] | None = None) -> None:
    """Asserts that the client told of a refusal what it keeps of one: the message; the status, the code, or both."""
    status, code, message = expected or REFUSALS[step]
    told = steps[step]
    assert told.get("status", status) == status, told
    assert told.get("code", code) == code, told
    assert re.search(message, told["message"]), told
