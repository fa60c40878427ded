"""The fixed cast, and what tests share."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import hypothesis
import pytest
import yaml
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
    "access/test_permission_filters.py",
    "access/test_lockout.py",
    "api/google/test_calls.py",
    "api/google/test_client.py",
    "api/google/test_document.py",
    "api/spring/test_hostile.py",
    "api/spring/test_replay.py",
    "api/spring/test_spring.py",
    "api/confluent/test_calls.py",
    "api/confluent/test_clients.py",
    "api/confluent/test_contract.py",
    "api/test_product_compatibility.py",
    "api/test_response_marks.py",
    "audit/test_time_travel.py",
    "benchmarks/",
    "checkpoints/test_object_store.py",
    "checkpoints/test_spark_versions.py",
    "dashboard/",
    "demo/",
    "drift/debezium/test_names.py",
    "drift/debezium/test_java_regex.py",
    "drift/test_detector.py",
    "drift/test_scan_context.py",
    "drift/test_personal_data.py",
    "drift/test_registry_source.py",
    "drift/usage/test_retire_wizard.py",
    "drift/test_scan_runner.py",
    "drift/judge/test_soak.py",
    "formats/json_schema/test_data.py",
    "formats/json_schema/test_hostile.py",
    "formats/json_schema/test_properties.py",
    "formats/protobuf/test_hostile.py",
    "formats/protobuf/test_properties.py",
    "formats/avro/test_cases.py",
    "formats/avro/test_hostile.py",
    "formats/avro/test_properties.py",
    "formats/test_add_a_format.py",
    "formats/test_cost.py",
    "formats/test_examples.py",
    "response_cache/",
    "notifications/test_webhook_delivery.py",
    "notifications/test_pages_and_api.py",
    "promotions/requests/test_acknowledgements.py",
    "promotions/apply/test_execution.py",
    "promotions/requests/test_resubmit.py",
    "promotions/board/test_rows.py",
    "promotions/board/test_board_index.py",
    "promotions/environments/test_break_glass.py",
    "promotions/environments/test_change_requests.py",
    "promotions/checks/test_advisory.py",
    "promotions/board/test_readiness.py",
    "promotions/requests/test_discussions.py",
    "promotions/environments/test_environments.py",
    "promotions/checks/test_context.py",
    "promotions/requests/test_timeline.py",
    "promotions/requests/test_labels.py",
    "promotions/requests/test_linked_requests.py",
    "promotions/checks/test_descriptions.py",
    "promotions/test_hook_points.py",
    "promotions/plan/test_builder.py",
    "promotions/test_api.py",
    "promotions/requests/test_submission.py",
    "promotions/requests/test_preconditions.py",
    "promotions/environments/test_freezes.py",
    "promotions/test_permissions.py",
    "promotions/reviews/test_decisions.py",
    "promotions/requests/test_roll_back.py",
    "promotions/reviews/test_linked_accounts.py",
    "promotions/apply/test_schedule.py",
    "rights/test_some_subjects.py",
    "rights/test_visible_registries.py",
    "rights/test_visible_pages.py",
    "sandbox/",
    "search/",
    "runtime/test_jars.py",
    "site/",
    "state/test_scala.py",
    "streams/test_checkpoint_stores.py",
    "streams/test_scan_with_spark.py",
    "subjects/import_export/test_import_versions.py",
    "subjects/test_clients.py",
    "subjects/test_query_costs.py",
    "subjects/remote/test_remote_client.py",
    "subjects/test_integrity.py",
    "subjects/import_export/test_registry_import.py",
    "subjects/import_export/test_export_file.py",
    "subjects/test_registration.py",
    "subjects/test_events.py",
    "subjects/test_level_history.py",
    "test_input_growth.py",
)

# How long an example takes, or is sought for, depends on what else the machine does.
hypothesis.settings.register_profile("steady", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("steady")


# The tables of cases have 16,000 lines: the loader in C reads the same in a tenth of the time.
yaml.SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # type: ignore[misc]


class RawClient(Client):
    """Sends the path as it is written, as a real server hands it over."""

    def generic(self, method: str, path: str, *args: Any, **kwargs: Any) -> Any:
        kwargs.setdefault("RAW_URI", str(path))
        return super().generic(method, path, *args, **kwargs)


def signed_in(name: str) -> RawClient:
    """A browser of that account, without a window."""
    from registry.access.models import User

    client = RawClient()
    client.force_login(User.objects.get(username=name))
    return client


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Doesn't even import what the quick loop leaves out by file: that takes as long as importing all the rest."""
    if config.option.markexpr != QUICK:
        return None
    place = collection_path.relative_to(HERE).as_posix() if collection_path.is_relative_to(HERE) else ""
    return True if f"{place}/".startswith(NOT_IN_THE_QUICK_LOOP) or place in NOT_IN_THE_QUICK_LOOP else None


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """What is collected stays to the end: garbage is looked for beside it, and seldom, as in a web process."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000, 20, 20)
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


@pytest.fixture(autouse=True, scope="session")
def described_responses() -> Iterator[None]:
    """Each success of the product API, in any test, has the status and the body that the OpenAPI description declares."""
    from rest_framework.response import Response

    from registry.api.product.base import ProductView
    from tests.api.test_product_description import check_body, declared_statuses

    finalize = ProductView.finalize_response

    def check(self: Any, request: Any, response: Any, *args: Any, **named: Any) -> Any:
        route, method = request.resolver_match.route, request.method.replace("HEAD", "GET")
        if 200 <= response.status_code < 300 and method != "OPTIONS":
            assert response.status_code in declared_statuses(route, method), (method, route)
            if isinstance(response, Response) and request.accepted_renderer.format == "json":
                check_body(route, method, response.status_code, response.data)
        return finalize(self, request, response, *args, **named)

    with mock.patch.object(ProductView, "finalize_response", check):
        yield


@pytest.fixture
def system() -> Actor:
    """The product itself."""
    return system_actor("tests", channel="command")


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
        return actor_of_user(user, channel="ui")

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

    def make(name: str) -> Client:
        person(name)
        return signed_in(name)

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
    from tests.browsing import windows

    def cookies_of(name: str) -> list[dict[str, str]]:
        person(name)
        cookies = signed_in(name).cookies.values()
        return [{"name": cookie.key, "value": cookie.value, "url": live_server.url} for cookie in cookies]

    with windows(browser, live_server.url, cookies_of, usual="steward") as make:
        yield make


@pytest.fixture(autouse=True, scope="session")
def quick_passwords() -> Iterator[None]:
    """A hash that costs nothing: hundreds of accounts are made."""
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):
        yield


@pytest.fixture(autouse=True, scope="session")
def nothing_kept() -> Iterator[None]:
    """What pages keep for a minute is of another test."""
    with mock.patch("dashboard.subjects.filters.KEPT_SECONDS", 0):
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
