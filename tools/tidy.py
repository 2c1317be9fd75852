"""The house's rules that a search can check: run from anywhere in the repository.

Prints a line for each fault, and ends with 1 if there is any.
"""

import re
import subprocess
import sys
from pathlib import Path

LINES_MAX = 800
COLUMNS_MAX = 100
TEXT = {".rs", ".py", ".toml", ".md", ".sh", ".yml", ""}
CODE = {".rs", ".py"}
# Not written by us, or by a program.
EXEMPT = {"Cargo.lock", "LICENSE-APACHE", "LICENSE-MIT"}

# In pieces, so that this file does not accuse itself.
PROMISES = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b|\b(to" r"do|unimple" r"mented)!\(")
# An attribute of Rust is code: `#[...]`, `#![...]`.
COMMENT = re.compile(r"\s*(//|#(?!!?\[))")
MACHINE_PATHS = re.compile(r"(?<![\w.~])/(wo" r"rk|ro" r"ot|home/\w+|Users/\w+)/")


def main() -> int:
    top = Path(__file__).resolve().parent.parent
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=top, capture_output=True, text=True, check=True,
    ).stdout
    faults = 0
    for name in sorted(filter(None, listed.split("\0"))):
        path = top / name
        if path.suffix not in TEXT or path.name in EXEMPT or not path.is_file():
            continue
        if "corpus" in path.parts:
            continue  # Inputs of fuzz targets: bytes, not text.
        for line, fault in check(path):
            print(f"{name}:{line}: {fault}")
            faults += 1
    print(f"tidy: {faults} faults")
    return 1 if faults else 0


def check(path: Path):
    """Yields line number and fault."""
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    if path.suffix in CODE and len(lines) > LINES_MAX:
        yield LINES_MAX, f"{len(lines)} lines: expected at most {LINES_MAX}"
    if text and not text.endswith("\n"):
        yield len(lines), "no newline at the end"
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield number, "space at the end"
        # Code is the formatter's matter, and long strings are nobody's.
        if path.suffix in CODE and COMMENT.match(line) and len(line) > COLUMNS_MAX:
            yield number, f"{len(line)} columns: expected at most {COLUMNS_MAX}"
        if found := PROMISES.search(line):
            yield number, f"{found[0]}: a promise instead of a deed"
        if found := MACHINE_PATHS.search(line):
            yield number, f"{found[0]}: a path of one machine"


if __name__ == "__main__":
    sys.exit(main())
