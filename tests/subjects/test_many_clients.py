"""Sixty-four real processes at the same moment: one id, no holes, nothing that doesn't fit, no id twice."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pytest

from registry.formats import FORMATS
from registry.formats.compatibility import check
from registry.subjects.models import Context, Schema, SchemaVersion
from tests.amounts import how_many
from tests.subjects.client_process import Call, Outcome, perform
from tests.subjects.linearizability import parsed
from tests.subjects.races import PLAIN, Calls, Clients, client_processes, optional, record_text, required

pytestmark = [
    pytest.mark.usefixtures("transactional_db", "registries"),
    pytest.mark.slow,
    pytest.mark.requirement("GOO-1"),
]
CROWD = 64
#: each seed is another interleaving
SEEDS = range(how_many("rounds of many clients"))
LONG = {"name": "id", "type": "long"}
FITTING = [record_text(LONG, optional(f"note_{number}")) for number in range(CROWD)]
MISFITS = [record_text(LONG, required(f"key_{number}")) for number in range(CROWD)]


@pytest.fixture(scope="module")
def crowd(django_db_setup: None) -> Iterator[Clients]:
    """Sixty-four processes, each with a connection of its own."""
    with client_processes(CROWD) as started:
        yield started


def done(outcomes: Sequence[Outcome]) -> list[tuple[int, int, bool]]:
    """(version, schema id, was created) of the calls that weren't refused, sorted."""
    values = [outcome.value for outcome in outcomes if not outcome.error]
    return sorted((value.version, value.schema_id, value.created) for value in values)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_schema_is_one_id_and_one_version(crowd: Clients, seed: int) -> None:
    outcomes = crowd.race([[Calls(f".same{seed}").register("orders", PLAIN)]] * CROWD, seed)
    assert done(outcomes) == [*[(1, 1, False)] * (CROWD - 1), (1, 1, True)]


@pytest.mark.parametrize("seed", SEEDS)
def test_different_schemas_that_fit_get_versions_without_holes(crowd: Clients, seed: int) -> None:
    calls = Calls(f".fitting{seed}")
    outcomes = crowd.race([[calls.register("orders", text)] for text in FITTING], seed)
    assert done(outcomes) == [(number, number, True) for number in range(1, CROWD + 1)]


@pytest.mark.requirement("GOO-2")
@pytest.mark.parametrize("seed", SEEDS)
def test_never_two_that_do_not_fit_each_other(crowd: Clients, seed: int) -> None:
    calls = Calls(f".misfits{seed}")
    outcomes = crowd.race([[calls.register("orders", text)] for text in MISFITS[:32] + FITTING[:32]], seed)
    rows = SchemaVersion.objects.filter(subject__context__name=calls.context).order_by("version")
    history = [(row.version, parsed(row.schema.canonical)) for row in rows.select_related("schema")]
    for older, newer in itertools.pairwise(history):
        assert check(FORMATS["AVRO"], newer[1], [older], "BACKWARD").is_compatible, (older[0], newer[0])
    assert done(outcomes) == [(number, number, True) for number in range(1, len(history) + 1)]
    assert {outcome.error for outcome in outcomes} == {"", "IncompatibleSchema"}


@pytest.mark.parametrize("seed", SEEDS)
def test_an_imported_id_stands_for_one_schema(crowd: Clients, seed: int) -> None:
    """Eight rivals for each of eight ids: one of each gets in, and the counter ends above them all."""
    calls = Calls(f".import{seed}")
    perform(calls.mode("", "IMPORT"))
    asked = [
        Call(
            "register_version", {**calls.register(f"s{number}", FITTING[number]).arguments, "schema_id": number % 8 + 1}
        )
        for number in range(CROWD)
    ]
    outcomes = crowd.race([[call] for call in asked], seed)
    assert [schema_id for _, schema_id, _ in sorted(done(outcomes), key=lambda item: item[1])] == list(range(1, 9))
    assert {outcome.error for outcome in outcomes} == {"", "OperationNotPermitted"}
    assert Context.objects.get(name=calls.context).next_schema_id == 9
    assert Schema.objects.filter(context__name=calls.context).count() == 8
