"""`manage.py reference`: write the reference pages and the architecture picture from the code's tables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand

from dashboard.components.badges import format_name
from dashboard.environment import VARIABLES
from dashboard.management.third_party import third_party_notices
from registry.access.roles import ACTION_WORDS, ACTIONS, ROLES
from registry.api.confluent.http import CODES, status_of
from registry.checkpoints.plans.operator_rules import OPERATOR_RULES
from registry.checkpoints.plans.rules import RESTART_RULES
from registry.drift.judge.registry_advice import ADVICE
from registry.drift.rules import TABLES as DRIFT_TABLES
from registry.drift.rules.detector import DETECTOR
from registry.drift.rules.rule import Rule
from registry.formats.avro import rules as avro_differences
from registry.formats.avro import rules as avro_rules
from registry.formats.compatibility import LEVELS
from registry.formats.json_schema import differences as json_differences
from registry.formats.json_schema import rules as json_rules
from registry.formats.lint import LINT_RULES, MAX_PLACES
from registry.formats.policies import POLICIES, PolicyRule
from registry.formats.policies.spark_state import STATE_RULES
from registry.formats.policies.spark_state.rules import SPARK_FILES, StateRule
from registry.formats.protobuf import rules as protobuf_differences
from registry.formats.protobuf import rules as protobuf_rules
from registry.promotions.environments.services import MAX_MINUTES

_ROW: Final = re.compile(r"^\| (?P<packages>`[^|]+`) \| (?P<imports>[^|]+) \|$", re.MULTILINE)
_WIDTH, _BOX_WIDTH, _BOX_HEIGHT, _LAYER = 980, 128, 40, 86  # pixels
_STYLE: Final = (
    "text{font:14px system-ui,sans-serif;text-anchor:middle;dominant-baseline:central}"
    "rect{fill:#eef2ff;stroke:#4f46e5;rx:6}line{stroke:#94a3b8;marker-end:url(#arrow)}"
    "@media(prefers-color-scheme:dark){text{fill:#e2e8f0}rect{fill:#1e1b4b;stroke:#818cf8}line{stroke:#64748b}}"
)


def import_table(root: Path) -> dict[str, set[str]]:
    """Return what each package may import besides the standard library and itself, by docs/architecture.md."""
    imports: dict[str, set[str]] = {}
    for row in _ROW.finditer((root / "docs" / "architecture.md").read_text(encoding="utf-8")):
        allowed = set(re.findall(r"`([^`]+)`", row["imports"]))
        imports |= dict.fromkeys(re.findall(r"`([^`]+)`", row["packages"]), allowed)
    return imports


def architecture_picture(root: Path) -> str:
    """Return the picture as SVG: packages above their imports, without arrows that other paths imply."""
    table = import_table(root)
    imports = {package: _packages(allowed) - {package} for package, allowed in table.items()} | {
        "dashboard": set(table)
    }
    layers = _layers(imports)
    height = _LAYER * len(layers)
    centres = {
        name: (round(_WIDTH * (index + 0.5) / len(layer)), height - _LAYER * depth - _LAYER // 2)
        for depth, layer in enumerate(layers)
        for index, name in enumerate(layer)
    }
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
            "<title>Packages of Schemadesk: each imports those below that its arrows lead to</title>",
            f"<style>{_STYLE}</style>",
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
            'orient="auto"><path d="M0 0 8 4 0 8z" fill="#94a3b8"/></marker></defs>',
            *(_arrow(centres[name], centres[below]) for name in centres for below in sorted(_direct(imports, name))),
            *(_box(name, *centre) for name, centre in centres.items()),
            "</svg>\n",
        )
    )


def _packages(names: set[str]) -> set[str]:
    """Return the packages of `registry` that contain the names."""
    return {".".join(name.split(".")[:2]) for name in names if name.startswith("registry.")}


def _layers(imports: Mapping[str, set[str]]) -> list[list[str]]:
    @cache
    def depth(name: str) -> int:
        return 1 + max((depth(below) for below in imports.get(name, ())), default=-1)

    names = sorted(imports)
    return [[name for name in names if depth(name) == layer] for layer in range(max(map(depth, names)) + 1)]


def _direct(imports: Mapping[str, set[str]], name: str) -> set[str]:
    """Return what a package imports, without what it also reaches through another package."""
    return {
        below
        for below in imports[name]
        if not any(below in _reached(imports, other) for other in imports[name] if other != below)
    }


def _reached(imports: Mapping[str, set[str]], name: str) -> set[str]:
    return imports.get(name, set()).union(*(_reached(imports, below) for below in imports.get(name, ())))


def _arrow(top: tuple[int, int], bottom: tuple[int, int]) -> str:
    half = _BOX_HEIGHT // 2
    return f'<line x1="{top[0]}" y1="{top[1] + half}" x2="{bottom[0]}" y2="{bottom[1] - half}"/>'


def _box(name: str, x: int, y: int) -> str:
    left, top = x - _BOX_WIDTH // 2, y - _BOX_HEIGHT // 2
    label = name.removeprefix("registry.")
    return (
        f'<rect x="{left}" y="{top}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}"/><text x="{x}" y="{y}">{label}</text>'
    )


ROOT = Path(settings.BASE_DIR)


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    def line(cells: Sequence[object]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |\n"

    return line(head) + "|" + "---|" * len(head) + "\n" + "".join(line(row) for row in rows)


def _levels() -> str:
    rows = [(f"`{level.name}`", level.description, level.scope, level.upgrade_order) for level in LEVELS.values()]
    return "# Compatibility levels\n\n" + _table(("level", "guarantee", "versions checked", "upgrade order"), rows)


def _format(title: str, named: str, rules: Mapping[str, Any], differences: Mapping[str, Any]) -> str:
    breaks = [(f"`{r.id}`", r.severity, f"`{r.kind}`" if r.kind else "", r.why, r.in_reader) for r in rules.values()]
    changes = [(f"`{r.id}`", r.kind, r.sentence) for r in differences.values()]
    return (
        f"# {title}: breaking changes and differences\n\n## Breaking changes\n\n"
        + _table(("rule", "severity", named, "why", "fix in the reader"), breaks)
        + "\n## Differences\n\n"
        + _table(("rule", "kind", "sentence"), changes)
    )


def _avro() -> str:
    return _format("Avro", "name in `SchemaCompatibility`", avro_rules.RULES, avro_differences.DIFFERENCE_RULES)


def _protobuf() -> str:
    return _format("Protobuf", "established name", protobuf_rules.RULES, protobuf_differences.DIFFERENCE_RULES)


def _json_schema() -> str:
    return _format("JSON Schema", "established name", json_rules.RULES, json_differences.DIFFERENCE_RULES)


def _policies() -> str:
    head = ("rule", "requirement", "finding", "why", "fix")
    parts = [
        f"## {policy.title}\n\nSetting `policy`: `{name}`.\n\n" + _table(head, map(_policy_row, policy.rules.values()))
        for name, policy in POLICIES.items()
    ]
    return (
        "# Policies: rules in addition to the levels\n\n"
        + "\n".join(parts)
        + "\n## Spark's state store at a restart\n\n"
        + "The last column has the source file of Spark that decides, below "
        "`sql/core/src/main/scala/org/apache/spark/sql/` where it begins with `execution` or `catalyst`. Real restarts "
        "showed these rules with the versions of Spark that are named.\n\n"
        + _states(head, STATE_RULES)
        + "\n## Operators, variables, sources and sinks at a restart\n\n"
        + _states(head, {**RESTART_RULES, **OPERATOR_RULES})
    )


def _states(head: Sequence[str], rules: Mapping[str, StateRule]) -> str:
    rows = [
        (
            *_policy_row(rule),
            rule.effect,
            _code(rule.error),
            rule.versions,
            _code(rule.spark_file or SPARK_FILES.get(rule.error, "")),
        )
        for rule in rules.values()
    ]
    return _table((*head, "effect", "Spark's error", "Spark", "source file"), rows)


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _policy_row(rule: PolicyRule) -> tuple[str, ...]:
    return (f"`{rule.id}`", rule.requirement, rule.sentence, rule.why, rule.remedy)


def _lint() -> str:
    rows = [
        (f"`{rule.id}`", rule.weight, ", ".join(map(format_name, rule.formats)), rule.why, rule.cure)
        for rule in LINT_RULES.values()
    ]
    return (
        "# Lint: advice on a schema\n\nAdvice appears in compatibility reports and next to the editor. It blocks nothing:"
        f" a schema with advice can be registered. The first {MAX_PLACES} places of each rule are listed.\n\n"
        + _table(("rule", "weight", "formats", "why", "cure"), rows)
    )


def _drift() -> str:
    head = ("rule", "severity", "finding", "what to do")
    parts = [
        f"## {title}\n\n"
        + _table(head, [(f"`{rule.id}`", rule.severity, _sentence(rule), rule.remedy) for rule in rules])
        for title, rules in DRIFT_TABLES.items()
    ]
    advice = [(line.sentence, ", ".join(f"`{rule}`" for rule in line.rules), line.known_from) for line in ADVICE]
    return (
        "# Drift rules\n\n`break`: data is lost or unreadable now. `risk`: data will be lost or unreadable, or may"
        " already be without any error. `notice`: for information. Versions that are registered but not yet seen are"
        f" pending, not drift. Data that was not scanned is not clean.\n\nThese are the rules of detector"
        f" {DETECTOR.version}; every scan and finding records its detector. A finding that appears only because a newer"
        " detector applies its rule differently is marked with `rebaselined_from`: no notification reports it as new"
        " drift, and it blocks a rollout like any other finding.\n\n"
        + "\n".join(parts)
        + "\n## Advice for production\n\nA scan of kind `registry` reports whether each line is followed, not followed"
        " or unknown.\n\n" + _table(("advice", "rules", "based on"), advice)
    )


def _sentence(rule: Rule) -> str:
    """Return a rule's sentence, with its condition if it has one."""
    return f"{rule.sentence} *{rule.condition}*" if rule.condition else rule.sentence


#: what the table of roles and actions doesn't show
_BESIDE_ROLES = (
    ("review rule", "Reviewers named by an environment's rule (owners, a role, a group) can review with or without the"
     " role; the environment's own count includes only reviewers with the right to review."),
    ("own request", "Requesters can't review their own requests, and neither can an account with the requester's email"
     " address, unless the environment allows it."),
    ("owners only", "If an environment says so, only owners of the subject can request its promotion there."),
    ("override", "A reviewer can override a failing check that allows it, with a reason; to override a broken level, they"
     f" also need the right to {ACTION_WORDS['version.force']}."),
    ("proposal", "A schema that isn't registered yet is requested like a version: it needs the right to request."),
    ("draft", "Only the author sees a text that hasn't been proposed or submitted."),
    ("origin", "The finding that a request answers is shown only to people who can read that finding, and the request that"
     " answers a finding only to people who can read that request."),
    ("schedule", "A scheduled request is applied in the name of the person who scheduled it, with the rights that they"
     " have at that time."),
    ("freeze", f"Set and ended with the right to {ACTION_WORDS['registry.manage']}. A freeze blocks applying for"
     " everyone, except for requests for which a reviewer overrides it with a reason, with the approval or after it."),
    ("closed environment", "Changed only by releases, whatever the role. Opening it requires the approval of another"
     " person, or break-glass."),
    ("break-glass", f"Opened with the right to {ACTION_WORDS['registry.manage']}, for up to {MAX_MINUTES} minutes. A second"
     " person confirms it within a day."),
    ("permanent deletion", "Deleting what is or may be in use requires a reason and the right to"
     f" {ACTION_WORDS['version.force']}."),
    ("token", "Has the rights that its scope names, and never more than its user."),
)  # fmt: skip


def _roles() -> str:
    rows = [
        (ACTION_WORDS[action], *("yes" if role in roles else "" for role in ROLES)) for action, roles in ACTIONS.items()
    ]
    return (
        "# Who may do what\n\n"
        + _table(("to …", *ROLES), rows)
        + "\n## Rules in addition to roles\n\n"
        + _table(("what", "who"), _BESIDE_ROLES)
    )


def _errors() -> str:
    rows = [
        (code, status_of(kind, code), (kind.__doc__ or "A database error other than an outage.").split("\n")[0])
        for kind, code in CODES.items()
    ]
    return (
        "# Error codes of the Confluent-compatible API\n\nAn incompatible schema is 409 with `error_code` 409"
        " (`INCOMPATIBLE_ERROR_CODE` sets another).\n\n" + _table(("error_code", "status", "when"), sorted(set(rows)))
    )


def _settings() -> str:
    rows = [(f"`{name}`", item.values, item.default, item.purpose) for name, item in VARIABLES.items()]
    return (
        "# Settings\n\nEnvironment variables of every program of an installation. `manage.py up` sets them for the"
        " services that it starts. A value of the wrong kind stops the program with the variable's name. OpenTelemetry's variables are"
        " [apart](../operations/install.md#how-do-i-get-traces).\n\n"
        + _table(("variable", "values", "default", "sets"), rows)
    )


def _queries() -> str:
    counts: Mapping[str, int] = json.loads((ROOT / "tests/dashboard/query_counts.json").read_text())
    return (
        "# SQL statements of each page\n\nThe most that a page takes with the data of its tests, which fail for one more."
        " The frame is what every page takes: the session, the person, their rights, the environments and the numbers in"
        " the navigation.\n\n" + _table(("page", "statements"), [(page, str(count)) for page, count in counts.items()])
    )


PAGES: dict[str, Callable[[], str]] = {
    "docs/reference/levels.md": _levels,
    "docs/reference/avro.md": _avro,
    "docs/reference/protobuf.md": _protobuf,
    "docs/reference/json-schema.md": _json_schema,
    "docs/reference/lint.md": _lint,
    "docs/reference/policies.md": _policies,
    "docs/reference/drift-rules.md": _drift,
    "docs/reference/roles.md": _roles,
    "docs/reference/error-codes.md": _errors,
    "docs/reference/settings.md": _settings,
    "docs/reference/query-counts.md": _queries,
    "docs/architecture.svg": partial(architecture_picture, ROOT),
    "THIRD_PARTY_NOTICES.md": partial(third_party_notices, ROOT),
}


def stale_pages(*, write: bool) -> list[str]:
    """Return the paths of pages that differ from their source; with `write`, update them."""
    stale = []
    for name, make in PAGES.items():
        path, text = ROOT / name, f"<!-- printed by `manage.py reference`; don't edit -->\n{make()}"
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if write:
                path.write_text(text)
    return stale


class Command(BaseCommand):
    """Writes the pages that have changed."""

    help = "Write the generated documentation from the tables and lock files that the code uses."
    requires_system_checks: list[str] = []

    def handle(self, *args: object, **options: object) -> None:
        """Print the pages written."""
        for name in stale_pages(write=True):
            self.stdout.write(f"{name} written")
