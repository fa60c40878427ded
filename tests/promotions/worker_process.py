"""What a worker's process runs, with a database connection of its own; a test may kill it.

Importing this module sets Django up, so that a fork server does that once for all workers.
"""

from __future__ import annotations

import os
from multiprocessing.connection import Connection
from typing import Any

import django
from django.conf import settings

if not settings.configured:  # in the fork server, not in pytest
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    os.environ.setdefault("SECRET_KEY", "for workers that sign nothing")
    django.setup()

from django.db import connection

from registry.promotions.apply.execution import apply_due


def work(pipe: Connection, request_id: int, database: dict[str, Any], environment: dict[str, str]) -> None:
    """Do a worker's part for one request, and say the state that it came to."""
    os.environ.update(environment)
    settings.EGRESS_ALLOW = ("127.0.0.1",)
    connection.settings_dict.update(database)
    pipe.send(apply_due(request_id=request_id))
    connection.close()
