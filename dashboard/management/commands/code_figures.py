"""`manage.py code_figures`: code metrics for size, names and structure, with their limits and goals."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

from django.conf import settings
from django.core.management.base import BaseCommand

PACKAGES: Final = ("registry", "dashboard")
# Names that don't say what a value is.
VAGUE_NAMES: Final = frozenset(
    [
        "found",
        "told",
        "said",
        "held",
        "wanted",
        "asked",
        "given",
        "known",
        "kept",
        "place",
        "places",
        "each",
        "seen",
        "answer",
        "words",
        "wrong",
    ]
)
MAX_FUNCTION_LINES: Final = 20
MAX_TEMPLATE_WIDTH: Final = 160
# Parts of `dashboard` without pages.
NOT_PRESENTATION: Final = ("runtime", "demo", "database", "response_cache", "management", "styles")
# Names that Django requires.
DJANGO_NAMES: Final = frozenset({"Meta", "Command", "Migration"})
_LAYOUT: Final = (tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING)
_LINE_STARTS: Final = (None, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


@dataclass(frozen=True, slots=True)
class SizeLimit:
    """The limit and the goal of a metric, in its own unit."""

    limit: float
    goal: float


LIMITS: Final[Mapping[str, SizeLimit]] = {
    "modules": SizeLimit(747, 620),
    "lines of code": SizeLimit(122_120, 86_000),
    "lines of presentation": SizeLimit(22_700, 13_000),
    "import lines, %": SizeLimit(9.1, 8),
    "vague names, %": SizeLimit(0.5, 0.5),
    "class names with more than two homes": SizeLimit(0, 0),
    "modules in the largest folder": SizeLimit(24, 24),
    "import cycles": SizeLimit(0, 0),
    f"functions over {MAX_FUNCTION_LINES} lines, %": SizeLimit(10, 10),
    f"template lines over {MAX_TEMPLATE_WIDTH} characters": SizeLimit(0, 0),
}


@dataclass(frozen=True, slots=True)
class Module:
    """A Python module: its dotted name, its text and its syntax tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module


def measure(root: Path) -> dict[str, float]:
    """Return every metric of the code under `root`, by the names of LIMITS."""
    modules = list(_modules(root))
    names = Counter(name for module in modules for name in _variable_names(module.tree))
    functions = [size for module in modules for size in _function_sizes(module.tree)]
    long_functions = sum(size > MAX_FUNCTION_LINES for size in functions)
    figures = (
        len(modules),
        sum(code_lines(module.text) for module in modules),
        sum(code_lines(module.text) for module in modules if _is_presentation(module.name)),
        _percent(sum(map(_import_lines, modules)), sum(map(_text_lines, modules))),
        _percent(sum(names[name] for name in VAGUE_NAMES), names.total()),
        sum(len(homes) > 2 for homes in class_homes(modules).values()),
        max(Counter(module.path.parent for module in modules).values()),
        int(import_cycle(modules) is not None),
        _percent(long_functions, len(functions)),
        sum(len(line) > MAX_TEMPLATE_WIDTH for line in _template_lines(root)),
    )
    return dict(zip(LIMITS, figures, strict=True))


def _percent(part: float, whole: float) -> float:
    return round(100 * part / whole, 2)


def _modules(root: Path) -> Iterator[Module]:
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            if "migrations" not in path.parts:
                text = path.read_text(encoding="utf-8")
                dotted = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
                yield Module(dotted, path, text, ast.parse(text))


def _is_presentation(name: str) -> bool:
    package, _, rest = name.partition(".")
    return package == "dashboard" and "." in rest and rest.split(".")[0] not in NOT_PRESENTATION


def code_lines(text: str) -> int:
    """Count lines with code, without blank lines, comments and docstrings."""
    lines: set[int] = set()
    previous: int | None = None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.NL):
            continue
        is_docstring = token.type == tokenize.STRING and previous in _LINE_STARTS
        if token.type not in _LAYOUT and token.type != tokenize.NEWLINE and not is_docstring:
            lines.update(range(token.start[0], token.end[0] + 1))
        previous = token.type
    return len(lines)


def _text_lines(module: Module) -> int:
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in module.text.splitlines())


def _import_lines(module: Module) -> int:
    imports = (node for node in ast.walk(module.tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)


def _variable_names(tree: ast.Module) -> Iterator[str]:
    """Yield the name of each binding: variables, parameters, fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def _function_sizes(tree: ast.Module) -> Iterator[int]:
    """Yield the number of lines of each function, without its docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            statements = node.body[1:] if ast.get_docstring(node) else node.body
            yield (node.end_lineno or node.lineno) - statements[0].lineno + 1 if statements else 0


def class_homes(modules: list[Module]) -> dict[str, set[str]]:
    """Return the modules that define each class name."""
    homes: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and node.name not in DJANGO_NAMES:
                homes[node.name].add(module.name)
    return homes


def import_cycle(modules: list[Module]) -> list[str] | None:
    """Return modules that import each other in a cycle when they are loaded; None without a cycle."""
    names = {module.name for module in modules}
    graph = {module.name: set(_imported(module, names)) - {module.name} for module in modules}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return None


def _imported(module: Module, names: set[str]) -> Iterator[str]:
    """Yield the product's modules that a module imports when loaded: not in functions, not only for types."""
    for node in _loaded(module.tree.body):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                if submodule in names:
                    yield submodule
                elif node.module in names:
                    yield node.module


def _loaded(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in statements:
        if isinstance(statement, ast.If):
            if "TYPE_CHECKING" not in ast.unparse(statement.test):
                yield from _loaded(statement.body)
            yield from _loaded(statement.orelse)
        elif isinstance(statement, ast.Try):
            yield from _loaded(statement.body)
        else:
            yield statement


def _template_lines(root: Path) -> Iterator[str]:
    for path in sorted((root / "templates").rglob("*")):
        if path.is_file():
            yield from path.read_text(encoding="utf-8").splitlines()


class Command(BaseCommand):
    """Prints each metric; exits with 1 if one is over its limit."""

    help = "Print code metrics with their limits and goals."
    requires_system_checks: list[str] = []

    def handle(self, *args: object, **options: object) -> None:
        """Print a line for each metric: its state, value, limit and goal."""
        figures = measure(settings.BASE_DIR)
        for name, value in figures.items():
            limit = LIMITS[name]
            state = "OVER" if value > limit.limit else "open" if value > limit.goal else "ok"
            self.stdout.write(f"{state:4} {name}: {value:,} (limit {limit.limit:,}, goal {limit.goal:,})")
        if any(value > LIMITS[name].limit for name, value in figures.items()):
            sys.exit(1)
