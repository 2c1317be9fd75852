"""Runs all tests of the workspace, and counts them in one line at the end.

Tests that lack rights or tools pass without testing, and print a line that begins with "skipped:".
They count as skipped. With CORRIDOR_REQUIRE_NET=1 a skipped test is a failure.
"""

import os
import re
import subprocess
import sys

# A test may run itself again in a user namespace; the summary of that child filters the others out.
RESULT = re.compile(
    r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored; \d+ measured; 0 filtered out"
)


def main() -> int:
    cargo = os.environ.get("CARGO", "cargo")
    command = [cargo, "test", "--workspace", "--no-fail-fast", *sys.argv[1:], "--", "--show-output"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, errors="replace", bufsize=1
    ) as cargo:
        assert cargo.stdout is not None
        passed, failed, skipped = count(cargo.stdout)
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    if cargo.returncode != 0 and failed == 0:
        print("cargo test failed without a failed test: see above", file=sys.stderr)
    if skipped > 0 and os.environ.get("CORRIDOR_REQUIRE_NET") == "1":
        print("CORRIDOR_REQUIRE_NET=1 forbids skipped tests", file=sys.stderr)
        return 1
    return 1 if cargo.returncode != 0 or failed > 0 else 0


def count(lines) -> tuple[int, int, int]:
    """Passes on what people read, and counts tests that passed, failed, were skipped."""
    passed = failed = skipped = ignored = 0
    # What passing tests print is of interest to nobody, but for the skips.
    quiet = False
    for line in lines:
        if line == "successes:\n":
            quiet = True
        elif line == "failures:\n" or line.startswith("test result:"):
            quiet = False
        if line.startswith("skipped:"):
            skipped += 1
        if not quiet or line.startswith("skipped:"):
            print(line, end="", flush=True)
        if result := RESULT.match(line):
            passed += int(result[1])
            failed += int(result[2])
            ignored += int(result[3])
    return passed - skipped, failed, skipped + ignored


if __name__ == "__main__":
    sys.exit(main())
