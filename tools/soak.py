"""Runs random tests from fresh seeds: property tests, fuzzing, Hypothesis, torture.

    soak.py [SECONDS] [SEED]

Runs rounds with successive seeds after SEED, which is drawn if not given; the builds are those of
`make test`. At the first failure it prints the seed and the command that repeats the failed test,
and exits with 1. Every failure is to become a test of its own.
"""

import json
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import test_python

TOP = Path(__file__).resolve().parent.parent
SECONDS = 600
#: Timeout of one step, seconds.
PATIENCE_S = 1800
#: Duration of torture in each round, seconds, from which the number of its seeds follows.
TORTURE_S = 30
#: Number of torture's seeds in the first round.
TORTURE_SEEDS = 100
PROPERTIES = re.compile(r"^( *)(?:proptest::)?proptest! \{$(.*?)^\1\}$", re.MULTILINE | re.DOTALL)
PROPERTY = re.compile(r"#\[test\]\s+(?:///[^\n]*\s+)*fn (\w+)")


@dataclass
class Program:
    """A program with tests, and those of its tests that are property tests."""

    package: str
    folder: Path
    path: Path
    tests: list[str]


@dataclass
class Failure(Exception):
    """A failed test, its output, and the command that repeats it."""

    what: str
    said: str
    again: str


def main() -> int:
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else secrets.randbelow(2**32)
    programs, corridor = build()
    count = sum(len(program.tests) for program in programs)
    python = test_python.environment()
    if python is not None and not test_python.install(python):
        return 1
    torture = Torture(corridor)
    print(f"soak: {count} property tests, {seconds} s from seed {seed}", flush=True)
    begun, rounds = time.monotonic(), 0
    try:
        while rounds == 0 or time.monotonic() - begun < seconds:
            steps: list[tuple[str, Callable[[int], str]]] = [
                ("properties", lambda seed: properties(programs, seed)),
                ("torture", torture.run),
            ]
            if python is not None:
                steps.insert(1, ("hypothesis", lambda seed: hypothesis(python, seed)))
            for name, step in steps:
                done = step(seed + rounds)
                passed_s = time.monotonic() - begun
                print(f"soak: {passed_s:4.0f} s: seed {seed + rounds}: {name}: {done}", flush=True)
            rounds += 1
    except Failure as failure:
        print(failure.said)
        print(f"soak: seed {seed + rounds}: failed: {failure.what}; again:\n  {failure.again}")
        return 1
    print(f"soak: {rounds} rounds from seed {seed}: nothing failed", flush=True)
    return 0


def build() -> tuple[list[Program], Path]:
    """Builds all tests; returns the programs with property tests, and `corridor`."""
    cargo = os.environ.get("CARGO", "cargo")
    command = [
        cargo, "test", "--workspace", "--tests", "--no-run",
        "--message-format=json-render-diagnostics",
    ]  # fmt: skip
    told = subprocess.run(command, cwd=TOP, stdout=subprocess.PIPE, text=True, check=True).stdout
    artifacts = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    made = [made for made in artifacts if made.get("executable")]
    corridor = [m for m in made if m["target"]["name"] == "corridor" and not m["profile"]["test"]]
    programs, missing = [], set()
    for package, names in wanted().items():
        missing |= {(package, name) for name in names}
        for test in (m for m in made if m["profile"]["test"]):
            folder = Path(test["manifest_path"]).parent
            if folder.name != package:
                continue
            path = Path(test["executable"])
            listed = subprocess.run(
                [path, "--list", "--format", "terse"], cwd=folder, stdout=subprocess.PIPE,
                text=True, check=True,
            ).stdout  # fmt: skip
            tests = [line.removesuffix(": test") for line in listed.splitlines()]
            tests = [test for test in tests if test.rsplit("::")[-1] in names]
            missing -= {(package, test.rsplit("::")[-1]) for test in tests}
            if tests:
                programs.append(Program(package, folder, path, tests))
    assert not missing, f"property tests that no program has: {sorted(missing)}"
    return programs, Path(corridor[0]["executable"])


def wanted() -> dict[str, set[str]]:
    """The names of all property tests, by their crate's folder."""
    names: dict[str, set[str]] = {}
    for file in sorted((TOP / "crates").glob("*/**/*.rs")):
        for block in PROPERTIES.finditer(file.read_text(encoding="utf-8")):
            crate = file.relative_to(TOP / "crates").parts[0]
            names.setdefault(crate, set()).update(PROPERTY.findall(block[2]))
    return names


def properties(programs: list[Program], seed: int) -> str:
    for program in programs:
        run(
            [program.path, "--exact", *program.tests],
            f"property tests of crates/{program.package}",
            f"PROPTEST_RNG_SEED={seed} cargo test -p corridor-{program.package} TEST",
            cwd=program.folder, more={"PROPTEST_RNG_SEED": str(seed)},
        )  # fmt: skip
    return f"{sum(len(program.tests) for program in programs)} passed"


def hypothesis(python: Path, seed: int) -> str:
    passed, failed = test_python.pytest(python, ["-m", "hypothesis", f"--hypothesis-seed={seed}"])
    if failed:
        again = f"python3 tools/test_python.py -m hypothesis --hypothesis-seed={seed}"
        raise Failure("Hypothesis", "", again)
    return f"{passed} passed"


class Torture:
    """Runs `corridor sim torture` with ever new seeds, as many as the time allows."""

    def __init__(self, corridor: Path):
        self.corridor = corridor
        self.seeds = TORTURE_SEEDS

    def run(self, seed: int) -> str:
        # Rounds have consecutive seeds; torture's do not overlap.
        first, count = seed << 24, self.seeds
        begun = time.monotonic()
        run(
            [self.corridor, "sim", "torture", "--first", str(first), "--seeds", str(count)],
            "torture",
            f"corridor sim torture --first {first} --seeds {count}",
        )
        took_s = max(time.monotonic() - begun, 1e-3)
        self.seeds = max(1, min(4 * count, int(count * TORTURE_S / took_s)))
        return f"{count} seeds from {first} passed"


def run(
    command: list[object], what: str, again: str, cwd: Path = TOP, more: dict[str, str] | None = None
) -> None:
    """Runs a command; its output matters only if it fails."""
    result = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=os.environ | (more or {}),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    if result.returncode != 0:
        raise Failure(what, result.stdout, again)


if __name__ == "__main__":
    sys.exit(main())
