"""The settings of a next release: one more app, with migrations."""

from dashboard.settings import *  # noqa: F403
from dashboard.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.upgrade.next_release"]
