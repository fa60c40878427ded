"""What counts as the database being away, and what is answered then: without a server."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from celery import Celery
from celery.contrib.testing.app import setup_default_app
from django.db import (
    DatabaseError,
    IntegrityError,
    InternalError,
    OperationalError,
    ProgrammingError,
    connection,
    transaction,
)
from django.db.transaction import TransactionManagementError
from django.test import RequestFactory
from kombu.exceptions import OperationalError as BrokerError
from psycopg import errors
from psycopg_pool import PoolTimeout, TooManyRequests
from redis.exceptions import ConnectionError as ValkeyError

from dashboard.celery import RecordedTask, SteadyAMQP, SteadyConnection
from dashboard.errors.views import outage_response
from registry.api.confluent.http import handle as confluent
from registry.api.google.base import handle as google
from registry.api.outage import OutcomeUnknown, unavailable_error
from registry.api.product.base import handle as product
from registry.api.spring.errors import handle as spring
from registry.errors import BrokerUnavailable, WrongState
from registry.notifications import services as telling

pytestmark = pytest.mark.requirement("CARD-1")

SECRET = 'connection to server at "10.1.2.3", port 5432 failed: FATAL: role "schemadesk_app"'


def caused(error: Exception, *causes: Exception) -> Exception:
    """The error, of these causes."""
    above = error
    for cause in causes:
        above.__cause__ = cause
        above = cause
    return error


AWAY = {
    "refused": caused(OperationalError(SECRET), psycopg.OperationalError(SECRET)),
    "lost": caused(OperationalError(SECRET), psycopg.OperationalError("server closed the connection unexpectedly")),
    "shut down": caused(OperationalError(SECRET), errors.AdminShutdown(SECRET)),
    "crashed": caused(OperationalError(SECRET), errors.CrashShutdown(SECRET)),
    "starting": caused(OperationalError(SECRET), errors.CannotConnectNow(SECRET)),
    "broken connection": caused(OperationalError(SECRET), errors.ConnectionFailure(SECRET)),
    "full": caused(OperationalError(SECRET), errors.TooManyConnections(SECRET)),
    "lock not free": caused(OperationalError(SECRET), errors.LockNotAvailable(SECRET)),
    "no connection in time": caused(OperationalError(SECRET), PoolTimeout(SECRET)),
    "too many wait": caused(OperationalError(SECRET), TooManyRequests(SECRET)),
    "found in a broken transaction": caused(
        TransactionManagementError(SECRET), OperationalError(SECRET), errors.AdminShutdown(SECRET)
    ),
}
THERE = {
    "deadlock": caused(OperationalError(SECRET), errors.DeadlockDetected(SECRET)),
    "cancelled": caused(OperationalError(SECRET), errors.QueryCanceled(SECRET)),
    "wrong statement": caused(ProgrammingError(SECRET), errors.SyntaxError(SECRET)),
    "broken rule": caused(IntegrityError(SECRET), errors.UniqueViolation(SECRET)),
    "inside": caused(InternalError(SECRET), errors.InternalError_(SECRET)),
    "another of its errors": DatabaseError(SECRET),
    "ours": caused(WrongState("no"), OperationalError(SECRET)),
    "another part": BrokerUnavailable("no broker"),
    "a bug": KeyError(SECRET),
}
UNWRITABLE = {
    "disk full": caused(OperationalError(SECRET), errors.DiskFull(SECRET)),
    "out of memory": caused(OperationalError(SECRET), errors.OutOfMemory(SECRET)),
    "broken disk": caused(OperationalError(SECRET), errors.IoError(SECRET)),
    "read-only": caused(InternalError(SECRET), errors.ReadOnlySqlTransaction(SECRET)),
    "found in a broken transaction": caused(
        TransactionManagementError(SECRET), InternalError(SECRET), errors.ReadOnlySqlTransaction(SECRET)
    ),
}
Handle = Callable[[Exception, dict[str, Any]], Any]
DIALECTS: dict[str, tuple[str, Handle]] = {
    "confluent": ("/subjects", confluent),
    "google": ("/v1/projects/local/locations/local/schemaRegistries", google),
    "spring": ("/spring/a/avro", spring),
    "product": ("/api/v1/tokens", product),
}


@pytest.mark.parametrize("name", AWAY)
def test_it_is_away(name: str) -> None:
    found = unavailable_error(AWAY[name])
    assert found is not None and not found.is_unknown
    assert found.message == "The database is unavailable. Try again in 2 seconds."


@pytest.mark.parametrize("name", THERE)
def test_it_is_there_and_something_else_is_wrong(name: str) -> None:
    assert unavailable_error(THERE[name]) is None
    assert outage_response(RequestFactory().get("/ui/"), THERE[name]) is None


@pytest.mark.parametrize("name", AWAY)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_answers_503_and_tells_nothing_of_the_connection(dialect: str, name: str) -> None:
    path, handle = DIALECTS[dialect]
    answer = handle(AWAY[name], {"request": RequestFactory().get(path)})
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert "10.1.2.3" not in json.dumps(answer.data) and "schemadesk_app" not in json.dumps(answer.data)


@pytest.mark.parametrize("name", UNWRITABLE)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_says_that_the_database_cannot_save(dialect: str, name: str) -> None:
    path, handle = DIALECTS[dialect]
    answer = handle(UNWRITABLE[name], {"request": RequestFactory().post(path)})
    text = json.dumps(answer.data)
    assert (answer.status_code, answer["Retry-After"]) == (503, "30")
    assert "The database can't save anything at the moment. Nothing was changed." in text
    assert "10.1.2.3" not in text and "schemadesk_app" not in text


@pytest.mark.parametrize("name", UNWRITABLE)
def test_a_page_says_that_the_database_cannot_save(name: str) -> None:
    answer = outage_response(RequestFactory().post("/ui/proposals"), UNWRITABLE[name])
    assert answer is not None and (answer.status_code, answer["Retry-After"]) == (503, "30")
    assert "<h1>The database can&#x27;t save anything at the moment</h1>" in answer.content.decode()
    assert "10.1.2.3" not in answer.content.decode()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_where_nobody_knows_whether_it_was_committed_that_is_said(dialect: str) -> None:
    path, handle = DIALECTS[dialect]
    error = caused(OutcomeUnknown("lost"), OperationalError(SECRET))
    for answer in (
        json.dumps(handle(error, {"request": RequestFactory().post(path)}).data),
        outage_response(RequestFactory().post(path), error).content.decode(),  # type: ignore[union-attr]
    ):
        assert "may or may not be saved" in answer and "10.1.2.3" not in answer


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("/ui/", "<h1>The database is unavailable</h1>"),
        ("/subjects", '"error_code": 50001'),
        ("/v1/projects/local", '"status": "UNAVAILABLE"'),
        ("/spring/", '"error": "Service Unavailable"'),
        ("/api/v1/tokens", '"error": "DatabaseAway"'),
    ],
)
def test_before_any_view_the_path_says_which_words(path: str, word: str) -> None:
    answer = outage_response(RequestFactory().get(path), AWAY["refused"])
    assert answer is not None and (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert word in answer.content.decode()


def test_a_page_offers_to_ask_again_and_a_form_is_sent_again_by_who_sent_it() -> None:
    for method, offers in (("get", True), ("post", False)):
        request = getattr(RequestFactory(), method)("/ui/search?q=%22%3Cb%3E")
        answer = outage_response(request, AWAY["refused"])
        assert answer is not None
        assert ('href="/ui/search?q=%22%3Cb%3E"' in answer.content.decode()) is offers


@pytest.mark.parametrize("error", [BrokerError("10.1.2.3"), ValkeyError("10.1.2.3")])
def test_a_page_says_that_valkey_is_away(error: Exception) -> None:
    answer = outage_response(RequestFactory().get("/ui/accounts/login/"), error)
    assert answer is not None and answer.status_code == 503
    assert (
        "Valkey, the task queue, is unavailable" in answer.content.decode()
        and "10.1.2.3" not in answer.content.decode()
    )


@pytest.mark.django_db(transaction=True)
def test_a_connection_lost_in_a_commit_leaves_its_outcome_open() -> None:
    """The server's process ends itself in the commit, by a trigger that waits for it."""
    own = connection.copy()
    try:
        own.set_autocommit(False)
        with own.cursor() as cursor:
            cursor.execute("CREATE TEMPORARY TABLE doomed (id integer)")
            cursor.execute(
                "CREATE FUNCTION pg_temp.die() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$"
            )
            cursor.execute(
                "CREATE CONSTRAINT TRIGGER last AFTER INSERT ON doomed DEFERRABLE INITIALLY DEFERRED"
                " FOR EACH ROW EXECUTE FUNCTION pg_temp.die()"
            )
            cursor.execute("INSERT INTO doomed VALUES (1)")
        with pytest.raises(OutcomeUnknown):
            own.commit()
    finally:
        own.close()


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_was_lost_before_its_commit_is_known_to_be_lost() -> None:
    own = connection.copy()
    try:
        own.set_autocommit(False)
        with own.cursor() as cursor, pytest.raises(OperationalError) as lost:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        assert unavailable_error(lost.value) is not None
        with pytest.raises(OperationalError) as again:
            own.commit()
        assert not isinstance(again.value, OutcomeUnknown)
    finally:
        own.close()


@pytest.mark.django_db(transaction=True)
def test_a_change_that_is_lost_while_people_are_notified_of_it_is_not_answered_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What can't be told is undone to a savepoint; a connection that is gone has none."""

    def write(whole: object) -> tuple[int, int]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        raise AssertionError(whole)

    monkeypatch.setattr(telling, "_is_anybody_there", lambda whole: True)
    monkeypatch.setattr(telling, "_write", write)
    with pytest.raises(OperationalError) as lost, transaction.atomic():
        telling.notify(event=next(iter(telling.EVENTS)), registry="dev", subject="", text="It changed.", url="")
    assert unavailable_error(lost.value) is not None
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,), "the next transaction has a connection of its own"


@pytest.mark.django_db(transaction=True)
def test_work_that_cannot_be_handed_on_fails_no_request(caplog: pytest.LogCaptureFixture) -> None:
    with (
        Celery(
            "away",
            broker="redis+socket:///nowhere/valkey.sock",
            amqp=SteadyAMQP,
            task_cls=RecordedTask,
            set_as_current=False,
        ) as app,
        setup_default_app(app),
    ):
        app.conf.broker_transport_options = {"max_retries": 0}

        @app.task(name="scan")
        def scan(number: int) -> None:
            raise AssertionError(number)

        scan.delay_on_commit(7)
    assert "scan waits for beat" in caplog.text


@pytest.mark.slow
def test_programs_connect_to_the_broker_in_even_steps_however_kombu_asks() -> None:
    """Kombu gives the pauses by place where it sends again, and not at all where it waits for the broker."""
    waited: list[float] = []

    def note(error: Exception, interval: float) -> None:
        waited.append(interval)

    with SteadyConnection("redis+socket:///nowhere/valkey.sock") as found:
        with pytest.raises(BrokerError):
            found.ensure_connection(note, 2)
        assert waited == [1.0, 1.0]
        with pytest.raises(BrokerError):
            found._ensure_connection(note, 1, 0, 0, 0)
        assert waited == [1.0, 1.0, 0.0]
        with pytest.raises(BrokerError):
            found.ensure_connection(note, max_retries=1, interval_start=0)
        assert waited == [1.0, 1.0, 0.0, 0.0]


def test_a_channel_without_its_connection_fails_as_celery_expects() -> None:
    """Where the broker went away with a task under way, that is acknowledged or given back on such a channel."""
    with SteadyConnection("redis+socket:///nowhere/valkey.sock") as found:
        channel = object.__new__(found.get_transport_cls().Channel)
        channel.connection = SimpleNamespace(client=None)
        with pytest.raises(found.connection_errors, match="is closed"):
            channel._connparams()
