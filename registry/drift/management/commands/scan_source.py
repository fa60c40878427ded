"""`manage.py scan_source`: scan a source now, for a terminal and for CI."""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError
from django.core.serializers.json import DjangoJSONEncoder
from django.utils import timezone

from registry.access.roles import system_actor
from registry.drift import selectors, services
from registry.drift.models import SEVERITIES
from registry.drift.scan.runner import perform_scan
from registry.drift.selectors import FindingInfo, ScanInfo
from registry.drift.tasks import run_scan
from registry.errors import SchemadeskError

DRIFT, UNUSABLE, NOT_SCANNED = 1, 2, 3
LOOK_SECONDS = 0.5
MOST_SHOWN: Final = 1000


class Command(BaseCommand):
    """Scans a source and prints its findings."""

    help = (
        "Scan a source now. Exit code 1: findings of the --fail-on severity or worse are open; 2: the source "
        "doesn't exist or the scan failed; 3: it read nothing or didn't finish in time."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("source", metavar="NAME|ID", help="the source's name or number")
        parser.add_argument(
            "--registry", default="", help="the source's registry, if several registries have a source with that name"
        )
        where = parser.add_mutually_exclusive_group()
        where.add_argument(
            "--wait",
            action="store_true",
            help="queue the scan for the workers and wait for it, instead of scanning in this process",
        )
        where.add_argument("--queue", action="store_true", help="queue the scan for the workers and don't wait")
        parser.add_argument(
            "--timeout", type=float, default=900, metavar="SECONDS", help="how long to wait (default: 900)"
        )
        parser.add_argument(
            "--fail-on",
            choices=[*SEVERITIES, "never"],
            default="break",
            help="exit with code 1 if a finding of this severity or worse is open (default: break)",
        )
        parser.add_argument("--format", choices=["text", "json"], default="text", help="output format")

    def handle(self, *args: Any, **options: Any) -> None:
        """Scan, print, and exit with the code."""
        try:
            source = selectors.find_source(options["source"], registry=options["registry"])
            number = services.queue_scan(source_id=source.id, by=system_actor("scan_source", "command"))
            ends = time.monotonic() + options["timeout"]
            if options["wait"] or options["queue"]:
                run_scan.delay(number)
            elif _scan_here(number, ends) == "not claimed":
                options["wait"] = True  # a worker has it already
            scan = _finished(number, ends) if options["wait"] else selectors.get_scan(number)
            while not options["queue"] and time.monotonic() < ends and (rest := _rest_of(scan)) is not None:
                if not options["wait"]:
                    _scan_here(rest.id, ends)
                scan = _finished(rest.id, ends if options["wait"] else 0.0)
                if scan.unfinished:
                    break
            findings = selectors.list_findings(source_id=source.id, limit=MOST_SHOWN)
        except SchemadeskError as error:
            raise CommandError(error.placed, returncode=UNUSABLE) from error
        code = 0 if options["queue"] else exit_code(scan, findings, options["fail_on"])
        shown = _json(scan, findings, code) if options["format"] == "json" else _text(source.name, scan, findings)
        self.stdout.write(shown)
        if code:
            sys.exit(code)


def exit_code(scan: ScanInfo, findings: list[FindingInfo], fail_on: str) -> int:
    """Return the exit code for CI: 0 only if the source was really scanned and has no open finding that counts."""
    if scan.verdict in ("failed", "cancelled"):
        return UNUSABLE
    if scan.verdict != "scanned" or _rest_of(scan) is not None:
        return NOT_SCANNED
    if fail_on == "never":
        return 0
    worse = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    return DRIFT if any(finding.severity in worse for finding in findings) else 0


def _rest_of(scan: ScanInfo) -> ScanInfo | None:
    """Return the queued scan for what this one couldn't read because a broker was away; None without one."""
    newest = selectors.list_scans(scan.source_id, limit=1)[0]
    return newest if newest.id > scan.id and newest.unfinished and newest.retry_at is not None else None


def _scan_here(number: int, ends: float) -> str:
    """Scan in this process and return the final state.

    If the broker or Spark is away, retry after the same pauses as a worker, until `ends`.
    """
    state = "waiting"
    while state == "waiting":
        retry_at = selectors.get_scan(number).retry_at
        pause = (retry_at - timezone.now()).total_seconds() if retry_at else 0.0
        if time.monotonic() + pause > ends:
            break
        time.sleep(max(pause, 0.0))
        state = perform_scan(number)
    return state


def _finished(number: int, ends: float) -> ScanInfo:
    """Return the finished scan, or its current state at the timeout."""
    while (scan := selectors.get_scan(number)).unfinished and time.monotonic() < ends:
        time.sleep(LOOK_SECONDS)
    return scan


def _json(scan: ScanInfo, findings: list[FindingInfo], code: int) -> str:
    whole = {
        "exit_code": code,
        "scan": asdict(scan) | {"verdict": scan.verdict},
        "findings": [asdict(finding) for finding in findings],
    }
    return json.dumps(whole, indent=2, ensure_ascii=False, cls=DjangoJSONEncoder)


def _text(name: str, scan: ScanInfo, findings: list[FindingInfo]) -> str:
    lines = [f"{name}: scan {scan.id} is {scan.verdict}{_what_was_read(scan)}"]
    if scan.error:
        lines.append(scan.error)
    read = scan.read or {}
    if read.get("not_decoded"):
        lines.append(f"{read['not_decoded']:,} keys or values were not decoded: their content was not checked")
    lines += read.get("limits", ())
    if read.get("limits_left_out"):
        lines.append(f"{read['limits_left_out']:,} more limits kept something from being checked")
    for finding in findings:
        lines += [f"{finding.severity}  {finding.location}: {finding.sentence}", f"       {finding.remedy}"]
    lines.append(f"{len(findings)} open finding{'' if len(findings) == 1 else 's'}")
    return "\n".join(lines)


def _what_was_read(scan: ScanInfo) -> str:
    read = scan.read or {}
    if "messages" not in read:
        return ""
    if not read["messages"] and "topics_asked" in read:
        return f": no new messages in {read['topics_asked']:,} topic{'' if read['topics_asked'] == 1 else 's'}"
    bound = f", stopped at the limit of {read['bound_reached']}" if read.get("bound_reached") else ""
    number = read.get("topics_read")
    topics = f" of {number:,} topic{'' if number == 1 else 's'}" if number is not None else ""
    return f": {read['messages']:,} messages{topics} in {read['seconds']} s{bound}"
