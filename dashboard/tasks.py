"""The site's background tasks."""

from __future__ import annotations

import logging
import os

from celery import shared_task
from django.core.cache import cache

from dashboard.demo.load import load_demo

logger = logging.getLogger(__name__)
DEMO_LOCK = "demo-is-loading"
DEMO_SECONDS = 600


@shared_task
def run_demo() -> None:
    """Load the demo, only once at a time, because the page's button may be pressed twice."""
    if not cache.add(DEMO_LOCK, 1, timeout=DEMO_SECONDS):
        return
    try:
        load_demo(registry_url=f"http://127.0.0.1:{os.environ.get('SCHEMADESK_PORT', '8081')}", on_line=logger.info)
    finally:
        cache.delete(DEMO_LOCK)
