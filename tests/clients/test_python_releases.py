"""Releases of confluent-kafka for Python that read a registration's answer in different ways (docs/how-to/clients.md).

Up to 2.6 they take the id alone. 2.7 and 2.8.0 keep the schema of the answer, whatever it is. From 2.8.2 they keep what they sent,
and from 2.11 the schema of the answer again, where there is one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.programs import HERE, run_python
from tests.clients.serving import Server
from tests.toolchains import require_tools

pytestmark = [pytest.mark.clients, pytest.mark.slow, pytest.mark.requirement("GOO-1")]

RELEASES = sorted(path.stem for path in Path(HERE / "python" / "releases").glob("*.txt"))
SETTINGS = ((), ("normalize.schemas=true",), ("auto.register.schemas=false",))


TYPES = ("AVRO", "JSON", "PROTOBUF")
#: its Protobuf needs a release of protobuf that is older than the one here
WITHOUT_PROTOBUF = {"2.6.1"}


@pytest.mark.parametrize(
    ("release", "schema_type"),
    [
        (release, kind)
        for release in RELEASES
        for kind in TYPES
        if kind != "PROTOBUF" or release not in WITHOUT_PROTOBUF
    ],
)
def test_one_object_of_each_release_writes_and_reads(server: Server, release: str, schema_type: str) -> None:
    require_tools("confluent-kafka for Python", ("pip",))
    for words in SETTINGS:
        (told,) = run_python(release, schema_type, *words, **server.environment())
        assert told["release"] == release
        assert told["reads"] == [{"id": 7}, {"id": 7}], words
