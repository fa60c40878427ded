"""The detector of a scan: the version of the rules, of the code that judges, and of what is observed. Pure.

`detector.json` has the version, the digest of everything that determines findings, and the changes of each version. A
test compares the digest with the code, so that neither changes alone: `python -m registry.drift.rules.detector` writes
the digest; `--raise RULE…` also starts a new version that finds other findings of those rules (no RULE: all rules).
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args

from registry.drift.rules import BUDGET_SEVERITIES, RULES
from registry.observations import Observation

DRIFT: Final = Path(__file__).parent.parent
DATA: Final = Path(__file__).with_name("detector.json")
#: the code that determines findings: the texts of a finding may change without finding others
SOURCES: Final = (
    "judge/*.py",
    "debezium/judge*.py",
    "debezium/expected_columns.py",
    "debezium/columns.py",
    "debezium/last_rows.py",
)
ALL_RULES: Final = "*"


@dataclass(frozen=True)
class Detector:
    """A version, and for it and each earlier one the rules that it judges differently from its predecessor."""

    version: int
    digest: str
    changed: dict[int, tuple[str, ...]]

    def is_new_in(self, rule: str, earlier: int | None) -> bool:
        """Return whether findings of a rule may be new only because a detector after `earlier` ran.

        False for scans from before versions were stored: nothing is known about their detector.
        """
        if earlier is None:
            return False
        return any(
            version > earlier and (rule in rules or ALL_RULES in rules) for version, rules in self.changed.items()
        )


def _read() -> Detector:
    data = json.loads(DATA.read_text("utf-8"))
    changed = {int(version): tuple(rules) for version, rules in data["changed"].items()}
    return Detector(data["version"], data["digest"], changed)


DETECTOR: Final = _read()


def digest() -> str:
    """Return the digest of rules with severities, the code that judges, and the form of observations."""
    parts: dict[str, Any] = {
        "rules": {rule.id: rule.severity for rule in RULES.values()},
        "budgets": BUDGET_SEVERITIES,
        "observations": sorted(_shape(kind) for kind in get_args(Observation)),
        "code": {str(path.relative_to(DRIFT)): _decisions(path) for path in sorted(_paths())},
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _paths() -> Iterator[Path]:
    for pattern in SOURCES:
        yield from DRIFT.glob(pattern)


def _shape(kind: type) -> str:
    """Return an observation's name with its fields."""
    return f"{kind.__name__}({', '.join(f'{name}: {annotation}' for name, annotation in kind.__annotations__.items())})"


def _decisions(path: Path) -> str:
    """Return the digest of the code without layout, comments, docstrings and imports."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [statement for statement in body if not _says_nothing(statement)]  # type: ignore[attr-defined]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _says_nothing(node: ast.AST) -> bool:
    is_description = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_description or isinstance(node, ast.Import | ast.ImportFrom)


def write(*, raised: bool, rules: Sequence[str] = ()) -> Detector:
    """Write the code's digest; `raised` starts a new version that changes those rules (none: all)."""
    unknown = sorted(set(rules) - set(RULES))
    if unknown:
        raise ValueError(f"no rule is called {unknown[0]}")
    changed = dict(DETECTOR.changed)
    version = DETECTOR.version + 1 if raised else DETECTOR.version
    if raised:
        changed[version] = tuple(sorted(rules)) or (ALL_RULES,)
    detector = Detector(version, digest(), changed)
    data = {
        "version": detector.version,
        "digest": detector.digest,
        "changed": {str(key): list(names) for key, names in detector.changed.items()},
    }
    DATA.write_text(json.dumps(data, indent=2) + "\n", "utf-8")
    return detector


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m registry.drift.rules.detector", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--raise", dest="rules", nargs="*", metavar="RULE", help="a new version that changes these rules"
    )
    arguments = parser.parse_args()
    detector = write(raised=arguments.rules is not None, rules=arguments.rules or ())
    print(f"detector {detector.version}, digest {detector.digest[:12]}")  # noqa: T201


if __name__ == "__main__":
    main()
