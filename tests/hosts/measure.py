"""How many more reads a second two web hosts answer than one: `python -m tests.hosts.measure`.

Each web host gets a share of a processor, the rest is for the clients, nginx, PostgreSQL and Valkey. The limits of
deploy/nginx.conf for each address are raised, because all clients have one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from benchmarks.registry_load import SERIAL
from tests.hosts.installation import NAME, PROXY, WEBS, Installation, installation
from tests.hosts.load import schema
from tests.migrated_database import ROOT
from tests.processor_quota import limited

#: what is read → the share of a processor of each web host, and connections
CASES: Final = {"cached": (0.06, 80), "uncached": (0.12, 16)}
SUBJECTS, SECONDS, REPEATS = 20, 6.0, 2
CONFIGURATION: Final = "/etc/nginx/conf.d/schemadesk.conf"


def requests(token: str, *, is_fresh: bool) -> list[str]:
    """Reads of the newest versions; a fresh one has a header that no request had before."""
    lines = [f"Host: {NAME}", f"Authorization: Bearer {token}", *([f"X-Bench: {SERIAL.decode()}"] if is_fresh else [])]
    return [
        "\r\n".join([f"GET /subjects/bench-{number}/versions/latest HTTP/1.1", *lines, "", ""])
        for number in range(SUBJECTS)
    ]


def use(site: Installation, webs: tuple[str, ...]) -> None:
    """Let nginx ask these web hosts."""
    servers = " ".join(f"server {site.net[name].address}:8081 max_fails=0;" for name in webs)
    site.net[PROXY].run(
        f"sed -i -E '/max_fails=0;/s/server .*/{servers}/; s/rate=[0-9]+r/rate=100000r/; s/burst=[0-9]+/burst=10000/' {CONFIGURATION}"
    )
    site.net[PROXY].run("nginx -s reload; sleep 2")


def reads(site: Installation, token: str, serial: int, connections: int, *, is_fresh: bool) -> dict[str, Any]:
    """Read for a while from the host of the clients."""
    job = {
        "host": NAME, "port": 443, "tls": True, "connections": connections, "warm_up": 3.0, "seconds": SECONDS,
        "serial": serial if is_fresh else 0, "requests": requests(token, is_fresh=is_fresh),
    }  # fmt: skip
    done = subprocess.run(
        site.net["client"].words(sys.executable, str(ROOT / "benchmarks" / "registry_load.py")),
        input=f"{json.dumps(job)}\ngo\n", env={"SSL_CERT_FILE": str(site.folder / "ca.pem")},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert "failed" not in result, result
    return result


def measure(site: Installation) -> None:
    """Register what is read, and compare, before the other programs of this machine."""
    site.net["client"].run(f"echo '{site.net[PROXY].address} {NAME}' >> /etc/hosts")
    token = site.command("schemadesk issue_token ops bench").split()[-1]
    for number in range(SUBJECTS):
        body = json.dumps(schema(f"bench-{number}", 1))
        site.net["web1"].run(
            f"curl --silent --fail --output /dev/null -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json'"
            f" --data '{body}' http://127.0.0.1:8081/subjects/bench-{number}/versions"
        )
    with limited("bench-others", os.getpid(), None):
        compare(site, token)


def compare(site: Installation, token: str) -> None:
    """Print the reads a second of each kind, in turns with one web host and with two."""
    serial = 1
    for what, (share, connections) in CASES.items():
        best = dict.fromkeys((1, 2), 0.0)
        use(site, WEBS)
        opened = reads(site, token, serial, connections, is_fresh=what == "uncached")
        serial += opened["sent"] + opened["warmed"]
        for count in (1, 2) * REPEATS:
            use(site, WEBS[:count])
            # A host that was left out for a while begins without what it had cached; within its share, that takes seconds.
            warmed = reads(site, token, serial, connections, is_fresh=what == "uncached")
            serial += warmed["sent"] + warmed["warmed"]
            with ExitStack() as stack:
                for name in WEBS:
                    stack.enter_context(limited(f"bench-{name}", site.running[name, "schemadesk-web"].pid, share))
                result = reads(site, token, serial, connections, is_fresh=what == "uncached")
            assert not result["wrong"], result["first_error"]
            serial += result["sent"] + result["warmed"]
            rate = result["answered"] / result["seconds"]
            best[count] = max(best[count], rate)
            print(
                f"{what}, {count} of {share:.0%}: {rate:,.0f} a second, p99 {1000 * result['p99']:.0f} ms, clients {result['cpu']:.1f} s",
                flush=True,
            )
        print(f"{what}: {best[1]:,.0f} and {best[2]:,.0f} a second, × {best[2] / best[1]:.2f}", flush=True)


if __name__ == "__main__":
    with (
        tempfile.TemporaryDirectory(prefix="schemadesk-bench-") as folder,
        installation(Path(folder), is_whole=False) as site,
    ):
        measure(site)
