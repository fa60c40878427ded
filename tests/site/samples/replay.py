"""Sample pages: a replay of a request's schema on real messages."""

from __future__ import annotations

from dataclasses import replace

from dashboard.components.widgets import Action, Choice, Crumb, Problem, Section
from dashboard.promotions.presenters import ReplayPage
from tests.site.samples.cast import HOSTILE, frame
from tests.site.samples.promotions import REPLAY
from tests.site.samples.report import EVIDENCE

REPLAYED = ReplayPage(
    frame=frame(
        "Replay check of request 13",
        Section.PROMOTIONS,
        Crumb(label="Promotions", url="/ui/promotions"),
        Crumb(label=f"#13 Promote {HOSTILE}", url="/gallery/promotion"),
        current="prod",
    ),
    subject="customers-value",
    request_url="/gallery/promotion",
    again=REPLAY,
    topics=(Choice(value="orders", label="orders"), Choice(value=HOSTILE, label=HOSTILE, selected=True)),
    evidence=EVIDENCE,
)
REPLAY_FAILED = replace(
    REPLAYED,
    subject=HOSTILE,
    evidence=None,
    again=Action(label="Replay check", url="", reason="You need the admin or steward role in prod to start scans.", icon="play"),
    problem=Problem(what=f"No topic is known to carry {HOSTILE} (known topics: none). Add its cluster as a source and scan it.", where="prod"),
)  # fmt: skip
