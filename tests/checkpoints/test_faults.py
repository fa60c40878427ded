"""Hostile and damaged checkpoints, and the query that goes on while its checkpoint is read."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from registry.checkpoints import find_checkpoints, read_checkpoint
from registry.checkpoints.files import CheckpointFiles, ReadLimits
from registry.checkpoints.logs import MAX_BATCHES
from registry.errors import InvalidCheckpoint
from tests.checkpoints.checkpoint_writer import family, struct_type, v3, write_checkpoint
from tests.waiting import costs_little, until

FIXTURES = Path(__file__).parent / "fixtures"
NAMES = sorted(path.name for path in FIXTURES.iterdir())


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    shutil.copytree(FIXTURES / "customer_totals", tmp_path / "c")
    return tmp_path / "c"


def refused(path: Path) -> str:
    with costs_little():  # a tenth of a second; what is refused isn't read
        with pytest.raises(InvalidCheckpoint) as caught:
            read_checkpoint(str(path), [path.parent])
    return caught.value.message


@pytest.mark.parametrize(
    "file", ["metadata", "offsets/4", "state/0/_metadata/v2/1", "state/0/_stateSchema/default/9_a"]
)
def test_two_gigabytes_are_refused_by_their_size_whatever_file_has_them(copied: Path, file: str) -> None:
    (copied / file).touch()
    os.truncate(copied / file, 2 * 1024**3)
    assert f"{file} has 2147483648 bytes; the maximum for such a file is" in refused(copied)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("metadata", '{"id":"' + "x" * 60_000),
        ("offsets/4", 'v1\n{"conf":{"a":"' + "x" * 1_000_000),
        ("offsets/4", "v1\n" + '{"a":' * 200_000),
        ("state/0/_metadata/v2/1", "v2\n" + '"' + "\\" * 1_000_001),
        ("state/0/_stateSchema/default/9_a", "\0\x02v3" + "\x7f\xff\xff\xff" * 1_000),
    ],
)
def test_a_text_without_an_end_is_damage(copied: Path, file: str, content: str) -> None:
    (copied / file).write_bytes(content.encode("latin-1"))
    assert refused(copied).startswith(file)


def test_sources_without_end_or_form_are_no_error(copied: Path) -> None:
    first = (copied / "offsets/4").read_text().split("\n")[:2]
    lines = ["[" * 100_000, '{"t":{"0":', "-", '{"orders":{"0":1}}', "\x00", *["7"] * 2_000]
    (copied / "offsets/4").write_text("\n".join([*first, *lines]))
    checkpoint = read_checkpoint(str(copied), [copied.parent])
    assert len(checkpoint.sources) == 1_000
    assert [source.kind for source in checkpoint.sources[:6]] == [
        "unknown",
        "unknown",
        "unknown",
        "kafka",
        "unknown",
        "rate",
    ]


@pytest.mark.slow
def test_thousands_of_variables_in_thousands_of_files_end_soon(tmp_path: Path) -> None:
    value = struct_type(a="long")
    many = v3(*(family(f"v{number}", value) for number in range(5_000)))
    write_checkpoint(tmp_path / "c", [(0, many), *((batch, v3(family("v0", value))) for batch in range(1, 3_000))])
    with costs_little(30):  # below one; 3,000 files of 5,000 variables each take minutes
        (operator,) = read_checkpoint(str(tmp_path / "c"), [tmp_path]).operators
    assert {variable.name: variable.removed_at for variable in operator.variables if variable.removed_at != 1} == {
        "v0": None
    }


def test_only_so_much_is_read_of_one_checkpoint(copied: Path) -> None:
    files = CheckpointFiles(str(copied), [copied.parent], patience=ReadLimits(total_bytes=2_000))
    with pytest.raises(InvalidCheckpoint, match="more than 2000 bytes"):
        for number in range(5):
            files.read("offsets", str(number), limit=10_000)
    late = CheckpointFiles(str(copied), [copied.parent], patience=ReadLimits(seconds=-1))
    with pytest.raises(InvalidCheckpoint, match="reading the checkpoint took more than"):
        late.entries()


def test_offsets_without_number_are_left_out_and_said(copied: Path) -> None:
    for number in range(5, MAX_BATCHES + 50):
        os.link(copied / "offsets/4", copied / f"offsets/{number}")
    checkpoint = read_checkpoint(str(copied), [copied.parent])
    assert checkpoint.last_planned_batch == MAX_BATCHES + 49
    assert checkpoint.problems[0] == "settings of the oldest 50 batches weren't read: offsets holds too many files"


@pytest.mark.parametrize("name", NAMES)
def test_reading_leaves_no_trace_and_opens_nothing_for_writing(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "c"
    shutil.copytree(FIXTURES / name, folder)
    before = _state(folder)
    opened = _Opened(folder)
    with opened:
        read_checkpoint(str(folder), [tmp_path])
        find_checkpoints(str(tmp_path), [tmp_path])
    assert _state(folder) == before
    assert len(opened.paths) > 6
    assert [flags for flags in opened.flags if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)] == []
    assert opened.others == []


def _state(folder: Path) -> list[tuple[str, int, int, int, bytes]]:
    """Names, sizes, modes, times and contents."""
    found = []
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found.append((str(path), status.st_size, status.st_mode, status.st_mtime_ns, content))
    return found


class _Opened:
    """What Python itself says of files opened, made, renamed and removed below a folder."""

    _active: _Opened | None = None
    _hooked = False

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self.paths: list[str] = []
        self.flags: list[int] = []
        self.others: list[str] = []

    def __enter__(self) -> None:
        if not _Opened._hooked:  # a hook can't be taken away again
            sys.addaudithook(_Opened._heard)
            _Opened._hooked = True
        _Opened._active = self

    def __exit__(self, *_: object) -> None:
        _Opened._active = None

    @staticmethod
    def _heard(event: str, arguments: tuple[Any, ...]) -> None:
        here = _Opened._active
        if here is None or not arguments or not str(arguments[0]).startswith(here._folder):
            return
        if event == "open":
            here.paths.append(str(arguments[0]))
            here.flags.append(int(arguments[2]))
        elif event not in ("os.scandir", "os.listdir"):
            here.others.append(event)


@pytest.mark.slow
def test_a_query_that_goes_on_meanwhile_is_read_without_an_error(copied: Path) -> None:
    """Batches are written as Spark does, by renaming, and old ones removed, while the checkpoint is read."""
    stop = threading.Event()

    def run() -> None:
        number = 5
        offsets, commit = (copied / "offsets/4").read_text(), (copied / "commits/4").read_text()
        metadata = (copied / "state/0/_metadata/v2/1").read_text()
        while not stop.is_set():
            for place, text in (("offsets", offsets), ("state/0/_metadata/v2", metadata), ("commits", commit)):
                hidden = copied / place / f".{number}.tmp"
                hidden.write_text(text)
                hidden.rename(copied / place / str(number))
                (copied / place / str(number - 4)).unlink(missing_ok=True)
            number += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        seen: set[int | None] = set()

        def have_read_many() -> bool:
            checkpoint = read_checkpoint(str(copied), [copied.parent])
            assert [variable.name for variable in checkpoint.operators[0].variables] == [
                "by_status",
                "last_orders",
                "totals",
            ]
            seen.add(checkpoint.last_committed_batch)
            return len(seen) > 50

        until(have_read_many)
    finally:
        stop.set()
        thread.join()


FIRST_BATCH = (
    "metadata",
    "offsets/0",
    "state/0/_stateSchema/default/0_a27314cd-840f-49b4-b738-1e0bccf0d3ff",
    "state/0/_metadata/v2/0",
    "commits/0",
)


def written(folder: Path, *files: str) -> None:
    """Files of the fixture's first batch, as its query wrote them; the folders of its logs are there from the start."""
    for log in ("offsets", "commits"):
        (folder / log).mkdir(parents=True, exist_ok=True)
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FIXTURES / "customer_totals" / file, folder / file)


@pytest.mark.requirement("DBX-1")
@pytest.mark.parametrize("done", range(2, len(FIRST_BATCH) + 1))
def test_a_first_batch_in_progress_is_a_query_that_starts(tmp_path: Path, done: int) -> None:
    written(tmp_path / "c", *FIRST_BATCH[:done])
    checkpoint = read_checkpoint(str(tmp_path / "c"), [tmp_path])
    is_committed = done == len(FIRST_BATCH)
    assert checkpoint.is_starting is not is_committed
    assert checkpoint.problems == ()
    if is_committed:
        assert [each.name for each in checkpoint.operators[0].variables] == ["by_status", "last_orders", "totals"]


@pytest.mark.requirement("DBX-1")
def test_a_first_batch_that_ends_while_it_is_read_never_leaves_a_query_without_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of the batch is written between any two looks at the checkpoint."""
    entries, read = CheckpointFiles.entries, CheckpointFiles.read
    looks = seen = 0
    for before in range(2, len(FIRST_BATCH)):
        at, has_more = 0, True
        while has_more:
            folder = tmp_path / f"{before}-{at}"
            written(folder, *FIRST_BATCH[:before])
            looks = 0

            def look(of: Any, *parts: Any, folder: Path = folder, at: int = at, **more: Any) -> Any:
                nonlocal looks
                if looks == at:
                    written(folder, *FIRST_BATCH)
                looks += 1
                return of(*parts, **more)

            monkeypatch.setattr(
                CheckpointFiles, "entries", lambda *args, look=look, **more: look(entries, *args, **more)
            )
            monkeypatch.setattr(CheckpointFiles, "read", lambda *args, look=look, **more: look(read, *args, **more))
            checkpoint = read_checkpoint(str(folder), [tmp_path])
            assert checkpoint.is_starting or [len(each.variables) for each in checkpoint.operators] == [3]
            assert checkpoint.problems == ()
            has_more, at, seen = looks > at, at + 1, seen + 1
    assert seen > 12
