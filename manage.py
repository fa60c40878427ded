#!/usr/bin/env python3
"""Django's command line; with nothing but Python on the machine it first makes .venv and installs what is locked.

Only the standard library is used here, in the syntax of Python 3.6, so that an old Python gets a sentence.

Outside a virtual environment: .venv is made beside this file, requirements.lock is installed into it (once for each
content of that file) and this program goes on inside it. Inside somebody's own environment nothing is installed: what
is missing is said, with the command that installs it. The help and an unknown command install nothing.
"""

import ast
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / "schemadesk-installed.json"
LOCK = "requirements.lock"
DEV_LOCK = "requirements-dev.lock"
# uv halves the time that pip takes (26 s instead of 60 s on two cores).
UV_LOCK = ROOT / "dashboard" / "runtime" / "installer.lock"
# Commands that need the tools of development too. `tool` runs one of them: `manage.py tool ruff check`.
DEV_COMMANDS = ("test", "lint", "tool", "messages", "docs")
DEV_SUMMARIES = {
    "test": "Run the tests. All other arguments go to pytest.",
    "tool": "Run a development tool of .venv, such as ruff or mypy.",
}
HELP = ("help", "-h", "--help")
# Commands of the libraries. Django can list them only once it is installed.
LIBRARY_COMMANDS = (
    "account_unsetmultipleprimaryemails",
    "changepassword",
    "check",
    "clearsessions",
    "collectstatic",
    "compilemessages",
    "createcachetable",
    "createsuperuser",
    "dbshell",
    "diffsettings",
    "dumpdata",
    "findstatic",
    "flush",
    "generateschema",
    "inspectdb",
    "loaddata",
    "makemessages",
    "makemigrations",
    "optimizemigration",
    "remove_stale_contenttypes",
    "runserver",
    "sendtestemail",
    "shell",
    "showmigrations",
    "spectacular",
    "sqlflush",
    "sqlmigrate",
    "sqlsequencereset",
    "squashmigrations",
    "startapp",
    "startproject",
    "testserver",
)
USAGE = 64  # the command line is wrong: several commands give 1 and 2 a meaning of their own
SAY_AFTER = 2.0  # seconds that something may take without a word


class BootstrapError(Exception):
    """The environment can't be made; the message says why and the cure."""


def main(argv: "list[str]") -> int:
    """Prepares the environment, then runs the command."""
    if sys.version_info < OLDEST:
        return fail(f"Schemadesk needs Python {OLDEST[0]}.{OLDEST[1]} or newer; this is {sys.version.split()[0]}.")
    if len(argv) < 2 or (argv[1] in HELP and len(argv) == 2):
        sys.stdout.write(overview())
        return 0
    command = argv[2] if argv[1] in HELP else argv[1]
    locks = [LOCK, DEV_LOCK] if argv[1] in DEV_COMMANDS else [LOCK]
    if not complete(locks) and not command.startswith("-") and not is_known(command):
        return fail(f"Unknown command: {command!r}. Run `manage.py help` for the commands.")
    try:
        if in_foreign_environment():
            complain_of_missing(locks)
        else:
            enter_environment(locks, argv)
    except BootstrapError as error:
        return fail(str(error))
    return run_command(argv)


def fail(message: str) -> int:
    """Says on the terminal why nothing was done."""
    sys.stderr.write(message.rstrip() + "\n")
    return 1


def run_command(argv: "list[str]") -> int:
    """The command itself, with everything installed."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    command = argv[1] if len(argv) > 1 else ""
    if command == "tool":
        program = shutil.which(argv[2], path=str(Path(sys.executable).parent)) if len(argv) > 2 else None
        if program is None:
            return fail("Unknown tool. Usage: manage.py tool ruff|mypy|pytest|… ARGUMENTS")
        os.execv(program, [program, *argv[3:]])  # noqa: S606 - a tool of the locked environment
    if command == "test":
        from tests.runner import main as run_tests

        return run_tests(argv[2:])
    if command == "up":
        from dashboard.runtime.up import main as up

        return up(argv[2:])
    data, argv = ("", argv) if command == "bench" else without_data(argv)
    if command != "lock_jars":
        from dashboard.runtime.data_folder import adopt_running

        problem = adopt_running(data)
        if problem:
            fail(problem)
            return USAGE
    if command == "bench" or (command in HELP and argv[2:3] == ["bench"]):
        return bench(argv[2:] if command == "bench" else ["--help"])
    from django.core.management import execute_from_command_line

    execute_from_command_line(argv)
    return 0


def without_data(argv: "list[str]") -> "tuple[str, list[str]]":
    """The folder that `--data` names, and the other arguments; "" without it."""
    for index, word in enumerate(argv):
        if word == "--data" and argv[index + 1 :]:
            return argv[index + 1], [*argv[:index], *argv[index + 2 :]]
        if word.startswith("--data="):
            return word[len("--data=") :], [*argv[:index], *argv[index + 1 :]]
        if word == "--":
            break
    return "", argv


def bench(arguments: "list[str]") -> int:
    """The measurements, which no package of the product knows."""
    import django

    django.setup()
    from benchmarks.bench import Command

    Command().run_from_argv([sys.argv[0], "bench", *arguments])
    return 0


# -- help without Django ----------------------------------------------------------------------------------------------


def overview() -> str:
    """What `manage.py help` prints: the project's own commands, each with the first sentence of its help."""
    summaries = {**DEV_SUMMARIES, **{name: summary_of(file) for name, file in command_files().items()}}
    rows = [f"  {name:<22}{summary}".rstrip() for name, summary in sorted(summaries.items())]
    return "\n".join(
        [
            "usage: manage.py COMMAND [OPTIONS]",
            "",
            *rows,
            "",
            "`manage.py COMMAND --help` shows the options of a command. `manage.py help --commands` also lists Django's.",
            "`--data DIR` makes a command use the running `up --data DIR` instead of the one on the default folder.",
            "The first command installs the locked packages in .venv. This help doesn't.\n",
        ]
    )


def command_files() -> "dict[str, Path]":
    """The source of each command of this project, by the command's name."""
    files = [file for package in ("dashboard", "registry") for file in (ROOT / package).rglob("commands/*.py")]
    files.extend((ROOT / "benchmarks").glob("bench.py"))
    return {file.stem: file for file in files if not file.stem.startswith("_")}


def is_known(command: str) -> bool:
    """Whether there is such a command, as far as can be seen before anything is installed."""
    return command in {*DEV_COMMANDS, *command_files(), *LIBRARY_COMMANDS}


def summary_of(file: Path) -> str:
    """The first sentence of the `help` of the command in a file."""
    statements = [
        node for kind in ast.parse(file.read_text()).body if isinstance(kind, ast.ClassDef) for node in kind.body
    ]
    for node in statements:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "help":
            return f"{str(ast.literal_eval(node.value)).split('. ')[0].rstrip('.')}."
    return ""


# -- somebody's own environment ---------------------------------------------------------------------------------------


def in_foreign_environment() -> bool:
    """Whether this Python runs in a virtual or conda environment that isn't the project's own."""
    prefix = Path(sys.prefix)
    if prefix.resolve() == VENV.resolve():
        return False
    return sys.prefix != sys.base_prefix or (prefix / "conda-meta").is_dir()


def complain_of_missing(locks: "list[str]") -> None:
    """Raises BootstrapError with the names that are locked and not installed, and the command that installs them."""
    missing = [name for lock in locks for name in locked_names(ROOT / lock) if not installed(name)]
    if not missing:
        return
    wanted = " ".join(f"-r {ROOT / lock}" for lock in locks)
    raise BootstrapError(
        f"This environment ({sys.prefix}) lacks {len(missing)} of Schemadesk's requirements: {shortened(missing)}.\n"
        "Schemadesk doesn't install into an existing environment. Install them with\n"
        f"    {sys.executable} -m pip install --require-hashes {wanted}\n"
        f"or deactivate the environment and run this again to create one in {VENV}."
    )


def shortened(names: "list[str]") -> str:
    """The names, at most eight of them."""
    return ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:8])} and {len(names) - 8} more"


def locked_names(path: Path) -> "list[str]":
    """The names in a lock file. Lines with a marker are left out: what they are for isn't known before installing."""
    lines = [line.split("\\")[0].strip() for line in path.read_text().splitlines() if line[:1].isalnum()]
    return [line.split("==")[0].split("[")[0] for line in lines if ";" not in line]


def installed(name: str) -> bool:
    """Whether a distribution of that name can be imported from here."""
    from importlib import metadata  # not in Python 3.6

    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


# -- the project's own environment ------------------------------------------------------------------------------------


def enter_environment(locks: "list[str]", argv: "list[str]") -> None:
    """Makes the project's environment complete and goes on inside it; returns only when it is inside already."""
    changed = False
    if not complete(locks):
        with only_one_at_a_time():
            if not complete(locks):  # another process may have done it while this one waited
                install(locks)
                changed = True
    if changed or Path(sys.prefix).resolve() != VENV.resolve():
        words = [str(VENV_PYTHON), str(ROOT / "manage.py"), *argv[1:]]
        os.execv(words[0], words)  # noqa: S606 - this program again, inside


def complete(locks: "list[str]") -> bool:
    """Whether the environment was made with these lock files as they are now."""
    stamp = read_stamp()
    return VENV_PYTHON.exists() and all(stamp.get(lock) == digest(lock) for lock in locks)


def read_stamp() -> "dict[str, str]":
    """What the last complete installation was made of: the SHA-256 of each lock file."""
    try:
        found = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def digest(lock: str) -> str:
    """The SHA-256 of a lock file."""
    return hashlib.sha256((ROOT / lock).read_bytes()).hexdigest()


@contextmanager
def only_one_at_a_time() -> "Iterator[None]":
    """Holds a lock on the project folder; the second process waits for the first."""
    descriptor = os.open(str(ROOT), os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            sys.stderr.write("Another process is installing Schemadesk's requirements; waiting for it.\n")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def install(locks: "list[str]") -> None:
    """Makes .venv if needed, installs the lock files and stamps it last, so that an interruption is made good."""
    # What was installed for development stays what its lock file says.
    wanted = [LOCK, DEV_LOCK] if DEV_LOCK in locks or DEV_LOCK in read_stamp() else [LOCK]
    if STAMP.exists():
        STAMP.unlink()  # between here and the end it is neither the old nor the new
    if not usable(VENV_PYTHON):
        make_environment()
    files = [word for lock in wanted for word in ("-r", str(ROOT / lock))]
    with tempfile.TemporaryDirectory(prefix="schemadesk-") as scratch:
        with_progress(f"Installing {' and '.join(wanted)}", [*installer(Path(scratch)), "--require-hashes", *files])
    fresh = STAMP.with_suffix(".new")
    fresh.write_text(json.dumps({lock: digest(lock) for lock in wanted}))
    fresh.replace(STAMP)


def usable(python: Path) -> bool:
    """Whether the environment's Python starts and is new enough."""
    return succeeds([str(python), "-c", f"import sys; sys.exit(sys.version_info < {OLDEST!r})"])


def has_pip(python: str) -> bool:
    """Whether that Python has pip."""
    return succeeds([python, "-c", "import pip"])


def succeeds(command: "list[str]") -> bool:
    """Whether a command can be run and says yes."""
    try:
        return subprocess.call(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def make_environment() -> None:
    """A fresh .venv without pip; what installs into it is chosen afterwards."""
    with_progress("Creating .venv", [sys.executable, "-m", "venv", "--clear", "--without-pip", str(VENV)])


def installer(scratch: Path) -> "list[str]":
    """The command that installs into .venv: uv from PATH, or fetched into a scratch folder for this once, else pip."""
    uv = shutil.which("uv")
    if not uv:
        pip = some_pip()
        wanted = ["install", "--quiet", "--target", str(scratch), "--no-deps", "--require-hashes", "-r", str(UV_LOCK)]
        try:
            with_progress("Downloading uv", [*pip, *wanted])
        except BootstrapError as error:
            sys.stderr.write(f"uv is not available ({str(error).splitlines()[-1].strip()}); using pip instead.\n")
            return [*pip, "install", "--quiet"]
        uv = str(scratch / "bin" / "uv")
    return [uv, "pip", "install", "--quiet", "--python", str(VENV_PYTHON)]


def some_pip() -> "list[str]":
    """The command of a pip that works on .venv: its own, this Python's, or one that Python carries along."""
    if not has_pip(str(VENV_PYTHON)):
        if has_pip(sys.executable):
            return [sys.executable, "-m", "pip", "--python", str(VENV_PYTHON)]
        try:
            with_progress("Installing pip in .venv", [str(VENV_PYTHON), "-m", "ensurepip", "--default-pip"])
        except BootstrapError:
            # Debian takes ensurepip out of its Python.
            raise BootstrapError(
                "Neither uv nor pip is available. On Debian or Ubuntu: apt install python3-venv"
            ) from None
    return [str(VENV_PYTHON), "-m", "pip"]


def with_progress(what: str, command: "list[str]") -> None:
    """Runs a command; says what is going on when it takes longer, and shows its output only when it fails."""
    back, end, pace = ("\r", "", 1) if sys.stderr.isatty() else ("", "\n", 10)
    began = time.monotonic()
    next_word = SAY_AFTER
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=str(ROOT)
        )
        try:
            while process.poll() is None:
                time.sleep(0.1)
                elapsed = time.monotonic() - began
                if elapsed >= next_word:
                    next_word += pace
                    sys.stderr.write(f"{back}{what} … {elapsed:.0f} s{end}")
                    sys.stderr.flush()
        except BaseException:
            process.terminate()
            process.wait()
            raise
        elapsed = time.monotonic() - began
        if elapsed >= SAY_AFTER:
            sys.stderr.write(f"{back}{what}: {elapsed:.1f} s\n")
        if process.returncode != 0:
            output.seek(0)
            shown = "\n    ".join(output.read().decode("utf-8", "replace").splitlines()[-30:])
            words = " ".join(command)
            raise BootstrapError(
                f"{what} failed. The command was\n    {words}\nand its output ended with:\n    {shown}"
            )


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv))
    except KeyboardInterrupt:
        sys.exit(130)
