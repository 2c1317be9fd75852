"""Runs all tests, those of the workspace and of Python, and counts them in one line at the end.

What is random is drawn from fixed seeds, which are printed; `make soak` draws from fresh ones.

Tests that lack rights or tools pass without testing, and print a line that begins with "skipped:".
What needs another processor, another toolchain or minutes prints "absent:". Both count as skipped.
With CORRIDOR_REQUIRE_NET=1 the first kind is a failure: rights and tools can be had.
"""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable

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
    # Its tools come over the network while cargo compiles; its package is built while tests wait
    # for time to pass, as most of those in real time do.
    python, compiled = test_python.Suite(), threading.Event()
    aside = threading.Thread(target=python.prepare, args=[compiled.wait], daemon=True)
    if len(sys.argv) == 1:
        aside.start()
    # Whoever asks cargo for some tests wants these and no others. Examples are linted, not run: to
    # link them takes longer than some tests.
    asked = [sys.argv[1:]] if len(sys.argv) > 1 else [["--lib", "--bins", "--tests"], ["--doc"]]
    passed = failed = skipped = absent = 0
    broken = False
    for targets in asked:
        command = [cargo, "test", "--workspace", "--no-fail-fast", *targets, "--", "--show-output"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, errors="replace", bufsize=1
        ) as running:
            assert running.stdout is not None
            counts = count(running.stdout, compiled.set)
        if running.returncode != 0 and counts[1] == 0:
            print("cargo test failed without a failed test: see above", file=sys.stderr)
        broken |= running.returncode != 0
        passed, failed = passed + counts[0], failed + counts[1]
        skipped, absent = skipped + counts[2], absent + counts[3]
    if len(sys.argv) == 1:
        compiled.set()
        aside.join()
        more = python.run()
        passed, failed, absent = passed + more[0], failed + more[1], absent + more[2]
    print(f"{seeds}; {time.monotonic() - begun:.0f} s")
    print(f"{passed} passed, {failed} failed, {skipped + absent} skipped", flush=True)
    if skipped > 0 and os.environ.get("CORRIDOR_REQUIRE_NET") == "1":
        print(f"CORRIDOR_REQUIRE_NET=1 forbids the {skipped} skipped tests", file=sys.stderr)
        return 1
    return 1 if broken or failed > 0 else 0


def property_seed() -> str:
    """What `corridor_testing` draws from."""
    source = (test_python.TOP / "crates/testing/src/lib.rs").read_text()
    fixed = re.search(r"SEED: u64 = (\d+);", source)
    assert fixed is not None
    return os.environ.get("PROPTEST_RNG_SEED") or fixed[1]


def count(lines: Iterable[str], begun: Callable[[], object]) -> tuple[int, int, int, int]:
    """Passes on what people read, and counts what passed, failed, was skipped, is absent; `begun`
    is called when the first tests have begun."""
    passed = failed = skipped = absent = ignored = 0
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
            print(line, end="", flush=True)
        if result := RESULT.match(line):
            passed += int(result[1])
            failed += int(result[2])
            ignored += int(result[3])
    # Tests that are ignored say so with their reason: they take minutes, or are not met yet.
    return max(0, passed - skipped - absent), failed, skipped, absent + ignored


if __name__ == "__main__":
    sys.exit(main())
