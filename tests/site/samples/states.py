"""Sample pages in the states that their own modules leave out: a part that fails, a right that is lacking, work under way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dashboard.components.widgets import Problem
from dashboard.errors.views import AwayPage
from tests.site.samples import accounts, environments, home, promotions, report, streams
from tests.site.samples.cast import HOSTILE, ago

READER = "Your role is reader: that takes the role steward or admin."
STOPPED = Problem(what="The mirror of payments couldn’t be read", where="https://payments.example.com", cure="What is shown is the last copy; the next try is in 40 s.", since=ago(minutes=12))  # fmt: skip


def refused(action: Any) -> Any:
    """The action to somebody who may not."""
    return replace(action, reason=READER)


HOME_PARTIAL = replace(home.HOME, problems=(STOPPED,))
QUERIES_DAMAGED = replace(
    streams.QUERIES,
    rows=(*streams.QUERIES.rows, streams.QueryRow(replace(streams.INFO, name=HOSTILE, problems=(HOSTILE,)))),
)
REPORT_READER = replace(report.REPORT_OK, propose=refused(report.REPORT_OK.propose))
PROMOTION_APPLYING = replace(
    promotions.PROMOTION_APPROVED,
    info=replace(promotions.INFO, state="applying"),
    apply=None,
    schedule=None,
    withdraw=None,
)
REQUEST_READER = replace(promotions.FORM, refused=READER)
PROPOSE_READER = replace(environments.EDITOR, refused=environments.REFUSED)
WEBHOOKS_READER = replace(accounts.WEBHOOKS_EMPTY, add=refused(accounts.WEBHOOKS.add))
AWAY = AwayPage(
    title="The database is unavailable",
    cure="Try again in 2 seconds. Changes saved before are kept.",
    again_url="/ui/registries/dev/subjects?find=orders",
)
AWAY_UNKNOWN = AwayPage(
    title="The database is unavailable",
    cure="The connection was lost while your change was being saved, so it may or may not be saved. Check before you try again. Try again in 2 seconds.",
)
