"""Sixteen real processes call at the same moment: whatever happens could have happened one call after the other."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

import pytest
from django.db.models import Count

from registry.formats import FORMATS
from registry.formats.compatibility import check
from registry.subjects.models import Config, Context, Mode, Schema, SchemaReference, SchemaVersion, Subject
from tests.amounts import how_many
from tests.subjects.client_process import Outcome, perform
from tests.subjects.linearizability import Definition, Place, find_order, parsed
from tests.subjects.races import CLIENTS, FITTING, PLAIN, RIVALS, SCENARIOS, Calls, Clients, Racers, anything

pytestmark = [pytest.mark.usefixtures("transactional_db", "registries"), pytest.mark.slow]
#: each seed is another interleaving
SEEDS = range(how_many("rounds of racing requests"))


def found(context: str) -> Place:
    """What the database holds of a context."""
    schemas = Schema.objects.filter(context__name=context)
    references: dict[int, list[tuple[str, int]]] = {}
    for row in SchemaReference.objects.filter(schema__in=schemas).select_related("target__subject"):
        references.setdefault(row.schema_id, []).append((row.target.subject.name, row.target.version))
    definitions: dict[int, Definition] = {row.pk: (row.canonical, tuple(references.get(row.pk, ()))) for row in schemas}
    subjects: dict[str, list[tuple[int, Definition, bool]]] = {
        row.name: [] for row in Subject.objects.filter(context__name=context)
    }
    for version in SchemaVersion.objects.filter(subject__context__name=context).select_related("subject"):
        subjects[version.subject.name].append(
            (version.version, definitions[version.schema_id], version.deleted_at is not None)
        )
    levels = Config.objects.filter(context__name=context).values_list("subject_name", "compatibility_level")
    modes = Mode.objects.filter(context__name=context).values_list("subject_name", "mode")
    return Place(
        subjects=tuple(sorted((name, tuple(sorted(rows))) for name, rows in subjects.items())),
        ids=tuple(sorted((definitions[row.pk], row.schema_id) for row in schemas)),
        next_id=Context.objects.values_list("next_schema_id", flat=True).filter(name=context).first() or 1,
        levels=tuple(sorted((name or "", level) for name, level in levels)),
        modes=tuple(sorted((name or "", mode) for name, mode in modes)),
    )


def place_of_its_own(name: str, seed: int) -> Calls:
    """A context of its own. Every second one is there already: whoever makes it would let all others wait."""
    calls = Calls(f".{name}{seed}")
    if seed % 2:
        perform(calls.level("", "BACKWARD"))
    return calls


def registered(outcomes: Sequence[Outcome]) -> list[tuple[int, int, bool]]:
    """(version, schema id, was created) of the registrations that weren't refused, sorted."""
    values = [outcome.value for outcome in outcomes if not outcome.error]
    return sorted((value.version, value.schema_id, value.created) for value in values)


@pytest.mark.requirement("GOO-1")
def test_the_same_schema_under_one_subject_is_one_version(clients: Clients) -> None:
    for seed in SEEDS:
        calls = place_of_its_own("same", seed)
        outcomes = clients.race([[calls.register("orders", PLAIN)]] * CLIENTS, seed)
        assert registered(outcomes) == [*[(1, 1, False)] * (CLIENTS - 1), (1, 1, True)]
        place = found(calls.context)
        assert place.subjects == (("orders", ((1, (PLAIN, ()), False),)),)
        assert (place.ids, place.next_id) == ((((PLAIN, ()), 1),), 2)


@pytest.mark.requirement("GOO-1")
def test_the_same_schema_under_many_subjects_has_one_id(clients: Clients) -> None:
    for seed in SEEDS:
        calls = place_of_its_own("many", seed)
        outcomes = clients.race([[calls.register(f"orders-{number}", PLAIN)] for number in range(CLIENTS)], seed)
        assert registered(outcomes) == [(1, 1, True)] * CLIENTS
        place = found(calls.context)
        assert (place.ids, place.next_id, len(place.subjects)) == ((((PLAIN, ()), 1),), 2, CLIENTS)


@pytest.mark.requirement("GOO-1")
def test_schemas_that_fit_get_versions_and_ids_without_holes(clients: Clients) -> None:
    for seed in SEEDS:
        calls = place_of_its_own("fitting", seed)
        outcomes = clients.race([[calls.register("orders", text)] for text in FITTING], seed)
        assert registered(outcomes) == [(number, number, True) for number in range(1, CLIENTS + 1)]
        assert found(calls.context).next_id == CLIENTS + 1


@pytest.mark.requirement("GOO-1")
def test_schemas_that_do_not_fit_never_both_get_in(clients: Clients) -> None:
    for seed in SEEDS:
        calls = place_of_its_own("misfits", seed)
        perform(calls.register("orders", PLAIN))
        outcomes = clients.race([[calls.register("orders", text)] for text in [*RIVALS[:12], *FITTING[:4]]], seed)
        ((_, rows),) = found(calls.context).subjects
        history = [(version, parsed(definition[0])) for version, definition, _ in rows]
        for older, newer in itertools.pairwise(history):
            assert check(FORMATS["AVRO"], newer[1], [older], "BACKWARD").is_compatible, (older[0], newer[0])
        numbers = range(2, len(history) + 1)
        assert registered(outcomes) == [(number, number, True) for number in numbers], "a refusal left a hole"
        refused = {outcome.error for outcome in outcomes} - {""}
        assert refused == {"IncompatibleSchema"}


@pytest.mark.requirement("GOO-1", "GOO-3", "GOO-5", "GOO-6")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_a_race_is_some_order_of_its_calls(
    clients: Clients, scenario: Callable[[Calls, random.Random], Racers]
) -> None:
    for seed in SEEDS:
        dice = random.Random(seed)
        calls = Calls(f".{scenario.__name__}{seed}")
        before, racers = scenario(calls, dice)
        begun = [perform(call) for call in before]
        assert not [outcome.crash for outcome in begun if outcome.crash]
        start = found(calls.context)
        assert find_order(Place(), begun, start) is not None, "already one after the other"
        dice.shuffle(racers)
        outcomes = clients.race(racers, seed)
        end = found(calls.context)
        assert find_order(start, outcomes, end) is not None, story(seed, start, outcomes, end)


def story(seed: int, start: Place, outcomes: Sequence[Outcome], end: Place) -> str:
    """What happened, for the reader of a failure."""
    lines = "\n  ".join(str(outcome) for outcome in sorted(outcomes, key=lambda outcome: outcome.ended))
    return f"seed {seed}: no order of these calls explains it\nfrom {start}\n  {lines}\nto {end}"


def test_the_search_refuses_what_no_order_explains() -> None:
    """Without this, a search that accepts everything would go unnoticed."""
    calls = Calls(".model")
    outcomes = [perform(calls.register("orders", PLAIN)), perform(calls.register("orders", FITTING[0]))]
    end = found(calls.context)
    assert find_order(Place(), outcomes, end) == outcomes
    assert find_order(Place(), outcomes[::-1], end) == outcomes
    assert find_order(Place(), outcomes[:1], end) is None, "a version from nowhere"
    assert find_order(Place(modes=(("", "READONLY"),)), outcomes, end) is None, "registered in spite of READONLY"
    perform(calls.delete("orders"))
    assert find_order(Place(), outcomes, found(calls.context)) is None, "deleted by nobody"


def test_the_search_finds_the_order_of_calls_that_overlap() -> None:
    calls = Calls(".overlapping")
    modes = ["READWRITE", "READONLY", "READWRITE"]
    outcomes = [Outcome(calls.mode("", mode), mode, "", "", began=0.0, ended=1.0) for mode in modes]
    for last in set(modes):
        order = find_order(Place(), outcomes, Place(modes=(("", last),)))
        assert order is not None
        assert order[-1].value == last
    after_all = Outcome(calls.mode("", "IMPORT"), "IMPORT", "", "", began=2.0, ended=3.0)
    assert find_order(Place(), [after_all, *outcomes], Place(modes=(("", "IMPORT"),))) is not None
    assert find_order(Place(), [after_all, *outcomes], Place(modes=(("", "READONLY"),))) is None, "it came last"


def test_no_schema_is_without_a_version(clients: Clients) -> None:
    """Over all that a mixed race leaves, in plain SQL terms."""
    for seed in range(3):
        calls = Calls(f".orphans{seed}")
        before, racers = anything(calls, random.Random(seed + 500))
        for call in before:
            perform(call)
        clients.race(racers, seed)
    assert not Schema.objects.filter(versions=None).exists()
    assert not Subject.objects.filter(versions=None).exists()
    live = SchemaVersion.objects.filter(deleted_at=None).values("subject", "schema")
    assert not live.annotate(times=Count("pk")).filter(times__gt=1).exists()
