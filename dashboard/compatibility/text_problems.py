"""The problems of a schema text while it is written, as JSON for the editor: places, sentences and repairs."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Final

from allauth.core.internal import ratelimit
from django.http import HttpRequest, JsonResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from dashboard.compare.proof import DIRECTIONS
from dashboard.compatibility.forms import ReportForm
from dashboard.compatibility.result import level_results
from dashboard.components.badges import Verdict
from dashboard.components.frame import page_actor
from dashboard.components.translation import counted
from registry.access.roles import require
from registry.errors import InvalidSchema, SchemaTooCostly, SchemaTooLarge
from registry.formats.base import Edit
from registry.formats.report import DECISIVE, ReportItem
from registry.formats.suggested_edits import FindingRepairs
from registry.promotions.requests.schema_changes import decided_renames
from registry.subjects import selectors
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import parse_subject

#: checks of one person or address in allauth's format: a pause of 0.4 s between two allows 150 a minute
RATE: Final = {"text_problems": "150/m/key"}
MAX_PROBLEMS: Final = 100
#: characters of a whole text that its repairs may repeat in one answer
MAX_INSERTED: Final = 200_000
#: characters of a line in which a place is looked for
MAX_LINE: Final = 20_000
#: an object that begins with plain members and has a name
_NAMED: Final = re.compile(r'\{\s*(?:"\w+"\s*:\s*"[^"\\\n]*"\s*,\s*){0,5}?"name"\s*:\s*("[^"\\\n]*")')
_TOKEN: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|[\w.]+|[^\n]')


class ProblemsForm(ReportForm):
    """The form of the check page or of the editor, whose text is checked while it is written."""

    service: ClassVar[Callable[..., object]] = staticmethod(selectors.find_problems)


@require_POST
def text_problems(request: HttpRequest) -> JsonResponse:
    """Return the problems of a text against the subject's versions; with `checked` false, the verdict is unknown."""
    registry = get_registry(request.POST.get("registry", ""))
    name, actor = parse_subject(request.POST.get("subject", "")), page_actor(request)
    require(actor, "schema.read", registry=registry.name, subject=name.qualified)
    key = str(actor.user_id or ratelimit.get_ip(request))
    if ratelimit.consume(request, app="dashboard", action="text_problems", config=RATE, key=key) is None:
        return _unknown(gettext("Not checked: too many checks in a minute."), status=429)
    form = ProblemsForm(request.POST, current="")
    if not form.run(actor, registry=registry, subject=name):
        return _refused(form)
    decided = decided_renames({registry.name}, name) if form.result.renames else {}
    refuted = {paths for paths, decision in decided.items() if not decision.is_rename}
    return JsonResponse(_answer(form.cleaned_data["text"], form.result, refuted))


def _unknown(sentence: str, problems: Sequence[dict[str, Any]] = (), status: int = 200) -> JsonResponse:
    """Return an answer without a verdict."""
    return JsonResponse({"checked": False, "summary": sentence, "problems": list(problems)}, status=status)


def _refused(form: ProblemsForm) -> JsonResponse:
    """Return why there is no verdict: a text that doesn't parse has that as its only problem."""
    error = form.error
    sentence = error.message if error else " ".join(str(message) for row in form.errors.values() for message in row)
    if not isinstance(error, InvalidSchema) or isinstance(error, (SchemaTooCostly, SchemaTooLarge)):
        return _unknown(gettext("Not checked: %(reason)s") % {"reason": sentence})
    place = _place(form.cleaned_data["text"], error.line, error.column)
    problem = {**place, "severity": "error", "sentence": sentence, "repairs": []}
    return _unknown(gettext("Not checked: the text can’t be parsed."), [problem])


def _answer(text: str, result: selectors.TextProblems, refuted: Container[tuple[str, str]]) -> dict[str, Any]:
    problems = _findings(text, result)
    problems += _renames(text, result, refuted, MAX_INSERTED - sum(_inserted(row["repairs"]) for row in problems))
    problems += [
        {**_place(text, advice.line, advice.column), "severity": "info", "repairs": []}
        | {"sentence": gettext("Advice: %(message)s.") % {"message": advice.message}}
        for advice in result.lint
    ]
    del problems[MAX_PROBLEMS:]
    levels = level_results(result.levels, result.config.level)
    verdict = next(level.verdict for level in levels if level.configured)
    broken, risky = (sum(problem["severity"] == severity for problem in problems) for severity in ("error", "warning"))
    shown, summary = verdict, gettext("no problems.")
    if broken:
        summary = counted(broken, "%(n)s problem.", "%(n)s problems.")
    elif risky:
        shown = Verdict.CARE if verdict is Verdict.OK else verdict
        summary = counted(risky, "%(n)s warning.", "%(n)s warnings.")
    return {
        "checked": True,
        "passes": verdict is Verdict.OK,
        "verdict": shown.code,
        "summary": gettext("%(verdict)s under %(level)s: %(problems)s")
        % {"verdict": shown.look.word, "level": result.config.level, "problems": summary},
        "problems": problems,
        "levels": render_to_string("components/level_strip.html", {"levels": levels}),
    }


def _findings(text: str, result: selectors.TextProblems) -> list[dict[str, Any]]:
    """Return the findings of the level, each once, with their repairs."""
    report = result.levels.reports[result.config.level]
    repairs = {_key(entry.item): entry for entry in result.repairs}
    budget, problems, seen = MAX_INSERTED, list[dict[str, Any]](), set[Any]()
    for item in report.items:
        if _key(item) in seen or len(problems) == MAX_PROBLEMS:
            continue
        seen.add(_key(item))
        entry = repairs.get(_key(item), FindingRepairs(item))
        mended = list(_repairs(text, zip(entry.edits, entry.passes, strict=True), budget))
        budget -= _inserted(mended)
        sentence = f"{DIRECTIONS[item.direction]}: {item.message}."
        if entry.question:
            sentence = gettext("%(sentence)s Renamed or removed? %(question)s.") % {
                "sentence": sentence,
                "question": _sentence_case(entry.question),
            }
        severity = "error" if item.severity in DECISIVE[report.profile] else "warning"
        place = _place(text, item.line, item.column)
        problems.append({**place, "severity": severity, "sentence": sentence, "repairs": mended})
    return problems


def _renames(
    text: str, result: selectors.TextProblems, refuted: Container[tuple[str, str]], budget: int
) -> Iterator[dict[str, Any]]:
    """Yield the likely renames that no finding asks about, because the new field can be read without the old one."""
    asked = {entry.question for entry in result.repairs}
    for rename, position in result.renames:
        if rename.message in asked or (rename.from_path, rename.path) in refuted:
            continue
        mended = list(_repairs(text, [(rename.edit, rename.passes)] if rename.edit else [], budget))
        budget -= _inserted(mended)
        words = {"question": _sentence_case(rename.message), "effect": rename.effect}
        sentence = gettext("Renamed or removed? %(question)s. %(effect)s") % words
        place = _place(text, *(position or (None, None)))
        yield {**place, "severity": "warning", "sentence": sentence, "repairs": mended}


def _key(item: ReportItem) -> tuple[str, str, str]:
    return item.rule, item.named_path, item.direction


def _sentence_case(message: str) -> str:
    return f"{message[:1].upper()}{message[1:]}"


def _inserted(repairs: Iterable[dict[str, Any]]) -> int:
    return sum(len(repair["change"]["insert"]) for repair in repairs)


def _repairs(text: str, edits: Iterable[tuple[Edit, bool | None]], budget: int) -> Iterator[dict[str, Any]]:
    for edit, passes in edits:
        change = _change(text, edit)
        budget -= len(change["insert"])
        if budget >= 0:
            yield {"title": edit.title, "effect": edit.effect, "passes": passes, "change": change}


def _change(text: str, edit: Edit) -> dict[str, Any]:
    """Return the smallest replacement that makes the edited text; offsets count UTF-16 units, as JavaScript does."""
    start = _shared(text, edit.text)
    most = min(len(text), len(edit.text)) - start
    same = min(most, _shared(text[::-1], edit.text[::-1]))
    end = len(text) - same
    return {"from": _units(text[:start]), "to": _units(text[:end]), "insert": edit.text[start : len(edit.text) - same]}


def _shared(text: str, other: str) -> int:
    """Return the length of the common start of two texts."""
    least, most = 0, min(len(text), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if text.startswith(other[least:middle], least):
            least = middle
        else:
            most = middle - 1
    return least


def _units(text: str) -> int:
    return len(text) + sum(char > "\uffff" for char in text) if not text.isascii() else len(text)


def _place(text: str, line: int | None, column: int | None) -> dict[str, Any]:
    """Return the token at a line and column, from 1; of a record or field over several lines, its name."""
    number = line or 1
    row = _line(text, number)
    start = min(max(0, (column or 1) - 1), len(row))
    if row[start:].rstrip() == "{" and (named := _NAMED.match(_lines_from(text, number)[start:])):
        before = named[0][: named.start(1)]
        number += before.count("\n")
        row, start = _line(text, number), len(before) - before.rfind("\n") - 1
    token = _TOKEN.match(row, start)
    is_open = token is not None and token[0] in "{["
    end = len(row) if token is None or is_open else token.end()
    return {
        "from": {"line": number, "column": _units(row[:start]) + 1},
        "to": {"line": number, "column": _units(row[:end]) + 1},
    }


def _line(text: str, number: int) -> str:
    return _lines_from(text, number).partition("\n")[0]


def _lines_from(text: str, number: int) -> str:
    """Return the start of the text that begins at a line."""
    begin = 0
    for _ in range(number - 1):
        begin = text.find("\n", begin) + 1
        if not begin:
            return ""
    return text[begin : begin + MAX_LINE]
