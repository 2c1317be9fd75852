"""Runs all tests, those of the workspace and of Python, and counts them in one line at the end.

What is random is drawn from fixed seeds, which are printed; `make soak` draws from fresh ones.

Tests that lack rights or tools pass without testing, and print a line that begins with "skipped:".
What needs another processor, another toolchain or minutes prints "absent:". Both count as skipped.
With CORRIDOR_REQUIRE_NET=1 the first kind is a failure: rights and tools can be had.
"""

import dataclasses
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator

import test_python

# A test may run itself again in a user namespace; the summary of that child filters the others out.
RESULT = re.compile(
    r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored; \d+ measured; 0 filtered out"
)


def main() -> int:
    begun = time.monotonic()
    cargo = os.environ.get("CARGO", "cargo")
    seeds = f"seeds: property tests {property_seed()}, Hypothesis {test_python.seed()}"
    print(seeds, flush=True)
    whole = len(sys.argv) == 1
    # Python's tools come over the network while cargo compiles. Its package is built and tested,
    # and the examples of the documentation are run, while tests wait for time to pass, as most of
    # those in real time do: others come first, as all these are nice.
    python, compiled = test_python.Suite(), threading.Event()
    examples, in_python = Tally(), Tally(failed=1)

    def do_aside() -> None:
        python.prepare(compiled.wait)
        examples.failed = 1  # Unless they run to their end.
        examples.run(["nice", "-n", "10", cargo, "test", "--workspace", "--no-fail-fast", "--doc"])
        examples.failed -= 1
        passed, failed, absent = python.run()
        in_python.add(Tally(passed, failed, absent=absent))
        in_python.failed -= 1

    aside = threading.Thread(target=do_aside, daemon=True)
    if whole:
        aside.start()
    # Whoever asks cargo for some tests wants these and no others. Examples are linted, not run: to
    # link them takes longer than some tests.
    tally = Tally(shown=True)
    targets = ["--lib", "--bins", "--tests"] if whole else sys.argv[1:]
    command = [cargo, "test", "--workspace", "--no-fail-fast", *targets, "--", "--show-output"]
    tally.run(command, compiled.set)
    if whole:
        compiled.set()
        aside.join()
        tally.add(examples)
        tally.add(in_python)
    skipped, absent = tally.skipped, tally.absent
    print(f"{seeds}; {time.monotonic() - begun:.0f} s")
    print(f"{tally.passed} passed, {tally.failed} failed, {skipped + absent} skipped", flush=True)
    if skipped > 0 and os.environ.get("CORRIDOR_REQUIRE_NET") == "1":
        print(f"CORRIDOR_REQUIRE_NET=1 forbids the {skipped} skipped tests", file=sys.stderr)
        return 1
    return 1 if tally.broken or tally.failed > 0 else 0


def property_seed() -> str:
    """What `corridor_testing` draws from."""
    source = (test_python.TOP / "crates/testing/src/lib.rs").read_text()
    fixed = re.search(r"SEED: u64 = (\d+);", source)
    assert fixed is not None
    return os.environ.get("PROPTEST_RNG_SEED") or fixed[1]


@dataclasses.dataclass
class Tally:
    """How many tests passed, failed, were skipped for want of rights or tools, and are absent."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    absent: int = 0
    broken: bool = False
    #: What cargo says is printed as it comes; else when all is done.
    shown: bool = False

    def add(self, other: "Tally") -> None:
        """Counts another's as well."""
        self.passed, self.failed = self.passed + other.passed, self.failed + other.failed
        self.skipped, self.absent = self.skipped + other.skipped, self.absent + other.absent
        self.broken |= other.broken

    def run(self, command: list[str], begun: Callable[[], object] = lambda: None) -> None:
        """Runs cargo's tests and counts them; `begun` is called when the first have begun."""
        said: list[str] = []
        failed_before = self.failed
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=None if self.shown else subprocess.STDOUT,
            text=True, errors="replace", bufsize=1,
        ) as running:  # fmt: skip
            assert running.stdout is not None
            for line in self.count(running.stdout, begun):
                if self.shown:
                    print(line, end="", flush=True)
                else:
                    said.append(line)
        print(end="".join(said), flush=True)
        if running.returncode != 0 and self.failed == failed_before:
            print("cargo test failed without a failed test: see above", file=sys.stderr)
        self.broken |= running.returncode != 0

    def count(self, lines: Iterable[str], begun: Callable[[], object]) -> Iterator[str]:
        """Counts what passed, failed, was skipped, is absent; yields what people read."""
        passed = skipped = absent = ignored = 0
        # What passing tests print is of interest to nobody, but for the skips.
        quiet = False
        for line in lines:
            if line.startswith("running "):
                begun()
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
        # Tests that are ignored say so with their reason: they take minutes, or are not met yet.
        self.passed += max(0, passed - skipped - absent)
        self.skipped, self.absent = self.skipped + skipped, self.absent + absent + ignored


if __name__ == "__main__":
    sys.exit(main())
