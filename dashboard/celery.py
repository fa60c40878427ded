"""The Celery application; workers consume the queues `default` and `scans`."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

app = Celery("schemadesk")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(
    [
        "registry.audit",
        "registry.drift",
        "registry.notifications",
        "registry.promotions",
        "registry.search",
        "registry.subjects",
        "dashboard",
    ]
)
