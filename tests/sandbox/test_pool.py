"""Children under attack: each limit is met, is told, and costs nobody but the caller."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.http import HttpResponse

from registry.api.outage import set_retry_after
from registry.errors import InvalidSchema, SchemadeskError, SchemaTooCostly, Unavailable
from registry.formats import FORMATS
from registry.formats.base import ResolvedReference
from registry.formats.compatibility import check
from registry.sandbox.codec import Source
from registry.sandbox.pool import EngineFailed, Pool
from registry.sandbox.process import MIB, Limits, sweep_folders
from tests.waiting import ends_soon, until

ROOT = Path(__file__).resolve().parents[2]
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="this limit is Linux's")


@pytest.fixture
def make() -> Iterator[Callable[..., Pool]]:
    """A pool of children that can be asked for trouble; closed in the end."""
    pools: list[Pool] = []

    def call(**limits: Any) -> Pool:
        limits = {"seconds": 30.0, "start": 60.0, "waiting": 64, **limits}
        pool = Pool(Limits(**limits), program="tests.sandbox.bombs")
        pools.append(pool)
        pool.start()
        until(lambda: len(pool.pids) == pool.limits.children)
        return pool

    yield call
    for pool in pools:
        pool.close()


def record(count: int, type_: str = "int") -> str:
    fields = [{"name": f"f{number}", "type": type_} for number in range(count)]
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


TROUBLES = {
    "a loop": ("spin", [], "processor", "more than 1 s of processor time"),
    "python's memory": ("allocate", [4_000], "memory", "more than 300 MiB of memory"),
    "a native library's memory": ("allocate_in_rust", [13], "memory|processor", "which is the limit"),
    "a crash": ("die", ["SIGSEGV"], "crash", "SIGSEGV"),
    "an abort": ("die", ["SIGABRT"], "crash", "SIGABRT"),
    "out of memory as Rust says it": ("leave", ["memory allocation of 9 bytes failed"], "memory", "300 MiB of memory"),
    "a long answer": ("big", [MIB + 1], "answer", "more than 1 MiB"),
    "bytes of its own": ("forge", [], "crash", "ended"),
}


@ON_LINUX
@pytest.mark.slow
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_limit_is_met_and_reported_and_the_next_caller_is_served(make: Callable[..., Pool], trouble: str) -> None:
    verb, arguments, limit, words = TROUBLES[trouble]
    seconds = 1.0 if "processor" in limit else 30.0
    pool = make(children=1, seconds=seconds, memory=300 * MIB, answer=MIB)
    with ends_soon(), pytest.raises(SchemaTooCostly) as caught:
        pool.run(verb, arguments, about='the JSON schema "Trouble"')
    assert caught.value.details["limit"] in limit.split("|")
    assert 'the JSON schema "Trouble"' in caught.value.message
    assert words in caught.value.message
    assert pool.run("echo", ["next"]) == "next"


@pytest.mark.slow
def test_a_job_that_is_slow_for_another_reason_than_its_schema_can_be_sent_again(make: Callable[..., Pool]) -> None:
    pool = make(children=1, seconds=1.0, busy=1.5)
    with ends_soon(), pytest.raises(Unavailable) as caught:
        pool.run("sleep", [60.0], about='the JSON schema "Slow"')
    assert caught.value.message == (
        'Reading and comparing the JSON schema "Slow" didn\'t end within 1.5 s, because the server is too busy. The '
        "server did not read the schema. Send the request again in 1 second."
    )
    assert pool.run("sleep", [1.2]) == 1.2, "a second of processor time isn't one by the clock"
    spent = pool.allowance()
    spent.wall = 0.0
    with pytest.raises(Unavailable):
        pool.run("echo", ["late"], allowance=spent)
    assert pool.run("echo", ["next"]) == "next"


def test_answers_come_as_they_are_made(make: Callable[..., Pool]) -> None:
    pool = make(children=1)
    source = Source("AVRO", record(3))
    parsed = pool.run("parse", [source])
    here = FORMATS["AVRO"].parse(source.text)
    assert (parsed, parsed.text, parsed.model) == (here, here.text, None)
    old = FORMATS["AVRO"].parse(record(3, "string"))
    report = pool.run("check", [source, ((7, Source("AVRO", old.text)),), "BACKWARD"])
    assert report == check(FORMATS["AVRO"], here, [(7, old)], "BACKWARD")
    assert report.to_dict() == check(FORMATS["AVRO"], here, [(7, old)], "BACKWARD").to_dict()
    assert not report.is_compatible
    with pytest.raises(InvalidSchema) as caught:
        pool.run("parse", [Source("AVRO", '{\n "type": ')])
    assert (caught.value.line, type(caught.value)) == (2, InvalidSchema)
    assert pool.run("chatter", []) == "said"
    assert pool.run("echo", ["after the chatter"]) == "after the chatter"


def test_references_come_along(make: Callable[..., Pool]) -> None:
    pool = make(children=1)
    inner = ResolvedReference("Line", "line", 3, json.dumps({"type": "fixed", "name": "Line", "size": 4}))
    outer = ResolvedReference("Box", "box", 1, json.dumps(
        {"type": "record", "name": "Box", "fields": [{"name": "a", "type": "Line"}, {"name": "b", "type": "Line"}]}
    ), (inner, inner))  # fmt: skip
    text = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "box", "type": "Box"}]})
    there = pool.run("parse", [Source("AVRO", text, (outer,))])
    assert there == FORMATS["AVRO"].parse(text, (outer,))


@ON_LINUX
def test_a_child_knows_nothing_of_the_server(make: Callable[..., Pool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "hidden")
    read, write = os.pipe()
    os.set_inheritable(write, True)
    try:
        told = make(children=1).run("environment", [])
    finally:
        os.close(read)
        os.close(write)
    assert set(told["environment"]) <= {
        "PYTHONPATH",
        "TMPDIR",
        "LC_ALL",
        "LC_CTYPE",
        "PWD",
        "SCHEMA_FORMATS",
        "SHLVL",
        "_",
    }
    # Standard input and output are /dev/null by now; the two after the error file are the pipe; the last lists them.
    assert len(told["descriptors"]) <= 6
    assert told["folder"].rpartition("/")[2].startswith("schemadesk-child-")


def test_what_an_engine_does_not_document_is_a_fault_of_the_product(make: Callable[..., Pool]) -> None:
    pool = make(children=1)
    with pytest.raises(EngineFailed, match="ZeroDivisionError: an engine's fault"):
        pool.run("fault", [])
    with pytest.raises(EngineFailed, match="can't cross the pipe"):
        pool.run("strange", [])
    with pytest.raises(EngineFailed, match="no verb"):
        pool.run("__class__", [Source("AVRO", '"int"')])
    with pytest.raises(EngineFailed, match="KeyError"):
        pool.run("parse", [Source("NONE", '"int"')])


@pytest.mark.slow
def test_a_child_killed_from_outside_is_replaced(make: Callable[..., Pool]) -> None:
    pool = make(children=2)
    folders = {Path(f"/proc/{pid}/cwd").readlink() for pid in pool.pids} if sys.platform == "linux" else set()
    before = set(pool.pids)
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    until(lambda: all(gone(pid) for pid in before))
    assert pool.run("echo", [1]) == 1
    until(lambda: len(pool.pids) == 2)
    assert not before & set(pool.pids)
    assert not [folder for folder in folders if folder.exists()]


@pytest.mark.slow
def test_a_child_killed_amid_a_job_tells_its_caller(make: Callable[..., Pool]) -> None:
    pool = make(children=1, seconds=120.0)
    (pid,) = pool.pids
    threading.Timer(0.3, os.kill, (pid, signal.SIGKILL)).start()
    with ends_soon(), pytest.raises(SchemaTooCostly, match="SIGKILL"):
        pool.run("sleep", [60.0])
    assert pool.run("echo", [1]) == 1


def test_a_child_is_replaced_after_its_jobs(make: Callable[..., Pool]) -> None:
    ballast = bytearray(400 * MIB)  # a large server is no reason to replace its children
    pool = make(children=1, jobs=3)
    del ballast
    pids = [pool.run("environment", [])["pid"] for _ in range(7)]
    assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [3, 3, 1]


@ON_LINUX
def test_a_child_that_grew_is_replaced(make: Callable[..., Pool]) -> None:
    pool = make(children=1, memory=400 * MIB)
    (before,) = pool.pids
    assert pool.run("allocate", [250]) == 250 * MIB
    assert pool.run("environment", [])["pid"] != before


@pytest.mark.slow
def test_busy_children_are_waited_for_as_long_as_a_job_may_take(make: Callable[..., Pool]) -> None:
    patient, hasty = make(children=1, seconds=30.0, waiting=1), make(children=1, seconds=1.0, waiting=1)
    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(patient.run, "sleep", [1.5])
        until(lambda: patient._busy)
        second = threads.submit(patient.run, "echo", ["waited"])
        until(lambda: patient._turns)
        with pytest.raises(Unavailable) as refused:
            patient.run("echo", ["one too many"])
        assert refused.value.message == (
            "The process that reads costly schemas is busy, and 1 other request waits for it already. The server did not "
            "read the schema. Send the request again in 30 seconds."
        )
        assert refused.value.details == {"retry_after": 30}
        assert not first.done()
        assert (first.result(), second.result()) == (1.5, "waited")
        slow = threads.submit(hasty.run, "sleep", [4.0])
        until(lambda: hasty._busy)
        begin = time.monotonic()
        with pytest.raises(Unavailable) as refused:
            hasty.run("echo", ["in vain"])
        assert refused.value.message == (
            "The process that reads costly schemas is busy, and did not become free within 1 s. The server did not read "
            "the schema. Send the request again in 1 second."
        )
        assert time.monotonic() - begin > 0.9
        assert slow.result() == 4.0


def test_why_no_child_could_be_started_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_given: Any) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("registry.sandbox.pool.ChildProcess", refused)
    pool = Pool(Limits(children=2, start=10.0))
    try:
        with pytest.raises(Unavailable) as caught:
            pool.run("echo", [1])
    finally:
        pool.close()
    assert caught.value.message == (
        "No process that reads costly schemas runs: it could not be started (Too many open files). The server did not "
        "read the schema. Send the request again in 10 seconds."
    )
    assert set_retry_after(HttpResponse(), caught.value)["Retry-After"] == "10"


@pytest.mark.slow
@pytest.mark.requirement("GOO-2")
def test_sixteen_threads_of_mixed_jobs_get_right_answers(make: Callable[..., Pool]) -> None:
    pool = make(children=2, seconds=30.0, jobs=15, waiting=64)
    sizes = (1, 5, 20)
    texts = [record(size, type_) for size in sizes for type_ in ("int", "long", "string")]
    here = {text: FORMATS["AVRO"].parse(text) for text in texts}

    def mixed(seed: int) -> int:
        lots = random.Random(seed)
        for number in range(25):
            a, b = lots.choice(texts), lots.choice(texts)
            if lots.random() < 0.05:
                with pytest.raises(SchemadeskError):
                    pool.run(*lots.choice([("die", ["SIGKILL"]), ("parse", [Source("AVRO", "{")])]))
            elif lots.random() < 0.5:
                assert pool.run("judge", [Source("AVRO", a), Source("AVRO", b)]) == FORMATS["AVRO"].judge(
                    here[a], here[b]
                )
            else:
                assert pool.run("echo", [[seed, number, a]]) == [seed, number, a]
        return seed

    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(mixed, range(16))) == list(range(16))
    until(lambda: len(pool.pids) == 2)


PARENT = """
import os, sys, threading, time
from registry.sandbox.process import Limits
from registry.sandbox.process import sweep_folders
from registry.sandbox.pool import Pool
pool = Pool(Limits(children=2, seconds=60.0), program="tests.sandbox.bombs")
# The thread that asks first is over when the children are still needed.
first = threading.Thread(target=pool.run, args=("echo", [1]))
first.start(); first.join()
while len(pool.pids) < 2: time.sleep(0.01)
threading.Thread(target=pool.run, args=("spin", [])).start()
time.sleep(0.2)
print(*pool.pids, flush=True)
time.sleep(600)
"""


@ON_LINUX
@pytest.mark.slow
def test_a_killed_parent_leaves_no_children() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PARENT)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert len(pids) == 2
    assert not any(gone(pid) for pid in pids)
    parent.kill()
    parent.wait()
    until(lambda: all(gone(pid) for pid in pids))  # they would go on for a minute
    parent.stdout.close()


@ON_LINUX
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_children_of_its_own(make: Callable[..., Pool]) -> None:
    pool = make(children=1)
    (before,) = pool.pids
    read, write = os.pipe()
    forked = os.fork()
    if forked == 0:
        status = 1
        try:
            theirs = pool.run("environment", [])["pid"]
            os.write(write, str(theirs).encode())
            pool.close()
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    theirs = int(os.read(read, 20) or b"0")
    os.close(read)
    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
    assert theirs not in (0, before)
    assert pool.run("environment", [])["pid"] == before


def test_a_closed_pool_has_no_children_and_may_be_used_again(make: Callable[..., Pool]) -> None:
    pool = make(children=1)
    (before,) = pool.pids
    pool.close()
    assert pool.pids == ()
    assert gone(before)
    assert pool.run("echo", [1]) == 1


def test_folders_of_parents_that_were_killed_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    names = {
        "schemadesk-child-4194999-old": 0,
        "schemadesk-child-4194999-new": time.time(),
        f"schemadesk-child-{os.getpid()}-x": 0,
    }
    for name, moment in names.items():
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (moment, moment))
    sweep_folders()
    assert {path.name for path in tmp_path.iterdir()} == set(names) - {"schemadesk-child-4194999-old"}
