"""An installation over several hosts, made by the commands of docs/operations/install.md in their order.

The page's blocks begin with the names of their hosts. What can't be had in a test has a stand-in here: packages,
certificates, and systemd, of whose units the commands and settings are used.
"""

from __future__ import annotations

import re
import shlex
import shutil
import struct
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from tests.hosts.network import Host, Network, network
from tests.migrated_database import ROOT, script
from tests.runtime.test_package import PROGRAM, build
from tests.waiting import until

PAGES: Final = ROOT / "docs" / "operations"
PROXY, NAME = "proxy", "schemas.example.com"
WEBS: Final = ("web1", "web2")
WORKERS: Final = ("worker1", "worker2")
ADDRESSES: Final = {
    PROXY: "10.0.0.10", "web1": "10.0.0.11", "web2": "10.0.0.12", "worker1": "10.0.0.21", "worker2": "10.0.0.22",
    "db": "10.0.0.31", "db2": "10.0.0.32", "cache": "10.0.0.41", "client": "10.0.0.101",
}  # fmt: skip
OTHER_CLIENT: Final = "10.0.0.102"
PASSWORDS: Final = {"OWNER_PASSWORD": "owner-1", "APP_PASSWORD": "app-1", "cache": "cache-1", "standby": "standby-1"}
#: what stands for `…` on the pages, by what is before it
SECRETS: Final = {
    "OWNER_PASSWORD=": PASSWORDS["OWNER_PASSWORD"],
    "APP_PASSWORD=": PASSWORDS["APP_PASSWORD"],
    "schemadesk_owner:": PASSWORDS["OWNER_PASSWORD"],
    "schemadesk_app:": PASSWORDS["APP_PASSWORD"],
    "requirepass ": PASSWORDS["cache"],
    "redis://:": PASSWORDS["cache"],
    "PASSWORD '": PASSWORDS["standby"],
    "printf %s '": "N" * 40 + "0123456789",
    "PGPASSWORD=": PASSWORDS["standby"],
}
#: how lines begin that don't run here: the package is the unpacked wheel, with the checkout's packages
LEFT_OUT: Final = ("python3 -m venv /opt", "/opt/schemadesk/bin/pip")
#: what only a whole installation has, because it takes long: a second worker, a check of every page
WHOLE_ONLY: Final = ("worker2", "schemadesk check")
#: what the packages of Debian would have made → on which hosts
PACKAGES: Final = {
    "db": """
        mkdir -p /var/lib/postgresql; mount -t tmpfs -o mode=755 own /var/lib/postgresql
        mkdir -p $PGDATA /run/postgresql /var/log/postgresql /etc/pgbouncer
        chown postgres $PGDATA /run/postgresql /var/log/postgresql
        runuser -u postgres -- initdb --pgdata $PGDATA --username postgres --encoding UTF8 --locale C.UTF-8 \\
            --auth-local peer --auth-host scram-sha-256 >/dev/null""",
    "db2": """
        mkdir -p $PGDATA /run/postgresql /var/log/postgresql /etc/pgbouncer
        chown postgres $PGDATA /run/postgresql /var/log/postgresql; chmod 700 $PGDATA""",
    # valkey-cli, with no more than what the pages need of it
    "cache": """
        mkdir -p /etc/valkey /var/lib/valkey
        printf '%s\\n' '#!/bin/sh' 'exec {python} {program} "$@"' > /opt/valkey-cli; chmod 755 /opt/valkey-cli""".format(
        python=sys.executable, program=Path(__file__).with_name("valkey_cli.py")
    ),
    PROXY: """
        mkdir -p /etc/nginx/conf.d /var/log/nginx /var/lib/nginx /etc/schemadesk/tls
        echo 'worker_processes 1; events { worker_connections 1024; } http { include conf.d/*.conf; }' > /etc/nginx/nginx.conf""",
}
SERVER: Final = (
    "runuser -u postgres -- pg_ctl --pgdata $PGDATA --log /var/log/postgresql/server.log --wait --timeout 60"
)
SOCKET: Final = "-o '-k /run/postgresql'"
BOUNCER: Final = "/run/postgresql/pgbouncer.pid"
#: service, action → the commands of its stand-in
SERVICES: Final = {
    ("postgresql", "start"): f"{SERVER} {SOCKET} start",
    ("postgresql", "restart"): f"{SERVER} {SOCKET} restart",
    ("pgbouncer", "restart"): f"""
        if [ -e {BOUNCER} ]; then kill -9 "$(cat {BOUNCER})"; rm {BOUNCER}; sleep 0.2; fi
        runuser -u postgres -- pgbouncer --quiet --daemon /etc/pgbouncer/pgbouncer.ini""",
    ("pgbouncer", "reload"): f'kill -HUP "$(cat {BOUNCER})"',
    (
        "valkey",
        "restart",
    ): "$VALKEY /etc/valkey/valkey.conf --dir /var/lib/valkey --daemonize yes --save '' >/dev/null",
    ("nginx", "restart"): "nginx >/dev/null 2>&1",
    ("nginx", "reload"): "nginx -s reload",
}


BYTECODE: Final = "/opt/bytecode"  # that the tests keep, if they keep it apart (tests/runner.py)
START: Final = """\
#!{python}
import os, sys
sys.path.insert(0, "{code}")
sys.pycache_prefix = {bytecode!r}
os.environ |= {{"PYTHONPATH": "{code}", "PYTHONPYCACHEPREFIX": {bytecode!r} or "", "SCHEMADESK_DATA": "/var/lib/schemadesk"}}
"""
#: unit → by what its processes are found
PROCESSES: Final = {
    "schemadesk-web": "[g]ranian",
    "schemadesk-worker@default": "[c]elery:app.worker",
    "schemadesk-beat": "[c]elery:app.beat",
}
#: the clock of these hosts' programs can be set, where there is a compiler of C
CLOCKS: Final = ("web1",)
CLOCK, OFFSET, DISK = "/opt/schemadesk/clock.so", "/run/clock", "/var/lib/postgresql"
CLOCK_SETTINGS: Final = f"[ ! -e {CLOCK} ] || export LD_PRELOAD={CLOCK} CLOCK_OFFSET={OFFSET};"


def blocks(page: str, section: str = "", secrets: Mapping[str, str] = SECRETS) -> Iterator[tuple[list[str], str]]:
    """The blocks of commands of a page or a section of it: on which hosts, and the commands."""
    words = (PAGES / page).read_text()
    if section:
        words = words.split(f"\n## {section}\n")[1].split("\n## ")[0]
    for _, text in re.findall(r"^```(\w*)\n(.*?)^```$", words, re.M | re.S):
        first, _, rest = text.partition("\n")
        if first.startswith("# on "):
            yield first.removeprefix("# on ").split(", "), filled(rest, secrets)
        elif re.match(r"[A-Z_]+=", text):
            yield [], filled(text, secrets)  # the file of settings


def filled(text: str, secrets: Mapping[str, str]) -> str:
    """The text with a secret for each `…`."""
    for before, secret in secrets.items():
        text = text.replace(f"{before}…", f"{before}{secret}")
    return text


def unit(name: str) -> Mapping[str, str]:
    """The settings of a systemd unit in deploy/; `name` may have an instance."""
    stem, _, instance = name.partition("@")
    text = (ROOT / "deploy" / "systemd" / f"{stem}{'@' if instance else ''}.service").read_text()
    return {key: value.replace("%i", instance) for key, value in re.findall(r"^(\w+)=(.*)$", text, re.M)}


@dataclass
class Installation:
    """What runs on which host; `folder` has the logs."""

    net: Network
    folder: Path
    is_whole: bool
    running: dict[tuple[str, str], subprocess.Popen[bytes]] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    said: str = field(default="", repr=False)  # what the page's commands wrote

    def follow(self, page: str, section: str = "") -> None:
        """Run the commands of a page, or of a section of it, in their order."""
        for names, text in blocks(page, section):
            self.do_on(names, text)

    def do_on(self, names: list[str], text: str) -> None:
        """Run a block of commands on each of these hosts; without one, it is the file of settings."""
        if not names:
            self._settings(text)
        for name in names:
            if self.is_whole or name not in WHOLE_ONLY:
                self.do(self.net[name], text)

    def bring_tables(self) -> None:
        """Make the tables from the kept script, so that `migrate` finds nothing to do."""
        if script().exists():
            self.net["db"].run("runuser -u postgres -- psql -qd schemadesk -v ON_ERROR_STOP=1", script().read_text())

    def do(self, host: Host, text: str) -> None:
        """Run a block of commands on a host: those of systemd by their stand-in, the others as they are."""
        if not self.is_whole and "schemadesk migrate" in text:
            self.bring_tables()
        left_out, lines = LEFT_OUT + (() if self.is_whole else WHOLE_ONLY), list[str]()
        for line in [*text.splitlines(), "systemctl daemon-reload"]:
            if not line.startswith("systemctl"):
                lines += [] if line.startswith(left_out) else [line]
                continue
            if any("/readyz" in line for line in lines):  # a busy machine starts programs slowly
                until(lambda: self.is_ready(host.name), 300, pause=0.5)
            if lines:
                self.said += host.run("\n".join(lines))
                lines = []
            self.systemctl(host, shlex.split(line)[1:])

    def systemctl(self, host: Host, words: list[str]) -> None:
        """What systemctl would do."""
        action, *names = [word for word in words if not word.startswith("--")]
        if action == "try-restart":
            action, (pattern,) = "restart", names
            names = [name for of, name in self.running if of == host.name and fnmatch(name, pattern)]
        for name in names:
            if not name.startswith("schemadesk"):
                host.run(SERVICES[name, action])
            elif action == "restart":
                self.restart(host.name, name)
            elif not name.endswith("@scans"):
                self.start(host.name, name)

    def start(self, host: str, name: str) -> None:
        """Start a unit of deploy/systemd, as its user, with its settings."""
        settings = unit(name)
        user, folder = settings["User"], f"/var/lib/{settings['StateDirectory']}"
        command = f"""
            install -d -o {user} -g {user} -m {settings["StateDirectoryMode"]} {folder}
            cd {settings["WorkingDirectory"]}; umask {settings["UMask"]}
            set -a; . {settings["EnvironmentFile"]}; {CLOCK_SETTINGS if host in CLOCKS else ""} set +a
            exec setpriv --reuid={user} --regid={user} --clear-groups --no-new-privs -- {settings["ExecStart"]}"""
        self.running[host, name] = self.net[host].start(command, self.folder / f"{host}-{name}.log")

    def set_clock(self, host: str, ahead: int) -> None:
        """Let the clock of a host's programs be ahead by so many seconds, or behind."""
        text = "".join(f"\\{byte:03o}" for byte in struct.pack("<q", ahead))
        self.net[host].run(f"printf '{text}' 1<>{OFFSET}")

    def clock(self, host: str) -> float:
        """By how many seconds the clock of a web host's programs is ahead."""
        headers = self.net[host].run("curl --silent --dump-header - --output /dev/null http://127.0.0.1:8081/healthz")
        shown = re.search(r"^date: (.*?)\r?$", headers, re.M | re.I)
        assert shown, headers
        return parsedate_to_datetime(shown[1]).timestamp() - time.time()

    def fill_disk(self, host: str) -> None:
        """Leave no space on the disk of a host's PostgreSQL."""
        self.net[host].run(
            f"until mount -o remount,size=$(df --output=used {DISK} | tail -1)k {DISK} 2>/dev/null; do :; done"
        )

    def free_disk(self, host: str) -> None:
        """Give it space again, and start PostgreSQL if it has ended."""
        self.net[host].run(f"mount -o remount,size=50% {DISK}; {SERVER} status >/dev/null || {SERVER} {SOCKET} start")

    def kill(self, host: str, name: str) -> None:
        """End a unit's processes at once, as by the kernel."""
        self.net[host].run(f"pkill -KILL -f {PROCESSES[name]}")
        self.running.pop((host, name)).wait(20)

    def restart(self, host: str, name: str) -> None:
        """End a unit as systemd does, and start it again."""
        self.net[host].run(f"pkill -TERM -o -f {PROCESSES[name]}")
        self.running.pop((host, name)).wait(60)
        self.start(host, name)

    def copy_bouncer(self, one: str, other: str) -> None:
        """Give another host the files of PgBouncer, as the page says."""
        for name in ("pgbouncer.ini", "userlist.txt"):
            path = f"/etc/pgbouncer/{name}"
            self.net[other].write(path, self.net[one].run(f"cat {path}"))

    def is_ready(self, host: str) -> bool:
        """Whether a web host says that it is."""
        ask = "curl --silent --output /dev/null --write-out '%{http_code}' http://127.0.0.1:8081/readyz || true"
        return self.net[host].run(ask).strip() == "200"

    def sql(self, query: str, host: str = "db") -> list[list[str]]:
        """The rows of a query."""
        text = self.net[host].run('runuser -u postgres -- psql -d schemadesk -AtF "|" -c "$QUERY"', QUERY=query)
        return [line.split("|") for line in text.splitlines()]

    def command(self, words: str, host: str = "web1") -> str:
        """What a command of the product writes, run as the page says."""
        define = next(
            line for _, text in blocks("install.md") for line in text.splitlines() if line.startswith("schemadesk()")
        )
        return self.net[host].run(f"{define}\n{words}")

    def _settings(self, text: str) -> None:
        """Set these settings on all hosts, beside those that they have."""
        lines = [line for line in text.splitlines() if "SPARK_REMOTE" not in line]  # no scans
        self.settings |= {line.partition("=")[0]: line for line in lines}
        for name in (*WEBS, *WORKERS[: 2 if self.is_whole else 1]):
            self.net[name].run('echo "$TEXT" > /etc/schemadesk/environment', TEXT="\n".join(self.settings.values()))
            self.net[name].run('printf %s "$KEY" > /etc/schemadesk/secret_key', KEY=self._key())

    def _key(self) -> str:
        path = self.folder / "key"
        if not path.exists():
            path.write_text(
                subprocess.run(["openssl", "rand", "-base64", "48"], capture_output=True, text=True, check=True).stdout
            )
        return path.read_text()


def package(folder: Path, *, is_wheel: bool) -> Path:
    """What is at /opt/schemadesk: the unpacked wheel, or a program of the checkout, whose bytecode is there already."""
    target, code = folder / "opt", ROOT
    if is_wheel:
        code = Path("/opt/schemadesk/site")
        zipfile.ZipFile(build(folder / "dist")).extractall(target / "site")
    program = target / "bin" / "schemadesk"
    program.parent.mkdir(parents=True)
    program.write_text(
        START.format(python=sys.executable, code=code, bytecode=BYTECODE if sys.pycache_prefix else None) + PROGRAM
    )
    program.chmod(0o755)
    if compiler := shutil.which("cc"):
        source = Path(__file__).with_name("clock.c")
        subprocess.run([compiler, "-shared", "-fPIC", "-o", str(target / Path(CLOCK).name), str(source)], check=True)
    folder.chmod(0o755)
    subprocess.run(["chmod", "-R", "a+rwX", str(target)], check=True)  # whose first user keeps the bytecode
    return target


def certificate(folder: Path) -> None:
    """A certificate of the site, signed by a CA that is made once."""
    subject = ["-subj", f"/CN={NAME}"]
    authority = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=Test CA", "-keyout", "ca.key", "-out", "ca.pem"]  # fmt: skip
    for words in (
        *(() if (folder / "ca.pem").exists() else (authority,)),
        ["req", "-newkey", "rsa:2048", "-nodes", *subject, "-addext", f"subjectAltName=DNS:{NAME}", "-keyout", "site.key", "-out", "site.csr"],
        ["x509", "-req", "-in", "site.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-copy_extensions", "copy", "-days", "2", "-out", "site.pem"],
    ):  # fmt: skip
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def install_certificate(site: Installation) -> None:
    """Make a certificate, and put it where nginx looks for it."""
    certificate(site.folder)
    for name, path in (("site.pem", "fullchain.pem"), ("site.key", "key.pem")):
        site.net[PROXY].write(f"/etc/schemadesk/tls/{path}", (site.folder / name).read_text())


@contextmanager
def installation(folder: Path, *, is_whole: bool) -> Iterator[Installation]:
    """All hosts as the page makes them: as a whole from the wheel, else from the checkout with tables that are there."""
    shared = {"/opt/schemadesk": package(folder, is_wheel=is_whole)}
    if sys.pycache_prefix:
        shared[BYTECODE] = Path(sys.pycache_prefix)
    with network(ADDRESSES, shared) as net:
        site = Installation(net, folder, is_whole)
        net["client"].run(f"ip addr add {OTHER_CLIENT}/24 dev eth0")
        for name, commands in PACKAGES.items():
            net[name].run(commands)
        for name in CLOCKS:
            net[name].run(f"head -c 8 /dev/zero > {OFFSET}")
        site.systemctl(net["db"], ["start", "postgresql"])
        install_certificate(site)
        try:
            site.follow("install.md")
            yield site
        finally:
            for process in site.running.values():
                process.kill()
                process.wait()
