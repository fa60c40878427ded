"""Compares the Avro engine with Java's SchemaCompatibility and Schema.toString() on random pairs of schemas.

    python -m tests.formats.java.java_comparison [pairs] [first seed]

Needs `java` (17 or later) on the PATH; the jars are those of the installed pyspark, or all in the directory that
AVRO_JARS names. Prints how many pairs agree, and the first ones that don't; exits with 1 if any doesn't.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from registry.errors import InvalidSchema
from registry.formats.avro import AVRO
from registry.formats.avro.datum import codec, plain
from registry.formats.avro.findings import PairLocation
from registry.formats.avro.java_decoder import JavaDecoder
from registry.formats.avro.java_names import JavaStops
from registry.formats.avro.sample_data import Coverage, TooMuchData
from tests.formats.avro.random_schemas import random_pair
from tests.java_words import SHORT_LIVED

JUDGEMENTS = Path(__file__).parent.parent / "cases" / "avro_judgements.yaml"
AMBIGUOUS = "matches multiple fields"
JARS = ("avro-1*.jar", "jackson-core-2*.jar", "jackson-databind-2*.jar", "jackson-annotations-2*.jar", "slf4j-api*.jar")


def class_path() -> str:
    """The jars that the oracle needs; raises SystemExit if one is missing."""
    folder = os.environ.get("AVRO_JARS")
    if folder is None:
        import pyspark

        folder = str(Path(pyspark.__file__).parent / "jars")
    found = []
    for pattern in (*JARS, "commons-compress*.jar"):
        jars = sorted(Path(folder).glob(pattern))
        if not jars:
            raise SystemExit(f"no {pattern} in {folder}: name a directory with the Avro jars in AVRO_JARS")
        found.append(str(jars[0]))
    return os.pathsep.join(found)


def ask_java(questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Java's answers to the questions, in their order."""
    oracle = Path(__file__).with_name("AvroOracle.java")
    lines = "\n".join(json.dumps(question) for question in questions)
    done = subprocess.run(
        ["java", *SHORT_LIVED, "-cp", class_path(), str(oracle)],
        input=lines,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def ask_engine(question: dict[str, Any]) -> dict[str, Any]:
    """The engine's answer in the shape of Java's."""
    try:
        if "schema" in question:
            return {"canonical": AVRO.parse(question["schema"]).canonical}
        judgement = AVRO.judge(AVRO.parse(question["reader"]), AVRO.parse(question["writer"]))
    except InvalidSchema as error:
        return {"error": error.message}
    verdict = "COMPATIBLE" if judgement.is_compatible else "INCOMPATIBLE"
    return {"verdict": verdict, "items": [[item.kind, item.location, item.detail] for item in judgement.breaks]}


def agreement(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """In one word, how far the two answers agree."""
    if AMBIGUOUS in theirs.get("error", "") and "error" not in ours:
        # Java stops at the first ambiguous alias, which Confluent's registry reports as incompatible.
        # It also stops in a branch of a union that the decoder wouldn't take; there the engine goes by the decoder.
        return "same ambiguous alias" if ours["verdict"] == "INCOMPATIBLE" else "java stops in an untaken branch"
    if "fields not set yet" in theirs.get("error", ""):
        return "java can't check the default of a recursive type"
    if "error" in ours or "error" in theirs:
        if "error" in ours and "error" in theirs:
            return "both refuse"
        return "only we refuse" if "error" in ours else "ONLY JAVA REFUSES"
    if "canonical" in theirs:
        return "same canonical" if ours["canonical"] == theirs["canonical"] else "OTHER CANONICAL"
    if ours["verdict"] != theirs["verdict"]:
        return "OTHER VERDICT"
    mine, java = {tuple(item) for item in ours["items"]}, {tuple(item) for item in theirs["items"]}
    if mine == java:
        return "same " + ("breaks" if mine else "yes")
    if {item[0] for item in mine} == {item[0] for item in java}:
        return "other places"
    return "other kinds"


def judgement_questions() -> list[dict[str, Any]]:
    """The hand-made table of judgement calls as questions."""
    rows = yaml.safe_load(JUDGEMENTS.read_text())
    return [{"reader": json.dumps(row["reader"]), "writer": json.dumps(row["writer"])} for row in rows]


def judgements_that_differ() -> list[str]:
    """The names of the hand-made judgement calls of which Java says something else than the table; empty if none."""
    rows = yaml.safe_load(JUDGEMENTS.read_text())
    differ = []
    for row, theirs in zip(rows, ask_java(judgement_questions()), strict=True):
        verdict = "COMPATIBLE" if row["compatible"] else "INCOMPATIBLE"
        told = {tuple(item) for item in theirs.get("items", [])}
        is_same = theirs.get("verdict") == verdict and told == {tuple(item) for item in row.get("breaks", [])}
        if not (is_same or (row.get("java_stops") and AMBIGUOUS in theirs.get("error", ""))):
            differ.append(f"{row['name']}: {theirs}")
    return differ


def questions_of(seed: int) -> list[dict[str, Any]]:
    """What is asked of one pair: both texts, and both directions."""
    first, second = random_pair(seed)
    return [
        {"schema": first},
        {"schema": second},
        {"reader": second, "writer": first},
        {"reader": first, "writer": second},
    ]


def decoding_questions(pairs: int, seed: int) -> list[dict[str, Any]]:
    """Random pairs with covering data of the writer, encoded; those that no codec takes are left out."""
    questions = []
    for number in range(seed, seed + pairs):
        try:
            first, second = (AVRO.parse(text) for text in random_pair(number))
        except InvalidSchema:
            continue
        for reader, writer in ((second, first), (first, second)):
            try:
                data = list(islice(Coverage(writer.model.root).data(), 12))
                encoded = [codec(writer.model).encode(datum).hex() for datum in data]
            except (TooMuchData, ValueError, TypeError, KeyError):
                continue
            questions.append({"reader": reader.text, "writer": writer.text, "data": encoded})
    return questions


def read_like_java(question: dict[str, Any]) -> list[dict[str, Any]]:
    """What our rules of Java's decoder make of each datum, in the shape of Java's answers."""
    reader, writer = AVRO.parse(question["reader"]).model.root, AVRO.parse(question["writer"]).model.root
    decoder = JavaDecoder(reader, writer)
    place = PairLocation("", "", "", "", None, None)
    read: list[dict[str, Any]] = []
    for datum in islice(Coverage(writer).data(), len(question["data"])):
        try:
            read.append({"value": plain(decoder.decode(reader, writer, datum, place))})
        except JavaStops as stop:
            read.append({"error": str(stop)})
    return read


def decodings_that_differ(questions: list[dict[str, Any]]) -> list[str]:
    """What Java's decoder reads otherwise than our rules of it say; empty if nothing."""
    differ = []
    for question, answer in zip(questions, ask_java(questions), strict=True):
        for ours, theirs in zip(read_like_java(question), answer["read"], strict=True):
            if "StackOverflowError" in theirs.get("error", ""):
                continue  # Java's own failure, at a default within a recursive union
            if ("error" in ours) != ("error" in theirs) or ours.get("value") != theirs.get("value"):
                differ.append(f"{question}\nengine {ours}\njava   {theirs}")
    return differ


def main(pairs: int, seed: int) -> int:
    """Compares and prints; gives the exit code."""
    questions = [question for number in range(seed, seed + pairs) for question in questions_of(number)]
    differ = judgements_that_differ()
    print(*differ, sep="\n", end="\n" if differ else "")
    counts: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    for question, theirs in zip(questions, ask_java(questions), strict=True):
        ours = ask_engine(question)
        word = agreement(ours, theirs)
        counts[word] += 1
        if not word.startswith(("same", "both")) and shown[word] < int(os.environ.get("SHOW", "3")):
            shown[word] += 1
            print(word, json.dumps(question, indent=1), "engine", ours, "java  ", theirs, sep="\n")
    print(dict(counts))
    return 1 if differ or any(word.isupper() for word in counts) else 0


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(*(arguments + [5_000, 1][len(arguments) :])))
