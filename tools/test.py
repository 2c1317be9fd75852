"""Runs all tests, those of the workspace and of Python, and counts them in one line at the end.

Random tests use fixed seeds, which are printed; `make soak` uses fresh ones.

Tests that lack rights or tools pass without testing, and print a line that begins with "skipped:".
Tests that need another processor, another toolchain or minutes print "absent:". Both count as
skipped. With CORRIDOR_REQUIRE_NET=1 the first kind is a failure, since rights and tools must then
be available.
"""

import dataclasses
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import test_python

TOP = Path(__file__).resolve().parent.parent

# A test may run itself again in a user namespace; the summary of that child says that it filtered
# the others out.
RESULT = re.compile(
    r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored; \d+ measured; 0 filtered out"
)


#: Packages most of whose tests wait for time to pass: kernels over emulated radios, daemons that
#: connect. They run first, one after the other, with tests that need the processor in parallel.
REAL_TIME = ("cli", "lab")
#: Priority of tests that need the processor: below these, and below Python's, which take longest.
NICE = ("nice", "-n", "15")
#: Integration tests in real time, which mostly wait, and their number of threads. Those of the lab
#: that measure lock each other out.
WAITING = "tests/it/main.rs"
WAITING_THREADS = 3 * (os.cpu_count() or 1)


def main() -> int:
    begun = time.monotonic()
    seeds = f"seeds: property tests {property_seed()}, Hypothesis {test_python.seed()}"
    print(seeds, flush=True)
    # With arguments, only the tests that cargo runs for them.
    tally = everything() if len(sys.argv) == 1 else some(sys.argv[1:])
    skipped, absent = tally.skipped, tally.absent
    print(f"{seeds}; {time.monotonic() - begun:.0f} s")
    print(f"{tally.passed} passed, {tally.failed} failed, {skipped + absent} skipped", flush=True)
    if skipped > 0 and os.environ.get("CORRIDOR_REQUIRE_NET") == "1":
        print(f"CORRIDOR_REQUIRE_NET=1 forbids the {skipped} skipped tests", file=sys.stderr)
        return 1
    return 1 if tally.broken or tally.failed > 0 else 0


def cargo() -> str:
    return os.environ.get("CARGO", "cargo")


def some(arguments: list[str]) -> "Tally":
    """The tests of the workspace that cargo runs for these arguments."""
    tally = Tally(shown=True)
    command = [cargo(), "test", "--workspace", "--no-fail-fast", *arguments, "--", "--show-output"]
    tally.run(command)
    return tally


def everything() -> "Tally":
    """All tests, in four lanes: those in real time; in parallel with low priority those of the
    other crates, the documentation's examples, and Python's. Python's tools are downloaded while
    cargo compiles."""
    python, compiled, prepared = test_python.Suite(), threading.Event(), threading.Event()
    tally, others, examples, checked = Tally(shown=True), Tally(), Tally(), Tally()
    beside: list[Program] = []

    def run_others() -> None:
        compiled.wait()
        for program in beside:
            program.run(others, NICE)

    def run_examples() -> None:
        compiled.wait()
        command = [*NICE, cargo(), "test", "--workspace", "--no-fail-fast", "--doc"]
        examples.run(command)
        prepared.wait()
        checked.passed, checked.failed = python.check()

    def run_python() -> None:
        python.prepare(compiled.wait)
        prepared.set()
        python.run()

    lanes = [Lane(run_others), Lane(run_examples), Lane(run_python)]
    programs = build()
    if programs is None:
        tally.broken = True
        return tally
    beside += [program for program in programs if program.folder.name not in REAL_TIME]
    compiled.set()
    for program in programs:
        if program.folder.name in REAL_TIME:
            waits = program.source == WAITING
            program.run(tally, threads=WAITING_THREADS if waits else None)
    for lane in lanes:
        tally.failed += not lane.ends_well()
    in_python = Tally(python.passed, python.failed, absent=python.absent)
    for each in (others, examples, checked, in_python):
        tally.add(each)
    return tally


class Lane:
    """Tests that run in parallel with others."""

    def __init__(self, run: Callable[[], None]) -> None:
        self.done = False
        self.thread = threading.Thread(target=self._run, args=[run], daemon=True)
        self.thread.start()

    def _run(self, run: Callable[[], None]) -> None:
        run()
        self.done = True

    def ends_well(self) -> bool:
        """Waits for its end; false if it raised an exception, which is printed."""
        self.thread.join()
        return self.done


@dataclasses.dataclass
class Program:
    """A program with tests, as cargo has built it."""

    folder: Path
    source: str
    path: str

    def run(
        self, tally: "Tally", before: Sequence[str] = (), threads: int | None = None
    ) -> None:
        """Runs it as cargo does, and counts its tests."""
        print(f"     Running {self.folder.name}/{self.source}", flush=True)
        more = {"CARGO_MANIFEST_DIR": str(self.folder)}
        side_by_side = [] if threads is None else [f"--test-threads={threads}"]
        command = [*before, self.path, "--show-output", *side_by_side]
        tally.run(command, self.folder, more)


def build() -> list[Program] | None:
    """Builds all tests of the workspace, in cargo's order. Examples are linted, not run, since
    linking them takes longer than some tests."""
    command = [
        cargo(), "test", "--workspace", "--tests", "--no-run",
        "--message-format=json-render-diagnostics",
    ]  # fmt: skip
    made = subprocess.run(command, cwd=TOP, stdout=subprocess.PIPE, text=True, check=False)
    if made.returncode != 0:
        return None
    told = [json.loads(line) for line in made.stdout.splitlines() if line.startswith("{")]
    tests = [each for each in told if each.get("executable") and each["profile"]["test"]]
    programs = []
    for test in tests:
        folder = Path(test["manifest_path"]).parent
        source = str(Path(test["target"]["src_path"]).relative_to(folder))
        programs.append(Program(folder, source, test["executable"]))
    return sorted(programs, key=lambda program: (program.folder, program.source))


def property_seed() -> str:
    """The seed of `corridor_testing`."""
    source = (TOP / "crates/testing/src/lib.rs").read_text()
    fixed = re.search(r"SEED: u64 = (\d+);", source)
    assert fixed is not None
    return os.environ.get("PROPTEST_RNG_SEED") or fixed[1]


@dataclasses.dataclass
class Tally:
    """How many tests passed, failed, were skipped for lack of rights or tools, and are absent."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    absent: int = 0
    broken: bool = False
    #: Whether to print cargo's output immediately, or at the end.
    shown: bool = False

    def add(self, other: "Tally") -> None:
        """Adds another's counts."""
        self.passed, self.failed = self.passed + other.passed, self.failed + other.failed
        self.skipped, self.absent = self.skipped + other.skipped, self.absent + other.absent
        self.broken |= other.broken

    def run(
        self, command: list[str], folder: Path = TOP, more: Mapping[str, str] | None = None
    ) -> None:
        """Runs cargo's tests in a folder, with these additions to the environment, and counts
        them."""
        said: list[str] = []
        failed_before = self.failed
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=None if self.shown else subprocess.STDOUT,
            text=True, errors="replace", bufsize=1, cwd=folder, env=os.environ | (more or {}),
        ) as running:  # fmt: skip
            assert running.stdout is not None
            for line in self.count(running.stdout):
                if self.shown:
                    print(line, end="", flush=True)
                else:
                    said.append(line)
        print(end="".join(said), flush=True)
        if running.returncode != 0 and self.failed == failed_before:
            print(f"{shlex.join(command)} failed without a failed test", file=sys.stderr)
        self.broken |= running.returncode != 0

    def count(self, lines: Iterable[str]) -> Iterator[str]:
        """Counts what passed, failed, was skipped, is absent; yields the lines for people."""
        passed = skipped = absent = ignored = 0
        # The output of passing tests is left out, except for skips.
        quiet = False
        for line in lines:
            if line == "successes:\n":
                quiet = True
            elif line == "failures:\n" or line.startswith("test result:"):
                quiet = False
            skipped += line.startswith("skipped:")
            absent += line.startswith("absent:")
            if not quiet or line.startswith(("skipped:", "absent:")):
                yield line
            if result := RESULT.match(line):
                passed += int(result[1])
                self.failed += int(result[2])
                ignored += int(result[3])
        # Ignored tests state their reason: they take minutes, or their target is not met yet.
        self.passed += max(0, passed - skipped - absent)
        self.skipped, self.absent = self.skipped + skipped, self.absent + absent + ignored


if __name__ == "__main__":
    sys.exit(main())
