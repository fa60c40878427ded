"""Compares the lenient variant of `oracle_nosql` with the checker of Oracle NoSQL Database's own client."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from dashboard.runtime import ServiceError, jars
from dashboard.runtime.jars import Jar
from dashboard.runtime.layout import Layout, cache_folder
from dashboard.runtime.process import Watchdog
from registry.errors import InvalidSchema
from registry.formats.avro import AVRO
from registry.formats.policies import POLICIES
from tests.formats.avro.random_schemas import random_pair
from tests.java_words import SHORT_LIVED


def fetched(wanted: Sequence[jars.Jar]) -> list[Path]:
    """Where the jars are, once each has the content that its SHA-256 names; raises SystemExit when they can't be had."""
    cache = cache_folder() / "jars"
    missing = [jar for jar in wanted if not (cache / jar.path).exists()]
    try:
        for jar in wanted:
            if jar not in missing:
                jars.verify(jar, cache / jar.path)
        if missing:
            _fetch(missing, cache)
    except ServiceError as error:
        raise SystemExit(error.message) from error
    return [cache / jar.path for jar in wanted]


def _fetch(missing: Sequence[jars.Jar], cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    watchdog = Watchdog()
    watchdog.start()
    folder = Path(tempfile.mkdtemp(prefix="fetch-", dir=cache.parent))
    try:
        layout = Layout.at(folder / "work", watchdog)
        jars.ask_ivy(missing, folder, layout, "comparison", transitive=False)
        jars.install(missing, folder, cache)
    finally:
        watchdog.close()
        shutil.rmtree(folder, ignore_errors=True)


JARS: Final = (
    Jar(
        "com.oracle.kv",
        "oracle-nosql-client",
        "18.3.10",
        "b52f8111c275d410df0168c1de0e3975a42b9b696566fc33419d167eebb1ded9",
        3368791,
    ),
    Jar("org.apache.avro", "avro", "1.7.7", "5ba0a81f4b0769122b6045b98bb9bbba5f2c69dbf736a6cc7ca4eb603c337487", 436303),
    Jar(
        "org.codehaus.jackson",
        "jackson-mapper-asl",
        "1.9.13",
        "74e7a07a76f2edbade29312a5a2ebccfa019128bc021ece3856d76197e9be0c2",
        780664,
    ),
    Jar(
        "org.codehaus.jackson",
        "jackson-core-asl",
        "1.9.13",
        "440a9cb5ca95b215f953d3a20a6b1a10da1f09b529a9ddea5f8a4905ddab4f5a",
        232248,
    ),
    Jar("org.slf4j", "slf4j-api", "1.7.36", "d3ef575e3e4979678dc01bf1dcce51021493b4d11fb7f1be8ad982877c16a1c0", 41125),
)

# What the checker's messages say, as our rules; a group is the field's name.
MESSAGES: Final = (
    (r"Field (\S+) in record \S+ does not have a default value", "FIELD_WITHOUT_DEFAULT"),
    (r"Field (\S+) in record \S+ has a default value that does not conform", "DEFAULT_INVALID"),
    (r"Field (\S+) in record \S+ was deleted but does not have", "FIELD_DELETED_WITHOUT_DEFAULT"),
    (r"Field (\S+) in record \S+ was added but does not have", "FIELD_ADDED_WITHOUT_DEFAULT"),
    (r"The type was promoted from", "TYPE_WIDENED"),
    (r"The type was changed incompatibly from", "TYPE_CHANGED"),
    (r"was changed to non-union type", "TYPE_CHANGED"),
    (r"was changed to a union that does not include", "TYPE_CHANGED"),
    (r"was changed to a union with additional types", "UNION_INTRODUCED"),
    (r"The type name was changed incompatibly from", "TYPE_RENAMED"),
    (r"Union type \S+ was removed", "UNION_BRANCH_REMOVED"),
    (r"Union type \S+ was added", "UNION_BRANCH_ADDED"),
    (r"Enum symbols .* were removed", "ENUM_SYMBOLS_REMOVED"),
    (r"Enum symbols .* were added", "ENUM_SYMBOLS_ADDED"),
    (r"Fixed \S+ size was changed", "FIXED_SIZE_CHANGED"),
)
NAMED: Final = frozenset(rule for pattern, rule in MESSAGES if "(" in pattern)
# Rules of ours that the checker doesn't have: they add no error and no warning of its kind.
OURS_ALONE: Final = frozenset({"RECORD_RENAMED", "FIELD_RENAMED", "FIELD_RENAME_SUSPECTED"})

Item = tuple[str, str, str]


def ask_product(questions: list[dict[str, str]]) -> list[dict[str, Any]]:
    """The checker's answers, in order: errors and warnings, or its failure."""
    lines = "\n".join(json.dumps(question) for question in questions)
    path = os.pathsep.join(map(str, fetched(JARS)))
    oracle = Path(__file__).with_name("NosqlOracle.java")
    done = subprocess.run(
        ["java", *SHORT_LIVED, "-cp", path, str(oracle)],
        input=lines,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def product_items(answer: dict[str, Any]) -> frozenset[Item]:
    """The checker's messages as (severity, rule, field); raises ValueError for one that isn't known."""
    return frozenset(
        _item(severity, message)
        for severity, listed in (("break", answer["errors"]), ("warning", answer["warnings"]))
        for message in listed
    )


def _item(severity: str, message: str) -> Item:
    for pattern, rule in MESSAGES:
        found = re.search(pattern, message)
        if found:
            return severity, rule, found[1] if rule in NAMED else ""
    raise ValueError(f"a message of the product that is not known here: {message}")


def policy_items(question: dict[str, str]) -> frozenset[Item]:
    """The same of our policy; raises InvalidSchema."""
    new = AVRO.parse(question["new"], is_new=False)
    history = [(1, AVRO.parse(question["old"], is_new=False))] if "old" in question else []
    wanted = 1 if "old" in question else None
    return frozenset(
        (
            item.finding.severity,
            item.finding.rule,
            item.finding.path.rpartition(".")[2] if item.finding.rule in NAMED else "",
        )
        for item in POLICIES["oracle_nosql_lenient"].check(new, history).items
        if item.version == wanted and item.finding.rule not in OURS_ALONE
    )


def agreement(question: dict[str, str], answer: dict[str, Any]) -> str:
    """In a few words, how far both agree; capitals for what nothing explains."""
    try:
        ours = policy_items(question)
    except InvalidSchema:
        return "both refuse to parse" if "failure" in answer else "explained: Avro 1.12's parser is stricter"
    if not all(_is_record(text) for text in question.values()):
        if answer.get("failure", "").startswith("parser:"):
            return _explained_failure(answer["failure"])
        if "Not a record" not in answer.get("failure", "Not a record"):
            return f"THE CHECKER FAILS: {answer['failure'][:80]}"
        return "same: no record, refused" if _is_refused(question) else "A CHANGE FROM OR TO NO RECORD IS ACCEPTED"
    if "failure" in answer:
        return _explained_failure(answer["failure"])
    theirs = product_items(answer)
    if ours == theirs:
        return "same items" if ours else "same: nothing to say"
    if theirs < ours and "DEFAULT_INVALID" in {rule for _, rule, _ in theirs} and "old" not in question:
        return "explained: the checker doesn't look into a field whose default is wrong"
    return "OTHER ITEMS"


def _is_refused(question: dict[str, str]) -> bool:
    """Whether our policy rejects a change, whoever forces it."""
    history = [(1, AVRO.parse(question["old"], is_new=False))] if "old" in question else []
    new = AVRO.parse(question["new"], is_new=False)
    return POLICIES["oracle_nosql_lenient"].check(new, history).verdict == "rejected"


def _is_record(text: str) -> bool:
    return bool(AVRO.parse(text, is_new=False).model.root.kind == "record")


def _explained_failure(failure: str) -> str:
    if '"this.fields" is null' in failure:
        return "explained: Avro 1.7.7's parser stops at a default of a record within itself"
    if failure.startswith("parser:"):
        return "explained: Avro 1.7.7's parser is stricter"
    return f"THE CHECKER FAILS: {failure[:80]}"


def questions_of(seed: int) -> list[dict[str, str]]:
    """What is asked of one random pair: each schema alone, and both directions."""
    first, second = random_pair(seed)
    return [{"new": first}, {"new": second}, {"old": first, "new": second}, {"old": second, "new": first}]


def case_questions() -> list[dict[str, str]]:
    """What is asked of the case files: each version against the newest."""
    questions = []
    for path in sorted((Path(__file__).parent / "cases" / "oracle_nosql").glob("*.yaml")):
        for case in yaml.safe_load(path.read_text()):
            new = json.dumps(case["new"])
            questions += [{"new": new}, *({"old": json.dumps(old), "new": new} for old in case["versions"])]
    return questions


def main(pairs: int, seed: int) -> int:
    """Compares and prints; gives the exit code."""
    questions = [question for number in range(seed, seed + pairs) for question in questions_of(number)]
    questions += case_questions()
    counts: Counter[str] = Counter()
    for question, answer in zip(questions, ask_product(questions), strict=True):
        word = agreement(question, answer)
        counts[word] += 1
        if word.split(":")[0].isupper() and counts[word] <= int(os.environ.get("SHOW", "3")):
            theirs = answer if "failure" in answer else {**answer, "items": sorted(product_items(answer))}
            print(word, json.dumps(question, indent=1), f"policy {sorted(policy_items(question))}", theirs, sep="\n")
    for word, count in counts.most_common():
        print(f"{count:7,}  {word}")
    return 1 if any(word.split(":")[0].isupper() for word in counts) else 0


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(*(arguments + [300, 1][len(arguments) :])))
