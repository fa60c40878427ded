"""Sample pages: the glossary and a business term."""

from __future__ import annotations

from dataclasses import replace

from dashboard.components.widgets import Crumb, Link, Section
from dashboard.subjects.glossary import RemoveTermForm, TermForm, TermPage, TermsPage
from registry.subjects.lifecycle.glossary import TermInfo
from tests.site.samples.cast import ARABIC, HOSTILE, LONG, ago, frame

REFUSED = "You need the admin or steward role to describe and tag subjects."
REVENUE = TermInfo(
    1, "Net revenue",
    f"What customers pay, **without tax**.\n\n- in `EUR`\n- as *booked*\n\n{HOSTILE}",
    "finance", ago(days=2), "steward",
)  # fmt: skip
TERMS = TermsPage(
    frame=frame("Glossary", Section.SUBJECTS, current=None),
    form=TermForm(),
    back_url="",
    text="",
    rows=(
        (replace(REVENUE, name="Customer", doc="Who has bought something.", owner=""), 12, "/ui/terms/Customer"),
        (replace(REVENUE, name=HOSTILE[:100], doc=HOSTILE, owner=HOSTILE[:200]), 0, "/ui/terms/x"),
        (REVENUE, 3_204, "/gallery/term"),
        (replace(REVENUE, name=ARABIC, doc=LONG, owner=LONG[:200]), 1, "/ui/terms/y"),
    ),
    total=204,
)
TERMS_EMPTY = replace(TERMS, rows=(), total=0)
TERMS_NO_MATCH = replace(TERMS_EMPTY, text="margin")
TERMS_READER = replace(TERMS, refused=REFUSED, text="revenue", total=4)
WRONG = TermForm({"name": "", "doc": HOSTILE, "owner": "finance"})
TERMS_REFUSED = replace(TERMS_EMPTY, form=WRONG)
TERM = TermPage(
    frame=frame("Net revenue", Section.SUBJECTS, Crumb(label="Glossary", url="/gallery/terms"), current=None),
    form=TermForm.of(REVENUE),
    back_url="/gallery/terms",
    term=REVENUE,
    fields=(
        (Link(label="Order.total", url="/gallery/field"), "orders-value (dev)"),
        (Link(label=LONG, url="/gallery/field"), f"{HOSTILE} (prod)"),
    ),
    remove=RemoveTermForm(),
)
TERM_READER = replace(TERM, term=replace(REVENUE, owner=""), fields=(), refused=REFUSED)
