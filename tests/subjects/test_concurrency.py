"""Sixteen real processes call at the same moment: whatever happens could have happened one call after the other."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from django.db.models import Count

from registry.formats import FORMATS
from registry.formats.base import Reference
from registry.formats.compatibility import check
from registry.subjects.models import Config, Context, Mode, Schema, SchemaReference, SchemaVersion, Subject
from registry.subjects.names import SubjectName
from tests.subjects.client_process import Call, Outcome, perform
from tests.subjects.clients import Clients
from tests.subjects.single_order import Definition, Place, find_order, parsed

pytestmark = pytest.mark.usefixtures("transactional_db", "registries")
CLIENTS = 16
ROUNDS = [pytest.param(range(6), id="few"), pytest.param(range(6, 60), id="many", marks=pytest.mark.slow)]


def record_text(*fields: dict[str, object], name: str = "Order") -> str:
    """A record's canonical text."""
    return FORMATS["AVRO"].parse(json.dumps({"type": "record", "name": name, "fields": list(fields)}), ()).canonical


def optional(name: str) -> dict[str, object]:
    """A field that any reader can do without."""
    return {"name": name, "type": ["null", "string"], "default": None}


def required(name: str) -> dict[str, object]:
    """A field that a reader can't do without."""
    return {"name": name, "type": "string"}


PLAIN = record_text({"name": "id", "type": "long"})
#: any two of these fit each other
FITTING = [record_text({"name": "id", "type": "long"}, optional(f"note_{number}")) for number in range(CLIENTS)]
#: none of these reads what another one wrote
MISFITS = [record_text({"name": "id", "type": "long"}, required(f"key_{number}")) for number in range(CLIENTS)]
#: refers to Order
BASKET = '{"type":"record","name":"Basket","fields":[{"name":"order","type":"Order"}]}'


@dataclass(frozen=True)
class Calls:
    """Calls within one context of the registry `dev`."""

    context: str

    def _call(self, service: str, subject: str, **arguments: object) -> Call:
        return Call(service, {"registry": "dev", "subject": SubjectName(self.context, subject), **arguments})

    def register(self, subject: str, text: str, *references: str) -> Call:
        """A registration; a reference is the name of a subject whose version 1 has the type Order."""
        targets = tuple(Reference("Order", f":{self.context}:{name}", 1) for name in references)
        return self._call("register_version", subject, text=text, references=targets)

    def delete(self, subject: str, version: int | None = None, *, permanent: bool = False) -> Call:
        """The deletion of a subject, or of one version."""
        if version is None:
            return self._call("delete_subject", subject, permanent=permanent)
        return self._call("delete_version", subject, version=version, permanent=permanent)

    def level(self, subject: str, level: str) -> Call:
        """The setting of a level, of the context where the subject is empty."""
        return self._call("set_config", subject, level=level)

    def mode(self, subject: str, mode: str) -> Call:
        """The setting of a mode, of the context where the subject is empty."""
        return self._call("set_mode", subject, mode=mode)


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


def registered(outcomes: Sequence[Outcome]) -> list[tuple[int, int, bool]]:
    """(version, schema id, was created) of the registrations that weren't refused, sorted."""
    values = [outcome.value for outcome in outcomes if not outcome.error]
    return sorted((value.version, value.schema_id, value.created) for value in values)


@pytest.mark.requirement("GOO-1")
@pytest.mark.parametrize("rounds", ROUNDS)
def test_the_same_schema_under_one_subject_is_one_version(clients: Clients, rounds: range) -> None:
    for seed in rounds:
        calls = Calls(f".same{seed}")
        outcomes = clients.race([[calls.register("orders", PLAIN)]] * CLIENTS, seed)
        assert registered(outcomes) == [*[(1, 1, False)] * (CLIENTS - 1), (1, 1, True)]
        assert found(calls.context) == Place(
            subjects=(("orders", ((1, (PLAIN, ()), False),)),), ids=(((PLAIN, ()), 1),), next_id=2
        )


@pytest.mark.requirement("GOO-1")
@pytest.mark.parametrize("rounds", ROUNDS)
def test_the_same_schema_under_many_subjects_has_one_id(clients: Clients, rounds: range) -> None:
    for seed in rounds:
        calls = Calls(f".many{seed}")
        outcomes = clients.race([[calls.register(f"orders-{number}", PLAIN)] for number in range(CLIENTS)], seed)
        assert registered(outcomes) == [(1, 1, True)] * CLIENTS
        place = found(calls.context)
        assert (place.ids, place.next_id, len(place.subjects)) == ((((PLAIN, ()), 1),), 2, CLIENTS)


@pytest.mark.requirement("GOO-1")
@pytest.mark.parametrize("rounds", ROUNDS)
def test_schemas_that_fit_get_versions_and_ids_without_holes(clients: Clients, rounds: range) -> None:
    for seed in rounds:
        calls = Calls(f".fitting{seed}")
        outcomes = clients.race([[calls.register("orders", text)] for text in FITTING], seed)
        assert registered(outcomes) == [(number, number, True) for number in range(1, CLIENTS + 1)]
        assert found(calls.context).next_id == CLIENTS + 1


@pytest.mark.requirement("GOO-1")
@pytest.mark.parametrize("rounds", ROUNDS)
def test_schemas_that_do_not_fit_never_both_get_in(clients: Clients, rounds: range) -> None:
    for seed in rounds:
        calls = Calls(f".misfits{seed}")
        texts = [*MISFITS[: CLIENTS // 2], *FITTING[: CLIENTS // 2]]
        outcomes = clients.race([[calls.register("orders", text)] for text in texts], seed)
        ((_, rows),) = found(calls.context).subjects
        history = [(version, parsed(definition[0])) for version, definition, _ in rows]
        for older, newer in zip(history, history[1:], strict=False):
            assert check(FORMATS["AVRO"], newer[1], [older], "BACKWARD").is_compatible, (older[0], newer[0])
        numbers = range(1, len(history) + 1)
        assert registered(outcomes) == [(number, number, True) for number in numbers], "a refusal left a hole"
        refused = {outcome.error for outcome in outcomes} - {""}
        assert refused == {"IncompatibleSchema"}


Racers = tuple[list[Call], list[Call]]


def last_version_goes(calls: Calls, dice: random.Random) -> Racers:
    """Two clients and more delete the same subject for ever, others register into it again."""
    before = [calls.register("orders", PLAIN), calls.delete("orders")]
    return before, [calls.delete("orders", permanent=True)] * 4 + [calls.register("orders", PLAIN)] * 2


def shared_schema_goes(calls: Calls, dice: random.Random) -> Racers:
    """Every subject that has a schema is deleted for ever at the same time."""
    names = [f"orders-{number}" for number in range(6)]
    before = [call for name in names for call in (calls.register(name, PLAIN), calls.delete(name))]
    return before, [calls.delete(name, permanent=True) for name in names]


def shared_schema_goes_and_comes(calls: Calls, dice: random.Random) -> Racers:
    """The last version of a schema is deleted for ever while others register that schema."""
    before = [calls.register("orders", PLAIN), calls.delete("orders")]
    arriving = [calls.register(f"other-{number}", PLAIN) for number in range(5)]
    return before, [calls.delete("orders", 1, permanent=True), *arriving]


def mode_goes_with_its_subject(calls: Calls, dice: random.Random) -> Racers:
    """A subject that may be written in a closed context goes, and its own mode with it."""
    before = [
        calls.mode("orders", "READWRITE"),
        calls.level("orders", "NONE"),
        calls.register("orders", PLAIN),
        calls.delete("orders"),
        calls.mode("", "READONLY"),
    ]
    arriving = [calls.register("orders", text) for text in MISFITS[:4]]
    return before, [calls.delete("orders", permanent=True), *arriving]


def target_goes(calls: Calls, dice: random.Random) -> Racers:
    """A version is deleted while others begin to refer to it."""
    before = [calls.register("orders", PLAIN)]
    arriving = [calls.register(f"baskets-{number % 2}", BASKET, "orders") for number in range(4)]
    leaving = [
        calls.delete("orders"),
        calls.delete("orders", 1),
        calls.delete("orders", permanent=True),
        calls.delete("baskets-0"),
        calls.delete("baskets-0", permanent=True),
    ]
    return before, arriving + leaving


def context_comes(calls: Calls, dice: random.Random) -> Racers:
    """A context that nobody has used yet gets settings and versions from all sides."""
    racers = [calls.level("", "FORWARD"), calls.level("orders", "NONE"), calls.mode("orders", "READWRITE")]
    return [], racers + [calls.register("orders", text) for text in (MISFITS[0], MISFITS[1], PLAIN)]


def readonly_comes(calls: Calls, dice: random.Random) -> Racers:
    """A context is closed and opened while versions come and go."""
    before = [calls.register("orders", PLAIN), calls.register("orders", FITTING[0])]
    racers = [calls.mode("", "READONLY"), calls.mode("", "READWRITE"), calls.mode("orders", "READONLY_OVERRIDE")]
    racers += [calls.register("orders", text) for text in FITTING[:5]]
    return before, [*racers, calls.delete("orders", 1), calls.delete("orders"), calls.level("orders", "FULL")]


def level_changes(calls: Calls, dice: random.Random) -> Racers:
    """The level is loosened and tightened while schemas that don't fit are registered."""
    before = [calls.register("orders", PLAIN)]
    racers = [calls.level("orders", level) for level in ("NONE", "BACKWARD", "FULL_TRANSITIVE")]
    return before, racers + [calls.register("orders", text) for text in (*MISFITS[:4], *FITTING[:4])]


def anything(calls: Calls, dice: random.Random) -> Racers:
    """Sixteen calls by lot."""
    texts = [PLAIN, FITTING[0], MISFITS[0], MISFITS[1]]
    kinds: list[Callable[[str], Call]] = [
        lambda name: calls.register(name, dice.choice(texts)),
        lambda name: calls.register(name, dice.choice(texts)),
        lambda name: calls.register("baskets", BASKET, name),
        lambda name: calls.delete(dice.choice([name, "baskets"]), permanent=dice.random() < 0.6),
        lambda name: calls.delete(name, dice.randint(1, 2), permanent=dice.random() < 0.6),
        lambda name: calls.level(dice.choice(["", name]), dice.choice(["NONE", "BACKWARD", "FULL"])),
        lambda name: calls.mode(dice.choice(["", name]), dice.choice(["READWRITE", "READWRITE", "READONLY"])),
    ]
    drawn = [dice.choice(kinds)(dice.choice(["orders", "invoices"])) for _ in range(CLIENTS + 6)]
    return drawn[:6], drawn[6:]


SCENARIOS = [
    last_version_goes,
    shared_schema_goes,
    shared_schema_goes_and_comes,
    mode_goes_with_its_subject,
    target_goes,
    context_comes,
    readonly_comes,
    level_changes,
    anything,
]


@pytest.mark.requirement("GOO-1", "GOO-3", "GOO-5", "GOO-6")
@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_a_race_is_some_order_of_its_calls(
    clients: Clients, scenario: Callable[[Calls, random.Random], Racers], rounds: range
) -> None:
    for seed in rounds:
        dice = random.Random(seed)
        calls = Calls(f".{scenario.__name__}{seed}")
        before, racers = scenario(calls, dice)
        begun = [perform(call) for call in before]
        assert not [outcome.crash for outcome in begun if outcome.crash]
        start = found(calls.context)
        assert find_order(Place(), begun, start) is not None, "already one after the other"
        dice.shuffle(racers)
        outcomes = clients.race([[call] for call in racers], seed)
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


def test_no_schema_is_without_a_version(clients: Clients) -> None:
    """Over all that a mixed race leaves, in plain SQL terms."""
    for seed in range(3):
        calls = Calls(f".orphans{seed}")
        before, racers = anything(calls, random.Random(seed + 500))
        for call in before:
            perform(call)
        clients.race([[call] for call in racers], seed)
    assert not Schema.objects.filter(versions=None).exists()
    assert not Subject.objects.filter(versions=None).exists()
    live = SchemaVersion.objects.filter(deleted_at=None).values("subject", "schema")
    assert not live.annotate(times=Count("pk")).filter(times__gt=1).exists()
