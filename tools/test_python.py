"""Tests the Python package as users get it: built, and installed in an environment of its own.

The environment is under cargo's target directory, and is kept: a second run installs only what has
changed. The extension is built with cargo's test profile, whose crates are mostly compiled: its
feature `shared-build` makes them identical.
"""

import hashlib
import os
import re
import subprocess
import sys
import traceback
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
PYTHON_MIN = (3, 11)
#: Versions that are known to work together.
CONSTRAINTS = TOP / "python" / "constraints.txt"
#: Timeout of the installation and of each check, seconds.
PATIENCE_S = 1200
#: Priority of what runs in parallel with tests: below them.
NICE = ("nice", "-n", "5")
#: Tests of a file share fixtures, above all the site.
SIDE_BY_SIDE = ("--numprocesses", "2", "--dist", "loadfile")
SUMMARY = re.compile(r"(\d+) (passed|failed|error|errors|skipped)\b")


def main() -> int:
    """Runs everything, or, with arguments, only pytest with these."""
    if len(sys.argv) > 1:
        python = environment()
        return 1 if python is None or not install(python) else pytest(python, sys.argv[1:])[1]
    suite = Suite()
    suite.prepare()
    checked = suite.check()
    passed, failed, absent = suite.run()
    passed, failed = passed + checked[0], failed + checked[1]
    print(f"{passed} passed, {failed} failed, {absent} skipped", flush=True)
    return 1 if failed else 0


class Suite:
    """The tests in three parts: `prepare` mostly waits, for the network and until others no longer
    need the processor; `run` needs the processor; `check` may run at any time after `prepare`."""

    def __init__(self) -> None:
        self.python: Path | None = None
        self.passed = self.failed = self.absent = 0

    def prepare(self, compiled: Callable[[], object] = lambda: None) -> None:
        """Makes the environment, builds and installs the package; builds nothing before `compiled`
        returns. Any error counts as a failure: in a thread of its own, an exception would be
        printed and forgotten."""
        try:
            self._prepare(compiled)
        except Exception:
            traceback.print_exc()
            self.python, self.failed = None, self.failed + 1

    def _prepare(self, compiled: Callable[[], object]) -> None:
        if sys.version_info < PYTHON_MIN:
            wanted = ".".join(str(part) for part in PYTHON_MIN)
            print(f"absent: Python {wanted} for the Python package", flush=True)
            self.absent = 1
            return
        python = environment()
        compiled()
        if python is None:
            self.absent = 1
        elif not install(python):
            self.failed = 1
        else:
            self.python = python

    def check(self) -> tuple[int, int]:
        """Checks types and formatting, once prepared. Returns how many checks passed, failed."""
        if self.python is None:
            return 0, 0
        held = [quietly(what, command) for what, command in checks(self.python)]
        return sum(held), held.count(False)

    def run(self) -> tuple[int, int, int]:
        """Runs pytest, once prepared; with low priority if tests run in parallel. Returns how many
        tests passed, failed, are absent."""
        if self.python is not None:
            passed, failed = pytest(self.python, before=NICE)
            self.passed, self.failed = self.passed + passed, self.failed + failed
        return self.passed, self.failed, self.absent


def target() -> Path:
    return Path(os.environ.get("CARGO_TARGET_DIR", TOP / "target")).resolve()


def environment() -> Path | None:
    """Creates the environment with the tools, or finds it; None if that is impossible."""
    folder = target() / "python"
    python = folder / "bin" / "python"
    wanted = hashlib.sha256()
    for file in (TOP / "pyproject.toml", CONSTRAINTS):
        wanted.update(file.read_bytes())
    stamp = folder / "installed"
    if stamp.is_file() and stamp.read_text() == wanted.hexdigest() and python.is_file():
        return python
    print("python: an environment for the tests, a minute", flush=True)
    try:
        venv.create(folder, clear=True, with_pip=True)
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"absent: an environment for Python (venv, pip): {error}", flush=True)
        return None
    command = [python, "-m", "pip", "install", "-q", "-c", CONSTRAINTS, *requirements()]
    if not quietly("pip install of the tools", command):
        print("absent: what the Python tests need cannot be installed", flush=True)
        return None
    stamp.write_text(wanted.hexdigest())
    return python


def requirements() -> list[str]:
    """What pyproject.toml requires: to build, to run, and to test."""
    import tomllib

    table = tomllib.loads((TOP / "pyproject.toml").read_text())
    project = table["project"]
    return [
        *table["build-system"]["requires"],
        *project["dependencies"],
        *project["optional-dependencies"]["test"],
        *project["optional-dependencies"]["report"],
        *project["optional-dependencies"]["cluster"],
        *project["optional-dependencies"]["results"],
    ]


def seed() -> str:
    """The seed of Hypothesis, unless another is given."""
    fixed = re.search(r"--hypothesis-seed=(\d+)", (TOP / "pyproject.toml").read_text())
    assert fixed is not None
    return fixed[1]


def install(python: Path) -> bool:
    """Builds the wheel and installs it."""
    print("python: building and installing the package", flush=True)
    command = [
        python, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation",
        "--force-reinstall", "--config-settings",
        "build-args=--profile dev --features shared-build", TOP,
    ]  # fmt: skip
    return quietly("pip install .", command)


def pytest(python: Path, more: Sequence[str] = (), before: Sequence[str] = ()) -> tuple[int, int]:
    """Runs the tests, and the examples of the installed package's documentation."""
    command = [
        *before, python, "-m", "pytest",
        "-c", TOP / "pyproject.toml", "--rootdir", TOP / "python/tests",
        "-p", "no:cacheprovider", "--doctest-modules", *SIDE_BY_SIDE, *more,
        "--pyargs", "corridor", ".",
    ]  # fmt: skip
    result = subprocess.run(
        [str(part) for part in command], cwd=TOP / "python" / "tests", env=clean(),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S,
        check=False,
    )  # fmt: skip
    lines = result.stdout.rstrip().splitlines() or [""]
    counts = {word.rstrip("s"): int(number) for number, word in SUMMARY.findall(lines[-1])}
    failed = counts.get("failed", 0) + counts.get("error", 0)
    if result.returncode != 0 or failed:
        print(result.stdout, flush=True)
        failed = max(failed, 1)
    print(f"python: pytest: {lines[-1]}", flush=True)
    return counts.get("passed", 0), failed


def checks(python: Path) -> list[tuple[str, list[object]]]:
    return [
        ("mypy.stubtest", [python, "-m", "mypy.stubtest", "corridor._native"]),
        ("mypy --strict", [python, "-m", "mypy", "--config-file", TOP / "pyproject.toml"]),
        ("ruff check", [python, "-m", "ruff", "check", "--no-cache", TOP / "python"]),
        ("ruff format", [python, "-m", "ruff", "format", "--no-cache", "--check", TOP / "python"]),
    ]


def quietly(what: str, command: list[object]) -> bool:
    """Runs a command in the repository, and shows its output if it fails; with low priority if
    tests run in parallel."""
    cwd = target() if what == "mypy.stubtest" else TOP
    command = [*NICE, *command]
    try:
        result = subprocess.run(
            [str(part) for part in command], cwd=cwd, env=clean(), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        print(f"python: {what}: not done after {PATIENCE_S} s", flush=True)
        return False
    print(f"python: {what}: {'ok' if result.returncode == 0 else 'failed'}", flush=True)
    if result.returncode != 0:
        print(result.stdout, flush=True)
    return result.returncode == 0


def clean() -> dict[str, str]:
    """The environment with our tools, and without variables that could select another package."""
    own = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    rest = {name: value for name, value in os.environ.items() if name not in own}
    tools = f"{target() / 'python' / 'bin'}{os.pathsep}{rest.get('PATH', os.defpath)}"
    ours = {"CARGO_TARGET_DIR": str(target()), "MPLBACKEND": "Agg", "COLUMNS": "100"}
    return rest | ours | {"PATH": tools}


if __name__ == "__main__":
    sys.exit(main())
