"""Sample pages: what places hold versions to, the forms that change it, and a level tried on the past."""

from __future__ import annotations

from dataclasses import replace

from dashboard.components.widgets import Crumb, Section
from dashboard.registries.policy import ChangeForm, ChangePart, PolicyPage, PolicyRow
from dashboard.registries.policy_forms import ConfigForm, ModeForm, ResetConfigForm, ResetModeForm, WhatIfForm
from dashboard.registries.policy_simulation import WhatIfOutcome, WhatIfPage
from registry.promotions.board.readiness import Reason
from registry.promotions.requests.level_simulation import ChangedRequest, RequestsUnder
from registry.subjects.history.level_history import FailingVersion, SubjectTrial, Unjudged, WhatIf
from registry.subjects.policy.effective_policy import EffectiveConfig, EffectiveMode, OwnConfig
from registry.subjects.policy.policy_tree import PolicyNode, PolicyTree
from registry.subjects.versions.qualified_names import SubjectName
from tests.site.samples.cast import HOSTILE, LONG, frame, subject_crumbs

READER = "You need the admin or steward role to change the policy of registry dev."
WHY = (
    Reason("role", READER, "Ask an admin for the role."),
    Reason("closed", "dev is closed.", "Open break-glass."),
)
ROOT = PolicyNode(
    kind="registry",
    scope=None,
    own=OwnConfig(level="BACKWARD", normalize=True),
    own_mode=None,
    config=EffectiveConfig("BACKWARD", True, "registry"),
    settings=OwnConfig(),
    mode=EffectiveMode("READWRITE", "default"),
    subjects=312,
    inheriting=300,
)
CONTEXT = replace(
    ROOT,
    kind="context",
    scope=SubjectName(".payments", ""),
    own=OwnConfig(level="FULL_TRANSITIVE"),
    own_mode="READONLY",
    config=EffectiveConfig("FULL_TRANSITIVE", False, "context"),
    mode=EffectiveMode("READONLY", "context"),
    subjects=12,
    inheriting=12,
)
SUBJECT = replace(
    ROOT,
    kind="subject",
    scope=SubjectName(".", "orders-value"),
    own=OwnConfig(policy="oracle_nosql", alias=HOSTILE, default_metadata={"a": 1}),
    own_mode="READONLY",
    config=EffectiveConfig("NONE", True, "context"),
    mode=EffectiveMode("READONLY", "subject"),
    subjects=0,
    inheriting=0,
)
SETTINGS = ChangeForm(part="config", form=ConfigForm.of(SUBJECT), why=(), reset=ResetConfigForm())
POLICY = PolicyPage(
    frame=frame("Policy", Section.POLICY, *subject_crumbs()),
    registry="dev",
    what_if=WhatIfForm("dev", None),
    is_first=False,
    tree=PolicyTree(
        ROOT,
        (
            CONTEXT,
            SUBJECT,
            replace(SUBJECT, scope=SubjectName(".", HOSTILE), exists=False),
            replace(SUBJECT, scope=SubjectName(".", LONG)),
        ),
        412,
        ":.:x",
    ),
    change=ChangePart(
        row=PolicyRow("dev", SUBJECT),
        forms=(SETTINGS, ChangeForm(part="mode", form=ModeForm.of(SUBJECT), why=WHY, reset=ResetModeForm())),
    ),
)
POLICY_EMPTY = replace(
    POLICY, change=None, is_first=True, tree=PolicyTree(replace(ROOT, own=None, inheriting=312), (), 0)
)
POLICY_READER = replace(
    POLICY,
    change=ChangePart(
        row=PolicyRow("dev", CONTEXT), forms=(ChangeForm(part="mode", form=ModeForm.of(CONTEXT), why=WHY),)
    ),
)
FAILING = FailingVersion(3, (2,), "Order.id became a string: FIELD_TYPE_CHANGED.", False)
SIMULATION = WhatIf(
    level="FULL",
    scope=None,
    subjects=(
        SubjectTrial(
            SubjectName(".", "orders-value"), "NONE", 7, 6, (FAILING, FailingVersion(4, (3, 2, 1), HOSTILE, True))
        ),
        SubjectTrial(SubjectName(".", HOSTILE), "BACKWARD", 2, 1, (), (Unjudged(2, f"line 1, column 4. {HOSTILE}"),)),
        SubjectTrial(SubjectName(".sales", LONG), "BACKWARD", 2, 2, (replace(FAILING, sentence=LONG),), left_out=3),
    ),
    looked_at=20,
    total=312,
    keeping=4,
    transitions=57,
    failing=3,
    cursor="x",
    stopped="The time for one answer is over.",
)
OUTCOME = WhatIfOutcome(
    registry="dev",
    simulation=SIMULATION,
    under=RequestsUnder(
        12,
        9,
        (
            ChangedRequest(14, "orders-value", True, "passes now, would fail"),
            ChangedRequest(15, HOSTILE, False, "fails now, would pass"),
        ),
        "The others were not judged in time.",
    ),
)
WHAT_IF = WhatIfPage(
    frame=frame(
        "What if this subject had another level?",
        Section.POLICY,
        *subject_crumbs(),
        Crumb(label="Policy", url="/ui/registries/dev/policy"),
    ),
    registry="dev",
    scope="dev",
    form=WhatIfForm("dev", SubjectName(".", "orders-value")),
    outcome=OUTCOME,
)
WHAT_IF_FORM = replace(WHAT_IF, outcome=None)
WHAT_IF_NOTHING = replace(
    WHAT_IF, outcome=WhatIfOutcome(registry="dev", simulation=WhatIf("FULL", None, (), 12, 12, 0, 57, 0))
)
WHAT_IF_WRONG = replace(WHAT_IF, outcome=None, error=f"There is no level {HOSTILE}.")
