"""Sample pages: what places hold versions to, the forms that change it, and a level tried on the past."""

from __future__ import annotations

from dataclasses import replace

from dashboard.components.badges import Verdict
from dashboard.components.widgets import Action, Choice, Crumb, Fact, Field, Section
from dashboard.registries.policy_forms import (
    ChangeForm,
    ChangePart,
    FailingRow,
    PolicyPage,
    PolicyRow,
    RequestChange,
    TrialRow,
    WhatIfForm,
    WhatIfOutcome,
    WhatIfPage,
    WhyNot,
)
from tests.site.samples.cast import HOSTILE, LONG, frame, subject_crumbs, subject_url

URL = "/ui/registries/dev/policy"
WHAT_IF_URL = "/ui/registries/dev/what-if"
BACKWARD = "A new schema reads what the latest version wrote. Deploy consumers first."
READER = "You need the admin or steward role to change the policy of registry dev."
ROOT = PolicyRow(
    kind="registry", name="dev", depth=0, level="BACKWARD", level_is_own=True, origin="own setting", sentence=BACKWARD,
    mode="READWRITE", mode_is_own=False, mode_origin="the usual one", mode_sentence="", own=(Fact(label="Normalize", value="yes"),),
    change_url=f"{URL}?change=1#change", what_if_url=WHAT_IF_URL,
)  # fmt: skip
CONTEXT = replace(
    ROOT, kind="context", name=".payments", depth=1, level="FULL_TRANSITIVE", own=(), inheriting="12 subjects inherit it",
    mode="READONLY", mode_is_own=True, mode_origin="own setting", mode_sentence="Versions can be registered only by a release.",
    change_url=f"{URL}?change=1&context=.payments#change", what_if_url=f"{WHAT_IF_URL}?context=.payments",
)  # fmt: skip
SUBJECT = replace(
    ROOT, kind="subject", name="orders-value", depth=2, level="NONE", own=(Fact(label="Policy", value="oracle-nosql", code=True),),
    sentence="Nothing is checked. No order is safe.", url=subject_url("dev", "orders-value"),
)  # fmt: skip
LEVELS = tuple(
    Choice(value=name, label=name, selected=name == "FULL")
    for name in ("BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FULL", "NONE")
)
FORM = WhatIfForm(url=WHAT_IF_URL, levels=LEVELS)
SETTINGS = ChangeForm(
    title="Settings", part="config",
    fields=(
        Field(name="level", label="Compatibility", kind="select", choices=(Choice(value="", label="inherited: BACKWARD"), *LEVELS), help=BACKWARD),
        Field(name="alias", label="Another name for it", code=True, errors=(f"{HOSTILE} isn’t there.",)),
    ),
    submit=Action(label="Set", url=f"{URL}/change", method="post"), why=(),
    reset=Action(label="Inherit all of it again", url=f"{URL}/reset", method="post", icon="undo-2"),
)  # fmt: skip
MODE = ChangeForm(
    title="Allowed changes", part="mode",
    fields=(Field(name="mode", label="Mode", kind="select", choices=(Choice(value="READWRITE", label="READWRITE", selected=True), Choice(value="READONLY", label="READONLY"))),),
    submit=Action(label="Set mode", url=f"{URL}/change", method="post", allowed=False, reason=READER),
    why=(WhyNot(code="role", sentence=READER, cure="Ask an admin for the role."), WhyNot(code="closed", sentence="dev is closed.", cure="Open break-glass.")),
)  # fmt: skip
POLICY = PolicyPage(
    frame=frame("Policy", Section.POLICY, *subject_crumbs()), registry="dev", root=ROOT,
    rows=(CONTEXT, SUBJECT, replace(SUBJECT, name=HOSTILE, absent=True, url=""), replace(SUBJECT, name=LONG)),
    exceptions="412 contexts and subjects have their own settings. All others inherit. 4 of 412 exceptions are shown.",
    what_if=FORM, find_url=URL, first_url=URL, next_url=f"{URL}?cursor=x",
    change=ChangePart(row=SUBJECT, context="", subject="orders-value", forms=(SETTINGS, MODE), close_url=URL),
)  # fmt: skip
POLICY_EMPTY = replace(
    POLICY, rows=(), change=None, first_url="", next_url="",
    exceptions="No context or subject has its own settings. All inherit.",
)  # fmt: skip
POLICY_READER = replace(
    POLICY, change=ChangePart(row=CONTEXT, context=".payments", subject="", forms=(MODE,), close_url=URL)
)
FAILING = FailingRow(
    version=3, sentence="Order.id became a string: FIELD_TYPE_CHANGED.", compare_label="version 2",
    compare_url=subject_url("dev", "orders-value", "compare", from_=2, to=3),
)  # fmt: skip
OUTCOME = WhatIfOutcome(
    verdict=Verdict.BREAKS, sentence="With FULL, 3 of 57 registrations would have been refused.",
    consequence="Both sides can be deployed in any order.", progress="20 of 312 subjects were looked at.",
    rows=(
        TrialRow(name="orders-value", url=subject_url("dev", "orders-value"), level="FULL", sentence="1 of 7 registrations would have been refused.", failing=(FAILING, replace(FAILING, version=4, is_known=True))),
        TrialRow(name=HOSTILE, url=subject_url("dev", "other-value"), level="FULL", sentence="Its texts can’t be compared.", failing=(), notes=("Version 2 can’t be read: line 1, column 4.", HOSTILE)),
        TrialRow(name=LONG, url=subject_url("dev", "long-value"), level="FULL", sentence="1 of 2 registrations would have been refused.", failing=(replace(FAILING, sentence=LONG),)),
    ),
    requests_sentence="2 open requests would be judged otherwise.",
    requests=(
        RequestChange(label="Request 14: orders-value version 3", url="/ui/promotions/14", sentence="passes now, would fail", verdict=Verdict.BREAKS),
        RequestChange(label=f"Request 15: {HOSTILE}", url="/ui/promotions/15", sentence="fails now, would pass", verdict=Verdict.OK),
    ),
    stopped="The time for one answer is over.", next_url=f"{WHAT_IF_URL}?level=FULL&cursor=x",
)  # fmt: skip
WHAT_IF = WhatIfPage(
    frame=frame("What if this subject had another level?", Section.POLICY, *subject_crumbs(), Crumb(label="Policy", url=URL)),
    registry="dev", scope="dev", form=FORM, outcome=OUTCOME,
)  # fmt: skip
WHAT_IF_FORM = replace(WHAT_IF, outcome=None)
WHAT_IF_NOTHING = replace(
    WHAT_IF,
    outcome=WhatIfOutcome(
        verdict=Verdict.OK, sentence="With FULL, none of 57 registrations would have been refused.",
        consequence="Both sides can be deployed in any order.", progress="All 12 subjects were looked at.", rows=(),
    ),
)  # fmt: skip
WHAT_IF_WRONG = replace(WHAT_IF, outcome=None, error=f"There is no level {HOSTILE}.")
