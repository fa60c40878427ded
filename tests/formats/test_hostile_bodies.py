"""Bodies that end scans elsewhere, in the decoder of pasted messages and of replays: each is read, or refused in words."""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection

import pytest

from registry.errors import InvalidDatum
from registry.formats import FORMATS
from registry.formats.decoding import decode_body, json_value, replay_of
from tests.pipeline.hostile import HOSTILE, PROTO, Hostile

SECONDS = 60
#: JSON without a schema is read by the same function as JSON with one
ANY = "{}"


@pytest.mark.requirement("DEB-5")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_body_ends_no_process(name: str) -> None:
    here, there = multiprocessing.get_context("fork").Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_decode, args=(HOSTILE[name], there))
    child.start()
    there.close()
    try:
        told = here.recv() if here.poll(SECONDS) else "it takes too long"
    except EOFError:
        told = "the process ended"
    child.kill()
    child.join()
    assert told in ("read", "refused"), told


def _decode(case: Hostile, answer: Connection) -> None:
    kind = case.kind or "JSON"
    engine = FORMATS[kind]
    schema = engine.parse(PROTO if kind == "PROTOBUF" else case.schema or ANY)
    told = []
    for read in (
        lambda: decode_body(engine, schema, case.body),
        lambda: replay_of(engine, schema, schema)(case.body, None),
        lambda: json_value(case.body),
    ):
        try:
            read()
            told.append("read")
        except InvalidDatum as error:
            told.append("refused" if error.message else "without a word")
        except Exception as error:  # noqa: BLE001  told to the test, which fails
            told.append(repr(error)[:300])
    answer.send(next((each for each in told if each not in ("read", "refused")), told[0]))
