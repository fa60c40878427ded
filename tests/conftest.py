"""The fixed cast, and what tests share."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import hypothesis
import pytest
from django.test import Client, override_settings

from registry.access.roles import Actor, system_actor
from tests import toolchains, weights
from tests.runner import QUICK

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HERE = Path(__file__).parent
#: what starts once a run for all that use it → the fixtures that tell; what needs both is of the first
SHARED = {"spark": ("spark_remote",), "kafka": ("kafka_bootstrap", "connect_worker")}
CAST = ("reader", "steward", "approver", "admin")
#: files whose tests are quick one by one and too many together for the quick loop, below tests/
NOT_IN_THE_QUICK_LOOP = (
    "access/test_egress.py",
    "access/test_extent.py",
    "access/test_lock_out.py",
    "api/google/test_calls.py",
    "api/google/test_client.py",
    "api/google/test_document.py",
    "api/spring/test_hostile.py",
    "api/spring/test_replay.py",
    "api/spring/test_spring.py",
    "api/test_confluent.py",
    "api/test_confluent_clients.py",
    "api/test_confluent_contract.py",
    "api/test_confluent_costs.py",
    "api/test_confluent_generated.py",
    "api/test_confluent_names.py",
    "api/test_reports.py",
    "api/test_standing_headers.py",
    "audit/test_past.py",
    "bench/",
    "checkpoints/test_object_store.py",
    "checkpoints/test_older.py",
    "dashboard/",
    "demo/",
    "drift/debezium/test_names.py",
    "drift/debezium/test_patterns.py",
    "drift/test_detector.py",
    "drift/test_knowledge.py",
    "drift/test_personal.py",
    "drift/test_registry_source.py",
    "drift/test_retire_wizard.py",
    "drift/test_scanning.py",
    "drift/test_soak.py",
    "formats/json_schema/test_json_schema_data.py",
    "formats/json_schema/test_json_schema_hostile.py",
    "formats/json_schema/test_json_schema_properties.py",
    "formats/protobuf/test_hostile.py",
    "formats/protobuf/test_properties.py",
    "formats/test_avro_costs.py",
    "formats/test_avro_hostile.py",
    "formats/test_avro_properties.py",
    "formats/test_cost.py",
    "formats/test_examples.py",
    "hot_path/",
    "notifications/test_delivering.py",
    "notifications/test_doors.py",
    "promotions/test_acknowledging.py",
    "promotions/test_applying.py",
    "promotions/test_asking_again.py",
    "promotions/test_board.py",
    "promotions/test_board_marks.py",
    "promotions/test_break_glass.py",
    "promotions/test_can_promote.py",
    "promotions/test_discussing.py",
    "promotions/test_environments.py",
    "promotions/test_evidence_age.py",
    "promotions/test_ghosts.py",
    "promotions/test_labels.py",
    "promotions/test_linked.py",
    "promotions/test_notes_along.py",
    "promotions/test_origins.py",
    "promotions/test_planning.py",
    "promotions/test_promotions_api.py",
    "promotions/test_promotions_sets.py",
    "promotions/test_reasons.py",
    "promotions/test_recurring.py",
    "promotions/test_requests_in_sight.py",
    "promotions/test_reviews.py",
    "promotions/test_rolling_back.py",
    "promotions/test_same_person.py",
    "promotions/test_scheduling.py",
    "rights/test_presence_in_sight.py",
    "rights/test_sight.py",
    "sandbox/",
    "search/",
    "services/test_jars.py",
    "site/",
    "state/test_scala.py",
    "streams/test_object_stores.py",
    "streams/test_scan_with_spark.py",
    "subjects/test_at_once.py",
    "subjects/test_clients.py",
    "subjects/test_costs.py",
    "subjects/test_hostile_remote.py",
    "subjects/test_locks.py",
    "subjects/test_moving.py",
    "subjects/test_sent_files.py",
    "subjects/test_situation.py",
    "subjects/test_told.py",
    "subjects/test_what_if.py",
)

# How long an example takes, or is sought for, depends on what else the machine does.
hypothesis.settings.register_profile("steady", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("steady")


class RawClient(Client):
    """Sends the path as it is written, as a real server hands it over."""

    def generic(self, method: str, path: str, *args: Any, **kwargs: Any) -> Any:
        kwargs.setdefault("RAW_URI", str(path))
        return super().generic(method, path, *args, **kwargs)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Doesn't even import what the quick loop leaves out by file: that takes as long as importing all the rest."""
    if config.option.markexpr != QUICK:
        return None
    place = collection_path.relative_to(HERE).as_posix() if collection_path.is_relative_to(HERE) else ""
    return True if f"{place}/".startswith(NOT_IN_THE_QUICK_LOOP) or place in NOT_IN_THE_QUICK_LOOP else None


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """What is collected stays to the end: garbage is looked for beside it, and not in it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Marks as slow what the quick loop leaves out by file, and says which tests share a worker of a full run.

    Those that use the run's Spark do, those that use its broker or Connect without Spark, and those of the whole product;
    the others do file by file, with what they start for themselves. The groups that take longest begin first.
    """
    for item in items:
        place = item.path.relative_to(HERE).as_posix()
        if place.startswith(NOT_IN_THE_QUICK_LOOP):
            item.add_marker(pytest.mark.slow)
        used = getattr(item, "fixturenames", ())
        shared = next((name for name, fixtures in SHARED.items() if not set(fixtures).isdisjoint(used)), place)
        item.add_marker(pytest.mark.xdist_group("whole" if place.startswith("whole/") else shared))
    yield
    if getattr(config.option, "loadgroup", False):  # last, when pytest and pytest-django have put them in order
        items[:] = weights.longest_first(items, weights.read())


def pytest_collection_finish(session: pytest.Session) -> None:
    """Ends a run whose tests lost their groups: each worker would start a broker and a Spark of its own."""
    if getattr(session.config.option, "loadgroup", False) and not all("@" in item.nodeid for item in session.items):
        pytest.exit("pytest-xdist didn't write the tests' groups into their ids; see decision 2", returncode=3)


@pytest.fixture
def system() -> Actor:
    """The product itself."""
    return system_actor("tests", door="command")


@pytest.fixture
def registries(db: None, system: Actor) -> None:
    """The three registries, prod closed, as the first start makes them."""
    from tests.first_registries import make_at_once

    make_at_once(by=system)


@pytest.fixture
def person(registries: None, system: Actor) -> Callable[[str], Actor]:
    """The actor of one of the cast, with an account; `stranger` has one without a role."""
    from registry.access.models import User
    from registry.access.selectors import actor_of_user
    from tests.first_registries import ensure_at_once

    made: set[str] = set()

    def make(name: str) -> Actor:
        role = name.rstrip("0123456789")
        if name in made:
            user = User.objects.get(username=name)
        elif role in CAST:
            user = ensure_at_once(username=name, role=role, by=system)
        else:
            user, _ = User.objects.get_or_create(username=name)
        made.add(name)
        return actor_of_user(user, door="ui")

    return make


@pytest.fixture
def token(person: Callable[[str], Actor], system: Actor) -> Callable[[str], str]:
    """A token of one of the cast."""
    from registry.access.services import issue_token

    def make(name: str) -> str:
        person(name)
        return issue_token(username=name, name="tests", by=system)

    return make


@pytest.fixture
def look(person: Callable[[str], Actor]) -> Callable[[str], Client]:
    """A signed-in browser of one of the cast, without a window."""
    from registry.access.models import User

    def make(name: str) -> Client:
        person(name)
        client = RawClient()
        client.force_login(User.objects.get(username=name))
        return client

    return make


@pytest.fixture
def api(token: Callable[[str], str]) -> Callable[[str], Client]:
    """A client of the REST APIs with the token of one of the cast."""

    def make(name: str) -> Client:
        return RawClient(headers={"authorization": f"Bearer {token(name)}", "accept": "*/*"})

    return make


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for a file's tests."""
    from tests.browsing import chromium

    with chromium() as launched:
        yield launched


@pytest.fixture
def window(browser: Browser, live_server: Any, person: Callable[[str], Actor]) -> Iterator[Callable[..., Page]]:
    """Opens signed-in windows over the test's database, the steward's where nobody is named (see `windows`)."""
    from registry.access.models import User
    from tests.browsing import windows

    def password_of(name: str) -> str:
        person(name)
        user = User.objects.get(username=name)
        user.set_password("a passphrase of the tests")
        user.save()
        return "a passphrase of the tests"

    with windows(browser, live_server.url, password_of, usual="steward") as make:
        yield make


@pytest.fixture(autouse=True, scope="session")
def quick_passwords() -> Iterator[None]:
    """A hash that costs nothing: hundreds of accounts are made."""
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):
        yield


@pytest.fixture(autouse=True, scope="session")
def nothing_kept() -> Iterator[None]:
    """What pages keep for a minute is of another test."""
    with mock.patch("dashboard.kept.KEPT_SECONDS", 0):
        yield


@pytest.fixture(autouse=True, scope="session")
def static_files_once() -> Iterator[None]:
    """Each client makes middleware of its own, and WhiteNoise would look up all static files for each of them."""
    from whitenoise.middleware import WhiteNoiseMiddleware

    known: dict[str, Any] = {}
    look_up = WhiteNoiseMiddleware.add_files_from_finders

    def add(self: WhiteNoiseMiddleware) -> None:
        if not known:
            look_up(self)
            known.update(self.files)
        self.files.update(known)

    with mock.patch.object(WhiteNoiseMiddleware, "add_files_from_finders", add):
        yield


@pytest.fixture(autouse=True, scope="session")
def middleware_once(quick_passwords: None) -> Iterator[None]:
    """Each client makes middleware of its own at its first request: those under the run's settings share one chain."""
    from django.conf import settings
    from django.test.client import ClientHandler

    usual, load = settings._wrapped, ClientHandler.load_middleware
    shared: list[Any] = []

    def load_once(self: ClientHandler, is_async: bool = False) -> None:
        if is_async or settings._wrapped is not usual:
            load(self, is_async)
            return
        if not shared:
            load(self)
            shared.append(self._middleware_chain)
        (self._middleware_chain,) = shared

    with mock.patch.object(ClientHandler, "load_middleware", load_once):
        yield


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says last which tests were not run for want of a toolchain."""
    toolchains.report_not_run(terminalreporter)
