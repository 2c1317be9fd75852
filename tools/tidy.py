"""Checks those of the repository's rules that a search can check: run from anywhere in it.

Prints a line for each fault, and exits with 1 if there is any.
"""

import re
import subprocess
import sys
from pathlib import Path

import bench_build

LINES_MAX = 800
COLUMNS_MAX = 100
TEXT = {".rs", ".py", ".toml", ".md", ".sh", ".yml", ""}
CODE = {".rs", ".py"}
# Not written by us, or generated.
EXEMPT = {"Cargo.lock", "LICENSE-APACHE", "LICENSE-MIT"}

# Split, so that this file does not report itself.
PROMISES = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b|\b(to" r"do|unimple" r"mented)!\(")
# A Rust attribute is code: `#[...]`, `#![...]`.
COMMENT = re.compile(r"\s*(//|#(?!!?\[))")
# Cargo makes a program of each file; `tests/it/main.rs` includes all the others.
TEST_BINARY = re.compile(r"crates/\w+/tests/\w+\.rs")
# Code in documentation is delimited by these; cargo runs it as a test.
FENCE = re.compile(r"\s*//[/!] ```(\w*)")
# Property tests draw the same cases everywhere: the next line must say so.
PROPERTIES = re.compile(r"\s*(proptest::)?proptest! \{")
FIXED_SEED = "corridor_testing::cases!("
# Texts for users: standard terms, and decimals with a leading zero. Decision records keep their
# words.
PUBLIC_TEXT = re.compile(
    r"(README|GLOSSARY|ARCHITECTURE|CHANGELOG)\.md|docs/[^/]+\.(md|toml)|docs/site/pages/.*\.md"
    r"|examples/.*|experiments/.*|crates/(cli|node)/src/.*"
)
DECIMALS = re.compile(rf"docs/decisions/.*\.md|{PUBLIC_TEXT.pattern}")
# In source code, the language defines how numbers are written.
DECIMALS_IN = {".md", ".json"}
WORDS = {
    r"in vai" r"n": "spurious",
    r"shares? the ai" r"r": "half-duplex, or a shared channel",
    r"rides? o" r"n": "piggybacked",
    r"(is|are|was|were|be) told o" r"f": "learns, knows, hears",
    r"lets? go o" r"f": "sends, forgets, releases",
    r"whoeve" r"r": "what does it, by name",
    r"shared ai" r"r": "shared channel",
    r"spare ai" r"r": "spare airtime",
    r"(lossy|long|slow) way" r"s?": "path",
    r"there is no wa" r"y": "route, path",
    r"wa" r"y that becomes": "path",
    r"(the|a) way of a packe" r"t": "path",
    r"ways? (to cros" r"s|acros" r"s)": "path, scheme",
}
# A type in the data path should be one thing: with more fields than this it is several. Plain
# records may have more.
FIELDS_MAX = 15
PACKETS_WAY = re.compile(r"crates/(codec|node|packet|proto|relay)/src/.*\.rs")
RECORDS = {
    "CodingParams", "CodingTable", "RelayCounters", "RelayStats", "RelayTable", "Stats", "Status",
}
# Types that should be split, and must not get further fields until then.
OVERFULL = {
    "crates/proto/src/link/path_control/closed_loop.rs": {"Path": 19, "Run": 26},
}
STRUCT = re.compile(r"^( *)(?:pub(?:\(\w+\))? )?struct (\w+)[^;{(]*\{\n(.*?)^\1\}", re.M | re.S)
# `.2f}` is a Python format.
BARE_DECIMAL = re.compile(r"(?<![\w.\])])\.(?!\d+[a-z]\})\d")
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
        if path.name in EXEMPT or not path.is_file():
            continue
        if path.suffix == ".json":
            faults += said(name, [*check_words(name, path)])
            continue
        if path.suffix not in TEXT:
            continue
        if "corpus" in path.parts:
            continue  # Inputs of fuzz targets are bytes, not text.
        faulty = [*layout(name), *check(path), *check_words(name, path)]
        if path.suffix == ".rs":
            faulty += [*examples(path), *check_fields(name, path)]
        faults += said(name, faulty)
    for fault in bench_build.page_faults():
        print(f"docs/building.md: {fault}")
        faults += 1
    print(f"tidy: {faults} faults")
    return 1 if faults else 0


def said(name: str, faulty: list[tuple[int, str]]) -> int:
    """Prints and counts the faults of a file."""
    for line, fault in faulty:
        print(f"{name}:{line}: {fault}")
    return len(faulty)


def layout(name: str):
    """Yields line number and fault of misplaced files."""
    if TEST_BINARY.fullmatch(name):
        yield 1, "a test binary of its own, which takes seconds to link: expected tests/it/"


def examples(path: Path):
    """Yields line number and fault of examples in documentation that cargo is told not to run."""
    manifest = next((m for m in (up / "Cargo.toml" for up in path.parents) if m.is_file()), None)
    if manifest is None or "doctest = false" not in manifest.read_text(encoding="utf-8"):
        return
    fences = [
        (number, fence[1])
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
        if (fence := FENCE.match(line))
    ]
    for number, language in fences[::2]:
        if language != "text":
            yield number, "an example that no test runs: expected no `doctest = false` in Cargo.toml"


def check_fields(name: str, path: Path):
    """Yields line number and fault of types with too many fields."""
    if not PACKETS_WAY.fullmatch(name):
        return
    text = path.read_text(encoding="utf-8")
    for struct in STRUCT.finditer(text):
        indent, of, body = struct.groups()
        count = len(re.findall(rf"^{indent}    (?:pub(?:\(\w+\))? )?(?:r#)?\w+: ", body, re.M))
        most = OVERFULL.get(name, {}).get(of, FIELDS_MAX)
        if count > most and of not in RECORDS:
            line = text.count("\n", 0, struct.start()) + 1
            yield line, f"{of} has {count} fields: expected at most {most}"


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
        # The formatter handles code, and long strings are allowed.
        if path.suffix in CODE and COMMENT.match(line) and len(line) > COLUMNS_MAX:
            yield number, f"{len(line)} columns: expected at most {COLUMNS_MAX}"
        if PROPERTIES.fullmatch(line) and FIXED_SEED not in lines[number]:
            yield number, f"cases of no fixed seed: expected #![proptest_config({FIXED_SEED}N))]"
        if found := PROMISES.search(line):
            yield number, f"{found[0]}: a promise instead of a deed"
        if found := MACHINE_PATHS.search(line):
            yield number, f"{found[0]}: a path of one machine"


def check_words(name: str, path: Path):
    """Yields line number and fault of texts for users."""
    words = WORDS if PUBLIC_TEXT.fullmatch(name) else {}
    is_decimal = path.suffix in DECIMALS_IN and DECIMALS.fullmatch(name)
    if not words and not is_decimal:
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        for word, better in words.items():
            if found := re.search(rf"\b{word}\b", line, re.IGNORECASE):
                yield number, f"{found[0]}: expected the field's word: {better}"
        if is_decimal and (found := BARE_DECIMAL.search(line)):
            yield number, f"{found[0]}: expected a zero before the point"


if __name__ == "__main__":
    sys.exit(main())
