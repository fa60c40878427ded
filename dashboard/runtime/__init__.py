"""The parts that `manage.py up` and the tests run on this machine, and what they tell Django about them.

The contract between this package and `dashboard.settings` is the environment of each child:

| variable | what it holds |
|---|---|
| `DATABASE_URL` | the application's role; libpq form, e.g. `postgresql://schemadesk_app@/schemadesk?host=%2Frun%2Fsd` |
| `DATABASE_OWNER_URL` | the role that owns the tables; given to `migrate` only |
| `DATABASE_APPLICATION_ROLE` | name of the application's role, for what grants or revokes after a migration |
| `REDIS_URL` | redis-py's form, `unix:///path/valkey.sock?db=0` or `redis://…`; the settings make Celery's form of it |
| `KAFKA_BOOTSTRAP` | `127.0.0.1:PORT`; not set when there is no broker |
| `SPARK_REMOTE` | `sc://localhost:PORT/;token=…`; not set when there is no Spark |
| `CONNECT_URL` | a Kafka Connect worker's REST API, with user and password; not set when there is none |
| `SCHEMADESK_DATA` | the data folder |
| `SECRET_KEY_FILE` | a file (mode 0600) with Django's secret key, made once in the data folder |
| `SCHEMADESK_UP` | `1` under `up`: everything is on loopback |
| `SCHEMADESK_PORT` | the web server's port |

`DATABASE_URL`, `REDIS_URL`, `SPARK_REMOTE`, `KAFKA_BOOTSTRAP` and `CONNECT_URL` that are set already replace the
embedded parts, one by one.

What can go wrong while the parts are set up; all of them are `Unavailable`.

Unavailable
└── ServiceError
    ├── AlreadyRunning     another `up` holds the data folder
    ├── PortTaken          an address that was asked for is in use
    ├── JarMismatch        a jar isn't the one that jars.lock names
    ├── PartMissing        a program that a part needs isn't on this machine
    └── PartFailed         a part doesn't start, or keeps ending
"""

from __future__ import annotations

from registry.errors import Unavailable


class ServiceError(Unavailable):
    """A part of the product could not be set up on this machine."""


class AlreadyRunning(ServiceError):
    """Another `up` runs on the same data folder; the message names its process id and address."""


class PortTaken(ServiceError):
    """The port that was asked for is in use by another program."""


class JarMismatch(ServiceError):
    """A jar's SHA-256 is not the one in jars.lock; nothing of it was kept."""


class PartMissing(ServiceError):
    """A program that a part needs is neither installed with the project nor on PATH."""


class PartFailed(ServiceError):
    """A part did not become ready, or kept ending; the message carries the end of its log."""
