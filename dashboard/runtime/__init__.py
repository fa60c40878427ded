"""The parts that `manage.py up` and the tests run on this machine, and their variables for Django.

The contract between this package and `dashboard.settings` is the environment of each child:

| variable | value |
|---|---|
| `DATABASE_URL` | the application's role; a libpq URL, e.g. `postgresql://schemadesk_app@/schemadesk?host=%2Frun%2Fsd` |
| `DATABASE_OWNER_URL` | the role that owns the tables; only for `migrate` |
| `DATABASE_APPLICATION_ROLE` | the name of the application's role, for grants and revokes after a migration |
| `REDIS_URL` | redis-py's form, `unix:///path/valkey.sock?db=0` or `redis://…`; the settings convert it for Celery |
| `KAFKA_BOOTSTRAP` | `127.0.0.1:PORT`; not set without a broker |
| `SPARK_REMOTE` | `sc://localhost:PORT/;token=…`; not set without Spark |
| `CONNECT_URL` | the URL of a Kafka Connect worker's REST API, with user and password; not set without one |
| `SCHEMADESK_DATA` | the data folder |
| `SECRET_KEY_FILE` | a file (mode 0600) with Django's secret key, created once in the data folder |
| `SCHEMADESK_UP` | `1` under `up`: everything is on loopback |
| `SCHEMADESK_PORT` | the web server's port |

`DATABASE_URL`, `REDIS_URL`, `SPARK_REMOTE`, `KAFKA_BOOTSTRAP` and `CONNECT_URL` each replace an embedded part if they
are already set.

The errors of setting up the parts are all `Unavailable`:

Unavailable
└── ServiceError
    ├── AlreadyRunning     another `up` holds the data folder
    ├── PortTaken          the requested port is in use
    ├── JarMismatch        a jar's content isn't the one in jars.lock
    ├── PartMissing        a program that a part needs isn't installed
    └── PartFailed         a part doesn't start, or ends repeatedly
"""

from __future__ import annotations

from registry.errors import Unavailable


class ServiceError(Unavailable):
    """A part of the product could not be set up on this machine."""


class AlreadyRunning(ServiceError):
    """Another `up` runs on the same data folder; the message names its process id and address."""


class PortTaken(ServiceError):
    """The requested port is in use by another program."""


class JarMismatch(ServiceError):
    """A jar's SHA-256 isn't the one in jars.lock; the jar was discarded."""


class PartMissing(ServiceError):
    """A program that a part needs is neither installed with the project nor on PATH."""


class PartFailed(ServiceError):
    """A part didn't become ready, or ended repeatedly; the message has the end of its log."""
