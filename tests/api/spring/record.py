"""Records what Spring's released schema server answers to requests.yaml.

    python -m tests.api.spring.record

starts it, unmodified and with its embedded database, once for each scenario, and writes recorded.json. Needs a Java of
version 17 or later on PATH; the jars are those of jars.lock.
"""

from __future__ import annotations

import json
from typing import Any

from tests.api.spring.parts import RELEASE, spring_server
from tests.api.spring.spring_calls import RECORDED, ask_all, over_http, scenarios

#: what each scenario's server is started with
OPTIONS = {
    "deletion off": (),
    "deletion allowed": ("--spring.cloud.stream.schema.server.allow-schema-deletion=true",),
}


def record() -> dict[str, list[dict[str, Any]]]:
    """The released server's answers, by scenario."""
    recorded = {}
    for name, asks in scenarios().items():
        with spring_server(*OPTIONS[name]) as address:
            recorded[name] = [
                {"what": ask.what, **answer.as_json()} for ask, answer in ask_all(asks, over_http(address))
            ]
    return recorded


def main() -> int:
    """Writes the file; gives how many answers there are."""
    recorded = record()
    content = {"server": f"spring-cloud-stream-schema-server {RELEASE}", "scenarios": recorded}
    RECORDED.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return sum(map(len, recorded.values()))


if __name__ == "__main__":
    print(f"{main()} answers recorded")
